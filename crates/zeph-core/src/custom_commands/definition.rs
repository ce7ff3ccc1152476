//! The file of a custom command: its front matter, and its text.

use std::path::PathBuf;

use zeph_tools::Mode;

use super::CustomCommand;
use crate::front_matter::{MAX_TEXT_BYTES, known_keys, mapping, parts, text_of, words};

/// Bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 1024;
/// Characters of a description that is the first line of the text.
const MAX_FIRST_LINE_CHARS: usize = 80;

/// The supported keys, and keys of other formats that are ignored.
const KEYS: [&str; 4] = ["description", "argument-hint", "model", "mode"];
const OTHERS: [&str; 9] = [
    "name",
    "allowed-tools",
    "allowed_tools",
    "disable-model-invocation",
    "license",
    "metadata",
    "version",
    "author",
    "agent",
];

/// Reads the text of the command `name`.
///
/// # Errors
/// The reason why the command is refused.
pub(super) fn read(
    name: String,
    bytes: Vec<u8>,
    file: PathBuf,
    of_project: bool,
) -> Result<CustomCommand, String> {
    const FILE: &str = "the file";
    let text = text_of(bytes, FILE)?;
    let (mut head, body) = match parts(&text, FILE)? {
        Some((head, body)) => (mapping(head, FILE)?, body),
        None => (serde_json::Map::new(), text.as_str()),
    };
    known_keys(&head, &KEYS, &OTHERS, "the front matter")?;
    let body = body.trim();
    if body.is_empty() {
        return Err("it has no text after the front matter".to_owned());
    }
    let mut optional = |key: &str| {
        let value = head.remove(key).map(|value| match value {
            // `[file]` is a list for YAML, and a usual hint.
            serde_json::Value::Array(items) if key == "argument-hint" => {
                let items: Vec<_> = items.iter().filter_map(|item| item.as_str()).collect();
                serde_json::Value::String(format!("[{}]", items.join(", ")))
            }
            value => value,
        });
        let most = match key {
            "description" => MAX_DESCRIPTION_BYTES,
            _ => MAX_TEXT_BYTES,
        };
        value.map(|value| words(Some(value), key, most)).transpose()
    };
    let mode = optional("mode")?;
    let mode = mode.map(|mode| {
        Mode::from_name(&mode).ok_or_else(|| {
            let names: Vec<&str> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
            format!(
                "`mode` {mode:?} is not a mode; the modes are {}",
                names.join(", ")
            )
        })
    });
    Ok(CustomCommand {
        description: match optional("description")? {
            Some(description) => description,
            None => first_line(body),
        },
        argument_hint: optional("argument-hint")?,
        model: optional("model")?,
        mode: mode.transpose()?,
        body: body.to_owned(),
        name,
        file,
        of_project,
    })
}

fn first_line(body: &str) -> String {
    let line = body.lines().next().unwrap_or_default();
    let line = line.trim_start_matches('#').trim();
    line.chars().take(MAX_FIRST_LINE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<CustomCommand, String> {
        read(
            "fix".to_owned(),
            text.as_bytes().to_vec(),
            PathBuf::new(),
            false,
        )
    }

    /// Proves CLI-8.
    #[test]
    fn front_matter_is_read() {
        let command = parsed(
            "---\ndescription: Fix a bug\nargument-hint: [issue]\nmodel: small\nmode: plan\nallowed-tools: Bash\n---\n\nFix $1.\n",
        );
        let command = command.unwrap();
        assert_eq!(command.description, "Fix a bug");
        assert_eq!(command.argument_hint.as_deref(), Some("[issue]"));
        assert_eq!(command.model.as_deref(), Some("small"));
        assert_eq!(command.mode, Some(Mode::Plan));
        assert_eq!(command.body, "Fix $1.");
        let command = parsed("# Fix it\nNow.").unwrap();
        assert_eq!(
            (command.description.as_str(), command.mode),
            ("Fix it", None)
        );
    }

    /// Proves CLI-8: an error names the key and how to fix it.
    #[test]
    fn invalid_file_is_refused() {
        let check = |text: &str, expect: &str| {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        check(
            "---\ndescripton: x\n---\nFix.",
            "did you mean `description`?",
        );
        check("---\nmode: fast\n---\nFix.", "the modes are plan, ask");
        check("---\ndescription: x\n---\n", "no text");
        check("---\ndescription: x\nFix.", "has no end");
        check("---\nmodel: 3\n---\nFix.", "`model` is not a string");
        check("Fix \u{1b}[2J it.", "control character U+001B");
    }
}
