//! Check of the limit of open files, before other parts of the program need descriptors.
//!
//! The runtime's signal handling panics without descriptors, so the check is the first step.

use rustix::process::{Resource, getrlimit};

/// Open files below which Zeph does not start: the standard streams, the runtime, the database with its
/// log, and one command with its pipes.
const MIN_OPEN_FILES: u64 = 32;

/// Why this process cannot start, if its limit of open files is too low.
pub(super) fn problem() -> Option<String> {
    message(getrlimit(Resource::Nofile).current)
}

fn message(limit: Option<u64>) -> Option<String> {
    let limit = limit.filter(|limit| *limit < MIN_OPEN_FILES)?;
    Some(format!(
        "this shell allows {limit} open files per process, and Zeph needs at least {MIN_OPEN_FILES}: raise \
         the limit with `ulimit -n 1024`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_below_the_minimum_is_a_problem() {
        let check = |limit, expect| assert_eq!(message(limit).is_some(), expect, "{limit:?}");
        check(Some(0), true);
        check(Some(6), true);
        check(Some(31), true);
        check(Some(32), false);
        check(Some(1024), false);
        check(None, false);
    }
}
