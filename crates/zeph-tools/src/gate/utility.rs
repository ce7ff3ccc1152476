//! Whether a call is worth making (`[tools.utility]`): a score of what it may yield, what it costs,
//! and what is known already.
//!
//! ```text
//! score = gain - cost / 2 - 1.5 * redundancy + exploration / 4, held between -1 and 1
//! ```
//!
//! | term | from 0 to 1 |
//! |---|---|
//! | gain | how well the tool is called ([`super::reputation`], the mean) × the worth of its kind: 1 for what looks at this machine, 0.9 for what lies beyond it |
//! | cost | the mean of three: risk (0, ½, 1); the time that it mostly takes, `t / (t + 2 s)`; the size of what it mostly yields, `b / (b + 32 KiB)` |
//! | redundancy | `(1 - 2^-n) · 2^(-a / 60 s)`: the same call gave the same output `n` times in a row, the last time `a` ago, and no call that may change files came between |
//! | exploration | `1 / (1 + u)`: the tool was used `u` times in this session |
//!
//! So with the threshold 0 the first calls run, and the second of a short text; the third within half a minute or so, that most likely
//! gives what was given twice, does not. A change that no call made (an editor's, a background job's) is not seen.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::reputation::Reputation;
use crate::cache::CacheKey;
use crate::cache::catalog::{changes_files, is_cacheable};
use crate::def::{Annotations, Risk};
use crate::error::ToolError;
use crate::feedback::ToolResult;

pub use super::config::UtilityConfig;

/// The time that costs half of what time can cost.
const HALF_TIME_MS: f64 = 2000.0;
/// The size that costs half of what size can cost.
const HALF_SIZE: f64 = 32.0 * 1024.0;
/// The time after which an earlier output is worth half.
const HALF_LIFE_SECS: f64 = 60.0;
/// The most calls of a session that are remembered.
const MAX_CALLS: usize = 64;

/// What is known about a call before it is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UtilityInput {
    /// The expected rate of success of the tool, 0 to 1.
    pub reputation: f64,
    /// Whether it reaches beyond this machine.
    pub open_world: bool,
    /// How much a call can harm.
    pub risk: Risk,
    /// Milliseconds that it mostly takes.
    pub typical_ms: f64,
    /// Bytes that it mostly yields.
    pub typical_bytes: f64,
    /// How often in a row the same call gave the same output, with nothing changed since.
    pub repeats: u32,
    /// Seconds since the last of them.
    pub age_secs: f64,
    /// How often the tool was used.
    pub uses: u64,
}

/// What a call may be worth, and what of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// -1 to 1.
    pub total: f64,
    /// 0 to 1.
    pub gain: f64,
    /// 0 to 1.
    pub cost: f64,
    /// 0 to 1.
    pub redundancy: f64,
    /// 0 to 1.
    pub exploration: f64,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            total,
            gain,
            cost,
            redundancy,
            exploration,
        } = self;
        write!(
            f,
            "{total:.2} (gain {gain:.2}, cost {cost:.2}, redundancy {redundancy:.2}, exploration {exploration:.2})"
        )
    }
}

/// A call cannot be scored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the utility score could not be computed: {0}")]
pub struct ScoreError(&'static str);

/// Scores a call.
///
/// # Errors
/// [`ScoreError`] when something that is known is no number, or out of its bounds.
pub fn score(known: &UtilityInput) -> Result<Score, ScoreError> {
    let amount = |value: f64, what| match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => Err(ScoreError(what)),
    };
    let reputation = amount(known.reputation, "the reputation of its tool is no number")?;
    if reputation > 1.0 {
        return Err(ScoreError("the reputation of its tool is over 1"));
    }
    let ms = amount(known.typical_ms, "its duration is no number")?;
    let bytes = amount(known.typical_bytes, "its size is no number")?;
    let age = amount(known.age_secs, "its age is no number")?;
    let worth = if known.open_world { 0.9 } else { 1.0 };
    let risk = match known.risk {
        Risk::Safe => 0.0,
        Risk::Medium => 0.5,
        Risk::High => 1.0,
    };
    let time = ms / (ms + HALF_TIME_MS);
    let size = bytes / (bytes + HALF_SIZE);
    let gain = reputation * worth;
    let cost = (risk + time + size) / 3.0;
    let same = 1.0 - f64::from(known.repeats).exp2().recip();
    let redundancy = same * (-age / HALF_LIFE_SECS).exp2();
    let exploration = 1.0 / (1.0 + known.uses as f64);
    let total = gain - 0.5 * cost - 1.5 * redundancy + 0.25 * exploration;
    let score = Score {
        total: total.clamp(-1.0, 1.0),
        gain,
        cost,
        redundancy,
        exploration,
    };
    match score.total.is_finite() {
        true => Ok(score),
        false => Err(ScoreError("its score is no number")),
    }
}

/// What a tool was like in a session.
#[derive(Debug, Clone, Copy, Default)]
struct ToolStats {
    uses: u64,
    ms: f64,
    bytes: f64,
}

/// A call that was made.
#[derive(Debug)]
struct PastCall {
    key: CacheKey,
    output: [u8; 32],
    times: u32,
    last: Instant,
}

#[derive(Debug, Default)]
struct Session {
    habits: HashMap<String, ToolStats>,
    made: VecDeque<PastCall>,
}

/// What was called in all sessions of this process, and what is worth calling again.
#[derive(Debug)]
pub struct UtilityScorer {
    config: UtilityConfig,
    sessions: Mutex<HashMap<String, Session>>,
}

impl UtilityScorer {
    /// Nothing was called yet.
    #[must_use]
    pub fn new(config: UtilityConfig) -> Self {
        Self {
            config,
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls of a tool are never skipped: it is exempt, or changes something.
    #[must_use]
    pub fn spares(&self, tool: &str, nature: &Annotations) -> bool {
        !nature.read_only || self.config.is_exempt(tool)
    }

    /// What is known about a call.
    #[must_use]
    pub fn evidence(
        &self,
        session: &str,
        key: &CacheKey,
        nature: &Annotations,
        reputation: Reputation,
        now: Instant,
    ) -> UtilityInput {
        let sessions = self.sessions();
        let session = sessions.get(session);
        let habit = session.and_then(|session| session.habits.get(key.tool()));
        let habit = habit.copied().unwrap_or_default();
        let made = session.and_then(|session| session.made.iter().find(|made| made.key == *key));
        let age = made.map_or(Duration::ZERO, |made| now.duration_since(made.last));
        UtilityInput {
            reputation: reputation.mean(),
            open_world: nature.open_world,
            risk: nature.risk,
            typical_ms: habit.ms,
            typical_bytes: habit.bytes,
            repeats: made.map_or(0, |made| made.times),
            age_secs: age.as_secs_f64(),
            uses: habit.uses,
        }
    }

    /// Whether a call of which this is known runs.
    ///
    /// # Errors
    /// [`ToolError::PolicyBlocked`] with the score, when it is below the threshold; also when it cannot
    /// be scored.
    pub fn judge(&self, known: &UtilityInput) -> Result<(), ToolError> {
        let threshold = self.config.threshold;
        let score = match score(known) {
            Ok(score) if threshold.is_finite() => score,
            Ok(_) => {
                return Err(ToolError::blocked(
                    "`[tools.utility] threshold` is no number",
                ));
            }
            Err(error) => return Err(ToolError::blocked(error.to_string())),
        };
        if score.total >= threshold {
            return Ok(());
        }
        let why = match known.repeats {
            0 => String::new(),
            times => format!(
                " The same call gave the same output {times} times, {:.0} s ago, and no call changed \
                 anything since: use that.",
                known.age_secs
            ),
        };
        Err(ToolError::blocked(format!(
            "skipped, for its utility is {score}, below {threshold:.2} ([tools.utility] threshold).{why}"
        )))
    }

    /// Notes what came of a call that ran. One that may have changed files ends what was known of
    /// all calls.
    pub fn note(
        &self,
        session: &str,
        key: CacheKey,
        result: &ToolResult,
        took: Duration,
        now: Instant,
    ) {
        if changes_files(key.tool()) {
            self.files_changed();
        }
        let mut sessions = self.sessions();
        let session = sessions.entry(session.to_owned()).or_default();
        let Ok(output) = result else { return };
        let habit = session.habits.entry(key.tool().to_owned()).or_default();
        habit.uses += 1;
        let share = 1.0 / habit.uses as f64;
        habit.ms += (took.as_secs_f64() * 1000.0 - habit.ms) * share;
        habit.bytes += (output.summary.len() as f64 - habit.bytes) * share;
        // What changes by itself is never known already.
        if !is_cacheable(key.tool()) {
            return;
        }
        let text = crate::cache::split_note(&output.summary).1;
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let before = session.made.iter().position(|made| made.key == key);
        let before = before.and_then(|at| session.made.remove(at));
        let times = match before {
            Some(made) if made.output == digest => made.times.saturating_add(1),
            _ => 1,
        };
        if session.made.len() >= MAX_CALLS {
            session.made.pop_front();
        }
        session.made.push_back(PastCall {
            key,
            output: digest,
            times,
            last: now,
        });
    }

    /// Files changed, by a call or beside it: no earlier output is what a call would yield now.
    pub fn files_changed(&self) {
        for session in self.sessions().values_mut() {
            session.made.clear();
        }
    }

    /// Forgets what was called in a session: its window does not hold the outputs any more.
    pub fn forget(&self, session: &str) {
        self.sessions().remove(session);
    }
}

#[cfg(test)]
#[path = "utility_tests.rs"]
mod tests;
