//! Objects: contents by digest, never written in place. What is read is checked; what fails the check goes to quarantine and counts as missing.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::index::{Index, now_ns};
use super::journal::Item;
use crate::engine::digest;

pub struct Objects {
    /// Relative names are below this folder.
    store: PathBuf,
}

/// How an object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    Good,
    Missing,
    /// It had other bytes than its name says, and was moved to quarantine.
    Corrupt,
}

impl Objects {
    pub fn new(store: &Path) -> Objects {
        Objects { store: store.to_path_buf() }
    }

    /// Where an object lies, relative to the store. Executable files are objects of their own, for a link carries no mode.
    pub fn name(item: &Item) -> String {
        let hex = item.digest.hex();
        format!("objects/{}/{}{}", &hex[..2], &hex[2..], if item.executable { ".x" } else { "" })
    }

    pub fn path(&self, item: &Item) -> PathBuf {
        self.store.join(Self::name(item))
    }

    /// Moves a file of the same file system into the store. It must have the item's digest. With `sync`, it is on the disk afterwards.
    pub fn put(&self, file: &Path, item: &Item, index: &Index, sync: bool) -> io::Result<()> {
        let target = self.path(item);
        if self.check(item, index)? == Check::Good {
            return fs::remove_file(file);
        }
        let folder = target.parent().expect("an object lies in a folder");
        let fresh = !folder.exists();
        fs::create_dir_all(folder)?;
        fs::set_permissions(file, fs::Permissions::from_mode(if item.executable { 0o555 } else { 0o444 }))?;
        if sync {
            File::open(file)?.sync_all()?;
        }
        fs::rename(file, &target)?;
        if sync {
            File::open(folder)?.sync_all()?;
        }
        if sync && fresh {
            File::open(self.store.join("objects"))?.sync_all()?;
        }
        index.remember(&Self::name(item), &fs::metadata(&target)?, item.digest, now_ns());
        Ok(())
    }

    /// Whether the object is there with the right bytes; hashed only if its stat changed since it was last known to be good.
    pub fn check(&self, item: &Item, index: &Index) -> io::Result<Check> {
        let name = Self::name(item);
        let path = self.store.join(&name);
        let meta = match fs::metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Check::Missing),
            Err(error) => return Err(error),
        };
        if meta.size() == item.size && index.remembered(&name, &meta).is_some_and(|state| state.digest == item.digest) {
            return Ok(Check::Good);
        }
        if meta.size() == item.size && meta.is_file() {
            let hashed_at_ns = now_ns();
            if digest::of_file(&path)? == item.digest {
                index.remember(&name, &meta, item.digest, hashed_at_ns);
                return Ok(Check::Good);
            }
        }
        index.forget(&name);
        self.quarantine(&path)?;
        Ok(Check::Corrupt)
    }

    fn quarantine(&self, path: &Path) -> io::Result<()> {
        let folder = self.store.join("quarantine");
        fs::create_dir_all(&folder)?;
        let name = path.file_name().expect("an object has a name").to_string_lossy().into_owned();
        fs::rename(path, folder.join(format!("{}-{name}", now_ns())))
    }

    /// Every object file: its name relative to the store and its size.
    pub fn all(&self) -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        let root = self.store.join("objects");
        for folder in fs::read_dir(&root)?.flatten() {
            for file in fs::read_dir(folder.path())?.flatten() {
                let name = format!("objects/{}/{}", folder.file_name().to_string_lossy(), file.file_name().to_string_lossy());
                found.push((name, file.metadata()?.size()));
            }
        }
        found.sort();
        Ok(found)
    }
}
