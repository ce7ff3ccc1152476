//! The sandbox on systems without one that applies to a thread: it enforces nothing.

use std::io;
use std::path::PathBuf;

use super::plan::Plan;

/// Does nothing, because the system lacks Landlock.
///
/// # Errors
/// None.
pub(super) fn confine(_plan: &Plan) -> io::Result<Option<u32>> {
    Ok(None)
}

/// The filter without reports.
pub(super) mod sockets {
    use std::io;

    use crate::sandbox::Sockets;

    /// Does nothing, because the system lacks seccomp.
    ///
    /// # Errors
    /// None.
    pub(in crate::sandbox) fn refuse_sockets(_sockets: Sockets) -> io::Result<bool> {
        Ok(false)
    }
}

/// The filter with reports.
pub(super) mod watcher {
    use std::io;

    use crate::sandbox::{Denials, Plan};

    /// The receiving end of reports, which this system does not have.
    #[derive(Debug)]
    pub(crate) struct Listener;

    impl Listener {
        /// Watches nothing.
        ///
        /// # Errors
        /// None.
        pub(crate) fn watch(self, _plan: Plan) -> io::Result<Denials> {
            Ok(Denials::default())
        }
    }

    /// Does nothing, because the system reports no system calls.
    ///
    /// # Errors
    /// None.
    pub(in crate::sandbox) fn install(_plan: &Plan) -> io::Result<Option<Listener>> {
        Ok(None)
    }
}

/// Does nothing, because a thread has no mounts of its own.
///
/// # Errors
/// None.
pub(super) fn cover(_paths: &[PathBuf]) -> io::Result<bool> {
    Ok(false)
}

/// Does nothing, because there is nothing to allow.
///
/// # Errors
/// None.
pub(super) fn allow() -> io::Result<()> {
    Ok(())
}
