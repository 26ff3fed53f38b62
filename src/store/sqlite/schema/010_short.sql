-- 010_short.sql - a store that takes less room. A value that is there has no commitment of its own any
-- more, since that follows from it; bodies are written in short: [ORD,PLAN,...] for
-- ["step",ORD,PLAN,...], -ORD for ["run",ORD], ORD for ["end",ORD]. What was written before stays as it
-- is. The number keeps those away who would not understand; the view reads both. Not in a host's file,
-- like the one before.

DROP VIEW workflow_steps;

CREATE VIEW workflow_steps AS
    WITH entry AS MATERIALIZED (
            SELECT l.inst, l.ord, l.what, l.at, l.payload,
                CASE WHEN e.type = 'integer' AND e.value < 0 THEN json_array('run', -e.value)
                    WHEN e.type = 'integer' THEN json_array('end', e.value)
                    WHEN json_type(e.value, '$[0]') = 'integer' THEN '["step",' || substr(e.value, 2)
                    ELSE e.value END AS effect
            FROM pawl_log l
            JOIN pawl_instance i ON i.number = l.inst
            JOIN pawl_definition d ON d.id = i.definition AND d.kind = 2,
            json_each(CAST(l.body AS TEXT)) e
            WHERE l.what >= 0 AND l.body IS NOT NULL),
        born AS MATERIALIZED (
            SELECT inst, json_extract(effect, '$[1]') AS ord, json_extract(effect, '$[2]') AS plan,
                coalesce(json_extract(effect, '$[3]'), 1) AS attempt,
                coalesce(json_extract(effect, '$[4]'), 'ready') AS status, at
            FROM entry WHERE json_extract(effect, '$[0]') = 'step'),
        readied AS MATERIALIZED (
            SELECT inst, json_extract(effect, '$[1]') AS ord, at FROM entry
            WHERE json_extract(effect, '$[0]') = 'ready'),
        began AS MATERIALIZED (
            SELECT inst, ord, at FROM entry WHERE what = 1 AND json_extract(effect, '$[0]') = 'run'),
        over AS MATERIALIZED (
            SELECT inst, json_extract(effect, '$[1]') AS ord, at, what, payload FROM entry
            WHERE json_extract(effect, '$[0]') = 'end')
    SELECT b.inst * 4294967296 + b.ord AS id,
        coalesce(o.at, g.at, r.at, b.at) AS updated_at,
        b.inst AS workflow_id,
        json_extract(d.compiled, '$.plan.steps[' || b.plan || '].name') AS name,
        json_extract(d.compiled, '$.plan.steps[' || b.plan || '].tool') AS tool,
        json_extract(d.compiled, '$.plan.steps[' || b.plan || '].args') AS args_json,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = o.payload) AS result_json,
        CASE WHEN o.what IN (3, 5, 7) THEN 'failed'
            WHEN o.what IS NOT NULL THEN 'done'
            WHEN p.status IS NULL THEN 'cancelled'
            ELSE CASE p.status WHEN 0 THEN 'pending' WHEN 1 THEN 'ready' ELSE 'running' END END AS status,
        b.attempt AS attempt,
        CASE WHEN b.status = 'ready' THEN b.at ELSE r.at END AS ready_at,
        g.at AS started_at,
        o.at AS completed_at
    FROM born b
    JOIN pawl_instance i ON i.number = b.inst
    JOIN pawl_definition d ON d.id = i.definition
    LEFT JOIN readied r ON r.inst = b.inst AND r.ord = b.ord
    LEFT JOIN began g ON g.inst = b.inst AND g.ord = b.ord
    LEFT JOIN over o ON o.inst = b.inst AND o.ord = b.ord
    LEFT JOIN pawl_step p ON p.inst = b.inst AND p.ord = b.ord;

PRAGMA user_version = 10;
