//! A comparison for the terminal, at 80 columns.

use crate::cli::style::{Style, Tone, fit};
use crate::render::report::compare::{Difference, Likeness, MetricRow, VerdictPair};
use crate::render::report::{Ruling, Verdict, digits};

pub fn of(difference: &Difference, all: bool, style: Style) -> String {
    let mut out = format!(
        "a  {}\nb  {}\n",
        named(&difference.left, &difference.left_scale),
        named(&difference.right, &difference.right_scale)
    );
    verdicts(difference, all, style, &mut out);
    metrics(difference, all, style, &mut out);
    figures(difference, style, &mut out);
    out
}

fn named(label: &str, scale: &str) -> String {
    fit(&if scale.is_empty() { label.to_string() } else { format!("{label}  {scale}") }, 77)
}

fn verdicts(difference: &Difference, all: bool, style: Style, out: &mut String) {
    let pairs = &difference.verdicts;
    let ruled = pairs.iter().filter(|pair| pair.ruling_differs()).count();
    let moved = pairs.iter().filter(|pair| !pair.ruling_differs() && pair.differs()).count();
    if pairs.is_empty() {
        out.push_str(&format!("\n{} none on either side\n", style.paint(Tone::Strong, "verdicts")));
        return;
    }
    let heading = style.paint(Tone::Strong, "verdicts");
    out.push_str(&format!("\n{heading} {ruled} of {} differ, {moved} more measured otherwise\n", pairs.len()));
    if !pairs.iter().any(|pair| all || pair.differs()) {
        return;
    }
    let head = format!("    {:<7} {:<14} {:<14} {:<18} {}", "claim", "a", "b", "measured in a", "measured in b");
    out.push_str(&format!("{}\n", style.paint(Tone::Quiet, &head)));
    for pair in pairs.iter().filter(|pair| all || pair.differs()) {
        let mark = if pair.ruling_differs() {
            "≠"
        } else if pair.differs() {
            "~"
        } else {
            " "
        };
        let ruling = |side: &Option<Verdict>| {
            side.as_ref().map_or(style.paint(Tone::Quiet, &format!("{:<14}", "-")), |verdict| ruled_as(verdict.verdict, style))
        };
        let ours = |side: &Option<Verdict>| side.as_ref().map(Verdict::ours).unwrap_or_default();
        let line = format!(
            "  {mark} {:<7} {} {} {:<18} {}",
            fit(pair.id(), 7),
            ruling(&pair.left),
            ruling(&pair.right),
            fit(&ours(&pair.left), 18),
            fit(&ours(&pair.right), 18)
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn ruled_as(ruling: Ruling, style: Style) -> String {
    let tone = match ruling {
        Ruling::Pass => Tone::Good,
        Ruling::Fail => Tone::Bad,
        Ruling::Inconclusive => Tone::Open,
    };
    style.paint(tone, &format!("{:<14}", format!("{} {}", ruling.sign(), ruling.word())))
}

fn metrics(difference: &Difference, all: bool, style: Style, out: &mut String) {
    let rows = &difference.metrics;
    let heading = style.paint(Tone::Strong, "metrics");
    if rows.is_empty() {
        out.push_str(&format!("\n{heading} no tidy tables on either side\n"));
        return;
    }
    let sum = |of: fn(&MetricRow) -> usize| rows.iter().map(of).sum::<usize>();
    out.push_str(&format!(
        "\n{heading} {} of {} shared numbers differ; {} only in a, {} only in b\n",
        sum(|row| row.differing),
        sum(|row| row.both),
        sum(|row| row.only_left),
        sum(|row| row.only_right)
    ));
    let shown: Vec<&MetricRow> = rows.iter().filter(|row| all || row.differs()).collect();
    if shown.is_empty() {
        return;
    }
    let head = format!(
        "    {:<16} {:<14} {:>6} {:>6} {:>6} {:>6}  {}",
        "table", "metric", "both", "differ", "only a", "only b", "largest"
    );
    out.push_str(&format!("{}\n", style.paint(Tone::Quiet, &head)));
    for row in shown {
        let cell = |count: usize| if count == 0 { "·".to_string() } else { count.to_string() };
        let change = row.largest.as_ref().map(|largest| relative(largest.left, largest.right)).unwrap_or_default();
        let line = format!(
            "    {:<16} {:<14} {:>6} {:>6} {:>6} {:>6}  {change}",
            fit(&row.table, 16),
            fit(&row.metric, 14),
            cell(row.both),
            cell(row.differing),
            cell(row.only_left),
            cell(row.only_right)
        );
        out.push_str(line.trim_end());
        out.push('\n');
        if let Some(largest) = &row.largest {
            let detail = format!("      {} -> {} at {}", digits(largest.left), digits(largest.right), largest.at);
            out.push_str(&format!("{}\n", style.paint(Tone::Quiet, &fit(&detail, 80))));
        }
    }
}

/// `+12%`, `x3.1`, or the two where a ratio says nothing.
fn relative(left: f64, right: f64) -> String {
    let ratio = right / left;
    if !left.is_finite() || !right.is_finite() || left == 0.0 {
        return format!("{} -> {}", digits(left), digits(right));
    }
    match ratio {
        ratio if ratio > 10.0 => format!("x{}", digits(ratio)),
        ratio => {
            let percent = 100.0 * (ratio - 1.0);
            format!("{}{}%", if percent > 0.0 { "+" } else { "" }, digits((percent * 100.0).round() / 100.0))
        }
    }
}

fn figures(difference: &Difference, style: Style, out: &mut String) {
    let heading = style.paint(Tone::Strong, "figures");
    let named = |likeness: Likeness| -> Vec<&str> {
        let chosen = difference.figures.iter().filter(|pair| pair.likeness == likeness);
        chosen.map(|pair| pair.name.as_str()).collect()
    };
    if difference.figures.is_empty() {
        out.push_str(&format!("\n{heading} none on either side\n"));
        return;
    }
    out.push_str(&format!("\n{heading} {} of {} differ\n", named(Likeness::Differs).len(), difference.figures.len()));
    for (likeness, word) in [(Likeness::Differs, "differ"), (Likeness::OnlyLeft, "only in a"), (Likeness::OnlyRight, "only in b")]
    {
        let names = named(likeness);
        if names.is_empty() {
            continue;
        }
        for (nth, line) in crate::cli::style::wrap(&names.join(", "), 64).into_iter().enumerate() {
            out.push_str(&format!("    {:<10}{line}\n", if nth == 0 { word } else { "" }));
        }
    }
}

impl VerdictPair {
    fn id(&self) -> &str {
        self.either().map(|verdict| verdict.id.as_str()).unwrap_or_default()
    }
}
