-- 020_declared.sql - an instance names its definition version by its id, so that one that was created with an inline
-- declaration can be joined to it (pawl_definitions, pawl_states, pawl_transitions): as in 019_redrives.sql, with
-- definition_id.
DROP VIEW pawl_instances;

CREATE VIEW pawl_instances AS
    SELECT (SELECT id FROM pawl_ids WHERE number = c.number) AS id,
        c.number AS number,
        d.name AS definition,
        d.version AS version,
        CASE d.kind WHEN 1 THEN 'machine' WHEN 2 THEN 'flow' WHEN 3 THEN 'code' END AS kind,
        s.name AS current_state,
        CASE WHEN s.terminal IN (1, 2) THEN 'completed'
            WHEN s.terminal = 3 THEN 'failed'
            WHEN s.terminal = 4 THEN 'cancelled'
            WHEN c.number IN (SELECT inst FROM pawl_pause) THEN 'paused'
            WHEN c.number IN (SELECT inst FROM pawl_step WHERE status IN (1, 2)) THEN 'running'
            ELSE 'suspended' END AS status,
        CASE s.terminal WHEN 2 THEN 'success' WHEN 3 THEN 'failure' WHEN 4 THEN 'cancel' END AS terminal_kind,
        c.seq AS sequence_number,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = c.subject) AS subject_ref,
        c.correlation AS correlation_id,
        c.labels AS labels,
        (SELECT id FROM pawl_ids WHERE number = c.parent) AS parent_id,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = c.creator) AS created_by,
        strftime('%Y-%m-%dT%H:%M:%fZ', c.instantiated_at / 1000.0, 'unixepoch') AS instantiated_at,
        (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') FROM pawl_log
         WHERE pos = c.pos) AS updated_at,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = c.input) AS input,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = c.metadata) AS instance_metadata,
        coalesce(c.test, 0) AS test,
        CASE WHEN s.terminal > 0
            THEN (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') FROM pawl_log
                  WHERE pos = c.pos) END AS ended_at,
        CASE WHEN d.kind > 1 AND s.terminal = 2
            THEN (SELECT CAST(v.bytes AS TEXT) FROM pawl_log l JOIN pawl_value v ON v.id = l.payload
                  WHERE l.pos = c.pos) END AS result,
        CASE WHEN d.kind > 1 AND s.terminal = 3
            THEN (SELECT CAST(v.bytes AS TEXT) FROM pawl_log l JOIN pawl_value v ON v.id = l.payload
                  WHERE l.pos = c.pos) END AS error,
        CASE WHEN d.kind = 2 AND s.terminal > 2
            THEN (SELECT n.id FROM pawl_kept k JOIN pawl_log l ON l.pos = k.pos JOIN pawl_ids n ON n.number = l.inst
                  WHERE k.what = 0 AND k.id = (SELECT id FROM pawl_ids WHERE number = c.number)) END AS retried_as,
        c.definition AS definition_id
    FROM pawl_current c
    JOIN pawl_definition d ON d.id = c.definition
    LEFT JOIN pawl_state s ON s.definition = c.definition AND s.idx = c.state;

PRAGMA user_version = 20;
