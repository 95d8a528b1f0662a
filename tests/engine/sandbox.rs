//! A project in a temporary folder, and the binary run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub struct Sandbox {
    dir: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> Ran {
        self.exits(0)
    }
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "standard output:\n{}\nstandard error:\n{}", self.out, self.err);
        self
    }
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {}", self.out))
    }
    /// The ids of the nodes for which an event was told.
    pub fn nodes(&self, event: &str) -> Vec<String> {
        let mut found: Vec<String> = self
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["event"] == event)
            .map(|line| line["node"].as_str().unwrap().to_string())
            .collect();
        found.sort();
        found
    }
}

impl Sandbox {
    pub fn new(pipeline: &str) -> Sandbox {
        let sandbox = Sandbox { dir: tempfile::Builder::new().prefix("repro-").tempdir().unwrap() };
        sandbox.write("pipeline.yaml", pipeline);
        sandbox
    }
    pub fn with(self, path: &str, text: &str) -> Sandbox {
        self.write(path, text);
        self
    }
    pub fn root(&self) -> &Path {
        self.dir.path()
    }
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    pub fn edit(&self, path: &str, old: &str, new: &str) {
        let text = self.read(path);
        assert!(text.contains(old), "{path} does not hold {old:?}");
        self.write(path, &text.replace(old, new));
    }
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_repro"));
        command.args(args).current_dir(self.root()).stdin(Stdio::null());
        for name in ["REPRO_STORE", "REPRO_PROFILE"] {
            command.env_remove(name);
        }
        command
    }
    pub fn repro(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().unwrap())
    }
    /// `repro run --json` with these arguments.
    pub fn run(&self, args: &[&str]) -> Ran {
        let mut all = vec!["run", "--json"];
        all.extend(args);
        self.repro(&all)
    }

    /// Every object in the store.
    pub fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in fs::read_dir(self.path(".repro/objects")).unwrap().flatten() {
            found.extend(fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()));
        }
        found.sort();
        found
    }
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// `a` makes a file from a source, `b` reads it, `c` is a grid over both.
pub const CHAIN: &str = r#"
vars: {word: hello, points: [1, 2, 3]}
stages:
  a:
    kind: command
    inputs: {source: source.txt}
    outputs: {text: a.txt}
    with: {run: "cat source.txt > a.txt"}
  b:
    kind: command
    inputs: {a: {from: a}}
    outputs: {text: b.txt}
    with: {run: "tr a-z A-Z < ${{ inputs.a }} > b.txt"}
  c:
    kind: command
    grid: {n: "${{ points }}"}
    inputs: {b: {from: b}}
    outputs: {text: c.txt}
    with: {run: "(cat ${{ inputs.b }}; echo ${{ word }} ${{ n }}) > ${{ outputs.text }}"}
"#;

pub fn chain() -> Sandbox {
    Sandbox::new(CHAIN).with("source.txt", "one\n")
}
