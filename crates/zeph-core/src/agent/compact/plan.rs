//! Which messages of a window stay when room is made: pure.

use zeph_llm::{MessagePart, Role};

use crate::agent::history::{Row, has_result};
use crate::agent::tokens::message_tokens;

/// A result shorter than this (bytes) is not moved out: what would stand in its place is hardly shorter.
const MIN_MOVED_BYTES: usize = 600;

/// What has to stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetainPolicy {
    /// How many of the last messages, at most.
    pub(super) messages: usize,
    /// Their estimated tokens, at most.
    pub(super) tokens: usize,
    /// The number of the prompt of the turn that is under way; it stays, and so does the last answer with its results.
    pub(super) turn: Option<i64>,
}

/// Where a window is cut: what is before `first`, but `pinned`, leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CompactionPlan {
    /// The place of the first message that stays, beside `pinned`; the number of messages when none does.
    pub(super) first: usize,
    /// The place of a prompt before `first` that stays.
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
}

/// The first place to cut at that leaves no more than `keep` says; where there is none, the last place. `None`
/// where nothing would leave.
///
/// A window may begin with a prompt, or with one and the answer that follows what left. So no result is
/// without its call, and every wire gets a user's message first.
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
    let mut behind: usize = sizes.iter().sum();
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
            if rows.len() - first <= keep.messages && behind <= keep.tokens {
                break;
            }
        }
        if let (Some(row), Some(size)) = (rows.get(first), sizes.get(first)) {
            behind = behind.saturating_sub(*size);
            if is_prompt(row) {
                prompt = Some(first);
            }
        }
    }
    last
}

/// Whether somebody said something, and it is no result.
fn is_prompt(row: &Row) -> bool {
    row.message.role == Role::User && !has_result(&row.message) && !row.message.parts.is_empty()
}

/// The places of results that can be moved out: those the model has gone on from, or `all`.
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

/// Whether this part of a result is long enough to be moved out.
pub(super) fn is_long(content: &str) -> bool {
    content.len() >= MIN_MOVED_BYTES
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_llm::{Message, ToolUseRequest};

    use super::*;

    /// `p` a prompt, `t` an answer in text, `c` a call, `r` its result.
    fn rows(kinds: &str) -> Vec<Row> {
        let message = |kind| match kind {
            'p' => Message::user("do it"),
            't' => Message::assistant("done"),
            'c' => Message {
                role: Role::Assistant,
                parts: vec![MessagePart::ToolUse(ToolUseRequest {
                    id: "a".to_owned(),
                    name: "read".to_owned(),
                    input: json!({}),
                })],
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

    /// Proves CTX-1: what stays begins with a prompt, and the turn's own prompt is always among it.
    #[test]
    fn windows_are_cut_where_they_may_be() {
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
        // Between turns, at least something leaves, and the rest as far as it is too much.
        check("pt", 9, all, None, Some((2, None)));
        check("ptpt", 9, all, None, Some((2, None)));
        check("ptptpt", 2, all, None, Some((4, None)));
        check("ptpt", 0, all, None, Some((4, None)));
        check("pcrcrt", 2, all, None, Some((5, Some(0))));
        check("pcrcrt", 4, all, None, Some((3, Some(0))));
        // In a turn, its prompt and the last results stay.
        check("p", 1, all, Some(1), None);
        check("pcr", 1, all, Some(1), None);
        check("pcrcr", 1, all, Some(1), Some((3, Some(0))));
        check("pcrcrrcr", 5, all, Some(1), Some((3, Some(0))));
        check("pcrcrrcr", 4, all, Some(1), Some((6, Some(0))));
        check("ptptp", 1, all, Some(5), Some((4, None)));
        check("ptptp", 3, all, Some(5), Some((2, None)));
        check("ptpcr", 2, all, Some(3), Some((3, Some(2))));
        // An earlier turn may be cut in its midst, with its own prompt.
        check("pcrcrtp", 4, all, Some(7), Some((3, Some(0))));
        // A pinned prompt of an earlier compaction leaves when its turn is over.
        check("pcrtpt", 2, all, None, Some((4, None)));
        // Long messages count by their tokens.
        check("pcRcrcr", 9, 900, Some(1), Some((3, Some(0))));
        check("pcRcRcR", 9, 10, Some(1), Some((5, Some(0))));
        // Results without a call, as of a damaged end, are never the beginning.
        check("rrpt", 2, all, None, Some((2, None)));
    }

    /// Proves CTX-3: the results that the model has not gone on from stay.
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
