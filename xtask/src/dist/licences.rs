//! The licence texts of the crates in the binary. Equal texts appear once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::dependencies::Dependency;

/// Beginnings of the names of files with a licence or a notice.
const NAMES: &[&str] = &["licen", "copying", "copyright", "notice", "unlicense"];

/// A list of all crates with their licences, and then each text with the crates that it covers.
///
/// # Errors
/// A file cannot be read.
pub(super) fn notices(dependencies: &BTreeMap<String, Dependency>) -> Result<String> {
    let mut list = String::from("Zeph contains these crates under these licences.\n\n");
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for dependency in dependencies.values().filter(|it| it.is_external) {
        let name = format!("{} {}", dependency.name, dependency.version);
        let license = match dependency.license.as_str() {
            "" => "see its text below",
            license => license,
        };
        let found = license_texts(&dependency.folder)?;
        let missing = match found.is_empty() {
            true => " (its package has no file with the text)",
            false => "",
        };
        let _ = writeln!(list, "{name}: {license}{missing}");
        for text in found {
            let words: Vec<&str> = text.split_whitespace().collect();
            let (_, crates) = texts
                .entry(words.join(" "))
                .or_insert_with(|| (text, Vec::new()));
            crates.push(name.clone());
        }
    }
    for (text, crates) in texts.values() {
        let line = "-".repeat(80);
        let _ = write!(
            list,
            "\n{line}\n{}:\n\n{}\n",
            crates.join(", "),
            text.trim()
        );
    }
    Ok(list)
}

/// The texts in the folder of a crate, sorted by file name.
fn license_texts(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            files.push(entry.path());
        }
    }
    files.sort();
    let read = |file| Ok(String::from_utf8_lossy(&std::fs::read(file)?).into_owned());
    files.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_appear_once_with_all_crates() {
        let dir = tempfile::tempdir().unwrap();
        let dependency = |name: &str, text: &str, is_external| {
            let folder = dir.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            if !text.is_empty() {
                std::fs::write(folder.join("LICENSE-MIT"), text).unwrap();
            }
            std::fs::write(folder.join("lib.rs"), "code").unwrap();
            Dependency {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                license: "MIT".to_owned(),
                is_external,
                folder,
                needs: Default::default(),
            }
        };
        let all = [
            dependency("a", "Permission is  granted.\n", true),
            dependency("b", "Permission is granted.", true),
            dependency("bare", "", true),
            dependency("own", "Ours.", false),
        ];
        let all = all.into_iter().map(|it| (it.purl(), it)).collect();
        let text = notices(&all).unwrap();
        assert!(text.contains("a 1.0.0: MIT\nb 1.0.0: MIT\n"), "{text}");
        let bare = "bare 1.0.0: MIT (its package has no file with the text)\n";
        assert!(text.contains(bare), "{text}");
        assert!(
            text.contains("a 1.0.0, b 1.0.0:\n\nPermission is  granted."),
            "{text}"
        );
        assert!(!text.contains("Ours") && !text.contains("code"), "{text}");
    }
}
