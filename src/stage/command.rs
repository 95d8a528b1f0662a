//! `command`: any program, as an argv or a shell line, with declared inputs and outputs. The way out for everything the other kinds do not do.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::unix::process::CommandExt as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};

/// The parameters of `kind: command`. The command starts in a private directory in which the inputs lie.
///
/// It finds in its environment: REPRO_NODE, REPRO_SEED (if the stage has one), REPRO_THREADS, and REPRO_SCRATCH, a folder it
/// may make (`mkdir -p`) to keep things in that survive a kill and are there for the next attempt.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// A line for `/bin/sh -eu -c`. Give this or `argv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// A program and its arguments, started as they are. Give this or `run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<Word>>,
    /// Environment variables to set. They enter the key; the rest of the environment is passed on and does not.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, Word>,
}

/// Text, or a number written as text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = crate::engine::config::ids::text_of(&value);
        text.map(Word).ok_or_else(|| serde::de::Error::custom(format!("expected text or a number, found `{value}`")))
    }
}

pub struct Command;

impl Kind for Command {
    fn name(&self) -> &'static str {
        "command"
    }

    fn about(&self) -> &'static str {
        "runs a program or a shell line with declared inputs and outputs"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let params: Params = typed(draft.params)?;
        match (&params.run, &params.argv) {
            (Some(_), Some(_)) => return Err(ParamError::at(&["argv"], "give `run` or `argv`, not both")),
            (None, None) => return Err(ParamError::at(&[], "a command needs `run: a shell line` or `argv: [program, ...]`")),
            (None, Some(argv)) if argv.is_empty() => return Err(ParamError::at(&["argv"], "`argv` is empty; name a program")),
            _ => {}
        }
        if draft.outputs.is_empty() {
            return Err(ParamError::at(&[], "a command needs at least one output; declare it under `outputs`"));
        }
        if let Some(output) = draft.outputs.iter().find(|output| output.path == ".") {
            let message = format!("output `{}` cannot be the whole working directory; name a folder in it", output.name);
            return Err(ParamError::at(&[], message));
        }
        let params = serde_json::to_value(&params).expect("parameters are plain data");
        Ok(Checked { params, outputs: draft.outputs.to_vec(), numerics: "any" })
    }

    fn program(&self, task: &Task) -> Option<std::process::Command> {
        let params: Params = typed(&task.params).ok()?;
        let mut command = match (params.run, params.argv) {
            (Some(line), _) => {
                let mut shell = std::process::Command::new("/bin/sh");
                shell.args(["-eu", "-c", &line]);
                shell
            }
            (None, Some(argv)) => {
                let mut program = std::process::Command::new(&argv.first()?.0);
                program.args(argv[1..].iter().map(|word| &word.0));
                program
            }
            (None, None) => return None,
        };
        let threads = task.threads.to_string();
        command.env("REPRO_NODE", &task.node).env("REPRO_THREADS", &threads).env("REPRO_SCRATCH", &task.scratch);
        command.env("OMP_NUM_THREADS", &threads).env("RAYON_NUM_THREADS", &threads);
        if let Some(seed) = task.seed {
            command.env("REPRO_SEED", seed.to_string());
        }
        command.envs(params.env.iter().map(|(name, value)| (name, &value.0)));
        Some(command)
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut command = self.program(task).ok_or("the parameters of the command cannot be read")?;
        // Standard input brought the task and is used up. The worker becomes the command, and the kernel's promise to end it with
        // the runner holds on.
        let error = command.stdin(std::process::Stdio::null()).exec();
        Err(format!("`{}` cannot be started: {error}", command.get_program().to_string_lossy()).into())
    }
}
