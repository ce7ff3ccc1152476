//! Tools that belong to the agent itself.

pub mod clock;
pub mod compress;
pub mod memory;
pub mod nearness;
pub mod scheduler;
pub mod skills;
pub mod tasks;

use std::sync::Arc;

use zeph_memory::Store;
use zeph_tools::ToolSet;

use crate::embedding::Embedder;

/// The executor of the native tools. With an `embedder` facts are also found by what they mean.
#[must_use]
pub fn native_tools(store: &Store, embedder: Option<Embedder>) -> ToolSet {
    ToolSet::new(vec![
        Arc::new(clock::GetCurrentTime::default()),
        Arc::new(memory::MemorySave::new(store.clone())),
        Arc::new(memory::MemorySearch::new(store.clone(), embedder)),
        Arc::new(tasks::AddTask::new(store.clone())),
        Arc::new(tasks::ListTasks::new(store.clone())),
        Arc::new(tasks::UpdateTask::new(store.clone())),
    ])
}
