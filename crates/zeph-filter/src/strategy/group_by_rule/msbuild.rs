//! Parser for MSBuild and the C# compiler, which print each diagnostic twice: `Program.cs(5,13): error CS0103:
//! … [app.csproj]`.

use std::collections::HashSet;

use super::{Diagnostic, Dialect, ExitInfo, Found, Line};

/// Diagnostics that are remembered as shown.
const MAX_REPORTED: usize = 8192;

#[derive(Default)]
struct MsBuild {
    told: HashSet<String>,
    /// Place, rule and message of the last diagnostic. Its memory is reused.
    key: String,
}

pub(super) fn start() -> Box<dyn Dialect> {
    Box::new(MsBuild::default())
}

/// Parses place, level, code and message.
fn parse(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (place, rest) = text.split_once("): ")?;
    let (_, position) = place.rsplit_once("(")?;
    let numbers = position
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b',');
    let level = ["error", "warning"]
        .into_iter()
        .find(|level| rest.starts_with(level))?;
    let (code, message) = rest[level.len()..].strip_prefix(' ')?.split_once(": ")?;
    if position.is_empty() || !numbers || code.contains(' ') {
        return None;
    }
    let message = match message.rfind(" [") {
        Some(at) if message.ends_with("proj]") => &message[..at],
        _ => message,
    };
    Some((&text[..place.len() + 1], level, code, message))
}

impl Dialect for MsBuild {
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>) {
        let text = line.text.trim_ascii();
        let Some((place, level, code, message)) = parse(text) else {
            found.keep_after(line);
            return;
        };
        self.key.clear();
        for part in [place, code, message] {
            self.key.push_str(part);
        }
        if self.told.contains(&self.key) {
            return;
        }
        if self.told.len() < MAX_REPORTED {
            self.told.insert(self.key.clone());
        }
        if level == "error" {
            found.keep_diagnostic(Line { text, ..line });
            return;
        }
        found.diagnostic(&Diagnostic {
            number: line.number,
            level: level.to_owned(),
            code: Some(code.to_owned()),
            message: message.to_owned(),
            place: place.to_owned(),
            help: None,
        });
    }

    fn finish(&mut self, _end: ExitInfo, _found: &mut Found<'_>) {}
}
