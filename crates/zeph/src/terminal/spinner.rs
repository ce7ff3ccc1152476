//! A spinner with the elapsed time, for long operations.
//!
//! A task draws the line and ends with the operation. Every writer to the screen erases the line first, under the
//! same lock.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Shorter operations show no spinner.
const DELAY: Duration = Duration::from_millis(300);
/// Between two drawings.
const PERIOD: Duration = Duration::from_millis(100);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Takes a drawn spinner away.
pub(super) const ERASE: &str = "\r\x1b[2K";

/// The current operation.
#[derive(Debug, Default)]
pub(super) struct Spinner {
    /// Its label, and when it started.
    waiting: Option<(String, Instant)>,
    /// The end of a wait of known length.
    due: Option<Instant>,
    /// Grows with every wait; the task of an earlier one ends.
    wait: u64,
    drawn: bool,
}

impl Spinner {
    /// Starts a wait, and returns its number.
    pub(super) fn start(&mut self, label: String) -> u64 {
        self.wait += 1;
        self.waiting = Some((label, Instant::now()));
        self.due = None;
        self.wait
    }

    /// Starts a wait of known length, and returns its number. The line shows the rest of the wait, and then the
    /// time since its end.
    pub(super) fn count_down(&mut self, label: String, wait: Duration) -> u64 {
        let number = self.start(label);
        self.due = Instant::now().checked_add(wait);
        number
    }

    /// The wait is over; the line still has to be erased.
    pub(super) fn stop(&mut self) {
        self.waiting = None;
    }

    /// Changes the label of the current operation.
    pub(super) fn relabel(&mut self, label: String) {
        if let Some((old, _)) = &mut self.waiting {
            *old = label;
        }
    }

    /// Whether a line was drawn since the last call.
    pub(super) fn take_drawn(&mut self) -> bool {
        std::mem::take(&mut self.drawn)
    }

    /// Whether the wait of that number continues.
    pub(super) fn is_current(&self, wait: u64) -> bool {
        self.wait == wait && self.waiting.is_some()
    }

    /// The line to draw, at most `columns` wide.
    pub(super) fn draw(&mut self, columns: usize) -> Option<String> {
        let (label, since) = self.waiting.as_ref()?;
        self.drawn = true;
        let now = Instant::now();
        let left = self.due.map(|due| due.saturating_duration_since(now));
        Some(match left {
            Some(left) if !left.is_zero() => line(label, left, columns),
            _ => line(
                label,
                now.duration_since(self.due.unwrap_or(*since)),
                columns,
            ),
        })
    }
}

fn line(label: &str, elapsed: Duration, columns: usize) -> String {
    let periods = usize::try_from(elapsed.as_millis() / PERIOD.as_millis()).unwrap_or(0);
    let frame = FRAMES[periods % FRAMES.len()];
    let time = format!("{:.1} s", elapsed.as_secs_f64());
    // The frame, two spaces, and a free column so that no terminal wraps.
    let room = columns.saturating_sub(time.len() + 4);
    let label: String = label.chars().take(room).collect();
    format!("{frame} {label} {time}")
}

/// Something with a spinner in it.
pub(super) trait WithSpinner: Send + Sync + 'static {
    /// Draws the wait of that number; `false` if it has ended.
    fn spin(&self, wait: u64) -> bool;
}

/// Draws the wait until it ends or its owner is dropped. Without a runtime nothing is drawn.
pub(super) fn animate<S: WithSpinner>(owner: &Arc<S>, wait: u64) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let owner: Weak<S> = Arc::downgrade(owner);
    runtime.spawn(async move {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + DELAY, PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            if !owner.upgrade().is_some_and(|owner| owner.spin(wait)) {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits() {
        let check = |label, millis, columns, expect: &str| {
            assert_eq!(line(label, Duration::from_millis(millis), columns), expect);
        };
        check("waiting", 300, 80, "⠸ waiting 0.3 s");
        check("waiting", 61_000, 80, "⠋ waiting 61.0 s");
        check("waiting for it", 1000, 15, "⠋ waitin 1.0 s");
        check("waiting", 0, 0, "⠋  0.0 s");
    }

    #[test]
    fn a_new_wait_ends_the_task_of_the_old() {
        let mut spinner = Spinner::default();
        let first = spinner.start("a".to_owned());
        assert!(spinner.is_current(first));
        let second = spinner.start("b".to_owned());
        assert!(!spinner.is_current(first) && spinner.is_current(second));
        assert!(
            spinner
                .draw(80)
                .is_some_and(|line| line.contains("b 0.0 s"))
        );
        assert!(spinner.take_drawn() && !spinner.take_drawn());
        spinner.stop();
        assert!(!spinner.is_current(second) && spinner.draw(80).is_none());
    }
}
