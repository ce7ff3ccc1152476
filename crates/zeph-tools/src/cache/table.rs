//! The cache of one session: a pure state, to which the time is an argument.

use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::config::ResultCacheConfig;
use super::key::CacheKey;
use super::validity::CacheValidity;
use crate::output::ToolOutput;

/// A moment on both clocks. The steady one stands still while the machine sleeps, the other one may
/// be set: the longer way counts, so that nothing is taken for younger than it is.
#[derive(Debug, Clone, Copy)]
pub struct DualClockInstant {
    steady: Instant,
    wall: SystemTime,
}

impl DualClockInstant {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            steady: Instant::now(),
            wall: SystemTime::now(),
        }
    }

    /// The moment `time` later on both clocks.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self {
            steady: self.steady + time,
            wall: self.wall + time,
        }
    }

    /// The time since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let steady = self.steady.saturating_duration_since(earlier.steady);
        let wall = self.wall.duration_since(earlier.wall).unwrap_or_default();
        steady.max(wall)
    }
}

/// A result as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedResult {
    /// What the call yielded, without its basis.
    pub output: ToolOutput,
    /// What it rests on.
    pub basis: CacheValidity,
    /// Where what it says comes from, as audit entries name it.
    pub claim_source: Option<String>,
}

impl CachedResult {
    /// About the bytes that it takes.
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
    /// Rises with each use.
    turn: u64,
}

/// Results of the calls of one session. What is too old goes when it is asked for; what takes too
/// much room goes when something is put in, that which was not used for the longest time first.
///
/// It is not `Sync`: whoever has it, has it alone.
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
    /// An empty one.
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

    /// What is kept under `key` and not too old at `now`, and how old it is. Counts a hit or a miss.
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

    /// Takes a hit back: `kept`, which [`ToolResultCache::get`] yielded, proved to hold no longer.
    pub fn invalidate_hit(&mut self, key: &CacheKey, kept: &Arc<CachedResult>) {
        let stands = self.entries.get(key);
        if stands.is_some_and(|entry| Arc::ptr_eq(&entry.kept, kept)) {
            self.remove(key);
        }
        self.hits = self.hits.saturating_sub(1);
        self.misses += 1;
    }

    /// Keeps a result that was asked for at `now`, unless it takes over a quarter of the room.
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

    /// Forgets what rests on files.
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

    /// Forgets every result; the counters stay.
    pub fn evict_all(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Starts over, counters included.
    pub fn clear(&mut self) {
        self.evict_all();
        (self.hits, self.misses) = (0, 0);
    }

    /// Calls that were answered from it.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Calls that were not, and could have been.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Results that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// About the bytes that they take.
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
#[path = "table_tests.rs"]
mod tests;
