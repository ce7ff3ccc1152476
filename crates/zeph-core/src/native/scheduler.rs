//! `scheduler`: a task that is due later.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use zeph_memory::Store;
use zeph_tools::def::CachePolicy;
use zeph_tools::{
    Annotations, CallContext, Risk, Tool, ToolCall, ToolDef, ToolError, ToolErrorCategory,
    ToolOutput,
};

use crate::schedule::{Clock, Schedule, ScheduleError, SchedulerConfig};

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(description = "")]
struct Params {
    task: String,
    when: String,
}

/// The tool `scheduler`, which schedules tasks.
pub struct Scheduler {
    def: ToolDef,
    schedule: Schedule,
}

impl Scheduler {
    /// The tool over the tasks of `project`.
    #[must_use]
    pub fn new(
        store: Store,
        project: PathBuf,
        clock: Arc<dyn Clock>,
        config: SchedulerConfig,
    ) -> Self {
        Self {
            def: ToolDef::new::<Params>(
                "scheduler",
                "Do a task later: in 10 minutes, every day at 9, cron.",
                // A scheduled task runs without a question to the user.
                Annotations {
                    read_only: false,
                    destructive: false,
                    idempotent: false,
                    open_world: true,
                    risk: Risk::High,
                },
            )
            .with_cache(CachePolicy::LEAVES_FILES)
            .with_param_aliases(&[("prompt", "task"), ("time", "when")]),
            schedule: Schedule::new(store, project, clock, config),
        }
    }
}

#[async_trait]
impl Tool for Scheduler {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let Params { task, when } = call.parse()?;
        let added = self.schedule.add(&task, &when).await.map_err(failure)?;
        let said = format!("Scheduled: {}", self.schedule.line(&added));
        Ok(ToolOutput::text(said).with_raw(json!({ "scheduled": added })))
    }
}

fn failure(error: ScheduleError) -> ToolError {
    match error {
        ScheduleError::Store(error) => ToolError::Failed {
            category: ToolErrorCategory::PermanentFailure,
            message: error.to_string(),
        },
        error => ToolError::invalid(error.to_string()),
    }
}
