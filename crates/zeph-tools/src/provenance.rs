//! Where what a call reads comes from: paths in a text, and how an audit entry names them.

use std::collections::HashSet;

/// Marks around a word that do not belong to it.
const OPENING: &[char] = &['"', '\'', '`', '(', '[', '{', '<', '=', ','];
const CLOSING: &[char] = &[
    '"', '\'', '`', ')', ']', '}', '>', '.', ',', ';', ':', '!', '?', '|', '&',
];

/// Paths that [`claim_source`] names.
const MAX_CLAIMED: usize = 16;
/// Bytes of [`claim_source`], the number of further paths left out.
const MAX_CLAIM_BYTES: usize = 1024;

/// The absolute and relative paths in `text`, each once, in order of appearance: words that begin
/// with `/`, `./`, `../` or `~/`, and words with a `/` in them that are no URL. Quotes around and
/// punctuation behind a word do not belong to it; blanks inside of quotes do.
#[must_use]
pub fn extract_paths(text: &str) -> Vec<String> {
    if !text.contains('/') {
        return Vec::new();
    }
    let mut paths: Vec<String> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    for word in words(text) {
        // `--file=PATH`, `NAME=PATH`, `2>PATH`
        for part in parts(&word) {
            if is_path(part) && seen.insert(part.to_owned()) {
                paths.push(part.to_owned());
            }
        }
    }
    paths
}

/// What the audit entry of a call says of where what it reads comes from: `KIND:PATH,PATH,…`, a comma
/// in a path written `\,`. Bounded: of paths beyond that the number is told (`,+7`). `None` without
/// paths.
#[must_use]
pub fn claim_source(kind: &str, paths: &[String]) -> Option<String> {
    let mut source = format!("{kind}:");
    let mut told = 0;
    for path in paths.iter().take(MAX_CLAIMED) {
        let path = path.replace(',', "\\,");
        if source.len() + path.len() > MAX_CLAIM_BYTES {
            break;
        }
        if told > 0 {
            source.push(',');
        }
        source.push_str(&path);
        told += 1;
    }
    match paths.len() - told {
        0 => {}
        more if told == 0 => source.push_str(&format!("+{more}")),
        more => source.push_str(&format!(",+{more}")),
    }
    (!paths.is_empty()).then_some(source)
}

/// The claim of a command: `shell:PATH,…`, the paths that its text names.
#[must_use]
pub fn of_command(command: &str) -> Option<String> {
    claim_source("shell", &extract_paths(command))
}

/// The claim of a page: `web:HOST`.
#[must_use]
pub fn of_host(host: &str) -> String {
    format!("web:{host}")
}

/// The words of a text; quotes hold blanks together.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        let Some(word) = words.last_mut() else { break };
        match (character, quote) {
            ('"' | '\'' | '`', Some(open)) if open == character => quote = None,
            ('"' | '\'' | '`', None)
                // An apostrophe inside of a word, and a quote that nothing closes, are no quotes.
                if !word.ends_with(char::is_alphanumeric)
                    && text[at + 1..]
                        .split('\n')
                        .next()
                        .is_some_and(|line| line.contains(character)) =>
            {
                quote = Some(character);
            }
            ('\\', None | Some('"')) => word.extend(characters.next().map(|(_, next)| next)),
            (c, None) if c.is_whitespace() || ";|&<>()".contains(c) => words.push(String::new()),
            _ => word.push(character),
        }
    }
    words
}

/// The word without the marks around it, or what stands behind its `=`.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let whole = word.trim_start_matches(OPENING);
    let dots = matches!(whole, "." | "..") || whole.ends_with("/.") || whole.ends_with("/..");
    let whole = if dots {
        whole
    } else {
        whole.trim_end_matches(CLOSING)
    };
    let value = whole
        .split_once('=')
        .filter(|(name, _)| !name.contains('/') && !has_scheme(whole))
        .map(|(_, value)| value.trim_start_matches(OPENING));
    std::iter::once(value.unwrap_or(whole))
}

fn is_path(word: &str) -> bool {
    word.contains('/')
        && !has_scheme(word)
        && !word.starts_with("//")
        && word.chars().any(|c| c == '/' || c.is_alphanumeric())
        && !word.contains('\0')
}

/// Whether it is a URL: `https://…`, `git@host:path`, `mailto:…`.
fn has_scheme(word: &str) -> bool {
    let scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    };
    word.split_once("://")
        .is_some_and(|(before, _)| scheme(before))
        || word
            .split_once(':')
            .is_some_and(|(before, _)| !before.contains('/') && before.contains('@'))
        || ["mailto:", "data:", "javascript:"]
            .iter()
            .any(|known| word.starts_with(known))
}
