//! Tests of the public interface: rules in tables, requests against a TLS server on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod body;
mod guard;
mod pages;
// Builds without debug assertions cannot reach a server on loopback.
#[cfg(debug_assertions)]
mod requests;
#[cfg(debug_assertions)]
mod server;
