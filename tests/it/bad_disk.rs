//! Databases that cannot be used: the error is clear, and no data is lost.

use crate::rig::{Home, OpenAi, Reply, Zeph, assert_has, session_ids};

/// Every command that needs the database fails with exit code 1 and this text, and sends no request.
#[track_caller]
fn refused(home: &Home, server: &OpenAi, words: &[&str]) {
    let commands: [&[&str]; 4] = [
        &["-p", "hi"],
        &["--continue", "-p", "hi"],
        &[
            "tools",
            "call",
            "bash",
            r#"{"command": "touch ran"}"#,
            "--yes",
        ],
        &["sessions", "list"],
    ];
    for command in commands {
        let output = home.zeph(command).code(1);
        assert_has(&output.stderr, &["error: "]);
        assert_has(&output.stderr, words);
        assert!(!output.stderr.contains("panicked"), "{output}");
    }
    assert_eq!(server.requests().len(), 0);
    assert!(!home.has("ran"), "what cannot be audited does not run");
    home.zeph(["doctor"]).code(1).prints(&["FAIL  database"]);
}

fn home_with_database() -> (Home, OpenAi) {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    std::fs::create_dir_all(home.database().parent().unwrap()).unwrap();
    (home, server)
}

/// Proves CLI-3, EXE-21.
#[test]
fn directory_as_database_is_refused() {
    let (home, server) = home_with_database();
    std::fs::create_dir(home.database()).unwrap();
    refused(&home, &server, &["not a regular file", "[memory] path"]);
}

/// Proves CLI-3.
#[test]
fn foreign_file_is_unchanged() {
    let (home, server) = home_with_database();
    let mine = "Dear diary, this is not a database. ".repeat(200);
    std::fs::write(home.database(), &mine).unwrap();
    refused(
        &home,
        &server,
        &["not a database", "zeph.db", "move it away"],
    );
    assert_eq!(std::fs::read_to_string(home.database()).unwrap(), mine);
}

/// Proves CLI-3.
#[test]
fn damaged_database_is_named_and_unchanged() {
    let server = OpenAi::replies([Reply::text("ok")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "remember this"]).code(0);
    let path = home.database();
    let mut bytes = std::fs::read(&path).unwrap();
    // The header of the first page stays readable.
    for byte in bytes.iter_mut().skip(100) {
        *byte = 0x5a;
    }
    std::fs::write(&path, &bytes).unwrap();
    let output = home.zeph(["-p", "hi"]).code(1);
    assert_has(&output.stderr, &["zeph.db", "damaged", "move it away"]);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

/// Proves CLI-3: a database of a newer version is not touched.
#[test]
fn newer_database_is_refused() {
    let server = OpenAi::replies([Reply::text("ok")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "remember this"]).code(0);
    let path = home.database();
    let mut bytes = std::fs::read(&path).unwrap();
    // `user_version`: a big-endian number at offset 60 (SQLite file format, 1.3).
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    home.zeph(["-p", "hi"])
        .code(1)
        .says(&["newer Zeph", "999", "update"]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(server.requests().len(), 1);
}

/// Proves CLI-3.
#[test]
fn unwritable_data_folder_is_refused() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    // A file replaces the folder, so that even root gets an error.
    std::fs::write(home.data().join("zeph"), "").unwrap();
    refused(&home, &server, &["zeph.db", "[memory] path"]);
    home.zeph(["doctor"])
        .env("ZEPH_MEMORY_PATH", "/proc/none/zeph.db")
        .code(1);
}

/// Whether this machine allows a mount of a small disk.
fn can_mount(home: &Home) -> bool {
    let probe = Zeph::through_bash(home, "unshare -rm bash -c 'mount -t tmpfs tmpfs /mnt' 2>&1");
    probe.run().code == Some(0)
}

/// Proves CLI-3: a disk that is mounted for reading only.
#[test]
fn read_only_disk_is_named() {
    let server = OpenAi::replies([Reply::text("ok")]);
    let home = Home::openai(&server);
    if !can_mount(&home) {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    home.zeph(["-p", "remember this"]).code(0);
    let before = std::fs::read(home.database()).unwrap();
    let script = r#"exec unshare -rm bash -c '
        mount --bind "$XDG_DATA_HOME" "$XDG_DATA_HOME" || exit 90
        mount -o remount,bind,ro "$XDG_DATA_HOME" || exit 91
        exec "$0" "$@"' "$0" "$@""#;
    for args in [
        ["-p", "hi"].as_slice(),
        &["tools", "call", "list_tasks"],
        &["sessions", "list"],
    ] {
        let output = Zeph::through_bash(&home, script).args(args).run().code(1);
        assert_has(
            &output.stderr,
            &["error: ", "zeph.db is read-only", "[memory] path"],
        );
    }
    assert_eq!(server.requests().len(), 1);
    assert_eq!(std::fs::read(home.database()).unwrap(), before);
}

/// Proves AGT-6, D-14, CLI-3: on a full disk the error is clear, and stored data is intact when space is
/// available again.
#[test]
fn full_disk_loses_no_data() {
    let server = OpenAi::start(|n, _| Reply::text(&format!("answer {n}")));
    let home = Home::openai(&server);
    if !can_mount(&home) {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    std::fs::write(home.root().join("long.txt"), "many words ".repeat(40_000)).unwrap();
    let script = r#"
        zeph=$0; export zeph
        exec unshare -rm bash -c '
            mount -t tmpfs -o size=620k tmpfs "$XDG_DATA_HOME" || exit 90
            "$zeph" -q -p "the first words" || exit 91
            fill() { head -c "$1" /dev/zero > "$XDG_DATA_HOME/ballast" 2>/dev/null; }
            fill 300000
            "$zeph" -q --continue < "$HOME/../long.txt"
            echo "exit $?"
            fill 1000000
            "$zeph" -q --continue -p "lost words"
            echo "exit $?"
            "$zeph" -q tools call bash "{\"command\": \"touch ran\"}" --yes
            echo "exit $?"
            rm "$XDG_DATA_HOME/ballast"
            "$zeph" -q --continue -p "the last words" || exit 92
            cp -r "$XDG_DATA_HOME/zeph" "$HOME/kept"
        '
    "#;
    let output = Zeph::through_bash(&home, script).run().code(0);
    let reported = "no space is left for the database";
    assert_eq!(output.stderr.matches(reported).count(), 3, "{output}");
    assert_has(&output.stderr, &["zeph.db", "free disk space"]);
    let exits: Vec<_> = output
        .stdout
        .lines()
        .filter(|line| line.starts_with("exit"))
        .collect();
    assert_eq!(exits, ["exit 1"; 3], "{output}");
    assert!(!home.has("ran"), "what cannot be audited does not run");
    let said: Vec<_> = server.last().messages()[1..]
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(
        said,
        ["the first words", "answer 0", "the last words"],
        "{output}"
    );
    assert_eq!(session_ids(&home.home().join("kept/zeph.db")).len(), 1);
}

/// Proves AGT-6, CLI-3: a file size limit loses no data either.
#[test]
fn file_size_limit_loses_no_data() {
    let server = OpenAi::start(|n, _| Reply::text(&format!("answer {n}")));
    let home = Home::openai(&server);
    home.zeph(["-p", "the first words"]).code(0);
    // `trap`, because the signal would end the process before it can report the error.
    let limited = r#"trap "" XFSZ; ulimit -f 100; exec "$0" "$@""#;
    let long = "many words ".repeat(40_000);
    let run = Zeph::through_bash(&home, limited)
        .arg("--continue")
        .stdin(long.clone());
    let output = run.code(1);
    assert_has(&output.stderr, &["error: ", "zeph.db"]);
    assert!(!output.stderr.contains("panicked"), "{output}");
    home.zeph(["--continue", "-p", "the last words"]).code(0);
    let said: Vec<_> = server.last().messages()[1..]
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(said, ["the first words", "answer 0", "the last words"]);
}
