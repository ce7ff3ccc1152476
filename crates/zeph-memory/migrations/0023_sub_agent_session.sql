-- The number of the session that started the sub-agent of this session. Sessions of sub-agents are not listed and not
-- continued.
ALTER TABLE session ADD COLUMN parent INTEGER;
