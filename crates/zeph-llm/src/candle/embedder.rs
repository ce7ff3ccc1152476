//! Embeddings of texts by a BERT, such as MiniLM: mean over the tokens, length 1.

use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use tokenizers::{Tokenizer, TruncationParams};

use super::source::WEIGHTS;
use super::words;

/// A loaded model.
pub(super) struct Embedder {
    model: BertModel,
    tokenizer: Tokenizer,
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedder").finish_non_exhaustive()
    }
}

impl Embedder {
    /// Loads a directory with `config.json`, `tokenizer.json` and `model.safetensors`.
    ///
    /// # Errors
    /// A file is missing or invalid.
    pub(super) fn load(directory: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            let path = directory.join(name);
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let config: Config = serde_json::from_slice(&read("config.json")?)
            .map_err(|error| format!("config.json: {error}"))?;
        let weights = read(WEIGHTS)?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu);
        let model = weights.and_then(|weights| BertModel::load(weights, &config));
        let model = model.map_err(words)?;
        let tokenizer = Tokenizer::from_bytes(read("tokenizer.json")?);
        let mut tokenizer = tokenizer.map_err(|error| format!("tokenizer.json: {error}"))?;
        let truncation = TruncationParams {
            max_length: config.max_position_embeddings,
            ..TruncationParams::default()
        };
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|error| format!("tokenizer.json: {error}"))?;
        Ok(Self { model, tokenizer })
    }

    /// The embeddings of texts, one each. Text beyond the model's window is ignored. `waited` returns whether the
    /// caller still waits.
    ///
    /// # Errors
    /// The tokenizer refuses a text, or the caller no longer waits.
    pub(super) fn embed(
        &self,
        texts: &[String],
        waited: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Vec<f32>>, String> {
        let one = |text: &String| match waited() {
            true => self.embed_one(text),
            false => Err("no caller waits for it".to_owned()),
        };
        texts.iter().map(one).collect()
    }

    fn embed_one(&self, text: &str) -> Result<Vec<f32>, String> {
        let encoding = self.tokenizer.encode_fast(text, true);
        let encoding = encoding.map_err(words)?;
        self.pool(encoding.get_ids()).map_err(words)
    }

    fn pool(&self, ids: &[u32]) -> candle_core::Result<Vec<f32>> {
        let ids = Tensor::new(ids, &Device::Cpu)?.unsqueeze(0)?;
        let types = ids.zeros_like()?;
        let states = self.model.forward(&ids, &types, None)?;
        let mean = states.mean(1)?.squeeze(0)?;
        let length = mean.sqr()?.sum_all()?.sqrt()?;
        // A zero vector stays zero.
        let length = length.maximum(f32::MIN_POSITIVE)?;
        mean.broadcast_div(&length)?.to_vec1()
    }
}
