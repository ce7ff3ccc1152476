//! The directory in which a command starts.

use std::path::{Path, PathBuf};

use crate::error::ToolError;

/// The maximum length of a path in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Resolves the directory in which a command starts: `project`, or `requested` (relative to it) if that is inside of
/// one of `allowed`. Entries of `allowed` may be relative; an empty list means `project`.
///
/// # Errors
/// - [`ToolError::InvalidParameters`] if `requested` is not a valid path.
/// - [`ToolError::PolicyBlocked`] with the allowed directories if it is outside of them.
/// - [`ToolError::Missing`] if it does not exist.
/// - A permanent failure if it is not a directory.
pub(super) fn resolve(
    requested: Option<&str>,
    project: &Path,
    allowed: &[PathBuf],
) -> Result<PathBuf, ToolError> {
    let Some(requested) = requested else {
        return Ok(project.to_owned());
    };
    if requested.len() > MAX_PATH_BYTES || requested.contains('\0') {
        return Err(ToolError::invalid(format!(
            "`/cwd` expects a path of at most {MAX_PATH_BYTES} bytes without a NUL, got {} bytes",
            requested.len()
        )));
    }
    let path = project.join(requested);
    let roots = roots(project, allowed);
    match canonicalize(&path) {
        Some(real) if Some(&real) == canonicalize(project).as_ref() || inside(&real, &roots) => {
            if real.is_dir() {
                Ok(real)
            } else {
                Err(ToolError::permanent(format!(
                    "the cwd {} is not a directory",
                    path.display()
                )))
            }
        }
        None if path
            .ancestors()
            .find_map(canonicalize)
            .is_some_and(|nearest| inside(&nearest, &roots)) =>
        {
            Err(ToolError::Missing {
                message: format!("the cwd {} does not exist", path.display()),
            })
        }
        _ => Err(ToolError::blocked(format!(
            "cwd {requested:?} is outside the directories where commands may start: {} \
             (`[tools.shell] allowed_paths`)",
            list(&roots)
        ))),
    }
}

/// The resolved directories that may contain `cwd`. Those that do not exist are omitted.
fn roots(project: &Path, allowed: &[PathBuf]) -> Vec<PathBuf> {
    if allowed.is_empty() {
        return canonicalize(project).into_iter().collect();
    }
    allowed
        .iter()
        .filter_map(|root| canonicalize(&project.join(root)))
        .collect()
}

/// The project and the directories in which commands may start, both as configured and resolved.
pub(super) fn protected(project: &Path, allowed: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = vec![project.to_owned()];
    all.extend(allowed.iter().map(|root| project.join(root)));
    all.extend(canonicalize(project));
    all.extend(roots(project, allowed));
    all
}

fn inside(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

fn list(roots: &[PathBuf]) -> String {
    if roots.is_empty() {
        return "none of them exists".to_owned();
    }
    let names: Vec<_> = roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    names.join(", ")
}

#[allow(
    clippy::disallowed_methods,
    reason = "a command may change its directory anyway: this fence says where it starts, and the \
              resolved path is what it starts in"
)]
fn canonicalize(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::category::ToolErrorCategory::{InvalidParameters, PermanentFailure, PolicyBlocked};

    /// Proves SH-1.
    #[test]
    fn cwd_is_inside_the_allowed_directories() {
        let dir = tempfile::tempdir().unwrap();
        let base = canonicalize(dir.path()).unwrap();
        let project = base.join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::create_dir_all(base.join("other/deep")).unwrap();
        fs::create_dir_all(base.join("project-two")).unwrap();
        fs::write(project.join("file"), "").unwrap();
        symlink(base.join("other"), project.join("link")).unwrap();
        let other = [PathBuf::from("../other")];
        let ok = |requested, allowed: &[PathBuf], expect: &Path| {
            assert_eq!(resolve(requested, &project, allowed).unwrap(), expect);
        };
        ok(None, &[], &project);
        ok(None, &other, &project);
        ok(Some("."), &[], &project);
        ok(Some("src"), &[], &project.join("src"));
        ok(Some("src/../src"), &[], &project.join("src"));
        ok(Some("link/deep"), &other, &base.join("other/deep"));
        ok(Some("."), &other, &project);
        let err = |requested: &str, allowed: &[PathBuf], expect| {
            let error = resolve(Some(requested), &project, allowed).unwrap_err();
            assert_eq!(error.category(), expect, "{requested}: {error}");
            error.to_string()
        };
        let text = err("/", &[], PolicyBlocked);
        assert!(text.contains(&project.display().to_string()), "{text}");
        err("..", &[], PolicyBlocked);
        err("link", &[], PolicyBlocked);
        err("../project-two", &[], PolicyBlocked);
        err("../nowhere", &[], PolicyBlocked);
        err("src", &other, PolicyBlocked);
        err(&"x".repeat(5000), &[], InvalidParameters);
        err("a\0", &[], InvalidParameters);
        err("nowhere", &[], PermanentFailure);
        err("file", &[], PermanentFailure);
        err("src", &["/nonexistent-root".into()], PolicyBlocked);
    }
}
