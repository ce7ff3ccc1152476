//! The session of an agent: the conversation, its system prompt and its costs, in memory and in the store.

use std::path::PathBuf;
use std::sync::Arc;

use zeph_llm::{LlmProvider, MessagePart, Role};
use zeph_memory::{Compaction, NewSummary, Store, StoredSummary};
use zeph_tools::secrets::SecurityPatterns;

use super::compact::CompactionState;
use super::history::{History, HistoryError};
use super::prompt::SystemPrompt;
use super::replay::typed_prompt;
use crate::spending::Spending;

/// Characters of a session's title.
const MAX_TITLE_CHARS: usize = 80;

/// One session.
pub(super) struct Session {
    pub(super) store: Store,
    /// The working directory.
    pub(super) project: PathBuf,
    pub(super) history: History,
    pub(super) system: SystemPrompt,
    /// The costs of the session, which the store has too.
    pub(super) spending: Spending,
    /// The state of compaction within the current turn.
    pub(super) room: CompactionState,
    /// Rounds of calls in the last turn.
    pub(super) rounds: usize,
    /// The provider and the model that [`Session::set_model`] stored last.
    model: Option<(String, String)>,
}

impl Session {
    /// Opens the session `id`, which exists in `store`. `prompt` is the system prompt without summaries, and
    /// `definition_bytes` is the size of the tool definitions.
    ///
    /// # Errors
    /// [`HistoryError`] if the session cannot be read.
    pub(super) async fn open(
        store: Store,
        id: &str,
        project: PathBuf,
        prompt: String,
        definition_bytes: usize,
        secrets: Arc<SecurityPatterns>,
    ) -> Result<Self, HistoryError> {
        let summaries = store.summaries(id).await?;
        let compacted_at = summaries.last().map_or(0, |summary| summary.created_at);
        let system = SystemPrompt::new(prompt, summaries);
        let fixed_bytes = system.text().len() + definition_bytes;
        let history = History::resume(store.clone(), id, fixed_bytes, compacted_at).await?;
        let spending = Spending::of_stored(store.spending(id).await?);
        Ok(Self {
            store,
            project,
            history: history.with_redaction(secrets),
            system,
            spending,
            room: CompactionState::default(),
            rounds: 0,
            model: None,
        })
    }

    /// The session's id.
    pub(super) fn id(&self) -> &str {
        self.history.session()
    }

    /// Whether the conversation has a prompt of the user. The output of a command that the user ran
    /// is not one. A compaction may remove all messages.
    pub(super) fn has_prompt(&self) -> bool {
        let is_prompt = |part: &MessagePart| match part {
            MessagePart::Text { text } => typed_prompt(text).is_some(),
            _ => false,
        };
        let messages = self.history.messages().iter();
        let mut of_user = messages.filter(|message| message.role == Role::User);
        !self.system.summaries().is_empty()
            || of_user.any(|message| message.parts.iter().any(is_prompt))
    }

    /// Stores the title of the session: the first line of its first prompt, unless the user chose
    /// another one. Returns the title.
    pub(super) async fn set_title(&self, prompt: &str) -> Result<String, HistoryError> {
        let line = prompt.lines().find(|line| !line.trim().is_empty());
        let secrets = self.history.secrets();
        let line = secrets.redact(line.unwrap_or_default().trim());
        let title: String = line.text.chars().take(MAX_TITLE_CHARS).collect();
        Ok(self.store.set_title(self.id(), &title).await?)
    }

    /// Stores the model of the last turn, if it changed since the last call.
    pub(super) async fn set_model(
        &mut self,
        provider: &dyn LlmProvider,
    ) -> Result<(), HistoryError> {
        let current = (provider.name().to_owned(), provider.model().to_owned());
        if self.model.as_ref() != Some(&current) {
            let (name, model) = &current;
            self.store.set_model(self.id(), name, model).await?;
            self.model = Some(current);
        }
        Ok(())
    }

    /// Stores a title that the user chose. Returns it without secrets and on one line.
    pub(super) async fn rename(&self, title: &str) -> Result<String, HistoryError> {
        let words: Vec<&str> = title.split_whitespace().collect();
        let line = self
            .history
            .secrets()
            .redact(&words.join(" "))
            .text
            .into_owned();
        let title: String = line.chars().take(MAX_TITLE_CHARS).collect();
        self.store.rename_session(self.id(), &title).await?;
        Ok(title)
    }

    /// Takes the messages from number `seq` on out of the conversation, and the summaries of them out of the system
    /// prompt. The store keeps both.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub(super) async fn rewind(&mut self, seq: i64) -> Result<(), HistoryError> {
        let before = self.system.text().len();
        self.store.rewind(self.id(), seq).await?;
        let summaries = self.store.summaries(self.id()).await?;
        self.system = self.system.with_summaries(summaries);
        let fixed_bytes = self.history.fixed_bytes() + self.system.text().len() - before;
        self.history.reload(fixed_bytes).await
    }

    /// Adds costs, in memory and in the store.
    pub(super) async fn add_spending(&mut self, spent: Spending) -> Result<(), HistoryError> {
        let rows = spent.to_stored();
        self.spending.merge(spent);
        for row in &rows {
            self.store.add_spending(self.id(), row).await?;
        }
        Ok(())
    }

    /// Appends a summary to the system prompt, and removes the messages before number `window_start` from the window, except the
    /// one with the number `pinned`.
    ///
    /// # Errors
    /// [`HistoryError`]; then the window and the prompt are unchanged.
    pub(super) async fn add_summary(
        &mut self,
        summary: NewSummary,
        window_start: i64,
        pinned: Option<i64>,
    ) -> Result<(), HistoryError> {
        let system = self.system.with_summary(stored(&summary));
        let growth = system.text().len() - self.system.text().len();
        let compaction = Compaction {
            summary: Some(summary),
            window_start: Some(window_start),
            pinned,
            shown: Vec::new(),
        };
        let fixed_bytes = self.history.fixed_bytes() + growth;
        self.history.compact(&compaction, fixed_bytes).await?;
        self.system = system;
        Ok(())
    }

    /// Starts the window over, without summaries. The store keeps all messages.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub(super) async fn clear(&mut self) -> Result<(), HistoryError> {
        self.history.clear().await?;
        let before = self.system.text().len();
        self.system.clear();
        let fixed_bytes = self.history.fixed_bytes() + self.system.text().len() - before;
        self.history.begin_with(fixed_bytes);
        Ok(())
    }
}

/// A new summary in the form in which the store returns it.
pub(super) fn stored(summary: &NewSummary) -> StoredSummary {
    let summary = summary.clone();
    StoredSummary {
        content: summary.content,
        compaction_method: summary.method.as_str().to_owned(),
        first_seq: summary.first_seq,
        last_seq: summary.last_seq,
        messages: summary.messages,
        tokens_before: summary.tokens_before,
        tokens_after: summary.tokens_after,
        provider: summary.provider,
        model: summary.model,
        created_at: 0,
        rewound: false,
    }
}
