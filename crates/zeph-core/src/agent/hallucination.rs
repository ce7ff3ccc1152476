//! Detection of arguments that the model may have invented. Pure. A finding is a warning and never refuses the call.
//!
//! - A path that must exist for the call does not exist and was never mentioned.
//! - A host, an address or an id appears only in this call.
//!
//! Prompts, results and the system prompt count as mentions; text of the model does not.

use serde_json::Value;
use zeph_tools::ToolDef;
use zeph_tools::gate::{PathRole, ToolTarget};

/// The prefix of warnings.
pub(super) const SUSPECT: &str = "HallucinationSuspect";

/// Warnings of one call.
const MAX_WARNINGS: usize = 5;

/// Characters of the shortest hexadecimal id.
const MIN_HEX_CHARS: usize = 7;

/// Tools that change files, and their parameters whose path must exist.
const CHANGED: [(&str, &str); 3] = [
    ("delete_path", "path"),
    ("edit", "path"),
    ("move_path", "source"),
];

/// The facts outside of the call.
pub(super) struct ConversationContext<'a> {
    /// Whether the path exists, relative to the working directory.
    pub(super) exists: &'a dyn Fn(&str) -> bool,
    /// Whether a text before the call contains this word.
    pub(super) mentioned: &'a dyn Fn(&str) -> bool,
}

/// The warnings about a call of the tool `def`.
pub(super) fn suspects(
    def: &ToolDef,
    params: &Value,
    known: &ConversationContext<'_>,
) -> Vec<String> {
    let texts: Vec<&str> = match def.about {
        ToolTarget::Paths(paths) => {
            let must_exist = |name: &str, role| {
                role == PathRole::Read || CHANGED.contains(&(def.id.as_ref(), name))
            };
            let paths = paths.iter().filter(|it| must_exist(it.name, it.role));
            let paths = paths.filter_map(|it| params.get(it.name)?.as_str());
            let made_up = paths.filter(|path| is_made_up(path, known));
            let told = made_up.map(|path| {
                format!(
                    "{SUSPECT}: {}: {path:?} does not exist and was never mentioned",
                    def.id
                )
            });
            return told.take(MAX_WARNINGS).collect();
        }
        ToolTarget::Command { command, .. } => params
            .get(command)
            .and_then(Value::as_str)
            .into_iter()
            .collect(),
        ToolTarget::Url(url) => params
            .get(url)
            .and_then(Value::as_str)
            .into_iter()
            .collect(),
        ToolTarget::Arguments => strings(params),
    };
    let mut found: Vec<&str> = texts.into_iter().flat_map(entities).collect();
    found.sort_unstable();
    found.dedup();
    let found = found
        .into_iter()
        .filter(|entity| !(known.mentioned)(entity));
    let told = found.map(|entity| {
        format!(
            "{SUSPECT}: {}: {entity:?} appears only in this call",
            def.id
        )
    });
    told.take(MAX_WARNINGS).collect()
}

fn is_made_up(path: &str, known: &ConversationContext<'_>) -> bool {
    let bare = path.trim_start_matches("./").trim_end_matches('/');
    let name = bare.rsplit('/').next().unwrap_or(bare);
    // The home directory and the matches of patterns are unknown here.
    let is_plain =
        !bare.is_empty() && !bare.starts_with('~') && !bare.contains(['*', '?', '[', '{']);
    is_plain && name != "." && name != ".." && !(known.exists)(path) && !(known.mentioned)(name)
}

/// All strings in a value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(object) => object.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

/// The hosts of URLs, e-mail addresses, IPv4 addresses, UUIDs and hexadecimal ids in a text.
fn entities(text: &str) -> impl Iterator<Item = &str> {
    let is_part =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@' | ':' | '/' | '%' | '+');
    let words = text.split(move |c| !is_part(c));
    words.filter_map(entity)
}

fn entity(word: &str) -> Option<&str> {
    let word = word.trim_matches(['.', ':', '-', '/']);
    if let Some((_, rest)) = word.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let host = authority.rsplit('@').next().unwrap_or(authority);
        let host = host.split(':').next().unwrap_or(host);
        return (!is_local(host)).then_some(host);
    }
    if let Some((name, host)) = word.split_once('@') {
        let is_address = !name.is_empty() && host.contains('.') && !host.contains('@');
        return (is_address && !word.contains(['/', ':'])).then_some(word);
    }
    let is_address =
        word.split('.').count() == 4 && word.split('.').all(|part| part.parse::<u8>().is_ok());
    if is_address {
        return (!is_local(word)).then_some(word);
    }
    let bare = word.replace('-', "");
    let is_id = bare.len() >= MIN_HEX_CHARS
        && bare.bytes().all(|byte| byte.is_ascii_hexdigit())
        && bare.bytes().any(|byte| byte.is_ascii_digit())
        && bare.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_id.then_some(word)
}

/// Whether a host counts as known without a mention.
fn is_local(host: &str) -> bool {
    host.is_empty() || host == "localhost" || host == "0.0.0.0" || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;
    use zeph_tools::Annotations;
    use zeph_tools::gate::PathParam;

    use super::*;

    #[derive(Debug, Deserialize, schemars::JsonSchema)]
    struct Any {}

    const READ: &[PathParam] = &[PathParam::read("path").or(".")];
    const WRITE: &[PathParam] = &[PathParam::write("path")];
    const MOVE: &[PathParam] = &[PathParam::write("source"), PathParam::write("destination")];

    fn def(id: &'static str) -> ToolDef {
        let about = match id {
            "read" => ToolTarget::Paths(READ),
            "write" | "edit" | "delete_path" => ToolTarget::Paths(WRITE),
            "move_path" => ToolTarget::Paths(MOVE),
            "fetch" => ToolTarget::Url("url"),
            "bash" => ToolTarget::Command {
                command: "command",
                cwd: "cwd",
            },
            _ => ToolTarget::Arguments,
        };
        ToolDef::new::<Any>(id, "d", Annotations::READ).about(about)
    }

    /// Proves AGT-7: paths that neither exist nor were mentioned, entities that the call alone has.
    #[test]
    fn hallucinated_entities_are_reported() {
        let said = "look at config.toml and https://api.example.org/v1, mail ann@example.org; commit 3f2a9bc";
        let check = |tool: &'static str, params: Value, expect: &[&str]| {
            let known = ConversationContext {
                exists: &|path| path == "src/lib.rs",
                mentioned: &|word| said.contains(word),
            };
            let found = suspects(&def(tool), &params, &known);
            assert_eq!(found.len(), expect.len(), "{tool} {params}: {found:?}");
            for (found, expect) in found.iter().zip(expect) {
                assert!(
                    found.starts_with(SUSPECT) && found.contains(expect),
                    "{found}"
                );
            }
        };
        check("read", json!({ "path": "src/lib.rs" }), &[]);
        check(
            "read",
            json!({ "path": "src/engine.rs" }),
            &["read: \"src/engine.rs\" does not exist"],
        );
        check("read", json!({ "path": "deep/config.toml" }), &[]);
        check("read", json!({ "path": "./nowhere/" }), &["nowhere"]);
        for path in ["", ".", "..", "~/x", "src/*.rs"] {
            check("read", json!({ "path": path }), &[]);
        }
        check("read", json!({}), &[]);
        check("read", json!({ "path": 7 }), &[]);
        check("read", json!("text"), &[]);
        // A path to create need not exist; a path to change must.
        check("write", json!({ "path": "new.rs" }), &[]);
        check("edit", json!({ "path": "new.rs" }), &["new.rs"]);
        check("delete_path", json!({ "path": "old.rs" }), &["old.rs"]);
        check(
            "move_path",
            json!({ "source": "a.rs", "destination": "b.rs" }),
            &["a.rs"],
        );
        check(
            "fetch",
            json!({ "url": "https://api.example.org/other?x=1" }),
            &[],
        );
        check(
            "fetch",
            json!({ "url": "https://api.example.com:8443/x" }),
            &["\"api.example.com\""],
        );
        check("fetch", json!({ "url": "http://127.0.0.1:8080/x" }), &[]);
        check(
            "bash",
            json!({ "command": "git show 3f2a9bc && echo 12345678 decade face" }),
            &[],
        );
        check(
            "bash",
            json!({ "command": "git show 9e8d7c6b" }),
            &["9e8d7c6b"],
        );
        check(
            "bash",
            json!({ "command": "ping 192.0.2.7 127.0.0.1 1.2.3" }),
            &["192.0.2.7"],
        );
        check(
            "bash",
            json!({ "command": "mail -s hi ann@example.org bob@example.org" }),
            &["bob@"],
        );
        check("bash", json!({ "command": "scp x user@host:/tmp" }), &[]);
        let id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
        check("note", json!({ "a": [{ "b": id }], "c": id }), &[id]);
        let many: Vec<String> = (0..9).map(|n| format!("https://h{n}.example")).collect();
        check("note", json!(many), &["h0", "h1", "h2", "h3", "h4"]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_searched_for_entities(text in "\\PC{0,80}") {
            for entity in entities(&text) {
                prop_assert!(!entity.is_empty() && text.contains(entity));
            }
        }
    }
}
