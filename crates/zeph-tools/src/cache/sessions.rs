//! The caches of a process, one a session, and what ends the results in all of them: a change of
//! files by a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::config::ResultCacheConfig;
use super::key::CacheKey;
use super::table::{CachedResult, DualClockInstant, ToolResultCache};
use super::validity::{BackgroundActivity, CacheValidity};

/// Sessions that are kept; the one that was not used for the longest time goes first.
const MAX_SESSIONS: usize = 16;

/// What a session's cache came to, for the person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Calls that were answered from it.
    pub hits: u64,
    /// Calls that were not, and could have been.
    pub misses: u64,
    /// Results that are kept.
    pub entries: usize,
    /// About the bytes that they take.
    pub bytes: usize,
}

struct Session {
    cache: ToolResultCache,
    /// Rises when the session's results are forgotten.
    turn: u64,
    used: u64,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Session>,
    used: u64,
    /// Rises with every call that may have changed files, when it ends.
    epoch: u64,
    /// Calls that may be changing files.
    changing: usize,
    /// Rises when every result is forgotten.
    forgotten: u64,
}

/// The caches of a process. A session is answered from its own alone.
pub struct ResultCaches {
    config: ResultCacheConfig,
    background: Option<Arc<dyn BackgroundActivity>>,
    state: Mutex<State>,
}

/// A call on its way: what held when it came in.
#[derive(Debug, Clone)]
pub struct CacheLookup {
    session: String,
    key: CacheKey,
    began: DualClockInstant,
    epoch: u64,
    forgotten: u64,
    turn: u64,
    /// Whether nothing was changing files.
    still: bool,
}

/// For as long as it stands, files may be changing. Its end is the end of every result that rests
/// on files, however the call ended.
pub struct MutationGuard<'a>(&'a ResultCaches);

impl MutationGuard<'_> {
    /// Ends it. The call of `visit`, which it was, is not one of those that it puts an end to,
    /// unless another was changing files beside it.
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
    /// Empty ones. What `background` runs may change files at any time.
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

    /// To be held while files may be changing.
    #[must_use]
    pub fn changing(&self) -> MutationGuard<'_> {
        self.state().changing += 1;
        MutationGuard(self)
    }

    /// Notes a call that comes in, before anything of it is done, and looks for its result.
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
                // What runs may have changed them already.
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

    /// Whether what `visit` found still may be answered: `holds` is what its witness said.
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

    /// Keeps the result of a call, unless something changed since it came in.
    pub fn keep(&self, visit: CacheLookup, kept: CachedResult) {
        let mut state = self.state();
        if self.is_good(&state, &visit, &kept.basis)
            && let Some(own) = state.sessions.get_mut(&visit.session)
        {
            own.cache.put(visit.key, kept, visit.began);
        }
    }

    /// Whether what held when `visit` came in holds now, as far as `basis` is concerned.
    fn is_good(&self, state: &State, visit: &CacheLookup, basis: &CacheValidity) -> bool {
        let own = state.sessions.get(&visit.session);
        let same = state.forgotten == visit.forgotten
            && own.is_some_and(|session| session.turn == visit.turn);
        let still = visit.still && state.epoch == visit.epoch && self.is_still(state);
        same && (still || !basis.is_files())
    }

    /// Forgets everything of a session, counters included: its window was cleared or changed.
    pub fn clear(&self, session: &str) {
        let mut state = self.state();
        let own = state.session(session, &self.config);
        own.turn += 1;
        own.cache.clear();
    }

    /// Forgets every result of every session: what they were made by has changed.
    pub fn forget_all(&self) {
        let mut state = self.state();
        state.forgotten += 1;
        for session in state.sessions.values_mut() {
            session.cache.evict_all();
        }
    }

    /// What the session's cache came to.
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
    /// The session of that name, which is made if need be.
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
                // One that was dropped and made again is another.
                turn: used,
                used,
            });
        session.used = used;
        session
    }
}
