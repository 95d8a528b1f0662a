//! What the rows of one pass through a block share, forward or backward: sizes, gains and the packed weights.

use super::super::Matrix;
use super::super::attention::heads::Layout;
use super::super::cpu::clock::{Part, span};
use super::super::cpu::gemm::{Packed, View, Workers};
use super::super::cpu::view::as_slice;
use super::cpu::Sizes;
use super::{BlockShape, BlockWeights};
use dfdx::prelude::*;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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

/// Packed weights of blocks, for their next visit: whoever has a copy of this shares them. Whoever changes the weights drops them first, or
/// has the weights copied.
#[derive(Clone, Default)]
pub struct Kept(Option<Arc<Shelf>>);

struct Shelf {
    /// What forward needs goes when the first gradient flows.
    until_backward: bool,
    packs: Mutex<Vec<Arc<Packs>>>,
}

impl Kept {
    /// For one tape, which visits its blocks several times.
    pub fn for_visits() -> Self {
        Self::shelf(true)
    }

    /// For several tapes, of which one may be forward while another is backward.
    pub fn for_tapes() -> Self {
        Self::shelf(false)
    }

    fn shelf(until_backward: bool) -> Self {
        Self(Some(Arc::new(Shelf { until_backward, packs: Mutex::default() })))
    }

    /// Those of these weights, if any are kept.
    pub(super) fn packs(&self, weights: &BlockWeights<Cpu>) -> Option<Arc<Packs>> {
        let shelf = self.0.as_ref()?;
        let mut packs = shelf.packs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = packs.iter().find(|packs| same(&packs.weights, weights)) {
            return Some(found.clone());
        }
        let new = Arc::new(Packs {
            weights: weights.clone(),
            until_backward: shelf.until_backward,
            forward: Mutex::default(),
            backward: OnceLock::new(),
        });
        packs.push(new.clone());
        Some(new)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Kept" } else { "Kept(nothing)" })
    }
}

/// The packed weights of one block.
pub struct Packs {
    /// What was packed. As long as these are here their memory belongs to nobody else, and a write to the weights goes elsewhere.
    weights: BlockWeights<Cpu>,
    until_backward: bool,
    forward: Mutex<Option<Arc<Right<'static>>>>,
    backward: OnceLock<Arc<Right<'static>>>,
}

impl Packs {
    fn right(&self, pass: Pass, workers: Workers) -> Arc<Right<'static>> {
        let pack = || {
            let right = |view: View| Packed::kept(view, workers);
            Arc::new(Right::new(&self.weights, pass, right))
        };
        let mut forward = self.forward.lock().unwrap_or_else(PoisonError::into_inner);
        match pass {
            Pass::Forward => forward.get_or_insert_with(pack).clone(),
            Pass::Backward => {
                if self.until_backward {
                    *forward = None;
                }
                drop(forward);
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
