//! Remembers a run that found nothing to do, so that the next one need only look whether anything was touched since.
//!
//! Written when every node was cached: the stat of every file that the planner looked at (YAML files, inputs, objects, published
//! outputs and the folders that were listed), under a digest of the question asked (binary, project, profile, variables,
//! targets). If all of it still holds, the answer holds too. If anything differs, or changed so recently that its stat
//! proves nothing, the planner is asked as if this file did not exist.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::config::Project;
use super::digest::Digest;
use super::graph::Origin;
use super::plan::Planner;
use super::store::index::Stamp;
use super::store::journal::Stored;
use super::store::publish::{folder, place};

const MAGIC: &[u8; 8] = b"RPSETTL1";
/// Below this many files a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 512;

/// What a run was asked; two runs asked the same have the same answer while no file changes.
pub struct Question {
    digest: Digest,
    file: PathBuf,
    /// When the run began: a file changed at or after it proves nothing.
    began_ns: i64,
}

/// What the run found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    pub nodes: u64,
    pub saved_seconds: f64,
}

impl Question {
    /// `None` if this process cannot tell its own binary, and so cannot tell whether it changed.
    pub fn new(root: &Path, store: &Path, words: &[String]) -> Option<Question> {
        let began_ns = super::store::index::now_ns();
        let binary = std::env::current_exe().ok()?;
        let stamp = Stamp::of(&fs::metadata(&binary).ok()?);
        let mut hasher = blake3::Hasher::new();
        for part in [binary.as_os_str(), root.as_os_str(), store.as_os_str()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_encoded_bytes());
        }
        hasher.update(&stamp.to_bytes());
        for word in words {
            hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
        }
        let digest = Digest(*hasher.finalize().as_bytes());
        let file = store.join("settled").join(&digest.hex()[..16]);
        Some(Question { digest, file, began_ns })
    }

    /// The answer of an earlier run, if everything it looked at is as it was.
    pub fn answer(&self) -> Option<Answer> {
        let bytes = fs::read(&self.file).ok()?;
        let (answer, seen) = decode(&bytes, &self.digest)?;
        let same = |part: &[(&Path, Stamp)]| {
            part.iter().all(|(path, stamp)| fs::symlink_metadata(path).is_ok_and(|meta| Stamp::of(&meta) == *stamp))
        };
        let all = if seen.len() < WORTH_A_THREAD {
            same(&seen)
        } else {
            let (left, right) = seen.split_at(seen.len() / 2);
            std::thread::scope(|scope| {
                let other = scope.spawn(move || same(right));
                same(left) && other.join().unwrap_or(false)
            })
        };
        all.then_some(answer)
    }

    /// Remembers that all of these nodes were cached. Does nothing if some file is too fresh to be told by its stat.
    pub fn remember(&self, project: &Project, planner: &Planner, nodes: &[usize], answer: Answer) {
        let Ok(Some(seen)) = self.look(project, planner, nodes) else { return };
        let bytes = encode(&answer, &seen, &self.digest);
        let temporary = self.file.with_extension(format!("{}.tmp", std::process::id()));
        let folder = self.file.parent().expect("the file lies in a folder");
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&temporary, bytes))
            .and_then(|()| fs::rename(&temporary, &self.file));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }

    fn look(&self, project: &Project, planner: &Planner, nodes: &[usize]) -> io::Result<Option<Vec<(PathBuf, Stamp)>>> {
        let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
        paths.insert(planner.store.folder.join("journal"));
        for source in &project.sources {
            paths.insert(planner.root.join(&source.name));
        }
        for at in nodes {
            let node = &planner.graph.nodes[*at];
            for input in &node.inputs {
                if let Origin::Path(path) = &input.origin {
                    let Ok(content) = planner.content(node, &input.name, path) else { return Ok(None) };
                    for (file, _) in content.stamps.iter() {
                        // A link counts with what it points to, and only the latter is looked at by stat.
                        if fs::symlink_metadata(file)?.is_symlink() {
                            return Ok(None);
                        }
                        paths.insert(file.clone());
                    }
                }
            }
            if planner.wanted.contains(at) {
                let Some(outputs) = self.outputs(planner, *at) else { return Ok(None) };
                let place_of = folder(&planner.graph.profile, &node.id);
                for stored in &outputs {
                    for item in &stored.files {
                        let published = planner.root.join(place(&place_of, stored, item));
                        if stored.directory {
                            // A file added to a published directory changes the stat of the folder it was put in.
                            let base = planner.root.join(&place_of);
                            paths.extend(
                                published.ancestors().skip(1).take_while(|up| up.starts_with(&base)).map(Path::to_path_buf),
                            );
                        }
                        paths.insert(planner.store.objects.path(item));
                        paths.insert(published);
                    }
                }
            }
        }
        let mut seen = Vec::with_capacity(paths.len());
        for path in paths {
            let stamp = Stamp::of(&fs::symlink_metadata(&path)?);
            if stamp.racy(self.began_ns) {
                return Ok(None);
            }
            seen.push((path, stamp));
        }
        Ok(Some(seen))
    }

    fn outputs(&self, planner: &Planner, at: usize) -> Option<Vec<Stored>> {
        let last = planner.store.journal.last(&planner.graph.profile, &planner.graph.nodes[at].id)?;
        planner.store.journal.done(&last.key).map(|done| done.outputs.clone())
    }
}

fn encode(answer: &Answer, seen: &[(PathBuf, Stamp)], question: &Digest) -> Vec<u8> {
    let mut out = Vec::with_capacity(seen.len() * 160 + 128);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&question.0);
    out.extend_from_slice(&answer.nodes.to_le_bytes());
    out.extend_from_slice(&answer.saved_seconds.to_le_bytes());
    for (path, stamp) in seen {
        let path = path.as_os_str().as_encoded_bytes();
        out.extend_from_slice(&(path.len() as u32).to_le_bytes());
        out.extend_from_slice(path);
        out.extend_from_slice(&stamp.to_bytes());
    }
    let sum = blake3::hash(&out);
    out.extend_from_slice(sum.as_bytes());
    out
}

fn decode<'b>(bytes: &'b [u8], question: &Digest) -> Option<(Answer, Vec<(&'b Path, Stamp)>)> {
    use std::os::unix::ffi::OsStrExt as _;
    let (body, sum) = bytes.split_last_chunk::<32>()?;
    if blake3::hash(body).as_bytes() != sum {
        return None;
    }
    let rest = body.strip_prefix(MAGIC)?.strip_prefix(&question.0)?;
    let (nodes, rest) = rest.split_first_chunk::<8>()?;
    let (saved, mut rest) = rest.split_first_chunk::<8>()?;
    let answer = Answer { nodes: u64::from_le_bytes(*nodes), saved_seconds: f64::from_le_bytes(*saved) };
    let mut seen = Vec::with_capacity(rest.len() / 140);
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (path, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let (stamp, after) = after.split_first_chunk::<40>()?;
        seen.push((Path::new(std::ffi::OsStr::from_bytes(path)), Stamp::from_bytes(stamp)));
        rest = after;
    }
    Some((answer, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_reads_back_and_damage_or_another_question_is_no_answer() {
        let answer = Answer { nodes: 7, saved_seconds: 1.5 };
        let meta = fs::metadata("/").unwrap();
        let seen = vec![(PathBuf::from("/a/b"), Stamp::of(&meta)), (PathBuf::from("/c"), Stamp::of(&meta))];
        let question = Digest::of(b"q");
        let bytes = encode(&answer, &seen, &question);
        let (read, paths) = decode(&bytes, &question).unwrap();
        assert_eq!(read, answer);
        assert_eq!(paths, seen.iter().map(|(path, stamp)| (path.as_path(), *stamp)).collect::<Vec<_>>());
        assert!(decode(&bytes, &Digest::of(b"other")).is_none());
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 4;
            assert!(decode(&broken, &question).is_none() && decode(&bytes[..at], &question).is_none());
        }
    }
}
