//! The last exchanges of a stored conversation, for a session that continues. Pure.

use zeph_core::{LoopbackEvent, call_display};

/// Exchanges that are shown.
const MAX_EXCHANGES: usize = 3;
/// Calls of one exchange that are shown, the last ones.
const MAX_CALLS: usize = 6;
/// Lines of a prompt that are shown, the first ones.
const MAX_PROMPT_LINES: usize = 4;
/// Lines of a response that are shown, the last ones.
const MAX_RESPONSE_LINES: usize = 20;
/// Characters of the result of a call.
const MAX_RESULT_CHARS: usize = 80;

/// A part of the last exchanges. The texts are as received: a view makes them safe for its terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecapItem {
    /// Earlier exchanges that are not shown.
    Earlier(usize),
    /// A prompt of the user.
    Prompt(String),
    /// Calls that are not shown.
    EarlierCalls(usize),
    /// A call: its action and the first line of its result.
    Call {
        /// The action.
        title: String,
        /// The first line of the result.
        result: String,
        /// Whether the call failed.
        has_failed: bool,
    },
    /// The text of the model: Markdown.
    Response(String),
}

/// The last exchanges in the events of a stored conversation.
pub fn recap(events: &[LoopbackEvent]) -> Vec<RecapItem> {
    let is_prompt = |event: &LoopbackEvent| matches!(event, LoopbackEvent::Prompt(_));
    let prompts: Vec<usize> = (0..events.len())
        .filter(|at| is_prompt(&events[*at]))
        .collect();
    let first = prompts.len().saturating_sub(MAX_EXCHANGES);
    let mut items = Vec::new();
    if first > 0 {
        items.push(RecapItem::Earlier(first));
    }
    for (number, start) in prompts.iter().enumerate().skip(first) {
        let end = prompts.get(number + 1).copied().unwrap_or(events.len());
        items.extend(exchange(&events[*start..end]));
    }
    items
}

/// One exchange: the prompt, the last calls, and the last text of the model.
fn exchange(events: &[LoopbackEvent]) -> Vec<RecapItem> {
    let mut items = Vec::new();
    let mut calls: Vec<RecapItem> = Vec::new();
    let mut open: Vec<(&str, String)> = Vec::new();
    let mut response = String::new();
    for event in events {
        match event {
            LoopbackEvent::Prompt(text) => items.push(RecapItem::Prompt(first_lines(text))),
            LoopbackEvent::Requesting { .. } => response.clear(),
            LoopbackEvent::Text(text) => response.push_str(text),
            LoopbackEvent::ToolStarted { id, tool, params } => {
                open.push((id, call_display::title(tool, params)));
            }
            LoopbackEvent::ToolFinished {
                id,
                failure,
                display,
                ..
            } => {
                if let Some(at) = open.iter().position(|(known, _)| known == id) {
                    calls.push(RecapItem::Call {
                        title: open.remove(at).1,
                        result: result_line(display),
                        has_failed: failure.is_some(),
                    });
                }
            }
            _ => {}
        }
    }
    let omitted = calls.len().saturating_sub(MAX_CALLS);
    if omitted > 0 {
        items.push(RecapItem::EarlierCalls(omitted));
    }
    items.extend(calls.into_iter().skip(omitted));
    if !response.trim().is_empty() {
        items.push(RecapItem::Response(last_lines(response.trim())));
    }
    items
}

fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    let more = if lines.len() > MAX_PROMPT_LINES {
        "\n…"
    } else {
        ""
    };
    let shown = lines.len().min(MAX_PROMPT_LINES);
    format!("{}{more}", lines[..shown].join("\n"))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let omitted = lines.len().saturating_sub(MAX_RESPONSE_LINES);
    let before = if omitted > 0 { "…\n" } else { "" };
    format!("{before}{}", lines[omitted..].join("\n"))
}

/// The first line of a result, without the lines of a diff.
fn result_line(display: &str) -> String {
    let line = display.trim().lines().next().unwrap_or_default();
    if line.starts_with("--- ") {
        return "changed".to_owned();
    }
    let short: String = line.chars().take(MAX_RESULT_CHARS).collect();
    let more = if short.len() < display.trim().len() {
        "…"
    } else {
        ""
    };
    format!("{short}{more}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_tools::ToolErrorCategory;

    use super::*;

    fn prompt(text: &str) -> LoopbackEvent {
        LoopbackEvent::Prompt(text.to_owned())
    }

    fn response(text: &str) -> [LoopbackEvent; 2] {
        let requesting = LoopbackEvent::Requesting { iteration: 1 };
        [requesting, LoopbackEvent::Text(text.to_owned())]
    }

    fn call(id: &str, failure: Option<ToolErrorCategory>) -> [LoopbackEvent; 2] {
        let started = LoopbackEvent::ToolStarted {
            id: id.to_owned(),
            tool: "bash".to_owned(),
            params: json!({ "command": format!("run {id}") }),
        };
        let finished = LoopbackEvent::ToolFinished {
            id: id.to_owned(),
            tool: "bash".to_owned(),
            failure,
            display: format!("result of {id}\nmore"),
            filter: None,
            locations: Vec::new(),
            changes: Vec::new(),
            duration_ms: 0,
        };
        [started, finished]
    }

    /// Proves CLI-6: the last exchanges are shown with one line for each call.
    #[test]
    fn last_exchanges_have_one_line_for_each_call() {
        let mut events = Vec::new();
        for number in 1..=4 {
            events.push(prompt(&format!("prompt {number}")));
            events.extend(response("I look."));
            events.extend(call(&number.to_string(), None));
            events.extend(response(&format!("response {number}")));
        }
        let items = recap(&events);
        assert_eq!(items[0], RecapItem::Earlier(1));
        assert_eq!(items[1], RecapItem::Prompt("prompt 2".to_owned()));
        let expect = RecapItem::Call {
            title: "run 2".to_owned(),
            result: "result of 2…".to_owned(),
            has_failed: false,
        };
        assert_eq!(items[2], expect);
        assert_eq!(items[3], RecapItem::Response("response 2".to_owned()));
        assert_eq!(items.len(), 10);
        assert_eq!(recap(&[]), []);
    }

    #[test]
    fn long_exchanges_are_bounded() {
        let mut events = vec![prompt(&"line\n".repeat(10))];
        for number in 0..20 {
            let failure = (number == 19).then_some(ToolErrorCategory::Timeout);
            events.extend(call(&number.to_string(), failure));
        }
        events.extend(response(&"text\n".repeat(100)));
        let items = recap(&events);
        assert_eq!(
            items[0],
            RecapItem::Prompt("line\nline\nline\nline\n…".to_owned())
        );
        assert_eq!(items[1], RecapItem::EarlierCalls(14));
        assert!(matches!(
            &items[7],
            RecapItem::Call {
                has_failed: true,
                ..
            }
        ));
        let RecapItem::Response(text) = &items[8] else {
            panic!("{items:?}");
        };
        assert_eq!(text.lines().count(), MAX_RESPONSE_LINES + 1);
    }
}
