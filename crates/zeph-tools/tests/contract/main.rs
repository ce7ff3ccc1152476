//! The contract and the stack through the public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adversarial;
mod errors;
mod executors;
mod fakes;
mod limits;
mod overflow;
mod retry;
mod stack;
