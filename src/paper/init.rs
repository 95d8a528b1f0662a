//! First values of a parameter: a truncated normal whose every number depends on seed, parameter name and index only.

use super::random::Philox;
use super::scaling::Init;
use rayon::prelude::*;

const PIECE: usize = 1 << 12;

/// `len` first values of the parameter called `name`.
pub fn values(seed: u64, name: &str, len: usize, init: Init) -> Vec<f32> {
    match init {
        Init::Ones => vec![1.0; len],
        Init::TruncatedNormal { std, cut } => {
            let random = Philox::new(seed, name);
            let mut out = vec![0.0; len];
            out.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = (std * truncated_normal(&random, (piece * PIECE + i) as u64, cut)) as f32;
                }
            });
            out
        }
    }
}

/// Draws until one falls inside the cut, `cut` standard deviations from 0: with 3, 1 in 370 needs a second draw. The result is not
/// rescaled: with 3 its std is 0.9866 of the nominal one, with 2 it is 0.8796.
fn truncated_normal(random: &Philox, index: u64, cut: f64) -> f64 {
    for attempt in 0..u64::MAX {
        // Box-Muller; indices stay below 2^40, so attempts of different numbers never meet.
        let [u, v] = random.uniforms(attempt << 40 | index);
        let radius = (-2.0 * u.ln()).sqrt();
        for z in [radius * (std::f64::consts::TAU * v).cos(), radius * (std::f64::consts::TAU * v).sin()] {
            if z.abs() <= cut {
                return z;
            }
        }
    }
    unreachable!("a draw falls inside the cut")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_the_moments_of_a_normal_cut_at_three() {
        let w = values(0, "test", 1 << 18, Init::TruncatedNormal { std: 0.02, cut: 3.0 });
        let n = w.len() as f64;
        let mean = w.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        let std = (w.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n).sqrt();
        // Standard errors at this size: 4e-5 of the mean, 3e-5 of the std; five of each.
        assert!(mean.abs() < 2e-4, "mean {mean}");
        assert!((std - 0.02 * 0.986_58).abs() < 1.5e-4, "std {std}");
        assert!(w.iter().all(|x| x.abs() <= 0.06));
    }

    #[test]
    fn weights_do_not_depend_on_the_number_of_threads() {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
            pool.install(|| values(3, "blocks.0.qkv", 10_001, Init::TruncatedNormal { std: 1.0, cut: 3.0 }))
        };
        assert_eq!(with(1), with(4));
    }

    #[test]
    fn two_parameters_or_seeds_share_no_numbers() {
        let of = |seed, name| values(seed, name, 8, Init::TruncatedNormal { std: 1.0, cut: 3.0 });
        assert_ne!(of(0, "a"), of(0, "b"));
        assert_ne!(of(0, "a"), of(1, "a"));
    }
}
