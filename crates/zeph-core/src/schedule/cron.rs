//! Cron expressions of five fields, and the times at which they are due.
//!
//! Fields, ranges, lists, steps and names as in POSIX `crontab` and Vixie cron
//! (<https://pubs.opengroup.org/onlinepubs/9799919799/utilities/crontab.html>,
//! `crontab(5)`): if day of month and day of week are both restricted, one of them is enough.
//!
//! Changes of the clock: a skipped local time is due later, by the time that the clock was set forward, so a daily task
//! runs once on that day. If a local time occurs twice, the first one is due. If the hour is `*`, both are due, so that
//! a task that runs every few minutes does not pause.

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan as _};

/// The maximum number of days to search for the next time: 29 February falls on each day of the week at least once in
/// 40 years.
const MAX_DAYS: usize = 40 * 366 + 2;

/// A cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a match of the day of month or of the day of week is enough.
    either: bool,
}

/// The reason why a text is not a cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {text:?}: {what}")]
pub struct CronError {
    field: &'static str,
    text: String,
    what: String,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
/// The first three letters of the days of the week.
pub(super) const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const ALL_HOURS: u64 = (1 << 24) - 1;

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

impl Cron {
    /// Parses five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday).
    ///
    /// # Errors
    /// A field is wrong, or the expression has no due time.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase();
        let fields: Vec<&str> = text.split(' ').collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError {
                field: "cron",
                what: format!("expected five fields, got {}", fields.len()),
                text,
            });
        };
        let field = |name, least, most, names| Field {
            name,
            least,
            most,
            names,
        };
        let week = field("day of week", 0, 7, &WEEKDAYS).parse(weekday)?;
        let cron = Self {
            minutes: field("minute", 0, 59, &[]).parse(minute)?,
            hours: field("hour", 0, 23, &[]).parse(hour)?,
            days: field("day of month", 1, 31, &[]).parse(day)?,
            months: field("month", 1, 12, &MONTHS).parse(month)?,
            weekdays: (week | (week >> 7)) & 0x7f,
            either: !day.starts_with('*') && !weekday.starts_with('*'),
            text: text.clone(),
        };
        match cron.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC) {
            Some(_) => Ok(cron),
            None => Err(CronError {
                field: "cron",
                text,
                what: "there is no such day".to_owned(),
            }),
        }
    }

    /// Returns the expression in lower case, with single spaces.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first due time after `after`, or `None` if the calendar ends before it.
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // A time that was skipped late on the day before may be due on this day.
        let mut day = after
            .to_zoned(zone.clone())
            .date()
            .checked_sub(1.day())
            .ok()?;
        for _ in 0..MAX_DAYS {
            let found = self.first_of(day, after, zone);
            if let Some(found) = found {
                // A time of the next day may be due earlier than a skipped time of this day.
                let next = day
                    .tomorrow()
                    .ok()
                    .and_then(|next| self.first_of(next, after, zone));
                return Some(next.map_or(found, |next| next.min(found)));
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    fn is_day(&self, day: Date) -> bool {
        let has = |set: u64, at: i8| set >> at & 1 == 1;
        let of_month = has(self.days, day.day());
        let of_week = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        has(self.months, day.month())
            && match self.either {
                true => of_month || of_week,
                false => of_month && of_week,
            }
    }

    fn first_of(&self, day: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if !self.is_day(day) {
            return None;
        }
        let mut first: Option<Timestamp> = None;
        for hour in (0..24i8).filter(|hour| self.hours >> hour & 1 == 1) {
            for minute in (0..60i8).filter(|minute| self.minutes >> minute & 1 == 1) {
                let local = zone.to_ambiguous_zoned(day.at(hour, minute, 0, 0));
                let folded = matches!(local.offset(), AmbiguousOffset::Fold { .. });
                let again = (folded && self.hours == ALL_HOURS).then(|| local.clone().later());
                for found in [Some(local.compatible()), again].into_iter().flatten() {
                    let Ok(found) = found else { continue };
                    let found = found.timestamp();
                    if found > after && first.is_none_or(|first| found < first) {
                        first = Some(found);
                    }
                }
            }
        }
        first
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<u64, CronError> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                None => (part, 1),
                Some((range, step)) => (range, self.step(step, text)?),
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" => (
                    self.least,
                    self.most.min(if self.most == 7 { 6 } else { self.most }),
                ),
                Some((from, to)) => (self.value(from, text)?, self.value(to, text)?),
                None => {
                    let from = self.value(range, text)?;
                    // `5/10` begins at 5 and has no end.
                    (from, if part.contains('/') { self.most } else { from })
                }
            };
            if from > to {
                return Err(self.wrong(text, format!("{from} comes after {to}")));
            }
            for at in (from..=to).step_by(step) {
                set |= 1 << at;
            }
        }
        Ok(set)
    }

    fn step(&self, step: &str, text: &str) -> Result<usize, CronError> {
        let found = step
            .parse::<usize>()
            .ok()
            .filter(|step| (1..=60).contains(step));
        found.ok_or_else(|| self.wrong(text, format!("{step:?} is not a step from 1 to 60")))
    }

    fn value(&self, value: &str, text: &str) -> Result<u32, CronError> {
        let named = self.names.iter().position(|name| *name == value);
        let first = if self.least == 1 { 1 } else { 0 };
        let named = named.and_then(|at| u32::try_from(at + first).ok());
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let number = value.parse().ok().filter(|_| digits);
        let found = named
            .or(number)
            .filter(|found| (self.least..=self.most).contains(found));
        found.ok_or_else(|| {
            self.wrong(
                text,
                format!(
                    "{value:?} is not a value from {} to {}",
                    self.least, self.most
                ),
            )
        })
    }

    fn wrong(&self, text: &str, what: String) -> CronError {
        CronError {
            field: self.name,
            text: text.to_owned(),
            what,
        }
    }
}
