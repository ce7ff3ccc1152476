//! The server of the Agent Client Protocol, through a client that validates every message.

mod cancel;
mod commands;
mod faults;
mod modes;
mod permission;
mod servers;
mod sessions;
mod setup;
mod turn;
mod wire;
