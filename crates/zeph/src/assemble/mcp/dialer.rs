//! The transports to servers: programs start below the supervisor and in the OS sandbox, and addresses get their
//! headers.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use zeph_mcp::{
    Address, McpServerConfig, McpTransport, Program, ServerSandbox, ServerUrl, StoredLogin,
    TokenStore, Way, expanded, line,
};
use zeph_tools::shell::exec::CommandSandbox;
use zeph_tools::shell::sandbox::{ProgramAccess, program_plan};
use zeph_tools::shell::{
    CommandSpec, Exit, SandboxConfig, ServedPrograms, ShellEnvConfig, env as shell_env,
};

use crate::config::Environment;

/// The longest line of a program's standard error that is logged.
const MAX_LINE_LEN: u64 = 4096;
/// How long to wait for the last lines of a program that has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The variable with the path of a server's own folder.
const FOLDER_VARIABLE: &str = "MCP_SERVER_DIR";

/// Starts the programs of servers, and knows their addresses.
pub(super) struct Dialer {
    pub(super) programs: Arc<ServedPrograms>,
    pub(super) env: Environment,
    pub(super) shell: ShellEnvConfig,
    /// The sandbox of commands. Its caches count for programs too, and `required` of its mode; `off` does not.
    pub(super) sandbox: SandboxConfig,
    /// The stored logins.
    pub(super) tokens: Arc<dyn TokenStore>,
    /// Files and directories of Zeph itself.
    pub(super) private: Vec<PathBuf>,
    /// The directory of the servers' own folders.
    pub(super) folders: PathBuf,
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

    /// The server's own folder, made if it was missing.
    fn own_folder(&self, server: &McpServerConfig) -> Result<PathBuf, String> {
        let folder = self.folders.join(&server.name);
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        made.map_err(|error| {
            format!(
                "its folder {} cannot be created: \
            {error}",
                folder.display()
            )
        })?;
        Ok(folder)
    }

    /// The sandbox of a server's program.
    fn sandbox(
        &self,
        server: &McpServerConfig,
        folder: PathBuf,
        env: &[(OsString, OsString)],
    ) -> CommandSandbox {
        if server.sandbox == ServerSandbox::Off {
            return CommandSandbox::Off;
        }
        let home = self.env.home();
        let below_home = |path: &PathBuf| match (path.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.clone(),
        };
        let writable = server.writable.iter().map(below_home);
        let writable: Vec<PathBuf> = std::iter::once(folder).chain(writable).collect();
        let access = ProgramAccess {
            writable: &writable,
            network: server.network,
            private: &self.private,
        };
        let plan = program_plan(&self.sandbox, &access, &self.env.cwd, env);
        CommandSandbox::Plan(Box::new(plan))
    }

    async fn program(&self, server: &McpServerConfig, command: &str) -> Result<Program, String> {
        let mut own = self.expanded("env", &server.env)?;
        let base: Vec<_> = self.env.vars.clone().into_iter().collect();
        let folder = self.own_folder(server)?;
        if let Some(folder) = folder.to_str() {
            own.push((FOLDER_VARIABLE.to_owned(), folder.to_owned()));
        }
        let argv = std::iter::once(command).chain(server.args.iter().map(String::as_str));
        let env = shell_env::select(&base, &self.shell, Some(&own.into_iter().collect()));
        let spec = CommandSpec {
            argv: argv.map(OsString::from).collect(),
            cwd: self.env.cwd.clone(),
            sandbox: self.sandbox(server, folder, &env),
            env,
            timeout: None,
            readable_folders: Vec::new(),
        };
        let started = self.programs.start(spec).await;
        let started =
            started.map_err(|error| format!("{command} cannot be started: {}", cause(&error)))?;
        let said = Arc::new(Mutex::new(String::new()));
        let log = tokio::spawn(log(server.name.clone(), started.errors, Arc::clone(&said)));
        let mut process = started.process;
        let ended = async move {
            let how = match process.exited().await {
                Some(Exit {
                    signal: Some(n), ..
                }) => format!("signal {n} ended it"),
                Some(exit) => format!("it ended with exit code {}", exit.code),
                None => "its parent process died".to_owned(),
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
            unconfined: started.unconfined,
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
                let oauth = server.oauth.as_ref();
                let secret = oauth.and_then(|oauth| oauth.client_secret.as_deref());
                let variable = |name: &str| Some(self.env.var(name)?.to_str()?.to_owned());
                let secret = secret.map(|secret| expanded(secret, &variable)).transpose();
                let tokens = Arc::clone(&self.tokens);
                Ok(Address::Url(ServerUrl {
                    url: url.to_owned(),
                    headers,
                    login: StoredLogin::new(tokens, &server.name, url),
                    client_secret: secret.map_err(|why| format!("`oauth.client_secret`: {why}"))?,
                }))
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
            tracing::info!(%server, "output of an MCP server: {said}");
            *last.lock().unwrap_or_else(PoisonError::into_inner) = said;
        }
        // A program with endless output must not block the other tasks.
        tokio::task::yield_now().await;
    }
}
