//! Redaction for a channel: secrets are removed from every event and question before the channel shows it.
//!
//! Known values, such as the key of a provider, are replaced in all of them. Patterns of secrets are
//! replaced in events. A question shows them, because the user decides about exactly these arguments.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use zeph_tools::gate::ApprovalProposal;
use zeph_tools::question::{QuestionRequest, ServerAnswer, ServerQuestion};
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::user_terminal::UserTerminal;
use zeph_tools::{Confirmation, FileChange};

use crate::channel::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};

/// The reason that a question about a call with a secret offers no rule.
const NO_RULE: &str = "the call contains a secret, which a rule would store";

/// A channel that redacts secrets in events and questions.
pub struct RedactedChannel {
    inner: Arc<dyn Channel>,
    secrets: Arc<SecurityPatterns>,
}

impl RedactedChannel {
    /// Creates a channel that passes events and questions to `inner` without `secrets`.
    #[must_use]
    pub fn new(inner: Arc<dyn Channel>, secrets: Arc<SecurityPatterns>) -> Self {
        Self { inner, secrets }
    }

    /// Replaces the values in a text that no user is asked about.
    fn text(&self, text: &mut String) {
        redact_shown(&self.secrets, text);
    }
}

#[async_trait]
impl Channel for RedactedChannel {
    fn emit(&self, mut event: LoopbackEvent) {
        match &mut event {
            // The agent redacts the text of the model while it streams.
            LoopbackEvent::Text(_) | LoopbackEvent::Reasoning(_) => {}
            LoopbackEvent::ToolStarted { tool, params, .. } => {
                self.text(tool);
                // As in the audit trail, independent of the secrets that the model may see.
                self.secrets.redact_json(params);
            }
            LoopbackEvent::ToolOutput { text, .. } => known(&self.secrets, text),
            LoopbackEvent::ToolFinished {
                tool,
                display,
                changes,
                ..
            } => {
                self.text(tool);
                self.text(display);
                redact_changes(&self.secrets, changes);
            }
            LoopbackEvent::Permission { tool, .. } => self.text(tool),
            LoopbackEvent::Notice(text)
            | LoopbackEvent::Warning(text)
            | LoopbackEvent::Error(text) => {
                self.text(text);
            }
            LoopbackEvent::Retrying(retry) => self.text(&mut retry.reason),
            LoopbackEvent::Prompt(text) | LoopbackEvent::Title(text) => self.text(text),
            LoopbackEvent::Tasks(tasks) => {
                for task in tasks {
                    self.text(&mut task.content);
                }
            }
            LoopbackEvent::Requesting { .. }
            | LoopbackEvent::SummingUp
            | LoopbackEvent::Rollback { .. }
            | LoopbackEvent::Terminal { .. }
            | LoopbackEvent::Usage(_)
            | LoopbackEvent::Context { .. }
            | LoopbackEvent::PromptImage(_)
            | LoopbackEvent::Mode(_) => {}
        }
        self.inner.emit(event);
    }

    fn can_ask(&self) -> bool {
        self.inner.can_ask()
    }

    fn shows_questions(&self) -> bool {
        self.inner.shows_questions()
    }

    async fn confirm(&self, call: &str, question: &Confirmation, params: &Value) -> UserAnswer {
        let mut question = question.clone();
        let preview = question.preview.iter_mut().map(|preview| &mut preview.diff);
        let texts = [
            &mut question.tool,
            &mut question.subject,
            &mut question.reason,
            &mut question.hint,
        ];
        for text in texts.into_iter().chain(preview) {
            known(&self.secrets, text);
        }
        for piece in &mut question.pieces {
            known(&self.secrets, &mut piece.text);
            known(&self.secrets, &mut piece.judged);
        }
        let mut params = params.clone();
        self.secrets.redact_known_json(&mut params);
        self.inner.confirm(call, &question, &params).await
    }

    fn user_terminal(&self) -> Option<Arc<dyn UserTerminal>> {
        self.inner.user_terminal()
    }

    fn take_prompt(&self) -> Option<String> {
        self.inner.take_prompt()
    }

    fn return_prompt(&self, text: String) {
        self.inner.return_prompt(text);
    }

    async fn check_in(&self, question: &CheckIn) -> CheckInAnswer {
        self.inner.check_in(question).await
    }

    async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer {
        let mut question = question.clone();
        known(&self.secrets, &mut question.message);
        match &mut question.request {
            QuestionRequest::Decision { details } => known(&self.secrets, details),
            // The user must see the address that opens.
            QuestionRequest::Url { .. } => {}
            QuestionRequest::Form(fields) => {
                for field in fields {
                    known(&self.secrets, &mut field.description);
                }
            }
        }
        self.inner.ask_for_server(&question).await
    }
}

/// Replaces the values in a text that is shown: known values, and patterns unless the user wants to see them.
pub(crate) fn redact_shown(secrets: &Arc<SecurityPatterns>, text: &mut String) {
    let redacted = match secrets.shows() {
        true => secrets.redact_known(text),
        false => secrets.redact(text).text,
    };
    if let Cow::Owned(redacted) = redacted {
        *text = redacted;
    }
}

/// Replaces the values in the texts of changes, as [`redact_shown`] does.
pub(crate) fn redact_changes(secrets: &Arc<SecurityPatterns>, changes: &mut [FileChange]) {
    for change in changes {
        let texts = change.before.iter_mut().chain([&mut change.after]);
        texts.for_each(|text| redact_shown(secrets, text));
    }
}

/// Replaces known values in a text.
fn known(secrets: &SecurityPatterns, text: &mut String) {
    if let Cow::Owned(redacted) = secrets.redact_known(text) {
        *text = redacted;
    }
}

/// The question as the user sees it. It offers no rule that contains a secret, because rules are shown later and
/// stored.
pub(crate) fn without_secret_rules<'q>(
    question: &'q Confirmation,
    secrets: &Arc<SecurityPatterns>,
) -> Cow<'q, Confirmation> {
    let ApprovalProposal::Grants(grants) = &question.offer.proposal else {
        return Cow::Borrowed(question);
    };
    let holds = |text: &str| !secrets.redact(text).kinds.values().is_empty();
    if !grants.iter().any(|grant| holds(&grant.pattern)) {
        return Cow::Borrowed(question);
    }
    let mut question = question.clone();
    question.offer.proposal = ApprovalProposal::ThisCall {
        why: NO_RULE.to_owned(),
    };
    Cow::Owned(question)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use zeph_memory::{Task, TaskStatus};
    use zeph_tools::gate::{DisplayPart, Grant};
    use zeph_tools::preview::Preview;
    use zeph_tools::secrets::{KnownSecrets, SecurityConfig};
    use zeph_tools::{OutputStream, ToolErrorCategory};

    use super::*;

    const KEY: &str = "sk-known-0123456789abcdef";
    const MARK: &str = "[redacted:known_secret]";

    fn token() -> String {
        format!("gh{}{}", "p_", "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6")
    }

    fn secrets() -> Arc<SecurityPatterns> {
        let known = KnownSecrets {
            keys: vec![KEY.to_owned()],
            likely: Vec::new(),
        };
        Arc::new(SecurityPatterns::new(&SecurityConfig::default(), &known).0)
    }

    /// Stores the text of all events and questions.
    #[derive(Default)]
    struct Kept(Mutex<String>);

    #[async_trait]
    impl Channel for Kept {
        fn emit(&self, event: LoopbackEvent) {
            self.0.lock().unwrap().push_str(&format!("{event:?}\n"));
        }

        fn can_ask(&self) -> bool {
            true
        }

        async fn confirm(&self, _: &str, question: &Confirmation, params: &Value) -> UserAnswer {
            let Confirmation {
                tool,
                subject,
                reason,
                hint,
                pieces,
                preview,
                ..
            } = question;
            let shown = format!("{tool} {subject} {reason} {hint} {pieces:?} {preview:?} {params}");
            self.0.lock().unwrap().push_str(&shown);
            UserAnswer::Once
        }

        async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer {
            self.0.lock().unwrap().push_str(&format!("{question:?}\n"));
            ServerAnswer::Decline
        }

        async fn check_in(&self, _: &CheckIn) -> CheckInAnswer {
            CheckInAnswer::UntilDone
        }
    }

    /// Proves OUT-21: events hold neither known values nor patterns.
    #[test]
    fn events_hold_no_secret() {
        let kept = Arc::new(Kept::default());
        let channel = RedactedChannel::new(Arc::clone(&kept) as _, secrets());
        let text = format!("a {KEY} b {}", token());
        channel.emit(LoopbackEvent::ToolStarted {
            id: "1".to_owned(),
            tool: text.clone(),
            params: json!({ "command": text, KEY: [text], "GITHUB_TOKEN": "k3Vq9Zt1mm" }),
        });
        channel.emit(LoopbackEvent::ToolFinished {
            id: "1".to_owned(),
            tool: text.clone(),
            failure: Some(ToolErrorCategory::InvalidParameters),
            display: text.clone(),
            filter: None,
            locations: Vec::new(),
            changes: Vec::new(),
            duration_ms: 1,
        });
        channel.emit(LoopbackEvent::Permission {
            id: "1".to_owned(),
            tool: text.clone(),
            allowed: true,
            answer: "once",
        });
        for make in [
            LoopbackEvent::Notice,
            LoopbackEvent::Warning,
            LoopbackEvent::Error,
        ] {
            channel.emit(make(text.clone()));
        }
        channel.emit(LoopbackEvent::Retrying(zeph_llm::Retry {
            attempt: 2,
            wait: std::time::Duration::ZERO,
            reason: text.clone(),
        }));
        channel.emit(LoopbackEvent::ToolOutput {
            id: "1".to_owned(),
            stream: OutputStream::Stdout,
            text: format!("a {KEY}"),
            skipped_lines: 0,
        });
        let shown = kept.0.lock().unwrap().clone();
        assert!(!shown.contains(KEY) && !shown.contains(&token()), "{shown}");
        assert!(!shown.contains("k3Vq9Zt1mm"), "{shown}");
        assert_eq!(shown.matches(MARK).count(), 12, "{shown}");
    }

    /// Proves OUT-21, ACP-1a: changes of files, titles, prompts and tasks hold no secret.
    #[test]
    fn events_of_a_conversation_hold_no_secret() {
        let kept = Arc::new(Kept::default());
        let channel = RedactedChannel::new(Arc::clone(&kept) as _, secrets());
        let text = format!("a {KEY} b {}", token());
        channel.emit(LoopbackEvent::ToolFinished {
            id: "1".to_owned(),
            tool: "edit".to_owned(),
            failure: None,
            display: String::new(),
            filter: None,
            locations: Vec::new(),
            changes: vec![FileChange {
                path: "/p/a".into(),
                before: Some(text.clone()),
                after: text.clone(),
            }],
            duration_ms: 1,
        });
        channel.emit(LoopbackEvent::Prompt(text.clone()));
        channel.emit(LoopbackEvent::Title(text.clone()));
        channel.emit(LoopbackEvent::Tasks(vec![Task {
            id: "task_1".to_owned(),
            content: text,
            status: TaskStatus::Pending,
            created_at: 0,
            updated_at: 0,
        }]));
        let shown = kept.0.lock().unwrap().clone();
        assert!(!shown.contains(KEY) && !shown.contains(&token()), "{shown}");
        assert_eq!(shown.matches(MARK).count(), 5, "{shown}");
    }

    /// Proves MCP-1b: a question of a server holds no known value.
    #[tokio::test]
    async fn questions_of_servers_hold_no_known_value() {
        let kept = Arc::new(Kept::default());
        let channel = RedactedChannel::new(Arc::clone(&kept) as _, secrets());
        let question = ServerQuestion {
            server: "t".to_owned(),
            message: format!("a {KEY}"),
            request: QuestionRequest::Decision {
                details: format!("b {KEY}"),
            },
        };
        channel.ask_for_server(&question).await;
        let shown = kept.0.lock().unwrap().clone();
        assert_eq!(shown.matches(MARK).count(), 2, "{shown}");
        assert!(!shown.contains(KEY), "{shown}");
    }

    /// Proves D-22, PERM-7: a question shows what runs, without known values.
    #[tokio::test]
    async fn questions_hold_no_known_value() {
        let kept = Arc::new(Kept::default());
        let channel = RedactedChannel::new(Arc::clone(&kept) as _, secrets());
        let text = format!("a {KEY} b {}", token());
        let question = Confirmation {
            tool: text.clone(),
            subject: text.clone(),
            reason: text.clone(),
            hint: text.clone(),
            pieces: vec![DisplayPart {
                text: text.clone(),
                depth: 0,
                asked: true,
                judged: text.clone(),
            }],
            preview: Some(Preview {
                diff: text.clone(),
                basis: [0; 32],
            }),
            ..Confirmation::default()
        };
        let params = json!({ "command": text, KEY: 1 });
        channel.confirm("1", &question, &params).await;
        let shown = kept.0.lock().unwrap().clone();
        assert!(!shown.contains(KEY), "{shown}");
        assert_eq!(shown.matches(MARK).count(), 9, "{shown}");
        assert_eq!(shown.matches(&token()).count(), 8, "{shown}");
    }

    /// Proves PERM-7: a secret does not become part of a rule.
    #[test]
    fn rule_with_a_secret_is_not_offered() {
        let check = |pattern: String, offered: bool| {
            let mut question = Confirmation::default();
            question.offer.proposal = ApprovalProposal::Grants(vec![
                Grant {
                    tool: "bash".to_owned(),
                    pattern: "ls".to_owned(),
                },
                Grant {
                    tool: "bash".to_owned(),
                    pattern,
                },
            ]);
            let asked = without_secret_rules(&question, &secrets());
            let grants = matches!(asked.offer.proposal, ApprovalProposal::Grants(_));
            assert_eq!(grants, offered);
        };
        check("cargo test *".to_owned(), true);
        check("cat ~/.ssh/config".to_owned(), true);
        check(format!("curl -u x:{KEY} *"), false);
        check(format!("git clone https://{}@h/r", token()), false);
    }
}
