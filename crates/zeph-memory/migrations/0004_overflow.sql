-- Outputs that were too long for the model to read at once, compressed in blocks.
CREATE TABLE tool_overflow (
    number      INTEGER PRIMARY KEY,
    -- A random UUID, lower case, with hyphens.
    id          TEXT    NOT NULL UNIQUE,
    session     INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    tool        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    -- Bytes and lines that are stored.
    size        INTEGER NOT NULL,
    lines       INTEGER NOT NULL,
    -- Bytes of the whole output, and whether it was cut before it was stored.
    total_size  INTEGER NOT NULL,
    cut         INTEGER NOT NULL GENERATED ALWAYS AS (total_size > size)
) STRICT;
CREATE INDEX tool_overflow_by_session ON tool_overflow (session);
CREATE INDEX tool_overflow_by_age ON tool_overflow (created_at);

CREATE TABLE tool_overflow_block (
    entry   INTEGER NOT NULL REFERENCES tool_overflow (number) ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    -- The line (from 1) on which it begins.
    line    INTEGER NOT NULL,
    -- Bytes of its text.
    size    INTEGER NOT NULL,
    -- An LZ4 block.
    content BLOB    NOT NULL,
    UNIQUE (entry, number)
) STRICT;
