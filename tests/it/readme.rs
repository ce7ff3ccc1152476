//! The README and the quick start: their commands and their configuration, in the order in which a reader meets them.
//!
//! Each section is a flow with an empty home. Blocks of commands run line by line, and blocks of TOML are appended to the user's
//! file. The commands in tables run after the last flow, with its configuration. A command that needs the network, a build or
//! a terminal is replaced as [`COMMANDS`] says. A command that no rule knows fails the test.

use crate::rig::{Home, OpenAi, Reply, assert_has, session_ids};

/// What this test does with a command.
enum Action {
    /// Runs it; these exit codes are correct.
    Run(&'static [i32]),
    /// Runs another command in its place, for this reason.
    Instead(&'static str, &'static str),
    /// Does not run it, for this reason.
    Skip(&'static str),
    /// Sets a variable for the commands that follow.
    Export,
}

/// The commands in blocks. The longest start of a line decides.
const COMMANDS: &[(&str, Action)] = &[
    (
        "cargo run --release -- demo",
        Action::Skip("it needs a build; `demo.rs` runs `zeph demo`"),
    ),
    ("cargo xtask ci", Action::Skip("it runs all tests")),
    ("cargo install --path .", Action::Skip("it needs a build")),
    ("zeph demo", Action::Run(&[0])),
    ("zeph --version", Action::Run(&[0])),
    ("zeph man --dir", Action::Run(&[0])),
    ("zeph completions", Action::Run(&[0])),
    (
        "zeph -p",
        Action::Instead("zeph config check", "it asks a model of a vendor"),
    ),
    // Without a provider, a check fails.
    ("zeph doctor", Action::Run(&[0, 1])),
    ("export ", Action::Export),
    (
        "zeph config edit",
        Action::Instead("zeph config init", "it opens an editor"),
    ),
    ("zeph config", Action::Run(&[0])),
    (
        "zeph",
        Action::Instead("zeph config check", "it needs a terminal"),
    ),
];

/// A part of the README.
#[derive(Debug)]
enum Part {
    Heading,
    Commands(Vec<String>),
    Toml(String),
    /// The first cell of a row: the commands in it.
    Row(Vec<String>),
}

fn page(path: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join(path)).unwrap()
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut block: Option<(String, Vec<String>)> = None;
    for line in text.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (Some((kind, lines)), Some(_)) => {
                match kind.as_str() {
                    "sh" => parts.push(Part::Commands(std::mem::take(lines))),
                    "toml" => parts.push(Part::Toml(lines.join("\n") + "\n")),
                    // A prompt in a session: the tutorial's test runs such.
                    "text" => {}
                    kind => panic!("a block of {kind:?} is not checked"),
                }
                block = None;
            }
            (Some((_, lines)), None) => lines.push(line.to_owned()),
            (None, Some(kind)) => block = Some((kind.to_owned(), Vec::new())),
            (None, None) if line.starts_with('#') => parts.push(Part::Heading),
            (None, None) if line.starts_with("| `") && line.contains("zeph ") => {
                let line = line.replace("\\|", "\u{0}");
                let cell = line.split('|').nth(1).unwrap().replace('\u{0}', "|");
                let spans = cell.split('`').skip(1).step_by(2);
                parts.push(Part::Row(spans.map(str::to_owned).collect()));
            }
            (None, None) => {}
        }
    }
    parts
}

/// A reader of the README.
struct Reader {
    home: Home,
    server: OpenAi,
    exports: String,
}

impl Reader {
    fn new() -> Self {
        Self {
            home: Home::new(),
            server: OpenAi::start(|_, _| Reply::text("Hello.")),
            exports: String::new(),
        }
    }

    /// Runs a line through a shell in which `zeph` is the built binary.
    #[track_caller]
    fn run(&self, line: &str, codes: &[i32]) -> String {
        let script = format!(
            "zeph() {{ \"$BIN\" \"$@\"; }}; BIN=$0; {}{line}",
            self.exports
        );
        let output = crate::rig::Zeph::through_bash(&self.home, &script).run();
        let code = output.code.unwrap_or(-1);
        assert!(codes.contains(&code), "`{line}` of the README: {output}");
        output.stdout.clone()
    }

    #[track_caller]
    fn command(&mut self, line: &str) {
        let line = line.split(" #").next().unwrap().trim();
        let known = COMMANDS.iter().find(|(start, _)| line.starts_with(start));
        match known.map(|(_, action)| action) {
            Some(Action::Run(codes)) => drop(self.run(line, codes)),
            Some(Action::Instead(other, _why)) => drop(self.run(other, &[0])),
            Some(Action::Skip(_why)) => {}
            Some(Action::Export) => self.exports.push_str(&format!("{line}; ")),
            None => panic!("the README has the command `{line}`: add it to COMMANDS"),
        }
    }

    /// Appends to the user's file. The server of the test takes the place of the one in the text.
    fn append(&self, toml: &str) {
        let toml = toml.replace("http://127.0.0.1:8080", &self.server.url());
        let file = self.home.config_file();
        let old = std::fs::read_to_string(&file).expect("a command has written the file");
        std::fs::write(file, old + &toml).unwrap();
    }

    /// Runs the commands of a row. `·` separates variants of the first one, such as another subcommand.
    fn row(&self, spans: &[String]) {
        let first = &spans[0];
        for span in spans {
            let base = first.rsplit_once(' ').map_or("", |(base, _)| base);
            let mut line = match span.contains("zeph") {
                true => span.clone(),
                false => format!("{base} {span}"),
            };
            line = line.replace('…', "hi");
            if line == "zeph --tui" {
                // It needs a terminal (tests/it/tui.rs).
                continue;
            }
            let is_turn = !line.contains(" -p ")
                && (line == "zeph" || line.split_whitespace().nth(1).unwrap().starts_with('-'));
            if is_turn {
                // Without a prompt, it needs a terminal.
                line.push_str(" -p hi");
            }
            let last = session_ids(&self.home.database()).pop();
            if let Some(id) = last {
                line = line.replace(" ID", &format!(" {id}"));
                if ["sessions show", "sessions export", "sessions rm"]
                    .iter()
                    .any(|it| line.ends_with(it))
                {
                    line = format!("{line} {id}");
                }
            }
            // Without changes, there is nothing to undo.
            let codes: &[i32] = if line.starts_with("zeph undo") {
                &[0, 1]
            } else {
                &[0]
            };
            self.run(&line, codes);
        }
    }
}

/// Proves CLI-1 for the README: a reader who follows it in order succeeds at each step.
#[test]
fn readme_works_in_the_order_of_reading() {
    let mut reader = Reader::new();
    let (mut blocks, mut tables, mut rows) = (0, 0, Vec::new());
    let mut configured = None;
    for part in parts(&page("README.md")) {
        match part {
            Part::Heading => {
                let left = std::mem::replace(&mut reader, Reader::new());
                if left.home.config_file().exists() {
                    configured = Some(left);
                }
            }
            Part::Commands(lines) => {
                blocks += 1;
                for line in lines.iter().filter(|line| !line.trim().is_empty()) {
                    reader.command(line);
                }
            }
            Part::Toml(toml) => {
                tables += 1;
                reader.append(&toml);
                reader.run("zeph config check", &[0]);
                let shown = reader.run("zeph config show --origin", &[0]);
                assert_has(&shown, &["name = \"local\"  # from user file"]);
                let turn = reader.run("zeph -p hello", &[0]);
                assert_eq!(turn, "Hello.\n");
            }
            Part::Row(spans) => rows.push(spans),
        }
    }
    assert!(
        blocks >= 4 && tables >= 1 && rows.len() >= 10,
        "{blocks} {tables} {}",
        rows.len()
    );
    let reader = configured.expect("a flow writes a configuration");
    reader.home.write("Cargo.toml", "[package]\n");
    for spans in rows {
        reader.row(&spans);
    }
}

/// Proves PKG-5: the README is short.
#[test]
fn readme_has_fewer_than_120_lines_and_opens_with_a_picture() {
    let text = page("README.md");
    assert!(text.lines().count() < 120);
    assert!(
        text.lines()
            .nth(2)
            .unwrap()
            .starts_with("![Zeph in a terminal")
    );
}

/// Proves PKG-5: the commands of the pages for the first minutes succeed in their order.
#[test]
fn quick_start_works_in_the_order_of_reading() {
    for path in ["docs/quick-start.md", "docs/installation.md"] {
        let mut reader = Reader::new();
        let mut count = 0;
        for part in parts(&page(path)) {
            if let Part::Commands(lines) = part {
                for line in lines.iter().filter(|line| !line.trim().is_empty()) {
                    reader.command(line);
                    count += 1;
                }
            }
        }
        assert!(count >= 3, "{path}: {count}");
    }
}
