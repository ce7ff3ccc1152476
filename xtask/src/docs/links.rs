//! Relative links in Markdown: the file, and the heading or the `<a id>` after `#`, must exist. Images are such links.
//!
//! Known forms: `[text](target)`, `![image](target "title")`, `[text](<target>)` and definitions
//! `[label]: target`. Code in fences or between backticks contains no links.

/// The broken links of the file `path`, one line each.
pub(super) fn findings<'a>(
    path: &str,
    text: &str,
    exists: impl Fn(&str) -> bool,
    text_of: impl Fn(&str) -> Option<&'a str>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, target) in targets(text) {
        if has_scheme(&target) {
            continue;
        }
        let (file, anchor) = match target.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor)),
            None => (target.as_str(), None),
        };
        let file = match (file.is_empty(), resolve(path, file)) {
            (true, _) => path.to_owned(),
            (false, Some(file)) if exists(&file) => file,
            (false, Some(_)) => {
                findings.push(format!("{path}:{number}: `{target}` does not exist"));
                continue;
            }
            (false, None) => {
                findings.push(format!(
                    "{path}:{number}: `{target}` leaves the repository; link to a file in it"
                ));
                continue;
            }
        };
        let linked = if file == path {
            Some(text)
        } else {
            text_of(&file)
        };
        if let (Some(anchor), Some(linked)) = (anchor, linked)
            && file.ends_with(".md")
            && !anchors(linked).any(|known| known == anchor)
            && !explicit_anchors(linked).any(|known| known == anchor)
        {
            findings.push(format!(
                "{path}:{number}: `{target}`: {file} has no heading `#{anchor}`"
            ));
        }
    }
    findings
}

/// Line number and target of every link.
pub(super) fn targets(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        if let Some(target) = definition(&line) {
            targets.push((number, target));
        }
        let mut rest = line.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            if let Some(target) = inline_target(rest) {
                targets.push((number, target));
            }
        }
    }
    targets
}

/// The lines outside fences, numbered from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, None) => return Some((at + 1, line)),
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
        None
    })
}

/// The line without text between single backticks.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // With an odd number of backticks the last one is a plain character.
    let closed = parts.len() - (parts.len() + 1) % 2;
    let mut kept = String::with_capacity(line.len());
    for (at, part) in parts.iter().enumerate() {
        if at % 2 == 0 || at >= closed {
            kept.push_str(part);
        }
    }
    kept
}

fn definition(line: &str) -> Option<String> {
    let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
    let target = target.split_whitespace().next()?;
    let footnote = label.starts_with('^');
    (!footnote).then(|| target.trim_matches(['<', '>']).to_owned())
}

/// The target of an inline link. `rest` starts after `](`.
fn inline_target(rest: &str) -> Option<String> {
    if let Some(rest) = rest.strip_prefix('<') {
        return rest.split_once('>').map(|(target, _)| target.to_owned());
    }
    let mut open = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => open += 1,
            ')' if open == 0 => return Some(rest[..at].to_owned()),
            ')' => open -= 1,
            ' ' | '\t' if open == 0 => return Some(rest[..at].to_owned()),
            _ => {}
        }
    }
    None
}

pub(super) fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// `link` relative to the file `from`, as a path below the root; `None` if it points outside the root.
pub(super) fn resolve(from: &str, link: &str) -> Option<String> {
    if link.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of the headings, as common forges derive them: lower case, spaces become `-`, punctuation is
/// removed, and a repeated heading gets `-1`, `-2`, ….
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let mut seen: Vec<String> = Vec::new();
    prose(text)
        .filter_map(|(_, line)| {
            let title = line.trim_start_matches('#');
            let level = line.len() - title.len();
            ((1..=6).contains(&level) && title.starts_with(' ')).then_some(title.trim())
        })
        .map(move |title| {
            let slug: String = title
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let earlier = seen.iter().filter(|known| **known == slug).count();
            seen.push(slug.clone());
            match earlier {
                0 => slug,
                n => format!("{slug}-{n}"),
            }
        })
}

/// The anchors that a page sets itself: `<a id="NAME"></a>` at the start of a line.
fn explicit_anchors(text: &str) -> impl Iterator<Item = &str> {
    prose(text).filter_map(|(_, line)| line.strip_prefix("<a id=\"")?.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_targets_of_all_forms_are_found() {
        let check = |line: &str, expect: &[&str]| {
            let found: Vec<_> = targets(line)
                .into_iter()
                .map(|(_, target)| target)
                .collect();
            assert_eq!(found, expect, "{line}");
        };
        check("see [a](b.md) and [c](d/e.md#f)", &["b.md", "d/e.md#f"]);
        check("![shot](img/a.png \"A title\")", &["img/a.png"]);
        check("[![badge](a.svg)](b.md)", &["a.svg", "b.md"]);
        check("[a](<with space.md>)", &["with space.md"]);
        check("[a](f(1).md)", &["f(1).md"]);
        check("[label]: target.md \"title\"", &["target.md"]);
        check("[^1]: a footnote", &[]);
        check("`[a](b)` is code", &[]);
        check("`x` [a](b) `y`", &["b"]);
        check("a lone ` and [a](b)", &["b"]);
        check("```\n[a](b)\n```\n[c](d)", &["d"]);
        check("~~~\n```\n[a](b)\n~~~\n[c](d)", &["d"]);
        check("```\n[never](closed)", &[]);
        check("[open](never closed", &["never"]);
        check("[open](", &[]);
        check("](", &[]);
        check("", &[]);
    }

    #[test]
    fn links_resolve_below_the_root() {
        let check = |from: &str, link: &str, expect: Option<&str>| {
            assert_eq!(resolve(from, link).as_deref(), expect, "{from} {link}");
        };
        check("README.md", "docs/a.md", Some("docs/a.md"));
        check("docs/a.md", "b.md", Some("docs/b.md"));
        check("docs/a.md", "./../README.md", Some("README.md"));
        check("docs/a.md", "..", Some(""));
        check("docs/a.md", "../../secret", None);
        check("docs/a.md", "/etc/passwd", None);
    }

    #[test]
    fn headings_have_their_anchors() {
        let text =
            "# The `zeph` tool: how?\n#hash\n## Same\n## Same\n```\n# code\n```\n####### seven";
        let found: Vec<_> = anchors(text).collect();
        assert_eq!(found, ["the-zeph-tool-how", "same", "same-1"]);
    }

    #[test]
    fn findings_name_file_line_and_target() {
        let check = |text: &str, expect: &[&str]| {
            let text_of = |path: &str| (path == "docs/b.md").then_some("# Known\n");
            let found = findings("docs/a.md", text, |path| path == "docs/b.md", text_of);
            assert_eq!(found, expect, "{text}");
        };
        check("[x](b.md) [y](b.md#known) [z](https://example.org/no)", &[]);
        check("[mail](mailto:a@example.org)", &[]);
        check("# Here\n[x](#here)", &[]);
        check("<a id=\"old\"></a>\n\n# New\n[x](#old)", &[]);
        check(
            "![x](gone.svg)",
            &["docs/a.md:1: `gone.svg` does not exist"],
        );
        check("\n[x](c.md)", &["docs/a.md:2: `c.md` does not exist"]);
        check(
            "[x](b.md#unknown)",
            &["docs/a.md:1: `b.md#unknown`: docs/b.md has no heading `#unknown`"],
        );
        check(
            "[x](#gone)",
            &["docs/a.md:1: `#gone`: docs/a.md has no heading `#gone`"],
        );
        check(
            "[x](../../b.md)",
            &["docs/a.md:1: `../../b.md` leaves the repository; link to a file in it"],
        );
    }
}
