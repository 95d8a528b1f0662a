//! A curve of loss over learning rate: where it is lowest, and whether that can be told.

/// Points of the quadratic.
const NEAREST: usize = 5;

/// Mean losses over a grid of learning rates, in ascending order. NaN where a run diverged.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub log2_lr: Vec<f64>,
    pub loss: Vec<f64>,
}

/// Why a curve does not show its optimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// Fewer than three rates did not diverge.
    TooShort,
    /// The lowest loss is at the lowest or highest rate that was tried.
    AtEdge,
    /// The quadratic opens downwards or not at all.
    TooFlat,
}

impl Flaw {
    pub fn text(self) -> &'static str {
        match self {
            Flaw::TooShort => "fewer than three learning rates did not diverge",
            Flaw::AtEdge => "the optimum lies at the edge of the grid of learning rates",
            Flaw::TooFlat => "the curve is too flat to show an optimum",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimum {
    /// Where the quadratic is lowest, log2 of the learning rate.
    pub log2_lr: f64,
    /// The loss of the quadratic there.
    pub loss: f64,
    /// Half the second derivative, nats per squared octave.
    pub curvature: f64,
}

impl Curve {
    /// The rate with the lowest loss; the lower one of two equal.
    pub fn argmin(&self) -> Option<usize> {
        let finite = (0..self.loss.len()).filter(|at| self.loss[*at].is_finite());
        finite.min_by(|a, b| self.loss[*a].total_cmp(&self.loss[*b]))
    }

    pub fn best(&self) -> Option<f64> {
        self.argmin().map(|at| self.loss[at])
    }

    /// How much is lost at a rate of the grid.
    pub fn regret(&self, log2_lr: f64) -> Option<f64> {
        let at = node_of(&self.log2_lr, log2_lr)?;
        let loss = self.loss[at];
        // A diverged run loses without bound, which is worse than any tolerance.
        if loss.is_finite() { self.best().map(|best| loss - best) } else { Some(f64::INFINITY) }
    }

    /// The lowest point of a quadratic through the five points nearest the lowest one. A rate above which all diverged is no edge:
    /// the optimum lies between it and the divergence.
    pub fn optimum(&self) -> Result<Optimum, Flaw> {
        let lowest = self.argmin().ok_or(Flaw::TooShort)?;
        let mut near: Vec<usize> = (0..self.loss.len()).filter(|at| self.loss[*at].is_finite()).collect();
        if near.len() < 3 {
            return Err(Flaw::TooShort);
        }
        if lowest == 0 || lowest + 1 == self.loss.len() {
            return Err(Flaw::AtEdge);
        }
        let distance = |at: usize| (self.log2_lr[at] - self.log2_lr[lowest]).abs();
        near.sort_by(|a, b| distance(*a).total_cmp(&distance(*b)).then(a.cmp(b)));
        near.truncate(NEAREST);
        near.sort_unstable();
        let points: Vec<(f64, f64)> = near.iter().map(|at| (self.log2_lr[*at] - self.log2_lr[lowest], self.loss[*at])).collect();
        let [c, b, a] = quadratic(&points).ok_or(Flaw::TooFlat)?;
        if a <= 0.0 {
            return Err(Flaw::TooFlat);
        }
        // Beyond the points the quadratic knows nothing.
        let (from, to) = (points[0].0, points[points.len() - 1].0);
        let at = (-b / (2.0 * a)).clamp(from, to);
        Ok(Optimum { log2_lr: at + self.log2_lr[lowest], loss: c + b * at + a * at * at, curvature: a })
    }
}

/// How well a sweep can tell where its optimum is: the noise of a run against the curvature of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Nats per squared octave.
    pub curvature: f64,
    /// Standard deviation of a run in nats, what its seed has in common with the other rates left out.
    pub noise: f64,
    /// Standard deviation, in octaves, of the optimum that a single seed would show.
    pub octaves: f64,
}

/// The resolving power of one curve per seed, all over the same rates. Needs two seeds.
pub fn resolving_power(seeds: &[Curve]) -> Result<Power, Flaw> {
    let n = seeds.len();
    let rates = seeds.first().map_or(0, |curve| curve.loss.len());
    let mean = |left_out: Option<usize>| {
        let used: Vec<&Curve> =
            seeds.iter().enumerate().filter(|(at, _)| Some(*at) != left_out).map(|(_, curve)| curve).collect();
        let loss = |at: usize| used.iter().map(|curve| curve.loss[at]).sum::<f64>() / used.len() as f64;
        Curve { log2_lr: seeds[0].log2_lr.clone(), loss: (0..rates).map(loss).collect() }
    };
    if n < 2 {
        return Err(Flaw::TooShort);
    }
    let whole = mean(None);
    let optimum = whole.optimum()?;
    let finite: Vec<usize> = (0..rates).filter(|at| whole.loss[*at].is_finite()).collect();
    let over = |curve: &Curve| finite.iter().map(|at| curve.loss[*at]).sum::<f64>() / finite.len() as f64;
    let grand = over(&whole);
    let squares: f64 = seeds
        .iter()
        .flat_map(|curve| finite.iter().map(move |at| (curve, *at)))
        .map(|(curve, at)| (curve.loss[at] - over(curve) - whole.loss[at] + grand).powi(2))
        .sum();
    let without = (0..n).map(|at| mean(Some(at)).optimum().map(|optimum| optimum.log2_lr)).collect::<Result<Vec<f64>, Flaw>>()?;
    let centre = without.iter().sum::<f64>() / n as f64;
    // The jackknife's variance of the mean, (n - 1) / n of the sum, times n seeds.
    let variance = (n as f64 - 1.0) * without.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
    let freedom = (n - 1) as f64 * (finite.len() - 1) as f64;
    Ok(Power { curvature: optimum.curvature, noise: (squares / freedom).sqrt(), octaves: variance.sqrt() })
}

/// The place of a rate in a grid; rates closer than a thousandth are the same.
pub fn node_of(grid: &[f64], log2_lr: f64) -> Option<usize> {
    grid.iter().position(|have| (have - log2_lr).abs() < 1e-3)
}

/// Least squares of y = c + b x + a x^2, from the normal equations; x is small and centred, so they are well conditioned.
fn quadratic(points: &[(f64, f64)]) -> Option<[f64; 3]> {
    let mut rows = [[0.0; 4]; 3];
    for &(x, y) in points {
        let powers = [1.0, x, x * x];
        for (row, power) in rows.iter_mut().zip(powers) {
            for (cell, other) in row.iter_mut().zip([1.0, x, x * x, y]) {
                *cell += power * other;
            }
        }
    }
    for pivot in 0..3 {
        let best = (pivot..3).max_by(|a, b| rows[*a][pivot].abs().total_cmp(&rows[*b][pivot].abs()))?;
        rows.swap(pivot, best);
        if rows[pivot][pivot].abs() < 1e-12 {
            return None;
        }
        let lead = rows[pivot];
        for (at, row) in rows.iter_mut().enumerate() {
            if at != pivot {
                let factor = row[pivot] / lead[pivot];
                row.iter_mut().zip(lead).for_each(|(cell, lead)| *cell -= factor * lead);
            }
        }
    }
    let solution = [rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2]];
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parabola(centre: f64, rates: &[f64]) -> Curve {
        Curve { log2_lr: rates.to_vec(), loss: rates.iter().map(|x| 2.0 + 0.05 * (x - centre).powi(2)).collect() }
    }

    #[test]
    fn a_parabola_is_found_exactly() {
        let optimum = parabola(-9.3, &[-11.0, -10.0, -9.0, -8.0, -7.0, -6.0]).optimum().unwrap();
        assert!((optimum.log2_lr + 9.3).abs() < 1e-9 && (optimum.loss - 2.0).abs() < 1e-9);
        assert!((optimum.curvature - 0.05).abs() < 1e-9);
    }

    #[test]
    fn an_optimum_at_the_edge_is_told() {
        assert_eq!(parabola(-12.0, &[-11.0, -10.0, -9.0]).optimum(), Err(Flaw::AtEdge));
        assert_eq!(parabola(-5.0, &[-11.0, -10.0, -9.0]).optimum(), Err(Flaw::AtEdge));
    }

    #[test]
    fn divergence_above_the_lowest_point_is_no_edge() {
        let mut curve = parabola(-8.9, &[-11.0, -10.0, -9.0, -8.0]);
        curve.loss[3] = f64::NAN;
        let optimum = curve.optimum().unwrap();
        assert_eq!(optimum.log2_lr, -9.0, "not beyond the last rate that trained");
    }

    #[test]
    fn a_hump_or_too_few_points_show_no_optimum() {
        let hump = Curve { log2_lr: vec![-11.0, -10.0, -9.0, -8.0, -7.0], loss: vec![2.0, 1.99, 2.3, 1.995, 2.0] };
        assert_eq!(hump.optimum(), Err(Flaw::TooFlat));
        let short = Curve { log2_lr: vec![-11.0, -10.0, -9.0], loss: vec![2.0, 1.9, f64::NAN] };
        assert_eq!(short.optimum(), Err(Flaw::TooShort));
    }

    #[test]
    fn noise_and_resolution_are_those_the_runs_were_made_with() {
        use crate::paper::random::Philox;
        let random = Philox::new(5, "test");
        let mut drawn = 0;
        let mut normal = || {
            let [u, v] = random.uniforms(drawn);
            drawn += 1;
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let rates = [-11.0, -10.0, -9.0, -8.0, -7.0];
        let seeds: Vec<Curve> = (0..400)
            .map(|_| {
                let mut curve = parabola(-9.0, &rates);
                let common = normal();
                curve.loss.iter_mut().for_each(|loss| *loss += common + 0.01 * normal());
                curve
            })
            .collect();
        let power = resolving_power(&seeds).unwrap();
        assert!((power.noise - 0.01).abs() < 0.001, "{power:?}");
        // The vertex is at -b / 2a; with five rates an octave apart b has variance noise^2 / 10.
        assert!((power.octaves - 0.01 / 10f64.sqrt() / 0.1).abs() < 0.005, "{power:?}");
        assert_eq!(resolving_power(&seeds[..1]), Err(Flaw::TooShort));
    }

    #[test]
    fn regret_is_measured_on_the_grid() {
        let mut curve = parabola(-9.0, &[-10.0, -9.0, -8.0]);
        assert!((curve.regret(-10.0).unwrap() - 0.05).abs() < 1e-12);
        assert_eq!(curve.regret(-10.5), None);
        curve.loss[0] = f64::NAN;
        assert_eq!(curve.regret(-10.0), Some(f64::INFINITY));
    }
}
