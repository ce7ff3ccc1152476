//! Modes and configuration options of a session.

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, UnstructuredCommandInput,
};
use zeph_tools::Mode;

use crate::host::{Choice, HostedSession, OptionKind, SlashCommand};

/// The id of the option for the mode.
pub(super) const MODE: &str = "mode";

/// The id, the name and the category of an option.
const OPTIONS: &[(OptionKind, &str, &str, SessionConfigOptionCategory)] = &[
    (
        OptionKind::Model,
        "model",
        "Model",
        SessionConfigOptionCategory::Model,
    ),
    (
        OptionKind::Effort,
        "effort",
        "Reasoning effort",
        SessionConfigOptionCategory::ThoughtLevel,
    ),
];

/// The kind of the option with this id.
pub(super) fn kind(id: &str) -> Option<OptionKind> {
    OPTIONS
        .iter()
        .find(|(_, known, ..)| *known == id)
        .map(|(kind, ..)| *kind)
}

/// The modes of a session.
pub(super) fn modes(session: &dyn HostedSession) -> SessionModeState {
    let modes = session.modes().into_iter().map(|choice| {
        SessionMode::new(choice.mode.as_str(), name_of(choice.mode)).description(choice.description)
    });
    SessionModeState::new(session.mode().as_str(), modes.collect())
}

/// The name of a mode for display.
fn name_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "Plan",
        Mode::Ask => "Ask",
        Mode::AutoEdit => "Auto-edit",
        Mode::Auto => "Auto",
        Mode::Full => "Full",
    }
}

/// All configuration options of a session.
pub(super) fn options(session: &dyn HostedSession) -> Vec<SessionConfigOption> {
    let modes = session.modes().into_iter().map(|choice| {
        SessionConfigSelectOption::new(choice.mode.as_str(), name_of(choice.mode))
            .description(choice.description)
    });
    let modes: Vec<_> = modes.collect();
    let mode = SessionConfigOption::select(MODE, "Mode", session.mode().as_str(), modes)
        .category(SessionConfigOptionCategory::Mode);
    let mut options = vec![mode];
    for option in session.options() {
        let known = OPTIONS.iter().find(|(kind, ..)| *kind == option.kind);
        let Some((_, id, name, category)) = known else {
            continue;
        };
        let values: Vec<_> = option.choices.into_iter().map(value).collect();
        options.push(
            SessionConfigOption::select(*id, *name, option.current, values)
                .category(category.clone()),
        );
    }
    options
}

fn value(choice: Choice) -> SessionConfigSelectOption {
    SessionConfigSelectOption::new(choice.value, choice.name)
}

/// A slash command as the client shows it.
pub(super) fn command(command: SlashCommand) -> AvailableCommand {
    let input = command
        .hint
        .map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
    AvailableCommand::new(command.name, command.description).input(input)
}
