//! Quantiles of Student's t, from the regularised incomplete beta function.

/// The t below which a share `p` of the distribution with `dof` degrees of freedom lies.
pub fn quantile(p: f64, dof: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0 && dof > 0.0, "a quantile needs 0 < p < 1 and dof > 0");
    if p == 0.5 {
        return 0.0;
    }
    let upper = p.max(1.0 - p);
    // The distribution function rises steadily: bracket, then halve. 70 halvings reach the last bits.
    let (mut low, mut high) = (0.0, 1.0);
    while cdf(high, dof) < upper {
        high *= 2.0;
    }
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if cdf(middle, dof) < upper { low = middle } else { high = middle }
    }
    let t = 0.5 * (low + high);
    if p > 0.5 { t } else { -t }
}

/// P(T <= t) for t >= 0.
fn cdf(t: f64, dof: f64) -> f64 {
    1.0 - 0.5 * incomplete_beta(dof / 2.0, 0.5, dof / (dof + t * t))
}

/// I_x(a, b), by its continued fraction (Lentz) on the side where that converges fast.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) { front * fraction(a, b, x) / a } else { 1.0 - front * fraction(b, a, 1.0 - x) / b }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut whole = d;
    for m in 1..500 {
        let m = f64::from(m);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            whole *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    whole
}

/// The logarithm of the gamma function: Stirling's series, after moving the argument to where it is exact to the last bits.
fn ln_gamma(x: f64) -> f64 {
    let mut shift = 0.0;
    let mut x = x;
    while x < 12.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = 1.0 / (12.0 * x) * (1.0 - 1.0 / square * (1.0 / 30.0 - 1.0 / square * (1.0 / 105.0 - 1.0 / (140.0 * square))));
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (p, dof, t) in [
            (0.975, 1.0, 12.706_205),
            (0.975, 2.0, 4.302_653),
            (0.975, 9.0, 2.262_157),
            (0.95, 4.0, 2.131_847),
            (0.995, 30.0, 2.749_996),
            (0.975, 1e6, 1.959_966),
            (0.999_5, 3.0, 12.923_979),
        ] {
            assert!((quantile(p, dof) - t).abs() < 1e-5 * t, "{p} {dof}: {}", quantile(p, dof));
            assert_eq!(quantile(1.0 - p, dof).signum(), -1.0);
        }
        assert_eq!(quantile(0.5, 3.0), 0.0);
    }
}
