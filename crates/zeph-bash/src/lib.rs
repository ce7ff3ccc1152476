#![doc = include_str!("../README.md")]
//! # Structure
//!
//! `syntax` reads a text into the tree of `ast` and writes its canonical text. `judge` walks the tree. The parser is strict: it
//! refuses unknown syntax. A parser that recovers from errors would understand some commands differently than the shell that
//! runs them.

#![deny(missing_docs)]

mod judge;
mod syntax;

pub use judge::blocklist::{BlocklistOptions, FOUNDING, PolicyError, ShellPolicy, file_name};
pub use judge::evaluate::{Verdict, WorkingDirState};
pub use judge::kind::{PartKind, kind_of};
pub use judge::places::normalize_path;
pub use judge::programs::{ProgramOptions, program_options};
pub use judge::read_only::{NotReadOnly, ReadOnly, ReadPath, read_only};
pub use judge::visit::{Part, Visit, has_known_commands, visit, visit_from};
pub use judge::word_list::{NamedWord, Role};
pub use judge::wrappers::runs_unlisted_program;
pub use syntax::ast::{
    Assignment, Command, Connector, Construct, Kind, List, Pipeline, Redirect, Shape, Substitution,
};
pub use syntax::eval_flags::{EvalFlags, Fragments};
pub use syntax::lexer::{MAX_COMMAND, MAX_DEPTH, SyntaxError};
pub use syntax::reading::{Parsed, parse};
pub use syntax::word::Word;

#[cfg(test)]
mod tests;
