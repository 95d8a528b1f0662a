//! Rotary position embedding, half-split as in Hugging Face's Llama: pair (i, i + K/2) of a head turns by position * theta^(-2i/K).
//! It has no kernel of its own on the CPU: attention rotates while it copies its heads.

use super::Matrix;
use dfdx::prelude::*;

/// Cosines and sines of every position, (T, K/2) each.
#[derive(Clone, Debug)]
pub struct RopeTable<D: Device<f32>> {
    pub cos: Matrix<D>,
    pub sin: Matrix<D>,
}

impl<D: Device<f32>> RopeTable<D> {
    /// Angles are computed in f64 and rounded once: in f32 the angle of position 2,000 is already off by 1e-4.
    pub fn new(dev: &D, positions: usize, head_width: usize, theta: f64) -> Result<Self, D::Err> {
        let half = head_width / 2;
        let table = |f: fn(f64) -> f64| -> Vec<f32> {
            (0..positions * half)
                .map(|i| {
                    let (position, pair) = ((i / half) as f64, (i % half) as f64);
                    f(position * theta.powf(-2.0 * pair / head_width as f64)) as f32
                })
                .collect()
        };
        Ok(Self {
            cos: dev.try_tensor_from_vec(table(f64::cos), (positions, half))?,
            sin: dev.try_tensor_from_vec(table(f64::sin), (positions, half))?,
        })
    }
}

type Heads<D, T> = Tensor<(usize, usize, usize, usize), f32, D, T>;

/// x (B, H, T, K) with each head turned by its position.
/// Each half is sliced once and reused: backward of dfdx's slice overwrites the gradient it should add to.
pub fn define<D: Device<f32>, T: Tape<f32, D>>(x: Heads<D, T>, table: &RopeTable<D>) -> Result<Heads<D, T>, D::Err> {
    let (b, h, t, k) = *x.shape();
    let half = (b, h, t, k / 2);
    let spread = |m: &Matrix<D>| m.clone().try_broadcast_like::<_, Axes2<0, 1>>(&half);
    let (cos, sin) = (spread(&table.cos)?, spread(&table.sin)?);
    let second = x.retaped::<T>().try_slice((.., .., .., k / 2..))?.try_reshape_like(&half)?;
    let first = x.try_slice((.., .., .., ..k / 2))?.try_reshape_like(&half)?;
    let (first_again, second_again) = (first.retaped::<T>(), second.retaped::<T>());
    let turned_first = first.try_mul(cos.clone())?.try_sub(second.try_mul(sin.clone())?)?;
    let turned_second = second_again.try_mul(cos)?.try_add(first_again.try_mul(sin)?)?;
    (turned_first, turned_second).try_concat_along(Axis::<3>)?.try_reshape_like(&(b, h, t, k))
}
