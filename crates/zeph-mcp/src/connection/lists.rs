//! The prompts and resources of a server: their lists, and reading one of them.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use zeph_tools::ToolError;

use super::client::{Link, value};
use super::running::Caller;
use crate::failure::About;
use crate::sanitize::{is_hidden, line};

/// The most prompts and the most resources that are listed.
const MAX_ENTRIES: usize = 256;
/// The most pages of a list.
const MAX_PAGES: usize = 16;
/// The time limit of these lists, which must not delay the tools for long.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// The most characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrompt {
    /// Its name in the server's list.
    pub name: String,
    /// Its description on one line, without hidden characters.
    pub description: String,
    /// Its arguments: the name of each, and whether it is required.
    pub arguments: Vec<(String, bool)>,
}

/// A resource that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerResource {
    /// Its address.
    pub uri: String,
    /// Its name on one line, without hidden characters.
    pub name: String,
}

impl Link {
    /// Whether the server has resources.
    pub(crate) fn has_resources(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// The prompts that the server lists. A failure is logged: the tools do not depend on it.
    pub(crate) async fn prompts(&self) -> Vec<ServerPrompt> {
        let info = self.peer.peer_info();
        if info.is_none_or(|info| info.capabilities.prompts.is_none()) {
            return Vec::new();
        }
        let pages = async {
            let mut prompts = Vec::new();
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let page = self.peer.list_prompts(Some(params)).await?;
                prompts.extend(page.prompts);
                cursor = page.next_cursor;
                if cursor.is_none() || prompts.len() >= MAX_ENTRIES {
                    break;
                }
            }
            Ok::<_, ServiceError>(prompts)
        };
        let prompts = logged(
            "prompts/list",
            tokio::time::timeout(LIST_TIMEOUT, pages).await,
        );
        // A name that cannot be typed is of no use.
        let prompts = prompts
            .into_iter()
            .filter(|prompt| is_typable(&prompt.name));
        let prompts = prompts.take(MAX_ENTRIES).map(|prompt| ServerPrompt {
            name: prompt.name,
            description: line(
                &prompt.description.unwrap_or_default(),
                MAX_DESCRIPTION_CHARS,
            ),
            arguments: prompt
                .arguments
                .into_iter()
                .flatten()
                .map(|argument| (argument.name, argument.required == Some(true)))
                .collect(),
        });
        prompts.collect()
    }

    /// The resources that the server lists. A failure is logged.
    pub(crate) async fn resources(&self) -> Vec<ServerResource> {
        if !self.has_resources() {
            return Vec::new();
        }
        let pages = async {
            let mut resources = Vec::new();
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let page = self.peer.list_resources(Some(params)).await?;
                resources.extend(page.resources);
                cursor = page.next_cursor;
                if cursor.is_none() || resources.len() >= MAX_ENTRIES {
                    break;
                }
            }
            Ok::<_, ServiceError>(resources)
        };
        let found = logged(
            "resources/list",
            tokio::time::timeout(LIST_TIMEOUT, pages).await,
        );
        let found = found.into_iter().filter(|found| is_typable(&found.uri));
        let found = found.take(MAX_ENTRIES).map(|found| ServerResource {
            name: line(&found.name, MAX_DESCRIPTION_CHARS),
            uri: found.uri,
        });
        found.collect()
    }

    /// Reads a resource.
    pub(crate) async fn read_resource(
        &self,
        about: About<'_>,
        uri: &str,
        limit: Duration,
        caller: &Arc<Caller>,
        cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let mut params = ReadResourceRequestParams::new(uri);
        let request = |given, state| {
            params.input_responses = given;
            params.request_state = state;
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone()))
        };
        let answer = self.request(about, request, limit, caller, cancel).await?;
        let result = match answer {
            ServerResult::ReadResourceResult(result) => {
                serde_json::to_value(result).map_err(|_| ServiceError::UnexpectedResponse)
            }
            other => value(Ok(other)),
        };
        result.map_err(|error| about.request(&error).into())
    }

    /// Gets a prompt with these arguments.
    pub(crate) async fn prompt(
        &self,
        about: About<'_>,
        name: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        caller: &Arc<Caller>,
        cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let mut params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = |given, state| {
            params.input_responses = given;
            params.request_state = state;
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone()))
        };
        let answer = self.request(about, request, limit, caller, cancel).await?;
        let result = match answer {
            ServerResult::GetPromptResult(result) => {
                serde_json::to_value(result).map_err(|_| ServiceError::UnexpectedResponse)
            }
            other => value(Ok(other)),
        };
        result.map_err(|error| about.request(&error).into())
    }
}

/// The entries of a list, or none if it failed.
fn logged<T>(
    method: &str,
    listed: Result<Result<Vec<T>, ServiceError>, tokio::time::error::Elapsed>,
) -> Vec<T> {
    match listed {
        Ok(Ok(entries)) => entries,
        Ok(Err(error)) => {
            tracing::warn!(%error, "{method} of an MCP server failed");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("{method} of an MCP server took too long");
            Vec::new()
        }
    }
}

/// Whether a name can be typed as one word.
fn is_typable(name: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || is_hidden(c);
    !name.is_empty() && name.len() <= 1024 && !name.contains(odd)
}
