//! The server of the Agent Client Protocol, through a client that validates every message.

mod cancel;
mod client;
mod commands;
mod elicitation;
mod faults;
mod files;
mod modes;
mod page;
mod permission;
mod servers;
mod sessions;
mod setup;
mod terminals;
mod turn;
mod wire;
