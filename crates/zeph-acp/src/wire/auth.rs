//! The way to set up a provider in a terminal of the client.

use agent_client_protocol::v1::schema::{AuthMethod, AuthMethodTerminal};

/// The id of the method.
const TERMINAL: &str = "zeph-terminal";

/// The arguments that follow those of the agent, so the client runs `zeph acp --setup`.
const ARGS: [&str; 1] = ["--setup"];

/// The method: the client runs the agent in a terminal, which shows the missing parts and how to add them.
pub(super) fn in_terminal() -> AuthMethod {
    AuthMethod::Terminal(
        AuthMethodTerminal::new(TERMINAL, "Set up a provider")
            .description(
                "Shows in a terminal why no model is available, and how to configure one"
                    .to_owned(),
            )
            .args(ARGS.map(str::to_owned).to_vec()),
    )
}
