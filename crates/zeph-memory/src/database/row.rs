//! A row of either database.

#[cfg(feature = "postgres")]
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{ColumnIndex, Decode, Row as _, Sqlite, Type};

/// A row of a result.
#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(SqliteRow),
    #[cfg(feature = "postgres")]
    Postgres(PgRow),
}

/// A type that both databases have.
#[cfg(not(feature = "postgres"))]
pub(crate) trait Column<'r>: Decode<'r, Sqlite> + Type<Sqlite> {}
#[cfg(not(feature = "postgres"))]
impl<'r, T: Decode<'r, Sqlite> + Type<Sqlite>> Column<'r> for T {}

/// A type that both databases have.
#[cfg(feature = "postgres")]
pub(crate) trait Column<'r>:
    Decode<'r, Sqlite>
    + Type<Sqlite>
    + Decode<'r, sqlx::Postgres>
    + Type<sqlx::Postgres>
    + super::nul::Restore
{
}
#[cfg(feature = "postgres")]
impl<'r, T> Column<'r> for T where
    T: Decode<'r, Sqlite>
        + Type<Sqlite>
        + Decode<'r, sqlx::Postgres>
        + Type<sqlx::Postgres>
        + super::nul::Restore
{
}

/// The index or the name of a column.
#[cfg(not(feature = "postgres"))]
pub(crate) trait Index: ColumnIndex<SqliteRow> {}
#[cfg(not(feature = "postgres"))]
impl<I: ColumnIndex<SqliteRow>> Index for I {}

/// The index or the name of a column.
#[cfg(feature = "postgres")]
pub(crate) trait Index: ColumnIndex<SqliteRow> + ColumnIndex<PgRow> {}
#[cfg(feature = "postgres")]
impl<I: ColumnIndex<SqliteRow> + ColumnIndex<PgRow>> Index for I {}

impl Row {
    /// The value of a column.
    ///
    /// # Errors
    /// If the column does not exist or has another type.
    pub(crate) fn try_get<'r, T: Column<'r>, I: Index>(
        &'r self,
        index: I,
    ) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(index),
            #[cfg(feature = "postgres")]
            Self::Postgres(row) => row.try_get(index).map(super::nul::Restore::restore),
        }
    }

    /// The boolean in a column. SQLite stores it as a number; any other number than 0 and 1 is foreign data.
    ///
    /// # Errors
    /// If the column does not exist or has another value.
    pub(crate) fn try_get_bool(&self, column: &str) -> Result<Option<bool>, sqlx::Error> {
        let number: Option<i64> = match self {
            Self::Sqlite(row) => row.try_get(column)?,
            #[cfg(feature = "postgres")]
            Self::Postgres(row) => return row.try_get(column),
        };
        match number {
            None => Ok(None),
            Some(0) => Ok(Some(false)),
            Some(1) => Ok(Some(true)),
            Some(other) => Err(sqlx::Error::Decode(format!("`{column}` is {other}").into())),
        }
    }
}
