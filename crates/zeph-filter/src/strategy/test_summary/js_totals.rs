//! The totals of a run of JavaScript tests. On a terminal they are printed repeatedly; the last ones are shown.

use super::failures::Failures;
use super::{ExitInfo, FilterConfidence, OwnedLine, Sink};

/// The totals that are not shown yet.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) lines: Vec<OwnedLine>,
    shown: u64,
}

impl Totals {
    /// Shows the totals.
    pub(super) fn show(&mut self, out: &mut dyn Sink) {
        for held in self.lines.drain(..) {
            self.shown += 1;
            out.keep(held.line());
        }
    }

    /// Ends the output of a run. `failed` states whether another line than a failure reports one.
    pub(super) fn finish(
        &mut self,
        failures: &mut Failures,
        failed: bool,
        end: ExitInfo,
        out: &mut dyn Sink,
    ) -> FilterConfidence {
        let failed = failed || failures.any();
        failures.finish(out);
        self.show(out);
        match self.shown {
            0 => FilterConfidence::Partial,
            _ if end.failed() && !failed => FilterConfidence::Fallback,
            _ => FilterConfidence::Full,
        }
    }
}
