//! Tests of the web tools: rules in tables, requests against a TLS server on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod body;
mod guard;
mod pages;
mod requests;
mod rig;
mod rules;
