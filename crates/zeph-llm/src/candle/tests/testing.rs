//! Tiny models with random weights, written to files as real ones are.

use std::path::Path;

use candle_core::quantized::{GgmlDType, QTensor, gguf_file};
use candle_core::{Device, Tensor};

use super::super::engine::Engine;
use super::super::source::{Loaded, Source};

/// Pseudo-random numbers from a seed.
pub(super) struct SeededRng(u64);

impl SeededRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// At least 0, less than 1.
    pub(super) fn roll(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    pub(super) fn tensor(&mut self, dims: &[usize], scale: f32) -> Tensor {
        let count = dims.iter().product();
        let numbers: Vec<f32> = (0..count).map(|_| (self.roll() - 0.5) * scale).collect();
        Tensor::from_vec(numbers, dims, &Device::Cpu).unwrap()
    }

    /// A token, sampled by the logits.
    pub(super) fn sample(&mut self, logits: &[f32]) -> u32 {
        let gumbel = |roll: f32| -(-(roll.max(1e-9)).ln()).ln();
        let noisy: Vec<f32> = logits.iter().map(|it| it + gumbel(self.roll())).collect();
        super::super::engine::greedy(&noisy)
    }
}

pub(super) const WIDTH: usize = 32;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const FEED: usize = 64;
pub(super) const LAYERS: usize = 2;
pub(super) const CONTEXT: usize = 2048;

/// The character that represents a byte in a byte-level vocabulary.
fn letter(byte: u8) -> char {
    let own = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    match own(byte) {
        true => char::from(byte),
        false => {
            let before = (0..byte).filter(|b| !own(*b)).count();
            char::from_u32(0x100 + before as u32).unwrap()
        }
    }
}

fn letters(text: &str) -> String {
    text.bytes().map(letter).collect()
}

/// Every byte, some multi-byte tokens, and two marks.
pub(super) fn tokens() -> Vec<String> {
    let whole = [
        "th",
        "the",
        "``",
        "```",
        "json",
        "```json\n",
        "\n```json\n{",
        "\": ",
        "true",
        "\"}",
        "\"}}",
    ];
    let whole = whole.iter().map(|text| letters(text));
    (0..=255u8)
        .map(|byte| letter(byte).to_string())
        .chain(whole)
        .chain(["<|im_start|>", "<|im_end|>"].map(str::to_owned))
        .collect()
}

/// Writes a model of the Llama architecture.
pub(super) fn write_gguf(path: &Path, seed: u64, form: GgmlDType) {
    use gguf_file::Value;
    let mut dice = SeededRng::new(seed);
    let tokens = tokens();
    let text = |text: &str| Value::String(text.to_owned());
    let number = |number: usize| Value::U32(number as u32);
    let kinds = (0..tokens.len()).map(|at| Value::I32(if at + 2 < tokens.len() { 1 } else { 3 }));
    let merges = ["t h", "th e", "` `", "`` `"].map(text);
    let metadata = [
        ("general.architecture", text("llama")),
        ("llama.block_count", number(LAYERS)),
        ("llama.context_length", number(CONTEXT)),
        ("llama.embedding_length", number(WIDTH)),
        ("llama.attention.head_count", number(HEADS)),
        ("llama.attention.head_count_kv", number(KV_HEADS)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("llama.rope.freq_base", Value::F32(10_000.0)),
        ("llama.rope.dimension_count", number(WIDTH / HEADS)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("smollm")),
        ("tokenizer.ggml.merges", Value::Array(merges.to_vec())),
        ("tokenizer.ggml.token_type", Value::Array(kinds.collect())),
        ("tokenizer.ggml.bos_token_id", number(tokens.len() - 2)),
        ("tokenizer.ggml.eos_token_id", number(tokens.len() - 1)),
        (
            "tokenizer.ggml.tokens",
            Value::Array(tokens.iter().map(|token| text(token)).collect()),
        ),
    ];
    let mut tensors = Vec::new();
    let mut add = |name: String, dims: &[usize]| {
        let matrix = dims.len() == 2;
        let tensor = match matrix {
            true => dice.tensor(dims, 1.0),
            false => (dice.tensor(dims, 0.2) + 1.0).unwrap(),
        };
        let form = if matrix { form } else { GgmlDType::F32 };
        tensors.push((name, QTensor::quantize(&tensor, form).unwrap()));
    };
    add("token_embd.weight".to_owned(), &[tokens.len(), WIDTH]);
    add("output_norm.weight".to_owned(), &[WIDTH]);
    let kv = KV_HEADS * (WIDTH / HEADS);
    for at in 0..LAYERS {
        for (part, dims) in [
            ("attn_norm", &[WIDTH][..]),
            ("attn_q", &[WIDTH, WIDTH]),
            ("attn_k", &[kv, WIDTH]),
            ("attn_v", &[kv, WIDTH]),
            ("attn_output", &[WIDTH, WIDTH]),
            ("ffn_norm", &[WIDTH]),
            ("ffn_gate", &[FEED, WIDTH]),
            ("ffn_up", &[FEED, WIDTH]),
            ("ffn_down", &[WIDTH, FEED]),
        ] {
            add(format!("blk.{at}.{part}.weight"), dims);
        }
    }
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let tensors: Vec<_> = tensors
        .iter()
        .map(|(name, it)| (name.as_str(), it))
        .collect();
    let mut file = std::fs::File::create(path).unwrap();
    gguf_file::write(&mut file, &metadata, &tensors).unwrap();
}

/// A loaded model with random weights.
pub(super) fn engine(seed: u64, window: usize) -> Engine {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tiny.gguf");
    write_gguf(&path, seed, GgmlDType::Q8_0);
    match Source::look(&path).unwrap().load(window).unwrap() {
        Loaded::Chat(engine) => *engine,
        Loaded::Embeddings(_) => panic!("no vectors expected"),
    }
}
