//! Verification of a trail, in the database or in a JSONL file.
//!
//! The head is read before the entries, so that concurrent growth of a trail causes no false alarm.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde::Deserialize;
use serde::de::IgnoredAny;
use zeph_tools::audit::chain::{self, hex_digest};
use zeph_tools::audit::{ChainCheck, Link};
use zeph_tools::plural::counted_as;

use super::entries::{StoredAudit, UnchainedHash, Writer};
use super::head::{Head, Heads};
use crate::error::StoreError;
use crate::store::Store;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The number of valid entries from the start of the chain.
    pub entries: u64,
    /// Entries from before the chain.
    pub unchained: u64,
    /// The last entry that is right.
    pub last: Option<Link>,
    /// The first place that is wrong, and why.
    pub wrong: Option<String>,
    /// Additional notes for the user.
    pub notes: Vec<String>,
}

/// The references with which the chain is compared.
struct Known {
    head: Option<Head>,
    links: Vec<Link>,
}

impl Known {
    fn new(head: Option<Head>, asked: Option<Link>) -> Self {
        let mut links: Vec<Link> = asked.into_iter().collect();
        if let Some(head) = &head {
            links.push(head.last.clone());
            links.push(Link {
                seq: 0,
                hash: head.chain.clone(),
            });
        }
        Self { head, links }
    }

    fn check(&self) -> ChainCheck {
        ChainCheck::new(self.links.clone())
    }

    /// Whether a reference determines the minimum end of the chain.
    fn has_known_end(&self) -> bool {
        self.links.iter().any(|link| link.seq > 0)
    }
}

/// Checks the trail in the database, up to its head and, if given, to the noted entry `asked`.
///
/// # Errors
/// A failure of the database; a damaged trail is a [`Verdict`].
pub async fn verify_database(store: &Store, asked: Option<Link>) -> Result<Verdict, StoreError> {
    let file = store.audit_head();
    let (head, lost) = match file.read() {
        Ok(head) => (head, None),
        Err(error) => (None, Some(error)),
    };
    let writer = own_writer(store, head.as_ref());
    let known = Known::new(head, asked);
    let mut rows = Rows::new(&known);
    rows.is_alone = !store.is_shared() && store.other_chains(None).await?.is_empty();
    let triggers = store.missing_audit_triggers().await?;
    if triggers > 0 {
        rows.note(format!(
            "{triggers} of the triggers that keep entries from being changed are missing"
        ));
    }
    let intents = store.audit_intents().await?;
    if intents > 0 {
        rows.note(format!(
            "{} no entry yet: the call is running, or its process was killed",
            counted_as(intents, "allowed call has", "allowed calls have")
        ));
    }
    rows.read(store, writer.as_deref()).await?;
    let place = file.path().display();
    let missing = match lost {
        Some(error) => format!("the head of the chain, {place}, cannot be read: {error}"),
        None => format!("the head of the chain, {place}, is missing"),
    };
    Ok(finish(rows.check, rows.verdict, &known, &missing, true))
}

/// The name of the chain that this machine writes to a store. The chain of a SQLite database has none there.
pub(crate) fn own_writer(store: &Store, head: Option<&Head>) -> Option<String> {
    let name = || head.map_or_else(String::new, |head| head.chain.clone());
    store.is_shared().then(name)
}

/// Checks the chains of other writers: those of other machines and users on a server, and copies. Their heads are on their
/// machines, so missing entries at the end cannot be seen here, except of a chain whose head is on this machine too.
///
/// # Errors
/// A failure of the database; a damaged chain is a [`Verdict`].
pub async fn verify_other_chains(store: &Store) -> Result<Vec<(Writer, Verdict)>, StoreError> {
    let own = own_writer(store, store.audit_head().read().ok().flatten().as_ref());
    let heads = Heads::beside(store.path());
    let mut verdicts = Vec::new();
    for writer in store.other_chains(own.as_deref()).await? {
        let name = Link {
            seq: 0,
            hash: writer.chain.clone(),
        };
        let mut known = Known::new(heads.of_chain(&writer.chain), None);
        known.links.push(name);
        let mut rows = Rows::new(&known);
        rows.read(store, Some(&writer.chain)).await?;
        let missing = "the head of this chain is on another machine";
        let verdict = finish(rows.check, rows.verdict, &known, missing, false);
        verdicts.push((writer, verdict));
    }
    Ok(verdicts)
}

/// The rows of a chain, in order.
struct Rows {
    check: ChainCheck,
    unchained: UnchainedHash,
    id: i64,
    /// The table has no other rows, so their numbers have no gap.
    is_alone: bool,
    verdict: Verdict,
}

impl Rows {
    fn new(known: &Known) -> Self {
        Self {
            check: known.check(),
            unchained: UnchainedHash::default(),
            id: 0,
            is_alone: false,
            verdict: Verdict::default(),
        }
    }

    /// Reads a chain to its end, or to the first row that is wrong.
    async fn read(&mut self, store: &Store, writer: Option<&str>) -> Result<(), StoreError> {
        loop {
            let page = match store.audit_page(writer, self.id).await {
                Ok(page) => page,
                Err(StoreError::Database { source, .. }) => {
                    self.verdict.wrong = Some(format!("after row {}: {source}", self.id));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            if page.is_empty() {
                return Ok(());
            }
            for entry in &page {
                if let Err(reason) = self.take(entry) {
                    self.verdict.wrong = Some(format!("row {}: {reason}", entry.id));
                    return Ok(());
                }
            }
        }
    }

    fn note(&mut self, text: String) {
        self.verdict.notes.push(text);
    }

    fn take(&mut self, entry: &StoredAudit) -> Result<(), String> {
        if self.is_alone && entry.id != self.id + 1 {
            return Err(format!(
                "it follows row {}: rows were removed or moved",
                self.id
            ));
        }
        self.id = entry.id;
        let (Some(link), Some(prev)) = (&entry.link, &entry.prev) else {
            if entry.link.is_some() || entry.prev.is_some() || self.check.last().is_some() {
                return Err("it is not in the chain".to_owned());
            }
            self.unchained.take(entry);
            self.verdict.unchained += 1;
            return Ok(());
        };
        for (name, text) in [("call", &entry.call), ("repairs", &entry.repairs)] {
            if serde_json::from_str::<IgnoredAny>(text).is_err() {
                return Err(format!("entry was modified (its `{name}` is not JSON)"));
            }
        }
        let before = Link {
            seq: link.seq.saturating_sub(1),
            hash: prev.clone(),
        };
        if chain::seal(&entry.fields(), &before).link != *link {
            return Err("entry was modified (its hash does not match its fields)".to_owned());
        }
        let first = self.check.last().is_none();
        self.check.entry(link, prev)?;
        if first && self.unchained.entries() > 0 {
            let found = std::mem::take(&mut self.unchained).finish();
            let noted = serde_json::from_str::<TrailNote>(&entry.call)
                .ok()
                .filter(|_| entry.tool == "audit")
                .and_then(|note| note.unchained)
                .is_some_and(|noted| {
                    noted.entries == found.entries && noted.sha256 == found.digest
                });
            if !noted {
                return Err(format!(
                    "the {} entries before the chain differ from those at the start of the chain",
                    found.entries
                ));
            }
        } else if first && is_note(entry) {
            return Err("the entries from before the chain are missing".to_owned());
        }
        self.verdict.entries += 1;
        Ok(())
    }
}

/// Whether the entry speaks of entries from before the chain.
fn is_note(entry: &StoredAudit) -> bool {
    entry.tool == "audit"
        && serde_json::from_str::<TrailNote>(&entry.call).is_ok_and(|note| note.unchained.is_some())
}

/// The content of entries about the trail itself.
#[derive(Deserialize)]
struct TrailNote {
    unchained: Option<UnchainedNote>,
    torn: Option<TornNote>,
}

#[derive(Deserialize)]
struct UnchainedNote {
    entries: u64,
    sha256: String,
}

#[derive(Deserialize)]
struct TornNote {
    bytes: usize,
    sha256: String,
}

/// The fields of a JSON line that are needed in addition to its link.
#[derive(Deserialize)]
struct LineNote {
    tool: String,
    call: Option<TrailNote>,
}

/// Checks a JSONL file, up to its head in `heads` and, if given, to the noted entry `asked`. `own` means that the
/// file is the configured one, so that its head must exist.
///
/// # Errors
/// If the file cannot be read; a damaged trail is a [`Verdict`].
pub fn verify_file(
    path: &Path,
    heads: &Heads,
    asked: Option<Link>,
    own: bool,
) -> io::Result<Verdict> {
    let mut options = OpenOptions::new();
    options.read(true);
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = options.custom_flags(flags).open(path);
    let head_file = heads.of_file(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound && own => None,
        opened => Some(opened?),
    };
    let (length, head) = match &file {
        None => (0, head_file.read()),
        Some(file) => {
            let found = file.metadata()?;
            if !found.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            // The lock excludes writers, so no entry is incomplete and the head is current.
            file.lock_shared()?;
            let read = (file.metadata()?.len(), head_file.read());
            file.unlock()?;
            read
        }
    };
    let (head, lost) = match head {
        Ok(head) => (head, None),
        Err(error) => (None, Some(error)),
    };
    let head = match (head, &file) {
        (None, Some(file)) => first_name(file, length)?.and_then(|name| heads.of_chain(&name)),
        (head, _) => head,
    };
    let known = Known::new(head, asked);
    let mut lines = Lines {
        check: known.check(),
        number: 0,
        torn: None,
        verdict: Verdict::default(),
    };
    if let Some(file) = &file {
        lines.read(file, length)?;
    }
    let place = head_file.path().display();
    let missing = match lost {
        Some(error) => format!("the head of the chain, {place}, cannot be read: {error}"),
        None => format!("{place} contains no head of this chain"),
    };
    Ok(finish(lines.check, lines.verdict, &known, &missing, own))
}

/// The name of the chain in a file.
fn first_name(mut file: &File, length: u64) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    io::Seek::rewind(&mut file)?;
    BufReader::new(file.take(length)).read_until(b'\n', &mut line)?;
    line.pop();
    Ok(chain::open(&line).map(|(_, prev)| prev))
}

/// The lines of a file, in order.
struct Lines {
    check: ChainCheck,
    number: u64,
    /// A line that is not an entry; the next entry has to report it.
    torn: Option<Vec<u8>>,
    verdict: Verdict,
}

impl Lines {
    fn read(&mut self, mut file: &File, length: u64) -> io::Result<()> {
        io::Seek::rewind(&mut file)?;
        let mut reader = BufReader::with_capacity(64 * 1024, file.take(length));
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            self.number += 1;
            if line.pop_if(|last| *last == b'\n').is_none() {
                self.verdict.notes.push(format!(
                    "the last line is incomplete ({} bytes, no entry): a process ended while it \
                     wrote; the next entry will record this",
                    line.len()
                ));
                break;
            }
            if let Err(reason) = self.take(&line) {
                self.verdict.wrong = Some(format!("line {}: {reason}", self.number));
                return Ok(());
            }
        }
        if self.torn.is_some() {
            self.verdict.wrong = Some(self.no_entry());
        }
        Ok(())
    }

    fn no_entry(&self) -> String {
        format!("line {}: entry was modified (hash mismatch)", self.number)
    }

    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let opened = chain::open(line);
        if let Some(torn) = self.torn.take() {
            let sealed = opened.is_some()
                && serde_json::from_slice::<LineNote>(line)
                    .ok()
                    .filter(|note| note.tool == "audit")
                    .and_then(|note| note.call?.torn)
                    .is_some_and(|note| {
                        note.bytes == torn.len() && note.sha256 == hex_digest(&torn)
                    });
            if !sealed {
                self.number -= 1;
                return Err("entry was modified (it differs from the written entry)".to_owned());
            }
            self.verdict.notes.push(format!(
                "line {} is incomplete ({} bytes, no entry): a process ended while it wrote; the \
                 next line records this",
                self.number - 1,
                torn.len()
            ));
        }
        let Some((link, prev)) = opened else {
            self.torn = Some(line.to_vec());
            return Ok(());
        };
        self.check.entry(&link, &prev)?;
        self.verdict.entries += 1;
        Ok(())
    }
}

/// The end of either check. `own`: a head must be there if there are entries.
fn finish(
    check: ChainCheck,
    mut verdict: Verdict,
    known: &Known,
    missing: &str,
    own: bool,
) -> Verdict {
    verdict.last = check.last().cloned();
    if verdict.wrong.is_some() {
        return verdict;
    }
    if let Err(reason) = check.finish() {
        verdict.wrong = Some(reason);
        return verdict;
    }
    if !known.has_known_end() && verdict.entries > 0 {
        let words = format!(
            "{missing}: missing entries at the end cannot be detected; --head SEQ:HASH compares \
             with a noted head"
        );
        if own {
            verdict.wrong = Some(words);
        } else {
            verdict.notes.push(words);
        }
    }
    let noted = known.head.as_ref().map(|head| head.last.seq);
    if let (Some(noted), Some(last)) = (noted, &verdict.last)
        && last.seq > noted
    {
        verdict.notes.push(format!(
            "{} at the end are newer than the stored head: their process ended before it stored \
             the head",
            match last.seq - noted {
                1 => "one entry".to_owned(),
                many => format!("{many} entries"),
            }
        ));
    }
    verdict
}
