//! `cargo xtask crash`: kills many conversations at random points. The test suite itself runs few rounds.

use anyhow::Result;

use crate::flags::Crash;
use crate::project::Project;

/// The default number of killed conversations.
const ROUNDS: u32 = 200;

pub(crate) fn run(project: &Project, flags: &Crash) -> Result<()> {
    let rounds = flags.rounds.unwrap_or(ROUNDS).to_string();
    // `cargo test`, because it has no time limit per test.
    let test = project.cargo("test -p zeph --test it crash_rounds -- --nocapture");
    let mut test = test.env("ZEPH_CRASH_ROUNDS", rounds);
    if let Some(seed) = flags.seed {
        test = test.env("ZEPH_CRASH_SEED", seed.to_string());
    }
    Ok(test.run()?)
}
