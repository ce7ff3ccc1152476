//! Folders with generated or fetched content, such as `node_modules` and `target`.

use memchr::memchr_iter;

/// Names of folders whose content tools fetch or generate.
const MADE: &[&str] = &[
    "node_modules",
    "target",
    ".git",
    "__pycache__",
    ".venv",
    "venv",
    "site-packages",
    "dist",
    "build",
    ".next",
    ".gradle",
    ".mypy_cache",
    ".pytest_cache",
    ".cargo",
    "vendor",
    "coverage",
];

/// By the first byte of a name: the lengths of those in [`MADE`] that begin with it, a bit for each.
const MADE_LENGTHS: [u16; 256] = {
    let mut lengths = [0; 256];
    let mut at = 0;
    while at < MADE.len() {
        lengths[MADE[at].as_bytes()[0] as usize] |= 1 << MADE[at].len();
        at += 1;
    }
    lengths
};

/// Whether tools generate or fetch the content of a directory with this name.
pub(super) fn is_made(name: &str) -> bool {
    let first = name.as_bytes().first();
    let lengths = first.map_or(0, |first| MADE_LENGTHS[usize::from(*first)]);
    name.len() < 16 && lengths & (1 << name.len()) != 0 && MADE.contains(&name)
}

/// The end of the first generated folder in `path`, as an offset in bytes.
pub(super) fn made(path: &str) -> Option<usize> {
    let mut start = 0;
    for end in memchr_iter(b'/', path.as_bytes()) {
        if is_made(&path[start..end]) {
            return Some(end);
        }
        start = end + 1;
    }
    None
}

/// The end of the first generated folder in `folder`, which may be one itself.
pub(super) fn made_folder(folder: &str) -> Option<usize> {
    let mut start = 0;
    for part in folder.split('/') {
        let end = start + part.len();
        if is_made(part) {
            return Some(end);
        }
        start = end + 1;
    }
    None
}
