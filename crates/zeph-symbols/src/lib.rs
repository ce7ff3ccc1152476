#![doc = include_str!("../README.md")]
//! # Structure
//! - `language`: languages and file names; `grammar`: one table of rules per language.
//! - `extract`: the walk that finds symbols; `declarator` and `cpp_macros` serve C and C++.
//! - `symbol` and `rank`: symbols, and the order of names for a query.
//! - `highlight`: the colours of code that arrives line by line; `unfinished`: the open strings,
//!   comments and blocks.
//! - `syntax_errors`: the comparison of the errors before and after a change.
#![deny(missing_docs)]

mod cpp_macros;
mod declarator;
mod extract;
mod grammar;
mod highlight;
mod language;
mod parse;
mod rank;
mod symbol;
mod syntax_errors;
mod unfinished;

pub use extract::{Symbols, symbols};
pub use highlight::{HighlightKind, LineHighlighter};
pub use language::Language;
pub use rank::rank;
pub use symbol::{Symbol, SymbolKind};
pub use syntax_errors::new_syntax_errors;
