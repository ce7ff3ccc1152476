//! Logs. Warnings and errors always go to the log file; `-v` and `ZEPH_LOG` add records, and show them on standard error.
//!
//! Spans of Zeph (turn, request, call, command) name the place of a record. The file is opened at the first record, or at the start if
//! standard error is taken.

mod file;
mod layer;
mod record;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Filter, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Environment, FlagOverrides, LogConfig, LogFormat};
use crate::output::redact::LogWriter;
use crate::output::{SHOWN, write_stderr};
use crate::terminal;

use file::LogFile;
use layer::LogLayer;

/// The prefix of the targets of Zeph's own records and spans.
const OWN: &str = "zeph";
/// The fields of spans that are for telemetry alone.
const TELEMETRY_FIELDS: &str = "otel.";

/// The format of records in the file, if it is known.
static FORMAT: Mutex<Option<LogFormat>> = Mutex::new(None);
/// The log file of this process.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// The use of standard error by the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Console {
    /// It is for messages: `-v` shows records there.
    Messages,
    /// An interface paints on it, or a program reads it: no record may appear there.
    Taken,
}

/// Starts the logs of this process, which has this command line.
pub(crate) fn start(verbose: u8, console: Console, flags: FlagOverrides) {
    let path = default_path();
    if let Some(path) = &path {
        let _ = FILE.set(path.clone());
    }
    let file = LogFile::new(path);
    if console == Console::Taken
        && let Err(error) = file.open()
    {
        notice(&error);
    }
    let directives = directives(verbose);
    let (wanted, problem) = match directives.as_deref().map(parse).transpose() {
        Ok(wanted) => (wanted, None),
        Err(error) => (None, Some(error)),
    };
    let to_file: Box<dyn Filter<Registry> + Send + Sync> = match (&wanted, console) {
        (Some(wanted), _) => Box::new(always().or(wanted.clone())),
        // Standard error cannot show more, so that the file holds what happened.
        (None, Console::Taken) => Box::new(always().or(filter_fn(|metadata| {
            is_own(metadata) && *metadata.level() <= Level::INFO
        }))),
        (None, Console::Messages) => Box::new(always()),
    };
    let shown = wanted.filter(|_| console == Console::Messages);
    let to_stderr = shown.map(|wanted| {
        tracing_subscriber::fmt::layer()
            .with_writer(LogWriter)
            .with_ansi(terminal::options(false, false).stderr.colour)
            .with_filter(wanted.and(filter_fn(|metadata| metadata.target() != SHOWN)))
            .boxed()
    });
    let layer = LogLayer::new(file, console, flags)
        .with_filter(to_file)
        .boxed();
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = vec![layer];
    layers.extend(to_stderr);
    #[cfg(feature = "otel")]
    layers.push(crate::telemetry::layer());
    tracing_subscriber::registry().with(layers).init();
    if let Some(problem) = problem {
        let given = directives.unwrap_or_default();
        crate::output::stderr_line(&format!(
            "warning: ZEPH_LOG={given:?} is not a filter; use for example zeph=debug: {problem}"
        ));
    }
}

/// Sets the format of the file.
pub(crate) fn set_format(config: &LogConfig) {
    *FORMAT.lock().unwrap_or_else(PoisonError::into_inner) = Some(config.format);
}

/// The format of the file. Before the configuration is loaded, and if it is invalid, it is the one that its sources name.
fn format(flags: &FlagOverrides) -> LogFormat {
    let known = *FORMAT.lock().unwrap_or_else(PoisonError::into_inner);
    known.unwrap_or_else(|| {
        let named = match Environment::of_process() {
            Ok(env) => LogFormat::of_sources(&env, flags),
            Err(_) => LogFormat::default(),
        };
        let mut known = FORMAT.lock().unwrap_or_else(PoisonError::into_inner);
        *known.get_or_insert(named)
    })
}

/// The log file of this process; `None` without HOME and XDG_STATE_HOME.
pub(crate) fn path() -> Option<&'static Path> {
    FILE.get().map(PathBuf::as_path)
}

/// Tries to open the log file, and returns its size.
///
/// # Errors
/// An error of the file system, or that the file has no place.
pub(crate) fn try_open() -> std::io::Result<u64> {
    LogFile::new(path().map(Path::to_owned)).open()
}

/// Reports that records are lost.
fn notice(error: &std::io::Error) {
    let place = match path() {
        Some(path) => path.display().to_string(),
        None => "zeph.log".to_owned(),
    };
    write_stderr(&format!(
        "warning: the log file {place} cannot be written: {error}; warnings of this run are not \
         stored"
    ));
}

/// The records of the file in any case: warnings, errors, and the spans that name their place.
fn always() -> impl Filter<Registry> {
    filter_fn(|metadata| match metadata.is_span() {
        true => is_own(metadata) && *metadata.level() <= Level::INFO,
        false => *metadata.level() <= Level::WARN,
    })
}

fn is_own(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(OWN)
}

/// The filter that the user wants; `None` without `ZEPH_LOG` and `-v`.
#[allow(
    clippy::disallowed_methods,
    reason = "logging starts before the environment is taken"
)]
fn directives(verbose: u8) -> Option<String> {
    match (std::env::var("ZEPH_LOG"), verbose) {
        (Ok(filter), _) if !filter.is_empty() => Some(filter),
        (_, 0) => None,
        (_, 1) => Some("zeph=info".to_owned()),
        (_, 2) => Some("zeph=debug".to_owned()),
        _ => Some("debug".to_owned()),
    }
}

fn parse(directives: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    EnvFilter::builder().parse(directives)
}

fn default_path() -> Option<PathBuf> {
    let folder = Environment::variables_of_process().state_home()?;
    Some(folder.join("zeph/zeph.log"))
}
