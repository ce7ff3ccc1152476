//! The crates that are part of the binary: its normal dependencies for one target, with their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::project::Project;

/// A crate in the binary.
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) version: String,
    /// The SPDX expression; empty if the manifest names a file instead.
    pub(super) license: String,
    /// Whether the crate comes from a registry, and not from this workspace.
    pub(super) is_external: bool,
    /// The folder of its sources.
    pub(super) folder: PathBuf,
    /// The package URLs of its own dependencies.
    pub(super) needs: BTreeSet<String>,
}

impl Dependency {
    /// The package URL of the crate.
    pub(super) fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// The crates of the binary by package URL, including the binary's own.
pub(super) fn of_binary(project: &Project, target: &str) -> Result<BTreeMap<String, Dependency>> {
    let args = "metadata --locked --format-version 1 --filter-platform";
    let printed = project
        .cargo(args)
        .arg(target)
        .quiet()
        .ignore_stderr()
        .read()?;
    let metadata = serde_json::from_str(&printed).context("output of `cargo metadata`")?;
    from_metadata(&metadata)
}

fn from_metadata(metadata: &Value) -> Result<BTreeMap<String, Dependency>> {
    let by_id = |list: &'static str| -> BTreeMap<&str, &Value> {
        let items = match list {
            "nodes" => &metadata["resolve"]["nodes"],
            list => &metadata[list],
        };
        let items = items.as_array().into_iter().flatten();
        items
            .filter_map(|item| Some((item["id"].as_str()?, item)))
            .collect()
    };
    let (packages, nodes) = (by_id("packages"), by_id("nodes"));
    let root = metadata["resolve"]["root"].as_str();
    let mut pending = vec![root.context("the workspace has no root package")?];
    let mut seen = BTreeSet::new();
    let mut found = BTreeMap::new();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let (package, node) = packages
            .get(id)
            .zip(nodes.get(id))
            .with_context(|| format!("`cargo metadata` does not describe {id}"))?;
        let mut needs = BTreeSet::new();
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array();
            let is_normal = kinds
                .into_iter()
                .flatten()
                .any(|kind| kind["kind"].is_null());
            let Some(id) = dependency["pkg"].as_str().filter(|_| is_normal) else {
                continue;
            };
            pending.push(id);
            if let Some(package) = packages.get(id) {
                needs.insert(described(package, BTreeSet::new()).purl());
            }
        }
        let dependency = described(package, needs);
        found.insert(dependency.purl(), dependency);
    }
    Ok(found)
}

fn described(package: &Value, needs: BTreeSet<String>) -> Dependency {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    let mut folder = PathBuf::from(text("manifest_path"));
    folder.pop();
    Dependency {
        name: text("name"),
        version: text("version"),
        license: text("license").replace('/', " OR "),
        is_external: !package["source"].is_null(),
        folder,
        needs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dependencies_of_builds_and_tests_are_not_in_the_binary() {
        let package = |name: &str| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "manifest_path": format!("{name}/Cargo.toml"), "source": "registry"})
        };
        let needs = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("zeph"), package("a"), package("b"), package("c"), package("d")],
            "resolve": {"root": "zeph", "nodes": [
                {"id": "zeph", "deps": [
                    needs("a", Value::Null), needs("c", json!("dev")), needs("d", json!("build")),
                ]},
                {"id": "a", "deps": [needs("b", Value::Null)]},
                {"id": "b", "deps": []}, {"id": "c", "deps": []}, {"id": "d", "deps": []},
            ]},
        });
        let found = from_metadata(&metadata).unwrap();
        let names: Vec<_> = found.values().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "zeph"]);
        let a = &found["pkg:cargo/a@1.0.0"];
        assert_eq!(a.license, "MIT OR Apache-2.0");
        assert!(a.needs.contains("pkg:cargo/b@1.0.0"));
    }
}
