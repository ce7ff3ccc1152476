//! The `git_status` strategy: branch, staged, unstaged, conflicts, and untracked files.
//!
//! Every changed file is shown. Hints on commands are omitted. Many untracked or ignored files are grouped by
//! folder. Signs distinguish the forms, because the text is in the user's language.

use std::sync::Arc;

use memchr::memchr;
use serde::Deserialize;

use super::group_paths::{Budget, Places};
use super::line_buffer::HeldLines;
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, Sink};

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The maximum number of untracked files that are shown by name.
    #[serde(default = "twenty")]
    max_untracked: usize,
    /// Lines for the folders of more untracked files.
    #[serde(default = "twenty")]
    max_folders: usize,
}

fn twenty() -> usize {
    20
}

/// The maximum for the parameters. It limits the number of buffered lines.
const MAX_ENTRIES: usize = 10_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params.max_untracked.max(params.max_folders) > MAX_ENTRIES {
        return Err(format!(
            "`max_untracked` and `max_folders` may be {MAX_ENTRIES} at most"
        ));
    }
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(GitStatus {
            params: *self,
            few: HeldLines::default(),
            kind: Kind::None,
            many: None,
            last: 0,
            understood: false,
            dropped: false,
            diff: false,
        })
    }
}

/// The list that contains the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    /// Indented with a tab, in a section of the long form.
    Long,
    /// After the sign of a short form: `?? name`, `! name` and similar lines.
    Short(&'static str),
}

struct GitStatus {
    params: Params,
    /// Untracked files, while they are few.
    few: HeldLines,
    kind: Kind,
    /// Untracked files, if they are many.
    many: Option<Places>,
    last: u64,
    /// True if a line has a form that git prints.
    understood: bool,
    dropped: bool,
    /// True after the start of a diff: `git status -v`.
    diff: bool,
}

/// The kind of a line.
enum StatusLine<'t> {
    /// An untracked or ignored file, by its sign.
    Unknown(Kind, &'t str),
    /// A hint: `  (use "git add" …)`.
    Hint,
    Blank,
    /// Other lines: headings, changed files, the branch.
    Stays,
}

fn said<'t>(text: &'t str) -> StatusLine<'t> {
    if let Some(name) = text.strip_prefix('\t') {
        return if labelled(name) {
            StatusLine::Stays
        } else {
            StatusLine::Unknown(Kind::Long, name)
        };
    }
    match text.as_bytes() {
        [b'?' | b'!', ..] => {
            let behind = |sign| Some((sign, text.strip_prefix(sign)?));
            let signs = ["?? ", "? ", "!! ", "! "];
            match signs.into_iter().find_map(behind) {
                Some((sign, name)) => StatusLine::Unknown(Kind::Short(sign), name),
                None => StatusLine::Stays,
            }
        }
        [b'!'..=b'~', ..] => StatusLine::Stays,
        _ if text.trim_ascii().is_empty() => StatusLine::Blank,
        [b' ', b' ', b'(', .., b')'] => StatusLine::Hint,
        _ => StatusLine::Stays,
    }
}

/// Returns true for an entry with a label: `modified:   src/a.rs`, `修改：     src/a.rs`.
fn labelled(entry: &str) -> bool {
    let (at, colon) = match memchr(b':', entry.as_bytes()) {
        Some(at) => (at, 1),
        None if entry.is_ascii() => return false,
        None => match entry.find('：') {
            Some(at) => (at, '：'.len_utf8()),
            None => return false,
        },
    };
    !entry[..at].contains(['/', '.', '"'])
        && entry[at + colon..].starts_with([' ', '\u{a0}', '\u{3000}'])
}

impl GitStatus {
    fn unknown(&mut self, kind: Kind, name: &str, line: Line<'_>, out: &mut dyn Sink) {
        if kind != self.kind {
            self.end_list(out);
            self.kind = kind;
        }
        self.last = line.number;
        if let Some(many) = &mut self.many {
            many.add(unquoted(name));
            return;
        }
        self.few.push(line);
        if self.few.len() > self.params.max_untracked {
            let mut many = Places::default();
            for held in self.few.iter() {
                if let StatusLine::Unknown(_, name) = said(held.text) {
                    many.add(unquoted(name));
                }
            }
            self.few.clear();
            self.many = Some(many);
        }
    }

    /// Ends the list, and prints its lines or its folders.
    fn end_list(&mut self, out: &mut dyn Sink) {
        self.few.iter().for_each(|line| out.keep(line));
        self.few.clear();
        let Some(many) = self.many.take() else {
            return;
        };
        self.dropped = true;
        let sign = match self.kind {
            Kind::Short(sign) => sign,
            Kind::None | Kind::Long => "\t",
        };
        let budget = Budget {
            folders: self.params.max_folders,
            names: self.params.max_untracked * 2,
        };
        for line in many.lines(budget) {
            out.say(self.last, &format!("{sign}{line}"));
        }
    }
}

/// Removes the quotes that git adds to names with special characters.
fn unquoted(name: &str) -> &str {
    let inner = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    inner.unwrap_or(name)
}

impl Strategy for GitStatus {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.diff |= line.text.starts_with("diff --");
        if self.diff {
            self.end_list(out);
            out.keep(line);
            return;
        }
        match said(line.text) {
            StatusLine::Unknown(kind, name) => {
                self.understood = true;
                self.unknown(kind, name, line, out);
            }
            StatusLine::Hint => {
                self.understood = true;
                self.dropped = true;
            }
            StatusLine::Blank => self.end_list(out),
            StatusLine::Stays => {
                self.end_list(out);
                self.kind = Kind::None;
                self.understood |= line.text.starts_with(['\t', '#']);
                out.keep(line);
            }
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.end_list(out);
        if self.understood && self.dropped {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::testing::collected;

    fn check(text: &str, expect: &str) {
        let (told, confidence) =
            collected(make, "max_untracked = 3\nmax_folders = 3", text, Some(0));
        assert_eq!(told, expect);
        assert_eq!(confidence == FilterConfidence::Full, told != text, "{text}");
    }

    /// Proves OUT-4.
    #[test]
    fn hints_are_removed_and_files_are_retained() {
        check(
            "On branch main\nYour branch is ahead of 'origin/main' by 2 commits.\n  (use \"git push\" to publish your local commits)\n\nChanges to be committed:\n  (use \"git restore --staged <file>...\" to unstage)\n\trenamed:    a.rs -> b.rs\n\nUnmerged paths:\n  (use \"git add <file>...\" to mark resolution)\n\tboth modified:   src/cart.rs\n\nUntracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n\tnew file.rs\n\nno changes added to commit (use \"git add\" and/or \"git commit -a\")\n",
            "On branch main\nYour branch is ahead of 'origin/main' by 2 commits.\nChanges to be committed:\n\trenamed:    a.rs -> b.rs\nUnmerged paths:\n\tboth modified:   src/cart.rs\nUntracked files:\n\tnew file.rs\nno changes added to commit (use \"git add\" and/or \"git commit -a\")\n",
        );
        check(
            "Auf Branch main\nZum Commit vorgemerkte Änderungen:\n  (benutzen Sie …)\n\tneue Datei:     a.rs\n",
            "Auf Branch main\nZum Commit vorgemerkte Änderungen:\n\tneue Datei:     a.rs\n",
        );
    }

    /// Proves OUT-4, OUT-7.
    #[test]
    fn many_untracked_files_are_grouped_by_folder() {
        let untracked = |sign: &str| {
            (0..9)
                .map(|n| format!("{sign}dist/{n}.js\n"))
                .collect::<String>()
        };
        check(
            &format!(
                "## main\n M src/a.rs\nUU src/b.rs\n{}?? z\n",
                untracked("?? ")
            ),
            "## main\n M src/a.rs\nUU src/b.rs\n?? z\n?? dist/ (9): 0.js 1.js 2.js 3.js 4.js … +4 more, last 8.js; of all: 9 .js\n",
        );
        check(
            &format!(
                "1 .M N... 100644 100644 100644 a a src/a.rs\n{}",
                untracked("? ")
            ),
            "1 .M N... 100644 100644 100644 a a src/a.rs\n? dist/ (9): 0.js 1.js 2.js 3.js 4.js 5.js … +3 more, last 8.js; of all: 9 .js\n",
        );
        check(
            &format!(
                "Untracked files:\n{}\nIgnored files:\n\tx.log\n",
                untracked("\t")
            ),
            "Untracked files:\n\tdist/ (9): 0.js 1.js 2.js 3.js 4.js 5.js … +3 more, last 8.js; of all: 9 .js\nIgnored files:\n\tx.log\n",
        );
    }

    #[test]
    fn foreign_text_stays() {
        check(
            "fatal: not a git repository\n",
            "fatal: not a git repository\n",
        );
        check(
            "nothing to commit, working tree clean\n",
            "nothing to commit, working tree clean\n",
        );
    }

    proptest::proptest! {
        /// Proves OUT-7: no changed file's name is lost.
        #[test]
        fn changed_files_stay(lines in proptest::collection::vec("\tmodified:   [a-c/]{1,5}|\tboth added:      [a-c]{1,4}|[ MADRU]{2} [a-c/]{1,5}|\\?\\? [a-c/]{1,5}|\t[a-c/]{1,5}|  \\(hint\\)|", 0..60)) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let (told, _) = collected(make, "max_untracked = 3", &text, Some(0));
            for line in &lines {
                let unknown = line.starts_with("??") || line.starts_with("  (") || line.is_empty() || (line.starts_with('\t') && !line.contains(':'));
                if !unknown && !line.trim().is_empty() {
                    proptest::prop_assert!(told.lines().any(|kept| kept == line), "{line} of {told}");
                }
            }
        }
    }
}
