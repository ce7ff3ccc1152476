//! The command lines of the documentation are valid: the real parser reads each of them.

use std::path::Path;

use clap::Command;
use clap::error::ErrorKind;
use zeph_tools::shell::policy::{Part, visit};

use super::help;

/// The pages: the README and `docs/`, with their paths.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let mut pages: Vec<_> = paths.iter().map(|path| (named(path), read(path))).collect();
    pages.sort();
    pages
}

/// A command line of a page.
struct Line {
    text: String,
    /// Whether it is in a block of commands. A mention in the text may leave out arguments.
    is_block: bool,
}

/// The lines of a page in blocks of commands, and the mentions in its text.
fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut block: Option<&str> = None;
    for line in text.lines() {
        match (block, line.trim_start().strip_prefix("```")) {
            (None, Some(kind)) => block = Some(kind),
            (Some(_), Some(_)) => block = None,
            (Some("sh" | "console"), None) => lines.push(Line {
                text: line.trim_start_matches("$ ").to_owned(),
                is_block: true,
            }),
            (Some(_), None) => {}
            (None, None) => {
                let line = line.replace("\\|", "|");
                let spans = line.split('`').skip(1).step_by(2);
                lines.extend(
                    spans
                        .filter(|span| span.starts_with("zeph "))
                        .map(|span| Line {
                            text: span.to_owned(),
                            is_block: false,
                        }),
                );
            }
        }
    }
    lines
}

/// The `zeph` commands of a shell line, as words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let line = without_optional(line).replace('…', "x");
    let _ = visit(&line, &mut |part: Part<'_>| {
        if let Part::Command { words, .. } = part {
            let words = words.iter();
            let words = words.map(|word| word.known().map_or_else(|| word.shown(), str::to_owned));
            let words: Vec<String> = words.collect();
            found.extend(Some(words).filter(|words| words.first().is_some_and(|it| it == "zeph")));
        }
    });
    found
}

/// The line without the parts that are in brackets.
fn without_optional(line: &str) -> String {
    let mut depth = 0_usize;
    let is_required = |c: &char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    line.chars().filter(is_required).collect()
}

/// Whether a word is the name of a value, such as `ID` or `SEQ:HASH`.
fn is_placeholder(word: &str) -> bool {
    let is_capital = |c: char| c.is_ascii_uppercase() || matches!(c, ':' | '_');
    word.len() > 1 && word.chars().all(is_capital)
}

/// Words that the documentation uses as prompts or as typing errors.
const EXAMPLES: &[&str] = &["prompt", "tolls"];

/// The fault of a command, if the parser refuses it.
fn fault(parser: &Command, words: &[String], is_block: bool) -> Option<String> {
    match parser.clone().try_get_matches_from(words) {
        Ok(matches) => {
            // A single word is always a command, so an unknown one is a typing error.
            let prompt = matches.get_many::<String>("words").into_iter().flatten();
            let prompt: Vec<&String> = prompt.collect();
            let is_name = |word: &str| {
                !word.contains(' ')
                    && !word.starts_with(['/', '@', '-'])
                    && !EXAMPLES.contains(&word)
            };
            let is_mistyped = matches.subcommand().is_none()
                && matches!(prompt.as_slice(), [word] if is_name(word));
            is_mistyped.then(|| format!("no command is called {:?}", prompt[0]))
        }
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
            // The name of a value, such as `ID`.
            ErrorKind::InvalidValue | ErrorKind::ValueValidation
                if !is_block || words.iter().any(|it| is_placeholder(it)) =>
            {
                None
            }
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                if !is_block =>
            {
                None
            }
            _ => error.to_string().lines().next().map(str::to_owned),
        },
    }
}

/// Proves PKG-5: each command of the documentation is a command of the binary.
#[test]
fn commands_of_the_documentation_are_valid() {
    let mut parser = help::command();
    parser.build();
    let mut faults = Vec::new();
    let mut count = 0;
    for (page, text) in pages() {
        for line in lines(&text) {
            for words in commands(&line.text) {
                count += 1;
                let fault = fault(&parser, &words, line.is_block);
                faults.extend(fault.map(|fault| format!("{page}: `{}`: {fault}", line.text)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 300, "{count}");
}

#[test]
fn mistyped_command_of_a_page_is_found() {
    let check = |line: &str, is_block: bool, is_valid: bool| {
        let commands = commands(line);
        assert_eq!(commands.len(), 1, "{line}");
        assert_eq!(
            fault(&help::command(), &commands[0], is_block).is_none(),
            is_valid,
            "{line}"
        );
    };
    check("zeph tools list   # all tools", true, true);
    check("git diff | zeph -p \"review this\" -", true, true);
    check("zeph \"fix the tests\"", true, true);
    check("zeph tols", true, false);
    check("zeph sessions export ID [--format json|html]", false, true);
    check("zeph tools list --jsn", true, false);
    check("zeph config get", true, false);
    check("zeph config get", false, true);
}
