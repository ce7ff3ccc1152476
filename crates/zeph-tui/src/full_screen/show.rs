//! Results of inputs, and the conversation of a session, on the screen.

use std::io::{Write as _, stdout};
use std::time::{Duration, Instant};

use zeph_core::{Reply, SessionSwitch, TurnEnd};
use zeph_tools::plural::pluralize;

use super::app::Action;
use super::run::Ui;
use crate::terminal::{
    Converse, SessionEnd, SessionPicker, TerminalOptions, branch_of, clipboard_sequence, cost_line,
    trouble,
};
use crate::view::{Block, Severity};

/// The choice in the list of sessions.
pub(super) enum Chosen {
    Session(String),
    Nothing,
    /// The user left Zeph.
    Leave(SessionEnd),
}

impl Ui {
    pub(super) fn message(&self, severity: Severity, text: String) {
        self.shared
            .change(|model| model.transcript.message(severity, text));
    }

    /// Lets the user select a session.
    pub(super) async fn choose_session(
        &mut self,
        conversation: &impl Converse,
    ) -> anyhow::Result<Chosen> {
        let entries = conversation.sessions().await?;
        anyhow::ensure!(!entries.is_empty(), "there is no other session");
        self.app.picker = Some(SessionPicker::new(entries));
        self.is_dirty = true;
        loop {
            match self.next().await {
                Action::Picked(Some(id)) => return Ok(Chosen::Session(id)),
                Action::Picked(None) => return Ok(Chosen::Nothing),
                Action::Leave(end) => return Ok(Chosen::Leave(end)),
                _ => {}
            }
        }
    }

    /// Continues with another model or session.
    pub(super) async fn switch(
        &mut self,
        conversation: &mut impl Converse,
        to: SessionSwitch,
        took: Duration,
    ) {
        let switched = conversation.switch(to).await;
        if conversation.agent().session() != self.session {
            self.session = conversation.agent().session().to_owned();
            self.show_session(conversation).await;
        }
        self.show_model(conversation);
        let switched = switched.map_err(|error| format!("{error:#}"));
        self.show(&switched.into(), took);
    }

    /// Shows the result of an input.
    pub(super) fn show(&mut self, reply: &Reply, took: Duration) {
        let TerminalOptions {
            quiet,
            host,
            is_in_tmux,
            ..
        } = self.options;
        self.shared.change(|model| match reply {
            Reply::Text(text) | Reply::Diff(text) => {
                model.push(Block::Reply(host.redacted(text).into_owned()));
            }
            Reply::Copy(text) => {
                let mut out = stdout().lock();
                // A terminal that is gone ends the loop elsewhere.
                let _ = out.write_all(clipboard_sequence(text, is_in_tmux).as_bytes());
                let length = pluralize(text.chars().count(), "character");
                let text = format!("{length} copied, if the terminal allows OSC 52");
                model.transcript.message(Severity::Remark, text);
            }
            Reply::Failed(reason) | Reply::Usage(reason) => {
                let text = host.redacted(reason).into_owned();
                model.transcript.message(Severity::Error, text);
            }
            Reply::Turn(outcome) => {
                if let Some(text) = trouble(outcome) {
                    let severity = match outcome.end {
                        TurnEnd::Error => Severity::Error,
                        _ => Severity::Notice,
                    };
                    let text = host.redacted(&text).into_owned();
                    model.transcript.message(severity, text);
                }
                if !quiet {
                    let text = cost_line(outcome.usage, outcome.cost, took);
                    model.transcript.message(Severity::Remark, text);
                }
            }
            Reply::Nothing | Reply::Ran | Reply::Switch(_) | Reply::Quit => {}
        });
    }

    /// Shows the stored conversation of the session.
    pub(super) async fn show_session(&mut self, conversation: &impl Converse) {
        let events = conversation.stored_events().await;
        let now = Instant::now();
        let is_empty = self.shared.model().transcript.blocks().is_empty();
        let (branch, host) = (branch_of(&self.project), self.options.host);
        self.app.blocks.reset();
        self.app.panel.toggled.clear();
        self.shared.change(|model| match events {
            Ok(events) => {
                let status = model.transcript.status().clone();
                if !is_empty && !events.is_empty() {
                    model.transcript = crate::view::Transcript::default();
                    model.transcript.status_mut().model = status.model;
                }
                for event in events {
                    model.transcript.apply(event, now);
                }
                model.transcript.end_turn();
                model.transcript.status_mut().branch = branch;
            }
            Err(error) => {
                let text = format!("the stored conversation cannot be shown: {error:#}");
                model
                    .transcript
                    .message(Severity::Error, host.redacted(&text).into_owned());
            }
        });
    }

    pub(super) fn show_model(&mut self, conversation: &impl Converse) {
        self.shared.change(|model| {
            conversation
                .model()
                .clone_into(&mut model.transcript.status_mut().model);
        });
    }
}
