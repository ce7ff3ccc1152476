//! Search for the shell and for other programs on `PATH`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The directories that are searched if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Finds `bash`, or else `sh`, on `path` (the value of `PATH`). Relative entries are skipped, so that no file of a
/// project becomes the shell.
#[must_use]
pub fn find_shell(path: Option<&OsStr>) -> Option<PathBuf> {
    find(&["bash", "sh"], path)
}

/// Finds the first of `names` that is an executable file on `path` (the value of `PATH`). Relative entries are
/// skipped.
#[must_use]
pub fn find(names: &[&str], path: Option<&OsStr>) -> Option<PathBuf> {
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    names.iter().find_map(|name| {
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|candidate| is_executable(candidate))
    })
}

/// Whether `path` is an executable file.
fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Proves SH-1.
    #[test]
    fn bash_comes_before_sh_and_only_executables_count() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        let path = std::env::join_paths([&first, &second]).unwrap();
        let find = || find_shell(Some(&path));
        for folder in [&first, &second] {
            fs::create_dir(folder).unwrap();
        }
        let put = |file: &Path, mode| {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        };
        assert_eq!(find(), None);
        fs::create_dir(first.join("bash")).unwrap();
        put(&first.join("sh"), 0o755);
        assert_eq!(find(), Some(first.join("sh")));
        put(&second.join("bash"), 0o644);
        assert_eq!(find(), Some(first.join("sh")));
        put(&second.join("bash"), 0o755);
        assert_eq!(find(), Some(second.join("bash")));
        assert_eq!(find_shell(Some(OsStr::new("bin:.:"))), None);
    }
}
