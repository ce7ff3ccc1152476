//! Parser for the kind of each line in a diff, which depends on the preceding lines.
//!
//! The header of a hunk states its number of lines, so a removed line `-- x` is not parsed as the header of a
//! file. The format: <https://git-scm.com/docs/diff-format#generate_patch_text_with_p>. Combined diffs have one
//! sign column per parent.

/// The kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first line of a file: `diff --git …`, or `--- a` if that line is missing.
    File,
    /// A further line about the file.
    Header,
    /// The header of a hunk: `@@ -1,2 +3,4 @@`.
    Hunk,
    /// A line of both sides.
    Context,
    /// A line of the new side.
    Added,
    /// A line of the old side.
    Removed,
    /// The note `\ No newline at end of file`.
    Note,
    /// A line outside of files: of a message or a list of files.
    Other,
}

/// The position of the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Outside,
    /// After `diff …`.
    Headers,
    /// After `--- a` without a preceding `diff …`: `+++ b` must follow.
    Bare,
    Hunk,
    /// After a complete hunk.
    AfterHunk,
}

/// Classifies the lines of a diff in sequence.
#[derive(Debug, Default)]
pub(super) struct Parser {
    place: Place,
    /// The number of sign columns: one, or the number of parents in a combined diff.
    columns: usize,
    /// The remaining lines of the hunk for each parent, at most one entry per column.
    old: Vec<u64>,
    /// The remaining lines of the new side.
    new: u64,
}

impl Parser {
    /// The kind of the next line.
    pub(super) fn kind(&mut self, line: &str) -> Kind {
        if self.place == Place::Hunk {
            if let Some(kind) = self.body(line) {
                return kind;
            }
            self.place = Place::AfterHunk;
        }
        if line.starts_with("diff ") {
            self.place = Place::Headers;
            return Kind::File;
        }
        if self.place == Place::Outside || self.place == Place::AfterHunk {
            if line.starts_with('\\') && self.place == Place::AfterHunk {
                return Kind::Note;
            }
            if line.starts_with("--- ") && line.len() > 4 {
                self.place = Place::Bare;
                return Kind::File;
            }
        }
        if self.place != Place::Outside && self.begins_hunk(line) {
            self.place = Place::Hunk;
            return Kind::Hunk;
        }
        match self.place {
            Place::Headers if !line.is_empty() => Kind::Header,
            Place::Bare if line.starts_with("+++ ") => Kind::Header,
            Place::Headers | Place::Bare => {
                self.place = Place::Outside;
                Kind::Other
            }
            Place::Outside | Place::Hunk | Place::AfterHunk => Kind::Other,
        }
    }

    fn body(&mut self, line: &str) -> Option<Kind> {
        if line.starts_with('\\') {
            return Some(Kind::Note);
        }
        if self.new == 0 && self.old.iter().all(|left| *left == 0) {
            return None;
        }
        let signs = line.as_bytes();
        // An empty line is context whose space was removed.
        let sign = |column: usize| signs.get(column).copied().unwrap_or(b' ');
        let (mut added, mut removed) = (false, false);
        for column in 0..self.columns {
            match sign(column) {
                b' ' => {}
                b'+' => added = true,
                b'-' => removed = true,
                _ => return None,
            }
        }
        for (column, left) in self.old.iter_mut().enumerate() {
            let counts = if removed {
                sign(column) == b'-'
            } else {
                sign(column) == b' '
            };
            *left = left.saturating_sub(u64::from(counts));
        }
        if removed {
            return Some(Kind::Removed);
        }
        self.new = self.new.saturating_sub(1);
        Some(if added { Kind::Added } else { Kind::Context })
    }

    /// Parses the header of a hunk: `@@ -1,2 +3,4 @@`, or `@@@ -1 -1,2 +1,3 @@@` with two parents.
    fn begins_hunk(&mut self, line: &str) -> bool {
        let signs = line.bytes().take_while(|byte| *byte == b'@').count();
        if !(2..=64).contains(&signs) {
            return false;
        }
        self.columns = signs - 1;
        self.old.clear();
        self.new = 0;
        let mut ranges = line[signs..].split(' ').filter(|word| !word.is_empty());
        for _ in 0..self.columns {
            match ranges
                .next()
                .and_then(|range| length(range.strip_prefix('-')?))
            {
                Some(length) => self.old.push(length),
                None => return false,
            }
        }
        match ranges
            .next()
            .and_then(|range| length(range.strip_prefix('+')?))
        {
            Some(length) => self.new = length,
            None => return false,
        }
        ranges
            .next()
            .is_some_and(|end| end.bytes().all(|byte| byte == b'@'))
    }
}

/// The second number of `12,3`; 1 if it is missing.
fn length(range: &str) -> Option<u64> {
    let (start, length) = range.split_once(',').unwrap_or((range, "1"));
    let _: u64 = start.parse().ok()?;
    length.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let mut parser = Parser::default();
        let kinds = text.lines().map(|line| match parser.kind(line) {
            Kind::File => 'f',
            Kind::Header => 'h',
            Kind::Hunk => '@',
            Kind::Context => ' ',
            Kind::Added => '+',
            Kind::Removed => '-',
            Kind::Note => '\\',
            Kind::Other => 'o',
        });
        assert_eq!(kinds.collect::<String>(), expect, "{text}");
    }

    #[test]
    fn diff_lines_are_classified() {
        check(
            "commit 1\n\n    x\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn\n a\n--- b\n+++ c\n\ndiff --git a/y b/y\nnew mode 100755\n",
            "oooofhhh@ -+ fh",
        );
        check(
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline\n+b\n\\ No newline\n-- \n2.40\n",
            "fh@-\\+\\oo",
        );
        check(
            "diff --cc x\n@@@ -1,3 -1,2 +1,3 @@@\n  a\n +b\n++c\n--d\n x\n",
            "f@ ++-o",
        );
        check("--- a title\n\ntext\n", "foo");
        check("@@ -1 +1 @@\n-a\n", "oo");
        check(
            "diff --git a/l b/l\nBinary files a/l and b/l differ\n",
            "fh",
        );
        check(
            "Only in a: x\ndiff -ru a/x b/x\n--- a/x\t2026\n+++ b/x\t2026\n@@ -1 +1,0 @@\n-a\n",
            "ofhh@-",
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed(lines in proptest::collection::vec("(@@|@@@|diff --git|---|\\+\\+\\+|-|\\+| |\\\\)?[-+ @,0-9]{0,20}|.*", 0..30)) {
            let mut parser = Parser::default();
            for line in &lines {
                let _ = parser.kind(line);
            }
        }
    }
}
