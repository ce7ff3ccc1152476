-- The words of prompts and answers, so that earlier conversations are searched. Calls, results, images and
-- reasoning are not among them. The texts themselves are in `message`.
CREATE VIRTUAL TABLE message_words USING fts5 (
    content, content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER message_words_of_new AFTER INSERT ON message BEGIN
    INSERT INTO message_words (rowid, content)
    SELECT NEW.number, group_concat(part.value ->> '$.text', char(10))
    FROM json_each(CASE WHEN json_valid(NEW.content) THEN NEW.content ELSE '[]' END) part
    WHERE part.type = 'object' AND part.value ->> '$.type' = 'text'
    HAVING count(*) > 0;
END;
CREATE TRIGGER message_words_of_changed AFTER UPDATE OF content ON message BEGIN
    DELETE FROM message_words WHERE rowid = OLD.number;
    INSERT INTO message_words (rowid, content)
    SELECT NEW.number, group_concat(part.value ->> '$.text', char(10))
    FROM json_each(CASE WHEN json_valid(NEW.content) THEN NEW.content ELSE '[]' END) part
    WHERE part.type = 'object' AND part.value ->> '$.type' = 'text'
    HAVING count(*) > 0;
END;
CREATE TRIGGER message_words_of_removed AFTER DELETE ON message BEGIN
    DELETE FROM message_words WHERE rowid = OLD.number;
END;

INSERT INTO message_words (rowid, content)
SELECT m.number, group_concat(part.value ->> '$.text', char(10))
FROM message m, json_each(CASE WHEN json_valid(m.content) THEN m.content ELSE '[]' END) part
WHERE part.type = 'object' AND part.value ->> '$.type' = 'text'
GROUP BY m.number;
