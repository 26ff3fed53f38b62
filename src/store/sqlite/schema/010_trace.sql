-- 010_trace.sql - an entry tells the W3C traceparent of the request that caused it; a body that has one begins with it.
DROP VIEW pawl_history;

-- Entries only; control records are no history. The log needs no overlay: it is never behind.
CREATE VIEW pawl_history AS
    SELECT n.id AS id,
        l.seq AS sequence_number,
        n.id || '-' || l.seq AS transition_id,
        (SELECT name FROM pawl_state WHERE definition = i.definition AND idx = t.from_state)
            AS from_state,
        t.action AS action,
        (SELECT name FROM pawl_state WHERE definition = i.definition AND idx = t.to_state)
            AS to_state,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = l.actor) AS actor_ref,
        strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(l.fired, l.at) / 1000.0, 'unixepoch')
            AS fired_at,
        strftime('%Y-%m-%dT%H:%M:%fZ', l.at / 1000.0, 'unixepoch') AS recorded_at,
        coalesce(l.flags, 0) & 1 AS guard_satisfied,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = l.reason) AS reason,
        (SELECT CAST(bytes AS TEXT) FROM pawl_value WHERE id = l.payload) AS payload,
        nullif(l.step, 0) - 1 AS step_index,
        nullif(l.ord, 0) AS step_ordinal,
        nullif(l.attempt, 0) AS attempt,
        lower(hex(l.hash)) AS hash,
        l.pos AS position,
        l.inst AS number,
        CASE WHEN substr(l.body, 1, 11) = CAST('[["trace","' AS BLOB)
            THEN CAST(substr(l.body, 12, 55) AS TEXT) END AS traceparent
    FROM pawl_log l
    JOIN pawl_instance i ON i.number = l.inst
    JOIN pawl_ids n ON n.number = l.inst
    JOIN pawl_transition t ON t.definition = i.definition AND t.idx = l.what
    WHERE l.what >= 0;

PRAGMA user_version = 10;
