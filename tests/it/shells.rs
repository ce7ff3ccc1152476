//! Completion of the command line in shells. The interactive session has a completion of its own: `completion.rs`.

use crate::rig::{Home, OpenAi, Reply, Zeph, assert_has, session_ids};

/// Proves CLI-2.
#[test]
fn every_shell_has_a_completion_script() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.zeph(["completions", shell]).code(0).stdout;
        assert_has(&script, &["zeph", "_ZEPH_COMPLETE"]);
    }
    home.zeph(["completions", "tcsh"])
        .code(2)
        .says(&["tcsh", "bash"]);
    assert!(
        !home.data().join("zeph").exists(),
        "nothing is made for that"
    );
}

/// The completions of bash for a command line; its last word is completed.
fn completed(home: &Home, line: &[&str]) -> Vec<String> {
    let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "PATH=\"$(dirname \"$0\"):$PATH\"; source <(zeph completions bash); COMP_WORDS=({}); \
         COMP_CWORD={}; COMP_TYPE=9; _clap_complete_zeph zeph {} x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        line.len() - 1,
        words.last().unwrap(),
    );
    let output = Zeph::through_bash(home, &script).run();
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(0), ""),
        "{output}"
    );
    output.stdout.lines().map(str::to_owned).collect()
}

/// Whether a shell is installed. `cargo xtask shells` installs it, and requires it.
fn has_shell(home: &Home, shell: &str) -> bool {
    let script = format!("command -v {shell}");
    let is_installed = Zeph::through_bash(home, &script).run().code == Some(0);
    #[allow(clippy::disallowed_methods, reason = "`cargo xtask shells` sets it")]
    let is_required = std::env::var_os("ZEPH_TEST_SHELLS").is_some();
    assert!(is_installed || !is_required, "{shell} is not installed");
    is_installed
}

/// Asserts the first completion of several lines. `script` prints the completions of a line. Without the shell, the
/// program gets the request that `registration` contains, and its response is checked.
#[track_caller]
fn assert_completes(shell: &str, script: impl Fn(&str) -> String, registration: &[&str]) {
    let home = Home::scripted("[[steps]]\ntext = \"Done.\"\n");
    home.zeph(["-p", "hello"]).code(0);
    let session = session_ids(&home.database()).remove(0);
    let printed = home.zeph(["completions", shell]).code(0).stdout;
    assert_has(&printed, registration);
    let is_installed = has_shell(&home, shell);
    let show = format!("zeph sessions show {}", &session[..4]);
    for (line, expect) in [
        ("zeph sess", "sessions"),
        ("zeph sessions ex", "export"),
        (show.as_str(), session.as_str()),
        ("zeph --mode pl", "plan"),
    ] {
        let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
        let script = match is_installed {
            true => script(line),
            false => format!(
                "_CLAP_IFS=$'\\n' _CLAP_COMPLETE_INDEX={} _ZEPH_COMPLETE={shell} zeph -- {}",
                words.len() - 1,
                words.join(" ")
            ),
        };
        let script = format!("PATH=\"$(dirname \"$0\"):$PATH\"; {script}");
        let output = Zeph::through_bash(&home, &script).run();
        assert_eq!(output.code, Some(0), "{line}: {output}");
        // A description follows the word after a tab or a colon.
        let mut words = output.stdout.split(['\t', ':', '\n']);
        assert_eq!(words.next(), Some(expect), "{line}: {output}");
    }
}

/// Proves CLI-2: fish completes commands, sessions and modes.
#[test]
fn fish_completes_values_of_this_machine() {
    let script = |line: &str| {
        format!("fish --no-config -c 'zeph completions fish | source; complete -C \"{line}\"'")
    };
    assert_completes("fish", script, &["_ZEPH_COMPLETE=fish zeph -- "]);
}

/// An interactive zsh at a pseudo terminal. It completes the line `$1` with Tab, and prints the last word.
const ZSH: &str = r#"
    zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'stty -echo; PS1=; autoload -Uz compinit; compinit -u -D; source <(zeph completions zsh)
        shown() { print -r -- "<${${(z)BUFFER}[-1]}>"; BUFFER= }
        zle -N shown; bindkey "^X" shown; bindkey "^I" complete-word; print REA"DY"'
    zpty -r shell output '*READY*'
    zpty -n -w shell "$1"$'\t\x18'
    zpty -r shell output '*<*>*'
    output=${output##*<}
    print -r -- ${output%%>*}
    zpty -d shell
"#;

/// Proves CLI-2: zsh completes commands, sessions and modes when Tab is pressed.
#[test]
fn zsh_completes_values_of_this_machine() {
    let quoted = ZSH.replace('\'', r"'\''");
    let script = |line: &str| format!("zsh -f -c '{quoted}' zsh '{line}'");
    let registration = [r#"_ZEPH_COMPLETE="zsh""#, r#"zeph -- "${words[@]}""#];
    assert_completes("zsh", script, &registration);
}

/// Proves CLI-2: bash completes commands, options, and values of this machine: sessions, providers, models, tools and
/// settings.
#[test]
fn bash_completes_values_of_this_machine() {
    let models = Reply::raw(
        200,
        "application/json",
        "{\"data\": [{\"id\": \"far-model\"}, {\"id\": \"big\"}]}",
    );
    let server = OpenAi::replies([Reply::text("Done.")]);
    server.about_models("/v1/models", models);
    let home = Home::openai(&server);
    home.more_config("llm.default = \"local\"\n");
    home.zeph(["-p", "hello"]).code(0);
    let [session] = session_ids(&home.database()).try_into().unwrap();
    for (line, expect) in [
        (vec!["zeph", "sess"], "sessions"),
        (vec!["zeph", "sessions", "ex"], "export"),
        (vec!["zeph", "sessions", "show", ""], session.as_str()),
        (vec!["zeph", "--resume", &session[..4]], session.as_str()),
        (vec!["zeph", "--provider", "lo"], "local"),
        (vec!["zeph", "--model", "far"], "far-model"),
        (vec!["zeph", "--mode", "pl"], "plan"),
        (vec!["zeph", "tools", "show", "list_d"], "list_directory"),
        (vec!["zeph", "login", "anth"], "anthropic"),
        (
            vec!["zeph", "config", "get", "tools.shell.time"],
            "tools.shell.timeout",
        ),
        (vec!["zeph", "tools", "call", "--js"], "--json"),
    ] {
        let found = completed(&home, &line);
        assert_eq!(found[0], expect, "{line:?}");
        // The options follow the values if nothing is typed yet.
        assert!(
            found[1..].iter().all(|other| other.starts_with("--")),
            "{found:?}"
        );
    }
    assert_eq!(server.requests().len(), 1, "no completion asks the model");
    // Without data, a completion lists nothing and creates nothing.
    let empty = Home::new();
    let found = completed(&empty, &["zeph", "sessions", "show", ""]);
    assert!(
        found.iter().all(|other| other.starts_with("--")),
        "{found:?}"
    );
    assert!(!empty.data().join("zeph").exists());
}
