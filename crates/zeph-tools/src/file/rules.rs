//! Rules for readable files: `[tools.file] deny_read` and `allow_read`.
//!
//! Globs are matched against canonical absolute paths. A match of `deny_read` denies the path and all paths
//! below it. If `allow_read` has globs, all paths without a match of them are denied, too.

use std::path::{Path, PathBuf};

use globset::{GlobSet, GlobSetBuilder};

use crate::error::ToolError;
use crate::file::glob;
use crate::gate::path_globs::{compile, plain_base};

/// An invalid glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{list}`: the glob {glob:?} cannot be used: {reason}")]
#[non_exhaustive]
pub struct RuleError {
    /// `deny_read` or `allow_read`.
    pub list: &'static str,
    /// The glob as written.
    pub glob: String,
    /// The reason.
    pub reason: String,
}

/// The globs of one list.
#[derive(Debug, Clone, Default)]
struct List {
    set: GlobSet,
    /// The configured text of each glob in the set.
    written: Vec<String>,
    /// The globs of the set: absolute, or with the prefix `**`.
    globs: Vec<String>,
}

/// Returns the glob that matches `path` and all paths below it.
#[must_use]
pub fn literal(path: &Path) -> String {
    // A wildcard replaces invalid UTF-8.
    globset::escape(&path.to_string_lossy()).replace(char::REPLACEMENT_CHARACTER, "*")
}

/// The rules for readable files. Without rules, all files are readable.
#[derive(Debug, Clone, Default)]
pub struct ReadRules {
    deny: List,
    allow: List,
}

/// The treatment of an entry in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// The entry is a possible result.
    Seen,
    /// The entry is not a result, but its descendants may be.
    Passed,
    /// The entry and its descendants are skipped.
    LeftOut,
}

impl ReadRules {
    /// Compiles the rules of the two lists. `~` is replaced by `home`.
    ///
    /// If a glob begins with the path of a link, it also applies to the current target of the link.
    ///
    /// # Errors
    /// If a glob is invalid, or could never match.
    pub fn new(deny: &[String], allow: &[String], home: Option<&Path>) -> Result<Self, RuleError> {
        Ok(Self {
            deny: List::new("deny_read", deny, home)?,
            allow: List::new("allow_read", allow, home)?,
        })
    }

    /// Returns true if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deny.written.is_empty() && self.allow.written.is_empty()
    }

    /// The reason to deny reading `path` (canonical, absolute), with the name of the rule.
    #[must_use]
    pub fn refusal(&self, path: &Path) -> Option<String> {
        if let Some(rule) = self.denied(path) {
            return Some(rule);
        }
        if self.allow.written.is_empty() || self.allow.matching(path).is_some() {
            return None;
        }
        let mut rules = self.allow.written.clone();
        rules.dedup();
        Some(format!(
            "`[tools.file] allow_read` permits only {}",
            rules.join(", ")
        ))
    }

    /// Returns true if any path is denied.
    #[must_use]
    pub fn denies(&self) -> bool {
        !self.deny.written.is_empty()
    }

    /// The globs of `deny_read`: absolute, or with the prefix `**`.
    pub(crate) fn deny_globs(&self) -> &[String] {
        &self.deny.globs
    }

    /// Returns true if `deny_read` matches `path` itself, not only a parent directory.
    pub(crate) fn denies_itself(&self, path: &Path) -> bool {
        self.deny.set.is_match(path)
    }

    /// The reason to deny reading at and below `path`.
    pub(crate) fn denied(&self, path: &Path) -> Option<String> {
        if self.deny.written.is_empty() {
            return None;
        }
        let rule = path
            .ancestors()
            .find_map(|above| self.deny.matching(above))?;
        Some(format!("`[tools.file] deny_read` has {rule:?}"))
    }

    /// The treatment of the entry at `path` in a search. Its directory is not denied.
    pub(super) fn entry(&self, path: &Path) -> Entry {
        if self.is_empty() {
            Entry::Seen
        } else if self.deny.matching(path).is_some() {
            Entry::LeftOut
        } else if self.allow.written.is_empty() || self.allow.matching(path).is_some() {
            Entry::Seen
        } else {
            Entry::Passed
        }
    }
}

/// The error for a denied read of `shown`.
pub(super) fn refused(shown: &str, reason: &str) -> ToolError {
    ToolError::blocked(format!("{shown} may not be read: {reason}"))
}

impl List {
    fn new(list: &'static str, globs: &[String], home: Option<&Path>) -> Result<Self, RuleError> {
        let mut set = GlobSetBuilder::new();
        let mut written = Vec::new();
        let mut all = Vec::new();
        for text in globs {
            let failed = |reason: String| RuleError {
                list,
                glob: text.clone(),
                reason,
            };
            for glob in forms(text, home).map_err(failed)? {
                set.add(compile(&glob).map_err(|error| failed(error.kind().to_string()))?);
                written.push(text.clone());
                all.push(glob);
            }
        }
        let set = set.build().map_err(|error| RuleError {
            list,
            glob: error.glob().unwrap_or_default().to_owned(),
            reason: error.kind().to_string(),
        })?;
        Ok(Self {
            set,
            written,
            globs: all,
        })
    }

    /// The configured glob that matches `path`.
    fn matching(&self, path: &Path) -> Option<&str> {
        let first = self.set.matches(path).into_iter().min()?;
        self.written.get(first).map(String::as_str)
    }
}

/// Expands `text` to absolute globs, with and without a final `/**`, and with the real path of its directory
/// prefix.
fn forms(text: &str, home: Option<&Path>) -> Result<Vec<String>, String> {
    if !glob::is_bounded(text) {
        return Err("it is too long".to_owned());
    }
    let absolute = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = home.and_then(Path::to_str);
            let home = home.ok_or("there is no home directory for `~`")?;
            format!("{}{rest}", globset::escape(home.trim_end_matches('/')))
        }
        Some(_) => return Err("`~user` is not supported; only `~/` is".to_owned()),
        None => text.to_owned(),
    };
    let absolute = match absolute.trim_end_matches('/') {
        "" if absolute.is_empty() => return Err("it is empty".to_owned()),
        "" => "/".to_owned(),
        rest => rest.to_owned(),
    };
    if !absolute.starts_with('/') && !absolute.starts_with("**") {
        return Err("it can match no absolute path: begin it with `/`, `~/` or `**/`".to_owned());
    }
    let mut parts = absolute.split('/').skip(1);
    if parts.any(|part| matches!(part, "" | "." | "..")) && absolute != "/" {
        return Err("it has an empty part, `.` or `..`, which no real path has".to_owned());
    }
    let mut forms = vec![absolute];
    if let Some(real) = real_form(&forms[0]) {
        forms.push(real);
    }
    // A glob for the contents of a directory also applies to the directory.
    for index in 0..forms.len() {
        if let Some(directory) = forms[index].strip_suffix("/**")
            && !directory.is_empty()
        {
            forms.push(directory.to_owned());
        }
    }
    Ok(forms)
}

/// `glob` with the real path of its plain directories, if that differs.
fn real_form(glob: &str) -> Option<String> {
    let path = Path::new(glob);
    let plain = plain_base(path);
    let (there, real) = plain
        .ancestors()
        .find_map(|above| Some((above, real_path(above)?)))?;
    if there == real {
        return None;
    }
    let rest = path.strip_prefix(there).ok()?.to_str()?;
    let real = globset::escape(real.to_str()?);
    Some(match rest {
        "" => real,
        rest => format!("{}/{rest}", real.trim_end_matches('/')),
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "rules match real paths; their fixed prefix is resolved once"
)]
pub(super) fn real_path(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(deny: &[&str], allow: &[&str]) -> ReadRules {
        let owned = |globs: &[&str]| -> Vec<String> {
            globs.iter().map(|glob| (*glob).to_owned()).collect()
        };
        let home = Some(Path::new("/h[1]"));
        ReadRules::new(&owned(deny), &owned(allow), home).expect("globs")
    }

    /// Proves FILE-4: the meaning of globs, and that deny always takes precedence.
    #[test]
    fn globs_match_absolute_paths() {
        let check = |deny: &[&str], allow: &[&str], path: &str, permitted| {
            let refusal = rules(deny, allow).refusal(Path::new(path));
            assert_eq!(
                refusal.is_none(),
                permitted,
                "{deny:?} {allow:?} {path}: {refusal:?}"
            );
        };
        check(&[], &[], "/a", true);
        check(&["/a/*.key"], &[], "/a/b.key", false);
        check(&["/a/*.key"], &[], "/a/b/c.key", true);
        check(&["/a/**/*.key"], &[], "/a/b/c/d.key", false);
        check(&["/a/**/*.key"], &[], "/a/d.key", false);
        check(&["**/.env"], &[], "/.env", false);
        check(&["**/.env"], &[], "/a/b/.env", false);
        check(&["**/.env"], &[], "/a/b/.envrc", true);
        check(&["**/.env{,.local}"], &[], "/a/.env.local", false);
        check(&["**/.env{,.local}"], &[], "/a/.env", false);
        check(&["/a/?.txt"], &[], "/a/b.txt", false);
        check(&["/a/?.txt"], &[], "/a//.txt", true);
        check(&["/a/[a-c]"], &[], "/a/b", false);
        check(&["/a/[!a-c]"], &[], "/a/b", true);
        check(&["/a/{b,c}/d"], &[], "/a/c/d", false);
        check(&["~/.ssh/**"], &[], "/h[1]/.ssh/id", false);
        check(&["~/.ssh/**"], &[], "/h1/.ssh/id", true);
        check(&["~"], &[], "/h[1]/x", false);
        // A directory includes all paths below it, but not its parents.
        check(&["/a/secret"], &[], "/a/secret/deep/f", false);
        check(&["/a/secret/"], &[], "/a/secret/deep/f", false);
        check(&["/a/secret/**"], &[], "/a/secret", false);
        check(&["/a/secret"], &[], "/a/secrets", true);
        check(&["/a/secret"], &[], "/a", true);
        check(&["/"], &[], "/a", false);
        // Deny takes precedence. Then only the other list permits paths.
        check(&[], &["/a/**"], "/a/b/c", true);
        check(&[], &["/a/**"], "/a", true);
        check(&[], &["/a/**"], "/b", false);
        check(&[], &["/a/*"], "/a/b/c", false);
        check(&["/a/b"], &["/a/**"], "/a/b", false);
        check(&["/a/**"], &["/a/b"], "/a/b", false);
    }

    #[test]
    fn refusal_names_the_rule() {
        let rules = rules(&["**/*.pem"], &["/a/**", "/b"]);
        let refusal = |path| rules.refusal(Path::new(path)).expect("refused");
        assert_eq!(
            refusal("/a/x.pem"),
            "`[tools.file] deny_read` has \"**/*.pem\""
        );
        assert_eq!(
            refusal("/c"),
            "`[tools.file] allow_read` permits only /a/**, /b"
        );
    }

    /// Proves FILE-4 in part: a rule that protects nothing is an error.
    #[test]
    fn glob_that_cannot_match_is_an_error() {
        let check = |glob: &str, expect: &str| {
            let globs = [glob.to_owned()];
            let error = ReadRules::new(&globs, &[], None).expect_err(glob);
            assert!(error.to_string().contains(expect), "{error}");
            assert_eq!((error.list, error.glob.as_str()), ("deny_read", glob));
            let error = ReadRules::new(&[], &globs, None).expect_err(glob);
            assert_eq!(error.list, "allow_read");
        };
        check(".env", "begin it with");
        check("secrets/**", "begin it with");
        check("", "empty");
        check("~/x", "no home");
        check("~root/x", "`~user` is not supported");
        check("/a/../b", "`..`");
        check("/a//b", "empty part");
        check("/a/[b", "unclosed");
        check("/a/{b", "unclosed");
        check(&format!("/{}", "?".repeat(2000)), "too long");
    }

    #[test]
    fn rule_applies_to_the_target_of_its_link() {
        let dir = tempfile::tempdir().expect("a directory");
        let real = real_path(dir.path()).expect("a directory");
        std::fs::create_dir(real.join("real")).expect("a directory");
        std::os::unix::fs::symlink("real", real.join("link")).expect("a link");
        let glob = format!("{}/link/**", real.display());
        let rules = rules(&[&glob], &[]);
        assert!(rules.refusal(&real.join("real/f")).is_some());
        assert!(rules.refusal(&real.join("link/f")).is_some());
        assert!(rules.refusal(&real.join("f")).is_none());
    }

    proptest! {
        /// Proves FILE-4: a denied path remains denied, regardless of the allowed ones.
        #[test]
        fn deny_always_wins(
            deny in "/[ab*?]{1,3}(/[ab*?]{1,3})?", allow in "/[ab*?]{1,3}(/\\*\\*)?",
            path in "/[ab]{1,3}(/[ab]{1,3}){0,2}",
        ) {
            let alone = rules(&[&deny], &[]).refusal(Path::new(&path));
            let both = rules(&[&deny], &[&allow]).refusal(Path::new(&path));
            prop_assert!(alone.is_none() || both == alone);
        }

        #[test]
        fn no_glob_panics(glob in ".{0,20}", home in "/.{0,9}") {
            let _ = ReadRules::new(&[glob], &[], Some(Path::new(&home)));
        }
    }
}
