//! Suggestions of names that are similar to a missing name.

use std::ffi::{OsStr, OsString};

/// The minimum similarity of a suggested name, from 0 to 1.
const LIKE: f64 = 0.6;

/// Returns up to three of `names` that are similar to `wanted`, in order of similarity.
///
/// Letter case is ignored, so a name that differs only by case is first. A name that contains the other one is
/// similar.
pub(super) fn near_names(wanted: &OsStr, names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let wanted = wanted.to_string_lossy().to_lowercase();
    let mut near: Vec<(f64, OsString)> = names
        .filter_map(|name| {
            let text = name.to_string_lossy().to_lowercase();
            let mut score = strsim::normalized_damerau_levenshtein(&wanted, &text);
            let stem = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
            if stem(&wanted).len() > 2 && stem(&wanted) == stem(&text) {
                score = score.max(0.8);
            }
            (score >= LIKE && !text.starts_with(".zeph-tmp-")).then_some((score, name))
        })
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_most_similar_names_come_first() {
        let check = |wanted: &str, names: &[&str], expect: &[&str]| {
            let names = names.iter().map(OsString::from);
            assert_eq!(near_names(OsStr::new(wanted), names), expect, "{wanted}");
        };
        check("mian.rs", &["main.rs", "lib.rs", "zebra.txt"], &["main.rs"]);
        check("readme.md", &["README.md", "LICENSE"], &["README.md"]);
        check(
            "config.yaml",
            &["config.yml", "config.toml"],
            &["config.yml", "config.toml"],
        );
        check("a1", &["a5", "a4", "a3", "a2", "a10"], &["a10"]);
        check(
            "test1.rs",
            &["test5.rs", "test4.rs", "test3.rs", "test2.rs"],
            &["test2.rs", "test3.rs", "test4.rs"],
        );
        check("x", &["completely-different"], &[]);
    }
}
