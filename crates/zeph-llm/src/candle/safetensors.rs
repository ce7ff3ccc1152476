//! Models as directories with `config.json` and `*.safetensors`: those of the Llama family.
//!
//! Their weights are held as Q8_0, like those of a GGUF that `zeph models pull` wrote: a quarter
//! of the memory, and the same kernels.

use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::safetensors::BufferedSafetensors;
use candle_core::{DType, Device, Tensor};
use serde::Deserialize;

use super::model::{Layer, Linear, Network, Shape};
use super::words;

/// The description of a network in `config.json`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    pub(super) model_type: String,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    hidden_size: usize,
    max_position_embeddings: usize,
    #[serde(default)]
    num_key_value_heads: Option<usize>,
    #[serde(default)]
    head_dim: Option<usize>,
    #[serde(default)]
    rms_norm_eps: Option<f32>,
    #[serde(default)]
    rope_theta: Option<f32>,
    #[serde(default)]
    rope_scaling: Option<serde_json::Value>,
}

impl Config {
    /// The dimensions of the network.
    ///
    /// # Errors
    /// A value is not supported.
    pub(super) fn shape(&self) -> Result<Shape, String> {
        if !["llama", "mistral", "qwen2", "qwen3"].contains(&self.model_type.as_str()) {
            return Err(format!(
                "its model_type is {:?}, and only llama, mistral, qwen2, qwen3 are supported",
                self.model_type
            ));
        }
        if self.rope_scaling.as_ref().is_some_and(|it| !it.is_null()) {
            return Err(
                "it scales its positions (rope_scaling), which is only supported for GGUF files: \
                 use a GGUF file"
                    .to_owned(),
            );
        }
        if self.num_attention_heads == 0 {
            return Err("it has no attention heads".to_owned());
        }
        Ok(Shape {
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            kv_heads: self.num_key_value_heads.unwrap_or(self.num_attention_heads),
            head_dim: self
                .head_dim
                .unwrap_or(self.hidden_size / self.num_attention_heads),
            norm_eps: self.rms_norm_eps.unwrap_or(1e-5),
            rope_base: self.rope_theta.unwrap_or(10_000.0),
            interleaved: false,
            context: self.max_position_embeddings,
        })
    }
}

/// The weights of a directory: every `*.safetensors` in it.
pub(super) struct Shards(Vec<BufferedSafetensors>);

impl Shards {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is missing or invalid.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let mut paths: Vec<_> = std::fs::read_dir(directory)
            .map_err(words)?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|it| it == "safetensors"))
            .collect();
        paths.sort();
        let shards = paths.iter().map(|path| {
            let bytes = std::fs::read(path).map_err(words);
            let shard = bytes.and_then(|bytes| BufferedSafetensors::new(bytes).map_err(words));
            shard.map_err(|error| format!("{}: {error}", path.display()))
        });
        let shards = shards.collect::<Result<Vec<_>, _>>()?;
        match shards.is_empty() {
            true => Err("it has no *.safetensors".to_owned()),
            false => Ok(Self(shards)),
        }
    }

    fn find(&self, name: &str) -> Option<&BufferedSafetensors> {
        self.0.iter().find(|shard| shard.get(name).is_ok())
    }

    /// A tensor as numbers of 32 bits.
    ///
    /// # Errors
    /// It is missing.
    pub(super) fn plain(&self, name: &str) -> candle_core::Result<Tensor> {
        let Some(shard) = self.find(name) else {
            candle_core::bail!("the tensor {name} is missing");
        };
        shard.load(name, &Device::Cpu)?.to_dtype(DType::F32)
    }

    fn perhaps(&self, name: &str) -> candle_core::Result<Option<Tensor>> {
        self.find(name).map(|_| self.plain(name)).transpose()
    }

    fn quantized(&self, name: &str) -> candle_core::Result<QTensor> {
        let plain = self.plain(name)?;
        let width = plain.dims().last().copied().unwrap_or(0);
        let fits = width.is_multiple_of(GgmlDType::Q8_0.block_size());
        let form = if fits {
            GgmlDType::Q8_0
        } else {
            GgmlDType::F32
        };
        QTensor::quantize(&plain, form)
    }

    fn linear(&self, name: &str) -> candle_core::Result<Linear> {
        Ok(Linear {
            weight: QMatMul::from_qtensor(self.quantized(&format!("{name}.weight"))?)?,
            bias: self.perhaps(&format!("{name}.bias"))?,
        })
    }

    /// Creates the network.
    ///
    /// # Errors
    /// A tensor is missing or does not match.
    pub(super) fn network(&self, config: &Config) -> Result<Network, String> {
        let shape = config.shape()?;
        self.assemble(shape).map_err(words)
    }

    fn assemble(&self, shape: Shape) -> candle_core::Result<Network> {
        let embedding = Arc::new(self.quantized("model.embed_tokens.weight")?);
        let head = match self.find("lm_head.weight") {
            Some(_) => QMatMul::from_qtensor(self.quantized("lm_head.weight")?)?,
            None => QMatMul::from_arc(Arc::clone(&embedding))?,
        };
        let norm = self.plain("model.norm.weight")?;
        let layers = (0..shape.layers)
            .map(|at| {
                let name = |part: &str| format!("model.layers.{at}.{part}");
                Ok(Layer {
                    attention_norm: self.plain(&name("input_layernorm.weight"))?,
                    query: self.linear(&name("self_attn.q_proj"))?,
                    key: self.linear(&name("self_attn.k_proj"))?,
                    value: self.linear(&name("self_attn.v_proj"))?,
                    output: self.linear(&name("self_attn.o_proj"))?,
                    query_norm: self.perhaps(&name("self_attn.q_norm.weight"))?,
                    key_norm: self.perhaps(&name("self_attn.k_norm.weight"))?,
                    feed_norm: self.plain(&name("post_attention_layernorm.weight"))?,
                    gate: self.linear(&name("mlp.gate_proj"))?,
                    up: self.linear(&name("mlp.up_proj"))?,
                    down: self.linear(&name("mlp.down_proj"))?,
                })
            })
            .collect::<candle_core::Result<_>>()?;
        Network::new(shape, embedding, layers, norm, head, None)
    }
}
