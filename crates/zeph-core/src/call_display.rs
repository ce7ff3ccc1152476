//! The title and the locations of a call, from its tool and its arguments.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Characters of a title.
const MAX_TITLE_CHARS: usize = 200;

/// Tool id, verb of the title, and the argument that the title shows. The verb of a command is empty.
const TITLES: &[(&str, &str, &str)] = &[
    ("bash", "", "command"),
    ("shell", "", "command"),
    ("read", "Read", "path"),
    ("write", "Write", "path"),
    ("edit", "Edit", "path"),
    ("list_directory", "List", "path"),
    ("delete_path", "Delete", "path"),
    ("move_path", "Move", "source"),
    ("copy_path", "Copy", "source"),
    ("create_directory", "Create", "path"),
    ("grep", "Search for", "pattern"),
    ("search", "Search for", "query"),
    ("search_code", "Search for", "query"),
    ("find_path", "Find", "pattern"),
    ("fetch", "Fetch", "url"),
    ("web_scrape", "Fetch", "url"),
    ("task", "Task:", "description"),
];

/// The arguments that name files.
const PATHS: [&str; 3] = ["path", "source", "destination"];

/// The action of a call in one line.
#[must_use]
pub fn title(tool: &str, params: &Value) -> String {
    let argument = |name: &str| params.get(name).and_then(Value::as_str);
    let entry = TITLES.iter().find(|(id, ..)| *id == tool);
    let shown = entry.and_then(|(_, verb, name)| Some((*verb, argument(name)?)));
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

/// The files that the arguments name, as absolute paths. Relative paths begin at `cwd`.
#[must_use]
pub fn locations(params: &Value, cwd: &Path) -> Vec<PathBuf> {
    let named = PATHS.iter().filter_map(|name| params.get(name)?.as_str());
    named.map(|path| cwd.join(path)).collect()
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
    }
}
