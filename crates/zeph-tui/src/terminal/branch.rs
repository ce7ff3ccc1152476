//! The branch of a repository, read from its files.

use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of a file that names a branch.
const MAX_BYTES: u64 = 4096;

/// The current branch of the repository that contains `directory`. `None` outside of a repository and without a branch.
pub(crate) fn branch_of(directory: &Path) -> Option<String> {
    let mut places = directory.ancestors();
    let git = places.find_map(|place| git_directory(&place.join(".git")))?;
    let head = read(&git.join("HEAD"))?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    Some(branch.to_owned())
}

/// The directory behind `.git`: itself, or the one that a worktree names in a file.
fn git_directory(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let target = read(git)?;
    let target = target.trim().strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(target))
}

fn read(file: &Path) -> Option<String> {
    let is_small = fs::metadata(file).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    is_small.then(|| fs::read_to_string(file).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-4c for the branch.
    #[test]
    fn branch_is_found_from_any_directory() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("repository/src");
        fs::create_dir_all(&inside).unwrap();
        assert_eq!(branch_of(&inside), None);
        let git = dir.path().join("repository/.git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(branch_of(&inside).as_deref(), Some("feature/x"));
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), "gitdir: ../repository/.git\n").unwrap();
        assert_eq!(branch_of(&tree).as_deref(), Some("feature/x"));
        fs::write(git.join("HEAD"), "0123456789\n").unwrap();
        assert_eq!(branch_of(&inside), None);
    }
}
