//! `zeph mcp serve`: the tools for MCP clients.

mod asking;
mod bad_input;
mod conversation;
mod http;
mod running;
