//! The tables of results from synthetic measurements.

use repro::render::table::verdicts::{Verdicts, verdicts};
use repro::render::table::{Sheet, costs, diagnostics, optima, post_training};
use repro::render::tidy::Tables;

use crate::synthetic::whole;

fn line<'s>(sheet: &Sheet, csv: &'s str, starts: &str) -> &'s str {
    csv.lines().find(|line| line.starts_with(starts)).unwrap_or_else(|| panic!("{} has no line {starts}: {csv}", sheet.name))
}

#[test]
fn optima_are_listed_with_fit_spread_and_regret() {
    let sheet = optima::optima(&whole(), Some(4e-3));
    let csv = sheet.csv();
    assert_eq!(line(&sheet, &csv, "linear,2,4,"), "linear,2,4,4e-3,4e-3,4e-3 to 4e-3,2.963 ± 0.0017 (3 seeds),0.000,0 of 18,no");
    assert_eq!(
        line(&sheet, &csv, "sqrt,2,8,"),
        "sqrt,2,8,1e-3,1.414e-3,1.414e-3 to 1.414e-3,2.956 ± 0.0017 (3 seeds),0.100,3 of 18,no"
    );
    assert!(csv.lines().count() == 1 + 4 * 4);
}

#[test]
fn lowest_losses_stand_beside_each_other_with_their_paired_difference() {
    let sheet = optima::lowest(&whole());
    let csv = sheet.csv();
    assert!(line(&sheet, &csv, "linear - sqrt,2,same run,").contains("0.0000 ± 0.0000"), "{csv}");
    assert!(line(&sheet, &csv, "linear,2,").starts_with("linear,2,3.0030 ± 0.0017"), "{csv}");
}

#[test]
fn slopes_of_the_diagnostics_stand_beside_the_prediction() {
    let sheet = diagnostics::slopes(&whole());
    let csv = sheet.csv();
    assert_eq!(line(&sheet, &csv, "R,looped,sqrt,0"), "R,looped,sqrt,0,0.500,0.5,1.1,4.4,16,2");
    assert_eq!(line(&sheet, &csv, "update,looped,none,1"), "update,looped,none,1,1.000,1.0,0.5,8,16,2");
    assert_eq!(line(&sheet, &csv, "R,deep,linear,0"), "R,deep,linear,0,-0.500,-0.5,1.1,0.275,16,2");
}

#[test]
fn trained_models_are_listed_by_depth_and_loops() {
    let sheet = post_training::trained(&whole());
    let csv = sheet.csv();
    assert_eq!(line(&sheet, &csv, "4,8,"), "4,8,0.313,-0.100,0.450,-0.100 to 0.450,0.313,10.00,1");
}

#[test]
fn costs_add_up() {
    let sheet = costs::costs(&whole());
    let csv = sheet.csv();
    // 7 models x 6 rates x 3 seeds, and 2 depths x 4 models x 6 rates x 2 seeds.
    assert!(line(&sheet, &csv, "together,").starts_with("together,,,,222,,2.22e8 in all"), "{csv}");
}

#[test]
fn verdicts_become_a_table_whatever_they_say() {
    let judged: Verdicts = serde_json::from_str(
        r#"{"scale": "quick", "verdicts": [
            {"id": "E6", "claim": "linear aligns optima & sqrt shifts them", "verdict": "PASS", "measured": 0.031, "interval": [-0.1, 0.16],
             "paper": "no shift", "why": "slope < 0.15", "group": "empirical", "parts": []},
            {"id": "T1", "verdict": "INCONCLUSIVE", "measured": null, "measured_text": "", "interval": null, "why": "too_few 100%"}]}"#,
    )
    .unwrap();
    let sheet = verdicts(&judged);
    assert!(sheet.csv().contains("E6,linear aligns optima & sqrt shifts them,no shift,\"0.031 [-0.1, 0.16]\",PASS,slope < 0.15"));
    assert!(sheet.latex().contains("too\\_few 100\\%") && sheet.latex().contains("optima \\& sqrt"));
}

#[test]
fn tables_without_data_say_so() {
    for sheet in
        [optima::optima(&Tables::default(), None), diagnostics::slopes(&Tables::default()), costs::costs(&Tables::default())]
    {
        assert!(sheet.markdown().contains("Nothing of this in this profile."));
        assert!(sheet.latex().contains("nothing of this in this profile"));
    }
}
