//! The paper's own stages through the pipeline: from a corpus to a trained model, killed and not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::sandbox::{Sandbox, ran};

const TRAINING: &str = r#"
vars: {threads: 1, steps: 60}
stages:
  corpus: {kind: corpus, with: {bytes: 200000, people: 60}}
  tokenizer: {kind: tokenizer, inputs: {corpus: {from: corpus}}, with: {vocabulary: 300}}
  tokenize: {kind: tokenize, inputs: {corpus: {from: corpus}, tokenizer: {from: tokenizer}}, with: {held_out: 10}}
  sweep:
    kind: train
    grid: {N: [1, 3], seed: [0]}
    seed: ${{ seed }}
    inputs: {tokens: {from: tokenize}}
    with:
      model: {width: 32, depth: 1, loops: "${{ N }}", heads: 2, mlp: 48, vocabulary: 300}
      scaling: {rule: linear}
      optimiser: {lr: 2e-3}
      batch: {sequences: 4, seq_len: 32}
      steps: ${{ steps }}
      eval: {sequences: 8}
      checkpoint_every_steps: 5
      probes: {every_steps: 30, cosines: true}
    resources: {threads: "${{ threads }}"}
"#;

/// Every published file and its bytes.
fn published(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&sandbox.path("out"), &sandbox.path("out"), &mut found);
    found
}

#[test]
fn a_sweep_killed_again_and_again_ends_with_the_bytes_of_an_undisturbed_one() {
    let calm = Sandbox::new(TRAINING);
    calm.run(&[]).ok();
    let expected = published(&calm);
    for name in [
        "sweep/N3-seed0/result.json",
        "sweep/N1-seed0/checkpoint.safetensors",
        "sweep/N3-seed0/probes.jsonl",
        "tokenize/summary.json",
    ] {
        assert!(expected.contains_key(&format!("quick/{name}")), "{name} is missing among {:?}", expected.keys());
    }
    let result: serde_json::Value = serde_json::from_slice(&expected["quick/sweep/N3-seed0/result.json"]).unwrap();
    assert_eq!(result["step"], 60);
    assert!(result["eval_loss"].as_f64().unwrap() < 5.6, "300 tokens start at 5.7 nats: {result}");

    let troubled = Sandbox::new(TRAINING);
    let mut kills = 0;
    for wait in [60, 350, 500, 650, 700, 750, 800, 850].into_iter().cycle() {
        let args = ["run", "--set", "threads=2"];
        let mut child = troubled.command(&args).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let over = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
        kills += 1;
        if over || kills == 12 {
            break;
        }
    }
    ran(troubled.command(&["run"]).output().unwrap()).ok();
    let found = published(&troubled);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in &expected {
        assert!(found[name] == *bytes, "{name} differs after {kills} kills and on two threads");
    }
}

#[test]
fn wrong_parameters_are_named_with_their_place() {
    let wrong = |old: &str, new: &str, text: &str| {
        let sandbox = Sandbox::new(&TRAINING.replace(old, new));
        let ran = sandbox.repro(&["plan"]).exits(2);
        assert_eq!(ran.err.trim_end(), format!("error: {text}"));
    };
    wrong("heads: 2", "heads: 5", "pipeline.yaml:13:7: `heads` is 5, which does not divide `width` 32; choose a divisor");
    wrong(
        "vocabulary: 300}}",
        "vocabulary: 30}}",
        "pipeline.yaml:5:85: `vocabulary` is 30, but must be at least 257: every byte and the begin-of-text token",
    );
    wrong(
        "rule: linear",
        "rule: liner",
        "pipeline.yaml:14:23: unknown variant `liner`, expected one of `none`, `sqrt`, `linear`, `factorised`, `power`, `power-0.75`",
    );
    wrong(
        "steps: ${{ steps }}",
        "stepz: 5",
        "pipeline.yaml:17:7: unknown field `stepz`, expected one of `model`, `scaling`, `init`, `optimiser`, `schedule`, `batch`, `steps`, `eval`, `log_every_steps`, `checkpoint_every_steps`, `keep_checkpoint`, `recompute`, `loss_chunk_rows`, `stop_above_loss`, `diverged_above`, `probes`, `device`; did you mean `steps`?",
    );
    wrong(
        "inputs: {tokens: {from: tokenize}}",
        "inputs: {}",
        "pipeline.yaml:13:7: an input `tokens` is needed; name it under `inputs`",
    );
    wrong(
        "probes:",
        "device: cuda\n      probes:",
        "pipeline.yaml:20:15: `device: cuda` was asked for, but this build has no CUDA; build with `cargo build --release --features cuda`",
    );
}
