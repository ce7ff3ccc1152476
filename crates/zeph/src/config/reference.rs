//! `docs/configuration.md`: the reference of all settings, made from the structs.

use std::fmt::Write as _;

use super::layer::get;
use super::overrides::{OTHER_VARIABLES, variable};
use super::project_trust::Rule;
use super::schema_shape::{self, Field, Section, Shape, join};
use super::template::{defaults, to_toml};

const INTRODUCTION: &str = r#"# Configuration

<!-- Generated from the structs: `zeph config reference > docs/configuration.md` -->

This page lists every setting. Zeph is configured in TOML:

```toml
[tools.shell]
timeout = 60
```

`zeph config init` writes a file with every key, its default and its explanation. It equals `config/default.toml`.

## Precedence

Sources, from the highest precedence to the lowest:

1. Flags: `--provider`, `--model`, `--mode`, and `--set KEY=VALUE` for any key (`--set tools.shell.timeout=60`).
2. Environment variables: `ZEPH_` and the key in capitals, with `_` instead of the dot
   (`ZEPH_TOOLS_SHELL_TIMEOUT=60`).
3. The project's file: `.zeph/config.toml` in the working directory or the nearest parent directory, up to the root
   of the repository. The file of the home directory is never a project's file.
4. The user's file: `$XDG_CONFIG_HOME/zeph/config.toml`, by default `~/.config/zeph/config.toml`. `--config FILE`
   replaces it.
5. The defaults.

Tables are merged key by key; lists are replaced as a whole. `zeph config show --origin` prints every effective value
with its source: file and line, variable or flag. `zeph config path` prints the paths of the files.

The value of a variable or of `--set` is parsed as TOML (`60`, `true`, `["A", "B"]`) if the result matches the type of
the key. Otherwise the value is the text itself, or for a list its parts between commas (`A,B`). An empty variable is
ignored. An unknown variable that begins with `ZEPH_` causes a warning. A name in a key of `--set`, `zeph config get` or
`zeph config set` may have the quotes of TOML: `tools.filters.rules."git-*".enabled`.

In paths, `~` is the home directory. A relative path starts at the project's directory in a project's file, and at the
working directory in all other sources.

A value is reduced to a limit of a source with higher precedence. For example, the default of `tools.shell.timeout` is
reduced to a lower `max_timeout` of the user, and the user's `timeout` to the `max_timeout` of a variable. If a value and
its limit in the same source contradict each other, the configuration is invalid.

Keys of earlier configurations are read under their old names, with one notice at each start. `zeph config migrate`
rewrites the file ([migration](migration.md)).

## Errors

An unknown key, a wrong type, a value out of range and a name without an entry are errors. The error states file, line
and column, the expected value and the nearest known key. Zeph reports all errors together, runs nothing, and exits with
2. `zeph config check [FILE]` only checks; `zeph config schema` prints the JSON Schema for editors.

## Changes during a session

Zeph checks the files before every turn and every call, and reads them again if one was changed, added or removed.
`/reload` always reads them again. A change takes effect

- for the following calls: `tools.shell.blocked_commands`, `tools.shell.blocked_constructs`, and the programs that
  `tools.shell.allow_network` blocks (the OS sandbox blocks the network after the next start);
- after a restart: all other keys. A notice lists the changed keys.

An invalid configuration changes nothing: the errors are reported with file and line, and the previous values remain in
effect. Environment variables and flags are read only at the start.

Two changes that loosen the blocklist are refused until `/reload` requests them, because the model could have made them:
a change in a file below a directory that tools can write (the working directory with the project's file, and
`allowed_paths`), and the removal of the user's file. A file that is a pipe is read only at the start.

## Project files

A cloned repository is not trusted: its file can tighten your protection, but never loosen it. It cannot choose the
recipients of the conversation: providers, their order, and the models that summarize, compact, judge or correct are the
user's choice. The column *project* states the allowed changes of a key; any other change is an error that names the
line. Directories are compared after links are resolved.
"#;

/// The text of `docs/configuration.md`.
pub(crate) fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let defaults = defaults();
    for section in schema_shape::root().sections() {
        let title = match section.is_list {
            true => format!("[[{}]]", section.path),
            false => format!("[{}]", section.path),
        };
        let _ = write!(text, "\n## `{title}`\n\n{}\n\n", section.table.doc);
        if section.is_list {
            text.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
        } else {
            text.push_str("| key | type | default | environment | project | meaning |\n|---|---|---|---|---|---|\n");
        }
        for field in &section.keys {
            row(&mut text, &section, field, &defaults);
        }
        if section.is_list {
            list_note(&mut text, &section);
        }
    }
    text.push_str("\n## Other environment variables\n\n| variable | meaning |\n|---|---|\n");
    for (name, meaning) in OTHER_VARIABLES {
        let _ = writeln!(text, "| `{name}` | {} |", cell(meaning));
    }
    text
}

fn row(text: &mut String, section: &Section<'_>, field: &Field, defaults: &toml::Table) {
    let key = join(&section.path, &field.name);
    let default = match section.is_list {
        true => field.default.as_ref().and_then(to_toml),
        false => get(defaults, &key).cloned(),
    };
    let default = match default {
        Some(value) => format!("`{value}`"),
        None if field.required => "required".to_owned(),
        None => "not set".to_owned(),
    };
    let kind = kind(&field.shape);
    let _ = write!(
        text,
        "| `{}` | {} | {} |",
        field.name,
        cell(&kind),
        cell(&default)
    );
    if !section.is_list {
        let rule = Rule::of(&key).explanation();
        let _ = write!(text, " `{}` | {} |", variable(&key), cell(&rule));
    }
    let _ = writeln!(text, " {} |", cell(&field.doc));
}

fn list_note(text: &mut String, section: &Section<'_>) {
    let map = section.path.strip_suffix(schema_shape::ANY);
    let path = map.map_or(section.path.as_str(), |map| map.trim_end_matches('.'));
    let (whole, form) = match map {
        Some(_) => ("All lists are", "table"),
        None => ("The whole list is", "array"),
    };
    let _ = write!(
        text,
        "\n{whole} one setting: `{}` holds it as a TOML {form}. A project's file {}.\n",
        variable(path),
        Rule::of(path).explanation()
    );
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::List(item) => format!("list: {}", kind(item)),
        Shape::Map(value) => format!("table: {}", kind(value)),
        // The limit of the integer type is not useful to the reader.
        Shape::Integer(min, max) if *max >= u32::MAX.into() => format!("integer of at least {min}"),
        Shape::Choice(names) => names
            .iter()
            .map(|name| format!("`\"{name}\"`"))
            .collect::<Vec<_>>()
            .join(", "),
        shape => {
            let text = shape.expectation();
            text.trim_start_matches("an ")
                .trim_start_matches("a ")
                .to_owned()
        }
    }
}

/// A `|` would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-3: the reference in the repository matches the structs.
    #[test]
    fn reference_file_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
        let found = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            found == reference(),
            "docs/configuration.md is out of date; write it again with\n\
             zeph config reference > docs/configuration.md"
        );
    }

    #[test]
    fn rows_say_type_default_variable_and_rule() {
        let text = reference();
        for row in [
            "| `timeout` | integer of at least 1 | `30` | `ZEPH_TOOLS_SHELL_TIMEOUT` | may set it |",
            "| `mode` | `\"plan\"`, `\"ask\"`, `\"auto-edit\"`, `\"auto\"`, `\"full\"` | `\"ask\"` | `ZEPH_TOOLS_MODE` |",
            "| `block` | list: string | `[]` | `ZEPH_TOOLS_SHELL_ENV_BLOCK` | only adds items |",
            "| `name` | string | required |",
            "| `path` | string | not set | `ZEPH_MEMORY_PATH` | may not set it |",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
    }
}
