//! Tests of rollbacks: directory trees, commands, and the trees after a rollback.

#![allow(clippy::disallowed_methods, reason = "the tests look at whole trees")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::restore::{Failure, restore};
use super::scope::Scope;
use super::snapshot::{Snapshot, SnapshotError, Wanted, take};
use crate::event::RolledBack;

/// A working directory `root`, a directory `outside` of it, and a directory for snapshots.
struct World {
    dir: TempDir,
    scope: Scope,
    database: Option<PathBuf>,
    max_bytes: u64,
}

impl World {
    fn new(scope: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["root", "outside"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        fs::write(dir.path().join("outside/kept"), "kept").expect("a file");
        let scope: Vec<String> = scope.iter().map(|glob| (*glob).to_owned()).collect();
        Self {
            dir,
            scope: Scope::new(&scope).expect("a scope"),
            database: None,
            max_bytes: 0,
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn base(&self) -> PathBuf {
        self.dir.path().join("base")
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    fn take(&self) -> Result<Snapshot, SnapshotError> {
        self.take_with(&CancellationToken::new())
    }

    fn take_with(&self, cancel: &CancellationToken) -> Result<Snapshot, SnapshotError> {
        let wanted = Wanted {
            root: &self.root(),
            scope: &self.scope,
            database: self.database.as_deref(),
            base: &self.base(),
            max_bytes: self.max_bytes,
        };
        take(&wanted, cancel)
    }

    #[track_caller]
    fn restore(&self, snapshot: &Snapshot) -> RolledBack {
        let (done, failures) = restore(snapshot, &self.scope);
        assert!(failures.is_empty(), "{failures:?}");
        done
    }

    fn failures(&self, snapshot: &Snapshot) -> Vec<Failure> {
        restore(snapshot, &self.scope).1
    }
}

/// All entries below `dir`: the mode, and the content or the target.
fn dump(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata().expect("metadata");
        let content = if metadata.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            target.as_os_str().as_bytes().to_vec()
        } else if metadata.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
            Vec::new()
        } else if metadata.is_file() {
            fs::read(&path).expect("a file")
        } else {
            b"special".to_vec()
        };
        let relative = path.strip_prefix(dir).expect("below").to_owned();
        found.insert(relative, (metadata.mode(), content));
    }
    found
}

/// The inode numbers and times that show whether a file was touched.
fn traces(dir: &Path) -> BTreeMap<PathBuf, (u64, i64, i64)> {
    let paths = dump(dir).into_keys();
    paths
        .map(|path| {
            let metadata = dir.join(&path).symlink_metadata().expect("metadata");
            (
                path,
                (metadata.ino(), metadata.mtime(), metadata.mtime_nsec()),
            )
        })
        .collect()
}

#[derive(Debug, Clone)]
enum Step {
    Write(String, Vec<u8>),
    Append(String, Vec<u8>),
    Directory(String),
    Remove(String),
    Rename(String, String),
    Link(String, String),
    HardLink(String, String),
    Mode(String, u32),
}

/// Applies a step, if possible.
fn act(root: &Path, step: &Step) {
    use std::io::Write as _;
    let _ = match step {
        Step::Write(path, content) => fs::write(root.join(path), content),
        Step::Append(path, content) => fs::OpenOptions::new()
            .append(true)
            .open(root.join(path))
            .and_then(|mut file| file.write_all(content)),
        Step::Directory(path) => fs::create_dir_all(root.join(path)),
        Step::Remove(path) => {
            let path = root.join(path);
            match path.symlink_metadata() {
                Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
                _ => fs::remove_file(path),
            }
        }
        Step::Rename(from, to) => fs::rename(root.join(from), root.join(to)),
        Step::Link(path, target) => symlink(target, root.join(path)),
        Step::HardLink(from, to) => fs::hard_link(root.join(from), root.join(to)),
        // Only modes of files inside the tree are changed.
        Step::Mode(path, mode) => match root.join(path).symlink_metadata() {
            Ok(metadata) if !metadata.is_symlink() => {
                fs::set_permissions(root.join(path), Permissions::from_mode(*mode))
            }
            _ => Ok(()),
        },
    };
}

fn a_path() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof!["[abc]", Just(".h".to_owned())], 1..4)
        .prop_map(|parts| parts.join("/"))
}

/// Random steps. Modes that lock out their owner are included only with `wild`.
fn steps(wild: bool) -> impl Strategy<Value = Vec<Step>> {
    let content = || proptest::collection::vec(any::<u8>(), 0..40);
    let modes: Vec<u32> = match wild {
        true => vec![0, 0o111, 0o200, 0o4755, 0o1777, 0o444, 0o600],
        false => vec![0o755, 0o700, 0o500, 0o555, 0o644, 0o2755],
    };
    let targets = vec![
        "a",
        "b/c",
        "../outside",
        "..",
        ".",
        "nowhere",
        "../outside/kept",
    ];
    let step = prop_oneof![
        4 => (a_path(), content()).prop_map(|(path, bytes)| Step::Write(path, bytes)),
        2 => (a_path(), content()).prop_map(|(path, bytes)| Step::Append(path, bytes)),
        4 => a_path().prop_map(Step::Directory),
        2 => a_path().prop_map(Step::Remove),
        2 => (a_path(), a_path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (a_path(), proptest::sample::select(targets))
            .prop_map(|(path, target)| Step::Link(path, target.to_owned())),
        1 => (a_path(), a_path()).prop_map(|(from, to)| Step::HardLink(from, to)),
        2 => (a_path(), proptest::sample::select(modes))
            .prop_map(|(path, mode)| Step::Mode(path, mode)),
    ];
    proptest::collection::vec(step, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Proves SH-33: after any command, the tree is restored. Files outside and unchanged files are not touched.
    #[test]
    fn rollback_restores_the_initial_tree(before in steps(false), meanwhile in steps(true)) {
        let world = World::new(&["**"]);
        let root = world.root();
        before.iter().for_each(|step| act(&root, step));
        let (tree, marks) = (dump(&root), traces(&root));
        let snapshot = world.take().expect("a snapshot");
        prop_assert_eq!(&dump(&root), &tree);
        meanwhile.iter().for_each(|step| act(&root, step));
        let outside = dump(&world.outside());
        let changed = traces(&root);
        world.restore(&snapshot);
        prop_assert_eq!(&dump(&root), &tree);
        prop_assert_eq!(&dump(&world.outside()), &outside);
        let after = traces(&root);
        for (path, mark) in &marks {
            if changed.get(path) == Some(mark) && !tree[path].1.is_empty() {
                prop_assert_eq!(&after[path], mark, "{}", path.display());
            }
        }
        // The second restoration changes nothing.
        prop_assert_eq!(world.restore(&snapshot), RolledBack::default());
        drop(snapshot);
        prop_assert_eq!(fs::read_dir(world.base()).expect("a directory").count(), 0);
    }
}

/// Proves SH-32, SH-33: hidden files, links, empty directories, modes, names that are not UTF-8.
#[test]
fn tree_is_restored_completely() {
    let world = World::new(&["**"]);
    world.write(".hidden/.deep/file", "1");
    world.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(world.at("run.sh"), Permissions::from_mode(0o4751)).expect("a mode");
    fs::create_dir_all(world.at("empty/one")).expect("directories");
    fs::write(world.root().join(OsStr::from_bytes(b"\xff\n")), "odd").expect("a file");
    symlink("../outside", world.at("away")).expect("a link");
    symlink("run.sh", world.at("link")).expect("a link");
    let tree = dump(&world.root());
    let snapshot = world.take().expect("a snapshot");
    for entry in fs::read_dir(world.root()).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.symlink_metadata().expect("metadata").is_dir() {
            true => fs::remove_dir_all(path).expect("removed"),
            false => fs::remove_file(path).expect("removed"),
        }
    }
    world.write("new/file", "new");
    let done = world.restore(&snapshot);
    assert_eq!(dump(&world.root()), tree);
    assert_eq!((done.restored, done.removed), (9, 2));
    assert_eq!(
        fs::read(world.outside().join("kept")).expect("a file"),
        b"kept"
    );
}

/// Proves SH-33: a directory that was replaced by a link is not followed.
#[test]
fn nothing_is_written_through_a_link() {
    let world = World::new(&["**"]);
    world.write("dir/kept", "mine");
    let snapshot = world.take().expect("a snapshot");
    fs::remove_dir_all(world.at("dir")).expect("removed");
    symlink(world.outside(), world.at("dir")).expect("a link");
    fs::write(world.outside().join("theirs"), "x").expect("a file");
    world.restore(&snapshot);
    assert_eq!(
        fs::read(world.outside().join("kept")).expect("a file"),
        b"kept"
    );
    assert_eq!(
        fs::read(world.outside().join("theirs")).expect("a file"),
        b"x"
    );
    assert!(!world.at("dir").is_symlink());
    assert_eq!(fs::read(world.at("dir/kept")).expect("a file"), b"mine");
}

/// Proves SH-30: files outside of the scope are neither saved nor touched.
#[test]
fn only_files_in_the_scope_are_restored() {
    let world = World::new(&["src", "**/*.rs", "docs/**"]);
    for file in [
        "src/deep/x",
        "src/a.rs",
        "lib/b.rs",
        "lib/c",
        "d",
        "docs/e",
        "target/big",
    ] {
        world.write(file, "old");
    }
    let snapshot = world.take().expect("a snapshot");
    for gone in ["src", "lib", "docs"] {
        fs::remove_dir_all(world.at(gone)).expect("removed");
    }
    for file in [
        "src/new",
        "new/n.rs",
        "new/n",
        "d",
        "target/big",
        "docs/sub/n",
        "n.rs",
    ] {
        world.write(file, "new");
    }
    world.restore(&snapshot);
    let tree = dump(&world.root());
    let found: Vec<_> = tree.keys().filter_map(|path| path.to_str()).collect();
    let expected = [
        "",
        "d",
        "docs",
        "docs/e",
        "lib",
        "lib/b.rs",
        "new",
        "new/n",
        "src",
        "src/a.rs",
        "src/deep",
        "src/deep/x",
        "target",
        "target/big",
    ];
    assert_eq!(found, expected);
    assert_eq!(tree[Path::new("d")].1, b"new");
    assert_eq!(tree[Path::new("target/big")].1, b"new");
}

/// Proves SH-32.
#[test]
fn size_cap_is_enforced_without_leftovers() {
    let mut world = World::new(&["**"]);
    world.write("a", "12345");
    world.write("b/c", "12345");
    let check = |world: &World, fits: bool| match world.take() {
        Ok(_) => assert!(fits),
        Err(SnapshotError::TooLarge { max }) => assert!(!fits && max == world.max_bytes),
        Err(error) => panic!("{error}"),
    };
    for (max_bytes, fits) in [(0, true), (9, false), (10, true), (1, false)] {
        world.max_bytes = max_bytes;
        check(&world, fits);
        assert_eq!(fs::read_dir(world.base()).expect("a directory").count(), 0);
    }
    world.scope = Scope::new(&["a".to_owned()]).expect("a scope");
    world.max_bytes = 5;
    check(&world, true);

    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let error = world.take_with(&cancelled).expect_err("cancelled");
    assert!(matches!(error, SnapshotError::Cancelled));
}

/// Proves SH-32: sockets and FIFOs do not prevent a snapshot; new ones are removed.
#[test]
fn special_files_are_unchanged() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let fifo = |path: &Path| {
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
    };
    let world = World::new(&["**"]);
    fifo(&world.at("fifo"));
    let _socket = std::os::unix::net::UnixListener::bind(world.at("socket")).expect("a socket");
    let snapshot = world.take().expect("a snapshot");
    fs::create_dir(world.at("new")).expect("a directory");
    fifo(&world.at("new/fifo"));
    let done = world.restore(&snapshot);
    assert_eq!((done.restored, done.removed), (0, 2));
    assert!(world.at("fifo").exists() && world.at("socket").exists());
}

/// Proves SH-32, SH-33: the program's own database and snapshots are not part of a transaction in any directory.
#[test]
fn own_files_of_the_program_are_excluded() {
    let mut world = World::new(&["**"]);
    world.write("data/zeph.db", "1");
    world.write("data/zeph.dbx", "1");
    world.database = Some(world.at("data/zeph.db"));
    let snapshot = world.take().expect("a snapshot");
    world.write("data/zeph.db", "2");
    world.write("data/zeph.db-wal", "2");
    world.write("data/zeph.dbx", "2");
    world.restore(&snapshot);
    let read = |path: &str| fs::read_to_string(world.at(path)).expect("a file");
    assert_eq!(read("data/zeph.db"), "2");
    assert_eq!(read("data/zeph.db-wal"), "2");
    assert_eq!(read("data/zeph.dbx"), "1");

    fs::rename(world.at("data"), world.at("moved")).expect("renamed");
    let failures = world.failures(&snapshot);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].path, Path::new("moved"));
    assert!(failures[0].why.contains("files of Zeph"), "{failures:?}");
    assert_eq!(read("moved/zeph.db"), "2");
}

/// A snapshot does not contain other snapshots.
#[test]
fn snapshots_do_not_contain_snapshots() {
    let world = World::new(&["**"]);
    let wanted = Wanted {
        root: world.dir.path(),
        scope: &world.scope,
        database: None,
        base: &world.at("snapshots"),
        max_bytes: 0,
    };
    let cancel = CancellationToken::new();
    let first = take(&wanted, &cancel).expect("a snapshot");
    let second = take(&wanted, &cancel).expect("a snapshot");
    let copies = dump(&second.dir.path().join("files"));
    assert!(copies.contains_key(Path::new("outside/kept")));
    assert!(!copies.keys().any(|path| path.starts_with("root/snapshots")));
    world.restore(&first);
    assert!(second.dir.path().join("files").exists());
}

/// Proves SH-33: files that cannot be restored are named, and all others are restored.
#[test]
fn files_that_cannot_be_restored_are_named() {
    let check = |obstacle: &dyn Fn(&World, &Snapshot), place: &str, why: &str, rest: bool| {
        let world = World::new(&["**"]);
        world.write("dir/file", "old");
        world.write("other", "old");
        let snapshot = world.take().expect("a snapshot");
        world.write("other", "new");
        obstacle(&world, &snapshot);
        let failures = world.failures(&snapshot);
        assert_eq!(failures.len(), 1, "{why}: {failures:?}");
        assert_eq!(failures[0].path, Path::new(place));
        assert!(failures[0].why.contains(why), "{failures:?}");
        if rest {
            let other = fs::read_to_string(world.at("other")).expect("a file");
            assert_eq!(other, "old", "{why}");
        }
    };
    let deep = |world: &World, _: &Snapshot| {
        let mut path = world.at("deep");
        for _ in 0..200 {
            path.push("d");
        }
        fs::create_dir_all(path).expect("directories");
    };
    check(&deep, "deep", "128 directories deep", true);
    let moved = |world: &World, _: &Snapshot| {
        fs::rename(world.root(), world.dir.path().join("moved")).expect("renamed");
        fs::create_dir(world.root()).expect("a directory");
    };
    check(&moved, "", "moved, removed or replaced", false);
    let removed = |world: &World, _: &Snapshot| {
        fs::remove_dir_all(world.root()).expect("removed");
    };
    check(&removed, "", "moved, removed or replaced", false);
    let lost = |world: &World, snapshot: &Snapshot| {
        fs::remove_file(world.at("dir/file")).expect("removed");
        fs::remove_file(snapshot.dir.path().join("files/dir/file")).expect("removed");
    };
    check(
        &lost,
        "dir/file",
        "the snapshot copy is missing or was modified",
        true,
    );
    let swapped = |world: &World, snapshot: &Snapshot| {
        let copy = snapshot.dir.path().join("files/dir/file");
        fs::remove_file(world.at("dir/file")).expect("removed");
        fs::remove_file(&copy).expect("removed");
        symlink(world.outside().join("kept"), copy).expect("a link");
    };
    check(
        &swapped,
        "dir/file",
        "the snapshot copy is missing or was modified",
        true,
    );
}
