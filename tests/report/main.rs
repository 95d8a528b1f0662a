//! The report, the live page, the comparison and `status`, as a user meets them: the real binary in a project of its own.

#![allow(clippy::unwrap_used)]

mod diff;
mod page;
#[path = "../engine/sandbox.rs"]
#[allow(dead_code)]
mod sandbox;
mod status;
mod ui;

use sandbox::Sandbox;
use serde_json::{Value, json};

/// A verdict as `verify` writes it.
fn verdict(id: &str, ruling: &str, measured: &str) -> Value {
    json!({"id": id, "group": "empirical", "claim": format!("claim of {id}"), "verdict": ruling, "measured": null,
           "measured_text": measured, "interval": [0.1, 0.25], "unit": "1", "paper": "about 0.2", "scale": "d 64", "why": "it is so",
           "resolve": null, "parts": [], "tables": ["sweep"], "artefacts": [], "figures": ["energy"]})
}

fn verdicts(list: &[Value]) -> String {
    json!({"scale": "d 64, 3 seeds", "verdicts": list}).to_string()
}

const SVG: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle class="mark" data-tip="N = 1: 2.5" r="1"/></svg>"#;

/// A sweep, a judge who always says the same, and the report about them.
fn project() -> Sandbox {
    Sandbox::new(
        "vars: {points: [1, 2, 3], word: quiet}
stages:
  sweep:
    kind: command
    grid: {n: \"${{ points }}\"}
    outputs: {text: x.txt}
    with: {run: \"echo ${{ n }} ${{ word }} > x.txt\"}
  verify:
    kind: command
    inputs: {runs: {from: sweep}, given: given/verdicts.json}
    outputs: {verdicts: verdicts.json}
    with: {run: \"cp given/verdicts.json verdicts.json\"}
  report:
    kind: report
    inputs: {verdicts: {from: verify}, figures: given/figures, tables: given/tables, deviations: deviations.md}
    with: {title: A paper}
",
    )
    .with("given/verdicts.json", &verdicts(&[verdict("E1", "PASS", "0.2"), verdict("E2", "INCONCLUSIVE", "0.15")]))
    .with("given/figures/energy.svg", SVG)
    .with("given/figures/energy.json", r#"{"name": "energy", "title": "Energy", "caption": "It grows.", "claims": ["E1"], "tables": ["sweep"], "alt": "two curves"}"#)
    .with("given/tables/optima.md", "| rule | lr |\n|---|---|\n| 1/N | 2e-3 |\n")
    .with("deviations.md", "# Deviations\n\nNone **so far**.\n")
}

const PAGE: &str = "out/quick/report/index.html";

/// The facts in a completed page.
fn facts(page: &str) -> Value {
    let start = page.rfind("id=\"facts\">").expect("the page has a place for facts") + 11;
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

fn states(facts: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    facts["nodes"].as_array().unwrap().iter().map(|node| (text(&node["id"]), text(&node["s"]))).collect()
}
