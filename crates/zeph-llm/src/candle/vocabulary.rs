//! The vocabulary of a model: conversion of text to tokens and back, and the tokens that end a response.

use std::sync::Arc;

use candle_core::quantized::tokenizer::TokenizerFromGguf as _;
use serde_json::Value;
use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use super::gguf::Gguf;
use super::words;

/// The names of tokens that end a response or a turn, in the vocabularies of known models.
const ENDS: [&str; 8] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "</s>",
    "<end_of_turn>",
];

/// A tokenizer with the bytes of its tokens.
#[derive(Clone)]
pub(super) struct Vocabulary {
    inner: Arc<Inner>,
}

struct Inner {
    /// Takes the names of special tokens as those tokens.
    marked: Tokenizer,
    /// Takes every text as text.
    plain: Tokenizer,
    trie: TokTrie,
    /// The names of special tokens.
    specials: Vec<String>,
    beginning: Option<String>,
    end: Option<String>,
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocabulary")
            .field("size", &self.inner.trie.vocab_size())
            .finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// The vocabulary in a GGUF's metadata.
    ///
    /// # Errors
    /// An unknown kind of vocabulary, or an invalid one.
    pub(super) fn from_gguf(gguf: &Gguf) -> Result<Self, String> {
        let mut tokenizer = Tokenizer::from_gguf(gguf.content()).map_err(words)?;
        let kind = gguf.text("tokenizer.ggml.pre").unwrap_or_default();
        if !["qwen2", "llama3", "smaug-bpe", "lfm2"].contains(&kind) {
            // As in the tokenizer.json of these models; the reader's own default adds a space first.
            let mut parts = vec![PreTokenizerWrapper::from(ByteLevel::new(false, true, true))];
            if kind == "smollm" {
                parts.insert(0, Digits::new(true).into());
            }
            tokenizer.with_pre_tokenizer(Some(Sequence::new(parts)));
        }
        let tokens = gguf.content().metadata.get("tokenizer.ggml.tokens");
        let tokens = tokens.and_then(|tokens| tokens.to_vec().ok());
        let named = |key: &str| -> Option<String> {
            let at = gguf.number(key)?;
            tokens?.get(at)?.to_string().ok().cloned()
        };
        Self::new(
            tokenizer,
            named("tokenizer.ggml.bos_token_id"),
            named("tokenizer.ggml.eos_token_id"),
        )
    }

    /// The vocabulary of a tokenizer, with the names of the tokens that begin and end a text.
    ///
    /// # Errors
    /// The bytes of a token are not known, or no token ends a response.
    pub(super) fn new(
        tokenizer: Tokenizer,
        beginning: Option<String>,
        end: Option<String>,
    ) -> Result<Self, String> {
        let written = tokenizer.to_string(false).map_err(words)?;
        let written: Value = serde_json::from_str(&written).map_err(words)?;
        let bytes = llguidance::token_bytes_from_tokenizer_json(&written)
            .map_err(|error| format!("the bytes of its tokens are unknown: {error}"))?;
        let mut ends: Vec<TokenId> = Vec::new();
        for name in end.as_deref().into_iter().chain(ENDS) {
            if let Some(id) = tokenizer.token_to_id(name)
                && !ends.contains(&id)
            {
                ends.push(id);
            }
        }
        let Some(first) = ends.first() else {
            return Err("no token of its vocabulary ends a response".to_owned());
        };
        let size = u32::try_from(bytes.len()).map_err(words)?;
        let trie = TokTrie::from(&TokRxInfo::new(size, *first), &bytes).with_eos_tokens(&ends);
        let added = tokenizer.get_added_tokens_decoder();
        let specials = added.into_values().filter(|token| token.special);
        let specials = specials.map(|token| token.content).collect();
        let mut plain = tokenizer.clone();
        plain.set_encode_special_tokens(true);
        Ok(Self {
            inner: Arc::new(Inner {
                marked: tokenizer,
                plain,
                trie,
                specials,
                beginning,
                end,
            }),
        })
    }

    /// The name of the token that begins a text.
    pub(super) fn beginning(&self) -> Option<&str> {
        self.inner.beginning.as_deref()
    }

    /// The name of the token that ends a text.
    pub(super) fn end(&self) -> Option<&str> {
        self.inner.end.as_deref()
    }

    /// Whether a text holds the name of a special token.
    pub(super) fn holds_special(&self, text: &str) -> bool {
        let specials = &self.inner.specials;
        specials.iter().any(|name| text.contains(name.as_str()))
    }

    /// The tokens of a text. With `marked`, names of special tokens are those tokens; otherwise they are ordinary
    /// text.
    ///
    /// # Errors
    /// The tokenizer refuses the text.
    pub(super) fn encode(&self, text: &str, marked: bool) -> Result<Vec<u32>, String> {
        let tokenizer = match marked {
            true => &self.inner.marked,
            false => &self.inner.plain,
        };
        let encoding = tokenizer.encode_fast(text, false);
        let encoding = encoding.map_err(|error| format!("the tokenizer failed: {error}"))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// How many tokens there are.
    pub(super) fn size(&self) -> usize {
        self.inner.trie.vocab_size()
    }

    /// Whether a token ends a response: an end token, or another special token, which has no place in a text.
    pub(super) fn ends(&self, token: u32) -> bool {
        let trie = &self.inner.trie;
        trie.eos_tokens().contains(&token) || trie.is_special_token(token)
    }

    /// The bytes of a token; empty for a special token or an unknown one.
    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        let known = (token as usize) < self.size();
        match known && !self.inner.trie.is_special_token(token) {
            true => self.inner.trie.token(token),
            false => &[],
        }
    }

    /// The vocabulary as grammars need it.
    pub(super) fn environment(&self) -> TokEnv {
        Arc::clone(&self.inner) as TokEnv
    }
}

impl TokenizerEnv for Inner {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            match self.plain.encode_fast(text, false) {
                Ok(encoding) => encoding.get_ids().to_vec(),
                Err(_) => self.trie.greedy_tokenize(text.as_bytes()),
            }
        })
    }
}
