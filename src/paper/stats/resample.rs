//! How much a number would change with other seeds: jackknife for what varies smoothly, bootstrap for what jumps. A statistic is asked
//! for as a function of one weight per seed, so that all it reads is resampled together and pairs stay pairs.

use super::{Estimate, Spread, mean};
use crate::paper::random::Philox;

/// Draws of the bootstrap where there are too many resamples to take them all.
const DRAWS: usize = 2000;
/// Up to here all n^n resamples are taken: 3125 of five seeds.
const ALL: usize = 5;

/// The statistic with all seeds, and Student's interval from leaving out one at a time. Exactly the paired t-interval where the
/// statistic is linear in the seeds.
pub fn jackknife<E>(seeds: usize, mut statistic: impl FnMut(&[f64]) -> Result<f64, E>) -> Result<Estimate, E> {
    let mut weights = vec![1.0; seeds];
    let value = statistic(&weights)?;
    if seeds < 2 {
        return Ok(Estimate { value, spread: Spread::Unknown, seeds });
    }
    let mut without = Vec::with_capacity(seeds);
    for left_out in 0..seeds {
        weights[left_out] = 0.0;
        without.push(statistic(&weights)?);
        weights[left_out] = 1.0;
    }
    let n = seeds as f64;
    let centre = mean(&without);
    let squares: f64 = without.iter().map(|value| (value - centre).powi(2)).sum();
    let error = ((n - 1.0) / n * squares).sqrt();
    Ok(Estimate { value, spread: Spread::Student { error, dof: n - 1.0 }, seeds })
}

/// The statistic for resampled seeds; None where it does not exist. All resamples of up to five seeds, 2000 drawn ones of more.
pub fn bootstrap(seeds: usize, name: &str, mut statistic: impl FnMut(&[f64]) -> Option<f64>) -> Vec<Option<f64>> {
    let mut all = Vec::new();
    let mut weights = vec![0.0; seeds];
    let mut with = |chosen: &mut dyn FnMut(usize) -> usize| {
        weights.fill(0.0);
        (0..seeds).for_each(|place| weights[chosen(place)] += 1.0);
        all.push(statistic(&weights));
    };
    if seeds <= ALL {
        for number in 0..seeds.pow(seeds as u32) {
            with(&mut |place| number / seeds.pow(place as u32) % seeds);
        }
    } else {
        let random = Philox::new(0, name);
        for draw in 0..DRAWS {
            with(&mut |place| random.below((draw * seeds + place) as u64, seeds as u64) as usize);
        }
    }
    all
}

impl Estimate {
    /// From the draws of a [`bootstrap`]: their spread as a standard error, with Student's quantiles. Draws of n seeds spread
    /// sqrt((n - 1) / n) too little, which for three seeds is a fifth.
    pub fn from_draws(value: f64, draws: &[Option<f64>], seeds: usize) -> Estimate {
        let found: Vec<f64> = draws.iter().copied().flatten().collect();
        if seeds < 2 || found.len() < 2 {
            return Estimate { value, spread: Spread::Unknown, seeds };
        }
        let centre = mean(&found);
        let variance = found.iter().map(|draw| (draw - centre).powi(2)).sum::<f64>() / found.len() as f64;
        let n = seeds as f64;
        let error = (variance * n / (n - 1.0)).sqrt();
        Estimate { value, spread: Spread::Student { error, dof: n - 1.0 }, seeds }
    }

    /// From the draws of a [`bootstrap`] of something that counts.
    pub fn of_counts(value: f64, draws: &[Option<f64>], seeds: usize) -> Estimate {
        let mut found: Vec<f64> = draws.iter().copied().flatten().collect();
        found.sort_by(f64::total_cmp);
        let spread = if seeds < 2 || found.is_empty() { Spread::Unknown } else { Spread::Draws(found) };
        Estimate { value, spread, seeds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::stats::deviation;

    fn weighted(values: &[f64]) -> impl Fn(&[f64]) -> f64 + '_ {
        move |weights| weights.iter().zip(values).map(|(w, v)| w * v).sum::<f64>() / weights.iter().sum::<f64>()
    }

    #[test]
    fn for_a_mean_both_ways_give_students_error() {
        for values in [vec![1.0, 4.0, 2.0], vec![0.3, 0.1, 0.9, 0.4]] {
            let n = values.len();
            let expected = deviation(&values) / (n as f64).sqrt();
            let statistic = weighted(&values);
            let left_out = jackknife::<()>(n, |weights| Ok(statistic(weights))).unwrap();
            let draws = bootstrap(n, "test", |weights| Some(statistic(weights)));
            assert_eq!(draws.len(), n.pow(n as u32));
            let drawn = Estimate::from_draws(mean(&values), &draws, n);
            for estimate in [left_out, drawn] {
                let Spread::Student { error, dof } = estimate.spread else { panic!("{estimate:?}") };
                assert!((error - expected).abs() < 1e-12, "{error} {expected}");
                assert_eq!(dof, n as f64 - 1.0);
            }
        }
    }

    #[test]
    fn many_seeds_are_drawn_and_the_same_every_time() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let statistic = weighted(&values);
        let draw = || bootstrap(10, "test", |weights| Some(statistic(weights)));
        assert_eq!(draw(), draw());
        let Spread::Student { error, .. } = Estimate::from_draws(4.5, &draw(), 10).spread else { panic!() };
        let expected = deviation(&values) / 10.0_f64.sqrt();
        // 2000 draws know a standard deviation to 1.6%; four of those.
        assert!((error / expected - 1.0).abs() < 0.064, "{error} {expected}");
    }
}
