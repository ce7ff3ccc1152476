-- Tasks that are due later. What is due is kept as instants (milliseconds since the Unix epoch); what comes
-- again has a cron expression and the time zone that it is read in. A task that is over stays until its
-- runs are known to the user.
CREATE TABLE schedule (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    project    TEXT    NOT NULL,
    prompt     TEXT    NOT NULL,
    said       TEXT    NOT NULL,
    cron       TEXT,
    zone       TEXT    NOT NULL,
    next_at    INTEGER,
    cancelled  INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX schedule_by_time ON schedule (project, next_at) WHERE next_at IS NOT NULL;

-- What became of each time that a task was due: one row, whoever comes first. `lease_until` tells of a run whose
-- process has died.
CREATE TABLE schedule_run (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    task        INTEGER NOT NULL REFERENCES schedule (id) ON DELETE CASCADE,
    due_at      INTEGER NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('running', 'done', 'failed', 'missed', 'interrupted')),
    session     TEXT,
    note        TEXT    NOT NULL DEFAULT '',
    changed_at  INTEGER NOT NULL,
    lease_until INTEGER,
    told        INTEGER NOT NULL DEFAULT 0,
    UNIQUE (task, due_at)
) STRICT;
CREATE INDEX schedule_run_by_state ON schedule_run (state) WHERE state = 'running' OR told = 0;
