//! Where a step's time goes, by part of the model. Off unless someone asks: then each part adds what its calls took, summed over
//! threads.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// What is timed on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Embedding,
    PackForward,
    Qkv,
    Attention,
    Mlp,
    FinalNorm,
    HeadLoss,
    EmbeddingBackward,
    PackBackward,
    MlpBackward,
    AttentionOutBackward,
    AttentionBackward,
    QkvBackward,
    WeightGradients,
    FinalNormBackward,
    HeadBackward,
    GradNorm,
    AdamW,
}

impl Part {
    pub const ALL: [Part; 18] = [
        Part::Embedding,
        Part::PackForward,
        Part::Qkv,
        Part::Attention,
        Part::Mlp,
        Part::FinalNorm,
        Part::HeadLoss,
        Part::EmbeddingBackward,
        Part::PackBackward,
        Part::MlpBackward,
        Part::AttentionOutBackward,
        Part::AttentionBackward,
        Part::QkvBackward,
        Part::WeightGradients,
        Part::FinalNormBackward,
        Part::HeadBackward,
        Part::GradNorm,
        Part::AdamW,
    ];

    /// (forward, backward or optimiser; what)
    pub fn name(self) -> (&'static str, &'static str) {
        match self {
            Part::Embedding => ("forward", "embedding"),
            Part::PackForward => ("forward", "packing of weights"),
            Part::Qkv => ("forward", "norm, query-key-value"),
            Part::Attention => ("forward", "rotation, attention"),
            Part::Mlp => ("forward", "attention out, norm, feed-forward"),
            Part::FinalNorm => ("forward", "final norm"),
            Part::HeadLoss => ("forward", "head and loss"),
            Part::EmbeddingBackward => ("backward", "embedding"),
            Part::PackBackward => ("backward", "packing of weights"),
            Part::MlpBackward => ("backward", "feed-forward, norm"),
            Part::AttentionOutBackward => ("backward", "attention out"),
            Part::AttentionBackward => ("backward", "attention, rotation"),
            Part::QkvBackward => ("backward", "query-key-value, norm"),
            Part::WeightGradients => ("backward", "weight gradients of blocks"),
            Part::FinalNormBackward => ("backward", "final norm"),
            Part::HeadBackward => ("backward", "head"),
            Part::GradNorm => ("optimiser", "gradient norm"),
            Part::AdamW => ("optimiser", "AdamW"),
        }
    }
}

static ON: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: [AtomicU64; Part::ALL.len()] = [const { AtomicU64::new(0) }; Part::ALL.len()];

/// Starts timing from zero, or stops it.
pub fn set(on: bool) {
    NANOSECONDS.iter().for_each(|part| part.store(0, Relaxed));
    ON.store(on, Relaxed);
}

/// Seconds of each part since timing began, in the order of [`Part::ALL`].
pub fn seconds() -> Vec<f64> {
    NANOSECONDS.iter().map(|part| part.load(Relaxed) as f64 * 1e-9).collect()
}

/// Adds the time until it is dropped.
pub struct Span(Option<(Part, Instant)>);

pub fn span(part: Part) -> Span {
    Span(ON.load(Relaxed).then(|| (part, Instant::now())))
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some((part, start)) = self.0 {
            NANOSECONDS[part as usize].fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        }
    }
}

/// User and system time of all threads of this process.
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
