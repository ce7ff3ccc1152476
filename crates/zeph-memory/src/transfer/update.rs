//! Updates of copies: a session that grew after it was copied brings its copy up to date.

use std::collections::HashSet;

use super::Source;
use super::tables::{CHILDREN, MESSAGE, OVERFLOW, SESSION};
use crate::database::{Transaction, Value, query, repeated};
use crate::error::StoreError;
use crate::store::Store;

type Values = Vec<Value<'static>>;

/// The columns of a message that never change are those before this one, the replacement text that a model sees.
const SHOWN: usize = 7;
/// Whether the user went back before a message.
const REWOUND: usize = 8;
/// The title of a session.
const TITLE: usize = 2;
/// Whether the user chose the title.
const RENAMED: usize = 11;

impl Store {
    /// Brings the copy in `to` up to date, if its messages are the first ones of this session. `false` if they are not, if the copy
    /// was changed there, or if a process works on it.
    pub(super) async fn update_copy(
        &self,
        source: &Source,
        to: &Store,
    ) -> Result<bool, StoreError> {
        let Some(number) = to.own_number_of(&source.id).await? else {
            return Ok(false);
        };
        let lock = match to.lock_session(&source.id).await {
            Err(StoreError::SessionInUse { .. }) => return Ok(false),
            lock => lock?,
        };
        let updated = self.update_locked(source, to, number).await;
        lock.release().await;
        updated
    }

    async fn update_locked(
        &self,
        source: &Source,
        to: &Store,
        number: i64,
    ) -> Result<bool, StoreError> {
        let session = self.rows_of(&SESSION, source.number).await?;
        let messages = self.rows_of(&MESSAGE, source.number).await?;
        let (copied_session, copied) = (
            to.rows_of(&SESSION, number).await?,
            to.rows_of(&MESSAGE, number).await?,
        );
        let (Some(session), Some(copied_session)) = (session.first(), copied_session.first())
        else {
            return Ok(false);
        };
        if !is_beginning(&copied, &messages) || is_renamed(copied_session, session) {
            return Ok(false);
        }
        let target = Target { to, number };
        let update = || self.try_update(source, &target, session, &messages, &copied);
        repeated(update).await.map(|()| true)
    }

    /// One attempt to update a copy, in one transaction.
    async fn try_update(
        &self,
        source: &Source,
        target: &Target<'_>,
        session: &Values,
        messages: &[Values],
        copied: &[Values],
    ) -> Result<(), StoreError> {
        let Target { to, number } = *target;
        let mut transaction = to.begin().await?;
        for (new, old) in messages.iter().zip(copied) {
            if new == old {
                continue;
            }
            let update = query(
                "UPDATE message SET shown = ?3, rewound = ?4 WHERE session = ?1 AND seq = ?2",
            );
            let update = update.bind(number).bind(new[0].clone());
            let update = update.bind(new[SHOWN].clone()).bind(new[REWOUND].clone());
            transaction.fetch(update).await?;
        }
        let added = messages.get(copied.len()..).unwrap_or_default().to_vec();
        MESSAGE.add(transaction.as_mut(), number, added).await?;
        to.index_long(transaction.as_mut(), number).await?;
        for table in CHILDREN {
            let delete = query(format!("DELETE FROM {} WHERE session = ?1", table.name));
            transaction.fetch(delete.bind(number)).await?;
            let rows = self.rows_of(table, source.number).await?;
            table.add(transaction.as_mut(), number, rows).await?;
        }
        self.update_overflow(source, target, transaction.as_mut())
            .await?;
        // Appended messages changed the time of the last change.
        let columns = SESSION.columns.iter().skip(1).enumerate();
        let columns: Vec<String> = columns
            .map(|(place, (name, _))| format!("{name} = ?{}", place + 2))
            .collect();
        let update = format!(
            "UPDATE session SET {} WHERE number = ?1",
            columns.join(", ")
        );
        let mut update = query(update).bind(number);
        for value in session.iter().skip(1) {
            update = update.bind(value.clone());
        }
        transaction.fetch(update).await?;
        transaction.commit().await
    }

    /// Adds the stored outputs that the copy lacks, and removes those that this session no longer has.
    async fn update_overflow(
        &self,
        source: &Source,
        target: &Target<'_>,
        transaction: &mut dyn Transaction,
    ) -> Result<(), StoreError> {
        let Target { to, number } = *target;
        let text = |values: &Values| match values.first() {
            Some(Value::Text(Some(id))) => id.clone().into_owned(),
            _ => String::new(),
        };
        let here = self.rows_of(&OVERFLOW, source.number).await?;
        let here: HashSet<String> = here.iter().map(text).collect();
        let there = transaction
            .fetch(query(OVERFLOW.select()).bind(number))
            .await?;
        let mut known = HashSet::new();
        for row in there {
            let id = text(&OVERFLOW.read(&row).map_err(|error| to.sql(error))?);
            if !here.contains(&id) {
                let delete = query("DELETE FROM tool_overflow WHERE session = ?1 AND id = ?2");
                transaction.fetch(delete.bind(number).bind(&id)).await?;
            }
            known.insert(id);
        }
        let is_new = |values: &Values| !known.contains(&text(values));
        self.add_overflow(source.number, to, transaction, number, is_new)
            .await
    }
}

/// A copy in another store.
#[derive(Clone, Copy)]
struct Target<'s> {
    to: &'s Store,
    number: i64,
}

/// Whether the messages `copied` are the first ones of `messages`, or all of them. A message can have been rewound or
/// shortened since it was copied, but not only there.
fn is_beginning(copied: &[Values], messages: &[Values]) -> bool {
    let is_earlier = |(old, new): (&Values, &Values)| {
        old[..SHOWN] == new[..SHOWN]
            && (old[SHOWN] == new[SHOWN] || old[SHOWN] == Value::Text(None))
            && (old[REWOUND] == new[REWOUND] || old[REWOUND] == Value::Boolean(Some(false)))
    };
    copied.len() <= messages.len() && copied.iter().zip(messages).all(is_earlier)
}

/// Whether the user chose another title for the copy.
fn is_renamed(copied: &Values, session: &Values) -> bool {
    copied[RENAMED] == Value::Boolean(Some(true)) && copied[TITLE] != session[TITLE]
}
