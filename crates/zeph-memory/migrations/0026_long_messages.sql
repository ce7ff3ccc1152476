-- The program adds long messages to the index of words: the functions of SQLite that read JSON need about ten copies of a
-- message. No statement changes the text of a message.
DROP TRIGGER message_words_of_new;
DROP TRIGGER message_words_of_changed;

CREATE TRIGGER message_words_of_new AFTER INSERT ON message WHEN octet_length(NEW.content) <= 65536 BEGIN
    INSERT INTO message_words (rowid, content)
    SELECT NEW.number, group_concat(part.value ->> '$.text', char(10))
    FROM json_each(CASE WHEN json_valid(NEW.content) THEN NEW.content ELSE '[]' END) part
    WHERE part.type = 'object' AND part.value ->> '$.type' = 'text'
    HAVING count(*) > 0;
END;
