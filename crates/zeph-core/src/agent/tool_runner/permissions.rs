//! `/permissions`: lists the calls that run without a question, and revokes approvals.

use std::fmt::Write as _;
use std::path::Path;

use zeph_tools::gate::RuleSet;
use zeph_tools::layers::grants::{ActiveGrant, GrantScope, SessionGrant};

use super::ToolRunner;
use crate::agent::CommandOutput;

impl ToolRunner {
    /// Lists rules and grants. Grants have a number, by which they can be revoked.
    pub(in crate::agent) async fn list_permissions(&mut self, session: &str) -> CommandOutput {
        let grants = &self.permissions.grants;
        let active = grants.all(session).await;
        let active = active.map_err(|error| error.to_string())?;
        let (place, project) = (grants.place(), grants.project());
        let rules = &self.permissions.rules;
        let text = listing(rules, &active, place.as_deref(), project.as_deref());
        self.listed = active;
        Ok(text)
    }

    /// Revokes the grant with this number in the last list, or in the current list if none was shown.
    pub(in crate::agent) async fn remove_permission(
        &mut self,
        session: &str,
        number: usize,
    ) -> CommandOutput {
        let grants = &self.permissions.grants;
        if self.listed.is_empty() {
            let active = grants.all(session).await;
            self.listed = active.map_err(|error| error.to_string())?;
        }
        let found = number.checked_sub(1).and_then(|at| self.listed.get(at));
        let Some(grant) = found else {
            return Err(format!(
                "no approval has the number {number}; /permissions lists the numbers"
            ));
        };
        let text = described(grant);
        match grants.remove(session, grant).await {
            Ok(true) => Ok(format!("Revoked: {text}")),
            Ok(false) => Ok(format!("It was revoked before: {text}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn listing(
    rules: &RuleSet,
    given: &[ActiveGrant],
    place: Option<&str>,
    here: Option<&Path>,
) -> String {
    let mut text = String::new();
    for (tool, rule) in rules.iter() {
        if text.is_empty() {
            text.push_str("Rules of the configuration; the first that matches decides:\n");
        }
        let action = rule.action().as_str();
        let pattern = shown(&rule.written.pattern);
        let _ = writeln!(text, "     {action:<5} {tool} `{pattern}`  {}", rule.origin);
    }
    let mut kept = false;
    let mut session = false;
    for (at, given) in given.iter().enumerate() {
        let heading = match given {
            ActiveGrant::Kept(_) if !std::mem::replace(&mut kept, true) => {
                format!("Approved permanently ({}):\n", place.unwrap_or_default())
            }
            ActiveGrant::Session(_) if !std::mem::replace(&mut session, true) => {
                "Approved until /clear or the end of the session:\n".to_owned()
            }
            _ => String::new(),
        };
        text.push_str(&heading);
        let elsewhere = match given {
            ActiveGrant::Kept(kept) => {
                matches!(&kept.scope, GrantScope::Project(of) if Some(of.as_path()) != here)
            }
            ActiveGrant::Session(_) => false,
        };
        let note = if elsewhere { " (not this one)" } else { "" };
        let _ = writeln!(text, "{:>4} {}{note}", at + 1, described(given));
    }
    if text.is_empty() {
        return "There are no rules, and no approval covers more than one call.".to_owned();
    }
    if !given.is_empty() {
        text.push_str("/permissions rm N revokes one.\n");
    }
    text
}

fn described(given: &ActiveGrant) -> String {
    match given {
        ActiveGrant::Kept(kept) => {
            let grant = &kept.grant;
            let scope = match &kept.scope {
                GrantScope::Global => "everywhere".to_owned(),
                GrantScope::Project(path) => format!("in {}", path.display()),
            };
            let pattern = shown(&grant.pattern);
            format!("{} `{pattern}`  {scope}, since {}", grant.tool, kept.added)
        }
        ActiveGrant::Session(SessionGrant::Grant(grant)) => {
            format!("{} `{}`", grant.tool, shown(&grant.pattern))
        }
        ActiveGrant::Session(SessionGrant::Call { tool, subject, .. }) => {
            let line = subject.lines().next().unwrap_or_default();
            format!("{tool} `{}`  only this call", shown(line))
        }
    }
}

/// `text` with its invisible and control characters escaped.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '"' | '\'' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use zeph_tools::gate::Grant;
    use zeph_tools::layers::grants::PersistedGrant;

    use super::*;

    /// Proves PERM-7, CMD-1: the output of `/permissions`.
    #[test]
    fn grants_are_listed_with_their_scope() {
        let grant = |pattern: &str| Grant {
            tool: "bash".to_owned(),
            pattern: pattern.to_owned(),
        };
        let kept = |pattern, scope| {
            ActiveGrant::Kept(PersistedGrant {
                grant: grant(pattern),
                scope,
                added: "2026-01-02T03:04:05Z".to_owned(),
            })
        };
        let call = SessionGrant::Call {
            tool: "bash".to_owned(),
            subject: "sudo x\nmore".to_owned(),
            digest: [0; 32],
        };
        let given = [
            kept("cargo test *", GrantScope::Project("/here".into())),
            kept("ls", GrantScope::Project("/there".into())),
            kept("a\u{202e}\\*", GrantScope::Global),
            ActiveGrant::Session(SessionGrant::Grant(grant("touch a"))),
            ActiveGrant::Session(call),
        ];
        let text = listing(
            &RuleSet::default(),
            &given,
            Some("/c/policies.json"),
            Some(Path::new("/here")),
        );
        assert_eq!(
            text,
            "Approved permanently (/c/policies.json):\n   \
             1 bash `cargo test *`  in /here, since 2026-01-02T03:04:05Z\n   \
             2 bash `ls`  in /there, since 2026-01-02T03:04:05Z (not this one)\n   \
             3 bash `a\\u{202e}\\*`  everywhere, since 2026-01-02T03:04:05Z\n\
             Approved until /clear or the end of the session:\n   \
             4 bash `touch a`\n   \
             5 bash `sudo x`  only this call\n\
             /permissions rm N revokes one.\n"
        );
        let none = listing(&RuleSet::default(), &[], None, None);
        assert!(none.starts_with("There are no rules"), "{none}");
    }
}
