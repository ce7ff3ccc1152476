//! A tool made of an async function: the shortest way to write one.

use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, ToolDef};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool_set::Tool;

type Work = dyn Fn(&ToolCall) -> Result<Pin<Box<dyn Future<Output = Outcome> + Send>>, ToolError>
    + Send
    + Sync;
type Outcome = Result<String, ToolError>;

/// A tool that calls an async function with its parameters. The type of the parameters is the schema.
///
/// If the call is cancelled, the future is dropped. A tool that needs the context of the call implements [`Tool`].
pub struct FunctionTool {
    def: ToolDef,
    work: Box<Work>,
}

impl FunctionTool {
    /// Creates a tool with this id and description, which calls `work`.
    #[must_use]
    pub fn new<P, F, R>(
        id: &'static str,
        description: &'static str,
        annotations: Annotations,
        work: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        F: Fn(P) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        Self {
            def: ToolDef::new::<P>(id, description, annotations),
            work: Box::new(move |call| Ok(Box::pin(work(call.parse()?)))),
        }
    }

    /// Changes the definition, for example its cache policy.
    #[must_use]
    pub fn with_definition(mut self, change: impl FnOnce(ToolDef) -> ToolDef) -> Self {
        self.def = change(self.def);
        self
    }
}

#[async_trait]
impl Tool for FunctionTool {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let work = (self.work)(call)?;
        let done = cx.cancel.run_until_cancelled(work).await;
        done.unwrap_or_else(|| Err(ToolError::cancelled()))
            .map(ToolOutput::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    struct Params {
        name: String,
    }

    fn greet() -> FunctionTool {
        let work = |params: Params| async move {
            match params.name.as_str() {
                "" => Err(ToolError::invalid("`name` is empty")),
                "forever" => std::future::pending().await,
                name => Ok(format!("Hello, {name}!")),
            }
        };
        FunctionTool::new("greet", "Greets.", Annotations::READ, work)
    }

    async fn run(name: &str, cx: &CallContext) -> Result<String, String> {
        let params = serde_json::json!({"name": name});
        let call = ToolCall::new("1", "greet", params, "s");
        let output = greet().run(&call, cx).await;
        output
            .map(|output| output.summary)
            .map_err(|error| error.to_string())
    }

    /// Proves PKG-7: the parameters are parsed, and an error of the function is the error of the call.
    #[tokio::test]
    async fn function_gets_parameters_and_its_error_is_returned() {
        let cx = CallContext::headless();
        assert_eq!(run("Ada", &cx).await.unwrap(), "Hello, Ada!");
        assert!(run("", &cx).await.unwrap_err().contains("`name` is empty"));
        assert_eq!(greet().definition().parameters["required"][0], "name");
    }

    #[tokio::test]
    async fn cancelled_call_ends_without_the_function() {
        let cx = CallContext::headless();
        cx.cancel.cancel();
        run("forever", &cx).await.unwrap_err();
    }

    #[test]
    fn definition_can_be_changed() {
        let tool = greet().with_definition(|def| def.with_aliases(&["hello"]));
        assert_eq!(tool.definition().aliases, ["hello"]);
    }
}
