//! Prompts of servers as slash commands: their list, their arguments and their text.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use zeph_tools::EventSink;
use zeph_tools::question::QuestionPort;
use zeph_tools::words::split_words;

use crate::connection::{Caller, ServerPrompt};
use crate::failure::About;
use crate::result::rendered;
use crate::sanitize::line;
use crate::servers::McpServers;

/// The most bytes of a prompt's text.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 300;

impl McpServers {
    /// Whether a server has this name.
    #[must_use]
    pub fn has_server(&self, name: &str) -> bool {
        self.all().iter().any(|server| server.config.name == name)
    }

    /// The slash commands of all prompts, with their descriptions and arguments.
    #[must_use]
    pub fn prompts(&self) -> Vec<(String, String)> {
        let of_server = |server: &Arc<crate::server::Server>| {
            let name = server.config.name.clone();
            let prompts = server.with(|state| match state.link {
                Some(_) => state.prompts.clone(),
                None => Vec::new(),
            });
            prompts.into_iter().map(move |prompt| {
                let command = format!("/mcp:{name}:{}", prompt.name);
                let usage = usage(&prompt);
                let described = match (usage.as_str(), prompt.description.as_str()) {
                    ("", text) | (text, "") => text.to_owned(),
                    (usage, text) => format!("{usage}: {text}"),
                };
                (command, described)
            })
        };
        self.all().iter().flat_map(of_server).collect()
    }

    /// Requests the text of a prompt. `arguments` is the text after the slash command. `user` receives notices, and
    /// answers questions if that is possible.
    ///
    /// # Errors
    /// The prompt does not exist, an argument is missing, or the server fails.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
        user: (Arc<dyn EventSink>, Option<Arc<dyn QuestionPort>>),
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        tokio::select! {
            () = self.settle(server) => {}
            () = cancel.cancelled() => return Err("it was cancelled".to_owned()),
        }
        let (server, link) = self.link(server).map_err(|error| error.to_string())?;
        let known = server.with(|state| {
            let found = state.prompts.iter().find(|prompt| prompt.name == name);
            found.cloned()
        });
        let Some(prompt) = known else {
            return Err(format!(
                "the MCP server {} has no prompt {name:?}; /help lists the prompts",
                server.config.name
            ));
        };
        let arguments = values(&prompt, arguments).map_err(|why| {
            let command = format!("/mcp:{}:{name}", server.config.name);
            let usage = usage(&prompt);
            format!(
                "{why}; the form is {}",
                format!("{command} {usage}").trim_end()
            )
        })?;
        let about = About {
            server: &server.config.name,
            tool: Some(name),
        };
        let caller = Arc::new(Caller::of_session(user.0, user.1));
        let limit = server.config.call_timeout();
        let result = link
            .prompt(about, name, arguments, limit, &caller, cancel)
            .await
            .map_err(|error| line(&error.to_string(), MAX_REASON_CHARS))?;
        Ok(text(&result))
    }
}

/// The arguments of a prompt in a line of help: optional ones in brackets.
fn usage(prompt: &ServerPrompt) -> String {
    let argument = |(name, is_required): &(String, bool)| {
        let name = line(name, 60).to_uppercase();
        if *is_required {
            name
        } else {
            format!("[{name}]")
        }
    };
    let arguments: Vec<String> = prompt.arguments.iter().map(argument).collect();
    arguments.join(" ")
}

/// The arguments that `text` gives: `name=value`, or values in the order of the arguments. Quotes group words.
fn values(prompt: &ServerPrompt, text: &str) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    let names: Vec<&str> = prompt
        .arguments
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    if let [name] = names[..]
        && !text.starts_with(&format!("{name}="))
        && !text.starts_with(['"', '\''])
    {
        // One argument takes the whole text.
        if !text.is_empty() {
            values.insert(name.to_owned(), json!(text));
        }
    } else {
        let words = split_words(text).ok_or("a quote is not closed")?;
        for word in words {
            let named = word
                .split_once('=')
                .filter(|(name, _)| names.contains(name));
            let (name, value) = match named {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => {
                    let mut free = names.iter().filter(|name| !values.contains_key(**name));
                    let Some(name) = free.next() else {
                        return Err(format!("{word:?} is one argument too many"));
                    };
                    ((*name).to_owned(), word)
                }
            };
            values.insert(name, json!(value));
        }
    }
    let missing = prompt.arguments.iter();
    let mut missing = missing.filter(|(name, required)| *required && !values.contains_key(name));
    match missing.next() {
        Some((name, _)) => Err(format!("the argument {} is missing", line(name, 60))),
        None => Ok(values),
    }
}

/// The messages of a prompt as one text.
fn text(result: &Value) -> String {
    let messages = result.get("messages").and_then(Value::as_array);
    let mut parts = Vec::new();
    for message in messages.into_iter().flatten() {
        let content = message.get("content").unwrap_or(&Value::Null);
        let said = rendered(&json!({ "content": [content] }), false);
        let said = said.output.summary;
        parts.push(match message.get("role").and_then(Value::as_str) {
            Some("assistant") => format!("[as the model's response]\n{said}"),
            _ => said,
        });
    }
    let mut text = parts.join("\n\n");
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push_str("\n[the prompt is longer; it was cut here]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(arguments: &[(&str, bool)]) -> ServerPrompt {
        ServerPrompt {
            name: "p".to_owned(),
            description: String::new(),
            arguments: arguments
                .iter()
                .map(|(name, required)| ((*name).to_owned(), *required))
                .collect(),
        }
    }

    /// Proves MCP-1b.
    #[test]
    fn arguments_are_given_by_order_or_name() {
        let two = prompt(&[("path", true), ("style", false)]);
        assert_eq!(usage(&two), "PATH [STYLE]");
        let check = |prompt: &ServerPrompt, text: &str, expect: Result<Value, &str>| {
            let found = values(prompt, text).map(Value::Object);
            match expect {
                Ok(expect) => assert_eq!(found, Ok(expect), "{text}"),
                Err(part) => assert!(found.clone().unwrap_err().contains(part), "{found:?}"),
            }
        };
        check(&two, "a.rs", Ok(json!({"path": "a.rs"})));
        check(
            &two,
            "'a b' short",
            Ok(json!({"path": "a b", "style": "short"})),
        );
        check(
            &two,
            "style=x a=b",
            Ok(json!({"style": "x", "path": "a=b"})),
        );
        check(&two, "a.rs #1", Ok(json!({"path": "a.rs", "style": "#1"})));
        check(&two, "", Err("the argument path is missing"));
        check(&two, "a b c", Err("\"c\" is one argument too many"));
        check(&two, "'a", Err("a quote is not closed"));
        let one = prompt(&[("text", true)]);
        check(
            &one,
            "it's all of it",
            Ok(json!({"text": "it's all of it"})),
        );
        check(&one, "text='a b'", Ok(json!({"text": "a b"})));
        check(&prompt(&[]), "", Ok(json!({})));
        check(&prompt(&[]), "x", Err("too many"));
    }

    /// Proves MCP-1b.
    #[test]
    fn messages_become_one_text() {
        let result = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Review this."}},
            {"role": "assistant", "content": {"type": "text", "text": "Yes."}},
            {"role": "user", "content": {"type": "resource", "resource": {"uri": "f:a", "text": "x"}}},
        ]});
        let expect = "Review this.\n\n[as the model's response]\nYes.\n\n[resource f:a]\nx";
        assert_eq!(text(&result), expect);
    }
}
