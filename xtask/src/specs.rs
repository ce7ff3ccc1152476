//! `cargo xtask specs`: each claim in `specs/` has a test, and each cited requirement has a claim.
//!
//! `specs/README.md` describes both forms. [`claims`] reads the claims, [`citations`] the tests.

mod citations;
mod claims;

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;

use citations::Citation;
use claims::Claim;

use crate::project::{Project, verdict};

pub(crate) fn run(project: &Project, verbose: bool) -> Result<()> {
    let mut findings = Vec::new();
    let mut all_claims = Vec::new();
    let mut all_citations = Vec::new();
    for file in project.text_files()? {
        if let Some(name) = file.path.strip_prefix("specs/") {
            if claims::is_spec(name) {
                let (claims, wrong) = claims::parse(&file.path, &file.text);
                all_claims.extend(claims);
                findings.extend(wrong);
            } else if name != "README.md" {
                findings.push(format!(
                    "{}: a file in specs/ is named NN-name.md, else its claims go unread",
                    file.path
                ));
            }
        } else if file.path.ends_with(".rs") {
            let (citations, wrong) = citations::parse(&file.path, &file.text);
            all_citations.extend(citations);
            findings.extend(wrong);
        }
    }
    let (table, unmatched) = compare(&all_claims, &all_citations);
    findings.extend(unmatched);
    for (id, tests) in &table {
        println!("{id:<10} {:>3}", tests.len());
        if verbose {
            for test in tests {
                println!("             {test}");
            }
        }
    }
    println!("{} claimed, {} citations", table.len(), all_citations.len());
    verdict("specs", &findings)
}

/// A requirement ID: one to four capitals, a hyphen, a number, at most one lower-case letter.
fn is_id(word: &str) -> bool {
    let Some((area, number)) = word.split_once('-') else {
        return false;
    };
    let digits = number.strip_suffix(|c: char| c.is_ascii_lowercase());
    let digits = digits.unwrap_or(number);
    (1..=4).contains(&area.len())
        && area.bytes().all(|b| b.is_ascii_uppercase())
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a word is similar enough to an ID to be a mistyped one: capitals, an optional hyphen, a digit.
fn resembles_id(word: &str) -> bool {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let number = rest.trim_start_matches(['-', '_', '.']);
    rest.len() < word.len() && number.starts_with(|c: char| c.is_ascii_digit())
}

type Table<'a> = BTreeMap<&'a str, Vec<String>>;

/// The tests of each claimed ID, and the mismatches.
fn compare<'a>(claims: &'a [Claim], citations: &[Citation]) -> (Table<'a>, Vec<String>) {
    let mut table = Table::new();
    let mut findings = Vec::new();
    for claim in claims {
        if table.insert(&claim.id, Vec::new()).is_some() {
            findings.push(format!("{}: {} is claimed twice", claim.at, claim.id));
        }
    }
    let mut reported = HashSet::new();
    for citation in citations {
        match table.get_mut(citation.id.as_str()) {
            Some(tests) => tests.push(format!("{} {}", citation.at, citation.test)),
            None if reported.insert(citation.id.as_str()) => findings.push(format!(
                "{}: {} is cited by `{}`, but no file in specs/ claims it",
                citation.at, citation.id, citation.test
            )),
            None => {}
        }
    }
    for claim in claims {
        if table[claim.id.as_str()].is_empty() {
            findings.push(format!(
                "{}: {} is claimed, but no test cites it",
                claim.at, claim.id
            ));
        }
    }
    (table, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_similar_words_are_recognized() {
        let check = |word: &str, id: bool, resembles: bool| {
            assert_eq!((is_id(word), resembles_id(word)), (id, resembles), "{word}");
        };
        check("FILE-3", true, true);
        check("CLI-2a", true, true);
        check("D-14", true, true);
        check("FILE3", false, true);
        check("FILE_3", false, true);
        check("FILES-3", false, true);
        check("FILE-3ab", false, true);
        check("FILE-3..FILE-5", false, true);
        check("file-3", false, false);
        check("FILE-", false, false);
        check("-3", false, false);
        check("that", false, false);
        check("", false, false);
    }

    #[test]
    fn claims_and_citations_must_match() {
        let claim = |id: &str, at: &str| Claim {
            id: id.into(),
            at: at.into(),
        };
        let cite = |id: &str, at: &str| Citation {
            id: id.into(),
            at: at.into(),
            test: "t".into(),
        };
        let claims = [
            claim("A-1", "s:1"),
            claim("A-2", "s:2"),
            claim("A-1", "s:3"),
        ];
        let citations = [
            cite("A-1", "f:1"),
            cite("A-1", "f:9"),
            cite("A-3", "f:5"),
            cite("A-3", "f:6"),
        ];
        let (table, findings) = compare(&claims, &citations);
        assert_eq!(table["A-1"], ["f:1 t", "f:9 t"]);
        assert_eq!(
            findings,
            [
                "s:3: A-1 is claimed twice",
                "f:5: A-3 is cited by `t`, but no file in specs/ claims it",
                "s:2: A-2 is claimed, but no test cites it",
            ]
        );
        assert!(compare(&[], &[]).1.is_empty());
    }
}
