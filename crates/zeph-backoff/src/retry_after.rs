//! The header `Retry-After` (RFC 9110, 10.2.3).

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// Parses the header: seconds (fractions are accepted) or an HTTP date. Returns `None` for any other text.
///
/// A past date returns zero. More seconds than a [`Duration`] can hold return [`Duration::MAX`].
#[must_use]
pub fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        if seconds.is_nan() || seconds.is_sign_negative() {
            return None;
        }
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    // HTTP prescribes the zone "GMT". It is obsolete in RFC 2822, but valid.
    let at = rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Proves ERR-20, LLM-5 for the values of the header.
    #[test]
    fn retry_after_accepts_seconds_and_dates() {
        let now: Timestamp = "2015-10-21T07:28:00Z".parse().unwrap();
        let check = |value: &str, expect: Option<f64>| {
            let expect = expect.map(Duration::from_secs_f64);
            assert_eq!(parse_retry_after(value, now), expect, "{value:?}");
        };
        check("0", Some(0.0));
        check("120", Some(120.0));
        check(" 1.5 ", Some(1.5));
        check("Wed, 21 Oct 2015 07:28:30 GMT", Some(30.0));
        check("Wed, 21 Oct 2015 08:28:00 GMT", Some(3600.0));
        check("Wed, 21 Oct 2015 07:27:00 GMT", Some(0.0));
        for value in [
            "",
            "soon",
            "-1",
            "NaN",
            "-0.0",
            "2015-10-21T07:28:30Z",
            "1 s",
            "\u{0}",
        ] {
            check(value, None);
        }
        assert_eq!(parse_retry_after("1e300", now), Some(Duration::MAX));
        assert_eq!(parse_retry_after("inf", now), Some(Duration::MAX));
    }
}
