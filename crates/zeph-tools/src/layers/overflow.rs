//! The `overflow` layer: stores output that is too long. The model receives its start and end, the size of the
//! omitted part, and the reference for `read_overflow`.
//!
//! The output of a failed or stopped call is handled in the same way.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::output::ToolOutput;
use crate::overflow::summary::{Excerpt, OutputSummarizer};
use crate::overflow::{
    NewEntry, OutputCollector, Overflow, OverflowConfig, OverflowRef, OverflowStore, Spilled,
    TruncatedText, TruncationNotice,
};
use crate::read_overflow::READ_OVERFLOW;

/// The layer that stores long output.
pub struct OverflowLayer {
    store: Arc<dyn OverflowStore>,
    config: OverflowConfig,
    summarizer: Option<Arc<dyn OutputSummarizer>>,
}

impl OverflowLayer {
    /// Creates a layer that stores output above the limits of `config` in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn OverflowStore>, config: OverflowConfig) -> Self {
        Self {
            store,
            config,
            summarizer: None,
        }
    }

    /// Adds a summary of each over-long output next to its reference.
    #[must_use]
    pub fn with_summarizer(self, summarizer: Option<Arc<dyn OutputSummarizer>>) -> Self {
        Self { summarizer, ..self }
    }

    /// Returns a summary of a stored output as a part of the note; empty without a summarizer and if it fails.
    async fn summary(&self, call: &ToolCall, cx: &CallContext, spilled: &Spilled) -> String {
        let Some(summarizer) = &self.summarizer else {
            return String::new();
        };
        let summary = async {
            let excerpt = Excerpt::read(&call.tool, spilled, summarizer.max_bytes())?;
            summarizer.summarize(&excerpt).await
        };
        match cx.cancel.run_until_cancelled(summary).await {
            Some(Ok(summary)) => {
                let name = summarizer.name();
                format!(" …]\n[summary by the model {name}; it may be wrong:\n{summary}\n")
            }
            Some(Err(error)) => {
                tracing::warn!(%error, tool = %call.tool, "a long output was not summarized");
                cx.emit(ToolEvent::Notice {
                    call_id: call.id.clone(),
                    text: format!("the output of {} was not summarized: {error}", call.tool),
                });
                String::new()
            }
            None => String::new(),
        }
    }

    /// Stores the output if it is too long, and adds its reference to the text.
    async fn keep(&self, call: &ToolCall, cx: &CallContext, output: &mut ToolOutput) {
        let shortened = match output.overflow.take() {
            Some(Overflow::Spilled(shortened)) => shortened,
            Some(Overflow::Elided(elided)) => {
                self.keep_all(call, cx, output, &elided).await;
                return;
            }
            stored @ Some(Overflow::Stored(_)) => {
                output.overflow = stored;
                return;
            }
            None => match self.shorten(&mut output.summary) {
                Some(shortened) => shortened,
                None => return,
            },
        };
        let stored = self.store(call, cx, &shortened.spilled).await;
        let omitted = shortened.omitted.told();
        match stored {
            Some(reference) => {
                let mut note = stored_note(&shortened, &omitted, reference);
                note.push_str(&self.summary(call, cx, &shortened.spilled).await);
                shortened.note(&mut output.summary, &note);
                output.overflow = Some(Overflow::Stored(reference));
            }
            None => {
                let note = format!("{omitted} omitted; they could not be stored and are lost");
                shortened.note(&mut output.summary, &note);
                // The next call may succeed, so this result is not cached.
                output.basis = None;
            }
        }
    }

    /// Stores the complete output if a filter omitted a part of it.
    async fn keep_all(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        output: &mut ToolOutput,
        elided: &TruncationNotice,
    ) {
        match self.store(call, cx, &elided.spilled).await {
            Some(reference) => {
                elided.stored(&mut output.summary, reference);
                output.overflow = Some(Overflow::Stored(reference));
            }
            None => elided.lost(&mut output.summary),
        }
    }

    /// Stores a text. A failure is reported to observers.
    async fn store(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        text: &Spilled,
    ) -> Option<OverflowRef> {
        let reference = OverflowRef::new();
        let entry = NewEntry {
            reference,
            conversation: call.conversation.clone(),
            tool: call.tool.clone(),
            text: text.clone(),
        };
        match self.store.put(entry).await {
            Ok(()) => Some(reference),
            Err(error) => {
                tracing::warn!(%error, tool = %call.tool, "a long output was not stored");
                cx.emit(ToolEvent::Notice {
                    call_id: call.id.clone(),
                    text: format!("the output of {} was shortened: {error}", call.tool),
                });
                None
            }
        }
    }

    /// Cuts `text` to head and tail if it is too long.
    fn shorten(&self, text: &mut String) -> Option<TruncatedText> {
        // A character has at least one byte, so this check suffices.
        if text.len() <= self.config.threshold {
            return None;
        }
        let mut long = OutputCollector::new(&self.config);
        long.push(text);
        let ended = long.finish();
        let shortened = ended.shortened?;
        *text = ended.text;
        Some(shortened)
    }
}

/// Returns the note between start and end.
fn stored_note(shortened: &TruncatedText, omitted: &str, reference: OverflowRef) -> String {
    let spilled = &shortened.spilled;
    let kept = if spilled.bytes() < spilled.total_bytes() {
        format!(
            "the first {} of {} bytes (lines 1-{}) are",
            spilled.bytes(),
            spilled.total_bytes(),
            spilled.lines()
        )
    } else {
        "all of it is".to_owned()
    };
    format!(
        "{omitted} omitted; {kept} stored as {reference}: {READ_OVERFLOW} shows it by offset and \
         limit (lines) or pattern"
    )
}

#[async_trait]
impl ToolLayer for OverflowLayer {
    fn name(&self) -> &'static str {
        "overflow"
    }

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let mut result = next.run(call, cx).await;
        // Stored text is not stored again.
        if call.tool == READ_OVERFLOW {
            return result;
        }
        let output = match &mut result {
            Ok(output) => Some(output),
            Err(error) => error.output_mut(),
        };
        if let Some(output) = output {
            self.keep(call, cx, output).await;
        }
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
