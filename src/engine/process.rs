//! Worker processes: started in a group of their own, ended with everything they started, and never outliving the runner.
//!
//! Three nets, each for the holes in the others: the kernel kills a worker when the runner dies (the worker asks for that itself;
//! a program that the runner starts directly cannot); a reaper process kills whole groups as soon as the runner's pipe closes;
//! the next run ends whatever still works in an attempt's folder of a run that is gone. All of that is tidiness: a private
//! folder per attempt makes an orphan harmless.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The groups that run now, and the reaper that knows of them.
#[derive(Default)]
pub struct Groups {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    running: HashSet<i32>,
    reaper: Option<(Child, ChildStdin)>,
}

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
}

impl Groups {
    /// Starts a command in a new process group with its output in `log`, and hands it `input`, if there is one.
    pub fn start(&self, command: &mut Command, log: &File, input: Option<&[u8]>) -> io::Result<Child> {
        command
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(0);
        let mut inner = self.lock();
        if inner.reaper.is_none() {
            inner.reaper = reaper().ok();
        }
        let mut child = command.spawn()?;
        inner.running.insert(child.id() as i32);
        inner.tell('+', child.id());
        drop(inner);
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            // A worker that ends before it has read its task has its own way of telling.
            let _ = pipe.write_all(input);
        }
        Ok(child)
    }

    /// Waits for a worker and ends what it left behind in its group.
    pub fn wait(&self, child: &mut Child) -> io::Result<Ended> {
        let pid = Pid::from_raw(child.id() as i32).expect("a child has a pid");
        // Not reaped yet: until it is, nobody else can get this group's number.
        while let Err(error) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let mut inner = self.lock();
        let _ = kill_process_group(pid, Signal::KILL);
        inner.running.remove(&(child.id() as i32));
        inner.tell('-', child.id());
        drop(inner);
        use std::os::unix::process::ExitStatusExt as _;
        let status = child.wait()?;
        Ok(match status.code() {
            Some(code) => Ended::Code(code),
            None => Ended::Signal(status.signal().unwrap_or(0)),
        })
    }

    /// Signals one group, if it still runs.
    pub fn signal(&self, pid: u32, signal: Signal) {
        let inner = self.lock();
        if inner.running.contains(&(pid as i32))
            && let Some(pid) = Pid::from_raw(pid as i32)
        {
            let _ = kill_process_group(pid, signal);
        }
    }

    pub fn signal_all(&self, signal: Signal) {
        for pid in self.lock().running.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process_group(pid, signal);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread panics while it holds the groups")
    }
}

impl Inner {
    fn tell(&mut self, sign: char, pid: u32) {
        if let Some((_, pipe)) = &mut self.reaper {
            let _ = writeln!(pipe, "{sign}{pid}");
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if let Some((mut child, pipe)) = self.lock().reaper.take() {
            drop(pipe);
            let _ = child.wait();
        }
    }
}

fn reaper() -> io::Result<(Child, ChildStdin)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("reaper")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pipe = child.stdin.take().expect("stdin is piped");
    Ok((child, pipe))
}

/// The reaper's whole life: remembers groups until the pipe closes, then kills those that are left.
pub fn reap() {
    let mut groups: HashSet<i32> = HashSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        match (line.chars().next(), line.get(1..).and_then(|pid| pid.parse().ok())) {
            (Some('+'), Some(pid)) => groups.insert(pid),
            (Some('-'), Some(pid)) => groups.remove(&pid),
            _ => false,
        };
    }
    for pid in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Called first thing in a worker: die with the runner, even if it is gone already.
pub fn die_with_parent(parent: u32) -> bool {
    // Elsewhere the reaper alone does it.
    #[cfg(target_os = "linux")]
    if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return false;
    }
    rustix::process::getppid().is_some_and(|pid| pid.as_raw_nonzero().get() as u32 == parent)
}

/// Ends every process that works below a folder: what a killed run left behind.
pub fn end_workers_in(folder: &Path) {
    let Ok(folder) = folder.canonicalize() else { return };
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}
