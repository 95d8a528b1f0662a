//! Every error a user of the trainer can cause, as exact text. Exit code 2, and nothing overwritten.

use super::sandbox::{SMALL, Sandbox, contents};

/// The message for a config which differs from the small one in one place.
fn with(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    let sandbox = Sandbox::new().file("run.yaml", &SMALL.replace(from, to));
    let message = sandbox.fails(2, "train run.yaml --out out");
    assert!(!sandbox.path("out").exists(), "a wrong config leaves no folder");
    message
}

#[test]
fn wrong_configs() {
    for (from, to, message) in [
        ("heads: 4", "heads: 5", "run.yaml: `heads` is 5, which does not divide `width` 32; choose a divisor"),
        (
            "heads: 4",
            "heads: 32",
            "run.yaml: `width` 32 over `heads` 32 gives heads of width 1; rotary positions need an even width",
        ),
        ("loops: 3", "loops: 0", "run.yaml: `model.loops` is 0; it must be at least 1"),
        ("steps: 30", "steps: 0", "run.yaml: `steps` is 0; it must be at least 1"),
        (
            "steps: 30",
            "steps: 7",
            "run.yaml: `schedule.warmup_steps` is 5 and `schedule.decay_steps` is 5, but the run has only 7 steps; \
             lower one of them or raise `steps`",
        ),
        ("width: 32", "width: 99999999", "run.yaml: `model.width` is 99999999; sizes above 2^24 are refused"),
        ("width: 32", "width: 4194304", "run.yaml: the model would have 140739791028224 parameters; above 10^11 it is refused"),
        (
            "micro_sequences: 2",
            "micro_sequences: 3",
            "run.yaml: `batch.micro_sequences` is 3, which does not divide `batch.sequences` 4",
        ),
        (
            "rule: linear",
            "rule: linear, alpha: 0.5",
            "run.yaml: `scaling.alpha` belongs to `rule: power` only; this run has `rule: linear`",
        ),
        ("rule: linear", "rule: power", "run.yaml: `rule: power` needs `scaling.alpha`, the exponent of 1/N"),
        (
            "rule: linear",
            "rule: sqrt, lambda: 2",
            "run.yaml: `scaling.lambda` belongs to `rule: factorised` only; this run has `rule: sqrt`",
        ),
        (
            "vocabulary: 256",
            "vocabulary: 100",
            "run.yaml: `data.kind: bytes` makes token ids up to 255, but `model.vocabulary` is 100; set it to 256 or more",
        ),
        ("lr: 0.003", "lr: -1", "run.yaml: `optimiser.lr` is -1; it must be a number and not negative"),
        ("lr: 0.003", "lr: 1, betas: [0.9, 1]", "run.yaml: `optimiser.betas` holds 1; both must be at least 0 and below 1"),
        ("part: [0, 0.8]", "part: [0.8, 0]", "run.yaml: `data.part` is [0.8, 0]; it must be two fractions, 0 <= from < to <= 1"),
        ("kind: bytes, path: text.txt, part: [0, 0.8]", "kind: bytes", "run.yaml: `data.kind: bytes` needs `data.path`"),
        (
            "seed: 3",
            "seed: 3\ndevice: cuda",
            "`device: cuda` was asked for, but this build has no CUDA; build with `cargo build --release --features cuda`",
        ),
        (
            "seed: 3",
            "sede: 3",
            "run.yaml:7:1: unknown field `sede`, expected one of `model`, `scaling`, `init`, `optimiser`, `schedule`, \
             `batch`, `steps`, `seed`, `data`, `eval`, `log_every_steps`, `checkpoint_every_steps`, `keep_checkpoint`, `recompute`, \
             `loss_chunk_rows`, `stop_above_loss`, `probes`, `tensorboard`, `device`, `threads`",
        ),
        (
            "rule: linear",
            "rule: cubic",
            "run.yaml:2:17: scaling.rule: unknown variant `cubic`, expected one of `none`, `sqrt`, `linear`, `factorised`, `power`, `power-0.75`",
        ),
    ] {
        assert_eq!(with(from, to), format!("error: {message}\n"));
    }
}

#[test]
fn a_vocabulary_smaller_than_a_token_id() {
    let config = SMALL.replace("kind: bytes, path: text.txt, part: [0, 0.8]", "kind: text, path: ids.txt");
    let ids: Vec<String> = (0..300).map(|i| (i % 280).to_string()).collect();
    let sandbox = Sandbox::new().file("run.yaml", &config).file("ids.txt", &ids.join(" "));
    assert_eq!(
        sandbox.fails(2, "train run.yaml --out out"),
        "error: the data holds token ids up to 279, but `model.vocabulary` is 256; raise it, or use data made with another tokenizer\n"
    );
    assert!(!sandbox.path("out").exists());
}

#[test]
fn data_that_is_absent_too_short_or_no_numbers() {
    let sandbox = Sandbox::new().file("run.yaml", &SMALL.replace("path: text.txt, part: [0, 0.8]", "path: gone.txt"));
    assert_eq!(
        sandbox.fails(2, "train run.yaml --out out"),
        "error: cannot read `gone.txt`: No such file or directory (os error 2)\n"
    );
    let sandbox = Sandbox::new()
        .file("run.yaml", &SMALL.replace("kind: bytes, path: text.txt, part: [0, 0.8]", "kind: text, path: ids.txt"))
        .file("ids.txt", "1 2 3\n4 five 6\n");
    assert_eq!(
        sandbox.fails(2, "train run.yaml --out out"),
        "error: ids.txt:2: `five` is not a token id; ids are whole numbers\n"
    );
    let sandbox = sandbox.file("ids.txt", "1 2 3\n");
    assert_eq!(
        sandbox.fails(2, "train run.yaml --out out"),
        "error: `ids.txt` holds 3 tokens, fewer than one sequence of 32 and its next token\n"
    );
}

#[test]
fn a_folder_that_holds_a_run_is_not_overwritten() {
    let sandbox = Sandbox::new().file("run.yaml", SMALL);
    sandbox.ok("train run.yaml --out out --quiet");
    let before = contents(&sandbox.path("out"));
    assert_eq!(
        sandbox.fails(2, "train run.yaml --out out"),
        "error: `out` already holds a run; pass `--resume` to continue it, or choose another folder\n"
    );
    assert!(before == contents(&sandbox.path("out")));
    sandbox.ok("export out/checkpoint.safetensors --out hf");
    assert_eq!(
        sandbox.fails(2, "export out/checkpoint.safetensors --out hf"),
        "error: `hf` exists already; choose another folder\n"
    );
}

/// A folder with a checkpoint but no result, as a killed run leaves it.
fn interrupted() -> Sandbox {
    let sandbox = Sandbox::new().file("run.yaml", SMALL);
    sandbox.ok("train run.yaml --out out --quiet");
    std::fs::remove_file(sandbox.path("out/result.json")).unwrap();
    sandbox
}

#[test]
fn a_checkpoint_of_another_run_or_shape() {
    let sandbox = interrupted()
        .file("wide.yaml", &SMALL.replace("width: 32", "width: 64"))
        .file("lr.yaml", &SMALL.replace("lr: 0.003", "lr: 0.004"));
    let before = contents(&sandbox.path("out"));
    assert_eq!(
        sandbox.fails(2, "train wide.yaml --out out --resume"),
        "error: `out/checkpoint.safetensors` was made with `model.width` 32, and this run has 64; use the settings it was made with, or another folder\n"
    );
    assert_eq!(
        sandbox.fails(2, "train lr.yaml --out out --resume"),
        "error: `out/checkpoint.safetensors` was made with `optimiser.lr` 0.003, and this run has 0.004; use the settings it was made with, or another folder\n"
    );
    assert!(before == contents(&sandbox.path("out")));
}

#[test]
fn a_truncated_or_foreign_checkpoint() {
    let sandbox = interrupted();
    let whole = sandbox.read("out/checkpoint.safetensors");
    for (keep, message) in [
        (whole.len() - 1, "its data ends before its header says"),
        (200, "its header is cut off"),
        (3, "it is shorter than any safetensors file"),
    ] {
        std::fs::write(sandbox.path("out/checkpoint.safetensors"), &whole[..keep]).unwrap();
        let before = contents(&sandbox.path("out"));
        let expected = format!("error: `out/checkpoint.safetensors` is no whole checkpoint: {message}\n");
        assert_eq!(sandbox.fails(2, "train run.yaml --out out --resume"), expected);
        assert_eq!(sandbox.fails(2, "eval out/checkpoint.safetensors --ids text.txt"), expected);
        assert!(before == contents(&sandbox.path("out")));
    }
    std::fs::write(sandbox.path("out/checkpoint.safetensors"), &whole).unwrap();
    sandbox.ok("export out/checkpoint.safetensors --out hf");
    assert_eq!(
        sandbox.fails(2, "generate hf/model.safetensors"),
        "error: `hf/model.safetensors` is a safetensors file, but not a checkpoint of this program\n"
    );
}

#[test]
fn eval_and_generate_say_what_they_miss() {
    let sandbox = interrupted().file("one.txt", "7");
    assert_eq!(
        sandbox.fails(2, "eval out/checkpoint.safetensors --ids one.txt"),
        "error: `one.txt` holds 1 token ids; a loss needs at least 2\n"
    );
    let sandbox = sandbox.file("large.txt", "1 2 300");
    assert_eq!(
        sandbox.fails(2, "eval out/checkpoint.safetensors --ids large.txt"),
        "error: token id 300 is not below `model.vocabulary` 256; raise it, or use data made with another tokenizer\n"
    );
    assert_eq!(
        sandbox.fails(2, "generate out/checkpoint.safetensors --temperature=-1"),
        "error: `--temperature` is -1; it must be a number and not negative\n"
    );
    assert_eq!(
        sandbox.fails(2, "eval gone.safetensors --ids one.txt"),
        "error: cannot read checkpoint `gone.safetensors`: No such file or directory (os error 2)\n"
    );
}
