//! Brings one file home: continues where it stopped, checks size and digest, and only then gives it its name.

use super::http::{Client, Failure, Network, header};
use super::{Fetched, Wanted};
use crate::paper::data::Error;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use ureq::Body;
use ureq::http::Response;

/// The unfinished file, and beside it the tag of the version it belongs to.
struct Part {
    path: PathBuf,
    tag_path: PathBuf,
}

impl Part {
    fn new(file: &Wanted, folder: &Path) -> Self {
        // Two addresses may end in the same name, so the name of the unfinished file knows its address.
        let digest = blake3::hash(file.url.as_bytes()).to_hex();
        let stem = format!(".{}.{}", file.name, &digest[..12]);
        Self { path: folder.join(format!("{stem}.part")), tag_path: folder.join(format!("{stem}.tag")) }
    }

    fn length(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |data| data.len())
    }

    fn tag(&self) -> Option<String> {
        std::fs::read_to_string(&self.tag_path).ok().filter(|tag| !tag.is_empty())
    }

    fn forget(&self) {
        // Gone already is as good as removed.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.tag_path);
    }
}

/// Fetches `file` into `out`. `done` counts bytes for the progress bar, bytes found from an earlier run included.
pub fn download(file: &Wanted, network: &Network, out: &Path, done: &AtomicU64) -> Result<Fetched, Error> {
    let folder = network.partial.as_deref().unwrap_or(out);
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let part = Part::new(file, folder);
    let client = Client::new(network);
    let mut failures = 0;
    let mut counted = 0;
    loop {
        let before = part.length();
        let failure = match attempt(file, &client, &part, &mut |length| {
            // Starting over takes back what was counted.
            if length >= counted {
                done.fetch_add(length - counted, Ordering::Relaxed);
            } else {
                done.fetch_sub(counted - length, Ordering::Relaxed);
            }
            counted = length;
        }) {
            Ok(()) => match check(file, &part)? {
                Ok(fetched) => {
                    place(&part, &out.join(&file.name))?;
                    return Ok(fetched);
                }
                Err(failure) => {
                    part.forget();
                    failure
                }
            },
            Err(failure) => failure,
        };
        // A file that grows is worth any number of tries.
        failures = if part.length() > before { 1 } else { failures + 1 };
        client.pause(&file.told, failure, failures)?;
    }
}

/// One request, written behind what is there already. Ends with the whole file in place, or with why not.
fn attempt(file: &Wanted, client: &Client<'_>, part: &Part, on_length: &mut dyn FnMut(u64)) -> Result<(), Failure> {
    let mut have = part.length();
    if file.size.is_some_and(|size| have > size) {
        part.forget();
        have = 0;
    }
    if have > 0 && file.size == Some(have) {
        on_length(have);
        return Ok(());
    }
    // Without a tag or a digest nothing says that the rest would belong to what is there.
    let tag = part.tag();
    if have > 0 && tag.is_none() && file.sha256.is_none() {
        part.forget();
        have = 0;
    }
    let mut response = client.get(&file.url, file.from_hub, have, tag.as_deref())?;
    let (start, total) = match response.status().as_u16() {
        206 => content_range(&response).filter(|(start, _)| *start == have).ok_or_else(|| {
            part.forget();
            Failure::passing("the server sent another range than the one asked for")
        })?,
        416 => {
            part.forget();
            return Err(Failure::passing("the server has fewer bytes than are here already"));
        }
        _ => (0, header(&response, "content-length").and_then(|length| length.trim().parse().ok())),
    };
    if let (Some(size), Some(total)) = (file.size, total)
        && size != total
    {
        part.forget();
        return Err(Failure::passing(format!("the server says the file has {total} bytes, {size} are expected")));
    }
    let io = |doing| {
        let path = part.path.clone();
        move |source| Failure::Final(Error::Io { doing, path, source })
    };
    // A weak tag does not promise the same bytes.
    let tag = header(&response, "etag").filter(|tag| !tag.starts_with("W/")).unwrap_or_default();
    std::fs::write(&part.tag_path, tag).map_err(io("write"))?;
    let mut into = OpenOptions::new().create(true).append(true).open(&part.path).map_err(io("open"))?;
    into.set_len(start).map_err(io("cut"))?;
    on_length(start);
    let mut length = start;
    let mut reader = response.body_mut().as_reader();
    let mut buffer = vec![0; 1 << 17];
    loop {
        let read = reader.read(&mut buffer).map_err(|error| Failure::passing(format!("the connection was lost: {error}")))?;
        if read == 0 {
            break;
        }
        into.write_all(&buffer[..read]).map_err(io("write"))?;
        length += read as u64;
        on_length(length);
        if file.size.is_some_and(|size| length > size) {
            part.forget();
            return Err(Failure::passing(format!("the server sends more than the {} bytes expected", file.size.unwrap_or(0))));
        }
    }
    into.sync_all().map_err(io("write"))?;
    match total.or(file.size) {
        Some(total) if total != length => Err(Failure::passing(format!("the connection ended after {length} of {total} bytes"))),
        _ => Ok(()),
    }
}

/// The start and the total of a `Content-Range: bytes 5-9/10`.
fn content_range(response: &Response<Body>) -> Option<(u64, Option<u64>)> {
    let text = header(response, "content-range")?;
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.trim().parse().ok()?, total.trim().parse().ok()))
}

/// Size and digest of what arrived. Wrong bytes are a passing failure: the next try starts from nothing.
fn check(file: &Wanted, part: &Part) -> Result<Result<Fetched, Failure>, Error> {
    let mut source = File::open(&part.path).map_err(Error::io("open", &part.path))?;
    let (mut hasher, mut size) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = source.read(&mut buffer).map_err(Error::io("read", &part.path))?;
        if read == 0 {
            break;
        }
        size += read as u64;
        hasher.update(&buffer[..read]);
    }
    let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(match &file.sha256 {
        Some(wanted) if !wanted.eq_ignore_ascii_case(&found) => {
            Err(Failure::passing(format!("its SHA-256 is {found}, {wanted} is expected")))
        }
        _ => Ok(Fetched { url: file.told.clone(), name: file.name.clone(), size, sha256: found }),
    })
}

/// Gives the finished file its name; across file systems by way of a copy.
fn place(part: &Part, to: &Path) -> Result<(), Error> {
    if std::fs::rename(&part.path, to).is_err() {
        let beside = to.with_extension("copying");
        std::fs::copy(&part.path, &beside).map_err(Error::io("copy", &part.path))?;
        std::fs::rename(&beside, to).map_err(Error::io("rename", &beside))?;
    }
    part.forget();
    Ok(())
}
