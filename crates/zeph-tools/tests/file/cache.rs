//! File tools with the cache: a cache hit always equals the result of a real call, regardless of changes
//! between two calls.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::{Value, json};
use zeph_tools::audit::Intent;
use zeph_tools::cache::{BackgroundActivity, ResultCacheConfig, ResultCaches, split_note};
use zeph_tools::file::{FileExecutor, ReadRules, Sandbox};
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{
    AuditEntry, AuditError, AuditSink, AuditTrail, CallContext, LayeredExecutor, Mode, Permissions,
    ToolCall, ToolError, ToolExecutor as _, ToolOutput, format_for_llm,
};

/// An audit sink in memory.
#[derive(Default)]
struct Audit(Mutex<Vec<AuditEntry>>);

#[async_trait]
impl AuditSink for Audit {
    async fn reserve(&self, _: Intent<'_>) -> Result<(), AuditError> {
        Ok(())
    }

    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        self.0.lock().expect("entries").push(entry.clone());
        Ok(())
    }
}

/// Background jobs whose state the test sets.
#[derive(Default)]
struct Jobs(AtomicBool);

impl BackgroundActivity for Jobs {
    fn is_running(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A directory with two stacks: with the cache and without it.
struct Cached {
    dir: tempfile::TempDir,
    caches: Arc<ResultCaches>,
    jobs: Arc<Jobs>,
    audit: Arc<Audit>,
    with: LayeredExecutor,
    without: LayeredExecutor,
}

impl Cached {
    fn new() -> Self {
        Self::denying(&[])
    }

    fn denying(denied: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let denied: Vec<String> = denied.iter().map(|&glob| glob.to_owned()).collect();
        let rules = ReadRules::new(&denied, &[], None).expect("rules");
        let jobs = Arc::new(Jobs::default());
        let background = Arc::clone(&jobs) as _;
        let caches = ResultCaches::new(&ResultCacheConfig::default(), Some(background));
        let caches = Arc::new(caches);
        let audit = Arc::new(Audit::default());
        let stack = |cache: Option<&Arc<ResultCaches>>| {
            let sandbox = Sandbox::new(&[], dir.path()).expect("a sandbox");
            let sandbox = sandbox.with_rules(rules.clone());
            stack::build(StackParts {
                watchers: Vec::new(),
                secrets: Arc::default(),
                retry: Default::default(),
                executors: vec![("file", Arc::new(FileExecutor::new(Arc::new(sandbox))))],
                audit: AuditTrail::new(vec![Arc::clone(&audit) as _], false),
                cache: cache.cloned(),
                overflow: None,
                permissions: Permissions::of(Mode::Full),
                ..StackParts::default()
            })
            .expect("a stack")
        };
        Self {
            with: stack(Some(&caches)),
            without: stack(None),
            caches,
            jobs,
            audit,
            dir,
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and creates its parent directories.
    fn put(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
        std::fs::write(path, content).expect("a file");
    }

    async fn call(&self, tool: &str, params: Value) -> Result<ToolOutput, ToolError> {
        call(&self.with, tool, params, "s").await
    }

    /// Whether the call hits the cache. Asserts that the result equals that of a real call.
    async fn is_hit(&self, tool: &str, params: Value) -> bool {
        let answer = self.call(tool, params.clone()).await;
        let fresh = call(&self.without, tool, params, "s").await;
        let hit = answer
            .as_ref()
            .is_ok_and(|output| output.cached_secs.is_some());
        assert_eq!(text(&answer), text(&fresh));
        hit
    }

    /// Makes the same call twice and asserts that only the second is a hit.
    async fn hits(&self, tool: &str, params: Value) {
        assert!(
            !self.is_hit(tool, params.clone()).await,
            "{tool}: the first"
        );
        assert!(self.is_hit(tool, params).await, "{tool}: the second");
    }
}

async fn call(
    stack: &LayeredExecutor,
    tool: &str,
    params: Value,
    session: &str,
) -> Result<ToolOutput, ToolError> {
    let call = ToolCall::new("1", tool, params, session);
    let cx = CallContext::headless();
    let answer = stack.execute_tool_call_confirmed(&call, &cx).await;
    answer.map(|output| output.expect("an owner"))
}

/// The text of a result without its age.
fn text(result: &Result<ToolOutput, ToolError>) -> String {
    match result {
        Ok(output) => split_note(&output.summary).1.to_owned(),
        Err(error) => format_for_llm(error),
    }
}

/// Waits until the clock of the file system has advanced, so that later files have times beyond the margin.
fn settle(dir: &Path) {
    let began = std::time::Instant::now();
    let probe = dir.with_extension("probe");
    while began.elapsed() < std::time::Duration::from_millis(40) {
        std::fs::write(&probe, "x").expect("a probe");
    }
    std::fs::remove_file(probe).expect("removed");
}

/// Restores the times of a file, like an archiver.
fn restore(path: &Path, to: &std::fs::Metadata) {
    let times = std::fs::FileTimes::new()
        .set_modified(to.modified().expect("a time"))
        .set_accessed(to.accessed().expect("a time"));
    let file = std::fs::File::options().write(true).open(path);
    file.expect("a file").set_times(times).expect("set");
}

/// Proves OUT-40, OUT-41: each tool is cached, marks a hit and leaves an entry.
#[tokio::test]
async fn equal_calls_are_served_from_the_cache() {
    let world = Cached::new();
    world.put("d/a.txt", "one\ntwo\n");
    world.put(".gitignore", "*.log\n");
    settle(world.dir.path());
    world.hits("read", json!({"path": "d/a.txt"})).await;
    world.hits("grep", json!({"pattern": "one"})).await;
    world
        .hits("grep", json!({"pattern": "o", "path": "d/a.txt"}))
        .await;
    world
        .hits("find_path", json!({"path": ".", "pattern": "**/*"}))
        .await;
    world.hits("list_directory", json!({"path": "d"})).await;
    world.hits("get_file_tree", json!({})).await;
    let again = world.call("read", json!({"file_path": "d/a.txt"})).await;
    let again = again.expect("an answer");
    assert_eq!(again.cached_secs, Some(0), "an alias makes no difference");
    assert!(
        again.summary.starts_with("[from the cache, 0 s old]\n"),
        "{}",
        again.summary
    );
    assert!(
        again.display().contains("[from the cache, 0 s old]"),
        "{}",
        again.display()
    );
    assert_eq!(again.locations.len(), 1);
    let entries = world.audit.0.lock().expect("entries");
    let last = entries.last().expect("an entry");
    assert!(last.cached && last.attempts == 0, "{last:?}");
    let status = world.caches.status("s");
    assert_eq!((status.hits, status.misses, status.entries), (7, 6, 6));
}

/// Proves OUT-40: sessions share no entries, and `clear` removes the entries and resets the counters.
#[tokio::test]
async fn session_uses_only_its_own_cache() {
    let world = Cached::new();
    world.put("a", "x");
    settle(world.dir.path());
    world.hits("read", json!({"path": "a"})).await;
    let other = call(&world.with, "read", json!({"path": "a"}), "t").await;
    assert_eq!(other.expect("an answer").cached_secs, None);
    world.caches.clear("s");
    let status = world.caches.status("s");
    assert_eq!((status.hits, status.misses, status.entries), (0, 0, 0));
    world.hits("read", json!({"path": "a"})).await;
    assert!(
        call(&world.with, "read", json!({"path": "a"}), "t")
            .await
            .is_ok_and(|o| o.cached_secs.is_some())
    );
    world.caches.forget_all();
    assert!(!world.is_hit("read", json!({"path": "a"})).await);
}

/// Proves OUT-41: a change within the same clock tick is detected, and failures are not cached.
#[tokio::test]
async fn change_in_the_same_tick_is_detected_by_content() {
    let world = Cached::new();
    for n in 0..20 {
        // Zero or more ticks of the clock pass between these changes.
        let content = format!("{n:03}");
        world.put("a", &content);
        world.is_hit("read", json!({"path": "a"})).await;
        let stat = std::fs::metadata(world.path("a")).expect("a file");
        world.put("a", &format!("{:03}", n + 500));
        restore(&world.path("a"), &stat);
        assert!(!world.is_hit("read", json!({"path": "a"})).await, "{n}");
        assert!(!world.is_hit("grep", json!({"pattern": content})).await);
    }
    for _ in 0..2 {
        assert!(!world.is_hit("read", json!({"path": "missing"})).await);
        assert!(!world.is_hit("get_current_time", json!({})).await);
    }
}

/// Proves OUT-41: every external change is detected, even if it preserves size and times.
#[tokio::test]
async fn external_change_is_detected() {
    type Change = fn(&Cached);
    let same_size: Change = |world| {
        let stat = std::fs::metadata(world.path("d/a")).expect("a file");
        world.put("d/a", "two\n");
        restore(&world.path("d/a"), &stat);
    };
    let replaced: Change = |world| {
        let stat = std::fs::metadata(world.path("d/a")).expect("a file");
        world.put("new", "two\n");
        restore(&world.path("new"), &stat);
        std::fs::rename(world.path("new"), world.path("d/a")).expect("renamed");
    };
    let retargeted: Change = |world| {
        std::fs::remove_file(world.path("link")).expect("removed");
        std::os::unix::fs::symlink("d/b", world.path("link")).expect("a link");
    };
    let swapped: Change = |world| {
        std::fs::rename(world.path("d"), world.path("e")).expect("renamed");
        std::fs::create_dir(world.path("d")).expect("made");
        for name in ["a", "b"] {
            std::fs::write(world.path("d").join(name), "two\n").expect("a file");
        }
    };
    let gone: Change = |world| std::fs::remove_dir_all(world.path("d")).expect("removed");
    let ignored: Change = |world| world.put("d/.gitignore", "a\n");
    let excluded: Change = |world| world.put(".git/info/exclude", "a\n");
    let added: Change = |world| world.put("d/deep/c", "one\n");
    let calls = [
        ("read", json!({"path": "d/a"})),
        ("read", json!({"path": "link"})),
        ("grep", json!({"pattern": "one"})),
        ("grep", json!({"pattern": "one", "path": "d/a"})),
        ("find_path", json!({"path": "d", "pattern": "**"})),
        ("list_directory", json!({"path": "d"})),
        ("get_file_tree", json!({})),
    ];
    for (at, change) in [
        same_size, replaced, retargeted, swapped, gone, ignored, excluded, added,
    ]
    .into_iter()
    .enumerate()
    {
        let world = Cached::new();
        world.put("d/a", "one\n");
        world.put("d/b", "two\n");
        world.put("d/deep/x", "two\n");
        std::fs::create_dir_all(world.path(".git/info")).expect("made");
        std::os::unix::fs::symlink("d/a", world.path("link")).expect("a link");
        settle(world.dir.path());
        for (tool, params) in &calls {
            world.hits(tool, params.clone()).await;
        }
        change(&world);
        for (tool, params) in &calls {
            // Compares the result with that of the stack without a cache.
            let _ = world.is_hit(tool, params.clone()).await;
        }
        let status = world.caches.status("s");
        assert!(
            status.misses > calls.len() as u64,
            "change {at} made no difference"
        );
    }
}

/// Proves OUT-41: a call that would be refused is not served from the cache.
#[tokio::test]
async fn cached_file_under_a_deny_rule_is_refused() {
    let world = Cached::denying(&["**/secret/**"]);
    world.put("d/a", "one\n");
    settle(world.dir.path());
    world.hits("read", json!({"path": "d/a"})).await;
    world
        .hits("grep", json!({"pattern": "one", "path": "d/a"}))
        .await;
    // The same file in the same directory, which now has another name.
    std::fs::rename(world.path("d"), world.path("secret")).expect("renamed");
    std::os::unix::fs::symlink("secret", world.path("d")).expect("a link");
    for (tool, params) in [
        ("read", json!({"path": "d/a"})),
        ("grep", json!({"pattern": "one", "path": "d/a"})),
    ] {
        let refused = world.call(tool, params).await;
        assert!(refused.expect_err("refused").is_refusal());
    }
}

/// Proves OUT-41: a mutation evicts entries, also if it fails. While a mutation or a job runs, file-dependent
/// results are neither served nor cached.
#[tokio::test]
async fn mutations_and_jobs_invalidate_the_cache() {
    let world = Cached::new();
    world.put("a", "one\n");
    world.put("b", "two\n");
    settle(world.dir.path());
    let read = || ("read", json!({"path": "a"}));
    for (tool, params) in [
        ("write", json!({"path": "c", "content": "x"})),
        (
            "edit",
            json!({"path": "b", "old_string": "absent", "new_string": "x"}),
        ),
        ("delete_path", json!({"path": "missing"})),
    ] {
        world.hits(read().0, read().1).await;
        let _ = world.call(tool, params).await;
        assert_eq!(world.caches.status("s").entries, 0, "{tool}");
    }
    world.hits(read().0, read().1).await;
    {
        let _changing = world.caches.changing();
        assert!(!world.is_hit(read().0, read().1).await);
        assert!(!world.is_hit(read().0, read().1).await);
    }
    world.hits(read().0, read().1).await;
    world.jobs.0.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        assert!(!world.is_hit(read().0, read().1).await);
    }
    world.jobs.0.store(false, Ordering::SeqCst);
    world.hits(read().0, read().1).await;
}

/// Proves OUT-41: a read that starts before a change ends is not cached, regardless of their order of
/// completion.
#[tokio::test]
async fn read_that_overlaps_a_change_is_not_cached() {
    use zeph_tools::cache::{CacheKey, CachedResult};
    let world = Cached::new();
    world.put("a", "one\n");
    settle(world.dir.path());
    let key = || CacheKey::new("read", &json!({"path": "a"}));
    // The result that a read would cache.
    world.hits("read", json!({"path": "a"})).await;
    let (_, found) = world.caches.visit("s", key());
    let kept: CachedResult = (*found.expect("a hit").0).clone();
    let entries = || world.caches.status("s").entries;

    let (visit, _) = world.caches.visit("s", key());
    drop(world.caches.changing());
    world.caches.keep(visit, kept.clone());
    assert_eq!(
        entries(),
        0,
        "it began before the change and ended after it"
    );

    let changing = world.caches.changing();
    let (visit, _) = world.caches.visit("s", key());
    drop(changing);
    world.caches.keep(visit, kept.clone());
    assert_eq!(entries(), 0, "it began in the midst of the change");

    let (visit, _) = world.caches.visit("s", key());
    let changing = world.caches.changing();
    world.caches.keep(visit, kept.clone());
    assert_eq!(entries(), 0, "it ended in the midst of the change");
    drop(changing);

    for forget in [
        (|caches: &ResultCaches| caches.clear("s")) as fn(&ResultCaches),
        |caches: &ResultCaches| caches.forget_all(),
    ] {
        let (visit, _) = world.caches.visit("s", key());
        forget(&world.caches);
        world.caches.keep(visit, kept.clone());
        assert_eq!(entries(), 0, "it was forgotten meanwhile");
    }

    let (visit, _) = world.caches.visit("s", key());
    world.caches.keep(visit, kept);
    assert_eq!(entries(), 1);
}

/// Proves OUT-41: a file that was read from the cache may be changed.
#[tokio::test]
async fn cached_read_permits_an_edit() {
    let world = Cached::new();
    world.put("a", "one\n");
    settle(world.dir.path());
    world.hits("read", json!({"path": "a"})).await;
    let edit = json!({"path": "a", "old_string": "one", "new_string": "two"});
    world.call("edit", edit).await.expect("edited");
    // The file is changed externally, read again, and changed again.
    world.put("a", "three\n");
    settle(world.dir.path());
    world
        .call("read", json!({"path": "a"}))
        .await
        .expect("read");
    let again = world
        .call("read", json!({"path": "a"}))
        .await
        .expect("read");
    assert!(again.cached_secs.is_some());
    let edit = json!({"path": "a", "old_string": "three", "new_string": "four"});
    world.call("edit", edit).await.expect("edited");
}

/// A hit is faster than the call: the minimum of many measurements counts.
#[tokio::test]
async fn cache_hit_is_faster_than_the_call() {
    let world = Cached::new();
    let lines = "a line of a file that is searched and read\n".repeat(400);
    for n in 0..300 {
        world.put(&format!("d{}/f{n}.txt", n % 10), &lines);
    }
    world.put("long.txt", &lines.repeat(5));
    settle(world.dir.path());
    for (tool, params) in [
        ("read", json!({"path": "long.txt"})),
        ("grep", json!({"pattern": "needle"})),
        ("find_path", json!({"path": ".", "pattern": "**/*.txt"})),
        ("get_file_tree", json!({})),
        ("list_directory", json!({"path": "d1"})),
    ] {
        world.hits(tool, params.clone()).await;
        let mut least = [std::time::Duration::MAX; 2];
        for _ in 0..15 {
            for (stack, least) in [&world.with, &world.without].into_iter().zip(&mut least) {
                let began = std::time::Instant::now();
                call(stack, tool, params.clone(), "s")
                    .await
                    .expect("an answer");
                *least = began.elapsed().min(*least);
            }
        }
        let [hit, made] = least;
        println!("{tool}: hit {hit:?}, call {made:?}");
        if matches!(tool, "read" | "grep") {
            assert!(hit < made, "{tool}: hit {hit:?}, call {made:?}");
        }
    }
}

/// An event between two calls.
#[derive(Debug, Clone)]
enum Step {
    Look(usize, usize),
    Tool(usize, usize, u8),
    Outside(usize, usize, u8),
    Pair(usize, usize, u8),
    Job(bool),
    Clear,
    Forget,
    Settle,
}

const NAMES: [&str; 4] = ["a", "d/a", "d/b", "d/e/c"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0usize..9, 0usize..4).prop_map(|(what, name)| Step::Look(what, name)),
        3 => (0usize..6, 0usize..4, 0u8..4).prop_map(|(what, name, n)| Step::Tool(what, name, n)),
        4 => (0usize..7, 0usize..4, 0u8..4).prop_map(|(what, name, n)| Step::Outside(what, name, n)),
        1 => (0usize..9, 0usize..4, 0u8..4).prop_map(|(what, name, n)| Step::Pair(what, name, n)),
        1 => any::<bool>().prop_map(Step::Job),
        1 => Just(Step::Clear),
        1 => Just(Step::Forget),
        2 => Just(Step::Settle),
    ];
    proptest::collection::vec(step, 1..40)
}

fn look(what: usize, name: usize) -> (&'static str, Value) {
    let name = NAMES[name];
    match what {
        0..=2 => ("read", json!({"path": name})),
        3 => ("read", json!({"path": "link"})),
        4 => ("grep", json!({"pattern": "[02]"})),
        5 => ("grep", json!({"pattern": "[13]", "path": name})),
        6 => ("find_path", json!({"path": ".", "pattern": "**"})),
        7 => ("list_directory", json!({"path": "d"})),
        _ => ("get_file_tree", json!({"depth": 2})),
    }
}

fn mutation(what: usize, name: usize, n: u8) -> (&'static str, Value) {
    let (name, other) = (NAMES[name], NAMES[usize::from(n) % 4]);
    match what {
        0 | 1 => ("write", json!({"path": name, "content": format!("{n}\n")})),
        2 => (
            "edit",
            json!({"path": name, "old_string": "\n", "new_string": format!("{n}\n")}),
        ),
        3 => ("delete_path", json!({"path": name})),
        4 => ("move_path", json!({"source": name, "destination": other})),
        _ => ("copy_path", json!({"source": name, "destination": other})),
    }
}

/// A change by another program; impossible changes have no effect.
fn outside(world: &Cached, what: usize, name: usize, n: u8) {
    let path = world.path(NAMES[name]);
    let _ = match what {
        0 | 1 => {
            // The same size and modification time.
            let old = std::fs::metadata(&path).ok();
            let written = std::fs::write(&path, format!("{n}\n"));
            if let (Some(old), Ok(())) = (old, &written) {
                restore(&path, &old);
            }
            written
        }
        2 => std::fs::remove_file(&path),
        3 => std::fs::write(world.path(".new"), format!("{n}\n"))
            .and_then(|()| std::fs::rename(world.path(".new"), &path)),
        4 => std::fs::remove_file(world.path("link"))
            .and_then(|()| std::os::unix::fs::symlink(NAMES[name], world.path("link"))),
        5 => std::fs::write(world.path(".gitignore"), NAMES[name]),
        _ => std::fs::create_dir_all(world.path(&format!("d/e/{n}"))),
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Proves OUT-40, OUT-41: after any sequence of events, each result equals that of a stack without a
    /// cache.
    #[test]
    fn no_cached_result_is_stale(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let world = Cached::new();
            for name in NAMES {
                world.put(name, "0\n");
            }
            std::os::unix::fs::symlink("d/a", world.path("link")).expect("a link");
            settle(world.dir.path());
            for step in steps {
                match step {
                    Step::Look(what, name) => {
                        let (tool, params) = look(what, name);
                        world.is_hit(tool, params).await;
                    }
                    Step::Tool(what, name, n) => {
                        let (tool, params) = mutation(what, name, n);
                        let _ = world.call(tool, params).await;
                    }
                    Step::Outside(what, name, n) => outside(&world, what, name, n),
                    Step::Pair(what, name, n) => {
                        // Concurrently. The cached result is checked below.
                        let (tool, params) = look(what, name);
                        let (writes, content) = mutation(0, name, n);
                        let _ = futures_util::join!(
                            world.call(tool, params.clone()),
                            world.call(writes, content)
                        );
                        world.is_hit(tool, params).await;
                    }
                    Step::Job(runs) => world.jobs.0.store(runs, Ordering::SeqCst),
                    Step::Clear => world.caches.clear("s"),
                    Step::Forget => world.caches.forget_all(),
                    Step::Settle => settle(world.dir.path()),
                }
            }
        });
    }
}

/// Proves OUT-41: a special file does not block the validation of an entry.
#[tokio::test]
async fn pipe_instead_of_a_file_does_not_block() {
    let world = Cached::new();
    world.put("a", "one\n");
    settle(world.dir.path());
    world.hits("read", json!({"path": "a"})).await;
    std::fs::remove_file(world.path("a")).expect("removed");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("a"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    assert!(!world.is_hit("read", json!({"path": "a"})).await);
}
