-- 002_views.sql - what people read, named and shaped as the views of the SQLite store. A text that
-- cannot be one in PostgreSQL (with a NUL byte in it) is NULL here. Each has its shard as its last
-- column.

-- The log, a row for each record.
CREATE VIEW pawl_records AS
    SELECT l.pos + u.o - 1 AS pos, u.inst, u.seq, u.prev, u.skip, u.what, u.flags,
        coalesce(u.ats, l.at) AS at, coalesce(u.fired, u.ats, l.at) AS fired, u.step, u.ord,
        u.attempt, u.actor, u.payload, u.reason, u.body, u.key,
        substr(l.hash, (u.o * 32 - 31)::int, 32) AS hash,
        CASE WHEN u.o = l.n THEN l.root END AS root, l.shard
    FROM pawl_log l, unnest(l.inst, l.seq, l.prev, l.skip, l.what, l.flags, l.ats, l.fired, l.step,
        l.ord, l.attempt, l.actor, l.payload, l.reason, l.body, l.keys) WITH ORDINALITY
        u(inst, seq, prev, skip, what, flags, ats, fired, step, ord, attempt, actor, payload, reason,
        body, key, o);

-- Ids: ten characters of Crockford base32 from the number, sixteen from the ten random bytes.
CREATE VIEW pawl_ids AS
    SELECT w.number,
        substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 45 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 40 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 35 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 30 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 25 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 20 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 15 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 10 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 5 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.number >> 0 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 35 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 30 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 25 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 20 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 15 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 10 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 5 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.hi >> 0 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 35 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 30 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 25 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 20 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 15 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 10 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 5 & 31)::int, 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w.lo >> 0 & 31)::int, 1) AS id,
        w.shard
    FROM (SELECT number, shard,
        (get_byte(random, 0)::bigint << 32) + (get_byte(random, 1)::bigint << 24) + (get_byte(random, 2)::bigint << 16) + (get_byte(random, 3)::bigint << 8) + (get_byte(random, 4)::bigint << 0) AS hi,
        (get_byte(random, 5)::bigint << 32) + (get_byte(random, 6)::bigint << 24) + (get_byte(random, 7)::bigint << 16) + (get_byte(random, 8)::bigint << 8) + (get_byte(random, 9)::bigint << 0) AS lo FROM pawl_instance) w;

-- Every instance with where it stands now: seq, pos and state from its last record where the tail of
-- the log has one, else from its head row, else as it was created.
CREATE VIEW pawl_current AS
    WITH tail AS MATERIALIZED (
        SELECT l.shard, u.inst, l.pos + u.o - 1 AS pos, u.seq, u.what
        FROM pawl_shard f JOIN pawl_log l ON l.shard = f.shard AND l.pos > f.flushed - 128,
            unnest(l.inst, l.seq, l.what) WITH ORDINALITY u(inst, seq, what, o)
        WHERE l.pos + u.o - 1 > f.flushed),
    last AS MATERIALIZED (
        SELECT DISTINCT ON (shard, inst) shard, inst, pos, seq FROM tail ORDER BY shard, inst, pos DESC),
    moved AS MATERIALIZED (
        SELECT DISTINCT ON (shard, inst) shard, inst, what FROM tail WHERE what >= 0
        ORDER BY shard, inst, pos DESC)
    SELECT i.*, coalesce(e.seq, h.seq, 0) AS seq, coalesce(e.pos, h.pos, i.created_pos) AS pos,
        coalesce(t.to_state, h.state, (SELECT (convert_from(d.compiled, 'UTF8')::json ->> 'initial')::int
            FROM pawl_definition d WHERE d.shard = i.shard AND d.id = i.definition), 0) AS state
    FROM pawl_instance i
    LEFT JOIN pawl_head h ON h.shard = i.shard AND h.inst = i.number
    LEFT JOIN last e ON e.shard = i.shard AND e.inst = i.number
    LEFT JOIN moved m ON m.shard = i.shard AND m.inst = i.number
    LEFT JOIN pawl_transition t ON t.shard = i.shard AND t.definition = i.definition AND t.idx = m.what;

CREATE VIEW pawl_definitions AS
    SELECT d.id AS definition_id,
        CASE WHEN position('\x00'::bytea IN d.name) = 0 THEN convert_from(d.name, 'UTF8') END AS name,
        d.version,
        CASE d.kind WHEN 1 THEN 'machine' WHEN 2 THEN 'flow' WHEN 3 THEN 'code' END AS kind,
        encode(d.source, 'hex') AS sha256,
        encode(d.compiled_sha256, 'hex') AS compiled_sha256,
        d.compiler,
        to_char(to_timestamp(d.created_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
        CASE WHEN position('\x00'::bytea IN s.bytes) = 0 THEN convert_from(s.bytes, 'UTF8') END AS text,
        CASE WHEN position('\x00'::bytea IN d.compiled) = 0 THEN convert_from(d.compiled, 'UTF8') END AS compiled,
        d.shard
    FROM pawl_definition d LEFT JOIN pawl_source s ON s.shard = d.shard AND s.sha256 = d.source;

CREATE VIEW pawl_states AS
    SELECT s.definition AS definition_id,
        CASE WHEN position('\x00'::bytea IN d.name) = 0 THEN convert_from(d.name, 'UTF8') END AS definition,
        d.version,
        s.idx,
        CASE WHEN position('\x00'::bytea IN s.name) = 0 THEN convert_from(s.name, 'UTF8') END AS name,
        (s.terminal > 0)::int AS terminal,
        CASE s.terminal WHEN 2 THEN 'success' WHEN 3 THEN 'failure' WHEN 4 THEN 'cancel' END AS terminal_kind,
        s.shard
    FROM pawl_state s JOIN pawl_definition d ON d.shard = s.shard AND d.id = s.definition;

CREATE VIEW pawl_transitions AS
    SELECT t.definition AS definition_id,
        CASE WHEN position('\x00'::bytea IN d.name) = 0 THEN convert_from(d.name, 'UTF8') END AS definition,
        d.version,
        t.idx,
        (SELECT CASE WHEN position('\x00'::bytea IN s.name) = 0 THEN convert_from(s.name, 'UTF8') END FROM pawl_state s
         WHERE s.shard = t.shard AND s.definition = t.definition AND s.idx = t.from_state) AS from_state,
        CASE WHEN position('\x00'::bytea IN t.action) = 0 THEN convert_from(t.action, 'UTF8') END AS action,
        (SELECT CASE WHEN position('\x00'::bytea IN s.name) = 0 THEN convert_from(s.name, 'UTF8') END FROM pawl_state s
         WHERE s.shard = t.shard AND s.definition = t.definition AND s.idx = t.to_state) AS to_state,
        CASE WHEN position('\x00'::bytea IN t.guard) = 0 THEN convert_from(t.guard, 'UTF8') END AS guard,
        coalesce(t.requires_reason, 0) AS requires_reason,
        CASE WHEN t.by_engine = 1 THEN 'engine' ELSE 'caller' END AS by,
        t.shard
    FROM pawl_transition t JOIN pawl_definition d ON d.shard = t.shard AND d.id = t.definition;

CREATE VIEW pawl_instances AS
    SELECT n.id,
        c.number,
        CASE WHEN position('\x00'::bytea IN d.name) = 0 THEN convert_from(d.name, 'UTF8') END AS definition,
        d.version,
        CASE d.kind WHEN 1 THEN 'machine' WHEN 2 THEN 'flow' WHEN 3 THEN 'code' END AS kind,
        CASE WHEN position('\x00'::bytea IN s.name) = 0 THEN convert_from(s.name, 'UTF8') END AS current_state,
        CASE WHEN s.terminal IN (1, 2) THEN 'completed'
            WHEN s.terminal = 3 THEN 'failed'
            WHEN s.terminal = 4 THEN 'cancelled'
            WHEN EXISTS (SELECT 1 FROM pawl_pause p WHERE p.shard = c.shard AND p.inst = c.number)
                THEN 'paused'
            WHEN EXISTS (SELECT 1 FROM pawl_step p WHERE p.shard = c.shard AND p.inst = c.number
                AND p.status IN (1, 2)) THEN 'running'
            ELSE 'suspended' END AS status,
        CASE s.terminal WHEN 2 THEN 'success' WHEN 3 THEN 'failure' WHEN 4 THEN 'cancel' END AS terminal_kind,
        c.seq AS sequence_number,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id = c.subject) AS subject_ref,
        CASE WHEN position('\x00'::bytea IN c.correlation) = 0 THEN convert_from(c.correlation, 'UTF8') END AS correlation_id,
        CASE WHEN position('\x00'::bytea IN c.labels) = 0 THEN convert_from(c.labels, 'UTF8') END AS labels,
        (SELECT p.id FROM pawl_ids p WHERE p.shard = c.shard AND p.number = c.parent) AS parent_id,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id = c.creator) AS created_by,
        to_char(to_timestamp(c.instantiated_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS instantiated_at,
        to_char(to_timestamp((SELECT coalesce(l.ats[(c.pos - l.pos + 1)::int], l.at) FROM pawl_log l
         WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id = c.input) AS input,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id = c.metadata) AS instance_metadata,
        coalesce(c.test, 0) AS test,
        CASE WHEN s.terminal > 0 THEN to_char(to_timestamp((SELECT coalesce(l.ats[(c.pos - l.pos + 1)::int], l.at) FROM pawl_log l
         WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END AS ended_at,
        CASE WHEN d.kind > 1 AND s.terminal = 2 THEN (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id =
                (SELECT l.payload[(c.pos - l.pos + 1)::int] FROM pawl_log l
                 WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1)) END AS result,
        CASE WHEN d.kind > 1 AND s.terminal = 3 THEN (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id =
                (SELECT l.payload[(c.pos - l.pos + 1)::int] FROM pawl_log l
                 WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1)) END AS error,
        CASE WHEN d.kind = 2 AND s.terminal > 2 THEN (SELECT p.id FROM pawl_kept k
            JOIN pawl_records r ON r.shard = k.shard AND r.pos = k.pos
            JOIN pawl_ids p ON p.shard = k.shard AND p.number = r.inst
            WHERE k.shard = c.shard AND k.what = 0 AND k.id = n.id::bytea) END AS retried_as,
        c.definition AS definition_id,
        c.shard
    FROM pawl_current c
    JOIN pawl_ids n ON n.shard = c.shard AND n.number = c.number
    JOIN pawl_definition d ON d.shard = c.shard AND d.id = c.definition
    LEFT JOIN pawl_state s ON s.shard = c.shard AND s.definition = c.definition AND s.idx = c.state;

-- Entries only; control records are no history.
CREATE VIEW pawl_history AS
    SELECT n.id,
        l.seq AS sequence_number,
        n.id || '-' || l.seq AS transition_id,
        (SELECT CASE WHEN position('\x00'::bytea IN s.name) = 0 THEN convert_from(s.name, 'UTF8') END FROM pawl_state s
         WHERE s.shard = i.shard AND s.definition = i.definition AND s.idx = t.from_state) AS from_state,
        CASE WHEN position('\x00'::bytea IN t.action) = 0 THEN convert_from(t.action, 'UTF8') END AS action,
        (SELECT CASE WHEN position('\x00'::bytea IN s.name) = 0 THEN convert_from(s.name, 'UTF8') END FROM pawl_state s
         WHERE s.shard = i.shard AND s.definition = i.definition AND s.idx = t.to_state) AS to_state,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = i.shard AND v.id = l.actor) AS actor_ref,
        to_char(to_timestamp(l.fired / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS fired_at,
        to_char(to_timestamp(l.at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS recorded_at,
        coalesce(l.flags, 0) & 1 AS guard_satisfied,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = i.shard AND v.id = l.reason) AS reason,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = i.shard AND v.id = l.payload) AS payload,
        nullif(l.step, 0) - 1 AS step_index,
        nullif(l.ord, 0) AS step_ordinal,
        nullif(l.attempt, 0) AS attempt,
        encode(l.hash, 'hex') AS hash,
        l.pos AS position,
        l.inst AS number,
        CASE WHEN substr(l.body, 1, 11) = convert_to('[["trace","', 'UTF8')
            THEN convert_from(substr(l.body, 12, 55), 'UTF8') END AS traceparent,
        l.shard
    FROM pawl_records l
    JOIN pawl_instance i ON i.shard = l.shard AND i.number = l.inst
    JOIN pawl_ids n ON n.shard = l.shard AND n.number = l.inst
    JOIN pawl_transition t ON t.shard = l.shard AND t.definition = i.definition AND t.idx = l.what
    WHERE l.what >= 0;

CREATE VIEW pawl_steps AS
    SELECT n.id, n.id || '.' || p.ord AS step_id, p.ord AS step_ordinal, p.plan AS step_index, p.attempt,
        CASE p.status WHEN 0 THEN 'pending' WHEN 1 THEN 'ready' WHEN 2 THEN 'running' END AS status,
        p.inst AS number, p.shard
    FROM pawl_step p JOIN pawl_ids n ON n.shard = p.shard AND n.number = p.inst;

CREATE VIEW pawl_labels AS
    SELECT n.id,
        CASE WHEN position('\x00'::bytea IN l.key) = 0 THEN convert_from(l.key, 'UTF8') END AS key,
        CASE WHEN position('\x00'::bytea IN l.value) = 0 THEN convert_from(l.value, 'UTF8') END AS value,
        l.inst AS number, l.shard
    FROM pawl_label l JOIN pawl_ids n ON n.shard = l.shard AND n.number = l.inst;

CREATE VIEW pawl_timers AS
    SELECT n.id,
        CASE WHEN position('\x00'::bytea IN t.name) = 0 THEN convert_from(t.name, 'UTF8') END AS name,
        to_char(to_timestamp(t.due / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS due_at,
        nullif(t.ord, 0) AS step_ordinal,
        coalesce(t.test, 0) AS test, t.inst AS number, t.shard
    FROM pawl_timer t JOIN pawl_ids n ON n.shard = t.shard AND n.number = t.inst;

CREATE VIEW workflows AS
    SELECT c.number AS id,
        (SELECT coalesce(l.ats[(c.pos - l.pos + 1)::int], l.at) FROM pawl_log l
         WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1) AS updated_at,
        coalesce(CASE WHEN position('\x00'::bytea IN d.name) = 0 THEN convert_from(d.name, 'UTF8') END, '') AS name,
        (SELECT CASE WHEN position('\x00'::bytea IN s.bytes) = 0 THEN convert_from(s.bytes, 'UTF8') END FROM pawl_source s
         WHERE s.shard = d.shard AND s.sha256 = d.source) AS flow_json,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id = c.input) AS input_json,
        CASE s.terminal WHEN 2 THEN 'completed' WHEN 3 THEN 'failed' WHEN 4 THEN 'cancelled'
            ELSE 'running' END AS status,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = c.shard AND v.id = c.creator) AS created_by,
        CASE s.terminal WHEN 2 THEN (SELECT coalesce(l.ats[(c.pos - l.pos + 1)::int], l.at) FROM pawl_log l
         WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1) END AS completed_at,
        CASE s.terminal WHEN 4 THEN (SELECT coalesce(l.ats[(c.pos - l.pos + 1)::int], l.at) FROM pawl_log l
         WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1) END AS cancelled_at,
        c.shard
    FROM pawl_current c
    JOIN pawl_definition d ON d.shard = c.shard AND d.id = c.definition AND d.kind = 2
    LEFT JOIN pawl_state s ON s.shard = c.shard AND s.definition = c.definition AND s.idx = c.state;

-- Every attempt of every flow, from the effects of its entries.
CREATE VIEW pawl_attempted AS
    WITH entry AS MATERIALIZED (
            SELECT l.shard, l.inst, l.pos, l.ord, l.what, l.at, l.payload,
                CASE WHEN json_typeof(e.value) = 'number' AND (e.value #>> '{}')::bigint < 0
                        THEN json_build_array('run', -(e.value #>> '{}')::bigint)
                    WHEN json_typeof(e.value) = 'number' THEN json_build_array('end', e.value)
                    WHEN json_typeof(e.value -> 0) = 'number'
                        THEN ('["step",' || substr(ltrim(e.value #>> '{}'), 2))::json
                    ELSE e.value END AS effect
            FROM pawl_records l
            JOIN pawl_instance i ON i.shard = l.shard AND i.number = l.inst
            JOIN pawl_definition d ON d.shard = i.shard AND d.id = i.definition AND d.kind = 2,
            json_array_elements(convert_from(l.body, 'UTF8')::json) e
            WHERE l.what >= 0 AND l.body IS NOT NULL),
        amended AS MATERIALIZED (
            SELECT shard, inst, pos, effect -> 1 AS plan FROM entry WHERE effect ->> 0 = 'plan'),
        plans AS (
            SELECT i.shard, i.number AS inst, 0::bigint AS pos,
                convert_from(d.compiled, 'UTF8')::json -> 'plan' AS plan
            FROM pawl_instance i JOIN pawl_definition d ON d.shard = i.shard AND d.id = i.definition
            WHERE (i.shard, i.number) IN (SELECT shard, inst FROM amended)
            UNION ALL SELECT shard, inst, pos, plan FROM amended),
        steps AS MATERIALIZED (
            SELECT p.shard, p.inst, p.pos, s.o - 1 AS idx, s.value ->> 'name' AS name,
                s.value AS declared
            FROM plans p, json_array_elements(p.plan -> 'steps') WITH ORDINALITY s(value, o)),
        named AS (
            SELECT DISTINCT ON (shard, inst, name) shard, inst, name, pos, idx FROM steps
            ORDER BY shard, inst, name, pos),
        placed AS MATERIALIZED (
            SELECT shard, inst, name,
                row_number() OVER (PARTITION BY shard, inst ORDER BY pos, idx) - 1 AS place FROM named),
        born AS MATERIALIZED (
            SELECT shard, inst, pos, (effect ->> 1)::int AS ord, (effect ->> 2)::int AS plan,
                coalesce((effect ->> 3)::int, 1) AS attempt, coalesce(effect ->> 4, 'ready') AS status, at
            FROM entry WHERE effect ->> 0 = 'step'),
        readied AS MATERIALIZED (
            SELECT shard, inst, (effect ->> 1)::int AS ord, max(at) AS at FROM entry
            WHERE effect ->> 0 = 'ready' GROUP BY 1, 2, 3),
        began AS MATERIALIZED (
            SELECT shard, inst, ord, max(at) AS at FROM entry
            WHERE what = 1 AND effect ->> 0 = 'run' GROUP BY 1, 2, 3),
        over AS MATERIALIZED (
            SELECT shard, inst, (effect ->> 1)::int AS ord, at, what, payload FROM entry
            WHERE effect ->> 0 = 'end')
    SELECT b.inst AS number, b.ord, b.plan AS step, b.attempt,
        coalesce(
            (SELECT s.declared FROM placed p JOIN steps s ON s.shard = p.shard AND s.inst = p.inst
                AND s.name = p.name AND s.pos <= b.pos
             WHERE p.shard = b.shard AND p.inst = b.inst AND p.place = b.plan
             ORDER BY s.pos DESC LIMIT 1),
            convert_from(d.compiled, 'UTF8')::json -> 'plan' -> 'steps' -> b.plan) AS declared,
        CASE WHEN o.what IN (3, 5, 7) THEN 'failed'
            WHEN o.what IS NOT NULL THEN 'done'
            WHEN p.status IS NULL THEN 'cancelled'
            ELSE CASE p.status WHEN 0 THEN 'pending' WHEN 1 THEN 'ready' ELSE 'running' END END AS status,
        (SELECT CASE WHEN position('\x00'::bytea IN v.bytes) = 0 THEN convert_from(v.bytes, 'UTF8') END FROM pawl_value v WHERE v.shard = b.shard AND v.id = o.payload) AS outcome,
        coalesce(r.at, CASE WHEN b.status = 'ready' THEN b.at END) AS ready_at,
        CASE WHEN p.status = 1 THEN NULL ELSE g.at END AS started_at,
        CASE WHEN o.what IS NULL AND p.status IS NULL THEN (SELECT coalesce(l.ats[(c.pos - l.pos + 1)::int], l.at) FROM pawl_log l
         WHERE l.shard = c.shard AND l.pos <= c.pos ORDER BY l.pos DESC LIMIT 1)
            ELSE o.at END AS completed_at,
        coalesce(o.at, greatest(g.at, r.at), b.at) AS updated_at,
        b.shard
    FROM born b
    JOIN pawl_current c ON c.shard = b.shard AND c.number = b.inst
    JOIN pawl_definition d ON d.shard = c.shard AND d.id = c.definition
    LEFT JOIN readied r ON r.shard = b.shard AND r.inst = b.inst AND r.ord = b.ord
    LEFT JOIN began g ON g.shard = b.shard AND g.inst = b.inst AND g.ord = b.ord
    LEFT JOIN over o ON o.shard = b.shard AND o.inst = b.inst AND o.ord = b.ord
    LEFT JOIN pawl_step p ON p.shard = b.shard AND p.inst = b.inst AND p.ord = b.ord;

CREATE VIEW pawl_attempts AS
    SELECT n.id, n.id || '.' || a.ord AS step_id, a.declared ->> 'name' AS name,
        a.declared ->> 'tool' AS tool, a.attempt, a.status,
        CASE a.status WHEN 'done' THEN a.outcome END AS result,
        CASE a.status WHEN 'failed' THEN a.outcome END AS error,
        to_char(to_timestamp(a.ready_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ready_at,
        to_char(to_timestamp(a.started_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS started_at,
        to_char(to_timestamp(a.completed_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS completed_at,
        a.step AS step_index, a.ord AS step_ordinal, a.number, a.shard
    FROM pawl_attempted a JOIN pawl_ids n ON n.shard = a.shard AND n.number = a.number;

CREATE VIEW pawl_tree AS
    WITH latest AS MATERIALIZED (
            SELECT DISTINCT ON (shard, number, declared ->> 'name') shard, number,
                declared ->> 'name' AS name, ord, status, outcome, started_at, completed_at,
                count(*) OVER (PARTITION BY shard, number, declared ->> 'name') AS attempts
            FROM pawl_attempted ORDER BY shard, number, declared ->> 'name', ord DESC),
        amended AS MATERIALIZED (
            SELECT DISTINCT ON (l.shard, l.inst) l.shard, l.inst, e.value -> 1 AS plan
            FROM pawl_records l, json_array_elements(convert_from(l.body, 'UTF8')::json) e
            WHERE l.what = 11 AND l.body IS NOT NULL AND json_typeof(e.value) = 'array'
                AND e.value ->> 0 = 'plan'
            ORDER BY l.shard, l.inst, l.pos DESC)
    SELECT n.id, s.value ->> 'name' AS name, coalesce(s.value ->> 'kind', 'tool') AS kind,
        s.value ->> 'tool' AS tool, coalesce(l.status, 'unstarted') AS status,
        coalesce(l.attempts, 0) AS attempts,
        CASE l.status WHEN 'done' THEN l.outcome END AS result,
        CASE l.status WHEN 'failed' THEN l.outcome END AS error,
        to_char(to_timestamp(l.started_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS started_at,
        to_char(to_timestamp(l.completed_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS completed_at,
        s.o - 1 AS step_index, i.number, i.shard
    FROM pawl_instance i
    JOIN pawl_definition d ON d.shard = i.shard AND d.id = i.definition AND d.kind = 2
    JOIN pawl_ids n ON n.shard = i.shard AND n.number = i.number
    LEFT JOIN amended a ON a.shard = i.shard AND a.inst = i.number
    CROSS JOIN LATERAL json_array_elements(coalesce(a.plan -> 'steps',
        convert_from(d.compiled, 'UTF8')::json -> 'plan' -> 'steps')) WITH ORDINALITY s(value, o)
    LEFT JOIN latest l ON l.shard = i.shard AND l.number = i.number AND l.name = s.value ->> 'name';

CREATE VIEW workflow_steps AS
    SELECT a.number * 4294967296 + a.ord AS id, a.updated_at, a.number AS workflow_id,
        a.declared ->> 'name' AS name, a.declared ->> 'tool' AS tool,
        (a.declared -> 'args') #>> '{}' AS args_json, a.outcome AS result_json, a.status, a.attempt,
        a.ready_at, a.started_at, a.completed_at, a.shard
    FROM pawl_attempted a;

CREATE VIEW pawl_code AS
    WITH RECURSIVE back(shard, number, prev, state) AS (
        SELECT c.shard, c.number, c.pos, NULL::json FROM pawl_current c
        JOIN pawl_definition d ON d.shard = c.shard AND d.id = c.definition AND d.kind = 3
        UNION ALL
        SELECT b.shard, b.number, l.prev[(b.prev - l.pos + 1)::int],
            CASE WHEN l.what[(b.prev - l.pos + 1)::int] >= 0
                    AND l.body[(b.prev - l.pos + 1)::int] IS NOT NULL THEN
                (SELECT e.value -> 1 FROM
                 json_array_elements(convert_from(l.body[(b.prev - l.pos + 1)::int], 'UTF8')::json) e
                 WHERE json_typeof(e.value) = 'array' AND e.value ->> 0 = 'state' LIMIT 1) END
        FROM back b, LATERAL (SELECT * FROM pawl_log g WHERE g.shard = b.shard AND g.pos <= b.prev
            ORDER BY g.pos DESC LIMIT 1) l
        WHERE b.state IS NULL AND b.prev > 0)
    SELECT i.id, i.number, i.definition, i.version, i.status, f.state ->> 'phase' AS phase,
        f.state #>> '{}' AS state, i.subject_ref, i.correlation_id, i.shard
    FROM back f JOIN pawl_instances i ON i.shard = f.shard AND i.number = f.number
    WHERE f.state IS NOT NULL;
