//! Completion of slash commands and of `@file`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::WalkBuilder;
use reedline::{Completer, CompletionResult, Span, Suggestion};
use zeph_core::COMMANDS;

/// The maximum number of files of a project that are inspected.
const MAX_FILES: usize = 50_000;
/// How long looking for files may take.
const MAX_TIME: Duration = Duration::from_millis(500);
/// How long a list of files is good.
const FRESH: Duration = Duration::from_secs(5);
/// The size of an ignore file, in bytes, up to which its directory is listed.
const MAX_IGNORE_BYTES: u64 = 64 * 1024;
/// Suggestions.
const MAX_SUGGESTIONS: usize = 40;

/// The words that can follow `/model`.
pub(crate) trait ModelWords: std::fmt::Debug + Send + Sync {
    /// The names of providers and models. It may wait shortly for a server.
    fn names(&self) -> Vec<String>;

    /// The efforts that the provider or model of this name accepts.
    fn efforts(&self, name: &str) -> Vec<&'static str>;
}

/// Completes the text before the cursor.
pub(super) struct Words {
    project: PathBuf,
    models: Arc<dyn ModelWords>,
    files: Vec<String>,
    listed: Option<Instant>,
}

impl Words {
    pub(super) fn new(project: PathBuf, models: Arc<dyn ModelWords>) -> Self {
        Self {
            project,
            models,
            files: Vec::new(),
            listed: None,
        }
    }

    fn files(&mut self) -> &[String] {
        if self.listed.is_none_or(|at| at.elapsed() > FRESH) {
            self.files = list(&self.project);
            self.listed = Some(Instant::now());
        }
        &self.files
    }
}

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let suggestions: Vec<Suggestion> = match word(line, pos) {
            Some(Word::Command { start, typed }) => COMMANDS
                .iter()
                .filter(|(name, ..)| name.starts_with(typed))
                .map(|(name, _, words)| Suggestion {
                    value: (*name).to_owned(),
                    description: Some((*words).to_owned()),
                    span: Span { start, end: pos },
                    append_whitespace: true,
                    ..Suggestion::default()
                })
                .collect(),
            Some(Word::File { start, typed }) => matching(self.files(), typed)
                .into_iter()
                .map(|path| Suggestion {
                    value: format!("@{path}"),
                    span: Span { start, end: pos },
                    append_whitespace: true,
                    ..Suggestion::default()
                })
                .collect(),
            Some(Word::Model { start, typed }) => {
                let names = self.models.names();
                let found = matching(&names, typed).into_iter();
                found.map(|name| suggestion(name, start, pos)).collect()
            }
            Some(Word::Effort { start, typed, name }) => {
                let efforts = self.models.efforts(name).into_iter();
                let found = efforts.filter(|effort| effort.starts_with(typed));
                found.map(|effort| suggestion(effort, start, pos)).collect()
            }
            None => Vec::new(),
        };
        CompletionResult::fresh(suggestions)
    }
}

fn suggestion(value: &str, start: usize, end: usize) -> Suggestion {
    Suggestion {
        value: value.to_owned(),
        span: Span { start, end },
        append_whitespace: true,
        ..Suggestion::default()
    }
}

/// The word before the cursor that can be completed.
#[derive(Debug, PartialEq, Eq)]
enum Word<'a> {
    Command {
        start: usize,
        typed: &'a str,
    },
    File {
        start: usize,
        typed: &'a str,
    },
    Model {
        start: usize,
        typed: &'a str,
    },
    Effort {
        start: usize,
        typed: &'a str,
        name: &'a str,
    },
}

fn word(line: &str, pos: usize) -> Option<Word<'_>> {
    let before = line.get(..pos)?;
    let start = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    });
    let typed = &before[start..];
    if let Some(path) = typed.strip_prefix('@') {
        return Some(Word::File { start, typed: path });
    }
    match before[..start].split_whitespace().collect::<Vec<_>>()[..] {
        ["/model"] => return Some(Word::Model { start, typed }),
        ["/model", name] => return Some(Word::Effort { start, typed, name }),
        _ => {}
    }
    (typed.starts_with('/') && before[..start].trim().is_empty())
        .then_some(Word::Command { start, typed })
}

/// The matching files: first paths with the typed prefix, then file names with it, then paths that contain it;
/// case-insensitive.
fn matching<'a>(files: &'a [String], typed: &str) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let mut found: Vec<(u8, &str)> = files
        .iter()
        .filter_map(|path| {
            let lower = path.to_lowercase();
            let name = lower.rsplit('/').next().unwrap_or(&lower);
            let rank = if lower.starts_with(&typed) {
                0
            } else if name.starts_with(&typed) {
                1
            } else if lower.contains(&typed) {
                2
            } else {
                return None;
            };
            Some((rank, path.as_str()))
        })
        .collect();
    found.sort_by_key(|(rank, path)| (*rank, path.len(), *path));
    found.truncate(MAX_SUGGESTIONS);
    found.into_iter().map(|(_, path)| path).collect()
}

/// The project's files as relative paths, without ignored files. Names that cannot be typed (control characters, no
/// UTF-8) are skipped.
///
/// A directory with a huge ignore file is skipped: its compiled rules take hundreds of times its size.
fn list(project: &Path) -> Vec<String> {
    let end = Instant::now() + MAX_TIME;
    let is_listed = |directory: &Path| !has_huge_ignore_file(directory);
    if !project.ancestors().all(is_listed) {
        return Vec::new();
    }
    WalkBuilder::new(project)
        .follow_links(false)
        .require_git(false)
        .filter_entry(move |entry| is_listed(entry.path()))
        .build()
        .take_while(|_| Instant::now() < end)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(project).ok()?.to_str()?;
            (!path.chars().any(char::is_control)).then(|| path.to_owned())
        })
        .take(MAX_FILES)
        .collect()
}

/// Whether one of the ignore files of a directory is too large to compile for a completion.
fn has_huge_ignore_file(directory: &Path) -> bool {
    [".gitignore", ".ignore", ".git/info/exclude"]
        .iter()
        .filter_map(|name| std::fs::metadata(directory.join(name)).ok())
        .any(|found| !found.is_file() && !found.is_dir() || found.len() > MAX_IGNORE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        let check = |line: &str, expect| assert_eq!(word(line, line.len()), expect, "{line:?}");
        check(
            "/he",
            Some(Word::Command {
                start: 0,
                typed: "/he",
            }),
        );
        check(
            "  /",
            Some(Word::Command {
                start: 2,
                typed: "/",
            }),
        );
        check("look at /etc", None);
        check(
            "look at @src/l",
            Some(Word::File {
                start: 8,
                typed: "src/l",
            }),
        );
        check(
            "@",
            Some(Word::File {
                start: 0,
                typed: "",
            }),
        );
        check(
            "a\u{3000}@x",
            Some(Word::File {
                start: 4,
                typed: "x",
            }),
        );
        check(
            "/model te",
            Some(Word::Model {
                start: 7,
                typed: "te",
            }),
        );
        check(
            "/model local ",
            Some(Word::Effort {
                start: 13,
                typed: "",
                name: "local",
            }),
        );
        check("/model a b c", None);
        check("mail@host", None);
        check("", None);
        assert_eq!(word("é", 1), None);
        assert_eq!(word("é", 99), None);
    }

    #[derive(Debug)]
    struct Names;

    impl ModelWords for Names {
        fn names(&self) -> Vec<String> {
            ["local", "qwen3:8b", "qwen3-coder"]
                .map(str::to_owned)
                .to_vec()
        }

        fn efforts(&self, _: &str) -> Vec<&'static str> {
            vec!["low", "high"]
        }
    }

    /// Proves CLI-4, LLM-13 for completion: commands, models, and files except ignored ones.
    #[test]
    fn commands_and_files_are_completed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        for name in [
            "src/lib.rs",
            "src/list.rs",
            "a/Library.md",
            "target/lib.rs",
            "x\ny",
        ] {
            write(name);
        }
        std::fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        let mut words = Words::new(dir.path().to_owned(), Arc::new(Names));
        let mut check = |line: &str, expect: &[&str]| {
            let result = words.complete(line, line.len());
            let values: Vec<_> = result
                .suggestions()
                .iter()
                .map(|s| s.value.as_str())
                .collect();
            assert_eq!(values, expect, "{line:?}");
        };
        check("/to", &["/tools", "/tools unblock"]);
        check("see @lib", &["@src/lib.rs", "@a/Library.md"]);
        check("see @src/", &["@src/lib.rs", "@src/list.rs"]);
        check("see @nothing", &[]);
        check("/model ", &["local", "qwen3:8b", "qwen3-coder"]);
        check("/model coder", &["qwen3-coder"]);
        check("/model local h", &["high"]);
        check("plain", &[]);
    }
}
