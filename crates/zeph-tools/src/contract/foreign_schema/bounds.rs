//! The cost of checking arguments against a schema, bounded before the schema is used.
//!
//! A value is checked against every subschema that applies to it in place (`$ref`, `allOf`, `anyOf`, …). A cycle
//! of such subschemas never ends. If several of them descend into the same child, the work multiplies with each
//! level of the arguments.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::contract::percent_encoding::percent_decoded;

/// Subschemas that may apply to one value in place.
const MAX_IN_PLACE: usize = 2_000;
/// Subschemas that may apply to the values of one path.
const MAX_WORK: f64 = 100_000.0;
/// Levels of arguments if nothing else bounds them.
const MAX_DEPTH: usize = 64;
/// Levels of a schema.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Keywords whose value is a subschema of the same value.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is a list of subschemas of the same value.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value maps names to subschemas of the same value.
const IN_PLACE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose value is a subschema of any field.
const FIELDS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
/// Keywords whose value is a subschema, or a list of subschemas, of items.
const ITEMS: [&str; 5] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];
/// Keywords whose value maps names to subschemas of fields, or to definitions.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords by which a schema refers to something whose cost is not known here.
const UNSUPPORTED: [&str; 4] = [
    "$dynamicRef",
    "$recursiveRef",
    "$dynamicAnchor",
    "$recursiveAnchor",
];

/// The bounds of a schema.
pub(super) struct Bounds {
    /// Levels that arguments may have.
    pub(super) max_depth: usize,
}

/// A subschema applied in place, as far as it matters for the cost.
#[derive(Clone, Default)]
struct Cost {
    /// Subschemas that apply to the value.
    in_place: usize,
    /// How many of them descend into each named field.
    fields: HashMap<String, usize>,
    /// How many of them descend into any field.
    any_field: usize,
    /// How many of them descend into items.
    items: usize,
}

impl Cost {
    fn add(&mut self, other: &Self) {
        self.in_place = self.in_place.saturating_add(other.in_place);
        self.any_field = self.any_field.saturating_add(other.any_field);
        self.items = self.items.saturating_add(other.items);
        for (name, count) in &other.fields {
            let field = self.fields.entry(name.clone()).or_default();
            *field = field.saturating_add(*count);
        }
    }

    /// How many subschemas descend into one child at most.
    fn branching(&self) -> usize {
        let named = self.fields.values().copied().max().unwrap_or(0);
        named.saturating_add(self.any_field).max(self.items)
    }
}

struct Walk<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    /// By the address of the subschema; `None` while it is under way.
    costs: HashMap<*const Value, Option<Cost>>,
    branching: usize,
}

impl Bounds {
    /// The bounds of `schema`.
    ///
    /// # Errors
    /// The reason why its cost is not bounded.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let mut walk = Walk {
            root: schema,
            anchors: HashMap::new(),
            costs: HashMap::new(),
            branching: 1,
        };
        walk.find_anchors(schema, 0)?;
        walk.visit(schema)?;
        let branching = f64::from(u32::try_from(walk.branching).unwrap_or(u32::MAX));
        let max_depth = if walk.branching <= 1 {
            MAX_DEPTH
        } else {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let levels = (MAX_WORK.ln() / branching.ln()) as usize;
            levels.clamp(1, MAX_DEPTH)
        };
        Ok(Self { max_depth })
    }
}

impl<'s> Walk<'s> {
    fn find_anchors(&mut self, schema: &'s Value, depth: usize) -> Result<(), String> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(format!("it has more than {MAX_SCHEMA_DEPTH} levels"));
        }
        let Value::Object(object) = schema else {
            return Ok(());
        };
        if depth > 0 && object.get("$id").is_some_and(Value::is_string) {
            return Err("a part of it has its own `$id`".to_owned());
        }
        if let Some(keyword) = UNSUPPORTED.iter().find(|one| object.contains_key(**one)) {
            return Err(format!("it uses `{keyword}`"));
        }
        if let Some(Value::String(anchor)) = object.get("$anchor") {
            self.anchors.insert(anchor, schema);
        }
        for below in subschemas(object) {
            self.find_anchors(below, depth + 1)?;
        }
        Ok(())
    }

    /// Visits a subschema and all below it.
    fn visit(&mut self, schema: &'s Value) -> Result<(), String> {
        let cost = self.cost(schema)?;
        self.branching = self.branching.max(cost.branching());
        let Value::Object(object) = schema else {
            return Ok(());
        };
        for below in subschemas(object) {
            self.visit(below)?;
        }
        Ok(())
    }

    /// The cost of `schema` for one value.
    fn cost(&mut self, schema: &'s Value) -> Result<Cost, String> {
        let key: *const Value = schema;
        match self.costs.get(&key) {
            Some(Some(cost)) => return Ok(cost.clone()),
            Some(None) => return Err("it refers to itself in an infinite loop".to_owned()),
            None => {}
        }
        self.costs.insert(key, None);
        let mut cost = Cost {
            in_place: 1,
            ..Cost::default()
        };
        if let Value::Object(object) = schema {
            for applied in self.in_place(object)? {
                let applied = self.cost(applied)?;
                cost.add(&applied);
                if cost.in_place > MAX_IN_PLACE {
                    return Err(format!(
                        "more than {MAX_IN_PLACE} parts of it apply to one value"
                    ));
                }
            }
            if let Some(Value::Object(fields)) = object.get("properties") {
                for name in fields.keys() {
                    *cost.fields.entry(name.clone()).or_default() += 1;
                }
            }
            if let Some(Value::Object(patterns)) = object.get("patternProperties") {
                cost.any_field += patterns.len();
            }
            let has = |keyword: &&&str| object.get(**keyword).is_some_and(|it| !it.is_boolean());
            cost.any_field += FIELDS.iter().filter(has).count();
            cost.items += ITEMS.iter().filter(has).count();
        }
        self.costs.insert(key, Some(cost.clone()));
        Ok(cost)
    }

    /// The subschemas that apply to the same value as `object`.
    fn in_place(&self, object: &'s Map<String, Value>) -> Result<Vec<&'s Value>, String> {
        let mut applied = Vec::new();
        if let Some(Value::String(reference)) = object.get("$ref") {
            applied.push(self.resolve(reference)?);
        }
        applied.extend(IN_PLACE.iter().filter_map(|keyword| object.get(*keyword)));
        for keyword in IN_PLACE_LISTS {
            let list = object.get(keyword).and_then(Value::as_array);
            applied.extend(list.into_iter().flatten());
        }
        for keyword in IN_PLACE_MAPS {
            let map = object.get(keyword).and_then(Value::as_object);
            applied.extend(map.into_iter().flat_map(Map::values));
        }
        Ok(applied)
    }

    fn resolve(&self, reference: &str) -> Result<&'s Value, String> {
        let target = match reference.strip_prefix('#') {
            None => {
                return Err(format!(
                    "it refers to {reference:?} outside of the schema, which Zeph does not fetch"
                ));
            }
            Some("") => Some(self.root),
            Some(pointer) if pointer.starts_with('/') => {
                let pointer = percent_decoded(pointer);
                self.root.pointer(&String::from_utf8_lossy(&pointer))
            }
            Some(anchor) => self.anchors.get(anchor).copied(),
        };
        target.ok_or_else(|| format!("it refers to {reference:?}, which it does not contain"))
    }
}

/// The subschemas directly below `object`.
fn subschemas(object: &Map<String, Value>) -> Vec<&Value> {
    let mut below: Vec<&Value> = Vec::new();
    for (keyword, value) in object {
        let keyword = keyword.as_str();
        let is_map = MAPS.contains(&keyword) || IN_PLACE_MAPS.contains(&keyword);
        match value {
            Value::Object(map) if is_map => below.extend(map.values()),
            Value::Array(list) if IN_PLACE_LISTS.contains(&keyword) || ITEMS.contains(&keyword) => {
                below.extend(list);
            }
            _ if IN_PLACE.contains(&keyword)
                || FIELDS.contains(&keyword)
                || ITEMS.contains(&keyword)
                || keyword == "propertyNames" =>
            {
                below.push(value);
            }
            _ => {}
        }
    }
    below
}
