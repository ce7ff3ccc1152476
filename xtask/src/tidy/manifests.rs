//! Manifests: each crate has the fields that registries show.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::project::{Project, TextFile};

/// The maximum length of a description in characters: a registry shows one line.
const DESCRIPTION_LIMIT: usize = 120;

pub(super) fn findings(project: &Project, files: &[TextFile]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let toolchain = files.iter().find(|file| file.path == "rust-toolchain.toml");
    let toolchain = toolchain.context("rust-toolchain.toml is missing")?;
    for package in project.packages() {
        let name = package["name"].as_str().context("a package has no name")?;
        if name == "xtask" {
            continue;
        }
        findings.extend(fields(name, package));
        findings.extend(minimum(name, package, &toolchain.text));
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = project.relative(Path::new(manifest))?;
        let dir = manifest.strip_suffix("Cargo.toml").unwrap_or_default();
        let text = |path: String| files.iter().find(|file| file.path == path);
        if let Some(file) = text(manifest.clone()) {
            findings.extend(explicit(name, package, &file.text));
        }
        if text(format!("{dir}README.md")).is_none() {
            findings.push(format!("{name}: {dir}README.md is missing"));
        }
        if let Some(library) = text(format!("{dir}src/lib.rs"))
            && !denies_missing_docs(&library.text)
        {
            let path = &library.path;
            findings.push(format!("{path}: `#![deny(missing_docs)]` is missing"));
        }
    }
    Ok(findings)
}

/// The fields of a package that are missing, too short or too long.
fn fields(name: &str, package: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    for field in [
        "description",
        "license",
        "readme",
        "rust_version",
        "repository",
    ] {
        if package[field]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
        {
            findings.push(format!("{name}: the manifest has no `{field}`"));
        }
    }
    if package["keywords"].as_array().is_none_or(Vec::is_empty) {
        findings.push(format!("{name}: the manifest has no `keywords`"));
    }
    let description = package["description"].as_str().unwrap_or_default();
    let length = description.chars().count();
    if length > DESCRIPTION_LIMIT {
        findings.push(format!(
            "{name}: the description has {length} characters, more than {DESCRIPTION_LIMIT}"
        ));
    }
    findings
}

/// The fault of the minimum Rust version: all checks run with the pinned toolchain, so it must be the minimum.
fn minimum(name: &str, package: &Value, toolchain: &str) -> Option<String> {
    let minimum = package["rust_version"].as_str()?;
    let pinned = |line: &str| {
        let channel = line.strip_prefix("channel = \"")?.strip_suffix('"')?;
        let rest = channel.strip_prefix(minimum)?;
        Some(rest.is_empty() || rest.starts_with('.'))
    };
    let is_pinned = toolchain.lines().any(|line| pinned(line) == Some(true));
    (!is_pinned).then(|| {
        format!("{name}: `rust-version` {minimum} is not the toolchain of rust-toolchain.toml, which the checks use")
    })
}

/// Fields that have a default but must be explicit.
fn explicit(name: &str, package: &Value, manifest: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let is_publish = |line: &str| line.starts_with("publish = ");
    if !manifest.lines().any(is_publish) {
        findings.push(format!("{name}: the manifest has no `publish`"));
    }
    if !package["metadata"]["docs"]["rs"].is_object() {
        findings.push(format!(
            "{name}: the manifest has no `[package.metadata.docs.rs]`"
        ));
    }
    findings
}

fn denies_missing_docs(text: &str) -> bool {
    text.lines().any(|line| {
        let lints = ["#![deny(", "#![forbid("]
            .iter()
            .find_map(|level| line.strip_prefix(level));
        lints.is_some_and(|lints| lints.contains("missing_docs"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Proves PKG-2.
    #[test]
    fn missing_manifest_fields_are_found() {
        let whole = json!({
            "description": "What it is.", "license": "MIT", "readme": "README.md",
            "rust_version": "1.95", "repository": "https://example.org", "keywords": ["a"],
        });
        assert_eq!(fields("p", &whole), Vec::<String>::new());
        let check = |field: &str, value: Value, expect: &str| {
            let mut package = whole.clone();
            package[field] = value;
            assert_eq!(fields("p", &package), [expect]);
        };
        check(
            "description",
            Value::Null,
            "p: the manifest has no `description`",
        );
        check("license", json!(" "), "p: the manifest has no `license`");
        check("readme", Value::Null, "p: the manifest has no `readme`");
        check("keywords", json!([]), "p: the manifest has no `keywords`");
        check(
            "description",
            json!("x".repeat(121)),
            "p: the description has 121 characters, more than 120",
        );
        assert_eq!(fields("p", &Value::Null).len(), 6);
    }

    /// Proves PKG-6.
    #[test]
    fn publication_and_documentation_are_explicit() {
        let package = json!({"metadata": {"docs": {"rs": {}}}});
        assert!(explicit("p", &package, "publish = true\n").is_empty());
        assert_eq!(
            explicit("p", &Value::Null, "# publish = true\n"),
            [
                "p: the manifest has no `publish`",
                "p: the manifest has no `[package.metadata.docs.rs]`"
            ]
        );
    }

    #[test]
    fn minimum_version_is_the_pinned_toolchain() {
        let check = |version: &str, channel: &str, is_right: bool| {
            let package = json!({"rust_version": version});
            let toolchain = format!("[toolchain]\nchannel = \"{channel}\"\n");
            let found = minimum("p", &package, &toolchain);
            assert_eq!(found.is_none(), is_right, "{version} {channel}");
        };
        check("1.95", "1.95.0", true);
        check("1.95", "1.95", true);
        check("1.9", "1.95.0", false);
        check("1.94", "1.95.0", false);
        check("1.95", "stable", false);
    }

    #[test]
    fn missing_docs_are_denied_by_an_inner_attribute() {
        let check = |text: &str, expect| assert_eq!(denies_missing_docs(text), expect, "{text}");
        check("//! A\n#![deny(missing_docs)]", true);
        check("#![forbid(unsafe_code, missing_docs)]", true);
        check("// #![deny(missing_docs)]", false);
        check("#![warn(missing_docs)]", false);
        check("", false);
    }
}
