//! Vector arithmetic of the kernels: written so that the compiler vectorises it, compiled twice, for AVX2 and for any CPU.
//! Both give the same bits: the order of every sum is fixed by 16 lanes and nothing is contracted into fused multiply-adds.
#![allow(unsafe_code)]

const LANES: usize = 16;

/// Defines a function twice over one body and picks the AVX2 copy where the CPU has it.
macro_rules! vectorised {
    ($(#[$doc:meta])* pub fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                #[allow(clippy::too_many_arguments)]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU has AVX2, checked in the line above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

/// e^x to about one unit in the last place: x = n ln 2 + r, a polynomial in r, and n added to the exponent.
/// Below -87 it is 0; above 88 it stays at e^88, where SiLU has long been flat and softmax never goes. NaN stays NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    /// 1.5 * 2^23: adding it rounds to the nearest integer and leaves that integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.0, 88.0);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    // Taylor coefficients up to r^7: |r| <= ln 2 / 2, so the remainder is below 1e-8 of the value.
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r * r + r + 1.0;
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    if x < -87.0 { 0.0 } else { p * scale }
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

/// Sum over i of f(i), in 16 lanes.
#[inline(always)]
fn sum_of(len: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let whole = len / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(start + lane);
        }
    }
    let mut tail = 0.0;
    for i in whole..len {
        tail += f(i);
    }
    sum_lanes(lanes) + tail
}

vectorised! {
    pub fn dot(a: &[f32], b: &[f32]) -> f32 {
        let b = &b[..a.len()];
        sum_of(a.len(), |i| a[i] * b[i])
    }
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
    pub fn scale(x: &mut [f32], factor: f32) {
        for x in x {
            *x *= factor;
        }
    }
}

vectorised! {
    /// Rows of x, each divided by its root mean square and multiplied by the gain. `inverse` keeps 1/rms of each row.
    pub fn rms_norm_rows(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32], inverse: &mut [f32]) {
        let width = gain.len();
        for ((x, out), inverse) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)).zip(inverse) {
            let mean_square = sum_of(width, |i| x[i] * x[i]) / width as f32;
            *inverse = 1.0 / (mean_square + eps).sqrt();
            for i in 0..width {
                out[i] = x[i] * *inverse * gain[i];
            }
        }
    }
}

vectorised! {
    /// dx += inverse * (g - xhat * mean(g * xhat)) with xhat = x * inverse and g = dy * gain.
    pub fn rms_norm_rows_backward(x: &[f32], gain: &[f32], inverse: &[f32], dy: &[f32], dx: &mut [f32]) {
        let width = gain.len();
        let rows = x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(dx.chunks_exact_mut(width)).zip(inverse);
        for (((x, dy), dx), &inverse) in rows {
            let mean = sum_of(width, |i| dy[i] * gain[i] * x[i]) * inverse * inverse / width as f32;
            for i in 0..width {
                dx[i] += inverse * (dy[i] * gain[i] - x[i] * mean);
            }
        }
    }
}

vectorised! {
    /// dgain += sum over rows of dy * xhat
    pub fn rms_norm_gain_backward(x: &[f32], inverse: &[f32], dy: &[f32], dgain: &mut [f32]) {
        let width = dgain.len();
        for ((x, dy), &inverse) in x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(inverse) {
            for i in 0..width {
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
                out[i] = gate[i] / (1.0 + exp(-gate[i])) * up[i];
            }
        }
    }
}

vectorised! {
    /// The gradient of (gate, up) from the gradient of silu(gate) * up.
    pub fn swiglu_rows_backward(gate_up: &[f32], dy: &[f32], dgate_up: &mut [f32], width: usize) {
        let rows = gate_up.chunks_exact(2 * width).zip(dy.chunks_exact(width)).zip(dgate_up.chunks_exact_mut(2 * width));
        for ((gate_up, dy), dgate_up) in rows {
            let (gate, up) = gate_up.split_at(width);
            let (dgate, dup) = dgate_up.split_at_mut(width);
            for i in 0..width {
                let sigmoid = 1.0 / (1.0 + exp(-gate[i]));
                let silu = gate[i] * sigmoid;
                dup[i] = dy[i] * silu;
                dgate[i] = dy[i] * up[i] * (sigmoid + silu * (1.0 - sigmoid));
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
    /// x <- softmax(x), in place; returns log(sum(exp(x))). A NaN among the scores makes everything NaN.
    pub fn softmax(x: &mut [f32]) -> f32 {
        let max = max_of(x);
        for x in x.iter_mut() {
            *x = exp(*x - max);
        }
        let sum = sum_of(x.len(), |i| x[i]);
        let inverse = 1.0 / sum;
        for x in x.iter_mut() {
            *x *= inverse;
        }
        max + sum.ln()
    }
}

vectorised! {
    /// x <- exp(x - log_sum), the softmax whose normaliser is known.
    pub fn softmax_known(x: &mut [f32], log_sum: f32) {
        for x in x.iter_mut() {
            *x = exp(*x - log_sum);
        }
    }
}

vectorised! {
    /// ds = p * (dp - sum(dp * p)), the backward of softmax, times `factor`; written over dp.
    pub fn softmax_backward(p: &[f32], dp: &mut [f32], row_dot: f32, factor: f32) {
        for (p, dp) in p.iter().zip(dp) {
            *dp = p * (*dp - row_dot) * factor;
        }
    }
}

vectorised! {
    /// Rows of one head, `stride` apart, to contiguous rows of K: pairs (i, i + K/2) turned by the angle of the row, or back
    /// if `sign` is -1.
    pub fn rotate_rows(x: &[f32], stride: usize, cos: &[f32], sin: &[f32], sign: f32, out: &mut [f32], head_width: usize) {
        let half = head_width / 2;
        for (t, out) in out.chunks_exact_mut(head_width).enumerate() {
            let (x1, x2) = x[t * stride..][..head_width].split_at(half);
            let (out1, out2) = out.split_at_mut(half);
            let (cos, sin) = (&cos[t * half..][..half], &sin[t * half..][..half]);
            for i in 0..half {
                let (c, s) = (cos[i], sin[i] * sign);
                out1[i] = x1[i] * c - x2[i] * s;
                out2[i] = x2[i] * c + x1[i] * s;
            }
        }
    }
}

vectorised! {
    /// out += x for rows of K, `out` rows being `stride` apart.
    pub fn add_rows(x: &[f32], out: &mut [f32], stride: usize, head_width: usize) {
        for (t, x) in x.chunks_exact(head_width).enumerate() {
            for (out, x) in out[t * stride..][..head_width].iter_mut().zip(x) {
                *out += x;
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
        for i in 0..len {
            let grad = g[i] * grad_factor;
            m[i] = b1 * m[i] + (1.0 - b1) * grad;
            v[i] = b2 * v[i] + (1.0 - b2) * (grad * grad);
            p[i] = p[i] * decay - step * (m[i] / (v[i].sqrt() / root + eps));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        let mut worst = 0.0_f64;
        for i in -870_000..=880_000 {
            let x = i as f32 * 1e-4;
            let truth = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) - truth).abs() / truth);
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "relative error {worst}");
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), exp(88.0));
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn softmax_of_nan_is_nan() {
        let mut x = [1.0, f32::NAN, 2.0];
        assert!(softmax(&mut x).is_nan());
        assert!(x[0].is_nan());
    }
}
