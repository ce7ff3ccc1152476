//! The hash chain of audit entries: their canonical form, and the check of a chain, without I/O.
//!
//! The canonical form of an entry, version 1, is one line of JSON without spaces between tokens. Its fields are
//! `v`, `seq` and `prev`, then those of [`Fields`] in their order. `hash` is the SHA-256 of the bytes of that
//! line up to `,"hash":`. It covers `prev`, the hash of the previous entry, so that each hash covers all entries
//! up to its own. `prev` of the first entry is a random number, the name of the chain.

use sha2::{Digest, Sha256};

use super::AuditEntry;

/// The version of the canonical form.
pub const VERSION: u32 = 1;

/// The text between the hashed bytes of a line and its hash.
const HASH_KEY: &str = ",\"hash\":\"";
/// The text after the hash.
const END: &str = "\"}";

/// The fields of an entry in canonical order, in their stored form.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the fields are those of `AuditEntry`")]
pub struct Fields<'a> {
    pub ts: i64,
    pub session: &'a str,
    pub call_id: &'a str,
    pub tool: &'a str,
    /// The arguments as JSON, copied unchanged.
    pub call: &'a str,
    pub result: &'a str,
    pub result_digest: &'a str,
    pub result_size: i64,
    pub trust: &'a str,
    pub approved_by: &'a str,
    pub phase: &'a str,
    pub duration_ms: i64,
    pub exit_code: Option<i64>,
    pub truncated: Option<bool>,
    pub error_category: Option<&'a str>,
    pub attempts: i64,
    pub cached: bool,
    pub adversarial_policy_decision: Option<&'a str>,
    pub claim_source: Option<&'a str>,
    /// A JSON array of strings, copied unchanged; omitted if it is `[]`.
    pub repairs: &'a str,
    /// Omitted if null.
    pub caller_id: Option<&'a str>,
    /// Omitted if null.
    pub policy_match: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// Returns the fields of `entry`, with `call` and `repairs` as JSON.
    #[must_use]
    pub fn of(entry: &'a AuditEntry, call: &'a str, repairs: &'a str) -> Self {
        Self {
            ts: entry.ts,
            session: &entry.session,
            call_id: &entry.call_id,
            tool: &entry.tool,
            call,
            result: entry.result.as_str(),
            result_digest: &entry.result_digest,
            result_size: integer(entry.result_size),
            trust: entry.trust.as_str(),
            approved_by: entry.approved_by.as_str(),
            phase: entry.phase.as_str(),
            duration_ms: integer(entry.duration_ms),
            exit_code: entry.exit_code.map(i64::from),
            truncated: entry.truncated,
            error_category: entry.error_category,
            attempts: entry.attempts.into(),
            cached: entry.cached,
            adversarial_policy_decision: entry.adversarial_policy_decision.as_deref(),
            claim_source: entry.claim_source.as_deref(),
            repairs,
            caller_id: entry.caller_id.as_deref(),
            policy_match: entry.policy_match.as_deref(),
        }
    }

    /// Returns the canonical form of the entry after `link`, up to its hash; without a link if the entry is not
    /// in a chain.
    #[must_use]
    pub fn body(&self, link: Option<&Link>) -> String {
        let mut line = Line {
            text: String::with_capacity(self.call.len() + self.repairs.len() + 1024),
        };
        line.text.push('{');
        line.raw("v", VERSION);
        match link {
            Some(link) => {
                line.raw("seq", link.seq.saturating_add(1));
                line.string("prev", &link.hash);
            }
            None => {
                line.raw("seq", "null");
                line.raw("prev", "null");
            }
        }
        line.raw("ts", self.ts);
        line.string("session", self.session);
        line.string("call_id", self.call_id);
        line.string("tool", self.tool);
        line.raw("call", self.call);
        line.string("result", self.result);
        line.string("result_digest", self.result_digest);
        line.raw("result_size", self.result_size);
        line.string("trust", self.trust);
        line.string("approved_by", self.approved_by);
        line.string("phase", self.phase);
        line.raw("duration_ms", self.duration_ms);
        line.optional("exit_code", self.exit_code);
        line.optional("truncated", self.truncated);
        line.optional_string("error_category", self.error_category);
        line.raw("attempts", self.attempts);
        line.raw("cached", self.cached);
        line.optional_string(
            "adversarial_policy_decision",
            self.adversarial_policy_decision,
        );
        line.optional_string("claim_source", self.claim_source);
        if self.repairs != "[]" {
            line.raw("repairs", self.repairs);
        }
        if self.caller_id.is_some() {
            line.optional_string("caller_id", self.caller_id);
        }
        if self.policy_match.is_some() {
            line.optional_string("policy_match", self.policy_match);
        }
        line.text
    }
}

/// Converts a count to a signed integer, as in JSON and SQLite.
fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A line of JSON under construction.
struct Line {
    text: String,
}

impl Line {
    fn raw(&mut self, key: &str, value: impl std::fmt::Display) {
        use std::fmt::Write as _;
        let comma = if self.text.len() > 1 { "," } else { "" };
        // Writing into a string cannot fail.
        let _ = write!(self.text, "{comma}\"{key}\":{value}");
    }

    fn string(&mut self, key: &str, value: &str) {
        // A string always has a JSON form.
        self.raw(key, serde_json::to_string(value).unwrap_or_default());
    }

    fn optional(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        match value {
            Some(value) => self.raw(key, value),
            None => self.raw(key, "null"),
        }
    }

    fn optional_string(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.string(key, value),
            None => self.raw(key, "null"),
        }
    }
}

/// A position in a chain: the number and the hash of an entry. Number 0 with the name of the chain is the
/// position before the first entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The number of the entry.
    pub seq: u64,
    /// The hash, in lower-case hex.
    pub hash: String,
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl std::str::FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text
            .trim()
            .split_once(':')
            .and_then(|(seq, hash)| Some((seq.parse().ok()?, hash.to_ascii_lowercase())));
        match parts {
            Some((seq, hash)) if is_hash(&hash) => Ok(Self { seq, hash }),
            _ => Err("expected SEQ:HASH as `zeph audit head` prints it".to_owned()),
        }
    }
}

/// Whether `text` is a SHA-256 in lower-case hex.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the SHA-256 in lower-case hex.
#[must_use]
pub fn hex_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Formats bytes in lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A chained entry as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sealed {
    /// The hash of the previous entry.
    pub prev: String,
    /// The position of the entry.
    pub link: Link,
    /// The line, without a line break.
    pub line: String,
}

/// Formats `fields` as the entry after the position `before`.
#[must_use]
pub fn seal(fields: &Fields<'_>, before: &Link) -> Sealed {
    let mut line = fields.body(Some(before));
    let hash = hex_digest(line.as_bytes());
    line.push_str(HASH_KEY);
    line.push_str(&hash);
    line.push_str(END);
    Sealed {
        prev: before.hash.clone(),
        link: Link {
            seq: before.seq.saturating_add(1),
            hash,
        },
        line,
    }
}

/// Parses a line from [`seal`] to the position of the entry and the previous hash. `None` if any byte of the line
/// was changed.
#[must_use]
pub fn open(line: &[u8]) -> Option<(Link, String)> {
    let body_len = line.len().checked_sub(HASH_KEY.len() + 64 + END.len())?;
    let (body, rest) = line.split_at_checked(body_len)?;
    let hash = rest.strip_prefix(HASH_KEY.as_bytes())?;
    let hash = std::str::from_utf8(hash.strip_suffix(END.as_bytes())?).ok()?;
    if hex_digest(body) != hash {
        return None;
    }
    let body = std::str::from_utf8(body).ok()?;
    let rest = body.strip_prefix("{\"v\":1,\"seq\":")?;
    let (seq, rest) = rest.split_once(",\"prev\":\"")?;
    let prev = rest.get(..64).filter(|prev| is_hash(prev))?;
    let link = Link {
        seq: seq.parse().ok()?,
        hash: hash.to_owned(),
    };
    Some((link, prev.to_owned()))
}

/// A check of a chain, entry by entry in its order.
#[derive(Debug)]
pub struct ChainCheck {
    last: Option<Link>,
    name: Option<String>,
    known: Vec<Link>,
}

impl ChainCheck {
    /// Creates a check of a chain that must contain every entry of `known`; number 0 is its name.
    #[must_use]
    pub fn new(known: Vec<Link>) -> Self {
        Self {
            last: None,
            name: None,
            known,
        }
    }

    /// Creates a check of the entries after `link`.
    #[must_use]
    pub fn behind(link: Link) -> Self {
        Self {
            last: Some(link),
            ..Self::new(Vec::new())
        }
    }

    /// Returns the last entry so far.
    #[must_use]
    pub fn last(&self) -> Option<&Link> {
        self.last.as_ref()
    }

    /// Returns the name of the chain, after the first entry.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Checks the next entry. Its own hash must be correct.
    ///
    /// # Errors
    /// The reason why it cannot be the next entry.
    pub fn entry(&mut self, link: &Link, prev: &str) -> Result<(), String> {
        match &self.last {
            None if link.seq != 1 => {
                return Err(format!(
                    "it has number {} and is the first entry: earlier entries are missing",
                    link.seq
                ));
            }
            None => {
                self.known(0, prev)?;
                self.name = Some(prev.to_owned());
            }
            Some(last) if link.seq != last.seq.saturating_add(1) => {
                return Err(format!(
                    "sequence gap: {} follows {}; entries were removed, inserted or reordered",
                    link.seq, last.seq
                ));
            }
            Some(last) if last.hash != prev => {
                return Err(format!(
                    "its previous hash does not match entry {}: that entry was replaced",
                    last.seq
                ));
            }
            Some(_) => {}
        }
        self.known(link.seq, &link.hash)?;
        self.last = Some(link.clone());
        Ok(())
    }

    fn known(&self, seq: u64, hash: &str) -> Result<(), String> {
        let other = self
            .known
            .iter()
            .any(|known| known.seq == seq && known.hash != hash);
        match (other, seq) {
            (false, _) => Ok(()),
            (true, 0) => Err("it begins a different chain than the noted one".to_owned()),
            (true, _) => Err("its hash differs from the noted hash: the entry was \
                replaced"
                .to_owned()),
        }
    }

    /// Ends the check.
    ///
    /// # Errors
    /// The number of missing entries at the end.
    pub fn finish(&self) -> Result<(), String> {
        let last = self.last.as_ref().map_or(0, |last| last.seq);
        let noted = self.known.iter().map(|known| known.seq).max().unwrap_or(0);
        if noted > last {
            return Err(format!(
                "the last entry is {last}, and entry {noted} was noted: {} missing at the end",
                match noted - last {
                    1 => "one entry is".to_owned(),
                    many => format!("{many} entries are"),
                }
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
