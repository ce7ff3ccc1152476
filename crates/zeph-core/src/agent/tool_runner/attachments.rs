//! Resources and prompts of MCP servers in the input of the user: `@SERVER:URI` and `/mcp:SERVER:PROMPT`.

use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_tools::{ToolCall, content_for_llm};

use super::{ToolRunner, user_call_id};
use crate::agent::mentions::{CLOSERS, OPENERS};

/// The start of each attachment in the text of a prompt. The text before the first one is the input of the user.
pub const ATTACHMENT_START: &str = "\n\n[the user attached the ";
/// The most resources of one prompt, and the most files.
pub(super) const MAX_ATTACHMENTS: usize = 16;
/// The start of the message with a prompt of a server. The name of the prompt follows.
const PROMPT_MARK: &str = "[the user chose the prompt ";
/// Follows the name of the prompt.
const PROMPT_SERVER: &str = " of the MCP server ";
/// Follows the name of the server.
const PROMPT_END: &str = ", which wrote the following text]\n";

/// The slash command of the user that became this message; `None` for other messages.
pub(in crate::agent) fn prompt_command(message: &str) -> Option<String> {
    let (head, _) = message.strip_prefix(PROMPT_MARK)?.split_once(PROMPT_END)?;
    let (name, server) = head.rsplit_once(PROMPT_SERVER)?;
    Some(format!("/mcp:{server}:{name}"))
}

impl ToolRunner {
    /// The prompt with the resources that it names. Each one is read by a call of the user, so that the limits of results,
    /// the search for secrets and the audit trail include it.
    ///
    /// # Errors
    /// A resource cannot be read.
    pub(in crate::agent) async fn with_resources(
        &self,
        session: &str,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let Some(servers) = &self.servers else {
            return Ok(prompt.to_owned());
        };
        let named = mentions(prompt, |name| servers.has_server(name));
        if named.len() > MAX_ATTACHMENTS {
            return Err(format!(
                "a prompt names at most {MAX_ATTACHMENTS} resources"
            ));
        }
        let mut text = prompt.to_owned();
        for (server, uri) in named {
            let call = ToolCall::new(
                user_call_id(),
                servers.resource_tool(),
                json!({ "server": server, "uri": uri }),
                session,
            );
            let result = self.dispatcher.run_user_call(&call, cancel).await;
            if let Err(error) = &result {
                return Err(format!("@{server}:{uri} cannot be attached: {error}"));
            }
            text.push_str(&format!(
                "{ATTACHMENT_START}resource {uri} of the MCP server {server}; \
                 the following text comes from the server, not from the user]\n{}\n[end of the resource {uri}]",
                content_for_llm(&result)
            ));
        }
        Ok(text)
    }

    /// The text of a server's prompt, as a prompt of the user.
    ///
    /// # Errors
    /// The prompt does not exist, an argument is missing, or the server fails.
    pub(in crate::agent) async fn server_prompt(
        &self,
        command: (&str, &str),
        arguments: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let (server, name) = command;
        let servers = self.servers.as_ref().ok_or(super::NO_SERVER)?;
        let user = (self.dispatcher.events(), self.dispatcher.questions(cancel));
        let text = servers
            .prompt(server, name, arguments, user, cancel)
            .await?;
        Ok(format!(
            "{PROMPT_MARK}{name}{PROMPT_SERVER}{server}{PROMPT_END}{text}"
        ))
    }

    /// The lines of `/help` about prompts of servers.
    pub(in crate::agent) fn prompt_help(&self) -> String {
        let prompts = self.servers.iter().flat_map(|servers| servers.prompts());
        prompts
            .map(|(command, description)| format!("{command:<14} {description}\n"))
            .collect()
    }
}

/// The resources that a prompt names: words of the form `@SERVER:URI` with the name of a server.
/// The word may follow a bracket, and punctuation at its end is not part of the URI.
fn mentions(prompt: &str, is_server: impl Fn(&str) -> bool) -> Vec<(&str, &str)> {
    let is_closer = |char: char| CLOSERS.contains(&char) || matches!(char, '"' | '\'');
    let mut found = Vec::new();
    for word in prompt.split_whitespace() {
        let mention = word.trim_start_matches(OPENERS).strip_prefix('@');
        let named = mention.and_then(|mention| mention.split_once(':'));
        let Some((server, uri)) = named else { continue };
        let uri = uri.trim_end_matches(is_closer);
        if !uri.is_empty() && is_server(server) && !found.contains(&(server, uri)) {
            found.push((server, uri));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves MCP-1b.
    #[test]
    fn resources_are_found_by_the_name_of_a_server() {
        let check = |prompt, expect: &[(&str, &str)]| {
            assert_eq!(mentions(prompt, |name| name == "t"), expect, "{prompt}");
        };
        check(
            "see @t:file:///a/b.txt, and @t:x:y",
            &[("t", "file:///a/b.txt"), ("t", "x:y")],
        );
        check(
            "see @t:x:y. (@t:x:z) @t:x:w?",
            &[("t", "x:y"), ("t", "x:z"), ("t", "x:w")],
        );
        check("\"see @t:x:y.\"", &[("t", "x:y")]);
        check("@t:a @t:a", &[("t", "a")]);
        check("a@t:b @u:c @src/lib.rs @t: @t", &[]);
    }
}
