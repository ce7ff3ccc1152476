-- Facts that outlive their session. Times are milliseconds since the Unix epoch.
CREATE TABLE memory (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    content  TEXT    NOT NULL UNIQUE,
    -- The session's own id: it may be removed, and the fact stays.
    session  TEXT    NOT NULL,
    project  TEXT    NOT NULL,
    saved_at INTEGER NOT NULL
) STRICT;

CREATE VIRTUAL TABLE memory_words USING fts5 (
    content, content = 'memory', content_rowid = 'number',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER memory_is_found AFTER INSERT ON memory BEGIN
    INSERT INTO memory_words (rowid, content) VALUES (NEW.number, NEW.content);
END;
CREATE TRIGGER memory_is_forgotten AFTER DELETE ON memory BEGIN
    INSERT INTO memory_words (memory_words, rowid, content) VALUES ('delete', OLD.number, OLD.content);
END;
