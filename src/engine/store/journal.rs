//! The journal: one append-only file of checksummed records. A node is done if and only if its record stands here.
//!
//! A frame is `magic, length, checksum, payload`; the payload is a head (JSON, read always) and a body (JSON, read on request)
//! separated by a newline. A frame that does not check is skipped and reading goes on at the next one that does, so a torn
//! write or a flipped bit costs the record it hit and no other. Appending takes a kernel lock, which dies with its holder.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::engine::digest::Digest;

const MAGIC: [u8; 4] = [0xF5, b'R', b'P', b'J'];
const HEADER: usize = 4 + 4 + 16;

/// A file of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Below the output's directory; empty where the output is the file itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub digest: Digest,
    pub size: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// What was stored for one output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    pub name: String,
    /// Where it is published, relative to the node's folder.
    pub path: String,
    pub digest: Digest,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directory: bool,
    pub files: Vec<Item>,
}

/// A finished node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    pub key: Digest,
    pub profile: String,
    pub node: String,
    pub outputs: Vec<Stored>,
    pub seconds: f64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The key whose outputs were accepted for this one instead of running it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_from: Option<Digest>,
}

/// The first line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Head {
    Done(Done),
    /// A node was found done under a key that another node or profile had made.
    Bind {
        key: Digest,
        profile: String,
        node: String,
        at_ms: u64,
    },
    Failed {
        key: Digest,
        profile: String,
        node: String,
        what: String,
        at_ms: u64,
    },
    /// The files behind a code digest, so that `why` can name the one that changed.
    Code {
        code: String,
    },
}

/// What was last heard of a node in a profile.
#[derive(Clone, Debug)]
pub struct Last {
    pub key: Digest,
    pub failed: Option<String>,
    pub at_ms: u64,
    /// The key parts of the last time it was done or failed.
    pub body: Option<Range<usize>>,
}

pub struct Journal {
    path: PathBuf,
    lock: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    inode: u64,
    done: HashMap<Digest, (Arc<Done>, Range<usize>)>,
    last: HashMap<String, HashMap<String, Last>>,
    codes: HashMap<String, Range<usize>>,
    damaged: usize,
    frames: usize,
}

impl Journal {
    pub fn open(folder: &Path) -> io::Result<Journal> {
        let journal =
            Journal { path: folder.join("journal"), lock: folder.join("journal.lock"), state: Mutex::new(State::default()) };
        journal.refresh()?;
        Ok(journal)
    }

    /// Reads what other processes appended since the last look.
    pub fn refresh(&self) -> io::Result<()> {
        self.state().refresh(&self.path)
    }

    pub fn done(&self, key: &Digest) -> Option<Arc<Done>> {
        self.state().done.get(key).map(|(done, _)| done.clone())
    }

    /// All finished nodes, in no order.
    pub fn all_done(&self) -> Vec<Arc<Done>> {
        self.state().done.values().map(|(done, _)| done.clone()).collect()
    }

    /// The heads of all records in the order they were written: the whole history, for those who ask about the past.
    pub fn heads(&self) -> Vec<Head> {
        frames(&self.state().bytes, 0).frames.into_iter().map(|(_, head, _)| head).collect()
    }

    pub fn last(&self, profile: &str, node: &str) -> Option<Last> {
        self.state().last.get(profile)?.get(node).cloned()
    }

    /// The keys that some node of some profile stands at now.
    pub fn current_keys(&self) -> Vec<(String, String, Digest)> {
        let state = self.state();
        let all = state
            .last
            .iter()
            .flat_map(|(profile, nodes)| nodes.iter().map(|(node, last)| (profile.clone(), node.clone(), last.key)));
        all.collect()
    }

    /// The body of a record; empty if the journal was compacted by another process since the record was looked up.
    pub fn body(&self, range: &Range<usize>) -> String {
        let state = self.state();
        state.bytes.get(range.clone()).map(|body| String::from_utf8_lossy(body).into_owned()).unwrap_or_default()
    }

    pub fn body_of(&self, key: &Digest) -> Option<String> {
        let range = self.state().done.get(key).map(|(_, range)| range.clone())?;
        Some(self.body(&range))
    }

    pub fn code(&self, digest: &str) -> Option<String> {
        let range = self.state().codes.get(digest).cloned()?;
        Some(self.body(&range))
    }

    /// Records that did not check when the journal was read.
    pub fn damaged(&self) -> usize {
        self.state().damaged
    }

    pub fn frames(&self) -> usize {
        self.state().frames
    }

    /// Appends a record and waits until it is on the disk.
    pub fn append(&self, head: &Head, body: &str) -> io::Result<()> {
        self.append_synced(head, body, true)
    }

    /// Appends a record; without `sync` it survives a kill at once and a power cut a little later.
    pub fn append_synced(&self, head: &Head, body: &str, sync: bool) -> io::Result<()> {
        let frame = frame(head, body);
        let _lock = self.exclusive()?;
        let mut state = self.state();
        state.refresh(&self.path)?;
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(&frame).and_then(|()| if sync { file.sync_data() } else { Ok(()) }) {
            // Half a frame would be skipped on reading; better not to leave one.
            let _ = file.set_len(before);
            return Err(error);
        }
        state.refresh(&self.path)
    }

    /// Rewrites the journal with the records `keep` wants, and without damage. Returns how many were dropped.
    pub fn compact(&self, keep: impl Fn(&Head) -> bool) -> io::Result<usize> {
        let _lock = self.exclusive()?;
        let mut state = self.state();
        state.refresh(&self.path)?;
        let mut kept = Vec::with_capacity(state.bytes.len());
        let mut dropped = 0;
        for (whole, head, _) in frames(&state.bytes, 0).frames {
            if keep(&head) {
                kept.extend_from_slice(&state.bytes[whole]);
            } else {
                dropped += 1;
            }
        }
        let temporary = self.path.with_extension("tmp");
        let mut file = File::create(&temporary)?;
        file.write_all(&kept)?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        *state = State::default();
        state.refresh(&self.path)?;
        Ok(dropped)
    }

    fn exclusive(&self) -> io::Result<File> {
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&self.lock)?;
        lock.lock()?;
        Ok(lock)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the journal")
    }
}

impl State {
    fn refresh(&mut self, path: &Path) -> io::Result<()> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *self = State::default();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let meta = file.metadata()?;
        // Compacted or cut by someone else: what was read before no longer lines up.
        if meta.ino() != self.inode || meta.len() < self.bytes.len() as u64 {
            *self = State { inode: meta.ino(), ..State::default() };
        }
        let start = self.bytes.len();
        if meta.len() == start as u64 {
            return Ok(());
        }
        file.seek(SeekFrom::Start(start as u64))?;
        self.bytes.reserve((meta.len() as usize).saturating_sub(start));
        file.read_to_end(&mut self.bytes)?;
        let Scan { frames, end, damaged } = frames(&self.bytes, start);
        // A frame another process is still writing is complete at the next look.
        self.bytes.truncate(end);
        self.damaged += damaged;
        self.frames += frames.len();
        for (_, head, body) in frames {
            self.learn(head, body);
        }
        Ok(())
    }

    fn learn(&mut self, head: Head, body: Range<usize>) {
        let (profile, node, last) = match head {
            Head::Done(done) => {
                let last = Last { key: done.key, failed: None, at_ms: done.at_ms, body: Some(body.clone()) };
                let (profile, node) = (done.profile.clone(), done.node.clone());
                self.done.insert(done.key, (Arc::new(done), body));
                (profile, node, last)
            }
            Head::Bind { key, profile, node, at_ms } => {
                let body = self.done.get(&key).map(|(_, body)| body.clone());
                (profile, node, Last { key, failed: None, at_ms, body })
            }
            Head::Failed { key, profile, node, what, at_ms } => {
                (profile, node, Last { key, failed: Some(what), at_ms, body: Some(body) })
            }
            Head::Code { code } => {
                self.codes.insert(code, body);
                return;
            }
        };
        if let Some(nodes) = self.last.get_mut(&profile) {
            nodes.insert(node, last);
        } else {
            self.last.insert(profile, HashMap::from([(node, last)]));
        }
    }
}

fn frame(head: &Head, body: &str) -> Vec<u8> {
    let mut payload = serde_json::to_vec(head).expect("a head is plain data");
    payload.push(b'\n');
    payload.extend_from_slice(body.as_bytes());
    let mut out = Vec::with_capacity(HEADER + payload.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&checksum(&payload));
    out.extend_from_slice(&payload);
    out
}

fn checksum(payload: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(payload.len() as u32).to_le_bytes()).update(payload);
    hasher.finalize().as_bytes()[..16].try_into().expect("a digest has 32 bytes")
}

struct Scan {
    /// The whole frame, its head, and where its body lies.
    frames: Vec<(Range<usize>, Head, Range<usize>)>,
    /// After the last byte that will not be looked at again.
    end: usize,
    damaged: usize,
}

fn frames(bytes: &[u8], start: usize) -> Scan {
    let mut scan = Scan { frames: Vec::new(), end: start, damaged: 0 };
    let mut at = start;
    while at < bytes.len() {
        match frame_at(bytes, at) {
            Some((head, body)) => {
                let end = body.end;
                scan.frames.push((at..end, head, body));
                at = end;
                scan.end = end;
            }
            None => {
                let next = (at + 1..bytes.len().saturating_sub(HEADER))
                    .find(|next| bytes[*next..].starts_with(&MAGIC) && frame_at(bytes, *next).is_some());
                match next {
                    Some(next) => {
                        scan.damaged += 1;
                        at = next;
                    }
                    None => break,
                }
            }
        }
    }
    scan
}

fn frame_at(bytes: &[u8], at: usize) -> Option<(Head, Range<usize>)> {
    let header = bytes.get(at..at + HEADER)?;
    if header[..4] != MAGIC {
        return None;
    }
    let length = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
    let start = at + HEADER;
    let payload = bytes.get(start..start.checked_add(length)?)?;
    if checksum(payload) != header[8..24] {
        return None;
    }
    let line = payload.iter().position(|byte| *byte == b'\n')?;
    let head = serde_json::from_slice(&payload[..line]).ok()?;
    Some((head, start + line + 1..start + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(number: u8) -> Head {
        let digest = Digest::of(&[number]);
        Head::Done(Done {
            key: digest,
            profile: "quick".into(),
            node: format!("n{number}"),
            outputs: vec![Stored {
                name: "x".into(),
                path: "x".into(),
                digest,
                directory: false,
                files: vec![Item { path: String::new(), digest, size: 3, executable: false }],
            }],
            seconds: 0.5,
            at_ms: 7,
            accepted_from: None,
        })
    }

    fn written(count: u8) -> (tempfile::TempDir, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        for number in 0..count {
            journal.append(&done(number), "{\"parts\":1}").unwrap();
        }
        let bytes = fs::read(dir.path().join("journal")).unwrap();
        (dir, bytes)
    }

    /// Every record that is read must be one that was written, whole.
    fn loaded(bytes: &[u8], count: u8) -> usize {
        let scan = frames(bytes, 0);
        for (_, head, body) in &scan.frames {
            assert!((0..count).any(|number| *head == done(number)), "a record nobody wrote: {head:?}");
            assert_eq!(&bytes[body.clone()], b"{\"parts\":1}");
        }
        scan.frames.len()
    }

    #[test]
    fn truncated_at_every_byte_it_keeps_every_whole_record() {
        let (_dir, bytes) = written(6);
        let frame = bytes.len() / 6;
        for end in 0..=bytes.len() {
            assert_eq!(loaded(&bytes[..end], 6), end / frame, "cut at {end}");
        }
    }

    #[test]
    fn with_every_byte_flipped_it_loses_one_record_and_invents_none() {
        let (_dir, bytes) = written(6);
        for at in 0..bytes.len() {
            for bit in [1, 0x80, 0xff] {
                let mut broken = bytes.clone();
                broken[at] ^= bit;
                assert_eq!(loaded(&broken, 6), 5, "byte {at} flipped");
            }
        }
    }

    #[test]
    fn a_record_appended_after_a_torn_one_is_found() {
        let (dir, bytes) = written(3);
        fs::write(dir.path().join("journal"), &bytes[..bytes.len() - 10]).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        assert!(journal.done(&Digest::of(&[2])).is_none());
        journal.append(&done(9), "{}").unwrap();
        assert!(journal.done(&Digest::of(&[9])).is_some());
        let again = Journal::open(dir.path()).unwrap();
        assert_eq!((again.frames(), again.damaged()), (3, 1));
    }

    #[test]
    fn another_process_sees_what_was_appended_and_survives_compaction() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (Journal::open(dir.path()).unwrap(), Journal::open(dir.path()).unwrap());
        for number in 0..4 {
            first.append(&done(number), "{}").unwrap();
        }
        second.refresh().unwrap();
        assert!(second.done(&Digest::of(&[3])).is_some());
        first.compact(|head| *head != done(3)).unwrap();
        second.append(&done(5), "{}").unwrap();
        assert!(second.done(&Digest::of(&[3])).is_none());
        first.refresh().unwrap();
        assert!(first.done(&Digest::of(&[5])).is_some() && first.done(&Digest::of(&[0])).is_some());
    }
}
