//! Tools of the agent itself.

pub mod clock;
pub mod compress;
pub mod memory;
pub mod rank_fusion;
pub mod scheduler;
pub mod skills;
pub mod tasks;

use std::sync::Arc;

use zeph_memory::Store;
use zeph_tools::{Tool, ToolGroup, ToolSet};

use crate::embedding::Embedder;

/// The executor of the native tools.
#[derive(Clone)]
pub struct NativeExecutor {
    tools: ToolSet,
}

impl NativeExecutor {
    /// Native tools that store in `store`. With an `embedder`, facts are also found by meaning.
    #[must_use]
    pub fn new(store: &Store, embedder: Option<Embedder>) -> Self {
        Self {
            tools: ToolSet::new(vec![
                Arc::new(clock::GetCurrentTime::default()),
                Arc::new(memory::MemorySave::new(store.clone())),
                Arc::new(memory::MemorySearch::new(store.clone(), embedder)),
                Arc::new(tasks::AddTask::new(store.clone())),
                Arc::new(tasks::ListTasks::new(store.clone())),
                Arc::new(tasks::UpdateTask::new(store.clone())),
            ]),
        }
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(tool);
        self
    }
}

impl ToolGroup for NativeExecutor {
    fn tools(&self) -> &ToolSet {
        &self.tools
    }
}
