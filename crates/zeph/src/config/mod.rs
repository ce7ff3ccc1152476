//! The configuration: settings, their sources, and errors in them.
//!
//! Each section is a struct next to the code that it configures; [`Config`] composes them. A new section is one field here; its
//! settings then need their rule in `project_trust`.

mod changes;
mod check;
mod deserialize;
mod edit;
mod env;
mod error;
mod layer;
mod limits;
mod load;
mod log;
mod migrate;
mod old_keys;
mod origin;
mod overrides;
mod paths;
mod patterns;
pub(crate) mod permissions;
mod policy;
mod project_trust;
mod reference;
mod schema_shape;
mod setting;
mod telemetry;
mod template;
#[cfg(test)]
mod tests;
mod values;
mod watch;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_acp::AcpConfig;
use zeph_core::{AgentConfig, SchedulerConfig};
use zeph_llm::{ProviderConfig, RetryConfig};
use zeph_mcp::McpConfig;
use zeph_memory::MemoryConfig;
use zeph_tools::cache::ResultCacheConfig;
use zeph_tools::dependency_graph::DependencyConfig;
use zeph_tools::diagnostics::DiagnosticsConfig;
use zeph_tools::file::FileConfig;
use zeph_tools::filter::FiltersConfig;
use zeph_tools::gate::PermissionRule;
use zeph_tools::gate::anomaly::AnomalyConfig;
use zeph_tools::gate::llm_judge::AdversarialPolicyConfig;
use zeph_tools::gate::policy::{AuthorizationConfig, PolicyConfig};
use zeph_tools::gate::utility::UtilityConfig;
use zeph_tools::overflow::OverflowConfig;
use zeph_tools::retry::ToolRetryConfig;
use zeph_tools::shell::ShellConfig;
use zeph_tools::tafc::TafcConfig;
use zeph_tools::undo::UndoConfig;
use zeph_tools::web::ScrapeConfig;
use zeph_tools::{AuditConfig, Mode, ResultFormat};
use zeph_tui::TerminalConfig;

use crate::hooks::HookConfig;

pub(crate) use changes::{after_restart, loosened, take_over, tightened};
pub(crate) use edit::{add_to_list, set_value};
pub(crate) use env::Environment;
pub(crate) use error::{ConfigError, ConfigErrors};
pub(crate) use layer::setting_names;
pub(crate) use load::{Loaded, check_file, load, reload};
pub(crate) use log::{LogConfig, LogFormat};
pub(crate) use migrate::migrated_file;
pub(crate) use origin::Origin;
pub(crate) use overrides::FlagOverrides;
pub(crate) use paths::{
    PROJECT_FILTERS, Paths, of_project, project_directories, project_directory, project_root,
};
pub(crate) use policy::compile as compile_policy;
pub(crate) use reference::reference;
pub(crate) use schema_shape::json_schema;
pub(crate) use setting::{Setting, setting, stronger_source, typed_setting};
pub(crate) use telemetry::{TelemetryConfig, fault_of_endpoint};
pub(crate) use template::{effective, template};
pub(crate) use watch::{Stamp, Stamped, Stamps};

/// The configuration of Zeph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Sessions of editors.
    pub(crate) acp: AcpConfig,
    /// The limits of a turn (`[agent]`).
    pub(crate) agent: AgentConfig,
    /// Programs of yours that run at events of a session.
    pub(crate) hooks: Vec<HookConfig>,
    /// The models that are asked.
    pub(crate) llm: LlmConfig,
    /// The log file.
    pub(crate) log: LogConfig,
    /// Servers of the Model Context Protocol.
    pub(crate) mcp: McpConfig,
    /// The store of sessions, messages and the audit trail (`[memory]`).
    pub(crate) memory: MemoryConfig,
    /// Tasks that are due later.
    pub(crate) scheduler: SchedulerConfig,
    /// The export of traces and metrics.
    pub(crate) telemetry: TelemetryConfig,
    /// The interface at the terminal.
    pub(crate) terminal: TerminalConfig,
    /// The tools that the model may use.
    pub(crate) tools: ToolsConfig,
}

/// The models that receive the requests (`[llm]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LlmConfig {
    /// The name of the default provider; without it, the first one.
    pub(crate) default: Option<String>,
    /// The names of providers that replace a provider that fails permanently, in this order.
    pub(crate) fallback: Vec<String>,
    /// The name of the provider of embeddings, which select tools; empty means the default provider if it has an
    /// `embedding_model`. Without embeddings, keywords are compared.
    pub(crate) embed_provider: String,
    /// The addresses of servers on this machine that the first start and `zeph login` search for a model: the usual ports of Ollama, llama.cpp, LM Studio and vLLM.
    pub(crate) local_servers: Vec<String>,
    /// The providers.
    pub(crate) providers: Vec<ProviderConfig>,
    /// When a failed request is sent again.
    pub(crate) retry: RetryConfig,
}

impl Default for LlmConfig {
    fn default() -> Self {
        let ports = [11434, 8080, 1234, 8000];
        Self {
            default: Default::default(),
            fallback: Default::default(),
            embed_provider: Default::default(),
            local_servers: ports
                .map(|port| format!("http://127.0.0.1:{port}"))
                .to_vec(),
            providers: Default::default(),
            retry: Default::default(),
        }
    }
}

impl LlmConfig {
    /// The provider that is asked; `None` when none is configured.
    pub(crate) fn chosen(&self) -> Option<&ProviderConfig> {
        self.providers.get(self.chosen_index()?)
    }

    fn chosen_index(&self) -> Option<usize> {
        match &self.default {
            Some(name) => self
                .providers
                .iter()
                .position(|provider| provider.name == *name),
            None => (!self.providers.is_empty()).then_some(0),
        }
    }
}

/// The tools that the model may use (`[tools]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsConfig {
    /// Whether tools are available. Without them the model gets none, and every call is refused.
    pub(crate) enabled: bool,
    /// The permission mode: the calls that run without confirmation.
    pub(crate) mode: Mode,
    /// The maximum number of calls of a session, each counted once, until `/clear`; empty means no limit.
    pub(crate) max_tool_calls_per_session: Option<u64>,
    /// The form in which the model reads results: text, or one JSON object.
    pub(crate) result_format: ResultFormat,
    /// What calls may do without a question, by tool.
    pub(crate) permissions: BTreeMap<String, Vec<PermissionRule>>,
    /// Rules about calls that hold in every mode.
    pub(crate) policy: PolicyConfig,
    /// More of these rules.
    pub(crate) authorization: AuthorizationConfig,
    /// The file tools.
    pub(crate) file: FileConfig,
    /// The shell.
    pub(crate) shell: ShellConfig,
    /// The tool `diagnostics` (`[tools.diagnostics]`).
    pub(crate) diagnostics: DiagnosticsConfig,
    /// Filters of command output.
    pub(crate) filters: FiltersConfig,
    /// Output that is too long for the model.
    pub(crate) overflow: OverflowConfig,
    /// The web tools.
    pub(crate) scrape: ScrapeConfig,
    /// The undo of changes.
    pub(crate) undo: UndoConfig,
    /// Results that are answered again without a call.
    pub(crate) result_cache: ResultCacheConfig,
    /// Calls that fail.
    pub(crate) retry: ToolRetryConfig,
    /// How a model judges calls before they run.
    pub(crate) adversarial_policy: AdversarialPolicyConfig,
    /// Detection of tools that fail too often (`[tools.anomaly]`).
    pub(crate) anomaly: AnomalyConfig,
    /// Calls that are of no use.
    pub(crate) utility: UtilityConfig,
    /// Tools that need others to have succeeded first.
    pub(crate) dependencies: DependencyConfig,
    /// Tools that ask the model to think first.
    pub(crate) tafc: TafcConfig,
    /// The sinks of the audit trail (`[tools.audit]`).
    pub(crate) audit: AuditConfig,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: Default::default(),
            max_tool_calls_per_session: Default::default(),
            result_format: Default::default(),
            permissions: Default::default(),
            policy: Default::default(),
            authorization: Default::default(),
            file: Default::default(),
            shell: Default::default(),
            diagnostics: Default::default(),
            filters: Default::default(),
            overflow: Default::default(),
            scrape: Default::default(),
            undo: Default::default(),
            result_cache: Default::default(),
            retry: Default::default(),
            adversarial_policy: Default::default(),
            anomaly: Default::default(),
            utility: Default::default(),
            dependencies: Default::default(),
            tafc: Default::default(),
            audit: Default::default(),
        }
    }
}
