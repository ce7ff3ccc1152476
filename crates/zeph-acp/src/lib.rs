#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
//! # Structure
//! - [`config`]: the section `[acp]`.
//! - [`host`]: the port to the sessions, which the binary implements.
//! - [`input`]: lines of bytes from the client, with a maximum size.
//! - `terminal`: commands in terminals of the client.
//! - [`wire`]: the protocol library; the only module that uses its types.

pub mod config;
pub mod host;
pub mod input;
mod terminal;
pub mod wire;

pub use async_trait::async_trait;
pub use config::AcpConfig;
pub use host::{
    Choice, ClientServer, ConfigOption, HostError, HostedSession, ListedSession, ModeChoice,
    OpenRequest, OptionKind, Prompt, PromptEnd, ServerAddress, SessionHost, SessionSource,
    SlashCommand,
};
pub use wire::{ServeOptions, serve};
