//! `/permissions`: what may run unasked and by whose word, and taking it back.

use std::fmt::Write as _;
use std::path::Path;

use zeph_tools::gate::RuleSet;
use zeph_tools::layers::grants::{ActiveGrant, GrantScope, SessionGrant};

use super::{Agent, CommandOutput};

impl Agent {
    /// Lists rules and grants; what can be taken back has a number.
    pub(super) async fn list_permissions(&mut self) -> CommandOutput {
        let grants = &self.permissions.grants;
        match grants.all(self.history.session()).await {
            Ok(given) => {
                let place = grants.place();
                let here = grants.project();
                let text = listing(
                    &self.permissions.rules,
                    &given,
                    place.as_deref(),
                    here.as_deref(),
                );
                self.listed = given;
                Ok(text)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Takes back what was listed with this number; what would be, when nothing was.
    pub(super) async fn remove_permission(&mut self, number: usize) -> CommandOutput {
        if self.listed.is_empty() {
            let all = self.permissions.grants.all(self.history.session()).await;
            match all {
                Ok(given) => self.listed = given,
                Err(error) => return Err(error.to_string()),
            }
        }
        let found = number.checked_sub(1).and_then(|at| self.listed.get(at));
        let Some(given) = found else {
            return Err(format!(
                "nothing has the number {number}; /permissions lists what has"
            ));
        };
        let said = described(given);
        let removed = self
            .permissions
            .grants
            .remove(self.history.session(), given);
        match removed.await {
            Ok(true) => Ok(format!("Taken back: {said}")),
            Ok(false) => Ok(format!("It was taken back before: {said}")),
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
                format!("Agreed to for good ({}):\n", place.unwrap_or_default())
            }
            ActiveGrant::Session(_) if !std::mem::replace(&mut session, true) => {
                "Agreed to until /clear or the end:\n".to_owned()
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
        return "There are no rules, and nothing was agreed to for more than one call.".to_owned();
    }
    if !given.is_empty() {
        text.push_str("/permissions rm N takes one back.\n");
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
            format!("{tool} `{}`  this very call", shown(line))
        }
    }
}

/// A text in which nothing hides.
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

    /// Proves PERM-7, CMD-1 for what `/permissions` lists.
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
            "Agreed to for good (/c/policies.json):\n   \
             1 bash `cargo test *`  in /here, since 2026-01-02T03:04:05Z\n   \
             2 bash `ls`  in /there, since 2026-01-02T03:04:05Z (not this one)\n   \
             3 bash `a\\u{202e}\\*`  everywhere, since 2026-01-02T03:04:05Z\n\
             Agreed to until /clear or the end:\n   \
             4 bash `touch a`\n   \
             5 bash `sudo x`  this very call\n\
             /permissions rm N takes one back.\n"
        );
        let none = listing(&RuleSet::default(), &[], None, None);
        assert!(none.starts_with("There are no rules"), "{none}");
    }
}
