//! Texts that `echo` and `printf` write, and the shell that runs a program with such a text.

use super::shells::is_shell;

/// The output of `echo`. Shells differ in the meaning of a backslash.
pub(super) fn echoed(arguments: &[&str]) -> Option<String> {
    let (words, end) = match arguments {
        ["-n", words @ ..] => (words, ""),
        words => (words, "\n"),
    };
    let text = format!("{}{end}", words.join(" "));
    let is_option = |word: &&str| word.starts_with('-');
    (!text.contains('\\') && !words.first().is_some_and(is_option)).then_some(text)
}

/// The output of `printf` if the format has no other escapes than `\n`, `\t`, `\\`, `%%` and `%s`.
pub(super) fn printed(format: &str, values: &[&str]) -> Option<String> {
    let mut values = values.iter();
    let mut text = String::new();
    if format.starts_with('-') {
        return None;
    }
    loop {
        let before = values.len();
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => text.push(match characters.next()? {
                    'n' => '\n',
                    't' => '\t',
                    '\\' => '\\',
                    _ => return None,
                }),
                '%' => match characters.next()? {
                    '%' => text.push('%'),
                    's' => text.push_str(values.next().copied().unwrap_or_default()),
                    _ => return None,
                },
                character => text.push(character),
            }
        }
        // Without `%s`, the other values are ignored.
        if values.len() == 0 || values.len() == before {
            return Some(text);
        }
    }
}

/// The shell that runs a program with this text. A text without `#!` is run by the shell that starts it.
pub(super) fn shell_of(text: &str) -> Option<&str> {
    let Some(line) = text.strip_prefix("#!") else {
        return Some("bash");
    };
    let mut words = line.lines().next()?.split_whitespace();
    let interpreter = words.next()?;
    let (directory, name) = interpreter.rsplit_once('/')?;
    let name = match name {
        "env" => words.next()?,
        name => name,
    };
    let is_harmless = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|letter| "eufxv".contains(letter))
    };
    let is_system = ["/bin", "/usr/bin", "/usr/local/bin"].contains(&directory);
    (is_system && is_shell(name) && words.all(is_harmless)).then_some(name)
}
