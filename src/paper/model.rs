//! The looped Transformer: embedding, a stack of L pre-norm blocks visited N times, final norm, tied head.
// B batch, T time, R = B*T rows, D width, F feed-forward width, V vocabulary

use super::batch::Batch;
use super::config::{ModelConfig, Recompute, Sharing};
use super::init;
use super::scaling::{Role, Scaling};
use crate::ops::attention::Heads;
use crate::ops::block::{BlockShape, BlockWeights, Kept, attention_branch, keeps_weights, mlp_branch};
use crate::ops::rope::RopeTable;
use crate::ops::stack::{Stack, embed};
use crate::ops::units::ModelSizes;
use crate::ops::{Backend, Matrix};
use dfdx::prelude::*;

/// What the device said when it failed; dfdx's own errors carry no more than a word.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("the device failed: {what}")]
    Device { what: String },
    #[error("token id {id} is not below `model.vocabulary` {vocabulary}; raise it, or use data made with another tokenizer")]
    TokenOutsideVocabulary { id: u32, vocabulary: usize },
    #[error("weight `{name}` has {found} numbers, and this model needs {expected}")]
    WeightOfAnotherSize { name: String, found: usize, expected: usize },
}

pub(crate) fn device_error(error: impl std::fmt::Display) -> ModelError {
    ModelError::Device { what: error.to_string() }
}

/// One pre-norm block: attention and feed-forward, each added to the stream with the branch scale.
pub type Block<D> = BlockWeights<D>;
type Shared<D> = BlockShape<D>;

#[derive(Clone, Debug)]
pub struct Model<D: Backend> {
    pub config: ModelConfig,
    pub branch_scale: f32,
    pub recompute: Recompute,
    pub loss_chunk_rows: usize,
    dev: D,
    /// (V, D), also the head
    pub embedding: Matrix<D>,
    pub blocks: Vec<Block<D>>,
    pub final_norm: Matrix<D>,
}

/// Name, role and shape of every parameter, in the order of [`Model::weights`].
pub fn parameters(config: &ModelConfig) -> Vec<(String, Role, (usize, usize))> {
    let (d, f) = (config.width, config.mlp);
    let mut all = vec![("embedding".to_owned(), Role::Embedding, (config.vocabulary, d))];
    for block in 0..config.unique_blocks() {
        for (name, role, shape) in [
            ("attention_norm", Role::BlockNorm, (1, d)),
            ("qkv", Role::Hidden, (3 * d, d)),
            ("attention_out", Role::Hidden, (d, d)),
            ("mlp_norm", Role::BlockNorm, (1, d)),
            ("gate_up", Role::Hidden, (2 * f, d)),
            ("down", Role::Hidden, (d, f)),
        ] {
            all.push((format!("blocks.{block}.{name}"), role, shape));
        }
    }
    all.push(("final_norm".to_owned(), Role::FinalNorm, (1, d)));
    all
}

impl<D: Backend> Model<D> {
    /// A model as the paper initialises it.
    pub fn new(dev: &D, config: ModelConfig, scaling: &Scaling, seed: u64) -> Result<Self, ModelError> {
        Self::from_values(dev, config, scaling.branch_scale() as f32, |name, role, shape| {
            Ok(init::values(seed, name, shape.0 * shape.1, scaling.group(role).init))
        })
    }

    /// A model with given numbers, asked for by name.
    pub fn from_values<E: From<ModelError>>(
        dev: &D,
        config: ModelConfig,
        branch_scale: f32,
        mut values: impl FnMut(&str, Role, (usize, usize)) -> Result<Vec<f32>, E>,
    ) -> Result<Self, E> {
        let mut weights = Vec::new();
        for (name, role, shape) in parameters(&config) {
            let numbers = values(&name, role, shape)?;
            let (found, expected) = (numbers.len(), shape.0 * shape.1);
            if found != expected {
                return Err(ModelError::WeightOfAnotherSize { name, found, expected }.into());
            }
            weights.push(dev.try_tensor_from_vec(numbers, shape).map_err(device_error)?);
        }
        let mut weights = weights.into_iter();
        let mut next = || weights.next().expect("`parameters` lists every weight");
        let embedding = next();
        let blocks = (0..config.unique_blocks())
            .map(|_| Block {
                attention_norm: next(),
                qkv: next(),
                attention_out: next(),
                mlp_norm: next(),
                gate_up: next(),
                down: next(),
            })
            .collect();
        let final_norm = next();
        Ok(Self {
            config,
            branch_scale,
            recompute: Recompute::None,
            loss_chunk_rows: config.loss_chunk_rows(),
            dev: dev.clone(),
            embedding,
            blocks,
            final_norm,
        })
    }

    pub fn weights(&self) -> Vec<&Matrix<D>> {
        let mut all = vec![&self.embedding];
        all.extend(self.blocks.iter().flat_map(Block::each));
        all.push(&self.final_norm);
        all
    }

    pub fn weights_mut(&mut self) -> Vec<&mut Matrix<D>> {
        let mut all = vec![&mut self.embedding];
        for b in &mut self.blocks {
            all.extend([&mut b.attention_norm, &mut b.qkv, &mut b.attention_out, &mut b.mlp_norm, &mut b.gate_up, &mut b.down]);
        }
        all.push(&mut self.final_norm);
        all
    }

    pub fn device(&self) -> &D {
        &self.dev
    }

    fn shared(&self, seq_len: usize, kept: Kept) -> Result<Shared<D>, ModelError> {
        let head_width = self.config.width / self.config.heads;
        Ok(Shared {
            rope: RopeTable::new(&self.dev, seq_len, head_width, self.config.rope_theta).map_err(device_error)?,
            heads: Heads { seq_len, heads: self.config.heads },
            norm_eps: self.config.norm_eps,
            branch_scale: self.branch_scale,
            kept,
        })
    }

    /// The blocks of visit n: always the same ones, or the n-th copy.
    fn visit(&self, n: usize) -> &[Block<D>] {
        match self.config.sharing {
            Sharing::Looped => &self.blocks,
            Sharing::Deep => &self.blocks[n * self.config.depth..(n + 1) * self.config.depth],
        }
    }

    /// Tokens as rows of the embedding.
    fn ids(&self, tokens: &[u32]) -> Result<Vec<usize>, ModelError> {
        let vocabulary = self.config.vocabulary;
        match tokens.iter().find(|&&id| id as usize >= vocabulary) {
            Some(&id) => Err(ModelError::TokenOutsideVocabulary { id, vocabulary }),
            None => Ok(tokens.iter().map(|&id| id as usize).collect()),
        }
    }

    /// The ops of the model, for sequences of this length.
    fn stack(&self, seq_len: usize, kept: Kept) -> Result<Stack<'_, D>, ModelError> {
        let visits = (0..self.config.loops).map(|n| self.visit(n));
        Ok(Stack {
            embedding: &self.embedding,
            segments: match self.recompute {
                Recompute::None | Recompute::Visit => visits.collect(),
                Recompute::Block => visits.flat_map(|blocks| blocks.chunks(1)).collect(),
            },
            recomputes: self.recompute != Recompute::None,
            shape: self.shared(seq_len, kept)?,
            final_norm: &self.final_norm,
            loss_chunk_rows: self.loss_chunk_rows,
        })
    }

    /// The stream of every token before the final norm, without a tape.
    fn features(&self, tokens: &[u32], seq_len: usize) -> Result<Matrix<D>, ModelError> {
        let (ids, stack) = (self.ids(tokens)?, self.stack(seq_len, Kept::default())?);
        stack.stream(&ids, NoneTape).map_err(device_error)
    }

    /// Logits (R, V) of sequences of `seq_len` tokens.
    pub fn logits(&self, tokens: &[u32], seq_len: usize) -> Result<Matrix<D>, ModelError> {
        let h = self.features(tokens, seq_len)?;
        let h = D::rms_norm(h, &self.final_norm, self.config.norm_eps).map_err(device_error)?;
        D::linear(h, &self.embedding).map_err(device_error)
    }

    /// Logits of the token after the last one.
    pub fn next_logits(&self, tokens: &[u32]) -> Result<Vec<f32>, ModelError> {
        let h = self.features(tokens, tokens.len())?.as_vec();
        let width = self.config.width;
        let last = h[h.len() - width..].to_vec();
        let h = self.dev.try_tensor_from_vec(last, (1, width)).map_err(device_error)?;
        let h = D::rms_norm(h, &self.final_norm, self.config.norm_eps).map_err(device_error)?;
        Ok(D::linear(h, &self.embedding).map_err(device_error)?.as_vec())
    }

    /// Cross-entropy of every target of a batch, in nats.
    pub fn token_losses(&self, batch: &Batch) -> Result<Vec<f32>, ModelError> {
        let (inputs, targets) = split(batch);
        let targets = self.ids(&targets)?;
        let h = self.features(&inputs, batch.seq_len)?;
        let h = D::rms_norm(h, &self.final_norm, self.config.norm_eps).map_err(device_error)?;
        D::token_losses(&h, &self.embedding, &targets, self.loss_chunk_rows).map_err(device_error)
    }

    /// `factor` * the sum of the cross-entropies of a batch, and its gradients added to `grads`.
    pub fn loss_and_gradients(
        &self,
        batch: &Batch,
        factor: f64,
        grads: Gradients<f32, D>,
    ) -> Result<(f64, Gradients<f32, D>), ModelError> {
        let (inputs, targets) = split(batch);
        let (inputs, targets) = (self.ids(&inputs)?, self.ids(&targets)?);
        let sequences = unit::<D>(&self.config, batch.seq_len).unwrap_or(batch.rows);
        let rows = sequences * batch.seq_len;
        let units: Vec<_> = inputs.chunks(rows).zip(targets.chunks(rows)).collect();
        let visits = visits_of_a_tape(self.config.sharing, self.recompute, self.config.loops);
        let kept = match units.len() {
            1 if keeps_weights(self.config.width, visits) => Kept::for_visits(),
            1 => Kept::default(),
            _ => Kept::for_tapes(),
        };
        let stack = self.stack(batch.seq_len, kept)?;
        D::in_units(&stack, &self.weights(), units, factor as f32, grads).map_err(device_error)
    }

    /// Runs forward and shows the stream: after the embedding (0) and after each visit (1..=N), and each branch if asked.
    /// Training never calls this, so probes cost nothing when they are off.
    pub fn observe(&self, inputs: &[u32], seq_len: usize, eye: &mut dyn Observer) -> Result<(), ModelError> {
        let shared = self.shared(seq_len, Kept::default())?;
        let mut h = embed(&self.ids(inputs)?, &self.embedding, NoneTape).map_err(device_error)?;
        eye.stream(0, h.as_vec());
        for n in 0..self.config.loops {
            for (layer, block) in self.visit(n).iter().enumerate() {
                if eye.wants_branches() {
                    let branch = attention_branch(h.clone(), block, &shared).map_err(device_error)?;
                    eye.branch(n + 1, layer, Branch::Attention, branch.as_vec());
                    let mid = D::residual_add(h.clone(), branch, shared.branch_scale).map_err(device_error)?;
                    let branch = mlp_branch(mid, block, &shared).map_err(device_error)?;
                    eye.branch(n + 1, layer, Branch::Mlp, branch.as_vec());
                }
                h = D::block(h, block, &shared).map_err(device_error)?;
            }
            eye.stream(n + 1, h.as_vec());
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    Attention,
    Mlp,
}

/// Someone who looks at a forward pass. Matrices arrive row by row, (R, D).
pub trait Observer {
    fn stream(&mut self, visit: usize, h: Vec<f32>);
    fn wants_branches(&self) -> bool {
        false
    }
    fn branch(&mut self, _visit: usize, _layer: usize, _branch: Branch, _values: Vec<f32>) {}
}

/// Inputs are the first T tokens of each row, targets the last T.
pub fn split(batch: &Batch) -> (Vec<u32>, Vec<u32>) {
    let rows = batch.tokens.chunks_exact(batch.seq_len + 1);
    let inputs = rows.clone().flat_map(|row| &row[..batch.seq_len]).copied().collect();
    (inputs, rows.flat_map(|row| &row[1..]).copied().collect())
}

/// Sequences that go through a model together on a device; None: all of a batch.
pub fn unit<D: Backend>(config: &ModelConfig, seq_len: usize) -> Option<usize> {
    D::unit(ModelSizes { width: config.width, inner: config.mlp, parameters: config.parameters(), seq_len })
}

/// How often one tape visits a block.
pub fn visits_of_a_tape(sharing: Sharing, recompute: Recompute, loops: usize) -> usize {
    match (sharing, recompute) {
        (Sharing::Looped, Recompute::None) => loops,
        _ => 1,
    }
}
