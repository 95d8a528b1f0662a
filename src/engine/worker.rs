//! The worker's side: reads its task and does it. The runner sees the exit code and what was written; nothing else.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::events::Progress;
use super::kind::{Registry, Task};
use super::process::die_with_parent;

/// The least time between two words of progress.
const BETWEEN: Duration = Duration::from_millis(200);

/// Runs the task that comes in on standard input; the exit code of the process.
pub fn work(registry: Registry) -> u8 {
    let task: Task = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(task) => task,
        Err(error) => {
            eprintln!("error: the task cannot be read: {error}; workers are started by `repro run`");
            return 2;
        }
    };
    if !die_with_parent(task.parent) {
        eprintln!("error: the runner is gone");
        return 1;
    }
    let Some(kind) = registry.get(&task.kind) else {
        eprintln!("error: this build has no stage kind `{}`", task.kind);
        return 2;
    };
    match kind.run(&task) {
        Ok(()) => 0,
        Err(error) => {
            eprint!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprint!(": {error}");
                cause = error.source();
            }
            eprintln!();
            1
        }
    }
}

/// Leaves a worker's progress where the runner looks for it. Costs nothing worth counting, however often it is called.
pub struct ProgressFile {
    path: PathBuf,
    last: Option<Instant>,
}

impl ProgressFile {
    pub fn new(task: &Task) -> ProgressFile {
        ProgressFile { path: task.progress.clone(), last: None }
    }

    /// `total` is 0 where it is not known.
    pub fn say(&mut self, done: u64, total: u64, note: &str) {
        if self.last.is_some_and(|last| last.elapsed() < BETWEEN) {
            return;
        }
        self.last = Some(Instant::now());
        let progress = Progress { done, total, note: note.to_string() };
        // Only for show: a reader that meets half of it waits for the next one.
        let _ = std::fs::write(&self.path, serde_json::to_vec(&progress).expect("progress is plain data"));
    }
}
