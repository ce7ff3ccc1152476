//! The catalog of file tools for the model.

use serde_json::json;
use zeph_tools::ToolDef;
use zeph_tools::def::CachePolicy;
use zeph_tools::executor::ToolExecutor as _;

use crate::world::TestDir;

fn sent(def: &ToolDef) -> String {
    json!({"name": def.id, "description": def.description, "input_schema": *def.parameters})
        .to_string()
}

#[test]
fn definitions_are_small() {
    let definitions = TestDir::new().tools.tool_definitions();
    let ids: Vec<_> = definitions.iter().map(|def| def.id.to_string()).collect();
    assert_eq!(
        ids,
        [
            "read",
            "write",
            "edit",
            "grep",
            "find_path",
            "list_directory",
            "get_file_tree",
            "create_directory",
            "delete_path",
            "move_path",
            "copy_path"
        ]
    );
    let mut total = 0;
    for def in &definitions {
        let sent = sent(def);
        println!("{} {} bytes: {sent}", def.id, sent.len());
        assert!(sent.len() <= 430, "{} has {} bytes", def.id, sent.len());
        total += sent.len();
    }
    assert!(total <= 2900, "{total}");
}

#[test]
fn changing_tools_are_annotated_and_hide_contents_from_the_audit() {
    for def in TestDir::new().tools.tool_definitions() {
        let contents = matches!(&*def.id, "write" | "edit");
        let entries = matches!(
            &*def.id,
            "create_directory" | "delete_path" | "move_path" | "copy_path"
        );
        let changes = contents || entries;
        assert_eq!(def.annotations.read_only, !changes, "{}", def.id);
        assert_eq!(!def.content_params.is_empty(), contents, "{}", def.id);
        let properties = def.parameters["properties"].as_object().expect("an object");
        for (alias, param) in def.param_aliases {
            assert!(properties.contains_key(*param), "{} {param}", def.id);
            assert!(!properties.contains_key(*alias), "{} {alias}", def.id);
        }
        for param in def.content_params {
            assert!(properties.contains_key(*param), "{} {param}", def.id);
        }
    }
}

/// Proves OUT-41 in part: a tool that only reads is cacheable, a tool that changes files is never cached.
#[test]
fn cache_policy_follows_the_kind_of_tool() {
    for def in TestDir::new().tools.tool_definitions() {
        let expect = match def.annotations.read_only {
            true => CachePolicy::CACHED,
            false => CachePolicy::CHANGES_FILES,
        };
        assert_eq!(def.cache, expect, "{}", def.id);
    }
}
