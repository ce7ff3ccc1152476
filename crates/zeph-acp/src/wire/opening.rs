//! The methods that open a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_client_protocol::v1::schema::{
    AvailableCommandsUpdate, ForkSessionRequest, ForkSessionResponse, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionUpdate,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error};
use zeph_core::Channel as _;
use zeph_tools::file::EditorFiles;

use super::channel::AcpChannel;
use super::editor::Editor;
use super::error::{invalid, of_host};
use super::methods::{Server, answer, check_absolute, known_options};
use super::options::{command, modes};
use super::sessions::{OpenSession, lock};
use super::updates::new_id;
use crate::terminal::TerminalRunner;
use crate::{OpenRequest, SessionSource};

/// A session that a request opens.
struct Opening {
    id: String,
    source: SessionSource,
    cwd: PathBuf,
    additional_directories: Vec<PathBuf>,
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
        };
        let server = Arc::clone(self);
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let id = opening.id.clone();
            let session = match server.open(opening, client).await {
                Ok(session) => session,
                Err(error) => return answer(responder, Err(error)),
            };
            let response = NewSessionResponse::new(id)
                .modes(modes(session.hosted.as_ref()))
                .config_options(known_options(&session));
            answer(responder, Ok(response));
            announce_commands(&session);
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
        };
        let server = Arc::clone(self);
        self.run(responder, async move {
            let id = opening.id.clone();
            let session = server.open(opening, client).await?;
            let history = match session.hosted.history().await {
                Ok(history) => history,
                Err(error) => {
                    server.sessions.close(&id).await?;
                    return Err(of_host(error));
                }
            };
            for event in history {
                session.channel.emit(event);
            }
            announce_commands(&session);
            Ok(LoadSessionResponse::new()
                .modes(modes(session.hosted.as_ref()))
                .config_options(known_options(&session)))
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
        };
        let server = Arc::clone(self);
        self.run(responder, async move {
            let session = server.open(opening, client).await?;
            announce_commands(&session);
            Ok(ResumeSessionResponse::new()
                .modes(modes(session.hosted.as_ref()))
                .config_options(known_options(&session)))
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
        };
        let server = Arc::clone(self);
        self.run(responder, async move {
            let id = opening.id.clone();
            let session = server.open(opening, client).await?;
            Ok(ForkSessionResponse::new(id)
                .modes(modes(session.hosted.as_ref()))
                .config_options(known_options(&session)))
        });
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
        } = opening;
        check_directory(&cwd, "cwd")?;
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
            &capabilities,
            self.options.assume_yes,
        ));
        let request = OpenRequest {
            id: id.clone(),
            source,
            cwd,
            additional_directories,
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
        Ok(session)
    }
}

fn announce_commands(session: &OpenSession) {
    let commands = session.hosted.commands().into_iter().map(command);
    let update = AvailableCommandsUpdate::new(commands.collect());
    session
        .channel
        .send(SessionUpdate::AvailableCommandsUpdate(update));
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
