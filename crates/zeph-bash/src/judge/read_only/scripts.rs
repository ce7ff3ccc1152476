//! Scripts in the arguments of `awk`, `sed`, `jq` and `printf`: whether they only read their input.

use super::table::Language;
use crate::judge::programs::{awk_starts_commands, sed_only_reads_input};

/// Texts of awk that read other files, or replace the list of files.
const AWK: &[&str] = &["ARGV", "ARGC", "ARGIND", "SYMTAB", "FUNCTAB", "/inet"];
/// Words of jq that load modules or data.
const JQ: &[&str] = &["import", "include", "modulemeta"];

/// Why `script` may do more than read its input.
pub(super) fn objection(language: Language, script: &str) -> Option<String> {
    let has = |texts: &[&str]| texts.iter().any(|text| script.contains(text));
    let (name, is_pure) = match language {
        Language::Awk => (
            "awk",
            !awk_starts_commands(script) && !has(AWK) && !awk_redirects(script),
        ),
        Language::Sed => ("sed", sed_only_reads_input(script)),
        Language::Jq => ("jq", !has(JQ)),
        Language::Printf => ("printf", !sets_variable(script)),
    };
    (!is_pure).then(|| format!("the script for `{name}` may do more than read its input"))
}

/// Whether an awk program may write to a file or start a command. After `print`, `>` redirects and `|` pipes. To
/// tell them from operators would need a parser, because strings and patterns can contain anything.
fn awk_redirects(program: &str) -> bool {
    let Some(at) = program.find("print") else {
        return false;
    };
    let mut rest = program[at..].chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '|' if rest.next_if_eq(&'|').is_some() => {}
            '>' if rest.next_if_eq(&'=').is_some() => {}
            '|' | '>' => return true,
            _ => {}
        }
    }
    false
}

/// Whether a format of `printf` has the conversion `n`, which sets a variable.
fn sets_variable(format: &str) -> bool {
    let modifiers = |c: char| !(c.is_ascii_digit() || "-+ #.*'hljztqL".contains(c));
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        let at = after.find(modifiers).unwrap_or(after.len());
        let mut conversion = after[at..].chars();
        if conversion.next() == Some('n') {
            return true;
        }
        rest = conversion.as_str();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PERM-9.
    #[test]
    fn scripts_that_write_or_read_elsewhere_are_found() {
        let check = |language, script: &str, expect: bool| {
            assert_eq!(objection(language, script).is_none(), expect, "{script}");
        };
        for (script, expect) in [
            ("{print $1}", true),
            ("$3 > 5 {print $1, $2}", true),
            ("/a|b/ {n++} END {print n}", true),
            ("NR >= 10 && NR <= 20", true),
            ("{if ($1 >= 2 || $2) print}", true),
            ("{print > \"f\"}", false),
            ("{print >> \"f\"}", false),
            ("{printf \"%s\", $1 > $2}", false),
            ("{print; x = y > z}", false),
            ("{print | \"sh\"}", false),
            ("{print a|b/c}", false),
            ("{print |& \"sh\"}", false),
            ("BEGIN {system(\"ls\")}", false),
            ("BEGIN {while ((\"ls\" | getline x) > 0) print x}", false),
            ("BEGIN {getline x < \"/etc/passwd\"}", false),
            ("BEGIN {ARGV[1] = \"/etc/passwd\"; ARGC = 2}", false),
            ("@load \"filefuncs\"", false),
        ] {
            check(Language::Awk, script, expect);
        }
        for (script, expect) in [
            ("1,20p", true),
            ("s/a/b/g", true),
            ("/x/,/y/{s/w/W/;p}", true),
            ("$!d", true),
            ("s/a/b/w f", false),
            ("w f", false),
            ("1W f", false),
            ("r /etc/passwd", false),
            ("R f", false),
            ("e", false),
            ("s/x/y/e", false),
            ("s/a/b", false),
            ("s/a/b/gw /dev/stdout", false),
            ("a text\nw f", false),
            (":a;w f", false),
        ] {
            check(Language::Sed, script, expect);
        }
        check(Language::Jq, ".a[] | select(.b > 1)", true);
        check(Language::Jq, "import \"/etc/x\" as $x; $x", false);
        check(Language::Jq, "include \"x\"; .", false);
        check(Language::Printf, "%s%%n\n", true);
        check(Language::Printf, "%-5d%(%F)T%s\n", true);
        check(Language::Printf, "%n", false);
        check(Language::Printf, "%s%-5.3ln", false);
    }
}
