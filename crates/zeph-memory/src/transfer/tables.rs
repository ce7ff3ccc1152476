//! The tables of a session, with their columns, so that rows are copied and compared without a struct for each table.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::database::{Row, Statement, Transaction, Value, query};
use crate::error::StoreError;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Boolean,
    Text,
    Bytes,
}

use Kind::{Boolean, Bytes, Integer, Text};

/// A table with its columns, except keys that differ from database to database.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The column that refers to the row above: a session, or an entry with blocks.
    pub(super) parent: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    /// The column by which rows have the same order in each database.
    order: &'static str,
}

/// The row of a session.
pub(super) const SESSION: Table = Table {
    name: "session",
    parent: "number",
    columns: &[
        ("id", Text),
        ("project", Text),
        ("title", Text),
        ("provider", Text),
        ("model", Text),
        ("created_at", Integer),
        ("updated_at", Integer),
        ("window_start", Integer),
        ("pinned", Integer),
        ("known_from", Integer),
        ("offered_tools", Text),
        ("is_renamed", Boolean),
        ("chosen_mode", Text),
        ("chosen_provider", Text),
        ("chosen_model", Text),
        ("chosen_effort", Text),
    ],
    order: "number",
};

/// The stored outputs of a session. Their blocks refer to them.
pub(super) const OVERFLOW: Table = Table {
    name: "tool_overflow",
    parent: "session",
    columns: &[
        ("id", Text),
        ("tool", Text),
        ("created_at", Integer),
        ("size", Integer),
        ("lines", Integer),
        ("total_size", Integer),
    ],
    order: "number",
};

/// The blocks of a stored output.
pub(super) const BLOCK: Table = Table {
    name: "tool_overflow_block",
    parent: "entry",
    columns: &[
        ("number", Integer),
        ("line", Integer),
        ("size", Integer),
        ("content", Bytes),
    ],
    order: "number",
};

/// The messages of a session.
pub(super) const MESSAGE: Table = Table {
    name: "message",
    parent: "session",
    columns: &[
        ("seq", Integer),
        ("role", Text),
        ("content", Text),
        ("created_at", Integer),
        ("input_tokens", Integer),
        ("output_tokens", Integer),
        ("cached_tokens", Integer),
        ("shown", Text),
        ("rewound", Boolean),
    ],
    order: "seq",
};

/// The other tables whose rows refer to a session, without further rows below them.
pub(super) const CHILDREN: &[Table] = &[
    Table {
        name: "result_view",
        parent: "session",
        columns: &[("seq", Integer), ("view", Text)],
        order: "seq",
    },
    Table {
        name: "summaries",
        parent: "session",
        columns: &[
            ("content", Text),
            ("compaction_method", Text),
            ("first_seq", Integer),
            ("last_seq", Integer),
            ("messages", Integer),
            ("tokens_before", Integer),
            ("tokens_after", Integer),
            ("provider", Text),
            ("model", Text),
            ("created_at", Integer),
            ("rewound", Boolean),
        ],
        order: "number",
    },
    Table {
        name: "task",
        parent: "session",
        columns: &[
            ("number", Integer),
            ("content", Text),
            ("status", Text),
            ("created_at", Integer),
            ("updated_at", Integer),
        ],
        order: "number",
    },
    Table {
        name: "seen_file",
        parent: "session",
        columns: &[("path", Bytes), ("digest", Bytes), ("content", Bytes)],
        order: "number",
    },
    Table {
        name: "undo_change",
        parent: "session",
        columns: &[
            ("batch", Text),
            ("created_at", Integer),
            ("tool", Text),
            ("what", Text),
            ("lost", Text),
            ("bytes", Integer),
            ("change", Bytes),
            ("images", Bytes),
            ("after_seq", Integer),
        ],
        order: "number",
    },
    Table {
        name: "call_quota",
        parent: "session",
        columns: &[("used", Integer)],
        order: "session",
    },
    Table {
        name: "completed_tools",
        parent: "session",
        columns: &[("tool", Text)],
        order: "tool",
    },
    Table {
        name: "spending",
        parent: "session",
        columns: &[
            ("provider", Text),
            ("model", Text),
            ("requests", Integer),
            ("input_tokens", Integer),
            ("output_tokens", Integer),
            ("cached_tokens", Integer),
            ("cache_write_tokens", Integer),
            ("cost_nanos", Integer),
            ("unpriced", Integer),
        ],
        order: "provider, model",
    },
];

/// The entries of the audit trail.
pub(super) const AUDIT: Table = Table {
    name: "tool_audit",
    parent: "writer",
    columns: &[
        ("ts", Integer),
        ("session", Text),
        ("call_id", Text),
        ("tool", Text),
        ("call", Text),
        ("result", Text),
        ("result_digest", Text),
        ("result_size", Integer),
        ("trust", Text),
        ("approved_by", Text),
        ("phase", Text),
        ("duration_ms", Integer),
        ("exit_code", Integer),
        ("truncated", Boolean),
        ("error_category", Text),
        ("attempts", Integer),
        ("cached", Boolean),
        ("repairs", Text),
        ("caller_id", Text),
        ("claim_source", Text),
        ("adversarial_policy_decision", Text),
        ("policy_match", Text),
        ("seq", Integer),
        ("prev", Text),
        ("hash", Text),
    ],
    order: "seq",
};

impl Table {
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The query of the rows of `?1`, in an order that does not depend on the database.
    pub(super) fn select(&self) -> String {
        let Self {
            name,
            parent,
            order,
            ..
        } = self;
        format!(
            "SELECT {} FROM {name} WHERE {parent} = ?1 ORDER BY {order}",
            self.names()
        )
    }

    /// The query of up to `?3` rows of the chain `?1` after the number `?2`.
    pub(super) fn page(&self) -> String {
        let Self {
            name,
            parent,
            order,
            ..
        } = self;
        format!(
            "SELECT {} FROM {name} WHERE {parent} IS NOT DISTINCT FROM ?1 AND {order} > ?2 ORDER BY {order} LIMIT ?3",
            self.names()
        )
    }

    /// The statement that inserts a row below `?1`.
    pub(super) fn insert(&self) -> String {
        let Self { name, parent, .. } = self;
        let mut sql = format!("INSERT INTO {name} ({parent}, {}) VALUES (?1", self.names());
        for place in 0..self.columns.len() {
            // Writing into a string cannot fail.
            let _ = write!(sql, ", ?{}", place + 2);
        }
        sql.push(')');
        sql
    }

    /// Inserts rows below `parent`.
    pub(super) async fn add(
        &self,
        transaction: &mut dyn Transaction,
        parent: i64,
        rows: impl IntoIterator<Item = Vec<Value<'static>>, IntoIter: Send> + Send,
    ) -> Result<(), StoreError> {
        for values in rows {
            let insert = query(self.insert()).bind(parent);
            transaction
                .fetch(values.into_iter().fold(insert, Statement::bind))
                .await?;
        }
        Ok(())
    }

    /// The values of a row.
    pub(super) fn read(&self, row: &Row) -> Result<Vec<Value<'static>>, sqlx::Error> {
        let columns = self.columns.iter().enumerate();
        let values = columns.map(|(place, (_, kind))| {
            Ok(match kind {
                Integer => Value::Integer(row.try_get(place)?),
                Boolean => Value::Boolean(row.try_get(place)?),
                Text => Value::Text(row.try_get::<Option<String>, _>(place)?.map(Cow::Owned)),
                Bytes => Value::Bytes(row.try_get::<Option<Vec<u8>>, _>(place)?.map(Cow::Owned)),
            })
        });
        values.collect()
    }
}

/// The hash of rows, which is the same in each database.
#[derive(Default)]
pub(super) struct Fingerprint(Sha256);

impl Fingerprint {
    pub(super) fn add(&mut self, table: &Table, values: &[Value<'_>]) {
        self.0.update(table.name.as_bytes());
        for value in values {
            let (kind, bytes): (u8, Option<Cow<'_, [u8]>>) = match value {
                Value::Integer(value) => (1, value.map(|it| it.to_le_bytes().to_vec().into())),
                Value::Boolean(value) => (2, value.map(|it| vec![u8::from(it)].into())),
                Value::Text(value) => (3, value.as_ref().map(|it| it.as_bytes().into())),
                Value::Bytes(value) => (4, value.as_ref().map(|it| it.as_ref().into())),
            };
            self.0.update([kind, u8::from(bytes.is_some())]);
            if let Some(bytes) = bytes {
                self.0.update((bytes.len() as u64).to_le_bytes());
                self.0.update(bytes);
            }
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
