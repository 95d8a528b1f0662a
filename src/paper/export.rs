//! A checkpoint as a Hugging Face `LlamaForCausalLM` folder: loops unrolled into layers, the branch scale folded into the
//! output projections, query, key, value and gate, up unstacked. Anyone can load it without this program.

use super::config::Sharing;
use super::metrics::{FilesError, write_atomically};
use super::model::Model;
use super::tensor_file::{self, Entry};
use crate::ops::{Backend, Matrix};
use dfdx::prelude::HasShape;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("`{dir}` exists already; choose another folder")]
    Occupied { dir: PathBuf },
    #[error("cannot write `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// Writes `config.json` and `model.safetensors` into `dir`, which must not exist.
pub fn hugging_face<D: Backend>(model: &Model<D>, max_positions: usize, dir: &Path) -> Result<(), ExportError> {
    if dir.exists() {
        return Err(ExportError::Occupied { dir: dir.to_owned() });
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause| ExportError::Write { path, cause }
    };
    std::fs::create_dir_all(dir).map_err(failed(dir))?;
    let path = dir.join("model.safetensors");
    tensor_file::write(&path, Some(("format", "pt".to_owned())), tensors(model)).map_err(failed(&path))?;
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
    let mut bytes = serde_json::to_vec_pretty(&config).expect("a config is plain numbers and names");
    bytes.push(b'\n');
    Ok(write_atomically(&dir.join("config.json"), &bytes)?)
}

/// Rows from `first` on of a weight, as many as `shape` holds, times a factor.
fn part<'a, D: Backend>(name: String, weight: &'a Matrix<D>, first: usize, shape: Vec<usize>, factor: f32) -> Entry<'a> {
    let (start, len) = (first * weight.shape().1, shape.iter().product::<usize>());
    let values = move || weight.as_vec()[start..start + len].iter().map(|x| x * factor).collect();
    Entry { name, shape, values: Box::new(values) }
}

fn tensors<D: Backend>(model: &Model<D>) -> Vec<Entry<'_>> {
    let (width, mlp, scale) = (model.config.width, model.config.mlp, model.branch_scale);
    let table = vec![model.config.vocabulary, width];
    let mut all = vec![
        part("model.embed_tokens.weight".to_owned(), &model.embedding, 0, table, 1.0),
        part("model.norm.weight".to_owned(), &model.final_norm, 0, vec![width], 1.0),
    ];
    for layer in 0..model.config.depth * model.config.loops {
        let block = match model.config.sharing {
            Sharing::Looped => &model.blocks[layer % model.config.depth],
            Sharing::Deep => &model.blocks[layer],
        };
        let square = || vec![width, width];
        for (name, weight, first, shape, factor) in [
            ("input_layernorm", &block.attention_norm, 0, vec![width], 1.0),
            ("self_attn.q_proj", &block.qkv, 0, square(), 1.0),
            ("self_attn.k_proj", &block.qkv, width, square(), 1.0),
            ("self_attn.v_proj", &block.qkv, 2 * width, square(), 1.0),
            ("self_attn.o_proj", &block.attention_out, 0, square(), scale),
            ("post_attention_layernorm", &block.mlp_norm, 0, vec![width], 1.0),
            ("mlp.gate_proj", &block.gate_up, 0, vec![mlp, width], 1.0),
            ("mlp.up_proj", &block.gate_up, mlp, vec![mlp, width], 1.0),
            ("mlp.down_proj", &block.down, 0, vec![width, mlp], scale),
        ] {
            all.push(part(format!("model.layers.{layer}.{name}.weight"), weight, first, shape, factor));
        }
    }
    all
}
