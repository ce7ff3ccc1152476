//! What runners of several packages print: `pnpm -r`, turbo, lerna. Each line begins with the name of
//! its package; the lines of several come in turns. Those of each package are read by themselves.

use std::collections::BTreeMap;

use super::{Detect, End, FilterConfidence, Limits, Line, Sink, Strategy};
use crate::filter::find::Find as _;

/// Packages that are told apart; lines of further ones stay.
const MOST_SOURCES: usize = 64;
/// Bytes of a name.
const MOST_NAME: usize = 100;

struct Workspaces {
    limits: Limits,
    sources: BTreeMap<String, Detect>,
}

/// Whether only such a runner prints this.
pub(super) fn recognizes(text: &str) -> bool {
    text.starts_with("Scope: ") && text.ends_with(" workspace projects")
        || text.starts_with("• Packages in scope: ")
        || text.starts_with("lerna notice ")
        || text.starts_with("lerna info ")
        || announced(text).is_some()
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Workspaces {
        limits,
        sources: BTreeMap::new(),
    })
}

/// `packages/a test` of `packages/a test$ jest`, with which pnpm begins.
fn announced(text: &str) -> Option<&str> {
    let (name, _) = text.cut_at("$ ")?;
    let (path, script) = name.split_once(' ')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    (path.contains('/') && !script.is_empty() && script.chars().all(plain)).then_some(name)
}

/// The name that a line begins with, up to behind what sets it off, and the rest: `@x/a:test: ok`.
fn split(text: &str) -> Option<(&str, &str)> {
    let (at, behind) = match text.place_of(": ") {
        Some(at) => (at, at + 2),
        None => (text.strip_suffix(':')?.len(), text.len()),
    };
    let name = &text[..at];
    let path = name.split_once(' ').map_or(name, |(path, _)| path);
    let named = path.starts_with('@') || path.contains(['/', ':']);
    let plain = |c: char| c.is_ascii_alphanumeric() || "@/_-.: ".contains(c);
    let fits = named
        && name.len() <= MOST_NAME
        && name.matches(' ').count() <= 1
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || "@.".contains(c))
        && name.chars().all(plain)
        && !name.ends_with(|c: char| c.is_ascii_digit() && is_position(name));
    fits.then(|| text.split_at(behind))
}

/// `src/a.ts:12:5` is a place.
fn is_position(name: &str) -> bool {
    let (_, last) = name.rsplit_once(':').unwrap_or(("", ""));
    !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Puts the name of the package before what is kept of its lines.
struct Named<'n> {
    name: &'n str,
    out: &'n mut dyn Sink,
}

impl Named<'_> {
    fn named(&self, text: &str) -> String {
        format!("{}{text}", self.name)
    }
}

impl Sink for Named<'_> {
    fn keep(&mut self, line: Line<'_>) {
        let text = self.named(line.text);
        self.out.keep(Line {
            text: &text,
            ..line
        });
    }

    fn say(&mut self, number: u64, text: &str) {
        let text = self.named(text);
        self.out.say(number, &text);
    }
}

impl Strategy for Workspaces {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let Some((name, rest)) = split(line.text) else {
            if !line.text.is_empty() {
                out.keep(line);
            }
            return;
        };
        if !self.sources.contains_key(name) {
            if self.sources.len() == MOST_SOURCES {
                out.keep(line);
                return;
            }
            let detect = Detect::new(self.limits);
            self.sources.insert(name.to_owned(), detect);
        }
        if let Some(source) = self.sources.get_mut(name) {
            let line = Line { text: rest, ..line };
            source.line(line, &mut Named { name, out });
        }
    }

    fn finish(&mut self, _end: End, out: &mut dyn Sink) -> FilterConfidence {
        let mut confidence = None;
        for (name, mut source) in std::mem::take(&mut self.sources) {
            let name = &name;
            let found = source.understands();
            // How each of them ended is not known.
            let understood = source.finish(End::default(), &mut Named { name, out });
            if found {
                confidence = confidence.max(Some(understood));
            }
        }
        confidence.unwrap_or(FilterConfidence::Fallback)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::run;
    use super::*;

    #[test]
    fn a_line_begins_with_its_package() {
        let check = |text: &str, expect| assert_eq!(split(text), expect, "{text}");
        check("packages/a test: ok", Some(("packages/a test: ", "ok")));
        check("packages/a test:", Some(("packages/a test:", "")));
        check("@x/a:test: ok", Some(("@x/a:test: ", "ok")));
        check("@x/a: ok: yes", Some(("@x/a: ", "ok: yes")));
        check("src/a.ts:12:5: error", None);
        check("error: no", None);
        check("lerna info run: x", None);
        assert_eq!(
            announced("packages/a test$ jest -i"),
            Some("packages/a test")
        );
    }

    /// Proves OUT-7.
    #[test]
    fn each_package_is_read_by_itself() {
        let mut printed = "Scope: 2 of 3 workspace projects\n".to_owned();
        for line in ["", "  ✓ a", "  ✓ b", "", "  2 passing (3ms)", ""] {
            printed += &format!("packages/a test: {line}\npackages/b test: step {line}\n");
        }
        let limits = Limits {
            max_failures: 10,
            truncate_stack_trace: 50,
        };
        let (told, confidence) = run(start(limits), &printed, Some(0));
        assert_eq!(confidence, FilterConfidence::Full, "{told}");
        assert!(
            told.contains("packages/a test:   2 passing (3ms)"),
            "{told}"
        );
        assert!(!told.contains("packages/a test:   ✓ a"), "{told}");
        assert!(told.contains("packages/b test: step   ✓ a"), "{told}");
    }
}
