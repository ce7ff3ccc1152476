-- What a session has seen of files: the content that it read or left last.

CREATE TABLE seen_file (
    -- Rises with each note of a session.
    number  INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    -- Canonical and absolute; bytes, for names need not be text.
    path    BLOB    NOT NULL,
    -- SHA-256.
    digest  BLOB    NOT NULL,
    -- Compressed (raw DEFLATE); NULL when it was too long, or made room for later ones.
    content BLOB,
    UNIQUE (session, path)
) STRICT;
