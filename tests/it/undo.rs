//! Undo in a conversation, from the command line, and after a kill.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Zeph, assert_has, audit, session_ids};

/// Every path below `dir` with its mode and its file content or link target.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_symlink() {
                path.read_link()
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else if metadata.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            found.insert(path, (metadata.mode(), content));
        }
    }
    found
}

fn call(home: &Home, tool: &str, params: &Value) -> Zeph {
    let params = params.to_string();
    home.zeph(["tools", "call", tool, &params, "--yes", "--session", "s1"])
        .args(["--set", "tools.file.read_before_write=false"])
}

/// A server with two responses that have calls, and their texts.
fn two_answers() -> OpenAi {
    let edit = |old, new| json!({ "path": "a.txt", "old_string": old, "new_string": new });
    OpenAi::replies([
        Reply::calls(
            "x",
            &[
                ("read", json!({ "path": "a.txt" })),
                ("edit", edit("one", "two")),
                ("write", json!({ "path": "new/b.txt", "content": "b\n" })),
            ],
        ),
        Reply::calls(
            "x",
            &[
                ("edit", edit("two", "three")),
                ("delete_path", json!({ "path": "old" })),
                (
                    "move_path",
                    json!({ "source": "new/b.txt", "destination": "c.txt" }),
                ),
            ],
        ),
        Reply::text("Done."),
        Reply::text("I see."),
        Reply::text("I see."),
    ])
}

/// Proves FILE-28, CMD-1 for `/undo`: each response is one batch, and the model is notified of the undo.
#[test]
fn conversation_is_undone_response_by_response() {
    let server = two_answers();
    let home = Home::openai(&server);
    home.write("a.txt", "one\n");
    home.write("old/f", "f\n");
    let before = tree(&home.project());
    home.zeph(["--yes", "-p", "go"]).code(0);
    let after = tree(&home.project());
    assert_eq!(home.read("a.txt"), "three\n");

    // `/undo` in the conversation; unknown arguments are not ignored.
    let unknown = home.zeph(["--continue", "-p", "/undo list"]).code(2);
    assert_eq!(unknown.stdout, "");
    assert_has(
        &unknown.stderr,
        &["/undo list is not a command", "did you mean /undo?"],
    );
    assert_eq!(tree(&home.project()), after);
    let undone = home.zeph(["--continue", "-p", "/undo"]).code(0);
    assert_eq!(
        undone.stdout,
        "moved c.txt back to new/b.txt\nrestored old with 1 entry\nrestored a.txt\n"
    );
    assert_eq!(home.read("a.txt"), "two\n");
    assert_eq!(home.read("new/b.txt"), "b\n");
    assert_ne!(tree(&home.project()), after);
    home.zeph(["--continue", "-p", "what now?"]).code(0);
    let sent = server.last().messages();
    let sent = serde_json::to_string(&sent[sent.len() - 2]).unwrap();
    assert_has(&sent, &["the user undid", "restored old"]);

    // `zeph undo` in its own process, which notifies the model too.
    let undone = home.zeph(["undo"]).code(0);
    assert_eq!(
        undone.stdout,
        "removed new/b.txt\nremoved the directory new\nrestored a.txt\n"
    );
    assert_eq!(tree(&home.project()), before);
    home.zeph(["--continue", "-p", "and now?"]).code(0);
    let sent = serde_json::to_string(&server.last().messages()).unwrap();
    assert_has(&sent, &["removed new/b.txt"]);
    let nothing = home.zeph(["undo"]).code(1);
    assert_has(&nothing.stderr, &["nothing to undo"]);

    let undos: Vec<_> = audit(&home.database())
        .into_iter()
        .filter(|entry| entry.tool == "undo")
        .collect();
    assert_eq!(undos.len(), 2);
    assert!(
        undos
            .iter()
            .all(|entry| entry.result == "success" && entry.approved_by == "user")
    );
    assert!(
        undos
            .iter()
            .all(|entry| !entry.call.to_string().contains("one\\n"))
    );
}

/// Proves FILE-28: if a file has changed since, undo is refused, names the file and changes nothing,
/// including other files.
#[test]
fn undo_after_a_later_change_is_refused() {
    let server = two_answers();
    let home = Home::openai(&server);
    home.write("a.txt", "one\n");
    home.write("old/f", "f\n");
    home.zeph(["--yes", "-p", "go"]).code(0);
    home.write("a.txt", "my own words\n");
    home.write("old/f", "again\n");
    let mine = tree(&home.project());
    for args in [
        ["undo"].as_slice(),
        &["undo", "--session", &session_ids(&home.database())[0]],
    ] {
        let refused = home.zeph(args).code(3);
        assert_has(
            &refused.stderr,
            &[
                "nothing was changed",
                "a.txt: it was changed later",
                "old/f: another file exists at this path",
                "--forget",
            ],
        );
        assert_eq!(tree(&home.project()), mine);
    }
    let refused = home.zeph(["--continue", "-p", "/undo"]).code(1);
    assert_has(&refused.stderr, &["error: ", "a.txt: it was changed later"]);
    assert_eq!(tree(&home.project()), mine);

    // After the conflicts are resolved, undo works; a new modification time is not a change.
    home.write("a.txt", "three\n");
    std::fs::remove_dir_all(home.path("old")).unwrap();
    home.zeph(["undo"]).code(0);
    assert_eq!(home.read("a.txt"), "two\n");
    assert_eq!(home.read("old/f"), "f\n");
}

/// Proves FILE-28, CLI-2 for `zeph undo`: each call of the user is a batch; `--list` shows them and undoes
/// nothing, `--forget` skips one.
#[test]
fn calls_of_the_user_are_undone_one_at_a_time() {
    let home = Home::new();
    let script = [
        json!({ "tool": "write", "params": { "path": "a.txt", "content": "a\n" } }),
        json!({ "tool": "create_directory", "params": { "path": "d/e" } }),
        json!({ "tool": "copy_path", "params": { "source": "a.txt", "destination": "d/e/a" } }),
    ];
    let script = script.map(|line| line.to_string()).join("\n");
    home.zeph(["tools", "run", "--yes", "--session", "s1"])
        .stdin(script)
        .code(0);
    let list = home.zeph(["undo", "--list"]).code(0);
    assert_has(
        &list.stdout,
        &[
            "session s1",
            "copy_path d/e/a",
            "create_directory d/e",
            "write a.txt",
        ],
    );
    assert!(home.has("d/e/a"));
    assert_eq!(home.zeph(["undo"]).code(0).stdout, "removed d/e/a\n");
    assert_eq!(
        home.zeph(["undo", "--session", "s1", "--forget"])
            .code(0)
            .stdout,
        "forgot create_directory d/\nforgot create_directory d/e\n"
    );
    assert_eq!(home.zeph(["undo"]).code(0).stdout, "removed a.txt\n");
    assert!(home.has("d/e") && !home.has("a.txt"));
    home.zeph(["undo", "--session", "other"]).code(1);

    // It is removed with its session.
    call(
        &home,
        "write",
        &json!({ "path": "b.txt", "content": "b\n" }),
    )
    .code(0);
    home.zeph(["sessions", "rm", "s1"]).code(0);
    home.zeph(["undo"]).code(1);
    assert!(home.has("b.txt"));
}

/// Proves FILE-28: a tree is restored with modes, links and empty directories; the database alone holds the
/// record.
#[test]
fn deleted_tree_is_restored_exactly() {
    let home = Home::new();
    home.write("t/run.sh", "#!/bin/sh\n");
    home.write("t/deep/er/f", &"many words\n".repeat(5000));
    std::fs::create_dir_all(home.path("t/empty/er")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", home.path("t/out")).unwrap();
    for (path, mode) in [
        ("t/run.sh", 0o755),
        ("t/empty", 0o700),
        ("t/deep/er/f", 0o600),
    ] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(home.path(path), mode).unwrap();
    }
    let before = tree(&home.project());
    call(
        &home,
        "move_path",
        &json!({ "source": "t", "destination": "elsewhere/t" }),
    )
    .code(0);
    call(&home, "delete_path", &json!({ "path": "elsewhere" })).code(0);
    assert!(tree(&home.project()).is_empty());
    home.zeph(["undo"])
        .code(0)
        .prints(&["restored elsewhere with 8 entries"]);
    home.zeph(["undo"])
        .code(0)
        .prints(&["moved elsewhere/t back to t"]);
    assert_eq!(tree(&home.project()), before);
}

/// Proves FILE-28: the size limit drops the oldest batches; a larger change runs, with a message.
#[test]
fn journal_has_a_size_limit() {
    let home = Home::new();
    home.more_config("[tools.undo]\nmax_bytes = 1000\n");
    for name in ["a", "b"] {
        home.write(name, &name.repeat(600));
    }
    home.write("large", &"l".repeat(1001));
    let write = |name: &str| json!({ "path": name, "content": "new\n" });
    call(&home, "write", &write("a")).code(0);
    call(&home, "write", &write("b")).code(0);
    let large = call(&home, "write", &write("large")).code(0);
    assert_has(&large.stdout, &["cannot be undone", "max_bytes = 1000"]);
    assert_eq!(home.read("large"), "new\n");
    let refused = home.zeph(["undo"]).code(3);
    assert_has(&refused.stderr, &["write large: not recorded: too large"]);
    home.zeph(["undo", "--forget"]).code(0);
    home.zeph(["undo"]).code(0).prints(&["restored b"]);
    assert_eq!(home.read("b"), "b".repeat(600));
    let refused = home.zeph(["undo"]).code(3);
    assert_has(&refused.stderr, &["write a: not recorded: dropped"]);
    assert_eq!(home.read("a"), "new\n");
    // A project cannot change the limit.
    home.write(".zeph/config.toml", "[tools.undo]\nmax_bytes = 0\n");
    home.zeph(["undo"]).code(2);
}

/// Proves FILE-28: a file that `deny_read` hides can be deleted and restored, and is never shown.
#[test]
fn denied_file_is_restored_without_being_shown() {
    let home = Home::new();
    home.more_config("[tools.file]\ndeny_read = [\"**/.env\"]\n");
    home.write("d/.env", "KEY=hidden-value\n");
    let outputs = [
        call(&home, "delete_path", &json!({ "path": "d" })).code(0),
        home.zeph(["undo", "--list"]).code(0),
        home.zeph(["undo"]).code(0),
    ];
    for output in outputs {
        assert!(!output.to_string().contains("hidden-value"), "{output}");
    }
    assert_eq!(home.read("d/.env"), "KEY=hidden-value\n");
    assert!(!format!("{:?}", audit(&home.database())).contains("hidden-value"));
    home.write("d/.env", "KEY=other\n");
    call(&home, "delete_path", &json!({ "path": "d/.env" })).code(0);
    home.write("d/.env", "KEY=hidden-value\n");
    let refused = home.zeph(["undo"]).code(3);
    assert!(!refused.to_string().contains("hidden-value"), "{refused}");
}

/// Proves FILE-28: a record without its change, as after a kill directly after the record, is skipped.
#[test]
fn record_without_its_change_is_skipped() {
    let home = Home::new();
    home.write("a", "one");
    call(&home, "write", &json!({ "path": "a", "content": "two" })).code(0);
    call(&home, "write", &json!({ "path": "a", "content": "three" })).code(0);
    call(&home, "write", &json!({ "path": "dir/b", "content": "b" })).code(0);
    home.write("a", "two");
    std::fs::remove_dir_all(home.path("dir")).unwrap();
    home.zeph(["undo"]).code(0).prints(&["restored a"]);
    assert_eq!(home.read("a"), "one");
    home.zeph(["undo"]).code(1);
}

/// Proves FILE-28: regardless of when the process is killed, undo restores the old content.
#[test]
fn change_can_be_undone_after_a_kill_at_any_moment() {
    let home = Home::new();
    let old = "old\n".repeat(20_000);
    let new = "new\n".repeat(20_000);
    let script: String = (0..32)
        .map(|n| {
            let text = if n % 2 == 0 { &new } else { &old };
            let params = json!({ "path": format!("f{}", n / 8), "content": text });
            json!({ "tool": "write", "params": params }).to_string() + "\n"
        })
        .collect();
    for kill_after in [1, 6, 15] {
        for n in 0..5 {
            home.write(&format!("f{n}"), &old);
        }
        let before = tree(&home.project());
        let unseen = "tools.file.read_before_write=false";
        let args = ["tools", "run", "--yes", "--session", "s1", "--set", unseen];
        let mut running = home.zeph(args).stdin(script.clone()).start();
        for _ in 0..kill_after {
            running.next_line();
        }
        running.kill();
        home.wait_until_alone();
        clear_temporaries(&home.project());
        loop {
            let undo = home.zeph(["undo", "--session", "s1"]).run();
            match undo.code {
                Some(0) => {}
                Some(1) => break,
                _ => panic!("{undo}"),
            }
        }
        assert_eq!(
            tree(&home.project()),
            before,
            "killed after {kill_after} lines"
        );
    }
}

/// A kill may leave temporary files, which nothing reads.
fn clear_temporaries(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(".zeph-tmp-")
        {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}
