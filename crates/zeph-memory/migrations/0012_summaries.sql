-- What a model made of the older messages of a session. Those messages stay; a model is sent this in
-- their place, at the end of its system prompt.
CREATE TABLE summaries (
    number            INTEGER PRIMARY KEY AUTOINCREMENT,
    session           INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    content           TEXT    NOT NULL,
    compaction_method TEXT    NOT NULL CHECK (compaction_method IN ('triggered', 'manual', 'autonomous')),
    -- The first and the last message that left the window, and how many did.
    first_seq         INTEGER NOT NULL,
    last_seq          INTEGER NOT NULL,
    messages          INTEGER NOT NULL,
    -- What the conversation took before and after, as it was estimated.
    tokens_before     INTEGER NOT NULL,
    tokens_after      INTEGER NOT NULL,
    provider          TEXT    NOT NULL,
    model             TEXT    NOT NULL,
    created_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX summaries_by_session ON summaries (session, number);

-- A message before the window that a model still sees: the prompt of the turn that was compacted.
ALTER TABLE session ADD COLUMN pinned INTEGER;
-- Summaries of messages before this one are forgotten: the session was cleared.
ALTER TABLE session ADD COLUMN known_from INTEGER NOT NULL DEFAULT 1;
-- What a model is sent in place of `content`: the result was moved out of the window.
ALTER TABLE message ADD COLUMN shown TEXT;
