//! The judge: walks the tree of a command and decides about every command in it, at every depth.
//!
//! In the order of a decision:
//!
//! - `evaluate` walks the tree. `dataflow_rules` finds fork bombs and piped downloads. `programs` is the table of programs that
//!   execute text, `find` judges the predicates of `find`, `rsync` the options of `rsync`, `wrappers` and `command_runners` find inner commands, `shells`,
//!   `shell_call` and `script` judge scripts, `written_files` those that the command writes (`writers`, `written_text`),
//!   `double_expansion` finds text that bash evaluates twice.
//! - `destructive_targets` judges deleted paths from the possible working directories (`places`). `unconfined` finds commands
//!   that the OS sandbox does not limit.
//! - `values` and `readings` track the values of variables. `setters` are builtins that set them; `effects` finds variables
//!   that a command sets. `scope` handles assignments, loops and calls, `inputs` and `stdin_readers` standard input.
//! - `read_only` decides whether a command only reads, by a table of its own.
//! - `blocklist` compiles the options. `word_list` lists the names in a command for read rules. `visit` iterates over the parts,
//!   and `kind` classifies them.

pub(crate) mod blocklist;
mod command_runners;
mod dataflow_rules;
mod destructive_targets;
mod double_expansion;
mod effects;
pub(crate) mod evaluate;
mod find;
mod inputs;
pub(crate) mod kind;
pub(crate) mod places;
pub(crate) mod programs;
pub(crate) mod read_only;
mod readings;
mod rsync;
mod scope;
mod script;
mod setters;
mod shell_call;
mod shells;
mod stdin_readers;
mod unconfined;
mod values;
pub(crate) mod visit;
pub(crate) mod word_list;
pub(crate) mod wrappers;
mod writers;
mod written_files;
mod written_text;
