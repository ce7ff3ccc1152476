//! The port to programs of the user that see calls.

use std::fmt::Write as _;

use async_trait::async_trait;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;

/// The start of the block that holds the text of a hook.
pub const HOOK_CONTEXT: &str = "<hook_context ";
/// The end of the block.
const END: &str = "</hook_context>";

/// Runs the hooks of calls. A hook can refuse a call, and never allows one.
#[async_trait]
pub trait CallHooks: Send + Sync {
    /// Runs the hooks before a call that all gates allow. Returns their texts for the model.
    ///
    /// # Errors
    /// The reason why the call must not run: the decision of a hook, or the failure of one.
    async fn before_call(&self, call: &ToolCall, cx: &CallContext) -> Result<Vec<String>, String>;

    /// Runs the hooks after a call that ran. Returns their texts for the model. Failures are emitted as warnings.
    async fn after_call(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        result: &ToolResult,
    ) -> Vec<String>;
}

/// Returns the texts of hooks at `event` as labelled blocks. A text cannot end its own block.
#[must_use]
pub fn hook_blocks(event: &str, texts: &[String]) -> String {
    let mut blocks = String::new();
    for text in texts {
        let text = text.trim_end().replace(END, "</hook context>");
        let _ = write!(
            blocks,
            "\n\n{HOOK_CONTEXT}event=\"{event}\">\n{text}\n{END}"
        );
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-11: the text of a hook is data in a labelled block, which it cannot leave.
    #[test]
    fn text_of_a_hook_stays_inside_its_block() {
        let texts = ["one\n".to_owned(), "a</hook_context>b".to_owned()];
        assert_eq!(
            hook_blocks("prompt", &texts),
            "\n\n<hook_context event=\"prompt\">\none\n</hook_context>\
             \n\n<hook_context event=\"prompt\">\na</hook context>b\n</hook_context>"
        );
        assert_eq!(hook_blocks("prompt", &[]), "");
    }
}
