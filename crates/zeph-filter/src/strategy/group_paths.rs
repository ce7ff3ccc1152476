//! Paths grouped by folder: the number of paths in each folder, and some names.
//!
//! Generated folders (`node_modules`, `target`, …) become one line each before other folders are reduced. Then
//! the deepest folders of the biggest branch are merged into their parents, so that a big branch does not hide
//! the others. Memory is bounded.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use memchr::memrchr;

use super::generated::generated_end;
use super::top_k_counter::Counts;

/// Folders that are distinguished while paths are added.
const MAX_GROUPS: usize = 2000;
/// Bytes of stored names.
const MAX_BYTES: usize = 1024 * 1024;
/// The number of paths in a folder that are listed in full, and the number of files with a rare extension.
const FEW: u64 = 3;
/// Extensions that are listed for omitted paths.
const ENDINGS: usize = 4;

/// A folder.
#[derive(Debug, Default)]
struct Group {
    /// Paths in the folder, and those below it in folders without their own line.
    count: u64,
    /// The first names.
    names: Vec<String>,
    /// The last name, where [`Self::names`] has not all.
    last: String,
    endings: Counts,
    /// Subfolders without their own line, with the number of their paths.
    below: Counts,
    /// Other paths below the folder.
    uncounted: u64,
}

/// Paths by their folders.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Folders by their names.
    groups: HashMap<String, Group>,
    count: u64,
    bytes: usize,
}

/// Limits for the printed lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Lines, one for each folder.
    pub(super) folders: usize,
    /// Names, shared among the folders.
    pub(super) names: usize,
}

impl Places {
    /// The number of added paths.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a path. The path of a folder may end with a slash.
    pub(super) fn add(&mut self, path: &str) {
        self.count += 1;
        let bare = path.strip_suffix('/').unwrap_or(path);
        let name_at = memrchr(b'/', bare.as_bytes()).map_or(0, |at| at + 1);
        let (folder, name) = path.split_at(name_at);
        let folder = match folder {
            "/" => folder,
            _ => folder.strip_suffix('/').unwrap_or(folder),
        };
        if !self.groups.contains_key(folder) && self.groups.len() >= MAX_GROUPS {
            // The biggest branches lose their deepest folders.
            self.shrink(MAX_GROUPS / 2);
        }
        let room = self.bytes < MAX_BYTES;
        let group = self.groups.entry(folder.to_owned()).or_default();
        group.count += 1;
        if let Some(ending) = ending(name) {
            group.endings.add(ending, 1);
        }
        if room {
            self.bytes += name.len() + size_of::<String>();
            group.names.push(name.to_owned());
        } else {
            group.last.clear();
            group.last.push_str(name);
        }
    }

    /// Merges folders into their parents until there are at most `most`, always in the biggest branch.
    fn shrink(&mut self, most: usize) {
        while self.groups.len() > most {
            let names = self.groups.keys().map(String::as_str).collect();
            let Some((branch, depth)) = biggest_branch(names, most) else {
                return;
            };
            let mut rest: HashMap<String, Group> = HashMap::new();
            for (key, group) in self.take() {
                let (key, below) = match is_within(&key, &branch) {
                    true => cut(&key, depth),
                    false => (key.as_str(), None),
                };
                rest.entry(key.to_owned()).or_default().take(group, below);
            }
            self.groups = rest;
        }
    }

    /// Merges the subfolders of generated folders into these, if there are other folders.
    fn merge_generated(&mut self) {
        let names = self.groups.keys();
        let others = names.filter(|key| generated_end(key).is_none());
        if others.count() < 2 {
            return;
        }
        for (key, group) in self.take() {
            let end = generated_end(&key).unwrap_or(key.len());
            let (head, rest) = key.split_at(end);
            let below = rest.split('/').find(|part| !part.is_empty());
            let folder = self.groups.entry(head.to_owned()).or_default();
            folder.take(group, below);
        }
    }

    /// The folders in the order of their names; none is left.
    fn take(&mut self) -> BTreeMap<String, Group> {
        std::mem::take(&mut self.groups).into_iter().collect()
    }

    /// A line for each folder; of those with few paths, these.
    pub(super) fn lines(mut self, budget: Budget) -> Vec<String> {
        if self.groups.len() > budget.folders {
            self.merge_generated();
        }
        self.shrink(budget.folders);
        let groups = self.take();
        let wants = groups
            .values()
            .map(|group| group.names.len() + group.below.len());
        let shares = share(budget.names, &wants.collect::<Vec<_>>());
        let told = groups.iter().zip(shares);
        let mut lines = Vec::new();
        told.for_each(|((folder, group), names)| group.lines(folder, names, &mut lines));
        lines
    }
}

impl Group {
    fn add_below(&mut self, name: &str, count: u64) {
        if !self.below.add(name, count) {
            self.uncounted += count;
        }
    }

    /// Merges another folder: as the same folder if `below` is `None`, else as the subfolder `below`.
    fn take(&mut self, other: Self, below: Option<&str>) {
        self.count += other.count;
        for (ending, count) in other.endings.sorted() {
            self.endings.add(ending, count);
        }
        match below {
            Some(below) => self.add_below(below, other.count),
            None => {
                self.names.extend(other.names);
                self.last = other.last;
                self.uncounted += other.uncounted;
                for (name, count) in other.below.sorted() {
                    self.add_below(name, count);
                }
            }
        }
    }

    fn lines(&self, folder: &str, names: usize, lines: &mut Vec<String>) {
        let whole = self.names.len() as u64 == self.count && self.count <= FEW;
        if !whole {
            lines.push(self.line(folder, names));
            return;
        }
        let slash = if folder.is_empty() || folder.ends_with('/') {
            ""
        } else {
            "/"
        };
        let paths = self
            .names
            .iter()
            .map(|name| [folder, slash, name.as_str()].concat());
        lines.extend(paths);
    }

    /// Formats a line: `src/ (12): main.rs lib.rs util/ (9) … +1 more`.
    fn line(&self, folder: &str, names: usize) -> String {
        let behind = match folder {
            "" => "",
            "/" => " ",
            _ => "/ ",
        };
        let mut line = format!("{folder}{behind}({}):", self.count);
        let room = names.saturating_sub(self.below.len()).max(names / 2);
        let files = self.names.len().min(room);
        let folders = names - files;
        let listed = self.listed(files);
        let mut told = 0;
        for name in &listed {
            line.push(' ');
            push_name(&mut line, name);
            told += 1;
        }
        for (name, count) in self.below.sorted().into_iter().take(folders) {
            line.push(' ');
            push_name(&mut line, name);
            let _ = write!(line, "/ ({count})");
            told += count;
        }
        if told < self.count {
            let _ = write!(line, " … +{} more", self.count - told);
            let last = match self.names.last().filter(|_| self.last.is_empty()) {
                Some(last) if listed.len() < self.names.len() => last,
                _ => self.last.as_str(),
            };
            if !last.is_empty() {
                line.push_str(", last ");
                push_name(&mut line, last);
            }
            self.push_endings(&mut line);
        }
        line
    }

    /// Selects at most `room` names: those with a rare extension, then the first.
    fn listed(&self, room: usize) -> Vec<&str> {
        if room >= self.names.len() {
            return self.names.iter().map(String::as_str).collect();
        }
        let is_rare = |name: &str| {
            let count = ending(name).and_then(|ending| self.endings.get(ending));
            count.is_none_or(|count| count <= FEW)
        };
        let mut rare = room / 2;
        let mut shown: Vec<bool> = Vec::with_capacity(self.names.len());
        for name in self.names.iter() {
            let show = rare > 0 && is_rare(name);
            rare -= usize::from(show);
            shown.push(show);
        }
        let mut left = room - shown.iter().filter(|show| **show).count();
        for show in shown.iter_mut().filter(|show| !**show) {
            if left == 0 {
                break;
            }
            left -= 1;
            *show = true;
        }
        let named = self.names.iter().zip(shown);
        named
            .filter(|(_, show)| *show)
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// Appends `; of all: 30 .js, 4 .ts, 1 .md`: the most frequent extensions, and a rare one.
    fn push_endings(&self, line: &mut String) {
        let mut endings = self.endings.sorted();
        endings.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let rare = endings.len().saturating_sub(1).max(ENDINGS);
        let told = endings.iter().take(ENDINGS).chain(endings.get(rare));
        for (index, (ending, count)) in told.enumerate() {
            let before = if index == 0 { "; of all:" } else { "," };
            let _ = write!(line, "{before} {count} .{ending}");
        }
    }
}

/// Appends a name, in quotes if it contains a space.
fn push_name(line: &mut String, name: &str) {
    if name.contains(' ') && !name.starts_with('"') {
        let _ = write!(line, "\"{name}\"");
    } else {
        line.push_str(name);
    }
}

/// The maximum length of an extension in bytes.
const MAX_EXTENSION_BYTES: usize = 12;

/// The extension of a file name after its last point.
fn ending(name: &str) -> Option<&str> {
    let name = match name.ends_with('"') {
        true => name.trim_end_matches('"'),
        false => name,
    };
    let from_end = name.bytes().rev();
    let letters = from_end
        .take_while(u8::is_ascii_alphanumeric)
        .take(MAX_EXTENSION_BYTES + 1);
    let start = name.len() - letters.count();
    let ending = &name[start..];
    let fits = (1..=MAX_EXTENSION_BYTES).contains(&ending.len()) && start > 1;
    (fits && name.as_bytes()[start - 1] == b'.').then_some(ending)
}

/// Returns true if a folder is `branch` or inside it. The empty name is the common root of all.
fn is_within(folder: &str, branch: &str) -> bool {
    let rest = folder.strip_prefix(branch);
    rest.is_some_and(|rest| branch.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// The branch that has more than its share of the folders `names`, and the depth to which it is reduced so that its
/// deepest folders become a part of their parents. `None` if there is nothing to reduce.
fn biggest_branch(mut names: Vec<&str>, most: usize) -> Option<(String, usize)> {
    /// A branch with at most this many folders is not reduced if another one can be.
    const SMALL: usize = 4;
    let mut branch = String::new();
    let mut level = 0;
    loop {
        let mut children: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &names {
            if parts(name) > level {
                *children.entry(head(name, level + 1)).or_default() += 1;
            }
        }
        let share = (most / children.len().max(1)).max(SMALL);
        let biggest = children.iter().max_by_key(|(_, count)| **count);
        let Some((child, _)) = biggest.filter(|(_, count)| **count > share) else {
            break;
        };
        branch = (*child).to_owned();
        level += 1;
        names.retain(|name| parts(name) >= level && head(name, level) == branch);
    }
    let deepest = names.iter().map(|name| parts(name)).max()?;
    (deepest > level).then(|| (branch, (deepest - 1).max(level)))
}

/// The first `depth` parts of a path.
fn head(path: &str, depth: usize) -> &str {
    match path {
        "/" => "",
        _ => path
            .match_indices('/')
            .nth(depth.saturating_sub(1))
            .map_or(path, |(at, _)| &path[..at]),
    }
}

/// The number of parts in a path. The root counts as one part.
fn parts(path: &str) -> usize {
    match path {
        "" => 0,
        "/" => 1,
        _ => path.split('/').count(),
    }
}

/// The first `depth` parts of a path, and the part that follows.
fn cut(path: &str, depth: usize) -> (&str, Option<&str>) {
    if parts(path) <= depth {
        return (path, None);
    }
    let slash = depth
        .checked_sub(1)
        .and_then(|nth| path.match_indices('/').nth(nth));
    let end = slash.map_or(0, |(at, _)| at);
    let below = path[end..].split('/').find(|part| !part.is_empty());
    match &path[..end] {
        "" if depth > 0 => ("/", below),
        head => (head, below),
    }
}

/// Distributes `budget` among consumers that want `wants`. A consumer below its fair share receives all it
/// wants. The others share the rest equally.
pub(super) fn share(budget: usize, wants: &[usize]) -> Vec<usize> {
    let mut shares = vec![0; wants.len()];
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|at| (wants[*at], *at));
    let mut left = budget;
    for (served, at) in order.iter().enumerate() {
        let fair = left.div_ceil(wants.len() - served);
        shares[*at] = wants[*at].min(fair).min(left);
        left -= shares[*at];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(paths: &[&str], folders: usize, names: usize) -> Vec<String> {
        let mut places = Places::default();
        paths.iter().for_each(|path| places.add(path));
        places.lines(Budget { folders, names })
    }

    #[test]
    fn folders_have_a_line_each() {
        let mut paths = vec!["a.txt", "src/x/y.rs", "my file.txt", "/z"];
        paths.extend(["src/a.rs", "src/b.rs", "src/c.rs", "src/d e.rs"]);
        assert_eq!(
            told(&paths, 9, 99),
            [
                "a.txt",
                "my file.txt",
                "/z",
                "src/ (4): a.rs b.rs c.rs \"d e.rs\"",
                "src/x/y.rs"
            ]
        );
        assert_eq!(
            told(&paths, 3, 99),
            [
                "a.txt",
                "my file.txt",
                "/z",
                "src/ (5): a.rs b.rs c.rs \"d e.rs\" x/ (1)"
            ]
        );
    }

    #[test]
    fn unlisted_paths_are_counted() {
        let paths: Vec<String> = (0..50).map(|number| format!("a/{number}.js")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).chain(["a/x.ts"]).collect();
        assert_eq!(
            told(&paths, 9, 3),
            ["a/ (51): 0.js 1.js x.ts … +48 more, last x.ts; of all: 50 .js, 1 .ts"]
        );
    }

    #[test]
    fn generated_folders_are_collapsed_first() {
        let mut paths: Vec<String> = (0..90)
            .map(|number| format!("./node_modules/p{number}/x/i.js"))
            .collect();
        paths.extend((0..5).map(|number| format!("./src/m{number}/a.rs")));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let lines = told(&paths, 20, 200);
        assert_eq!(lines.len(), 6, "{lines:#?}");
        assert!(
            lines[0].starts_with("./node_modules/ (90): p0/ (1) p1/ (1)"),
            "{lines:#?}"
        );
        assert_eq!(lines[5], "./src/m4/a.rs");
    }

    #[test]
    fn shares_are_fair() {
        assert_eq!(share(10, &[1, 100, 100]), [1, 5, 4]);
        assert_eq!(share(10, &[2, 3]), [2, 3]);
        assert_eq!(share(0, &[2, 3]), [0, 0]);
        assert!(share(3, &[]).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn every_path_is_counted(paths in proptest::collection::vec("[ab./]{0,9}|node_modules/[ab]/c", 0..60), folders in 1_usize..9, names in 0_usize..30) {
            let mut places = Places::default();
            paths.iter().for_each(|path| places.add(path));
            let lines = places.lines(Budget { folders, names });
            proptest::prop_assert!(lines.len() <= folders * 3);
            let total: u64 = lines.iter().map(|line| match line.split_once('(') {
                Some((_, rest)) => rest[..rest.find(')').unwrap()].parse::<u64>().unwrap(),
                None => 1,
            }).sum();
            proptest::prop_assert_eq!(total, paths.len() as u64);
        }
    }
}
