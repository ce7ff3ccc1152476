//! Overflow of long output: the layer that stores it, and the tool that reads it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use zeph_tools::overflow::summary::{Excerpt, OutputSummarizer};
use zeph_tools::overflow::{Overflow, OverflowConfig, OverflowRef};
use zeph_tools::read_overflow::ReadOverflow;
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{
    Annotations, CallContext, EventSink, LayeredExecutor, Mode, Permissions, Tool, ToolCall,
    ToolDef, ToolError, ToolErrorCategory, ToolEvent, ToolExecutor as _, ToolOutput, ToolResult,
    ToolSet, UserDecision, content_for_llm,
};

use crate::fakes::{Audit, Kept};

#[derive(Deserialize, JsonSchema)]
struct Say {
    text: String,
    fail: Option<bool>,
}

/// An executor that returns the given text.
struct Parrot(ToolDef);

#[async_trait]
impl Tool for Parrot {
    fn definition(&self) -> &ToolDef {
        &self.0
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: Say = call.parse()?;
        let output = ToolOutput::text(params.text);
        match params.fail {
            Some(true) => Err(ToolError::Explained {
                category: ToolErrorCategory::Timeout,
                message: "it took too long".to_owned(),
                output: Box::new(output),
            }),
            _ => Ok(output),
        }
    }
}

struct World {
    kept: Arc<Kept>,
    audit: Arc<Audit>,
    stack: LayeredExecutor,
    notices: Arc<Notices>,
}

#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl EventSink for Notices {
    fn emit(&self, event: ToolEvent) {
        if let ToolEvent::Notice { text, .. } = event {
            self.0.lock().unwrap().push(text);
        }
    }
}

/// A summarizer that returns a text or fails, and records its requests.
struct Summaries {
    answer: Result<&'static str, &'static str>,
    read: Mutex<Vec<Excerpt>>,
}

#[async_trait]
impl OutputSummarizer for Summaries {
    fn name(&self) -> String {
        "m".to_owned()
    }

    fn max_bytes(&self) -> usize {
        100
    }

    async fn summarize(&self, excerpt: &Excerpt) -> Result<String, String> {
        self.read.lock().unwrap().push(excerpt.clone());
        self.answer.map(str::to_owned).map_err(str::to_owned)
    }
}

impl World {
    fn new(config: OverflowConfig, kept: Kept) -> Self {
        Self::summarizing(config, kept, None)
    }

    fn summarizing(
        config: OverflowConfig,
        kept: Kept,
        summarizer: Option<Arc<dyn OutputSummarizer>>,
    ) -> Self {
        let kept = Arc::new(kept);
        let audit = Arc::new(Audit::default());
        let parrot = Parrot(ToolDef::new::<Say>("say", "", Annotations::READ));
        let read = ReadOverflow::new(Arc::clone(&kept) as _, &config);
        let tools = ToolSet::new(vec![Arc::new(parrot), Arc::new(read)]);
        let stack = stack::build(StackParts {
            watchers: Vec::new(),
            secrets: Arc::default(),
            retry: Default::default(),
            executors: vec![("fake", Arc::new(tools))],
            audit: zeph_tools::AuditTrail::new(vec![Arc::clone(&audit) as _], false),
            cache: None,
            overflow: Some((Arc::clone(&kept) as _, config)),
            summarizer,
            permissions: Permissions::of(Mode::Ask),
            ..StackParts::default()
        });
        Self {
            kept,
            audit,
            stack: stack.unwrap(),
            notices: Arc::default(),
        }
    }

    fn of(threshold: usize) -> Self {
        let config = OverflowConfig {
            threshold,
            ..OverflowConfig::default()
        };
        Self::new(config, Kept::default())
    }

    async fn call_in(&self, conversation: &str, tool: &str, params: Value) -> ToolResult {
        let events = Arc::clone(&self.notices) as _;
        let cx = CallContext::new(CancellationToken::new(), events, UserDecision::Nobody);
        let call = ToolCall::new("call_1", tool, params, conversation);
        let answer = self.stack.execute_tool_call(&call, &cx).await;
        answer.map(|output| output.unwrap())
    }

    async fn say(&self, text: &str) -> ToolOutput {
        let said = self.call_in("session_1", "say", json!({ "text": text }));
        said.await.unwrap()
    }

    async fn read(&self, params: Value) -> ToolResult {
        self.call_in("session_1", "read_overflow", params).await
    }

    /// Reads lines of the last stored output.
    async fn lines(&self, mut params: Value) -> String {
        params["id"] = json!(self.last().to_string());
        self.read(params).await.unwrap().summary
    }

    fn last(&self) -> OverflowRef {
        self.kept.entries.lock().unwrap().last().unwrap().reference
    }
}

fn numbered(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

/// Proves OUT-30.
#[tokio::test]
async fn only_output_over_the_threshold_is_stored() {
    let world = World::of(1000);
    for text in [String::new(), "ä".repeat(1000), "x\n".repeat(500)] {
        let output = world.say(&text).await;
        assert_eq!((output.summary, output.overflow), (text, None));
    }
    assert!(world.kept.entries.lock().unwrap().is_empty());

    let text = numbered(2000);
    let output = world.say(&text).await;
    let reference = world.last();
    assert_eq!(output.overflow, Some(Overflow::Stored(reference)));
    let read = &output.summary;
    assert!(read.chars().count() <= 1000, "{read}");
    assert!(read.starts_with("line 1\nline 2\n"), "{read}");
    assert!(read.ends_with("\nline 1999\nline 2000\n"), "{read}");
    assert!(read.contains(&reference.to_string()), "{read}");
    assert!(read.contains("read_overflow"), "{read}");
    assert_eq!(output.metadata.data_size_bytes, read.len() as u64);
    // The audit entry has the size of the text for the model.
    let entries = world.audit.entries.lock().unwrap();
    assert_eq!(entries.last().unwrap().result_size, read.len() as u64);

    let entry = world.kept.entries.lock().unwrap().pop().unwrap();
    assert_eq!((&*entry.conversation, &*entry.tool), ("session_1", "say"));
    assert_eq!(entry.text.bytes(), text.len() as u64);
}

/// Proves OUT-30: output of a failed or stopped call is stored like any other.
#[tokio::test]
async fn output_of_a_failure_is_stored() {
    let world = World::of(1000);
    let params = json!({ "text": numbered(2000), "fail": true });
    let result = world.call_in("session_1", "say", params).await;
    let text = content_for_llm(&result);
    assert!(
        text.starts_with("[tool_error]\ncategory: timeout\n"),
        "{text}"
    );
    assert!(text.contains(&world.last().to_string()), "{text}");
    assert!(text.chars().count() < 1300, "{text}");
    assert_eq!(world.lines(json!({"offset": 1234, "limit": 1})).await, {
        "1234\tline 1234\n(766 more lines; continue with offset=1235)"
    });
}

/// Proves OUT-30.
#[tokio::test]
async fn truncated_entry_is_reported() {
    let config = OverflowConfig {
        threshold: 1000,
        max_overflow_bytes: 5000,
        ..OverflowConfig::default()
    };
    let world = World::new(config, Kept::default());
    let output = world.say(&numbered(2000)).await;
    let reported = "the first 4995 of 18893 bytes (lines 1-567) are stored";
    assert!(output.summary.contains(reported), "{}", output.summary);
    assert!(
        output.summary.chars().count() <= 1000,
        "{}",
        output.summary.len()
    );
    assert!(output.summary.ends_with("line 2000\n"));
    let reported = "(it was cut before it was stored: the first 4995 of 18893 bytes \
                ([tools.overflow] max_overflow_bytes))";
    let read = world.lines(json!({"offset": 567})).await;
    assert_eq!(read, format!("567\tline 567\n{reported}"));
    let read = world.lines(json!({"pattern": "line 1999"})).await;
    assert_eq!(read, reported.replace("(it", "(no line matches; it"));
    let params = json!({"id": world.last().to_string(), "offset": 568});
    let error = world.read(params).await.unwrap_err();
    assert_eq!(error.category(), ToolErrorCategory::InvalidParameters);
    let text = error.to_string();
    assert!(
        text.contains("has 567 lines") && text.contains("was cut"),
        "{text}"
    );
}

/// Proves OUT-34.
#[tokio::test]
async fn failing_store_loses_the_middle_and_not_the_call() {
    let kept = Kept {
        broken: true,
        ..Kept::default()
    };
    let config = OverflowConfig {
        threshold: 1000,
        ..OverflowConfig::default()
    };
    for (world, conversation, why) in [
        (World::new(config, kept), "session_1", "the disk is full"),
        (World::of(1000), "none", "the conversation is not stored"),
    ] {
        let params = json!({ "text": numbered(2000) });
        let output = world.call_in(conversation, "say", params).await.unwrap();
        let read = &output.summary;
        assert!(read.chars().count() <= 1000, "{read}");
        assert!(read.starts_with("line 1\n") && read.ends_with("line 2000\n"));
        assert!(read.contains("could not be stored and are lost"), "{read}");
        assert!(!read.contains("overflow:"), "{read}");
        assert_eq!(output.overflow, None);
        let notices = world.notices.0.lock().unwrap();
        assert!(
            notices.len() == 1 && notices[0].contains(why),
            "{notices:?}"
        );
    }
}

/// Proves OUT-32.
#[tokio::test]
async fn lines_are_read_by_range_and_by_pattern() {
    let world = World::of(1000);
    let text: String = (1..=100_000)
        .map(|n| format!("line {n} {}\n", if n % 5000 == 0 { "five" } else { "-" }))
        .collect();
    world.say(&text).await;
    let check = async |params: Value, expect: &str| {
        assert_eq!(world.lines(params.clone()).await, expect, "{params}");
    };
    check(
        json!({"offset": 77_777, "limit": 2}),
        "77777\tline 77777 -\n77778\tline 77778 -\n(22222 more lines; continue with offset=77779)",
    )
    .await;
    check(json!({"offset": 100_000}), "100000\tline 100000 five").await;
    check(
        json!({"pattern": "five$", "limit": 2}),
        "5000\tline 5000 five\n10000\tline 10000 five\n\
         (lines from 15000 of 100000 were not searched; continue with offset=15000)",
    )
    .await;
    check(
        json!({"pattern": "^line 99+ ", "offset": 100}),
        "999\tline 999 -\n9999\tline 9999 -\n99999\tline 99999 -",
    )
    .await;
    check(json!({"pattern": "six"}), "(no line matches)").await;
    // Lines at block boundaries are neither lost nor doubled.
    let mut next = 1;
    let mut seen = 0;
    while next <= 100_000 {
        let mut params = json!({ "offset": next });
        params["id"] = json!(world.last().to_string());
        let output = world.read(params).await.unwrap();
        assert!(output.summary.chars().count() <= 1000);
        assert_eq!(output.overflow, None);
        for line in output.summary.lines().filter(|line| !line.starts_with('(')) {
            seen += 1;
            let begin = format!("{seen}\tline {seen} ");
            assert!(line.starts_with(&begin), "{line:?} is not {begin:?}");
        }
        let raw = output.raw_response.unwrap();
        next = raw["next_offset"].as_u64().unwrap_or(u64::MAX);
    }
    assert_eq!(seen, 100_000);
    assert_eq!(world.kept.entries.lock().unwrap().len(), 1);
}

/// Proves OUT-32.
#[tokio::test]
async fn overlong_line_is_shown_in_part() {
    let world = World::of(2000);
    let text = format!(
        "first\n{}needle{}\nlast",
        "ä".repeat(300_000),
        "x".repeat(5_000_000)
    );
    world.say(&text).await;
    let read = world.lines(json!({"offset": 2})).await;
    assert!(read.starts_with("2\tää") && read.chars().count() <= 2000);
    assert!(read.contains("…\n(line 2 is too long"), "{read}");
    assert!(read.ends_with("1 more lines; continue with offset=3)"));
    let read = world.lines(json!({"pattern": "n.?eedle"})).await;
    let around = format!("2\t…{}needle{}…", "ä".repeat(400), "x".repeat(400));
    assert_eq!(read, around);
    assert_eq!(world.lines(json!({"offset": 3})).await, "3\tlast");
    let read = world.lines(json!({"offset": 1, "limit": 1})).await;
    assert!(read.starts_with("1\tfirst\n("));
}

/// Proves OUT-32, ERR-5.
#[tokio::test]
async fn reference_is_valid_only_in_its_conversation() {
    let world = World::of(1000);
    world.say(&numbered(1000)).await;
    let reference = world.last();
    for id in [reference.to_string(), reference.uuid()] {
        let output = world.read(json!({"id": id, "limit": 1})).await.unwrap();
        assert!(output.summary.starts_with("1\tline 1\n"));
    }
    let other = OverflowRef::new();
    let refused = async |conversation: &str, reference: OverflowRef| {
        let params = json!({"id": reference.uuid()});
        let result = world.call_in(conversation, "read_overflow", params).await;
        let error = result.unwrap_err();
        assert!(error.is_missing());
        let text = content_for_llm(&Err(error));
        text.replace(&reference.to_string(), "REF")
    };
    let never = refused("session_1", other).await;
    assert_eq!(refused("session_2", reference).await, never);
    assert!(
        never.contains("there is no REF in this conversation"),
        "{never}"
    );
    for params in [
        json!({"id": "overflow:1' OR '1'='1"}),
        json!({"id": reference.uuid(), "offset": 0}),
        json!({"id": reference.uuid(), "limit": -1}),
        json!({"id": reference.uuid(), "pattern": "(unclosed"}),
        json!({"id": reference.uuid(), "pattern": "x{1000}{1000}{1000}"}),
        json!({"id": reference.uuid(), "pattern": "x".repeat(5000)}),
        json!({"id": reference.uuid(), "offset": 1001}),
    ] {
        let error = world.read(params.clone()).await.unwrap_err();
        assert_eq!(
            error.category(),
            ToolErrorCategory::InvalidParameters,
            "{params}"
        );
    }
}

/// Proves D-37: the summary of an over-long output follows its reference; after a failure, head and tail
/// remain.
#[tokio::test]
async fn summary_of_a_long_output_follows_its_reference() {
    let config = OverflowConfig {
        threshold: 1000,
        ..OverflowConfig::default()
    };
    for answer in [Ok("3 of 9 failed"), Err("no answer")] {
        let summaries = Arc::new(Summaries {
            answer,
            read: Mutex::default(),
        });
        let summarizer = Some(Arc::clone(&summaries) as _);
        let world = World::summarizing(config.clone(), Kept::default(), summarizer);
        let short = world.say("short").await;
        assert_eq!(short.summary, "short");
        assert_eq!(
            summaries.read.lock().unwrap().len(),
            0,
            "nothing to summarize"
        );

        let output = world.say(&numbered(1000)).await.summary;
        let read = summaries.read.lock().unwrap().clone();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].tool, "say");
        assert!(read[0].text.starts_with("line 1\n") && read[0].text.ends_with("line 1000\n"));
        assert!(read[0].text.len() < 200, "{}", read[0].text);
        assert!(
            output.starts_with("line 1\n") && output.ends_with("line 1000\n"),
            "{output}"
        );
        let at = output.find("overflow:").unwrap();
        let notices = world.notices.0.lock().unwrap().clone();
        match answer {
            Ok(answer) => {
                let summary = format!("[summary by the model m; it may be wrong:\n{answer}\n");
                assert!(output.find(&summary).unwrap() > at, "{output}");
                assert!(notices.is_empty(), "{notices:?}");
            }
            Err(reason) => {
                assert!(!output.contains("summary by"), "{output}");
                assert!(notices[0].contains(reason), "{notices:?}");
            }
        }
    }
}
