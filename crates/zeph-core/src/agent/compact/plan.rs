//! The plan of a compaction: the messages that remain in the window. Pure.

use zeph_llm::{MessagePart, Role};

use crate::agent::history::{Row, has_result};
use crate::agent::tokens::message_tokens;

/// Bytes of the shortest result that is evicted. The text in place of a shorter one would take almost as much.
const MIN_MOVED_BYTES: usize = 600;

/// The messages that must remain.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetainPolicy {
    /// Maximum number of last messages.
    pub(super) messages: usize,
    /// Maximum of their estimated tokens.
    pub(super) tokens: usize,
    /// The sequence number of the prompt of the current turn. It remains, and so does the last response with its results.
    pub(super) turn: Option<i64>,
}

/// The place at which a window is cut: the messages before `first`, except `pinned`, leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CompactionPlan {
    /// The index of the first message that remains, apart from `pinned`; the number of messages if none remains.
    pub(super) first: usize,
    /// The index of a prompt before `first` that remains.
    pub(super) pinned: Option<usize>,
}

impl CompactionPlan {
    /// The messages that leave, in order.
    pub(super) fn leaving<'r>(&self, rows: &'r [Row]) -> impl Iterator<Item = &'r Row> {
        let Self { first, pinned } = *self;
        let rows = rows[..first].iter().enumerate();
        rows.filter(move |(at, _)| Some(*at) != pinned)
            .map(|(_, row)| row)
    }

    /// The sequence number at which the new window starts.
    pub(super) fn window_start(&self, rows: &[Row]) -> i64 {
        let end = rows.last().map_or(1, |row| row.seq + 1);
        rows.get(self.first).map_or(end, |row| row.seq)
    }

    /// The sequence number of the pinned prompt.
    pub(super) fn pinned_seq(&self, rows: &[Row]) -> Option<i64> {
        self.pinned.and_then(|at| Some(rows.get(at)?.seq))
    }
}

/// Returns the first cut after which at most the messages of `keep` remain, or else the last possible cut. `None` if no message
/// can leave.
///
/// A window may begin with a prompt, or with a pinned prompt and a later response. So every result has its call, and every API
/// gets a message of the user first.
pub(super) fn cut(rows: &[Row], keep: RetainPolicy) -> Option<CompactionPlan> {
    let turn = keep
        .turn
        .and_then(|seq| rows.iter().position(|row| row.seq == seq));
    let mut prompt = None;
    let mut last = None;
    let sizes: Vec<usize> = rows
        .iter()
        .map(|row| message_tokens(&row.message))
        .collect();
    let mut remaining: usize = sizes.iter().sum();
    for first in 0..=rows.len() {
        let cut = match rows.get(first) {
            // Between turns everything may leave.
            None => turn.is_none().then_some(CompactionPlan {
                first,
                pinned: None,
            }),
            Some(row) if is_prompt(row) => Some(CompactionPlan {
                first,
                pinned: turn.filter(|turn| *turn < first),
            }),
            Some(row) if row.message.role == Role::Assistant => {
                let pinned = turn.filter(|turn| *turn < first).or(prompt);
                pinned.is_some().then_some(CompactionPlan { first, pinned })
            }
            Some(_) => None,
        };
        let cut = cut.filter(|cut| cut.leaving(rows).next().is_some());
        if let Some(cut) = cut {
            last = Some(cut);
            if rows.len() - first <= keep.messages && remaining <= keep.tokens {
                break;
            }
        }
        if let (Some(row), Some(size)) = (rows.get(first), sizes.get(first)) {
            remaining = remaining.saturating_sub(*size);
            if is_prompt(row) {
                prompt = Some(first);
            }
        }
    }
    last
}

/// Whether a message is a prompt of the user, not a result.
fn is_prompt(row: &Row) -> bool {
    row.message.role == Role::User && !has_result(&row.message) && !row.message.parts.is_empty()
}

/// The indices of results that can be evicted: those before the last response, or `all`.
pub(super) fn movable(rows: &[Row], all: bool) -> Vec<usize> {
    let answer = rows
        .iter()
        .rposition(|row| row.message.role == Role::Assistant);
    let end = if all { rows.len() } else { answer.unwrap_or(0) };
    let rows = rows[..end].iter().enumerate();
    let long = |part: &MessagePart| match part {
        MessagePart::ToolResult { content, .. } => content.len() >= MIN_MOVED_BYTES,
        MessagePart::Image { .. } => true,
        _ => false,
    };
    rows.filter(|(_, row)| has_result(&row.message) && row.message.parts.iter().any(long))
        .map(|(at, _)| at)
        .collect()
}

/// Whether a part of a result is long enough for eviction.
pub(super) fn is_long(content: &str) -> bool {
    content.len() >= MIN_MOVED_BYTES
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_llm::{Message, ToolUseRequest};

    use super::*;

    /// `p` is a prompt, `t` a text response, `c` a call, `r` its result, `R` a long result.
    fn rows(kinds: &str) -> Vec<Row> {
        let message = |kind| match kind {
            'p' => Message::user("do it"),
            't' => Message::assistant("done"),
            'c' => Message {
                role: Role::Assistant,
                parts: vec![MessagePart::ToolUse(ToolUseRequest::new(
                    "a",
                    "read",
                    json!({}),
                ))],
            },
            _ => Message {
                role: Role::User,
                parts: vec![MessagePart::ToolResult {
                    tool_use_id: "a".to_owned(),
                    content: "x".repeat(if kind == 'R' { 4000 } else { 10 }),
                    is_error: false,
                }],
            },
        };
        let rows = kinds.chars().zip(1..);
        rows.map(|(kind, seq)| Row {
            seq,
            message: message(kind),
            counted: None,
        })
        .collect()
    }

    /// Proves CTX-1: the rest begins with a prompt and contains the prompt of the turn.
    #[test]
    fn windows_are_cut_only_at_valid_boundaries() {
        let check =
            |kinds: &str, messages, tokens, turn, expect: Option<(usize, Option<usize>)>| {
                let keep = RetainPolicy {
                    messages,
                    tokens,
                    turn,
                };
                let cut = cut(&rows(kinds), keep);
                let found = cut.map(|cut| (cut.first, cut.pinned));
                assert_eq!(found, expect, "{kinds} {messages} {tokens} {turn:?}");
            };
        let all = usize::MAX;
        check("", 9, all, None, None);
        // Between turns, at least one message leaves.
        check("pt", 9, all, None, Some((2, None)));
        check("ptpt", 9, all, None, Some((2, None)));
        check("ptptpt", 2, all, None, Some((4, None)));
        check("ptpt", 0, all, None, Some((4, None)));
        check("pcrcrt", 2, all, None, Some((5, Some(0))));
        check("pcrcrt", 4, all, None, Some((3, Some(0))));
        // In a turn, its prompt and the last results remain.
        check("p", 1, all, Some(1), None);
        check("pcr", 1, all, Some(1), None);
        check("pcrcr", 1, all, Some(1), Some((3, Some(0))));
        check("pcrcrrcr", 5, all, Some(1), Some((3, Some(0))));
        check("pcrcrrcr", 4, all, Some(1), Some((6, Some(0))));
        check("ptptp", 1, all, Some(5), Some((4, None)));
        check("ptptp", 3, all, Some(5), Some((2, None)));
        check("ptpcr", 2, all, Some(3), Some((3, Some(2))));
        // An earlier turn may be cut in the middle, with its own prompt pinned.
        check("pcrcrtp", 4, all, Some(7), Some((3, Some(0))));
        // A pinned prompt of an earlier compaction leaves after its turn.
        check("pcrtpt", 2, all, None, Some((4, None)));
        // Long messages count by their tokens.
        check("pcRcrcr", 9, 900, Some(1), Some((3, Some(0))));
        check("pcRcRcR", 9, 10, Some(1), Some((5, Some(0))));
        // Results without a call, as at a damaged end, never come first.
        check("rrpt", 2, all, None, Some((2, None)));
    }

    /// Proves CTX-3: results after the last response remain.
    #[test]
    fn old_results_are_moved_out() {
        let check = |kinds: &str, all, expect: &[usize]| {
            assert_eq!(movable(&rows(kinds), all), expect, "{kinds}");
        };
        check("", false, &[]);
        check("pcR", false, &[]);
        check("pcR", true, &[2]);
        check("pcRcrRcRR", false, &[2, 5]);
        check("pcRcrRcRR", true, &[2, 5, 7, 8]);
        check("pcRtp", false, &[2]);
    }
}
