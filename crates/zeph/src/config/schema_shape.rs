//! The shape of the configuration, as checks, template and reference walk it, and its JSON Schema. The keys themselves are
//! fields of the struct of their section.

use std::sync::LazyLock;

use serde_json::Value as Json;

use super::Config;
use super::old_keys;

/// The JSON Schema (draft 2020-12) of a configuration file.
pub(crate) fn json_schema() -> Json {
    schemars::schema_for!(Config).to_value()
}

/// The shape of the root table. Made once: it takes some ten microseconds.
pub(crate) fn root() -> &'static Table {
    static ROOT: LazyLock<Table> = LazyLock::new(|| {
        let schema = json_schema();
        match shape(&schema, &schema, 0) {
            Shape::Table(table) => table,
            // `Config` is a struct; a test holds that.
            _ => Table::default(),
        }
    });
    &ROOT
}

/// The shape that files, variables and flags may have: the root, and the old keys. Made once.
pub(crate) fn accepted() -> &'static Table {
    static ACCEPTED: LazyLock<Table> = LazyLock::new(|| {
        let mut table = root().clone();
        old_keys::add_to(&mut table);
        table
    });
    &ACCEPTED
}

/// The placeholder for a free key in the path of a section.
pub(crate) const ANY: &str = "TOOL";

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A table with known keys.
    Table(Table),
    /// A table with free keys.
    Map(Box<Shape>),
    /// An array.
    List(Box<Shape>),
    /// `true` or `false`.
    Boolean,
    /// An integer between both, these included.
    Integer(i64, i64),
    /// A number between both, these included.
    Number(f64, f64),
    /// A string.
    Text,
    /// A string, or a list of strings.
    Texts,
    /// One of these strings.
    Choice(Vec<String>),
    /// A string, or this.
    TextOr(Box<Shape>),
    /// Any value that deserialization accepts.
    Any,
}

/// A table with known keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    /// The name of the struct.
    pub(crate) type_name: String,
    /// The description.
    pub(crate) doc: String,
    /// Its keys, in the order of the struct.
    pub(crate) fields: Vec<Field>,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// The key.
    pub(crate) name: String,
    /// The description in one line.
    pub(crate) doc: String,
    /// Whether the table must have it.
    pub(crate) required: bool,
    /// The default that a table in a list has for it; for other tables see `Config::default`.
    pub(crate) default: Option<Json>,
    /// The type of its value.
    pub(crate) shape: Shape,
    /// Whether it is an old key that is still read.
    pub(crate) is_old: bool,
}

/// A table as the files show it: one header, and the keys beneath it.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a> {
    /// The path, as in `tools.shell`.
    pub(crate) path: String,
    /// Whether it is a list of tables.
    pub(crate) is_list: bool,
    /// The table.
    pub(crate) table: &'a Table,
    /// The keys that are not sections.
    pub(crate) keys: Vec<&'a Field>,
}

impl Table {
    /// The field called `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field called `name`, to be changed.
    pub(crate) fn field_mut(&mut self, name: &str) -> Option<&mut Field> {
        self.fields.iter_mut().find(|field| field.name == name)
    }

    /// The shape of a dotted key, to be changed.
    pub(crate) fn shape_mut(&mut self, key: &str) -> Option<&mut Shape> {
        match key.split_once('.') {
            None => self.field_mut(key).map(|field| &mut field.shape),
            Some((name, rest)) => match self.field_mut(name).map(|field| &mut field.shape) {
                Some(Shape::Table(inner)) => inner.shape_mut(rest),
                _ => None,
            },
        }
    }

    /// All sections below this table, each before its subsections. Tables without keys are not sections.
    pub(crate) fn sections(&self) -> Vec<Section<'_>> {
        let mut sections = Vec::new();
        self.add_sections("", false, &mut sections);
        sections
    }

    fn add_sections<'a>(&'a self, path: &str, is_list: bool, to: &mut Vec<Section<'a>>) {
        let keys: Vec<&Field> = self
            .fields
            .iter()
            .filter(|field| field.shape.section().is_none() && field.shape.lists().is_none())
            .collect();
        if !keys.is_empty() {
            to.push(Section {
                path: path.to_owned(),
                is_list,
                table: self,
                keys,
            });
        }
        for field in &self.fields {
            let path = join(path, &field.name);
            if let Some((table, is_list)) = field.shape.section() {
                table.add_sections(&path, is_list, to);
            } else if let Some(table) = field.shape.lists() {
                table.add_sections(&join(&path, ANY), true, to);
            }
        }
    }

    /// The settings: every key of the root with a value; a list of tables is one setting.
    pub(crate) fn settings(&self) -> Vec<(String, &Field)> {
        let mut settings = Vec::new();
        self.add_settings("", &mut settings);
        settings
    }

    fn add_settings<'a>(&'a self, path: &str, to: &mut Vec<(String, &'a Field)>) {
        for field in &self.fields {
            let path = join(path, &field.name);
            match &field.shape {
                Shape::Table(table) => table.add_settings(&path, to),
                _ => to.push((path, field)),
            }
        }
    }
}

impl Shape {
    /// The table of a section, and whether it is a list of them.
    pub(crate) fn section(&self) -> Option<(&Table, bool)> {
        match self {
            Self::Table(table) => Some((table, false)),
            Self::List(item) => match &**item {
                Self::Table(table) => Some((table, true)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The table of a section that is a list for each free key.
    pub(crate) fn lists(&self) -> Option<&Table> {
        match self {
            Self::Map(lists) => match lists.section() {
                Some((table, true)) => Some(table),
                _ => None,
            },
            _ => None,
        }
    }

    /// "an integer of at least 1".
    pub(crate) fn expectation(&self) -> String {
        match self {
            Self::Table(_) | Self::Map(_) => "a table".to_owned(),
            Self::List(item) => format!("a list; each item is {}", item.expectation()),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(min, max) => match (*min, *max) {
                (i64::MIN, i64::MAX) => "an integer".to_owned(),
                (min, i64::MAX) => format!("an integer of at least {min}"),
                (i64::MIN, max) => format!("an integer of at most {max}"),
                (min, max) => format!("an integer from {min} to {max}"),
            },
            Self::Number(min, max) => match (min.is_finite(), max.is_finite()) {
                (false, false) => "a number".to_owned(),
                (true, false) => format!("a number of at least {min}"),
                (false, true) => format!("a number of at most {max}"),
                (true, true) => format!("a number from {min} to {max}"),
            },
            Self::Text => "a string".to_owned(),
            Self::Texts => "a string or a list of strings".to_owned(),
            Self::TextOr(other) => format!("{} or a string", other.expectation()),
            Self::Choice(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Any => "another value".to_owned(),
        }
    }
}

/// A key with its table: `join("tools", "mode")` is `tools.mode`. Keys that TOML would quote are
/// quoted.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let key = match !key.is_empty() && key.chars().all(bare) {
        true => key.to_owned(),
        false => format!("{key:?}"),
    };
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}

/// Reads the shape of `node`; an unknown one becomes [`Shape::Any`].
fn shape(node: &Json, root: &Json, depth: u32) -> Shape {
    // A recursive schema has no end.
    if depth > 32 {
        return Shape::Any;
    }
    if let Some(target) = reference(node, root) {
        return named(shape(target, root, depth + 1), node);
    }
    if let Some(options) = node["anyOf"].as_array() {
        // `Option<T>`
        let options = options.iter().filter(|option| option["type"] != "null");
        return match options.collect::<Vec<_>>().as_slice() {
            [option] => shape(option, root, depth + 1),
            [one, more]
                if one["type"] == "string"
                    && shape(more, root, depth + 1) == Shape::List(Box::new(Shape::Text)) =>
            {
                Shape::Texts
            }
            _ => Shape::Any,
        };
    }
    if let Some(names) = choices(node) {
        return Shape::Choice(names);
    }
    let kind = match &node["type"] {
        Json::Array(kinds) => kinds
            .iter()
            .find(|kind| *kind != "null")
            .and_then(Json::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("boolean") => Shape::Boolean,
        Some("string") => Shape::Text,
        Some("integer") => integer(node),
        Some("number") => Shape::Number(
            node["minimum"].as_f64().unwrap_or(f64::NEG_INFINITY),
            node["maximum"].as_f64().unwrap_or(f64::INFINITY),
        ),
        Some("array") => Shape::List(Box::new(shape(&node["items"], root, depth + 1))),
        Some("object") if node["properties"].is_object() => Shape::Table(table(node, root, depth)),
        Some("object") => Shape::Map(Box::new(shape(
            &node["additionalProperties"],
            root,
            depth + 1,
        ))),
        _ => Shape::Any,
    }
}

fn reference<'a>(node: &Json, root: &'a Json) -> Option<&'a Json> {
    root.pointer(node["$ref"].as_str()?.strip_prefix('#')?)
}

/// Notes the name of the struct that `node` refers to.
fn named(mut shape: Shape, node: &Json) -> Shape {
    if let Shape::Table(table) = &mut shape
        && let Some((_, name)) = node["$ref"].as_str().and_then(|name| name.rsplit_once('/'))
    {
        table.type_name = name.to_owned();
    }
    shape
}

/// The names of an enum, documented (`oneOf` of constants) or not.
fn choices(node: &Json) -> Option<Vec<String>> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    if let Some(names) = node["enum"].as_array() {
        return names
            .iter()
            .filter(|name| !name.is_null())
            .map(text)
            .collect();
    }
    let mut names = Vec::new();
    for option in node["oneOf"].as_array()? {
        match choices(option) {
            Some(more) => names.extend(more),
            None => names.push(text(&option["const"])?),
        }
    }
    Some(names)
}

fn integer(node: &Json) -> Shape {
    let limit = match node["format"].as_str() {
        Some("uint8") => u8::MAX.into(),
        Some("uint16") => u16::MAX.into(),
        Some("uint32") => u32::MAX.into(),
        Some("int32") => i32::MAX.into(),
        _ => i64::MAX,
    };
    let min = node["minimum"].as_i64().unwrap_or(i64::MIN);
    Shape::Integer(min, node["maximum"].as_i64().unwrap_or(limit).min(limit))
}

fn table(node: &Json, root: &Json, depth: u32) -> Table {
    let required = |name: &str| {
        node["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|given| given == name))
    };
    let fields = node["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, field)| {
            let target = reference(field, root).unwrap_or(field);
            Field {
                name: name.clone(),
                doc: one_line(
                    field["description"]
                        .as_str()
                        .or(target["description"].as_str()),
                ),
                required: required(name),
                default: field
                    .get("default")
                    .filter(|value| !value.is_null())
                    .cloned(),
                shape: shape(field, root, depth + 1),
                is_old: false,
            }
        });
    Table {
        type_name: node["title"].as_str().unwrap_or_default().to_owned(),
        doc: one_line(node["description"].as_str()),
        fields: fields.collect(),
    }
}

fn one_line(text: Option<&str>) -> String {
    text.unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_have_their_shapes() {
        let settings = root().settings();
        let of = |key: &str| {
            let found = settings.iter().find(|(path, _)| path == key);
            found.unwrap_or_else(|| panic!("no {key}")).1
        };
        assert_eq!(of("tools.shell.timeout").shape, Shape::Integer(1, i64::MAX));
        assert_eq!(
            of("llm.retry.max_attempts").shape,
            Shape::Integer(1, u32::MAX.into())
        );
        assert_eq!(
            of("agent.context_budget_tokens").shape,
            Shape::Integer(1, i64::MAX)
        );
        assert_eq!(of("memory.path").shape, Shape::Text);
        let modes = ["plan", "ask", "auto-edit", "auto", "full"].map(str::to_owned);
        assert_eq!(of("tools.mode").shape, Shape::Choice(modes.to_vec()));
        assert_eq!(
            of("tools.shell.env.set").shape,
            Shape::Map(Box::new(Shape::Text))
        );
        assert_eq!(
            of("tools.shell.env.block").shape,
            Shape::List(Box::new(Shape::Text))
        );
        let (provider, true) = of("llm.providers").shape.section().unwrap() else {
            panic!("providers are a list")
        };
        assert_eq!(provider.type_name, "ProviderConfig");
        assert!(provider.field("name").unwrap().required);
        assert!(!provider.field("base_url").unwrap().required);
    }

    /// Proves CFG-3: the schema refuses unknown keys, explains every key, and has no constraint that loading would
    /// not check.
    #[test]
    fn schema_is_closed_documented_and_understood() {
        const KNOWN: &[&str] = &[
            "$schema",
            "title",
            "description",
            "type",
            "properties",
            "$defs",
            "$ref",
            "items",
            "additionalProperties",
            "required",
            "default",
            "format",
            "minimum",
            "maximum",
            "oneOf",
            "anyOf",
            "enum",
            "const",
        ];
        fn walk(node: &Json, path: &str) {
            let Some(object) = node.as_object() else {
                return;
            };
            for (keyword, value) in object {
                assert!(
                    KNOWN.contains(&keyword.as_str()),
                    "{path}: `{keyword}` is not checked"
                );
                match keyword.as_str() {
                    "properties" | "$defs" => {
                        for (name, inner) in value.as_object().unwrap() {
                            walk(inner, &join(path, name));
                        }
                    }
                    "oneOf" | "anyOf" => {
                        value.as_array().unwrap().iter().for_each(|o| walk(o, path))
                    }
                    "items" | "additionalProperties" => walk(value, path),
                    _ => {}
                }
            }
            if object.contains_key("properties") {
                assert_eq!(
                    node["additionalProperties"],
                    Json::Bool(false),
                    "{path} takes any key"
                );
            }
        }
        walk(&json_schema(), "");
        for section in root().sections() {
            assert!(
                !section.table.doc.is_empty(),
                "[{}] has no doc comment",
                section.path
            );
            for field in section.keys {
                assert!(
                    !field.doc.is_empty(),
                    "{}.{} has no doc comment",
                    section.path,
                    field.name
                );
                assert_ne!(field.shape, Shape::Any, "{}.{}", section.path, field.name);
            }
        }
    }

    #[test]
    fn key_paths_are_quoted() {
        for (path, key, expect) in [
            ("", "a", "a"),
            ("a.b", "c-d_1", "a.b.c-d_1"),
            ("a", "b.c", "a.\"b.c\""),
            ("a", "", "a.\"\""),
            ("a", "x\u{1b}", "a.\"x\\u{1b}\""),
        ] {
            assert_eq!(join(path, key), expect);
        }
    }
}
