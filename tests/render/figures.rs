//! What each figure must show.

use repro::render::chart::export::Drawing;
use repro::render::figure::{FIGURES, Files, Note, Settings, find};
use repro::render::tidy::{Table, Tables};

use crate::synthetic::{LOOPS, best, diagnostics, sweep, whole};

fn draw(name: &str, tables: &Tables) -> Files {
    find(name).unwrap().files(tables, &Settings::default()).unwrap()
}

fn only(name: &str, table: Table) -> Tables {
    Tables([(name.to_string(), table)].into())
}

/// The tips of all marks.
fn tips(svg: &str) -> Vec<String> {
    svg.split("data-tip=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_string()).collect()
}

#[test]
fn every_figure_comes_in_every_form_and_twice_the_same() {
    let tables = whole();
    for figure in &FIGURES {
        let (first, second) = (draw(figure.name, &tables), draw(figure.name, &tables));
        assert!(first.svg.starts_with("<svg ") && first.svg.contains("role=\"img\""), "{}", figure.name);
        assert!(first.png.starts_with(b"\x89PNG") && first.pdf.starts_with(b"%PDF-"), "{}", figure.name);
        let note: Note = serde_json::from_str(&first.json).unwrap();
        assert!(note.name == figure.name && !note.caption.is_empty() && !note.alt.is_empty());
        assert!(first.svg.contains(&format!("aria-label=\"{}\"", note.alt)), "{}", figure.name);
        assert_eq!((first.svg, first.json), (second.svg, second.json), "{}", figure.name);
        assert!(first.png == second.png && first.pdf == second.pdf, "{} differs from itself", figure.name);
    }
}

#[test]
fn every_mark_tells_its_value() {
    for figure in &FIGURES {
        let svg = draw(figure.name, &whole()).svg;
        let marks = svg.matches("class=\"mark\"").count();
        assert!(marks > 4, "{} has {marks} marks", figure.name);
        assert_eq!(marks, svg.matches("data-tip=").count());
        assert_eq!(marks, svg.matches("<title>").count());
        assert!(tips(&svg).iter().all(|tip| !tip.is_empty()));
    }
}

#[test]
fn nothing_is_drawn_outside_the_page() {
    for figure in &FIGURES {
        for tables in [whole(), Tables::default()] {
            let svg = draw(figure.name, &tables).svg;
            let drawing = Drawing::read(figure.name, &svg).unwrap();
            let ([left, top, right, bottom], (width, height)) = (drawing.extent(), drawing.size());
            let inside = left >= -0.5 && top >= -0.5 && right <= width + 0.5 && bottom <= height + 0.5;
            assert!(inside, "{}: {left} {top} {right} {bottom} on {width} x {height}", figure.name);
        }
    }
}

#[test]
fn stars_stand_at_the_lowest_loss_of_every_curve() {
    let svg = draw("lr-transfer", &whole()).svg;
    let stars: Vec<String> = tips(&svg).into_iter().filter(|tip| tip.starts_with("optimum")).collect();
    assert_eq!(stars.len(), 4 * LOOPS.len());
    assert_eq!(stars.iter().filter(|tip| tip.contains("η₀ = 4e-3")).count(), 3 * LOOPS.len() + 1);
    for (n, rate) in [(4, "2e-3"), (8, "1e-3")] {
        assert!(stars.iter().any(|tip| tip.starts_with(&format!("optimum for N = {n}: η₀ = {rate}"))), "{stars:?}");
    }
}

#[test]
fn a_diverged_run_is_a_cross_and_breaks_the_line() {
    let svg = draw("lr-transfer", &whole()).svg;
    let crosses: Vec<String> = tips(&svg).into_iter().filter(|tip| tip.contains("diverged")).collect();
    assert_eq!(crosses.len(), 4);
    assert!(crosses.contains(&"N = 8, η₀ = 1.6e-2: 3 of 3 runs diverged".to_string()), "{crosses:?}");
    assert!(!tips(&svg).iter().any(|tip| tip.starts_with("N = 8, η₀ = 1.6e-2: loss")));
}

/// What is written at the ticks of the vertical axes (`end`) or the horizontal ones (`middle`).
fn tick_labels(svg: &str, anchor: &str) -> Vec<String> {
    let ticks =
        svg.lines().filter(|line| line.contains(&format!(" font-size=\"9.5\" fill=\"#222222\" text-anchor=\"{anchor}\">")));
    ticks.map(|line| line.split_once('>').unwrap().1.trim_end_matches("</text>").to_string()).collect()
}

#[test]
fn steps_and_counts_are_marked_at_whole_numbers_only() {
    let mut tables = whole();
    tables.0.insert("init-diagnostics".into(), diagnostics(1, 3));
    tables.0.get_mut("post-training").unwrap().rows.retain(|row| row.n <= Some(4));
    for name in ["lr-transfer", "depth-transfer"] {
        let rows = &mut tables.0.get_mut(name).unwrap().rows;
        rows.iter_mut().for_each(|row| row.step = row.step.map(|step| step / 10));
        rows.retain(|row| row.step <= Some(5));
    }
    for (figure, anchor, wanted) in [
        ("hidden-norm", "middle", &["0", "1", "2", "3", "4"][..]),
        ("loss-curves", "middle", &["1", "2", "3", "4", "5"][..]),
        ("cosine-deep", "end", &["0", "1", "2"][..]),
        ("cosine-looped", "end", &["0", "1", "2"][..]),
    ] {
        let labels = tick_labels(&draw(figure, &tables).svg, anchor);
        assert!(labels.ends_with(&wanted.iter().map(|label| label.to_string()).collect::<Vec<_>>()), "{figure}: {labels:?}");
        assert!(labels.iter().all(|label| label.parse::<u64>().is_ok()), "{figure}: {labels:?}");
    }
}

#[test]
fn captions_carry_the_papers_claim_and_our_numbers() {
    let caption = |name: &str| serde_json::from_str::<Note>(&draw(name, &whole()).json).unwrap().caption;
    let energy = caption("energy");
    assert!(energy.starts_with("The paper: ") && energy.contains("looped none 1.00 at first"), "{energy}");
    assert!(energy.contains("deep sqrt 0.00 at first") && energy.contains("looped linear 0.00"), "{energy}");
    assert!(caption("cosine-looped").contains("range [0.700, 0.980]"), "{}", caption("cosine-looped"));
    assert!(caption("hidden-norm").contains("1.00 at L = 2 and 1.00 at L = 4"), "{}", caption("hidden-norm"));
    assert!(caption("optimum").contains("sqrt at L = 2: −0.5"), "{}", caption("optimum"));
    assert!(caption("optimum").contains("linear at L = 2: 0.00"), "{}", caption("optimum"));
    assert!(caption("regret").contains("largest regret without the 1/√N rule is 0.000 nats"), "{}", caption("regret"));
}

#[test]
fn a_figure_without_its_table_says_so_in_words() {
    for figure in &FIGURES {
        let files = draw(figure.name, &Tables::default());
        let words = files.svg.contains("this profile") || files.svg.contains("profile.");
        assert!(words, "{} says nothing: {}", figure.name, files.svg);
    }
}

#[test]
fn one_seed_one_loop_count_and_no_numbers_at_all_still_draw() {
    let mut one_loop = sweep(&["linear"], 2, 1, best);
    one_loop.rows.retain(|row| row.n == Some(1));
    let mut all_diverged = sweep(&["sqrt", "linear"], 2, 2, best);
    all_diverged.rows.iter_mut().for_each(|row| row.value = if row.is("diverged") { 1.0 } else { f64::NAN });
    let mut exploded = diagnostics(1, 4);
    exploded.rows.iter_mut().filter(|row| row.n.is_some_and(|n| n > 4)).for_each(|row| row.value = f64::INFINITY);
    let mut one_copy = diagnostics(1, 1);
    one_copy.rows.retain(|row| row.n == Some(1));
    for table in [one_loop, all_diverged] {
        for name in ["lr-transfer", "optimum", "regret", "loss-curves"] {
            draw(name, &only("lr-transfer", table.clone()));
        }
    }
    for table in [exploded, one_copy] {
        for name in ["energy", "lr-step", "multi-step-update", "cosine-deep", "cosine-looped"] {
            draw(name, &only("init-diagnostics", table.clone()));
        }
    }
}

#[test]
fn exploded_norms_are_crosses_at_the_top() {
    let mut table = diagnostics(1, 4);
    table.rows.iter_mut().filter(|row| row.n == Some(16) && row.rule() == "none").for_each(|row| row.value = f64::NAN);
    let svg = draw("energy", &only("init-diagnostics", table)).svg;
    assert_eq!(tips(&svg).iter().filter(|tip| tip.ends_with("not finite")).count(), 2 * 11);
}

#[test]
fn a_rule_of_ones_own_gets_a_panel_of_its_own() {
    let svg = draw("lr-transfer", &only("lr-transfer", sweep(&["sqrt", "linear", "power-0.75"], 2, 1, best))).svg;
    assert!(svg.contains(">−0.75</tspan>"));
    assert_eq!(svg.matches("optimum for N = 4").count(), 2 * 3);
}

#[test]
fn svg_text_is_text_and_names_the_embedded_font_first() {
    let svg = draw("lr-step", &whole()).svg;
    assert!(svg.contains("font-family=\"Roboto, "));
    assert!(svg.contains(">loop count <tspan font-style=\"italic\">N</tspan></text>"));
}
