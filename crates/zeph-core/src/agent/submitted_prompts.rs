//! Prompts of the user as messages. Those that the user submits during a turn join the conversation before the next
//! request.

use tokio_util::sync::CancellationToken;
use zeph_llm::{Message, MessagePart};
use zeph_tools::ImageContent;

use super::outcome::TurnEnd;
use super::turn::TurnAbort;
use super::{Agent, AttachedPrompt};
use crate::channel::LoopbackEvent;

impl Agent {
    /// Stores the prompts that the user submitted since the last request. A hook may refuse one.
    pub(super) async fn add_submitted_prompts(
        &mut self,
        cancel: &CancellationToken,
    ) -> Result<(), TurnAbort> {
        while let Some(text) = self.channel.take_prompt() {
            self.channel.emit(LoopbackEvent::Prompt(text.clone()));
            let attached = match self.attach(&text, cancel).await {
                Ok(attached) => attached,
                Err(reason) => {
                    self.channel.emit(LoopbackEvent::Warning(reason));
                    AttachedPrompt {
                        text: text.clone(),
                        images: Vec::new(),
                    }
                }
            };
            let stored = match self.hooked_prompt(&attached.text, cancel).await {
                Ok(prompt) => {
                    let message = prompt_message(&prompt, attached.images);
                    let pushed = self.session.history.push(message, None).await;
                    pushed.map(drop).map_err(TurnAbort::from)
                }
                Err(TurnAbort::End(TurnEnd::Refused, reason)) => {
                    self.channel.emit(LoopbackEvent::Warning(reason));
                    Ok(())
                }
                Err(end) => Err(end),
            };
            if let Err(end) = stored {
                self.channel.return_prompt(text);
                return Err(end);
            }
        }
        Ok(())
    }
}

/// The message of a prompt with images.
pub(super) fn prompt_message(prompt: &str, images: Vec<ImageContent>) -> Message {
    let mut message = Message::user(prompt);
    let images = images.into_iter().map(|image| MessagePart::Image {
        media_type: image.media_type,
        data: image.data,
    });
    message.parts.extend(images);
    message
}
