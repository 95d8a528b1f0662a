//! The worker's side: reads its task and does it. The runner sees the exit code and what was written; nothing else.

use super::kind::{Registry, Task};
use super::process::die_with_parent;

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
