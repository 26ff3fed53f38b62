-- 001_store.sql - the tables of a store, as docs/format.md lists them.
--
-- The log, values, sources, definitions and instances are the truth; the rest follows from
-- them. An absent number is NULL and counts as 0.

PRAGMA application_id = 1885435756; -- 0x7061776C, "pawl"

CREATE TABLE pawl_meta (
    key TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

INSERT INTO pawl_meta VALUES ('format', 1), ('flushed', 0);

CREATE TABLE pawl_log (
    pos INTEGER PRIMARY KEY,
    inst INTEGER,
    seq INTEGER,
    prev INTEGER,
    skip INTEGER,
    what INTEGER,
    flags INTEGER,
    at INTEGER,
    fired INTEGER,   -- NULL: equal to at
    step INTEGER,
    ord INTEGER,
    attempt INTEGER,
    actor INTEGER,
    payload INTEGER,
    reason INTEGER,
    body BLOB,
    key BLOB,
    hash BLOB,
    root BLOB        -- set on the last record of each commit
);

CREATE TABLE pawl_value (
    id INTEGER PRIMARY KEY,
    commitment BLOB,
    salt BLOB,
    bytes BLOB,      -- NULL, like salt: erased
    interned INTEGER
);
CREATE UNIQUE INDEX pawl_value_interned ON pawl_value (bytes) WHERE interned = 1;

CREATE TABLE pawl_source (
    id INTEGER PRIMARY KEY,
    sha256 BLOB UNIQUE,
    bytes BLOB
);

CREATE TABLE pawl_definition (
    id INTEGER PRIMARY KEY,
    name TEXT,       -- NULL: inline
    version INTEGER, -- 0: inline
    kind INTEGER,    -- 1 machine, 2 flow, 3 code
    source INTEGER,  -- id in pawl_source
    compiled TEXT,
    compiled_sha256 BLOB,
    compiler INTEGER,
    created_at INTEGER
);
CREATE UNIQUE INDEX pawl_definition_name ON pawl_definition (name, version) WHERE name IS NOT NULL;
CREATE INDEX pawl_definition_inline ON pawl_definition (source) WHERE name IS NULL;

CREATE TABLE pawl_state (
    definition INTEGER,
    idx INTEGER,
    name TEXT,
    terminal INTEGER, -- 0 no, 1 plain, 2 success, 3 failure, 4 cancel
    PRIMARY KEY (definition, idx)
) WITHOUT ROWID;

CREATE TABLE pawl_transition (
    definition INTEGER,
    idx INTEGER,
    from_state INTEGER,
    action TEXT,
    to_state INTEGER,
    guard TEXT,
    requires_reason INTEGER,
    by_engine INTEGER,
    PRIMARY KEY (definition, idx)
) WITHOUT ROWID;

CREATE TABLE pawl_instance (
    number INTEGER PRIMARY KEY,
    random BLOB,
    definition INTEGER,
    instantiated_at INTEGER,
    created_pos INTEGER,
    creator INTEGER,
    subject INTEGER,
    input INTEGER,
    metadata INTEGER,
    parent INTEGER,
    correlation TEXT,
    labels TEXT,
    test INTEGER
);
-- Partial: an instance without a subject or correlation pays nothing for these.
CREATE INDEX pawl_instance_subject ON pawl_instance (subject) WHERE subject IS NOT NULL;
CREATE INDEX pawl_instance_correlation ON pawl_instance (correlation) WHERE correlation IS NOT NULL;

CREATE TABLE pawl_head (
    inst INTEGER PRIMARY KEY, -- 0: the store's own chain
    seq INTEGER,
    state INTEGER,
    pos INTEGER
);

CREATE TABLE pawl_step (
    inst INTEGER,
    ord INTEGER,
    plan INTEGER,
    attempt INTEGER,
    status INTEGER, -- 0 pending, 1 ready, 2 running
    PRIMARY KEY (inst, ord)
) WITHOUT ROWID;
CREATE INDEX pawl_step_busy ON pawl_step (inst) WHERE status IN (1, 2);

CREATE TABLE pawl_timer (
    inst INTEGER,
    ord INTEGER,
    name TEXT,
    due INTEGER,
    test INTEGER,
    PRIMARY KEY (inst, ord, name)
) WITHOUT ROWID;
CREATE INDEX pawl_timer_due ON pawl_timer (due, inst, ord, name) WHERE test = 0;

CREATE TABLE pawl_wait (
    inst INTEGER,
    ord INTEGER,
    name TEXT,
    PRIMARY KEY (inst, ord, name)
) WITHOUT ROWID;

CREATE TABLE pawl_snapshot (
    inst INTEGER PRIMARY KEY,
    seq INTEGER,
    text TEXT
);

PRAGMA user_version = 1;
