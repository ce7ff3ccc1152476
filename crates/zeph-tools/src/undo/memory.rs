//! An undo journal in memory, for programs that need undo only while they run.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Batch, Entry, JournalError, PendingChange, RecordOutcome, UndoJournal};

/// The reason for changes that were dropped to make space.
const DROPPED: &str = "dropped from the journal to make room for later changes";

/// A journal in memory.
#[derive(Debug)]
pub struct MemoryJournal {
    max_bytes: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: i64,
    /// The batch and entry of each change by session, the oldest first.
    entries: HashMap<String, Vec<(String, Entry)>>,
}

impl MemoryJournal {
    /// Creates a journal with a limit of `max_bytes` for each session.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            inner: Mutex::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(entry: &Entry) -> u64 {
    entry.change.as_ref().map_or(0, super::Change::bytes)
}

#[async_trait]
impl UndoJournal for MemoryJournal {
    fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    async fn record(&self, draft: PendingChange<'_>) -> Result<RecordOutcome, JournalError> {
        let mut inner = self.inner();
        inner.last += 1;
        let number = inner.last;
        let entries = inner.entries.entry(draft.session.to_owned()).or_default();
        let mut change = draft.change.cloned().map_err(str::to_owned);
        if let Ok(new) = &change {
            let mut total =
                new.bytes() + entries.iter().map(|(_, entry)| bytes(entry)).sum::<u64>();
            while total > self.max_bytes {
                let oldest = entries
                    .iter()
                    .find(|(batch, entry)| batch != draft.batch && bytes(entry) > 0)
                    .map(|(batch, _)| batch.clone());
                let Some(oldest) = oldest else {
                    change = Err(super::too_large(self.max_bytes));
                    break;
                };
                for (_, entry) in entries.iter_mut().filter(|(batch, _)| *batch == oldest) {
                    total -= bytes(entry);
                    entry.change = Err(DROPPED.to_owned());
                }
            }
        }
        let recorded = match &change {
            Ok(_) => RecordOutcome::Kept(number),
            Err(reason) => RecordOutcome::Lost(number, reason.clone()),
        };
        let entry = Entry {
            number,
            tool: draft.tool.to_owned(),
            what: draft.what.to_owned(),
            change,
        };
        entries.push((draft.batch.to_owned(), entry));
        Ok(recorded)
    }

    async fn settle(&self, session: &str, numbers: &[i64]) -> Result<(), JournalError> {
        if let Some(entries) = self.inner().entries.get_mut(session) {
            entries.retain(|(_, entry)| !numbers.contains(&entry.number));
        }
        Ok(())
    }

    async fn last(&self, session: &str) -> Result<Option<Batch>, JournalError> {
        let inner = self.inner();
        let Some(entries) = inner.entries.get(session) else {
            return Ok(None);
        };
        let Some((id, _)) = entries.last() else {
            return Ok(None);
        };
        let of_it = entries.iter().rev().filter(|(batch, _)| batch == id);
        Ok(Some(Batch {
            id: id.clone(),
            entries: of_it.map(|(_, entry)| entry.clone()).collect(),
        }))
    }

    async fn since(&self, session: &str, number: i64) -> Result<Vec<Entry>, JournalError> {
        let inner = self.inner();
        let entries = inner.entries.get(session).into_iter().flatten().rev();
        let later = entries.filter(|(_, entry)| entry.number > number);
        Ok(later.map(|(_, entry)| entry.clone()).collect())
    }
}
