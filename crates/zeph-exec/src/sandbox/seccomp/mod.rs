//! seccomp: filters for the system calls of a thread and of all processes that it starts.
//!
//! `watcher` installs a filter that reports system calls, refuses sockets and records refused accesses. `sockets` has a
//! filter for kernels that cannot report system calls. Both are built from the table in `system_calls`.

pub(super) mod sockets;
mod system_calls;
pub(super) mod watcher;
