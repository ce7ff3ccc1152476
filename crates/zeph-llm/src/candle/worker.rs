//! The thread of a model. It loads the model at the first request, processes requests in sequence, and ends with its
//! provider.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::mpsc::UnboundedSender;

use super::engine::{CompletionRequest, Ended, Failure, greedy};
use super::source::{Loaded, Source};
use super::thread_pool::Cores;
use crate::error::LlmErrorKind;

/// The replies to a question, in order; the last one is `Done`.
#[derive(Debug)]
pub(super) enum Reply {
    /// More of the response.
    Text(String),
    /// How it ended.
    Done(Result<Ended, Failure>),
}

/// A job for the thread.
#[derive(Debug)]
pub(super) enum Job {
    Answer(CompletionRequest, UnboundedSender<Reply>),
    Embed(
        Vec<String>,
        tokio::sync::oneshot::Sender<Result<Vec<Vec<f32>>, Failure>>,
    ),
}

/// Starts the thread. It ends after the current request when the sender is dropped.
///
/// # Errors
/// The system cannot create a thread.
pub(super) fn start(source: Source, window: usize, cores: Cores) -> std::io::Result<Sender<Job>> {
    let (sender, jobs) = channel();
    std::thread::Builder::new()
        .name("local model".to_owned())
        .spawn(move || work(&source, window, cores, &jobs))?;
    Ok(sender)
}

fn work(source: &Source, window: usize, cores: Cores, jobs: &Receiver<Job>) {
    let mut model = None;
    while let Ok(job) = jobs.recv() {
        cores.run(|| serve(job, &mut model, source, window));
    }
}

fn serve(job: Job, model: &mut Option<Loaded>, source: &Source, window: usize) {
    match job {
        Job::Answer(question, replies) => {
            let show = &mut |text: String| {
                let sent = text.is_empty() || replies.send(Reply::Text(text)).is_ok();
                sent && !replies.is_closed()
            };
            let result = guarded(model, source, window, |model| match model {
                _ if replies.is_closed() => Err(Failure::Cancelled),
                Loaded::Chat(engine) => engine.answer(question, &mut greedy, show),
                Loaded::Embeddings(_) => Err(no_answers()),
            });
            // The caller may no longer wait.
            let _ = replies.send(Reply::Done(result));
        }
        Job::Embed(texts, reply) => {
            let result = guarded(model, source, window, |model| match model {
                _ if reply.is_closed() => Err(Failure::Cancelled),
                Loaded::Embeddings(embedder) => embedder
                    .embed(&texts, &mut || !reply.is_closed())
                    .map_err(|error| Failure::Error(LlmErrorKind::Protocol, error)),
                Loaded::Chat(_) => Ok(Vec::new()),
            });
            let _ = reply.send(result);
        }
    }
}

/// The failure of a request for text to an embedding model.
pub(super) fn no_answers() -> Failure {
    let message = "the model only creates embeddings: select a chat model";
    Failure::Error(LlmErrorKind::Config, message.to_owned())
}

/// Uses the model, which is loaded if necessary. A panic is an error of this request, and the next one loads the
/// model again.
fn guarded<T>(
    model: &mut Option<Loaded>,
    source: &Source,
    window: usize,
    run: impl FnOnce(&mut Loaded) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let loaded = match model.take() {
            Some(loaded) => loaded,
            None => source.load(window).map_err(|error| {
                let message = format!("the model could not be loaded: {error}");
                Failure::Error(LlmErrorKind::Config, message)
            })?,
        };
        run(model.insert(loaded))
    }));
    result.unwrap_or_else(|_| {
        *model = None;
        let message = "the local model failed and will be reloaded for the next request";
        Err(Failure::Error(LlmErrorKind::Protocol, message.to_owned()))
    })
}
