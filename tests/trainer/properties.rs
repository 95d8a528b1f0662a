//! What must hold for any looped Transformer, whatever its numbers.

use dfdx::prelude::{Cpu, Gradients};
use repro::paper::batch::{Batch, TokenSource};
use repro::paper::config::{RawRun, RunConfig, Sharing};
use repro::paper::device::with_threads;
use repro::paper::model::{Model, ModelError, parameters};
use repro::paper::sources::RandomSource;
use repro::paper::trainer::Trainer;
use serde_json::{Value, json};

fn run(change: impl Fn(&mut Value)) -> RunConfig {
    let mut run = json!({
        "model": {"width": 32, "depth": 2, "loops": 3, "heads": 4, "mlp": 44, "vocabulary": 61},
        "scaling": {"rule": "linear"},
        "init": {"std": 0.1},
        "optimiser": {"lr": 0.01},
        "batch": {"sequences": 4, "seq_len": 19},
        "steps": 4,
        "data": {"kind": "random"},
    });
    change(&mut run);
    serde_json::from_value::<RawRun>(run).unwrap().check().unwrap()
}

fn source(config: &RunConfig) -> Box<RandomSource> {
    let (vocabulary, period) = (config.model.vocabulary, config.raw.batch.sequences);
    Box::new(RandomSource { seed: 1, vocabulary, period, position: Default::default() })
}

fn batch(config: &RunConfig) -> Batch {
    source(config).next_batch(config.raw.batch.sequences, config.seq_len).unwrap()
}

fn model(config: &RunConfig) -> Model<Cpu> {
    Model::new(&Cpu::default(), config.model, &config.scaling, 0).unwrap()
}

fn gradients(model: &Model<Cpu>, batch: &Batch) -> (f64, Vec<Vec<f32>>) {
    let (loss, mut grads) = model.loss_and_gradients(batch, 0.01, Gradients::leaky()).unwrap();
    let all = model.weights().iter().map(|w| grads.get_or_alloc_mut(*w).unwrap().to_vec()).collect();
    (loss, all)
}

/// The losses of a few steps and the weights after them.
fn trained(config: RunConfig) -> (Vec<f64>, Vec<Vec<f32>>) {
    let source = source(&config);
    let steps = config.steps;
    let mut trainer = Trainer::new(&Cpu::default(), config, source).unwrap();
    let losses = (0..steps).map(|_| trainer.step().unwrap().metrics.loss).collect();
    (losses, trainer.model.weights().iter().map(|w| w.as_vec()).collect())
}

fn near(found: &[f32], expected: &[f32], tolerance: f32) -> bool {
    let size = expected.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
    found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance * size)
}

#[test]
fn one_loop_equals_the_plain_transformer() {
    let looped = run(|r| r["model"]["loops"] = json!(1));
    let plain = run(|r| {
        r["model"]["loops"] = json!(1);
        r["model"]["sharing"] = json!("deep");
        r["scaling"]["rule"] = json!("none");
    });
    let batch = batch(&looped);
    assert_eq!(gradients(&model(&looped), &batch), gradients(&model(&plain), &batch));
}

/// A deep model whose copies are all equal to the stack of a looped one.
fn unrolled(looped: &Model<Cpu>) -> Model<Cpu> {
    let mut config = looped.config;
    config.sharing = Sharing::Deep;
    let names: Vec<String> = parameters(&looped.config).into_iter().map(|(name, ..)| name).collect();
    Model::from_values::<ModelError>(&Cpu::default(), config, looped.branch_scale, |name, _, _| {
        let shared = match name.strip_prefix("blocks.").and_then(|rest| rest.split_once('.')) {
            None => name.to_owned(),
            Some((block, rest)) => format!("blocks.{}.{rest}", block.parse::<usize>().unwrap() % config.depth),
        };
        let index = names.iter().position(|n| *n == shared).unwrap();
        Ok(looped.weights()[index].as_vec())
    })
    .unwrap()
}

#[test]
fn the_gradient_of_shared_weights_is_the_sum_over_visits() {
    let config = run(|_| ());
    let batch = batch(&config);
    let looped = model(&config);
    let deep = unrolled(&looped);
    let (loss, shared) = gradients(&looped, &batch);
    let (deep_loss, separate) = gradients(&deep, &batch);
    assert_eq!(loss, deep_loss);
    // 1 embedding, 6 weights per block, 1 final norm
    let per_visit = 6 * config.model.depth;
    for i in 0..per_visit {
        let mut sum = vec![0.0; shared[1 + i].len()];
        for visit in 0..config.model.loops {
            sum.iter_mut().zip(&separate[1 + visit * per_visit + i]).for_each(|(s, g)| *s += g);
        }
        // The looped model adds visit by visit inside one buffer: another order, a few roundings.
        assert!(near(&shared[1 + i], &sum, 2e-6), "weight {i} of the stack");
    }
    assert_eq!((&shared[0], shared.last()), (&separate[0], separate.last()));
}

#[test]
fn at_the_reference_depth_and_one_loop_all_rules_give_the_same_bits() {
    let with = |scaling: Value| {
        trained(run(|r| {
            r["model"]["loops"] = json!(1);
            r["scaling"] = scaling.clone();
        }))
    };
    let none = with(json!({"rule": "none"}));
    assert_eq!(none, with(json!({"rule": "sqrt"})));
    assert_eq!(none, with(json!({"rule": "linear"})));
    assert_eq!(none, with(json!({"rule": "power", "alpha": 0.7})));
    assert_eq!(none, with(json!({"rule": "factorised", "reference_depth": 2})));
    assert_ne!(none, with(json!({"rule": "factorised", "reference_depth": 1})));
}

#[test]
fn micro_batches_add_up_to_the_large_batch() {
    let (losses, weights) = trained(run(|_| ()));
    for micro in [1, 2] {
        let (micro_losses, micro_weights) = trained(run(|r| r["batch"]["micro_sequences"] = json!(micro)));
        for (a, b) in losses.iter().zip(&micro_losses) {
            assert!((a / b - 1.0).abs() < 1e-5, "{a} against {b}");
        }
        for (a, b) in weights.iter().zip(&micro_weights) {
            // Adam's first steps turn the rounding of tiny gradients into parts of the step, 0.01.
            assert!(near(a, b, 2e-2));
        }
    }
    // The gradients themselves agree to rounding.
    let config = run(|_| ());
    let model = model(&config);
    let whole = batch(&config);
    let mut source = source(&config);
    let mut grads = Gradients::leaky();
    for _ in 0..4 {
        let part = source.next_batch(1, config.seq_len).unwrap();
        grads = model.loss_and_gradients(&part, 0.01, grads).unwrap().1;
    }
    for (weight, expected) in model.weights().iter().zip(gradients(&model, &whole).1) {
        assert!(near(grads.get_or_alloc_mut(*weight).unwrap(), &expected, 2e-6));
    }
}

#[test]
fn recomputation_changes_no_bit() {
    for sharing in ["looped", "deep"] {
        let with = |recompute: &str| {
            trained(run(|r| {
                r["model"]["sharing"] = json!(sharing);
                r["recompute"] = json!(recompute);
            }))
        };
        assert_eq!(with("none"), with("block"));
        assert_eq!(with("none"), with("visit"));
    }
}

#[test]
fn one_two_and_four_threads_give_the_same_bits() {
    // Large enough for every kernel to split its work.
    let config = || {
        run(|r| {
            r["model"] = json!({"width": 136, "depth": 2, "loops": 2, "heads": 4, "mlp": 260, "vocabulary": 1031});
            r["batch"] = json!({"sequences": 4, "seq_len": 130});
            r["steps"] = json!(2);
            r["loss_chunk_rows"] = json!(300);
        })
    };
    let one = with_threads(Some(1), || trained(config())).unwrap();
    for threads in [2, 4] {
        assert_eq!(one, with_threads(Some(threads), || trained(config())).unwrap(), "{threads} threads");
    }
}

/// CFG-9 says ln V. The head sees a normalised state of RMS 1, so that logits have the variance d * std^2 of the embedding, and
/// the expected loss is ln V + d * std^2 / 2: 0.15 nats above ln V at the paper's width and std.
#[test]
fn the_loss_at_initialisation_is_the_log_of_the_vocabulary_plus_half_the_variance_of_the_logits() {
    let config = run(|r| {
        r["model"] = json!({"width": 768, "depth": 1, "loops": 2, "heads": 12, "mlp": 64, "vocabulary": 5003});
        r["init"]["std"] = json!(0.02);
        r["batch"] = json!({"sequences": 4, "seq_len": 128});
    });
    let losses = model(&config).token_losses(&batch(&config)).unwrap();
    let mean = losses.iter().sum::<f32>() / losses.len() as f32;
    let variance = 768.0 * (0.02 * 0.98658_f32).powi(2); // cutting at 3 sigma leaves 0.98658 of the std
    // The targets' own logits, 512 of them with an std of 0.55, leave 0.024.
    assert!((mean - 5003_f32.ln() - variance / 2.0).abs() < 0.08, "{mean}");
}

#[test]
fn a_run_that_explodes_is_a_result() {
    let config = run(|r| {
        r["optimiser"] = json!({"lr": 1e30, "clip": null});
        r["steps"] = json!(50);
    });
    let source = source(&config);
    let mut trainer = Trainer::new(&Cpu::default(), config, source).unwrap();
    let report = (0..50).map(|_| trainer.step().unwrap()).find(|report| report.diverged).expect("it diverges");
    assert!(!report.metrics.loss.is_finite() || !report.metrics.grad_norm.is_finite());
}

#[test]
fn the_config_in_the_docs_is_valid() {
    let docs = include_str!("../../docs/trainer.md");
    let yaml = docs.split("```yaml").nth(1).unwrap().split("```").next().unwrap();
    let config = serde_yaml::from_str::<RawRun>(yaml).unwrap().check().unwrap();
    assert_eq!((config.micro_batches, config.scaling.branch_scale()), (4, 0.25));
}
