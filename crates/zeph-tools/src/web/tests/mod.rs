//! Tests of the web tools against a TLS server on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod errors;
mod pages;
mod rules;
#[path = "../../../../zeph-web/tests/it/server.rs"]
mod server;

use serde_json::{Value, json};
use zeph_web::testing::AddressRule;

use self::server::Server;
use super::{ScrapeConfig, WebScrapeExecutor, limits};
use crate::{CallContext, ToolCall, ToolError, ToolExecutor as _, ToolOutput};

impl Server {
    /// Returns web tools that reach this server.
    fn tools(&self, config: &ScrapeConfig) -> WebScrapeExecutor {
        let client = self.client(&limits(config), AddressRule::PublicOrTestServer);
        WebScrapeExecutor::with_client(client)
    }

    async fn call_with(
        &self,
        config: &ScrapeConfig,
        cx: &CallContext,
        tool: &str,
        params: Value,
    ) -> Result<ToolOutput, ToolError> {
        let call = ToolCall::new("1", tool, params, "test");
        let output = self.tools(config).execute_tool_call(&call, cx).await?;
        Ok(output.expect("the tool is known"))
    }

    async fn call(&self, tool: &str, params: Value) -> Result<ToolOutput, ToolError> {
        let cx = CallContext::headless();
        self.call_with(&ScrapeConfig::default(), &cx, tool, params)
            .await
    }

    async fn fetch(&self, url: &str) -> Result<ToolOutput, ToolError> {
        self.call("fetch", json!({ "url": url })).await
    }
}
