//! Tests of reading and checking layers.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> (Layer, Vec<String>) {
    let mut errors = Vec::new();
    let layer = Layer::from_toml(text, Path::new("c.toml"), FileLayer::User, &mut errors);
    (layer, errors.iter().map(ToString::to_string).collect())
}

/// Proves CFG-2: an error has file, line, column, the expected value, and the nearest key.
#[test]
fn errors_are_reported_with_their_location() {
    let check = |text: &str, expect: &[&str]| {
        assert_eq!(read(text).1, expect, "{text}");
    };
    check("", &[]);
    check("\u{feff}[agent]\nmax_tool_iterations = 5\n", &[]);
    check(
        "[tools.shell]\ntimout = 3\n",
        &["c.toml:2:1: `timout` is not a key of [tools.shell]\n  help: did you mean `timeout`?"],
    );
    check(
        "[tool.shell]\ntimeout = 3\n",
        &["c.toml:1:2: `tool` is not a key of the configuration\n  help: did you mean `tools`?"],
    );
    check(
        "[agent]\nallowed_paths = []\n",
        &[
            "c.toml:2:1: `allowed_paths` is not a key of [agent]\n  help: there is `tools.file.allowed_paths` or `tools.shell.allowed_paths`",
        ],
    );
    check(
        "[memory]\n\"a b\" = 1\n",
        &[
            "c.toml:2:1: `\"a b\"` is not a key of [memory]\n  help: the nearest known key is `path`; its keys are path, synchronous, url, wait_secs",
        ],
    );
    check(
        "[tools.shell]\ntimeout = \"30\"\n",
        &["c.toml:2:11: `tools.shell.timeout` must be an integer of at least 1, not \"30\""],
    );
    check(
        "[tools]\nshell.timeout = 0\nmode = \"pln\"",
        &[
            "c.toml:3:8: `tools.mode` must be one of \"plan\", \"ask\", \"auto-edit\", \"auto\", \"full\", not \"pln\"\n  help: did you mean \"plan\"?",
            "c.toml:2:17: `tools.shell.timeout` must be an integer of at least 1, not 0",
        ],
    );
    check("agent = 3", &["c.toml:1:9: `agent` must be a table, not 3"]);
    check(
        "[tools.shell]\ntimeout = 99999999999999999999",
        &[
            "c.toml:2:11: `tools.shell.timeout` must be an integer of at least 1, not 99999999999999999999",
        ],
    );
    check(
        "[llm.retry]\nmax_attempts = 0x1_0000_0000",
        &[
            "c.toml:2:16: `llm.retry.max_attempts` must be an integer from 1 to 4294967295, not 0x100000000",
        ],
    );
    check(
        "[tools.shell.env]\nblock = [\"A\", 1, true]\nset = { A = 1 }",
        &[
            "c.toml:2:15: `tools.shell.env.block[1]` must be a string, not 1",
            "c.toml:2:18: `tools.shell.env.block[2]` must be a string, not true",
            "c.toml:3:13: `tools.shell.env.set.A` must be a string, not 1",
        ],
    );
    check(
        "[[llm.providers]]\nmodel = \"m\"\ntype = \"x-secret-that-must-not-be-shown\"\n",
        &[
            "c.toml:3:8: `llm.providers[0].type` must be one of \"claude\", \"openai\", \"ollama\", \"candle\", \"scripted\", \"anthropic\", not this string",
            "c.toml:1:1: `llm.providers[0]` has no `name`\n  help: name must be a string",
        ],
    );
    check(
        "[agent]\n[agent]\n",
        &["c.toml:2:2: this is not TOML: duplicate key"],
    );
    check(
        "[agent]\nmax_tool_iterations = \nmax_parallel_calls = 1 2\n",
        &[
            "c.toml:2:23: this is not TOML: string values must be quoted, expected literal string",
            "c.toml:3:22: this is not TOML: string values must be quoted, expected literal string",
        ],
    );
}

/// Proves CFG-2.
#[test]
fn values_have_their_positions() {
    let (layer, errors) = read(
        "[tools]\nmode = \"plan\"\n[tools.shell]\n  timeout = 0x10\nenv.set = { A = \"b\" }\nenv.block = [\"X\",\n\"Y\"]\n[[llm.providers]]\nname = \"a\"\ntype = \"openai\"\n[[llm.providers]]\ntype = \"openai\"\nname = \"b\"\n",
    );
    assert_eq!(errors, <[String; 0]>::default());
    assert_eq!(layer.get("tools.shell.timeout"), Some(&Value::Integer(16)));
    let check = |key: &str, expect: &str| {
        assert_eq!(layer.provenance.of(key).to_string(), expect, "{key}");
    };
    check("tools.mode", "user file c.toml:2");
    check("tools.shell.timeout", "user file c.toml:4");
    check("tools.shell.env.set.A", "user file c.toml:5");
    check("tools.shell.env.block", "user file c.toml:6");
    check("llm.providers[1].name", "user file c.toml:13");
    check("tools.shell", "default");
    check("tools.shell.max_timeout", "default");
}

#[test]
fn texts_of_variables_and_flags_are_typed() {
    let check = |key: &str, text: &str, expect: Result<&str, &str>| {
        let mut layer = Layer::default();
        let origin = Origin::Flag("f".to_owned());
        let found = match layer.set_text(key, text, &origin) {
            Ok(()) => Ok(layer.table.to_string().trim_end().replace('\n', " ")),
            Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<String>()),
        };
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expect,
            "{key} {text:?}"
        );
    };
    check(
        "tools.shell.timeout",
        " 60 ",
        Ok("[tools.shell] timeout = 60"),
    );
    check(
        "tools.shell.timeout",
        "soon",
        Err("f: `tools.shell.timeout` must be an integer of at least 1, not \"soon\""),
    );
    check(
        "tools.shell.timeout",
        "0",
        Err("f: `tools.shell.timeout` must be an integer of at least 1, not 0"),
    );
    check("tools.mode", "plan", Ok("[tools] mode = \"plan\""));
    check("tools.mode", "\"plan\"", Ok("[tools] mode = \"plan\""));
    check(
        "tools.mode",
        "pln",
        Err(
            "f: `tools.mode` must be one of \"plan\", \"ask\", \"auto-edit\", \"auto\", \"full\", not \"pln\"",
        ),
    );
    check("llm.default", "1", Ok("[llm] default = \"1\""));
    check(
        "llm.default",
        "true, or not",
        Ok("[llm] default = \"true, or not\""),
    );
    check(
        "tools.shell.env.block",
        "A, B*,",
        Ok("[tools.shell.env] block = [\"A\", \"B*\"]"),
    );
    check(
        "tools.shell.env.block",
        "A",
        Ok("[tools.shell.env] block = [\"A\"]"),
    );
    check(
        "tools.shell.env.block",
        "[\"A,B\"]",
        Ok("[tools.shell.env] block = [\"A,B\"]"),
    );
    check(
        "tools.shell.env.block",
        "[\"A\", 1]",
        Err("f: `tools.shell.env.block[1]` must be a string, not 1"),
    );
    check(
        "tools.shell.env.block",
        "[A",
        Err("f: `tools.shell.env.block` must be a list; each item is a string, not \"[A\""),
    );
    check(
        "tools.shell.env.set.A.b",
        "x=y",
        Ok("[tools.shell.env.set] \"A.b\" = \"x=y\""),
    );
    for free in ["\"A.b\"", "'A.b'"] {
        let key = format!("tools.shell.env.set.{free}");
        check(&key, "1", Ok("[tools.shell.env.set] \"A.b\" = \"1\""));
    }
    check(
        "tools.filters.rules.\"git-*\".enabled",
        "false",
        Ok("[tools.filters.rules.\"git-*\"] enabled = false"),
    );
    check(
        "tools.shell.env.set",
        "{ A = \"1\" }",
        Ok("[tools.shell.env.set] A = \"1\""),
    );
    check(
        "tools.shell.env.set",
        "A=1",
        Err("f: `tools.shell.env.set` must be a table, not \"A=1\""),
    );
    check(
        "tools.shel.timeout",
        "1",
        Err(
            "f: `tools.shel.timeout` is not a known key\n  help: the nearest known key is `tools.shell.timeout`",
        ),
    );
    for key in [
        "tools",
        "tools.",
        "",
        ".",
        "tools.mode.x",
        "llm.providers.0.name",
    ] {
        let errors = Layer::default()
            .set_text(key, "1", &Origin::Default)
            .unwrap_err();
        assert!(
            errors[0].message.contains("not a known key"),
            "{key:?}: {errors:?}"
        );
    }
}

#[test]
fn stronger_layer_replaces_lists_and_merges_tables() {
    let (mut layer, _) = read("[tools.shell.env]\nblock = [\"A\"]\nset = { A = \"1\", B = \"2\" }");
    let (over, _) = read("[tools.shell.env]\nblock = [\"B\"]\nset = { B = \"3\" }");
    layer.merge(over);
    let expect =
        "[tools.shell.env]\nblock = [\"B\"]\n\n[tools.shell.env.set]\nA = \"1\"\nB = \"3\"\n";
    assert_eq!(layer.table.to_string(), expect);
}

/// A file of thousands of faults is refused quickly.
#[test]
fn errors_are_bounded() {
    let text: String = (0..20_000).map(|n| format!("k{n}=1\n")).collect();
    assert_eq!(read(&text).1.len(), MAX_ERRORS);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC*") {
        read(&text);
    }

    #[test]
    fn any_toml_like_text_is_read_without_a_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "[agent]", "[tools.shell]", "[[llm.providers]]", "\n", "timeout", "=", "1", "\"x\"", "{", "}",
            "[", "]", ",", ".", "name", "type", "env", "set", "block", "-", "1e400", "nan", "1979-05-27",
            "'''", "#", "\\u0000", "\u{feff}", "\r", "0x", "_", "true", "mode", "tools", "é",
        ]), 0..40)
    ) {
        read(&parts.concat());
    }

    #[test]
    fn mutated_files_never_panic(at in any::<prop::sample::Index>(), with in "\\PC{0,3}", cut in 0_usize..4) {
        let text = include_str!("../../../../../config/default.toml");
        let from = text.floor_char_boundary(at.index(text.len() + 1));
        let to = text.ceil_char_boundary((from + cut).min(text.len()));
        let (_, errors) = read(&format!("{}{with}{}", &text[..from], &text[to..]));
        for error in errors {
            prop_assert!(error.starts_with("c.toml:"), "{error}");
        }
    }

    #[test]
    fn any_flag_is_parsed_without_a_panic(key in "[a-z.\\[\\]\"]{0,20}", text in "\\PC{0,20}") {
        let _ = Layer::default().set_text(&key, &text, &Origin::Default);
        let _ = Layer::default().set_text("tools.shell.env.set", &text, &Origin::Default);
        let _ = Layer::default().set_text("llm.providers", &text, &Origin::Default);
    }
}
