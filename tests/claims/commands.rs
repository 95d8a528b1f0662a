//! `repro verify` and the `verify` stage, run as a user runs them.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const PIPELINE: &str = r#"
vars: {slope: 1}
stages:
  runs:
    kind: command
    grid: {seed: [0, 1, 2]}
    outputs: {rows: rows.jsonl}
    with:
      run: |
        for N in 1 2 4 8; do
          for try in 1; do
            echo "{\"metric\":\"R\",\"unit\":\"1\",\"N\":$N,\"seed\":${{ seed }},\"value\":$(awk "BEGIN {print $N ^ ${{ slope }} * (1 + 0.001 * ${{ seed }})}")}"
          done
        done > rows.jsonl
  tidy:
    kind: tidy
    inputs: {study: {from: runs}}
  verify:
    kind: verify
    inputs: {study: {from: tidy, output: study}, claims: claims.yaml}
"#;

const CLAIMS: &str = "\
tables: {study: [R], another: [x]}
claims:
- id: grows
  claim: R grows like N
  paper: slope 1
  table: study
  checks:
    - {name: slope, measure: slope(log R ~ log N), expect: 1 +- 0.1}
- id: bounded
  claim: R is bounded whatever N is, which is a long sentence that has to be wrapped before it leaves the page on its right
  table: study
  checks:
    - {measure: spread(R), expect: at most 2}
- id: elsewhere
  claim: something about a table this profile does not make
  table: another
  checks:
    - {measure: mean(x), expect: at most 2}
";

struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Sandbox {
        let sandbox = Sandbox(tempfile::tempdir().unwrap());
        sandbox.write("pipeline.yaml", PIPELINE);
        sandbox.write("claims.yaml", CLAIMS);
        sandbox
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn repro(&self, args: &[&str]) -> Output {
        repro(self.0.path(), args)
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.repro(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn repro(at: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_repro"));
    command.args(args).current_dir(at).env_remove("REPRO_STORE").env_remove("REPRO_PROFILE").env_remove("COLUMNS");
    command.output().unwrap()
}

fn verdicts(json: &str) -> Vec<(String, String)> {
    let list: Vec<Value> = serde_json::from_str(json).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    list.iter().map(|one| (text(&one["id"]), text(&one["verdict"]))).collect()
}

#[test]
fn claims_are_judged_from_the_store_and_the_stage_says_the_same() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["run", "all"]);
    let json = sandbox.ok(&["verify", "--json"]);
    let expected = [("grows", "PASS"), ("bounded", "FAIL"), ("elsewhere", "INCONCLUSIVE")];
    assert_eq!(verdicts(&json), expected.map(|(id, verdict)| (id.to_string(), verdict.to_string())));
    let list: Vec<Value> = serde_json::from_str(&json).unwrap();
    for field in ["id", "verdict", "measured", "interval", "paper", "scale", "why"] {
        assert!(list.iter().all(|one| one.get(field).is_some()), "{field}");
    }
    let made: Value =
        serde_json::from_str(&std::fs::read_to_string(sandbox.0.path().join("out/quick/verify/verdicts.json")).unwrap()).unwrap();
    assert_eq!(made["verdicts"], Value::Array(list));
    let page = std::fs::read_to_string(sandbox.0.path().join("out/quick/verify/verdicts.md")).unwrap();
    assert!(page.contains("1 PASS, 1 FAIL, 1 INCONCLUSIVE") && page.contains("| grows | R grows like N | slope 1 |"), "{page}");
}

#[test]
fn strict_fails_on_a_failed_claim_only_when_asked() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["run", "all"]);
    assert_eq!(sandbox.repro(&["verify", "--strict"]).status.code(), Some(1));
    assert_eq!(sandbox.repro(&["verify", "--strict", "grows"]).status.code(), Some(0));
    assert_eq!(sandbox.repro(&["verify"]).status.code(), Some(0));
}

#[test]
fn people_get_a_page_of_eighty_columns_without_colour() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["run", "all"]);
    let page = sandbox.ok(&["verify"]);
    let expected = "\
Your own
  grows      PASS          R grows like N
                           measured 1.000; paper: slope 1
  bounded    FAIL          R is bounded whatever N is, which is a long sentence
                           that has to be wrapped before it leaves the page on
                           its right
                           measured 8
                           8: `at most 2` does not hold
  elsewhere  INCONCLUSIVE  something about a table this profile does not make
                           table `another` is not there; its stage was skipped
                           or has not run

1 PASS, 1 FAIL, 1 INCONCLUSIVE
";
    assert_eq!(page, expected);
    assert!(page.lines().all(|line| line.chars().count() <= 80) && !page.contains('\x1b'));
}

#[test]
fn one_claim_is_shown_with_all_it_rests_on() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["run", "all"]);
    let page = sandbox.ok(&["verify", "grows"]);
    for part in [
        "grows  PASS",
        "  paper     slope 1",
        "  read      study: 12 rows, ",
        "    measure   slope(log R ~ log N)",
        "    expect    1 +- 0.1",
        "jackknife over seeds, 3 seeds, 12 rows",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
}

#[test]
fn before_anything_ran_all_is_open_and_what_to_run_is_told() {
    let sandbox = Sandbox::new();
    let output = sandbox.repro(&["verify", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(verdicts(&String::from_utf8(output.stdout).unwrap()).iter().all(|(_, verdict)| verdict == "INCONCLUSIVE"));
    let expected = "judged what there is: not up to date in profile quick are runs (3 of 3 nodes), tidy; `repro run verify` makes the rest\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
}

#[test]
fn what_is_done_is_judged_while_the_rest_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["run", "runs/seed0", "runs/seed1"]);
    let output = sandbox.repro(&["verify", "--json", "grows"]);
    let list: Vec<Value> = serde_json::from_str(&String::from_utf8(output.stdout).unwrap()).unwrap();
    assert_eq!((list[0]["verdict"].as_str(), list[0]["parts"][0]["seeds"].as_u64()), (Some("PASS"), Some(2)));
    assert!(String::from_utf8(output.stderr).unwrap().contains("runs (1 of 3 nodes), tidy"));
}

#[test]
fn a_mistake_in_the_claims_ends_with_code_two_and_its_place() {
    let sandbox = Sandbox::new();
    sandbox.write("claims.yaml", &CLAIMS.replace("log R ~", "log RR ~"));
    let output = sandbox.repro(&["verify"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: claims.yaml:8:40: unknown metric `RR` of table `study`; did you mean `R`?\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
}

#[test]
fn an_unknown_claim_or_a_pipeline_without_verify_is_told() {
    let sandbox = Sandbox::new();
    let refused = |args: &[&str]| {
        let output = sandbox.repro(args);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(refused(&["verify", "grow"]), "error: there is no claim `grow` in claims.yaml; did you mean `grows`?\n");
    std::fs::remove_file(sandbox.0.path().join("claims.yaml")).unwrap();
    assert_eq!(refused(&["verify"]), "error: claims.yaml: cannot be read: No such file or directory (os error 2)\n");
    sandbox.write("pipeline.yaml", &PIPELINE[..PIPELINE.find("  verify:").unwrap()]);
    assert_eq!(refused(&["verify"]), "error: profile `quick` has no stage of kind `verify`; add one, as docs/claims.md shows\n");
}

#[test]
fn a_verify_stage_without_claims_is_refused() {
    let sandbox = Sandbox::new();
    let refused = || {
        let output = sandbox.repro(&["plan"]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    sandbox.write("pipeline.yaml", &PIPELINE.replace(", claims: claims.yaml", ""));
    assert!(
        refused().ends_with(": an input `claims` is needed, or an input `stages` with `claims: FILE` naming a file in it\n"),
        "{}",
        refused()
    );
    sandbox.write("pipeline.yaml", &format!("{PIPELINE}    with: {{claims: x.yaml}}\n"));
    assert!(refused().ends_with(": the claims file is the input `claims`; leave this out, or that\n"), "{}", refused());
}

/// The configuration claims against what this repository's own `paper` profile would train.
#[test]
fn the_paper_profile_is_configured_as_the_paper_says() {
    let store = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ids: Vec<String> = (1..=9).map(|at| format!("CFG-{at}")).chain(["E15".into(), "E16".into()]).collect();
    let mut args = vec!["verify", "--json", "--store", store.path().to_str().unwrap()];
    args.extend(ids.iter().map(String::as_str));
    let output = repro(root, &args);
    let found = verdicts(&String::from_utf8(output.stdout).unwrap());
    let expected: Vec<(String, String)> =
        ids.iter().map(|id| (id.clone(), if id == "CFG-9" { "FAIL" } else { "PASS" }.to_string())).collect();
    assert_eq!(found, expected);
}
