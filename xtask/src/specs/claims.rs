//! Claims: list items of a spec of the form `- **FILE-3** how it is met`.

use super::{is_id, resembles_id};

/// A requirement that a spec claims to be met.
#[derive(Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) id: String,
    /// `file:line`.
    pub(super) at: String,
}

/// Whether the name of a file in `specs/` is that of a spec: `NN-name.md`.
pub(super) fn is_spec(name: &str) -> bool {
    let name = name.as_bytes();
    name.len() > 6
        && name[..2].iter().all(u8::is_ascii_digit)
        && name[2] == b'-'
        && name.ends_with(b".md")
}

/// The claims of a spec, and the lines that resemble claims but are invalid.
pub(super) fn parse(path: &str, text: &str) -> (Vec<Claim>, Vec<String>) {
    let mut claims = Vec::new();
    let mut findings = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        fenced ^= line.starts_with("```");
        if fenced {
            continue;
        }
        let at = format!("{path}:{}", at + 1);
        let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) else {
            continue;
        };
        let Some(item) = item.trim_start().strip_prefix("**") else {
            continue;
        };
        match item.split_once("**") {
            Some((id, how)) if is_id(id) => {
                if how.trim().is_empty() {
                    findings.push(format!("{at}: {id}: say how it is met behind the ID"));
                }
                claims.push(Claim { id: id.into(), at });
            }
            _ => {
                let word = item.split([' ', '*', ':', ',']).next().unwrap_or(item);
                if resembles_id(word) {
                    findings.push(format!(
                        "{at}: `{word}` is no claim; the form is `- **FILE-3** how it is met`"
                    ));
                }
            }
        }
    }
    (claims, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_names_are_recognized() {
        let check = |name: &str, expect| assert_eq!(is_spec(name), expect, "{name}");
        check("01-execution.md", true);
        check("README.md", false);
        check("1-execution.md", false);
        check("01-.md", false);
        check("01-execution.txt", false);
        check("ü1.md", false);
        check("", false);
    }

    #[test]
    fn near_misses_of_claims_are_reported() {
        let check = |line: &str, ids: &[&str], findings: usize| {
            let (claims, wrong) = parse("specs/01-a.md", line);
            let found: Vec<_> = claims.iter().map(|claim| claim.id.as_str()).collect();
            assert_eq!(found, ids, "{line}");
            assert_eq!(wrong.len(), findings, "{line}: {wrong:?}");
        };
        check("- **EXE-1** text", &["EXE-1"], 0);
        check("  - **CLI-2a** text", &["CLI-2a"], 0);
        check("* **D-14** text", &["D-14"], 0);
        check("- **EXE-1** a\n- **EXE-2** b", &["EXE-1", "EXE-2"], 0);
        check("- **EXE-1**", &["EXE-1"], 1);
        check("- UTF-8 text", &[], 0);
        check("- **EXE1** text", &[], 1);
        check("- **EXE-1 text", &[], 1);
        check("- **EXE-1, EXE-2** text", &[], 1);
        check("text on EXE-1 and **EXE-2**", &[], 0);
        check("- text on **EXE-2**", &[], 0);
        check("- **Note** text", &[], 0);
        check("```\n- **EXE-1** text\n```", &[], 0);
        check("", &[], 0);
        check("- ", &[], 0);
        check("- **", &[], 0);
    }

    #[test]
    fn claim_has_its_line() {
        let (claims, _) = parse("specs/01-a.md", "# Title\n\n- **EXE-1** text");
        let expect = Claim {
            id: "EXE-1".into(),
            at: "specs/01-a.md:3".into(),
        };
        assert_eq!(claims, [expect]);
    }
}
