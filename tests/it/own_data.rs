//! The data directory: no command can read conversations or file backups from it.

use serde_json::json;

use crate::rig::{Home, assert_has};
use crate::tools_call::call;

/// The first bytes of a database. The backups in it are compressed.
const MAGIC: &str = "SQLite format 3";

/// A home with a denied file whose copy is in the undo journal.
fn with_deleted_secret() -> Home {
    let home = Home::new();
    home.config("[tools.file]\ndeny_read = [\"**/.env\"]\n");
    home.write(".env", "PASSWORD=hunter2-journal\n");
    let form = call(&home, "delete_path", &json!({ "path": ".env" }));
    assert_eq!(form["success"], true, "{form:#}");
    assert!(!home.has(".env"));
    let database = std::fs::read(home.database()).unwrap();
    assert!(database.starts_with(MAGIC.as_bytes()));
    home
}

/// Proves SH-20a, FILE-4: commands that name the data directory are refused before they run.
#[test]
fn command_that_names_the_data_directory_is_refused() {
    let home = with_deleted_secret();
    let data = home.data().join("zeph");
    let data = data.display();
    for command in [
        format!("cat {data}/zeph.db"),
        format!("strings '{data}'/zeph.db*"),
        format!("cd {data} && cat zeph.db"),
        format!("sqlite3 {data}/zeph.db .dump"),
        format!("cp -r {data} ./copy"),
        format!("tar cf - {data}"),
        format!("cat < {data}/zeph.db"),
        format!("python3 -c 'print(open(\"{data}/zeph.db\", \"rb\").read())'"),
        format!("ln -s {data} here"),
    ] {
        let form = call(&home, "bash", &json!({ "command": command }));
        assert_eq!(
            form["error_category"], "policy_blocked",
            "{command}: {form:#}"
        );
        assert!(!form.to_string().contains(MAGIC), "{command}");
    }
    assert!(!home.has("copy") && !home.has("here"));
}

/// Proves SH-20a: variables of the environment are resolved to the values that the command receives.
#[test]
fn command_that_names_the_data_directory_by_a_variable_is_refused() {
    let home = with_deleted_secret();
    let data = home.data().join("zeph").display().to_string();
    let category = |command: &str| {
        let form = call(&home, "bash", &json!({ "command": command }));
        assert!(!form.to_string().contains(MAGIC), "{command}");
        form["error_category"].clone()
    };
    for command in [
        "cat $XDG_DATA_HOME/zeph/zeph.db",
        "cat \"${XDG_DATA_HOME}\"/zeph/zeph.db",
        "cd \"$XDG_DATA_HOME\" && cat zeph/zeph.db",
        "d=$XDG_DATA_HOME/zeph; cat $d/zeph.db",
        "cat ${XDG_DATA_HOME:-x}/zeph/zeph.db",
    ] {
        assert_eq!(category(command), "policy_blocked", "{command}");
    }
    // The command does not receive the variable, or another value.
    home.config(&format!(
        "[tools.shell.env]\nset = {{ XDG_DATA_HOME = \"/nowhere\", TMPDIR = \"{data}\" }}\n"
    ));
    assert_ne!(
        category("cat $XDG_DATA_HOME/zeph/zeph.db"),
        "policy_blocked"
    );
    assert_eq!(category("cat $TMPDIR/zeph.db"), "policy_blocked");
}

/// Proves SH-20a, FILE-4: a program that discovers the data directory cannot open its files.
#[test]
fn program_that_finds_the_data_directory_reads_nothing() {
    for config in ["", "[tools.file]\ndeny_read = [\"**/.env\"]\n"] {
        let home = with_deleted_secret();
        home.config(config);
        let root = home.root().display().to_string();
        let (first, rest) = root.split_at(root.len() / 2);
        home.write(
            "find.sh",
            &format!(
                "p='{first}'; q='{rest}'; find \"$p$q\" -name 'zeph.db*' -type f -exec cat {{}} +\n"
            ),
        );
        home.write("readable.txt", "plain words\n");
        let form = call(
            &home,
            "bash",
            &json!({ "command": "bash find.sh; cat readable.txt; cat /etc/hostname > copy; cat copy" }),
        );
        let text = form.to_string();
        assert!(!text.contains(MAGIC), "{form:#}");
        assert_has(&text, &["plain words"]);
        assert!(home.has("copy"));
    }
}

/// Proves SH-20a: no command opens a file of the data directory, even below a writable directory.
#[test]
fn data_below_a_writable_directory_is_unreadable() {
    let home = with_deleted_secret();
    home.config("");
    home.write(
        "find.sh",
        "find \"$1\" -name 'zeph.db*' -type f -exec head -c 15 {} +; ls \"$1\" > seen\n",
    );
    let root = home.root().to_string_lossy().into_owned();
    let parameters = json!({ "command": "bash find.sh \"$ROOT\"; cat \"$ROOT\"/data/*/zeph.db" });
    let output = home
        .zeph([
            "tools",
            "call",
            "bash",
            &parameters.to_string(),
            "--json",
            "--yes",
        ])
        .env("TMPDIR", &root)
        .env("ROOT", &root)
        .run();
    assert!(!output.stdout.contains(MAGIC), "{}", output.stdout);
    assert!(home.has("seen"), "{}", output.stdout);
}

/// Proves D-44: the deny rules of the founding sample hide the files but leave version control usable.
#[test]
fn founding_deny_rules_leave_git_usable() {
    let home = Home::new();
    home.config("[tools.file]\ndeny_read = [\"**/.env\", \"**/secrets/**\", \"**/.git/config\"]\n");
    home.write("a.txt", "one\n");
    let run = |command: &str| call(&home, "bash", &json!({ "command": command }));
    let form = run("git init -q . && git add a.txt && git status --short");
    assert_eq!(form["success"], true, "{form:#}");
    let form = run("git config user.name N && git config user.email e@x.test");
    assert_eq!(form["success"], true, "{form:#}");
    for command in [
        "git commit -q -m first",
        "git status",
        "git log --oneline | head -3",
        "git diff HEAD && echo same",
        "git branch --show-current",
        "cd . && git show --stat",
    ] {
        let form = run(command);
        assert_eq!(form["success"], true, "{command}: {form:#}");
        assert!(
            !form.to_string().contains("Permission denied"),
            "{command}: {form:#}"
        );
    }
    for command in [
        "cat .git/config",
        "git config -f .git/config -l",
        "cp .git/config c",
    ] {
        let form = run(command);
        assert_eq!(
            form["error_category"], "policy_blocked",
            "{command}: {form:#}"
        );
    }
    home.write("read.sh", "d=git; cat .$d/config\n");
    let form = run("git status >/dev/null; bash read.sh");
    assert!(!form.to_string().contains("e@x.test"), "{form:#}");
}
