//! The commands, settings and keys of docs/editors.md.

use serde_json::{Value, json};

use crate::rig::{Editor, Home, OpenAi, Page, Reply};

const EDITORS: &str = include_str!("../../../docs/editors.md");

/// The arguments of the commands `zeph` in the settings of an editor.
fn commands(settings: &Value, found: &mut Vec<Vec<String>>) {
    let Some(fields) = settings.as_object() else {
        return;
    };
    if fields.get("command") == Some(&json!("zeph")) {
        let args = fields["args"].as_array().unwrap().iter();
        found.push(args.map(|it| it.as_str().unwrap().to_owned()).collect());
    }
    fields.values().for_each(|field| commands(field, found));
}

/// Starts the agent with these arguments, and asks for its commands.
fn initialize(home: &Home, args: &[&str]) -> Editor {
    let mut editor = Editor::start(home.zeph(args.iter().copied()));
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let result = editor.call("initialize", params);
    assert_eq!(result["agentInfo"]["name"], "zeph");
    editor
}

/// Proves PKG-5, ACP-1: the settings of each editor start the agent.
#[test]
fn settings_of_editors_start_the_agent() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut count = 0;
    for (kind, text) in Page::of(EDITORS).blocks {
        let mut found = Vec::new();
        match kind.as_str() {
            "json" => commands(&serde_json::from_str(&text).unwrap(), &mut found),
            "lua" => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let forms = [
                    "commands = { default = { \"zeph\", \"acp\" } }",
                    "command = \"zeph\", args = { \"acp\" }",
                ];
                let is_known = forms.iter().any(|form| text.contains(form));
                assert!(is_known, "{text}");
                found.push(vec!["acp".to_owned()]);
            }
            _ => continue,
        }
        assert_eq!(found.len(), 1, "{text}");
        let args: Vec<_> = found[0].iter().map(String::as_str).collect();
        initialize(&home, &args).leave().code(0);
        count += 1;
    }
    assert_eq!(count, 5);
}

/// Proves PKG-5: the commands, flags, slash commands and keys of the page exist.
#[test]
fn commands_of_the_page_about_editors_work() {
    let server = OpenAi::start(|_, _| Reply::text("Hello."));
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    editor.leave().code(0);
    let mut editor = initialize(&home, &["acp"]);
    editor.session(&home.project());
    let update = editor.until_update("available_commands_update");
    editor.leave().code(0);
    let announced = update["availableCommands"].as_array().unwrap();
    let help = home.zeph(["acp", "--help"]).code(0).stdout.clone();
    let page = Page::of(EDITORS);
    let mut count = 0;
    for span in &page.spans {
        let line = span.replace("ID", &session).replace("NAME", "forge");
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            ["zeph"] => {}
            // It needs the limits from the agent (`helper_without_limits_runs_nothing`).
            ["zeph", "__confined-command", ..] => {}
            // It serves no client.
            ["zeph", "acp", "--setup"] => {
                let printed = home.zeph(["acp", "--setup"]).run();
                assert!(printed.stdout.contains("provider"), "{printed}");
            }
            ["zeph", args @ ..] if args[0] == "acp" => {
                initialize(&home, args).leave().code(0);
            }
            // Without a prompt, it needs a terminal.
            ["zeph", "--resume", id] => {
                home.zeph(["--resume", id, "-p", "go"]).code(0);
            }
            // No approval of this name is stored.
            ["zeph", "mcp", "forget", name] => {
                let printed = home.zeph(["mcp", "forget", name]).run();
                let text = format!("{}{}", printed.stdout, printed.stderr);
                assert!(text.contains("forge"), "{printed}");
            }
            // The server of the test has no list of models, which a check may report.
            ["zeph", "doctor"] => {
                let printed = home.zeph(["doctor"]).run();
                assert!(printed.stdout.contains("provider"), "{printed}");
            }
            ["zeph", args @ ..] => {
                home.zeph(args.iter().copied()).code(0);
            }
            [command, ..] if command.starts_with('/') => {
                let name = command.trim_start_matches('/');
                let is_known = announced.iter().any(|it| it["name"] == name);
                assert!(is_known, "{command} is not announced: {announced:#?}");
            }
            [flag] if flag.starts_with("--") => assert!(help.contains(flag), "{flag}"),
            _ => continue,
        }
        count += 1;
    }
    assert!(count > 12, "{count}");
    let keys = page.keys();
    assert!(keys.len() >= 2, "{keys:?}");
    for key in keys {
        home.zeph(["config", "get", &key]).code(0);
    }
}
