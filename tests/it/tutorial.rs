//! The steps of docs/tutorial.md, as a user follows them.

use crate::rig::{Home, Terminal};

const TUTORIAL: &str = include_str!("../../docs/tutorial.md");

/// The responses of the model in the session of the tutorial.
const SESSION: &str = r##"
[[steps]]
expect = { last_user_contains = "Explain this project" }
text = "It divides a list into pages."
[[steps]]
expect = { last_user_contains = "last page" }
text = "I add it."
calls = [{ tool = "write", input = { path = "last.rs", content = "pub fn last() {}\n" } }]
[[steps]]
text = "Added."
[[steps]]
expect = { last_user_contains = "Run the tests" }
calls = [{ tool = "bash", input = { command = "echo tests pass" } }]
[[steps]]
text = "They pass."
"##;

/// A command of the tutorial. Asserts that the tutorial contains it.
#[track_caller]
fn step(text: &str) -> &str {
    assert!(TUTORIAL.contains(text), "{text:?} is not in the tutorial");
    text
}

/// The block of the tutorial that contains `words`, without its fences.
#[track_caller]
fn block(words: &str) -> &'static str {
    let mut blocks = TUTORIAL.split("```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains(words)).expect(words);
    block.split_once('\n').unwrap().1
}

/// Proves CLI-4, CLI-6, CLI-7: steps 2 to 6 of the tutorial.
#[test]
fn session_of_the_tutorial_works() {
    let home = Home::scripted(SESSION);
    step("zeph \"Explain this project in three sentences.\"");
    let mut terminal = Terminal::start(&home, &["Explain this project in three sentences."]);
    terminal.shows("It divides a list into pages.");
    terminal.prompts("");
    let prompt = step("Add a function that returns the last page, with a test.");
    terminal.type_keys(&format!("{prompt}\r"));
    terminal.shows("[1] once");
    terminal.type_keys("1");
    terminal.shows("Added.");
    terminal.prompts("");
    assert!(home.has("last.rs"));
    step("ask › /undo");
    terminal.type_keys("/undo\r");
    terminal.shows("removed last.rs");
    terminal.prompts("");
    assert!(!home.has("last.rs"));
    step("ask › /rewind");
    terminal.type_keys("/rewind\r");
    terminal.shows("/rewind N");
    terminal.prompts("");
    terminal.type_keys("/mode auto\r");
    terminal.shows("auto ›");
    terminal.prompts("");
    let prompt = step("Run the tests until they pass.");
    terminal.type_keys(&format!("{prompt}\r"));
    terminal.shows("They pass.");
    assert_eq!(terminal.leaves().0.code(), Some(0));

    step("zeph sessions search");
    home.zeph(["sessions", "search", "pages"])
        .code(0)
        .prints(&["divides"]);
    step("zeph -c ");
    let terminal = Terminal::start(&home, &["-c"]);
    terminal.shows("They pass.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves PERM-13, CLI-8, CLI-11: the rule, the command and the hook of steps 7 and 8.
#[test]
fn rule_command_and_hook_of_the_tutorial_work() {
    let home = Home::scripted(
        r##"
        [[steps]]
        expect = { last_user_contains = "Explain src/lib.rs for a new colleague" }
        text = "One function."
        "##,
    );
    step("zeph policy explain bash \"cargo test\"");
    home.zeph(["policy", "explain", "bash", "cargo test"])
        .code(0)
        .prints(&["ask"]);
    home.more_config(block("pattern = \"cargo test *\""));
    home.more_config(block("event = \"before_call\""));
    step("zeph config check");
    home.zeph(["config", "check"]).code(0);
    home.zeph(["policy", "explain", "bash", "cargo test"])
        .code(0)
        .prints(&["cargo test *"]);
    let call = r#"{"command": "git push origin main"}"#;
    let refused = home.zeph(["tools", "call", "bash", call, "--yes"]).code(3);
    refused.says(&["push by hand"]);
    step("mkdir -p ~/.config/zeph/commands");
    let folder = home.home().join(".config/zeph/commands");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("explain.md"),
        block("description: Explain a file"),
    )
    .unwrap();
    step("ask › /reload");
    terminal.type_keys("/reload\r");
    terminal.shows("custom commands: added /explain");
    terminal.prompts("");
    step("ask › /explain src/lib.rs");
    terminal.type_keys("/explain src/lib.rs\r");
    terminal.shows("One function.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}
