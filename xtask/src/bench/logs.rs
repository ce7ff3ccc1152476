//! The cost of logs: read turns that write the records of level info to the log file, next to turns that write none.

use std::path::Path;

use anyhow::Result;

use super::model::Answer;
use super::report::{Figure, Unit, median};
use super::subject::Home;

/// The number of pairs of runs. The runs of a pair follow each other, so that a disturbance affects both.
const PAIRS: usize = 5;

/// Measures turns of the script that `reads` makes for a home.
pub(super) fn measure(
    binary: &Path,
    reads: impl Fn(&Home) -> Result<Vec<Answer>>,
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let home = Home::new()?;
    for _ in 0..PAIRS {
        without.extend(home.run(binary, reads(&home)?)?.turns());
        let logged = [("ZEPH_LOG", "zeph=info")];
        with.extend(home.run_with(binary, reads(&home)?, &logged)?.turns());
    }
    let (without, with) = (median(&without), median(&with));
    figures.push(
        Figure::new(
            "read turn with logs, over one without",
            Unit::Ratio,
            with / without,
        )
        .at_most(1.02)
        .beside("the turn with logs, ms", with),
    );
    Ok(())
}
