-- Sessions, their messages and tasks, and the audit trail.
-- Times are milliseconds since the Unix epoch.

CREATE TABLE session (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    project      TEXT    NOT NULL,
    title        TEXT,
    provider     TEXT,
    model        TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    -- Rises over all sessions with each change of the one spoken in: clocks are too coarse, and
    -- may go back.
    activity     INTEGER NOT NULL,
    -- The first message that a model still sees.
    window_start INTEGER NOT NULL DEFAULT 1,
    -- The last audit entry before this session: an earlier session of the same id has left its own.
    audit_floor  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_by_activity ON session (activity);
CREATE INDEX session_by_project ON session (project, activity);

CREATE TABLE message (
    number        INTEGER PRIMARY KEY,
    session       INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    seq           INTEGER NOT NULL,
    role          TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    UNIQUE (session, seq)
) STRICT;

CREATE TRIGGER message_is_activity AFTER INSERT ON message BEGIN
    UPDATE session
    SET updated_at = max(updated_at, NEW.created_at),
        activity = (SELECT max(activity) FROM session)
            + (activity < (SELECT max(activity) FROM session))
    WHERE number = NEW.session;
END;

CREATE TABLE task (
    session    INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    content    TEXT    NOT NULL,
    status     TEXT    NOT NULL CHECK (status IN ('pending', 'in_progress', 'completed')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

-- No reference to `session`: what was done stays on record when a conversation is deleted.
CREATE TABLE tool_audit (
    id             INTEGER PRIMARY KEY,
    ts             INTEGER NOT NULL,
    session        TEXT    NOT NULL,
    call_id        TEXT    NOT NULL,
    tool           TEXT    NOT NULL,
    call           TEXT    NOT NULL,
    result         TEXT    NOT NULL,
    result_digest  TEXT    NOT NULL,
    result_size    INTEGER NOT NULL,
    trust          TEXT    NOT NULL,
    approved_by    TEXT    NOT NULL,
    phase          TEXT    NOT NULL,
    duration_ms    INTEGER NOT NULL,
    exit_code      INTEGER,
    truncated      INTEGER,
    error_category TEXT,
    attempts       INTEGER NOT NULL,
    cached         INTEGER NOT NULL,
    repairs        TEXT    NOT NULL,
    caller_id      TEXT
) STRICT;
CREATE INDEX tool_audit_by_session ON tool_audit (session);

CREATE TRIGGER tool_audit_is_not_edited BEFORE UPDATE ON tool_audit BEGIN
    SELECT RAISE(ABORT, 'tool_audit is append-only');
END;
CREATE TRIGGER tool_audit_is_not_deleted BEFORE DELETE ON tool_audit BEGIN
    SELECT RAISE(ABORT, 'tool_audit is append-only');
END;
