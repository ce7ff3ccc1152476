#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
//! # Structure
//! - [`store`]: the open store. `database` is the trait of its two back ends, SQLite and PostgreSQL (feature `postgres`).
//! - [`conversation`]: sessions; [`messages`]: their messages; [`message_search`]: search in the messages.
//! - `rewind`: the way back to an earlier message; `session_search`: search for sessions.
//! - `message_text`: the text that is searched; `long_messages`: long ones in the search index of SQLite.
//! - `access`: access of other users to a shared store; `approvals`: permanent approvals in it.
//! - `transfer`: copies of a whole store into another one.
//! - `copy`: copies of sessions; `result_views`: results as the user saw them.
//! - [`lock`]: one agent at a time on a session; `lease`: the same among several machines.
//! - [`tasks`]: the list of tasks of a session.
//! - [`file_reads`]: the files that a session has read, for `zeph_tools::ReadLedger`.
//! - [`audit`]: the audit trail in the database and in files, for `zeph_tools::AuditSink`.
//! - [`overflow`]: outputs that are too long for the model, for `zeph_tools::overflow::OverflowStore`.
//! - [`undo`]: the undo journal, for `zeph_tools::UndoJournal`.
//! - [`quota`]: the number of calls of a session, for `zeph_tools::gate::quota::CallCounter`.
//! - [`completed_tools`]: the successful tools of a session, for `zeph_tools::gate::dependencies::CompletedTools`.
//! - [`schedule`]: scheduled tasks and their runs.
//! - [`memories`]: facts that outlive their session.
//! - [`memory_vectors`]: search of facts by meaning; `sign_bits` makes it fast.
//! - [`summaries`]: summaries of older messages, and the messages that a model still sees.
//! - [`embedding_cache`]: embeddings of texts, for `zeph_tools::embedding_cache::EmbeddingCache`.
//! - [`filter_gain`]: savings of filters, by rule.
//! - `code_index`: symbols of a project's files, for `zeph_tools::file::code::CodeIndex` (feature `syntax`).
//! - [`error`]: errors, as messages for the user.
//! - [`config`][]: the section `[memory]`.

mod access;
mod approvals;
pub mod audit;
#[cfg(feature = "syntax")]
pub mod code_index;
pub mod completed_tools;
pub mod config;
pub mod conversation;
mod copy;
mod database;
pub mod embedding_cache;
pub mod error;
pub mod file_reads;
pub mod filter_gain;
mod holder;
mod lease;
pub mod lock;
mod long_messages;
pub mod memories;
pub mod memory_vectors;
pub mod message_search;
mod message_text;
pub mod messages;
pub mod overflow;
pub mod quota;
mod result_views;
mod rewind;
pub mod schedule;
mod search_terms;
mod server_url;
mod session_choices;
mod session_search;
mod sign_bits;
pub mod spending;
pub mod store;
pub mod summaries;
pub mod tasks;
mod transfer;
pub mod undo;

pub use approvals::Approval;
pub use audit::head::{Head, Heads};
pub use audit::{
    AuditFilter, JsonlAudit, SqliteAudit, StoredAudit, Verdict, Writer, verify_database,
    verify_file, verify_other_chains,
};
#[cfg(feature = "syntax")]
pub use code_index::SqliteCodeIndex;
pub use completed_tools::SqliteCompleted;
pub use config::{MemoryConfig, Synchronous};
pub use conversation::{SessionInfo, new_session_id};
#[cfg(feature = "postgres")]
pub use database::postgres::Server;
pub use embedding_cache::SqliteVectors;
pub use error::StoreError;
pub use file_reads::SqliteSeenFiles;
pub use filter_gain::FilterGain;
pub use lock::SessionLock;
pub use memories::Memory;
pub use memory_vectors::{Near, VectorGap};
pub use message_search::FoundMessage;
pub use messages::{NewMessage, StoredMessage, Usage};
pub use overflow::SqliteOverflow;
pub use quota::SqliteQuota;
pub use schedule::{NewScheduled, RunState, Scheduled, ScheduledRun};
pub use server_url::ServerUrl;
pub use session_choices::{ChosenModel, SessionChoices};
pub use session_search::SessionMatch;
pub use spending::StoredSpending;
pub use store::Store;
pub use summaries::{Compaction, CompressionStrategy, NewSummary, StoredSummary};
pub use tasks::{Task, TaskStatus};
pub use transfer::CopyReport;
pub use undo::{SqliteUndo, StoredChange};
