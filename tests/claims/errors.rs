//! Every mistake a user can make in a claims file, and the exact words that answer it. Mistakes inside an expression are pinned beside its parser.

use crate::study::{judge, table};
use repro::paper::claims::Verdict;
use repro::paper::tidy::{Row, Table};

fn study() -> Table {
    let rows = vec![
        Row::new("R", "1", 1.0).at("N", 1i64).at("step", 0i64).at("seed", 0i64),
        Row::new("R", "1", 2.0).at("N", 2i64).at("step", 1i64).at("seed", 0i64),
    ];
    table("study", rows)
}

/// The answer to a file whose `claims:` hold these lines.
#[track_caller]
fn refuses(claims: &str, message: &str) {
    let error = judge(claims, &[study()]).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some(message));
}

/// A claim with one check.
fn check(fields: &str) -> String {
    format!("- id: A\n  claim: text\n  table: study\n  checks:\n    - {{{fields}}}\n")
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    refuses("- id: A\n  clam: text\n", "claims.yaml:3:3: unknown field `clam`; did you mean `claim`?");
    refuses(&check("measure: mean(R), expct: at most 1"), "claims.yaml:6:26: unknown field `expct`; did you mean `expect`?");
    refuses(
        "- id: A\n  claim: text\n  table: lr-transfr\n  checks: []\n",
        "claims.yaml:4:10: unknown table `lr-transfr`; did you mean `lr-transfer`?",
    );
    refuses(
        &check("measure: mean(RR), expect: at most 1"),
        "claims.yaml:6:22: unknown metric `RR` of table `study`; did you mean `R`?",
    );
    refuses(
        &check("measure: mean(eval_loss), expect: at most 1"),
        "claims.yaml:6:22: unknown metric `eval_loss` of table `study`; table `ablations` has it",
    );
    refuses(
        &check("measure: mean(R), where: {stap: 1}, expect: at most 1"),
        "claims.yaml:6:34: unknown column `stap`; did you mean `step`?",
    );
    refuses(
        &check("measure: mean(R), each: sed, expect: at most 1"),
        "claims.yaml:6:32: unknown column `sed`; did you mean `seed`?",
    );
    refuses(&check("measure: maen(R), expect: at most 1"), "claims.yaml:6:17: unknown function `maen`; did you mean `mean`?");
    refuses(
        &check("fact: parameter(L = 1), expect: at most 1"),
        "claims.yaml:6:14: unknown function `parameter`; did you mean `parameters`?",
    );
    refuses(
        "- id: A\n  claim: text\n  group: theories\n  checks: []\n",
        "claims.yaml:4:10: unknown group `theories`; did you mean `theory`?",
    );
}

#[test]
fn rules_that_are_none() {
    refuses(
        &check("measure: mean(R), expect: about 3"),
        "claims.yaml:6:34: `about 3` is not a rule; write `0.5 +- 0.15`, `between 0.3 and 0.7`, `at most 2`, `at least 0.5`, `below 0`, \
         `above 0`, `equals 12`, `contains 0` or `excludes 0, resolution 0.15`",
    );
    refuses(
        &check("measure: mean(R), expect: between 2 and 1"),
        "claims.yaml:6:34: `between 2 and 1` holds nothing: 2 is above 1; swap them",
    );
    refuses(&check("measure: mean(R), expect: []"), "claims.yaml:6:34: `expect` is empty; write at least one rule");
}

#[test]
fn fields_that_are_missing_or_wrong() {
    refuses("- claim: text\n", "claims.yaml:2:3: a claim needs `id`");
    refuses("- id: A\n", "claims.yaml:2:3: a claim needs `claim`");
    refuses("- id: A\n  claim: text\n", "claims.yaml:2:3: a claim needs `checks`");
    refuses(
        "- id: A b\n  claim: text\n  checks: []\n",
        "claims.yaml:2:7: `A b` cannot name a claim; use letters, digits, `-`, `_` and `.`",
    );
    refuses("- id: A\n  claim: text\n  checks: []\n", "claims.yaml:4:11: there are no checks; write at least one");
    refuses("- id: A\n  claim: text\n  checks: x\n", "claims.yaml:4:11: `checks` must be a list, found text");
    refuses("- id: A\n  claim: [x]\n  checks: []\n", "claims.yaml:3:10: `claim` must be text, found a list");
    refuses(&check("expect: at most 1"), "claims.yaml:6:7: a check needs `measure`, `fact` or `any_of`");
    refuses(&check("measure: mean(R)"), "claims.yaml:6:7: a check needs `expect`");
    refuses(
        &check("measure: mean(R), fact: init_loss(), expect: at most 1"),
        "claims.yaml:6:7: a check has `measure`, `fact` or `any_of`, one of them",
    );
    refuses(
        &check("fact: mean(R), expect: at most 1"),
        "claims.yaml:6:19: a fact is computed from the code; `R` is measured, so write `measure`",
    );
    refuses(
        &check("measure: init_loss(), expect: at most 1"),
        "claims.yaml:6:17: this measures nothing; write `fact` for what is computed",
    );
    refuses(
        "- id: A\n  claim: text\n  checks:\n    - {measure: mean(R), expect: at most 1}\n",
        "claims.yaml:5:17: a measure needs a `table`",
    );
    refuses(&check("measure: mean(R), expect: at most 1, per: loop"), "claims.yaml:6:50: `per` is `seed` or `all`, not `loop`");
    refuses(
        &check("measure: mean(R), expect: at most 1, seeds: many"),
        "claims.yaml:6:52: `seeds` is the number of seeds that are needed, from 1 to 1000, not `many`",
    );
    refuses(
        &check("measure: mean(R), expect: at most 1, uncertainty: big"),
        "claims.yaml:6:58: `uncertainty` is `seeds` or `none`, not `big`",
    );
    refuses(
        &check("measure: mean(R), expect: at most 1, decides: maybe"),
        "claims.yaml:6:54: `decides` is `true` or `false`, not `maybe`",
    );
    refuses(
        &check("measure: mean(R), expect: at most 1, decides: false"),
        "claims.yaml:6:5: no check of `A` decides; a claim needs one that does",
    );
    refuses(
        &check("measure: mean(R), where: {N: [\"<2\"]}, expect: at most 1"),
        "claims.yaml:6:38: a list holds values, not comparisons",
    );
    refuses(
        &check("measure: mean(R), where: {N: x y}, expect: at most 1"),
        "claims.yaml:6:37: `N` is a number; `x` is neither one, nor `min`, `max` or another column",
    );
}

#[test]
fn a_claim_twice() {
    let twice = format!("{0}{0}", check("measure: mean(R), expect: at most 1"));
    refuses(&twice, "claims.yaml:7:3: two claims are called `A`");
}

/// Shows only once there are data, so it leaves this claim open and lets the others be judged.
#[test]
fn a_slope_over_what_varies_in_more_than_one_way_is_open_and_says_where() {
    let judgement = judge(&check("measure: slope(log R ~ log N), expect: at most 1"), &[study()]).unwrap().remove(0);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    let why = "claims.yaml:6:17: `R` varies with `step` too (0 and 1); fix it in `where`, or name it under `each`";
    assert_eq!(judgement.why, why);
}
