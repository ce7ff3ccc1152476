//! The network: a decoder of the Llama family (Llama, Mistral, SmolLM2, Qwen2, Qwen3), for one sequence at a time on
//! the CPU.
//!
//! Keys and values are cached in growing tensors, with their tokens. A request with the same prefix as the previous
//! one computes only the difference.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Result, Tensor};
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::{rope, rope_i};

/// The minimum number of tokens by which the cache of keys and values grows.
const GROW_BY: usize = 256;

/// The measures of a network.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) norm_eps: f32,
    pub(super) rope_base: f32,
    /// Whether the values of a rotary pair are adjacent (GGUF of the Llama architecture), or half a head apart (all
    /// others).
    pub(super) interleaved: bool,
    /// The tokens the network was trained for.
    pub(super) context: usize,
}

/// A matrix with an optional bias.
#[derive(Debug)]
pub(super) struct Linear {
    pub(super) weight: QMatMul,
    pub(super) bias: Option<Tensor>,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = candle_nn::Module::forward(&self.weight, x)?;
        match &self.bias {
            None => Ok(y),
            Some(bias) => y.broadcast_add(bias),
        }
    }
}

/// One layer's weights.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) attention_norm: Tensor,
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) output: Linear,
    /// Norms of each head's query and key (Qwen3).
    pub(super) query_norm: Option<Tensor>,
    pub(super) key_norm: Option<Tensor>,
    pub(super) feed_norm: Tensor,
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
}

/// The network and its cache of the sequence.
#[derive(Debug)]
pub(super) struct Network {
    shape: Shape,
    embedding: Arc<QTensor>,
    layers: Vec<Layer>,
    norm: Tensor,
    head: QMatMul,
    /// Rotations per position and pair: `[position, head_dim / 2]`, computed on demand.
    frequencies: Vec<f32>,
    rotations: (Tensor, Tensor),
    /// Keys and values of each layer: `[kv_heads, capacity, head_dim]`.
    kept: Vec<(Tensor, Tensor)>,
    /// The tokens with cached keys and values.
    tokens: Vec<u32>,
}

impl Network {
    /// Creates a network. `factors` divide the frequencies of the rotations, one for each pair.
    ///
    /// # Errors
    /// The weights do not match each other.
    pub(super) fn new(
        shape: Shape,
        embedding: Arc<QTensor>,
        layers: Vec<Layer>,
        norm: Tensor,
        head: QMatMul,
        factors: Option<&[f32]>,
    ) -> Result<Self> {
        let half = shape.head_dim / 2;
        if half == 0 || shape.kv_heads == 0 || !shape.heads.is_multiple_of(shape.kv_heads) {
            candle_core::bail!(
                "{} heads of {} and {} heads of keys are incompatible",
                shape.heads,
                shape.head_dim,
                shape.kv_heads
            );
        }
        let frequencies = (0..half)
            .map(|pair| {
                let exponent = 2.0 * pair as f32 / shape.head_dim as f32;
                let factor = factors.and_then(|factors| factors.get(pair));
                1.0 / shape.rope_base.powf(exponent) / factor.unwrap_or(&1.0)
            })
            .collect();
        let none = Tensor::zeros((0, half), candle_core::DType::F32, &Device::Cpu)?;
        Ok(Self {
            shape,
            embedding,
            layers,
            norm,
            head,
            frequencies,
            rotations: (none.clone(), none),
            kept: Vec::new(),
            tokens: Vec::new(),
        })
    }

    /// Truncates the cache to the common prefix with `tokens`, and returns its length. At least the last of `tokens`
    /// remains to be computed.
    pub(super) fn keep_prefix(&mut self, tokens: &[u32]) -> usize {
        let most = tokens.len().saturating_sub(1);
        let same = self.tokens.iter().zip(&tokens[..most]);
        let same = same.take_while(|(kept, new)| kept == new).count();
        self.tokens.truncate(same);
        same
    }

    /// Appends `tokens` (at least one) to the sequence, and returns the logits of the next token.
    ///
    /// # Errors
    /// The vocabulary does not have a token, or memory is exhausted.
    pub(super) fn append(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let start = self.tokens.len();
        let end = start + tokens.len();
        self.reserve(end)?;
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut x = self.embedding.embedding(&ids)?;
        let mask = (tokens.len() > 1)
            .then(|| causal_mask(start, tokens.len()))
            .transpose()?;
        for (layer, kept) in self.layers.iter().zip(&self.kept) {
            let normed = rms_norm(&x, &layer.attention_norm, self.shape.norm_eps)?;
            let attended = self.attend(layer, kept, &normed, start, mask.as_ref())?;
            x = (attended + x)?;
            let normed = rms_norm(&x, &layer.feed_norm, self.shape.norm_eps)?;
            let fed = (silu(&layer.gate.forward(&normed)?)? * layer.up.forward(&normed)?)?;
            x = (layer.down.forward(&fed)? + x)?;
        }
        // Only now: a failure on the way leaves the sequence as it was.
        self.tokens.extend_from_slice(tokens);
        let last = x.narrow(0, tokens.len() - 1, 1)?.contiguous()?;
        let last = rms_norm(&last, &self.norm, self.shape.norm_eps)?;
        candle_nn::Module::forward(&self.head, &last)?
            .flatten_all()?
            .to_vec1()
    }

    fn attend(
        &self,
        layer: &Layer,
        kept: &(Tensor, Tensor),
        x: &Tensor,
        start: usize,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let Shape {
            heads,
            kv_heads,
            head_dim,
            norm_eps,
            ..
        } = self.shape;
        let count = x.dim(0)?;
        let split = |linear: &Linear, heads: usize, norm: Option<&Tensor>| -> Result<Tensor> {
            let projected = linear.forward(x)?.reshape((count, heads, head_dim))?;
            let projected = match norm {
                None => projected,
                Some(norm) => rms_norm(&projected.contiguous()?, norm, norm_eps)?,
            };
            projected.transpose(0, 1)?.contiguous()
        };
        let query = self.rotate(
            &split(&layer.query, heads, layer.query_norm.as_ref())?,
            start,
        )?;
        let key = self.rotate(
            &split(&layer.key, kv_heads, layer.key_norm.as_ref())?,
            start,
        )?;
        kept.0.slice_set(&key, 1, start)?;
        kept.1
            .slice_set(&split(&layer.value, kv_heads, None)?, 1, start)?;
        let keys = kept.0.narrow(1, 0, start + count)?;
        let values = kept.1.narrow(1, 0, start + count)?;
        // The heads that share keys are adjacent: they are rows of one product.
        let group = heads / kv_heads;
        let query = query.reshape((kv_heads, group * count, head_dim))?;
        let scores = (query.matmul(&keys.transpose(1, 2)?)? * (head_dim as f64).powf(-0.5))?;
        let scores = match mask {
            None => scores,
            Some(mask) => scores
                .reshape((kv_heads, group, count, start + count))?
                .broadcast_add(mask)?
                .reshape((kv_heads, group * count, start + count))?,
        };
        let attended = softmax_last_dim(&scores)?.matmul(&values)?;
        let attended = attended
            .reshape((heads, count, head_dim))?
            .transpose(0, 1)?
            .contiguous()?
            .reshape((count, heads * head_dim))?;
        layer.output.forward(&attended)
    }

    fn rotate(&self, heads: &Tensor, start: usize) -> Result<Tensor> {
        let count = heads.dim(1)?;
        let cos = self.rotations.0.narrow(0, start, count)?;
        let sin = self.rotations.1.narrow(0, start, count)?;
        let heads = heads.unsqueeze(0)?;
        let turned = match self.shape.interleaved {
            true => rope_i(&heads, &cos, &sin),
            false => rope(&heads, &cos, &sin),
        };
        turned?.squeeze(0)
    }

    /// Makes room for `length` tokens.
    fn reserve(&mut self, length: usize) -> Result<()> {
        let had = self.rotations.0.dim(0)?;
        if length <= had {
            return Ok(());
        }
        let capacity = length.max(had + had / 2).next_multiple_of(GROW_BY);
        let half = self.frequencies.len();
        let angles: Vec<f32> = (0..capacity)
            .flat_map(|position| self.frequencies.iter().map(move |it| position as f32 * it))
            .collect();
        let angles = Tensor::from_vec(angles, (capacity, half), &Device::Cpu)?;
        let shape = (self.shape.kv_heads, capacity, self.shape.head_dim);
        let count = self.tokens.len();
        let grown = |old: Option<&Tensor>| -> Result<Tensor> {
            let new = Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu)?;
            if let (Some(old), true) = (old, count > 0) {
                new.slice_set(&old.narrow(1, 0, count)?.contiguous()?, 1, 0)?;
            }
            Ok(new)
        };
        let kept = (0..self.shape.layers)
            .map(|at| {
                let old = self.kept.get(at);
                Ok((
                    grown(old.map(|(keys, _)| keys))?,
                    grown(old.map(|(_, values)| values))?,
                ))
            })
            .collect::<Result<_>>()?;
        self.kept = kept;
        self.rotations = (angles.cos()?, angles.sin()?);
        Ok(())
    }
}

/// The mask that hides later tokens from each of `count` tokens, which follow `start` others: `[count, start +
/// count]`, to be added to scores.
fn causal_mask(start: usize, count: usize) -> Result<Tensor> {
    let rows = (0..count).flat_map(|row| {
        (0..start + count).map(move |column| match column > start + row {
            true => f32::NEG_INFINITY,
            false => 0.0,
        })
    });
    Tensor::from_vec(rows.collect(), (count, start + count), &Device::Cpu)
}
