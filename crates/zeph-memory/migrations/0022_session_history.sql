-- Messages and summaries that a user took out of the conversation by going back to an earlier message. They stay in
-- the store, and no model sees them.
ALTER TABLE message ADD COLUMN rewound INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN rewound INTEGER NOT NULL DEFAULT 0;
-- The user chose the title, so a prompt does not replace it.
ALTER TABLE session ADD COLUMN is_renamed INTEGER NOT NULL DEFAULT 0;
-- The last message of the session when the change was made.
ALTER TABLE undo_change ADD COLUMN after_seq INTEGER NOT NULL DEFAULT 0;
UPDATE undo_change SET after_seq =
    (SELECT coalesce(max(m.seq), 0) FROM message m
     WHERE m.session = undo_change.session AND m.created_at <= undo_change.created_at);
