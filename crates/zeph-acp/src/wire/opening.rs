//! The methods that open a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_client_protocol::v1::schema::{
    AvailableCommandsUpdate, ForkSessionRequest, ForkSessionResponse, LoadSessionRequest,
    LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionConfigOption, SessionModeState, SessionUpdate,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error, JsonRpcResponse};
use zeph_core::{Channel as _, LoopbackEvent};
use zeph_tools::file::EditorFiles;

use super::channel::AcpChannel;
use super::editor::Editor;
use super::error::{invalid, of_host};
use super::methods::{Server, answer, check_absolute, known_options};
use super::options::{command, modes};
use super::sessions::{OpenSession, lock};
use super::updates::new_id;
use crate::terminal::TerminalRunner;
use crate::{ClientServer, OpenRequest, ServerAddress, SessionSource};

/// A session that a request opens.
struct Opening {
    id: String,
    source: SessionSource,
    cwd: PathBuf,
    additional_directories: Vec<PathBuf>,
    servers: Vec<McpServer>,
    /// Whether the stored conversation is shown.
    is_replayed: bool,
}

impl Server {
    pub(super) fn new_session(
        self: &Arc<Self>,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        client: ConnectionTo<Client>,
    ) {
        let opening = Opening {
            id: new_id(),
            source: SessionSource::New,
            cwd: request.cwd,
            additional_directories: request.additional_directories,
            servers: request.mcp_servers,
            is_replayed: false,
        };
        self.begin(opening, responder, client, |id, modes, options| {
            NewSessionResponse::new(id)
                .modes(modes)
                .config_options(options)
        });
    }

    pub(super) fn load(
        self: &Arc<Self>,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        client: ConnectionTo<Client>,
    ) {
        let opening = Opening {
            id: request.session_id.to_string(),
            source: SessionSource::Stored,
            cwd: request.cwd,
            additional_directories: request.additional_directories,
            servers: request.mcp_servers,
            is_replayed: true,
        };
        self.begin(opening, responder, client, |_, modes, options| {
            LoadSessionResponse::new()
                .modes(modes)
                .config_options(options)
        });
    }

    pub(super) fn resume(
        self: &Arc<Self>,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        client: ConnectionTo<Client>,
    ) {
        let opening = Opening {
            id: request.session_id.to_string(),
            source: SessionSource::Stored,
            cwd: request.cwd,
            additional_directories: request.additional_directories,
            servers: request.mcp_servers,
            is_replayed: false,
        };
        self.begin(opening, responder, client, |_, modes, options| {
            ResumeSessionResponse::new()
                .modes(modes)
                .config_options(options)
        });
    }

    pub(super) fn fork(
        self: &Arc<Self>,
        request: ForkSessionRequest,
        responder: Responder<ForkSessionResponse>,
        client: ConnectionTo<Client>,
    ) {
        let opening = Opening {
            id: new_id(),
            source: SessionSource::ForkOf(request.session_id.to_string()),
            cwd: request.cwd,
            additional_directories: request.additional_directories,
            servers: request.mcp_servers,
            is_replayed: false,
        };
        self.begin(opening, responder, client, |id, modes, options| {
            ForkSessionResponse::new(id)
                .modes(modes)
                .config_options(options)
        });
    }

    /// Opens a session, shows its conversation, responds, and then asks about the MCP servers of the client.
    fn begin<R: JsonRpcResponse>(
        self: &Arc<Self>,
        opening: Opening,
        responder: Responder<R>,
        client: ConnectionTo<Client>,
        response: fn(String, SessionModeState, Vec<SessionConfigOption>) -> R,
    ) {
        let server = Arc::clone(self);
        self.spawn(async move {
            let id = opening.id.clone();
            let session = match server.open_and_replay(opening, client).await {
                Ok(session) => session,
                Err(error) => return answer(responder, Err(error)),
            };
            let modes = modes(session.hosted.as_ref());
            answer(responder, Ok(response(id, modes, known_options(&session))));
            announce_commands(&session);
            for asked in session.hosted.begin() {
                if session.channel.ask_about_server(&asked).await {
                    let is_kept = !session.channel.assumes_yes();
                    session.hosted.approve_server(&asked, is_kept);
                }
            }
        });
    }

    async fn open_and_replay(
        &self,
        opening: Opening,
        client: ConnectionTo<Client>,
    ) -> Result<Arc<OpenSession>, Error> {
        let (id, is_replayed) = (opening.id.clone(), opening.is_replayed);
        let session = self.open(opening, client).await?;
        if !is_replayed {
            return Ok(session);
        }
        match session.hosted.history().await {
            Ok(history) => {
                for event in history {
                    // A long conversation does not wait in memory for a slow client. Few images are as large as all
                    // messages that may wait.
                    match event {
                        LoopbackEvent::PromptImage(_) => self.backlog.drained().await,
                        _ => self.backlog.room().await,
                    }
                    session.channel.emit(event);
                }
            }
            Err(error) => {
                self.sessions.close(&id).await?;
                return Err(of_host(error));
            }
        }
        Ok(session)
    }

    /// Opens a session.
    async fn open(
        &self,
        opening: Opening,
        client: ConnectionTo<Client>,
    ) -> Result<Arc<OpenSession>, Error> {
        let Opening {
            id,
            source,
            cwd,
            additional_directories,
            servers,
            is_replayed: _,
        } = opening;
        check_directory(&cwd, "cwd")?;
        let cwd = real_directory(cwd);
        for directory in &additional_directories {
            check_directory(directory, "additionalDirectories")?;
        }
        self.check_login()?;
        self.sessions.reserve(&id)?;
        let capabilities = lock(&self.client).clone();
        let editor = Arc::new(Editor::new(client.clone(), &id));
        let files = EditorFiles {
            reader: (capabilities.fs.read_text_file).then(|| Arc::clone(&editor) as _),
            writer: (capabilities.fs.write_text_file).then(|| Arc::clone(&editor) as _),
        };
        let terminals = capabilities
            .terminal
            .then(|| Arc::new(TerminalRunner::new(editor)) as _);
        let channel = Arc::new(AcpChannel::new(
            client,
            &id,
            &cwd,
            Arc::clone(&self.host),
            Arc::clone(&self.backlog),
            &capabilities,
            &self.options,
        ));
        let request = OpenRequest {
            id: id.clone(),
            source,
            cwd,
            additional_directories,
            servers: servers.into_iter().filter_map(client_server).collect(),
            channel: Arc::clone(&channel) as _,
            files,
            terminals,
        };
        let hosted = match self.host.open(request).await {
            Ok(hosted) => hosted,
            Err(error) => {
                self.sessions.release(&id);
                return Err(of_host(error));
            }
        };
        if self.has_ended.load(Ordering::Acquire) {
            hosted.close().await;
            self.sessions.release(&id);
            return Err(Error::request_cancelled());
        }
        let session = Arc::new(OpenSession::new(hosted, channel));
        self.sessions.insert(&id, Arc::clone(&session));
        tracing::info!(session = %id, "a session is open");
        Ok(session)
    }
}

/// The server in terms of the host; `None` for a transport that is not offered to clients.
fn client_server(server: McpServer) -> Option<ClientServer> {
    let (name, address) = match server {
        McpServer::Stdio(server) => {
            let variables = server.env.into_iter().map(|it| (it.name, it.value));
            let address = ServerAddress::Program {
                command: server.command.display().to_string(),
                args: server.args,
                env: variables.collect(),
            };
            (server.name, address)
        }
        McpServer::Http(server) => {
            let headers = server.headers.into_iter().map(|it| (it.name, it.value));
            let address = ServerAddress::Url {
                url: server.url,
                headers: headers.collect(),
            };
            (server.name, address)
        }
        _ => {
            tracing::warn!("an MCP server of the client has a transport that is not supported");
            return None;
        }
    };
    Some(ClientServer { name, address })
}

fn announce_commands(session: &OpenSession) {
    let commands = session.hosted.commands().into_iter().map(command);
    let update = AvailableCommandsUpdate::new(commands.collect());
    session
        .channel
        .send(SessionUpdate::AvailableCommandsUpdate(update));
}

/// A directory without links and without a trailing `/`, as the terminal stores it with a session.
///
/// A directory that does not exist is unchanged.
#[allow(
    clippy::disallowed_methods,
    reason = "sessions of one directory have one path; the sandbox resolves it again for each call"
)]
pub(super) fn real_directory(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

fn check_directory(path: &Path, name: &str) -> Result<(), Error> {
    check_absolute(path, name)?;
    match path.is_dir() {
        true => Ok(()),
        false => Err(invalid(format!(
            "{name} is not a directory: {}",
            path.display()
        ))),
    }
}
