//! Tests of the tools that skills allow, and of the commands that they declare.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::def::Annotations;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
struct Params {
    path: String,
}

fn registry() -> ToolRegistry {
    let read =
        ToolDef::new::<Params>("read", "Reads.", Annotations::READ).with_aliases(&["read_file"]);
    let write = ToolDef::new::<Params>("write", "Writes.", Annotations::MUTATE);
    let bash = ToolDef::new::<Params>("bash", "Runs.", Annotations::ANYTHING);
    ToolRegistry::new(vec![read, write, bash])
}

fn skill(name: &str, allowed: Option<&[&str]>, trust: TrustLevel) -> Skill {
    Skill {
        name: name.to_owned(),
        allowed: allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        trust,
        ..Skill::default()
    }
}

/// Proves NAT-2: `allowed-tools` lists the allowed tools, by any name of a tool; an unknown name allows nothing.
#[test]
fn skill_allows_only_its_listed_tools() {
    let registry = registry();
    let check = |allowed: Option<&[&str]>, tool: &str, expect: bool| {
        let skill = skill("s", allowed, TrustLevel::Trusted);
        assert_eq!(skill.allows(tool, &registry), expect, "{allowed:?} {tool}");
    };
    check(None, "bash", true);
    check(Some(&[]), "read", false);
    check(Some(&["read"]), "read", true);
    check(Some(&["read_file"]), "read", true);
    check(Some(&["Read"]), "read", false);
    check(Some(&["read"]), "bash", false);
    check(Some(&["Bash(ls *)"]), "bash", false);
    check(Some(&["*"]), "bash", false);
    check(Some(&[]), "load_skill", true);
    check(Some(&[]), "invoke_skill", true);
    check(Some(&[]), "read_overflow", true);
}

/// Proves NAT-2, PERM-30: with several skills, each must allow the tool; the lowest trust level applies until the
/// context is cleared, not only until the end of the turn.
#[test]
fn strictest_of_several_skills_applies() {
    let registry = registry();
    let skills = SkillRegistry::new(vec![
        skill("reads", Some(&["read"]), TrustLevel::Trusted),
        skill("writes", Some(&["write", "read"]), TrustLevel::Untrusted),
        skill("free", None, TrustLevel::Provisional),
    ]);
    let run = |name: &str| skills.begin("a", skills.get(name).unwrap());
    assert_eq!(skills.held("a").trust, TrustLevel::Trusted);
    run("free");
    assert_eq!(skills.held("a").trust, TrustLevel::Provisional);
    assert!(skills.held("a").refusing("bash", &registry).is_none());
    run("writes");
    let refusing = |tool| {
        skills
            .held("a")
            .refusing(tool, &registry)
            .map(|skill| skill.name.clone())
    };
    assert_eq!(refusing("write"), None);
    run("reads");
    assert_eq!(refusing("write").as_deref(), Some("reads"));
    assert_eq!(refusing("bash").as_deref(), Some("writes"));
    assert_eq!(refusing("read"), None);
    assert_eq!(skills.held("a").trust, TrustLevel::Untrusted);
    assert_eq!(skills.held("b").trust, TrustLevel::Trusted);
    skills.end_turn("a");
    assert_eq!(refusing("bash"), None);
    assert_eq!(skills.held("a").trust, TrustLevel::Untrusted);
    skills.forget("a");
    assert_eq!(skills.held("a").trust, TrustLevel::Trusted);
    skills.note_read("b", skills.get("writes").unwrap());
    assert_eq!(skills.held("b").trust, TrustLevel::Untrusted);
    assert!(skills.held("b").running.is_empty());
}

mod templates {
    use std::process::Command;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::template::{Template, TemplateError, quoted};

    fn render(template: &str, values: Value) -> String {
        let Value::Object(values) = values else {
            panic!("an object")
        };
        Template::parse(template).unwrap().render(&values).unwrap()
    }

    #[test]
    fn values_are_rendered_as_words() {
        let check = |template, values, expect: &str| assert_eq!(render(template, values), expect);
        check("ls", json!({}), "ls");
        check("ls {{dir}} -l", json!({"dir": "a b"}), "ls 'a b' -l");
        check("x {{ a }}{{b}}", json!({"a": 1, "b": true}), "x '1''true'");
        check(
            "git log {{tag}}..HEAD",
            json!({"tag": "$(id)"}),
            "git log '$(id)'..HEAD",
        );
        check("echo {{a}}", json!({"a": "it's"}), r"echo 'it'\''s'");
        check(
            "echo 'a' \"b $x\" {{a}}",
            json!({"a": ""}),
            "echo 'a' \"b $x\" ''",
        );
        check(
            "echo a#b ${HOME} {{a}}",
            json!({"a": "{{a}}"}),
            "echo a#b ${HOME} '{{a}}'",
        );
    }

    #[test]
    fn template_that_cannot_be_quoted_safely_is_refused() {
        let quoted = |name: &str| TemplateError::Quoted(name.to_owned());
        let check = |text: &str, expect| assert_eq!(Template::parse(text), Err(expect), "{text}");
        check("  ", TemplateError::Empty);
        check("echo '{{a}}'", quoted("a"));
        check("echo \"x {{a}}\"", quoted("a"));
        check("echo \\{{a}}", quoted("a"));
        check("echo 'a", TemplateError::Open);
        check("echo {{A}}", TemplateError::Place("{{A}}".to_owned()));
        check("echo {{a", TemplateError::Place("{{a".to_owned()));
        check(&"x".repeat(5000), TemplateError::Long);
        for text in [
            "echo `id {{a}}`",
            "cat <<E\n{{a}}\nE",
            "cat <<< {{a}}",
            "echo $(({{a}}))",
            "((x={{a}}))",
            "echo $[{{a}}]",
            "[[ {{a}} -eq 1 ]]",
            "echo $'{{a}}'",
            "echo $\"{{a}}\"",
            "echo x # {{a}}",
            "# {{a}}",
            "true;# {{a}}",
            "echo ${x:-{{a}}}",
            "echo ${{a}}",
            "echo \"$(echo {{a}})\"",
            "echo \u{1b}[0m",
            "echo a\\",
        ] {
            let refused = Template::parse(text).unwrap_err();
            assert!(
                matches!(refused, TemplateError::Unsafe(_)),
                "{text}: {refused}"
            );
        }
    }

    #[test]
    fn values_that_are_not_words_are_refused() {
        let template = Template::parse("echo {{a}}").unwrap();
        for value in [json!(null), json!([1]), json!({"b": 1}), json!("a\0b")] {
            let values = [("a".to_owned(), value)].into_iter().collect();
            assert_eq!(
                template.render(&values),
                Err(TemplateError::Value("a".to_owned()))
            );
        }
        let missing = template.render(&serde_json::Map::new());
        assert_eq!(missing, Err(TemplateError::Missing("a".to_owned())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Proves NAT-2: a shell reads any value as exactly one word.
        #[test]
        #[allow(clippy::disallowed_methods)]
        fn shell_reads_the_value_as_one_word(value in "[^\0]{0,40}") {
            let command = render("printf %s:%s {{a}} end", json!({ "a": value }));
            let output = Command::new("sh").arg("-c").arg(&command).output().unwrap();
            prop_assert!(output.status.success() && output.stderr.is_empty());
            prop_assert_eq!(output.stdout, format!("{value}:end").into_bytes());
        }

        #[test]
        fn never_panics_on_arbitrary_text(text in ".{0,200}") {
            let _ = Template::parse(&text);
            prop_assert!(quoted(&text).starts_with('\''));
        }

        #[test]
        fn any_template_text_is_parsed_or_refused(text in "[a-z'\"\\\\`$(){}<# \n\\[\\]]{0,60}") {
            let _ = Template::parse(&text);
        }
    }
}
