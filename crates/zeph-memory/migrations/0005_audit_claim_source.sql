-- Where what a call read comes from: `web:HOST`, `shell:PATH,…`. Null in entries from before.
ALTER TABLE tool_audit ADD COLUMN claim_source TEXT;
