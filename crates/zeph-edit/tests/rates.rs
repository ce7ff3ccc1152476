//! How often the edit engine finds the requested place: edits of real sources, with the mistakes that models make.
//! `cargo xtask bench --edits` prints the table.
//!
//! Every case states the expected content, or that the edit is refused. An edit of a wrong place, or a changed byte
//! outside of the place, is a failure.
#![allow(clippy::print_stdout)]

use zeph_edit::{Replacement, edit};

/// Sources of this crate: code, prose, data.
const SOURCES: &[&str] = &[
    include_str!("../src/edit.rs"),
    include_str!("../src/encoding.rs"),
    include_str!("../src/fuzzy_match.rs"),
    include_str!("../src/fuzzy_match/tests.rs"),
    include_str!("../src/indentation.rs"),
    include_str!("../src/nearest_match.rs"),
    include_str!("../README.md"),
    include_str!("../Cargo.toml"),
];
/// Places that are edited in each.
const PLACES: usize = 8;

/// A requested edit.
struct Case {
    content: Vec<u8>,
    old: String,
    new: String,
    /// The expected content; `None` if the edit must be refused.
    expect: Option<Vec<u8>>,
    /// The number of bytes before and after the requested place.
    before: usize,
    behind: usize,
}

/// A place in a source: the text before it, its lines, the text after it, and the new lines. The first and the last
/// line are not blank.
struct Place<'s> {
    before: &'s str,
    old: &'s str,
    behind: &'s str,
    new: String,
}

impl Place<'_> {
    /// An edit of this place, with the file and the request in other forms.
    fn asked(&self, file: impl Fn(&str) -> Vec<u8>, ask: impl Fn(&str) -> String) -> Case {
        let (before, old, behind) = (file(self.before), file(self.old), file(self.behind));
        let expect = [&before[..], &file(&self.new), &behind].concat();
        Case {
            expect: Some(expect),
            before: before.len(),
            behind: behind.len(),
            content: [before, old, behind].concat(),
            old: ask(self.old),
            new: ask(&self.new),
        }
    }

    /// An edit of another content, which must be refused.
    fn refused(&self, content: String) -> Case {
        Case {
            content: content.into_bytes(),
            old: self.old.to_owned(),
            new: self.new.clone(),
            expect: None,
            before: 0,
            behind: 0,
        }
    }
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    let changed = |line: &str| {
        if line.trim().is_empty() {
            line.to_owned()
        } else {
            change(line)
        }
    };
    text.split('\n').map(changed).collect::<Vec<_>>().join("\n")
}

fn typographic(text: &str) -> String {
    text.replace(" \"", " \u{201c}")
        .replace('"', "\u{201d}")
        .replace('\'', "\u{2019}")
        .replace(" - ", " \u{2013} ")
}

fn has_signs(text: &str) -> bool {
    text.contains(['"', '\'']) || text.contains(" - ")
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Leading blanks, four for a tab.
fn tabs(text: &str) -> String {
    each_line(text, |line| {
        let rest = line.trim_start_matches("    ");
        format!("{}{rest}", "\t".repeat((line.len() - rest.len()) / 4))
    })
}

type Rule = fn(&Place<'_>) -> Option<Case>;

/// The mistakes of the request, and the properties of the file.
const KINDS: &[(&str, Rule)] = &[
    ("none", |p| Some(p.asked(bytes, str::to_owned))),
    ("asked four blanks further in", |p| {
        Some(p.asked(bytes, |text| each_line(text, |line| format!("    {line}"))))
    }),
    ("asked four blanks further out", |p| {
        let inside = [p.old, &p.new].into_iter().flat_map(str::lines);
        let all = inside
            .filter(|line| !line.trim().is_empty())
            .all(|line| line.starts_with("    "));
        all.then(|| p.asked(bytes, |text| each_line(text, |line| line[4..].to_owned())))
    }),
    ("asked with tabs, the file has blanks", |p| {
        p.old.contains("    ").then(|| p.asked(bytes, tabs))
    }),
    ("asked with blanks, the file has tabs", |p| {
        p.old
            .contains("    ")
            .then(|| p.asked(|text| bytes(&tabs(text)), str::to_owned))
    }),
    ("asked with blanks at the ends of lines", |p| {
        let mut case = p.asked(bytes, str::to_owned);
        case.old = each_line(p.old, |line| format!("{line}  "));
        Some(case)
    }),
    ("the file has blanks at the ends of lines", |p| {
        let (first, rest) = p.old.split_once('\n')?;
        let (new_first, new_rest) = p.new.split_once('\n')?;
        (first == new_first).then(|| Case {
            content: bytes(&format!("{}{first}  \n{rest}{}", p.before, p.behind)),
            old: p.old.to_owned(),
            new: p.new.clone(),
            expect: Some(bytes(&format!(
                "{}{first}  \n{new_rest}{}",
                p.before, p.behind
            ))),
            before: p.before.len(),
            behind: p.behind.len(),
        })
    }),
    ("CR LF in the file", |p| {
        Some(p.asked(|text| bytes(&text.replace('\n', "\r\n")), str::to_owned))
    }),
    ("CR LF in the requested text", |p| {
        p.old
            .contains('\n')
            .then(|| p.asked(bytes, |text| text.replace('\n', "\r\n")))
    }),
    ("both endings in the file", |p| {
        let mut case = p.asked(bytes, str::to_owned);
        let before = p.before.replace("}\n", "}\r\n");
        case.content = [before.as_bytes(), p.old.as_bytes(), p.behind.as_bytes()].concat();
        case.expect = Some([before.as_bytes(), p.new.as_bytes(), p.behind.as_bytes()].concat());
        case.before = before.len();
        Some(case)
    }),
    ("typographic signs in the file", |p| {
        let file = |text: &str| bytes(&typographic(text));
        has_signs(p.old).then(|| p.asked(file, str::to_owned))
    }),
    ("typographic signs in the requested text", |p| {
        has_signs(p.old).then(|| p.asked(bytes, typographic))
    }),
    ("no final line ending", |p| {
        let mut case = p.asked(bytes, |text| format!("{text}\n"));
        let text = |middle: &str| [p.before, middle].concat().into_bytes();
        (case.content, case.behind) = (text(p.old), 0);
        case.expect = Some(text(&p.new));
        Some(case)
    }),
    ("a byte order mark", |p| {
        let mut case = p.asked(bytes, str::to_owned);
        let marked = |text: &[u8]| [&b"\xef\xbb\xbf"[..], text].concat();
        case.content = marked(&case.content);
        case.expect = case.expect.map(|text| marked(&text));
        case.before += 3;
        Some(case)
    }),
    ("Latin-1 elsewhere in the file", |p| {
        let mut case = p.asked(bytes, str::to_owned);
        let with = |text: &[u8]| [text, &b"// caf\xe9 \xfc\n"[..]].concat();
        case.content = with(&case.content);
        case.expect = case.expect.map(|text| with(&text));
        case.behind += 11;
        Some(case)
    }),
    ("UTF-16 in the file", |p| {
        let mut case = p.asked(utf16, str::to_owned);
        let marked = |text: &[u8]| [&b"\xff\xfe"[..], text].concat();
        case.content = marked(&case.content);
        case.expect = case.expect.map(|text| marked(&text));
        case.before += 2;
        Some(case)
    }),
    (
        "CR LF, and blanks at the line ends of the requested text",
        |p| {
            let mut case = p.asked(|text| bytes(&text.replace('\n', "\r\n")), str::to_owned);
            case.old = each_line(p.old, |line| format!("{line} "));
            Some(case)
        },
    ),
    ("a near twin after it", |p| {
        let twin = p.old.replacen(|c: char| c.is_ascii_alphabetic(), "Q", 1);
        let mut case = p.asked(bytes, str::to_owned);
        let with = |text: &[u8]| [text, b"\n", twin.as_bytes(), b"\n"].concat();
        case.content = with(&case.content);
        case.expect = case.expect.map(|text| with(&text));
        case.behind += twin.len() + 2;
        Some(case)
    }),
    ("a near twin after it, asked further in", |p| {
        let twin = p.old.replacen(|c: char| c.is_ascii_alphabetic(), "Q", 1);
        let mut case = p.asked(bytes, |text| each_line(text, |line| format!("  {line}")));
        let with = |text: &[u8]| [text, b"\n", twin.as_bytes(), b"\n"].concat();
        case.content = with(&case.content);
        case.expect = case.expect.map(|text| with(&text));
        case.behind += twin.len() + 2;
        Some(case)
    }),
    ("to be refused: the text occurs twice", |p| {
        Some(p.refused(format!("{}{}{}\n{}\n", p.before, p.old, p.behind, p.old)))
    }),
    ("to be refused: twice when indentation is ignored", |p| {
        let shifted = |by: &str| each_line(p.old, |line| format!("{by}{line}"));
        let mut case = p.refused(format!("{}\n{}\n", shifted("  "), shifted("      ")));
        case.old = p.old.to_owned();
        Some(case)
    }),
    ("to be refused: the place was changed meanwhile", |p| {
        let changed = p.old.replacen(|c: char| c.is_ascii_alphabetic(), "Q", 1);
        Some(p.refused(format!("{}{changed}{}", p.before, p.behind)))
    }),
    ("to be refused: it was changed, and asked further in", |p| {
        let changed = p.old.replacen(|c: char| c.is_ascii_alphabetic(), "Q", 1);
        let mut case = p.refused(format!("{}{changed}{}", p.before, p.behind));
        (case.old, case.new) = (
            each_line(p.old, |line| format!("  {line}")),
            each_line(&p.new, |line| format!("  {line}")),
        );
        Some(case)
    }),
    ("to be refused: the place is gone", |p| {
        Some(p.refused(format!("{}{}", p.before, p.behind)))
    }),
    ("to be refused: it has been made", |p| {
        Some(p.refused(format!("{}{}{}", p.before, p.new, p.behind)))
    }),
    ("to be refused: it has been made, asked further in", |p| {
        let mut case = p.refused(format!("{}{}{}", p.before, p.new, p.behind));
        (case.old, case.new) = (
            each_line(p.old, |line| format!("  {line}")),
            each_line(&p.new, |line| format!("  {line}")),
        );
        Some(case)
    }),
];

/// Places of a source with a unique text, spread over it.
fn places(source: &str) -> Vec<Place<'_>> {
    let mut starts = vec![0];
    starts.extend(source.match_indices('\n').map(|(at, _)| at + 1));
    let mut places = Vec::new();
    for nth in 0..PLACES {
        let first = starts.len() * (2 * nth + 1) / (2 * PLACES + 1);
        let length = 1 + nth % 5;
        let place = (first..starts.len().saturating_sub(length + 1))
            .take(40)
            .find_map(|first| {
                let (start, end) = (starts[first], starts[first + length] - 1);
                let old = &source[start..end];
                let solid = |line: &str| line.trim().len() > 12;
                let whole = old.split('\n').next().is_some_and(solid)
                    && old.rsplit('\n').next().is_some_and(solid);
                (whole && source.matches(old).count() == 1).then_some((start, end, old))
            });
        let Some((start, end, old)) = place else {
            continue;
        };
        // The last line is changed; every other time a line is added.
        let head = old.rfind('\n').map_or("", |at| &old[..=at]);
        let last = &old[head.len()..];
        let indent = &last[..last.len() - last.trim_start().len()];
        let word = last
            .trim_start()
            .replacen(|c: char| c.is_ascii_alphabetic(), "renamed_", 1);
        let new = if nth % 2 == 0 {
            format!("{head}{indent}{word}")
        } else {
            format!("{head}{indent}{word}\n{indent}added_line({nth});")
        };
        places.push(Place {
            before: &source[..start],
            old,
            behind: &source[end..],
            new,
        });
    }
    places
}

/// The results of the cases of a kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Rates {
    cases: usize,
    /// The expected bytes, or the expected refusal.
    right: usize,
    /// Refused, but a change was expected.
    refused: usize,
    /// In the right place, in another form.
    otherwise: usize,
    /// In a wrong place, or not refused.
    wrong: usize,
    /// A byte outside of the place changed.
    collateral: usize,
}

impl Rates {
    fn count(&mut self, case: &Case) {
        self.cases += 1;
        let change = Replacement {
            old: &case.old,
            new: &case.new,
            all: false,
        };
        match (edit(&case.content, change), &case.expect) {
            (Err(_), None) => self.right += 1,
            (Ok(_), None) => self.wrong += 1,
            (Err(_), Some(_)) => self.refused += 1,
            (Ok(got), Some(expect)) if got.bytes == *expect => self.right += 1,
            (Ok(got), Some(_)) => {
                let behind = &case.content[case.content.len() - case.behind..];
                let kept = got.bytes.starts_with(&case.content[..case.before])
                    && got.bytes.ends_with(behind)
                    && got.bytes.len() >= case.before + case.behind;
                let place = &case.content[case.before..case.content.len() - case.behind];
                let untouched =
                    kept && { &got.bytes[case.before..got.bytes.len() - case.behind] == place };
                match (kept, untouched) {
                    (true, false) => self.otherwise += 1,
                    (true, true) => self.wrong += 1,
                    (false, _) => self.collateral += 1,
                }
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.right += other.right;
        self.refused += other.refused;
        self.otherwise += other.otherwise;
        self.wrong += other.wrong;
        self.collateral += other.collateral;
    }

    fn row(&self, kind: &str) -> String {
        let Self {
            cases,
            right,
            refused,
            otherwise,
            wrong,
            collateral,
        } = self;
        let rate = 100.0 * *right as f64 / (*cases).max(1) as f64;
        format!(
            "| {kind:<46} | {cases:>5} | {rate:>5.1} % | {refused:>7} | {otherwise:>10} | {wrong:>5} | {collateral:>10} |"
        )
    }
}

/// Proves FILE-22 in part.
#[test]
fn edit_success_rates_are_high() {
    let places: Vec<Place<'_>> = SOURCES.iter().flat_map(|source| places(source)).collect();
    assert!(places.len() >= 56, "{} places", places.len());
    println!(
        "| {:<46} | cases |   right | refused | other form | wrong | collateral |",
        "difference"
    );
    println!(
        "|{}|------:|--------:|--------:|-----------:|------:|-----------:|",
        "-".repeat(48)
    );
    let mut all = Rates::default();
    for (kind, rule) in KINDS {
        let mut rates = Rates::default();
        for case in places.iter().filter_map(rule) {
            rates.count(&case);
        }
        println!("{}", rates.row(kind));
        assert!(rates.cases >= 8, "{kind}: {rates:?}");
        assert_eq!((rates.wrong, rates.collateral), (0, 0), "{kind}");
        if *kind == "none" {
            assert_eq!(rates.right, rates.cases, "{kind}");
        }
        all.add(rates);
    }
    println!("{}", all.row("**all**"));
    assert!(
        all.cases >= 800 && all.right * 100 >= all.cases * 85,
        "{all:?}"
    );
}
