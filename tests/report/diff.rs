//! `repro diff`: profiles, earlier runs and checkouts, as text, JSON and a page.

use crate::sandbox::Sandbox;
use crate::{SVG, verdict, verdicts};

const HEADER: &str = "metric,unit,node,rule,N,lr,seed,value\n";

fn checkout(rulings: [&str; 2], measured: &str, rows: &str, svg: &str) -> Sandbox {
    Sandbox::new("profiles: {quick: {}, large: {}}\nstages:\n  a: {kind: command, outputs: {x: x}, with: {run: 'echo > x'}}\n")
        .with(
            "out/quick/verify/verdicts.json",
            &verdicts(&[verdict("E1", rulings[0], "0.2"), verdict("E6", rulings[1], measured)]),
        )
        .with("out/quick/tidy/lr-transfer.csv", &format!("{HEADER}{rows}"))
        .with("out/quick/figures/energy.svg", svg)
}

fn pair() -> (Sandbox, Sandbox) {
    let left = checkout(
        ["PASS", "INCONCLUSIVE"],
        "slope 0.11",
        "eval_loss,nats/token,lr-transfer/a,linear,8,0.002,0,2.5\neval_loss,nats/token,lr-transfer/a,linear,8,0.002,1,2.5\neval_loss,nats/token,lr-transfer/a,linear,4,0.002,1,NaN\n",
        SVG,
    );
    let right = checkout(
        ["PASS", "PASS"],
        "slope 0.02",
        "eval_loss,nats/token,lr-transfer/b,linear,8,0.002,0,2.5\neval_loss,nats/token,lr-transfer/b,linear,8,0.002,1,2.25\neval_loss,nats/token,lr-transfer/b,linear,4,0.002,1,NaN\neval_loss,nats/token,lr-transfer/b,linear,2,0.002,1,2\n",
        &SVG.replace("2.5", "2.6"),
    );
    (left, right)
}

#[test]
fn two_checkouts_side_by_side_in_eighty_columns() {
    let (left, right) = pair();
    std::fs::rename(right.path("out/quick"), left.path("out/large")).unwrap();
    let text = left.repro(&["diff", "quick", "large"]).ok().out;
    assert_eq!(
        text,
        "a  quick  d 64, 3 seeds
b  large  d 64, 3 seeds

verdicts 1 of 2 differ, 0 more measured otherwise
    claim   a              b              measured in a      measured in b
  ≠ E6      ? INCONCLUSIVE ✓ PASS         slope 0.11         slope 0.02

metrics 1 of 3 shared numbers differ; 0 only in a, 1 only in b
    table            metric           both differ only a only b  largest
    lr-transfer      eval_loss           3      1      ·      1  -10%
      2.5 -> 2.25 at rule=linear N=8 lr=0.002 seed=1

figures 1 of 1 differ
    differ    energy
"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    let all = left.repro(&["diff", "quick", "large", "--all"]).ok().out;
    assert!(all.contains("\n    E1      ✓ PASS         ✓ PASS         0.2                0.2\n"), "{all}");
}

#[test]
fn the_same_on_both_sides_is_said_in_a_few_lines() {
    let (left, _) = pair();
    assert_eq!(
        left.repro(&["diff", "quick", "out/quick"]).ok().out,
        "a  quick  d 64, 3 seeds
b  out/quick  d 64, 3 seeds

verdicts 0 of 2 differ, 0 more measured otherwise

metrics 0 of 3 shared numbers differ; 0 only in a, 0 only in b

figures 0 of 1 differ
"
    );
}

#[test]
fn programs_get_an_object_and_people_a_page() {
    let (left, right) = pair();
    let other = right.root().display().to_string();
    let object = left.repro(&["diff", "quick", &other, "--json"]).ok().json();
    assert_eq!(
        (&object["verdicts"][1]["left"]["verdict"], &object["verdicts"][1]["right"]["verdict"]),
        (&"INCONCLUSIVE".into(), &"PASS".into())
    );
    assert_eq!((&object["metrics"][0]["differing"], &object["metrics"][0]["largest"]["right"]), (&1.into(), &2.25.into()));
    assert_eq!(object["figures"][0]["likeness"], "differs");
    let text = left.repro(&["diff", "quick", &format!("{other}:quick"), "--html", "d.html"]).ok().out;
    assert!(text.ends_with("\nd.html\n"), "{text}");
    let page = left.read("d.html");
    assert!(page.contains("N = 1: 2.5") && page.contains("N = 1: 2.6") && page.contains("slope 0.11"));
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));
}

#[test]
fn an_earlier_run_of_a_profile_is_found_in_the_store() {
    let sandbox = Sandbox::new(
        "stages:
  verify: {kind: command, inputs: {v: v.json}, outputs: {verdicts: verdicts.json}, with: {run: 'cp v.json verdicts.json'}}
  tidy: {kind: command, inputs: {t: t.csv}, outputs: {t: t.csv}, with: {run: 'cat t.csv > u; rm t.csv; mv u t.csv'}}
",
    )
    .with("v.json", &verdicts(&[verdict("E1", "FAIL", "0.9")]))
    .with("t.csv", "metric,unit,value\nR,1,1\n");
    sandbox.edit(
        "pipeline.yaml",
        "outputs: {t: t.csv}, with: {run: 'cat t.csv > u; rm t.csv; mv u t.csv'}",
        "outputs: {t: u.csv}, with: {run: 'cp t.csv u.csv'}",
    );
    sandbox.run(&[]).ok();
    assert_eq!(
        sandbox.repro(&["diff", "quick~1", "quick"]).exits(2).err,
        "error: `quick~1` has nothing to compare: no verdicts, tidy tables or figures in the store from that time\n"
    );
    sandbox.write("v.json", &verdicts(&[verdict("E1", "PASS", "0.2")]));
    sandbox.write("t.csv", "metric,unit,value\nR,1,2\n");
    sandbox.run(&[]).ok();
    let text = sandbox.repro(&["diff", "quick~1", "quick"]).ok().out;
    assert!(text.contains("  ≠ E1      ✗ FAIL         ✓ PASS         0.9                0.2\n"), "{text}");
    assert!(
        text.contains("    u                R                   1      1      ·      ·  +100%\n      1 -> 2 at \n"),
        "{text}"
    );
    assert_eq!(
        sandbox.repro(&["diff", "quick~3", "quick"]).exits(2).err,
        "error: `quick~3` goes too far back: only 2 runs of profile `quick` are on record\n"
    );
}

#[test]
fn mistakes_are_answered_in_words() {
    let (left, _) = pair();
    let said = |args: &[&str]| left.repro(&[&["diff"], args].concat()).exits(2).err;
    assert_eq!(
        said(&["quick", "larg"]),
        "error: `larg` is neither a folder nor a profile of this project; did you mean `large`?\n"
    );
    assert_eq!(
        said(&["quick", "large"]),
        "error: `large` has nothing to compare: no verdicts, tidy tables or figures below `out/large`; `repro run --profile large` makes them\n"
    );
    assert_eq!(said(&["quick~x", "quick"]), "error: `quick~x`: after `~` comes how many runs to go back, such as `quick~1`\n");
    left.write("out/large/tidy/t.csv", "a,b\n1,2\n");
    assert_eq!(said(&["quick", "large"]), "error: table `t.csv` of `large` is not tidy: it has no column `metric`\n");
}
