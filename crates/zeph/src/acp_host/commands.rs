//! The slash commands that a session announces.

use zeph_acp::SlashCommand;
use zeph_core::{COMMANDS, CustomCommands};

/// Commands that are not available in an editor.
pub(super) const WITHOUT: [&str; 5] = ["/quit", "/resume", "/copy", "/fork", "!command"];

/// The built-in commands, each by its first word, and the custom commands.
pub(super) fn commands(custom: &CustomCommands) -> Vec<SlashCommand> {
    let mut commands: Vec<SlashCommand> = Vec::new();
    for (name, _, help) in COMMANDS {
        if WITHOUT.contains(name) {
            continue;
        }
        let name = name.trim_start_matches('/');
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        match commands.iter_mut().find(|known| known.name == first) {
            // A command of two words is an argument of the first word.
            Some(known) => {
                let hint = known.hint.get_or_insert_default();
                if !hint.is_empty() {
                    hint.push_str(" | ");
                }
                hint.push_str(rest);
            }
            None => commands.push(SlashCommand {
                name: first.to_owned(),
                description: (*help).to_owned(),
                hint: arguments(help),
            }),
        }
    }
    commands.extend(custom.list().iter().map(|command| SlashCommand {
        name: command.name.clone(),
        description: command.description.clone(),
        hint: command.argument_hint.clone(),
    }));
    commands
}

/// The arguments at the start of a help text: `NAME [EFFORT]: …`.
fn arguments(help: &str) -> Option<String> {
    let (first, _) = help.split_once(':')?;
    let is_argument = first
        .chars()
        .all(|c| c.is_ascii_uppercase() || "[] ".contains(c));
    is_argument.then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves ACP-2.
    #[test]
    fn each_command_is_announced_once_with_its_arguments() {
        let commands = commands(&CustomCommands::default());
        let hint = |name: &str| {
            let found = commands.iter().filter(|command| command.name == name);
            let found: Vec<_> = found.map(|command| command.hint.as_deref()).collect();
            assert_eq!(found.len(), 1, "{name}");
            found[0].map(str::to_owned)
        };
        assert_eq!(hint("status"), None);
        assert_eq!(hint("model").as_deref(), Some("NAME [EFFORT]"));
        assert_eq!(hint("undo").as_deref(), Some("forget"));
        assert_eq!(hint("rename").as_deref(), Some("TITLE"));
        assert_eq!(hint("rewind").as_deref(), Some("N"));
        assert!(!commands.iter().any(|command| command.name == "quit"));
        assert!(
            !commands
                .iter()
                .any(|command| command.name.contains([' ', '/']))
        );
    }
}
