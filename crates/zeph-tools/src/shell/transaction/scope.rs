//! The files of a transaction: `[tools.shell] transaction_scope`.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The maximum length of a glob in bytes. The number of braces is limited too, because the glob library recurses into
/// them.
const MAX_GLOB_BYTES: usize = 1024;
const MAX_BRACES: usize = 32;

/// An invalid glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the glob {glob:?} cannot be used: {reason}")]
#[non_exhaustive]
pub struct ScopeError {
    /// The index in the list, from 0.
    pub index: usize,
    /// The glob as written.
    pub glob: String,
    /// The reason.
    pub reason: String,
}

/// The files that are saved before a command and restored after it, by paths relative to the working directory. The
/// scope includes every path that a glob matches, and all files in a matching directory.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    set: GlobSet,
    /// The directories that all matches of the globs are in.
    starts: Vec<PathBuf>,
}

impl Scope {
    /// Compiles these globs.
    ///
    /// # Errors
    /// All [`ScopeError`]s of `globs`.
    pub fn new(globs: &[String]) -> Result<Self, Vec<ScopeError>> {
        let mut set = GlobSetBuilder::new();
        let mut starts = Vec::new();
        let mut errors = Vec::new();
        for (index, text) in globs.iter().enumerate() {
            match normal(text).and_then(|glob| {
                let built = GlobBuilder::new(&glob)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .empty_alternates(true)
                    .build();
                let built = built.map_err(|error| error.kind().to_string())?;
                Ok((start_of(&glob), built))
            }) {
                Ok((start, glob)) => {
                    starts.push(start);
                    set.add(glob);
                }
                Err(reason) => errors.push(ScopeError {
                    index,
                    glob: text.clone(),
                    reason,
                }),
            }
        }
        let set = set.build().unwrap_or_else(|error| {
            errors.push(ScopeError {
                index: 0,
                glob: error.glob().unwrap_or_default().to_owned(),
                reason: error.kind().to_string(),
            });
            GlobSet::empty()
        });
        if errors.is_empty() {
            Ok(Self { set, starts })
        } else {
            Err(errors)
        }
    }

    /// Whether a glob matches `path` itself.
    pub(super) fn names(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }

    /// Whether an entry of the directory `path` may be in scope.
    pub(super) fn leads_into(&self, path: &Path) -> bool {
        self.starts
            .iter()
            .any(|start| start.starts_with(path) || path.starts_with(start))
    }
}

/// The glob without `./` at its start and `/` at its end, if it matches paths below a directory.
fn normal(text: &str) -> Result<String, String> {
    if text.len() > MAX_GLOB_BYTES || text.bytes().filter(|byte| *byte == b'{').count() > MAX_BRACES
    {
        return Err("it is too long".to_owned());
    }
    let glob = text.trim_start_matches("./").trim_end_matches('/');
    if glob.is_empty() || glob == "." {
        return match text {
            "." | "./" => Ok("**".to_owned()),
            _ => Err("it is empty, or the root of all files".to_owned()),
        };
    }
    if text.starts_with('/') || text.starts_with('~') {
        return Err("it is absolute; it must be relative to the working directory".to_owned());
    }
    if glob.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("it has an empty part, `.` or `..`".to_owned());
    }
    Ok(glob.to_owned())
}

/// The leading components of a glob that are plain names.
fn start_of(glob: &str) -> PathBuf {
    Path::new(glob)
        .components()
        .take_while(|part| match part {
            Component::Normal(name) => name
                .to_str()
                .is_some_and(|name| !name.contains(['*', '?', '[', '{', '\\'])),
            _ => false,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(globs: &[&str]) -> Result<Scope, Vec<ScopeError>> {
        let globs: Vec<_> = globs.iter().map(|glob| (*glob).to_owned()).collect();
        Scope::new(&globs)
    }

    /// Proves SH-30.
    #[test]
    fn globs_are_relative_to_the_working_directory() {
        let check = |globs: &[&str], path: &str, names: bool, leads: bool| {
            let scope = scope(globs).expect("globs");
            assert_eq!(scope.names(path.as_ref()), names, "{globs:?} {path}");
            assert_eq!(scope.leads_into(path.as_ref()), leads, "{globs:?} {path}");
        };
        check(&["**"], "a", true, true);
        check(&["**"], ".git/x", true, true);
        check(&["."], "a/b", true, true);
        check(&["src"], "src", true, true);
        check(&["./src/"], "src", true, true);
        check(&["src"], "srcs", false, false);
        check(&["src/**"], "src", false, true);
        check(&["src/**"], "src/a", true, true);
        check(&["src/**"], "target", false, false);
        check(&["a/b/*.rs"], "a", false, true);
        check(&["a/b/*.rs"], "a/c", false, false);
        check(&["a/b/*.rs"], "a/b/x.rs", true, true);
        check(&["*.rs"], "a.rs", true, true);
        check(&["*.rs"], "a/b.rs", false, true);
        check(&["**/*.rs"], "a/b.rs", true, true);
        check(&["{src,docs}/**"], "docs/x", true, true);
        check(&["src", "docs"], "docs", true, true);
        check(&[], "a", false, false);
    }

    #[test]
    fn invalid_glob_is_named() {
        let check = |glob: &str, expect: &str| {
            let errors = scope(&["src", glob]).expect_err(glob);
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert_eq!(errors[0].index, 1);
            assert!(errors[0].to_string().contains(expect), "{errors:?}");
        };
        check("", "empty");
        check("/", "empty, or the root");
        check("/etc/**", "absolute");
        check("~/x", "absolute");
        check("../x", "`..`");
        check("a//b", "empty part");
        check("a[", "unclosed");
        check(&"?".repeat(2000), "too long");
    }
}
