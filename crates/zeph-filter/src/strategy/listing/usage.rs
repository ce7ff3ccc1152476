//! The output of `du`: sizes of directories, each after its subdirectories.

use super::branches::Branches;
use crate::confidence::FilterConfidence;
use crate::line::{ExitInfo, Line, OwnedLine, Sink};
use crate::strategy::Strategy;

/// Lines that are stored; of more, the deepest directories are dropped.
const MAX_LINES: usize = 20_000;

/// Shows the sizes of as many directories as the budget of their branch allows.
pub(super) struct Usage {
    /// Lines up to which all of them are shown.
    room: usize,
    lines: Vec<OwnedLine>,
    /// Directories with more separators are dropped.
    depth: usize,
    dropped: bool,
}

impl Usage {
    /// Shows about `room` directories.
    pub(super) fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            lines: Vec::new(),
            depth: usize::MAX,
            dropped: false,
        }
    }

    /// Drops the deepest directories while there are too many lines.
    fn shrink(&mut self) {
        while self.lines.len() > MAX_LINES / 2 {
            let depths = self.lines.iter().filter_map(|held| depth(&held.text));
            let deepest = depths.max().unwrap_or_default();
            if deepest <= 1 {
                return;
            }
            self.dropped = true;
            self.depth = deepest - 1;
            let most = self.depth;
            self.lines
                .retain(|held| depth(&held.text).is_none_or(|depth| depth <= most));
        }
    }
}

/// The path of `4.0K<tab>path`.
fn path(line: &str) -> Option<&str> {
    let (size, path) = line.split_once('\t')?;
    let is_size = size.starts_with(|c: char| c.is_ascii_digit()) && size.len() <= 16;
    (is_size && !path.is_empty()).then_some(path)
}

/// The separators in the path of a line.
fn depth(line: &str) -> Option<usize> {
    path(line).map(|path| path.trim_end_matches('/').matches('/').count())
}

/// Whether `path` is inside `folder`.
fn is_inside(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

impl Strategy for Usage {
    fn line(&mut self, line: Line<'_>, _out: &mut dyn Sink) {
        if depth(line.text).is_some_and(|depth| depth > self.depth) {
            return;
        }
        self.lines.push(line.into());
        if self.lines.len() > MAX_LINES {
            self.shrink();
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        let mut branches = Branches::default();
        // Backwards, each directory comes before its subdirectories.
        let lines = std::mem::take(&mut self.lines);
        let mut parents: Vec<&str> = Vec::new();
        for held in lines.iter().rev() {
            let line = held.line();
            let Some(path) = path(line.text) else {
                branches.text(line);
                parents.clear();
                continue;
            };
            while parents.pop_if(|parent| !is_inside(path, parent)).is_some() {}
            let name = path.rsplit('/').find(|part| !part.is_empty());
            match parents.len() {
                0 => branches.text(line),
                level => branches.entry(level, name.unwrap_or(path), line),
            }
            parents.push(path);
        }
        let room = match lines.len() > self.room || self.dropped {
            true => self.room + self.room / 2,
            false => usize::MAX,
        };
        match branches.show(room, out) || self.dropped {
            true => FilterConfidence::Full,
            false => FilterConfidence::Fallback,
        }
    }
}
