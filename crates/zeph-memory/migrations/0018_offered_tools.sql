-- Which tools the model of a session is offered, a name a line, in the order in which they came; null where
-- nothing chooses among them.
ALTER TABLE session ADD COLUMN offered_tools TEXT;
