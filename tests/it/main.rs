//! The built binary from outside: processes, files, a server on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

mod audit;
mod bad_disk;
mod batches;
mod blocklist;
mod cache;
mod claim_source;
mod config;
mod crash;
mod crash_shell;
mod demo;
mod denied_commands;
mod diagnostics;
mod doctor;
mod entry_points;
mod faults;
mod filter_cli;
mod filter_trust;
mod filters;
mod help;
mod images;
mod interrupt;
mod jobs;
mod limits;
mod loops;
mod one_shot;
mod one_shot_exit;
mod one_shot_json;
mod os_sandbox;
mod overflow;
mod piped;
mod reload;
mod retry;
mod secrets;
mod seen;
mod terminal;
mod together;
mod tools_call;
mod tools_params;
mod tools_run;
mod transactions;
mod undo;
mod web;
mod wire;
