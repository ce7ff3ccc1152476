//! The mode and the model of a session: stored when they change, and restored when the session is opened again, in a
//! terminal and in an editor.
//!
//! A restored mode never loosens a decision of the user at the start: flags and variables of the environment precede it,
//! and it is at most as loose as the mode in a configuration file.

mod model_choice;

use anyhow::Context as _;
use tokio::sync::Mutex;
use zeph_memory::{ChosenModel, SessionChoices, Store, StoreError};
use zeph_tools::{Mode, Permissions};

use crate::config::{FlagOverrides, Loaded, Origin};

pub(crate) use model_choice::ModelChoice;

/// The values at the start of the process, which precede stored choices.
#[derive(Debug, Clone)]
pub(crate) struct StartChoices {
    mode: Mode,
    mode_origin: Origin,
    has_model_flag: bool,
}

impl StartChoices {
    /// The values of the flags and the configuration.
    pub(crate) fn new(flags: &FlagOverrides, loaded: &Loaded) -> Self {
        Self {
            mode: loaded.config.tools.mode,
            mode_origin: loaded.provenance.of("tools.mode").clone(),
            has_model_flag: flags.model.is_some() || flags.provider.is_some(),
        }
    }

    /// The reason why a stored mode does not apply.
    fn refusal(&self, name: &str, permissions: &Permissions) -> Option<String> {
        let applies = format!("mode {} applies", self.mode.as_str());
        let Some(mode) = Mode::from_name(name).filter(|mode| permissions.can_have(*mode)) else {
            return Some(format!(
                "mode {name} of this session is not possible here; {applies}"
            ));
        };
        let place = match &self.mode_origin {
            Origin::User(place) | Origin::Project(place) => place,
            Origin::Default | Origin::Environment(_) | Origin::Flag(_) => return None,
        };
        (mode > self.mode).then(|| {
            format!(
                "mode {name} of this session is looser than the configured one ({}:{}); {applies}, and \
                 `/mode {name}` selects {name}",
                place.file.display(),
                place.line
            )
        })
    }

    /// Whether a flag or a variable chose the mode of this process.
    fn has_fixed_mode(&self) -> bool {
        matches!(self.mode_origin, Origin::Environment(_) | Origin::Flag(_))
    }
}

/// The stored choices of a session.
pub(crate) struct StoredChoices {
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

/// The result of a restoration, for the user.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The restored mode and model; `None` if nothing was restored.
    pub(crate) notice: Option<String>,
    /// A message for each choice that is not possible.
    pub(crate) warnings: Vec<String>,
}

impl Restored {
    /// All messages.
    pub(crate) fn messages(self) -> impl Iterator<Item = String> {
        self.notice.into_iter().chain(self.warnings)
    }
}

impl StoredChoices {
    /// Gives the session its stored choices, and for the rest the values of the start.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn restore(
        store: &Store,
        session: &str,
        start: &StartChoices,
        permissions: &Permissions,
        models: &ModelChoice,
    ) -> Result<(Self, Restored), StoreError> {
        let stored = store.session_choices(session).await?;
        let (mut restored, mut warnings) = (Vec::new(), Vec::new());
        permissions.mode.set(start.mode);
        if let Some(name) = stored.mode.as_deref().filter(|_| !start.has_fixed_mode()) {
            match (Mode::from_name(name), start.refusal(name, permissions)) {
                (Some(mode), None) => {
                    permissions.mode.set(mode);
                    restored.push(format!("mode {name}"));
                }
                (_, refusal) => warnings.extend(refusal),
            }
        }
        models.reset();
        if let Some(model) = stored.model.as_ref().filter(|_| !start.has_model_flag) {
            match models.restore(model) {
                Ok(()) => restored.push(format!("model {}", models.description())),
                Err(error) => warnings.push(format!(
                    "model {} ({}) of this session cannot be used: {error:#}; requests go to {}",
                    model.model,
                    model.provider,
                    models.description()
                )),
            }
        }
        let notice = (!restored.is_empty())
            .then(|| format!("this session continues with {}", restored.join(" and ")));
        let choices = Self::with_known(store, session, stored, permissions, models);
        Ok((choices, Restored { notice, warnings }))
    }

    /// The choices of a copy of the session, which continues with the current values.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn of_copy(
        &self,
        copy: &str,
        permissions: &Permissions,
        models: &ModelChoice,
    ) -> Result<Self, StoreError> {
        let stored = self.store.session_choices(copy).await?;
        let store = &self.store;
        Ok(Self::with_known(store, copy, stored, permissions, models))
    }

    fn with_known(
        store: &Store,
        session: &str,
        stored: SessionChoices,
        permissions: &Permissions,
        models: &ModelChoice,
    ) -> Self {
        let known = Known {
            stored,
            mode: permissions.mode.get(),
            model: models.chosen_model(),
        };
        Self {
            store: store.clone(),
            session: session.to_owned(),
            known: Mutex::new(known),
        }
    }

    /// Stores the mode and the model if they changed.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub(crate) async fn save(&self, mode: Mode, model: ChosenModel) -> anyhow::Result<()> {
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
            saved.await.context(
                "the mode and the model could not be stored, so they apply only until this session is closed",
            )?;
        }
        *known = Known {
            stored: choices,
            mode,
            model,
        };
        Ok(())
    }
}
