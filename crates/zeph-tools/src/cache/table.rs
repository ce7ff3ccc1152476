//! The cache of one session: a pure state with the time as an argument.

use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::CacheKey;
use super::CacheValidity;
use super::config::ResultCacheConfig;
use crate::output::ToolOutput;

/// A point in time on two clocks. The monotonic clock stops while the machine sleeps, and the wall clock may be
/// set. The larger difference counts, so that no age is underestimated.
#[derive(Debug, Clone, Copy)]
pub struct DualClockInstant {
    steady: Instant,
    wall: SystemTime,
}

impl DualClockInstant {
    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self {
            steady: Instant::now(),
            wall: SystemTime::now(),
        }
    }

    /// Returns the point that is `time` later on both clocks.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self {
            steady: self.steady + time,
            wall: self.wall + time,
        }
    }

    /// Returns the time since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let steady = self.steady.saturating_duration_since(earlier.steady);
        let wall = self.wall.duration_since(earlier.wall).unwrap_or_default();
        steady.max(wall)
    }
}

/// A stored result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CachedResult {
    /// The output of the call, without its validity.
    pub output: ToolOutput,
    /// The validity.
    pub basis: CacheValidity,
    /// The source of the data, as in audit entries.
    pub claim_source: Option<String>,
}

impl CachedResult {
    /// Returns the approximate size in bytes.
    fn bytes(&self) -> usize {
        let output = &self.output;
        let places = output.locations.iter();
        size_of::<Self>()
            + output.summary.len()
            + output.display.as_ref().map_or(0, String::len)
            + output
                .raw_response
                .as_ref()
                .map_or(0, |raw| raw.to_string().len())
            + output.image.as_ref().map_or(0, |image| image.data.len())
            + places
                .map(|place| place.path.as_os_str().len() + size_of_val(place))
                .sum::<usize>()
            + self.claim_source.as_ref().map_or(0, String::len)
            + self.basis.bytes()
    }
}

struct Entry {
    kept: Arc<CachedResult>,
    since: DualClockInstant,
    bytes: usize,
    /// The time of the last use, as a counter.
    turn: u64,
}

/// The stored results of the calls of one session. An expired result is removed when it is requested. If the size
/// exceeds the limit, the least recently used results are evicted at the next insertion.
///
/// It is not `Sync`: it has a single owner.
pub struct ToolResultCache {
    entries: HashMap<CacheKey, Entry>,
    ttl: Option<Duration>,
    most_bytes: usize,
    bytes: usize,
    turn: u64,
    hits: u64,
    misses: u64,
    not_sync: PhantomData<Cell<()>>,
}

impl ToolResultCache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(config: &ResultCacheConfig) -> Self {
        Self {
            entries: HashMap::new(),
            ttl: config.ttl(),
            most_bytes: usize::try_from(config.max_bytes).unwrap_or(usize::MAX),
            bytes: 0,
            turn: 0,
            hits: 0,
            misses: 0,
            not_sync: PhantomData,
        }
    }

    /// Returns the result for `key` with its age, if it has not expired at `now`. Counts a hit or a miss.
    pub fn get(
        &mut self,
        key: &CacheKey,
        now: DualClockInstant,
    ) -> Option<(Arc<CachedResult>, Duration)> {
        self.turn += 1;
        let ttl = self.ttl;
        let found = self.entries.get_mut(key).map(|entry| {
            entry.turn = self.turn;
            (Arc::clone(&entry.kept), now.since(entry.since))
        });
        match found {
            Some((kept, age)) if ttl.is_none_or(|ttl| age < ttl) => {
                self.hits += 1;
                Some((kept, age))
            }
            found => {
                if found.is_some() {
                    self.remove(key);
                }
                self.misses += 1;
                None
            }
        }
    }

    /// Changes a hit to a miss: the result `kept` from [`ToolResultCache::get`] has become invalid.
    pub fn invalidate_hit(&mut self, key: &CacheKey, kept: &Arc<CachedResult>) {
        let stands = self.entries.get(key);
        if stands.is_some_and(|entry| Arc::ptr_eq(&entry.kept, kept)) {
            self.remove(key);
        }
        self.hits = self.hits.saturating_sub(1);
        self.misses += 1;
    }

    /// Stores a result that was requested at `now`, unless it exceeds a quarter of the size limit.
    pub fn put(&mut self, key: CacheKey, kept: CachedResult, now: DualClockInstant) {
        self.remove(&key);
        let bytes = kept.bytes() + key.bytes() + size_of::<Entry>();
        if bytes > self.most_bytes / 4 {
            return;
        }
        self.turn += 1;
        self.bytes += bytes;
        let entry = Entry {
            kept: Arc::new(kept),
            since: now,
            bytes,
            turn: self.turn,
        };
        self.entries.insert(key, entry);
        while self.bytes > self.most_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.turn);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.remove(&oldest);
        }
    }

    /// Discards the results that depend on files.
    pub fn evict_files(&mut self) {
        let bytes = &mut self.bytes;
        self.entries.retain(|_, entry| {
            let stays = !entry.kept.basis.is_files();
            if !stays {
                *bytes -= entry.bytes;
            }
            stays
        });
    }

    /// Discards all results and retains the counters.
    pub fn evict_all(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Discards all results and resets the counters.
    pub fn clear(&mut self) {
        self.evict_all();
        (self.hits, self.misses) = (0, 0);
    }

    /// Returns the number of calls with a cached result.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Returns the number of cacheable calls without one.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Returns the number of stored results.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the approximate size of the results in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests;
