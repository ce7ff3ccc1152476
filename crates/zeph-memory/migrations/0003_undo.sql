-- What file tools changed and how to take it back; gone with the session.

CREATE TABLE undo_change (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    session    INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    -- What is undone together.
    batch      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    tool       TEXT    NOT NULL,
    -- What was changed, for a person to read.
    what       TEXT    NOT NULL,
    -- Why it cannot be undone.
    lost       TEXT,
    -- What counts against the bound.
    bytes      INTEGER NOT NULL,
    -- The steps as JSON, and the contents of files; both deflated.
    change     BLOB,
    images     BLOB,
    CHECK ((lost IS NULL) = (change IS NOT NULL))
) STRICT;
CREATE INDEX undo_change_by_session ON undo_change (session, number, bytes, batch);
