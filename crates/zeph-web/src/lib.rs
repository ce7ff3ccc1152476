#![doc = include_str!("../README.md")]
//! # Structure
//!
//! - `client`: the request, hop by hop. `url_guard` checks a URL, `resolve` a name, and `address` decides about
//!   addresses.
//! - `page`: the response. `body` is the kind of a body and its text by its charset.
//! - `document`: a page as Markdown, text and HTML. `html` parses and serializes, after `measure` has computed the
//!   cost. `render` and `writer` make lines of it; `select` matches CSS selectors. `limit` bounds the time.
//! - `error`: the errors of requests and of pages.

#![deny(missing_docs)]

mod address;
pub mod body;
mod client;
mod config;
mod document;
mod error;
mod html;
mod limit;
mod measure;
mod page;
mod render;
mod resolve;
mod select;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod testing;
mod text;
mod url_guard;
mod writer;

pub use address::is_public;
pub use body::BodyKind;
pub use client::{HopRules, WebClient};
pub use config::WebConfig;
pub use document::{HtmlDocument, HtmlElement};
pub use error::{PageError, RequestErrorKind, WebError};
pub use limit::PageLimit;
pub use page::HttpPage;
pub use reqwest::StatusCode;
pub use select::{CssSelector, SelectorError, SelectorMatcher};
pub use text::printable_start;
pub use tokio_util::sync::CancellationToken;
pub use url::Url;
pub use url_guard::{
    DomainList, InvalidDomain, MAX_NAME_BYTES, TargetHost, UrlGuard, UrlRefusal, UrlTarget,
};
