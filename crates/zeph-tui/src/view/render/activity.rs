//! The activity indicator: a spinner, the current wait and its elapsed time.

use std::time::Instant;

use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::styled_text::{CYAN, DIM, fit, safe};
use crate::view::Activity;

/// Milliseconds between two frames.
const FRAME_MILLIS: u128 = 100;
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The wait at `now`, in at most `width` columns. A wait of known length counts down, then up from its end.
pub(crate) fn activity_line(activity: &Activity, now: Instant, width: usize) -> Line<'static> {
    let left = activity
        .until
        .map(|until| until.saturating_duration_since(now));
    let shown = match left.filter(|left| !left.is_zero()) {
        Some(left) => left,
        None => now.saturating_duration_since(activity.until.unwrap_or(activity.since)),
    };
    let elapsed = now.saturating_duration_since(activity.since).as_millis();
    let frame = usize::try_from(elapsed / FRAME_MILLIS).unwrap_or(0) % FRAMES.len();
    let time = format!(" {:.1} s", shown.as_secs_f64());
    let room = width.saturating_sub(time.width() + 2);
    let label = fit(&safe(&activity.label).replace('\n', " "), room);
    Line::from(vec![
        Span::styled(FRAMES[frame], CYAN),
        Span::raw(" "),
        Span::raw(label),
        Span::styled(time, DIM),
    ])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Proves CLI-4: the spinner shows the elapsed time.
    #[test]
    fn activity_line_fits_and_counts() {
        let since = Instant::now();
        let check = |label: &str, millis, until: Option<u64>, width, expect: &str| {
            let activity = Activity {
                label: label.to_owned(),
                since,
                until: until.map(|millis| since + Duration::from_millis(millis)),
            };
            let now = since + Duration::from_millis(millis);
            assert_eq!(activity_line(&activity, now, width).to_string(), expect);
        };
        check("waiting", 300, None, 80, "⠸ waiting 0.3 s");
        check("waiting", 61_000, None, 80, "⠋ waiting 61.0 s");
        check("waiting for it", 1000, None, 15, "⠋ waitin… 1.0 s");
        check("retry", 1000, Some(3000), 80, "⠋ retry 2.0 s");
        check("retry", 4500, Some(3000), 80, "⠴ retry 1.5 s");
        check("a\x1b[2J\nb", 0, None, 80, "⠋ a b 0.0 s");
    }
}
