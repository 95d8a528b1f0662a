//! A straight line through points, and how far its slope may be off judging by the points around it.

use super::estimate::Spread;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub slope: f64,
    pub intercept: f64,
    /// Standard error of the slope from the residuals, with `points - 2` degrees of freedom.
    pub error: f64,
    pub points: usize,
}

/// Least squares. None of fewer than two different x, or of what is not finite.
pub fn fit(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let (x0, y0) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let xx: f64 = points.iter().map(|p| (p.0 - x0).powi(2)).sum();
    let xy: f64 = points.iter().map(|p| (p.0 - x0) * (p.1 - y0)).sum();
    if points.len() < 2 || xx.is_nan() || xx <= 0.0 || !xy.is_finite() {
        return None;
    }
    let slope = xy / xx;
    let intercept = y0 - slope * x0;
    let residual: f64 = points.iter().map(|p| (p.1 - intercept - slope * p.0).powi(2)).sum();
    let error = if points.len() > 2 { (residual / (n - 2.0) / xx).sqrt() } else { f64::NAN };
    Some(Line { slope, intercept, error, points: points.len() })
}

impl Line {
    /// The uncertainty of the slope where there are no seeds to judge by.
    pub fn spread(&self) -> Spread {
        if self.points > 2 { Spread::Student { error: self.error, dof: self.points as f64 - 2.0 } } else { Spread::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_with_its_textbook_error() {
        // x 1..5, y by hand: slope 0.6, residual sum of squares 2.4, so the error is sqrt(2.4 / 3 / 10).
        let line = fit(&[(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)]).unwrap();
        assert!((line.slope - 0.6).abs() < 1e-12 && (line.intercept - 2.2).abs() < 1e-12);
        assert!((line.error - 0.08_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_single_x_or_an_infinite_y_has_no_line() {
        assert_eq!(fit(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(fit(&[(1.0, 2.0), (2.0, f64::INFINITY)]), None);
        assert_eq!(fit(&[]), None);
    }
}
