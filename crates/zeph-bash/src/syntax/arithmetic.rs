//! Assignments in arithmetic: `((NAME=1))`, `$((NAME++))`, `let`, subscripts.

use super::ast::{Assignment, Connector, Construct, Kind, List, Pipeline, Substitution};
use super::parse::plain;
use super::special_variables::is_environment;

/// The variables that the arithmetic expression `text` sets.
pub(crate) fn assigned(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    let mut before = "";
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        before = if at > 0 { &rest[..at] } else { before };
        let word = &rest[at..];
        let end = word
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(word.len());
        let (name, after) = word.split_at(end);
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit());
        let changed = before.trim_end().ends_with("++") || before.trim_end().ends_with("--");
        if is_name && (changed || sets(after)) {
            names.push(name.to_owned());
        }
        before = "";
        rest = after;
    }
    names
}

/// Whether the text after a name sets the variable.
fn sets(after: &str) -> bool {
    let mut after = after;
    if after.starts_with('[') {
        let Some(end) = after.find(']') else {
            return true;
        };
        after = &after[end + 1..];
    }
    let after = after.trim_start();
    if after.starts_with("++") || after.starts_with("--") {
        return true;
    }
    let operators = ["<<", ">>", "+", "-", "*", "/", "%", "&", "^", "|", ""];
    operators
        .iter()
        .filter_map(|operator| after.strip_prefix(operator))
        .any(|rest| rest.starts_with('=') && !rest.starts_with("=="))
}

/// The assignments of an arithmetic expression to variables that programs see, as a list of commands.
pub(crate) fn substitution(text: &str) -> Option<Substitution> {
    // Other variables get numbers, which are not names of programs.
    let mut names = assigned(text);
    names.retain(|name| is_environment(name));
    if names.is_empty() {
        return None;
    }
    let assignments = names.into_iter().map(Assignment::unknown).collect();
    let command = plain(Kind::Simple {
        assignments,
        words: Vec::new(),
    });
    Some(Substitution {
        construct: Construct::Arithmetic,
        body: List {
            pipelines: vec![Pipeline {
                commands: vec![command],
                then: Connector::Next,
            }],
            ..List::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-12: an assignment inside of a calculation sets a variable.
    #[test]
    fn calculations_set_variables() {
        let check = |text: &str, expect: &[&str]| assert_eq!(assigned(text), expect, "{text}");
        check("PATH=0", &["PATH"]);
        check("PATH = 0", &["PATH"]);
        check("PATH\n=0", &["PATH"]);
        check("x+=1, PATH=2", &["x", "PATH"]);
        check("a ? PATH=1 : (IFS=2)", &["PATH", "IFS"]);
        check("i++", &["i"]);
        check("i ++", &["i"]);
        check("++i", &["i"]);
        check("-- i", &["i"]);
        check("i--", &["i"]);
        check("a[i]=1", &["a"]);
        check("a[i++]=1", &["a", "i"]);
        check("a[1", &["a"]);
        check("x<<=2", &["x"]);
        check("x>>=2", &["x"]);
        check("x|=2", &["x"]);
        check("x^=2", &["x"]);
        check("x%=2", &["x"]);
        check("x==1", &[]);
        check("x <= 1", &[]);
        check("x >= 1", &[]);
        check("x != 1", &[]);
        check("x < 1 && y > 2", &[]);
        check("x + y", &[]);
        check("x - -y", &[]);
        check("1+2", &[]);
        check("16#ff", &[]);
        check("x[1]", &[]);
        check("x*y", &[]);
        check("", &[]);
    }
}
