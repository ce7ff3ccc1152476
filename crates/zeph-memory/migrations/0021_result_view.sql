-- What a user was shown of a result: another text than the model was sent, places and changes of files. A conversation
-- that is shown again shows it again.
CREATE TABLE result_view (
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    -- The message with the result.
    seq     INTEGER NOT NULL,
    view    TEXT    NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
