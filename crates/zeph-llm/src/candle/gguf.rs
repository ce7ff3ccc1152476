//! Models in GGUF files: their metadata and their tensors.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Tensor};

use super::model::{Layer, Linear, Network, Shape};
use super::words;

/// The architectures that [`Network`] is.
const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];

/// A file with its metadata read, not yet its tensors.
pub(super) struct Gguf {
    file: BufReader<File>,
    content: Content,
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gguf").finish_non_exhaustive()
    }
}

impl Gguf {
    /// Reads the metadata.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(words)?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let content = Content::read(&mut file);
        let mut content = content.map_err(|error| {
            format!(
                "it is not a GGUF file: \
            {}",
                words(error)
            )
        })?;
        // Both names mean the same pre-tokenizer; the reader of the tokenizer knows only the second.
        if let Some(Value::String(kind)) = content.metadata.get_mut("tokenizer.ggml.pre")
            && kind == "llama-bpe"
        {
            *kind = "llama3".to_owned();
        }
        Ok(Self { file, content })
    }

    /// The metadata and the places of the tensors.
    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// A text of the metadata.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        let value = self.content.metadata.get(key)?;
        value.to_string().ok().map(String::as_str)
    }

    /// A number of the metadata, however wide it is written.
    pub(super) fn number(&self, key: &str) -> Option<usize> {
        match self.content.metadata.get(key)? {
            Value::U8(n) => Some(usize::from(*n)),
            Value::U16(n) => Some(usize::from(*n)),
            Value::U32(n) => usize::try_from(*n).ok(),
            Value::U64(n) => usize::try_from(*n).ok(),
            Value::I8(n) => usize::try_from(*n).ok(),
            Value::I16(n) => usize::try_from(*n).ok(),
            Value::I32(n) => usize::try_from(*n).ok(),
            Value::I64(n) => usize::try_from(*n).ok(),
            _ => None,
        }
    }

    fn float(&self, key: &str) -> Option<f32> {
        match self.content.metadata.get(key)? {
            Value::F32(n) => Some(*n),
            Value::F64(n) => Some(*n as f32),
            _ => None,
        }
    }

    /// The measures of the network.
    ///
    /// # Errors
    /// An architecture that is not known, or a measure that is missing.
    pub(super) fn shape(&self) -> Result<Shape, String> {
        let architecture = self.text("general.architecture").unwrap_or_default();
        if !ARCHITECTURES.contains(&architecture) {
            return Err(format!(
                "its architecture is {architecture:?}, and only {} are supported",
                ARCHITECTURES.join(", ")
            ));
        }
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| {
            let key = key(name);
            self.number(&key)
                .filter(|number| *number > 0)
                .ok_or_else(|| format!("its metadata has no number {key:?}"))
        };
        if self.number(&key("expert_count")).unwrap_or(0) > 1 {
            return Err("it is a mixture of experts, which is not supported".to_owned());
        }
        let heads = number("attention.head_count")?;
        let width = number("embedding_length")?;
        Ok(Shape {
            layers: number("block_count")?,
            heads,
            kv_heads: number("attention.head_count_kv").unwrap_or(heads),
            head_dim: number("attention.key_length").unwrap_or(width / heads),
            norm_eps: self
                .float(&key("attention.layer_norm_rms_epsilon"))
                .unwrap_or(1e-5),
            rope_base: self.float(&key("rope.freq_base")).unwrap_or(10_000.0),
            interleaved: architecture == "llama",
            context: number("context_length")?,
        })
    }

    /// Reads the tensors.
    ///
    /// # Errors
    /// A tensor that is missing, cut off or of a form that is not known.
    pub(super) fn network(&mut self) -> Result<Network, String> {
        let shape = self.shape()?;
        self.assemble(shape).map_err(words)
    }

    fn assemble(&mut self, shape: Shape) -> candle_core::Result<Network> {
        let embedding = Arc::new(self.tensor("token_embd.weight")?);
        let norm = self.plain("output_norm.weight")?;
        let head = match self.has("output.weight") {
            true => QMatMul::from_qtensor(self.tensor("output.weight")?)?,
            // Tied: the embedding read the other way.
            false => QMatMul::from_arc(Arc::clone(&embedding))?,
        };
        let factors = match self.has("rope_freqs.weight") {
            true => Some(self.plain("rope_freqs.weight")?.to_vec1::<f32>()?),
            false => None,
        };
        let layers = (0..shape.layers)
            .map(|at| self.layer(at))
            .collect::<candle_core::Result<_>>()?;
        Network::new(shape, embedding, layers, norm, head, factors.as_deref())
    }

    fn layer(&mut self, at: usize) -> candle_core::Result<Layer> {
        let name = |part: &str| format!("blk.{at}.{part}.weight");
        Ok(Layer {
            attention_norm: self.plain(&name("attn_norm"))?,
            query: self.linear(at, "attn_q")?,
            key: self.linear(at, "attn_k")?,
            value: self.linear(at, "attn_v")?,
            output: self.linear(at, "attn_output")?,
            query_norm: self.perhaps(&name("attn_q_norm"))?,
            key_norm: self.perhaps(&name("attn_k_norm"))?,
            feed_norm: self.plain(&name("ffn_norm"))?,
            gate: self.linear(at, "ffn_gate")?,
            up: self.linear(at, "ffn_up")?,
            down: self.linear(at, "ffn_down")?,
        })
    }

    fn linear(&mut self, at: usize, part: &str) -> candle_core::Result<Linear> {
        let weight = self.tensor(&format!("blk.{at}.{part}.weight"))?;
        Ok(Linear {
            weight: QMatMul::from_qtensor(weight)?,
            bias: self.perhaps(&format!("blk.{at}.{part}.bias"))?,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    fn perhaps(&mut self, name: &str) -> candle_core::Result<Option<Tensor>> {
        match self.has(name) {
            true => self.plain(name).map(Some),
            false => Ok(None),
        }
    }

    fn plain(&mut self, name: &str) -> candle_core::Result<Tensor> {
        self.tensor(name)?.dequantize(&Device::Cpu)
    }

    /// One tensor, as it is stored.
    ///
    /// # Errors
    /// It is missing, cut off or of a form that is not known.
    pub(super) fn tensor(&mut self, name: &str) -> candle_core::Result<QTensor> {
        self.content.tensor(&mut self.file, name, &Device::Cpu)
    }
}
