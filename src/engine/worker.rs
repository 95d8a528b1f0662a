//! The worker's side: reads its task and does it. The runner sees the exit code and what was written; nothing else.

use std::path::Path;

use super::kind::{Registry, Task};
use super::process::die_with_parent;

/// Runs the task in `file`; the exit code of the process.
pub fn work(file: &Path, registry: Registry) -> u8 {
    let task: Task = match std::fs::read(file)
        .map_err(|error| error.to_string())
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
    {
        Ok(task) => task,
        Err(error) => {
            eprintln!("error: the task `{}` cannot be read: {error}", file.display());
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
