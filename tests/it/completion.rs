//! Completion with Tab at a terminal.

use crate::rig::{Home, Terminal};

/// Proves CLI-10: Tab completes paths fuzzily, and paths with spaces in quotes.
#[test]
fn path_is_completed_by_its_letters() {
    let home = Home::scripted("[[steps]]\ntext = \"Never said.\"\n");
    home.write("src/terminal/screen.rs", "");
    home.write("my notes.txt", "");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("see @srcscreen\t");
    terminal.shows("see @src/terminal/screen.rs");
    terminal.type_keys("and @my\t");
    terminal.shows("and @\"my notes.txt\"");
    terminal.type_keys("\x03");
    terminal.prompts("");
    terminal.leaves();
}

/// Proves CLI-8, CLI-10: Tab completes custom commands, subcommands and arguments.
#[test]
fn commands_and_arguments_are_completed() {
    let home = Home::scripted("[[steps]]\ntext = \"Never said.\"\n");
    let file = home.home().join(".config/zeph/commands/ship.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "Ship it.\n").unwrap();
    let mut terminal = Terminal::start(&home, &[]);
    for (typed, completed) in [
        ("/shi", "/ship"),
        ("/tools unb", "/tools unblock"),
        ("/tools unblock list_d", "/tools unblock list_directory"),
        ("/mode pl", "/mode plan"),
        ("/diff s", "/diff session"),
    ] {
        terminal.prompts("");
        terminal.type_keys(&format!("{typed}\t"));
        terminal.shows(&format!("› {completed}"));
        terminal.type_keys("\x03");
    }
    terminal.prompts("");
    terminal.leaves();
}

/// Proves PERM-8, CLI-10: the prompt shows the mode while the menu of completions is open.
#[test]
fn open_menu_leaves_the_mode_visible() {
    let home = Home::scripted("[[steps]]\ntext = \"Never said.\"\n");
    let mut terminal = Terminal::start(&home, &["--mode", "plan"]);
    terminal.prompts("");
    terminal.type_keys("/\t");
    terminal.shows("/compact");
    terminal.until("the mode before the command", |text| {
        text.lines().any(|line| line.starts_with("plan › /"))
    });
    terminal.type_keys("\x1b");
    terminal.until("no menu", |text| !text.contains("/compact"));
    terminal.type_keys("\x03");
    terminal.prompts("");
    terminal.leaves();
}

/// Proves CLI-10: Tab without a match shows nothing, and typing continues.
#[test]
fn tab_without_a_match_shows_nothing() {
    let home = Home::scripted("[[steps]]\ntext = \"Never said.\"\n");
    let mut terminal = Terminal::start(&home, &[]);
    for typed in ["hello", "/xyzq", "see @zzzz", "/clear "] {
        terminal.prompts("");
        terminal.type_keys(&format!("{typed}\t"));
        terminal.type_keys("!!");
        terminal.prompts(&format!("{typed}!!"));
        terminal.type_keys("\t\x03");
    }
    terminal.prompts("");
    assert!(
        !terminal.raw().contains("NO RECORDS"),
        "{}",
        terminal.text()
    );
    terminal.leaves();
}
