//! Times for the user.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The local date and minute of a time in milliseconds since the Unix epoch.
pub(crate) fn date(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).map(|time| time.to_zoned(TimeZone::system()));
    time.map_or_else(
        |_| "?".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M").to_string(),
    )
}
