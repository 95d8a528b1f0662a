//! Intervals hold the truth as often as they say. Each test judges some hundred made-up data sets from fixed seeds.

use crate::study::{Noise, Sweep, one, power_law, table, verdict};
use repro::paper::claims::Verdict;
use repro::paper::tidy::Table;

/// Whether `hits` of `trials` is what a 95% interval would give: within 3.3 standard deviations, which a right estimator leaves in one
/// test of a thousand.
#[track_caller]
fn covers(hits: usize, trials: usize) {
    let share = hits as f64 / trials as f64;
    let sd = (0.95 * 0.05 / trials as f64).sqrt();
    assert!((share - 0.95).abs() <= 3.3 * sd, "{hits} of {trials} intervals hold the truth, which is {share:.3}");
}

#[track_caller]
fn coverage(trials: usize, truth: f64, fields: &str, make: impl Fn(&mut Noise) -> Table) {
    let hits = (0..trials).filter(|trial| {
        let judgement = one(&make(&mut Noise::new(*trial as u64)), fields);
        let (low, high) = judgement.interval.unwrap_or_else(|| panic!("{}", judgement.why));
        low <= truth && truth <= high
    });
    covers(hits.count(), trials);
}

#[test]
fn a_log_log_slope_is_covered_from_seeds() {
    for seeds in [2, 3, 10] {
        coverage(400, 0.5, "measure: slope(log R ~ log N), expect: contains 0", |noise| {
            table("t", power_law(0.5, seeds, 1, 0.1, noise))
        });
    }
}

#[test]
fn a_log_log_slope_is_covered_from_residuals_of_one_seed() {
    coverage(400, 0.5, "measure: slope(log R ~ log N), expect: contains 0", |noise| table("t", power_law(0.5, 1, 1, 0.1, noise)));
}

#[test]
fn a_paired_difference_of_best_losses_is_covered() {
    // Seeds differ by ten times what is looked for: only pairs can see it.
    let fields =
        "measure: 'best(eval_loss[rule=linear] ~ lr) - best(eval_loss[rule=sqrt] ~ lr)', where: {N: 8}, expect: contains 0";
    coverage(300, -0.03, fields, |noise| {
        let mut rows = Vec::new();
        for seed in 0..3 {
            let sweep = Sweep { seed_noise: 0.0, run_noise: 0.003, loops: vec![8], seeds: 1, curvature: 0.2, ..Sweep::default() };
            let shift = 0.1 * noise.normal();
            for (rule, gain) in [("linear", 0.01), ("sqrt", 0.0)] {
                let one = sweep.rows(rule, gain, noise).into_iter().filter(|row| row.metric == "eval_loss");
                rows.extend(one.map(|mut row| {
                    row.value += shift;
                    row.at("seed", seed as i64)
                }));
            }
        }
        table("t", rows)
    });
}

#[test]
fn the_slope_of_the_optimum_is_covered() {
    for (seeds, slope) in [(3, 0.0), (4, -0.3)] {
        coverage(300, slope, "measure: optimum_slope(eval_loss ~ lr by N), where: {rule: linear}, expect: contains 0", |noise| {
            table("t", Sweep { slope, seeds, run_noise: 0.01, ..Sweep::default() }.rows("linear", 0.02, noise))
        });
    }
}

#[test]
fn the_regret_of_a_rate_an_octave_off_is_covered() {
    // The optimum is a node of the grid, so the loss an octave above it is worse by exactly the curvature.
    coverage(300, 0.05, "measure: 'regret(eval_loss ~ lr, at = 3.90625e-3)', where: {N: 4}, expect: at most 0.02", |noise| {
        table("t", Sweep { optimum: -9.0, run_noise: 0.004, seeds: 3, ..Sweep::default() }.rows("linear", 0.02, noise))
    });
}

#[test]
fn a_true_claim_on_the_very_bound_rarely_fails_however_often_it_is_looked_at() {
    // Eleven steps, the truth exactly where the rule ends at each of them.
    let fields = "measure: slope(log R ~ log N), each: step, expect: at most 0.5";
    let trials = 400;
    let failed = (0..trials).filter(|trial| {
        let data = table("t", power_law(0.5, 4, 11, 0.1, &mut Noise::new(*trial)));
        verdict(&data, fields) == Verdict::Fail
    });
    let failed = failed.count();
    // At most 5%, and 3.3 standard deviations of that on top.
    assert!(failed <= 34, "{failed} of {trials} failed");
}

#[test]
fn false_claims_fail_and_true_ones_pass() {
    let trials = 100;
    let count = |fields: &str, wanted: Verdict| {
        let judged = (0..trials).map(|trial| verdict(&table("t", power_law(0.5, 5, 1, 0.02, &mut Noise::new(trial))), fields));
        judged.filter(|verdict| *verdict == wanted).count()
    };
    assert_eq!(count("measure: slope(log R ~ log N), expect: 1 +- 0.15", Verdict::Fail), 100);
    assert_eq!(count("measure: slope(log R ~ log N), expect: 0.5 +- 0.15", Verdict::Pass), 100);
}

#[test]
fn a_shift_of_the_optimum_is_seen_and_alignment_is_not_mistaken_for_one() {
    let trials = 60;
    let count = |slope: f64, fields: &str, wanted: Verdict| {
        let judged = (0..trials).map(|trial| {
            let sweep = Sweep { slope, ..Sweep::default() };
            verdict(&table("t", sweep.rows("sqrt", 0.0, &mut Noise::new(trial))), fields)
        });
        judged.filter(|verdict| *verdict == wanted).count()
    };
    let moves = "measure: optimum_slope(eval_loss ~ lr by N), expect: 'excludes 0, resolution 0.15'";
    let stays = "measure: optimum_slope(eval_loss ~ lr by N), expect: [0 +- 0.15, contains 0]";
    assert!(count(-0.5, moves, Verdict::Pass) >= 59);
    assert!(count(0.0, moves, Verdict::Fail) >= 50);
    assert!(count(0.0, stays, Verdict::Pass) >= 50);
    assert!(count(-0.5, stays, Verdict::Fail) >= 59);
}
