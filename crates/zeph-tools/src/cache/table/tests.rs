//! Tests of the cache of one session.
#![allow(clippy::unwrap_used)]

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cache::FreshnessCheck;

/// Proves OUT-40 in part: this does not compile if the cache is `Sync`, because the name of the function is then
/// ambiguous.
#[test]
fn cache_is_not_sync() {
    trait OnlyIfNotSync<A> {
        fn only() -> bool {
            true
        }
    }
    impl<T: ?Sized> OnlyIfNotSync<()> for T {}
    impl<T: ?Sized + Sync> OnlyIfNotSync<u8> for T {}
    assert!(<ToolResultCache as OnlyIfNotSync<_>>::only());
}

struct Holds;

#[async_trait]
impl FreshnessCheck for Holds {
    async fn holds(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        0
    }
}

fn cache(ttl_secs: u64, max_bytes: u64) -> ToolResultCache {
    ToolResultCache::new(&ResultCacheConfig {
        enabled: true,
        ttl_secs,
        max_bytes,
    })
}

fn key(n: usize) -> CacheKey {
    CacheKey::new("read", &json!({ "path": n }))
}

fn text(text: &str) -> CachedResult {
    CachedResult {
        output: ToolOutput::text(text),
        basis: CacheValidity::Remote,
        claim_source: None,
    }
}

fn of_files(words: &str) -> CachedResult {
    CachedResult {
        basis: CacheValidity::Files(Arc::new(Holds)),
        ..text(words)
    }
}

/// Proves OUT-40 in part.
#[test]
fn result_ages_and_expires() {
    let mut cache = cache(300, 1 << 20);
    let start = DualClockInstant::now();
    let at = |secs| start.after(Duration::from_secs(secs));
    cache.put(key(1), text("one"), start);
    let (kept, age) = cache.get(&key(1), at(299)).unwrap();
    assert_eq!(kept.output.summary, "one");
    assert_eq!(age.as_secs(), 299);
    assert_eq!(cache.get(&key(1), at(300)), None);
    assert!(cache.is_empty() && cache.bytes() == 0);
    assert_eq!((cache.hits(), cache.misses()), (1, 1));
    assert_eq!(cache.get(&key(2), start), None);
    assert_eq!((cache.hits(), cache.misses()), (1, 2));
}

/// Proves OUT-40 in part: 0 means no expiry.
#[test]
fn entries_do_not_expire_without_a_ttl() {
    let mut cache = cache(0, 1 << 20);
    let start = DualClockInstant::now();
    cache.put(key(1), text("one"), start);
    let later = start.after(Duration::from_secs(1_000_000));
    assert_eq!(cache.get(&key(1), later).unwrap().1.as_secs(), 1_000_000);
}

#[test]
fn uses_larger_of_monotonic_and_wall_age() {
    let start = DualClockInstant::now();
    let slept = DualClockInstant {
        wall: start.wall + Duration::from_secs(60),
        ..start
    };
    assert_eq!(slept.since(start).as_secs(), 60);
    let set_back = DualClockInstant {
        steady: start.steady + Duration::from_secs(5),
        wall: start.wall - Duration::from_secs(3600),
    };
    assert_eq!(set_back.since(start).as_secs(), 5);
    assert_eq!(start.since(slept), Duration::ZERO);
}

/// Proves OUT-40 in part.
#[test]
fn least_recently_used_result_is_evicted() {
    let words = "x".repeat(2000);
    let mut cache = cache(0, 12_000);
    let now = DualClockInstant::now();
    for n in 0..3 {
        cache.put(key(n), text(&words), now);
    }
    let room = cache.bytes() / 3;
    assert!(cache.get(&key(0), now).is_some());
    for n in 3..(12_000 / room) + 1 {
        cache.put(key(n), text(&words), now);
    }
    assert!(cache.bytes() <= 12_000);
    assert_eq!(cache.get(&key(1), now), None);
    assert!(cache.get(&key(0), now).is_some());
    let before = cache.len();
    cache.put(key(99), text(&"x".repeat(3001)), now);
    assert_eq!(cache.get(&key(99), now), None, "over a quarter of the room");
    assert_eq!(cache.len(), before);
    cache.put(key(0), text(&"x".repeat(3001)), now);
    assert_eq!(
        cache.get(&key(0), now),
        None,
        "the old one went all the same"
    );
}

/// Proves OUT-40, OUT-41 in part.
#[test]
fn files_are_evicted_separately_and_clear_resets_the_counters() {
    let mut cache = cache(0, 1 << 20);
    let now = DualClockInstant::now();
    cache.put(key(1), of_files("file"), now);
    cache.put(key(2), text("web"), now);
    cache.evict_files();
    assert_eq!(cache.get(&key(1), now), None);
    assert!(cache.get(&key(2), now).is_some());
    cache.evict_all();
    assert_eq!((cache.len(), cache.bytes()), (0, 0));
    assert_eq!((cache.hits(), cache.misses()), (1, 1));
    cache.put(key(2), text("web"), now);
    cache.clear();
    assert_eq!((cache.len(), cache.bytes()), (0, 0));
    assert_eq!((cache.hits(), cache.misses()), (0, 0));
}

#[test]
fn invalidated_hit_is_a_miss() {
    let mut cache = cache(0, 1 << 20);
    let now = DualClockInstant::now();
    cache.put(key(1), of_files("old"), now);
    let (old, _) = cache.get(&key(1), now).unwrap();
    cache.put(key(1), of_files("new"), now);
    cache.invalidate_hit(&key(1), &old);
    assert_eq!((cache.hits(), cache.misses()), (0, 1));
    let (new, _) = cache.get(&key(1), now).unwrap();
    assert_eq!(new.output.summary, "new", "another's result stays");
    cache.invalidate_hit(&key(1), &new);
    assert!(cache.is_empty());
}

proptest! {
    /// For any insertions, the byte count is correct and stays within the limit.
    #[test]
    fn byte_count_is_correct_and_bounded(steps in proptest::collection::vec((0usize..8, 0usize..4000, 0u8..4), 0..60)) {
        let mut cache = cache(0, 10_000);
        let now = DualClockInstant::now();
        for (n, long, what) in steps {
            match what {
                0 => { let _ = cache.get(&key(n), now); }
                1 => cache.put(key(n), of_files(&"x".repeat(long)), now),
                2 => cache.put(key(n), text(&"x".repeat(long)), now),
                _ if long < 400 => cache.evict_files(),
                _ => {}
            }
            let sum: usize = cache.entries.values().map(|entry| entry.bytes).sum();
            prop_assert_eq!(sum, cache.bytes());
            prop_assert!(sum <= 10_000);
        }
    }
}
