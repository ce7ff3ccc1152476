//! The files and the terminals of the client of one session.

use std::path::Path;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReadTextFileRequest,
    ReleaseTerminalRequest, SessionId, TerminalExitStatus, TerminalId, TerminalOutputRequest,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::{Client, Error, is_incoming_transport_closed};
use async_trait::async_trait;
use serde_json::Value;
use zeph_tools::file::{EditorError, EditorReader, EditorWriter};

use crate::terminal::{TerminalCommand, TerminalExit, TerminalOutput, Terminals};

/// The most bytes of the details of an error.
const MAX_DETAILS_BYTES: usize = 500;

/// The client as the owner of files and terminals.
pub(super) struct Editor {
    connection: ConnectionTo<Client>,
    session: SessionId,
}

impl Editor {
    pub(super) fn new(connection: ConnectionTo<Client>, session: &str) -> Self {
        Self {
            connection,
            session: SessionId::new(session),
        }
    }
}

#[async_trait]
impl EditorReader for Editor {
    async fn read(&self, path: &Path) -> Result<String, EditorError> {
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        let response = self.connection.send_request(request).block_task().await;
        response
            .map(|response| response.content)
            .map_err(|error| of_files(&error))
    }
}

#[async_trait]
impl EditorWriter for Editor {
    async fn write(&self, path: &Path, text: &str) -> Result<(), EditorError> {
        let request = WriteTextFileRequest::new(self.session.clone(), path, text);
        let response = self.connection.send_request(request).block_task().await;
        response.map(drop).map_err(|error| of_files(&error))
    }
}

#[async_trait]
impl Terminals for Editor {
    async fn create(&self, command: TerminalCommand) -> Result<String, String> {
        let variables = command.variables.into_iter();
        let variables = variables.map(|(name, value)| EnvVariable::new(name, value));
        let request = CreateTerminalRequest::new(self.session.clone(), command.program)
            .args(command.arguments)
            .env(variables.collect::<Vec<_>>())
            .cwd(command.cwd)
            .output_byte_limit(command.output_bytes);
        let response = self.connection.send_request(request).block_task().await;
        let response = response.map_err(|error| message(&error))?;
        Ok(response.terminal_id.to_string())
    }

    async fn output(&self, id: &str) -> Result<TerminalOutput, String> {
        let request = TerminalOutputRequest::new(self.session.clone(), TerminalId::new(id));
        let response = self.connection.send_request(request).block_task().await;
        let response = response.map_err(|error| message(&error))?;
        Ok(TerminalOutput {
            text: response.output,
            is_truncated: response.truncated,
        })
    }

    async fn wait_for_exit(&self, id: &str) -> Result<TerminalExit, String> {
        let request = WaitForTerminalExitRequest::new(self.session.clone(), TerminalId::new(id));
        let response = self.connection.send_request(request).block_task().await;
        let TerminalExitStatus {
            exit_code, signal, ..
        } = response.map_err(|error| message(&error))?.exit_status;
        Ok(TerminalExit {
            code: exit_code,
            signal,
        })
    }

    async fn kill(&self, id: &str) -> Result<(), String> {
        let request = KillTerminalRequest::new(self.session.clone(), TerminalId::new(id));
        let response = self.connection.send_request(request).block_task().await;
        response.map(drop).map_err(|error| message(&error))
    }

    fn release(&self, id: &str) {
        let request = ReleaseTerminalRequest::new(self.session.clone(), TerminalId::new(id));
        self.connection.send_request(request).detach();
    }
}

fn of_files(error: &Error) -> EditorError {
    match is_incoming_transport_closed(error) {
        true => EditorError::Lost,
        false => EditorError::Refused(message(error)),
    }
}

fn message(error: &Error) -> String {
    if is_incoming_transport_closed(error) {
        return "the connection to the editor ended".to_owned();
    }
    // Libraries of clients report "Internal error" for any exception, and its text as `details`.
    let data = error.data.as_ref();
    let details = data.and_then(|data| data.get("details"));
    match details.and_then(Value::as_str) {
        Some(details) => format!("{}: {}", error.message, shortened(details)),
        None => error.message.clone(),
    }
}

/// The first part of a text.
fn shortened(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_DETAILS_BYTES);
    text.get(..end).unwrap_or_default()
}
