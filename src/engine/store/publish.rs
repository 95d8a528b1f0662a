//! Publishes results under `out/<profile>/<stage>/...`: copies (clones where the file system can) of store objects, so an edit there cannot reach the store.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::StoreError;
use super::index::{FileState, Index, now_ns};
use super::journal::{Item, Stored};
use super::objects::Objects;
use crate::engine::digest;

static SERIAL: AtomicUsize = AtomicUsize::new(0);

/// Set once a clone failed here: trying again would make and delete a file for nothing.
static CANNOT_CLONE: AtomicBool = AtomicBool::new(false);

fn clone_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    if !CANNOT_CLONE.load(Ordering::Relaxed) {
        if reflink_copy::reflink(from, to).is_ok() {
            return Ok(());
        }
        CANNOT_CLONE.store(true, Ordering::Relaxed);
        let _ = fs::remove_file(to);
    }
    fs::copy(from, to).map(|_| ())
}

/// How a node's published outputs stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    Intact,
    Missing(String),
    Edited(String),
}

pub struct Publisher<'a> {
    pub root: &'a Path,
    pub index: &'a Index,
    pub objects: &'a Objects,
    /// A private folder on the store's file system, made on first use and removed by the run or, if that was killed, by the next.
    pub scratch: &'a Path,
}

/// The folder of a node below the project's root: `out/quick/train/L12-N8`.
pub fn folder(profile: &str, node: &str) -> String {
    format!("out/{profile}/{node}")
}

/// Where a file of an output is published, relative to the project.
pub fn place(folder: &str, stored: &Stored, item: &Item) -> String {
    let mut name = folder.to_string();
    for part in [stored.path.as_str(), item.path.as_str()] {
        if !part.is_empty() && part != "." {
            name.push('/');
            name.push_str(part);
        }
    }
    name
}

impl Publisher<'_> {
    /// Compares what lies under `out/` with the record, by stat where that is enough.
    pub fn check(&self, folder: &str, outputs: &[Stored]) -> Published {
        for stored in outputs {
            for item in &stored.files {
                let name = place(folder, stored, item);
                match self.state(&name) {
                    Err(_) => return Published::Missing(name),
                    Ok(state) if state.digest != item.digest || state.executable != item.executable => {
                        return Published::Edited(name);
                    }
                    Ok(_) => {}
                }
            }
            if stored.directory
                && let Some(name) = self.strangers(folder, stored).into_iter().next()
            {
                return Published::Edited(name);
            }
        }
        Published::Intact
    }

    fn state(&self, name: &str) -> io::Result<FileState> {
        let path = self.root.join(name);
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_symlink() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match self.index.remembered(name, &meta) {
            Some(state) => Ok(state),
            None => self.index.state(name, &path),
        }
    }

    /// Files in a published directory that the record does not hold.
    fn strangers(&self, folder: &str, stored: &Stored) -> Vec<String> {
        let base = if stored.path == "." { folder.to_string() } else { format!("{folder}/{}", stored.path) };
        let Ok(found) = digest::walk(&self.root.join(&base), true) else { return Vec::new() };
        let known = |relative: &str| stored.files.binary_search_by(|item| item.path.as_str().cmp(relative)).is_ok();
        found.into_iter().filter(|entry| !known(&entry.relative)).map(|entry| format!("{base}/{}", entry.relative)).collect()
    }

    /// Puts all outputs of a node in place. Files that are right already are left alone.
    pub fn publish(&self, folder: &str, outputs: &[Stored]) -> Result<(), StoreError> {
        for stored in outputs {
            if stored.directory {
                let base = if stored.path == "." { folder.to_string() } else { format!("{folder}/{}", stored.path) };
                self.make_folder(&base)?;
                for name in self.strangers(folder, stored) {
                    fs::remove_file(self.root.join(&name)).map_err(|source| StoreError::publish(&name, source))?;
                    self.index.forget(&name);
                }
            }
            for item in &stored.files {
                let name = place(folder, stored, item);
                let right =
                    self.state(&name).is_ok_and(|state| state.digest == item.digest && state.executable == item.executable);
                if !right {
                    self.make_folder(name.rsplit_once('/').map_or("", |(parent, _)| parent))?;
                    self.copy(&name, item).map_err(|source| StoreError::publish(&name, source))?;
                }
            }
        }
        Ok(())
    }

    fn copy(&self, name: &str, item: &Item) -> io::Result<()> {
        let target = self.root.join(name);
        if fs::symlink_metadata(&target).is_ok_and(|meta| meta.is_dir()) {
            fs::remove_dir_all(&target)?;
        }
        fs::create_dir_all(self.scratch)?;
        let temporary = self.scratch.join(format!("publish-{}", SERIAL.fetch_add(1, Ordering::Relaxed)));
        let made = clone_or_copy(&self.objects.path(item), &temporary)
            .and_then(|()| {
                let mode = if item.executable { 0o755 } else { 0o644 };
                fs::set_permissions(&temporary, fs::Permissions::from_mode(mode))
            })
            .and_then(|()| match fs::rename(&temporary, &target) {
                // `out` may be a link to another disk, where a rename cannot reach.
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    let beside = PathBuf::from(format!("{}.{}.part", target.display(), std::process::id()));
                    fs::copy(&temporary, &beside).and_then(|_| fs::rename(&beside, &target))
                }
                renamed => renamed,
            });
        let _ = fs::remove_file(&temporary);
        made?;
        self.index.remember(name, &fs::symlink_metadata(&target)?, item.digest, now_ns());
        Ok(())
    }

    /// Makes a folder below the project, through real folders only: a link below `out/` could lead anywhere.
    fn make_folder(&self, relative: &str) -> Result<(), StoreError> {
        let path = self.root.join(relative);
        if path.is_dir() && self.real(relative) {
            return Ok(());
        }
        let mut at = self.root.to_path_buf();
        for (depth, part) in relative.split('/').filter(|part| !part.is_empty()).enumerate() {
            at.push(part);
            match fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_dir() => {}
                // `out` itself may be a link to a larger disk.
                Ok(meta) if meta.is_symlink() && depth == 0 && at.is_dir() => {}
                Ok(meta) if meta.is_symlink() => return Err(StoreError::LinkInOut { path: self.shown(&at) }),
                Ok(_) => {
                    fs::remove_file(&at).map_err(|source| StoreError::publish(&self.shown(&at), source))?;
                    fs::create_dir(&at).map_err(|source| StoreError::publish(&self.shown(&at), source))?;
                }
                Err(_) => match fs::create_dir(&at) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made.map_err(|source| StoreError::publish(&self.shown(&at), source))?,
                },
            }
        }
        Ok(())
    }

    fn real(&self, relative: &str) -> bool {
        let mut at = self.root.to_path_buf();
        relative.split('/').enumerate().all(|(depth, part)| {
            at.push(part);
            depth == 0 || fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_dir())
        })
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).display().to_string()
    }

    /// If the published copy of a lost object is still right, moves a copy of it back into the store.
    pub fn heal(&self, folder: &str, stored: &Stored, item: &Item) -> bool {
        let name = place(folder, stored, item);
        if !self.state(&name).is_ok_and(|state| state.digest == item.digest) {
            return false;
        }
        let temporary = self.scratch.join(format!("heal-{}", SERIAL.fetch_add(1, Ordering::Relaxed)));
        let healed = fs::create_dir_all(self.scratch).is_ok()
            && clone_or_copy(&self.root.join(&name), &temporary).is_ok()
            && digest::of_file(&temporary).is_ok_and(|digest| digest == item.digest)
            && self.objects.put(&temporary, item, self.index, true).is_ok();
        if !healed {
            let _ = fs::remove_file(&temporary);
        }
        healed
    }
}
