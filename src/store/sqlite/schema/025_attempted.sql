-- 025_attempted.sql - an attempt that was given back (its worker could not be sent it, or a pause ended it) is ready and
-- started more than once: it is one row all the same, with the last of these times.
DROP VIEW pawl_attempted;

CREATE VIEW pawl_attempted AS
    WITH entry AS MATERIALIZED (
            SELECT l.inst, l.pos, l.ord, l.what, l.at, l.payload,
                CASE WHEN e.type = 'integer' AND e.value < 0 THEN json_array('run', -e.value)
                    WHEN e.type = 'integer' THEN json_array('end', e.value)
                    WHEN json_type(e.value, '$[0]') = 'integer' THEN '["step",' || substr(e.value, 2)
                    ELSE e.value END AS effect
            FROM pawl_log l
            JOIN pawl_instance i ON i.number = l.inst
            JOIN pawl_definition d ON d.id = i.definition AND d.kind = 2,
            json_each(CAST(l.body AS TEXT)) e
            WHERE l.what >= 0 AND l.body IS NOT NULL),
        amended AS MATERIALIZED (
            SELECT inst, pos, json_extract(effect, '$[1]') AS plan FROM entry
            WHERE json_extract(effect, '$[0]') = 'plan'),
        plans AS (
            SELECT i.number AS inst, 0 AS pos, json_extract(d.compiled, '$.plan') AS plan
            FROM pawl_instance i JOIN pawl_definition d ON d.id = i.definition
            WHERE i.number IN (SELECT inst FROM amended)
            UNION ALL SELECT inst, pos, plan FROM amended),
        steps AS MATERIALIZED (
            SELECT p.inst, p.pos, s.key AS idx, json_extract(s.value, '$.name') AS name, s.value AS declared
            FROM plans p, json_each(p.plan, '$.steps') s),
        named AS (SELECT inst, name, min(pos) AS pos, idx FROM steps GROUP BY inst, name),
        placed AS MATERIALIZED (
            SELECT inst, name, row_number() OVER (PARTITION BY inst ORDER BY pos, idx) - 1 AS place FROM named),
        born AS MATERIALIZED (
            SELECT inst, pos, json_extract(effect, '$[1]') AS ord, json_extract(effect, '$[2]') AS plan,
                coalesce(json_extract(effect, '$[3]'), 1) AS attempt,
                coalesce(json_extract(effect, '$[4]'), 'ready') AS status, at
            FROM entry WHERE json_extract(effect, '$[0]') = 'step'),
        readied AS MATERIALIZED (
            SELECT inst, json_extract(effect, '$[1]') AS ord, max(at) AS at FROM entry
            WHERE json_extract(effect, '$[0]') = 'ready' GROUP BY 1, 2),
        began AS MATERIALIZED (
            SELECT inst, ord, max(at) AS at FROM entry
            WHERE what = 1 AND json_extract(effect, '$[0]') = 'run' GROUP BY 1, 2),
        over AS MATERIALIZED (
            SELECT inst, json_extract(effect, '$[1]') AS ord, at, what, payload FROM entry
            WHERE json_extract(effect, '$[0]') = 'end')
    SELECT b.inst AS number,
        b.ord AS ord,
        b.plan AS step,
        b.attempt AS attempt,
        coalesce(
            (SELECT s.declared FROM placed p JOIN steps s ON s.inst = p.inst AND s.name = p.name AND s.pos <= b.pos
             WHERE p.inst = b.inst AND p.place = b.plan ORDER BY s.pos DESC LIMIT 1),
            json_extract(d.compiled, '$.plan.steps[' || b.plan || ']')) AS declared,
        CASE WHEN o.what IN (3, 5, 7) THEN 'failed'
            WHEN o.what IS NOT NULL THEN 'done'
            WHEN p.status IS NULL THEN 'cancelled'
            ELSE CASE p.status WHEN 0 THEN 'pending' WHEN 1 THEN 'ready' ELSE 'running' END END AS status,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = o.payload) AS outcome,
        coalesce(r.at, CASE WHEN b.status = 'ready' THEN b.at END) AS ready_at,
        CASE WHEN p.status = 1 THEN NULL ELSE g.at END AS started_at,
        CASE WHEN o.what IS NULL AND p.status IS NULL THEN (SELECT at FROM pawl_log WHERE pos = c.pos)
            ELSE o.at END AS completed_at,
        coalesce(o.at, max(g.at, r.at), g.at, r.at, b.at) AS updated_at
    FROM born b
    JOIN pawl_current c ON c.number = b.inst
    JOIN pawl_definition d ON d.id = c.definition
    LEFT JOIN readied r ON r.inst = b.inst AND r.ord = b.ord
    LEFT JOIN began g ON g.inst = b.inst AND g.ord = b.ord
    LEFT JOIN over o ON o.inst = b.inst AND o.ord = b.ord
    LEFT JOIN pawl_step p ON p.inst = b.inst AND p.ord = b.ord;

PRAGMA user_version = 25;
