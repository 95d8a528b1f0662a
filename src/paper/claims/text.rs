//! Verdicts as people read them: numbers, and the Markdown page.

use super::{Group, Judgement, Verdict};
use crate::paper::stats::Interval;

/// A number with as many digits as are of interest.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match () {
        () if value.is_infinite() => if value > 0.0 { "unbounded" } else { "-unbounded" }.to_string(),
        () if value == value.trunc() && size < 1e12 => format!("{value:.0}"),
        () if !(1e-3..1e5).contains(&size) => format!("{value:.2e}"),
        () if size < 0.1 => format!("{value:.4}"),
        () if size < 10.0 => format!("{value:.3}"),
        () if size < 1000.0 => format!("{value:.2}"),
        () => format!("{value:.1}"),
    }
}

/// `0.97 [0.95, 0.99]`
pub fn interval_text(value: f64, interval: Option<Interval>) -> String {
    match interval {
        Some((low, high)) if low != high => format!("{} [{}, {}]", number(value), number(low), number(high)),
        _ => number(value),
    }
}

/// `3.1e15 FLOP`
pub fn flops(count: f64) -> String {
    format!("{count:.1e} FLOP")
}

/// `31 PASS, 2 FAIL, 5 INCONCLUSIVE`
pub fn summary(judgements: &[Judgement]) -> String {
    let count = |verdict: Verdict| judgements.iter().filter(|judgement| judgement.verdict == verdict).count();
    let of = |verdict: Verdict| format!("{} {verdict}", count(verdict));
    [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive].map(of).join(", ")
}

/// What a group is called above its claims.
pub fn heading(group: Group) -> &'static str {
    match group {
        Group::Configuration => "Configuration",
        Group::Empirical => "Experiments",
        Group::Theory => "Theory",
        Group::Own => "Your own",
    }
}

/// All verdicts as a Markdown page: one table per group, reasons below.
pub fn markdown(scale: &str, judgements: &[Judgement]) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out = format!("# Verdicts\n\n{}. {scale}.\n", summary(judgements));
    for group in Group::ALL {
        let of_group: Vec<&Judgement> = judgements.iter().filter(|judgement| judgement.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {}\n\n| id | claim | paper | measured | verdict |\n|---|---|---|---|---|\n", heading(group)));
        for judgement in &of_group {
            let unit = if judgement.unit == "1" || judgement.measured.is_none() {
                String::new()
            } else {
                format!(" {}", judgement.unit)
            };
            out.push_str(&format!(
                "| {} | {} | {} | {}{unit} | **{}** |\n",
                judgement.id,
                cell(&judgement.claim),
                cell(&judgement.paper),
                cell(&judgement.measured_text),
                judgement.verdict
            ));
        }
        out.push('\n');
        for judgement in of_group.iter().filter(|judgement| judgement.verdict != Verdict::Pass) {
            let resolve = judgement.resolve.as_ref().map(|text| format!(" To resolve it: {text}.")).unwrap_or_default();
            out.push_str(&format!(
                "- **{}** {}: {}.{resolve} ({})\n",
                judgement.id, judgement.verdict, judgement.why, judgement.scale
            ));
        }
    }
    out
}
