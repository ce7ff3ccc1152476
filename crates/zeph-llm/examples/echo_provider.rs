//! A custom provider, which repeats the prompt.
#![allow(clippy::print_stdout)]

use zeph_llm::{
    ChatRequest, ChatResponse, LlmError, LlmProvider, Message, MessagePart, StopReason,
    StreamEvent, StreamSink, Usage, async_trait,
};

#[derive(Debug)]
struct Echo;

#[async_trait]
impl LlmProvider for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn model(&self) -> &str {
        "echo-1"
    }

    fn supports_tool_use(&self) -> bool {
        false
    }

    fn context_window(&self) -> usize {
        8_192
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let prompt = request
            .messages
            .last()
            .map(|message| message.clone().text());
        let text = format!("You said: {}", prompt.unwrap_or_default());
        // A provider with a server passes each piece of the text when it arrives.
        sink(StreamEvent::TextDelta(text.clone()));
        let parts = vec![MessagePart::Text { text }];
        Ok(ChatResponse::from_parts(
            parts,
            StopReason::EndTurn,
            Usage::default(),
        ))
    }
}

#[tokio::main]
async fn main() -> Result<(), LlmError> {
    let text = Echo.chat("", &[Message::user("Hello.")]).await?;
    println!("{text}");
    Ok(())
}

// Prints:
// You said: Hello.
