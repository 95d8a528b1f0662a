//! Whole runs through the program: same bytes every time, killed and resumed, evaluated, exported, sampled.

use super::sandbox::{SMALL, Sandbox, contents};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

fn trained() -> Sandbox {
    let sandbox = Sandbox::new().file("run.yaml", SMALL);
    sandbox.ok("train run.yaml --out whole --quiet");
    sandbox
}

#[test]
fn a_run_leaves_metrics_probes_checkpoint_and_result() {
    let sandbox = trained();
    let result: Value = serde_json::from_slice(&sandbox.read("whole/result.json")).unwrap();
    assert_eq!(result["status"], "completed");
    assert_eq!(result["step"], 30);
    assert_eq!(result["tokens_seen"], 30 * 4 * 32);
    assert_eq!(result["branch_scale"], 1.0 / 3.0);
    let lines = |name: &str| -> Vec<Value> {
        let text = String::from_utf8(sandbox.read(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let metrics = lines("whole/metrics.jsonl");
    let losses: Vec<f64> = metrics.iter().filter_map(|m| m["loss"].as_f64()).collect();
    assert_eq!(losses.len(), 30);
    assert!((losses[0] - 256_f64.ln()).abs() < 0.1 && losses[29] < losses[0] - 1.0, "{losses:?}");
    let evals: Vec<u64> = metrics.iter().filter(|m| m["eval_loss"].is_f64()).map(|m| m["step"].as_u64().unwrap()).collect();
    assert_eq!(evals, [7, 14, 21, 28, 30]);
    let probes = lines("whole/probes.jsonl");
    assert_eq!(probes.iter().map(|p| p["step"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 6, 12, 18, 24, 30]);
    assert_eq!(probes[1]["stream_rms"].as_array().unwrap().len(), 4);
    assert_eq!(probes[1]["cosine_by_token"].as_array().unwrap().len(), 3);
    assert_eq!(probes[1]["mlp_rms"][2].as_array().unwrap().len(), 2);
    assert!(probes[0]["update_rms"].is_null() && probes[1]["update_rms"].as_f64().unwrap() > 0.0);
    assert!(probes[1]["grad_norms"]["blocks.1.qkv"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_run_that_keeps_no_checkpoint_writes_the_same_numbers() {
    let sandbox = trained();
    let text = std::fs::read_to_string(sandbox.path("run.yaml")).unwrap();
    std::fs::write(sandbox.path("light.yaml"), format!("keep_checkpoint: false\n{text}")).unwrap();
    sandbox.ok("train light.yaml --out light --quiet");
    for name in ["result.json", "metrics.jsonl", "probes.jsonl"] {
        assert!(
            std::fs::read(sandbox.path(&format!("whole/{name}"))).unwrap()
                == std::fs::read(sandbox.path(&format!("light/{name}"))).unwrap(),
            "{name}"
        );
    }
    assert!(!sandbox.path("light/checkpoint.safetensors").exists());
}

#[test]
fn the_same_run_writes_the_same_bytes_on_any_number_of_threads() {
    let sandbox = trained();
    for threads in [1, 4] {
        sandbox.ok(&format!("train run.yaml --out t{threads} --quiet --threads {threads}"));
        assert!(contents(&sandbox.path("whole")) == contents(&sandbox.path(&format!("t{threads}"))), "{threads} threads");
    }
}

#[test]
fn a_run_killed_again_and_again_ends_with_the_same_bytes() {
    let sandbox = Sandbox::new().file("run.yaml", &SMALL.replace("steps: 30", "steps: 120"));
    sandbox.ok("train run.yaml --out whole --quiet");
    let checkpoint = || {
        let metadata = std::fs::metadata(sandbox.path("killed/checkpoint.safetensors")).ok()?;
        Some(std::os::unix::fs::MetadataExt::ino(&metadata))
    };
    let mut kills = 0;
    // Twice before the first checkpoint; then some primes of milliseconds after a new one, so that kills fall between two
    // checkpoints and while one is written.
    for (wait, early) in [(7, true), (23, true), (0, false), (2, false), (3, false), (5, false), (7, false), (11, false)] {
        let mut child = sandbox.command("train run.yaml --out killed --quiet --resume").spawn().unwrap();
        let before = checkpoint();
        while !early && checkpoint() == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    sandbox.ok("train run.yaml --out killed --quiet --resume");
    assert!(kills >= 3, "the run was too short to be killed: {kills} kills");
    let (whole, killed) = (contents(&sandbox.path("whole")), contents(&sandbox.path("killed")));
    assert_eq!(whole.iter().map(|f| &f.0).collect::<Vec<_>>(), killed.iter().map(|f| &f.0).collect::<Vec<_>>());
    for ((name, whole), (_, killed)) in whole.iter().zip(&killed) {
        assert!(whole == killed, "{name} differs after {kills} kills");
    }
}

#[test]
fn a_finished_run_is_not_run_again() {
    let sandbox = trained();
    let before = contents(&sandbox.path("whole"));
    let again: Value = serde_json::from_str(&sandbox.ok("train run.yaml --out whole --quiet --resume --json")).unwrap();
    assert_eq!(again["step"], 30);
    assert!(before == contents(&sandbox.path("whole")));
}

#[test]
fn eval_gives_the_held_out_loss_of_the_run() {
    let sandbox = trained();
    let text = sandbox.read("text.txt");
    // The last fifth, three sequences of 32 and the token after them: what the run itself evaluated.
    let from = (0.8 * text.len() as f64).round() as usize;
    let ids: Vec<String> = text[from..from + 3 * 32 + 1].iter().map(u8::to_string).collect();
    let sandbox = sandbox.file("ids.txt", &ids.join(" "));
    let report: Value =
        serde_json::from_str(&sandbox.ok("eval whole/checkpoint.safetensors --ids ids.txt --logits logits.safetensors --json"))
            .unwrap();
    let result: Value = serde_json::from_slice(&sandbox.read("whole/result.json")).unwrap();
    // Eval puts its sequences into other batches, so sums over rows may round differently.
    let (found, expected) = (report["loss"].as_f64().unwrap(), result["eval_loss"].as_f64().unwrap());
    assert!((found - expected).abs() < 1e-6, "{found} against {expected}");
    assert_eq!(report["tokens"], 96);
    assert_eq!(report["token_losses"].as_array().unwrap().len(), 96);
    let logits = sandbox.read("logits.safetensors");
    let logits = safetensors::SafeTensors::deserialize(&logits).unwrap();
    assert_eq!(logits.tensor("logits").unwrap().shape(), [96, 256]);
}

#[test]
fn generate_is_reproducible_and_export_unrolls_the_loops() {
    let sandbox = trained();
    let sample = "generate whole/checkpoint.safetensors --prompt line --tokens 20 --seed";
    assert_eq!(sandbox.ok(&format!("{sample} 1")), sandbox.ok(&format!("{sample} 1")));
    assert_ne!(sandbox.ok(&format!("{sample} 1")), sandbox.ok(&format!("{sample} 2")));
    sandbox.ok("export whole/checkpoint.safetensors --format hf --out hf");
    let config: Value = serde_json::from_slice(&sandbox.read("hf/config.json")).unwrap();
    assert_eq!(config["num_hidden_layers"], 6);
    let bytes = sandbox.read("hf/model.safetensors");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.len(), 2 + 6 * 9);
    assert_eq!(tensors.tensor("model.layers.5.mlp.up_proj.weight").unwrap().shape(), [48, 32]);
}

#[test]
fn a_diverged_run_says_so_and_succeeds() {
    let sandbox = Sandbox::new().file("run.yaml", &SMALL.replace("{lr: 0.003}", "{lr: 1.0e+30, clip: null}"));
    let outcome: Value = serde_json::from_str(&sandbox.ok("train run.yaml --out out --quiet --json")).unwrap();
    assert_eq!(outcome["status"], "diverged");
    assert!(outcome["train_loss"].is_null() || outcome["train_loss"].is_f64());
    let bounded = SMALL.replace("seed: 3", "seed: 3\nstop_above_loss: 0.5");
    let sandbox = Sandbox::new().file("run.yaml", &bounded);
    let outcome: Value = serde_json::from_str(&sandbox.ok("train run.yaml --out out --quiet --json")).unwrap();
    assert_eq!((&outcome["status"], &outcome["step"]), (&"diverged".into(), &5.into()));
}

#[test]
fn tensorboard_files_are_written_on_request() {
    let sandbox = Sandbox::new().file("run.yaml", &format!("{SMALL}tensorboard: true\n"));
    sandbox.ok("train run.yaml --out out --quiet");
    let file = std::fs::read_dir(sandbox.path("out/tensorboard")).unwrap().next().unwrap().unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    assert_eq!(bytes.windows(9).filter(|w| w == b"eval_loss").count(), 5);
    assert!(bytes.windows(13).any(|w| w == b"brain.Event:2"));
}

#[test]
fn parquet_and_text_ids_train_alike() {
    use arrow::array::{ListBuilder, RecordBatch, UInt32Builder};
    use std::sync::Arc;
    let sandbox = Sandbox::new();
    let ids: Vec<u32> = (0..3000_u32).map(|i| i * i % 97).collect();
    let mut lists = ListBuilder::new(UInt32Builder::new());
    for document in ids.chunks(700) {
        lists.values().append_slice(document);
        lists.append(true);
    }
    let column: arrow::array::ArrayRef = Arc::new(lists.finish());
    let batch = RecordBatch::try_from_iter([("input_ids", column)]).unwrap();
    let file = std::fs::File::create(sandbox.path("ids.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let text: Vec<String> = ids.iter().map(u32::to_string).collect();
    let config = |kind: &str, path: &str| {
        let data = format!("data: {{kind: {kind}, path: {path}}}");
        SMALL
            .lines()
            .map(|line| match line.split(':').next() {
                Some("data") => data.as_str(),
                Some("eval") => "log_every_steps: 1",
                _ => line,
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    let sandbox = sandbox
        .file("ids.txt", &text.join("\n"))
        .file("a.yaml", &config("parquet", "ids.parquet"))
        .file("b.yaml", &config("text", "ids.txt"));
    sandbox.ok("train a.yaml --out a --quiet");
    sandbox.ok("train b.yaml --out b --quiet");
    assert!(contents(&sandbox.path("a")) == contents(&sandbox.path("b")));
}

#[test]
fn a_run_asked_to_stop_saves_itself_first() {
    let sandbox = Sandbox::new().file("run.yaml", &SMALL.replace("steps: 30", "steps: 120"));
    sandbox.ok("train run.yaml --out whole --quiet");
    let config = SMALL.replace("steps: 30", "steps: 120").replace("checkpoint_every_steps: 4\n", "");
    let sandbox = sandbox.file("rare.yaml", &config);
    let child = sandbox.command("train rare.yaml --out stopped --quiet").stderr(Stdio::piped()).spawn().unwrap();
    while !sandbox.path("stopped/timing.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(50));
    let stop = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(stop.success());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.starts_with("error: stopped after step ") && message.ends_with("; pass `--resume` to continue\n"));
    sandbox.ok("train rare.yaml --out stopped --quiet --resume");
    assert!(contents(&sandbox.path("whole")) == contents(&sandbox.path("stopped")));
}
