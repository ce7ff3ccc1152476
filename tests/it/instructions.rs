//! Instruction files of a project: `ZEPH.md`, `AGENTS.md`, `CLAUDE.md`.

use std::os::unix::fs::symlink;

use crate::rig::{Home, OpenAi, Reply, assert_has};

/// The system prompt in a directory of the project, and the messages for the user.
fn system(home: &Home, server: &OpenAi, directory: &str) -> (String, String) {
    let output = home.zeph(["-p", "hi"]).cwd(home.path(directory)).code(0);
    let messages = server.last().messages();
    (
        messages[0]["content"].as_str().unwrap().to_owned(),
        output.stderr,
    )
}

/// Proves CTX-4: files with each name are read once, from the root down.
#[test]
fn instructions_are_read_from_the_root_down() {
    let server = OpenAi::start(|_, _| Reply::text("hello"));
    let home = Home::openai(&server);
    home.write(".git/HEAD", "ref: refs/heads/main\n");
    home.write("AGENTS.md", "Indent with tabs.\n");
    symlink("AGENTS.md", home.path("CLAUDE.md")).unwrap();
    home.write("ZEPH.md", "Answer in rhyme.");
    home.write("sub/deep/CLAUDE.md", "Here with spaces.\n");
    home.write("sub/beside/AGENTS.md", "Never read.\n");
    let (deep, stderr) = system(&home, &server, "sub/deep");
    let places = ["Answer in rhyme.", "Indent with tabs.", "Here with spaces."].map(|text| {
        assert_eq!(deep.matches(text).count(), 1, "{deep}");
        deep.find(text).unwrap()
    });
    assert!(places.is_sorted(), "{deep}");
    assert!(!deep.contains("Never read"), "{deep}");
    assert!(!stderr.contains("instructions"), "{stderr}");
    let (root, _) = system(&home, &server, "");
    assert!(!root.contains("spaces"), "{root}");
    // Each request has the same text.
    let (again, _) = system(&home, &server, "sub/deep");
    assert_eq!(again, deep);
}

/// Proves CTX-4: a link that points outside, invalid UTF-8 and a long file are reported and are harmless.
#[test]
fn invalid_instruction_file_is_not_read() {
    let server = OpenAi::start(|_, _| Reply::text("hello"));
    let home = Home::openai(&server);
    home.write(".git/HEAD", "ref: refs/heads/main\n");
    std::fs::write(home.root().join("outside.md"), "private words\n").unwrap();
    symlink(home.root().join("outside.md"), home.path("AGENTS.md")).unwrap();
    std::fs::write(home.path("CLAUDE.md"), b"\xff\xfe words").unwrap();
    home.write("ZEPH.md", &"long é words\n".repeat(10_000));
    let (text, stderr) = system(&home, &server, "");
    assert!(!text.contains("private words"));
    assert!((60_000..70_000).contains(&text.len()), "{}", text.len());
    assert_has(
        &stderr,
        &[
            "a link to a file outside the project",
            "not UTF-8",
            "is too long for instructions",
            "of 140000 bytes are read",
        ],
    );
}

/// Proves CTX-4: `/status` lists the files. Files in the home directory or above do not belong to the
/// project.
#[test]
fn home_directory_is_not_a_project() {
    let server = OpenAi::start(|_, _| Reply::text("hello"));
    let home = Home::openai(&server);
    std::fs::write(home.home().join("AGENTS.md"), "words of the home\n").unwrap();
    home.write("AGENTS.md", "words of the project\n");
    let (text, _) = system(&home, &server, "");
    assert_has(&text, &["words of the project"]);
    assert!(!text.contains("words of the home"), "{text}");
}

/// Proves CTX-4, FILE-4: a denied file does not reach the model under the name of an instruction file.
#[test]
fn instructions_linked_to_a_denied_file_are_not_read() {
    for name in ["AGENTS.md", "ZEPH.md", "CLAUDE.md", "sub/AGENTS.md"] {
        for denied in [".env", "secrets/notes.md", "sub/.env"] {
            let server = OpenAi::start(|_, _| Reply::text("hello"));
            let home = Home::openai(&server);
            home.more_config("[tools.file]\ndeny_read = [\"**/.env\", \"**/secrets/**\"]\n");
            home.write(".git/HEAD", "ref: refs/heads/main\n");
            home.write(denied, "PASSWORD=hunter2-instructions\n");
            home.write("sub/plain.txt", "");
            // A direct link, and a link to a link.
            symlink(home.path(denied), home.path("hop")).unwrap();
            symlink(home.path("hop"), home.path(name)).unwrap();
            let (text, stderr) = system(&home, &server, "sub");
            assert!(!text.contains("hunter2"), "{name} -> {denied}: {text}");
            assert_has(
                &stderr,
                &[name, "was not read as instructions", "deny_read"],
            );
        }
    }
}

/// Proves CTX-4, FILE-4: a rule that denies the instruction file itself applies too.
#[test]
fn instructions_denied_by_name_are_not_read() {
    let server = OpenAi::start(|_, _| Reply::text("hello"));
    let home = Home::openai(&server);
    home.more_config("[tools.file]\ndeny_read = [\"**/AGENTS.md\"]\n");
    home.write(".git/HEAD", "ref: refs/heads/main\n");
    home.write("AGENTS.md", "Denied words.\n");
    home.write("ZEPH.md", "Permitted words.\n");
    let (text, stderr) = system(&home, &server, "");
    assert!(!text.contains("Denied words"), "{text}");
    assert_has(&text, &["Permitted words"]);
    assert_has(&stderr, &["AGENTS.md", "deny_read"]);
}
