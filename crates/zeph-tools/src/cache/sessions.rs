//! The caches of a process, one per session. A call that changes files invalidates results in all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::CacheKey;
use super::config::ResultCacheConfig;
use super::table::{CachedResult, DualClockInstant, ToolResultCache};
use super::{BackgroundActivity, CacheValidity};

/// The maximum number of sessions; the least recently used one is evicted first.
const MAX_SESSIONS: usize = 16;

/// The statistics of the cache of a session, for the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// The number of calls with a cached result.
    pub hits: u64,
    /// The number of cacheable calls without one.
    pub misses: u64,
    /// The number of stored results.
    pub entries: usize,
    /// Their approximate size in bytes.
    pub bytes: usize,
}

struct Session {
    cache: ToolResultCache,
    /// Increases when the results of the session are discarded.
    turn: u64,
    used: u64,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Session>,
    used: u64,
    /// Increases at the end of each call that may have changed files.
    epoch: u64,
    /// The number of running calls that may change files.
    changing: usize,
    /// Increases when all results are discarded.
    forgotten: u64,
}

/// The caches of a process. A session uses only its own cache.
pub struct ResultCaches {
    config: ResultCacheConfig,
    background: Option<Arc<dyn BackgroundActivity>>,
    state: Mutex<State>,
}

/// The state of the caches when a call arrived.
#[derive(Debug, Clone)]
pub struct CacheLookup {
    session: String,
    key: CacheKey,
    began: DualClockInstant,
    epoch: u64,
    forgotten: u64,
    turn: u64,
    /// Whether no files were being changed.
    still: bool,
}

/// A guard for a time in which files may change. Its drop invalidates all results that depend on files, for any
/// outcome of the call.
pub struct MutationGuard<'a>(&'a ResultCaches);

impl MutationGuard<'_> {
    /// Ends the change. The lookup `visit` of the same call stays valid, unless another call changed files at the
    /// same time.
    pub fn end_mutation(self, visit: &mut CacheLookup) {
        let caches = self.0;
        let before = caches.state().epoch;
        drop(self);
        if visit.epoch == before {
            visit.epoch += 1;
        }
    }
}

impl Drop for MutationGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.changing -= 1;
        state.epoch += 1;
        for session in state.sessions.values_mut() {
            session.cache.evict_files();
        }
    }
}

impl ResultCaches {
    /// Creates empty caches. The work in `background` may change files at any time.
    #[must_use]
    pub fn new(
        config: &ResultCacheConfig,
        background: Option<Arc<dyn BackgroundActivity>>,
    ) -> Self {
        Self {
            config: config.clone(),
            background,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_still(&self, state: &State) -> bool {
        state.changing == 0
            && !self
                .background
                .as_ref()
                .is_some_and(|jobs| jobs.is_running())
    }

    /// Starts a time in which files may change.
    #[must_use]
    pub fn changing(&self) -> MutationGuard<'_> {
        self.state().changing += 1;
        MutationGuard(self)
    }

    /// Records the arrival of a call, before it runs, and returns its cached result.
    #[must_use]
    pub fn visit(
        &self,
        session: &str,
        key: CacheKey,
    ) -> (CacheLookup, Option<(Arc<CachedResult>, Duration)>) {
        let began = DualClockInstant::now();
        let mut state = self.state();
        let still = self.is_still(&state);
        let (epoch, forgotten) = (state.epoch, state.forgotten);
        let own = state.session(session, &self.config);
        let turn = own.turn;
        let found = own.cache.get(&key, began);
        let found = match found {
            Some((kept, _)) if kept.basis.is_files() && !still => {
                // A running call may have changed the files already.
                own.cache.invalidate_hit(&key, &kept);
                None
            }
            found => found,
        };
        let visit = CacheLookup {
            session: session.to_owned(),
            key,
            began,
            epoch,
            forgotten,
            turn,
            still,
        };
        (visit, found)
    }

    /// Whether the result of `visit` is still valid; `holds` is the outcome of its freshness check.
    #[must_use]
    pub fn confirm(&self, visit: &CacheLookup, kept: &Arc<CachedResult>, holds: bool) -> bool {
        let mut state = self.state();
        if holds && self.is_good(&state, visit, &kept.basis) {
            return true;
        }
        if let Some(own) = state.sessions.get_mut(&visit.session) {
            own.cache.invalidate_hit(&visit.key, kept);
        }
        false
    }

    /// Stores the result of a call, unless something changed since it arrived.
    pub fn keep(&self, visit: CacheLookup, kept: CachedResult) {
        let mut state = self.state();
        if self.is_good(&state, &visit, &kept.basis)
            && let Some(own) = state.sessions.get_mut(&visit.session)
        {
            own.cache.put(visit.key, kept, visit.began);
        }
    }

    /// Whether the conditions from the arrival of `visit` still hold, as far as they affect `basis`.
    fn is_good(&self, state: &State, visit: &CacheLookup, basis: &CacheValidity) -> bool {
        let own = state.sessions.get(&visit.session);
        let same = state.forgotten == visit.forgotten
            && own.is_some_and(|session| session.turn == visit.turn);
        let still = visit.still && state.epoch == visit.epoch && self.is_still(state);
        same && (still || !basis.is_files())
    }

    /// Discards the results and counters of a session, because its context was cleared or changed.
    pub fn clear(&self, session: &str) {
        let mut state = self.state();
        let own = state.session(session, &self.config);
        own.turn += 1;
        own.cache.clear();
    }

    /// Discards all results of all sessions, because the conditions of their creation have changed.
    pub fn forget_all(&self) {
        let mut state = self.state();
        state.forgotten += 1;
        for session in state.sessions.values_mut() {
            session.cache.evict_all();
        }
    }

    /// Returns the statistics of the cache of a session.
    #[must_use]
    pub fn status(&self, session: &str) -> CacheStatus {
        let state = self.state();
        let Some(Session { cache, .. }) = state.sessions.get(session) else {
            return CacheStatus::default();
        };
        CacheStatus {
            hits: cache.hits(),
            misses: cache.misses(),
            entries: cache.len(),
            bytes: cache.bytes(),
        }
    }
}

impl State {
    /// Returns the session with this name, and creates it if it does not exist.
    fn session(&mut self, name: &str, config: &ResultCacheConfig) -> &mut Session {
        self.used += 1;
        if !self.sessions.contains_key(name) && self.sessions.len() >= MAX_SESSIONS {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.sessions.remove(&oldest);
            }
        }
        let used = self.used;
        let session = self
            .sessions
            .entry(name.to_owned())
            .or_insert_with(|| Session {
                cache: ToolResultCache::new(config),
                // A session that was evicted and created again has another turn.
                turn: used,
                used,
            });
        session.used = used;
        session
    }
}
