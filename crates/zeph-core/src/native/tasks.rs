//! `add_task`, `list_tasks`, `update_task`: the task list of the session.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use zeph_memory::{Store, StoreError, Task, TaskStatus};
use zeph_tools::def::CachePolicy;
use zeph_tools::{
    Annotations, CallContext, Tool, ToolCall, ToolDef, ToolError, ToolErrorCategory, ToolOutput,
};

#[derive(Debug, Deserialize, JsonSchema)]
struct AddParams {
    content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListParams {}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdateParams {
    task_id: String,
    status: TaskStatus,
}

/// Whether a call of this tool reads or changes the task list.
pub(crate) fn is_task_tool(name: &str) -> bool {
    ["add_task", "list_tasks", "update_task"].contains(&name)
}

/// The tool `add_task`, which adds a task.
pub struct AddTask {
    def: ToolDef,
    store: Store,
}

impl AddTask {
    /// The tool over `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            def: ToolDef::new::<AddParams>(
                "add_task",
                "Plan a step; only for work of 3 or more.",
                Annotations::SESSION_STATE,
            )
            .with_cache(CachePolicy::LEAVES_FILES)
            .with_param_aliases(&[("task", "content"), ("title", "content")]),
            store,
        }
    }
}

#[async_trait]
impl Tool for AddTask {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: AddParams = call.parse()?;
        let added = self
            .store
            .add_task(&call.conversation, &params.content)
            .await
            .map_err(|error| failure(&error))?;
        let tasks = all(&self.store, call).await?;
        Ok(ToolOutput::text(format!("Added {}.", added.id))
            .with_display(render(&tasks))
            .with_raw(json!({ "task": added })))
    }
}

/// The tool `list_tasks`, which lists the tasks.
pub struct ListTasks {
    def: ToolDef,
    store: Store,
}

impl ListTasks {
    /// The tool over `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            def: ToolDef::new::<ListParams>(
                "list_tasks",
                "The task list, to see which steps remain.",
                Annotations {
                    idempotent: false,
                    ..Annotations::READ
                },
            )
            .with_cache(CachePolicy::LEAVES_FILES),
            store,
        }
    }
}

#[async_trait]
impl Tool for ListTasks {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let tasks = all(&self.store, call).await?;
        let lines: Vec<_> = tasks
            .iter()
            .map(|task| format!("{} [{}] {}", task.id, task.status.as_str(), task.content))
            .collect();
        let summary = if lines.is_empty() {
            "The task list is empty.".to_owned()
        } else {
            lines.join("\n")
        };
        Ok(ToolOutput::text(summary)
            .with_display(render(&tasks))
            .with_raw(json!({ "tasks": tasks })))
    }
}

/// The tool `update_task`, which sets the status of a task.
pub struct UpdateTask {
    def: ToolDef,
    store: Store,
}

impl UpdateTask {
    /// The tool over `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            def: ToolDef::new::<UpdateParams>(
                "update_task",
                "Set a status; completed only when proven.",
                Annotations {
                    idempotent: true,
                    ..Annotations::SESSION_STATE
                },
            )
            .with_cache(CachePolicy::LEAVES_FILES)
            .with_param_aliases(&[("id", "task_id")]),
            store,
        }
    }
}

#[async_trait]
impl Tool for UpdateTask {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: UpdateParams = call.parse()?;
        let task = self
            .store
            .update_task(&call.conversation, &params.task_id, params.status)
            .await
            .map_err(|error| failure(&error))?;
        let tasks = all(&self.store, call).await?;
        let summary = format!("{} is {}.", task.id, task.status.as_str());
        Ok(ToolOutput::text(summary)
            .with_display(render(&tasks))
            .with_raw(json!({ "task": task })))
    }
}

async fn all(store: &Store, call: &ToolCall) -> Result<Vec<Task>, ToolError> {
    store
        .tasks(&call.conversation)
        .await
        .map_err(|error| failure(&error))
}

/// The list for the user.
fn render(tasks: &[Task]) -> String {
    let lines: Vec<_> = tasks
        .iter()
        .map(|task| {
            let mark = match task.status {
                TaskStatus::Pending => "[ ]",
                TaskStatus::InProgress => "[>]",
                TaskStatus::Completed => "[x]",
            };
            format!("{mark} {} {}", task.id, task.content)
        })
        .collect();
    lines.join("\n")
}

fn failure(error: &StoreError) -> ToolError {
    match error {
        StoreError::UnknownTask { .. } => ToolError::Missing {
            message: error.to_string(),
        },
        StoreError::EmptyTask | StoreError::LongTask { .. } | StoreError::UnknownStatus { .. } => {
            ToolError::invalid(error.to_string())
        }
        _ => ToolError::Failed {
            category: ToolErrorCategory::PermanentFailure,
            message: error.to_string(),
        },
    }
}
