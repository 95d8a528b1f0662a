//! One attempt at one node: a private folder, a worker in it, outputs checked, stored, recorded and published. The record is the only point at which a node becomes done.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::digest::{self, WalkError};
use super::graph::{Graph, Node, Origin};
use super::key::Key;
use super::kind::{Output, Task};
use super::plan::Planner;
use super::process::{Ended, Groups};
use super::store::index::Stamp;
use super::store::journal::{Done, Head, Item, Stored};
use super::store::objects::Objects;
use super::store::publish::folder;
use super::store::{Store, StoreError, hostname};
use super::why::code_listing;

#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    #[error("the worker ended with exit code {code}")]
    Exit { code: i32 },
    #[error(
        "the worker ended with exit code {code}, and the disk of the store is full; free some space and run the same command again"
    )]
    DiskFull { code: i32 },
    #[error("the worker was ended by signal {signal}{}", signal_hint(*signal))]
    Signal { signal: i32 },
    #[error("took longer than its timeout of {seconds} s")]
    Timeout { seconds: f64 },
    #[error("interrupted")]
    Interrupted,
    #[error("declared output `{name}` was not written: there is no `{path}`")]
    MissingOutput { name: String, path: String },
    #[error("declared output `{name}`: `{path}` is a {found}, but a {wanted} was declared (`/` at the end means a directory)")]
    WrongKind { name: String, path: String, found: &'static str, wanted: &'static str },
    #[error("declared output `{name}`: `{path}` is or lies behind a symbolic link; write the file itself")]
    LinkedOutput { name: String, path: String },
    #[error("declared output `{name}`: {}", within(source, base))]
    BadOutput { name: String, base: PathBuf, source: WalkError },
    #[error("`{path}` was changed while the node ran, so its result belongs to no key; run the same command again")]
    InputChanged { path: String },
    #[error("the node changed its input `{path}`, which belongs to the store; write a copy instead")]
    InputWritten { path: String },
    #[error("the working directory cannot be prepared: {source}")]
    Prepare { source: io::Error },
    #[error("`{program}` cannot be started: {source}")]
    Program { program: String, source: io::Error },
    #[error("the worker cannot be started: {source}")]
    Start { source: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn within(error: &WalkError, base: &Path) -> String {
    error.to_string().replace(&format!("{}/", base.display()), "")
}

fn signal_hint(signal: i32) -> &'static str {
    match signal {
        9 => " (SIGKILL: killed, perhaps for lack of memory)",
        11 => " (SIGSEGV: it crashed)",
        6 => " (SIGABRT: it aborted)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// A result that took this many seconds is on the disk before it counts. A quicker one survives any kill, and a power cut may cost
/// it: its record then names an object that is not there or not right, which is found on reading, and it runs again.
const WORTH_A_SYNC: f64 = 1.0;

static SERIAL: AtomicUsize = AtomicUsize::new(0);

/// Everything an attempt needs to know.
pub struct Attempt<'a> {
    pub planner: &'a Planner<'a>,
    pub node: &'a Node,
    pub key: &'a Key,
    /// What each node that is read from made.
    pub upstream: BTreeMap<usize, Arc<Vec<Stored>>>,
    pub threads: usize,
    pub number: u32,
    pub groups: &'a Groups,
}

/// A finished attempt: what to record.
pub struct Finished {
    pub outputs: Vec<Stored>,
    pub seconds: f64,
}

impl Attempt<'_> {
    fn graph(&self) -> &Graph {
        self.planner.graph
    }
    fn store(&self) -> &Store {
        self.planner.store
    }

    /// Runs the worker. `started` is told its pid and where it leaves its progress.
    pub fn run(&self, started: &dyn Fn(u32, &Path)) -> Result<Finished, AttemptError> {
        let work = self.store().private.join(SERIAL.fetch_add(1, Ordering::Relaxed).to_string());
        let result = self.run_in(&work, started);
        let _ = self.keep_log(&work);
        // Links and empty folders go with the whole private folder at the end of the run: a file system that has just deleted
        // many files is slow at making new ones. What holds bytes goes now.
        if holds_files(&work) {
            let _ = fs::remove_dir_all(&work);
        }
        for beside in ["out", "progress"] {
            let beside = work.with_extension(beside);
            let _ = if beside.is_dir() { fs::remove_dir_all(&beside) } else { fs::remove_file(&beside) };
        }
        if result.is_ok() {
            let _ = fs::remove_dir_all(self.scratch());
        }
        result
    }

    fn scratch(&self) -> PathBuf {
        self.store().folder.join("scratch").join(self.key.digest.hex())
    }

    fn run_in(&self, work: &Path, started: &dyn Fn(u32, &Path)) -> Result<Finished, AttemptError> {
        let task = self.prepare(work).map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::QuotaExceeded => {
                AttemptError::Store(StoreError::Write { path: self.store().folder.clone(), cause: source })
            }
            _ => AttemptError::Prepare { source },
        })?;
        let begin = Instant::now();
        let start = |source| AttemptError::Start { source };
        let log = File::create(work.with_extension("log")).map_err(start)?;
        let kind = self.graph().stages[self.node.stage].kind;
        let mut child = match kind.program(&task) {
            Some(mut program) => {
                let started = self.groups.start(program.current_dir(work), &log, None);
                let name = || program.get_program().to_string_lossy().into_owned();
                started.map_err(|source| AttemptError::Program { program: name(), source })?
            }
            None => {
                let mut worker = Command::new(std::env::current_exe().map_err(start)?);
                let input = serde_json::to_vec(&task).expect("a task is plain data");
                self.groups.start(worker.arg("worker").current_dir(work), &log, Some(&input)).map_err(start)?
            }
        };
        started(child.id(), &task.progress);
        match self.groups.wait(&mut child).map_err(start)? {
            Ended::Code(0) => {}
            Ended::Code(code) => {
                let full = rustix::fs::statvfs(&task.work).is_ok_and(|stat| stat.f_bavail == 0);
                return Err(if full { AttemptError::DiskFull { code } } else { AttemptError::Exit { code } });
            }
            Ended::Signal(signal) => return Err(AttemptError::Signal { signal }),
        }
        let seconds = begin.elapsed().as_secs_f64();
        self.check_inputs()?;
        let outputs = self.collect(&task, seconds >= WORTH_A_SYNC)?;
        Ok(Finished { outputs, seconds })
    }

    /// Lays out the working directory: inputs as links, folders for outputs. Every file made here costs more than all our sums.
    fn prepare(&self, work: &Path) -> io::Result<Task> {
        let out = work.with_extension("out");
        fs::create_dir(work)?;
        let link = |target: &Path, mount: &str| -> io::Result<()> {
            let at = work.join(mount);
            if mount.contains('/') {
                fs::create_dir_all(at.parent().expect("a mount lies in the working directory"))?;
            }
            std::os::unix::fs::symlink(target, at)
        };
        let mut inputs = BTreeMap::new();
        for input in &self.node.inputs {
            match &input.origin {
                Origin::Path(path) => link(&self.planner.root.join(path), &input.mount)?,
                Origin::Nodes(list) => {
                    for from in list {
                        let stored = &self.upstream[&from.node][from.output];
                        if stored.directory {
                            fs::create_dir_all(work.join(&from.mount))?;
                        }
                        for item in &stored.files {
                            let mount = match item.path.as_str() {
                                "" => from.mount.clone(),
                                below => format!("{}/{below}", from.mount),
                            };
                            link(&self.store().objects.path(item), &mount)?;
                        }
                    }
                }
            }
            inputs.insert(input.name.clone(), work.join(&input.mount));
        }
        let mut outputs = BTreeMap::new();
        for output in &self.node.outputs {
            let path = if output.path == "." { out.clone() } else { work.join(&output.path) };
            if output.directory {
                fs::create_dir_all(&path)?;
            } else if output.path.contains('/') {
                fs::create_dir_all(path.parent().expect("an output lies in the working directory"))?;
            }
            outputs.insert(output.name.clone(), path);
        }
        Ok(Task {
            node: self.node.id.clone(),
            kind: self.graph().stages[self.node.stage].kind.name().to_string(),
            params: self.node.params.clone(),
            work: work.to_path_buf(),
            inputs,
            outputs,
            seed: self.node.seed,
            threads: self.threads,
            scratch: self.scratch(),
            progress: work.with_extension("progress"),
            parent: std::process::id(),
        })
    }

    /// Nothing that was read may have changed since its digest entered the key.
    fn check_inputs(&self) -> Result<(), AttemptError> {
        for input in &self.node.inputs {
            match &input.origin {
                Origin::Path(path) => {
                    let content = self.planner.content(self.node, &input.name, path);
                    let content = content.map_err(|_| AttemptError::InputChanged { path: path.clone() })?;
                    for (file, stamp) in content.stamps.iter() {
                        if fs::metadata(file).map_or(true, |meta| Stamp::of(&meta) != *stamp) {
                            let shown = file.strip_prefix(self.planner.root).unwrap_or(file).display().to_string();
                            return Err(AttemptError::InputChanged { path: shown });
                        }
                    }
                }
                Origin::Nodes(list) => {
                    for from in list {
                        for item in &self.upstream[&from.node][from.output].files {
                            let intact = fs::metadata(self.store().objects.path(item)).is_ok_and(|meta| {
                                meta.len() == item.size && self.store().index.remembered(&Objects::name(item), &meta).is_some()
                            });
                            // Hashed only where its stat is new, as after a first use or a write.
                            let checked = || self.store().objects.check(item, &self.store().index);
                            if !intact && !matches!(checked(), Ok(super::store::objects::Check::Good)) {
                                return Err(AttemptError::InputWritten { path: from.mount.clone() });
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Hashes the outputs and moves them into the store.
    fn collect(&self, task: &Task, sync: bool) -> Result<Vec<Stored>, AttemptError> {
        let mut all = Vec::with_capacity(self.node.outputs.len());
        for output in &self.node.outputs {
            let path = &task.outputs[&output.name];
            let files = self.found(output, path, &task.work)?;
            let mut items = Vec::with_capacity(files.len());
            for (relative, file) in files {
                let item = self.take(relative, &file, sync)?;
                items.push(item);
            }
            let digest = match items.as_slice() {
                [only] if !output.directory && !only.executable => only.digest,
                many => digest::of_tree(many.iter().map(|item| (item.path.as_str(), item.digest, item.executable))),
            };
            let (name, path) = (output.name.clone(), output.path.clone());
            all.push(Stored { name, path, digest, directory: output.directory, files: items });
        }
        Ok(all)
    }

    fn take(&self, relative: String, file: &Path, sync: bool) -> Result<Item, AttemptError> {
        use std::os::unix::fs::PermissionsExt as _;
        let write = |cause| StoreError::Write { path: self.store().folder.clone(), cause };
        let meta = fs::metadata(file).map_err(write)?;
        let digest = digest::of_file(file).map_err(write)?;
        let executable = meta.permissions().mode() & 0o100 != 0;
        let item = Item { path: relative, digest, size: meta.len(), executable };
        self.store().objects.put(file, &item, &self.store().index, sync).map_err(write)?;
        Ok(item)
    }

    /// The files of a declared output, each checked to be a real file inside the working directory.
    fn found(&self, output: &Output, path: &Path, work: &Path) -> Result<Vec<(String, PathBuf)>, AttemptError> {
        let (name, shown) = (output.name.clone(), output.path.clone());
        let mut at = work.to_path_buf();
        for part in path.strip_prefix(work).into_iter().flat_map(|relative| relative.iter()) {
            at.push(part);
            if fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_symlink()) {
                return Err(AttemptError::LinkedOutput { name, path: shown });
            }
        }
        let Ok(meta) = fs::symlink_metadata(path) else { return Err(AttemptError::MissingOutput { name, path: shown }) };
        match (meta.is_dir(), output.directory) {
            (true, true) => {
                let files = digest::walk(path, false).map_err(|source| AttemptError::BadOutput {
                    name: name.clone(),
                    base: work.to_path_buf(),
                    source,
                })?;
                if files.is_empty() {
                    return Err(AttemptError::MissingOutput { name, path: format!("{shown}/*") });
                }
                Ok(files.into_iter().map(|file| (file.relative, file.path)).collect())
            }
            (false, false) if meta.is_file() => Ok(vec![(String::new(), path.to_path_buf())]),
            (true, false) => Err(AttemptError::WrongKind { name, path: shown, found: "directory", wanted: "file" }),
            (false, true) => Err(AttemptError::WrongKind { name, path: shown, found: "file", wanted: "directory" }),
            (false, false) => Err(AttemptError::WrongKind { name, path: shown, found: "special file", wanted: "file" }),
        }
    }

    /// Records the node as done, then publishes it. The order matters: see the top of this file.
    pub fn commit(&self, finished: &Finished) -> Result<(), AttemptError> {
        let write = |cause| StoreError::Write { path: self.store().folder.clone(), cause };
        let code = self.graph().stages[self.node.stage].kind.code();
        if self.store().journal.code(code.digest).is_none() {
            let head = Head::Code { code: code.digest.to_string() };
            self.store().journal.append(&head, &code_listing(code)).map_err(write)?;
        }
        let head = Head::Done(Done {
            key: self.key.digest,
            profile: self.graph().profile.clone(),
            node: self.node.id.clone(),
            outputs: finished.outputs.clone(),
            seconds: finished.seconds,
            at_ms: now_ms(),
            accepted_from: None,
        });
        self.store().journal.append_synced(&head, &self.body(), finished.seconds >= WORTH_A_SYNC).map_err(write)?;
        self.store().publisher(self.planner.root).publish(&folder(&self.graph().profile, &self.node.id), &finished.outputs)?;
        Ok(())
    }

    pub fn record_failure(&self, what: &str) -> io::Result<()> {
        let head = Head::Failed {
            key: self.key.digest,
            profile: self.graph().profile.clone(),
            node: self.node.id.clone(),
            what: what.to_string(),
            at_ms: now_ms(),
        };
        self.store().journal.append(&head, &self.body())
    }

    /// Key parts on the first line, provenance on the second.
    fn body(&self) -> String {
        let provenance = serde_json::json!({
            "repro": env!("CARGO_PKG_VERSION"),
            "rustc": env!("REPRO_RUSTC"),
            "target": env!("REPRO_TARGET"),
            "host": hostname(),
            "threads": self.threads,
            "attempt": self.number,
            "point": self.node.point.iter().cloned().collect::<serde_json::Map<_, _>>(),
        });
        format!("{}\n{provenance}", self.key.parts)
    }

    fn keep_log(&self, work: &Path) -> io::Result<()> {
        let target = log_path(self.store(), &self.graph().profile, &self.node.id);
        fs::create_dir_all(target.parent().expect("a log lies in a folder"))?;
        fs::rename(work.with_extension("log"), target)
    }
}

/// Whether anything but links and folders lies below a folder.
fn holds_files(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => holds_files(&entry.path()),
        Ok(kind) => !kind.is_symlink(),
        Err(_) => true,
    })
}

/// Where the output of a node's last attempt is kept.
pub fn log_path(store: &Store, profile: &str, node: &str) -> PathBuf {
    store.folder.join("logs").join(profile).join(format!("{node}.log"))
}

pub fn now_ms() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
