//! The language of `expect`, and the verdict of one rule on one estimate.

use super::Verdict;
use crate::paper::stats::{Estimate, LEVEL};

#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Inside these bounds; the bounds themselves belong to them unless they are `open`.
    Between { low: f64, high: f64, open: bool },
    /// Equal but for rounding; for what is computed.
    Equals(f64),
    /// The interval holds this value.
    Contains(f64),
    /// The interval does not hold this value; refuted once it lies within `resolution` of it.
    Excludes { value: f64, resolution: f64 },
}

const FORMS: &str = "`0.5 +- 0.15`, `between 0.3 and 0.7`, `at most 2`, `at least 0.5`, `below 0`, `above 0`, `equals 12`, `contains 0` \
                     or `excludes 0, resolution 0.15`";

/// Reads a rule; the error says what can be written.
pub fn parse(text: &str) -> Result<Rule, String> {
    let wrong = || format!("`{text}` is not a rule; write {FORMS}");
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(wrong);
    let text_ = text.trim();
    let after = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| text_.strip_prefix(prefix));
    if let Some((centre, half)) = text_.split_once("+-").or_else(|| text_.split_once('±')) {
        let (centre, half) = (number(centre)?, number(half)?);
        if half < 0.0 {
            return Err(wrong());
        }
        return Ok(Rule::Between { low: centre - half, high: centre + half, open: false });
    }
    if let Some(rest) = after(&["between "]) {
        let (low, high) = rest.split_once(" and ").ok_or_else(wrong)?;
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(format!("`{text}` holds nothing: {low} is above {high}; swap them"));
        }
        return Ok(Rule::Between { low, high, open: false });
    }
    for (words, open) in [(["at most ", "<="], false), (["below ", "<"], true)] {
        if let Some(rest) = after(&words) {
            return Ok(Rule::Between { low: f64::NEG_INFINITY, high: number(rest)?, open });
        }
    }
    for (words, open) in [(["at least ", ">="], false), (["above ", ">"], true)] {
        if let Some(rest) = after(&words) {
            return Ok(Rule::Between { low: number(rest)?, high: f64::INFINITY, open });
        }
    }
    if let Some(rest) = after(&["equals ", "=="]) {
        return Ok(Rule::Equals(number(rest)?));
    }
    if let Some(rest) = after(&["contains "]) {
        return Ok(Rule::Contains(number(rest)?));
    }
    if let Some(rest) = after(&["excludes "]) {
        let (value, resolution) = rest.split_once(", resolution ").ok_or_else(wrong)?;
        return Ok(Rule::Excludes { value: number(value)?, resolution: number(resolution)? });
    }
    Err(wrong())
}

impl Rule {
    /// PASS if the whole interval satisfies the rule, FAIL if none of it does, INCONCLUSIVE between. A FAIL needs an interval widened
    /// for the number of comparisons a claim makes, so that looking often does not make a true claim fail. `point` judges by the
    /// number alone. None where there is no interval to judge by.
    pub fn judge(&self, estimate: &Estimate, comparisons: usize, point: bool) -> Option<Verdict> {
        let widened = 1.0 - (1.0 - LEVEL) / comparisons.max(1) as f64;
        let of = |level: f64| if point { Some((estimate.value, estimate.value)) } else { estimate.interval(level) };
        let (low, high) = of(LEVEL)?;
        let (wide_low, wide_high) = of(widened)?;
        let inside = |from: f64, to: f64| low >= from && high <= to;
        Some(match *self {
            Rule::Between { low: from, high: to, open } => match () {
                () if inside(from, to) && !(open && (low == from || high == to)) => Verdict::Pass,
                () if wide_high < from || wide_low > to || (open && (wide_high == from || wide_low == to)) => Verdict::Fail,
                () => Verdict::Inconclusive,
            },
            Rule::Equals(wanted) => {
                // Computed numbers differ by rounding only.
                let tolerance = 1e-9 * wanted.abs().max(1e-12);
                match () {
                    () if inside(wanted - tolerance, wanted + tolerance) => Verdict::Pass,
                    () if wide_high < wanted - tolerance || wide_low > wanted + tolerance => Verdict::Fail,
                    () => Verdict::Inconclusive,
                }
            }
            Rule::Contains(value) => match () {
                () if low <= value && value <= high => Verdict::Pass,
                () if value < wide_low || wide_high < value => Verdict::Fail,
                () => Verdict::Inconclusive,
            },
            Rule::Excludes { value, resolution } => match () {
                () if value < low || high < value => Verdict::Pass,
                () if inside(value - resolution, value + resolution) => Verdict::Fail,
                () => Verdict::Inconclusive,
            },
        })
    }

    /// How far the number is from where the verdict would turn; the interval has to become narrower than that.
    pub fn margin(&self, value: f64) -> f64 {
        match *self {
            Rule::Between { low, high, .. } => (value - low).abs().min((high - value).abs()),
            Rule::Equals(wanted) | Rule::Contains(wanted) => (value - wanted).abs(),
            Rule::Excludes { value: excluded, resolution } => {
                // Either the difference shows, or it is shown to be small.
                let apart = (value - excluded).abs();
                apart.max(resolution - apart)
            }
        }
    }

    /// How comfortably an estimate satisfies the rule; negative where it does not. For naming the tightest of many.
    pub fn comfort(&self, estimate: &Estimate) -> f64 {
        let (low, high) = estimate.interval(LEVEL).unwrap_or((estimate.value, estimate.value));
        match *self {
            Rule::Between { low: from, high: to, .. } => (low - from).min(to - high),
            Rule::Equals(wanted) | Rule::Contains(wanted) => -(estimate.value - wanted).abs(),
            Rule::Excludes { value, .. } => (low - value).max(value - high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::stats::Spread;

    fn estimate(value: f64, error: f64) -> Estimate {
        Estimate { value, spread: Spread::Student { error, dof: 1e6 }, seeds: 3 }
    }

    #[test]
    fn rules_are_read() {
        assert_eq!(parse("0.5 +- 0.25"), Ok(Rule::Between { low: 0.25, high: 0.75, open: false }));
        assert_eq!(parse("between -1 and 2e3"), Ok(Rule::Between { low: -1.0, high: 2000.0, open: false }));
        assert_eq!(parse("at most 4"), Ok(Rule::Between { low: f64::NEG_INFINITY, high: 4.0, open: false }));
        assert_eq!(parse("above 0"), Ok(Rule::Between { low: 0.0, high: f64::INFINITY, open: true }));
        assert_eq!(parse("equals 438313728"), Ok(Rule::Equals(438_313_728.0)));
        assert_eq!(parse("excludes 0, resolution 0.15"), Ok(Rule::Excludes { value: 0.0, resolution: 0.15 }));
    }

    #[test]
    fn the_interval_decides() {
        let rule = parse("0.5 +- 0.15").unwrap();
        let judge = |value, error| rule.judge(&estimate(value, error), 1, false);
        assert_eq!(judge(0.55, 0.01), Some(Verdict::Pass));
        assert_eq!(judge(0.9, 0.01), Some(Verdict::Fail));
        assert_eq!(judge(0.55, 0.2), Some(Verdict::Inconclusive));
        assert_eq!(judge(0.66, 0.02), Some(Verdict::Inconclusive));
        assert_eq!(rule.judge(&Estimate::of_seeds(&[0.5]), 1, false), None);
        assert_eq!(rule.judge(&Estimate::of_seeds(&[0.5]), 1, true), Some(Verdict::Pass));
    }

    #[test]
    fn nothing_is_not_below_nothing() {
        let judge = |rule: &str| parse(rule).unwrap().judge(&Estimate::exact(0.0), 1, false);
        assert_eq!((judge("below 0"), judge("above 0")), (Some(Verdict::Fail), Some(Verdict::Fail)));
        assert_eq!((judge("at most 0"), judge("at least 0")), (Some(Verdict::Pass), Some(Verdict::Pass)));
    }

    #[test]
    fn many_comparisons_make_failing_harder_and_passing_no_easier() {
        let rule = parse("at most 0").unwrap();
        let near = estimate(0.0225, 0.01);
        assert_eq!(rule.judge(&near, 1, false), Some(Verdict::Fail));
        assert_eq!(rule.judge(&near, 33, false), Some(Verdict::Inconclusive));
    }

    #[test]
    fn a_difference_shows_or_is_shown_to_be_small() {
        let rule = parse("excludes 0, resolution 0.15").unwrap();
        let judge = |value, error| rule.judge(&estimate(value, error), 1, false);
        assert_eq!(judge(-0.3, 0.05), Some(Verdict::Pass));
        assert_eq!(judge(0.02, 0.02), Some(Verdict::Fail));
        assert_eq!(judge(0.1, 0.1), Some(Verdict::Inconclusive));
    }
}
