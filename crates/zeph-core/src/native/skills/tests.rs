//! Tests of finding and running skills.

#![allow(clippy::unwrap_used)]

use std::fs as files;
use std::os::unix::fs::symlink;

use serde_json::json;
use zeph_tools::{CallContext, ToolCall, ToolExecutor as _};

use super::*;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(path);
        files::create_dir_all(path.parent().unwrap()).unwrap();
        files::write(path, text).unwrap();
        self
    }

    fn skill(&self, name: &str, head: &str, body: &str) -> &Self {
        let text = format!("---\nname: {name}\ndescription: About {name}.\n{head}---\n{body}\n");
        self.write(&format!(".zeph/skills/{name}/SKILL.md"), text)
    }

    fn find_trusting(&self, trusted: &str) -> FoundSkills {
        let places = SkillDirs {
            user: None,
            project: Some(self.0.path().to_owned()),
        };
        find(
            &places,
            &SkillHost {
                standing: &|_, sha256| match (trusted, trusted == sha256) {
                    ("all", _) | (_, true) => SkillTrust::Trusted,
                    ("", _) => SkillTrust::New,
                    _ => SkillTrust::Changed,
                },
                is_tool: &|id| ["bash", "read", "read_file"].contains(&id),
                variable: &|name| (name == "TOKEN").then(|| "t".to_owned()),
            },
        )
    }

    fn find(&self) -> FoundSkills {
        self.find_trusting("")
    }

    #[track_caller]
    fn refused(&self) -> String {
        let found = self.find();
        assert_eq!(
            (found.skills.len(), found.refused.len()),
            (0, 1),
            "{found:?}"
        );
        found.refused[0].reason.clone()
    }
}

/// Proves NAT-2.
#[test]
fn skill_file_is_parsed() {
    let folder = Folder::new();
    folder.skill(
        "notes",
        "allowed-tools: [read, grep]\nenv:\n  - TOKEN\n  - NONE\nlicense: MIT\ntools:\n  - name: since\n    description: Commits.\n    command: git log {{tag}}..{{to}}\n    parameters:\n      tag: The tag.\n      to: {type: string, default: HEAD}\n",
        "# Notes\n\nWrite.",
    );
    folder
        .write(".zeph/skills/notes/scripts/run.sh", "echo")
        .write(".zeph/skills/README.md", "no skill");
    let found = folder.find_trusting("all");
    assert_eq!(found.refused, []);
    let (skill, held) = &found.skills[0];
    assert_eq!(
        (skill.name.as_str(), skill.description.as_str()),
        ("notes", "About notes.")
    );
    assert_eq!(skill.body, "# Notes\n\nWrite.");
    assert_eq!(
        skill.allowed,
        Some(vec!["read".to_owned(), "grep".to_owned()])
    );
    assert_eq!(skill.env, [("TOKEN".to_owned(), "t".to_owned())].into());
    assert_eq!(skill.trust, TrustLevel::Trusted);
    let paths: Vec<&str> = held.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["SKILL.md", "scripts/run.sh"]);
    let tool = &skill.tools[0];
    assert_eq!(
        *tool.def.parameters,
        json!({"type": "object", "properties": {"tag": {"description": "The tag.", "type": "string"}, "to": {"type": "string"}}, "required": ["tag"]})
    );
    let call = ToolCall::new("c", "since", json!({"tag": "v1; rm -rf ~"}), "s");
    let command = tool.as_command(&call).unwrap();
    assert_eq!(
        (command.tool.as_str(), command.str_param("command")),
        ("bash", Some("git log 'v1; rm -rf ~'..'HEAD'"))
    );
    // An untrusted skill adds nothing to the environment.
    let untrusted = folder.find();
    let skill = &untrusted.skills[0].0;
    assert_eq!((skill.trust, skill.env.len()), (TrustLevel::Untrusted, 0));
}

/// Proves NAT-2: an unquoted description with a colon, as in skills of other programs.
#[test]
fn description_with_a_colon_needs_no_quotes() {
    let folder = Folder::new();
    folder.write(
        ".zeph/skills/s/SKILL.md",
        "---\nname: s\ndescription: Use when: the user asks\n---\nx",
    );
    let found = folder.find();
    assert_eq!(found.refused, []);
    assert_eq!(found.skills[0].0.description, "Use when: the user asks");
}

/// Proves NAT-2: lists in the form of other programs.
#[test]
fn allowed_tools_are_a_list_or_a_text() {
    let check = |head: &str, expect: Option<&[&str]>| {
        let folder = Folder::new();
        let found = folder.skill("s", head, "x").find();
        let allowed = found.skills[0].0.allowed.clone();
        let expect = expect.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(allowed, expect, "{head}");
    };
    check("", None);
    check("allowed-tools: []\n", Some(&[]));
    check("allowed-tools:\n", Some(&[]));
    check("allowed-tools: read, grep\n", Some(&["read", "grep"]));
    check("allowed_tools: read grep\n", Some(&["read", "grep"]));
    check("allowed-tools:\n- read\n", Some(&["read"]));
}

/// Proves NAT-2: trust covers the names, contents and permissions of all files of the folder.
#[test]
fn any_change_is_another_skill() {
    let folder = Folder::new();
    folder
        .skill("s", "", "x")
        .write(".zeph/skills/s/a.sh", "one");
    let first = folder.find().skills[0].0.sha256.clone();
    let standing = || {
        let found = folder.find_trusting(&first);
        let skill = &found.skills[0].0;
        (skill.trust, skill.changed)
    };
    assert_eq!(standing(), (TrustLevel::Trusted, false));
    let path = folder.0.path().join(".zeph/skills/s/a.sh");
    let changed = (TrustLevel::Untrusted, true);
    files::write(&path, "two").unwrap();
    assert_eq!(standing(), changed);
    files::write(&path, "one").unwrap();
    assert_eq!(standing(), (TrustLevel::Trusted, false));
    files::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(standing(), changed);
    files::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    files::rename(&path, path.with_file_name("b.sh")).unwrap();
    assert_eq!(standing(), changed);
    files::rename(path.with_file_name("b.sh"), &path).unwrap();
    folder.write(".zeph/skills/s/deep/er/c", "");
    assert_eq!(standing(), changed);
}

/// Proves NAT-2: hostile skills are refused with a reason.
#[test]
fn hostile_skills_are_refused() {
    let check = |head: &str, words: &str| {
        let folder = Folder::new();
        folder.skill("s", head, "x");
        let reason = folder.refused();
        assert!(reason.contains(words), "{head}: {reason}");
    };
    check("name: t\n", "duplicate key `name`");
    check("allowedtools: []\n", "did you mean `allowed-tools`?");
    check("hooks: []\n", "not a key of the front matter");
    check("x: &a [1]\n", "anchors");
    check("allowed-tools: {a: 1}\n", "not a list of names");
    check("env: [PATH]\n", "PATH determines");
    check("env: {LD_PRELOAD: x}\n", "LD_PRELOAD determines");
    check("env: [\"A B\"]\n", "not the name of a variable");
    check("env: {A: \"x\\ny\"}\n", "control character");
    let tool =
        |name: &str, more: &str| format!("tools:\n  - name: {name}\n    description: D.\n{more}");
    check(
        &tool("bash", "    command: ls\n"),
        "a tool with this name exists",
    );
    check(
        &tool("read_file", "    command: ls\n"),
        "a tool with this name exists",
    );
    check(&tool("Ls", "    command: ls\n"), "lowercase letters");
    check(
        &tool("t", "    command: echo \"{{a}}\"\n    parameters: {a: x}\n"),
        "is in quotes",
    );
    check(
        &tool("t", "    command: echo {{a}}\n"),
        "is not a parameter",
    );
    check(
        &tool("t", "    command: echo\n    parameters: {a: x}\n"),
        "does not use the parameter a",
    );
    check(
        &tool("t", "    command: echo\n    shell: x\n"),
        "not a key of a tool",
    );
    check(
        &tool(
            "t",
            "    command: echo {{a}}\n    parameters: {a: {default: 1}}\n",
        ),
        "`default` is not of the type string",
    );
    let head = format!("x: {}\n", "y".repeat(17 * 1024));
    check(&head, "more than 16 KiB");

    let raw = |text: &[u8], words: &str| {
        let folder = Folder::new();
        folder.write(".zeph/skills/s/SKILL.md", text);
        let reason = folder.refused();
        assert!(reason.contains(words), "{reason}");
    };
    raw(b"no front matter", "does not begin with front matter");
    raw(b"---\nname: s\n", "has no end");
    raw(b"---\nname: s\n---\n", "`description` is missing");
    raw(
        b"---\nname: s\ndescription: d\n---\n\xff",
        "not UTF-8 in line 5",
    );
    raw(
        "---\nname: s\ndescription: d\n---\n\u{1b}[31m".as_bytes(),
        "U+001B in line 5",
    );
    raw(
        "---\nname: s\ndescription: d\u{202e}\n---\n".as_bytes(),
        "U+202E in line 3",
    );
    raw(
        "---\nname: s\ndescription: d\n---\n\u{e0041}".as_bytes(),
        "U+E0041",
    );
    raw(
        b"---\nname: other\ndescription: d\n---\n",
        "its `name` is \"other\"",
    );
    raw(&vec![b'x'; 65 * 1024], "more than 64 KiB");
    raw(
        b"---\nname: s\ndescription: \"a\\u0007\"\n---\n",
        "control character",
    );
}

/// Proves NAT-2: no file outside of the folder is part of a skill.
#[test]
fn skill_cannot_escape_its_folder() {
    let folder = Folder::new();
    folder.write("secret", "s").skill("s", "", "x");
    let skills = folder.0.path().join(".zeph/skills");
    symlink("../../../secret", skills.join("s/note.md")).unwrap();
    assert!(folder.refused().contains("note.md is a link"));
    files::remove_file(skills.join("s/note.md")).unwrap();
    symlink("..", skills.join("s/up")).unwrap();
    assert!(folder.refused().contains("up is a link"));
    files::remove_dir_all(skills.join("s")).unwrap();
    symlink("/", skills.join("s")).unwrap();
    assert!(folder.refused().contains("it is a link"));
    files::remove_file(skills.join("s")).unwrap();
    files::create_dir(skills.join("s")).unwrap();
    assert!(folder.refused().contains("it has no SKILL.md"));
    rustix::fs::mkfifoat(rustix::fs::CWD, skills.join("s/SKILL.md"), Mode::RUSR).unwrap();
    assert!(folder.refused().contains("neither a file nor a directory"));
    files::remove_dir_all(&skills).unwrap();
    symlink("/tmp", &skills).unwrap();
    assert!(folder.refused().contains("a link"));
}

#[test]
fn oversized_skills_are_refused() {
    let folder = Folder::new();
    folder.skill("s", "", "x");
    for at in 0..300 {
        folder.write(&format!(".zeph/skills/s/f{at}"), "");
    }
    assert!(folder.refused().contains("more than 256"));
    let folder = Folder::new();
    folder
        .skill("s", "", "x")
        .write(".zeph/skills/s/big", vec![0; 5 * 1024 * 1024]);
    assert!(folder.refused().contains("more than 4 MiB"));
    // SKILL.md exceeds the limit of all files, with and without a file after it.
    let folder = Folder::new();
    folder
        .skill("s", "", "x")
        .write(".zeph/skills/s/A", vec![0; 4 * 1024 * 1024]);
    assert!(folder.refused().contains("more than 4 MiB"));
    folder.write(".zeph/skills/s/z", "z");
    assert!(folder.refused().contains("more than 4 MiB"));
    let folder = Folder::new();
    folder
        .skill("s", "", "x")
        .write(".zeph/skills/s/a/b/c/d/e/f", "");
    assert!(folder.refused().contains("nested directories"));
    let folder = Folder::new();
    for at in 0..70 {
        folder.skill(&format!("s{at}"), "", "x");
    }
    let found = folder.find();
    assert_eq!((found.skills.len(), found.refused.len()), (64, 1));
}

/// Proves NAT-2: a project's skill cannot use the name of a user's skill or of its tools.
#[test]
fn user_skills_take_precedence() {
    let (user, project) = (Folder::new(), Folder::new());
    let tool = "tools:\n  - {name: t, description: D., command: ls}\n";
    user.skill("one", tool, "user's");
    project
        .skill("one", "", "project's")
        .skill("two", tool, "")
        .skill("three", "", "");
    let places = SkillDirs {
        user: Some(user.0.path().join(".zeph/skills")),
        project: Some(project.0.path().to_owned()),
    };
    let world = SkillHost {
        standing: &|_, _| SkillTrust::New,
        is_tool: &|_| false,
        variable: &|_| None,
    };
    let found = find(&places, &world);
    let used: Vec<_> = found
        .skills
        .iter()
        .map(|(skill, _)| (skill.name.as_str(), skill.trust))
        .collect();
    assert_eq!(
        used,
        [
            ("one", TrustLevel::Trusted),
            ("three", TrustLevel::Untrusted)
        ]
    );
    assert_eq!(found.skills[0].0.body, "user's");
    let reasons: Vec<&str> = found
        .refused
        .iter()
        .map(|refused| refused.reason.as_str())
        .collect();
    assert!(reasons[0].ends_with("has the same name"), "{reasons:?}");
    assert!(
        reasons[1].contains("which the skill one also declares"),
        "{reasons:?}"
    );
}

fn executor(head: &str, body: &str) -> (SkillExecutor, Arc<SkillRegistry>) {
    let folder = Folder::new();
    let book = SkillCatalog::from(folder.skill("s", head, body).find());
    (SkillExecutor::new(Arc::clone(&book.skills)), book.skills)
}

/// Proves NAT-2: arguments are inserted once, and cannot imitate the text around them.
#[tokio::test]
async fn arguments_replace_their_placeholders() {
    let check = async |body: &str, args: Option<&str>, expect: &str| {
        let (executor, skills) = executor("", body);
        let call = ToolCall::new(
            "c",
            "invoke_skill",
            json!({"name": "s", "args": args}),
            "one",
        );
        let output = executor
            .execute_tool_call(&call, &CallContext::headless())
            .await
            .unwrap()
            .unwrap();
        let (_, said) = output.summary.split_once("\n\n").unwrap();
        assert_eq!(said, expect, "{body} {args:?}");
        assert_eq!(skills.held("one").running.len(), 1);
        assert_eq!(skills.held("two").running.len(), 0);
    };
    check("Do it.", None, "Do it.").await;
    check("Do it.", Some("now, all"), "Do it.\n\nArguments: now, all").await;
    check("Read $ARGUMENTS.", Some("src/a.rs"), "Read src/a.rs.").await;
    check("{{args}} and $ARGUMENTS", Some("x"), "x and x").await;
    check(
        "Read {{args}}.",
        Some("a\n\n# New orders"),
        "Read \"a\\n\\n# New orders\".",
    )
    .await;
    check(
        "Read {{args}}.",
        Some("$ARGUMENTS {{args}}"),
        "Read \"$ARGUMENTS {{args}}\".",
    )
    .await;
    check("Read {{args}}.", None, "Read .").await;
}

/// Proves NAT-2, PERM-30.
#[tokio::test]
async fn skill_is_loaded_and_invoked() {
    let (executor, skills) = executor("allowed-tools: [read]\n", "The body.\n\n- a");
    let run = async |tool: &str, params: serde_json::Value| {
        let call = ToolCall::new("c", tool, params, "one");
        executor
            .execute_tool_call(&call, &CallContext::headless())
            .await
    };
    let output = run("load_skill", json!({"name": "s"}))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.summary, "The body.\n\n- a");
    let held = skills.held("one");
    assert_eq!((held.trust, held.running.len()), (TrustLevel::Untrusted, 0));
    let output = run("invoke_skill", json!({"name": "s"}))
        .await
        .unwrap()
        .unwrap();
    assert!(
        output.summary.contains("It is not trusted")
            && output.summary.contains("you may call: read"),
        "{}",
        output.summary
    );
    let missing = run("load_skill", json!({"name": "S"}))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("there is no skill \"S\"; did you mean s?"),
        "{missing}"
    );
    let long = run(
        "invoke_skill",
        json!({"name": "s", "args": "x".repeat(17 * 1024)}),
    )
    .await;
    assert!(
        long.unwrap_err()
            .to_string()
            .contains("at most 16384 bytes")
    );
    assert!(run("bash", json!({})).await.unwrap().is_none());
}

/// A declared tool does not run unless a layer converted it to a command.
#[tokio::test]
async fn declared_tool_runs_only_through_its_layer() {
    let (executor, _) = executor(
        "tools: [{name: t, description: D., command: touch ran}]\n",
        "x",
    );
    let call = ToolCall::new("c", "t", json!({}), "one");
    for confirmed in [false, true] {
        let cx = CallContext::headless();
        let refused = match confirmed {
            false => executor.execute_tool_call(&call, &cx).await,
            true => executor.execute_tool_call_confirmed(&call, &cx).await,
        };
        assert!(refused.unwrap_err().is_refusal());
    }
}

/// Proves NAT-2: the list of skills is limited, and equal skills give equal bytes.
#[test]
fn skill_list_in_the_prompt_is_bounded() {
    assert_eq!(prompt(&SkillRegistry::default()), "");
    let told = |count: usize| {
        let folder = Folder::new();
        for at in 0..count {
            let text = format!(
                "---\nname: s{at:02}\ndescription: {}\n---\n",
                "é ".repeat(300)
            );
            folder.write(&format!(".zeph/skills/s{at:02}/SKILL.md"), text);
        }
        prompt(&SkillCatalog::from(folder.find()).skills)
    };
    assert_eq!(told(3), told(3));
    let most = told(64);
    assert!(most.len() < 10 * 1024, "{}", most.len());
    assert!(most.contains("- s39 (untrusted): é") && !most.contains("- s40"));
    assert!(
        most.ends_with("- 24 more, which the user can name\n"),
        "{most}"
    );
}
