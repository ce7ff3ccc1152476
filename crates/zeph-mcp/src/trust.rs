//! Trust on first use: the approved content of each tool, and the changes since. Pure functions, except the storage
//! trait.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeph_edit::text_diff;
use zeph_tools::audit::chain::hex_digest;

use crate::sanitize::revealed;

/// The content of a tool that the user approves: its name, description, schema and hints, as the server sends them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The tool's name in the server's list.
    pub name: String,
    /// The SHA-256 of the content, in hex.
    pub sha256: String,
    /// The content as readable text, with visible escapes for hidden characters.
    pub text: String,
    /// The content as the server sent it, for requests before the server is connected again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Value>,
}

impl Pin {
    /// The pin of a tool.
    #[must_use]
    pub fn of(name: &str, description: &str, schema: &Value, hints: &Value) -> Self {
        let mut schema = schema.clone();
        let definition = json!({
            "name": name,
            "description": description,
            "inputSchema": schema,
            "annotations": hints,
        });
        schema.sort_all_objects();
        let whole = json!([name, description, schema, hints]);
        let text = format!(
            "name: {name}\ndescription: {description}\nhints: {hints}\nschema: {schema:#}\n"
        );
        Self {
            name: name.to_owned(),
            sha256: hex_digest(whole.to_string().as_bytes()),
            text: revealed(&text),
            definition: Some(definition),
        }
    }
}

/// The trust in a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolTrust {
    /// The user approved this content.
    Approved,
    /// The user has not approved it.
    New,
    /// The user approved other content, with this text.
    Changed(String),
}

/// A store of the approved pins.
pub trait TrustStore: Send + Sync {
    /// The pins of a server.
    ///
    /// # Errors
    /// If they cannot be read: then no tool of the server is trusted.
    fn of(&self, server: &str) -> io::Result<Vec<Pin>>;

    /// Replaces the pins of a server.
    ///
    /// # Errors
    /// An error of the system; the previous pins stay in force.
    fn put(&self, server: &str, pins: &[Pin]) -> io::Result<()>;
}

/// The trust in the tool of `pin`, according to the `agreed` pins.
#[must_use]
pub fn standing(pin: &Pin, agreed: &[Pin]) -> ToolTrust {
    match agreed.iter().find(|agreed| agreed.name == pin.name) {
        Some(agreed) if agreed.sha256 == pin.sha256 => ToolTrust::Approved,
        Some(agreed) => ToolTrust::Changed(agreed.text.clone()),
        None => ToolTrust::New,
    }
}

/// Merges `pins` into `agreed`; a pin replaces that of the same name.
#[must_use]
pub fn agreeing(agreed: Vec<Pin>, pins: Vec<Pin>) -> Vec<Pin> {
    let is_new = |old: &Pin| pins.iter().all(|pin| pin.name != old.name);
    let mut all: Vec<Pin> = agreed.into_iter().filter(is_new).collect();
    all.extend(pins);
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// The text for approval: the complete text of a new tool, or the changes of a known one.
#[must_use]
pub fn shown(pin: &Pin, standing: &ToolTrust) -> String {
    match standing {
        ToolTrust::Approved => String::new(),
        ToolTrust::New => pin.text.clone(),
        ToolTrust::Changed(before) => text_diff(("approved", "now"), before, &pin.text, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(description: &str, schema: &Value) -> Pin {
        Pin::of("t", description, schema, &json!({"readOnlyHint": true}))
    }

    /// Proves MCP-1a.
    #[test]
    fn every_change_changes_the_hash() {
        let base = pin("d", &json!({"a": 1, "b": {"c": 2, "d": 3}}));
        let reordered = pin("d", &json!({"b": {"d": 3, "c": 2}, "a": 1}));
        assert_eq!(
            (&base.sha256, &base.text),
            (&reordered.sha256, &reordered.text)
        );
        let others = [
            pin("d\u{200b}", &json!({"a": 1, "b": {"c": 2, "d": 3}})),
            pin("d", &json!({"a": 1, "b": {"c": 2, "d": 4}})),
            Pin::of(
                "u",
                "d",
                &json!({"a": 1, "b": {"c": 2, "d": 3}}),
                &json!({"readOnlyHint": true}),
            ),
            Pin::of(
                "t",
                "d",
                &json!({"a": 1, "b": {"c": 2, "d": 3}}),
                &json!({"readOnlyHint": false}),
            ),
        ];
        for other in others {
            assert_ne!(other.sha256, base.sha256, "{}", other.text);
        }
    }

    /// Proves MCP-1a.
    #[test]
    fn changed_tool_is_shown() {
        let (old, new) = (
            pin("reads", &json!({})),
            pin("reads\u{202e} all", &json!({})),
        );
        assert_eq!(standing(&old, &[]), ToolTrust::New);
        assert_eq!(
            standing(&old, std::slice::from_ref(&old)),
            ToolTrust::Approved
        );
        let changed = standing(&new, std::slice::from_ref(&old));
        assert_eq!(changed, ToolTrust::Changed(old.text.clone()));
        let diff = shown(&new, &changed);
        assert!(diff.contains("-description: reads\n"), "{diff}");
        assert!(
            diff.contains("+description: reads\\u{202e} all\n"),
            "{diff}"
        );
        assert_eq!(shown(&old, &ToolTrust::New), old.text);
        let other = Pin {
            name: "a".to_owned(),
            ..old.clone()
        };
        let all = agreeing(vec![old, other.clone()], vec![new.clone()]);
        assert_eq!(all, [other, new]);
    }
}
