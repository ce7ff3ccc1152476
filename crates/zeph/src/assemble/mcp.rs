//! MCP servers: how their programs start, where approvals are stored, and how a conversation lists and approves their
//! tools.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::OFlags;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use zeph_core::ToolServers;
use zeph_mcp::{
    Address, McpServerConfig, McpServers, McpTransport, Pin, Program, Proposal, TrustStore, Way,
    expanded, line,
};
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::shell::{
    CommandSpec, Exit, ServedPrograms, ShellEnvConfig, SupervisorCommand, env as shell_env,
};

use super::own_program;
use crate::config::{Environment, Loaded};

/// The most bytes of the pins of a server.
const MAX_PINS: u64 = 64 * 1024 * 1024;
/// The longest line of a program's standard error that is logged.
const MAX_LINE_LEN: u64 = 4096;
/// How long to wait for the last lines of a program that has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The variable by which processes are known as a call's.
const CALL_TAG: &str = "ZEPH_CALL_ID";

/// The servers of this process.
pub(crate) struct Mcp {
    /// All of them.
    pub(crate) servers: Arc<McpServers>,
    programs: Arc<ServedPrograms>,
    /// The proposal that was shown last; no other can be approved.
    shown: Mutex<Option<Proposal>>,
}

impl Mcp {
    /// Starts connecting to the servers of the configuration; `None` if there are none.
    ///
    /// # Errors
    /// If the running program is not found.
    pub(crate) fn start(loaded: &Loaded, env: &Environment) -> anyhow::Result<Option<Self>> {
        let config = &loaded.config.mcp;
        if config.servers.is_empty() {
            return Ok(None);
        }
        let tag = env.var(CALL_TAG).map(OsString::from);
        let supervisor = SupervisorCommand::new(own_program()?);
        let programs = Arc::new(ServedPrograms::new(supervisor, tag));
        let dialer = Arc::new(Dialer {
            programs: Arc::clone(&programs),
            env: env.clone(),
            shell: loaded.config.tools.shell.env.clone(),
        });
        let pins = Arc::new(McpPins::in_folder(&loaded.paths.data_dir));
        let servers = McpServers::start(config, dialer, pins);
        Ok(servers.map(|servers| Self {
            servers: Arc::new(servers),
            programs,
            shown: Mutex::default(),
        }))
    }

    /// Ends all connections and programs.
    pub(crate) async fn close(&self) {
        self.servers.stop();
        self.programs.shutdown().await;
    }
}

impl ToolServers for Mcp {
    fn listing(&self) -> String {
        self.servers.listing()
    }

    fn propose(&self, server: &str) -> Result<String, String> {
        let proposal = self.servers.proposal(server);
        let proposal = proposal.map_err(|error| error.to_string())?;
        if proposal.tools.is_empty() {
            return Ok(format!(
                "All tools of the MCP server {server} are agreed to."
            ));
        }
        let mut text = proposed(&proposal);
        text.push_str(&format!(
            "/mcp approve {server} yes lets these tools be called."
        ));
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(proposal);
        Ok(text)
    }

    fn agree(&self, server: &str) -> Result<String, String> {
        let shown = self
            .shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(proposal) = shown.filter(|proposal| proposal.server == server) else {
            return Err(format!(
                "/mcp approve {server} shows first what is to be agreed to"
            ));
        };
        let count = proposal.tools.len();
        self.servers
            .agree(proposal)
            .map_err(|error| format!("this cannot be kept: {error}"))?;
        Ok(agreed(server, count))
    }
}

/// The text that the user reads before the approval. It hides nothing.
pub(crate) fn proposed(proposal: &Proposal) -> String {
    let mut text = String::new();
    for (id, said) in &proposal.tools {
        text.push_str(id);
        text.push('\n');
        for line in said.lines() {
            text.push_str("    ");
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// The message about approved tools.
pub(crate) fn agreed(server: &str, count: usize) -> String {
    let tools = match count {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    format!("{tools} of the MCP server {server} can be called, until what it says of them changes.")
}

/// Starts the programs of servers, and knows their addresses.
struct Dialer {
    programs: Arc<ServedPrograms>,
    env: Environment,
    shell: ShellEnvConfig,
}

impl Dialer {
    fn expanded<'m>(
        &self,
        key: &str,
        map: impl IntoIterator<Item = (&'m String, &'m String)>,
    ) -> Result<Vec<(String, String)>, String> {
        let variable = |name: &str| Some(self.env.var(name)?.to_str()?.to_owned());
        let pairs = map.into_iter().map(|(name, value)| {
            let value = expanded(value, &variable);
            let value = value.map_err(|fault| format!("`{key}` {name}: {fault}"))?;
            Ok((name.clone(), value))
        });
        pairs.collect()
    }

    async fn program(&self, server: &McpServerConfig, command: &str) -> Result<Program, String> {
        let own = self.expanded("env", &server.env)?;
        let base: Vec<_> = self.env.vars.clone().into_iter().collect();
        let argv = std::iter::once(command).chain(server.args.iter().map(String::as_str));
        let spec = CommandSpec {
            argv: argv.map(OsString::from).collect(),
            cwd: self.env.cwd.clone(),
            env: shell_env::select(&base, &self.shell, Some(&own.into_iter().collect())),
            timeout: None,
            readable_folders: Vec::new(),
            sandbox: zeph_tools::shell::exec::CommandSandbox::Off,
        };
        let started = self.programs.start(&spec).await;
        let started =
            started.map_err(|error| format!("{command} cannot be started: {}", cause(&error)))?;
        let said = Arc::new(Mutex::new(String::new()));
        let log = tokio::spawn(log(server.name.clone(), started.errors, Arc::clone(&said)));
        let mut process = started.process;
        let ended = async move {
            let how = match process.exited().await {
                Some(Exit {
                    signal: Some(n), ..
                }) => format!("it was ended by signal {n}"),
                Some(exit) => format!("it ended with exit code {}", exit.code),
                None => "the process that holds it died".to_owned(),
            };
            let _ = tokio::time::timeout(LAST_WORDS, log).await;
            let last = said.lock().unwrap_or_else(PoisonError::into_inner);
            match last.as_str() {
                "" => how,
                last => format!("{how}: {last}"),
            }
        };
        Ok(Program {
            input: Box::new(started.input),
            output: Box::new(started.output),
            ended: Box::pin(ended),
        })
    }
}

#[async_trait]
impl McpTransport for Dialer {
    async fn dial(&self, server: &McpServerConfig) -> Result<Address, String> {
        match server.way().map_err(|(_, fault)| fault)? {
            Way::Program(command) => Ok(Address::Program(self.program(server, command).await?)),
            Way::Url(url) => {
                let headers = self.expanded("headers", &server.headers)?;
                Ok(Address::Url(url.to_owned(), headers))
            }
        }
    }
}

/// The innermost cause.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Logs a program's standard error line by line, and stores the last line.
async fn log(server: String, errors: impl AsyncRead + Unpin, last: Arc<Mutex<String>>) {
    let mut errors = BufReader::new(errors);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let mut some = (&mut errors).take(MAX_LINE_LEN);
        match some.read_until(b'\n', &mut bytes).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let said = line(&String::from_utf8_lossy(&bytes), 500);
        if !said.is_empty() {
            tracing::info!(%server, "an MCP server says: {said}");
            *last.lock().unwrap_or_else(PoisonError::into_inner) = said;
        }
        // A program with endless output must not block the other tasks.
        tokio::task::yield_now().await;
    }
}

/// The approvals of the user, in the data folder: one file for each server.
#[derive(Debug)]
pub(crate) struct McpPins {
    folder: PathBuf,
}

impl McpPins {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join("mcp-trust"),
        }
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder, made if it was missing.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn made_folder(&self) -> io::Result<&Path> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        Ok(&self.folder)
    }

    /// Removes the approval of a server, and returns whether there was one.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn take_back(&self, server: &str) -> io::Result<bool> {
        match fs::remove_file(self.file(server)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn file(&self, server: &str) -> PathBuf {
        let name = hex_digest(server.as_bytes());
        self.folder.join(name).with_extension("json")
    }
}

impl TrustStore for McpPins {
    fn of(&self, server: &str) -> io::Result<Vec<Pin>> {
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = match options.open(self.file(server)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MAX_PINS).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
    }

    fn put(&self, server: &str, pins: &[Pin]) -> io::Result<()> {
        let folder = self.made_folder()?;
        // Temporary files have mode 0600.
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(&serde_json::to_vec(pins)?)?;
        temporary.as_file().sync_all()?;
        temporary
            .persist(self.file(server))
            .map_err(|error| error.error)?;
        fs::File::open(folder)?.sync_all()
    }
}
