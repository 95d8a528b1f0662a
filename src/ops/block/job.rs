//! What the rows of one pass through a block share, forward or backward: sizes, gains and the packed weights.

use super::super::Matrix;
use super::super::attention::heads::Layout;
use super::super::cpu::clock::{Part, span};
use super::super::cpu::gemm::{Packed, View, Workers};
use super::super::cpu::view::as_slice;
use super::cpu::Sizes;
use super::{BlockShape, BlockWeights};
use dfdx::prelude::*;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Multiplies rows by the transposed weights.
    Forward,
    /// Multiplies gradients of rows by the weights as they are.
    Backward,
}

/// The weights, packed for one pass.
pub struct Right<'a> {
    pub qkv: Packed<'a>,
    pub attention_out: Packed<'a>,
    pub gate_up: Packed<'a>,
    pub down: Packed<'a>,
}

impl<'a> Right<'a> {
    fn new<'w>(weights: &'w BlockWeights<Cpu>, pass: Pass, pack: impl Fn(View<'w>) -> Packed<'a>) -> Self {
        let _timed = span(if pass == Pass::Forward { Part::PackForward } else { Part::PackBackward });
        let right = |weight: &'w Matrix<Cpu>| {
            let (outer, inner) = *weight.shape();
            let view = View::new(as_slice(weight), outer, inner);
            pack(if pass == Pass::Forward { view.t() } else { view })
        };
        Self {
            qkv: right(&weights.qkv),
            attention_out: right(&weights.attention_out),
            gate_up: right(&weights.gate_up),
            down: right(&weights.down),
        }
    }
}

thread_local! {
    static KEPT: RefCell<Vec<Weak<Packs>>> = const { RefCell::new(Vec::new()) };
}

/// Packed weights that all visits of a block share from the first forward to the last backward, however many loops there are. Tapes own
/// them: when the weights are about to change, none is left.
pub struct Packs {
    /// What was packed. As long as these are here their memory belongs to nobody else, and a write to the weights goes elsewhere.
    weights: BlockWeights<Cpu>,
    forward: Mutex<Option<Arc<Right<'static>>>>,
    backward: OnceLock<Arc<Right<'static>>>,
}

impl Packs {
    pub fn of(weights: &BlockWeights<Cpu>) -> Arc<Self> {
        KEPT.with_borrow_mut(|kept| {
            kept.retain(|packs| packs.strong_count() > 0);
            let found = kept.iter().filter_map(Weak::upgrade).find(|packs| same(&packs.weights, weights));
            found.unwrap_or_else(|| {
                let new = Arc::new(Self { weights: weights.clone(), forward: Mutex::default(), backward: OnceLock::new() });
                kept.push(Arc::downgrade(&new));
                new
            })
        })
    }

    fn right(&self, pass: Pass, workers: Workers) -> Arc<Right<'static>> {
        let pack = || {
            let right = |view: View| Packed::kept(view, workers);
            Arc::new(Right::new(&self.weights, pass, right))
        };
        let mut forward = self.forward.lock().unwrap_or_else(PoisonError::into_inner);
        match pass {
            Pass::Forward => forward.get_or_insert_with(pack).clone(),
            Pass::Backward => {
                // Once gradients flow, forward is over.
                *forward = None;
                self.backward.get_or_init(pack).clone()
            }
        }
    }
}

/// Whether two blocks are the same memory.
fn same(a: &BlockWeights<Cpu>, b: &BlockWeights<Cpu>) -> bool {
    let pairs = [(&a.qkv, &b.qkv), (&a.attention_out, &b.attention_out), (&a.gate_up, &b.gate_up), (&a.down, &b.down)];
    pairs.into_iter().all(|(a, b)| std::ptr::eq(as_slice(a), as_slice(b)))
}

pub struct Job<'a> {
    pub sizes: Sizes,
    pub layout: Layout,
    pub shape: &'a BlockShape<Cpu>,
    pub gains: [&'a [f32]; 2],
    /// For this visit only, or kept.
    pub right: Arc<Right<'a>>,
}

impl<'a> Job<'a> {
    pub fn new(
        weights: &'a BlockWeights<Cpu>,
        packs: Option<&Packs>,
        shape: &'a BlockShape<Cpu>,
        sizes: Sizes,
        pass: Pass,
    ) -> Self {
        let d = sizes.width;
        let workers = Workers::for_work(sizes.rows * d * d);
        let right = match packs {
            Some(packs) => packs.right(pass, workers),
            None => Arc::new(Right::new(weights, pass, |view| Packed::new(view, workers))),
        };
        Self {
            sizes,
            layout: Layout { seq_len: shape.heads.seq_len, heads: shape.heads.heads, width: d },
            shape,
            gains: [as_slice(&weights.attention_norm), as_slice(&weights.mlp_norm)],
            right,
        }
    }
}
