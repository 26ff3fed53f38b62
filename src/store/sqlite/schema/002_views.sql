-- 002_views.sql - what people read. Head rows may lag behind the log; these views lay the
-- tail of the log over them, so that any shell tells the truth.

-- Ids: 26 characters of Crockford base32, ten from the number (five bits each, highest first)
-- and sixteen from the ten random bytes, taken as four words of five hexadecimal digits.
CREATE VIEW pawl_ids AS
    WITH words AS (
        SELECT number,
        (instr('0123456789ABCDEF', substr(hex(random), 1, 1)) - 1 << 16)
            | (instr('0123456789ABCDEF', substr(hex(random), 2, 1)) - 1 << 12)
            | (instr('0123456789ABCDEF', substr(hex(random), 3, 1)) - 1 << 8)
            | (instr('0123456789ABCDEF', substr(hex(random), 4, 1)) - 1 << 4)
            | (instr('0123456789ABCDEF', substr(hex(random), 5, 1)) - 1 << 0) AS w1,
        (instr('0123456789ABCDEF', substr(hex(random), 6, 1)) - 1 << 16)
            | (instr('0123456789ABCDEF', substr(hex(random), 7, 1)) - 1 << 12)
            | (instr('0123456789ABCDEF', substr(hex(random), 8, 1)) - 1 << 8)
            | (instr('0123456789ABCDEF', substr(hex(random), 9, 1)) - 1 << 4)
            | (instr('0123456789ABCDEF', substr(hex(random), 10, 1)) - 1 << 0) AS w2,
        (instr('0123456789ABCDEF', substr(hex(random), 11, 1)) - 1 << 16)
            | (instr('0123456789ABCDEF', substr(hex(random), 12, 1)) - 1 << 12)
            | (instr('0123456789ABCDEF', substr(hex(random), 13, 1)) - 1 << 8)
            | (instr('0123456789ABCDEF', substr(hex(random), 14, 1)) - 1 << 4)
            | (instr('0123456789ABCDEF', substr(hex(random), 15, 1)) - 1 << 0) AS w3,
        (instr('0123456789ABCDEF', substr(hex(random), 16, 1)) - 1 << 16)
            | (instr('0123456789ABCDEF', substr(hex(random), 17, 1)) - 1 << 12)
            | (instr('0123456789ABCDEF', substr(hex(random), 18, 1)) - 1 << 8)
            | (instr('0123456789ABCDEF', substr(hex(random), 19, 1)) - 1 << 4)
            | (instr('0123456789ABCDEF', substr(hex(random), 20, 1)) - 1 << 0) AS w4
        FROM pawl_instance)
    SELECT number,
        substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 45 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 40 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 35 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 30 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 25 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 20 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 15 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 10 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 5 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (number >> 0 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w1 >> 15 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w1 >> 10 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w1 >> 5 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w1 >> 0 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w2 >> 15 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w2 >> 10 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w2 >> 5 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w2 >> 0 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w3 >> 15 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w3 >> 10 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w3 >> 5 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w3 >> 0 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w4 >> 15 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w4 >> 10 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w4 >> 5 & 31), 1)
        || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (w4 >> 0 & 31), 1) AS id
    FROM words;

-- Every instance with where it stands now: seq, pos and state from its last record where the
-- tail has one, else from its head row, else as it was created. A row of `tail` and `moved` is
-- the one with the greatest pos: SQLite takes bare columns from the row that max() took.
-- The initial state is cut out of the compiled text: SQLite takes JSON functions in a view for
-- unsafe where the schema is not trusted, and within a string the key's quotes are escaped.
CREATE VIEW pawl_current AS
    WITH
    tail AS (
        SELECT inst, max(pos) AS pos, seq FROM pawl_log
        WHERE pos > (SELECT value FROM pawl_meta WHERE key = 'flushed')
        GROUP BY inst),
    moved AS (
        SELECT inst, max(pos) AS pos, what FROM pawl_log
        WHERE pos > (SELECT value FROM pawl_meta WHERE key = 'flushed') AND what >= 0
        GROUP BY inst)
    SELECT i.*,
        coalesce(tail.seq, h.seq, 0) AS seq,
        coalesce(tail.pos, h.pos, i.created_pos) AS pos,
        coalesce(t.to_state, h.state,
            (SELECT CAST(substr(d.compiled, instr(d.compiled, '"initial":') + 10, 10) AS INTEGER)
             FROM pawl_definition d WHERE d.id = i.definition), 0) AS state
    FROM pawl_instance i
    LEFT JOIN pawl_head h ON h.inst = i.number
    LEFT JOIN tail ON tail.inst = i.number
    LEFT JOIN moved ON moved.inst = i.number
    LEFT JOIN pawl_transition t ON t.definition = i.definition AND t.idx = moved.what;

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
        coalesce(c.test, 0) AS test
    FROM pawl_current c
    JOIN pawl_definition d ON d.id = c.definition
    LEFT JOIN pawl_state s ON s.definition = c.definition AND s.idx = c.state;

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
        l.inst AS number
    FROM pawl_log l
    JOIN pawl_instance i ON i.number = l.inst
    JOIN pawl_ids n ON n.number = l.inst
    JOIN pawl_transition t ON t.definition = i.definition AND t.idx = l.what
    WHERE l.what >= 0;

CREATE VIEW pawl_definitions AS
    SELECT d.id AS definition_id,
        d.name AS name,
        d.version AS version,
        CASE d.kind WHEN 1 THEN 'machine' WHEN 2 THEN 'flow' WHEN 3 THEN 'code' END AS kind,
        lower(hex(s.sha256)) AS sha256,
        lower(hex(d.compiled_sha256)) AS compiled_sha256,
        d.compiler AS compiler,
        strftime('%Y-%m-%dT%H:%M:%fZ', d.created_at / 1000.0, 'unixepoch') AS created_at,
        CAST(s.bytes AS TEXT) AS text,
        d.compiled AS compiled
    FROM pawl_definition d
    LEFT JOIN pawl_source s ON s.id = d.source;

CREATE VIEW pawl_states AS
    SELECT s.definition AS definition_id,
        d.name AS definition,
        d.version AS version,
        s.idx AS idx,
        s.name AS name,
        s.terminal > 0 AS terminal,
        CASE s.terminal WHEN 2 THEN 'success' WHEN 3 THEN 'failure' WHEN 4 THEN 'cancel' END AS terminal_kind
    FROM pawl_state s
    JOIN pawl_definition d ON d.id = s.definition;

CREATE VIEW pawl_transitions AS
    SELECT t.definition AS definition_id,
        d.name AS definition,
        d.version AS version,
        t.idx AS idx,
        (SELECT name FROM pawl_state WHERE definition = t.definition AND idx = t.from_state)
            AS from_state,
        t.action AS action,
        (SELECT name FROM pawl_state WHERE definition = t.definition AND idx = t.to_state)
            AS to_state,
        t.guard AS guard,
        coalesce(t.requires_reason, 0) AS requires_reason,
        CASE WHEN t.by_engine = 1 THEN 'engine' ELSE 'caller' END AS by
    FROM pawl_transition t
    JOIN pawl_definition d ON d.id = t.definition;

-- Live attempts only: what is over is in the history.
CREATE VIEW pawl_steps AS
    SELECT n.id AS id,
        n.id || '.' || p.ord AS step_id,
        p.ord AS step_ordinal,
        p.plan AS step_index,
        p.attempt AS attempt,
        CASE p.status WHEN 0 THEN 'pending' WHEN 1 THEN 'ready' WHEN 2 THEN 'running' END AS status,
        p.inst AS number
    FROM pawl_step p
    JOIN pawl_ids n ON n.number = p.inst;

PRAGMA user_version = 2;
