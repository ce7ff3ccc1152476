//! Files of a model on disk: a GGUF file, or a directory with `config.json`, `tokenizer.json` and `*.safetensors`.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokenizers::Tokenizer;

use super::embedder::Embedder;
use super::engine::Engine;
use super::gguf::Gguf;
use super::safetensors::{Config, Shards};
use super::template::Template;
use super::vocabulary::Vocabulary;

/// The weights of an embedding model.
pub(super) const WEIGHTS: &str = "model.safetensors";
/// The file of a fetched model.
const GGUF: &str = "model.gguf";

/// A model that was inspected and not yet loaded.
#[derive(Debug, Clone)]
pub(super) struct Source {
    path: PathBuf,
    kind: Kind,
    /// The tokens that the model was trained for.
    pub(super) context: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Gguf,
    Safetensors,
    /// A BERT, which computes embeddings and no text.
    Embeddings,
}

/// A model that was loaded.
#[derive(Debug)]
pub(super) enum Loaded {
    Chat(Box<Engine>),
    Embeddings(Box<Embedder>),
}

impl Source {
    /// Inspects a file or a directory.
    ///
    /// # Errors
    /// A file is missing, or the kind of the model is unknown.
    pub(super) fn look(path: &Path) -> Result<Self, String> {
        let file = match path.is_dir() {
            true if path.join(GGUF).is_file() => path.join(GGUF),
            true => return Self::look_into(path),
            false => path.to_owned(),
        };
        let shape = Gguf::open(&file)?.shape()?;
        Ok(Self {
            path: file,
            kind: Kind::Gguf,
            context: shape.context,
        })
    }

    fn look_into(directory: &Path) -> Result<Self, String> {
        let config = json(&directory.join("config.json"))?;
        let kind = match config["model_type"].as_str() {
            Some("bert") => Kind::Embeddings,
            _ => Kind::Safetensors,
        };
        let context = match kind {
            Kind::Embeddings => config["max_position_embeddings"].as_u64(),
            _ => Some(known(config)?.shape()?.context as u64),
        };
        Ok(Self {
            path: directory.to_owned(),
            kind,
            context: context
                .and_then(|it| usize::try_from(it).ok())
                .unwrap_or(512),
        })
    }

    /// The identity of the weights of an embedding model: their path, size and time.
    pub(super) fn weights(&self) -> Option<String> {
        if self.kind != Kind::Embeddings {
            return None;
        }
        let file = self.path.join(WEIGHTS);
        let about = std::fs::metadata(&file).ok();
        let size = about.as_ref().map_or(0, std::fs::Metadata::len);
        let changed = about.and_then(|about| about.modified().ok());
        let changed = changed.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let changed = changed.unwrap_or_default().as_nanos();
        Some(format!("{} {size} {changed}", file.display()))
    }

    /// Loads the model. `window` is the maximum number of tokens of a request with its response.
    ///
    /// # Errors
    /// The model is invalid.
    pub(super) fn load(&self, window: usize) -> Result<Loaded, String> {
        match self.kind {
            Kind::Gguf => self.load_gguf(window),
            Kind::Safetensors => self.load_safetensors(window),
            Kind::Embeddings => {
                Embedder::load(&self.path).map(|it| Loaded::Embeddings(Box::new(it)))
            }
        }
    }

    fn load_gguf(&self, window: usize) -> Result<Loaded, String> {
        let mut gguf = Gguf::open(&self.path)?;
        // A separate tokenizer file is more exact than the metadata of the GGUF file.
        let beside = self.path.with_file_name("tokenizer.json");
        let vocabulary = match beside.is_file() {
            true => vocabulary_of(self.path.parent().unwrap_or(Path::new("")))?,
            false => Vocabulary::from_gguf(&gguf)?,
        };
        let template = Template::new(
            gguf.text("tokenizer.chat_template"),
            vocabulary.beginning(),
            vocabulary.end(),
        )?;
        let network = gguf.network()?;
        let engine = Engine::new(network, vocabulary, template, window)?;
        Ok(Loaded::Chat(Box::new(engine)))
    }

    fn load_safetensors(&self, window: usize) -> Result<Loaded, String> {
        let config = known(json(&self.path.join("config.json"))?)?;
        let vocabulary = vocabulary_of(&self.path)?;
        let settings = json(&self.path.join("tokenizer_config.json")).unwrap_or_default();
        let beside = std::fs::read_to_string(self.path.join("chat_template.jinja")).ok();
        let template = Template::new(
            beside.as_deref().or(settings["chat_template"].as_str()),
            vocabulary.beginning(),
            vocabulary.end(),
        )?;
        let network = Shards::read(&self.path)?.network(&config)?;
        let engine = Engine::new(network, vocabulary, template, window)?;
        Ok(Loaded::Chat(Box::new(engine)))
    }
}

/// The description of a network of the Llama family in `config.json`.
fn known(config: Value) -> Result<Config, String> {
    serde_json::from_value(config).map_err(|error| format!("config.json: {error}"))
}

/// A JSON file.
fn json(path: &Path) -> Result<Value, String> {
    let fault = |error: String| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| fault(error.to_string()))
}

/// The vocabulary of a directory's `tokenizer.json`.
fn vocabulary_of(directory: &Path) -> Result<Vocabulary, String> {
    let path = directory.join("tokenizer.json");
    let tokenizer = Tokenizer::from_file(&path);
    let tokenizer = tokenizer.map_err(|error| format!("{}: {error}", path.display()))?;
    let settings = json(&directory.join("tokenizer_config.json")).unwrap_or_default();
    let named = |key: &str| {
        // A name, or a token with all that is known of it.
        let token = &settings[key];
        let name = token.as_str().or_else(|| token["content"].as_str());
        name.map(str::to_owned)
    };
    Vocabulary::new(tokenizer, named("bos_token"), named("eos_token"))
}
