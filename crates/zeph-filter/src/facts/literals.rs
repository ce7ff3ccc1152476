//! Literals that a pattern requires.
//!
//! Every line that a pattern matches contains one of its required literals. The prefilter of the fact guard searches
//! these literals, so it follows from the patterns themselves.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The most literals of one pattern; more of them save no work.
const MAX_LITERALS: usize = 96;
/// The most strings that a part of a pattern may be replaced by.
const MAX_STRINGS: usize = 16;
/// The fewest bytes of a literal: shorter ones occur in most lines.
const MIN_LITERAL: usize = 3;

/// Literals in lower case; every match contains one of them in some case. `None`: no such literals are known, so
/// the pattern has to be tried on every line.
pub(super) fn required(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let literals = search(hir)?;
    let long = literals.iter().all(|literal| literal.len() >= MIN_LITERAL);
    (long && literals.len() <= MAX_LITERALS).then_some(literals)
}

fn search(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    if let Some(strings) = strings(hir) {
        return Some(strings);
    }
    match hir.kind() {
        HirKind::Capture(capture) => search(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => search(&repetition.sub),
        HirKind::Alternation(parts) => {
            let each: Option<Vec<_>> = parts.iter().map(search).collect();
            Some(each?.concat())
        }
        HirKind::Concat(parts) => best_of_concat(parts),
        _ => None,
    }
}

/// Of the literals of parts that follow one another the best ones.
fn best_of_concat(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let mut candidates = Vec::new();
    let mut run = vec![Vec::new()];
    for part in parts {
        let Some(next) = strings(part) else {
            candidates.push(std::mem::replace(&mut run, vec![Vec::new()]));
            candidates.extend(search(part));
            continue;
        };
        match product(&run, &next) {
            Some(longer) => run = longer,
            None => candidates.push(std::mem::replace(&mut run, next)),
        }
    }
    candidates.push(run);
    candidates.into_iter().max_by_key(|literals| {
        let shortest = literals.iter().map(Vec::len).min().unwrap_or(0);
        (shortest.min(6), std::cmp::Reverse(literals.len()))
    })
}

/// All strings that an expression matches, in lower case, if there are few.
fn strings(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(class) => characters(class),
        HirKind::Capture(capture) => strings(&capture.sub),
        HirKind::Repetition(repetition) => {
            let sub = strings(&repetition.sub)?;
            match (repetition.min, repetition.max) {
                (0, Some(1)) => Some([vec![Vec::new()], sub].concat()),
                (1, Some(1)) => Some(sub),
                _ => None,
            }
        }
        HirKind::Concat(parts) => {
            let start = Some(vec![Vec::new()]);
            let add = |all: Option<Vec<Vec<u8>>>, part| product(&all?, &strings(part)?);
            parts.iter().fold(start, add)
        }
        HirKind::Alternation(parts) => {
            let each: Option<Vec<_>> = parts.iter().map(strings).collect();
            let all = each?.concat();
            (all.len() <= MAX_STRINGS).then_some(all)
        }
    }
}

/// The characters of a small class, in lower case.
fn characters(class: &Class) -> Option<Vec<Vec<u8>>> {
    let mut all: Vec<Vec<u8>> = match class {
        Class::Bytes(class) => {
            let bytes = class
                .ranges()
                .iter()
                .flat_map(|range| range.start()..=range.end());
            bytes.take(2 * MAX_STRINGS).map(|byte| vec![byte]).collect()
        }
        Class::Unicode(class) => {
            let chars = class
                .ranges()
                .iter()
                .flat_map(|range| range.start()..=range.end());
            let chars = chars.take(2 * MAX_STRINGS);
            chars.map(|c| c.to_string().into_bytes()).collect()
        }
    };
    all.iter_mut().for_each(|text| text.make_ascii_lowercase());
    all.sort();
    all.dedup();
    // More characters make literals that occur by chance.
    (all.len() <= MAX_STRINGS / 2).then_some(all)
}

fn product(firsts: &[Vec<u8>], seconds: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    if firsts.len() * seconds.len() > MAX_STRINGS {
        return None;
    }
    let mut all = Vec::new();
    for first in firsts {
        all.extend(seconds.iter().map(|second| [&first[..], second].concat()));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::super::matcher::parsed;
    use super::*;

    #[test]
    fn literals_of_a_pattern_are_required() {
        let check = |pattern: &str, expect: Option<&[&str]>| {
            let found = required(&parsed(pattern).unwrap());
            let found = found.map(|literals| {
                let texts = literals
                    .iter()
                    .map(|text| String::from_utf8_lossy(text).into_owned());
                texts.collect::<Vec<_>>()
            });
            let expect = expect.map(|all| all.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(found, expect, "{pattern}");
        };
        check("error: ", Some(&["error: "]));
        check("(?i)Error", Some(&["error"]));
        check("^\\s*(?:warn|WARNING)\\b", Some(&["warn", "warning"]));
        check("\\d+ files? lost", Some(&[" file lost", " files lost"]));
        check("[Ss]egmentation", Some(&["segmentation"]));
        check("(?:abc)+x", Some(&["abc"]));
        check("abc|.*", None);
        check("^E\\d+ ", None);
        check("ab", None);
        check("(?:abc)?", None);
        check("(?:✗|✘) ", Some(&["✗ ", "✘ "]));
        check("(?:abc)?def", Some(&["def", "abcdef"]));
    }
}
