-- 024_poll_again.sql - seed 001's steps in three parts: what is ready, from its rows; what is pending or runs, from the
-- records since that step was made; what has ended, from the whole chain of its instance (see 012_tree.sql). What a
-- step is declared as is worked out for the rows that are asked for. Not in a host's file, like 009_seed.sql.
DROP VIEW workflow_steps;

CREATE VIEW workflow_steps AS
    WITH live AS (
            SELECT inst, CASE status WHEN 0 THEN 'pending' ELSE 'running' END AS word, min(ord) AS first
            FROM pawl_step WHERE status <> 1 GROUP BY 1, 2),
        ended(word) AS (VALUES ('done'), ('failed'), ('cancelled')),
        asked AS (
            SELECT l.word, c.number, c.definition, c.pos, l.first
            FROM live l CROSS JOIN pawl_current c ON c.number = l.inst
            UNION ALL
            SELECT e.word, c.number, c.definition, c.pos, NULL FROM ended e CROSS JOIN pawl_current c),
        attempts AS (
            SELECT q.word, q.number, q.definition, q.pos,
                json_extract(a.value, '$[0]') AS ord, json_extract(a.value, '$[1]') AS plan,
                json_extract(a.value, '$[2]') AS attempt, json_extract(a.value, '$[3]') AS born_pos,
                json_extract(a.value, '$[4]') AS born_at, json_extract(a.value, '$[5]') AS ready_at,
                json_extract(a.value, '$[6]') AS started_at, json_extract(a.value, '$[7]') AS ended_at,
                json_extract(a.value, '$[8]') AS ended_what, json_extract(a.value, '$[9]') AS payload
            FROM asked q
            JOIN pawl_definition d ON d.id = q.definition AND d.kind = 2
            CROSS JOIN json_each((
                WITH RECURSIVE chain(pos, prev, at, what, payload, body) AS (
                        SELECT l.pos, l.prev, l.at, l.what, l.payload,
                            CASE WHEN l.what >= 0 THEN CAST(l.body AS TEXT) END
                        FROM pawl_log l WHERE l.pos = q.pos
                        UNION ALL
                        SELECT l.pos, l.prev, l.at, l.what, l.payload,
                            CASE WHEN l.what >= 0 THEN CAST(l.body AS TEXT) END
                        FROM chain k JOIN pawl_log l ON l.pos = k.prev
                        WHERE q.first IS NULL OR NOT EXISTS (
                            SELECT 1 FROM json_each(k.body) e WHERE e.type = 'array'
                            AND (json_extract(e.value, '$[0]') = q.first
                                OR json_extract(e.value, '$[0]') = 'step' AND json_extract(e.value, '$[1]') = q.first))),
                    effect AS (
                        SELECT k.pos, k.at, k.what, k.payload,
                            CASE WHEN e.type = 'integer' THEN iif(e.value < 0, 'run', 'end')
                                WHEN json_type(e.value, '$[0]') = 'integer' THEN 'step'
                                ELSE json_extract(e.value, '$[0]') END AS kind,
                            CASE WHEN e.type = 'integer' THEN json_array(abs(e.value))
                                WHEN json_type(e.value, '$[0]') = 'integer' THEN e.value
                                ELSE json_remove(e.value, '$[0]') END AS parts
                        FROM chain k, json_each(k.body) e WHERE e.type IN ('integer', 'array')),
                    folded AS (
                        SELECT json_extract(parts, '$[0]') AS ord,
                            max(CASE kind WHEN 'step' THEN json_extract(parts, '$[1]') END) AS plan,
                            max(CASE kind WHEN 'step' THEN coalesce(json_extract(parts, '$[2]'), 1) END) AS attempt,
                            max(CASE kind WHEN 'step' THEN pos END) AS born_pos,
                            max(CASE kind WHEN 'step' THEN at END) AS born_at,
                            max(CASE WHEN kind = 'ready' OR kind = 'step' AND coalesce(json_extract(parts, '$[3]'), 'ready') = 'ready'
                                THEN at END) AS ready_at,
                            max(CASE WHEN kind = 'run' AND what = 1 THEN at END) AS started_at,
                            max(CASE kind WHEN 'end' THEN at END) AS ended_at,
                            max(CASE kind WHEN 'end' THEN what END) AS ended_what,
                            max(CASE kind WHEN 'end' THEN payload END) AS payload
                        FROM effect WHERE kind IN ('step', 'ready', 'run', 'end') GROUP BY 1)
                SELECT json_group_array(json_array(ord, plan, attempt, born_pos, born_at, ready_at, started_at, ended_at,
                    ended_what, payload)) FROM folded WHERE born_pos IS NOT NULL)) a),
        stated AS (
            SELECT a.*,
                CASE WHEN a.ended_what IN (3, 5, 7) THEN 'failed'
                    WHEN a.ended_what IS NOT NULL THEN 'done'
                    WHEN p.status IS NULL THEN 'cancelled'
                    ELSE CASE p.status WHEN 0 THEN 'pending' WHEN 1 THEN 'ready' ELSE 'running' END END AS found
            FROM attempts a LEFT JOIN pawl_step p ON p.inst = a.number AND p.ord = a.ord),
        every AS (
            SELECT 'ready' AS word, p.inst AS number, i.definition, NULL AS pos, p.ord, p.plan, p.attempt,
                NULL AS born_pos, p.ready_at AS born_at, p.ready_at AS ready_at, NULL AS started_at, NULL AS ended_at,
                NULL AS payload
            FROM pawl_step p CROSS JOIN pawl_instance i ON i.number = p.inst
            CROSS JOIN pawl_definition d ON d.id = i.definition AND d.kind = 2
            WHERE p.status = 1
            UNION ALL
            SELECT word, number, definition, pos, ord, plan, attempt, born_pos, born_at, ready_at, started_at, ended_at,
                payload
            FROM stated WHERE word = found),
        named AS (
            SELECT s.*, coalesce(
                    CASE WHEN EXISTS (SELECT 1 FROM pawl_kept WHERE what = 11)
                        AND (SELECT id FROM pawl_ids WHERE number = s.number) IN (SELECT id FROM pawl_kept WHERE what = 11)
                    THEN (
                        WITH RECURSIVE chain(pos, prev, what, body) AS (
                                SELECT l.pos, l.prev, l.what, CAST(l.body AS TEXT) FROM pawl_log l
                                WHERE l.pos = coalesce(s.pos, (SELECT c.pos FROM pawl_current c WHERE c.number = s.number))
                                UNION ALL
                                SELECT l.pos, l.prev, l.what, CAST(l.body AS TEXT)
                                FROM chain k JOIN pawl_log l ON l.pos = k.prev),
                            plans AS (
                                SELECT 0 AS pos, json_extract(d.compiled, '$.plan') AS plan
                                FROM pawl_definition d WHERE d.id = s.definition
                                UNION ALL
                                SELECT k.pos, json_extract(e.value, '$[1]') FROM chain k, json_each(k.body) e
                                WHERE k.what >= 0 AND k.body IS NOT NULL AND e.type = 'array'
                                    AND json_extract(e.value, '$[0]') = 'plan'),
                            steps AS (
                                SELECT p.pos, t.key AS idx, json_extract(t.value, '$.name') AS name, t.value AS declared
                                FROM plans p, json_each(p.plan, '$.steps') t),
                            first AS (SELECT name, min(pos) AS pos, idx FROM steps GROUP BY name),
                            placed AS (SELECT name, row_number() OVER (ORDER BY pos, idx) - 1 AS place FROM first)
                        SELECT t.declared FROM placed p JOIN steps t ON t.name = p.name AND t.pos <= coalesce(s.born_pos, t.pos)
                        WHERE p.place = s.plan ORDER BY t.pos DESC LIMIT 1) END,
                    (SELECT json_extract(d.compiled, '$.plan.steps[' || s.plan || ']') FROM pawl_definition d
                    WHERE d.id = s.definition)) AS declared
            FROM every s)
    SELECT n.number * 4294967296 + n.ord AS id,
        coalesce(n.ended_at, n.started_at, CASE WHEN n.ready_at <> n.born_at THEN n.ready_at END, n.born_at) AS updated_at,
        n.number AS workflow_id,
        json_extract(n.declared, '$.name') AS name,
        json_extract(n.declared, '$.tool') AS tool,
        json_extract(n.declared, '$.args') AS args_json,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = n.payload) AS result_json,
        n.word AS status,
        n.attempt AS attempt,
        n.ready_at AS ready_at,
        n.started_at AS started_at,
        CASE n.word WHEN 'cancelled' THEN (SELECT at FROM pawl_log WHERE pos = n.pos) ELSE n.ended_at END AS completed_at
    FROM named n;

PRAGMA user_version = 24;
