//! Files and directories that the user attaches to a prompt: `@PATH`. Each one is read by a call of the user, so that the
//! path sandbox, the rules and the audit trail include it.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use zeph_tools::{ImageContent, ToolCall, ToolResult, content_for_llm};

use super::attachments::{ATTACHMENT_START, MAX_ATTACHMENTS};
use super::{ToolRunner, user_call_id};
use crate::agent::mentions::{LineRange, Mention, mentions, pasted_images};
use crate::channel::LoopbackEvent;

/// A prompt with the contents of its attachments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttachedPrompt {
    /// The text, with the attached texts at its end.
    pub text: String,
    /// The attached images.
    pub images: Vec<ImageContent>,
}

impl ToolRunner {
    /// The prompt with the files and directories that it names in the directory `project`. A path that does not exist
    /// remains text, and a notice lists it.
    ///
    /// # Errors
    /// A file cannot be read, for this reason. Nothing is attached then.
    pub(in crate::agent) async fn with_files(
        &self,
        (session, project): (&str, &Path),
        prompt: String,
        cancel: &CancellationToken,
    ) -> Result<AttachedPrompt, String> {
        let servers = self.servers.as_ref();
        let is_server = |mention: &Mention| {
            let name = mention.written[1..]
                .split_once(':')
                .map(|(server, _)| server);
            name.is_some_and(|name| servers.is_some_and(|servers| servers.has_server(name)))
        };
        let named = mentions(&prompt).into_iter();
        let named = named.filter(|mention| !is_server(mention));
        let (named, missing): (Vec<_>, Vec<_>) =
            named.partition(|mention| project.join(&mention.path).symlink_metadata().is_ok());
        if named.len() > MAX_ATTACHMENTS {
            return Err(format!("a prompt names at most {MAX_ATTACHMENTS} files"));
        }
        let pasted = match self.dispatcher.accepts_images() {
            true => pasted_images(&prompt),
            false => Vec::new(),
        };
        let mut attached = AttachedPrompt {
            text: prompt,
            images: Vec::new(),
        };
        for mention in &named {
            let result = self.attach(session, project, mention, cancel).await;
            let name = match mention.lines {
                Some(lines) => format!("{}, {lines}", mention.path),
                None => mention.path.clone(),
            };
            attached
                .push(&name, result)
                .map_err(|error| format!("{} cannot be attached: {error}", mention.written))?;
        }
        for path in pasted.iter().take(MAX_ATTACHMENTS) {
            if !Path::new(path).is_file() {
                continue;
            }
            let result = self
                .call("read", json!({ "path": path }), session, cancel)
                .await;
            if let Err(error) = attached.push(path, result) {
                self.warn(format!("{path} is not attached: {error}"));
            }
        }
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.iter().map(|it| it.written.as_str()).collect();
            self.warn(format!(
                "not attached, because it does not exist: {}",
                missing.join(", ")
            ));
        }
        Ok(attached)
    }

    /// Reads a file, or lists a directory.
    async fn attach(
        &self,
        session: &str,
        project: &Path,
        mention: &Mention,
        cancel: &CancellationToken,
    ) -> ToolResult {
        let path = &mention.path;
        if project.join(path).is_dir() {
            let params = json!({ "path": path });
            return self.call("list_directory", params, session, cancel).await;
        }
        let params = match mention.lines {
            None => json!({ "path": path }),
            Some(LineRange { first, last: None }) => json!({ "path": path, "offset": first }),
            Some(LineRange {
                first,
                last: Some(last),
            }) => json!({ "path": path, "offset": first, "limit": last - first + 1 }),
        };
        self.call("read", params, session, cancel).await
    }

    /// Runs a call of the user.
    async fn call(
        &self,
        tool: &str,
        params: Value,
        session: &str,
        cancel: &CancellationToken,
    ) -> ToolResult {
        let id = user_call_id();
        let call = ToolCall::new(id, tool, params, session);
        self.dispatcher.run_user_call(&call, cancel).await
    }

    fn warn(&self, text: String) {
        self.dispatcher.channel.emit(LoopbackEvent::Warning(text));
    }
}

impl AttachedPrompt {
    /// Adds the content of the file or directory `name`.
    fn push(&mut self, name: &str, result: ToolResult) -> Result<(), String> {
        let content = content_for_llm(&result);
        let output = result.map_err(|error| error.to_string())?;
        self.text.push_str(ATTACHMENT_START);
        self.text
            .push_str(&format!("file {name}]\n{content}\n[end of {name}]"));
        self.images.extend(output.image);
        Ok(())
    }
}
