//! A checkpoint as a Hugging Face `LlamaForCausalLM` folder: loops unrolled into layers, the branch scale folded into the
//! output projections, query, key, value and gate, up unstacked. Anyone can load it without this program.

use super::config::Sharing;
use super::metrics::{FilesError, sync_dir, write_atomically};
use super::model::Model;
use crate::ops::{Backend, Matrix};
use dfdx::prelude::HasShape;
use safetensors::tensor::{Dtype, View, serialize_to_file};
use serde_json::json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("`{dir}` exists already; choose another folder")]
    Occupied { dir: PathBuf },
    #[error("cannot write `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// Rows `first..first + rows` of a weight, times a factor, made into bytes only while it is written.
struct Part<'a, D: Backend> {
    weight: &'a Matrix<D>,
    first: usize,
    shape: Vec<usize>,
    factor: f32,
}

impl<D: Backend> View for Part<'_, D> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        let all = self.weight.as_vec();
        let start = self.first * self.weight.shape().1;
        let part = &all[start..start + self.data_len() / 4];
        part.iter()
            .flat_map(|x| (x * self.factor).to_le_bytes())
            .collect::<Vec<u8>>()
            .into()
    }
    fn data_len(&self) -> usize {
        4 * self.shape.iter().product::<usize>()
    }
}

/// Writes `config.json` and `model.safetensors` into `dir`, which must not exist.
pub fn hugging_face<D: Backend>(
    model: &Model<D>,
    max_positions: usize,
    dir: &Path,
) -> Result<(), ExportError> {
    if dir.exists() {
        return Err(ExportError::Occupied {
            dir: dir.to_owned(),
        });
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause: Box<dyn std::error::Error + Send + Sync>| ExportError::Write { path, cause }
    };
    std::fs::create_dir_all(dir).map_err(|e| failed(dir)(e.into()))?;
    let path = dir.join("model.safetensors");
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    serialize_to_file(tensors(model), Some(metadata), &path)
        .map_err(|e| failed(&path)(e.into()))?;
    sync_dir(dir).map_err(|e| failed(dir)(e.into()))?;
    let config = &model.config;
    let config = json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": config.width,
        "intermediate_size": config.mlp,
        "num_hidden_layers": config.depth * config.loops,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "head_dim": config.width / config.heads,
        "hidden_act": "silu",
        "max_position_embeddings": max_positions,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "rope_parameters": { "rope_type": "default", "rope_theta": config.rope_theta },
        "attention_bias": false,
        "mlp_bias": false,
        "tie_word_embeddings": true,
        "vocab_size": config.vocabulary,
        "bos_token_id": null,
        "eos_token_id": null,
        "torch_dtype": "float32",
    });
    let mut bytes =
        serde_json::to_vec_pretty(&config).expect("a config is plain numbers and names");
    bytes.push(b'\n');
    Ok(write_atomically(&dir.join("config.json"), &bytes)?)
}

fn tensors<D: Backend>(model: &Model<D>) -> Vec<(String, Part<'_, D>)> {
    let (width, mlp) = (model.config.width, model.config.mlp);
    let whole = |weight, rows: usize, cols: usize, factor| Part {
        weight,
        first: 0,
        shape: vec![rows, cols],
        factor,
    };
    let gain = |weight| Part {
        weight,
        first: 0,
        shape: vec![width],
        factor: 1.0,
    };
    let mut all = vec![
        (
            "model.embed_tokens.weight".to_owned(),
            whole(&model.embedding, model.config.vocabulary, width, 1.0),
        ),
        ("model.norm.weight".to_owned(), gain(&model.final_norm)),
    ];
    for layer in 0..model.config.depth * model.config.loops {
        let block = match model.config.sharing {
            Sharing::Looped => &model.blocks[layer % model.config.depth],
            Sharing::Deep => &model.blocks[layer],
        };
        let scale = model.branch_scale;
        let mut add =
            |name: &str, part| all.push((format!("model.layers.{layer}.{name}.weight"), part));
        add("input_layernorm", gain(&block.attention_norm));
        add("post_attention_layernorm", gain(&block.mlp_norm));
        for (i, name) in ["q_proj", "k_proj", "v_proj"].into_iter().enumerate() {
            let part = Part {
                weight: &block.qkv,
                first: i * width,
                shape: vec![width, width],
                factor: 1.0,
            };
            add(&format!("self_attn.{name}"), part);
        }
        add(
            "self_attn.o_proj",
            whole(&block.attention_out, width, width, scale),
        );
        for (i, name) in ["gate_proj", "up_proj"].into_iter().enumerate() {
            let part = Part {
                weight: &block.gate_up,
                first: i * mlp,
                shape: vec![mlp, width],
                factor: 1.0,
            };
            add(&format!("mlp.{name}"), part);
        }
        add("mlp.down_proj", whole(&block.down, width, mlp, scale));
    }
    all
}
