//! Dependency edges: the allowed dependencies between crates, and forbidden packages.
//!
//! The consumer defines a port, the crate that owns the resource implements it, and the binary connects them.
//! This design depends on the edges.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::project::Project;

/// Each package of the workspace with the workspace packages it may depend on.
const EDGES: &[(&str, &[&str])] = &[
    ("zeph-backoff", &[]),
    ("zeph-bash", &[]),
    ("zeph-edit", &[]),
    ("zeph-exec", &[]),
    ("zeph-filter", &["zeph-bash"]),
    ("zeph-secrets", &[]),
    ("zeph-symbols", &[]),
    ("zeph-web", &[]),
    (
        "zeph-tools",
        &[
            "zeph-backoff",
            "zeph-bash",
            "zeph-edit",
            "zeph-exec",
            "zeph-filter",
            "zeph-secrets",
            "zeph-symbols",
            "zeph-web",
        ],
    ),
    ("zeph-llm", &["zeph-backoff"]),
    ("zeph-memory", &["zeph-backoff", "zeph-tools"]),
    ("zeph-core", &["zeph-llm", "zeph-memory", "zeph-tools"]),
    (
        "zeph-acp",
        &["zeph-core", "zeph-llm", "zeph-memory", "zeph-tools"],
    ),
    ("zeph-mcp", &["zeph-edit", "zeph-tools"]),
    (
        "zeph-tui",
        &["zeph-core", "zeph-llm", "zeph-memory", "zeph-tools"],
    ),
    (
        "zeph",
        &[
            "zeph-acp",
            "zeph-core",
            "zeph-edit",
            "zeph-llm",
            "zeph-mcp",
            "zeph-memory",
            "zeph-tools",
            "zeph-tui",
        ],
    ),
    ("xtask", &[]),
];

/// Packages that use only the contract of zeph-tools, without any of its features.
const CONTRACT_ONLY: &[&str] = &["zeph-mcp", "zeph-memory", "zeph-tui"];

/// A dependency tree and the names that must be absent from it.
struct Absent {
    /// Arguments of `cargo tree`.
    tree: &'static str,
    /// Package names (a `*` at the end matches any rest), or `package feature "name"`.
    names: &'static [&'static str],
}

const ABSENT: &[Absent] = &[
    Absent {
        tree: "-p zeph-tools -e normal",
        names: &[
            "sqlx*",
            "libsqlite3-sys",
            "zeph-llm",
            "zeph-memory",
            "zeph-core",
            "zeph-mcp",
            "zeph-acp",
        ],
    },
    Absent {
        tree: "-p zeph-edit -e normal",
        names: &["tokio", "zeph-tools"],
    },
    Absent {
        tree: "-p zeph-exec -e normal",
        names: &["zeph-tools", "reqwest"],
    },
    Absent {
        tree: "-p zeph-symbols -e normal",
        names: &["tokio", "zeph-tools"],
    },
    Absent {
        tree: "-p zeph-secrets -e normal",
        names: &["tokio", "zeph-tools"],
    },
    Absent {
        tree: "-p zeph-bash -e normal",
        names: &["tokio", "zeph-tools"],
    },
    Absent {
        tree: "-p zeph-filter -e normal",
        names: &["tokio", "zeph-secrets", "zeph-tools"],
    },
    Absent {
        tree: "-p zeph-web -e normal",
        names: &["schemars", "zeph-tools"],
    },
    Absent {
        // The contract without features.
        tree: "-p zeph-tools --no-default-features -e normal,features",
        names: &[
            "reqwest",
            "hyper",
            "hickory-resolver",
            "scrape-core",
            "tokio feature \"process\"",
            "tokio feature \"full\"",
        ],
    },
    Absent {
        tree: "-p zeph-llm -e normal",
        names: &["sqlx*", "libsqlite3-sys"],
    },
    Absent {
        tree: "-p zeph-memory -e normal",
        names: &["reqwest", "zeph-llm", "zeph-core"],
    },
    Absent {
        tree: "-p zeph-acp -e normal",
        names: &["zeph", "clap"],
    },
    Absent {
        tree: "-p zeph-tui -e normal",
        names: &["zeph", "clap", "zeph-acp", "zeph-mcp"],
    },
    Absent {
        // One TLS stack: rustls with ring.
        tree: "--workspace -e normal,build,dev",
        names: &[
            "openssl",
            "openssl-sys",
            "native-tls",
            "aws-lc-rs",
            "aws-lc-sys",
        ],
    },
];

pub(super) fn findings(project: &Project) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in project.packages() {
        findings.extend(edges(package));
    }
    for absent in ABSENT {
        let tree = format!("tree --prefix none {}", absent.tree);
        let output = project.cargo(&tree).quiet().ignore_stderr().read();
        let output = output.with_context(|| format!("cargo {tree}"))?;
        findings.extend(present(&output, absent));
    }
    Ok(findings)
}

/// The dependencies of a package that are missing in the table.
///
/// All kinds count, including those of tests: a test that needs a forbidden crate belongs elsewhere.
fn edges(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some((_, allowed)) = EDGES.iter().find(|(package, _)| *package == name) else {
        return vec![format!(
            "{name}: the package is in no row of `EDGES` in xtask/src/tidy/edges.rs"
        )];
    };
    let mut findings = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let on = dependency["name"].as_str().unwrap_or_default();
        if !EDGES.iter().any(|(package, _)| *package == on) {
            continue;
        }
        if !allowed.contains(&on) {
            findings.push(format!("{name} must not depend on {on}"));
        }
        let defaults = dependency["uses_default_features"] != false;
        let features = dependency["features"].as_array();
        let features = features.is_some_and(|features| !features.is_empty());
        if on == "zeph-tools" && CONTRACT_ONLY.contains(&name) && (defaults || features) {
            findings.push(format!(
                "{name} takes the contract of {on} only: no features"
            ));
        }
    }
    findings
}

/// The lines of `output`, one package each, that must be absent.
fn present(output: &str, absent: &Absent) -> Vec<String> {
    // The first line is the package itself.
    let mut lines: Vec<&str> = output.lines().skip(1).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut findings = Vec::new();
    for name in absent.names {
        if let Some(line) = lines.iter().find(|line| matches(line, name)) {
            let tree = absent.tree;
            findings.push(format!(
                "`cargo tree {tree}` has `{line}`, but `{name}` must be absent there"
            ));
        }
    }
    findings
}

fn matches(line: &str, name: &str) -> bool {
    if let Some(start) = name.strip_suffix('*') {
        return line.starts_with(start);
    }
    let rest = line.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unlisted_edges_between_packages_are_found() {
        let check = |name: &str, dependencies: Value, expect: &[&str]| {
            let package = json!({"name": name, "dependencies": dependencies});
            assert_eq!(edges(&package), expect, "{package}");
        };
        let on = |name: &str| json!({"name": name, "uses_default_features": false, "features": []});
        check("zeph-tools", json!([on("serde")]), &[]);
        check(
            "zeph-tools",
            json!([on("zeph-llm")]),
            &["zeph-tools must not depend on zeph-llm"],
        );
        check("zeph-core", json!([on("zeph-tools"), on("zeph-llm")]), &[]);
        check(
            "zeph-llm",
            json!([on("xtask")]),
            &["zeph-llm must not depend on xtask"],
        );
        check("zeph-memory", json!([on("zeph-tools")]), &[]);
        let contract = "zeph-memory takes the contract of zeph-tools only: no features";
        check(
            "zeph-memory",
            json!([{"name": "zeph-tools", "uses_default_features": true, "features": []}]),
            &[contract],
        );
        check(
            "zeph-memory",
            json!([{"name": "zeph-tools", "uses_default_features": false, "features": ["file"]}]),
            &[contract],
        );
        check(
            "zeph-new",
            json!([]),
            &["zeph-new: the package is in no row of `EDGES` in xtask/src/tidy/edges.rs"],
        );
    }

    #[test]
    fn absent_names_are_searched_in_a_tree() {
        let absent = |names: &'static [&'static str]| Absent {
            tree: "-p x",
            names,
        };
        let output = "zeph-tools v0.1.0 (path)\ntokio v1.54.0\ntokio feature \"fs\"\nsqlx-core v0.9.0 (*)\nserde v1.0.0\n";
        let check = |names: &'static [&'static str], expect: usize| {
            let found = present(output, &absent(names));
            assert_eq!(found.len(), expect, "{names:?}: {found:?}");
        };
        check(&["tokio"], 1);
        check(&["sqlx*"], 1);
        check(&["sqlx"], 0);
        check(&["serde_json", "tok"], 0);
        check(&["tokio feature \"fs\"", "tokio feature \"process\""], 1);
        // The root package of the tree.
        check(&["zeph-*"], 0);
        assert!(present("", &absent(&["tokio"])).is_empty());
    }
}
