//! A measured number and how well it is known.

use super::student::quantile;
use super::{deviation, mean};

/// The confidence of an interval, unless another is asked for.
pub const LEVEL: f64 = 0.95;

/// From and to.
pub type Interval = (f64, f64);

/// Where the uncertainty of a number comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// Nothing is known about it: one seed, no residuals.
    Unknown,
    /// Computed, not measured: the number is what it is.
    Exact,
    /// A standard error with its degrees of freedom; the interval is Student's.
    Student { error: f64, dof: f64 },
    /// The numbers that resampled seeds gave, sorted. For counts, where a standard error says little.
    Draws(Vec<f64>),
}

/// A measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub spread: Spread,
    /// Seeds behind it; 0 where there are none.
    pub seeds: usize,
}

impl Estimate {
    pub fn exact(value: f64) -> Estimate {
        Estimate { value, spread: Spread::Exact, seeds: 0 }
    }

    /// The mean of one number per seed.
    pub fn of_seeds(values: &[f64]) -> Estimate {
        let n = values.len();
        let spread = match n {
            0 | 1 => Spread::Unknown,
            _ => Spread::Student { error: deviation(values) / (n as f64).sqrt(), dof: n as f64 - 1.0 },
        };
        Estimate { value: mean(values), spread, seeds: n }
    }

    /// The interval that holds the truth in a share `level` of all repetitions.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        if self.value.is_infinite() {
            return Some((self.value, self.value)); // a run that diverged: no seed makes that better
        }
        match &self.spread {
            Spread::Unknown => None,
            Spread::Exact => Some((self.value, self.value)),
            Spread::Student { error, dof } => {
                let half = if *error == 0.0 { 0.0 } else { error * quantile(0.5 + level / 2.0, *dof) };
                half.is_finite().then_some((self.value - half, self.value + half))
            }
            Spread::Draws(sorted) => {
                let tail = (1.0 - level) / 2.0;
                // As many draws are left out at either end as fit into that tail; the sum saves a whole number from rounding.
                let low = (tail * sorted.len() as f64 + 1e-9) as usize;
                Some((sorted[low], sorted[sorted.len() - 1 - low]))
            }
        }
    }

    /// How many seeds in all would make half the interval at most `half` wide, if their spread stays what it is.
    pub fn seeds_for(&self, half: f64) -> Option<usize> {
        let Spread::Student { error, .. } = &self.spread else { return None };
        if self.seeds < 2 || half <= 0.0 || !error.is_finite() {
            return None;
        }
        let of_one = error * (self.seeds as f64).sqrt();
        let enough = |n: usize| of_one / (n as f64).sqrt() * quantile(0.5 + LEVEL / 2.0, n as f64 - 1.0) <= half;
        // More seeds never widen the interval, so the smallest number that is enough is found by halving.
        let (mut low, mut high) = (1, 10_000);
        if !enough(high) {
            return None;
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// The mean of paired differences a - b, one pair per seed.
pub fn difference(a: &[f64], b: &[f64]) -> Estimate {
    let pairs: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    Estimate::of_seeds(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paired_difference_has_students_interval() {
        // Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), two degrees of freedom.
        let estimate = difference(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]);
        let (low, high) = estimate.interval(0.95).unwrap();
        assert_eq!(estimate.value, 2.0);
        assert!((high - 2.0 - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-5 && (2.0 - low - (high - 2.0)).abs() < 1e-12);
    }

    #[test]
    fn one_seed_has_no_interval() {
        assert_eq!(Estimate::of_seeds(&[1.0]).interval(0.95), None);
    }

    #[test]
    fn draws_give_the_interval_that_holds_most_of_them() {
        let draws = Spread::Draws((0..1000).map(f64::from).collect());
        let estimate = Estimate { value: 500.0, spread: draws, seeds: 5 };
        assert_eq!(estimate.interval(0.95), Some((25.0, 974.0)));
        let all_but_one = Spread::Draws(vec![0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(Estimate { value: 0.0, spread: all_but_one, seeds: 3 }.interval(0.95), Some((0.0, 1.0)));
    }

    #[test]
    fn four_times_the_precision_needs_about_sixteen_times_the_seeds() {
        let estimate = Estimate { value: 0.0, spread: Spread::Student { error: 1.0, dof: 9.0 }, seeds: 10 };
        let (_, high) = estimate.interval(LEVEL).unwrap();
        assert_eq!(estimate.seeds_for(high), Some(10));
        let more = estimate.seeds_for(high / 4.0).unwrap();
        assert!((110..=160).contains(&more), "{more}");
    }
}
