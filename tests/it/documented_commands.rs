//! The commands in the blocks of the pages of the book run in the order of their page.
//!
//! Each page has a home with a session, a changed file, an overflowed output and a repository. Programs of other projects
//! are small scripts. The pages with a test of their own are in [`OTHER_TESTS`]. A command that no rule knows fails the test.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::rig::{Home, Page, Terminal, Zeph, session_ids};

/// The pages whose commands another test runs.
const OTHER_TESTS: &[&str] = &[
    "docs/editors.md",         // acp/page.rs
    "docs/installation.md",    // readme.rs
    "docs/mcp.md",             // mcp/page.rs
    "docs/monitoring.md",      // monitoring.rs, telemetry/export.rs
    "docs/quick-start.md",     // readme.rs
    "docs/sharing-a-store.md", // postgres/page.rs
    "docs/tutorial.md",        // tutorial.rs
];

/// The action for a command.
#[derive(Clone, Copy)]
enum Action {
    /// Runs it; these exit codes are correct.
    Run(&'static [i32]),
    /// Runs it with these words at its end, because no user answers its question.
    With(&'static str),
    /// Starts it at a terminal, where it shows this, and leaves it.
    Terminal(&'static str),
    /// Sets a variable of the shell for the commands that follow.
    Set,
    /// Does not run it: the comment of the row names the reason, or the test that does.
    Skip,
}
use Action::{Run, Set, Skip, Terminal as AtTerminal, With};

/// The commands. The first row whose text starts the line decides.
const COMMANDS: &[(&str, Action)] = &[
    // Another agent: counterparts of `cargo xtask`.
    ("claude", Skip),
    // An address, and not a command.
    ("http://", Skip),
    ("line=", Set),
    ("printf", Run(&[0])),
    ("make 2>&1 | zeph filter --command make", Run(&[0])),
    ("git diff", Run(&[0])),
    ("source <(zeph completions bash)", Run(&[0])),
    ("zeph --tui", AtTerminal("script")),
    ("zeph --migrate-config", Run(&[0])),
    ("zeph --mode", AtTerminal("›")),
    ("zeph -c", AtTerminal("›")),
    // It shows a list to choose from: pictures.rs.
    ("zeph -r", Skip),
    // A model of a vendor: switching.rs.
    ("zeph -p \"Prove this lemma.\" -m", Skip),
    ("zeph -p", Run(&[0])),
    // It reads entries of another agent: mcp_serve.
    ("zeph audit query --json | grep claude-code", Skip),
    ("zeph audit query", Run(&[0])),
    ("zeph audit", Run(&[0])),
    ("zeph commands trust", With(" --yes")),
    ("zeph commands", Run(&[0])),
    ("zeph config migrate", Run(&[0])),
    // A check fails without a model of a vendor.
    ("zeph doctor", Run(&[0, 1])),
    ("zeph filter trust --", Run(&[0])),
    ("zeph filter trust", With(" --yes")),
    ("zeph filter", Run(&[0])),
    // It asks a vendor: login.rs.
    ("zeph login", Skip),
    ("zeph logout", Run(&[0, 1])),
    // It serves until its input ends: mcp_serve.
    ("zeph mcp serve", Skip),
    ("zeph mcp approve", With(" --yes")),
    ("zeph mcp", Run(&[0])),
    ("zeph overflow", Run(&[0])),
    ("zeph policy", Run(&[0])),
    ("zeph scheduler run", With(" --once")),
    ("zeph scheduler", Run(&[0])),
    ("zeph sessions", Run(&[0])),
    ("zeph skills trust", With(" --yes")),
    ("zeph skills", Run(&[0])),
    (
        "zeph tools call bash '{\"command\": \"make\"}' --yes",
        Run(&[0]),
    ),
    ("zeph tools call bash", With(" --yes")),
    // It needs the network: web.rs.
    ("zeph tools call fetch", Skip),
    ("zeph tools", Run(&[0])),
    // Nothing is left to undo after the first.
    ("zeph undo", Run(&[0, 1])),
    ("zeph \"", AtTerminal("›")),
    ("zeph", AtTerminal("›")),
];

/// The action for a line.
fn action(line: &str) -> Option<Action> {
    let row = COMMANDS.iter().find(|(start, _)| line.starts_with(start));
    row.map(|(_, action)| *action)
}

/// The session of each home.
const SESSION: &str = r#"
[[steps]]
calls = [{ tool = "write", input = { path = "notes.md", content = "The overflow of outputs.\n" } }]
[[steps]]
calls = [{ tool = "bash", input = { command = "seq 1 40000" } }]
[[steps]]
calls = [{ tool = "bash", input = { command = "false" } }]
[[steps]]
calls = [{ tool = "read", input = { path = "notes.md" } }, { tool = "read", input = { path = "Cargo.toml" } }]
[[steps]]
text = "The overflow is described."
"#;

/// The response to every later prompt. It has the schema of the pages.
const RESPONSE: &str = "[[steps]]\ntext = '{\"functions\": [\"main\"]}'\nrepeat = 20\n";

/// Files of the project.
const FILES: &[(&str, &str)] = &[
    (
        ".zeph/config.toml",
        "[tools.file]\ndeny_read = [\"**/.env\"]\n",
    ),
    ("Cargo.toml", "[package]\nname = \"sample\"\n"),
    ("main.rs", "fn main() {}\n"),
    ("functions.schema.json", r#"{ "type": "object" }"#),
    (
        "calls.jsonl",
        "{\"tool\": \"read\", \"params\": {\"path\": \"main.rs\"}}\n",
    ),
    (
        "script.jsonl",
        "{\"tool\": \"read\", \"params\": {\"path\": \"main.rs\"}}\n",
    ),
    ("keyfile", "sk-test-0123456789abcdef\n"),
    (
        ".zeph/commands/fix.md",
        "---\ndescription: Fix an issue\n---\nFix $1.\n",
    ),
    (
        ".zeph/skills/release/SKILL.md",
        "---\nname: release\ndescription: How to publish a version.\n---\nRun the tests.\n",
    ),
    (
        ".zeph/filters.toml",
        "[[rules]]\nname = \"deploy\"\nmatch = { prefix = \"deploy \" }\nstrategy = [{ type = \"dedup\" }]\n",
    ),
];

/// Programs of other projects, which print a line.
const PROGRAMS: &[&str] = &["cargo", "make", "npm"];

/// A reader of one page.
struct Reader {
    home: Home,
    /// The start of each script: the program, the stubs, and the variables that the page sets.
    prefix: String,
}

fn write_program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

impl Reader {
    fn new() -> Self {
        let home = Home::scripted(SESSION);
        for (name, text) in FILES {
            home.write(name, text);
        }
        let programs = home.home().join("bin");
        for name in PROGRAMS {
            write_program(
                &programs.join(name),
                &format!("#!/bin/sh\necho {name} ended\n"),
            );
        }
        write_program(&home.path("deploy"), "#!/bin/sh\necho \"$1 is up\"\n");
        home.write("notes_server.py", crate::mcp::SERVER);
        let tools = serde_json::json!([crate::mcp::echo()]).to_string();
        std::fs::write(home.tmp().join("tools.json"), tools).unwrap();
        let reader = Self {
            prefix: format!(
                "zeph() {{ \"$BIN\" \"$@\"; }}; BIN=$0; PATH={}:$PATH; ",
                programs.display()
            ),
            home,
        };
        reader.run(
            "git init -q && git add -A && git -c user.name=a -c user.email=a@example.org commit -qm a && git update-ref refs/remotes/origin/main HEAD",
            &[0],
        );
        let log = reader.home.path("audit.jsonl");
        let settings = format!(
            "[tools.audit]\njsonl = true\npath = {:?}\n",
            log.display().to_string()
        );
        reader.home.more_config(&settings);
        reader.run("zeph -p 'Describe it.' --yes", &[0]);
        reader.home.scenario(RESPONSE);
        reader.home.more_config(&settings);
        reader
    }

    /// Runs a script in the project, and returns its output.
    #[track_caller]
    fn run(&self, line: &str, codes: &[i32]) -> String {
        let script = format!("{}{line}", self.prefix);
        let output = Zeph::through_bash(&self.home, &script).run();
        assert!(
            codes.contains(&output.code.unwrap_or(-1)),
            "`{line}`: {output}"
        );
        output.stdout.clone()
    }

    /// The line with the values of this home.
    fn here(&self, line: &str) -> String {
        let mut line = line.to_owned();
        if line.contains(" ID") {
            let id = session_ids(&self.home.database()).pop().unwrap();
            line = line.replace(" ID", &format!(" {id}"));
        }
        if line.contains("SEQ:HASH") {
            let head = self.run("zeph audit head", &[0]);
            line = line.replace("SEQ:HASH", head.trim());
        }
        if let Some((start, _)) = line.split_once(" overflow:") {
            let list = self.run("zeph overflow list", &[0]);
            let id = list
                .split_whitespace()
                .find(|word| word.starts_with("overflow:"));
            line = format!(
                "{start} {}",
                id.expect("the session has an overflowed output")
            );
        }
        line.replace(
            "notes_server.py",
            &format!("notes_server.py {}", self.home.tmp().display()),
        )
    }

    /// Runs one line of a page.
    #[track_caller]
    fn command(&mut self, line: &str) -> bool {
        let Some(action) = action(line) else {
            panic!("no rule for the command `{line}`: add it to COMMANDS");
        };
        let line = self.here(line);
        match action {
            Run(codes) => drop(self.run(&line, codes)),
            With(words) => drop(self.run(&format!("{line}{words}"), &[0])),
            Set => self.prefix.push_str(&format!("{line}; ")),
            AtTerminal(words) => self.leave_terminal(&line, words),
            Skip => return false,
        }
        true
    }

    /// Starts a session at a terminal, and leaves it when it shows the words.
    fn leave_terminal(&self, line: &str, words: &str) {
        let mut args = Vec::new();
        for (at, part) in line.split('"').enumerate() {
            match at % 2 {
                1 => args.push(part),
                _ => args.extend(part.split_whitespace()),
            }
        }
        let mut terminal = Terminal::start(&self.home, &args[1..]);
        terminal.shows(words);
        if args.contains(&"--tui") {
            terminal.type_keys("\x04");
            assert_eq!(terminal.ends().0.code(), Some(0), "{line}");
        } else {
            assert_eq!(terminal.leaves().0.code(), Some(0), "{line}");
        }
    }
}

/// The commands of a page: the lines of its blocks of `sh`, without comments.
fn commands(text: &str) -> Vec<String> {
    let blocks = Page::of(text).blocks.into_iter();
    let blocks = blocks.filter(|(kind, _)| kind == "sh" || kind == "console");
    let lines = blocks.flat_map(|(_, block)| block.lines().map(str::to_owned).collect::<Vec<_>>());
    let lines = lines.map(|line| {
        let line = line.strip_prefix("$ ").unwrap_or(&line);
        line.split(" #").next().unwrap().trim().to_owned()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// Runs the commands of a page. At least `count` of them run here.
#[track_caller]
fn check(page: &str, count: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let mut reader = Reader::new();
    let commands = commands(&text);
    let ran = commands.iter().filter(|line| reader.command(line)).count();
    assert!(ran >= count, "{page}: {ran} commands run here");
}

macro_rules! pages {
    ($($name:ident: $page:literal, $count:literal;)*) => {
        /// The pages whose commands run here.
        const PAGES: &[&str] = &[$($page),*];
        $(
            /// The commands of the page succeed in their order.
            #[test]
            fn $name() {
                check($page, $count);
            }
        )*
    };
}

pages! {
    commands_of_the_audit_page_work: "docs/audit.md", 8;
    commands_of_the_custom_commands_page_work: "docs/custom-commands.md", 4;
    commands_of_the_filters_page_work: "docs/filters.md", 10;
    commands_of_the_full_screen_page_work: "docs/full-screen.md", 3;
    commands_of_the_migration_page_work: "docs/migration.md", 4;
    commands_of_the_overflow_page_work: "docs/overflow.md", 2;
    commands_of_the_permissions_page_work: "docs/permissions.md", 1;
    commands_of_the_providers_page_work: "docs/providers.md", 1;
    commands_of_the_recipes_work: "docs/recipes.md", 26;
    commands_of_the_files_page_work: "docs/tools-files.md", 4;
    commands_of_the_offered_tools_page_work: "docs/tools-offered.md", 1;
    commands_of_the_scheduler_page_work: "docs/scheduler.md", 5;
    commands_of_the_shell_page_work: "docs/tools-shell.md", 1;
    commands_of_the_troubleshooting_page_work: "docs/troubleshooting.md", 2;
    commands_of_the_user_guide_work: "docs/user-guide.md", 11;
    commands_of_the_filter_writing_page_work: "docs/write-a-filter.md", 3;
}

/// Proves PKG-5: each page with commands has a test that runs them.
#[test]
fn page_with_commands_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let name = format!("docs/{}", path.file_name().unwrap().to_string_lossy());
        let commands = commands(&std::fs::read_to_string(&path).unwrap());
        let is_skipped = |line: &String| matches!(action(line), Some(Skip));
        let has_test = PAGES.contains(&name.as_str()) || OTHER_TESTS.contains(&name.as_str());
        if !has_test && !commands.iter().all(is_skipped) {
            faults.push(format!("{name}: no test runs {commands:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
