//! The blocklist: commands that may not run at all, decided on the parsed command. Pure.
//!
//! In the order of a decision:
//!
//! - [`parse()`] reads the text into the `ast`. Its parts are `reading`, `parse`, `lexer`, `assign`, `compound`, `quote`,
//!   `dollar`, `escape`, `parameter`, `alternatives`, `redirect` and `word`. `render` writes the canonical text that the shell
//!   runs. `dialect` lists the differences of other shells.
//! - `evaluate` walks the tree. `dataflow_rules` finds fork bombs and piped downloads. `programs` is the table of programs that
//!   execute text, `find` judges the predicates of `find`, `wrappers` and `command_runners` find inner commands, `shells`,
//!   `shell_call` and `script` judge scripts, `double_expansion` finds text that bash evaluates twice.
//! - `destructive_targets` judges deleted paths from the possible working directories (`places`). `unconfined` finds commands
//!   that the OS sandbox does not limit.
//! - `values` and `readings` track the values of variables. `setters` are builtins that set them; `effects` and `arithmetic`
//!   find variables that a command sets. `scope` handles assignments, loops and calls, `inputs` and `stdin_readers` standard
//!   input.
//! - `blocklist` compiles the configuration, and `handle` replaces it while calls run. `word_list` lists the names in a command
//!   for the read rules. `visit` iterates over the parts, and `kind` classifies them.
//!
//! The parser is our own and strict: it refuses unknown syntax. A parser that recovers from errors would understand some commands
//! differently than the shell that runs them.

mod alternatives;
mod arithmetic;
mod assign;
pub(crate) mod ast;
mod blocklist;
mod command_runners;
mod compound;
mod dataflow_rules;
mod destructive_targets;
mod dialect;
mod dollar;
mod double_expansion;
mod effects;
mod escape;
mod evaluate;
mod find;
mod handle;
mod inputs;
mod kind;
mod lexer;
mod parameter;
mod parse;
mod places;
mod programs;
mod quote;
mod reading;
mod readings;
mod redirect;
mod render;
mod scope;
mod script;
mod setters;
mod shell_call;
mod shells;
mod stdin_readers;
mod unconfined;
mod values;
mod visit;
mod word;
mod word_list;
mod wrappers;

pub use crate::provenance::extract_paths;
pub use ast::Construct;
pub(super) use blocklist::name_of;
pub use blocklist::{PolicyError, ShellPolicy};
pub use double_expansion::EvalFlags;
pub use evaluate::{Verdict, WorkingDirState};
pub use handle::ShellPolicyHandle;
pub(super) use kind::kind_of;
pub use lexer::{MAX_COMMAND, MAX_DEPTH, SyntaxError};
pub(in crate::shell) use places::normal;
pub(super) use programs::options;
pub(crate) use reading::Parsed;
pub use reading::parse;
pub(super) use visit::{Part, visit, visit_from};
pub(crate) use word::Word;
pub(crate) use word_list::{NamedWord, Role};
pub(super) use wrappers::runs_any;

#[cfg(test)]
mod tests;
