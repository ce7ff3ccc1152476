//! Tools of the agent itself.

pub mod clock;
pub mod compress;
pub mod memory;
pub mod rank_fusion;
pub mod scheduler;
pub mod skills;
pub mod task;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::path::Path;

    use zeph_tools::ToolExecutor as _;
    use zeph_tools::def::CachePolicy;

    use super::*;

    /// Proves OUT-41 in part: results of native tools are never cached, and no native tool changes files.
    #[test]
    fn native_tools_leave_files_and_are_not_cached() {
        let store = Store::unopened(Path::new("/none/zeph.db"));
        let definitions = NativeExecutor::new(&store, None).tool_definitions();
        assert!(definitions.len() > 5);
        for def in definitions {
            assert_eq!(def.cache, CachePolicy::LEAVES_FILES, "{}", def.id);
        }
    }
}
