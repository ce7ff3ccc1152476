//! The edit engine: nothing outside the reported lines changes, and an exact edit can be reversed.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_edit::{Edited, Replacement, ToleratedDifference};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    content: &'a [u8],
    /// A range of the content that becomes the old text, so that it is found more often.
    taken: Option<(u16, u8)>,
    old: &'a str,
    new: &'a str,
    all: bool,
}

/// Replaces `old` by `new`; `None` if the edit is refused.
fn edit(content: &[u8], old: &str, new: &str, all: bool) -> Option<Edited> {
    zeph_edit::edit(content, Replacement { old, new, all }).ok()
}

fuzz_target!(|input: Input<'_>| {
    let content = input.content;
    let taken = input.taken.and_then(|(at, length)| {
        let at = usize::from(at) % (content.len() + 1);
        let piece = &content[at..content.len().min(at + usize::from(length))];
        std::str::from_utf8(piece).ok()
    });
    let old = taken.unwrap_or(input.old);
    let Some(edited) = edit(content, old, input.new, input.all) else {
        return;
    };
    assert!(!edited.lines.is_empty());
    if content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff") {
        // The remaining checks need text.
        return;
    }
    outside_is_kept(content, &edited);
    if input.all {
        everywhere(content, old, input.new, &edited);
    } else if edited.ignored.is_none() {
        exactly_once(content, old, input.new, &edited);
    } else {
        alike(content, old, input.new, &edited);
    }
});

/// The lines before and after the reported lines are unchanged.
fn outside_is_kept(content: &[u8], edited: &Edited) {
    let (first, last) = (edited.lines[0].0, edited.lines[edited.lines.len() - 1].1);
    assert!(first >= 1 && first <= last);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            edited
                .bytes
                .iter()
                .enumerate()
                .filter(|(_, b)| **b == b'\n')
                .map(|(at, _)| at + 1),
        )
        .collect();
    let before = &edited.bytes[..starts[first - 1]];
    assert!(content.starts_with(before), "changed before line {first}");
    let after = starts
        .get(last)
        .map_or(&b""[..], |start| &edited.bytes[*start..]);
    assert!(content.ends_with(after), "changed after line {last}");
}

fn places(content: &[u8], text: &[u8]) -> Vec<usize> {
    (0..=content.len().saturating_sub(text.len()))
        .filter(|at| content[*at..].starts_with(text))
        .collect()
}

/// The text without carriage returns.
fn with_lf(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| *byte != b'\r').collect()
}

fn exactly_once(content: &[u8], old: &str, new: &str, edited: &Edited) {
    if old.is_empty() {
        assert!(content.is_empty() && edited.bytes == new.as_bytes());
        return;
    }
    let places = places(content, old.as_bytes());
    let [at] = places[..] else {
        panic!("{} places, and one was replaced", places.len());
    };
    let (mut before, after) = (&content[..at], &content[at + old.len()..]);
    // A line feed at the start of the old text includes its carriage return.
    if old.starts_with('\n') && !new.starts_with('\n') {
        before = before.strip_suffix(b"\r").unwrap_or(before);
    }
    assert!(edited.bytes.starts_with(before) && edited.bytes.ends_with(after));
    let inserted = &edited.bytes[before.len()..edited.bytes.len() - after.len()];
    assert!(inserted == new.as_bytes() || with_lf(inserted) == with_lf(new.as_bytes()));
    // The reverse edit, if the new text is as unique as the old one was.
    if !content.contains(&b'\r') && !new.contains('\r') && !new.is_empty() {
        if let Some(back) = edit(&edited.bytes, new, old, false) {
            if back.ignored.is_none() {
                assert_eq!(back.bytes, content, "taking it back is no identity");
            }
        }
    }
}

fn everywhere(content: &[u8], old: &str, new: &str, edited: &Edited) {
    if edited.ignored.is_some() || old.is_empty() {
        return;
    }
    let mut expect = Vec::new();
    let (mut from, mut count) = (0, 0);
    while from < content.len() {
        if content[from..].starts_with(old.as_bytes()) {
            expect.extend_from_slice(new.as_bytes());
            from += old.len();
            count += 1;
        } else {
            expect.push(content[from]);
            from += 1;
        }
    }
    assert_eq!(count, edited.lines.len());
    assert!(expect == edited.bytes || with_lf(&expect) == with_lf(&edited.bytes));
}

/// The text without white space and, if ignored, without typographic signs.
fn solid(text: &[u8], typography: bool) -> Vec<u8> {
    let mut solid = Vec::new();
    for chunk in text.utf8_chunks() {
        for sign in chunk
            .valid()
            .chars()
            .filter(|sign| !sign.is_ascii_whitespace())
        {
            let sign = match sign {
                '\u{2018}'..='\u{201B}' | '\u{2032}' if typography => '\'',
                '\u{201C}'..='\u{201F}' | '\u{2033}' if typography => '"',
                '\u{2010}'..='\u{2015}' | '\u{2212}' if typography => '-',
                other => other,
            };
            solid.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes());
        }
        solid.extend_from_slice(chunk.invalid());
    }
    solid
}

/// Except for ignored characters, one occurrence of the old text became the new text.
fn alike(content: &[u8], old: &str, new: &str, edited: &Edited) {
    let solid = |text: &[u8]| {
        solid(
            text,
            edited.ignored == Some(ToleratedDifference::Typography),
        )
    };
    let (was, is) = (solid(content), solid(&edited.bytes));
    let (old, new) = (solid(old.as_bytes()), solid(new.as_bytes()));
    assert!(!old.is_empty());
    let fits = places(&was, &old)
        .into_iter()
        .any(|at| [&was[..at], &new, &was[at + old.len()..]].concat() == is);
    assert!(fits, "something else than the old text was replaced");
}
