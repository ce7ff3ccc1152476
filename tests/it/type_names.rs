//! Public type names that the crates guarantee.

use zeph_core::{AgentBuilder, LoopbackEvent, NativeExecutor, SkillExecutor};
use zeph_llm::OllamaProvider;
use zeph_mcp::McpExecutor;
use zeph_tools::dependency_graph::ToolDependency;
use zeph_tools::dependency_graph::ToolDependencyGraph;
use zeph_tools::diagnostics::DiagnosticsExecutor;
use zeph_tools::file::FileExecutor;
use zeph_tools::filter::{CommandMatcher, FilterPipeline};
use zeph_tools::gate::anomaly::AnomalyDetector;
use zeph_tools::gate::policy::PolicyEnforcer;
use zeph_tools::gate::utility::UtilityScorer;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::shell::ShellExecutor;
use zeph_tools::web::WebScrapeExecutor;
use zeph_tools::{
    CompositeExecutor, DynExecutor, ErasedToolExecutor, ToolErrorFeedback, ToolExecutor,
};

/// The last segment of the path of a type.
fn name<T: ?Sized>() -> &'static str {
    let path = std::any::type_name::<T>();
    path.rsplit("::").next().unwrap_or(path)
}

fn executor<T: ToolExecutor + ErasedToolExecutor>() -> &'static str {
    name::<T>()
}

/// Proves D-43.
#[test]
fn every_promised_type_has_its_name() {
    let check = |actual: &str, expected: &str| assert_eq!(actual, expected);
    check(executor::<FileExecutor>(), "FileExecutor");
    check(executor::<WebScrapeExecutor>(), "WebScrapeExecutor");
    check(executor::<DiagnosticsExecutor>(), "DiagnosticsExecutor");
    check(executor::<NativeExecutor>(), "NativeExecutor");
    check(executor::<SkillExecutor>(), "SkillExecutor");
    check(executor::<McpExecutor>(), "McpExecutor");
    check(executor::<ShellExecutor>(), "ShellExecutor");
    check(executor::<CompositeExecutor>(), "CompositeExecutor");
    check(executor::<DynExecutor>(), "DynExecutor");
    check(name::<AnomalyDetector>(), "AnomalyDetector");
    check(name::<UtilityScorer>(), "UtilityScorer");
    check(name::<PolicyEnforcer>(), "PolicyEnforcer");
    check(name::<ToolErrorFeedback>(), "ToolErrorFeedback");
    check(name::<FilterPipeline>(), "FilterPipeline");
    check(name::<CommandMatcher>(), "CommandMatcher");
    check(name::<SecurityPatterns>(), "SecurityPatterns");
    check(name::<AgentBuilder>(), "AgentBuilder");
    check(name::<LoopbackEvent>(), "LoopbackEvent");
    check(name::<ToolDependency>(), "ToolDependency");
    check(name::<ToolDependencyGraph>(), "ToolDependencyGraph");
    check(name::<OllamaProvider>(), "OllamaProvider");
}
