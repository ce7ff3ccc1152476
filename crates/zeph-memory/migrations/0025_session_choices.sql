-- The mode and the model that the user chose for a session in an editor. NULL is the choice of the configuration.
ALTER TABLE session ADD COLUMN chosen_mode TEXT;
ALTER TABLE session ADD COLUMN chosen_provider TEXT;
ALTER TABLE session ADD COLUMN chosen_model TEXT;
ALTER TABLE session ADD COLUMN chosen_effort TEXT;
