//! `repro bench`, and what `repro plan` makes of it.

use super::sandbox::Sandbox;
use serde_json::Value;

/// A project whose one stage trains the paper's model of 12 blocks, at two numbers of loops.
const PIPELINE: &str = "\
default_profile: quick
profiles: {quick: {}}
stages:
  paper:
    kind: train
    grid: {N: [1, 2]}
    seed: 0
    with:
      model: {width: 768, depth: 12, loops: \"${{ N }}\", heads: 12, mlp: 2048, vocabulary: 128256}
      scaling: {rule: linear}
      optimiser: {lr: 1.25e-3}
      batch: {sequences: 256, micro_sequences: 1, seq_len: 2048}
      steps: 20000
  tiny:
    kind: train
    seed: 0
    with:
      model: {width: 16, depth: 1, loops: 2, heads: 2, mlp: 24, vocabulary: 32}
      scaling: {rule: linear}
      optimiser: {lr: 1e-3}
      batch: {sequences: 2, seq_len: 8}
      steps: 5
  note: {kind: command, outputs: {text: a.txt}, with: {run: \"echo a > a.txt\"}}
";

fn project() -> Sandbox {
    Sandbox::new().file("pipeline.yaml", PIPELINE)
}

fn run(sandbox: &Sandbox, arguments: &str) -> (Option<i32>, String, String) {
    let output = sandbox.command(arguments).env("REPRO_SPEED", sandbox.path("speed.json")).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_benchmark_is_one_object_and_leaves_the_speed_for_the_plan() {
    let sandbox = project();
    let (code, out, err) = run(&sandbox, "bench tiny --threads 1 --steps 2 --breakdown --json");
    assert_eq!(code, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    for field in ["tokens_per_s", "gflops", "gemm_peak_gflops", "fraction_of_peak", "peak_rss_mb"] {
        assert!(report[field].as_f64().is_some_and(|number| number >= 0.0), "{field} in {out}");
    }
    assert_eq!((&report["threads"], &report["steps"], &report["name"]), (&1.into(), &2.into(), &"tiny".into()));
    let shares: f64 = report["breakdown"].as_array().unwrap().iter().map(|share| share["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "parts of a step add up to it: {shares}");
    let (_, plan, _) = run(&sandbox, "plan");
    assert!(plan.contains("at the speed `repro bench` measured here"), "{plan}");
}

#[test]
fn a_case_needs_no_project_and_keeps_nothing_if_told() {
    let sandbox = Sandbox::new();
    let (code, out, err) = run(&sandbox, "bench --case small --threads 1 --steps 1 --forget");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("small: ") && out.contains(" tokens/s on 1 thread"), "{out}");
    assert!(!sandbox.path("speed.json").exists());
}

#[test]
fn a_plan_tells_operations_hours_and_memory_and_what_it_assumes() {
    let (code, out, _) = run(&project(), "plan");
    assert_eq!(code, Some(3));
    // 1.27e19 with one loop; the second loop adds 6 * 84.9M weights and attention, but no head.
    assert!(out.contains("cost      paper: 2 nodes, 3.20e19 FLOP, "), "{out}");
    assert!(out.contains("assuming 20 GFLOP/s a thread; `repro bench` measures this machine"), "{out}");
    let (_, json, _) = run(&project(), "plan --json");
    let plan: Value = serde_json::from_str(&json).unwrap();
    let of = |node: &str| plan["nodes"].as_array().unwrap().iter().find(|n| n["node"] == node).unwrap()["cost"].clone();
    assert_eq!(format!("{:.2e}", of("paper/N1")["flops"].as_f64().unwrap()), "1.27e19");
    assert!(of("paper/N1")["memory_bytes"].as_f64().unwrap() > 4.0 * 4.0 * 183e6);
    assert!(of("note").is_null(), "a command trains nothing");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let sandbox = project();
    let (code, _, err) = run(&sandbox, "bench note");
    assert_eq!(
        (code, err.as_str()),
        (Some(2), "error: `note` does not train (stage `note`); name a node of a stage of kind `train`\n")
    );
    let (code, _, err) = run(&sandbox, "bench --case huge");
    assert_eq!(code, Some(2));
    assert!(err.contains("choose `small`, `medium` or `large`"), "{err}");
}
