//! The software bill of materials: CycloneDX 1.5 as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dependencies::Dependency;

/// The SBOM of the binary. It has no time and no serial number, so that two runs write the same bytes.
pub(super) fn cyclonedx(version: &str, dependencies: &BTreeMap<String, Dependency>) -> String {
    let own = format!("pkg:cargo/zeph@{version}");
    let components: Vec<Value> = dependencies
        .iter()
        .filter(|(purl, _)| **purl != own)
        .map(|(purl, dependency)| component("library", purl, dependency))
        .collect();
    let graph: Vec<Value> = dependencies
        .iter()
        .map(|(purl, dependency)| json!({"ref": purl, "dependsOn": dependency.needs}))
        .collect();
    let subject = dependencies.get(&own);
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject.map(|it| component("application", &own, it))},
        "components": components,
        "dependencies": graph,
    });
    format!("{sbom:#}\n")
}

fn component(kind: &str, purl: &str, dependency: &Dependency) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": purl,
        "name": dependency.name,
        "version": dependency.version,
        "purl": purl,
    });
    if !dependency.license.is_empty() {
        component["licenses"] = json!([{"expression": dependency.license}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sbom_lists_components_and_their_dependencies() {
        let dependency = |name: &str, needs: &[&str]| Dependency {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: "MIT".to_owned(),
            is_external: true,
            folder: std::path::PathBuf::new(),
            needs: needs.iter().map(|&purl| purl.to_owned()).collect(),
        };
        let all = [
            dependency("zeph", &["pkg:cargo/a@1.0.0"]),
            dependency("a", &[]),
        ];
        let all = all.into_iter().map(|it| (it.purl(), it)).collect();
        let sbom: Value = serde_json::from_str(&cyclonedx("1.0.0", &all)).unwrap();
        assert_eq!(sbom["metadata"]["component"]["name"], "zeph");
        assert_eq!(
            sbom["components"],
            json!([{"type": "library", "bom-ref": "pkg:cargo/a@1.0.0", "name": "a", "version": "1.0.0",
                "purl": "pkg:cargo/a@1.0.0", "licenses": [{"expression": "MIT"}]}])
        );
        assert_eq!(
            sbom["dependencies"][1],
            json!({"ref": "pkg:cargo/zeph@1.0.0", "dependsOn": ["pkg:cargo/a@1.0.0"]})
        );
    }
}
