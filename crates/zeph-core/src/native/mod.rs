//! Tools that belong to the agent itself.

pub mod clock;
pub mod compress;
pub mod memory;
pub mod tasks;

use std::sync::Arc;

use zeph_memory::Store;
use zeph_tools::ToolSet;

/// The executor of the native tools.
#[must_use]
pub fn native_tools(store: &Store) -> ToolSet {
    ToolSet::new(vec![
        Arc::new(clock::GetCurrentTime::default()),
        Arc::new(memory::MemorySave::new(store.clone())),
        Arc::new(memory::MemorySearch::new(store.clone())),
        Arc::new(tasks::AddTask::new(store.clone())),
        Arc::new(tasks::ListTasks::new(store.clone())),
        Arc::new(tasks::UpdateTask::new(store.clone())),
    ])
}
