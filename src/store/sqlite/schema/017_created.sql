-- 017_created.sql - makes times follow from the log. The store's created_at in pawl_meta is deleted:
-- the log's first record has that time. A definition's created_at becomes the time of its define
-- record, or, for an inline one, of its first instance's create record. (Imported rows had a time
-- of another store.)
DELETE FROM pawl_meta WHERE key = 'created_at';

WITH RECURSIVE
    last (pos) AS (
        SELECT max(pos) FROM (
            SELECT pos FROM pawl_head WHERE inst = 0
            UNION ALL
            SELECT max(pos) FROM pawl_log
            WHERE inst = 0 AND pos > coalesce((SELECT value FROM pawl_meta WHERE key = 'flushed'), 0))),
    own (pos, prev, what) AS (
        SELECT l.pos, l.prev, l.what FROM last JOIN pawl_log l ON l.pos = last.pos
        UNION ALL
        SELECT l.pos, l.prev, l.what FROM own o JOIN pawl_log l ON l.pos = o.prev AND l.pos < o.pos),
    put AS MATERIALIZED (
        SELECT l.at AS at, CAST(l.body AS TEXT) AS body FROM own o JOIN pawl_log l ON l.pos = o.pos
        WHERE o.what = -2 AND json_valid(CAST(l.body AS TEXT)))
UPDATE pawl_definition SET created_at = put.at FROM put
WHERE name = json_extract(put.body, '$.name') AND version = json_extract(put.body, '$.version')
    AND created_at IS NOT put.at;

UPDATE pawl_definition SET created_at = (
        SELECT l.at FROM pawl_instance i JOIN pawl_log l ON l.pos = i.created_pos
        WHERE i.definition = pawl_definition.id ORDER BY i.created_pos LIMIT 1)
WHERE name IS NULL AND EXISTS (SELECT 1 FROM pawl_instance WHERE definition = pawl_definition.id);

PRAGMA user_version = 17;
