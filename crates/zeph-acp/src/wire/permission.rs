//! Questions to the user as `session/request_permission`, and the decisions.
//!
//! Only an offered option that allows is an approval. Everything else is a rejection.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse,
};
use zeph_core::{CheckIn, CheckInAnswer, UserAnswer};
use zeph_tools::gate::{ApprovalProposal, Grant};
use zeph_tools::hidden::revealed;
use zeph_tools::layers::grants::GrantScope;
use zeph_tools::plural::pluralize;
use zeph_tools::{Confirmation, Risk};

use crate::{ClientServer, ServerAddress};

/// Options and the decision of each.
pub(super) struct Offer<D>(Vec<(PermissionOption, D)>);

impl<D: Clone> Offer<D> {
    /// These options with their decisions.
    pub(super) fn new(options: Vec<(PermissionOption, D)>) -> Self {
        Self(options)
    }

    /// The options, in order.
    pub(super) fn options(&self) -> Vec<PermissionOption> {
        self.0.iter().map(|(option, _)| option.clone()).collect()
    }

    /// The decision of a response; `None` if it chooses none of the options.
    pub(super) fn decision(&self, response: &RequestPermissionResponse) -> Option<D> {
        let RequestPermissionOutcome::Selected(selected) = &response.outcome else {
            return None;
        };
        let mut options = self.0.iter();
        let chosen = options.find(|(option, _)| option.option_id == selected.option_id);
        chosen.map(|(_, decision)| decision.clone())
    }
}

/// The options of a question about a call.
pub(super) fn offer(question: &Confirmation) -> Offer<UserAnswer> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
    let mut options = vec![option("once", "Allow once", AllowOnce, UserAnswer::Once)];
    match &question.offer.proposal {
        ApprovalProposal::Nothing { .. } => {}
        ApprovalProposal::ThisCall { .. } => options.push(option(
            "session",
            "Allow this exact call in this session",
            AllowAlways,
            UserAnswer::Session,
        )),
        ApprovalProposal::Grants(grants) => {
            let rules: Vec<String> = grants.iter().map(rule).collect();
            let rules = rules.join(", ");
            options.push(option(
                "session",
                &format!("Allow in this session: {rules}"),
                AllowAlways,
                UserAnswer::Session,
            ));
            if let Some(project) = &question.offer.project {
                let place = revealed(&project.display().to_string());
                let machines = match question.offer.shared_place {
                    Some(_) => ", on all machines of the shared store",
                    None => "",
                };
                let scope = GrantScope::Project(project.clone());
                options.push(option(
                    "always-project",
                    &format!("Always allow in {place}{machines}: {rules}"),
                    AllowAlways,
                    UserAnswer::Always(grants.clone(), scope),
                ));
                options.push(option(
                    "always-everywhere",
                    &format!("Always allow everywhere{machines}: {rules}"),
                    AllowAlways,
                    UserAnswer::Always(grants.clone(), GrantScope::Global),
                ));
            }
        }
    }
    options.push(option("reject", "Reject", RejectOnce, UserAnswer::No(None)));
    Offer(options)
}

/// The options of a check-in.
pub(super) fn check_in_offer(question: &CheckIn) -> Offer<CheckInAnswer> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
    let more = format!("Continue for {}", pluralize(question.more, "round"));
    Offer(vec![
        option("more", &more, AllowOnce, CheckInAnswer::More),
        option(
            "until-done",
            "Continue until done",
            AllowAlways,
            CheckInAnswer::UntilDone,
        ),
        option("stop", "Stop", RejectOnce, CheckInAnswer::Stop),
    ])
}

/// The options of the question about an MCP server of the client. The decision is whether it is used.
pub(super) fn server_offer() -> Offer<bool> {
    use PermissionOptionKind::{AllowAlways, RejectOnce};
    Offer(vec![
        option(
            "trust",
            "Use it in all sessions until its tools change",
            AllowAlways,
            true,
        ),
        option("reject", "Do not use it in this session", RejectOnce, false),
    ])
}

/// The definition of an MCP server, without the values of variables and headers.
pub(super) fn server_text(server: &ClientServer) -> String {
    let names = |pairs: &[(String, String)]| -> String {
        let names = pairs
            .iter()
            .map(|(name, _)| format!("\n  {}", revealed(name)));
        names.collect()
    };
    match &server.address {
        ServerAddress::Program { command, args, env } => {
            let words = std::iter::once(command).chain(args);
            let words: Vec<String> = words.map(|word| revealed(word)).collect();
            format!(
                "The editor wants to start this program:\n  {}\nVariables:{}",
                words.join(" "),
                names(env)
            )
        }
        ServerAddress::Url { url, headers } => format!(
            "The editor wants to connect to this address:\n  {}\nHeaders:{}",
            revealed(url),
            names(headers)
        ),
    }
}

/// The text of a question: its reason, its risk, and the parts of the command with their decisions.
pub(super) fn text(question: &Confirmation) -> String {
    let risk = match question.risk {
        Risk::Safe => "safe",
        Risk::Medium => "medium",
        Risk::High => "high",
    };
    let mut text = format!("Risk: {risk}");
    if !question.reason.is_empty() {
        text.push_str(&format!("\n\nReason: {}", revealed(&question.reason)));
    }
    for part in &question.pieces {
        let indent = "  ".repeat(part.depth.min(10));
        let code = revealed(&part.text).replace('\n', "\\n");
        let decision = revealed(&part.judged);
        text.push_str(&format!("\n{indent}- `{code}`: {decision}"));
    }
    text
}

pub(super) fn option<D>(
    id: &'static str,
    name: &str,
    kind: PermissionOptionKind,
    decision: D,
) -> (PermissionOption, D) {
    (PermissionOption::new(id, name, kind), decision)
}

/// A rule for display.
fn rule(grant: &Grant) -> String {
    let pattern = revealed(&grant.pattern).replace('\n', "\\n");
    format!("{} `{pattern}`", revealed(&grant.tool))
}
