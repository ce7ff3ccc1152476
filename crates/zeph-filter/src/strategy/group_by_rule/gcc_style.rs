//! One-line diagnostics that begin with their place: `src/a.c:3:5: warning: unused [-Wunused]`.
//!
//! Compilers (gcc, clang, javac, go) show the source below, with a gutter or with a line of `^` and `~`. Their
//! errors are unchanged, each with its first notes. All diagnostics of linters (flake8, pylint, mypy, ruff's
//! short form) are grouped.

use std::collections::HashSet;
use std::hash::BuildHasher;

use memchr::{memchr, memchr2, memchr3};

use super::super::line_buffer::HeldLines;
use super::{Diagnostic, Dialect, ExitInfo, Found, Line, OwnedLine};

/// Buffered lines below a diagnostic: the rest of its message, and the source.
const MAX_PENDING: usize = 4;
/// Notes of an error that are shown: in own code, and in libraries.
const NOTES: (u8, u8) = (4, 1);
/// Hashes of errors that were shown.
const MAX_REPORTED: usize = 8192;
/// Bytes of a message in a group.
const MAX_MESSAGE_BYTES: usize = 1000;

struct Colon {
    /// True for a compiler, whose errors are unchanged.
    compiler: bool,
    /// The diagnostic whose message may continue. Its memory is reused.
    open: Diagnostic,
    is_open: bool,
    /// True if indented lines below it continue the message.
    dashed: bool,
    /// A line with only a path: the file of the next diagnostics, which also contain it.
    file: Option<OwnedLine>,
    pending: HeldLines,
    /// True if a source excerpt may follow. `signs`: a suggested fix may follow the line of signs.
    excerpt: bool,
    signs: bool,
    /// True if the last diagnostic is an emitted error: indented lines below belong to it.
    told_error: bool,
    notes: (u8, u8),
    /// The last line that named the use of a template, before the error.
    needed: String,
    told: HashSet<u64>,
}

/// The dialect of compilers.
pub(super) fn compiler() -> Box<dyn Dialect> {
    start(true)
}

/// The dialect of linters.
pub(super) fn linter() -> Box<dyn Dialect> {
    start(false)
}

fn start(compiler: bool) -> Box<dyn Dialect> {
    Box::new(Colon {
        compiler,
        open: Diagnostic::default(),
        is_open: false,
        dashed: false,
        file: None,
        pending: HeldLines::default(),
        excerpt: false,
        signs: false,
        told_error: false,
        notes: (0, 0),
        needed: String::new(),
        told: HashSet::default(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Error,
    Warning,
    Note,
    /// The use of a template or of a macro.
    Needed,
}

/// The parsed first line of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header<'t> {
    place: &'t str,
    level: Level,
    /// The level as the tool prints it; empty if it is missing.
    word: &'t str,
    code: Option<&'t str>,
    message: &'t str,
}

/// Splits `src/a.c:3:5: …` into the place with its numbers and the rest.
fn place(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    // The path does not contain a space.
    let colon = memchr2(b':', b' ', bytes).filter(|at| bytes[*at] == b':')?;
    // The colon belongs to a drive, as in `C:\a.c:3`.
    let colon = match bytes.get(colon + 1) {
        Some(b'\\') if colon == 1 => 2 + memchr(b':', &bytes[2..])?,
        _ => colon,
    };
    let path = &bytes[..colon];
    if memchr3(b'.', b'/', b'\\', path).is_none() || memchr(b' ', path).is_some() {
        return None;
    }
    let mut end = colon;
    loop {
        let rest = text[end..].strip_prefix(':')?;
        let digits = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            break;
        }
        end += 1 + digits;
        if let Some(rest) = text[end..].strip_prefix(" - ") {
            return Some((&text[..end], rest));
        }
    }
    if end == colon {
        return None;
    }
    let rest = text[end..].strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with(' '))
        .then(|| (&text[..end], rest.strip_prefix(' ').unwrap_or(rest)))
}

fn header(text: &str, compiler: bool) -> Option<Header<'_>> {
    let (place, rest) = place(text.trim_ascii_start())?;
    if compiler && text.starts_with(' ') {
        return None;
    }
    if compiler && rest.starts_with("  ") {
        return Some(Header {
            place,
            level: Level::Needed,
            word: "",
            code: None,
            message: rest.trim_ascii_start(),
        });
    }
    let (word, message) = match rest.split_once(": ") {
        Some((word, message)) if is_level(word, compiler) => (word, message.trim_ascii()),
        _ => ("", rest.trim_ascii()),
    };
    if compiler && word.is_empty() && place.find(".go:").is_none() {
        return None;
    }
    let (code, message) = code(message);
    let flag = code.is_some_and(|code| code.starts_with("[-W") && !code.starts_with("[-Werror"));
    let level = match word {
        // The levels of most linters.
        "" | "error" if !compiler => Level::Warning,
        "note"
        | "remark"
        | "Anmerkung"
        | "Bemerkung"
        | "remarque"
        | "nota"
        | "примечание"
        | "注意"
        | "附注" => Level::Note,
        "warning" | "Warnung" => Level::Warning,
        _ if flag => Level::Warning,
        _ if compiler => Level::Error,
        _ => Level::Warning,
    };
    Some(Header {
        place,
        level,
        word,
        code,
        message,
    })
}

/// Parses a one-line diagnostic of a linter.
pub(super) fn one_line(line: Line<'_>) -> Option<Diagnostic> {
    let mut diagnostic = Diagnostic::default();
    set(&mut diagnostic, line.number, header(line.text, false)?);
    Some(diagnostic)
}

/// Assigns a parsed line to `diagnostic`, and reuses its memory.
fn set(diagnostic: &mut Diagnostic, number: u64, header: Header<'_>) {
    let message = header.message;
    let message = &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)];
    diagnostic.number = number;
    let again = |text: &mut String, new: &str| {
        text.clear();
        text.push_str(new);
    };
    again(&mut diagnostic.level, header.word);
    again(&mut diagnostic.message, message);
    again(&mut diagnostic.place, header.place);
    match (header.code, &mut diagnostic.code) {
        (Some(new), Some(code)) => again(code, new),
        (new, code) => *code = new.map(str::to_owned),
    }
}

/// Returns true if a word is a level. Compilers print it in any language.
fn is_level(word: &str, compiler: bool) -> bool {
    if compiler {
        let mut blanks = 0;
        return word.bytes().all(|byte| {
            blanks += usize::from(byte == b' ');
            blanks < 2 && (byte.is_ascii_alphabetic() || byte == b' ' || !byte.is_ascii())
        });
    }
    matches!(
        word,
        "error" | "warning" | "note" | "info" | "information" | "fatal error" | "style"
    )
}

/// Splits a message into the rule and the text. The rule is `[name-defined]`, `[-Wunused]` or
/// `(reportCallIssue)` at the end, or `E501 ` or `C0114: ` at the start.
fn code(message: &str) -> (Option<&str>, &str) {
    if let Some((rest, name)) = message
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('))
        && name.strip_prefix("report").is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    {
        return (Some(name), rest.trim_ascii_end());
    }
    if message.ends_with(']')
        && let Some(at) = message.rfind('[')
        && at > 0
        && message[at + 1..message.len() - 1]
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_=,./:+".contains(&byte))
        && message.len() - at > 3
    {
        return (Some(&message[at..]), message[..at].trim_ascii_end());
    }
    if !message
        .as_bytes()
        .first()
        .is_some_and(u8::is_ascii_uppercase)
    {
        return (None, message);
    }
    let word = message.split(' ').next().unwrap_or_default();
    let name = word.strip_suffix(':').unwrap_or(word);
    let letters = name.bytes().take_while(u8::is_ascii_uppercase).count();
    if letters > 0
        && name.len() > letters + 1
        && name[letters..].bytes().all(|byte| byte.is_ascii_digit())
        && message.len() > word.len()
    {
        return (Some(name), message[word.len()..].trim_ascii_start());
    }
    (None, message)
}

/// Returns true if a line is indented deeper than a diagnostic. Pyright uses non-breaking spaces.
fn is_set_off(text: &str) -> bool {
    let mut signs = text.chars();
    signs.by_ref().take(4).all(char::is_whitespace) && signs.next().is_some()
}

/// Returns true if a line is only a path.
fn is_file(text: &str) -> bool {
    let rest = text.get(1..2).filter(|colon| *colon == ":");
    (text.starts_with('/') || rest.is_some()) && !text.contains(' ') && text.contains('.')
}

/// Returns true for a line of signs below the source.
fn is_signs(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'^' | b'~' | b'|'))
        && memchr2(b'^', b'~', text.as_bytes()).is_some()
}

/// Returns true for a line with a gutter: `   13 |     int x;`, `      |     ^`.
fn is_gutter(text: &str) -> bool {
    let bytes = text.as_bytes().trim_ascii_start();
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    text.starts_with(' ') && bytes[digits.count()..].trim_ascii_start().starts_with(b"|")
}

/// Returns true for a line that names only the function or the including files. It ends with a colon or a
/// comma.
fn is_context(text: &str) -> bool {
    let Some(body) = text.strip_suffix([':', ',']) else {
        return false;
    };
    let included = body
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == ':')
        .len()
        < body.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if included {
        return true;
    }
    text.ends_with(':')
        && body.split_once(": ").is_some_and(|(path, _)| {
            !path.contains(' ') && path.contains('.') && !path.ends_with(".o")
        })
}

fn is_library(place: &str) -> bool {
    place.starts_with("/usr/") || place.contains("/include/c++/")
}

/// Emits a line that does not begin a diagnostic. An indented line after an error belongs to the error.
fn below(line: Line<'_>, told_error: bool, found: &mut Found<'_>) {
    if told_error && line.text.starts_with([' ', '\t']) {
        found.keep(line);
    } else {
        found.keep_after(line);
    }
}

impl Colon {
    /// Completes the open diagnostic. The buffered lines below it are not a source excerpt.
    fn close(&mut self, found: &mut Found<'_>) {
        if std::mem::take(&mut self.is_open) {
            found.diagnostic(&self.open);
        }
        if let Some(file) = self.file.take() {
            found.keep_after(file.line());
        }
        for held in self.pending.iter() {
            below(held, self.told_error, found);
        }
        self.pending.clear();
        self.excerpt = false;
        self.signs = false;
    }

    /// Processes a line of signs: the last buffered line is the source, the lines before it continue the
    /// message.
    fn signs(&mut self) {
        let source = self.pending.len().saturating_sub(1);
        for held in self.pending.iter().take(source) {
            if self.is_open {
                let open = &mut self.open;
                let rest = held.text.trim_ascii();
                if open.code.is_none() && rest.starts_with('[') && rest.ends_with(']') {
                    open.code = Some(rest.to_owned());
                } else if open.message.len() + rest.len() < MAX_MESSAGE_BYTES {
                    open.message.push(' ');
                    open.message.push_str(rest);
                }
            }
        }
        self.pending.clear();
        self.signs = true;
    }

    /// Appends an indented line to the open diagnostic. Pyright prints the rule at its end.
    fn more(&mut self, text: &str) {
        let (code, rest) = code(text);
        let open = &mut self.open;
        if let Some(code) = code {
            open.code = Some(code.to_owned());
        }
        if !rest.is_empty() && open.message.len() + rest.len() < MAX_MESSAGE_BYTES {
            open.message.push(' ');
            open.message.push_str(rest);
        }
    }

    fn header(&mut self, line: Line<'_>, header: Header<'_>, found: &mut Found<'_>) {
        self.file
            .take_if(|file| header.place.starts_with(file.text.as_str()));
        self.close(found);
        self.excerpt = true;
        self.told_error = header.level == Level::Error;
        match header.level {
            Level::Error => {
                let hash = self.told.hasher().hash_one(line.text);
                let known = self.told.contains(&hash);
                if !known {
                    if self.told.len() < MAX_REPORTED {
                        self.told.insert(hash);
                    }
                    found.keep_diagnostic(line);
                }
                self.notes = if known { (0, 0) } else { NOTES };
            }
            Level::Note if self.compiler => {
                let left = match is_library(header.place) {
                    true => &mut self.notes.1,
                    false => &mut self.notes.0,
                };
                if *left > 0 {
                    *left -= 1;
                    found.keep(line);
                }
            }
            Level::Needed => {
                if !is_library(header.place) && self.needed != line.text {
                    self.needed.clear();
                    self.needed.push_str(line.text);
                    found.keep(line);
                }
            }
            Level::Warning | Level::Note => {
                self.notes = (0, 0);
                set(&mut self.open, line.number, header);
                self.is_open = true;
                let rest = &line.text.trim_ascii_start()[header.place.len()..];
                self.dashed = rest.starts_with(" - ");
            }
        }
    }
}

impl Dialect for Colon {
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>) {
        let text = line.text.trim_ascii_end();
        let line = Line { text, ..line };
        if let Some(header) = header(text, self.compiler) {
            self.header(line, header, found);
            return;
        }
        if text.is_empty() {
            self.close(found);
            return;
        }
        if self.is_open && self.dashed && is_set_off(text) {
            self.more(text.trim());
            return;
        }
        if !self.compiler && is_file(text) {
            self.close(found);
            self.file = Some(line.into());
            return;
        }
        if self.excerpt {
            if is_gutter(text) {
                return;
            }
            if is_signs(text) {
                self.signs();
                return;
            }
            // The line after the signs is a suggested fix without a name.
            if std::mem::take(&mut self.signs)
                && text.starts_with(' ')
                && !text.trim_ascii_start().contains(": ")
            {
                return;
            }
        }
        if self.compiler && is_context(text) {
            return;
        }
        if self.excerpt && self.pending.len() < MAX_PENDING {
            self.pending.push(line);
        } else {
            self.close(found);
            below(line, self.told_error, found);
        }
    }

    fn finish(&mut self, _end: ExitInfo, found: &mut Found<'_>) {
        self.close(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        let check = |text: &str, compiler, expect: Option<(&str, Level, Option<&str>, &str)>| {
            let read = header(text, compiler);
            let read = read.map(|read| (read.place, read.level, read.code, read.message));
            assert_eq!(read, expect, "{text}");
        };
        check(
            "src/a.c:3:5: warning: unused [-Wunused]",
            true,
            Some(("src/a.c:3:5", Level::Warning, Some("[-Wunused]"), "unused")),
        );
        check(
            "src/a.c:3:5: Warnung: unbenutzt [-Wunused]",
            true,
            Some((
                "src/a.c:3:5",
                Level::Warning,
                Some("[-Wunused]"),
                "unbenutzt",
            )),
        );
        check(
            "src/a.c:3:5: schwerwiegender Fehler: x.h fehlt",
            true,
            Some(("src/a.c:3:5", Level::Error, None, "x.h fehlt")),
        );
        check(
            "a.cpp:11:46:   required from here",
            true,
            Some(("a.cpp:11:46", Level::Needed, None, "required from here")),
        );
        check(
            "App.java:3: error: ';' expected",
            true,
            Some(("App.java:3", Level::Error, None, "';' expected")),
        );
        check(
            "cart/cart.go:10:9: undefined: x",
            true,
            Some(("cart/cart.go:10:9", Level::Error, None, "x")),
        );
        check(
            "./a.py:1:10: E401 multiple imports",
            false,
            Some((
                "./a.py:1:10",
                Level::Warning,
                Some("E401"),
                "multiple imports",
            )),
        );
        check(
            "a.py:1: error: no  [name-defined]",
            false,
            Some(("a.py:1", Level::Warning, Some("[name-defined]"), "no")),
        );
        check(
            "  /a.py:4:8 - error: no (reportX)",
            false,
            Some(("/a.py:4:8", Level::Warning, Some("reportX"), "no")),
        );
        check("12:30:45: error: x", true, None);
        check("see the manual: error: x", true, None);
        check("make: *** [Makefile:3: all] Error 2", true, None);
        check(
            "src/a.cpp:(.text+0x1c): undefined reference to `x'",
            true,
            None,
        );
    }

    proptest::proptest! {
        #[test]
        fn byte_checks_equal_character_checks(
            text in "[a-cé ]{0,9}[:0_]?| {0,3}[0-9]{0,2} {0,2}[|a]?.{0,3}|[ \t^~|]{0,6}a?",
        ) {
            let words = text.split(' ').count();
            let letters = |sign: char| sign.is_alphabetic() || sign == ' ' || !sign.is_ascii();
            proptest::prop_assert_eq!(is_level(&text, true), words <= 2 && text.chars().all(letters));
            let gutter = text.trim_ascii_start().trim_start_matches(|c: char| c.is_ascii_digit());
            let gutter = gutter.trim_ascii_start().starts_with('|');
            proptest::prop_assert_eq!(is_gutter(&text), text.starts_with(' ') && gutter);
            let signs = text.bytes().all(|byte| b" \t^~|".contains(&byte));
            proptest::prop_assert_eq!(is_signs(&text), text.contains(['^', '~']) && signs);
        }
    }
}
