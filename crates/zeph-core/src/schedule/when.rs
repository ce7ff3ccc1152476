//! Time expressions of users and models: a single time or a repeated one.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::cron::{Cron, WEEKDAYS};

/// Characters of the longest expression.
const MAX_TEXT_CHARS: usize = 200;

/// The longest delay of a task.
const MAX_DELAY: SignedDuration = SignedDuration::from_hours(24 * 366 * 5);

/// The due times of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// A single time.
    Once(Timestamp),
    /// All times that match the expression in a time zone.
    Again(Cron),
}

/// The supported forms, for messages.
pub const FORMS: &str = "\"in 10 minutes\", \"at 14:30\", \"tomorrow at 9\", \"2026-12-24 18:00\", \"every day at 9\", \
                         \"every monday at 9:30\", \"every weekday at 9\", \"every 15 minutes\", \"every hour\", or five fields of cron";

/// The reason why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhenError {
    /// The form is unknown.
    #[error("{0:?} is not a time; valid forms are {FORMS}")]
    Unknown(String),
    /// The text is too long.
    #[error("expected at most {MAX_TEXT_CHARS} characters; valid forms are {FORMS}")]
    Long,
    /// The time is in the past.
    #[error("{0} is past")]
    Past(String),
    /// It is too far away.
    #[error("{0:?} is more than five years away")]
    Far(String),
    /// The interval does not divide the hour or the day evenly.
    #[error(
        "{0:?} does not divide the clock evenly: minutes of 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30, hours of 1, 2, 3, 4, 6, 8 or 12"
    )]
    Uneven(String),
    /// The cron expression is invalid.
    #[error("{0}")]
    Cron(#[from] super::cron::CronError),
}

impl When {
    /// Parses `text`, relative to `now`.
    ///
    /// # Errors
    /// [`WhenError`].
    pub fn parse(text: &str, now: &Zoned) -> Result<Self, WhenError> {
        if text.chars().nth(MAX_TEXT_CHARS).is_some() {
            return Err(WhenError::Long);
        }
        let plain = text.trim().to_lowercase();
        let words: Vec<&str> = plain.split_whitespace().collect();
        let unknown = || WhenError::Unknown(text.trim().to_owned());
        match words[..] {
            ["now"] => Ok(Self::Once(now.timestamp())),
            ["in", ref rest @ ..] => {
                let by = span(&rest.join(" ")).ok_or_else(unknown)?;
                match by > MAX_DELAY {
                    true => Err(WhenError::Far(plain)),
                    false => now
                        .timestamp()
                        .checked_add(by)
                        .map(Self::Once)
                        .map_err(|_| unknown()),
                }
            }
            ["every", ref rest @ ..] => every(rest, text),
            ["@hourly"] => Ok(Self::Again(Cron::parse("0 * * * *")?)),
            ["@daily" | "@midnight"] => Ok(Self::Again(Cron::parse("0 0 * * *")?)),
            ["@weekly"] => Ok(Self::Again(Cron::parse("0 0 * * 0")?)),
            ["@monthly"] => Ok(Self::Again(Cron::parse("0 0 1 * *")?)),
            ["@yearly" | "@annually"] => Ok(Self::Again(Cron::parse("0 0 1 1 *")?)),
            ["tomorrow", ref rest @ ..] => {
                let time = clock(rest).ok_or_else(unknown)?;
                let day = now.date().tomorrow().map_err(|_| unknown())?;
                once(day.to_datetime(time), now, text)
            }
            ["at", ref rest @ ..] if rest.len() <= 2 && clock(rest).is_some() => {
                let time = clock(rest).unwrap_or_default();
                let today = now.date().to_datetime(time);
                match once(today, now, text) {
                    Err(WhenError::Past(_)) => {
                        let day = now.date().tomorrow().map_err(|_| unknown())?;
                        once(day.to_datetime(time), now, text)
                    }
                    found => found,
                }
            }
            [_, _, _, _, _] if is_cron(&words) => Ok(Self::Again(Cron::parse(&plain)?)),
            ref words => {
                let said = words
                    .strip_prefix(&["at"])
                    .or(words.strip_prefix(&["on"]))
                    .unwrap_or(words)
                    .join(" ");
                moment(&said.to_uppercase(), now, text)
            }
        }
    }

    /// The next due time after `after`; `None` if there are no further times.
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Once(at) => Some(*at).filter(|at| *at > after),
            Self::Again(cron) => cron.next(after, zone),
        }
    }
}

fn is_cron(words: &[&str]) -> bool {
    let field = |word: &&str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"*,-/".contains(&byte);
        word.bytes().all(known)
            && word
                .bytes()
                .any(|byte| byte.is_ascii_digit() || byte == b'*')
    };
    words.iter().filter(|word| field(word)).count() >= 3
}

/// A date with a time and an optional offset.
fn moment(said: &str, now: &Zoned, text: &str) -> Result<When, WhenError> {
    if let Ok(at) = said.parse::<Timestamp>() {
        return match at < now.timestamp() {
            true => Err(WhenError::Past(said.to_owned())),
            false => Ok(When::Once(at)),
        };
    }
    match said.parse::<DateTime>() {
        Ok(local) if said.contains(':') => once(local, now, text),
        _ => Err(WhenError::Unknown(text.trim().to_owned())),
    }
}

/// A local time. A skipped time is later by the skipped amount; of a time that occurs twice the first is meant.
fn once(local: DateTime, now: &Zoned, text: &str) -> Result<When, WhenError> {
    let unknown = |_| WhenError::Unknown(text.trim().to_owned());
    let at = local.to_zoned(now.time_zone().clone()).map_err(unknown)?;
    match at.timestamp() <= now.timestamp() {
        true => Err(WhenError::Past(local.to_string())),
        false => Ok(When::Once(at.timestamp())),
    }
}

fn every(rest: &[&str], text: &str) -> Result<When, WhenError> {
    let unknown = || WhenError::Unknown(text.trim().to_owned());
    let uneven = || WhenError::Uneven(text.trim().to_owned());
    let at = |words: &[&str]| clock(words).ok_or_else(unknown);
    let cron = |text: String| Ok(When::Again(Cron::parse(&text)?));
    let days =
        |time: Time, days: &str| cron(format!("{} {} * * {days}", time.minute(), time.hour()));
    match rest {
        ["minute"] => cron("* * * * *".to_owned()),
        ["hour"] => cron("0 * * * *".to_owned()),
        ["day", time @ ..] => days(at(time)?, "*"),
        ["weekday", time @ ..] => days(at(time)?, "1-5"),
        ["morning"] => days(Time::constant(9, 0, 0, 0), "*"),
        [day, time @ ..] if weekday(day).is_some() => {
            days(at(time)?, &weekday(day).unwrap_or_default().to_string())
        }
        [count, unit] => {
            let count: u32 = count.parse().map_err(|_| unknown())?;
            match (unit.trim_end_matches('s'), count) {
                ("minute" | "min", 1..=30) if 60 % count == 0 => cron(format!("*/{count} * * * *")),
                ("hour", 1..=12) if 24 % count == 0 => cron(format!("0 */{count} * * *")),
                ("minute" | "min" | "hour", _) => Err(uneven()),
                _ => Err(unknown()),
            }
        }
        _ => Err(unknown()),
    }
}

fn weekday(name: &str) -> Option<usize> {
    let known = [
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
    ];
    let full = known
        .iter()
        .position(|known| *known == name || name.strip_suffix('s') == Some(*known));
    full.or_else(|| WEEKDAYS.iter().position(|known| *known == name))
}

/// `at 9`, `9:30`, `9am`, `9:30 pm`; an empty text is midnight.
fn clock(words: &[&str]) -> Option<Time> {
    let words = words.strip_prefix(&["at"]).unwrap_or(words);
    if words.is_empty() {
        return Some(Time::midnight());
    }
    let said = words.concat();
    let (said, half) = match said.strip_suffix("pm") {
        Some(said) => (said, Some(12)),
        None => match said.strip_suffix("am") {
            Some(said) => (said, Some(0)),
            None => (said.as_str(), None),
        },
    };
    let (hour, minute) = said.split_once(':').unwrap_or((said, "0"));
    let number = |text: &str| {
        text.parse::<i8>()
            .ok()
            .filter(|_| text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (hour, minute) = (number(hour)?, number(minute)?);
    let hour = match half {
        None => hour,
        Some(half) => (1..=12).contains(&hour).then_some(hour % 12 + half)?,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// `10 minutes`, `an hour`, `90s`, `2 days`.
fn span(said: &str) -> Option<SignedDuration> {
    let split = said
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(said.len());
    let (count, unit) = said.split_at(split);
    let (count, unit) = match (count, unit.trim()) {
        ("", unit) => (1, unit.strip_prefix("an ").or(unit.strip_prefix("a "))?),
        (count, unit) => (count.parse::<i64>().ok()?, unit),
    };
    let seconds: i64 = match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 24 * 3600,
        "w" | "week" | "weeks" => 7 * 24 * 3600,
        _ => return None,
    };
    count.checked_mul(seconds).map(SignedDuration::from_secs)
}

/// Formats `at` for the user in `zone`.
#[must_use]
pub fn shown(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone())
        .strftime("%Y-%m-%d %H:%M:%S %:z")
        .to_string()
}
