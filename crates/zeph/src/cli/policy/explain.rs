//! `zeph policy explain`: the parts of a call, the decision of each gate with its rule, and the ways to allow the
//! call.

use std::fmt::Write as _;

use serde_json::{Value, json};
use zeph_tools::gate::decision::as_toml;
use zeph_tools::gate::path_pattern::escape;
use zeph_tools::gate::policy::{PolicyDecision, PolicyEffect};
use zeph_tools::gate::rule::Place;
use zeph_tools::gate::{
    CachedPathResolver, CallSubject, DecidedBy, Effect, PieceDecision, RuleOrigin, SubjectPath,
};
use zeph_tools::shell::policy::Verdict;
use zeph_tools::{Mode, Phase, Risk, ToolDef, TrustLevel};

use super::fitting;
use super::gates::{Gates, Judgement, named};
use super::other_gates::GateOpinion;
use crate::output::redact::redacted;
use crate::output::stored_json;

/// Explains a call, as text or as JSON.
///
/// # Errors
/// The arguments do not match the tool's schema.
pub(super) async fn explain(
    gates: &Gates,
    def: &ToolDef,
    name: &str,
    params: Value,
    as_json: bool,
) -> anyhow::Result<String> {
    let call = Gates::call(def, fitting(gates, def, name, params)?, Phase::default());
    let (call, def, trust) = gates.as_judged(call, def)?;
    let subject = gates.subject(&call, def);
    let judgement = gates.judge_whole(&call, &subject, trust).await?;
    let explained = Explained {
        gates,
        subject: &subject,
        judgement: &judgement,
    };
    Ok(match as_json {
        true => stored_json(&explained.json())?,
        false => redacted(&explained.text()).into_owned(),
    })
}

struct Explained<'e> {
    gates: &'e Gates,
    subject: &'e CallSubject<'e>,
    judgement: &'e Judgement<'e>,
}

impl Explained<'_> {
    fn mode(&self) -> Mode {
        self.gates.loaded.config.tools.mode
    }

    fn json(&self) -> Value {
        let subject = self.subject;
        let command = subject.command.as_ref().map(|command| {
            let parts: Vec<Value> = command
                .parts
                .iter()
                .map(|part| {
                    json!({
                        "text": part.text,
                        "words": part.words,
                        "assignments": part.assignments,
                        "kind": part.kind,
                        "depth": part.depth,
                        "known": part.known,
                    })
                })
                .collect();
            json!({
                "text": command.text,
                "parts": parts,
                "writes": command.writes.iter().map(|path| self.path(path)).collect::<Vec<_>>(),
                "unknown_writes": command.unknown_writes,
                "unknown": command.unknown,
            })
        });
        let url = subject
            .url
            .as_ref()
            .map(|url| json!({ "given": url.given, "normal": url.normal }));
        let mut decided = vec![
            self.blocklist_json(),
            self.policy_json(),
            self.permission_json(),
        ];
        decided.extend(self.judgement.beside.iter().map(|beside| json!(beside)));
        json!({
            "tool": subject.tool,
            "arguments": subject.params,
            "paths": subject.paths.iter().map(|path| self.path(path)).collect::<Vec<_>>(),
            "command": command,
            "url": url,
            "gates": decided,
            "decision": named(self.judgement.effect()),
            "would_allow": self.would_allow(),
        })
    }

    fn path(&self, path: &SubjectPath) -> Value {
        let forms = path.forms(&CachedPathResolver::new(&self.gates.loaded.places));
        json!({
            "given": path.given,
            "role": path.role,
            "relative": forms.relative,
            "canonical": forms.canonical,
            "canonical_relative": forms.canonical_relative,
            "inside": forms.inside,
        })
    }

    fn blocklist_json(&self) -> Value {
        let (decision, reason) = match &self.judgement.blocklist {
            None => ("none", None),
            Some(Verdict::Allow) => ("allow", None),
            Some(Verdict::Ask { why, .. }) => ("ask", Some(why)),
            Some(Verdict::Block { what }) => ("deny", Some(what)),
        };
        json!({ "gate": "blocklist", "decision": decision, "reason": reason })
    }

    fn policy_json(&self) -> Value {
        let Some(decision) = &self.judgement.policy else {
            return json!({ "gate": "policy", "decision": "off" });
        };
        let (file, line) = place_of(decision.trace.origin);
        json!({
            "gate": "policy",
            "decision": decision.effect,
            "rule": decision.trace.origin.key,
            "place": decision.trace.origin.to_string(),
            "file": file,
            "line": line,
            "matched": decision.trace.matched.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    fn permission_json(&self) -> Value {
        let decision = &self.judgement.permission;
        let pieces: Vec<Value> = decision
            .pieces
            .iter()
            .map(|judged| {
                let mut piece = json!({
                    "about": judged.piece.shown(self.subject),
                    "decision": named(judged.effect),
                    "by": by(judged),
                });
                if let DecidedBy::Rule(rule) | DecidedBy::Perhaps(rule) = judged.by {
                    let (file, line) = place_of(&rule.origin);
                    piece["rule"] = json!(rule.origin.key);
                    piece["pattern"] = json!(rule.written.pattern);
                    piece["file"] = json!(file);
                    piece["line"] = json!(line);
                }
                piece
            })
            .collect();
        json!({
            "gate": "permission",
            "decision": named(decision.effect),
            "mode": self.mode(),
            "trust": TrustLevel::default(),
            "reason": (decision.effect != Effect::Allow).then(|| decision.reason(self.subject)),
            "pieces": pieces,
            "remembered": self.remembered(),
        })
    }

    /// The permanent grants that let a part of the call run.
    fn remembered(&self) -> Vec<String> {
        let grants = self.judgement.remembered.iter();
        grants
            .map(|grant| format!("{} {:?}", grant.tool, grant.pattern))
            .collect()
    }

    fn text(&self) -> String {
        let subject = self.subject;
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{} {}", subject.tool, subject.params);
        if let Some(command) = &subject.command {
            for part in &command.parts {
                let kind = format!("{:?}", part.kind).to_lowercase();
                let indent = "  ".repeat(part.depth);
                let _ = writeln!(text, "  {kind:<12}{indent}{}", part.text);
            }
            for path in &command.writes {
                let _ = writeln!(text, "  writes      {}", self.path_text(path));
            }
            if command.unknown_writes {
                let _ = writeln!(
                    text,
                    "  writes      to a target that is unknown before the command runs"
                );
            }
            if let Some(unknown) = &command.unknown {
                let _ = writeln!(text, "  unknown     {unknown}");
            }
        }
        for path in &subject.paths {
            let role = match path.role {
                zeph_tools::gate::PathRole::Read => "reads",
                zeph_tools::gate::PathRole::Write => "writes",
            };
            let _ = writeln!(text, "  {role:<12}{}", self.path_text(path));
        }
        if let Some(url) = &subject.url {
            let normal = url.normal.as_deref().unwrap_or("no URL");
            let _ = writeln!(text, "  url         {} ({normal})", url.given);
        }
        text.push('\n');
        let _ = match &self.judgement.blocklist {
            None => writeln!(text, "blocklist    applies to commands only"),
            Some(Verdict::Allow) => writeln!(text, "blocklist    allow"),
            Some(Verdict::Ask { why, .. }) => writeln!(text, "blocklist    ask: {why}"),
            Some(Verdict::Block { what }) => writeln!(text, "blocklist    deny: {what}"),
        };
        let _ = match &self.judgement.policy {
            None => writeln!(text, "policy       off"),
            Some(decision) => writeln!(text, "policy       {decision}"),
        };
        let permission = &self.judgement.permission;
        let _ = writeln!(
            text,
            "permission   {} (mode {}, trust {})",
            named(permission.effect),
            self.mode().as_str(),
            TrustLevel::default().as_str()
        );
        for judged in &permission.pieces {
            let _ = writeln!(
                text,
                "  {:<6}{}\n        {}",
                named(judged.effect),
                judged.piece.shown(subject),
                by(judged)
            );
        }
        for remembered in self.remembered() {
            let _ = writeln!(text, "  approved permanently: {remembered}");
        }
        for beside in &self.judgement.beside {
            let _ = writeln!(text, "{:<13}{}", beside.gate, beside.summary());
        }
        let effect = self.judgement.effect();
        let _ = write!(text, "\ndecision     {}", named(effect));
        let _ = match effect {
            Effect::Allow => writeln!(text),
            _ => writeln!(text, ": {}", self.judgement.by(subject)),
        };
        let ways = self.would_allow();
        if !ways.is_empty() {
            let _ = writeln!(text, "\nways to allow the call:");
        }
        for way in ways {
            let _ = writeln!(text, "- {}", way.trim_end().replace('\n', "\n  "));
        }
        text
    }

    fn path_text(&self, path: &SubjectPath) -> String {
        let forms = path.forms(&CachedPathResolver::new(&self.gates.loaded.places));
        let canonical = forms.canonical.as_ref().map_or_else(
            || "cannot be resolved".to_owned(),
            |path| path.display().to_string(),
        );
        let relative = forms.canonical_relative.as_deref();
        let relative = relative.map_or_else(String::new, |text| format!(", {text}"));
        let inside = match forms.inside {
            true => "inside the sandbox",
            false => "outside the sandbox",
        };
        format!("{} ({canonical}{relative}, {inside})", path.given)
    }

    /// The ways for the user to allow the call, gate by gate.
    fn would_allow(&self) -> Vec<String> {
        let mut ways = Vec::new();
        if let Some(Verdict::Block { .. }) = &self.judgement.blocklist {
            ways.push(
                "none: a command on the blocklist runs in no mode; see `blocked_commands` and \
                 `blocked_constructs` of [tools.shell]"
                    .to_owned(),
            );
            return ways;
        }
        if let Some(decision) = &self.judgement.policy
            && decision.effect == PolicyEffect::Deny
        {
            ways.push(self.past_the_policy(decision));
        }
        let decision = &self.judgement.permission;
        let asks = match self.judgement.blocklist {
            Some(Verdict::Ask {
                can_be_allowed_exactly,
                ..
            }) => !decision.replaces_confirmation(can_be_allowed_exactly),
            _ => false,
        };
        match decision.effect {
            Effect::Deny => ways.push(match decision.rule() {
                Some(rule) => format!("remove the rule at {}", rule.origin),
                None => "use another mode: --mode ask".to_owned(),
            }),
            Effect::Ask => {
                let rules = decision.would_allow(self.subject);
                if !rules.is_empty() {
                    let before = match decision.by {
                        DecidedBy::Rule(rule) => format!(", before the rule at {}", rule.origin),
                        _ => String::new(),
                    };
                    ways.push(format!(
                        "add to {}{before}:\n{}",
                        self.gates.loaded.paths.user_file.display(),
                        as_toml(&rules)
                    ));
                }
            }
            Effect::Allow => {}
        }
        let denying = self.judgement.beside.iter();
        for beside in denying.filter(|beside| beside.says == GateOpinion::Deny) {
            ways.push(format!(
                "also change the cause of the refusal by {}: {}",
                beside.gate, beside.reason
            ));
        }
        if asks || decision.effect == Effect::Ask {
            ways.push("use --yes, or answer \"once\" to the question".to_owned());
            let nature = &self.subject.nature;
            let edits = !nature.read_only && !nature.open_world && nature.risk <= Risk::Medium;
            if !asks && edits && matches!(decision.by, DecidedBy::NoRule | DecidedBy::Mode(_)) {
                ways.push("use --mode auto-edit".to_owned());
            }
        }
        ways
    }

    /// A rule that would let the call past the policy.
    fn past_the_policy(&self, decision: &PolicyDecision<'_>) -> String {
        let origin = decision.trace.origin;
        let place = match decision.is_default() {
            true => String::new(),
            false => format!(", before the rule at {origin}"),
        };
        if let (Place::Line(file, _), Some(project)) =
            (&origin.place, &self.gates.loaded.paths.project_file)
            && file.as_ref() == project.as_path()
        {
            return format!("remove the rule at {origin} from the file of the project");
        }
        let quoted = |text: &str| Value::String(text.to_owned()).to_string();
        let paths: Option<Vec<String>> = self
            .subject
            .paths
            .iter()
            .map(|path| {
                let forms = path.forms(&CachedPathResolver::new(&self.gates.loaded.places));
                let relative = forms.canonical_relative.clone();
                let absolute = || Some(forms.canonical.as_ref()?.to_str()?.to_owned());
                Some(quoted(&escape(&relative.or_else(absolute)?)))
            })
            .collect();
        let about = match paths {
            Some(paths) if !paths.is_empty() => format!("paths = [{}]", paths.join(", ")),
            _ => {
                let arguments = zeph_tools::gate::parsed_call::canonical_json(self.subject.params);
                let expression = format!("^{}$", zeph_tools::gate::policy::literal(&arguments));
                format!("args_match = {}", quoted(&expression))
            }
        };
        format!(
            "add to {}{place}:\n[[tools.policy.rules]]\neffect = \"allow\"\ntools = [{}]\n{about}",
            self.gates.loaded.paths.user_file.display(),
            quoted(self.subject.tool),
        )
    }
}

fn place_of(origin: &RuleOrigin) -> (Option<String>, Option<usize>) {
    match &origin.place {
        Place::Line(file, line) => (Some(file.display().to_string()), Some(*line)),
        Place::Said(_) => (None, None),
    }
}

/// The rule or default that decided a part of the call.
fn by(judged: &PieceDecision<'_>) -> String {
    match judged.by {
        DecidedBy::Rule(rule) => format!(
            "{} ({}) {} {:?}",
            rule.origin.key,
            rule.origin,
            rule.action().as_str(),
            rule.written.pattern
        ),
        DecidedBy::Perhaps(rule) => format!(
            "possibly {} ({}) {} {:?}: whether it matches is unknown before the call runs",
            rule.origin.key,
            rule.origin,
            rule.action().as_str(),
            rule.written.pattern
        ),
        DecidedBy::NoRule => "no rule of tools.permissions matches".to_owned(),
        DecidedBy::Nature => {
            "the type of the tool: it only reads, or only changes the state of the session"
                .to_owned()
        }
        DecidedBy::ReadOnly => {
            "the command only reads, and the OS sandbox enforces that".to_owned()
        }
        DecidedBy::Mode(mode) => format!("mode {}", mode.as_str()),
        DecidedBy::Trust(level) => format!("trust {}", level.as_str()),
        DecidedBy::Unknown => "a part of the command is unknown before it runs".to_owned(),
        DecidedBy::Autonomous => "no user is present".to_owned(),
        DecidedBy::Remembered => "an earlier approval by the user".to_owned(),
    }
}
