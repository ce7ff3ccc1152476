//! Races: links that are swapped in while tools run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use zeph_tools::format_for_llm;

use crate::world::{SECRET, TestDir};

/// The number of calls of each tool.
const ROUNDS: usize = 1500;

/// Two names to exchange; one is a link to the third path.
type Pair = (PathBuf, PathBuf, PathBuf);

/// A thread that exchanges pairs of names at full speed until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn new(pairs: Vec<Pair>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let swaps = Arc::new(AtomicU64::new(0));
        let thread = std::thread::spawn({
            let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    for (a, b, target) in &pairs {
                        let _ = renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
                        // A `write` may have replaced the link with a file.
                        if ![a, b].into_iter().any(|path| path.is_symlink()) {
                            let _ = std::fs::remove_file(b);
                            let _ = std::os::unix::fs::symlink(target, b);
                        }
                    }
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            stop,
            swaps,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A sandbox in which `data` alternates between a directory and a link to `outside`. `data/secret.txt` and
/// `file` alternate between a file and a link to the secret.
fn world() -> (TestDir, Vec<Pair>) {
    let world = TestDir::new();
    world.put("data/secret.txt", "harmless\n");
    world.put("data/sub/secret.txt", "harmless\n");
    world.link(&world.outside, "other");
    world.put("file", "harmless\n");
    world.link(world.outside.join("secret.txt"), "other-file");
    let pairs = [
        ("data", "other", world.outside.clone()),
        ("file", "other-file", world.outside.join("secret.txt")),
    ];
    let pairs = pairs
        .into_iter()
        .map(|(a, b, target)| (world.root.join(a), world.root.join(b), target))
        .collect();
    (world, pairs)
}

/// Runs `tool` repeatedly while the links are swapped, and returns the number of successes.
async fn race(tool: &str, params: &[Value]) -> usize {
    let calls: Vec<_> = params.iter().map(|params| (tool, params.clone())).collect();
    race_calls(&calls, ROUNDS).await.iter().sum()
}

/// Makes the calls in sequence, repeatedly, while the links are swapped, and returns the number of successes
/// of each.
async fn race_calls(calls: &[(&str, Value)], rounds: usize) -> Vec<usize> {
    let (world, pairs) = world();
    let swapper = Swapper::new(pairs);
    let mut succeeded = vec![0; calls.len()];
    for round in 0..rounds {
        let (tool, params) = calls[round % calls.len()].clone();
        let text = match world.call(tool, params).await {
            Ok(output) => {
                succeeded[round % calls.len()] += 1;
                format!("{}\n{}", output.summary, output.display())
            }
            Err(error) => format_for_llm(&error),
        };
        assert!(!text.contains(SECRET), "{tool} in round {round}: {text}");
    }
    assert!(
        swapper.swaps.load(Ordering::Relaxed) > 100,
        "the swapper ran"
    );
    drop(swapper);
    world.assert_outside_untouched();
    succeeded
}

/// Proves FILE-3 for `read`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raced_read_stays_inside() {
    let paths =
        ["data/secret.txt", "file", "data/sub/../secret.txt"].map(|path| json!({"path": path}));
    assert!(race("read", &paths).await > 0);
}

/// Proves FILE-3 for `write`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raced_write_stays_inside() {
    let paths = ["data/secret.txt", "file", "data/new/deep/file"]
        .map(|path| json!({"path": path, "content": "harmless\n"}));
    assert!(race("write", &paths).await > 0);
}

/// Proves FILE-3 for `edit`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raced_edit_stays_inside() {
    let edits = ["data/secret.txt", "file"].map(|path| {
        [
            ("harmless", "mended"),
            ("mended", "harmless"),
            ("secret", "stolen"),
        ]
        .map(|(old, new)| json!({"path": path, "old_string": old, "new_string": new}))
    });
    assert!(race("edit", &edits.concat()).await > 0);
}

/// Proves FILE-3 for `grep`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raced_grep_stays_inside() {
    let searches = [
        json!({"pattern": "secret|harmless"}),
        json!({"pattern": "secret|harmless", "path": "data"}),
        json!({"pattern": "secret|harmless", "path": "file"}),
    ];
    assert!(race("grep", &searches).await > 0);
}

/// Proves FILE-3 for `find_path`, `list_directory` and `get_file_tree`: names outside are not seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_outside_are_not_listed() {
    let (world, pairs) = world();
    std::fs::write(world.outside.join("named-outside"), "").expect("a file");
    let swapper = Swapper::new(pairs);
    let calls = [
        ("find_path", json!({"path": ".", "pattern": "**/*"})),
        ("find_path", json!({"pattern": "**", "path": "data"})),
        ("list_directory", json!({"path": "data"})),
        ("list_directory", json!({"path": "data/sub"})),
        ("get_file_tree", json!({})),
        ("get_file_tree", json!({"path": "data"})),
    ];
    let mut succeeded = [0; 6];
    for round in 0..2 * ROUNDS {
        let (tool, params) = calls[round % calls.len()].clone();
        let text = match world.call(tool, params).await {
            Ok(output) => {
                succeeded[round % calls.len()] += 1;
                output.summary
            }
            Err(error) => format_for_llm(&error),
        };
        assert!(
            !text.contains("named-outside"),
            "{tool} in round {round}: {text}"
        );
    }
    assert!(
        swapper.swaps.load(Ordering::Relaxed) > 100,
        "the swapper ran"
    );
    assert!(succeeded.iter().all(|count| *count > 0), "{succeeded:?}");
}

/// Proves FILE-3 for `create_directory` and `delete_path`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_are_created_and_deleted_only_inside() {
    let calls = [
        ("create_directory", json!({"path": "data/new/deep"})),
        ("delete_path", json!({"path": "data/new"})),
        (
            "write",
            json!({"path": "data/secret.txt", "content": "harmless\n"}),
        ),
        ("delete_path", json!({"path": "data/secret.txt"})),
        ("create_directory", json!({"path": "data/sub/../made"})),
        ("delete_path", json!({"path": "data/made"})),
    ];
    let succeeded = race_calls(&calls, 3000).await;
    assert!(succeeded.iter().all(|count| *count > 0), "{succeeded:?}");
}

/// Proves FILE-3 for `copy_path`: nothing from outside is copied in, and nothing is copied out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raced_copies_stay_inside() {
    let ends =
        |source: &str, destination: &str| json!({"source": source, "destination": destination});
    let calls = [
        ("copy_path", ends("data/secret.txt", "copied")),
        ("read", json!({"path": "copied"})),
        ("delete_path", json!({"path": "copied"})),
        ("copy_path", ends("file", "data/copied")),
        ("read", json!({"path": "data/copied"})),
        ("delete_path", json!({"path": "data/copied"})),
        ("copy_path", ends("data", "tree")),
        (
            "grep",
            json!({"path": "tree", "pattern": "secret|harmless"}),
        ),
        ("delete_path", json!({"path": "tree"})),
    ];
    let succeeded = race_calls(&calls, 2700).await;
    assert!(succeeded.iter().all(|count| *count > 0), "{succeeded:?}");
}

/// Proves FILE-3 for `move_path`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raced_moves_stay_inside() {
    let ends =
        |source: &str, destination: &str| json!({"source": source, "destination": destination});
    let calls = [
        (
            "write",
            json!({"path": "data/secret.txt", "content": "harmless\n"}),
        ),
        ("move_path", ends("data/secret.txt", "moved")),
        ("read", json!({"path": "moved"})),
        ("move_path", ends("moved", "data/back")),
        ("delete_path", json!({"path": "data/back"})),
        ("delete_path", json!({"path": "moved"})),
    ];
    let succeeded = race_calls(&calls, 3000).await;
    assert!(succeeded.iter().all(|count| *count > 0), "{succeeded:?}");
}
