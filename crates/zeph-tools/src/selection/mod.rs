//! The selection of the tools that a request offers to the model.
//!
//! [`dependency_graph`] hides tools whose requirements ([`dependency_config`]) are not met, and [`schema_filter`] ranks the others by the prompt. Both are
//! pure: embeddings and the succeeded tools are arguments.

pub mod dependency_config;
pub mod dependency_graph;
pub mod schema_filter;
