//! The arguments in the text of a custom command: `$ARGUMENTS`, and `$1` to `$9`.

use zeph_tools::words::split_words;

/// The place of all arguments.
const ALL: &str = "ARGUMENTS";

/// The text with the arguments in their places. If it has no place, the arguments follow it. Text of arguments is not
/// expanded again.
pub(super) fn expand(body: &str, arguments: &str) -> String {
    let words = split_words(arguments)
        .unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect());
    let mut text = String::with_capacity(body.len() + arguments.len());
    let mut has_place = false;
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix(ALL).filter(|after| !continues(after)) {
            text.push_str(arguments);
            has_place = true;
            rest = after;
        } else if let Some((number, after)) = digit(after) {
            text.push_str(words.get(number - 1).map_or("", String::as_str));
            has_place = true;
            rest = after;
        } else {
            text.push('$');
            rest = after;
        }
    }
    text.push_str(rest);
    if !has_place && !arguments.is_empty() {
        text.push_str("\n\n");
        text.push_str(arguments);
    }
    text
}

/// The number after `$`, and the text after it. `$10` is not a place.
fn digit(after: &str) -> Option<(usize, &str)> {
    let first = after.chars().next()?;
    let number = first.to_digit(10).filter(|number| *number > 0)?;
    let rest = &after[1..];
    (!continues(rest)).then_some((number as usize, rest))
}

/// Whether a name continues, as in `$ARGUMENTS_2`.
fn continues(after: &str) -> bool {
    after.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-8.
    #[test]
    fn arguments_replace_their_placeholders() {
        let check = |body, arguments, expect: &str| assert_eq!(expand(body, arguments), expect);
        check("Fix $ARGUMENTS now.", "the bug", "Fix the bug now.");
        check("$2 before $1, $3.", "a 'b c'", "b c before a, .");
        check("Fix $1, $2.", "#42 a#b", "Fix #42, a#b.");
        check("Fix it.", "in main.rs", "Fix it.\n\nin main.rs");
        check("Fix it.", "", "Fix it.");
        check(
            "$ARGUMENTS",
            "costs $1 and $ARGUMENTS",
            "costs $1 and $ARGUMENTS",
        );
        check(
            "$10 $HOME $ $ARGUMENTS_2 $$1",
            "x",
            "$10 $HOME $ $ARGUMENTS_2 $x",
        );
        check("$1|$2", "it's open", "it's|open");
    }
}
