//! Messages of errors: `docs/troubleshooting.md` has an entry for each of them.
//!
//! A message is the text of an attribute `#[error("…")]`. The entry quotes its longest part without values. Parts of fewer
//! than twelve characters explain nothing, so the message that they wrap is the entry.

use crate::project::TextFile;

/// The path of the page.
pub(super) const PAGE: &str = "docs/troubleshooting.md";
const MIN_PART: usize = 12;

/// The messages without an entry.
pub(super) fn findings(page: &str, files: &[TextFile]) -> Vec<String> {
    let page = one_line(page);
    let mut findings = Vec::new();
    for file in files {
        let is_library = file.path.starts_with("crates/") && file.path.contains("/src/");
        if !is_library || !file.path.ends_with(".rs") {
            continue;
        }
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        for part in code.split("#[error(").skip(1).filter_map(quoted_part) {
            if !page.contains(&part) {
                findings.push(format!("{PAGE}: no entry quotes `{part}` ({})", file.path));
            }
        }
    }
    findings
}

/// The longest part without values of the literal at the start of `code`; `None` if it is short.
fn quoted_part(code: &str) -> Option<String> {
    let literal = code.trim_start().strip_prefix('"')?;
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    let mut chars = literal.chars().peekable();
    while let Some(c) = chars.next() {
        let twice = chars.peek() == Some(&c);
        let part = parts.last_mut()?;
        match c {
            '"' => break,
            '\\' => match chars.next()? {
                // The line continues without its indentation.
                '\n' => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                'n' => parts.push(String::new()),
                escaped => part.push(escaped),
            },
            '{' | '}' if twice && depth == 0 => {
                chars.next();
                part.push(c);
            }
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                parts.push(String::new());
            }
            c if depth == 0 => part.push(c),
            _ => {}
        }
    }
    let parts = parts.iter().map(|part| {
        let part = one_line(part);
        part.trim_start_matches([':', ';', ',', ')', '}', ' '])
            .to_owned()
    });
    let longest = parts.max_by_key(String::len)?;
    (longest.len() >= MIN_PART).then_some(longest)
}

/// The text with one blank for each run of white space.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-5: a message of an error without an entry is found.
    #[test]
    fn message_without_an_entry_is_found() {
        let file = |text: &str| TextFile {
            path: "crates/a/src/lib.rs".to_owned(),
            text: text.to_owned(),
        };
        let check = |attribute: &str, expect: Option<&str>| {
            let files = [file(attribute)];
            let found = findings("An entry: `the file is\nread-only`.", &files);
            let expect = expect
                .map(|part| format!("{PAGE}: no entry quotes `{part}` (crates/a/src/lib.rs)"));
            assert_eq!(found, Vec::from_iter(expect), "{attribute}");
        };
        check("#[error(\"the file is read-only\")]", None);
        check("#[error(\"{path}: the file is read-only\")]", None);
        check("#[error(\"{path} the file \\\n   is read-only\")]", None);
        check(
            "#[error(\"no `{{name}}` in {0:?}\")]",
            Some("no `{name}` in"),
        );
        check("#[error(\"{0}\")]", None);
        check("#[error(transparent)]", None);
        check("#[cfg(test)] #[error(\"another long message\")]", None);
    }
}
