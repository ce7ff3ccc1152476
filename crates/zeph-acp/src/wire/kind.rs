//! The table of tools and their kinds of work, which a client needs for display.
//!
//! A client chooses the icon and the presentation of a call by its kind. The names are those of `ToolKind` in the
//! Agent Client Protocol, version 1.

use agent_client_protocol::v1::schema::ToolKind;

/// Tool id or alias, and kind; a tool that is not listed is [`ToolKind::Other`].
const KINDS: &[(&str, ToolKind)] = &[
    ("bash", ToolKind::Execute),
    ("shell", ToolKind::Execute),
    ("read", ToolKind::Read),
    ("write", ToolKind::Edit),
    ("edit", ToolKind::Edit),
    ("search", ToolKind::Search),
    ("grep", ToolKind::Search),
    ("find_path", ToolKind::Search),
    ("web_scrape", ToolKind::Fetch),
    ("fetch", ToolKind::Fetch),
    ("delete_path", ToolKind::Delete),
    ("move_path", ToolKind::Move),
    // Aliases: a call is announced by the name that the model used.
    ("read_file", ToolKind::Read),
    ("write_file", ToolKind::Edit),
    ("edit_file", ToolKind::Edit),
    ("glob", ToolKind::Search),
    ("rename_path", ToolKind::Move),
];

/// The kind of the tool with this id or alias, which is compared exactly.
pub(super) fn kind_of(tool_id: &str) -> ToolKind {
    KINDS
        .iter()
        .find(|(id, _)| *id == tool_id)
        .map_or(ToolKind::Other, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves ACP-3.
    #[test]
    fn each_tool_has_its_kind_and_wire_name() {
        let check = |tool_id: &str, expect: &str| {
            let kind = serde_json::to_value(kind_of(tool_id)).unwrap();
            assert_eq!(kind, expect, "{tool_id}");
        };
        check("bash", "execute");
        check("shell", "execute");
        check("read", "read");
        check("write", "edit");
        check("edit", "edit");
        check("search", "search");
        check("grep", "search");
        check("find_path", "search");
        check("glob", "search");
        check("read_file", "read");
        check("edit_file", "edit");
        check("rename_path", "move");
        check("web_scrape", "fetch");
        check("fetch", "fetch");
        check("delete_path", "delete");
        check("move_path", "move");
        check("list_directory", "other");
        check("mcp_files_read", "other");
        check("Read", "other");
        check("", "other");
    }

    #[test]
    fn tool_ids_are_unique() {
        for (at, (id, _)) in KINDS.iter().enumerate() {
            assert!(
                !KINDS[..at].iter().any(|(earlier, _)| earlier == id),
                "{id}"
            );
        }
    }
}
