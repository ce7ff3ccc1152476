//! A repository whose files name programs to start: inspecting it starts none of them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::os_sandbox::enforced;
use crate::rig::Home;

/// The output of the planted program.
const SIGN: &str = "PLANTED PROGRAM RAN";

#[allow(clippy::disallowed_methods, reason = "the test prepares a repository")]
fn git(home: &Home, directory: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.home())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

fn program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every setting of Git that names a program, in the repository and in a submodule.
fn settings(planted: &str) -> String {
    format!(
        "[core]\n\tfsmonitor = {planted}\n\thooksPath = {planted}.d\n\tpager = {planted}\n\tsshCommand = {planted}\n\
         \taskPass = {planted}\n\teditor = {planted}\n\talternateRefsCommand = {planted}\n\tgitProxy = {planted}\n\
         [pager]\n\tlog = {planted}\n\tdiff = {planted}\n\tstatus = {planted}\n\
         [diff]\n\texternal = {planted}\n\
         [diff \"planted\"]\n\ttextconv = {planted}\n\tcommand = {planted}\n\
         [filter \"planted\"]\n\tclean = {planted}\n\tsmudge = {planted}\n\tprocess = {planted}\n\
         [gpg]\n\tprogram = {planted}\n[gpg \"ssh\"]\n\tprogram = {planted}\n\
         [log]\n\tshowSignature = true\n\
         [credential]\n\thelper = !{planted}\n\
         [interactive]\n\tdiffFilter = {planted}\n\
         [alias]\n\tstatus = !{planted}\n\tst = !{planted}\n\
         [uploadpack]\n\tpackObjectsHook = {planted}\n"
    )
}

/// A project with planted programs, which print a sign. All except `rustc` also write a file.
fn hostile() -> Home {
    let home = Home::new();
    let project = home.project();
    let planted = project.join("planted.sh");
    let proof = home.home().join("pwned");
    program(
        &planted,
        &format!(
            "#!/bin/bash\necho x > {}\necho x > {}\necho {SIGN}\necho {SIGN} >&2\ncat\n",
            proof.display(),
            project.join("pwned").display()
        ),
    );
    git(&home, &project, &["init", "-q"]);
    home.write("a.txt", "one\n");
    home.write("src/b.txt", "two\n");
    git(&home, &project, &["add", "."]);
    git(&home, &project, &["commit", "-qm", "first"]);
    let inner = project.join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    git(&home, &inner, &["init", "-q"]);
    std::fs::write(inner.join("c.txt"), "three\n").unwrap();
    git(&home, &inner, &["add", "."]);
    git(&home, &inner, &["commit", "-qm", "inner"]);
    git(&home, &project, &["add", "inner"]);
    git(&home, &project, &["commit", "-qm", "second"]);
    home.write(".gitattributes", "*.txt diff=planted filter=planted\n");
    home.write("a.txt", "one\nmore\n");
    std::fs::write(inner.join("c.txt"), "changed\n").unwrap();
    let text = settings(&planted.display().to_string());
    for config in [project.join(".git/config"), inner.join(".git/config")] {
        let old = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{old}{text}")).unwrap();
    }
    for hook in ["post-index-change", "fsmonitor-watchman", "pre-commit"] {
        program(
            &project.join(".git/hooks").join(hook),
            &format!("#!/bin/sh\n{}\n", planted.display()),
        );
    }
    for name in ["ls", "cat", "git", "grep", "head", "cargo", "node"] {
        let text = format!("#!/bin/sh\nexec {}\n", planted.display());
        program(&project.join("bin").join(name), &text);
        program(&project.join("node_modules/.bin").join(name), &text);
    }
    // The sandbox drops the output of a program that tries to write, so this one does not.
    let rustc = project.join("bin/rustc");
    program(&rustc, &format!("#!/bin/sh\necho {SIGN}\n"));
    home.write(".ripgreprc", &format!("--pre={}\n", planted.display()));
    home.write(
        ".npmrc",
        &format!("node-options=--require={}\n", planted.display()),
    );
    home.write(
        ".cargo/config.toml",
        &format!(
            "[build]\nrustc = {0:?}\nrustc-wrapper = {0:?}\nrustc-workspace-wrapper = {0:?}\n\
             [env]\nPATH = {{ value = {1:?}, force = true }}\n[alias]\nmetadata = \"run\"\n",
            rustc.display().to_string(),
            format!("{}/bin:/usr/bin:/bin", project.display())
        ),
    );
    home.write(".envrc", &format!("{}\n", planted.display()));
    home.write(
        "Cargo.toml",
        "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    home.write(
        "Cargo.lock",
        "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\n\
         version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n",
    );
    home.write("src/lib.rs", "");
    home
}

/// Proves PERM-9, SH-23: read-only commands start no program that a repository names, regardless of the
/// environment of the user.
#[test]
fn inspection_of_a_hostile_repository_starts_no_process() {
    if !enforced() {
        return;
    }
    let home = hostile();
    let project = home.project();
    let path = format!(
        "{0}/bin:{0}/node_modules/.bin:.:{1}",
        project.display(),
        crate::rig::search_path()
    );
    let lines: String = [
        "ls -la",
        "cat a.txt",
        "grep -rn one .",
        "git status",
        "git status --short",
        "git diff",
        "git diff HEAD",
        "git diff --stat",
        "git log -p",
        "git log --oneline -5",
        "git show HEAD",
        "git show HEAD:a.txt",
        "git blame a.txt",
        "git branch --list",
        "git ls-files",
        "git grep one",
        "git stash list",
        "git rev-parse HEAD",
        "git remote -v",
        "git submodule status",
        "git config --get core.pager",
        "git -C inner status",
        "git -C inner diff",
        "cargo metadata --format-version 1 --offline",
        "cargo tree --offline",
        "head -1 a.txt | cat",
    ]
    .iter()
    .map(|command| {
        format!(
            "{}\n",
            json!({ "tool": "bash", "params": { "command": command } })
        )
    })
    .collect();
    home.write("../lines", &lines);
    let lines = home.root().join("lines").display().to_string();
    let output = home
        .zeph(["tools", "run", &lines])
        .with_toolchain()
        .env("PATH", &path)
        .env(
            "RIPGREP_CONFIG_PATH",
            &project.join(".ripgreprc").display().to_string(),
        )
        .env(
            "GIT_EXTERNAL_DIFF",
            &project.join("planted.sh").display().to_string(),
        )
        .run();
    let mut ran = 0;
    for line in output.stdout.lines() {
        let form: serde_json::Value = serde_json::from_str(line).unwrap();
        let data = form["data"].as_str().unwrap_or_default();
        assert!(!data.contains(SIGN), "{form:#}");
        ran += usize::from(form["success"] == true);
    }
    // Git fails if it cannot start a program that the repository requires. Then the call needs confirmation.
    assert!(ran >= 15, "{ran} of the commands ran:\n{output}");
    assert!(!home.has("pwned"));
    assert!(!home.home().join("pwned").exists());
}
