//! The utility of a call (`[tools.utility]`): a score of its expected result, its cost, and the results that are
//! known already.
//!
//! ```text
//! score = gain - cost / 2 - 1.5 * redundancy + exploration / 4, limited to -1 to 1
//! ```
//!
//! | term | from 0 to 1 |
//! |---|---|
//! | gain | the success rate of the tool ([`super::reputation`], the mean) × the worth of its kind: 1 for tools on this machine, 0.9 for tools that reach beyond it |
//! | cost | the mean of three: risk (0, ½, 1); the average time, `t / (t + 2 s)`; the average size of the result, `b / (b + 32 KiB)` |
//! | redundancy | `(1 - 2^-n) · 2^(-a / 60 s)`: the same call returned the same output `n` times in a row, the last time `a` ago, and no call since then can have changed files |
//! | exploration | `1 / (1 + u)`: the tool was used `u` times in this session |
//!
//! With the threshold 0, first calls run, and second calls with a short output. A third call within about half a
//! minute does not run, because its output is most likely the same as before. Changes that are not made by calls
//! (an editor, a background job) are not detected.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::reputation::Reputation;
use crate::cache::CacheKey;
use crate::def::{Annotations, CachePolicy, Risk};
use crate::error::ToolError;
use crate::feedback::ToolResult;

pub use super::config::UtilityConfig;

/// The time at which the cost term of the time is one half.
const HALF_TIME_MS: f64 = 2000.0;
/// The size at which the cost term of the size is one half.
const HALF_SIZE: f64 = 32.0 * 1024.0;
/// The half-life of the redundancy of an earlier output.
const HALF_LIFE_SECS: f64 = 60.0;
/// The maximum number of calls per session that are stored.
const MAX_CALLS: usize = 64;

/// The known facts about a call before it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UtilityInput {
    /// The expected rate of success of the tool, 0 to 1.
    pub reputation: f64,
    /// Whether the call accesses the network.
    pub open_world: bool,
    /// The risk of the tool.
    pub risk: Risk,
    /// The average duration in milliseconds.
    pub typical_ms: f64,
    /// The average size of the result in bytes.
    pub typical_bytes: f64,
    /// The number of consecutive calls with the same output, with no change since.
    pub repeats: u32,
    /// The seconds since the last of them.
    pub age_secs: f64,
    /// The number of calls of the tool.
    pub uses: u64,
}

/// The utility of a call, with its terms.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// The score, -1 to 1.
    pub total: f64,
    /// The gain, 0 to 1.
    pub gain: f64,
    /// The cost, 0 to 1.
    pub cost: f64,
    /// The redundancy, 0 to 1.
    pub redundancy: f64,
    /// The exploration, 0 to 1.
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

/// The error of a score that cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the utility score could not be computed: {0}")]
pub struct ScoreError(&'static str);

/// Scores a call.
///
/// # Errors
/// [`ScoreError`] if an input is not a number or is out of bounds.
pub fn score(known: &UtilityInput) -> Result<Score, ScoreError> {
    let amount = |value: f64, what| match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => Err(ScoreError(what)),
    };
    let reputation = amount(
        known.reputation,
        "the reputation of its tool is not a number",
    )?;
    if reputation > 1.0 {
        return Err(ScoreError("the reputation of its tool is over 1"));
    }
    let ms = amount(known.typical_ms, "its duration is not a number")?;
    let bytes = amount(known.typical_bytes, "its size is not a number")?;
    let age = amount(known.age_secs, "its age is not a number")?;
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
        false => Err(ScoreError("its score is not a number")),
    }
}

/// The statistics of a tool in a session.
#[derive(Debug, Clone, Copy, Default)]
struct ToolStats {
    uses: u64,
    ms: f64,
    bytes: f64,
}

/// A call that ran.
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

/// A scorer of calls: records the calls of all sessions of this process, and decides whether the next one is useful.
#[derive(Debug)]
pub struct UtilityScorer {
    config: UtilityConfig,
    sessions: Mutex<HashMap<String, Session>>,
}

impl UtilityScorer {
    /// Creates a scorer without recorded calls.
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

    /// Whether calls of a tool are never skipped: it is exempt, or it changes something.
    #[must_use]
    pub fn spares(&self, tool: &str, nature: &Annotations) -> bool {
        !nature.read_only || self.config.is_exempt(tool)
    }

    /// Returns the known facts about a call.
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

    /// Decides whether a call with these facts runs.
    ///
    /// # Errors
    /// [`ToolError::PolicyBlocked`] with the score if it is below the threshold or cannot be computed.
    pub fn judge(&self, known: &UtilityInput) -> Result<(), ToolError> {
        let threshold = self.config.threshold;
        let score = match score(known) {
            Ok(score) if threshold.is_finite() => score,
            Ok(_) => {
                return Err(ToolError::blocked(
                    "`[tools.utility] threshold` is not a number",
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
                " The same call gave the same output {times} times, the last time {:.0} s ago, and \
                 no call made a change since then: use that output.",
                known.age_secs
            ),
        };
        Err(ToolError::blocked(format!(
            "skipped: its utility is {score}, below {threshold:.2} ([tools.utility] \
             threshold).{why}"
        )))
    }

    /// Records the outcome of a call of a tool with this cache policy. A call that may have changed files discards all stored outputs.
    pub fn note(
        &self,
        session: &str,
        key: CacheKey,
        policy: CachePolicy,
        result: &ToolResult,
        took: Duration,
        now: Instant,
    ) {
        if policy.changes_files {
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
        // The output of a tool that changes without a call is never redundant.
        if !policy.is_cacheable {
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

    /// Discards all stored outputs, because a call or another action changed files.
    pub fn files_changed(&self) {
        for session in self.sessions().values_mut() {
            session.made.clear();
        }
    }

    /// Discards the calls of a session, because its context no longer contains the outputs.
    pub fn forget(&self, session: &str) {
        self.sessions().remove(session);
    }
}

#[cfg(test)]
mod tests;
