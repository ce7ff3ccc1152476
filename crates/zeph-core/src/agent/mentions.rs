//! Files that a prompt names: `@PATH`, `@PATH:10-20`, `@"PATH WITH SPACES"`, and the pasted path of an image.

/// The characters that may precede `@`. After any other character, as in an address, it names no file.
pub(super) const OPENERS: [char; 5] = ['(', '[', '{', ',', ';'];
/// The characters that end a sentence or close a bracket. They are not part of a URI, or of a path
/// without quotes.
pub(super) const CLOSERS: [char; 10] = [',', '.', ';', ':', ')', ']', '}', '!', '?', '>'];
/// The endings of image files.
const IMAGE_ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A file or directory that a prompt names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    /// The mention as written.
    pub(super) written: String,
    /// The path.
    pub(super) path: String,
    /// The lines, from 1; `None` for the complete file.
    pub(super) lines: Option<LineRange>,
}

/// A range of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRange {
    /// The first line, from 1.
    pub(super) first: u64,
    /// The last line; `None` for the end of the file.
    pub(super) last: Option<u64>,
}

impl LineRange {
    /// The range of `10`, `10-20` or `10-`. `None` if the text has another form.
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|line| *line > 0);
        let (first, last) = match text.split_once('-') {
            None => {
                let line = number(text)?;
                (line, Some(line))
            }
            Some((first, "")) => (number(first)?, None),
            Some((first, last)) => (number(first)?, Some(number(last)?)),
        };
        let is_ascending = last.is_none_or(|last| last >= first);
        is_ascending.then_some(Self { first, last })
    }
}

impl std::fmt::Display for LineRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.last {
            Some(last) if last == self.first => write!(f, "line {last}"),
            Some(last) => write!(f, "lines {}-{last}", self.first),
            None => write!(f, "lines {}-", self.first),
        }
    }
}

/// The files and directories that `prompt` names with `@`, each once. They may not exist.
pub(super) fn mentions(prompt: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut before = None;
    let mut rest = prompt;
    while let Some(char) = rest.chars().next() {
        let can_start =
            before.is_none_or(|before: char| before.is_whitespace() || OPENERS.contains(&before));
        let mention = rest.strip_prefix('@').filter(|_| can_start);
        let mention = mention.and_then(|after| quoted(after).or_else(|| plain(after)));
        let length = match &mention {
            Some(mention) => mention.written.len(),
            None => char.len_utf8(),
        };
        if let Some(mention) = mention
            && !found.contains(&mention)
        {
            found.push(mention);
        }
        before = rest[..length].chars().next_back();
        rest = &rest[length..];
    }
    found
}

/// The mention of a path in quotes, after its `@`.
fn quoted(after: &str) -> Option<Mention> {
    let inner = after.strip_prefix('"')?;
    let end = inner.find('"')?;
    let path = &inner[..end];
    if path.is_empty() || path.contains('\n') {
        return None;
    }
    let range = inner[end + 1..].strip_prefix(':').map(|rest| {
        let length = rest
            .find(|char: char| !char.is_ascii_digit() && char != '-')
            .unwrap_or(rest.len());
        &rest[..length]
    });
    let lines = range.and_then(LineRange::parse);
    let length = path.len() + 2 + lines.and(range).map_or(0, |range| range.len() + 1);
    Some(Mention {
        written: format!("@{}", &after[..length]),
        path: path.to_owned(),
        lines,
    })
}

/// The mention of a path without quotes, after its `@`.
fn plain(after: &str) -> Option<Mention> {
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    let written = after[..end].trim_end_matches(CLOSERS);
    let range = written
        .rsplit_once(':')
        .and_then(|(path, range)| Some((path, LineRange::parse(range)?)));
    let (path, lines) = match range {
        Some((path, lines)) => (path, Some(lines)),
        None => (written, None),
    };
    let is_path = !path.is_empty() && !path.starts_with('"') && !path.starts_with('@');
    is_path.then(|| Mention {
        written: format!("@{written}"),
        path: path.to_owned(),
        lines,
    })
}

/// The absolute paths of image files in `prompt` without `@`, as a terminal pastes them: plain, in quotes, or with
/// backslashes before spaces.
pub(super) fn pasted_images(prompt: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in pasted_words(prompt) {
        let path = word.strip_prefix("file://").unwrap_or(&word);
        let lower = path.to_ascii_lowercase();
        let is_image = IMAGE_ENDINGS.iter().any(|ending| lower.ends_with(ending));
        if is_image && path.starts_with('/') && !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    }
    found
}

/// The words of a text, with the quotes and backslashes of pasted paths resolved.
fn pasted_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (None, '\'' | '"') if word.is_empty() => quote = Some(char),
            (None, '\\') if chars.peek() == Some(&' ') => {
                chars.next();
                word.push(' ');
            }
            (None, char) if char.is_whitespace() => words.push(std::mem::take(&mut word)),
            // An apostrophe opens a quote that does not end in its line.
            (Some(_), '\n') => {
                quote = None;
                words.push(std::mem::take(&mut word));
            }
            (_, char) => word.push(char),
        }
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The written mention, its path, and its first and last line.
    type Expected<'e> = (&'e str, &'e str, Option<(u64, Option<u64>)>);

    /// Proves CLI-10.
    #[test]
    fn mentions_have_paths_and_lines() {
        let check = |prompt: &str, expect: &[Expected<'_>]| {
            let found = mentions(prompt);
            let found: Vec<_> = found
                .iter()
                .map(|mention| {
                    let lines = mention.lines.map(|lines| (lines.first, lines.last));
                    (mention.written.as_str(), mention.path.as_str(), lines)
                })
                .collect();
            assert_eq!(found, expect, "{prompt}");
        };
        check("see @src/lib.rs.", &[("@src/lib.rs", "src/lib.rs", None)]);
        check("@a.rs:10", &[("@a.rs:10", "a.rs", Some((10, Some(10))))]);
        check(
            "(@a.rs:10-20), @b/",
            &[
                ("@a.rs:10-20", "a.rs", Some((10, Some(20)))),
                ("@b/", "b/", None),
            ],
        );
        check("@a.rs:10-", &[("@a.rs:10-", "a.rs", Some((10, None)))]);
        check("@a.rs:20-10", &[("@a.rs:20-10", "a.rs:20-10", None)]);
        check("@\"a b.txt\"!", &[("@\"a b.txt\"", "a b.txt", None)]);
        check(
            "@\"a b.txt\":3-4, ok",
            &[("@\"a b.txt\":3-4", "a b.txt", Some((3, Some(4))))],
        );
        check("@x @x", &[("@x", "x", None)]);
        check("mail a@b.c, @ @, @@x, x@y", &[]);
        check("é@x @é", &[("@é", "é", None)]);
    }

    /// Proves CLI-10: the pasted path of an image is found in each form that terminals use.
    #[test]
    fn pasted_image_is_found() {
        let check =
            |prompt: &str, expect: &[&str]| assert_eq!(pasted_images(prompt), expect, "{prompt}");
        check("/t/a.png", &["/t/a.png"]);
        check("look at '/t/a b.JPG' now", &["/t/a b.JPG"]);
        check("/t/a\\ b.webp /t/c.gif", &["/t/a b.webp", "/t/c.gif"]);
        check("file:///t/a.png", &["/t/a.png"]);
        check("don't read a.png, @/t/a.png or /t/a.rs", &[]);
    }
}
