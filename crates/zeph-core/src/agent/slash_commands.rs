//! Parsing of the user's input: prompts, slash commands and `!command`.

/// One parsed input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<'a> {
    /// The input is empty.
    Empty,
    /// A prompt for the model.
    Prompt(&'a str),
    /// A shell command that the user runs.
    Shell(&'a str),
    /// A slash command.
    Command(Command),
    /// `/tools unblock NAME`
    Unblock(&'a str),
    /// `/model NAME`, and the effort that follows
    Model(&'a str, Option<&'a str>),
    /// `/mode NAME`
    Mode(&'a str),
    /// `/resume ID`
    Resume(&'a str),
    /// `/review TARGET`
    Review(&'a str),
    /// `/jobs stop N`
    StopJob(&'a str),
    /// `/rename TITLE`
    Rename(&'a str),
    /// `/rewind N`, and whether `yes` follows
    Rewind(usize, bool),
    /// `/export FILE`
    Export(&'a str),
    /// `/mcp approve NAME`, and whether `yes` follows
    Approve(&'a str, bool),
    /// `/mcp:SERVER:PROMPT ARGUMENTS`
    ServerPrompt {
        /// The server.
        server: &'a str,
        /// The prompt.
        prompt: &'a str,
        /// The rest of the input.
        arguments: &'a str,
    },
    /// An unknown slash command, or a known one with wrong arguments, and the most similar command.
    Unknown {
        /// The input.
        name: &'a str,
        /// The most similar command.
        near: Option<&'static str>,
    },
}

/// A slash command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `/help`
    Help,
    /// `/clear`
    Clear,
    /// `/compact`
    Compact,
    /// `/status`
    Status,
    /// `/cost`
    Cost,
    /// `/tools`
    Tools,
    /// `/tools unblock`, without a name
    Unblock,
    /// `/skills`
    Skills,
    /// `/mcp`
    Mcp,
    /// `/mcp approve`, without a name
    McpApprove,
    /// `/sessions`
    Sessions,
    /// `/resume`, without an id
    Resume,
    /// `/rename`, without a title
    Rename,
    /// `/fork`
    Fork,
    /// `/rewind`, without a number
    Rewind,
    /// `/export`, without a file
    Export,
    /// `/model`, without a name
    Models,
    /// `/mode`, without a name
    Modes,
    /// `/reload`
    Reload,
    /// `/init`
    Init,
    /// `/review`, without a target
    Review,
    /// `/diff`
    Diff,
    /// `/diff session`
    DiffSession,
    /// `/jobs`
    Jobs,
    /// `/jobs stop`, without a number
    StopJob,
    /// `/copy`
    Copy,
    /// `/undo`
    Undo,
    /// `/undo forget`
    UndoForget,
    /// `/permissions`
    Permissions,
    /// `/permissions rm N`: the grant with this number in the last list
    PermissionsRemove(usize),
    /// `/quit`
    Quit,
}

/// All commands: name, value, help text. `/help` shows them in this order.
pub const COMMANDS: &[(&str, Command, &str)] = &[
    ("/help", Command::Help, "this list"),
    (
        "/clear",
        Command::Clear,
        "start a new conversation; the store keeps the old one",
    ),
    (
        "/compact",
        Command::Compact,
        "summarize older messages; the store keeps them",
    ),
    (
        "/status",
        Command::Status,
        "model, session, context, limits",
    ),
    (
        "/cost",
        Command::Cost,
        "tokens and money of this session, by model",
    ),
    (
        "/tools",
        Command::Tools,
        "the tools that are available to the model",
    ),
    (
        "/tools unblock",
        Command::Unblock,
        "NAME: unblock a tool that failed too often",
    ),
    (
        "/model",
        Command::Models,
        "NAME [EFFORT]: use another provider or model, with this effort; without NAME, list them",
    ),
    (
        "/mode",
        Command::Modes,
        "NAME: the permission mode; Shift-Tab selects the next one",
    ),
    ("/skills", Command::Skills, "the skills and their trust"),
    (
        "/mcp",
        Command::Mcp,
        "the MCP servers and their unavailable tools",
    ),
    (
        "/mcp approve",
        Command::McpApprove,
        "NAME: review unapproved tools of a server; NAME yes approves them",
    ),
    (
        "/sessions",
        Command::Sessions,
        "the sessions of this directory",
    ),
    (
        "/resume",
        Command::Resume,
        "ID: continue another session; without ID, select one",
    ),
    (
        "/rename",
        Command::Rename,
        "TITLE: the title of this session",
    ),
    (
        "/fork",
        Command::Fork,
        "copy this session, and continue in the copy",
    ),
    (
        "/rewind",
        Command::Rewind,
        "N: go back to the state before your message N and restore files; without N, list your \
         messages",
    ),
    (
        "/export",
        Command::Export,
        "FILE: write the conversation to a .md, .html or .json file",
    ),
    (
        "/reload",
        Command::Reload,
        "read the configuration and custom commands again, and show the changes",
    ),
    (
        "/init",
        Command::Init,
        "draft AGENTS.md for this project, or improve it",
    ),
    (
        "/review",
        Command::Review,
        "[TARGET]: review the uncommitted changes, or those since a commit, branch or range",
    ),
    (
        "/diff",
        Command::Diff,
        "the uncommitted changes of the project",
    ),
    (
        "/diff session",
        Command::DiffSession,
        "the changes that the file tools made in this session",
    ),
    ("/jobs", Command::Jobs, "the background jobs"),
    ("/jobs stop", Command::StopJob, "N: end a background job"),
    (
        "/copy",
        Command::Copy,
        "copy the last response, as Markdown, to the clipboard",
    ),
    ("/undo", Command::Undo, "undo the last changes of files"),
    (
        "/undo forget",
        Command::UndoForget,
        "skip the latest change so that earlier ones can be undone",
    ),
    (
        "/permissions",
        Command::Permissions,
        "the calls that need no confirmation; /permissions rm N revokes an approval",
    ),
    ("/quit", Command::Quit, "leave (also exit, quit, Ctrl-D)"),
];

/// Parses one input.
#[must_use]
pub fn parse(text: &str) -> Input<'_> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Input::Empty;
    }
    if matches!(trimmed, "exit" | "quit") {
        return Input::Command(Command::Quit);
    }
    if let Some(command) = trimmed.strip_prefix('!') {
        let command = command.trim();
        return if command.is_empty() {
            Input::Empty
        } else {
            Input::Shell(command)
        };
    }
    if let Some(rest) = trimmed.strip_prefix('/') {
        let name = trimmed.split_whitespace().next().unwrap_or(trimmed);
        let words: Vec<&str> = trimmed.split_whitespace().collect();
        let known = |name: &str| COMMANDS.iter().find(|(known, ..)| *known == name);
        if let Some((_, command, _)) = known(&words.join(" ")) {
            return Input::Command(*command);
        }
        if let Some((server, prompt)) = name
            .strip_prefix("/mcp:")
            .and_then(|named| named.split_once(':'))
        {
            return Input::ServerPrompt {
                server,
                prompt,
                arguments: trimmed.get(name.len()..).unwrap_or_default().trim(),
            };
        }
        if let ["/tools", "unblock", tool] = words[..] {
            return Input::Unblock(tool);
        }
        match words[..] {
            ["/model", name] => return Input::Model(name, None),
            ["/model", name, effort] => return Input::Model(name, Some(effort)),
            ["/mode", name] => return Input::Mode(name),
            ["/resume", id] => return Input::Resume(id),
            ["/review", target] => return Input::Review(target),
            ["/jobs", "stop", job] => return Input::StopJob(job),
            ["/rename", _, ..] => return Input::Rename(rest["rename".len()..].trim()),
            ["/export", _, ..] => return Input::Export(rest["export".len()..].trim()),
            ["/mcp", "approve", name] => return Input::Approve(name, false),
            ["/mcp", "approve", name, "yes"] => return Input::Approve(name, true),
            _ => {}
        }
        if let ["/rewind", number] | ["/rewind", number, "yes"] = words[..]
            && let Ok(number) = number.parse()
        {
            return Input::Rewind(number, words.len() == 3);
        }
        if let ["/permissions", "rm", number] = words[..]
            && let Ok(number) = number.parse()
        {
            return Input::Command(Command::PermissionsRemove(number));
        }
        // No command has other arguments: `/undo list` must not undo.
        if let Some((near, ..)) = known(name) {
            return Input::Unknown {
                name: trimmed,
                near: Some(near),
            };
        }
        if is_command_word(rest) {
            return Input::Unknown {
                name,
                near: nearest_command(name),
            };
        }
    }
    Input::Prompt(text)
}

/// Whether an input after its slash starts with the name of a command. A path with two slashes is a prompt, and so is
/// other text, such as `/* a comment */`.
fn is_command_word(rest: &str) -> bool {
    let word = rest.split_whitespace().next().unwrap_or_default();
    rest.starts_with(char::is_alphanumeric) && !word.contains('/')
}

fn nearest_command(name: &str) -> Option<&'static str> {
    let names = || COMMANDS.iter().map(|(known, ..)| *known);
    let near = zeph_tools::registry::nearest(name, names(), 1);
    names().find(|known| near.first().is_some_and(|near| near == known))
}

/// Whether a built-in command has this name without its slash, or the prompt of an MCP server can have it.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    let mut built_in = COMMANDS.iter().map(|(known, ..)| *known);
    name.starts_with("mcp:")
        || built_in.any(|known| {
            let first = known.split(' ').next().unwrap_or(known);
            first.strip_prefix('/') == Some(name)
        })
}

/// Whether an unknown command starts with an existing path, such as `/tmp is full`. Then it is a prompt.
pub(super) fn starts_with_path(text: &str) -> bool {
    let Some((word, _)) = text.trim().split_once(char::is_whitespace) else {
        return false;
    };
    std::path::Path::new(word.trim_end_matches([',', '.', ':', ';'])).exists()
}

/// The command line of the user, as `/help` shows it.
const SHELL: (&str, &str) = (
    "!command",
    "run a shell command yourself; the model sees its output",
);

/// The text of `/help` without the commands `unavailable`.
#[must_use]
pub fn help(unavailable: &[&str]) -> String {
    let commands = COMMANDS.iter().map(|(name, _, words)| (*name, *words));
    let commands = commands.chain([SHELL]);
    let available = commands.filter(|(name, _)| !unavailable.contains(name));
    available
        .map(|(name, words)| format!("{name:<14} {words}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-8: a custom command cannot have the name of a built-in one.
    #[test]
    fn first_word_of_a_command_is_built_in() {
        for name in ["help", "tools", "mcp", "mcp:a"] {
            assert!(is_built_in(name), "{name}");
        }
        for name in ["unblock", "tool", "/help", "git:commit"] {
            assert!(!is_built_in(name), "{name}");
        }
    }

    /// Proves CLI-7: a path is a prompt, also if it looks like a command.
    #[test]
    fn existing_path_starts_a_prompt() {
        assert!(starts_with_path("/tmp is full"));
        assert!(starts_with_path(" /tmp, is it full? "));
        assert!(!starts_with_path("/tmp"));
        assert!(!starts_with_path("/hepl me"));
    }

    /// Proves CLI-7: a command with a typing error is never a prompt, and `exit` and `quit` leave.
    #[test]
    fn parses_input_kinds() {
        let check = |text, expect| assert_eq!(parse(text), expect, "{text:?}");
        check("", Input::Empty);
        check("  \n", Input::Empty);
        check("!", Input::Empty);
        check("! ls -l ", Input::Shell("ls -l"));
        check("/help", Input::Command(Command::Help));
        check(" /quit ", Input::Command(Command::Quit));
        check("/undo", Input::Command(Command::Undo));
        check("/undo  forget ", Input::Command(Command::UndoForget));
        check("/tools unblock", Input::Command(Command::Unblock));
        check("/tools  unblock read ", Input::Unblock("read"));
        check("/permissions", Input::Command(Command::Permissions));
        check("/model", Input::Command(Command::Models));
        check("/model gpt-5-mini", Input::Model("gpt-5-mini", None));
        check("/model a  high", Input::Model("a", Some("high")));
        check("/mode", Input::Command(Command::Modes));
        check("/mode auto", Input::Mode("auto"));
        check("/resume", Input::Command(Command::Resume));
        check("/rename", Input::Command(Command::Rename));
        check("/rename  a new  title ", Input::Rename("a new  title"));
        check("/rewind", Input::Command(Command::Rewind));
        check("/rewind 3", Input::Rewind(3, false));
        check("/rewind 3 yes", Input::Rewind(3, true));
        check("/export", Input::Command(Command::Export));
        check("/export my notes.md", Input::Export("my notes.md"));
        check("/fork", Input::Command(Command::Fork));
        check("/resume 0198ab", Input::Resume("0198ab"));
        check("/review  main..HEAD ", Input::Review("main..HEAD"));
        check("/review", Input::Command(Command::Review));
        check("/jobs stop 2", Input::StopJob("2"));
        check("/jobs stop", Input::Command(Command::StopJob));
        check("/diff session", Input::Command(Command::DiffSession));
        let prompt = |prompt, arguments| Input::ServerPrompt {
            server: "forge",
            prompt,
            arguments,
        };
        check("/mcp:forge:review", prompt("review", ""));
        check(" /mcp:forge:a:b  x 'y z' ", prompt("a:b", "x 'y z'"));
        check("/mcp", Input::Command(Command::Mcp));
        check("/mcp approve", Input::Command(Command::McpApprove));
        check("/mcp approve  a", Input::Approve("a", false));
        check("/mcp approve a yes", Input::Approve("a", true));
        let remove = Command::PermissionsRemove(12);
        check("/permissions  rm 12", Input::Command(remove));
        check("fix it", Input::Prompt("fix it"));
        check("/etc/hosts", Input::Prompt("/etc/hosts"));
        check("/etc/hosts is it", Input::Prompt("/etc/hosts is it"));
        check("/* a */ fix it", Input::Prompt("/* a */ fix it"));
        check("/ root", Input::Prompt("/ root"));
        check("exit", Input::Command(Command::Quit));
        check(" quit\n", Input::Command(Command::Quit));
        check("quit it", Input::Prompt("quit it"));
        let unknown = |name, near| Input::Unknown { name, near };
        check("/hepl", unknown("/hepl", Some("/help")));
        check("/hepl me", unknown("/hepl", Some("/help")));
        check("/tmp is full", unknown("/tmp", Some("/mcp")));
        check("/xyzzy", unknown("/xyzzy", None));
        check(
            "/tools unblock a b",
            unknown("/tools unblock a b", Some("/tools")),
        );
        check(
            "/mcp approve a no",
            unknown("/mcp approve a no", Some("/mcp")),
        );
        check("/undo list", unknown("/undo list", Some("/undo")));
        let near = Some("/rewind");
        check("/rewind x", unknown("/rewind x", near));
        check("/rewind 1 no", unknown("/rewind 1 no", near));
        check("/fork it", unknown("/fork it", Some("/fork")));
        check("/model a b c", unknown("/model a b c", Some("/model")));
        let near = Some("/permissions");
        check("/permissions rm", unknown("/permissions rm", near));
        check("/permissions rm x", unknown("/permissions rm x", near));
        check("/undo forget it", unknown("/undo forget it", Some("/undo")));
        check(
            "/clear the table ",
            unknown("/clear the table", Some("/clear")),
        );
    }
}
