-- Vectors that a model of embeddings made of texts: the SHA-256 of the text in hexadecimal, and the numbers in 32
-- bits each, the lowest byte first.
CREATE TABLE embedding (
    number INTEGER PRIMARY KEY,
    model  TEXT NOT NULL,
    text   TEXT NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model, text)
) STRICT;
