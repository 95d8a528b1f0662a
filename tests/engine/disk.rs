//! Disks that are full or cannot be written. Needs the right to mount; says so where it is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::{Sandbox, chain};

/// A small file system of its own, gone when dropped.
struct Mount(PathBuf, #[allow(dead_code)] tempfile::TempDir);

impl Mount {
    fn new(options: &str) -> Option<Mount> {
        let dir = tempfile::tempdir().unwrap();
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "repro-test"]).arg(dir.path()).output();
        if done.is_ok_and(|output| output.status.success()) {
            return Some(Mount(dir.path().to_path_buf(), dir));
        }
        eprintln!("skipped: mounting a small file system needs root");
        None
    }
    fn remount(&self, options: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status().unwrap();
        assert!(done.success());
    }
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_fails_clearly_and_loses_nothing() {
    let Some(mount) = Mount::new("size=1M") else { return };
    let sandbox = Sandbox::new(
        "vars: {size: 3000}\nstages:\n  small: {kind: command, outputs: {x: x}, with: {run: 'echo 1 > x'}}\n  \
         big: {kind: command, needs: [small], outputs: {x: x}, with: {run: 'head -c ${{ size }}k /dev/zero > x'}}\n",
    );
    let store = mount.path().join("store").display().to_string();
    let ran = sandbox.repro(&["--store", &store, "run", "-j1"]).exits(1);
    let text = "big: FAILED: the worker ended with exit code 1, and the disk of the store is full; free some space and run the same command again";
    assert!(ran.err.contains(text), "{}", ran.err);
    assert_eq!(sandbox.read("out/quick/small/x"), "1\n");
    mount.remount("size=8M");
    let ran = sandbox.run(&["--store", &store]).ok();
    assert_eq!(ran.nodes("node_cached"), ["small"]);
    assert_eq!(std::fs::metadata(sandbox.path("out/quick/big/x")).unwrap().len(), 3000 * 1024);
}

#[test]
fn a_full_disk_under_out_keeps_the_result_in_the_store() {
    let Some(mount) = Mount::new("size=1M") else { return };
    let sandbox = Sandbox::new("stages: {big: {kind: command, outputs: {x: x}, with: {run: 'head -c 3000k /dev/zero > x'}}}");
    std::os::unix::fs::symlink(mount.path(), sandbox.path("out")).unwrap();
    let ran = sandbox.repro(&["run"]).exits(1);
    assert_eq!(
        ran.err.lines().last().unwrap(),
        "error: `out/quick/big/x` cannot be published: No space left on device (os error 28); free some space (`repro gc` may help) \
         and run the same command again; nothing finished is lost"
    );
    mount.remount("size=8M");
    assert_eq!(sandbox.run(&[]).ok().nodes("node_restored"), ["big"]);
}

#[test]
fn a_store_that_cannot_be_written() {
    let Some(mount) = Mount::new("size=1M") else { return };
    let sandbox = chain();
    let store = mount.path().join("store");
    let shown = store.display().to_string();
    mount.remount("ro");
    let ran = sandbox.repro(&["--store", &shown, "run"]).exits(1);
    assert_eq!(
        ran.err.trim_end(),
        format!(
            "error: the store `{shown}` cannot be written: Read-only file system (os error 30); make it writable, or name another \
             store with `--store DIR`"
        )
    );
    // Looking needs no writing.
    sandbox.repro(&["--store", &shown, "plan"]).exits(3);
    mount.remount("rw");
    sandbox.repro(&["--store", &shown, "run"]).ok();
    mount.remount("ro");
    sandbox.repro(&["--store", &shown, "plan"]).ok();
    sandbox.repro(&["--store", &shown, "show", "c/n1"]).ok();
    let ran = sandbox.repro(&["--store", &shown, "run", "--set", "word=other"]).exits(1);
    assert!(ran.err.contains("cannot be written: Read-only file system"), "{}", ran.err);
}
