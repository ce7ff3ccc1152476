//! Tests that need a PostgreSQL server. `cargo xtask postgres` starts one.

mod approvals;
mod conflicts;
mod shared;
