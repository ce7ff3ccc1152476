-- Vectors of facts, so that all of them are compared by what they mean. They are made when facts are searched for:
-- `oldest` to `newest` are the numbers of the facts that have theirs.
CREATE TABLE memory_model (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    model  TEXT    NOT NULL UNIQUE,
    -- How many numbers its vectors have.
    length INTEGER NOT NULL,
    oldest INTEGER NOT NULL,
    newest INTEGER NOT NULL
) STRICT;

-- Of length 1, each number in 32 bits, the lowest byte first.
CREATE TABLE memory_vector (
    number INTEGER PRIMARY KEY,
    model  INTEGER NOT NULL REFERENCES memory_model (id) ON DELETE CASCADE,
    fact   INTEGER NOT NULL REFERENCES memory (number) ON DELETE CASCADE,
    vector BLOB    NOT NULL,
    UNIQUE (model, fact)
) STRICT;
CREATE INDEX memory_vector_by_fact ON memory_vector (fact);

-- Signs of the vectors of 128 facts each, in their order: what a search reads of all facts, to know which vectors are
-- worth a look. `facts` has a byte for each fact, its number modulo 128. They follow from the vectors, and are made
-- when they are read and missing (null).
CREATE TABLE memory_signs (
    model INTEGER NOT NULL REFERENCES memory_model (id) ON DELETE CASCADE,
    block INTEGER NOT NULL,
    facts BLOB,
    signs BLOB,
    PRIMARY KEY (model, block)
) STRICT;
CREATE TRIGGER memory_vector_is_made AFTER INSERT ON memory_vector BEGIN
    INSERT INTO memory_signs (model, block) VALUES (NEW.model, NEW.fact / 128)
    ON CONFLICT (model, block) DO UPDATE SET facts = NULL, signs = NULL WHERE facts IS NOT NULL;
END;
CREATE TRIGGER memory_vector_is_changed AFTER UPDATE ON memory_vector BEGIN
    UPDATE memory_signs SET facts = NULL, signs = NULL
    WHERE model = NEW.model AND block = NEW.fact / 128 AND facts IS NOT NULL;
END;
CREATE TRIGGER memory_vector_is_gone AFTER DELETE ON memory_vector BEGIN
    UPDATE memory_signs SET facts = NULL, signs = NULL
    WHERE model = OLD.model AND block = OLD.fact / 128 AND facts IS NOT NULL;
END;
