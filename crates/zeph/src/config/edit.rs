//! Edits in the text of a configuration file. Comments and the order of keys stay. Pure functions.

use toml_edit::{
    Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value, value,
};

/// Adds a table to the list `SECTION.LIST`, in the form that the document uses for the list. Returns false if the
/// document has something else there.
pub(crate) fn add_to_list(
    document: &mut DocumentMut,
    section: &str,
    list: &str,
    keys: Vec<(&'static str, Value)>,
) -> bool {
    let section = document.entry(section).or_insert_with(implicit_table);
    let is_inline = section.is_inline_table();
    let Some(section) = section.as_table_like_mut() else {
        return false;
    };
    match section.get_mut(list) {
        None if is_inline => {
            let mut items = Array::new();
            items.push(inline(keys));
            section.insert(list, value(items));
        }
        None => {
            let mut items = ArrayOfTables::new();
            items.push(table(keys));
            section.insert(list, Item::ArrayOfTables(items));
        }
        Some(Item::ArrayOfTables(items)) => items.push(table(keys)),
        Some(Item::Value(Value::Array(items))) => items.push(inline(keys)),
        Some(_) => return false,
    }
    true
}

/// Sets the value at a path of keys. An existing value is replaced, and its comments stay; missing tables are added.
/// Returns false if a key on the path has another type.
pub(crate) fn set_value(document: &mut DocumentMut, path: &[String], new: Value) -> bool {
    let Some((last, above)) = path.split_last() else {
        return false;
    };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in above {
        let entry = match table.entry(key) {
            toml_edit::Entry::Occupied(entry) => entry.into_mut(),
            toml_edit::Entry::Vacant(entry) => entry.insert(implicit_table()),
        };
        let Some(inner) = entry.as_table_like_mut() else {
            return false;
        };
        table = inner;
    }
    match table.get_mut(last) {
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        Some(Item::None) | None => {
            table.insert(last, Item::Value(new));
        }
        Some(_) => return false,
    }
    true
}

/// A table without a header of its own until it has a key.
fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn table(keys: Vec<(&'static str, Value)>) -> Table {
    let mut table = Table::new();
    for (key, value) in keys {
        table.insert(key, Item::Value(value));
    }
    // A blank line before the header.
    table.decor_mut().set_prefix("\n");
    table
}

fn inline(keys: Vec<(&'static str, Value)>) -> InlineTable {
    keys.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, new: impl Into<Value>) -> Option<String> {
        let mut document: DocumentMut = text.parse().unwrap();
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        set_value(&mut document, &path, new.into()).then(|| document.to_string())
    }

    /// Proves CLI-9: an edit changes one value and no other byte.
    #[test]
    fn value_is_set_and_comments_stay() {
        let text =
            "# mine\n[tools.shell] # shell\ntimeout = 30 # s\n\n[agent]\nmax_reflections = 2\n";
        let found = set(text, "tools.shell.timeout", 60).unwrap();
        assert_eq!(found, text.replace("30", "60"));
        let found = set(text, "tools.shell.allow_network", false).unwrap();
        assert_eq!(found, text.replace("# s\n", "# s\nallow_network = false\n"));
        let found = set(text, "tools.mode", "plan").unwrap();
        assert!(found.contains("[tools]\nmode = \"plan\"\n"), "{found}");
        let found = set("", "llm.default", "a").unwrap();
        assert_eq!(found, "[llm]\ndefault = \"a\"\n");
        let found = set("llm = { default = \"a\" }\n", "llm.default", "b").unwrap();
        assert_eq!(found, "llm = { default = \"b\" }\n");
        let found = set("llm.default = \"a\" # one\n", "llm.default", "b").unwrap();
        assert_eq!(found, "llm.default = \"b\" # one\n");
        for (text, key) in [
            ("tools = 3\n", "tools.mode"),
            ("[tools.mode]\n", "tools.mode"),
        ] {
            assert_eq!(set(text, key, "plan"), None, "{text}");
        }
    }
}
