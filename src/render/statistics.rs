//! The few statistics that a picture shows: mean and standard error over seeds, slopes in log-log, the optimum of a learning-rate curve.
//! Verdicts have estimators of their own.

/// Mean and standard error of the values that are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub mean: f64,
    /// Zero where there is only one value.
    pub sem: f64,
    pub count: usize,
}

pub fn mean(values: &[f64]) -> Option<Mean> {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let count = finite.len();
    if count == 0 {
        return None;
    }
    let mean = finite.iter().sum::<f64>() / count as f64;
    let sem = if count < 2 {
        0.0
    } else {
        let variance = finite.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
        (variance / count as f64).sqrt()
    };
    Some(Mean { mean, sem, count })
}

/// Least-squares slope of log y over log x.
pub fn log_slope(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> =
        points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0 && y.is_finite()).map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let (mx, my) = (logs.iter().map(|p| p.0).sum::<f64>() / count, logs.iter().map(|p| p.1).sum::<f64>() / count);
    let (sxx, sxy) = logs.iter().fold((0.0, 0.0), |(xx, xy), (x, y)| (xx + (x - mx).powi(2), xy + (x - mx) * (y - my)));
    (logs.len() >= 2 && sxx > 0.0).then(|| sxy / sxx)
}

/// Where a learning-rate curve is lowest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimum {
    /// The vertex of the parabola, or the grid's point where the parabola has none inside the grid.
    pub lr: f64,
    /// The lowest point of the grid itself.
    pub at: f64,
    pub loss: f64,
    /// The lowest point is the first or the last of the grid: the true optimum may lie outside.
    pub edge: bool,
}

/// A parabola in log LR through the five points nearest to the lowest (CLAIMS section D). Points without a loss are left out.
pub fn optimum(curve: &[(f64, f64)]) -> Option<Optimum> {
    let mut known: Vec<(f64, f64)> = curve.iter().copied().filter(|(lr, loss)| *lr > 0.0 && loss.is_finite()).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = (0..known.len()).min_by(|a, b| known[*a].1.total_cmp(&known[*b].1))?;
    let (at, loss) = known[best];
    let edge = best == 0 || best + 1 == known.len();
    let from = best.saturating_sub(2).min(known.len().saturating_sub(5));
    let near = &known[from..(from + 5).min(known.len())];
    let vertex = parabola(near, at.log2()).filter(|x| (near[0].0.log2()..=near[near.len() - 1].0.log2()).contains(x));
    Some(Optimum { lr: vertex.map_or(at, f64::exp2), at, loss, edge })
}

/// The lowest place of the least-squares parabola, in log2; none if it opens downwards or the points do not determine it.
fn parabola(points: &[(f64, f64)], centre: f64) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    // Normal equations around the centre, solved by Cramer's rule.
    let mut s = [0.0; 5];
    let mut t = [0.0; 3];
    for (lr, loss) in points {
        let x = lr.log2() - centre;
        for (power, sum) in s.iter_mut().enumerate() {
            *sum += x.powi(power as i32);
        }
        for (power, sum) in t.iter_mut().enumerate() {
            *sum += loss * x.powi(power as i32);
        }
    }
    let det = |m: [[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let whole = det([[s[0], s[1], s[2]], [s[1], s[2], s[3]], [s[2], s[3], s[4]]]);
    let linear = det([[s[0], t[0], s[2]], [s[1], t[1], s[3]], [s[2], t[2], s[4]]]) / whole;
    let square = det([[s[0], s[1], t[0]], [s[1], s[2], t[1]], [s[2], s[3], t[2]]]) / whole;
    let vertex = centre - linear / (2.0 * square);
    (square > 1e-12 && vertex.is_finite()).then_some(vertex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_leaves_out_what_diverged() {
        let found = mean(&[1.0, f64::NAN, 3.0]).unwrap();
        assert_eq!((found.mean, found.count), (2.0, 2));
        assert!((found.sem - 1.0).abs() < 1e-12);
        assert_eq!(mean(&[f64::NAN]), None);
    }

    #[test]
    fn the_slope_of_a_power_law_is_its_exponent() {
        let law: Vec<(f64, f64)> = (0..7).map(|n| (f64::from(n).exp2(), 3.0 * f64::from(n).exp2().powf(0.5))).collect();
        assert!((log_slope(&law).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(log_slope(&law[..1]), None);
    }

    #[test]
    fn the_optimum_of_a_parabola_in_log_lr_is_its_vertex() {
        let curve: Vec<(f64, f64)> =
            (0..7).map(|n| (1e-3 * f64::from(n).exp2(), 3.0 + 0.1 * (f64::from(n) - 3.3).powi(2))).collect();
        let found = optimum(&curve).unwrap();
        assert!((found.lr - 1e-3 * 3.3f64.exp2()).abs() < 1e-9);
        assert_eq!((found.at, found.edge), (8e-3, false));
        assert!(optimum(&curve[4..]).unwrap().edge);
        assert_eq!(optimum(&[(1e-3, f64::NAN)]), None);
    }
}
