//! A folder for one test, and the program run inside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub struct Sandbox {
    dir: tempfile::TempDir,
}

/// A run small enough for a test: bytes of a made-up text.
pub const SMALL: &str = "\
model: {width: 32, depth: 2, loops: 3, heads: 4, mlp: 48, vocabulary: 256}
scaling: {rule: linear}
optimiser: {lr: 0.003}
schedule: {warmup_steps: 5, decay_steps: 5}
batch: {sequences: 4, micro_sequences: 2, seq_len: 32}
steps: 30
seed: 3
data: {kind: bytes, path: text.txt, part: [0, 0.8]}
eval: {data: {kind: bytes, path: text.txt, part: [0.8, 1]}, sequences: 3, every_steps: 7}
checkpoint_every_steps: 4
probes: {every_steps: 6, cosines: true, branches: true, gradients: true}
";

impl Sandbox {
    pub fn new() -> Self {
        let sandbox = Self { dir: tempfile::tempdir().unwrap() };
        let text: String = (0..400).map(|i| format!("line {i} has the square {} and the cube {}.\n", i * i, i * i * i)).collect();
        sandbox.file("text.txt", &text)
    }

    pub fn file(self, name: &str, content: &str) -> Self {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The program with these words as arguments, ready to start.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_repro"));
        command.args(arguments.split_whitespace()).current_dir(self.dir.path());
        command
    }

    pub fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed and returns what it printed.
    pub fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with this code and returns its message.
    pub fn fails(&self, code: i32, arguments: &str) -> String {
        let output = self.run(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
        message
    }
}

/// Every file under a folder, by name, with its bytes; what depends on time is left out.
pub fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file() && entry.file_name() != "timing.jsonl")
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}
