//! How verdicts come about: what stays open, and the exact words that say why.

use crate::study::{Noise, Sweep, judge, one, power_law, table, verdict};
use repro::paper::claims::{Group, Verdict};
use repro::paper::tidy::{Row, Table};

/// One value of `x` per seed, and nothing else.
fn values(list: &[f64]) -> Table {
    let rows =
        list.iter().enumerate().map(|(seed, value)| Row::new("x", "1", *value).at("seed", seed).at("node", format!("s{seed}")));
    table("t", rows.collect())
}

#[test]
fn a_noisy_number_is_inconclusive_and_says_how_many_seeds_would_settle_it() {
    let judgement = one(&values(&[0.4, 0.6, 0.65]), "measure: mean(x), expect: 0.5 +- 0.15");
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    assert_eq!(judgement.why, "0.550 [0.221, 0.879]: too uncertain to tell `0.5 +- 0.15`");
    assert_eq!(judgement.resolve.as_deref(), Some("about 10 seeds instead of 3 (7 more)"));
}

#[test]
fn the_cost_of_more_seeds_is_told_where_training_cost_is_known() {
    let mut data = values(&[0.4, 0.6, 0.65]);
    let costs: Vec<Row> = data.rows.iter().map(|row| Row { metric: "train_flops".into(), value: 2e12, ..row.clone() }).collect();
    data.rows.extend(costs);
    let judgement = one(&data, "measure: mean(x), expect: 0.5 +- 0.15");
    assert_eq!(judgement.resolve.as_deref(), Some("about 10 seeds instead of 3 (7 more, 1.4e13 FLOP of training)"));
}

#[test]
fn one_seed_gives_no_verdict_unless_uncertainty_is_said_not_to_matter() {
    let judgement = one(&values(&[0.5]), "measure: mean(x), expect: 0.5 +- 0.15");
    assert_eq!((judgement.verdict, judgement.measured), (Verdict::Inconclusive, Some(0.5)));
    assert_eq!(judgement.why, "0.500 from one seed, which gives no interval");
    assert_eq!(verdict(&values(&[0.5]), "measure: mean(x), expect: 0.5 +- 0.15, uncertainty: none"), Verdict::Pass);
    let judgement = one(&values(&[0.5, 0.5]), "measure: mean(x), expect: 0.5 +- 0.15, seeds: 3");
    assert_eq!(judgement.why, "0.500 from 2 seeds, and 3 are needed");
}

#[test]
fn an_optimum_at_the_edge_of_the_grid_is_flagged() {
    let sweep = Sweep { optimum: -13.0, ..Sweep::default() };
    let data = table("t", sweep.rows("linear", 0.0, &mut Noise::new(0)));
    for (measure, expect) in [("optimum_slope", "contains 0"), ("node_shift", "at most 1")] {
        let judgement = one(&data, &format!("measure: {measure}(eval_loss ~ lr by N), expect: {expect}"));
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        assert_eq!(judgement.why, "the optimum lies at the edge of the grid of learning rates at N=1");
        assert_eq!(judgement.resolve.as_deref(), Some("widen the grid of learning rates until the lowest loss lies inside it"));
    }
}

#[test]
fn a_flat_curve_shows_no_optimum() {
    let sweep = Sweep { curvature: 0.0, run_noise: 0.02, ..Sweep::default() };
    for seed in 0..10 {
        let data = table("t", sweep.rows("linear", 0.0, &mut Noise::new(seed)));
        let judgement = one(&data, "measure: optimum_slope(eval_loss ~ lr by N), expect: [0 +- 0.15, contains 0]");
        assert_eq!(judgement.verdict, Verdict::Inconclusive, "{}", judgement.why);
    }
}

#[test]
fn a_rate_that_diverged_for_one_seed_is_left_out_for_all() {
    let sweep = Sweep { run_noise: 0.0005, ..Sweep::default() };
    let mut data = table("t", sweep.rows("linear", 0.0, &mut Noise::new(0)));
    for row in &mut data.rows {
        if row.metric == "eval_loss" && row.number("lr") == Some(2f64.powi(-8)) && row.int("seed") == Some(1) {
            row.value = f64::NAN;
        }
    }
    let judgement = one(&data, "measure: optimum_slope(eval_loss ~ lr by N), expect: [0 +- 0.15, contains 0]");
    assert_eq!(judgement.verdict, Verdict::Pass, "{}", judgement.why);
}

#[test]
fn the_run_at_one_loop_belongs_to_every_rule() {
    let mut rows = Vec::new();
    for seed in 0..3i64 {
        for (rule, n) in [("linear", 1i64), ("linear", 4), ("sqrt", 4), ("power-0.75", 4), ("factorised", 4)] {
            rows.push(Row::new("eval_loss", "nats/token", n as f64).at("rule", rule).at("N", n).at("seed", seed));
        }
    }
    let data = table("t", rows);
    for rule in ["sqrt", "linear", "none", "power-0.75"] {
        let points =
            one(&data, &format!("measure: count(eval_loss), where: {{rule: {rule}}}, uncertainty: none, expect: at least 0"));
        assert_eq!(points.measured, Some(if rule == "none" { 1.0 } else { 2.0 }), "{rule}");
    }
    let factorised = one(&data, "measure: count(eval_loss), where: {rule: factorised}, uncertainty: none, expect: at least 0");
    assert_eq!(factorised.measured, Some(1.0), "away from the reference depth it is another model");
}

#[test]
fn seeds_that_are_not_everywhere_are_left_out() {
    let mut data = table("t", power_law(0.5, 4, 1, 0.01, &mut Noise::new(0)));
    data.rows.retain(|row| row.int("seed") != Some(3) || row.int("N") != Some(64));
    let judgement = one(&data, "measure: slope(log R ~ log N), expect: 0.5 +- 0.15");
    assert_eq!((judgement.verdict, judgement.parts[0].seeds), (Verdict::Pass, 3));
}

#[test]
fn missing_data_leave_a_claim_open_and_name_what_is_missing() {
    let data = table("t", power_law(0.5, 3, 2, 0.01, &mut Noise::new(0)));
    let why = |fields: &str| {
        let judgement = one(&data, fields);
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        judgement.why
    };
    assert_eq!(
        why("measure: mean(R), where: {N: 128}, expect: at least 0"),
        "there is no `R` with N=128 in `t`: N is 1, 2, 4, 8, 16, 32, 64"
    );
    assert_eq!(
        why("measure: mean(R), where: {rule: sqrt}, expect: at least 0"),
        "there is no `R` with rule=sqrt in `t`: no row has a `rule`"
    );
    assert_eq!(
        why("measure: spread(R), where: {N: 1, step: 0}, expect: at most 2"),
        "`spread` needs at least two points of `R`, there is one"
    );
    let absent =
        judge("- id: X\n  claim: c\n  table: theory\n  checks:\n    - {measure: mean(zeta), expect: at least 0}\n", &[]).unwrap();
    assert_eq!(absent[0].why, "table `theory` is not there; its stage was skipped or has not run");
}

#[test]
fn a_claim_is_as_good_as_its_worst_check_and_any_of_as_its_best() {
    let data = values(&[0.5, 0.51, 0.52]);
    let claim = |checks: &str| {
        let text = format!("- id: X\n  claim: c\n  table: t\n  checks:\n{checks}");
        judge(&text, std::slice::from_ref(&data)).unwrap().remove(0)
    };
    let (good, open, bad) =
        ("measure: mean(x), expect: at most 1", "measure: mean(x), expect: at most 0.51", "measure: mean(x), expect: at most 0");
    assert_eq!(claim(&format!("    - {{{good}}}\n    - {{{open}}}\n")).verdict, Verdict::Inconclusive);
    assert_eq!(claim(&format!("    - {{{good}}}\n    - {{{open}}}\n    - {{{bad}}}\n")).verdict, Verdict::Fail);
    assert_eq!(claim(&format!("    - {{{good}}}\n    - {{{bad}, decides: false}}\n")).verdict, Verdict::Pass);
    let any =
        |checks: [&str; 2]| claim(&format!("    - any_of:\n      - {{{}}}\n      - {{{}}}\n", checks[0], checks[1])).verdict;
    assert_eq!(any([good, bad]), Verdict::Pass);
    assert_eq!(any([open, bad]), Verdict::Inconclusive);
    assert_eq!(any([bad, bad]), Verdict::Fail);
}

#[test]
fn a_diverged_base_rate_fails_the_regret() {
    let mut data = table("t", Sweep { loops: vec![1, 8], ..Sweep::default() }.rows("linear", 0.0, &mut Noise::new(0)));
    let fields = "measure: 'regret(eval_loss ~ lr, at = argmin(eval_loss[N=1] ~ lr))', each: N, expect: at most 0.02";
    assert_eq!(verdict(&data, fields), Verdict::Pass);
    for row in &mut data.rows {
        if row.int("N") == Some(8) && row.metric == "eval_loss" && row.number("lr") > Some(1e-3) {
            row.value = f64::NAN;
        }
    }
    let judgement = one(&data, fields);
    assert_eq!(judgement.verdict, Verdict::Fail);
    assert_eq!(judgement.why, "unbounded: `at most 0.02` does not hold at N=8 (1 of 2 points)");
}

#[test]
fn in_brackets_a_value_replaces_and_a_comparison_narrows() {
    let data = table("t", power_law(0.0, 1, 3, 0.0, &mut Noise::new(0)));
    let count = |selection: &str, fields: &str| {
        one(&data, &format!("measure: 'count(R{selection})', {fields}, uncertainty: none, expect: at least 0"))
    };
    assert_eq!(count("[N=2]", "where: {N: 64}").measured, Some(3.0), "three steps of N=2");
    assert_eq!(count("[N<=4]", "where: {N: '> 1'}").measured, Some(6.0), "N=2 and N=4");
    assert_eq!(count("[N<=4]", "each: N").parts[0].points.len(), 3);
    assert_eq!(count("[N=4]", "each: N").parts[0].points.len(), 7);
}

#[test]
fn quotients_are_taken_row_by_row() {
    let mut rows = Vec::new();
    for (n, above, below) in [(1i64, 2.0, 1.0), (2, 9.0, 3.0)] {
        rows.push(Row::new("above", "1", above).at("N", n).at("seed", 0i64));
        rows.push(Row::new("below", "1", below).at("N", n));
    }
    let data = table("t", rows);
    assert_eq!(one(&data, "measure: max(above / below), uncertainty: none, expect: equals 3").verdict, Verdict::Pass);
    assert_eq!(one(&data, "measure: min(above / below), uncertainty: none, expect: equals 2").verdict, Verdict::Pass);
}

#[test]
fn the_resolving_power_of_a_sweep_can_be_asked_for() {
    let data = table("t", Sweep { seeds: 8, run_noise: 0.01, ..Sweep::default() }.rows("linear", 0.0, &mut Noise::new(0)));
    let of = |function: &str| {
        one(&data, &format!("measure: '{function}(eval_loss[N=1] ~ lr)', uncertainty: none, expect: at least 0"))
    };
    let noise = of("noise").measured.unwrap();
    // Eight seeds and eight rates know it to a tenth.
    assert!((noise - 0.01).abs() < 0.003, "{noise}");
    let octaves = of("resolution").measured.unwrap();
    assert!((0.01..0.1).contains(&octaves), "{octaves}");
}

#[test]
fn a_users_own_claim_is_their_own() {
    let claims = "- id: my-rule\n  claim: mine\n  table: t\n  checks:\n    - {measure: mean(x), expect: at least 0}\n";
    assert_eq!(judge(claims, &[values(&[1.0, 1.0])]).unwrap()[0].group, Group::Own);
}

#[test]
fn the_scale_of_the_evidence_is_told() {
    let mut data = table("t", Sweep::default().rows("linear", 0.0, &mut Noise::new(0)));
    let tokens: Vec<Row> = data.rows.iter().map(|row| Row { metric: "tokens".into(), value: 614_400.0, ..row.clone() }).collect();
    data.rows.extend(tokens);
    let judgement = one(&data, "measure: largest_rise(eval_loss ~ lr by N), expect: at most 0");
    assert_eq!(judgement.scale, "d=64, L=2, N=1,2,4,8, 8 rates, 3 seeds, 614.4k tokens");
    assert_eq!(judgement.artefacts[0].rows, 4 * 8 * 3);
}
