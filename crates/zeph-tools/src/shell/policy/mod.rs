//! Which commands may not run at all: the blocklist, decided on the parsed command.
//!
//! In the order of a decision: [`parse()`] reads the text into the `tree` (`reading`, `parse`, `cursor`, `assign`,
//! `compound`, `quote`, `dollar`, `escape`, `parameter`, `redirect` and `word` are its parts; `render` writes the
//! canonical text that the shell then runs, `dialect` knows what other shells read differently), `decide` walks it,
//! `flow` sees fork bombs and downloads, `programs` is the table of programs that execute text they are given, `find`
//! judges its predicates, `wrappers` and `runners` find the commands of programs with options of their own, `shells`
//! and `script` judge the scripts of shells, `evaluated` what bash evaluates a second time, `targets` what is destroyed
//! from the `places` in which it may work, and `unconfined` what the OS sandbox does not confine. `values` and
//! `readings` follow the values of variables, `setters` are builtins that set them, `effects` and `arithmetic` find
//! those that a command sets, `scope` handles assignments, loops and calls, `inputs` redirections. `blocklist` holds what is compiled from the configuration,
//! `handle` lets it be replaced while calls run. `named` lists what a command names, for rules about
//! reading; `visit` shows its parts to others, `kind` tells which of them run something else. Nothing here does I/O.
//!
//! The parser is our own and strict: whatever it does not know is refused. A parser that repairs
//! what it reads would understand some commands otherwise than the shell that runs them.

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
