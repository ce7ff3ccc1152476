//! The `git_log` strategy: a line per commit of a long history.
//!
//! A plain log becomes lines `hash date author: subject`. Other forms (one line per commit, a graph) are
//! truncated. A log with statistics or changes is unchanged, because the user requested them.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;

use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};

/// Shown digits of a hash. Git itself shows 7 in small repositories and 12 in very large ones.
const HASH: usize = 10;
/// Commits, or lines of another form, that are retained at the end of a truncated list.
const TAIL: usize = 5;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The maximum lines of a log that is unchanged.
    #[serde(default = "sixty")]
    max_lines: usize,
    /// Commits that are listed of a longer log.
    #[serde(default = "hundred")]
    max_commits: usize,
}

fn sixty() -> usize {
    60
}

fn hundred() -> usize {
    100
}

/// The maximum for the parameters. It limits the number of buffered lines.
const MAX_COMMITS: usize = 100_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params.max_lines.max(params.max_commits) > MAX_COMMITS || params.max_commits <= TAIL {
        return Err(format!(
            "`max_lines` may be up to {MAX_COMMITS}, `max_commits` {} to {MAX_COMMITS}",
            TAIL + 1
        ));
    }
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(GitLog {
            params: *self,
            form: Form::Unknown,
            early: Vec::new(),
            commit: None,
            listed: 0,
            tail: VecDeque::new(),
        })
    }
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The log may be short.
    Unknown,
    /// Headers and messages.
    Plain,
    /// Each line is a commit, or a part of a graph.
    Lines,
    /// A log with statistics or changes.
    Full,
}

struct GitLog {
    params: Params,
    form: Form,
    early: Vec<OwnedLine>,
    commit: Option<Commit>,
    /// The number of commits or lines so far.
    listed: usize,
    /// The last commits or lines, after the list is almost full.
    tail: VecDeque<OwnedLine>,
}

/// The parsed fields of a commit.
#[derive(Debug, Default)]
struct Commit {
    number: u64,
    hash: String,
    /// The refs, such as `(HEAD -> main, tag: v1)`.
    refs: String,
    author: String,
    date: String,
    subject: String,
    /// True after the headers.
    message: bool,
}

/// Parses `commit 8fd6…` with its refs.
fn commit_line(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("commit ")?;
    let (hash, refs) = rest.split_once(' ').unwrap_or((rest, ""));
    let fits = (7..=64).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (fits && (refs.is_empty() || refs.starts_with('('))).then_some((hash, refs))
}

/// Parses a header: `Author:     Ada <ada@example.org>`.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let fits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    fits.then(|| (name, value.trim_start()))
}

impl Commit {
    /// Processes the next line. Returns `false` if it is not a line of a plain log.
    fn line(&mut self, line: &str) -> bool {
        if line.is_empty() {
            self.message = true;
            return true;
        }
        if let Some(text) = line.strip_prefix("    ") {
            if self.subject.is_empty() {
                text.trim().clone_into(&mut self.subject);
            }
            return self.message;
        }
        if self.message {
            return false;
        }
        match header(line) {
            Some(("Author", author)) => {
                let name = author.split(" <").next().unwrap_or(author);
                name.clone_into(&mut self.author);
            }
            Some(("Date" | "AuthorDate", date)) => self.date = day(date),
            Some(_) => {}
            None => return false,
        }
        true
    }

    fn told(&self) -> OwnedLine {
        let hash = self.hash.get(..HASH).unwrap_or(&self.hash);
        let mut text = hash.to_owned();
        for part in [&self.date, &self.author] {
            if !part.is_empty() {
                text.push(' ');
                text.push_str(part);
            }
        }
        text.push(':');
        for part in [&self.subject, &self.refs] {
            if !part.is_empty() {
                text.push(' ');
                text.push_str(part);
            }
        }
        OwnedLine {
            number: self.number,
            text,
        }
    }
}

/// Formats the day of git's default form, `Sun Nov 22 05:03:27 2026 +0000`. Other forms are unchanged.
fn day(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let words: Vec<&str> = date.split_whitespace().collect();
    let found = || {
        let [_, month, day, _, year, _] = words.as_slice() else {
            return None;
        };
        let month = MONTHS.iter().position(|name| name == month)? + 1;
        let day: u8 = day.parse().ok()?;
        let year: u16 = year.parse().ok()?;
        Some(format!("{year}-{month:02}-{day:02}"))
    };
    found().unwrap_or_else(|| date.to_owned())
}

impl GitLog {
    /// Selects the form of a long log by its first lines.
    fn grow(&mut self, out: &mut dyn Sink) {
        let early = std::mem::take(&mut self.early);
        self.form = form(&early);
        for held in early {
            self.long(held.line(), out);
        }
    }

    fn long(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        match self.form {
            Form::Plain => self.plain(line, out),
            Form::Lines => {
                if !line.text.is_empty() {
                    self.list(line.into(), true, out);
                }
            }
            Form::Unknown | Form::Full => out.keep(line),
        }
    }

    fn plain(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if let Some((hash, refs)) = commit_line(line.text) {
            self.end_commit(out);
            self.commit = Some(Commit {
                number: line.number,
                hash: hash.to_owned(),
                refs: refs.to_owned(),
                ..Commit::default()
            });
        } else if !self
            .commit
            .as_mut()
            .is_some_and(|commit| commit.line(line.text))
        {
            // A line of another form: an error, or text of another command.
            self.end_commit(out);
            if !line.text.is_empty() {
                out.keep(line);
            }
        }
    }

    fn end_commit(&mut self, out: &mut dyn Sink) {
        if let Some(commit) = self.commit.take() {
            self.list(commit.told(), false, out);
        }
    }

    /// Prints a line if there is room for it, else buffers it as one of the last.
    fn list(&mut self, line: OwnedLine, raw: bool, out: &mut dyn Sink) {
        self.listed += 1;
        if self.listed <= self.params.max_commits - TAIL {
            tell(&line, raw, out);
            return;
        }
        self.tail.push_back(line);
        if self.listed > self.params.max_commits {
            let surplus = self.tail.len() - TAIL;
            self.tail.drain(..surplus);
        }
    }
}

fn tell(line: &OwnedLine, raw: bool, out: &mut dyn Sink) {
    if raw {
        out.keep(line.line());
    } else {
        out.say(line.number, &line.text);
    }
}

fn form(lines: &[OwnedLine]) -> Form {
    let first = lines.iter().find(|held| !held.text.is_empty());
    if first.is_none_or(|held| commit_line(&held.text).is_none()) {
        let with_changes = lines.iter().any(|held| {
            let text = held.text.trim_start_matches(['|', '*', ' ', '/', '\\']);
            text.starts_with("diff --")
                || (text.starts_with("commit ") && commit_line(text).is_some())
        });
        return if with_changes {
            Form::Full
        } else {
            Form::Lines
        };
    }
    let mut commit = Commit::default();
    for held in lines {
        if commit_line(&held.text).is_some() {
            commit = Commit::default();
        } else if !commit.line(&held.text) {
            return Form::Full;
        }
    }
    Form::Plain
}

impl Strategy for GitLog {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if self.form != Form::Unknown {
            self.long(line, out);
            return;
        }
        self.early.push(line.into());
        if self.early.len() > self.params.max_lines {
            self.grow(out);
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        for held in std::mem::take(&mut self.early) {
            out.keep(held.line());
        }
        self.end_commit(out);
        let cut = self.listed > self.params.max_commits;
        if cut && let Some(first) = self.tail.front() {
            let count = self.listed - self.params.max_commits;
            let what = if self.form == Form::Plain {
                "commits"
            } else {
                "lines"
            };
            out.say(first.number, &format!("[… {count} more {what}]"));
        }
        for line in &self.tail {
            tell(line, self.form == Form::Lines, out);
        }
        match self.form {
            Form::Plain => FilterConfidence::Full,
            Form::Lines if cut => FilterConfidence::Partial,
            Form::Unknown | Form::Lines | Form::Full => FilterConfidence::Fallback,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::testing::collected;

    fn told(text: &str) -> (String, FilterConfidence) {
        collected(make, "max_lines = 12\nmax_commits = 8", text, Some(0))
    }

    fn commits(count: usize) -> String {
        (0..count)
            .map(|number| format!("commit {number:040x}\nAuthor: Jürgen Weiß <jw@example.org>\nDate:   Sun Nov 2 05:03:27 2026 +0000\n\n    Step {number}\n    \n    Why: it was due.\n\n"))
            .collect()
    }

    #[test]
    fn short_logs_stay() {
        let text = commits(1);
        assert_eq!(told(&text), (text, FilterConfidence::Fallback));
    }

    /// Proves OUT-6.
    #[test]
    fn commit_becomes_one_line() {
        let text = commits(3).replacen('\n', " (HEAD -> main)\n", 1);
        assert_eq!(
            told(&text),
            (
                "0000000000 2026-11-02 Jürgen Weiß: Step 0 (HEAD -> main)\n0000000000 2026-11-02 Jürgen Weiß: Step 1\n0000000000 2026-11-02 Jürgen Weiß: Step 2\n".to_owned(),
                FilterConfidence::Full
            )
        );
    }

    #[test]
    fn omitted_commits_are_counted() {
        let (text, _) = told(&commits(20));
        assert_eq!(text.lines().count(), 9, "{text}");
        assert!(
            text.contains(
                "Step 2\n[… 12 more commits]\n0000000000 2026-11-02 Jürgen Weiß: Step 15\n"
            ),
            "{text}"
        );
        assert!(text.ends_with("Step 19\n"), "{text}");
    }

    #[test]
    fn lines_are_cut() {
        let text: String = (0..30)
            .map(|number| format!("* {number:07x} Step {number}\n"))
            .collect();
        let (text, confidence) = told(&text);
        assert!(
            text.contains("Step 2\n[… 22 more lines]\n* 0000019 Step 25\n"),
            "{text}"
        );
        assert_eq!(confidence, FilterConfidence::Partial);
    }

    #[test]
    fn changes_stay() {
        for more in [" a.rs | 2 +-\n\n", "diff --git a/a b/a\n"] {
            let text = commits(1) + more + &commits(2);
            assert_eq!(told(&text), (text, FilterConfidence::Fallback));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_accepted(lines in proptest::collection::vec("commit [0-9a-f]{7,41}( \\(x\\))?|(Author|Date|Merge): .*|    .*|.*|", 0..60)) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let (told, _) = told(&text);
            proptest::prop_assert!(told.len() <= text.len() + 40);
        }
    }
}
