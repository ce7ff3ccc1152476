-- The tables of a shared store. They hold the same data as those of SQLite, and in addition the owner and the host of each
-- row. Times are milliseconds since the Unix epoch.
--
-- A row below another one has the owner of that row: a user who may read a session cannot add to it. Row-level security limits
-- every user to the rows of their own role, and to rows whose owner granted access to them.

-- The words of a text, by their stems. No word is left out: a search for a frequent word alone finds it.
CREATE TEXT SEARCH DICTIONARY zeph_stem (TEMPLATE = snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION zeph (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION zeph
    ALTER MAPPING FOR asciiword, asciihword, hword_asciipart, word, hword, hword_part WITH zeph_stem;

CREATE TABLE zeph_schema (
    version    BIGINT NOT NULL PRIMARY KEY,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The host that a connection names in its `application_name`, `zeph/HOST`.
CREATE FUNCTION zeph_host() RETURNS text LANGUAGE sql STABLE
    AS $$ SELECT substr(current_setting('application_name'), 6) $$;

-- Who may read the rows of an owner.
CREATE TABLE access (
    owner      TEXT NOT NULL DEFAULT current_user,
    reader     TEXT NOT NULL,
    granted_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, reader)
);

CREATE FUNCTION zeph_may_read(row_owner text) RETURNS boolean LANGUAGE sql STABLE
    AS $$ SELECT EXISTS (SELECT 1 FROM access WHERE owner = row_owner AND reader = current_user) $$;

CREATE SEQUENCE session_activity;

CREATE TABLE session (
    number        BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            TEXT    COLLATE "C" NOT NULL UNIQUE,
    project       TEXT    NOT NULL,
    title         TEXT,
    provider      TEXT,
    model         TEXT,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    activity      BIGINT  NOT NULL DEFAULT nextval('session_activity'),
    window_start  BIGINT  NOT NULL DEFAULT 1,
    audit_floor   BIGINT  NOT NULL DEFAULT 0,
    pinned        BIGINT,
    known_from    BIGINT  NOT NULL DEFAULT 1,
    offered_tools TEXT,
    is_renamed    BOOLEAN NOT NULL DEFAULT FALSE,
    parent        BIGINT,
    owner         TEXT    NOT NULL DEFAULT current_user,
    host          TEXT    NOT NULL DEFAULT zeph_host(),
    UNIQUE (number, owner)
);
CREATE INDEX session_by_activity ON session (activity);
CREATE INDEX session_by_project ON session (project, activity);

-- The process that works on a session. Another process takes over after `until`, which is a time of the server.
CREATE TABLE session_lease (
    session BIGINT NOT NULL PRIMARY KEY,
    holder  TEXT   NOT NULL,
    -- The lease itself: a holder may return one and take another.
    grant_id TEXT  NOT NULL,
    -- The machine and the process, for a message.
    pid     BIGINT NOT NULL,
    -- The identity of the running system and its process ids: a process of the same one can be looked up.
    machine TEXT   NOT NULL,
    until   TIMESTAMPTZ NOT NULL,
    owner   TEXT   NOT NULL DEFAULT current_user,
    host    TEXT   NOT NULL DEFAULT zeph_host(),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);

CREATE TABLE message (
    number        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session       BIGINT NOT NULL,
    seq           BIGINT NOT NULL,
    role          TEXT   NOT NULL,
    content       TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    input_tokens  BIGINT,
    output_tokens BIGINT,
    cached_tokens BIGINT,
    shown         TEXT,
    rewound       BOOLEAN NOT NULL DEFAULT FALSE,
    -- The words of prompts and responses. Calls, results, images and reasoning are not among them.
    words         TSVECTOR,
    owner         TEXT   NOT NULL DEFAULT current_user,
    host          TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (session, seq),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);
CREATE INDEX message_by_words ON message USING gin (words);

-- Content that is not JSON has no words.
CREATE FUNCTION zeph_message_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.words := (
        SELECT to_tsvector('zeph', string_agg(part ->> 'text', E'\n'))
        FROM jsonb_array_elements(CASE WHEN NEW.content LIKE '[%' THEN NEW.content::jsonb ELSE '[]'::jsonb END) part
        WHERE jsonb_typeof(part) = 'object' AND part ->> 'type' = 'text');
    RETURN NEW;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    NEW.words := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER message_words_of_new BEFORE INSERT OR UPDATE OF content ON message
    FOR EACH ROW EXECUTE FUNCTION zeph_message_words();

CREATE FUNCTION zeph_message_activity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE session SET updated_at = greatest(updated_at, latest.at), activity = nextval('session_activity')
    FROM (SELECT a.session, max(a.created_at) AS at FROM added a GROUP BY a.session) latest
    WHERE number = latest.session;
    RETURN NULL;
END $$;
CREATE TRIGGER message_is_activity AFTER INSERT ON message REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION zeph_message_activity();

CREATE TABLE result_view (
    session BIGINT NOT NULL,
    seq     BIGINT NOT NULL,
    view    TEXT   NOT NULL,
    owner   TEXT   NOT NULL DEFAULT current_user,
    host    TEXT   NOT NULL DEFAULT zeph_host(),
    PRIMARY KEY (session, seq),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);

CREATE TABLE summaries (
    number            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session           BIGINT NOT NULL,
    content           TEXT   NOT NULL,
    compaction_method TEXT   NOT NULL CHECK (compaction_method IN ('triggered', 'manual', 'autonomous')),
    first_seq         BIGINT NOT NULL,
    last_seq          BIGINT NOT NULL,
    messages          BIGINT NOT NULL,
    tokens_before     BIGINT NOT NULL,
    tokens_after      BIGINT NOT NULL,
    provider          TEXT   NOT NULL,
    model             TEXT   NOT NULL,
    created_at        BIGINT NOT NULL,
    rewound           BOOLEAN NOT NULL DEFAULT FALSE,
    owner             TEXT   NOT NULL DEFAULT current_user,
    host              TEXT   NOT NULL DEFAULT zeph_host(),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);
CREATE INDEX summaries_by_session ON summaries (session, number);

CREATE TABLE task (
    session    BIGINT NOT NULL,
    number     BIGINT NOT NULL,
    content    TEXT   NOT NULL,
    status     TEXT   NOT NULL CHECK (status IN ('pending', 'in_progress', 'completed')),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    owner      TEXT   NOT NULL DEFAULT current_user,
    host       TEXT   NOT NULL DEFAULT zeph_host(),
    PRIMARY KEY (session, number),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);

CREATE TABLE seen_file (
    number  BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL,
    path    BYTEA  NOT NULL,
    digest  BYTEA  NOT NULL,
    content BYTEA,
    owner   TEXT   NOT NULL DEFAULT current_user,
    host    TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (session, path),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);

CREATE TABLE undo_change (
    number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session    BIGINT NOT NULL,
    batch      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    tool       TEXT   NOT NULL,
    what       TEXT   NOT NULL,
    lost       TEXT,
    bytes      BIGINT NOT NULL,
    change     BYTEA,
    images     BYTEA,
    after_seq  BIGINT NOT NULL DEFAULT 0,
    owner      TEXT   NOT NULL DEFAULT current_user,
    host       TEXT   NOT NULL DEFAULT zeph_host(),
    CHECK ((lost IS NULL) = (change IS NOT NULL)),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);
CREATE INDEX undo_change_by_session ON undo_change (session, number);

CREATE TABLE tool_overflow (
    number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT   NOT NULL UNIQUE,
    session    BIGINT NOT NULL,
    tool       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    size       BIGINT NOT NULL,
    lines      BIGINT NOT NULL,
    total_size BIGINT NOT NULL,
    owner      TEXT   NOT NULL DEFAULT current_user,
    host       TEXT   NOT NULL DEFAULT zeph_host(),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE,
    UNIQUE (number, owner)
);
CREATE INDEX tool_overflow_by_session ON tool_overflow (session);
CREATE INDEX tool_overflow_by_age ON tool_overflow (created_at);

CREATE TABLE tool_overflow_block (
    entry   BIGINT NOT NULL,
    number  BIGINT NOT NULL,
    line    BIGINT NOT NULL,
    size    BIGINT NOT NULL,
    content BYTEA  NOT NULL,
    owner   TEXT   NOT NULL DEFAULT current_user,
    host    TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (entry, number),
    FOREIGN KEY (entry, owner) REFERENCES tool_overflow (number, owner) ON DELETE CASCADE
);

CREATE TABLE call_quota (
    session BIGINT NOT NULL PRIMARY KEY,
    used    BIGINT NOT NULL,
    owner   TEXT   NOT NULL DEFAULT current_user,
    host    TEXT   NOT NULL DEFAULT zeph_host(),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);

CREATE TABLE completed_tools (
    session BIGINT NOT NULL,
    tool    TEXT   NOT NULL,
    owner   TEXT   NOT NULL DEFAULT current_user,
    host    TEXT   NOT NULL DEFAULT zeph_host(),
    PRIMARY KEY (session, tool),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);

CREATE TABLE spending (
    number             BIGINT GENERATED ALWAYS AS IDENTITY,
    session            BIGINT NOT NULL,
    provider           TEXT   NOT NULL,
    model              TEXT   NOT NULL,
    requests           BIGINT NOT NULL,
    input_tokens       BIGINT NOT NULL,
    output_tokens      BIGINT NOT NULL,
    cached_tokens      BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    cost_nanos         BIGINT NOT NULL,
    unpriced           BIGINT NOT NULL,
    owner              TEXT   NOT NULL DEFAULT current_user,
    host               TEXT   NOT NULL DEFAULT zeph_host(),
    PRIMARY KEY (session, provider, model),
    FOREIGN KEY (session, owner) REFERENCES session (number, owner) ON DELETE CASCADE
);

CREATE TABLE filter_gain (
    rule         TEXT   NOT NULL,
    "full"       BIGINT NOT NULL,
    partial      BIGINT NOT NULL,
    fallback     BIGINT NOT NULL,
    bytes_before BIGINT NOT NULL,
    bytes_after  BIGINT NOT NULL,
    reruns       BIGINT NOT NULL,
    recalls      BIGINT NOT NULL,
    owner        TEXT   NOT NULL DEFAULT current_user,
    host         TEXT   NOT NULL DEFAULT zeph_host(),
    PRIMARY KEY (owner, rule)
);

CREATE TABLE memory (
    number   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    content  TEXT   NOT NULL,
    digest   TEXT   NOT NULL GENERATED ALWAYS AS (md5(content)) STORED,
    words    TSVECTOR GENERATED ALWAYS AS (to_tsvector('zeph', content)) STORED,
    session  TEXT   NOT NULL,
    project  TEXT   NOT NULL,
    saved_at BIGINT NOT NULL,
    owner    TEXT   NOT NULL DEFAULT current_user,
    host     TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (owner, digest)
);
CREATE INDEX memory_by_words ON memory USING gin (words);

CREATE TABLE embedding (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model  TEXT  NOT NULL,
    text   TEXT  NOT NULL,
    vector BYTEA NOT NULL,
    owner  TEXT  NOT NULL DEFAULT current_user,
    host   TEXT  NOT NULL DEFAULT zeph_host(),
    UNIQUE (owner, model, text)
);

CREATE TABLE memory_model (
    id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model  TEXT   NOT NULL,
    length BIGINT NOT NULL,
    oldest BIGINT NOT NULL,
    newest BIGINT NOT NULL,
    owner  TEXT   NOT NULL DEFAULT current_user,
    host   TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (owner, model)
);

CREATE TABLE memory_vector (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model  BIGINT NOT NULL REFERENCES memory_model (id) ON DELETE CASCADE,
    fact   BIGINT NOT NULL REFERENCES memory (number) ON DELETE CASCADE,
    vector BYTEA  NOT NULL,
    owner  TEXT   NOT NULL DEFAULT current_user,
    host   TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (model, fact)
);
CREATE INDEX memory_vector_by_fact ON memory_vector (fact);

-- Signs of the vectors of 128 facts each: see the migration of SQLite with the same tables.
CREATE TABLE memory_signs (
    model BIGINT NOT NULL REFERENCES memory_model (id) ON DELETE CASCADE,
    block BIGINT NOT NULL,
    facts BYTEA,
    signs BYTEA,
    owner TEXT   NOT NULL DEFAULT current_user,
    host  TEXT   NOT NULL DEFAULT zeph_host(),
    PRIMARY KEY (model, block)
);

CREATE FUNCTION zeph_forget_signs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO memory_signs (model, block) VALUES (NEW.model, NEW.fact / 128)
        ON CONFLICT (model, block) DO UPDATE SET facts = NULL, signs = NULL WHERE memory_signs.facts IS NOT NULL;
    ELSE
        UPDATE memory_signs SET facts = NULL, signs = NULL
        WHERE model = OLD.model AND block = OLD.fact / 128 AND facts IS NOT NULL;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_vector_changes AFTER INSERT OR UPDATE OR DELETE ON memory_vector
    FOR EACH ROW EXECUTE FUNCTION zeph_forget_signs();

CREATE TABLE schedule (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project    TEXT   NOT NULL,
    prompt     TEXT   NOT NULL,
    said       TEXT   NOT NULL,
    cron       TEXT,
    zone       TEXT   NOT NULL,
    next_at    BIGINT,
    cancelled  BOOLEAN NOT NULL DEFAULT FALSE,
    created_at BIGINT NOT NULL,
    owner      TEXT   NOT NULL DEFAULT current_user,
    host       TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (id, owner)
);
CREATE INDEX schedule_by_time ON schedule (project, next_at) WHERE next_at IS NOT NULL;

CREATE TABLE schedule_run (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task        BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('running', 'done', 'failed', 'missed', 'interrupted')),
    session     TEXT,
    note        TEXT   NOT NULL DEFAULT '',
    changed_at  BIGINT NOT NULL,
    lease_until BIGINT,
    told        BOOLEAN NOT NULL DEFAULT FALSE,
    owner       TEXT   NOT NULL DEFAULT current_user,
    host        TEXT   NOT NULL DEFAULT zeph_host(),
    UNIQUE (task, due_at),
    FOREIGN KEY (task, owner) REFERENCES schedule (id, owner) ON DELETE CASCADE
);
CREATE INDEX schedule_run_by_state ON schedule_run (state) WHERE state = 'running' OR NOT told;

-- The audit trail. Each writer has a chain of its own, named by the hash that precedes its first entry.
CREATE TABLE audit_chain (
    writer TEXT NOT NULL PRIMARY KEY,
    owner  TEXT NOT NULL DEFAULT current_user,
    host   TEXT NOT NULL DEFAULT zeph_host(),
    UNIQUE (writer, owner)
);
CREATE TABLE tool_audit (
    id             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    writer         TEXT    NOT NULL,
    ts             BIGINT  NOT NULL,
    session        TEXT    NOT NULL,
    call_id        TEXT    NOT NULL,
    tool           TEXT    NOT NULL,
    call           TEXT    NOT NULL,
    result         TEXT    NOT NULL,
    result_digest  TEXT    NOT NULL,
    result_size    BIGINT  NOT NULL,
    trust          TEXT    NOT NULL,
    approved_by    TEXT    NOT NULL,
    phase          TEXT    NOT NULL,
    duration_ms    BIGINT  NOT NULL,
    exit_code      BIGINT,
    truncated      BOOLEAN,
    error_category TEXT,
    attempts       BIGINT  NOT NULL,
    cached         BOOLEAN NOT NULL,
    repairs        TEXT    NOT NULL,
    caller_id      TEXT,
    claim_source   TEXT,
    adversarial_policy_decision TEXT,
    policy_match   TEXT,
    seq            BIGINT  NOT NULL,
    prev           TEXT    NOT NULL,
    hash           TEXT    NOT NULL,
    owner          TEXT    NOT NULL DEFAULT current_user,
    host           TEXT    NOT NULL DEFAULT zeph_host(),
    UNIQUE (writer, seq),
    FOREIGN KEY (writer, owner) REFERENCES audit_chain (writer, owner)
);
CREATE INDEX tool_audit_by_session ON tool_audit (session);
CREATE INDEX tool_audit_by_writer ON tool_audit (writer, id);

CREATE FUNCTION zeph_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'tool_audit is append-only';
END $$;
CREATE TRIGGER tool_audit_is_not_edited BEFORE UPDATE ON tool_audit
    FOR EACH ROW EXECUTE FUNCTION zeph_audit_is_append_only();
CREATE TRIGGER tool_audit_is_not_deleted BEFORE DELETE ON tool_audit
    FOR EACH ROW EXECUTE FUNCTION zeph_audit_is_append_only();
CREATE TRIGGER tool_audit_is_not_emptied BEFORE TRUNCATE ON tool_audit
    FOR EACH STATEMENT EXECUTE FUNCTION zeph_audit_is_append_only();

-- A chain belongs to the role that began it, so that no other role appends to it.
CREATE FUNCTION zeph_audit_begins_chain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_chain (writer) VALUES (NEW.writer) ON CONFLICT (writer) DO NOTHING;
    RETURN NEW;
END $$;
CREATE TRIGGER tool_audit_is_chained BEFORE INSERT ON tool_audit
    FOR EACH ROW EXECUTE FUNCTION zeph_audit_begins_chain();

CREATE TABLE tool_audit_intent (
    session TEXT   NOT NULL,
    call_id TEXT   NOT NULL,
    tool    TEXT   NOT NULL,
    ts      BIGINT NOT NULL,
    owner   TEXT   NOT NULL DEFAULT current_user,
    host    TEXT   NOT NULL DEFAULT zeph_host(),
    PRIMARY KEY (session, call_id)
);
CREATE FUNCTION zeph_audit_ends_intent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM tool_audit_intent WHERE session = NEW.session AND call_id = NEW.call_id AND owner = NEW.owner;
    RETURN NULL;
END $$;
CREATE TRIGGER tool_audit_ends_intent AFTER INSERT ON tool_audit
    FOR EACH ROW EXECUTE FUNCTION zeph_audit_ends_intent();

-- Rights. Everyone who may connect to the database may use the store, each with their own rows.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'session', 'session_lease', 'message', 'result_view', 'summaries', 'task', 'seen_file', 'undo_change',
        'tool_overflow', 'tool_overflow_block', 'call_quota', 'completed_tools', 'spending', 'filter_gain', 'memory',
        'embedding', 'memory_model', 'memory_vector', 'memory_signs', 'schedule', 'schedule_run', 'audit_chain',
        'tool_audit', 'tool_audit_intent', 'access']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own ON %I USING (owner = current_user) WITH CHECK (owner = current_user)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO PUBLIC', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY[
        'session', 'session_lease', 'message', 'result_view', 'summaries', 'task', 'tool_overflow',
        'tool_overflow_block', 'spending', 'memory', 'schedule', 'schedule_run', 'audit_chain', 'tool_audit']
    LOOP
        EXECUTE format('CREATE POLICY granted ON %I FOR SELECT USING (zeph_may_read(owner))', name);
    END LOOP;
END $$;
CREATE POLICY granted ON access FOR SELECT USING (reader = current_user);
REVOKE UPDATE, DELETE ON tool_audit, audit_chain FROM PUBLIC;
GRANT SELECT ON zeph_schema TO PUBLIC;
GRANT USAGE ON SEQUENCE session_activity TO PUBLIC;
