//! A statement with its values, for either database.

use std::borrow::Cow;

use super::Dialect;

/// A value of a parameter. It has a type even if it is null, because PostgreSQL requires one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'q> {
    Integer(Option<i64>),
    Boolean(Option<bool>),
    Text(Option<Cow<'q, str>>),
    Bytes(Option<Cow<'q, [u8]>>),
}

/// A statement with the values of its parameters `?1`, `?2`, …
#[derive(Debug, Clone)]
pub(crate) struct Statement<'q> {
    sqlite: Cow<'static, str>,
    /// The text for PostgreSQL, if it differs.
    postgres: Option<&'static str>,
    pub(super) values: Vec<Value<'q>>,
    /// Whether the database keeps the parsed statement for the next time.
    pub(super) is_prepared: bool,
    /// Whether a second run changes nothing more, so that a lost connection does not matter.
    #[cfg_attr(
        not(feature = "postgres"),
        allow(dead_code, reason = "a file is never lost")
    )]
    pub(super) is_repeatable: bool,
}

/// A statement in the SQL of both databases.
pub(crate) fn query<'q>(sql: impl Into<Cow<'static, str>>) -> Statement<'q> {
    let sqlite = sql.into();
    Statement {
        is_repeatable: sqlite.trim_start().starts_with("SELECT"),
        sqlite,
        postgres: None,
        values: Vec::new(),
        is_prepared: true,
    }
}

impl<'q> Statement<'q> {
    /// A statement with a text for each database. Both use the same parameters.
    pub(crate) fn per_dialect(sqlite: &'static str, postgres: &'static str) -> Self {
        Self {
            postgres: Some(postgres),
            ..query(sqlite)
        }
    }

    /// Sets the value of the next parameter.
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Whether the database keeps the parsed statement. Without this call it does.
    pub(crate) fn prepared(mut self, is_prepared: bool) -> Self {
        self.is_prepared = is_prepared;
        self
    }

    /// Marks a statement that writes as one that may run twice: a second run has no further effect.
    pub(crate) fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// The text for a database.
    pub(super) fn sql(&self, dialect: Dialect) -> Cow<'static, str> {
        match (dialect, self.postgres) {
            (Dialect::Sqlite, _) => self.sqlite.clone(),
            // No text of ours contains a question mark that is not a parameter.
            (Dialect::Postgres, Some(sql)) => sql.replace('?', "$").into(),
            (Dialect::Postgres, None) => self.sqlite.replace('?', "$").into(),
        }
    }
}

/// Conversions of the types that the store binds, and of their options.
macro_rules! values {
    ($($type:ty, $variant:ident, $value:ident => $convert:expr;)*) => {$(
        impl<'q> From<$type> for Value<'q> {
            fn from($value: $type) -> Self {
                Self::$variant(Some($convert))
            }
        }
        impl<'q> From<Option<$type>> for Value<'q> {
            fn from(value: Option<$type>) -> Self {
                Self::$variant(value.map(|$value| $convert))
            }
        }
    )*};
}

values! {
    i64, Integer, value => value;
    u32, Integer, value => i64::from(value);
    bool, Boolean, value => value;
    &'q str, Text, value => Cow::Borrowed(value);
    &'q String, Text, value => Cow::Borrowed(value.as_str());
    String, Text, value => Cow::Owned(value);
    &'q [u8], Bytes, value => Cow::Borrowed(value);
    Vec<u8>, Bytes, value => Cow::Owned(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_has_the_parameters_of_its_database() {
        let check = |statement: &Statement<'_>, sqlite: &str, postgres: &str| {
            assert_eq!(statement.sql(Dialect::Sqlite), sqlite);
            assert_eq!(statement.sql(Dialect::Postgres), postgres);
        };
        check(&query("SELECT ?1, ?12"), "SELECT ?1, ?12", "SELECT $1, $12");
        check(&Statement::per_dialect("a ?1", "b ?1"), "a ?1", "b $1");
    }

    /// Proves OPS-3: only statements that read, or that are marked, run again after a lost connection.
    #[test]
    fn only_reads_and_marked_writes_are_repeatable() {
        assert!(query(" SELECT 1").is_repeatable);
        assert!(!query("INSERT INTO t SELECT 1").is_repeatable);
        assert!(query("DELETE FROM t").repeatable().is_repeatable);
    }
}
