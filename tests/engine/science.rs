//! The measuring stages through the pipeline: rows of runs, tidy tables, probes of trained models, identical runs.

use std::fs;

use crate::sandbox::Sandbox;

const STUDY: &str = r#"
stages:
  corpus: {kind: corpus, with: {bytes: 200000, people: 60}}
  tokenizer: {kind: tokenizer, inputs: {corpus: {from: corpus}}, with: {vocabulary: 300}}
  tokenize: {kind: tokenize, inputs: {corpus: {from: corpus}, tokenizer: {from: tokenizer}}, with: {held_out: 10}}
  sweep:
    kind: train
    grid: {N: [1, 3], rule: [sqrt, linear, power-0.75]}
    id: N${{ N }}-${{ rule }}
    inputs: {tokens: {from: tokenize}}
    with:
      model: {width: 32, depth: 1, loops: "${{ N }}", heads: 2, mlp: 48, vocabulary: 300}
      scaling: {rule: "${{ rule }}"}
      optimiser: {lr: 2e-3}
      batch: {sequences: 4, seq_len: 32}
      steps: 6
      eval: {sequences: 8}
  trained:
    kind: probe
    inputs: {checkpoint: {from: sweep, output: checkpoint, where: {N: 3, rule: linear}}, tokens: {from: tokenize}}
    with: {sequences: 8}
  tidy:
    kind: tidy
    inputs:
      sweep: {from: sweep, output: rows}
      trained: {from: trained}
      trained.twice: {from: trained}
"#;

#[test]
fn rules_that_come_out_as_the_same_run_are_run_once() {
    let sandbox = Sandbox::new(STUDY);
    let started = sandbox.run(&["sweep"]).ok().nodes("node_started");
    let trained: Vec<_> = started.iter().filter(|node| node.starts_with("sweep/")).collect();
    assert_eq!(trained.len(), 4, "one run at one visit, three at three: {trained:?}");
    let rows = |node: &str| fs::read_to_string(sandbox.path(&format!("out/quick/sweep/{node}/rows.jsonl"))).unwrap();
    assert_eq!(rows("N1-sqrt"), rows("N1-power-0.75"));
    assert!(rows("N3-power-0.75").contains(r#""rule":"power-0.75""#));
}

#[test]
fn tidy_tables_hold_every_run_and_both_states_of_a_trained_model() {
    let sandbox = Sandbox::new(STUDY);
    sandbox.run(&["tidy"]).ok();
    let table = |name: &str| fs::read_to_string(sandbox.path(&format!("out/quick/tidy/{name}.csv"))).unwrap();
    let sweep = table("sweep");
    assert!(sweep.starts_with("metric,unit,node,stack,rule,d,L,N,lr,seed,step,value\n"), "{sweep}");
    assert_eq!(sweep.lines().filter(|line| line.starts_with("eval_loss,nats/token,")).count(), 6);
    assert!(sweep.contains("branch_scale,1,N3-sqrt,looped,sqrt,32,1,3,0.002,0,,0.5773502691896258\n"), "{sweep}");
    let trained = table("trained");
    let norms: Vec<&str> = trained.lines().filter(|line| line.starts_with("norm,")).collect();
    assert_eq!(norms.len(), 2 * 2 * 4, "two inputs, two states, three visits and the embedding: {norms:?}");
    assert_eq!(trained.lines().filter(|line| line.starts_with("cosine,")).count(), 2 * 2 * 3);
    // The same numbers from the probes of the trainer itself.
    assert!(norms.iter().any(|line| line.contains(",0,0,")) && norms.iter().any(|line| line.contains(",6,3,")), "{norms:?}");
}
