//! The sentences and the example of each command, for `--help` and the manual pages.

/// The help of one command.
#[derive(Debug)]
pub(super) struct HelpText {
    /// The command without `zeph`; empty for the program itself.
    pub(super) command: &'static str,
    /// Complete sentences about it.
    pub(super) sentences: &'static str,
    /// A command line with it.
    pub(super) example: &'static str,
}

const fn text(command: &'static str, sentences: &'static str, example: &'static str) -> HelpText {
    HelpText {
        command,
        sentences,
        example,
    }
}

/// The help of every command.
pub(super) const TEXTS: &[HelpText] = &[
    text(
        "",
        "Zeph is a terminal AI agent. Without a command it starts an interactive session; PROMPT \
         is its first message. With -p or piped input it runs one turn and exits.",
        "zeph -p 'why does the build fail?'",
    ),
    text(
        "run",
        "Runs one turn with the prompt and exits, as -p does. The response goes to standard output, everything else to \
         standard error.",
        "zeph run 'summarize the README'",
    ),
    text(
        "acp",
        "Serves an editor over the Agent Client Protocol on standard input and output. The editor starts this command.",
        "zeph acp",
    ),
    text(
        "tools",
        "Lists, shows and calls tools without a model. Every call passes the same gates as in a session.",
        "zeph tools list",
    ),
    text(
        "tools list",
        "Lists every tool with one line about it. With --json, it prints the definitions that a model receives.",
        "zeph tools list --json",
    ),
    text(
        "tools show",
        "Shows the description, the annotations and the parameters of one tool as JSON.",
        "zeph tools show read",
    ),
    text(
        "tools call",
        "Calls one tool with a JSON object as its arguments. The exit code is 3 if a gate refuses the call.",
        "zeph tools call read '{\"path\": \"Cargo.toml\"}'",
    ),
    text(
        "tools run",
        "Reads calls as JSON lines and runs them in order in one session. It prints one JSON result for each.",
        "zeph tools run calls.jsonl",
    ),
    text(
        "sessions",
        "Manages the stored sessions. A session is named by its ID or by a unique prefix of the ID.",
        "zeph sessions list",
    ),
    text(
        "sessions list",
        "Lists the sessions of this directory, the latest first. With --all, it lists those of all directories.",
        "zeph sessions list --all",
    ),
    text(
        "sessions show",
        "Prints one conversation for reading.",
        "zeph sessions show 3f2a",
    ),
    text(
        "sessions search",
        "Finds the sessions of this directory that contain all of the words in a prompt, a response or the title.",
        "zeph sessions search parser quotes",
    ),
    text(
        "sessions export",
        "Prints one conversation as JSON for other programs, or as Markdown or HTML for reading.",
        "zeph sessions export 3f2a --format html",
    ),
    text(
        "sessions rm",
        "Removes conversations. Their audit entries remain.",
        "zeph sessions rm 3f2a",
    ),
    text(
        "overflow",
        "Lists and prints outputs of tools that were too long for the model.",
        "zeph overflow list",
    ),
    text(
        "overflow get",
        "Prints one stored output completely. The reference is in the shortened result.",
        "zeph overflow get overflow:0b94ac36-3f0e-4c0e-8c57-2a8c4c1f9d11",
    ),
    text(
        "overflow list",
        "Lists the stored outputs, the latest first.",
        "zeph overflow list --session 3f2a",
    ),
    text(
        "memory",
        "Lists, searches and removes long-term memories, which the agent stores across sessions.",
        "zeph memory list",
    ),
    text(
        "memory list",
        "Lists the stored facts, the latest first.",
        "zeph memory list --limit 10",
    ),
    text(
        "memory search",
        "Searches the stored facts for words and prints the best matches first.",
        "zeph memory search release process",
    ),
    text(
        "memory copy",
        "Copies the configured store to another one, and compares them. Embeddings are not copied. A repeated copy continues.",
        "zeph memory copy --to postgres://ann@db.example.org/zeph",
    ),
    text(
        "memory access",
        "Shows and changes which users of a shared store can read your rows.",
        "zeph memory access list",
    ),
    text(
        "memory access list",
        "Lists the users that can read your sessions, facts, tasks and audit entries.",
        "zeph memory access list",
    ),
    text(
        "memory access grant",
        "Lets a user of the shared store read your sessions, facts, tasks and audit entries. The user cannot change them.",
        "zeph memory access grant bob",
    ),
    text(
        "memory access revoke",
        "Ends the access of a user of the shared store to your rows.",
        "zeph memory access revoke bob",
    ),
    text(
        "memory rm",
        "Removes stored facts permanently.",
        "zeph memory rm memory_3",
    ),
    text(
        "filter",
        "Filters the output of a command from standard input, as the tool `bash` does. Subcommands run commands and show \
         the rules.",
        "zeph filter --command 'cargo test'",
    ),
    text(
        "filter run",
        "Runs a command, prints its filtered output, and exits with its status.",
        "zeph filter run cargo test",
    ),
    text(
        "filter gain",
        "Shows the number of bytes that each rule has saved.",
        "zeph filter gain --json",
    ),
    text(
        "filter verify",
        "Runs the tests that the rules contain, and exits with 1 if one fails.",
        "zeph filter verify rules.toml",
    ),
    text(
        "filter trust",
        "Shows the filter rules of this project and asks whether to trust them. A change of the file ends the trust.",
        "zeph filter trust --list",
    ),
    text(
        "filter explain",
        "Explains which rule matches a command.",
        "zeph filter explain git status",
    ),
    text(
        "audit",
        "Queries the audit log, which has one entry for each call, and verifies its integrity.",
        "zeph audit tail",
    ),
    text(
        "audit verify",
        "Verifies the hash chain of the log. The exit code is 1 if an entry was modified.",
        "zeph audit verify",
    ),
    text(
        "audit head",
        "Prints the sequence number and the hash of the last entry. `zeph audit verify --head` checks them later.",
        "zeph audit head",
    ),
    text(
        "audit tail",
        "Prints the last entries, the oldest first. With --follow, it waits for new ones.",
        "zeph audit tail -n 5 --follow",
    ),
    text(
        "audit query",
        "Prints the entries that match all options, the oldest first.",
        "zeph audit query --tool bash --since 1h --result blocked",
    ),
    text(
        "policy",
        "Evaluates permission and policy rules without running a call.",
        "zeph policy explain bash 'git push'",
    ),
    text(
        "policy explain",
        "Explains the decision about a call: its parts, the matching rules, and how to allow it.",
        "zeph policy explain bash 'rm -rf target'",
    ),
    text(
        "policy test",
        "Runs the examples in the rules (`match` and `not_match`), and exits with 1 if one fails.",
        "zeph policy test",
    ),
    text(
        "policy replay",
        "Evaluates calls of the audit log again with the current rules, and shows the decisions that differ.",
        "zeph policy replay --since 1d",
    ),
    text(
        "login",
        "Stores the key of a provider and adds the provider to your configuration. The key is read without echo or from \
         standard input, and tested first. Without PROVIDER, a dialog lists the choices.",
        "zeph login anthropic < keyfile",
    ),
    text(
        "logout",
        "Removes the stored key of a provider. The provider remains in the configuration.",
        "zeph logout anthropic",
    ),
    text(
        "undo",
        "Undoes the last change that a file tool made. Repeat the command to undo earlier changes.",
        "zeph undo --list",
    ),
    text(
        "config",
        "Shows, checks and changes the configuration.",
        "zeph config show --origin",
    ),
    text(
        "config init",
        "Writes your configuration file with every key and its default.",
        "zeph config init --print",
    ),
    text(
        "config show",
        "Prints the effective values. With --origin, each value has its source.",
        "zeph config show --origin",
    ),
    text(
        "config get",
        "Prints the effective value of a setting or of a section. The exit code is 1 if the setting has no value.",
        "zeph config get tools.shell.timeout",
    ),
    text(
        "config set",
        "Sets a key in your configuration file. The value is checked against the schema, and comments are preserved.",
        "zeph config set tools.shell.timeout 60",
    ),
    text(
        "config edit",
        "Opens your configuration file in $VISUAL or $EDITOR. The file is replaced only if the new text is valid.",
        "zeph config edit",
    ),
    text(
        "config path",
        "Prints the paths of the configuration files, the data and the database.",
        "zeph config path",
    ),
    text(
        "config schema",
        "Prints the JSON Schema of the configuration, which editors can use for completion.",
        "zeph config schema",
    ),
    text(
        "config check",
        "Checks a file or the whole configuration, and reports every error with its line.",
        "zeph config check .zeph/config.toml",
    ),
    text(
        "config migrate",
        "Replaces the old keys of a file, shows the changes, and writes a backup.",
        "zeph config migrate --dry-run",
    ),
    text(
        "scheduler",
        "Manages scheduled tasks. A task is a prompt with a time.",
        "zeph scheduler list",
    ),
    text(
        "scheduler add",
        "Schedules a task for this directory.",
        "zeph scheduler add 'every day at 9' 'check the dependencies for updates'",
    ),
    text(
        "scheduler list",
        "Lists the tasks of this directory and the results of the last ones.",
        "zeph scheduler list --json",
    ),
    text(
        "scheduler rm",
        "Cancels a scheduled task.",
        "zeph scheduler rm 3",
    ),
    text(
        "scheduler run",
        "Runs the tasks of this directory when they are due, until you interrupt it.",
        "zeph scheduler run --once",
    ),
    text(
        "skills",
        "Lists, shows and trusts skills, which are instructions with tools.",
        "zeph skills list",
    ),
    text(
        "skills list",
        "Lists all skills with one line about each, and the folders that are refused.",
        "zeph skills list --json",
    ),
    text(
        "skills show",
        "Shows the complete text of a skill and the files of its folder.",
        "zeph skills show release",
    ),
    text(
        "skills trust",
        "Shows a skill of this project and asks whether to trust it. A change of its folder ends the trust.",
        "zeph skills trust release",
    ),
    text(
        "skills untrust",
        "Ends the trust in a skill of this project.",
        "zeph skills untrust release",
    ),
    text(
        "agents",
        "Lists and trusts sub-agents, which are Markdown files with instructions.",
        "zeph agents list",
    ),
    text(
        "agents list",
        "Lists all sub-agents with one line about each, and the files that are refused.",
        "zeph agents list",
    ),
    text(
        "agents trust",
        "Shows the agents of this project and asks whether to trust them. A change of a file ends the trust.",
        "zeph agents trust",
    ),
    text(
        "agents untrust",
        "Ends the trust in the agents of this project.",
        "zeph agents untrust",
    ),
    text(
        "commands",
        "Lists, shows and trusts custom commands, which are prompts in Markdown files.",
        "zeph commands list",
    ),
    text(
        "commands list",
        "Lists all custom commands with one line about each, and the files that are refused.",
        "zeph commands list",
    ),
    text(
        "commands show",
        "Prints the text of one custom command.",
        "zeph commands show review",
    ),
    text(
        "commands trust",
        "Shows the custom commands of this project and asks whether to trust them. A change of a file ends the trust.",
        "zeph commands trust",
    ),
    text(
        "commands untrust",
        "Ends the trust in the custom commands of this project.",
        "zeph commands untrust",
    ),
    text(
        "mcp",
        "Manages MCP servers and the approval of their tools, and serves the tools of Zeph.",
        "zeph mcp list",
    ),
    text(
        "mcp list",
        "Connects to all servers, and lists them with their tools.",
        "zeph mcp list --json",
    ),
    text(
        "mcp add",
        "Adds a server to your configuration: a program after `--`, or an address with --url.",
        "zeph mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
    ),
    text(
        "mcp get",
        "Prints the settings of a server. Values that may be secrets are not shown.",
        "zeph mcp get files",
    ),
    text(
        "mcp remove",
        "Removes a server from your configuration, and the approvals of its tools.",
        "zeph mcp remove files",
    ),
    text("mcp enable", "Enables a server.", "zeph mcp enable files"),
    text(
        "mcp disable",
        "Disables a server. Its settings remain.",
        "zeph mcp disable files",
    ),
    text(
        "mcp test",
        "Connects to a server, and prints its state and its tools. The exit code is 1 if the server cannot be reached.",
        "zeph mcp test files",
    ),
    text(
        "mcp login",
        "Logs in to a server with the browser.",
        "zeph mcp login tracker",
    ),
    text(
        "mcp logout",
        "Removes the login of a server.",
        "zeph mcp logout tracker",
    ),
    text(
        "mcp approve",
        "Shows the new and the changed tools of a server, and asks whether they may be called.",
        "zeph mcp approve files",
    ),
    text(
        "mcp forget",
        "Removes the approval of the tools of a server.",
        "zeph mcp forget files",
    ),
    text(
        "mcp serve",
        "Serves the tools of Zeph to an MCP client on standard input and output. The client starts this command.",
        "zeph mcp serve --tools read,grep",
    ),
    text(
        "doctor",
        "Checks the installation: configuration, database, sandbox, provider. The exit code is 1 if a check fails. \
         --report adds versions and the names of the keys that are set, for a bug report.",
        "zeph doctor",
    ),
    text(
        "models",
        "Manages models that run in this process, and lists the models of servers.",
        "zeph models list",
    ),
    text(
        "models pull",
        "Downloads a model, or copies a GGUF file of this machine.",
        "zeph models pull OWNER/REPO/FILE.gguf",
    ),
    text(
        "models list",
        "Lists the downloaded models, and the models of the server of each provider.",
        "zeph models list --json",
    ),
    text(
        "models path",
        "Prints the path of a downloaded model.",
        "zeph models path smollm2",
    ),
    text(
        "models rm",
        "Removes downloaded models.",
        "zeph models rm smollm2",
    ),
    text(
        "demo",
        "Shows the agent at work on a sample project, offline. A script replaces the model; the tools are real.",
        "zeph demo --keep /tmp/sample",
    ),
    text(
        "completions",
        "Prints the completion script of a shell. It also completes sessions, providers, models, tools and settings.",
        "zeph completions bash > ~/.local/share/bash-completion/completions/zeph",
    ),
    text(
        "man",
        "Prints the manual page of a command. With --dir, it writes the pages of all commands into a directory.",
        "zeph man tools call",
    ),
];
