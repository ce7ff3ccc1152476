//! Fenced blocks at the top level of a text, as in CommonMark.
//!
//! A fence inside a quotation, an item of a list, another fence or HTML is not a block. Only the structure that
//! decides this is parsed: containers are skipped as a whole. <https://spec.commonmark.org/0.31.2/>

use std::ops::Range;

/// End markers that some servers leave in the text. The text after them is the model's invention of the next message.
const ENDS: [&str; 13] = [
    "<|im_end|>",
    "<|im_start|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end|>",
    "<|user|>",
    "<|return|>",
    "<end_of_turn>",
    "<start_of_turn>",
    "<｜end▁of▁sentence｜>",
    "</s>",
];

/// HTML elements that end with their closing tag, and not at an empty line.
const RAW_TAGS: [&str; 4] = ["pre", "script", "style", "textarea"];

/// Tags that begin HTML at the start of any line.
const BLOCK_TAGS: &str = " address article aside base basefont blockquote body caption center col colgroup dd details dialog dir \
div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main \
menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead title tr track ul ";

/// A closed fence of backticks at the beginning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block<'a> {
    /// The text after the opening backticks, without surrounding blanks.
    pub(super) info: &'a str,
    /// The lines between the fences, without the last line's end.
    pub(super) body: &'a str,
    /// The position of the block in the text, with its fences.
    pub(super) span: Range<usize>,
}

/// The blocks of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Blocks<'a> {
    /// The closed ones, in order.
    pub(super) closed: Vec<Block<'a>>,
    /// The text after the backticks of a last block without a closing fence, and its lines.
    pub(super) unclosed: Option<(&'a str, &'a str)>,
}

/// The container of a line.
enum Within<'a> {
    Text,
    Fence(Fence<'a>),
    /// HTML up to a line with one of these ends; up to an empty line if there are none.
    Html(&'static [&'static str]),
    /// An item of a list, with lines that are indented by this number of columns.
    Item(usize),
}

struct Fence<'a> {
    mark: u8,
    length: usize,
    info: &'a str,
    /// Whether it can be a [`Block`].
    counts: bool,
    start: usize,
    body: usize,
}

/// The blocks of `text`, up to a line that begins with `end`, or contains the end of the response.
pub(super) fn blocks<'a>(text: &'a str, end: &str) -> Blocks<'a> {
    let mut closed = Vec::new();
    let mut within = Within::Text;
    let mut in_paragraph = false;
    let mut at = 0;
    while at < text.len() {
        let start = at;
        let line = match memchr::memchr(b'\n', &text.as_bytes()[at..]) {
            Some(length) => &text[at..at + length],
            None => &text[at..],
        };
        at = (at + line.len() + 1).min(text.len());
        let line_end = start + line.len();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let blank = line.trim_matches([' ', '\t']).is_empty();
        match &within {
            Within::Fence(fence) => {
                let Some(ended) = fence.is_closed_by(line) else {
                    continue;
                };
                if fence.counts {
                    closed.push(Block {
                        info: fence.info,
                        body: body(text, fence.body, start),
                        span: fence.start..line_end,
                    });
                }
                within = Within::Text;
                in_paragraph = false;
                if ended {
                    break;
                }
                continue;
            }
            Within::Html(ends) => {
                if match ends {
                    [] => blank,
                    ends => holds(line, ends),
                } {
                    within = Within::Text;
                }
                in_paragraph = false;
                continue;
            }
            Within::Item(width) => {
                if blank || indent(line) >= *width {
                    continue;
                }
                within = Within::Text;
                in_paragraph = false;
            }
            Within::Text => {}
        }
        if ENDS.iter().any(|token| line.contains(token)) || line.starts_with(end) || is_cut(line) {
            break;
        }
        if blank {
            in_paragraph = false;
            continue;
        }
        if indent(line) > 3 {
            continue;
        }
        let inner = line.trim_start_matches(' ');
        if let Some((mark, length, info)) = opening(inner) {
            within = Within::Fence(Fence {
                mark,
                length,
                info,
                counts: mark == b'`' && inner.len() == line.len(),
                start,
                body: at,
            });
        } else if let Some(ends) = html(inner, in_paragraph) {
            if ends.is_empty() || !holds(inner.get(2..).unwrap_or_default(), ends) {
                within = Within::Html(ends);
            }
        } else if is_break(inner) || inner.starts_with('#') {
            in_paragraph = false;
        } else if let Some(width) = item(inner, in_paragraph) {
            within = Within::Item(line.len() - inner.len() + width);
        } else {
            in_paragraph = true;
        }
    }
    let unclosed = match within {
        Within::Fence(fence) if fence.counts => {
            Some((fence.info, body(text, fence.body, text.len())))
        }
        _ => None,
    };
    Blocks { closed, unclosed }
}

/// The lines from `from` up to the line that begins at `until`.
fn body(text: &str, from: usize, until: usize) -> &str {
    let body = text.get(from..until).unwrap_or_default();
    let body = body.strip_suffix('\n').unwrap_or(body);
    body.strip_suffix('\r').unwrap_or(body)
}

/// The text without end markers of servers.
pub(super) fn without_end(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = ENDS.iter().find_map(|token| text.strip_suffix(token)) {
        text = rest.trim_end();
    }
    text
}

/// JSON that spans several lines. A block inside it is part of a string.
fn is_cut(line: &str) -> bool {
    line.starts_with('{')
        && (line.contains("\"tool_id\"") || line.contains("\"arguments\""))
        && serde_json::from_str::<serde::de::IgnoredAny>(line).is_err()
}

impl Fence<'_> {
    /// Whether a line closes the fence; if so, whether it also ends the response.
    fn is_closed_by(&self, line: &str) -> Option<bool> {
        if indent(line) > 3 {
            return None;
        }
        let inner = line.trim_start_matches(' ');
        let length = run(inner, self.mark);
        let rest = inner.get(length..)?.trim_matches([' ', '\t']);
        let ended = ENDS.iter().any(|token| rest.starts_with(token));
        (length >= self.length && (rest.is_empty() || ended)).then_some(ended)
    }
}

/// The character of an opening fence, its count, and the info string.
fn opening(line: &str) -> Option<(u8, usize, &str)> {
    let mark = line
        .bytes()
        .next()
        .filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = run(line, mark);
    let info = line.get(length..)?.trim_matches([' ', '\t']);
    (length >= 3 && (mark == b'~' || !info.contains('`'))).then_some((mark, length, info))
}

fn run(line: &str, mark: u8) -> usize {
    line.bytes().take_while(|byte| *byte == mark).count()
}

/// The columns before the first other character.
fn indent(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// Three or more of `*`, `-` or `_` alone.
fn is_break(line: &str) -> bool {
    let mut marks = line.bytes().filter(|byte| !matches!(byte, b' ' | b'\t'));
    let Some(mark @ (b'*' | b'-' | b'_')) = marks.next() else {
        return false;
    };
    let mut count = 1;
    marks.all(|byte| {
        count += 1;
        byte == mark
    }) && count >= 3
}

/// The columns from the marker of an item of a list to its content.
fn item(line: &str, in_paragraph: bool) -> Option<usize> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match line.as_bytes().get(digits)? {
        b'-' | b'+' | b'*' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let rest = line.get(marker..)?;
    let spaces = indent(rest);
    let is_empty = rest.trim_matches([' ', '\t']).is_empty();
    // Not every number at the beginning of a line of text begins a list.
    let interrupts = !is_empty && (digits == 0 || line.get(..digits) == Some("1"));
    if (spaces == 0 && !is_empty) || (in_paragraph && !interrupts) {
        return None;
    }
    Some(match spaces {
        1..=4 if !is_empty => marker + spaces,
        _ => marker + 1,
    })
}

/// The end of the HTML that begins with this line.
fn html(line: &str, in_paragraph: bool) -> Option<&'static [&'static str]> {
    const RAW_ENDS: &[&str] = &["</pre>", "</script>", "</style>", "</textarea>"];
    let rest = line.strip_prefix('<')?;
    if rest.starts_with("!--") {
        return Some(&["-->"]);
    }
    if rest.starts_with('?') {
        return Some(&["?>"]);
    }
    if rest.starts_with("![CDATA[") {
        return Some(&["]]>"]);
    }
    if let Some(rest) = rest.strip_prefix('!') {
        let is_declaration = rest.starts_with(|c: char| c.is_ascii_alphabetic());
        return is_declaration.then_some(&[">"]);
    }
    let closes = rest.starts_with('/');
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let length = rest.bytes().take_while(|byte| is_part(*byte)).count();
    let (name, rest) = rest.split_at(length);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !(rest.is_empty() || rest.starts_with([' ', '\t', '>']) || rest.starts_with("/>"))
    {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if RAW_TAGS.contains(&name.as_str()) {
        return (!closes).then_some(RAW_ENDS);
    }
    let is_alone = || {
        let inner = rest.trim_end().strip_suffix('>');
        inner.is_some_and(|inner| !inner.contains(['<', '>']))
    };
    let is_block = BLOCK_TAGS.contains(&format!(" {name} "));
    (is_block || (!in_paragraph && is_alone())).then_some(&[])
}

/// Whether the line contains one of the ends, ignoring case.
fn holds(line: &str, ends: &[&str]) -> bool {
    let line = line.to_ascii_lowercase();
    ends.iter().any(|end| line.contains(end))
}
