//! Holds a value against a schema that was read.

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::bounds::{check_count, check_number, count, has_type, is_within, quoted};
use super::equal::{repeated, same};
use super::{Fault, JsonSchema, below, keywords, strings};

/// Schemas within schemas that are followed: a reference that leads to itself ends there.
const DEEPEST: usize = 256;
/// Schemas that are looked at in all: what refers to itself in several ways would never end.
const MOST_STEPS: usize = 500_000;

/// The faults found so far, and how many are wanted.
pub(super) struct Found<'a> {
    faults: Vec<Fault>,
    most: usize,
    depth: usize,
    steps: &'a Cell<usize>,
}

impl Found<'_> {
    pub(super) fn add(&mut self, pointer: &str, message: impl Into<String>) {
        if !self.is_full() {
            self.faults.push(Fault {
                pointer: pointer.to_owned(),
                message: message.into(),
            });
        }
    }

    fn is_full(&self) -> bool {
        self.faults.len() >= self.most
    }
}

impl JsonSchema {
    /// Where `value` does not follow the schema: the first `most` places.
    #[must_use]
    pub fn faults(&self, value: &Value, most: usize) -> Vec<Fault> {
        let steps = Cell::new(0);
        let mut found = Found {
            faults: Vec::new(),
            most,
            depth: 0,
            steps: &steps,
        };
        self.check(&self.root, value, "", &mut found);
        found.faults
    }

    /// Whether `value` follows `schema`, which is come to within `outer`.
    fn fits(&self, schema: &Value, value: &Value, outer: &Found<'_>) -> bool {
        let mut found = Found {
            faults: Vec::new(),
            most: 1,
            depth: outer.depth,
            steps: outer.steps,
        };
        self.check(schema, value, "", &mut found);
        found.faults.is_empty()
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, found: &mut Found<'_>) {
        if found.is_full() {
            return;
        }
        found.steps.set(found.steps.get() + 1);
        if found.depth >= DEEPEST || found.steps.get() > MOST_STEPS {
            return found.add(at, "the schema is nested too deeply here to be checked");
        }
        found.depth += 1;
        match schema {
            Value::Bool(true) => {}
            Value::Object(keywords) => {
                self.check_any(keywords, value, at, found);
                match value {
                    Value::Number(number) => check_number(keywords, number, at, found),
                    Value::String(text) => self.check_text(keywords, text, at, found),
                    Value::Array(items) => self.check_items(keywords, value, items, at, found),
                    Value::Object(fields) => self.check_fields(keywords, value, fields, at, found),
                    _ => {}
                }
            }
            _ => found.add(
                at,
                format!("nothing is allowed here, got {}", quoted(value)),
            ),
        }
        found.depth -= 1;
    }

    /// What holds for values of any type.
    fn check_any(
        &self,
        keywords: &Map<String, Value>,
        value: &Value,
        at: &str,
        found: &mut Found<'_>,
    ) {
        if let Some(kinds) = keywords.get("type") {
            let kinds = strings(kinds).unwrap_or_else(|| kinds.as_str().into_iter().collect());
            if !kinds.iter().any(|kind| has_type(value, kind)) {
                let kinds = kinds.join(" or ");
                found.add(at, format!("{kinds} is expected, got {}", quoted(value)));
            }
        }
        if let Some(Value::Array(known)) = keywords.get("enum")
            && !known.iter().any(|known| same(known, value))
        {
            let known: Vec<String> = known.iter().map(quoted).collect();
            let known = known.join(", ");
            found.add(
                at,
                format!("one of {known} is expected, got {}", quoted(value)),
            );
        }
        if let Some(only) = keywords.get("const")
            && !same(only, value)
        {
            let only = quoted(only);
            found.add(at, format!("{only} is expected, got {}", quoted(value)));
        }
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            match self.target(reference) {
                Some(target) => self.check(target, value, at, found),
                None => found.add(at, format!("`{reference}` leads nowhere")),
            }
        }
        for schema in list(keywords, "allOf") {
            self.check(schema, value, at, found);
        }
        if let Some(Value::Array(schemas)) = keywords.get("anyOf")
            && !schemas.iter().any(|schema| self.fits(schema, value, found))
        {
            found.add(at, format!("{} follows none of `anyOf`", quoted(value)));
        }
        if let Some(Value::Array(schemas)) = keywords.get("oneOf") {
            let fits = |schema: &&Value| self.fits(schema, value, found);
            match schemas.iter().filter(fits).take(2).count() {
                0 => found.add(at, format!("{} follows none of `oneOf`", quoted(value))),
                1 => {}
                _ => found.add(
                    at,
                    format!("{} follows more than one of `oneOf`", quoted(value)),
                ),
            }
        }
        if let Some(schema) = keywords.get("not")
            && self.fits(schema, value, found)
        {
            found.add(at, format!("{} follows what `not` excludes", quoted(value)));
        }
        if let Some(condition) = keywords.get("if") {
            let branch = if self.fits(condition, value, found) {
                "then"
            } else {
                "else"
            };
            if let Some(schema) = keywords.get(branch) {
                self.check(schema, value, at, found);
            }
        }
    }

    fn check_text(
        &self,
        keywords: &Map<String, Value>,
        text: &str,
        at: &str,
        found: &mut Found<'_>,
    ) {
        let bounds = ["minLength", "maxLength"];
        if bounds.iter().any(|bound| keywords.contains_key(*bound)) {
            check_count(
                keywords,
                bounds,
                text.chars().count(),
                "characters",
                at,
                found,
            );
        }
        if let Some(Value::String(pattern)) = keywords.get("pattern")
            && !self.matches(pattern, text)
        {
            let text = quoted(&Value::from(text));
            found.add(at, format!("{text} does not match {pattern:?}"));
        }
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        self.patterns
            .get(pattern)
            .is_some_and(|regex| regex.is_match(text))
    }

    fn check_items(
        &self,
        keywords: &Map<String, Value>,
        value: &Value,
        items: &[Value],
        at: &str,
        found: &mut Found<'_>,
    ) {
        check_count(
            keywords,
            ["minItems", "maxItems"],
            items.len(),
            "items",
            at,
            found,
        );
        if keywords.get("uniqueItems") == Some(&Value::Bool(true))
            && let Some(index) = repeated(items)
        {
            found.add(&format!("{at}/{index}"), "the same item stood before");
        }
        let (first, rest) = positions(keywords);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or(rest) {
                self.check(schema, item, &format!("{at}/{index}"), found);
            }
        }
        if let Some(schema) = keywords.get("contains") {
            let fits = |item: &&Value| self.fits(schema, item, found);
            let fitting = items.iter().filter(fits).count();
            let bound = |name| keywords.get(name).and_then(count);
            let least = bound("minContains").unwrap_or(1);
            if !is_within(fitting, Some(least), bound("maxContains")) {
                found.add(at, format!("{fitting} items follow `contains`"));
            }
        }
        if !found.is_full()
            && let Some(schema) = keywords.get("unevaluatedItems")
        {
            let mut known = HashSet::new();
            self.evaluated(keywords, value, found, found.depth, &mut known);
            for (index, item) in items.iter().enumerate() {
                if !known.contains(index.to_string().as_str()) {
                    self.check(schema, item, &format!("{at}/{index}"), found);
                }
            }
        }
    }

    fn check_fields(
        &self,
        keywords: &Map<String, Value>,
        value: &Value,
        fields: &Map<String, Value>,
        at: &str,
        found: &mut Found<'_>,
    ) {
        let bounds = ["minProperties", "maxProperties"];
        check_count(keywords, bounds, fields.len(), "properties", at, found);
        let needs = |names: &Value, found: &mut Found<'_>| {
            for name in strings(names).unwrap_or_default() {
                if !fields.contains_key(name) {
                    found.add(at, format!("`{name}` is missing"));
                }
            }
        };
        if let Some(names) = keywords.get("required") {
            needs(names, found);
        }
        for dependent in ["dependentRequired", "dependencies", "dependentSchemas"] {
            for (_, wanted) in
                map(keywords, dependent).filter(|(name, _)| fields.contains_key(*name))
            {
                if wanted.is_array() {
                    needs(wanted, found);
                } else {
                    self.check(wanted, value, at, found);
                }
            }
        }
        for (name, field) in fields {
            let place = below(at, name);
            let mut known = false;
            for schema in self.of_name(keywords, name) {
                known = true;
                self.check(schema, field, &place, found);
            }
            match keywords.get("additionalProperties") {
                Some(Value::Bool(false)) if !known => {
                    found.add(&place, "the schema knows no such property");
                }
                Some(schema) if !known => self.check(schema, field, &place, found),
                _ => {}
            }
            if let Some(schema) = keywords.get("propertyNames")
                && !self.fits(schema, &Value::from(name.as_str()), found)
            {
                found.add(&place, "its name does not follow `propertyNames`");
            }
        }
        if !found.is_full()
            && let Some(schema) = keywords.get("unevaluatedProperties")
        {
            let mut known = HashSet::new();
            self.evaluated(keywords, value, found, found.depth, &mut known);
            for (name, field) in fields {
                if !known.contains(name.as_str()) {
                    self.check(schema, field, &below(at, name), found);
                }
            }
        }
    }

    /// The schemas that `keywords` have for the property `name` itself.
    fn of_name<'a>(
        &'a self,
        keywords: &'a Map<String, Value>,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let own = map(keywords, "properties").filter(move |(own, _)| *own == name);
        let patterns = map(keywords, "patternProperties");
        own.chain(patterns.filter(move |(pattern, _)| self.matches(pattern, name)))
            .map(|(_, schema)| schema)
    }

    /// Gathers the names and indices of `value` that `known` keywords speak of, those of schemas in
    /// place too that it follows; `unevaluated…` of the same keywords does not count.
    fn evaluated(
        &self,
        known: &Map<String, Value>,
        value: &Value,
        found: &Found<'_>,
        depth: usize,
        names: &mut HashSet<String>,
    ) {
        if depth >= DEEPEST {
            return;
        }
        match value {
            Value::Object(fields) => {
                let all = known.contains_key("additionalProperties");
                let spoken_of = |name: &&String| all || self.of_name(known, name).next().is_some();
                names.extend(fields.keys().filter(spoken_of).cloned());
            }
            Value::Array(items) => {
                let (first, rest) = positions(known);
                let contains = known.get("contains");
                let spoken_of = |(index, item): &(usize, &Value)| {
                    rest.is_some()
                        || *index < first.len()
                        || contains.is_some_and(|schema| self.fits(schema, item, found))
                };
                let spoken_of = items.iter().enumerate().filter(spoken_of);
                names.extend(spoken_of.map(|(index, _)| index.to_string()));
            }
            _ => {}
        }
        let reference = known.get("$ref").and_then(Value::as_str);
        let mut in_place: Vec<&Value> = reference
            .and_then(|reference| self.target(reference))
            .into_iter()
            .collect();
        for keyword in ["allOf", "anyOf", "oneOf"] {
            in_place.extend(list(known, keyword));
        }
        if let Some(condition) = known.get("if") {
            let holds = self.fits(condition, value, found);
            in_place.push(condition);
            in_place.extend(known.get(if holds { "then" } else { "else" }));
        }
        if let Value::Object(fields) = value {
            let dependent = map(known, "dependentSchemas");
            let dependent = dependent.filter(|(name, _)| fields.contains_key(*name));
            in_place.extend(dependent.map(|(_, schema)| schema));
        }
        for schema in in_place {
            if let Some(known) = keywords(schema)
                && self.fits(schema, value, found)
            {
                self.evaluated(known, value, found, depth + 1, names);
                let rest = match value {
                    Value::Object(fields) if known.contains_key("unevaluatedProperties") => {
                        fields.keys().cloned().collect()
                    }
                    Value::Array(items) if known.contains_key("unevaluatedItems") => {
                        (0..items.len()).map(|index| index.to_string()).collect()
                    }
                    _ => Vec::new(),
                };
                names.extend(rest);
            }
        }
    }
}

/// The schemas of the first items, and that of the others.
fn positions(keywords: &Map<String, Value>) -> (&[Value], Option<&Value>) {
    let first = |name| keywords.get(name).and_then(Value::as_array);
    match (first("prefixItems"), first("items")) {
        (Some(first), _) => (first, keywords.get("items")),
        (None, Some(first)) => (first, keywords.get("additionalItems")),
        (None, None) => (&[], keywords.get("items")),
    }
}

fn list<'a>(keywords: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    let list = keywords.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn map<'a>(
    keywords: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let map = keywords.get(name).and_then(Value::as_object);
    map.into_iter().flatten()
}
