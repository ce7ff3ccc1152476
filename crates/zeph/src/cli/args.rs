//! The command line.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use zeph_tools::audit::Link;

use super::memory::MemoryCommand;
use super::overflow::OverflowCommand;
use crate::assemble::BuildOptions;
use crate::config::FlagOverrides;

/// A terminal AI agent built around a tool system.
///
/// Without a command: an interactive session, which PROMPT starts; or, with -p or piped input, one turn.
#[derive(Debug, Parser)]
#[command(
    name = "zeph",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = false,
    after_long_help = super::prompt_words::RULE
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Run one prompt, print the response, and exit
    #[arg(short = 'p', long = "prompt", value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Start a session with this prompt (without a terminal: one turn); a last `-` appends stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) words: Vec<String>,
    /// Use the full screen: panels for tools, tasks and resources, dialogs, search, mouse
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) tui: bool,
    /// Replace the old keys of the user's configuration, as `zeph config migrate` does
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) migrate_config: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// A flag that is set but has no meaning for the command.
    pub(crate) fn idle_flag(&self) -> Option<&'static str> {
        let turn = match self.command {
            None => return None,
            Some(Command::Run { .. }) => &TurnArgs::default(),
            Some(_) => &self.turn,
        };
        let given = [
            ("-p", self.prompt.is_some()),
            ("--tui", self.tui),
            ("--migrate-config", self.migrate_config),
            ("--continue", turn.continue_last),
            ("--resume", turn.resume.is_some()),
            ("--output-format", turn.output_format != OutputFormat::Text),
            ("--output-schema", turn.output_schema.is_some()),
        ];
        given
            .into_iter()
            .find_map(|(flag, given)| given.then_some(flag))
    }
}

/// The heading of options that every command has. `-h` leaves them out, `--help` shows them.
const GLOBAL: &str = "Global options";

/// The options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// Work in this directory
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Use this configuration file instead of the user one
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) config: Option<PathBuf>,
    /// Set a configuration key, as in --set tools.shell.timeout=60
    #[arg(long, value_name = "KEY=VALUE", value_parser = FlagOverrides::parse_set, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) set: Vec<(String, String)>,
    /// Provider to use (a name from the configuration)
    #[arg(long, value_name = "NAME", global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) provider: Option<String>,
    /// Model to use
    #[arg(short, long, value_name = "NAME", global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) model: Option<String>,
    /// Permission mode: plan, ask, auto-edit, auto or full
    #[arg(long, value_name = "MODE", global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) mode: Option<String>,
    /// Let --mode full run without an OS sandbox
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) unsandboxed: bool,
    /// Approve every confirmation once; deny rules still apply
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) yes: bool,
    /// Print only the response and errors
    #[arg(short, long, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Log more, also to standard error (again for more); ZEPH_LOG sets a filter
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) verbose: u8,
}

impl GlobalArgs {
    /// The settings of the configuration that the flags set.
    pub(crate) fn overrides(&self) -> FlagOverrides {
        FlagOverrides {
            config: self.config.clone(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            mode: self.mode.clone(),
            set: self.set.clone(),
        }
    }

    /// The options that the stack is built with.
    pub(crate) fn build_options(&self) -> BuildOptions {
        BuildOptions {
            overrides: self.overrides(),
            unsandboxed: self.unsandboxed,
            quiet: self.quiet,
            ..BuildOptions::default()
        }
    }
}

/// The options of a conversation.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TurnArgs {
    /// Continue the most recent session in this directory
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Resume a session by ID or unique ID prefix; without ID, select it from a list
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,
    /// Require a response that validates against this JSON Schema
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
}

impl TurnArgs {
    /// Whether the user selects the session to resume.
    pub(crate) fn selects_session(&self) -> bool {
        self.resume.as_deref() == Some("")
    }

    /// Whether a prompt without -p opens a session: on a terminal, and without an option for one turn.
    pub(crate) fn is_session(&self) -> bool {
        let is_one_turn = self.output_format != OutputFormat::Text || self.output_schema.is_some();
        !is_one_turn
            && std::io::stdin().is_terminal()
            && std::io::stdout().is_terminal()
            && std::io::stderr().is_terminal()
    }
}

/// `zeph undo`
#[derive(Debug, Clone, Args)]
pub(crate) struct UndoArgs {
    /// Session (ID or unique prefix); by default the session that last changed a file of this
    /// directory
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// List undoable changes, newest first, without undoing anything
    #[arg(long, conflicts_with = "forget")]
    pub(crate) list: bool,
    /// Drop the latest change from the undo history without reverting it
    #[arg(long)]
    pub(crate) forget: bool,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The response; everything else goes to standard error.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON event per line.
    StreamJson,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one turn, as -p does
    Run {
        /// Prompt text; `-` or no text reads stdin, a trailing `-` appends stdin
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
        #[command(flatten)]
        turn: TurnArgs,
    },
    /// Serve an editor over the Agent Client Protocol on stdin and stdout
    Acp {
        /// Check the installation in a terminal, instead of serving an editor
        #[arg(long, hide = true)]
        setup: bool,
    },
    /// List, show and call tools without a model
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// List, search, show, export and remove stored sessions
    Sessions {
        #[command(subcommand)]
        command: super::sessions::SessionsCommand,
    },
    /// List and print stored (overflowed) tool outputs
    Overflow {
        #[command(subcommand)]
        command: OverflowCommand,
    },
    /// List, search and remove long-term memories
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Filter command output
    Filter(FilterArgs),
    /// Query the audit log and verify its integrity
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Evaluate permission and policy rules (dry run)
    Policy {
        #[command(subcommand)]
        command: super::policy::PolicyCommand,
    },
    /// Choose a provider, and store its key
    Login(super::login::LoginArgs),
    /// Remove the stored key of a provider
    Logout(super::login::LogoutArgs),
    /// Undo the last file changes
    Undo(UndoArgs),
    /// Show, check and write the configuration
    Config {
        #[command(subcommand)]
        command: super::config_cmd::ConfigCommand,
    },
    /// Manage and run scheduled tasks
    Scheduler {
        #[command(subcommand)]
        command: super::scheduler::SchedulerCommand,
    },
    /// List, show and trust skills
    Skills {
        #[command(subcommand)]
        command: super::skills::SkillsCommand,
    },
    /// List and trust sub-agents
    Agents {
        #[command(subcommand)]
        command: super::agents::AgentsCommand,
    },
    /// List, show and trust custom commands
    Commands {
        #[command(subcommand)]
        command: super::commands::CommandsCommand,
    },
    /// List and approve MCP servers and tools; serve the tools of Zeph
    Mcp {
        #[command(subcommand)]
        command: super::mcp::McpCommand,
    },
    /// Check the installation
    Doctor {
        /// Print JSON
        #[arg(long, conflicts_with = "report")]
        json: bool,
        /// Print a report for a maintainer: versions, set keys and checks, without secrets
        #[arg(long)]
        report: bool,
    },
    /// Manage local models: pull, list, remove
    Models {
        #[command(subcommand)]
        command: super::models::ModelsCommand,
    },
    /// Show the agent at work on a sample project, offline, with scripted responses
    Demo {
        /// Create the sample project in DIR, and do not remove it (DIR must not exist)
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    Man {
        /// Command, such as `tools call`; without it, the page of zeph
        #[arg(value_name = "COMMAND", conflicts_with = "dir")]
        command: Vec<String>,
        /// Write the pages of all commands into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// `zeph tools …`
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools
    List {
        /// Print JSON: the definitions that a model receives with the first request
        #[arg(long, conflicts_with = "catalog")]
        json: bool,
        /// With --json: include the tools that a model receives only when they become useful
        #[arg(long, requires = "json")]
        all: bool,
        /// Print the catalog for models that call tools in text
        #[arg(long)]
        catalog: bool,
    },
    /// Show one tool: description, annotations, parameters
    Show {
        /// Name of the tool
        name: String,
    },
    /// Call one tool
    Call {
        /// Name of the tool
        name: String,
        /// Arguments as a JSON object; `-` reads standard input
        #[arg(default_value = "{}")]
        params: String,
        /// Session of the call; created if it does not exist
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Print the JSON result
        #[arg(long)]
        json: bool,
    },
    /// Run calls from JSON lines {"tool": …, "params": {…}}, in order, in one session
    Run {
        /// File with the calls; `-` or nothing reads standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Session of the calls; created if it does not exist
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

/// `zeph filter …`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FilterArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FilterCommand>,
    /// Command that produced the input on stdin
    #[arg(long = "command", value_name = "CMD", required = true)]
    pub(crate) printed_by: Option<String>,
    /// Exit code of the command
    #[arg(long, value_name = "N", requires = "printed_by")]
    pub(crate) exit_code: Option<i32>,
}

/// `zeph filter …`
#[derive(Debug, Subcommand)]
pub(crate) enum FilterCommand {
    /// Run a command, print the filtered output, exit with its status
    Run {
        /// Also write the raw output to FILE (default: a temporary file, whose path is printed)
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        tee: Option<Option<PathBuf>>,
        /// Command and its arguments
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "CMD"
        )]
        words: Vec<OsString>,
    },
    /// Show bytes saved per rule
    Gain {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the tests of the rules
    Verify {
        /// Test only the rules of this file
        file: Option<PathBuf>,
    },
    /// Review and trust this project's filter rules (--yes trusts without asking)
    Trust {
        /// Remove the trust in the rules of this project
        #[arg(long)]
        revoke: bool,
        /// List the projects that have trusted rules
        #[arg(long, conflicts_with = "revoke")]
        list: bool,
    },
    /// Explain which rule matches a command
    Explain {
        /// Command to explain
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "CMD"
        )]
        words: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `zeph audit …`
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify the hash chain; exits with 1 if any entry was modified
    Verify {
        /// File of JSON lines to verify; by default the database
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Entry that must exist, as `zeph audit head` printed it
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<Link>,
    },
    /// Print the sequence number and the hash of the last entry
    Head {
        /// File of JSON lines; by default the database
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the last entries of the database, the oldest first
    Tail {
        /// Number of entries
        #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 20)]
        lines: u32,
        /// Follow new entries until interrupted
        #[arg(short, long)]
        follow: bool,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Print entries of the database, the oldest first
    Query {
        /// Only entries for this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Skip entries before this time: 90s, 30m, 1h, 2d, 1w, 2026-11-01 or 2026-11-01T09:30
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only entries with this result
        #[arg(long, value_parser = ["success", "error", "blocked", "cancelled", "timeout", "rollback"])]
        result: Option<String>,
        /// Only entries of this session (ID or unique prefix), also of a removed session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Maximum number of entries
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
}
