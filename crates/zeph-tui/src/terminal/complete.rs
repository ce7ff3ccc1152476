//! Completion of slash commands with their arguments, and of `@path`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::WalkBuilder;
use nucleo_matcher::Config;
use reedline::{Completer, CompletionResult, Span, Suggestion};
use zeph_core::COMMANDS;
use zeph_tools::Mode;

use super::fuzzy::ranked;

/// The maximum number of files of a project that are inspected.
const MAX_FILES: usize = 50_000;
/// The maximum time of the search for files.
const MAX_TIME: Duration = Duration::from_millis(500);
/// The time for which a list of files is used.
const FRESH: Duration = Duration::from_secs(5);
/// The size of an ignore file, in bytes, up to which its directory is listed.
const MAX_IGNORE_BYTES: u64 = 64 * 1024;
/// Suggestions.
const MAX_SUGGESTIONS: usize = 40;

/// The names that completion offers, with their descriptions.
#[derive(Debug, Clone, Default)]
pub struct CompletionLists {
    /// The commands that are not built in, with a slash.
    pub commands: Vec<(String, String)>,
    /// The ids of sessions, with their titles.
    pub sessions: Vec<(String, String)>,
    /// The tools.
    pub tools: Vec<(String, String)>,
    /// The MCP servers.
    pub servers: Vec<(String, String)>,
}

/// A port that provides the words for completion.
pub trait ModelWords: std::fmt::Debug + Send + Sync {
    /// Returns the names of providers and models. It may wait briefly for a server.
    fn names(&self) -> Vec<String>;

    /// The efforts that the provider or model of this name accepts.
    fn efforts(&self, name: &str) -> Vec<&'static str>;

    /// The other words.
    fn lists(&self) -> &CompletionLists;
}

/// Completes the text before the cursor.
pub(crate) struct Words {
    project: PathBuf,
    models: Arc<dyn ModelWords>,
    files: Vec<String>,
    listed: Option<Instant>,
}

impl Words {
    pub(crate) fn new(project: PathBuf, models: Arc<dyn ModelWords>) -> Self {
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

    /// The built-in commands, and the other ones.
    fn commands(&self) -> Vec<(String, String)> {
        let built_in = COMMANDS.iter();
        let built_in = built_in.map(|(name, _, help)| ((*name).to_owned(), (*help).to_owned()));
        built_in
            .chain(self.models.lists().commands.clone())
            .collect()
    }

    /// The arguments that can follow the words `before`, with descriptions.
    fn arguments(&self, before: &[&str]) -> Vec<(String, String)> {
        let plain = |names: Vec<String>| {
            names
                .into_iter()
                .map(|name| (name, String::new()))
                .collect()
        };
        let lists = self.models.lists();
        match before {
            ["/model"] => plain(self.models.names()),
            ["/model", name] => {
                let efforts = self.models.efforts(name).into_iter();
                plain(efforts.map(str::to_owned).collect())
            }
            ["/mode"] => plain(Mode::ALL.map(|mode| mode.as_str().to_owned()).to_vec()),
            ["/resume"] => lists.sessions.clone(),
            ["/tools", "unblock"] => lists.tools.clone(),
            ["/mcp", "approve"] => lists.servers.clone(),
            ["/mcp", "approve", _] => plain(vec!["yes".to_owned()]),
            ["/permissions"] => plain(vec!["rm".to_owned()]),
            [command] => {
                let nested = COMMANDS.iter().filter_map(|(name, _, help)| {
                    let nested = name.strip_prefix(command)?.strip_prefix(' ')?;
                    Some((nested.to_owned(), (*help).to_owned()))
                });
                nested.collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let span = |start| Span { start, end: pos };
        let mut suggestions: Vec<Suggestion> = match word(line, pos) {
            Some(Word::Command { start, typed }) => matching(self.commands(), typed)
                .into_iter()
                .map(|word| suggestion(word, span(start)))
                .collect(),
            Some(Word::Argument {
                start,
                typed,
                before,
            }) => matching(self.arguments(&before), typed)
                .into_iter()
                .map(|word| suggestion(word, span(start)))
                .collect(),
            Some(Word::File { start, typed }) => {
                let paths = self.files().iter().map(String::as_str);
                let found = ranked(paths, typed, Config::DEFAULT.match_paths());
                found
                    .into_iter()
                    .take(MAX_SUGGESTIONS)
                    .map(|path| mention(path, span(start)))
                    .collect()
            }
            None => Vec::new(),
        };
        suggestions.truncate(MAX_SUGGESTIONS);
        CompletionResult::fresh(suggestions)
    }
}

/// The words that start with the typed text. If there are none, those that match it fuzzily.
fn matching(words: Vec<(String, String)>, typed: &str) -> Vec<(String, String)> {
    let (starting, others): (Vec<_>, Vec<_>) = words
        .into_iter()
        .partition(|(name, _)| name.starts_with(typed));
    if !starting.is_empty() {
        return starting;
    }
    let others: Vec<Named> = others.into_iter().map(Named).collect();
    let found = ranked(others, typed, Config::DEFAULT);
    found.into_iter().map(|Named(word)| word).collect()
}

/// A word that is matched by its name.
struct Named((String, String));

impl AsRef<str> for Named {
    fn as_ref(&self) -> &str {
        &self.0.0
    }
}

fn suggestion((value, description): (String, String), span: Span) -> Suggestion {
    Suggestion {
        value,
        description: (!description.is_empty()).then_some(description),
        span,
        append_whitespace: true,
        ..Suggestion::default()
    }
}

/// The mention of a path. A path with a space needs quotes. After a directory, its content can be completed.
fn mention(path: &str, span: Span) -> Suggestion {
    let is_directory = path.ends_with('/');
    let value = match path.contains(char::is_whitespace) {
        true if is_directory => format!("@\"{path}"),
        true => format!("@\"{path}\""),
        false => format!("@{path}"),
    };
    Suggestion {
        value,
        span,
        append_whitespace: !is_directory,
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
    /// An argument of a command, and the words before it.
    Argument {
        start: usize,
        typed: &'a str,
        before: Vec<&'a str>,
    },
}

fn word(line: &str, pos: usize) -> Option<Word<'_>> {
    let before = line.get(..pos)?;
    if let Some((start, typed)) = open_quote(before) {
        return Some(Word::File { start, typed });
    }
    let start = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    });
    let typed = &before[start..];
    if let Some(path) = typed.strip_prefix('@') {
        return Some(Word::File { start, typed: path });
    }
    let words: Vec<&str> = before[..start].split_whitespace().collect();
    match words.first() {
        None => typed
            .starts_with('/')
            .then_some(Word::Command { start, typed }),
        Some(first) => first.starts_with('/').then_some(Word::Argument {
            start,
            typed,
            before: words,
        }),
    }
}

/// The start and the path of a mention with a quote that is not closed: `@"my f`.
pub(crate) fn open_quote(before: &str) -> Option<(usize, &str)> {
    let start = before.rfind("@\"")?;
    let path = &before[start + 2..];
    let is_start = before[..start]
        .chars()
        .next_back()
        .is_none_or(char::is_whitespace);
    (is_start && !path.contains(['"', '\n'])).then_some((start, path))
}

/// The project's files and directories as relative paths, without ignored ones. A directory ends with `/`. Names that cannot be typed (control characters, no
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
        .filter_map(|entry| {
            let kind = entry.file_type()?;
            let path = entry.path().strip_prefix(project).ok()?.to_str()?;
            let can_be_typed =
                !path.is_empty() && !path.chars().any(|c| c.is_control() || c == '"');
            let end = if kind.is_dir() { "/" } else { "" };
            let is_listed = can_be_typed && (kind.is_dir() || kind.is_file());
            is_listed.then(|| format!("{path}{end}"))
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
    fn word_before_the_cursor_is_found() {
        let check = |line: &str, expect| assert_eq!(word(line, line.len()), expect, "{line:?}");
        let command = |start, typed| Some(Word::Command { start, typed });
        let file = |start, typed| Some(Word::File { start, typed });
        check("/he", command(0, "/he"));
        check("  /", command(2, "/"));
        check("look at /etc", None);
        check("look at @src/l", file(8, "src/l"));
        check("@", file(0, ""));
        check("a\u{3000}@x", file(4, "x"));
        check("see @\"my f", file(4, "my f"));
        check("see @\"my f\" ", None);
        check("/review @x", file(8, "x"));
        for (line, start, typed, before) in [
            ("/model te", 7, "te", vec!["/model"]),
            ("/model local ", 13, "", vec!["/model", "local"]),
            ("/tools unblock r", 15, "r", vec!["/tools", "unblock"]),
        ] {
            check(
                line,
                Some(Word::Argument {
                    start,
                    typed,
                    before,
                }),
            );
        }
        check("mail@host", None);
        check("", None);
        assert_eq!(word("é", 1), None);
        assert_eq!(word("é", 99), None);
    }

    #[derive(Debug)]
    struct Names(CompletionLists);

    impl ModelWords for Names {
        fn names(&self) -> Vec<String> {
            ["local", "qwen3:8b", "qwen3-coder"]
                .map(str::to_owned)
                .to_vec()
        }

        fn efforts(&self, _: &str) -> Vec<&'static str> {
            vec!["low", "high"]
        }

        fn lists(&self) -> &CompletionLists {
            &self.0
        }
    }

    /// Proves CLI-4, CLI-10, LLM-13 for completion: commands, their arguments, and paths except ignored ones.
    #[test]
    fn commands_arguments_and_paths_are_completed() {
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
            "my notes/b c.txt",
            "target/lib.rs",
            "x\ny",
        ] {
            write(name);
        }
        std::fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        let list = |name: &str| vec![(name.to_owned(), "described".to_owned())];
        let lists = CompletionLists {
            commands: list("/git:commit"),
            sessions: list("0198ab"),
            tools: list("read"),
            servers: list("forge"),
        };
        let mut words = Words::new(dir.path().to_owned(), Arc::new(Names(lists)));
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
        check("/git", &["/git:commit"]);
        check("/xyz", &[]);
        check("/tools u", &["unblock"]);
        check("/tools unblock ", &["read"]);
        check("/undo ", &["forget"]);
        check("/mode au", &["auto-edit", "auto"]);
        check("/resume ", &["0198ab"]);
        check("/mcp approve f", &["forge"]);
        check("/mcp approve forge ", &["yes"]);
        check("see @lib.rs", &["@src/lib.rs"]);
        check("see @srcls", &["@src/list.rs", "@src/lib.rs"]);
        check("see @src/l", &["@src/lib.rs", "@src/list.rs"]);
        check("see @my", &["@\"my notes/", "@\"my notes/b c.txt\""]);
        check("see @\"my notes/b", &["@\"my notes/b c.txt\""]);
        check("see @nothing", &[]);
        check("/model ", &["local", "qwen3:8b", "qwen3-coder"]);
        check("/model coder", &["qwen3-coder"]);
        check("/model local h", &["high"]);
        check("plain", &[]);
    }
}
