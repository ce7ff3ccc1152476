//! The `terraform` strategy: it retains the changes of a plan, operations of an apply that are not in the plan,
//! errors, outputs and totals.
//!
//! OpenTofu prints the same. A plan has a line `  # ADDRESS will be …` for each resource, then a
//! block with `+`, `-` and `~` before changes. Resources of one type often have equal changes, which
//! are shown once. A resource with elements of lists, or with several blocks of one name, is shown
//! with all of its changes.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memchr;
use std::collections::{HashMap, HashSet};

use super::excerpt::keep_cut;
use super::{FilterConfidence, Strategy, StrategyFactory, no_params};
use crate::line::{ExitInfo, Line, Sink};

/// Lines of one block that are processed together, and their bytes.
const MAX_LINES: usize = 4000;
const MAX_BLOCK_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of remembered lines and addresses.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of a line of a plan.
const MAX_LINE_BYTES: usize = 1000;

#[derive(Debug)]
struct Terraform;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    no_params(&table)?;
    Ok(Arc::new(Terraform))
}

impl StrategyFactory for Terraform {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Run::default())
    }

    fn judges_lines_alone(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct Run {
    /// The open block.
    block: Option<Block>,
    /// The lines of the block, and their texts. Their memory is reused.
    lines: Vec<Span>,
    texts: String,
    /// Shown lines by kind of block.
    said: HashMap<String, HashSet<String>>,
    /// Resources in the plan.
    planned: HashSet<String>,
    bytes: usize,
    /// True inside the list of signs above a plan.
    legend: bool,
    /// True after an error: all lines are retained.
    verbatim: bool,
    understood: bool,
}

/// The block of a resource, or of the outputs.
#[derive(Debug, Default)]
struct Block {
    /// Operation and type: `created terraform_data`.
    kind: String,
    /// The end marker of the current heredoc, such as `EOT`.
    heredoc: Option<String>,
    /// The operation. Blocks that are destroyed or only read show only their first line.
    action: Action,
}

/// The range of a line in [`Run::texts`].
#[derive(Debug, Clone, Copy)]
struct Span {
    number: u64,
    start: usize,
    end: usize,
}

/// A line with a change.
#[derive(Debug, Clone)]
struct Told<'t> {
    number: u64,
    text: Cow<'t, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Action {
    Create,
    #[default]
    Change,
    Destroy,
}

/// Parses address and operation from `  # ADDRESS will be …`.
fn headline(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("  # ")?;
    let at = [
        " will be ",
        " must be ",
        " has been ",
        " has changed",
        " has moved to ",
        " is tainted",
    ]
    .iter()
    .filter_map(|verb| text.find(verb))
    .min()?;
    Some((&text[..at], &text[at..]))
}

/// The type in `module.a["x"].aws_instance.web[0]`: the last part but one outside of brackets.
fn type_of(address: &str) -> &str {
    let mut depth = 0_usize;
    let (mut dots, mut previous) = (address.len(), 0);
    let mut start = 0;
    for (at, byte) in address.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b'.' if depth == 0 => {
                start = previous;
                previous = at + 1;
                dots = at;
            }
            _ => {}
        }
    }
    address.get(start..dots).unwrap_or(address)
}

/// Parses a progress line of a resource: `ADDRESS: Creation complete after 0s`.
fn progress(text: &str) -> Option<(&str, Progress)> {
    let at = text.rfind(": ")?;
    let (address, said) = (&text[..at], &text[at + 2..]);
    if address.contains(": ") || !address.contains('.') {
        return None;
    }
    let starts = |words: &[&str]| words.iter().any(|word| said.starts_with(word));
    if starts(&[
        "Refreshing state...",
        "Reading...",
        "Read complete after",
        "Still reading",
    ]) {
        return Some((address, Progress::Refresh));
    }
    if starts(&[
        "Creating...",
        "Modifying...",
        "Destroying...",
        "Still creating...",
        "Still modifying...",
        "Still destroying...",
        "Provisioning with",
        "Preparing import",
        "Opening...",
        "Closing...",
    ]) {
        return Some((address, Progress::Begun));
    }
    let done = [
        "Creation",
        "Modifications",
        "Destruction",
        "Import",
        "Opening",
        "Closing",
    ]
    .iter()
    .any(|what| {
        said.strip_prefix(what)
            .is_some_and(|rest| rest.starts_with(" complete"))
    });
    done.then_some((address, Progress::Done))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Refresh,
    Begun,
    Done,
}

/// Returns true for text that every plan contains.
fn is_boilerplate(text: &str) -> bool {
    const KNOWN: &[&str] = &[
        "Terraform used the selected providers",
        "OpenTofu used the selected providers",
        "plan. Resource actions are indicated",
        "Terraform will perform the following actions:",
        "OpenTofu will perform the following actions:",
        "Note: You didn't use the -out option",
        "guarantee to take exactly these actions",
        "─────",
        "Terraform has compared your real",
        "and found no differences, so no changes",
        "Initializing ",
        "You may now begin working with",
        "any changes that are required for your infrastructure",
        "should now work.",
        "If you ever set or change modules",
        "rerun this command to reinitialize",
        "commands will detect it and remind you",
        "- Finding ",
        "- Installing ",
        "- Reusing previous version of",
        "To perform exactly these actions, run",
        "selections it made above. Include this file",
        "so that Terraform can guarantee to make the same",
        "you run \"terraform init\" in the future.",
        "- terraform.io/builtin/",
    ];
    KNOWN.iter().any(|start| text.starts_with(start))
}

impl Run {
    fn open(&mut self, line: Line<'_>, address: &str, fate: &str, out: &mut dyn Sink) {
        self.close(out);
        self.understood = true;
        self.legend = false;
        let action = match fate {
            _ if fate.contains("replaced") => Action::Change,
            _ if fate.contains("destroyed") || fate.contains("removed from") => Action::Destroy,
            _ if fate.contains("created") || fate.contains("read during") => Action::Create,
            _ => Action::Change,
        };
        self.bytes += address.len() + 64;
        if self.bytes > MAX_BYTES {
            self.bytes = 0;
            self.planned.clear();
            self.said.clear();
        }
        self.planned.insert(address.to_owned());
        out.keep(line);
        self.block = Some(Block {
            kind: format!("{action:?} {}", type_of(address)),
            action,
            ..Block::default()
        });
    }

    /// Processes a line of the block. Returns `false` if it does not belong to the block.
    fn in_block(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let Some(block) = &mut self.block else {
            return false;
        };
        let text = line.text;
        if let Some(end) = &block.heredoc {
            if text.trim_ascii() == *end {
                block.heredoc = None;
            }
        } else if memchr(b'<', text.as_bytes()).is_some()
            && let Some((_, word)) = text.rsplit_once("<<-").or_else(|| text.rsplit_once("<<"))
        {
            if !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            {
                block.heredoc = Some(word.to_owned());
            }
        } else if !text.starts_with("  ") && !text.is_empty() && !is_change(text) {
            self.close(out);
            return false;
        }
        self.hold(line.number, text);
        let is_full = self.lines.len() >= MAX_LINES || self.texts.len() > MAX_BLOCK_BYTES;
        if is_full || text == "    }" {
            // The rest of an incomplete block follows.
            let rest = self.block.as_ref().filter(|_| text != "    }");
            let rest = rest.map(|block| Block {
                kind: block.kind.clone(),
                action: block.action,
                ..Block::default()
            });
            self.close(out);
            self.block = rest;
        }
        true
    }

    /// Buffers a line of the open block.
    fn hold(&mut self, number: u64, text: &str) {
        let start = self.texts.len();
        self.texts.push_str(text);
        let end = self.texts.len();
        self.lines.push(Span { number, start, end });
    }

    /// Prints the changes of the open block.
    fn close(&mut self, out: &mut dyn Sink) {
        let Some(block) = self.block.take() else {
            return;
        };
        let said = self.said.entry(block.kind).or_default();
        let mut again = 0;
        let texts = &self.texts;
        let lines = self.lines.iter().map(|span| Line {
            number: span.number,
            text: &texts[span.start..span.end],
        });
        let told = changes(lines, block.action);
        let has_elements = has_elements(&told);
        for held in told {
            let trimmed = held.text.trim_ascii();
            if !has_elements {
                if said.contains(trimmed) {
                    again += 1;
                    continue;
                }
                if self.bytes < MAX_BYTES {
                    self.bytes += trimmed.len() + 48;
                    said.insert(trimmed.to_owned());
                }
            }
            let text = &held.text[held.text.len().min(2)..];
            keep_cut(
                Line {
                    number: held.number,
                    text,
                },
                MAX_LINE_BYTES,
                out,
            );
        }
        if again > 0
            && let Some(last) = self.lines.last()
        {
            out.say(last.number, "    …");
        }
        self.lines.clear();
        self.texts.clear();
    }
}

/// Selects the changed lines of a block, and the enclosing lines that name their position.
fn changes<'t>(lines: impl Iterator<Item = Line<'t>>, action: Action) -> Vec<Told<'t>> {
    let told_as = |line: Line<'t>| Told {
        number: line.number,
        text: Cow::Borrowed(line.text),
    };
    let mut told: Vec<Told<'_>> = Vec::with_capacity(16);
    // Indices of changes at which a value begins.
    let mut open: Vec<usize> = Vec::with_capacity(8);
    for held in lines {
        let text = held.text.trim_ascii();
        let has = |what: &str| text.contains(what);
        let reason = text.starts_with("# (") && !has(" unchanged ");
        let closes = text.starts_with(['}', ']', ')']);
        if closes {
            let from = open.pop().unwrap_or(told.len());
            if has("-> (known after apply)") || has("-> null") {
                let last = text.trim_start_matches(['}', ']', ')']);
                let first = told.get(from).cloned();
                told.truncate(from);
                if let Some(mut first) = first {
                    let text = first.text.to_mut();
                    text.push('…');
                    text.push_str(last);
                    told.push(first);
                }
            } else if told.len() == from + 1 && !has("# forces replacement") {
                // The value contains no change.
                if told
                    .last()
                    .is_some_and(|held| !is_change(held.text.trim_ascii()))
                {
                    told.pop();
                }
            } else if has("# forces replacement") {
                told.push(told_as(held));
            }
            continue;
        }
        let opens = text.ends_with(['{', '[', '(']) && !text.starts_with('#');
        let worth = match action {
            Action::Destroy => reason,
            Action::Create => reason || is_change(text) && !text.ends_with("= (known after apply)"),
            Action::Change => {
                reason
                    || is_change(text) && !text.ends_with("= (known after apply)")
                    || has("# forces replacement")
            }
        };
        if opens {
            open.push(told.len());
            // The first value is the resource itself, which the headline names.
            if action != Action::Destroy && open.len() > 1 {
                told.push(told_as(held));
            }
        } else if worth {
            told.push(told_as(held));
        }
    }
    told
}

/// Returns true if an element of a list has lines of its own, or if an element or the start of a
/// value occurs twice.
///
/// Without one of these lines, the next lines would appear to belong to another element.
fn has_elements(changes: &[Told<'_>]) -> bool {
    let mut seen = HashSet::new();
    changes.iter().any(|change| {
        let text = change.text.trim_ascii();
        let value = text.trim_start_matches(['+', '-', '~', '/', '<', '=', ' ']);
        value.starts_with(['{', '[']) || text.ends_with(['{', '[', '(', ',']) && !seen.insert(text)
    })
}

/// Returns true if the line begins with a sign of change.
fn is_change(text: &str) -> bool {
    matches!(
        text.as_bytes(),
        [b'+' | b'-' | b'~', b' ', ..]
            | [b'<', b'=', b' ', ..]
            | [b'-', b'/', b'+', b' ', ..]
            | [b'+', b'/', b'-', b' ', ..]
    )
}

impl Strategy for Run {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if let Some((address, fate)) = headline(text) {
            self.verbatim = false;
            self.open(line, address, fate, out);
            return;
        }
        if self.in_block(line, out) {
            return;
        }
        if let Some((address, progress)) = progress(text) {
            self.understood = true;
            self.verbatim = false;
            if progress == Progress::Done && !self.planned.contains(address) {
                out.keep(line);
            }
            return;
        }
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() {
            self.legend = false;
            if self.verbatim {
                out.keep(line);
            }
            return;
        }
        if self.verbatim {
            self.verbatim = !text.starts_with('╵');
            out.keep(line);
            return;
        }
        let bare = text.trim_start_matches(['│', ' ']);
        if text.starts_with(['╷', '│'])
            || bare.starts_with("Error: ")
            || bare.starts_with("Warning: ")
        {
            self.verbatim = true;
            out.keep(line);
            return;
        }
        if is_boilerplate(trimmed) {
            self.understood = true;
            self.legend = trimmed.starts_with("plan. Resource actions");
            return;
        }
        if self.legend && (text.starts_with("  ") || is_change(text)) {
            return;
        }
        if text.starts_with("Changes to Outputs:") {
            out.keep(line);
            // Outputs change like the attributes of one resource.
            self.block = Some(Block {
                kind: "outputs".to_owned(),
                ..Block::default()
            });
            self.hold(line.number, "outputs {");
            return;
        }
        self.understood |= text.starts_with("Plan: ") || text.starts_with("No changes.");
        keep_cut(line, 4 * MAX_LINE_BYTES, out);
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.close(out);
        if self.understood {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::run;
    use super::*;

    /// Proves OUT-7.
    #[test]
    fn plan_changes_are_retained() {
        let plan = "\
terraform_data.web: Refreshing state... [id=1]

Terraform used the selected providers to generate the following execution
plan. Resource actions are indicated with the following symbols:
  ~ update in-place

Terraform will perform the following actions:

  # terraform_data.web will be updated in-place
  ~ resource \"terraform_data\" \"web\" {
        id     = \"1\"
      ~ input  = {
            name    = \"lb\"
          ~ timeout = 30 -> 45
            # (3 unchanged attributes hidden)
        }
      ~ output = {
          - name    = \"lb\"
        } -> (known after apply)
    }

  # terraform_data.old[\"a.b\"] will be destroyed
  # (because key [\"a.b\"] is not in for_each map)
  - resource \"terraform_data\" \"old\" {
      - id = \"2\" -> null
    }

Plan: 0 to add, 1 to change, 1 to destroy.
";
        let (text, confidence) = run(Box::new(Run::default()), plan, Some(0));
        assert_eq!(
            text,
            "  # terraform_data.web will be updated in-place
    ~ input  = {
        ~ timeout = 30 -> 45
    ~ output = {… -> (known after apply)
  # terraform_data.old[\"a.b\"] will be destroyed
# (because key [\"a.b\"] is not in for_each map)
Plan: 0 to add, 1 to change, 1 to destroy."
        );
        assert_eq!(confidence, FilterConfidence::Full);
    }

    /// Proves OUT-7b: no line of an element appears below another element.
    #[test]
    fn elements_of_a_list_are_shown_whole() {
        let elements = [(22, "10.0.0.0/8"), (443, "0.0.0.0/0"), (5432, "10.0.0.0/8")];
        let check = |open: &str, close: &str| {
            let mut plan = "  # aws_security_group.web will be created
  + resource \"aws_security_group\" \"web\" {
      + ingress = [
"
            .to_owned();
            for (port, source) in elements {
                plan += &format!(
                    "          {open}
              + cidr_blocks = [
                  + \"{source}\",
                ]
              + from_port   = {port}
            {close}
"
                );
            }
            plan += "        ]\n      + name    = \"web\"\n    }\n";
            let (text, _) = run(Box::new(Run::default()), &plan, Some(0));
            for (port, source) in elements {
                let element = format!(
                    "        {open}
            + cidr_blocks = [
                + \"{source}\",
            + from_port   = {port}
"
                );
                assert!(text.contains(&element), "{element}: {text}");
            }
            assert_eq!(text.matches(open).count(), 3, "{text}");
            assert_eq!(text.matches("\"10.0.0.0/8\"").count(), 2, "{text}");
        };
        check("+ {", "},");
        check("+ rule {", "}");
    }

    #[test]
    fn errors_stay_whole() {
        let text = "╷\n│ Error: Duplicate resource\n│ \n│   on bad.tf line 6:\n╵";
        assert_eq!(run(Box::new(Run::default()), text, Some(1)).0, text);
    }

    #[test]
    fn resource_type_is_found_in_an_address() {
        assert_eq!(type_of("terraform_data.web"), "terraform_data");
        assert_eq!(
            type_of("module.a[\"x.y\"].aws_instance.web[0]"),
            "aws_instance"
        );
        assert_eq!(type_of("odd"), "odd");
        assert_eq!(progress("a.b[\"x: y\"]: Creating..."), None);
        assert_eq!(progress("a.b: Creating..."), Some(("a.b", Progress::Begun)));
    }
}
