-- What a session spent, by provider and model: tokens as the provider counted them, money in billionths of a
-- US dollar, and of how many requests the price is not known.
CREATE TABLE spending (
    session            INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    requests           INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cached_tokens      INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cost_nanos         INTEGER NOT NULL,
    unpriced           INTEGER NOT NULL,
    PRIMARY KEY (session, provider, model)
) STRICT;
