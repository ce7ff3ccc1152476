//! Properties of compaction: after any sequence of actions the window is valid, and no message is lost.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;
use zeph_llm::{Message, MessagePart, Role, ToolUseRequest};
use zeph_memory::{Compaction, CompressionStrategy, NewSummary, Store, Synchronous};

use super::evict_results;
use super::plan::{self, RetainPolicy};
use crate::agent::history::{History, has_result};
use crate::agent::prompt::with_knowledge;
use crate::agent::session::stored;

/// An action in a conversation.
#[derive(Debug, Clone)]
enum Act {
    Prompt,
    Answer,
    /// Calls, with the lengths of their results.
    Calls(Vec<usize>),
    /// A compaction, within a turn or not, that keeps so many messages and tokens.
    Compact {
        turn: bool,
        messages: usize,
        tokens: usize,
    },
    /// An eviction of old results, or of all results.
    Move(bool),
    Resume,
    Clear,
}

fn act() -> impl Strategy<Value = Act> {
    let compact = (any::<bool>(), 1usize..8, 0usize..3000);
    prop_oneof![
        3 => Just(Act::Prompt),
        2 => Just(Act::Answer),
        5 => proptest::collection::vec(prop_oneof![0usize..100, 500usize..5000], 1..4).prop_map(Act::Calls),
        3 => compact.prop_map(|(turn, messages, tokens)| Act::Compact { turn, messages, tokens }),
        2 => any::<bool>().prop_map(Act::Move),
        1 => Just(Act::Resume),
        1 => Just(Act::Clear),
    ]
}

fn call(id: &str) -> MessagePart {
    MessagePart::ToolUse(ToolUseRequest::new(id, "bash", json!({ "command": "x" })))
}

fn result(id: &str, length: usize) -> MessagePart {
    MessagePart::ToolResult {
        tool_use_id: id.to_owned(),
        content: format!("{id} ").repeat(length / (id.len() + 1) + 1),
        is_error: false,
    }
}

/// Asserts the rules of every API: a prompt comes first, each call has one result right after it, and each result has
/// a call.
fn assert_valid(messages: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    if let Some(first) = messages.first() {
        assert_eq!(first.role, Role::User, "{messages:?}");
        assert!(!has_result(first), "{messages:?}");
    }
    for message in messages {
        assert!(!message.parts.is_empty(), "{messages:?}");
        if message.role == Role::Assistant {
            assert!(open.is_empty(), "{open:?} of {messages:?}");
            open = message.tool_uses().map(|it| it.id.as_str()).collect();
            continue;
        }
        for part in &message.parts {
            if let MessagePart::ToolResult { tool_use_id, .. } = part {
                let at = open.iter().position(|id| id == tool_use_id);
                open.remove(at.unwrap_or_else(|| panic!("{tool_use_id} of {messages:?}")));
            }
        }
        assert!(open.is_empty(), "{open:?} of {messages:?}");
    }
}

async fn play(acts: Vec<Act>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeph.db");
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store.ensure_session("s", folder.path()).await.unwrap();
    let mut history = History::open(store.clone(), "s", 0).await.unwrap();
    let mut said: Vec<String> = Vec::new();
    let mut prompt = None;
    let mut known = String::new();
    let mut talking = false;
    for (n, act) in acts.into_iter().enumerate() {
        let mut say = async |history: &mut History, message: Message| {
            said.push(serde_json::to_string(&message.parts).unwrap());
            history.push(message, None).await.unwrap()
        };
        match act {
            Act::Prompt => {
                let text = format!("prompt {n}");
                prompt = Some((say(&mut history, Message::user(&text)).await, text));
                talking = true;
            }
            Act::Answer if talking => {
                say(&mut history, Message::assistant(format!("answer {n}"))).await;
                talking = false;
            }
            Act::Calls(lengths) if talking => {
                let ids: Vec<String> = (0..lengths.len()).map(|at| format!("c{n}_{at}")).collect();
                let parts = ids.iter().map(|id| call(id)).collect();
                let role = Role::Assistant;
                say(&mut history, Message { role, parts }).await;
                for (id, length) in ids.iter().zip(lengths) {
                    let parts = vec![result(id, length)];
                    let role = Role::User;
                    say(&mut history, Message { role, parts }).await;
                }
            }
            Act::Answer | Act::Calls(_) => {}
            Act::Compact {
                turn,
                messages,
                tokens,
            } => {
                let turn = prompt.as_ref().filter(|_| turn && talking);
                talking = turn.is_some();
                let keep = RetainPolicy {
                    messages,
                    tokens,
                    turn: turn.map(|(seq, _)| *seq),
                };
                let rows = history.rows().await.unwrap();
                let Some(cut) = plan::cut(&rows, keep) else {
                    continue;
                };
                let leaving: Vec<i64> = cut.leaving(&rows).map(|row| row.seq).collect();
                let summary = NewSummary {
                    content: format!("notes {n}"),
                    method: CompressionStrategy::ALL[n % 3],
                    first_seq: *leaving.first().unwrap(),
                    last_seq: *leaving.last().unwrap(),
                    messages: leaving.len() as u64,
                    tokens_before: 2,
                    tokens_after: 1,
                    provider: "p".to_owned(),
                    model: "m".to_owned(),
                };
                let mut summaries = store.summaries("s").await.unwrap();
                summaries.push(stored(&summary));
                let end = rows.last().unwrap().seq + 1;
                let compaction = Compaction {
                    summary: Some(summary),
                    window_start: Some(rows.get(cut.first).map_or(end, |row| row.seq)),
                    pinned: cut.pinned.map(|at| rows[at].seq),
                    shown: Vec::new(),
                };
                history.compact(&compaction, 0).await.unwrap();
                let now = with_knowledge("", &summaries);
                let read = store.summaries("s").await.unwrap();
                assert_eq!(with_knowledge("", &read), now, "as it will be resumed");
                assert!(now.starts_with(&known) && now.len() > known.len());
                known = now;
                if let Some((_, text)) = turn {
                    let prompts = history.messages().iter().map(Message::text);
                    assert!(prompts.clone().any(|said| said.contains(text)));
                }
            }
            Act::Move(all) => {
                let rows = history.rows().await.unwrap();
                let places = plan::movable(&rows, all);
                let moved = evict_results::moved_out(&store, "s", &rows, &places)
                    .await
                    .unwrap();
                let shown = moved
                    .into_iter()
                    .map(|(seq, parts)| (seq, serde_json::to_string(&parts).unwrap()));
                let compaction = Compaction {
                    shown: shown.collect(),
                    ..Compaction::default()
                };
                let before = history.estimated_tokens();
                history.compact(&compaction, 0).await.unwrap();
                assert!(history.estimated_tokens() <= before);
            }
            Act::Resume => {
                let read = History::open(store.clone(), "s", 0).await.unwrap();
                assert_eq!(read.messages(), history.messages());
                history = read;
            }
            Act::Clear => {
                history.clear().await.unwrap();
                assert_eq!(store.summaries("s").await.unwrap(), []);
                (known, talking) = (String::new(), false);
            }
        }
        assert_valid(history.messages());
        let read = History::open(store.clone(), "s", 0).await.unwrap();
        assert_eq!(read.messages(), history.messages());
    }
    let kept = store.all_messages("s").await.unwrap();
    let kept: Vec<String> = kept.into_iter().map(|message| message.content).collect();
    assert_eq!(kept, said, "nothing that was said is lost");
    store.close().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Proves CTX-1, CTX-3.
    #[test]
    fn any_compaction_leaves_a_valid_window(acts in proptest::collection::vec(act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(acts));
    }
}

#[tokio::test]
async fn compacted_content_is_in_the_overflow_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeph.db");
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store.ensure_session("s", folder.path()).await.unwrap();
    let mut history = History::open(store.clone(), "s", 0).await.unwrap();
    let image = MessagePart::Image {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    };
    let long = result("a", 5000);
    let messages = [
        Message::user("go"),
        Message {
            role: Role::Assistant,
            parts: vec![call("a"), call("b")],
        },
        Message {
            role: Role::User,
            parts: vec![long.clone()],
        },
        Message {
            role: Role::User,
            parts: vec![result("b", 1), image],
        },
        Message::assistant("done"),
    ];
    for message in messages {
        history.push(message, None).await.unwrap();
    }
    let rows = history.rows().await.unwrap();
    let places = plan::movable(&rows, false);
    let moved = evict_results::moved_out(&store, "s", &rows, &places)
        .await
        .unwrap();
    let [(3, first), (4, second)] = moved.as_slice() else {
        panic!("{moved:?}")
    };
    let MessagePart::ToolResult { content, .. } = &first[0] else {
        panic!("{first:?}")
    };
    let entry = store.list_overflow(Some("s"), 9).await.unwrap().remove(0);
    assert!(
        content.contains(&entry.reference.to_string()) && content.len() < 200,
        "{content}"
    );
    let block = store.overflow_block("s", entry.reference, 0).await.unwrap();
    let MessagePart::ToolResult { content, .. } = long else {
        unreachable!()
    };
    assert_eq!(block.unwrap().text().unwrap(), content);
    assert!(
        matches!(&second[..], [MessagePart::ToolResult { content, .. }] if content.ends_with("the same call shows it again]")),
        "{second:?}"
    );
}
