//! Landlock: limits where a thread and its descendants may write, and hides a few files from reading.
//!
//! The kernel refuses other writes with EACCES (EXDEV for some links and renames), and refuses mounting. Landlock only
//! grants access. To hide files, every other entry of the directories above them is granted.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::plan::Plan;

/// The handled version: Linux 6.10. On older kernels, the rights that they know are handled.
const VERSION: ABI = ABI::V5;

/// The maximum number of granted entries in directories above unreadable paths. With more entries, reading is not
/// limited.
const MAX_READABLE: usize = 4096;

/// Limits the calling thread to the files of `plan`: those that it may write, read and execute. Returns the enforced
/// version, or `None` if the kernel has no Landlock.
///
/// A path that cannot be opened is not granted. No path may contain a symbolic link: a command that can write to a
/// parent directory could have placed one there.
///
/// # Errors
/// If the kernel has Landlock and refuses, for example for lack of memory or descriptors.
pub(super) fn confine(plan: &Plan) -> io::Result<Option<u32>> {
    let mut readable = beside(&plan.unreadable).unwrap_or_default();
    let mut handled = AccessFs::from_write(VERSION);
    if !readable.is_empty() {
        handled |= AccessFs::ReadFile;
        readable.extend_from_slice(&plan.shared);
    }
    if plan.executable.is_some() {
        handled |= AccessFs::Execute;
    }
    let mut ruleset = Ruleset::default()
        .handle_access(handled)
        .map_err(io::Error::other)?;
    if plan.isolated {
        // Older kernels have no scopes.
        ruleset = ruleset
            .scope(Scope::from_all(ABI::V6))
            .map_err(io::Error::other)?;
    }
    let mut ruleset = ruleset.create().map_err(io::Error::other)?;
    for path in &plan.writable {
        if let Ok(opened) = open(path) {
            // A writable file is not executable, if the executable ones are listed.
            let granted = grant(handled, &opened)? & !AccessFs::Execute;
            ruleset = ruleset
                .add_rule(PathBeneath::new(opened, granted))
                .map_err(io::Error::other)?;
        }
    }
    for path in &readable {
        if let Ok(opened) = open(path) {
            ruleset = ruleset
                .add_rule(PathBeneath::new(opened, AccessFs::ReadFile))
                .map_err(io::Error::other)?;
        }
    }
    for path in plan.executable.iter().flatten() {
        if let Ok(opened) = open(path) {
            ruleset = ruleset
                .add_rule(PathBeneath::new(opened, AccessFs::Execute))
                .map_err(io::Error::other)?;
        }
    }
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Ok(None),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(Some(effective_abi as u32)),
        _ => Ok(None),
    }
}

/// Every entry of the directories above `paths` that is neither one of `paths` nor above one. `None` if a directory
/// cannot be listed or has too many entries.
fn beside(paths: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let mut above: Vec<&Path> = paths
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .collect();
    above.sort();
    above.dedup();
    let mut found = Vec::new();
    for directory in above {
        // No entry below an unreadable directory is granted.
        if paths.iter().any(|path| directory.starts_with(path)) {
            continue;
        }
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for entry in entries {
            let entry = entry.ok()?.path();
            if !paths.iter().any(|path| path.starts_with(&entry)) {
                found.push(entry);
            }
        }
        if found.len() > MAX_READABLE {
            return None;
        }
    }
    Some(found)
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )
}

/// All write rights except the creation of devices: root could access any disk through one.
fn grant(handled: BitFlags<AccessFs>, opened: &OwnedFd) -> io::Result<BitFlags<AccessFs>> {
    let directory = FileType::from_raw_mode(fstat(opened)?.st_mode) == FileType::Directory;
    let granted = if directory {
        handled
    } else {
        handled & AccessFs::from_file(VERSION)
    };
    Ok(granted & !(AccessFs::MakeChar | AccessFs::MakeBlock))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Proves SH-20: the entries next to unreadable paths are granted at each level, and nothing above or below them.
    #[test]
    fn entries_next_to_unreadable_paths_are_readable() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        for path in [
            "home/.local/share/zeph/db",
            "home/.local/share/other/x",
            "home/project/x",
            "home/db",
        ] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "").unwrap();
        }
        let check = |unreadable: &[&str], readable: &[&str]| {
            let paths: Vec<PathBuf> = unreadable.iter().map(|path| at(path)).collect();
            let found = beside(&paths).unwrap();
            let mut own: Vec<&PathBuf> = found
                .iter()
                .filter(|path| path.starts_with(directory.path()))
                .collect();
            own.sort();
            let expect: Vec<PathBuf> = readable.iter().map(|path| at(path)).collect();
            assert_eq!(own, expect.iter().collect::<Vec<_>>(), "{unreadable:?}");
            assert!(found.contains(&PathBuf::from("/proc")));
        };
        check(
            &["home/.local/share/zeph"],
            &["home/.local/share/other", "home/db", "home/project"],
        );
        check(
            &["home/.local/share/zeph", "home/db"],
            &["home/.local/share/other", "home/project"],
        );
        check(
            &["home/.local/share/zeph", "home/.local/share/zeph/db"],
            &["home/.local/share/other", "home/db", "home/project"],
        );
        check(
            &["home/none/zeph"],
            &["home/.local", "home/db", "home/project"],
        );
        assert_eq!(beside(&[]), Some(Vec::new()));
    }
}
