//! Audit sinks, as the configuration enables them.

use std::io::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tokio::sync::Mutex;
use zeph_memory::{Heads, JsonlAudit, SqliteAudit, Store, Synchronous};
use zeph_tools::audit::chain::{self, Fields};
use zeph_tools::audit::{Intent, Link};
use zeph_tools::layers::now_ms;
use zeph_tools::{AuditEntry, AuditError, AuditSink, AuditTrail};

use crate::config::Loaded;
use crate::output::events::{Event, Line};

/// The stream that the sink `stdout` prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditLines {
    /// Standard output, for the user or a script.
    Stdout,
    /// Standard error, since standard output belongs to one JSON object, to results in lines, or to
    /// a terminal session.
    Stderr,
    /// Standard output, as events among the others.
    Events,
}

/// The sinks of `[tools.audit]`. The file is created if it is missing, so that it can be protected from file tools.
pub(super) fn trail(loaded: &Loaded, store: &Store, lines: AuditLines) -> AuditTrail {
    let audit = &loaded.config.tools.audit;
    let mut sinks: Vec<Arc<dyn AuditSink>> = Vec::new();
    if audit.sqlite {
        sinks.push(Arc::new(SqliteAudit::new(store.clone())));
    }
    if audit.jsonl {
        let flush = loaded.config.memory.synchronous == Synchronous::Full;
        let sink = JsonlAudit::new(
            loaded.paths.audit_log.clone(),
            &Heads::beside(store.path()),
            flush,
        );
        // Every call reports a file that cannot be used.
        if let Err(error) = sink.prepare() {
            tracing::debug!(%error, "the file of audit entries cannot be used");
        }
        sinks.push(Arc::new(sink));
    }
    if audit.stdout {
        sinks.push(Arc::new(Printed {
            lines,
            state: Mutex::new(Print {
                last: Link {
                    seq: 0,
                    hash: chain::hex_digest(uuid::Uuid::new_v4().as_bytes()),
                },
                lost: None,
            }),
        }));
    }
    AuditTrail::new(sinks, audit.required)
}

/// Prints entries with a separate chain for each process.
struct Printed {
    lines: AuditLines,
    state: Mutex<Print>,
}

struct Print {
    last: Link,
    /// Why a line could not be printed.
    lost: Option<String>,
}

impl Printed {
    fn name(&self) -> &'static str {
        match self.lines {
            AuditLines::Stdout | AuditLines::Events => "standard output",
            AuditLines::Stderr => "standard error",
        }
    }

    fn failed(&self, reason: &str) -> AuditError {
        AuditError(format!(
            "{}: {reason}; make its reader run and its disk have space, or turn off `[tools.audit] \
             stdout`",
            self.name()
        ))
    }

    fn print(&self, line: &str) -> std::io::Result<()> {
        let whole = match self.lines {
            AuditLines::Stdout | AuditLines::Stderr => format!("{line}\n"),
            AuditLines::Events => {
                let event = Line {
                    ts: now_ms(),
                    event: Event::Audit {
                        entry: serde_json::from_str(line)?,
                    },
                };
                format!("{}\n", serde_json::to_string(&event)?)
            }
        };
        match self.lines {
            AuditLines::Stdout | AuditLines::Events => {
                let mut out = std::io::stdout().lock();
                out.write_all(whole.as_bytes())?;
                out.flush()
            }
            AuditLines::Stderr => std::io::stderr().lock().write_all(whole.as_bytes()),
        }
    }

    /// Whether the reader has closed the stream.
    fn is_deaf(&self) -> bool {
        let (out, err) = (std::io::stdout(), std::io::stderr());
        let mut fds = [match self.lines {
            AuditLines::Stdout | AuditLines::Events => PollFd::new(&out, PollFlags::OUT),
            AuditLines::Stderr => PollFd::new(&err, PollFlags::OUT),
        }];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let polled = poll(&mut fds, Some(&now));
        let gone = PollFlags::ERR | PollFlags::NVAL;
        polled.is_ok() && fds.iter().any(|fd| fd.revents().intersects(gone))
    }
}

#[async_trait]
impl AuditSink for Printed {
    async fn reserve(&self, _intent: Intent<'_>) -> Result<(), AuditError> {
        match &self.state.lock().await.lost {
            Some(reason) => Err(self.failed(reason)),
            None if self.is_deaf() => Err(self.failed("no process reads it")),
            None => Ok(()),
        }
    }

    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        let mut state = self.state.lock().await;
        let call = entry.call.to_string();
        let repairs = Value::from(entry.repairs.as_slice()).to_string();
        let sealed = chain::seal(&Fields::of(entry, &call, &repairs), &state.last);
        if let Err(error) = self.print(&sealed.line) {
            let error = error.to_string();
            let failed = self.failed(&error);
            state.lost = Some(error);
            return Err(failed);
        }
        state.last = sealed.link;
        Ok(())
    }
}
