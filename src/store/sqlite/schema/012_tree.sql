-- 012_tree.sql - every attempt of every step of a flow, and the whole plan with what came of each of its steps (C36).
-- Transitions 1, 3, 5 and 7 of every flow are step.start, step.fail, step.timeout and gate.reject.

-- A helper: attempts with times in milliseconds. A step is what the plan declared that was in force when its attempt was born. Behind
-- an amend steps keep their places and new names come behind them (src/flow/amend.c): a place is the order of first appearance.
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
            SELECT inst, json_extract(effect, '$[1]') AS ord, at FROM entry
            WHERE json_extract(effect, '$[0]') = 'ready'),
        began AS MATERIALIZED (
            SELECT inst, ord, at FROM entry WHERE what = 1 AND json_extract(effect, '$[0]') = 'run'),
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
        CASE WHEN b.status = 'ready' THEN b.at ELSE r.at END AS ready_at,
        g.at AS started_at,
        CASE WHEN o.what IS NULL AND p.status IS NULL THEN (SELECT at FROM pawl_log WHERE pos = c.pos)
            ELSE o.at END AS completed_at,
        coalesce(o.at, g.at, r.at, b.at) AS updated_at
    FROM born b
    JOIN pawl_current c ON c.number = b.inst
    JOIN pawl_definition d ON d.id = c.definition
    LEFT JOIN readied r ON r.inst = b.inst AND r.ord = b.ord
    LEFT JOIN began g ON g.inst = b.inst AND g.ord = b.ord
    LEFT JOIN over o ON o.inst = b.inst AND o.ord = b.ord
    LEFT JOIN pawl_step p ON p.inst = b.inst AND p.ord = b.ord;

CREATE VIEW pawl_attempts AS
    SELECT n.id AS id,
        n.id || '.' || a.ord AS step_id,
        json_extract(a.declared, '$.name') AS name,
        json_extract(a.declared, '$.tool') AS tool,
        a.attempt AS attempt,
        a.status AS status,
        CASE a.status WHEN 'done' THEN a.outcome END AS result,
        CASE a.status WHEN 'failed' THEN a.outcome END AS error,
        strftime('%Y-%m-%dT%H:%M:%fZ', a.ready_at / 1000.0, 'unixepoch') AS ready_at,
        strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000.0, 'unixepoch') AS started_at,
        strftime('%Y-%m-%dT%H:%M:%fZ', a.completed_at / 1000.0, 'unixepoch') AS completed_at,
        a.step AS step_index,
        a.ord AS step_ordinal,
        a.number AS number
    FROM pawl_attempted a
    JOIN pawl_ids n ON n.number = a.number;

-- The steps of the plan an instance goes by now, in the plan's order, begun or not, with their latest attempt.
CREATE VIEW pawl_tree AS
    WITH latest AS MATERIALIZED (
            SELECT number, json_extract(declared, '$.name') AS name, max(ord) AS ord, count(*) AS attempts,
                status, outcome, started_at, completed_at
            FROM pawl_attempted GROUP BY 1, 2),
        amended AS MATERIALIZED (
            SELECT l.inst, max(l.pos) AS pos, json_extract(e.value, '$[1]') AS plan
            FROM pawl_log l, json_each(CAST(l.body AS TEXT)) e
            WHERE l.what = 11 AND l.body IS NOT NULL AND json_extract(e.value, '$[0]') = 'plan'
            GROUP BY l.inst)
    SELECT n.id AS id,
        json_extract(s.value, '$.name') AS name,
        coalesce(json_extract(s.value, '$.kind'), 'tool') AS kind,
        json_extract(s.value, '$.tool') AS tool,
        coalesce(l.status, 'unstarted') AS status,
        coalesce(l.attempts, 0) AS attempts,
        CASE l.status WHEN 'done' THEN l.outcome END AS result,
        CASE l.status WHEN 'failed' THEN l.outcome END AS error,
        strftime('%Y-%m-%dT%H:%M:%fZ', l.started_at / 1000.0, 'unixepoch') AS started_at,
        strftime('%Y-%m-%dT%H:%M:%fZ', l.completed_at / 1000.0, 'unixepoch') AS completed_at,
        s.key AS step_index,
        i.number AS number
    FROM pawl_instance i
    JOIN pawl_definition d ON d.id = i.definition AND d.kind = 2
    JOIN pawl_ids n ON n.number = i.number
    LEFT JOIN amended a ON a.inst = i.number,
    json_each(coalesce(json_extract(a.plan, '$.steps'), json_extract(d.compiled, '$.plan.steps'))) s
    LEFT JOIN latest l ON l.number = i.number AND l.name = json_extract(s.value, '$.name');

PRAGMA user_version = 12;
