//! Test doubles: an executor and an audit sink that record their calls.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use zeph_tools::audit::Intent;
use zeph_tools::overflow::{
    NewEntry, OverflowEntry, OverflowError, OverflowRef, OverflowStore, StoredBlock,
};
use zeph_tools::{
    Annotations, AuditEntry, AuditError, AuditSink, CallContext, ExecutorResult, SkillEnv,
    ToolCall, ToolDef, ToolError, ToolErrorCategory, ToolExecutor, ToolOutput, TrustLevel,
};

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
pub struct Params {
    path: String,
    content: Option<String>,
    count: Option<u32>,
}

/// The behaviour of the tool.
#[derive(Clone, Copy, Default)]
pub enum Behaviour {
    #[default]
    Succeed,
    Fail,
    /// Fails like a server that responds with status 403.
    Forbid,
}

/// An executor with one tool that logs every method call.
#[derive(Clone)]
pub struct Recorder {
    pub def: ToolDef,
    pub behaviour: Behaviour,
    pub demanding: bool,
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub fn new(id: &'static str, annotations: Annotations) -> Self {
        Self {
            def: ToolDef::new::<Params>(id, "", annotations)
                .with_param_aliases(&[("file_path", "path")])
                .with_content_params(&["content"]),
            behaviour: Behaviour::Succeed,
            demanding: false,
            log: Arc::default(),
        }
    }

    pub fn aliased(mut self, aliases: &'static [&'static str]) -> Self {
        self.def = self.def.with_aliases(aliases);
        self
    }

    pub fn failing(mut self) -> Self {
        self.behaviour = Behaviour::Fail;
        self
    }

    /// Sets the executor to require confirmation of every call.
    pub fn demanding(mut self) -> Self {
        self.demanding = true;
        self
    }

    pub fn forbidding(mut self) -> Self {
        self.behaviour = Behaviour::Forbid;
        self
    }

    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn note(&self, text: impl Into<String>) {
        self.log.lock().unwrap().push(text.into());
    }
}

impl ToolExecutor for Recorder {
    async fn execute_tool_call(&self, call: &ToolCall, _cx: &CallContext) -> ExecutorResult {
        if call.tool != self.def.id {
            return Ok(None);
        }
        self.note(format!("normal {} {}", call.tool, call.params));
        match self.behaviour {
            Behaviour::Succeed => Ok(Some(ToolOutput::text(format!("ran {}", call.tool)))),
            Behaviour::Fail => Err(ToolError::permanent("it broke")),
            Behaviour::Forbid => Err(ToolError::Failed {
                category: ToolErrorCategory::PolicyBlocked,
                message: "it answers 403".to_owned(),
            }),
        }
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        _cx: &CallContext,
    ) -> ExecutorResult {
        if call.tool != self.def.id {
            return Ok(None);
        }
        self.note(format!("confirmed {} {}", call.tool, call.params));
        Ok(Some(ToolOutput::text(format!("ran {}", call.tool))))
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        vec![self.def.clone()]
    }

    fn set_skill_env(&self, env: Option<SkillEnv>) {
        self.note(format!("env {env:?}"));
    }

    fn set_effective_trust(&self, trust: TrustLevel) {
        self.note(format!("trust {}", trust.as_str()));
    }

    fn is_tool_retryable(&self, tool_id: &str) -> bool {
        self.note(format!("retryable {tool_id}"));
        tool_id == self.def.id
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        if self.demanding {
            self.note(format!("requires_confirmation {}", call.tool));
        }
        self.demanding && call.tool == self.def.id
    }
}

/// An audit sink in memory that may refuse entries.
#[derive(Default)]
pub struct Audit {
    pub entries: Mutex<Vec<AuditEntry>>,
    pub reserved: Mutex<Vec<String>>,
    pub broken: bool,
    /// Whether it accepts reservations but no entries.
    pub fills_up: bool,
}

#[async_trait]
impl AuditSink for Audit {
    async fn reserve(&self, intent: Intent<'_>) -> Result<(), AuditError> {
        self.reserved
            .lock()
            .unwrap()
            .push(intent.call_id.to_owned());
        match self.broken {
            true => Err(AuditError("the disk is full".to_owned())),
            false => Ok(()),
        }
    }

    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        if self.broken || self.fills_up {
            return Err(AuditError("the disk is full".to_owned()));
        }
        self.entries.lock().unwrap().push(entry.clone());
        Ok(())
    }
}

/// An overflow store in memory for the conversations `session_1` and `session_2`, which may refuse entries.
#[derive(Default)]
pub struct Kept {
    pub entries: Mutex<Vec<NewEntry>>,
    pub broken: bool,
}

impl Kept {
    fn entry(&self, conversation: &str, reference: OverflowRef) -> Option<NewEntry> {
        let entries = self.entries.lock().unwrap();
        let mut entries = entries.iter();
        entries
            .find(|entry| entry.reference == reference && entry.conversation == conversation)
            .cloned()
    }
}

#[async_trait]
impl OverflowStore for Kept {
    async fn put(&self, entry: NewEntry) -> Result<(), OverflowError> {
        if self.broken {
            return Err(OverflowError::Failed("the disk is full".to_owned()));
        }
        if !entry.conversation.starts_with("session_") {
            return Err(OverflowError::NoConversation);
        }
        self.entries.lock().unwrap().push(entry);
        Ok(())
    }

    async fn find(
        &self,
        conversation: &str,
        reference: OverflowRef,
    ) -> Result<Option<OverflowEntry>, OverflowError> {
        Ok(self
            .entry(conversation, reference)
            .map(|entry| OverflowEntry {
                reference,
                conversation: entry.conversation,
                tool: entry.tool,
                created_at: 0,
                bytes: entry.text.bytes(),
                lines: entry.text.lines(),
                total_bytes: entry.text.total_bytes(),
                blocks: entry.text.blocks().iter().map(|block| block.line).collect(),
            }))
    }

    async fn block(
        &self,
        conversation: &str,
        reference: OverflowRef,
        number: usize,
    ) -> Result<Option<StoredBlock>, OverflowError> {
        Ok(self.entry(conversation, reference).map(|entry| {
            let block = entry.text.blocks()[number];
            StoredBlock {
                bytes: block.bytes,
                packed: entry.text.packed(block).unwrap(),
            }
        }))
    }
}

pub fn call(tool: impl Into<Cow<'static, str>>, params: serde_json::Value) -> ToolCall {
    ToolCall::new("call_1", tool.into(), params, "session_1")
}
