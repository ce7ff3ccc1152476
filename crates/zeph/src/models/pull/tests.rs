//! Tests of pulls from a local server with interrupted, changed and wrong responses.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::*;

/// Returns the response to the n-th request, from the head of the request.
type Answer = Box<dyn FnMut(usize, &str) -> Vec<u8> + Send>;

/// A server, its address and the heads of its requests.
struct Server {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

fn serve(mut answer: Answer) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while lines.read_line(&mut head).unwrap() > 2 {}
            let bytes = answer(n, &head);
            seen.lock().unwrap().push(head);
            // A client may close the connection early.
            let _ = stream.write_all(&bytes);
        }
    });
    Server { url, heads }
}

impl Server {
    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// A response that promises `length` bytes and delivers `body`.
fn reply(status: &str, headers: &str, body: &[u8], length: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn range_of(head: &str) -> Option<usize> {
    let line = head
        .lines()
        .find(|line| line.to_lowercase().starts_with("range:"))?;
    line.split("bytes=")
        .nth(1)?
        .trim_end_matches('-')
        .parse()
        .ok()
}

/// A GGUF that names a network, with one matrix of zeros.
fn gguf() -> Vec<u8> {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, text: &str| {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    };
    out.extend(b"GGUF");
    out.extend(3u32.to_le_bytes());
    out.extend(1u64.to_le_bytes());
    out.extend(5u64.to_le_bytes());
    text(&mut out, "general.architecture");
    out.extend(8u32.to_le_bytes());
    text(&mut out, "llama");
    for key in [
        "block_count",
        "context_length",
        "embedding_length",
        "attention.head_count",
    ] {
        text(&mut out, &format!("llama.{key}"));
        out.extend(4u32.to_le_bytes());
        out.extend(8u32.to_le_bytes());
    }
    text(&mut out, "token_embd.weight");
    out.extend(2u32.to_le_bytes());
    out.extend(32u64.to_le_bytes());
    out.extend(64u64.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.resize(out.len().next_multiple_of(32), 0);
    out.resize(out.len() + 32 * 64 * 4, 0);
    out
}

fn digest_of(bytes: &[u8]) -> String {
    copy(&mut &bytes[..], &mut std::io::sink()).unwrap()
}

struct Place {
    data: tempfile::TempDir,
    env: Environment,
}

fn place(variable: &str, url: &str) -> Place {
    Place {
        data: tempfile::tempdir().unwrap(),
        env: Environment::of("/", &[(variable, url)]),
    }
}

impl Place {
    fn store(&self) -> ModelStore {
        ModelStore::of(self.data.path())
    }

    async fn pull(&self, sha256: Option<&str>) -> anyhow::Result<Manifest> {
        self.pull_from("us/tiny/sub/Tiny.gguf", sha256).await
    }

    async fn pull_from(&self, model: &str, sha256: Option<&str>) -> anyhow::Result<Manifest> {
        let wanted = Wanted {
            model: model.to_owned(),
            name: None,
            sha256: sha256.map(str::to_owned),
        };
        let retry = RetryConfig::default();
        pull(&self.store(), &self.env, &retry, wanted, true).await
    }

    /// The remaining files of downloads and incomplete models.
    fn left(&self) -> Vec<String> {
        let partial = self.store().root.join(".partial");
        let names = [partial, self.store().root]
            .into_iter()
            .flat_map(|it| fs::read_dir(it).unwrap());
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        names
            .filter(|it| !["lock", ".partial", "tiny"].contains(&it.as_str()))
            .collect()
    }
}

#[tokio::test]
async fn interrupted_download_resumes() {
    let file = gguf();
    let (sha256, sent) = (digest_of(&file), file.clone());
    let server = serve(Box::new(move |n, head| {
        let etag = "ETag: \"one\"\r\n";
        match (n, range_of(head)) {
            (0, None) => reply("200 OK", etag, &sent[..1000], sent.len()),
            (_, Some(from)) => {
                let to = if n == 1 { from + 500 } else { sent.len() };
                let range = format!(
                    "{etag}Content-Range: bytes {from}-{}/{}\r\n",
                    sent.len() - 1,
                    sent.len()
                );
                reply(
                    "206 Partial Content",
                    &range,
                    &sent[from..to],
                    sent.len() - from,
                )
            }
            _ => reply("500 Internal Server Error", "", b"", 0),
        }
    }));
    let place = place("HF_ENDPOINT", &server.url);
    let manifest = place.pull(Some(&sha256)).await.unwrap();
    assert_eq!(manifest.name, "tiny");
    assert_eq!(manifest.source_sha256, sha256);
    let heads = server.heads();
    assert!(
        heads[0].starts_with("GET /us/tiny/resolve/main/sub/Tiny.gguf "),
        "{heads:?}"
    );
    let ranges: Vec<_> = heads.iter().map(|head| range_of(head)).collect();
    assert_eq!(ranges, [None, Some(1000), Some(1500)]);
    assert!(heads[1].contains("if-range: \"one\""), "{heads:?}");
    assert_eq!(place.left(), Vec::<String>::new());
    // The model is in the store with its manifest, and is not fetched again.
    let (directory, noted) = place.store().find("tiny").unwrap();
    assert_eq!(noted, manifest);
    assert_eq!(
        digest(&directory.join("model.gguf")).unwrap(),
        manifest.sha256
    );
    assert!(manifest.bytes < file.len() as u64);
    place.pull(Some(&sha256)).await.unwrap();
    assert_eq!(server.heads().len(), 3);
}

#[tokio::test]
async fn changed_file_is_downloaded_again() {
    let file = gguf();
    let (sha256, sent) = (digest_of(&file), file.clone());
    let server = serve(Box::new(move |n, _| match n {
        0 => reply("200 OK", "ETag: \"old\"\r\n", &[7; 3000], 9000),
        // The whole file instead of the requested part: the file has changed.
        _ => reply("200 OK", "ETag: \"new\"\r\n", &sent, sent.len()),
    }));
    let place = place("HF_ENDPOINT", &server.url);
    place.pull(Some(&sha256)).await.unwrap();
    let ranges: Vec<_> = server.heads().iter().map(|head| range_of(head)).collect();
    assert_eq!(ranges, [None, Some(3000)]);
}

#[tokio::test]
async fn file_with_another_digest_than_the_hub_reports_is_refused() {
    let file = gguf();
    let (sha256, sent) = (digest_of(&file), file.clone());
    let tag = format!("X-Linked-Etag: \"{sha256}\"\r\nLocation: https://elsewhere.invalid/\r\n");
    let server = serve(Box::new(move |_, head| match head.starts_with("HEAD") {
        true => reply("302 Found", &tag, b"", 0),
        false => reply("200 OK", "", &sent, sent.len()),
    }));
    let place = place("HF_ENDPOINT", &server.url);
    assert_eq!(place.pull(None).await.unwrap().source_sha256, sha256);

    let wrong = "0".repeat(64);
    let error = place.pull(Some(&wrong)).await.unwrap_err().to_string();
    assert!(error.contains(&sha256) && error.contains(&wrong), "{error}");
    assert_eq!(place.left(), Vec::<String>::new());
    // The earlier model is still in the store.
    assert_eq!(place.store().find("tiny").unwrap().1.source_sha256, sha256);
}

#[tokio::test]
async fn invalid_model_leaves_nothing() {
    let server = serve(Box::new(|_, _| reply("200 OK", "", b"no model", 8)));
    let place = place("HF_ENDPOINT", &server.url);
    let error = place.pull(Some(&digest_of(b"no model"))).await.unwrap_err();
    assert!(
        format!("{error:#}").contains("not a GGUF file"),
        "{error:#}"
    );
    assert!(place.store().list().unwrap().is_empty());
    let error = place.pull(None).await.unwrap_err().to_string();
    assert!(error.contains("--sha256"), "{error}");
    for (variable, url) in [
        ("HF_ENDPOINT", "http://hub.example"),
        ("HF_ENDPOINT", "ftp://127.0.0.1"),
    ] {
        let env = Environment::of("/", &[(variable, url)]);
        let place = Place {
            data: tempfile::tempdir().unwrap(),
            env,
        };
        let error = place
            .pull(Some(&"0".repeat(64)))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("only https"), "{error}");
    }
}

#[tokio::test]
async fn url_is_fetched_only_with_a_digest() {
    let file = gguf();
    let (sha256, sent) = (digest_of(&file), file.clone());
    let server = serve(Box::new(move |_, head| match head.starts_with("HEAD") {
        true => reply("200 OK", "", b"", 0),
        false => reply("200 OK", "", &sent, sent.len()),
    }));
    let place = place("HF_ENDPOINT", "https://hub.invalid");
    let url = format!("{}/a/Tiny.gguf?download=true", server.url);
    let error = place.pull_from(&url, None).await.unwrap_err().to_string();
    assert!(error.contains("--sha256"), "{error}");
    let manifest = place.pull_from(&url, Some(&sha256)).await.unwrap();
    assert_eq!((&*manifest.name, &manifest.source), ("tiny", &url));
    let error = place.pull_from(&url, Some("abc")).await.unwrap_err();
    assert!(error.to_string().contains("64 hexadecimal"), "{error}");
}

#[tokio::test]
async fn file_of_this_machine_is_copied() {
    let file = gguf();
    let sha256 = digest_of(&file);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Tiny.gguf");
    fs::write(&path, &file).unwrap();
    let place = place("HOME", folder.path().to_str().unwrap());
    let wrong = "0".repeat(64);
    let error = place
        .pull_from("~/Tiny.gguf", Some(&wrong))
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&sha256), "{error}");
    assert!(place.store().list().unwrap().is_empty());
    let manifest = place.pull_from("~/Tiny.gguf", None).await.unwrap();
    assert_eq!(manifest.source_sha256, sha256);
    assert_eq!(place.store().list().unwrap(), [manifest]);
    assert_eq!(fs::read(&path).unwrap(), file);
}

#[tokio::test]
async fn sources_without_a_gguf_file_are_refused() {
    let place = place("HF_ENDPOINT", "https://hub.invalid");
    for (model, expect) in [
        ("smollm2", "OWNER/REPO/FILE.gguf"),
        ("a/b", "OWNER/REPO/FILE.gguf"),
        ("a/b/c.bin", "is not a GGUF file"),
        ("a/b/.gguf", "is not a GGUF file"),
        ("/x/y.bin", "is not a GGUF file"),
        ("https://", "is not a URL"),
        ("file:///x.gguf", "only https"),
        ("/nowhere/x.gguf", "cannot be read"),
    ] {
        let error = place.pull_from(model, None).await.unwrap_err();
        assert!(format!("{error:#}").contains(expect), "{model}: {error:#}");
    }
}
