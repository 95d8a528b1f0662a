//! The sizes of a model.

use super::{ConfigError, positive, size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the visits of the stack share their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// One stack of blocks, applied `loops` times.
    #[default]
    Looped,
    /// `loops` independent copies of the stack, each applied once.
    Deep,
}

/// `model:` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawModel {
    /// Width of the residual stream, d.
    pub width: usize,
    /// Blocks in the stack, L.
    pub depth: usize,
    /// Times the stack is applied, N.
    pub loops: usize,
    #[serde(default)]
    pub sharing: Sharing,
    pub heads: usize,
    /// Width of the feed-forward.
    pub mlp: usize,
    pub vocabulary: usize,
    #[serde(default = "rope_theta")]
    pub rope_theta: f64,
    #[serde(default = "norm_eps")]
    pub norm_eps: f64,
}

fn rope_theta() -> f64 {
    10_000.0
}

fn norm_eps() -> f64 {
    1e-5
}

/// Sizes that fit together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelConfig {
    pub width: usize,
    pub depth: usize,
    pub loops: usize,
    pub sharing: Sharing,
    pub heads: usize,
    pub mlp: usize,
    pub vocabulary: usize,
    pub rope_theta: f64,
    pub norm_eps: f32,
}

impl RawModel {
    pub fn check(&self) -> Result<ModelConfig, ConfigError> {
        let width = size("model.width", self.width)?;
        let heads = size("model.heads", self.heads)?;
        if width % heads != 0 {
            return Err(ConfigError::HeadsDoNotDivide { heads, width });
        }
        if width / heads % 2 != 0 {
            return Err(ConfigError::OddHeads { heads, width, head_width: width / heads });
        }
        let config = ModelConfig {
            width,
            heads,
            depth: size("model.depth", self.depth)?,
            loops: size("model.loops", self.loops)?,
            sharing: self.sharing,
            mlp: size("model.mlp", self.mlp)?,
            vocabulary: size("model.vocabulary", self.vocabulary)?,
            rope_theta: positive("model.rope_theta", self.rope_theta)?,
            norm_eps: positive("model.norm_eps", self.norm_eps)? as f32,
        };
        let parameters = config.count();
        if parameters > 100_000_000_000 {
            return Err(ConfigError::TooManyParameters { parameters });
        }
        Ok(config)
    }
}

impl ModelConfig {
    /// Blocks with weights of their own.
    pub fn unique_blocks(&self) -> usize {
        match self.sharing {
            Sharing::Looped => self.depth,
            Sharing::Deep => self.depth * self.loops,
        }
    }

    /// Rows of logits that fit 128 MiB.
    pub fn loss_chunk_rows(&self) -> usize {
        ((1 << 25) / self.vocabulary).max(1)
    }

    /// V*d + blocks * (4d^2 + 3*d*F + 2d) + d: the embedding is also the head.
    pub fn parameters(&self) -> usize {
        self.count() as usize
    }

    fn count(&self) -> u128 {
        let blocks = match self.sharing {
            Sharing::Looped => self.depth as u128,
            Sharing::Deep => self.depth as u128 * self.loops as u128,
        };
        let (d, f, v) = (self.width as u128, self.mlp as u128, self.vocabulary as u128);
        v * d + blocks * (4 * d * d + 3 * d * f + 2 * d) + d
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_models_have_the_papers_parameters() {
        for (depth, parameters) in [(12, 183_454_464), (24, 268_407_552), (48, 438_313_728)] {
            for loops in [1, 2, 4, 8] {
                let raw = RawModel {
                    width: 768,
                    depth,
                    loops,
                    sharing: Sharing::Looped,
                    heads: 12,
                    mlp: 2048,
                    vocabulary: 128_256,
                    rope_theta: 1e4,
                    norm_eps: 1e-5,
                };
                assert_eq!(raw.check().map(|m| m.parameters()), Ok(parameters));
            }
        }
    }
}
