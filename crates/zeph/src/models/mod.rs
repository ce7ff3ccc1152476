//! Models on this machine: those that `zeph models pull` fetched, each in a directory below the data directory, with
//! a record of its source.

#[cfg(feature = "candle")]
mod pull;
#[cfg(not(feature = "candle"))]
#[path = "pull/disabled.rs"]
mod pull;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

#[cfg(feature = "candle")]
use crate::config::Environment;

pub(crate) use self::pull::pull;

/// The note in a model's directory.
const MANIFEST: &str = "manifest.json";

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// It generates text.
    Chat,
    /// It computes embeddings of texts.
    Embeddings,
}

impl Purpose {
    /// The name of the purpose.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
        }
    }
}

/// The model that the user requests.
#[derive(Debug, Default)]
#[cfg_attr(
    not(feature = "candle"),
    allow(
        dead_code,
        reason = "only a build that fetches models reads all fields"
    )
)]
pub(crate) struct Wanted {
    /// OWNER/REPO/FILE.gguf of a hub, a URL, or a path.
    pub(crate) model: String,
    /// The name of the model in the store.
    pub(crate) name: Option<String>,
    /// The expected SHA-256.
    pub(crate) sha256: Option<String>,
}

/// The description of a fetched model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The name of its directory.
    pub(crate) name: String,
    /// The purpose.
    pub(crate) purpose: Purpose,
    /// The source.
    pub(crate) source: String,
    /// Its licence, if known (SPDX).
    pub(crate) license: Option<String>,
    /// The time of the download (RFC 3339, UTC).
    pub(crate) fetched: String,
    /// The digest of the weights as downloaded.
    pub(crate) source_sha256: String,
    /// The digest of the weights as they are.
    pub(crate) sha256: String,
    /// The bytes of the weights as they are.
    pub(crate) bytes: u64,
}

/// The models that were fetched.
#[derive(Debug, Clone)]
pub(crate) struct ModelStore {
    root: PathBuf,
}

impl ModelStore {
    /// The models under a data directory, which need not exist.
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self {
            root: data_dir.join("models"),
        }
    }

    /// The directory of the model of this name, which need not exist.
    ///
    /// # Errors
    /// If the name is invalid.
    pub(crate) fn directory(&self, name: &str) -> anyhow::Result<PathBuf> {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(known) {
            bail!("{name:?} is not a valid name of a model: use letters, digits, '-', '_' and '.'");
        }
        Ok(self.root.join(name))
    }

    /// All models, by name. Other directories are skipped.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(crate) fn list(&self) -> anyhow::Result<Vec<Manifest>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                let place = self.root.display().to_string();
                return Err(error).with_context(|| format!("{place} cannot be read"));
            }
        };
        let mut models: Vec<_> = entries
            .filter_map(|entry| manifest(&entry.ok()?.path()))
            .collect();
        models.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(models)
    }

    /// The model of this name.
    ///
    /// # Errors
    /// If the model does not exist; the error lists the existing ones.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<(PathBuf, Manifest)> {
        let directory = self.directory(name)?;
        if let Some(manifest) = manifest(&directory) {
            return Ok((directory, manifest));
        }
        let names: Vec<_> = self.list()?.into_iter().map(|model| model.name).collect();
        let there = match names.is_empty() {
            true => "none was".to_owned(),
            false => format!("these were: {}", names.join(", ")),
        };
        bail!(
            "no model {name:?} was downloaded ({there}): run zeph models pull OWNER/REPO/FILE.gguf \
             --name {name}"
        )
    }

    /// Removes the model of this name.
    ///
    /// # Errors
    /// If the model does not exist, or if it cannot be removed.
    pub(crate) fn remove(&self, name: &str) -> anyhow::Result<()> {
        let (directory, _) = self.find(name)?;
        let removed = fs::remove_dir_all(&directory);
        removed.with_context(|| format!("{} cannot be removed", directory.display()))
    }

    /// The first model that generates text.
    #[cfg(feature = "candle")]
    pub(crate) fn that_chats(&self) -> Option<Manifest> {
        let models = self.list().ok()?;
        models.into_iter().find(|it| it.purpose == Purpose::Chat)
    }

    /// The directory of the model in the configuration, which is the name of a fetched model or a path.
    ///
    /// # Errors
    /// If no model of this name was fetched.
    #[cfg(feature = "candle")]
    pub(crate) fn resolve(&self, model: &str, env: &Environment) -> anyhow::Result<PathBuf> {
        match place(model, env) {
            Some(path) => Ok(path),
            None => self.find(model).map(|(directory, _)| directory),
        }
    }
}

/// The path that a model is named by, if it is named by one.
#[cfg(feature = "candle")]
fn place(model: &str, env: &Environment) -> Option<PathBuf> {
    if let Some(rest) = model.strip_prefix("~/") {
        return Some(env.home()?.join(rest));
    }
    let is_path = model.contains('/') || model.ends_with(".gguf");
    is_path.then(|| env.cwd.join(model))
}

/// The note in a directory.
fn manifest(directory: &Path) -> Option<Manifest> {
    let text = fs::read(directory.join(MANIFEST)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&text).ok()?;
    let is_its_own = directory.file_name()? == manifest.name.as_str();
    is_its_own.then_some(manifest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[cfg(feature = "candle")]
    #[test]
    fn model_paths_become_absolute() {
        let env = Environment::of("/here", &[("HOME", "/h")]);
        for (model, expect) in [
            ("smollm2", None),
            ("qwen2.5-0.5b", None),
            ("./x.gguf", Some("/here/./x.gguf")),
            ("x.gguf", Some("/here/x.gguf")),
            ("/m/x", Some("/m/x")),
            ("~/m/x.gguf", Some("/h/m/x.gguf")),
        ] {
            assert_eq!(place(model, &env), expect.map(PathBuf::from), "{model}");
        }
    }

    #[test]
    fn invalid_model_names_are_refused() {
        let store = ModelStore::of(Path::new("/d"));
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b", "a\n"] {
            assert!(store.directory(name).is_err(), "{name:?}");
        }
        assert_eq!(
            store.directory("a-1.b_c").unwrap(),
            Path::new("/d/models/a-1.b_c")
        );
    }

    #[test]
    fn directory_without_a_manifest_is_not_a_model() {
        let data = tempfile::tempdir().unwrap();
        let store = ModelStore::of(data.path());
        assert_eq!(store.list().unwrap(), []);
        let note = Manifest {
            name: "tiny".to_owned(),
            purpose: Purpose::Chat,
            source: "here".to_owned(),
            license: None,
            fetched: "2026-01-01T00:00:00Z".to_owned(),
            source_sha256: String::new(),
            sha256: String::new(),
            bytes: 1,
        };
        for name in ["tiny", "copy", ".tiny.new", "empty"] {
            let directory = data.path().join("models").join(name);
            fs::create_dir_all(&directory).unwrap();
            if name != "empty" {
                let text = serde_json::to_vec(&note).unwrap();
                fs::write(directory.join(MANIFEST), text).unwrap();
            }
        }
        assert_eq!(store.list().unwrap(), [note]);
        let error = store.find("other").unwrap_err().to_string();
        assert!(error.contains("these were: tiny"), "{error}");
        assert!(
            error.contains("zeph models pull OWNER/REPO/FILE.gguf --name other"),
            "{error}"
        );
        store.remove("tiny").unwrap();
        assert!(store.remove("tiny").is_err());
    }
}
