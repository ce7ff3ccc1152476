-- Permanent approvals: calls that run without a question. They belong to the role that gave them: no access of another role
-- includes them.
CREATE TABLE approval (
    number   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool     TEXT   NOT NULL,
    pattern  TEXT   NOT NULL,
    -- The bytes of the project's real path; NULL in all projects.
    project  BYTEA  CHECK (length(project) > 0),
    added_at BIGINT NOT NULL,
    owner    TEXT   NOT NULL DEFAULT current_user,
    host     TEXT   NOT NULL DEFAULT zeph_host()
);
CREATE UNIQUE INDEX approval_is_unique ON approval (owner, tool, md5(pattern), md5(coalesce(project, '')));
ALTER TABLE approval ENABLE ROW LEVEL SECURITY;
ALTER TABLE approval FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON approval USING (owner = current_user) WITH CHECK (owner = current_user);
GRANT SELECT, INSERT, DELETE ON approval TO PUBLIC;
