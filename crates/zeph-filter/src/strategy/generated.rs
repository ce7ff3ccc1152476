//! Folders with generated or fetched content, such as `node_modules` and `target`.

/// Names of folders whose content tools fetch or generate.
const GENERATED: &[&str] = &[
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

/// Whether tools generate or fetch the content of a directory with this name.
pub(super) fn is_generated(name: &str) -> bool {
    GENERATED.contains(&name)
}

/// The end of the first generated folder that contains `path`, as an offset in bytes.
pub(super) fn generated_parent_end(path: &str) -> Option<usize> {
    path.rsplit_once('/')
        .and_then(|(folder, _)| generated_end(folder))
}

/// The end of the first generated folder in `folder`, which may be one itself.
pub(super) fn generated_end(folder: &str) -> Option<usize> {
    let mut start = 0;
    for part in folder.split('/') {
        let end = start + part.len();
        if is_generated(part) {
            return Some(end);
        }
        start = end + 1;
    }
    None
}
