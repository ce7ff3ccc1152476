//! The display of a call, from its tool and its arguments: title, locations, kind of result. One row per tool.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Characters of a title.
const MAX_TITLE_CHARS: usize = 200;

/// The kind of a result for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultKind {
    /// Output that is shown.
    #[default]
    Output,
    /// Text that exists elsewhere. A long result is only counted.
    Listing,
    /// The task list, which is a block of its own.
    TaskList,
}

/// The id of a tool, its title, and the kind of its results. A title is a verb and the argument that follows it; without
/// one, it is the id. The verb of a command is empty.
type Row = (
    &'static str,
    Option<(&'static str, &'static str)>,
    ResultKind,
);

/// The tools with an own display.
const TOOLS: &[Row] = &[
    ("add_task", None, ResultKind::TaskList),
    ("bash", Some(("", "command")), ResultKind::Output),
    ("copy_path", Some(("Copy", "source")), ResultKind::Output),
    (
        "create_directory",
        Some(("Create", "path")),
        ResultKind::Output,
    ),
    ("delete_path", Some(("Delete", "path")), ResultKind::Output),
    ("edit", Some(("Edit", "path")), ResultKind::Output),
    ("fetch", Some(("Fetch", "url")), ResultKind::Listing),
    ("find_path", Some(("Find", "pattern")), ResultKind::Listing),
    ("get_file_tree", None, ResultKind::Listing),
    ("grep", Some(("Search for", "pattern")), ResultKind::Listing),
    (
        "list_directory",
        Some(("List", "path")),
        ResultKind::Listing,
    ),
    ("list_tasks", None, ResultKind::TaskList),
    ("move_path", Some(("Move", "source")), ResultKind::Output),
    ("read", Some(("Read", "path")), ResultKind::Listing),
    ("search", Some(("Search for", "query")), ResultKind::Listing),
    (
        "search_code",
        Some(("Search for", "query")),
        ResultKind::Listing,
    ),
    ("shell", Some(("", "command")), ResultKind::Output),
    ("task", Some(("Task:", "description")), ResultKind::Output),
    ("update_task", None, ResultKind::TaskList),
    ("web_scrape", Some(("Fetch", "url")), ResultKind::Listing),
    ("write", Some(("Write", "path")), ResultKind::Output),
];

/// The arguments that name files.
const PATHS: [&str; 3] = ["path", "source", "destination"];

/// The action of a call in one line.
#[must_use]
pub fn title(tool: &str, params: &Value) -> String {
    let argument = |name: &str| params.get(name).and_then(Value::as_str);
    let entry = TOOLS.iter().find(|(id, ..)| *id == tool);
    let shown = entry.and_then(|(_, title, _)| {
        let (verb, name) = (*title)?;
        Some((verb, argument(name)?))
    });
    let text = match shown {
        Some(("", command)) => command.to_owned(),
        Some((verb, subject)) => match argument("destination") {
            Some(destination) => format!("{verb} {subject} to {destination}"),
            None => format!("{verb} {subject}"),
        },
        None => tool.to_owned(),
    };
    one_line(&text)
}

/// The kind of the results of a tool.
#[must_use]
pub fn result_kind(tool: &str) -> ResultKind {
    let entry = TOOLS.iter().find(|(id, ..)| *id == tool);
    entry.map_or_else(ResultKind::default, |(.., kind)| *kind)
}

/// The first line of a text. A cut is marked.
fn one_line(text: &str) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(MAX_TITLE_CHARS).collect();
    match short.len() == text.len() {
        true => short,
        false => format!("{short} …"),
    }
}

/// The files that the arguments name, as absolute paths. Relative paths begin at `cwd`. Paths below `~` are omitted: only
/// the tools know the home directory.
#[must_use]
pub fn locations(params: &Value, cwd: &Path) -> Vec<PathBuf> {
    let named = PATHS.iter().filter_map(|name| params.get(name)?.as_str());
    let is_below_home = |path: &&str| *path == "~" || path.starts_with("~/");
    let known = named.filter(|path| !is_below_home(path));
    known.map(|path| cwd.join(path)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves ACP-2.
    #[test]
    fn title_names_the_action_of_the_call() {
        let check = |tool, params, expect: &str| assert_eq!(title(tool, &params), expect);
        check("bash", json!({"command": "cargo test"}), "cargo test");
        check("bash", json!({"command": "cd a\ncargo test"}), "cd a …");
        check("read", json!({"path": "src/a.rs"}), "Read src/a.rs");
        check(
            "move_path",
            json!({"source": "a", "destination": "b"}),
            "Move a to b",
        );
        check(
            "fetch",
            json!({"url": "https://example.org"}),
            "Fetch https://example.org",
        );
        check("read", json!({"path": 3}), "read");
        check("mcp_files_read", json!({"path": "a"}), "mcp_files_read");
        let long = title("bash", &json!({"command": "a".repeat(300)}));
        assert_eq!(long, format!("{} …", "a".repeat(200)));
    }

    /// Proves ACP-2.
    #[test]
    fn locations_are_absolute() {
        let params = json!({"path": "a", "destination": "/b", "source": 1, "command": "c"});
        let expect = [PathBuf::from("/p/a"), PathBuf::from("/b")];
        assert_eq!(locations(&params, Path::new("/p")), expect);
        let params = json!({"source": "~/a", "destination": "~b"});
        assert_eq!(
            locations(&params, Path::new("/p")),
            [PathBuf::from("/p/~b")]
        );
    }
}
