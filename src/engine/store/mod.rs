//! The store in `.repro/`: objects, journal, index, locks. Knows what was made and where it lies; not why or by whom.
//!
//! ```text
//! .repro/lock          held shared by every run, exclusively by gc
//! .repro/journal       one record per finished node
//! .repro/objects/ab/…  contents by digest, read-only
//! .repro/index         stat of files already hashed (a cache)
//! .repro/keys/         a lock for each key being made
//! .repro/attempts/     private working directories of running nodes
//! .repro/scratch/      what a node keeps for its next attempt (checkpoints)
//! .repro/logs/         the output of each node's last attempt
//! .repro/runs/         what happened to the nodes of the last runs, for those who look on
//! .repro/quarantine/   objects that did not have the bytes their name says
//! ```

pub mod gc;
pub mod index;
pub mod journal;
pub mod objects;
pub mod publish;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::digest::Digest;
use index::Index;
use journal::{Journal, Stored};
use objects::{Check, Objects};
use publish::Publisher;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the store `{}` cannot be written: {cause}; {}", path.display(), advice(cause))]
    Write { path: PathBuf, cause: io::Error },
    #[error("the store `{}` cannot be read: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("`{path}` cannot be published: {cause}; {}", advice(cause))]
    Publish { path: String, cause: io::Error },
    #[error("`{path}` is a symbolic link below `out/` and may lead outside the project; remove it")]
    LinkInOut { path: String },
    #[error("{holder} is using the store; wait for it to end")]
    Busy { holder: String },
}

impl StoreError {
    fn publish(path: &str, cause: io::Error) -> StoreError {
        StoreError::Publish { path: path.to_string(), cause }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space (`repro gc` may help) and run the same command again; nothing finished is lost"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "make it writable, or name another store with `--store DIR`"
        }
        _ => "nothing finished is lost; mend this and run the same command again",
    }
}

pub struct Store {
    pub folder: PathBuf,
    pub journal: Journal,
    pub index: Index,
    pub objects: Objects,
    /// This process' own folder below `attempts/`; made on first use.
    pub private: PathBuf,
    /// Held while this process lives.
    _lock: Option<File>,
}

/// What a process may do with the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look only: works on a store that cannot be written, or that is not there yet.
    Read,
    /// Run nodes, beside others who do.
    Run,
    /// Remove things: nobody else may be at work.
    Alone,
}

impl Store {
    pub fn open(folder: &Path, access: Access) -> Result<Store, StoreError> {
        let read = |cause| StoreError::Read { path: folder.to_path_buf(), cause };
        let write = |cause| StoreError::Write { path: folder.to_path_buf(), cause };
        let lock = match access {
            Access::Read => None,
            Access::Run | Access::Alone => {
                // Tried first so that the common case costs one open.
                let path = folder.join("lock");
                let options = OpenOptions::new().create(true).truncate(false).read(true).write(true).to_owned();
                let lock = match options.open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        for part in ["objects", "keys", "attempts", "scratch", "logs"] {
                            fs::create_dir_all(folder.join(part)).map_err(write)?;
                        }
                        options.open(&path).map_err(write)?
                    }
                    opened => opened.map_err(write)?,
                };
                let taken = if access == Access::Run { lock.try_lock_shared() } else { lock.try_lock() };
                match taken {
                    Ok(()) => {}
                    Err(fs::TryLockError::WouldBlock) if access == Access::Run => lock.lock_shared().map_err(write)?,
                    Err(fs::TryLockError::WouldBlock) => return Err(StoreError::Busy { holder: "another `repro`".into() }),
                    Err(fs::TryLockError::Error(error)) => return Err(write(error)),
                }
                Some(lock)
            }
        };
        Ok(Store {
            folder: folder.to_path_buf(),
            journal: Journal::open(folder).map_err(read)?,
            index: Index::open(folder.join("index")),
            objects: Objects::new(folder),
            private: folder.join("attempts").join(format!("{}.{}.{}", hostname(), std::process::id(), index::now_ns())),
            _lock: lock,
        })
    }

    pub fn publisher<'a>(&'a self, root: &'a Path) -> Publisher<'a> {
        Publisher { root, index: &self.index, objects: &self.objects, scratch: &self.private }
    }

    /// Whether all objects of these outputs are there. Names the first that is not.
    pub fn holds(&self, outputs: &[Stored]) -> Result<Result<(), String>, StoreError> {
        for stored in outputs {
            for item in &stored.files {
                let check = self.objects.check(item, &self.index);
                match check.map_err(|cause| StoreError::Read { path: self.folder.clone(), cause })? {
                    Check::Good => {}
                    Check::Missing => {
                        return Ok(Err(format!("object {} of output `{}` is missing", item.digest.short(), stored.name)));
                    }
                    Check::Corrupt => {
                        return Ok(Err(format!("object {} of output `{}` was damaged", item.digest.short(), stored.name)));
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// Removes the files of released locks, unless somebody else holds them by now.
    pub fn remove_locks(&self, files: &[PathBuf]) {
        for path in files {
            if let Ok(file) = OpenOptions::new().write(true).open(path)
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Takes the lock of a key, or says who has it.
    pub fn lock_key(&self, key: &Digest, about: &str) -> Result<Result<KeyLock, Holder>, StoreError> {
        let path = self.folder.join("keys").join(key.hex());
        let write = |cause| StoreError::Write { path: path.clone(), cause };
        loop {
            let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).map_err(write)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => {
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    return Ok(Err(Holder { text: text.trim().to_string() }));
                }
                Err(fs::TryLockError::Error(error)) => return Err(write(error)),
            }
            // The holder before us may have removed the file between our open and our lock.
            let ours = file.metadata().map_err(write)?.ino();
            if fs::metadata(&path).is_ok_and(|meta| meta.ino() == ours) {
                file.set_len(0).map_err(write)?;
                let _ = writeln!(file, "process {} on {}, {about}", std::process::id(), hostname());
                return Ok(Ok(KeyLock { path, _file: file }));
            }
        }
    }
}

/// Who holds a key's lock, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub text: String,
}

/// A key being made. Released when dropped, or by the kernel when the process dies. The empty file stays until the end of the run.
pub struct KeyLock {
    path: PathBuf,
    _file: File,
}

impl KeyLock {
    /// Releases the key and says which file is left of it, for [`Store::remove_locks`].
    pub fn release(self) -> PathBuf {
        self.path
    }
}

pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
