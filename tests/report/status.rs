//! `repro status` and `repro show`: bars, running nodes, the loss as a curve, 80 columns, colour only where wanted.

use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

const METRICS: &str = "stages:
  train:
    kind: command
    grid: {n: [1, 2]}
    outputs: {metrics: metrics.jsonl}
    with: {run: \"for s in 9 7 5 null 3 2; do echo '{\\\"loss\\\":'$s'}'; done > metrics.jsonl\", env: {N: \"${{ n }}\"}}
";

#[test]
fn a_stage_shows_as_a_bar_and_a_named_one_node_by_node_with_its_loss() {
    let sandbox = Sandbox::new(METRICS);
    sandbox.run(&["train/n1"]).ok();
    let text = sandbox.repro(&["status"]).ok().out;
    let shown: Vec<&str> = text.lines().collect();
    assert_eq!(shown[0], "stage                      done to run  waits failed  took");
    assert!(shown[1].starts_with("train  ███████·······       1/2      1      ·      ·  "), "{text}");
    assert_eq!(shown[2], "profile quick: 1 of 2 nodes");
    let text = sandbox.repro(&["status", "train"]).ok().out;
    assert!(text.contains("✓ train/n1 done") && text.contains("loss 2.000 █▆▄×▂▁\n"), "{text}");
    assert!(text.contains("· train/n2 to run\n"), "{text}");
    let show = sandbox.repro(&["show", "train/n1"]).ok().out;
    assert!(show.ends_with("  loss     9.000 █▆▄×▂▁ 2.000\n"), "{show}");
}

#[test]
fn colour_is_for_terminals_and_can_be_refused() {
    let sandbox = Sandbox::new(METRICS);
    sandbox.run(&[]).ok();
    let shown = |name: &str, value: &str| {
        let output = sandbox.command(&["status", "train"]).env_remove("NO_COLOR").env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = shown("NO_COLOR", "1");
    assert!(!plain.contains('\x1b'));
    let coloured = shown("FORCE_COLOR", "1");
    assert!(coloured.contains("\x1b[32m"), "{coloured:?}");
    for line in plain.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
}

#[test]
fn what_another_process_runs_is_seen_and_forgotten_when_it_is_killed() {
    let sandbox =
        Sandbox::new("stages:\n  slow: {kind: command, outputs: {x: x}, with: {run: 'echo begun; sleep 60; echo > x'}}\n");
    let mut run = sandbox.command(&["run"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let stage = || sandbox.repro(&["status", "--json"]).ok().json()["stages"][0].clone();
    while stage()["running"] != 1 {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", stage());
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = sandbox.repro(&["status"]).ok().out;
    assert!(text.contains("▶ slow ") && text.contains("slow   ▶▶▶▶▶▶▶▶▶▶▶▶▶▶"), "{text}");
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!((&stage()["running"], &stage()["stale"]), (&0.into(), &1.into()));
}
