//! The mode and the model of a session: they are stored when they change, and restored when the session is opened again.

use tokio::sync::Mutex;
use zeph_acp::HostError;
use zeph_memory::{ChosenModel, SessionChoices, Store, StoreError};
use zeph_tools::{Mode, Permissions};

use super::model_choice::ModelChoice;
use crate::config::FlagOverrides;

/// The stored choices of a session.
pub(super) struct StoredChoices {
    store: Store,
    session: String,
    known: Mutex<Known>,
}

/// The stored choices, and the values that the session had then.
struct Known {
    stored: SessionChoices,
    mode: Mode,
    model: ChosenModel,
}

impl StoredChoices {
    /// Restores the stored choices of a session. Flags of the process precede them. Returns a message for each choice that
    /// is not possible.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn restore(
        store: &Store,
        session: &str,
        flags: &FlagOverrides,
        permissions: &Permissions,
        models: &ModelChoice,
    ) -> Result<(Self, Vec<String>), StoreError> {
        let stored = store.session_choices(session).await?;
        let mut messages = Vec::new();
        if let Some(name) = stored.mode.as_deref().filter(|_| flags.mode.is_none()) {
            match Mode::from_name(name).filter(|mode| permissions.can_have(*mode)) {
                Some(mode) => permissions.mode.set(mode),
                None => messages.push(format!(
                    "mode {name} of this session is not possible here; mode {} applies",
                    permissions.mode.get().as_str()
                )),
            }
        }
        let has_flag = flags.model.is_some() || flags.provider.is_some();
        if let Some(model) = stored.model.as_ref().filter(|_| !has_flag)
            && let Err(error) = models.restore(model)
        {
            messages.push(format!(
                "model {} ({}) of this session cannot be used: {error}; requests go to {}",
                model.model,
                model.provider,
                models.description()
            ));
        }
        let known = Known {
            stored,
            mode: permissions.mode.get(),
            model: models.chosen_model(),
        };
        let choices = Self {
            store: store.clone(),
            session: session.to_owned(),
            known: Mutex::new(known),
        };
        Ok((choices, messages))
    }

    /// Stores the mode and the model if they changed.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub(super) async fn save(&self, mode: Mode, model: ChosenModel) -> Result<(), HostError> {
        let mut known = self.known.lock().await;
        let mut choices = known.stored.clone();
        if mode != known.mode {
            choices.mode = Some(mode.as_str().to_owned());
        }
        if model != known.model {
            choices.model = Some(model.clone());
        }
        if choices != known.stored {
            let saved = self.store.set_session_choices(&self.session, &choices);
            saved.await.map_err(super::of_store)?;
        }
        *known = Known {
            stored: choices,
            mode,
            model,
        };
        Ok(())
    }
}
