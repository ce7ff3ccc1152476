//! The file tools, called like by the stack.
#![cfg(feature = "file")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cache;
mod catalog;
mod change;
mod denied;
mod editor;
mod entries;
mod place;
mod race;
mod reading;
mod searching;
mod seen;
mod undo;
mod world;
