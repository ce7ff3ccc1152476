//! The mode and the model that the user chose for a session: columns of the table `session`.

use crate::conversation::unknown;
use crate::database::{Row, query};
use crate::error::StoreError;
use crate::store::Store;

/// The choices of the user for a session. Without a choice, the configuration applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChoices {
    /// The permission mode.
    pub mode: Option<String>,
    /// The model.
    pub model: Option<ChosenModel>,
}

/// A chosen model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenModel {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as sent.
    pub model: String,
    /// How much it reasons; `None` is the default of the model.
    pub effort: Option<String>,
}

fn choices_of(row: &Row) -> Result<SessionChoices, sqlx::Error> {
    let provider: Option<String> = row.try_get(1)?;
    let model: Option<String> = row.try_get(2)?;
    let effort = row.try_get(3)?;
    let model = provider.zip(model).map(|(provider, model)| ChosenModel {
        provider,
        model,
        effort,
    });
    Ok(SessionChoices {
        mode: row.try_get(0)?,
        model,
    })
}

impl Store {
    /// The choices of the user for a session.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn session_choices(&self, session: &str) -> Result<SessionChoices, StoreError> {
        let select = query(
            "SELECT chosen_mode, chosen_provider, chosen_model, chosen_effort FROM session WHERE id = ?1",
        );
        let rows = self.fetch(select.bind(session)).await?;
        let row = rows.first().ok_or_else(|| unknown(session))?;
        choices_of(row).map_err(|error| self.sql(error))
    }

    /// Replaces the choices of the user for a session.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn set_session_choices(
        &self,
        session: &str,
        choices: &SessionChoices,
    ) -> Result<(), StoreError> {
        let update = query(
            "UPDATE session SET chosen_mode = ?2, chosen_provider = ?3, chosen_model = ?4, chosen_effort = ?5
             WHERE id = ?1 RETURNING number",
        );
        let model = choices.model.clone();
        let (provider, model, effort) = match model {
            Some(chosen) => (Some(chosen.provider), Some(chosen.model), chosen.effort),
            None => (None, None, None),
        };
        let update = update
            .bind(session)
            .bind(choices.mode.clone())
            .bind(provider)
            .bind(model)
            .bind(effort);
        self.write_to_session(session, update).await
    }
}
