//! `cargo xtask crash`: kills conversations at random points, many times. The test itself runs few rounds.

use anyhow::Result;

use crate::flags::Crash;
use crate::project::Project;

/// Conversations that are killed, if nothing else is asked for.
const ROUNDS: u32 = 200;

pub(crate) fn run(project: &Project, flags: &Crash) -> Result<()> {
    let rounds = flags.rounds.unwrap_or(ROUNDS).to_string();
    // Without the time limit that cargo-nextest puts on a test.
    let test = project.cargo("test -p zeph --test it crash_rounds -- --nocapture");
    let mut test = test.env("ZEPH_CRASH_ROUNDS", rounds);
    if let Some(seed) = flags.seed {
        test = test.env("ZEPH_CRASH_SEED", seed.to_string());
    }
    Ok(test.run()?)
}
