//! The files that a read-only command with Git may execute.
//!
//! A repository can name programs that Git starts (`textconv`, `filter`, `fsmonitor`, …), and not all of them can be turned
//! off by settings. The kernel executes only the programs that the command names, so that these fail.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::shell::program;
use zeph_exec::sandbox::plan::resolve;

/// The directories of the dynamic linker, which the kernel executes for a program.
const LINKER_DIRECTORIES: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
/// The start of the name of the dynamic linker.
const LINKER: &str = "ld-";
/// Git's own programs, relative to the directory of `git`.
const GIT_PROGRAMS: [&str; 3] = [
    "../lib/git-core/git",
    "../libexec/git-core/git",
    "../lib/x86_64-linux-gnu/git-core/git",
];
/// The maximum length of the first line of a script in bytes (`BINPRM_BUF_SIZE`).
const MAX_FIRST_LINE: usize = 256;

/// The files that a command with these programs executes: the shell, the programs as found on `path`, their interpreters,
/// and the dynamic linker. Real paths.
pub(super) fn executables(programs: &[&str], path: Option<&OsStr>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let shells = program::find_shell(path);
    let named = programs
        .iter()
        .filter_map(|name| program::find(&[*name], path));
    for file in shells.into_iter().chain(named) {
        let real = resolve(&file);
        if let Some(interpreter) = interpreter(&real) {
            found.push(resolve(&interpreter));
        }
        if real.file_name() == Some(OsStr::new("git"))
            && let Some(directory) = real.parent()
        {
            let programs = GIT_PROGRAMS.iter().map(|program| directory.join(program));
            found.extend(
                programs
                    .filter(|program| program.exists())
                    .map(|it| resolve(&it)),
            );
        }
        found.push(real);
    }
    found.extend(
        LINKER_DIRECTORIES
            .iter()
            .flat_map(|directory| linkers(directory)),
    );
    found.sort();
    found.dedup();
    found
}

fn linkers(directory: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_linker = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| name.starts_with(LINKER))
    };
    let paths = entries.map(|entry| entry.path()).filter(is_linker);
    paths.map(|path| resolve(&path)).collect()
}

/// The interpreter that the first line of a script names.
fn interpreter(file: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    let opened = File::open(file).ok()?;
    let _ = opened.take(MAX_FIRST_LINE as u64).read_to_end(&mut start);
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let text = std::str::from_utf8(line).ok()?;
    text.split_whitespace().next().map(PathBuf::from)
}
