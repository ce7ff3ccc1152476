-- Entries are chained by hash: `docs/audit.md` has the form. Those from before have no number.
ALTER TABLE tool_audit ADD COLUMN adversarial_policy_decision TEXT;
ALTER TABLE tool_audit ADD COLUMN policy_match TEXT;
ALTER TABLE tool_audit ADD COLUMN seq INTEGER;
ALTER TABLE tool_audit ADD COLUMN prev TEXT;
ALTER TABLE tool_audit ADD COLUMN hash TEXT;

CREATE TRIGGER tool_audit_is_chained BEFORE INSERT ON tool_audit
WHEN NEW.seq IS NULL OR NEW.prev IS NULL OR NEW.hash IS NULL BEGIN
    SELECT RAISE(ABORT, 'entries of tool_audit are chained: update Zeph');
END;

-- Calls that were let run because this row could be written; the entry takes it away.
CREATE TABLE tool_audit_intent (
    session TEXT    NOT NULL,
    call_id TEXT    NOT NULL,
    tool    TEXT    NOT NULL,
    ts      INTEGER NOT NULL,
    PRIMARY KEY (session, call_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER tool_audit_ends_intent AFTER INSERT ON tool_audit BEGIN
    DELETE FROM tool_audit_intent WHERE session = NEW.session AND call_id = NEW.call_id;
END;
