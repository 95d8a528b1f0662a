//! Several runs at once.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::sandbox::{Sandbox, chain, ran};

fn ledger_pipeline(ledger: &std::path::Path) -> String {
    let log = ledger.display();
    format!(
        "stages:\n  make:\n    kind: command\n    grid: {{n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}\n    outputs: {{x: x}}\n    \
         with: {{run: 'echo $REPRO_NODE >> {log}; sleep 0.0${{{{ n }}}}; echo ${{{{ n }}}} > x'}}\n  \
         sum:\n    kind: command\n    grid: {{k: [1, 2, 3]}}\n    inputs: {{all: {{from: make}}}}\n    outputs: {{x: x}}\n    \
         with: {{run: 'echo $REPRO_NODE >> {log}; cat ${{{{ inputs.all }}}}/*/x | sort -n > x; echo ${{{{ k }}}} >> x'}}\n"
    )
}

#[test]
fn eight_processes_run_every_node_exactly_once() {
    let ledger = tempfile::NamedTempFile::new().unwrap();
    let sandbox = Sandbox::new(&ledger_pipeline(ledger.path()));
    let children: Vec<_> =
        (0..8).map(|_| sandbox.command(&["run", "-j3"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).collect();
    for child in children {
        ran(child.wait_with_output().unwrap()).ok();
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in fs::read_to_string(ledger.path()).unwrap().lines() {
        *counts.entry(line.to_string()).or_default() += 1;
    }
    assert_eq!(counts.len(), 15);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(sandbox.read("out/quick/sum/k2/x"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n2\n");
}

#[test]
fn the_second_run_says_for_whom_it_waits() {
    let sandbox = Sandbox::new("stages: {a: {kind: command, outputs: {x: x}, with: {run: 'sleep 1; echo 1 > x'}}}");
    let mut first = sandbox.command(&["run"]).stderr(Stdio::null()).spawn().unwrap();
    while !sandbox.path(".repro/keys").read_dir().is_ok_and(|mut dir| dir.next().is_some()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = sandbox.repro(&["run"]).ok();
    assert!(second.err.contains(&format!("a: waiting for process {} on ", first.id())), "{}", second.err);
    assert!(second.err.contains("1 node: 1 cached"), "{}", second.err);
    assert!(first.wait().unwrap().success());
}

#[test]
fn gc_does_not_run_beside_a_run() {
    let sandbox = Sandbox::new("stages: {a: {kind: command, outputs: {x: x}, with: {run: 'sleep 0.7; echo 1 > x'}}}");
    let mut first = sandbox.command(&["run"]).stderr(Stdio::null()).spawn().unwrap();
    while !sandbox.path(".repro/keys").read_dir().is_ok_and(|mut dir| dir.next().is_some()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let gc = sandbox.repro(&["gc"]).exits(1);
    assert_eq!(gc.err.trim_end(), "error: another `repro` is using the store; wait for it to end");
    assert!(first.wait().unwrap().success());
    sandbox.repro(&["gc"]).ok();
    assert_eq!(sandbox.run(&[]).ok().nodes("node_cached"), ["a"]);
}

#[test]
fn tokens_limit_what_runs_at_once() {
    let ledger = tempfile::NamedTempFile::new().unwrap();
    let log = ledger.path().display();
    let sandbox = Sandbox::new(&format!(
        "stages:\n  a:\n    kind: command\n    grid: {{n: [1, 2, 3, 4]}}\n    resources: {{memory: 600MiB}}\n    outputs: {{x: x}}\n    \
         with: {{run: 'echo + >> {log}; sleep 0.1; echo - >> {log}; echo ${{{{ n }}}} > x'}}\n"
    ));
    sandbox.run(&["-j4", "--memory", "1GiB"]).ok();
    assert_eq!(fs::read_to_string(ledger.path()).unwrap(), "+\n-\n".repeat(4));
}

#[test]
fn two_projects_can_share_a_store() {
    let store = tempfile::tempdir().unwrap();
    let path = store.path().join("s").display().to_string();
    let (first, second) = (chain(), chain());
    first.run(&["--store", &path]).ok();
    let ran = second.run(&["--store", &path]).ok();
    assert_eq!(ran.nodes("node_started"), [""; 0]);
    assert_eq!(second.read("out/quick/c/n1/c.txt"), "ONE\nhello 1\n");
}
