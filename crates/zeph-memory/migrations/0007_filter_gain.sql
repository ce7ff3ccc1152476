-- What filters saved, by rule, over all sessions.
CREATE TABLE filter_gain (
    rule         TEXT    NOT NULL PRIMARY KEY,
    -- Outputs that were understood, cut, not understood.
    full         INTEGER NOT NULL,
    partial      INTEGER NOT NULL,
    fallback     INTEGER NOT NULL,
    bytes_before INTEGER NOT NULL,
    bytes_after  INTEGER NOT NULL,
    -- The same command again within a minute; the raw output asked for.
    reruns       INTEGER NOT NULL,
    recalls      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
