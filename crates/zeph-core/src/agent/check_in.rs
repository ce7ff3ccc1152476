//! The question whether a turn with many rounds of tool calls continues.

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::limits::{Limit, Limits};
use super::turn::TurnAbort;
use crate::channel::{CheckIn, CheckInAnswer, LoopbackEvent};

impl Agent {
    /// Reports changes of the MCP servers to the user.
    pub(super) fn report_servers(&self) {
        let servers = self.tools.servers.iter();
        for notice in servers.flat_map(|servers| servers.new_notices()) {
            self.channel.emit(LoopbackEvent::Warning(notice));
        }
    }

    /// Whether the user can be asked and sees questions.
    pub(super) fn is_attended(&self) -> bool {
        // A sub-agent has its own limit.
        self.parent.is_none() && self.channel.can_ask() && self.channel.shows_questions()
    }

    /// Asks the user whether the turn continues, or reports the number of rounds if no user can answer. Returns the limit that
    /// stops the turn.
    pub(super) async fn check_in(
        &self,
        limits: &mut Limits,
        is_attended: bool,
        cancel: &CancellationToken,
    ) -> Result<Option<Limit>, TurnAbort> {
        let iterations = limits.iterations();
        let policy = self.iterations;
        if !is_attended {
            self.channel.emit(LoopbackEvent::Notice(format!(
                "{iterations} rounds of tool calls so far; the turn ends after {} ([agent] {})",
                policy.max_unattended, policy.max_key
            )));
            limits.plan_check_in();
            return Ok(None);
        }
        let question = CheckIn {
            iterations,
            more: policy.check_in,
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(TurnAbort::Cancelled),
            answer = self.channel.check_in(&question) => answer,
        };
        match answer {
            CheckInAnswer::More => limits.plan_check_in(),
            CheckInAnswer::UntilDone => limits.end_check_ins(),
            CheckInAnswer::Stop => return Ok(Some(Limit::Stopped)),
        }
        Ok(None)
    }
}
