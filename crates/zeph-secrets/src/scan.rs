//! Scan of a line in one pass: rare literals, and then the pattern that each literal announces.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr, memrchr};

use super::kind::Kind;
use super::line_buffer::{LOOK_BACK, Line};
use super::literal_set::LiteralSet;
use super::placeholder::MARK;
use super::private_key::{self, Beginning};
use super::visible_text::{self, VisibleLine};
use super::{assignment, path, token, token_formats, url};
use crate::SecurityPatterns;

/// A value that the scan found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// The range in the line.
    pub(super) range: Range<usize>,
    /// The kind of the value.
    pub(super) kind: Kind,
}

/// The start of a key that continues after the line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PrivateKeyStart {
    /// The position of the start.
    pub(super) at: usize,
    /// Whether the first part of the key is on this line.
    pub(super) is_certain: bool,
}

/// The result of the scan of a line.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// The values, in order and without overlaps.
    pub(super) findings: Vec<Finding>,
    /// The start of a key. The text after it is not scanned.
    pub(super) key: Option<PrivateKeyStart>,
    /// The end of the part that more text does not change.
    pub(super) decided: usize,
}

/// The kind of pattern that a literal announces.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PatternFamily {
    Token,
    Assignment,
    Url,
    PrivateKey,
    Path,
}

/// The literals of all families except tokens.
const FAMILIES: &[(PatternFamily, &[&str])] = &[
    (PatternFamily::PrivateKey, private_key::LITERALS),
    (PatternFamily::Url, url::LITERALS),
    (PatternFamily::Path, path::LITERALS),
    (PatternFamily::Assignment, assignment::LITERALS),
];

/// The search for the literals of all families.
struct Prefilter {
    set: LiteralSet,
    /// The family of each literal.
    families: Vec<PatternFamily>,
}

static PREFILTER: LazyLock<Prefilter> = LazyLock::new(|| {
    let tokens = token_formats::literals().map(|literal| (PatternFamily::Token, literal));
    let others = FAMILIES
        .iter()
        .flat_map(|(family, literals)| literals.iter().map(move |literal| (*family, *literal)));
    let (families, literals): (Vec<_>, Vec<_>) = tokens.chain(others).unzip();
    Prefilter {
        set: LiteralSet::new(literals),
        families,
    }
});

impl Prefilter {
    /// The first literal at or after `from`.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, PatternFamily)> {
        let (at, literal) = self.set.find(text, from)?;
        Some((at, *self.families.get(literal)?))
    }
}

/// Iterates over the candidates of a text.
pub(super) struct Candidates<'t> {
    secrets: &'t SecurityPatterns,
    text: &'t str,
    /// The last result; `None` before the first search.
    next: Option<Option<(usize, PatternFamily)>>,
    known: Option<Option<usize>>,
}

impl<'t> Candidates<'t> {
    /// Returns the candidates of `text`.
    pub(super) fn new(secrets: &'t SecurityPatterns, text: &'t str) -> Self {
        Self {
            secrets,
            text,
            next: None,
            known: None,
        }
    }

    /// The first literal at or after `from`. `from` must not decrease between calls.
    fn literal(&mut self, from: usize) -> Option<(usize, PatternFamily)> {
        let is_behind = |(at, _)| at < from;
        if self.next.is_none_or(|found| found.is_some_and(is_behind)) {
            self.next = Some(PREFILTER.find(self.text.as_bytes(), from));
        }
        self.next.flatten()
    }

    /// The position of the first known value at or after `from`.
    fn known(&mut self, from: usize) -> Option<usize> {
        if self
            .known
            .is_none_or(|found| found.is_some_and(|at| at < from))
        {
            let found = self.secrets.known.load().find(self.text.as_bytes(), from);
            self.known = Some(found.map(|range| range.start));
        }
        self.known.flatten()
    }

    /// The position of the first literal or known value at or after `from`.
    pub(super) fn place(&mut self, from: usize) -> Option<usize> {
        let literal = self.literal(from).map(|(at, _)| at);
        match (literal, self.known(from)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        }
    }

    /// Whether the line at `range` has no known value, and no literal that announces a secret. Candidates before the
    /// last search are not checked again.
    pub(super) fn is_clean(&mut self, range: Range<usize>) -> bool {
        if self.known(range.start).is_some_and(|at| at < range.end) {
            return false;
        }
        let line = Line::new(&self.text[range.clone()], true);
        let mut at = range.start;
        while let Some((place, family)) = self.literal(at)
            && place < range.end
        {
            if found(&line, place - range.start, family).is_some() {
                return false;
            }
            at = place + 1;
        }
        true
    }

    /// The start of the first line that needs a full scan. `from` is the start of a line.
    pub(super) fn suspect(&mut self, from: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut from = from;
        let mut next = from;
        loop {
            let place = self.place(next)?;
            if self.is_bare_url(place) {
                next = place + 1;
                continue;
            }
            let start = memrchr(b'\n', &bytes[from..place]).map_or(from, |at| from + at + 1);
            let end = memchr(b'\n', &bytes[place..]).map_or(bytes.len(), |at| place + at + 1);
            if !self.is_clean(start..end) {
                return Some(start);
            }
            (from, next) = (end, end);
        }
    }

    /// Whether the candidate at `place` is a URL without credentials.
    fn is_bare_url(&self, place: usize) -> bool {
        let url = Some(Some((place, PatternFamily::Url)));
        let is_known = self.known.flatten() == Some(place);
        self.next == url && !is_known && url::is_bare(self.text.as_bytes(), place)
    }
}

/// The secret that a literal announces.
enum Found {
    Value(Range<usize>, Kind),
    Key(PrivateKeyStart),
}

/// Returns the secret that the literal at `at` announces, if it is present.
fn found(line: &Line<'_>, at: usize, family: PatternFamily) -> Option<Found> {
    let (range, kind) = match family {
        PatternFamily::Token => token::find(line, at)?,
        PatternFamily::Assignment => assignment::find(line, at)?,
        PatternFamily::Url => url::find(line, at)?,
        PatternFamily::Path => path::find(line, at)?,
        PatternFamily::PrivateKey => match private_key::find(line, at)? {
            Beginning::Whole(range) => (range, Kind::PRIVATE_KEY),
            Beginning::Part(at) => {
                return Some(Found::Key(PrivateKeyStart {
                    at,
                    is_certain: true,
                }));
            }
            Beginning::Header(at) => {
                return Some(Found::Key(PrivateKeyStart {
                    at,
                    is_certain: false,
                }));
            }
        },
    };
    Some(Found::Value(range, kind))
}

impl Prefilter {
    /// The number of bytes at the end of `text` with which a literal may begin.
    fn begun(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let longest = 28.min(bytes.len());
        (1..=longest)
            .rev()
            .find(|length| {
                let end = &bytes[bytes.len() - length..];
                self.set
                    .literals()
                    .iter()
                    .any(|literal| literal.len() > *length && literal.as_bytes().starts_with(end))
            })
            .unwrap_or_default()
    }
}

/// The number of bytes at the end of an incomplete line with which a literal or a known value may begin.
pub(super) fn begun(secrets: &SecurityPatterns, text: &str) -> usize {
    PREFILTER.begun(text).max(secrets.known.load().begun(text))
}

/// The patterns that a scan uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Use {
    /// All patterns.
    All,
    /// All patterns except private keys: for the lines after a BEGIN that no key follows.
    NoKeys,
}

/// Searches a line for secrets from the byte `from` on. No secret begins before `from` and ends after it. Without
/// `complete`, more text of the line follows.
pub(super) fn scan(
    secrets: &SecurityPatterns,
    text: &str,
    from: usize,
    complete: bool,
    r#use: Use,
) -> Scanned {
    let mut scanned = literal_findings(secrets, text, from, complete, r#use);
    if complete {
        for (number, extra) in secrets.extras.iter().enumerate() {
            let kind = Kind::extra(number);
            scanned
                .findings
                .extend(extra.find(text).map(|range| Finding { range, kind }));
        }
    }
    if complete && visible_text::is_needed(text) {
        let view = VisibleLine::new(text);
        let shown = literal_findings(secrets, &view.text, 0, true, r#use);
        let mapped = |finding: Finding| Finding {
            range: view.range(finding.range),
            ..finding
        };
        scanned
            .findings
            .extend(shown.findings.into_iter().map(mapped));
        if let Some(key) = shown.key {
            let at = view.range(key.at..key.at + 1).start;
            if scanned.key.as_ref().is_none_or(|raw| at < raw.at) {
                scanned.key = Some(PrivateKeyStart { at, ..key });
            }
        }
        for (number, extra) in secrets.extras.iter().enumerate() {
            let kind = Kind::extra(number);
            let found = extra.find(&view.text).map(|range| Finding {
                range: view.range(range),
                kind,
            });
            scanned.findings.extend(found);
        }
    }
    tidy(&mut scanned, text, from);
    scanned
}

/// Sorts findings, merges those that overlap, and removes those that are already replaced.
fn tidy(scanned: &mut Scanned, text: &str, from: usize) {
    let findings = &mut scanned.findings;
    let end = scanned.key.as_ref().map_or(text.len(), |key| key.at);
    findings.retain_mut(|finding| {
        let range = &mut finding.range;
        range.start = text.floor_char_boundary(range.start.max(from));
        range.end = text.ceil_char_boundary(range.end.min(end));
        range.start < range.end && !is_marked(text, range)
    });
    findings.sort_by_key(|finding| (finding.range.start, finding.kind));
    findings.dedup_by(|next, last| {
        let overlaps = next.range.start < last.range.end
            && (next.kind == Kind::PATH) == (last.kind == Kind::PATH);
        if overlaps {
            last.range.end = last.range.end.max(next.range.end);
        }
        overlaps
    });
}

/// Whether the range is part of a mark that replaces a value.
fn is_marked(text: &str, range: &Range<usize>) -> bool {
    let value = &text[range.clone()];
    let before =
        &text[text.floor_char_boundary(range.start.saturating_sub(LOOK_BACK))..range.start];
    value.contains(MARK)
        || before
            .rfind(MARK)
            .is_some_and(|at| !before[at..].contains(']'))
}

fn literal_findings(
    secrets: &SecurityPatterns,
    text: &str,
    from: usize,
    complete: bool,
    r#use: Use,
) -> Scanned {
    let line = Line::new(text, complete);
    let mut scanned = Scanned {
        decided: text.len(),
        ..Scanned::default()
    };
    let mut candidates = Candidates::new(secrets, text);
    let mut at = from;
    let mut passed = 0..0;
    while let Some((start, family)) = candidates.literal(at) {
        if passed.contains(&start) {
            at = passed.end;
            continue;
        }
        line.reset();
        let left_out = family == PatternFamily::PrivateKey && r#use == Use::NoKeys;
        let found = match left_out {
            true => None,
            false => found(&line, start, family),
        };
        if line.is_open() {
            scanned.decided = start;
            break;
        }
        at = start + 1;
        match found {
            Some(Found::Key(key)) => {
                // The rest of the line may contain the end of the key.
                if !complete {
                    scanned.decided = key.at;
                }
                scanned.key = Some(key);
                break;
            }
            Some(Found::Value(range, kind)) => {
                // A value can follow a path of the same name, and the user before the password of a URL can be a
                // token.
                if family == PatternFamily::Url {
                    passed = range.clone();
                } else if kind != Kind::PATH {
                    at = at.max(range.end);
                }
                scanned.findings.push(Finding { range, kind });
            }
            None => {}
        }
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    let mut at = from;
    let known = secrets.known.load();
    while let Some(range) = known.find(text.as_bytes(), at) {
        at = range.end;
        scanned.findings.push(Finding {
            range,
            kind: Kind::KNOWN,
        });
    }
    if !complete {
        let begun = begun(secrets, text);
        scanned.decided = scanned.decided.min(text.len() - begun);
        scanned.decided = text.floor_char_boundary(scanned.decided.max(from));
        // A finding that crosses the decided end is found again with the next text.
        while let Some(cut) = scanned.findings.iter().find(|finding| {
            finding.range.start < scanned.decided && scanned.decided < finding.range.end
        }) {
            scanned.decided = cut.range.start;
        }
        scanned
            .findings
            .retain(|finding| finding.range.end <= scanned.decided);
    }
    scanned
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first literal at a position decides which pattern is tried.
    #[test]
    fn overlapping_literals_belong_to_one_pattern() {
        let all = || PREFILTER.families.iter().zip(PREFILTER.set.literals());
        for (family, literal) in all() {
            for (other, longer) in all() {
                assert!(
                    family == other || !longer.starts_with(*literal),
                    "{literal} {longer}"
                );
            }
        }
    }
}
