//! Redirects, and the rules that let a call run.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use zeph_web::testing::AddressRule;

use super::server::{Server, page, redirect};
use crate::context::Origin;
use crate::gate::parsed_call::digest;
use crate::gate::rule::Place;
use crate::gate::{
    Action, PathResolver, PatternKind, PermissionRule, Rule, RuleOrigin, RuleSet, ToolRules,
};
use crate::layers::LayeredExecutor;
use crate::stack::{self, StackParts};
use crate::web::config::ScrapeConfig;
use crate::web::limits;
use crate::{CallContext, Mode, Permissions, ToolCall, ToolError, ToolExecutor as _};

fn origin(key: &str) -> RuleOrigin {
    RuleOrigin {
        key: key.to_owned(),
        place: Place::Said("a test".to_owned()),
    }
}

fn rule(action: Action, pattern: String, places: &PathResolver) -> Rule {
    let written = PermissionRule {
        pattern,
        action,
        matches: Vec::new(),
        not_matches: Vec::new(),
    };
    Rule::new(PatternKind::Url, written, origin("k"), places).unwrap()
}

/// Returns a server, and a stack with rules that allow `site` and deny each page of `denied.test.org`.
async fn world(mode: Mode) -> (Server, LayeredExecutor) {
    let server = Server::start().await;
    let there = |host: &str, path: &str| format!("https://{host}.test.org:{}{path}", server.port);
    server.on("/page", page("arrived"));
    server.on("/here", redirect("/page"));
    server.on("/away", redirect(&there("other", "/page")));
    server.on("/denied", redirect(&there("denied", "/page")));
    server.on("/twice", redirect("/away"));
    let client = server.client(
        &limits(&ScrapeConfig::default()),
        AddressRule::PublicOrTestServer,
    );
    let permissions = Permissions::of(mode);
    let rules = vec![
        rule(Action::Deny, there("denied", "/*"), &permissions.places),
        rule(Action::Allow, there("site", "/*"), &permissions.places),
    ];
    let list = ToolRules {
        rules,
        listed: true,
    };
    let stack = stack::build(StackParts {
        executors: vec![(
            "web",
            Arc::new(crate::web::WebScrapeExecutor::with_client(client)),
        )],
        permissions: Permissions {
            rules: Arc::new(RuleSet::new([("fetch".to_owned(), list)].into())),
            ..permissions
        },
        ..StackParts::default()
    });
    (server, stack.unwrap())
}

fn said(result: Result<Option<crate::ToolOutput>, ToolError>) -> String {
    match result {
        Ok(output) => output.unwrap().summary,
        Err(error) => format!("{:?}: {error}", error.category()),
    }
}

/// Proves PERM-1 for redirects: the rules judge the target like a call for that URL, before any request; a target
/// that needs a question is refused.
#[tokio::test]
async fn redirect_is_judged_by_the_rules() {
    for (mode, path, expect) in [
        (Mode::Ask, "/page", "arrived"),
        (Mode::Ask, "/here", "arrived"),
        (
            Mode::Ask,
            "/away",
            "PolicyBlocked: redirect 1, to https://other.test.org",
        ),
        (
            Mode::Ask,
            "/twice",
            "PolicyBlocked: redirect 2, to https://other.test.org",
        ),
        (
            Mode::Ask,
            "/denied",
            "PolicyBlocked: redirect 1, to https://denied.test.org",
        ),
        (Mode::Full, "/away", "arrived"),
        (
            Mode::Full,
            "/denied",
            "PolicyBlocked: redirect 1, to https://denied.test.org",
        ),
    ] {
        let (server, stack) = world(mode).await;
        let params = json!({ "url": server.url(path) });
        let call = ToolCall::new("1", "fetch", params, "test");
        let result = stack
            .execute_tool_call(&call, &CallContext::headless())
            .await;
        let text = said(result);
        assert!(text.contains(expect), "{mode:?} {path}: {text}");
        let asked = server.names.asked.lock().unwrap().join(" ");
        assert!(!asked.contains("denied."), "{asked}");
    }
}

/// Proves PERM-7a for redirects: the approval of a URL applies to its host; a call of the user also follows other
/// redirects, except to denied targets.
#[tokio::test]
async fn approval_covers_only_the_shown_host() {
    let (server, stack) = world(Mode::Ask).await;
    let url = |path: &str| server.url(path).replace("site.", "other.");
    server.on(
        "/other",
        redirect(&server.url("/page").replace("site.", "nowhere.")),
    );
    for (origin, path, expect) in [
        (Origin::Model, "/here", "arrived"),
        (
            Origin::Model,
            "/other",
            "that URL needs confirmation first; call fetch with it",
        ),
        (Origin::User, "/other", "nowhere.test.org has no address"),
        (Origin::User, "/denied", "PolicyBlocked: redirect 1"),
    ] {
        let params = json!({ "url": url(path) });
        let call = ToolCall::new("1", "fetch", params, "test");
        let cx = CallContext::headless()
            .with_approval(digest("fetch", &call.params))
            .with_origin(origin);
        let text = said(stack.execute_tool_call_confirmed(&call, &cx).await);
        assert!(text.contains(expect), "{origin:?} {path}: {text}");
    }
}

/// Proves PERM-10 for redirects.
#[cfg(feature = "policy-enforcer")]
#[tokio::test]
async fn redirect_is_judged_by_the_policy() {
    use crate::gate::policy::PolicyEnv;
    use crate::gate::policy::{OneOrMore, PolicyConfig, PolicyEffect, PolicyEnforcer, PolicyRule};

    let server = Server::start().await;
    server.on("/page", page("arrived"));
    server.on("/here", redirect("/page"));
    let away = format!("https://other.test.org:{}/page", server.port);
    server.on("/away", redirect(&away));
    let config = PolicyConfig {
        enabled: true,
        default_effect: PolicyEffect::Allow,
        rules: vec![PolicyRule {
            effect: Some(PolicyEffect::Deny),
            tools: OneOrMore(vec!["fetch".to_owned()]),
            args_match: Some("other".to_owned()),
            ..PolicyRule::default()
        }],
    };
    let places = PathResolver::new(Path::new("/"), None, &[]);
    let around = PolicyEnv {
        origin: &origin,
        places: &places,
        is_set: &|_| false,
    };
    let policy = PolicyEnforcer::new(&config, &Default::default(), around).unwrap();
    let client = server.client(
        &limits(&ScrapeConfig::default()),
        AddressRule::PublicOrTestServer,
    );
    let stack = stack::build(StackParts {
        executors: vec![(
            "web",
            Arc::new(crate::web::WebScrapeExecutor::with_client(client)),
        )],
        policy: policy.map(Arc::new),
        permissions: Permissions::of(Mode::Full),
        ..StackParts::default()
    })
    .unwrap();
    for (path, expect) in [("/here", "arrived"), ("/away", "policy denied this call")] {
        let params = json!({ "url": server.url(path) });
        let call = ToolCall::new("1", "fetch", params, "test");
        let text = said(
            stack
                .execute_tool_call(&call, &CallContext::headless())
                .await,
        );
        assert!(text.contains(expect), "{path}: {text}");
    }
}
