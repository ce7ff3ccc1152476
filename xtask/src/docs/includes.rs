//! Files that a page shows: the block after `<!-- file: PATH -->` is the text of the file.

use std::fmt::Write as _;

/// The beginning of a marker. Its end is ` -->`.
const MARKER: &str = "<!-- file: ";

/// The page with the current text in each block that shows a file. `text_of` returns the text of a file.
///
/// # Errors
/// A file does not exist, or no block follows a marker.
pub(super) fn updated<'a>(
    page: &str,
    text_of: impl Fn(&str) -> Option<&'a str>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        let marker = line.strip_prefix(MARKER);
        let Some(path) = marker.and_then(|path| path.strip_suffix(" -->")) else {
            continue;
        };
        let text = text_of(path).ok_or(format!("`{path}` does not exist"))?;
        let open = lines.next().filter(|line| line.starts_with("```"));
        let open = open.ok_or(format!("no block follows the marker of `{path}`"))?;
        let close = lines.find(|line| *line == "```");
        close.ok_or(format!("the block of `{path}` does not end"))?;
        let _ = writeln!(out, "{open}\n{}\n```", text.trim_end());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_after_a_marker_gets_the_text_of_the_file() {
        let text_of = |path: &str| (path == "a.rs").then_some("fn a() {}\n");
        let page = "# A\n<!-- file: a.rs -->\n```rust\nold\n```\nend\n";
        let expect = "# A\n<!-- file: a.rs -->\n```rust\nfn a() {}\n```\nend\n";
        assert_eq!(updated(page, text_of).as_deref(), Ok(expect));
        assert_eq!(updated(expect, text_of).as_deref(), Ok(expect));
        for wrong in [
            "<!-- file: b.rs -->\n```\n```\n",
            "<!-- file: a.rs -->\ntext\n",
            "<!-- file: a.rs -->\n```rust\nold\n",
        ] {
            updated(wrong, text_of).unwrap_err();
        }
    }
}
