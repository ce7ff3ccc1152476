//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use zeph_tools::audit::Link;

use super::memory::MemoryCommand;
use super::overflow::OverflowCommand;
use crate::config::FlagOverrides;

/// A terminal AI agent built around a tool system.
///
/// Without a command: an interactive session, or, with -p or piped input, one turn.
#[derive(Debug, Parser)]
#[command(
    name = "zeph",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = false
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Say this to the model, print the answer, and exit
    #[arg(short = 'p', long = "prompt", value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// With -p: `-` appends standard input to the prompt
    #[arg(value_name = "-", value_parser = ["-"], requires = "prompt", hide_possible_values = true)]
    pub(crate) stdin: Option<String>,
    /// Replace the old keys of the user's configuration, as `zeph config migrate` does
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) migrate_config: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// A flag that is given and has no meaning for the command.
    pub(crate) fn idle_flag(&self) -> Option<&'static str> {
        let turn = match self.command {
            None => return None,
            Some(Command::Run { .. }) => &TurnArgs::default(),
            Some(_) => &self.turn,
        };
        let given = [
            ("-p", self.prompt.is_some()),
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

/// What holds for every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// Work in this directory
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Use this file in place of the user's configuration
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Set a configuration key, as in --set tools.shell.timeout=60
    #[arg(long, value_name = "KEY=VALUE", value_parser = FlagOverrides::parse_set, global = true)]
    pub(crate) set: Vec<(String, String)>,
    /// Ask this provider of the configuration
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) provider: Option<String>,
    /// Ask this model
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) model: Option<String>,
    /// How freely the agent acts: plan, ask, auto-edit or full
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) mode: Option<String>,
    /// Let --mode full run without an OS sandbox
    #[arg(long, global = true)]
    pub(crate) unsandboxed: bool,
    /// Answer every question with "once"; what is denied stays denied
    #[arg(long, global = true)]
    pub(crate) yes: bool,
    /// Print errors and the answer alone
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Log to standard error (again for more); ZEPH_LOG sets a filter
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

impl GlobalArgs {
    /// What the flags set in the configuration.
    pub(crate) fn overrides(&self) -> FlagOverrides {
        FlagOverrides {
            config: self.config.clone(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            mode: self.mode.clone(),
            set: self.set.clone(),
        }
    }
}

/// What holds for a conversation.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TurnArgs {
    /// Go on with the last session of this directory
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Go on with this session (its id or the beginning of it)
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// How one turn is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,
    /// Ask for an answer that follows this JSON Schema, and check it
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
}

/// `zeph undo`
#[derive(Debug, Clone, Args)]
pub(crate) struct UndoArgs {
    /// The session (its id or the beginning of it); else the one in which a file of this directory
    /// was changed last
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Show what can be undone, the latest first, and undo nothing
    #[arg(long, conflicts_with = "forget")]
    pub(crate) list: bool,
    /// Leave the last changes as they are, so that those before can be undone
    #[arg(long)]
    pub(crate) forget: bool,
}

/// How one turn is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer; everything else goes to standard error.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON event a line.
    StreamJson,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One turn: the same as -p
    Run {
        /// What to say; `-` or nothing reads standard input, a last `-` appends it
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
        #[command(flatten)]
        turn: TurnArgs,
    },
    /// List, show and call tools without a model
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// List, show, export and remove stored sessions
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// List and print outputs that were too long for the model
    Overflow {
        #[command(subcommand)]
        command: OverflowCommand,
    },
    /// List, search and remove facts that outlive their session
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Leave the noise out of what a command printed
    Filter(FilterArgs),
    /// Read the trail of calls, and check that it is whole
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Ask what the gates decide, without running anything
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Take back what the file tools changed last
    Undo(UndoArgs),
    /// Show, check and write the configuration
    Config {
        #[command(subcommand)]
        command: super::config_cmd::ConfigCommand,
    },
    /// Do tasks later: add, list, cancel and run them
    Scheduler {
        #[command(subcommand)]
        command: super::scheduler::SchedulerCommand,
    },
    /// List, show and trust skills
    Skills {
        #[command(subcommand)]
        command: super::skills::SkillsCommand,
    },
    /// List MCP servers and their tools, and agree to these
    Mcp {
        #[command(subcommand)]
        command: super::mcp::McpCommand,
    },
    /// Check that everything Zeph needs is there
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Models that run in this process: fetch, list, remove
    Models {
        #[command(subcommand)]
        command: super::models::ModelsCommand,
    },
    /// See the agent work on a sample project, offline, with scripted model lines
    Demo {
        /// Lay the sample project out here and leave it; the directory must not exist
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// `zeph tools …`
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// All tools, a line each
    List {
        /// Print JSON: the definitions as a model is sent them with the first request
        #[arg(long, conflicts_with = "catalog")]
        json: bool,
        /// With --json: also those that are sent once there is something to use them for
        #[arg(long, requires = "json")]
        all: bool,
        /// Print the catalog for models that call tools in text
        #[arg(long)]
        catalog: bool,
    },
    /// One tool: its words, its nature, its parameters
    Show {
        /// The tool
        name: String,
    },
    /// One call through the whole stack
    Call {
        /// The tool
        name: String,
        /// The arguments as a JSON object; `-` reads standard input
        #[arg(default_value = "{}")]
        params: String,
        /// The session the call belongs to; made when there is none of this id
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Print the machine form
        #[arg(long)]
        json: bool,
    },
    /// Calls from JSON lines {"tool": …, "params": {…}}, in order, in one session
    Run {
        /// The file; `-` or nothing reads standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        /// The session the calls belong to; made when there is none of this id
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

/// `zeph sessions …`
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// The sessions of this directory, the latest first
    List {
        /// Those of all directories, and those without messages
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// One conversation, for reading
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// One conversation as JSON
    Export {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Remove a conversation; its audit entries stay
    Rm {
        /// Their ids, or the beginnings of them
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// `zeph filter …`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FilterArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FilterCommand>,
    /// The command that printed what is on standard input
    #[arg(long = "command", value_name = "CMD", required = true)]
    pub(crate) printed_by: Option<String>,
    /// Its exit code
    #[arg(long, value_name = "N", requires = "printed_by")]
    pub(crate) exit_code: Option<i32>,
}

/// `zeph filter …`
#[derive(Debug, Subcommand)]
pub(crate) enum FilterCommand {
    /// Run a command, print what is worth reading, exit with its code
    Run {
        /// Keep all that it printed: in this file, or in one whose name is told
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        tee: Option<Option<PathBuf>>,
        /// The command and its arguments
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "CMD"
        )]
        words: Vec<OsString>,
    },
    /// What was saved, by rule
    Gain {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the tests of the rules
    Verify {
        /// The rules of this file alone
        file: Option<PathBuf>,
    },
    /// Show the rules that this project brings, and use them once you agree (or --yes does)
    Trust {
        /// Use them no longer
        #[arg(long)]
        revoke: bool,
        /// Show the projects whose rules are trusted
        #[arg(long, conflicts_with = "revoke")]
        list: bool,
    },
    /// Which rule is for a command, and why
    Explain {
        /// The command
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
    /// Check that no entry was changed, removed, inserted or moved; exit code 1 when one was
    Verify {
        /// This file of JSON lines; else the database
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// An entry that must be there, as `zeph audit head` printed it
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<Link>,
    },
    /// The number and the hash of the last entry, to be kept elsewhere
    Head {
        /// Of this file of JSON lines; else of the database
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// The last entries in the database, the oldest first
    Tail {
        /// How many
        #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 20)]
        lines: u32,
        /// Go on with what comes, until interrupted
        #[arg(short, long)]
        follow: bool,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Entries in the database, the oldest first
    Query {
        /// Of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// No older than this: 90s, 30m, 1h, 2d, 1w, 2026-11-01 or 2026-11-01T09:30
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// That ended so
        #[arg(long, value_parser = ["success", "error", "blocked", "cancelled", "timeout", "rollback"])]
        result: Option<String>,
        /// Of this session (its id or the beginning of it), also of a removed one
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// The last so many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
}

/// `zeph policy …`
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// What a call is made of, which rule decides about each part, and what would allow it
    Explain {
        /// The tool
        #[arg(value_name = "TOOL")]
        tool: String,
        /// A JSON object, or the text of the first required argument: the command, the path, the URL
        #[arg(value_name = "ARGS", default_value = "{}", allow_hyphen_values = true)]
        arguments: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Try the examples that rules carry (`match`, `not_match`); exit code 1 when one is wrong
    Test,
    /// Which calls of the past would now be decided otherwise, as the audit trail has them
    Replay {
        /// No older than this: 90s, 30m, 1h, 2d, 1w, 2026-11-01 or 2026-11-01T09:30
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Of this session (its id or the beginning of it), wherever it was
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
