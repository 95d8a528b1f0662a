//! Remembers the digest of a file for as long as its stat does not change, so that an unchanged input costs one stat. Only a cache: losing it costs time.
//!
//! | value | why it is compared |
//! |---|---|
//! | size, mtime, ctime, inode, device | any of them differs after a write, a rename over the file, or a restore |
//! | time of hashing | a file changed within the clock's granularity of being hashed may change again unseen, so it is hashed again |

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::digest::{self, Digest};

const MAGIC: &[u8; 8] = b"RPINDEX1";
/// Kernel timestamps advance with the timer tick, 10 ms at the slowest.
const TICK_NS: i64 = 20_000_000;
/// File systems that keep whole seconds only.
const COARSE_NS: i64 = 2_000_000_000;

/// What stat says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
    inode: u64,
    device: u64,
}

impl Stamp {
    pub fn of(meta: &Metadata) -> Stamp {
        Stamp {
            size: meta.size(),
            mtime_ns: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
            ctime_ns: meta.ctime() * 1_000_000_000 + meta.ctime_nsec(),
            inode: meta.ino(),
            device: meta.dev(),
        }
    }
    /// Whether the file may have changed again since `hashed_at_ns` without its stat telling.
    pub fn racy(&self, hashed_at_ns: i64) -> bool {
        let last = self.mtime_ns.max(self.ctime_ns);
        let slack = if self.ctime_ns % 1_000_000_000 == 0 { COARSE_NS } else { TICK_NS };
        last + slack >= hashed_at_ns
    }
}

impl Stamp {
    pub fn to_bytes(self) -> [u8; 40] {
        let mut out = [0; 40];
        let numbers = [self.size, self.inode, self.device, self.mtime_ns as u64, self.ctime_ns as u64];
        for (slot, number) in out.chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        out
    }
    pub fn from_bytes(bytes: &[u8; 40]) -> Stamp {
        let number = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"));
        Stamp { size: number(0), inode: number(1), device: number(2), mtime_ns: number(3) as i64, ctime_ns: number(4) as i64 }
    }
}

#[derive(Clone, Copy)]
struct Known {
    stamp: Stamp,
    hashed_at_ns: i64,
    digest: Digest,
}

/// The state of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    pub digest: Digest,
    pub size: u64,
    pub executable: bool,
    pub stamp: Stamp,
}

pub struct Index {
    file: PathBuf,
    known: Mutex<HashMap<String, Known>>,
    changed: AtomicBool,
}

impl Index {
    /// Opens the index; one that is missing or damaged is empty.
    pub fn open(file: PathBuf) -> Index {
        let known = fs::read(&file).ok().and_then(|bytes| decode(&bytes)).unwrap_or_default();
        Index { file, known: Mutex::new(known), changed: AtomicBool::new(false) }
    }

    /// The state of a file, hashed only if its stat is not the one remembered. `name` is what it is remembered by.
    pub fn state(&self, name: &str, path: &Path) -> std::io::Result<FileState> {
        let meta = fs::metadata(path)?;
        if !meta.is_file() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"));
        }
        if let Some(state) = self.remembered(name, &meta) {
            return Ok(state);
        }
        let hashed_at_ns = now_ns();
        let digest = digest::of_file(path)?;
        // A writer at work while we read: what was hashed belongs to neither state, so nothing is remembered.
        let after = fs::metadata(path)?;
        if Stamp::of(&after) == Stamp::of(&meta) {
            self.remember(name, &meta, digest, hashed_at_ns);
        }
        Ok(state_of(&meta, digest))
    }

    pub fn remembered(&self, name: &str, meta: &Metadata) -> Option<FileState> {
        let stamp = Stamp::of(meta);
        let known = *self.lock().get(name)?;
        (known.stamp == stamp && !stamp.racy(known.hashed_at_ns)).then(|| state_of(meta, known.digest))
    }

    /// Remembers a digest that the caller knows to be the file's, hashed at `hashed_at_ns`.
    pub fn remember(&self, name: &str, meta: &Metadata, digest: Digest, hashed_at_ns: i64) {
        self.lock().insert(name.to_string(), Known { stamp: Stamp::of(meta), hashed_at_ns, digest });
        self.changed.store(true, Ordering::Relaxed);
    }

    pub fn forget(&self, name: &str) {
        if self.lock().remove(name).is_some() {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Keeps only the names for which `keep` holds.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) {
        self.lock().retain(|name, _| keep(name));
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Writes the index if anything changed. A failure costs the next run some hashing and nothing else.
    pub fn save(&self) {
        if !self.changed.swap(false, Ordering::Relaxed) {
            return;
        }
        let bytes = encode(&self.lock());
        let temporary = self.file.with_extension(format!("{}.tmp", std::process::id()));
        if fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, &self.file)).is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().expect("no thread panics while it holds the index")
    }
}

fn state_of(meta: &Metadata, digest: Digest) -> FileState {
    FileState { digest, size: meta.size(), executable: meta.permissions().mode() & 0o100 != 0, stamp: Stamp::of(meta) }
}

pub fn now_ns() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

fn encode(known: &HashMap<String, Known>) -> Vec<u8> {
    let mut names: Vec<&String> = known.keys().collect();
    names.sort_unstable();
    let mut out = Vec::with_capacity(known.len() * 128 + 64);
    out.extend_from_slice(MAGIC);
    for name in names {
        let entry = &known[name];
        out.extend_from_slice(&(name.len() as u32).to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&entry.stamp.to_bytes());
        out.extend_from_slice(&entry.hashed_at_ns.to_le_bytes());
        out.extend_from_slice(&entry.digest.0);
    }
    let sum = blake3::hash(&out);
    out.extend_from_slice(sum.as_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<HashMap<String, Known>> {
    let (body, sum) = bytes.split_last_chunk::<32>()?;
    if blake3::hash(body).as_bytes() != sum {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut known = HashMap::with_capacity(rest.len() / 128);
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (name, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let (stamp, after) = after.split_first_chunk::<40>()?;
        let (hashed_at, after) = after.split_first_chunk::<8>()?;
        let (digest, after) = after.split_first_chunk::<32>()?;
        let name = std::str::from_utf8(name).ok()?.to_string();
        let hashed_at_ns = i64::from_le_bytes(*hashed_at);
        known.insert(name, Known { stamp: Stamp::from_bytes(stamp), hashed_at_ns, digest: Digest(*digest) });
        rest = after;
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_reads_back_and_a_damaged_one_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, "one").unwrap();
        let index = Index::open(dir.path().join("index"));
        let state = index.state("a", &file).unwrap();
        index.save();
        let bytes = fs::read(dir.path().join("index")).unwrap();
        assert_eq!(decode(&bytes).unwrap()["a"].digest, state.digest);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert!(decode(&broken).is_none());
            assert!(decode(&bytes[..at]).is_none());
        }
    }

    #[test]
    fn a_file_changed_just_now_is_hashed_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, "one").unwrap();
        let index = Index::open(dir.path().join("index"));
        index.state("a", &file).unwrap();
        let meta = fs::metadata(&file).unwrap();
        assert!(index.remembered("a", &meta).is_none(), "hashed in the tick it was written in");
        index.remember("a", &meta, Digest::of(b"one"), now_ns() + COARSE_NS);
        assert!(index.remembered("a", &meta).is_some());
    }

    #[test]
    fn an_edit_of_the_same_length_with_the_old_mtime_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, "one").unwrap();
        let index = Index::open(dir.path().join("index"));
        let meta = fs::metadata(&file).unwrap();
        index.remember("a", &meta, Digest::of(b"one"), now_ns() + COARSE_NS);
        std::thread::sleep(std::time::Duration::from_millis(15));
        fs::write(&file, "two").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(meta.modified().unwrap()).unwrap();
        assert_eq!(index.state("a", &file).unwrap().digest, Digest::of(b"two"));
    }
}
