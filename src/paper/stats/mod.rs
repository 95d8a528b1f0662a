//! Estimators behind the claims: how large something is, and how well that is known. Every random draw comes from a fixed seed, so the
//! same numbers give the same intervals. What a number means and whether it is good news is left to `claims`.

mod curve;
mod estimate;
mod line;
mod resample;
mod student;

pub use curve::{Curve, Flaw, Optimum, Power, node_of, resolving_power};
pub use estimate::{Estimate, Interval, LEVEL, Spread, difference};
pub use line::{Line, fit};
pub use resample::{bootstrap, jackknife};
pub use student::quantile as student_quantile;

/// The mean, or NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample standard deviation, dividing by n - 1.
pub fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// The middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
    }
}
