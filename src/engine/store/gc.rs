//! Frees what nothing refers to: objects, records, scratch, quarantine and what dead runs left. Runs only while nobody else uses the store.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use serde::Serialize;

use super::journal::Head;
use super::objects::{Check, Objects};
use super::{Store, hostname};
use crate::engine::digest::Digest;
use crate::engine::process::end_workers_in;

/// What was, or would be, freed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Freed {
    pub objects: usize,
    pub bytes: u64,
    pub records: usize,
    pub kept_objects: usize,
}

/// Removes every object that no kept record names. A record is kept if `keep` wants its key.
pub fn collect(store: &Store, keep: &HashSet<Digest>, dry: bool) -> io::Result<Freed> {
    let mut freed = Freed::default();
    let all = store.journal.all_done();
    let mut named: HashSet<String> = HashSet::new();
    for done in &all {
        if keep.contains(&done.key) {
            named.extend(done.outputs.iter().flat_map(|stored| stored.files.iter().map(Objects::name)));
        } else {
            freed.records += 1;
        }
    }
    let objects = if store.folder.join("objects").exists() { store.objects.all()? } else { Vec::new() };
    let (kept, gone): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(name, _)| named.contains(name));
    freed.kept_objects = kept.len();
    freed.objects = gone.len();
    freed.bytes = gone.iter().map(|(_, size)| size).sum();
    if dry {
        return Ok(freed);
    }
    // Records first: a record without its objects would be a promise that cannot be kept.
    store.journal.compact(|head| match head {
        Head::Done(done) => keep.contains(&done.key),
        Head::Bind { key, .. } => keep.contains(key),
        Head::Failed { .. } | Head::Code { .. } => true,
    })?;
    for (name, _) in gone {
        fs::remove_file(store.folder.join(&name))?;
        store.index.forget(&name);
    }
    for part in ["quarantine", "keys", "scratch"] {
        let _ = fs::remove_dir_all(store.folder.join(part));
    }
    for part in ["keys", "scratch"] {
        fs::create_dir_all(store.folder.join(part))?;
    }
    store.index.retain(|name| store.folder.join(name).exists() || !name.starts_with("objects/"));
    store.index.save();
    Ok(freed)
}

/// Removes the folders of runs that are gone, and ends whatever of theirs still works there.
pub fn sweep(store: &Store) {
    let attempts = store.folder.join("attempts");
    let Ok(entries) = fs::read_dir(&attempts) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path == store.private || owner_lives(&path) {
            continue;
        }
        end_workers_in(&path);
        // What cannot be removed now is tried again by the next run.
        let _ = fs::remove_dir_all(&path);
    }
}

/// Claims this process' private folder: a lock in it tells others that its owner lives.
pub fn claim_private(store: &Store) -> io::Result<File> {
    fs::create_dir_all(&store.private)?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(store.private.join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

fn owner_lives(folder: &Path) -> bool {
    let lock = OpenOptions::new().write(true).open(folder.join("lock"));
    if lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock))) {
        return true;
    }
    // A young folder may belong to a process that is about to take its lock. The name tells whose it is; one of another machine,
    // which cannot be asked, is given its minute.
    let age = fs::metadata(folder).and_then(|meta| meta.modified()).ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age.as_secs() >= 60) {
        return false;
    }
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut parts = name.rsplitn(3, '.').skip(1);
    match (parts.next(), parts.next()) {
        (Some(pid), Some(host)) if host == hostname() && Path::new("/proc/self").exists() => {
            Path::new("/proc").join(pid).exists()
        }
        _ => true,
    }
}

/// Checks every object that a record names, by its bytes. Damaged ones go to quarantine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    pub good: usize,
    pub bytes: u64,
    pub missing: Vec<String>,
    pub damaged: Vec<String>,
}

pub fn verify(store: &Store) -> io::Result<Verified> {
    use rayon::prelude::*;
    store.index.retain(|name| !name.starts_with("objects/"));
    let mut items: Vec<_> =
        store.journal.all_done().iter().flat_map(|done| done.outputs.iter().flat_map(|out| out.files.clone())).collect();
    items.sort_by(|left, right| Objects::name(left).cmp(&Objects::name(right)));
    items.dedup_by(|left, right| Objects::name(left) == Objects::name(right));
    let checked: Vec<(String, u64, Check)> = items
        .par_iter()
        .map(|item| Ok((item.digest.short(), item.size, store.objects.check(item, &store.index)?)))
        .collect::<io::Result<_>>()?;
    store.index.save();
    let mut verified = Verified::default();
    for (name, size, check) in checked {
        match check {
            Check::Good => {
                verified.good += 1;
                verified.bytes += size;
            }
            Check::Missing => verified.missing.push(name),
            Check::Corrupt => verified.damaged.push(name),
        }
    }
    Ok(verified)
}
