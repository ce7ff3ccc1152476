//! The strict Bash parser: text in, typed tree and canonical text out.
//!
//! `reading` is the entry. `parse`, `lexer`, `assign`, `compound`, `quote`, `dollar`, `escape`, `parameter`, `alternatives`,
//! `redirect`, `arithmetic` and `word` read one construct each. `render` writes the canonical text that the shell runs.
//! `dialect` lists the differences of other shells. `eval_flags` notes text that bash evaluates twice, and
//! `special_variables` are variables with a meaning for bash.

pub(crate) mod alternatives;
pub(crate) mod arithmetic;
pub(crate) mod assign;
pub(crate) mod ast;
mod compound;
pub(crate) mod dialect;
mod dollar;
mod escape;
pub(crate) mod eval_flags;
pub(crate) mod lexer;
mod parameter;
pub(crate) mod parse;
mod quote;
pub(crate) mod reading;
mod redirect;
mod render;
pub(crate) mod special_variables;
pub(crate) mod word;
