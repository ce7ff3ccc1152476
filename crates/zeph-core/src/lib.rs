#![doc = include_str!("../README.md")]
//! # Structure
//!
//! [`Agent`] holds one conversation. It asks an [`LlmProvider`](zeph_llm::LlmProvider), runs the calls through the
//! stack of `zeph-tools`, stores every message with `zeph-memory`, and sends events to a [`Channel`].

#![deny(missing_docs)]

pub mod agent;
pub mod call_display;
pub mod channel;
mod compaction_request;
pub mod config;
pub mod custom_commands;
pub mod embedding;
mod event_channel;
mod front_matter;
pub mod judge;
pub mod markdown_folder;
pub mod mcp_port;
pub mod native;
pub mod redacted;
pub mod reload;
pub mod schedule;
pub mod spending;
mod sub_agent_port;
pub mod sub_agents;
mod summarizer;

pub use tokio_util::sync::CancellationToken;

pub use agent::compact::Compressor;
pub use agent::history::{History, HistoryError};
pub use agent::hooks::{HookReply, SessionHooks};
pub use agent::limits::IterationPolicy;
pub use agent::outcome::{TurnEnd, TurnOutcome};
pub use agent::reformat::Reformatter;
pub use agent::replay;
pub use agent::slash_commands::{COMMANDS, Command, is_built_in};
pub use agent::tool_runner::NO_SERVER;
pub use agent::tool_runner::attachments::ATTACHMENT_START;
pub use agent::tool_runner::caller::CallerIdentity;
pub use agent::tool_runner::dispatch::{Dispatcher, display_error};
pub use agent::tool_runner::mode::{NO_FULL_MODE, effect_of_mode, next_mode};
pub use agent::tool_runner::undo::undo_note;
pub use agent::{Agent, AgentBuilder, AttachedPrompt, Reply, SessionSwitch};
pub use channel::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
pub use compaction_request::PendingCompactions;
pub use config::{AgentConfig, CompactionConfig};
pub use custom_commands::{CommandSource, CustomCommand, CustomCommands, ModelSource};
pub use embedding::{Embedded, Embedder};
pub use event_channel::EventChannel;
pub use judge::ModelJudge;
pub use mcp_port::ToolServers;
pub use native::NativeExecutor;
pub use native::compress::CompressContext;
pub use native::skills::SkillCatalog;
pub use native::skills::SkillExecutor;
pub use native::task::Task;
pub use redacted::RedactedChannel;
pub use reload::{ConfigReload, ConfigUpdate};
pub use schedule::{Clock, Schedule, SchedulerConfig, SystemClock};
pub use spending::{AuxiliaryUsage, Spending, UsageCost};
pub use sub_agents::{SubAgent, SubAgents};
pub use summarizer::ModelSummarizer;
