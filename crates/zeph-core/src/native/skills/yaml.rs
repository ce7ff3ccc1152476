//! The part of YAML that front matter is written in, read strictly: what it does not know it refuses,
//! with the line.
//!
//! Mappings, sequences, plain and quoted scalars on one line or going on below it, block scalars (`|`,
//! `>`), flow lists and mappings, comments. Refused: anchors, aliases, tags, merge keys, complex keys,
//! directives, several documents, a key that stands twice. So nothing in it can refer to, or grow by,
//! anything else in it. After YAML 1.2, <https://yaml.org/spec/1.2.2/>, with its core schema for scalars.

mod line;

use serde_json::{Map, Value};

use line::{fold, is_item, is_marker, scalar, without_comment};

/// The most levels of what is inside of what.
const MAX_DEPTH: usize = 8;
/// The most lines.
const MAX_LINES: usize = 1000;

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct YamlError {
    /// The line, from 1, of the text that was read.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// Reads `text`; nothing in it is an empty mapping.
///
/// # Errors
/// [`YamlError`]: what is wrong, or not known here.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let lines: Vec<Line> = text.lines().enumerate().map(Line::new).collect();
    let mut reader = Reader { lines, at: 0 };
    if reader.lines.len() > MAX_LINES {
        return Err(reader.error(format!("more than {MAX_LINES} lines")));
    }
    if reader.next_content()?.is_none() {
        return Ok(Value::Object(Map::new()));
    }
    let value = reader.block(0, 0)?;
    match reader.next_content()? {
        None => Ok(value),
        Some(_) => Err(reader.error("it stands further left than what it follows")),
    }
}

struct Line {
    number: usize,
    indent: usize,
    text: String,
}

impl Line {
    fn new((at, line): (usize, &str)) -> Self {
        let text = line.trim_start_matches(' ');
        Self {
            number: at + 1,
            indent: line.len() - text.len(),
            text: text.trim_end().to_owned(),
        }
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }
}

struct Reader {
    lines: Vec<Line>,
    at: usize,
}

impl Reader {
    fn error(&self, what: impl Into<String>) -> YamlError {
        let line = self.lines.get(self.at).or(self.lines.last());
        YamlError {
            line: line.map_or(1, |line| line.number),
            what: what.into(),
        }
    }

    fn line(&self) -> Option<&Line> {
        self.lines.get(self.at)
    }

    /// Goes to the next line with something on it: its indent.
    fn next_content(&mut self) -> Result<Option<usize>, YamlError> {
        while self.line().is_some_and(Line::is_blank) {
            self.at += 1;
        }
        match self.line() {
            Some(line) if line.text.starts_with('\t') => {
                Err(self.error("a tab where spaces are expected"))
            }
            Some(line) if line.indent == 0 && is_marker(&line.text) => {
                Err(self.error("a marker of documents or a directive"))
            }
            Some(line) => Ok(Some(line.indent)),
            None => Ok(None),
        }
    }

    /// What begins at the next line, which stands at `least` or further right.
    fn block(&mut self, least: usize, depth: usize) -> Result<Value, YamlError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels")));
        }
        let Some(indent) = self.next_content()?.filter(|indent| *indent >= least) else {
            return Ok(Value::Null);
        };
        let text = self
            .line()
            .map(|line| line.text.clone())
            .unwrap_or_default();
        if is_item(&text) {
            return self.sequence(indent, depth);
        }
        if self.key(&text)?.is_some() {
            return self.mapping(indent, depth);
        }
        self.at += 1;
        self.inline(&text, least.saturating_sub(1), depth)
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        while self.next_content()? == Some(indent) {
            let at = self.at;
            let Some(line) = self.lines.get_mut(at).filter(|line| is_item(&line.text)) else {
                break;
            };
            let rest = line.text.get(1..).unwrap_or_default();
            let inner = rest.trim_start_matches(' ').to_owned();
            if inner.is_empty() || inner.starts_with('#') {
                self.at += 1;
                items.push(self.block(indent + 1, depth + 1)?);
                continue;
            }
            // What follows the dash is a block of its own, which begins where it stands.
            line.indent = indent + 1 + rest.len() - inner.len();
            line.text = inner;
            items.push(self.value_here(indent, depth + 1)?);
        }
        self.not_further_right(indent)?;
        Ok(Value::Array(items))
    }

    /// The item of a sequence whose dash was taken off the line.
    fn value_here(&mut self, parent: usize, depth: usize) -> Result<Value, YamlError> {
        let text = self
            .line()
            .map(|line| line.text.clone())
            .unwrap_or_default();
        if is_item(&text) || self.key(&text)?.is_some() {
            return self.block(parent + 1, depth);
        }
        self.at += 1;
        self.inline(&text, parent, depth)
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        let mut map = Map::new();
        while self.next_content()? == Some(indent) {
            let text = self
                .line()
                .map(|line| line.text.clone())
                .unwrap_or_default();
            let Some((key, rest)) = self.key(&text)? else {
                return Err(self.error("`key: value` is expected"));
            };
            if key == "<<" {
                return Err(self.error("merge keys are not read"));
            }
            if map.contains_key(&key) {
                return Err(self.error(format!("`{key}` stands twice")));
            }
            self.at += 1;
            let value = if rest.is_empty() || rest.starts_with('#') {
                match self.next_content()? {
                    Some(below) if below > indent => self.block(indent + 1, depth + 1)?,
                    Some(below)
                        if below == indent
                            && self.line().is_some_and(|line| is_item(&line.text)) =>
                    {
                        self.sequence(indent, depth + 1)?
                    }
                    _ => Value::Null,
                }
            } else {
                self.inline(rest, indent, depth + 1)?
            };
            map.insert(key, value);
        }
        self.not_further_right(indent)?;
        Ok(Value::Object(map))
    }

    fn not_further_right(&mut self, indent: usize) -> Result<(), YamlError> {
        match self.next_content()? {
            Some(found) if found > indent => {
                Err(self.error("it stands further right than what it follows"))
            }
            _ => Ok(()),
        }
    }

    /// The key at the beginning of `text`, and what follows its colon.
    fn key<'t>(&self, text: &'t str) -> Result<Option<(String, &'t str)>, YamlError> {
        if text.starts_with("? ") || text == "?" {
            return Err(self.error("complex keys are not read"));
        }
        if text.starts_with(['"', '\'']) {
            let (key, after) = self.quoted(text)?;
            let after = after.trim_start().strip_prefix(':');
            return Ok(after
                .filter(|rest| rest.is_empty() || rest.starts_with(' '))
                .map(|rest| (key, rest.trim())));
        }
        if text.starts_with(['[', '{', '|', '>']) {
            return Ok(None);
        }
        let end = match text.find(": ") {
            Some(end) => end,
            None if text.ends_with(':') => text.len() - 1,
            None => return Ok(None),
        };
        let (key, rest) = (
            text.get(..end).unwrap_or_default(),
            text.get(end + 1..).unwrap_or_default(),
        );
        if key.contains(" #") {
            return Ok(None);
        }
        self.known_beginning(key)?;
        Ok(Some((key.trim_end().to_owned(), rest.trim())))
    }

    fn known_beginning(&self, text: &str) -> Result<(), YamlError> {
        match text.chars().next() {
            Some('&') => Err(self.error("anchors are not read")),
            Some('*') => Err(self.error("aliases are not read; quote a text that begins with `*`")),
            Some('!') => Err(self.error("tags are not read")),
            Some(first @ ('%' | '@' | '`' | ',' | ']' | '}')) => Err(self.error(format!(
                "a text that begins with `{first}` has to be quoted"
            ))),
            _ => Ok(()),
        }
    }

    /// A value that begins with `text` and may go on in lines further right than `parent`.
    fn inline(&mut self, text: &str, parent: usize, depth: usize) -> Result<Value, YamlError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels")));
        }
        if text.starts_with(['|', '>']) {
            return self.block_scalar(text, parent);
        }
        // Errors name the line where the value begins.
        let begins = self.at - 1;
        let mut whole = without_comment(text).to_owned();
        let quoted = text.starts_with(['"', '\'']);
        while !quoted && self.next_content()?.is_some_and(|indent| indent > parent) {
            let more = self
                .line()
                .map(|line| without_comment(&line.text).to_owned());
            let more = more.unwrap_or_default();
            let flow = whole.starts_with(['[', '{']);
            if !flow && (more.contains(": ") || more.ends_with(':') || is_item(&more)) {
                return Err(
                    self.error("a value stands before it already; quote a text with a colon")
                );
            }
            whole.push(' ');
            whole.push_str(&more);
            self.at += 1;
        }
        let after = std::mem::replace(&mut self.at, begins);
        let value = if quoted {
            let (value, rest) = self.quoted(text)?;
            self.nothing_more(rest)?;
            Value::String(value)
        } else if whole.starts_with(['[', '{']) {
            let (value, rest) = self.flow(&whole, depth)?;
            self.nothing_more(rest)?;
            value
        } else {
            self.known_beginning(&whole)?;
            scalar(&whole)
        };
        self.at = after;
        Ok(value)
    }

    fn nothing_more(&self, rest: &str) -> Result<(), YamlError> {
        let rest = rest.trim();
        match rest.is_empty() || rest.starts_with('#') {
            true => Ok(()),
            false => Err(self.error("something follows the end of the value")),
        }
    }

    /// `|` keeps line breaks, `>` makes spaces of single ones; `-` after it drops the last one.
    fn block_scalar(&mut self, head: &str, parent: usize) -> Result<Value, YamlError> {
        let (folded, keeps_end) = match without_comment(head) {
            "|" => (false, true),
            "|-" => (false, false),
            ">" => (true, true),
            ">-" => (true, false),
            _ => return Err(self.error("of block scalars, `|`, `|-`, `>` and `>-` are read")),
        };
        let mut lines: Vec<String> = Vec::new();
        let mut indent = None;
        while let Some(line) = self.line() {
            if line.text.is_empty() {
                lines.push(String::new());
            } else if line.indent <= parent {
                break;
            } else {
                let first = *indent.get_or_insert(line.indent);
                if line.indent < first {
                    return Err(
                        self.error("it stands further left than the text that it is part of")
                    );
                }
                lines.push(format!("{}{}", " ".repeat(line.indent - first), line.text));
            }
            self.at += 1;
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let mut text = match folded {
            false => lines.join("\n"),
            true => fold(&lines),
        };
        if keeps_end && !text.is_empty() {
            text.push('\n');
        }
        Ok(Value::String(text))
    }

    /// The text in quotes at the beginning, and what follows.
    fn quoted<'t>(&self, text: &'t str) -> Result<(String, &'t str), YamlError> {
        let single = text.starts_with('\'');
        let mut value = String::new();
        let mut chars = text.char_indices().skip(1).peekable();
        while let Some((at, char)) = chars.next() {
            let after = |by: usize| text.get(at + by..).unwrap_or_default();
            match char {
                '\'' if single && after(1).starts_with('\'') => {
                    chars.next();
                    value.push('\'');
                }
                '\'' if single => return Ok((value, after(1))),
                '"' if !single => return Ok((value, after(1))),
                '\\' if !single => {
                    let escaped = chars.next().map(|(_, escaped)| escaped);
                    value.push(match escaped {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(same @ ('"' | '\\' | '/')) => same,
                        Some('u') => {
                            let digits = text.get(at + 2..at + 6);
                            let code =
                                digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                            let found = code.and_then(char::from_u32);
                            for _ in 0..4 {
                                chars.next();
                            }
                            found.ok_or_else(|| self.error("`\\u` is no character"))?
                        }
                        _ => return Err(self.error("an escape that is not read")),
                    });
                }
                other => value.push(other),
            }
        }
        Err(self.error("a quote does not end on its line"))
    }

    /// A flow collection or a scalar in one, and what follows.
    fn flow<'t>(&self, text: &'t str, depth: usize) -> Result<(Value, &'t str), YamlError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels")));
        }
        let text = text.trim_start();
        if let Some(mut rest) = text.strip_prefix('[') {
            let mut items = Vec::new();
            loop {
                rest = rest.trim_start();
                if let Some(rest) = rest.strip_prefix(']') {
                    return Ok((Value::Array(items), rest));
                }
                let (item, after) = self.flow(rest, depth + 1)?;
                items.push(item);
                rest = self.next_in_flow(after, ']')?;
            }
        }
        if let Some(mut rest) = text.strip_prefix('{') {
            let mut map = Map::new();
            loop {
                rest = rest.trim_start();
                if let Some(rest) = rest.strip_prefix('}') {
                    return Ok((Value::Object(map), rest));
                }
                let (key, after) = match rest.starts_with(['"', '\'']) {
                    true => self.quoted(rest)?,
                    false => {
                        let end = rest
                            .find([':', ',', '}', '{', '[', ']'])
                            .unwrap_or(rest.len());
                        let (key, after) = rest.split_at(end);
                        self.known_beginning(key)?;
                        (key.trim_end().to_owned(), after)
                    }
                };
                let Some(after) = after.trim_start().strip_prefix(':') else {
                    return Err(self.error("`key: value` is expected in braces"));
                };
                let (value, after) = self.flow(after, depth + 1)?;
                if map.insert(key.clone(), value).is_some() {
                    return Err(self.error(format!("`{key}` stands twice")));
                }
                rest = self.next_in_flow(after, '}')?;
            }
        }
        if text.starts_with(['"', '\'']) {
            let (value, rest) = self.quoted(text)?;
            return Ok((Value::String(value), rest));
        }
        let end = text.find([',', ']', '}', '[', '{']).unwrap_or(text.len());
        let (plain, rest) = text.split_at(end);
        if plain.trim().is_empty() {
            return Err(self.error("a value is missing, or a bracket is not closed"));
        }
        self.known_beginning(plain)?;
        Ok((scalar(plain.trim()), rest))
    }

    /// What follows a comma, or the end of the collection.
    fn next_in_flow<'t>(&self, rest: &'t str, end: char) -> Result<&'t str, YamlError> {
        let rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(rest) => Ok(rest),
            None if rest.starts_with(end) => Ok(rest),
            None => Err(self.error(format!("`,` or `{end}` is expected"))),
        }
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
