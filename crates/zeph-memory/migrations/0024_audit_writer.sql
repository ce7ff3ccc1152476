-- The name of the chain of an entry that was copied from another store. The chain of this database has no name here.
ALTER TABLE tool_audit ADD COLUMN writer TEXT;
