-- How many calls a session made since it began or was cleared, as far as a quota counted them.
CREATE TABLE call_quota (
    session INTEGER NOT NULL PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
    used    INTEGER NOT NULL
) STRICT;
