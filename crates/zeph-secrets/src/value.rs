//! Checks that distinguish secret values from words, references and placeholders.

use std::sync::LazyLock;

use super::literal_set::LiteralSet;

/// The number of different bytes in a text.
pub(super) fn variety(text: &str) -> usize {
    let mut seen = [false; 256];
    let mut count = 0;
    for byte in text.bytes() {
        count += usize::from(!std::mem::replace(&mut seen[usize::from(byte)], true));
    }
    count
}

/// Texts that replace a value in examples and templates.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "redacted",
    "your_",
    "your-",
    "yourpass",
    "yourtoken",
    "yoursecret",
    "yourkey",
    "****",
    "....",
    "dummy",
    "insert",
    "replace",
    "todo",
    "fixme",
    "foobar",
    "notasecret",
    "not-a-secret",
    "undefined",
    "supersecret",
    "test-key",
    "testkey",
    "test_key",
    "my-secret",
    "mysecret",
    "my_secret",
    "s3cr3t_here",
    "notreal",
    "not-real",
    "invalid",
];

static PLACEHOLDER: LazyLock<LiteralSet> =
    LazyLock::new(|| LiteralSet::new(PLACEHOLDERS.iter().copied()));

/// Whether a text is a placeholder for a value: `<token>`, `xxxx`, `changeme`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    PLACEHOLDER.find(lower.as_bytes(), 0).is_some()
        || text.contains(['<', '>', '…'])
        || is_crossed_out(&lower)
        || is_sequence(text)
}

/// Whether a run of `x` is at least a quarter of a text.
fn is_crossed_out(lower: &str) -> bool {
    let longest = lower
        .split(|c| c != 'x')
        .map(str::len)
        .max()
        .unwrap_or_default();
    longest >= 4 && longest * 4 >= lower.len()
}

/// Whether the characters of a longer text count up, as in `1234567890abcdef` or `abcdefgh…`.
fn is_sequence(text: &str) -> bool {
    let bytes = text.as_bytes();
    let pairs = bytes.windows(2).count();
    let steps = bytes
        .windows(2)
        .filter(|pair| pair[1] == pair[0].wrapping_add(1))
        .count();
    pairs >= 7 && steps * 4 >= pairs * 3
}

/// Whether a text consists of words, with few digits at their ends: `my-token-1`, `self.password`.
pub(super) fn is_wordy(text: &str) -> bool {
    text.split(['-', '_', '.', '/', ':', ' ', ',']).all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        let is_word = letters.bytes().all(|byte| byte.is_ascii_alphabetic())
            && has_steady_case(letters)
            && letters.len() <= 16;
        is_word && digits <= if letters.is_empty() { 4 } else { 2 }
    })
}

/// Whether letters have the case of words: lower case, upper case, or camel case with few capitals.
fn has_steady_case(letters: &str) -> bool {
    let bytes = letters.as_bytes();
    let is_upper = |byte: &u8| byte.is_ascii_uppercase();
    if bytes.iter().all(is_upper) {
        return true;
    }
    let turns = bytes
        .windows(2)
        .filter(|pair| is_upper(&pair[1]) && !is_upper(&pair[0]))
        .count();
    let capitals = bytes.iter().filter(|byte| is_upper(byte)).count();
    turns * 4 <= bytes.len() && capitals * 3 <= bytes.len().max(3)
}

/// Whether a text is a UUID.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a text is a number, a date or a version.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| {
            byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':' | b'T' | b'Z' | b'+' | b'_')
        })
}

/// The kind of value that a name announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameHint {
    /// A value that the user may have chosen.
    Password,
    /// A generated value.
    Secret,
    /// A generated value, announced by a word that has other meanings too.
    Token,
}

/// The syntax of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// In quotes.
    Quoted,
    /// `NAME=value`, as in shells and `.env` files.
    Environment,
    /// Alone after its name: up to the end of the line, or as `name=value`.
    Alone,
    /// Possibly part of a program.
    Code,
}

/// Whether a text is a secret value.
pub(super) fn is_secret(text: &str, promise: NameHint, written: Written) -> bool {
    let least = if promise == NameHint::Password { 6 } else { 8 };
    if text.len() < least || text.chars().any(char::is_whitespace) || refers(text) {
        return false;
    }
    if variety(text) < 4 || is_placeholder(text) {
        return false;
    }
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let digit = has(u8::is_ascii_digit);
    let letter = has(u8::is_ascii_alphabetic);
    let sign = has(|byte| {
        matches!(
            byte,
            b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'~' | b'+' | b'='
        )
    });
    if is_number(text) {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        return digits && promise == NameHint::Password && written != Written::Code;
    }
    if !letter {
        return promise == NameHint::Password && sign && digit;
    }
    if is_uuid(text) {
        return promise != NameHint::Token;
    }
    if written == Written::Code && is_expression(text) {
        return false;
    }
    if is_wordy(text) {
        let named = names_itself(text);
        return match (promise, written) {
            (NameHint::Password, Written::Environment) => !named && (digit || text.len() >= 8),
            (NameHint::Secret, Written::Environment) => !named && text.len() >= 12,
            (NameHint::Password, Written::Quoted | Written::Alone) => {
                digit && !named && !text.contains(['.', '/', ':', '-', ','])
            }
            _ => false,
        };
    }
    if digit {
        return true;
    }
    match promise {
        NameHint::Password => {
            sign || written == Written::Environment || turns(text) * 4 >= text.len()
        }
        _ => text.len() >= 16 && (turns(text) * 4 >= text.len() || written == Written::Environment),
    }
}

/// The number of changes between upper case, lower case and other characters.
pub(super) fn turns(text: &str) -> usize {
    let class = |byte: u8| (byte.is_ascii_uppercase(), byte.is_ascii_lowercase());
    text.as_bytes()
        .windows(2)
        .filter(|pair| class(pair[0]) != class(pair[1]))
        .count()
}

/// Whether a value refers to another place, or is computed.
fn refers(text: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "$", "<", "{", "%", "[", "(", "@", "#{", "`", "/", "./", "../", "~/", "\\", "env:",
        "vault:", "ref+", "op://", "file:", "arn:", "data:", "ENC[", "sha256", "sha512", "sha1-",
        "md5", "ssm:", "http:", "https:", "urn:", "uuid:", "--",
    ];
    let is_path = text.starts_with('/') && (text.len() < 32 || is_wordy(text));
    (BEGINNINGS
        .iter()
        .any(|beginning| text.starts_with(beginning))
        && !text.starts_with('/')
        && !is_sign_start(text))
        || is_path
        || [
            "${", "{{", "$(", "://", "#{", "<%", "\\(", "{}", "{0}", "%s",
        ]
        .iter()
        .any(|part| text.contains(part))
}

/// Whether a text that begins with `$`, `%` or `@` is a password, not a reference.
fn is_sign_start(text: &str) -> bool {
    let rest = text.trim_start_matches(['$', '%', '@', '(', '[', '{', '`']);
    text.len() - rest.len() == 1
        && text.starts_with(['$', '%', '@'])
        && !is_wordy(rest)
        && rest.bytes().any(|byte| byte.is_ascii_digit())
        && rest.bytes().any(|byte| {
            byte.is_ascii_punctuation()
                && !matches!(
                    byte,
                    b'_' | b'.' | b'-' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'\'' | b'"'
                )
        })
}

/// Whether a text is part of a program: a call, a module path, an index.
fn is_expression(text: &str) -> bool {
    text.contains(['(', ')', '[', ']', '{', '}', '|', '\\', '*'])
        || ["::", "->", "=>", "&&"]
            .iter()
            .any(|part| text.contains(part))
        || text.starts_with('&')
        || text.split('.').all(is_identifier)
}

/// Whether a text is an identifier with few digits.
fn is_identifier(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && (digits * 6 <= text.len()
            || text.trim_end_matches(|c: char| c.is_ascii_digit()).len() + digits == text.len())
        && has_steady_case(text)
}

/// Words that describe values. A text that contains one is likely a description, not a value.
const NAMES: &[&str] = &[
    "passw",
    "passphrase",
    "secret",
    "token",
    "key",
    "user",
    "admin",
    "test",
    "demo",
    "credential",
    "string",
    "default",
    "none",
    "null",
    "true",
    "false",
    "hidden",
    "required",
    "optional",
    "disabled",
    "enabled",
    "value",
    "auth",
    "login",
    "prompt",
    "field",
    "input",
    "text",
];

static NAME: LazyLock<LiteralSet> = LazyLock::new(|| LiteralSet::new(NAMES.iter().copied()));

/// Whether a text contains a word that describes a value: `password1`, `access-token`.
fn names_itself(text: &str) -> bool {
    NAME.find(text.to_ascii_lowercase().as_bytes(), 0).is_some()
}
