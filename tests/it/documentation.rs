//! The pages of the book: their blocks of TOML are valid, and each problem that the program can report has an entry.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use zeph_llm::LlmErrorKind;
use zeph_tools::ToolErrorCategory;

use crate::rig::Home;

const TROUBLESHOOTING: &str = include_str!("../../docs/troubleshooting.md");

/// The README and the pages of `docs/`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(root.join("docs")).unwrap();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// The blocks of TOML of a page: the number of the line, the kind after `toml`, and the text.
fn blocks(page: &str) -> Vec<(usize, String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String, String)> = None;
    for (at, line) in page.lines().enumerate() {
        let line = line.trim_start();
        match (&mut open, line.strip_prefix("```toml")) {
            (None, Some(kind)) => open = Some((at + 1, kind.trim().to_owned(), String::new())),
            (Some(_), _) if line == "```" => blocks.extend(open.take()),
            (Some((.., text)), _) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

/// The dependencies of a manifest on crates that the repository does not have.
fn missing_crates(manifest: &str) -> impl Iterator<Item = String> {
    let manifest: toml::Table = manifest.parse().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dependencies = manifest["dependencies"].as_table().unwrap().clone();
    dependencies.into_iter().filter_map(move |(name, value)| {
        let path = value.get("path")?.as_str()?.strip_prefix("../zeph/")?;
        let is_crate = path.ends_with(&name) && root.join(path).join("Cargo.toml").exists();
        (!is_crate).then_some(format!("no crate {name} in {path}"))
    })
}

/// Proves PKG-5, CFG-2: the program accepts each block of TOML of the documentation.
#[test]
fn blocks_of_toml_are_valid() {
    let home = Home::new();
    let mut count = 0;
    let mut faults = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (line, kind, text) in blocks(&text) {
            count += 1;
            home.write("block.toml", &text);
            let name = page.file_name().unwrap().to_string_lossy();
            let printed = match kind.as_str() {
                "" => home
                    .zeph(["--config", "block.toml", "config", "check"])
                    .run(),
                "filter-rules" => {
                    let set = "tools.filters.filters_path=\"block.toml\"";
                    home.zeph(["--set", set, "filter", "verify"]).run()
                }
                "scenario" => {
                    let config = "[[llm.providers]]\nname = \"s\"\ntype = \"scripted\"\nscenario = \"block.toml\"\n";
                    home.write("scenario.toml", config);
                    let args = ["--config", "scenario.toml", "doctor"];
                    let printed = home.zeph(args).run();
                    assert!(
                        printed.stdout.contains("ok    provider"),
                        "{name}:{line}: {printed}"
                    );
                    continue;
                }
                "codex" => continue, // the configuration of another program
                "cargo" => {
                    faults.extend(missing_crates(&text).map(|it| format!("{name}:{line}: {it}")));
                    continue;
                }
                kind => panic!("{name}:{line}: a block of `toml {kind}` is not checked"),
            };
            if printed.code != Some(0) {
                faults.push(format!("{name}:{line}: {printed}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 50, "{count}");
}

/// Parts of messages, one for each class of errors of providers. The compiler reports a class that is missing.
macro_rules! parts_of_messages {
    ($($kind:ident => $part:literal,)*) => {{
        let _ = |kind| match kind {
            $(LlmErrorKind::$kind => (),)*
        };
        [$($part),*]
    }};
}

/// Proves PKG-5: each category, class and check has an entry in the page about problems.
#[test]
fn every_family_of_problems_has_an_entry() {
    let mut missing = BTreeSet::new();
    for category in ToolErrorCategory::ALL {
        let heading = format!("### {}\n", category.label());
        if !TROUBLESHOOTING.contains(&heading) {
            missing.insert(heading);
        }
    }
    let parts = parts_of_messages! {
        Network => "cannot connect to",
        Timeout => "sent nothing for longer than",
        RateLimited => "too many requests",
        Server => "server error",
        Auth => "Check the key in the environment variable",
        NoCredit => "has no credit or quota left",
        UnknownModel => "does not know the model",
        ContextOverflow => "is longer than the window",
        BadRequest => "the request was refused",
        Protocol => "did not respond with",
        StreamCut => "the stream ended before the response was complete",
        Config => "no key: set the environment variable",
        Scenario => "scenario",
    };
    for part in parts {
        if !TROUBLESHOOTING.contains(part) {
            missing.insert(part.to_owned());
        }
    }
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let printed = home.zeph(["doctor", "--json"]).run();
    let mut checks = 0;
    let all: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    for check in all.as_array().unwrap() {
        let name = check["name"].as_str().unwrap().split(' ').next().unwrap();
        checks += 1;
        if !TROUBLESHOOTING.contains(&format!("| `{name}` |")) {
            missing.insert(format!("doctor: {name}"));
        }
    }
    assert!(checks >= 7, "{printed}");
    assert!(missing.is_empty(), "{missing:?}");
}
