-- Which tools succeeded in a session, of those on which others depend.
CREATE TABLE completed_tools (
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    PRIMARY KEY (session, tool)
) STRICT, WITHOUT ROWID;
