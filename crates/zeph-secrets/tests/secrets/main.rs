//! The secret scan, measured on a labelled set that is generated at run time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod generate;
mod measure;
mod negatives;
mod properties;
mod random;
