//! Vector arithmetic of the kernels: written so that the compiler vectorises it, compiled for AVX-512, for AVX2 and for any CPU.
//! The order of every sum is fixed by 16 lanes; multiply-adds are fused where the CPU can, so that results belong to a level.
#![allow(unsafe_code)]

use super::level::{Level, level};

const LANES: usize = 16;

/// Defines a function once for every level over one body, in which `FUSED` says whether the CPU fuses multiply-adds.
macro_rules! vectorised {
    ($(#[$doc:meta])* pub fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
            fn body<const FUSED: bool>($($arg: $ty),*) $(-> $ret)? $body

            match level() {
                #[cfg(target_arch = "x86_64")]
                Level::Amx | Level::Avx512 => {
                    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                    #[allow(clippy::too_many_arguments)]
                    fn avx512($($arg: $ty),*) $(-> $ret)? {
                        body::<true>($($arg),*)
                    }
                    // SAFETY: the CPU has these, or the level would be another.
                    unsafe { avx512($($arg),*) }
                }
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => {
                    #[target_feature(enable = "avx2,fma")]
                    #[allow(clippy::too_many_arguments)]
                    fn avx2($($arg: $ty),*) $(-> $ret)? {
                        body::<true>($($arg),*)
                    }
                    // SAFETY: the CPU has these, or the level would be another.
                    unsafe { avx2($($arg),*) }
                }
                _ => body::<false>($($arg),*),
            }
        }
    };
}

/// a * b + c, rounded once if `FUSED`: without the instruction it would be a slow call.
#[inline(always)]
fn madd<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// e^x for x to 88, to about one unit in the last place, to three far from zero. Below -87 it is 0. NaN stays NaN.
#[inline(always)]
fn exp<const FUSED: bool>(x: f32) -> f32 {
    // What comes out of a lower x is anything.
    if x < -87.0 { 0.0 } else { exp_within::<FUSED>(x) }
}

/// [`exp`] between -87 and 88: x = n ln 2 + r, a polynomial in r, and n added to the exponent.
#[inline(always)]
fn exp_within<const FUSED: bool>(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    /// 1.5 * 2^23: adding it rounds to the nearest integer and leaves that integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let madd = madd::<FUSED>;
    let shifted = madd(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // Rounded once, n ln 2 is off by no more than ln 2 itself: 2e-9 n.
    let r = if FUSED { madd(-n, std::f32::consts::LN_2, x) } else { madd(-n, LN2_LOW, madd(-n, LN2_HIGH, x)) };
    // The polynomial with the smallest largest error for |r| <= ln 2 / 2 among those that begin with 1 + r: 2e-9 of the value.
    let p = madd(0.001_384_356, r, 0.008_374_236);
    let p = madd(p, r, 0.041_668_01);
    let p = madd(p, r, 0.166_664_3);
    let p = madd(p, r, 0.499_999_94);
    let p = madd(p, r, 1.0);
    let p = madd(p, r, 1.0);
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    p * scale
}

/// 1 / x for x from 1 to 8e37, to about one unit in the last place: a guess from the bits of x, and three steps of Newton, which
/// take a third of the time of a division.
#[inline(always)]
fn inverse<const FUSED: bool>(x: f32) -> f32 {
    let mut y = f32::from_bits(0x7ef3_11c3_u32.wrapping_sub(x.to_bits()));
    for _ in 0..3 {
        y = madd::<FUSED>(y, madd::<FUSED>(-x, y, 1.0), y);
    }
    y
}

/// 1 / (1 + e^-x), flat below -87 and above 87.
#[inline(always)]
fn sigmoid<const FUSED: bool>(x: f32) -> f32 {
    inverse::<FUSED>(1.0 + exp_within::<FUSED>((-x).clamp(-87.0, 87.0)))
}

#[inline(always)]
fn sum_lanes(lanes: [f32; LANES]) -> f32 {
    let mut lanes = lanes;
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Sum over i of f(x_0[i], x_1[i], ..), in 16 lanes; all of `x` are as long as the first.
#[inline(always)]
fn sum_of<const N: usize>(x: [&[f32]; N], f: impl Fn([f32; N]) -> f32) -> f32 {
    let len = x[0].len();
    let (pieces, tails) = (x.map(|x| x[..len].as_chunks::<LANES>().0), x.map(|x| x[..len].as_chunks::<LANES>().1));
    let mut lanes = [0.0; LANES];
    let count = len / LANES;
    for at in 0..count {
        let piece = pieces.map(|x| &x[at]);
        // A register of terms first: otherwise the compiler cuts the sums into halves of halves, as they are added up at the end.
        let mut terms = [0.0; LANES];
        for lane in 0..LANES {
            terms[lane] = f(std::array::from_fn(|of| piece[of][lane]));
        }
        for lane in 0..LANES {
            lanes[lane] += terms[lane];
        }
    }
    let mut tail = 0.0;
    for at in 0..len % LANES {
        tail += f(tails.map(|x| x[at]));
    }
    sum_lanes(lanes) + tail
}

vectorised! {
    /// out += factor * x
    pub fn add_scaled(out: &mut [f32], x: &[f32], factor: f32) {
        for (o, x) in out.iter_mut().zip(x) {
            *o += factor * x;
        }
    }
}

vectorised! {
    /// out = x + factor * y
    pub fn sum_scaled(out: &mut [f32], x: &[f32], y: &[f32], factor: f32) {
        for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
            *o = x + factor * y;
        }
    }
}

vectorised! {
    /// Rows of x, each divided by its root mean square and multiplied by the gain. `inverse` keeps 1/rms of each row.
    pub fn rms_norm_rows(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32], inverse: &mut [f32]) {
        let width = gain.len();
        for ((x, out), inverse) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)).zip(inverse) {
            let mean_square = sum_of([x], |[x]| x * x) / width as f32;
            *inverse = 1.0 / (mean_square + eps).sqrt();
            for i in 0..width {
                out[i] = x[i] * *inverse * gain[i];
            }
        }
    }
}

vectorised! {
    /// [`rms_norm_rows`] with the known inverse.
    pub fn rms_norm_again(x: &[f32], gain: &[f32], inverse: &[f32], out: &mut [f32]) {
        let width = gain.len();
        for ((x, out), &inverse) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)).zip(inverse) {
            fetch_after(x, width);
            for i in 0..width {
                out[i] = x[i] * inverse * gain[i];
            }
        }
    }
}

vectorised! {
    /// dx += inverse * (g - xhat * mean(g * xhat)) with xhat = x * inverse and g = dy * gain; dgain += sum over rows of dy * xhat.
    pub fn rms_norm_rows_backward(x: &[f32], gain: &[f32], inverse: &[f32], dy: &[f32], dx: &mut [f32], dgain: &mut [f32]) {
        let width = gain.len();
        let dgain = &mut dgain[..width];
        let rows = x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(dx.chunks_exact_mut(width)).zip(inverse);
        for (((x, dy), dx), &inverse) in rows {
            let mean = sum_of([x, dy, gain], |[x, dy, gain]| dy * gain * x) * inverse * inverse / width as f32;
            for i in 0..width {
                dx[i] += inverse * (dy[i] * gain[i] - x[i] * mean);
                dgain[i] += dy[i] * x[i] * inverse;
            }
        }
    }
}

vectorised! {
    /// Rows of (gate, up), each 2F wide, to rows of silu(gate) * up, each F wide.
    pub fn swiglu_rows(gate_up: &[f32], out: &mut [f32], width: usize) {
        for (gate_up, out) in gate_up.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
            let (gate, up) = gate_up.split_at(width);
            for i in 0..width {
                out[i] = gate[i] * sigmoid::<FUSED>(gate[i]) * up[i];
            }
        }
    }
}

/// Rows of what forward saved long ago are asked for this many rows before they are needed.
const FETCHED_ROWS: usize = 4;

/// Asks for as many numbers as `row` has, [`FETCHED_ROWS`] rows of `stride` after its own.
#[inline(always)]
fn fetch_after(row: &[f32], stride: usize) {
    fetch(row.as_ptr().wrapping_add(FETCHED_ROWS * stride), row.len());
}

/// Asks for numbers that will be needed; past the end of the memory that does nothing.
#[inline(always)]
pub fn fetch(first: *const f32, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..len).step_by(LANES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address, which is not read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (first, len);
}

vectorised! {
    /// Rows of (gate, up) become their gradient, given that of silu(gate) * up, which becomes silu(gate) * up itself.
    pub fn swiglu_rows_backward(gate_up: &mut [f32], active: &mut [f32], width: usize) {
        for (gate_up, active) in gate_up.chunks_exact_mut(2 * width).zip(active.chunks_exact_mut(width)) {
            fetch_after(gate_up, 2 * width);
            let (gate, up) = gate_up.split_at_mut(width);
            for i in 0..width {
                let sigmoid = sigmoid::<FUSED>(gate[i]);
                let silu = gate[i] * sigmoid;
                let dy = active[i];
                active[i] = silu * up[i];
                gate[i] = dy * up[i] * madd::<FUSED>(silu, 1.0 - sigmoid, sigmoid);
                up[i] = dy * silu;
            }
        }
    }
}

#[inline(always)]
fn max_of(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let pieces = x.chunks_exact(LANES);
    let tail = pieces.remainder();
    for piece in pieces {
        for i in 0..LANES {
            lanes[i] = if piece[i] > lanes[i] { piece[i] } else { lanes[i] };
        }
    }
    lanes.iter().chain(tail).fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m })
}

vectorised! {
    /// x <- factor * softmax(x), in place; returns log(sum(exp(x))). A NaN among the scores makes everything NaN.
    pub fn softmax_scaled(x: &mut [f32], factor: f32) -> f32 {
        let max = max_of(x);
        let mut lanes = [0.0; LANES];
        let mut pieces = x.chunks_exact_mut(LANES);
        for piece in &mut pieces {
            for lane in 0..LANES {
                piece[lane] = exp::<FUSED>(piece[lane] - max);
                lanes[lane] += piece[lane];
            }
        }
        let mut sum = sum_lanes(lanes);
        for x in pieces.into_remainder() {
            *x = exp::<FUSED>(*x - max);
            sum += *x;
        }
        let inverse = factor / sum;
        for x in x.iter_mut() {
            *x *= inverse;
        }
        max + sum.ln()
    }
}

/// Rows side by side in [`copy_in_groups`].
pub const GROUP: usize = LANES;

vectorised! {
    /// Columns of `count` numbers, `stride` apart, to groups of [`GROUP`] rows one after another, in each the rows side by side, one
    /// column after another. Whole columns are read at a time: each may be a page of its own.
    pub fn copy_in_groups(x: &[f32], stride: usize, count: usize, out: &mut [f32]) {
        let columns = out.len() / count;
        let whole = count / GROUP * GROUP;
        for k in 0..columns {
            let column = &x[k * stride..][..count];
            for (group, numbers) in column.as_chunks::<GROUP>().0.iter().enumerate() {
                let at = group * GROUP * columns + k * GROUP;
                out[at..at + GROUP].copy_from_slice(numbers);
            }
            let rest = count - whole;
            out[whole * columns + k * rest..][..rest].copy_from_slice(&column[whole..]);
        }
    }
}

/// Queries side by side in a block of scores. Keys of the second half of a block are seen by its second half only: of their rows the
/// first half is neither read nor written.
pub const QUERIES: usize = 32;
const HALF: usize = QUERIES / 2;

vectorised! {
    /// A block of scores: a row for each key, in it [`QUERIES`] queries from `first` on, each of which sees the keys up to itself. Scores
    /// become exp(score - max), those of the future 0; `most` keeps the largest score of each query, `inverse` one over the sum.
    pub fn softmax_causal(scores: &mut [f32], first: usize, most: &mut [f32], inverse: &mut [f32]) {
        let mut max = [f32::NEG_INFINITY; QUERIES];
        let (seen, rest) = scores.split_at_mut(first * QUERIES);
        for row in seen.as_chunks::<QUERIES>().0 {
            for i in 0..QUERIES {
                max[i] = if row[i] > max[i] { row[i] } else { max[i] };
            }
        }
        let rest = rest.as_chunks_mut::<QUERIES>().0;
        let (near, last) = rest.split_at_mut(rest.len().min(HALF));
        for (key, row) in near.iter().enumerate() {
            for i in 0..QUERIES {
                let x = if i >= key { row[i] } else { f32::NEG_INFINITY };
                max[i] = if x > max[i] { x } else { max[i] };
            }
        }
        for (key, row) in last.iter().enumerate() {
            for i in 0..HALF {
                let x = if i >= key { row[HALF + i] } else { f32::NEG_INFINITY };
                max[HALF + i] = if x > max[HALF + i] { x } else { max[HALF + i] };
            }
        }
        let mut sums = [0.0; QUERIES];
        for row in seen.as_chunks_mut::<QUERIES>().0 {
            for i in 0..QUERIES {
                row[i] = exp::<FUSED>(row[i] - max[i]);
                sums[i] += row[i];
            }
        }
        for (key, row) in near.iter_mut().enumerate() {
            for i in 0..QUERIES {
                let weight = exp::<FUSED>(row[i] - max[i]);
                row[i] = if i >= key { weight } else { 0.0 };
                sums[i] += row[i];
            }
        }
        for (key, row) in last.iter_mut().enumerate() {
            for i in 0..HALF {
                let weight = exp::<FUSED>(row[HALF + i] - max[HALF + i]);
                row[HALF + i] = if i >= key { weight } else { 0.0 };
                sums[HALF + i] += row[HALF + i];
            }
        }
        for (i, (most, inverse)) in most.iter_mut().zip(inverse.iter_mut()).enumerate() {
            (*most, *inverse) = (max[i], 1.0 / sums[i]);
        }
    }
}

vectorised! {
    /// Scores become p = exp(score - most) * inverse and dp becomes p * (dp - dot), the gradient of the score; both 0 for the future.
    /// Blocks as in [`softmax_causal`]; `saved` are most, inverse and dot of each query.
    pub fn softmax_causal_backward(scores: &mut [f32], dscores: &mut [f32], first: usize, saved: (&[f32], &[f32], &[f32])) {
        let [mut most, mut inverse, mut dot] = [[0.0; QUERIES]; 3];
        for (lanes, saved) in [(&mut most, saved.0), (&mut inverse, saved.1), (&mut dot, saved.2)] {
            lanes[..saved.len()].copy_from_slice(saved);
        }
        let (p, dp) = (scores.as_chunks_mut::<QUERIES>().0, dscores.as_chunks_mut::<QUERIES>().0);
        let (seen, rest) = p.split_at_mut(first);
        for (p, dp) in seen.iter_mut().zip(dp.iter_mut()) {
            for i in 0..QUERIES {
                p[i] = exp::<FUSED>(p[i] - most[i]) * inverse[i];
                dp[i] = p[i] * (dp[i] - dot[i]);
            }
        }
        let (near, last) = rest.split_at_mut(rest.len().min(HALF));
        for (key, (p, dp)) in near.iter_mut().zip(&mut dp[first..]).enumerate() {
            for i in 0..QUERIES {
                let weight = exp::<FUSED>(p[i] - most[i]) * inverse[i];
                p[i] = if i >= key { weight } else { 0.0 };
                dp[i] = p[i] * (dp[i] - dot[i]);
            }
        }
        let second = |all: [f32; QUERIES]| -> [f32; HALF] { std::array::from_fn(|i| all[HALF + i]) };
        let (most, inverse, dot) = (second(most), second(inverse), second(dot));
        for (key, (p, dp)) in last.iter_mut().zip(dp.iter_mut().skip(first + HALF)).enumerate() {
            let (p, dp) = (&mut p[HALF..], &mut dp[HALF..]);
            for i in 0..HALF {
                let weight = exp::<FUSED>(p[i] - most[i]) * inverse[i];
                p[i] = if i >= key { weight } else { 0.0 };
                dp[i] = p[i] * (dp[i] - dot[i]);
            }
        }
    }
}

vectorised! {
    /// Dot products of rows of K, which are `stride` apart on both sides.
    pub fn row_dots(a: &[f32], b: &[f32], stride: usize, head_width: usize, dots: &mut [f32]) {
        for (i, dot) in dots.iter_mut().enumerate() {
            let (a, b) = (&a[i * stride..][..head_width], &b[i * stride..][..head_width]);
            *dot = sum_of([a, b], |[a, b]| a * b);
        }
    }
}

#[inline(always)]
fn rotate_pairs<const FUSED: bool>(first: &mut [f32], second: &mut [f32], cos: &[f32], sin: &[f32], sign: f32) {
    for (((x1, x2), &c), &s) in first.iter_mut().zip(second).zip(cos).zip(sin) {
        let s = s * sign;
        let (old1, old2) = (*x1, *x2);
        *x1 = old1 * c - old2 * s;
        *x2 = old2 * c + old1 * s;
    }
}

vectorised! {
    /// The first `heads` heads of each row, rows being `stride` apart: pairs (i, i + K/2) turned by the angle of the row, or back
    /// if `sign` is -1.
    pub fn rotate(x: &mut [f32], stride: usize, cos: &[f32], sin: &[f32], sign: f32, heads: usize, head_width: usize) {
        let half = head_width / 2;
        for (t, row) in x.chunks_exact_mut(stride).enumerate() {
            let (cos, sin) = (&cos[t * half..][..half], &sin[t * half..][..half]);
            for head in row[..heads * head_width].chunks_exact_mut(head_width) {
                let (first, second) = head.split_at_mut(half);
                // The usual widths with a length the compiler knows: no loop, no rest.
                match half {
                    8 => rotate_pairs::<FUSED>(&mut first[..8], &mut second[..8], &cos[..8], &sin[..8], sign),
                    16 => rotate_pairs::<FUSED>(&mut first[..16], &mut second[..16], &cos[..16], &sin[..16], sign),
                    32 => rotate_pairs::<FUSED>(&mut first[..32], &mut second[..32], &cos[..32], &sin[..32], sign),
                    _ => rotate_pairs::<FUSED>(first, second, cos, sin, sign),
                }
            }
        }
    }
}

vectorised! {
    /// Sum of squares, accumulated in f64.
    pub fn sum_squares(x: &[f32]) -> f64 {
        let mut lanes = [0.0_f64; LANES];
        let pieces = x.chunks_exact(LANES);
        let tail: f64 = pieces.remainder().iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        for piece in pieces {
            for i in 0..LANES {
                lanes[i] += f64::from(piece[i]) * f64::from(piece[i]);
            }
        }
        lanes.iter().sum::<f64>() + tail
    }
}

vectorised! {
    /// One AdamW update: decay is `1 - lr * weight_decay`, step is `lr / (1 - beta1^t)`, root is `sqrt(1 - beta2^t)`.
    pub fn adamw(
        p: &mut [f32],
        m: &mut [f32],
        v: &mut [f32],
        g: &[f32],
        grad_factor: f32,
        betas: (f32, f32),
        decay: f32,
        step: f32,
        root: f32,
        eps: f32,
    ) {
        let len = p.len();
        let (m, v, g) = (&mut m[..len], &mut v[..len], &g[..len]);
        let (b1, b2) = betas;
        let inverse_root = 1.0 / root;
        for i in 0..len {
            let grad = g[i] * grad_factor;
            m[i] = b1 * m[i] + (1.0 - b1) * grad;
            v[i] = b2 * v[i] + (1.0 - b2) * (grad * grad);
            p[i] = p[i] * decay - step * (m[i] / (v[i].sqrt() * inverse_root + eps));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_exp<const FUSED: bool>() {
        for i in -870_000..=880_000 {
            let x = i as f32 * 1e-4;
            let truth = f64::from(x).exp();
            let error = (f64::from(exp::<FUSED>(x)) - truth).abs() / truth;
            let units = if x.abs() < 40.0 { 2.0 } else { 3.0 };
            assert!(error < units * f64::from(f32::EPSILON), "relative error {error} at {x}");
        }
        assert_eq!(exp::<FUSED>(f32::NEG_INFINITY), 0.0);
        assert!(exp::<FUSED>(f32::NAN).is_nan());
        assert_eq!(exp::<FUSED>(0.0), 1.0);
    }

    #[test]
    fn exp_is_within_two_units_in_the_last_place_and_three_far_from_zero() {
        check_exp::<false>();
        check_exp::<true>();
    }

    #[test]
    fn the_inverse_is_within_two_units_in_the_last_place() {
        let mut x = 1.0_f32;
        while x < 8e37 {
            let truth = 1.0 / f64::from(x);
            let error = (f64::from(inverse::<true>(x)) - truth).abs() / truth;
            assert!(error < 2.0 * f64::from(f32::EPSILON), "1 / {x}: {error}");
            x *= 1.000_37;
        }
        assert!(inverse::<true>(f32::NAN).is_nan());
    }

    #[test]
    fn sigmoid_of_anything_is_a_probability_or_nan() {
        for x in [f32::NEG_INFINITY, -1e30, -200.0, -88.0, -87.98, -87.0] {
            assert!((0.0..1e-37).contains(&sigmoid::<true>(x)), "{x}");
        }
        for (x, truth) in [(f32::INFINITY, 1.0), (1e30, 1.0), (200.0, 1.0), (87.0, 1.0), (0.0, 0.5)] {
            assert!((sigmoid::<true>(x) - truth).abs() <= 2.0 * f32::EPSILON, "{x}");
        }
        assert!(sigmoid::<true>(f32::NAN).is_nan());
    }

    #[test]
    fn softmax_of_nan_is_nan() {
        let mut x = [1.0, f32::NAN, 2.0];
        assert!(softmax_scaled(&mut x, 1.0).is_nan());
        assert!(x[0].is_nan());
    }
}
