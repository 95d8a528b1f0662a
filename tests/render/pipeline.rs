//! The kinds `plot`, `figures` and `tables` in a pipeline: the real binary in a project of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use repro::render::tidy::Table;

use crate::synthetic::{best, sweep, whole, write};

const PIPELINE: &str = r#"
stages:
  tidy:
    kind: command
    inputs: {source: source}
    outputs: {init-diagnostics: init-diagnostics.parquet, lr-transfer: lr-transfer.parquet}
    with: {run: "cp source/*.parquet ."}
  plots:
    kind: plot
    grid:
      include:
        - {figure: energy, table: init-diagnostics}
        - {figure: lr-transfer, table: lr-transfer}
        - {figure: regret, table: lr-transfer}
    id: ${{ figure }}
    inputs: {table: {from: tidy, output: "${{ table }}"}}
    with: {figure: "${{ figure }}"}
  figures:
    kind: figures
    inputs: {svg: {from: plots, output: svg}, png: {from: plots, output: png}, pdf: {from: plots, output: pdf}, json: {from: plots, output: json}}
  tables:
    kind: tables
    inputs: {runs: {from: tidy, output: lr-transfer}, verdicts: verdicts.json}
    with: {width: 64, heads: 4, mlp: 176, vocabulary: 1024, depth: 2, depths: [4], loops: [1, 4], rates: [1e-3, 2e-3], base_lr: 2e-3,
           hidden_std: 0.0693, steps: 300, warmup_steps: 15, decay_steps: 30, sequences: 8, seq_len: 128, seeds: [0, 1], diverged_above: 6.9}
"#;

fn project(pipeline: &str) -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("repro-").tempdir().unwrap();
    fs::write(dir.path().join("pipeline.yaml"), pipeline).unwrap();
    fs::create_dir(dir.path().join("source")).unwrap();
    for name in ["init-diagnostics", "lr-transfer"] {
        write(whole().get(name), &dir.path().join(format!("source/{name}.parquet")));
    }
    fs::write(dir.path().join("verdicts.json"), r#"{"scale": "toy", "verdicts": [{"id": "E6", "verdict": "PASS"}]}"#).unwrap();
    dir
}

fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_repro"));
    command.args(args).current_dir(dir).env_remove("REPRO_STORE").env_remove("REPRO_PROFILE");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn started(events: &str) -> Vec<String> {
    let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut nodes: Vec<String> = events
        .filter(|event| event["event"] == "node_started")
        .map(|event| event["node"].as_str().unwrap().to_string())
        .collect();
    nodes.sort();
    nodes
}

#[test]
fn figures_lie_flat_and_only_what_changed_is_drawn_again() {
    let dir = project(PIPELINE);
    let (code, out, err) = run(dir.path(), &["run", "all", "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let folder = dir.path().join("out/quick/figures");
    let mut names: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let wanted: Vec<String> = ["energy", "lr-transfer", "regret"]
        .iter()
        .flat_map(|name| ["json", "pdf", "png", "svg"].map(|form| format!("{name}.{form}")))
        .collect();
    assert_eq!(names, wanted);
    assert!(fs::read(folder.join("energy.pdf")).unwrap().starts_with(b"%PDF-"));

    let changed: Table = sweep(&["sqrt", "linear"], 2, 2, best);
    write(&changed, &dir.path().join("source/lr-transfer.parquet"));
    let (code, out, err) = run(dir.path(), &["run", "all", "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(started(&out), ["figures", "plots/lr-transfer", "plots/regret", "tables", "tidy"]);
}

#[test]
fn the_papers_tables_are_computed_from_the_code_that_trains() {
    let dir = project(PIPELINE);
    let (code, out, err) = run(dir.path(), &["run", "tables", "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let read = |name: &str| fs::read_to_string(dir.path().join("out/quick/tables").join(name)).unwrap();
    let models = read("model-config.csv");
    for (depth, parameters) in [(12, "183.5M"), (24, "268.4M"), (48, "438.3M")] {
        assert!(models.contains(&format!("paper,{depth},\"{{1,2,4,8}}\",768,12/12,64,2048,128256,{parameters}\n")), "{models}");
    }
    assert!(models.contains("this profile,2,\"{1,4}\",64,4/4,16,176,1024,"), "{models}");
    let recipe = read("recipe.csv");
    assert!(recipe.contains("Residual branch,× λ N^-1 m_L^-1/2,1/N,0.7071/N,0.5/N,1/N,0.7071/N\n"), "{recipe}");
    assert!(recipe.contains("Looped stack LR,η₀ m_L^-1/2,0.00125,0.0008839,0.000625,0.002,0.001414\n"), "{recipe}");
    let parameters = read("parameterization.csv");
    assert!(parameters.contains("AdamW ϵ for residual blocks,ϵ₀ m_L^-1/2,1e-8,7.07e-9,5e-9,1e-8,7.07e-9\n"), "{parameters}");
    assert!(parameters.contains("Transformer hidden AdamW weight decay,ω₀,0.1,0.1,0.1,0.1,0.1\n"), "{parameters}");
    let values = read("hyperparameters.csv");
    assert!(
        values.contains("LR sweep grid (base),—,\"{5, 7.5, 10, 12.5, 15, 20, 30, 40} × 10^-4\",\"{10, 20} × 10^-4\"\n"),
        "{values}"
    );
    assert!(values.contains("Tokens per step,—,524288 (256 × 2048),1024 (8 × 128)\n"), "{values}");
    for name in ["lr-optima", "min-loss", "lr-sweep", "costs", "verdicts"] {
        assert!(read(&format!("{name}.tex")).contains("\\bottomrule"), "{name}");
        assert!(read(&format!("{name}.md")).contains("| --- |"), "{name}");
    }
    assert!(read("verdicts.md").contains("| E6 |"));
}

#[test]
fn mistakes_in_the_yaml_are_told_with_the_place() {
    let wrong = |old: &str, new: &str| {
        let dir = project(&PIPELINE.replace(old, new));
        let (code, _, err) = run(dir.path(), &["plan", "all"]);
        assert_eq!(code, 2, "{err}");
        err
    };
    let error = wrong("figure: energy,", "figure: enrgy,");
    assert!(error.contains("unknown figure `enrgy`; did you mean `energy`?"), "{error}");
    let error = wrong("output: \"${{ table }}\"", "output: \"${{ tabel }}\"");
    assert!(error.contains("tabel"), "{error}");
    let error = wrong("table: lr-transfer}\n        - {figure: regret", "table: lr-transfr}\n        - {figure: regret");
    assert!(error.contains("stage `tidy` has no output `lr-transfr`; did you mean `lr-transfer`?"), "{error}");
    let error = wrong("    inputs: {table: {from: tidy, output: \"${{ table }}\"}}\n", "");
    assert!(
        error.contains("a figure needs a table to draw; name one under `inputs` (`energy` reads `init-diagnostics`)"),
        "{error}"
    );
    let error = wrong("heads: 4", "heads: 5");
    assert!(error.contains("5"), "{error}");
    let error = wrong("loops: [1, 4]", "loops: []");
    assert!(error.contains("`loops` is empty; give at least one value"), "{error}");
}

#[test]
fn a_table_that_is_not_tidy_is_named() {
    let dir = project(PIPELINE);
    fs::write(dir.path().join("source/lr-transfer.parquet"), "not parquet").unwrap();
    let (code, out, err) = run(dir.path(), &["run", "plots/regret"]);
    assert_ne!(code, 0);
    assert!(format!("{out}{err}").contains("lr-transfer.parquet` is not a Parquet table"), "{out}{err}");
}
