-- 023_ready.sql - since when a step is ready, in its row: who polls for ready steps, the oldest first, reads the rows of
-- those that are ready, and no entry. Rows of steps that are ready already get it from their entries; code's as well.
ALTER TABLE pawl_step ADD COLUMN ready_at INTEGER; -- NULL: it is not ready

UPDATE pawl_step SET ready_at = (
    WITH RECURSIVE chain(pos, prev, at, body) AS (
            SELECT l.pos, l.prev, l.at, CASE WHEN l.what >= 0 THEN CAST(l.body AS TEXT) END
            FROM pawl_log l WHERE l.pos = (SELECT c.pos FROM pawl_current c WHERE c.number = pawl_step.inst)
            UNION ALL
            SELECT l.pos, l.prev, l.at, CASE WHEN l.what >= 0 THEN CAST(l.body AS TEXT) END
            FROM chain k JOIN pawl_log l ON l.pos = k.prev
            WHERE NOT EXISTS (
                SELECT 1 FROM json_each(k.body) e WHERE e.type = 'array'
                AND (json_extract(e.value, '$[0]') = pawl_step.ord
                    OR json_extract(e.value, '$[0]') IN ('step', 'ready')
                        AND json_extract(e.value, '$[1]') = pawl_step.ord)))
    SELECT at FROM chain ORDER BY pos LIMIT 1)
WHERE status = 1;

PRAGMA user_version = 23;
