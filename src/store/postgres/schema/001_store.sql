-- 001_store.sql - the tables of a store in PostgreSQL, as docs/format.md lists them.
--
-- One schema is one store of `shards` shards; each shard has a log, values and rows of its own.
-- Every table but two begins with `shard`, which is first in every key. The log has one row for
-- each commit (at most 128 records and 256 KiB), whose columns are arrays. Texts are bytea, in
-- UTF-8: they may have a NUL in them, and are compared byte by byte. An absent number is NULL and
-- counts as 0.

CREATE TABLE pawl_store (
    one int PRIMARY KEY,  -- 1
    format int NOT NULL,
    schema int NOT NULL,  -- of these files
    store_id bytea NOT NULL,
    shards int NOT NULL,
    created_at bigint,
    secret bytea
);

CREATE TABLE pawl_node (
    node text PRIMARY KEY,  -- ID/INCARNATION: a process that starts again is another one
    address text,
    version text,
    can text,               -- hash of its tools, code types and modules
    beat timestamptz NOT NULL,
    ttl_ms int NOT NULL,
    state int NOT NULL,     -- 1 up, 2 leaving, 3 dead
    seen_home bigint,
    ready text,
    secret text             -- what it wants to be shown by callers who can read this; NULL: nothing
);

CREATE TABLE pawl_shard (
    shard int PRIMARY KEY,
    node text,              -- its owner; NULL: none
    epoch bigint NOT NULL,  -- of the last claim
    store_id bytea NOT NULL,
    pos bigint NOT NULL,
    flushed bigint NOT NULL,
    at bigint NOT NULL,
    last_instance bigint NOT NULL,
    last_value bigint NOT NULL,
    last_definition int NOT NULL,
    test_now bigint NOT NULL,
    root bytea
) WITH (fillfactor = 20);

CREATE TABLE pawl_log (
    shard int,
    pos bigint,        -- of its first record
    n int NOT NULL,    -- how many it has
    at bigint,         -- of all of them, unless `ats` is there
    inst bigint[],
    seq int[],
    prev bigint[],
    what int[],
    hash bytea,        -- 32 bytes for each record
    skip bigint[],     -- these are NULL where no record of the row has one
    flags int[],
    ats bigint[],
    fired bigint[],    -- an element that is NULL: equal to its time
    step int[],
    ord int[],
    attempt int[],
    actor bigint[],
    payload bigint[],
    reason bigint[],
    body bytea[],
    keys bytea[],
    lease text[],
    root bytea,        -- where a commit ends: of the last record
    PRIMARY KEY (shard, pos)
) WITH (autovacuum_freeze_min_age = 0);
ALTER TABLE pawl_log
    ALTER inst SET STORAGE EXTERNAL,
    ALTER seq SET STORAGE EXTERNAL,
    ALTER prev SET STORAGE EXTERNAL,
    ALTER what SET STORAGE EXTERNAL,
    ALTER hash SET STORAGE EXTERNAL,
    ALTER keys SET STORAGE EXTERNAL;

CREATE TABLE pawl_value (
    shard int,
    id bigint,
    commitment bytea,  -- of an erased one
    salt bytea,
    bytes bytea,       -- NULL, like salt: erased
    interned int,
    digest bytea,      -- of an interned one: the first 16 bytes of SHA-256 of its bytes
    PRIMARY KEY (shard, id)
);
CREATE UNIQUE INDEX pawl_value_digest ON pawl_value (shard, digest) WHERE digest IS NOT NULL;

CREATE TABLE pawl_source (
    shard int,
    sha256 bytea,
    bytes bytea,
    PRIMARY KEY (shard, sha256)
);

CREATE TABLE pawl_definition (
    shard int,
    id int,
    name bytea,        -- NULL: inline
    version int,       -- 0: inline
    kind int,          -- 1 machine, 2 flow, 3 code
    source bytea,      -- sha256 in pawl_source
    compiled bytea,
    compiled_sha256 bytea,
    compiler int,
    created_at bigint,
    PRIMARY KEY (shard, id)
);
CREATE UNIQUE INDEX pawl_definition_name ON pawl_definition (shard, name, version)
    WHERE name IS NOT NULL;
CREATE INDEX pawl_definition_inline ON pawl_definition (shard, source) WHERE name IS NULL;

CREATE TABLE pawl_state (
    shard int,
    definition int,
    idx int,
    name bytea,
    terminal int,      -- 0 no, 1 plain, 2 success, 3 failure, 4 cancel
    PRIMARY KEY (shard, definition, idx)
);

CREATE TABLE pawl_transition (
    shard int,
    definition int,
    idx int,
    from_state int,
    action bytea,
    to_state int,
    guard bytea,
    requires_reason int,
    by_engine int,
    PRIMARY KEY (shard, definition, idx)
);

CREATE TABLE pawl_instance (
    shard int,
    number bigint,
    random bytea,
    definition int,
    instantiated_at bigint,
    created_pos bigint,
    creator bigint,
    subject bigint,
    input bigint,
    metadata bigint,
    parent bigint,
    correlation bytea,
    labels bytea,
    test int,
    PRIMARY KEY (shard, number)
);
CREATE INDEX pawl_instance_subject ON pawl_instance (shard, subject, number)
    WHERE subject IS NOT NULL;
CREATE INDEX pawl_instance_correlation ON pawl_instance (shard, correlation, number)
    WHERE correlation IS NOT NULL;
CREATE INDEX pawl_instance_definition ON pawl_instance (shard, definition, number);

CREATE TABLE pawl_label (
    shard int,
    key bytea,
    value bytea,
    inst bigint,
    PRIMARY KEY (shard, key, value, inst)
);

CREATE TABLE pawl_head (
    shard int,
    inst bigint,       -- 0: the shard's own chain
    seq int,
    state int,
    pos bigint,
    PRIMARY KEY (shard, inst)
) WITH (fillfactor = 70);

CREATE TABLE pawl_step (
    shard int,
    inst bigint,
    ord int,
    plan int,
    attempt int,
    status int,        -- 0 pending, 1 ready, 2 running
    lease bytea,
    lease_ms bigint,
    ready_at bigint,
    PRIMARY KEY (shard, inst, ord)
) WITH (fillfactor = 70);

CREATE TABLE pawl_timer (
    shard int,
    inst bigint,
    ord int,
    name bytea,
    due bigint,
    test int,
    wall int,          -- 1: due by the wall clock
    shift bigint,
    PRIMARY KEY (shard, inst, ord, name)
);
CREATE INDEX pawl_timer_due ON pawl_timer (shard, due, inst, ord, name)
    WHERE test = 0 AND wall IS NULL;
CREATE INDEX pawl_timer_wall ON pawl_timer (shard, due, inst, ord, name)
    WHERE test = 0 AND wall = 1;

CREATE TABLE pawl_wait (
    shard int,
    inst bigint,
    ord int,
    name bytea,
    value bytea,
    PRIMARY KEY (shard, inst, ord, name)
);
CREATE INDEX pawl_wait_name ON pawl_wait (shard, name, inst);

CREATE TABLE pawl_interest (
    shard int,
    inst bigint,
    name bytea,
    PRIMARY KEY (shard, inst, name)
);
CREATE INDEX pawl_interest_name ON pawl_interest (shard, name, inst);

CREATE TABLE pawl_child (
    shard int,
    child bigint,
    inst bigint,       -- its parent's
    ord int,
    abandon int,
    ended int,
    PRIMARY KEY (shard, child)
);
CREATE INDEX pawl_child_parent ON pawl_child (shard, inst, ord);
CREATE INDEX pawl_child_ended ON pawl_child (shard, child) WHERE ended = 1;

CREATE TABLE pawl_pause (
    shard int,
    inst bigint,
    pos bigint,
    PRIMARY KEY (shard, inst)
);

CREATE TABLE pawl_kept (
    shard int,
    what int,
    id bytea,
    due bigint,
    pos bigint,
    firing bigint,
    wall int,
    PRIMARY KEY (shard, what, id)
);
CREATE INDEX pawl_kept_due ON pawl_kept (shard, what, due, id);
CREATE INDEX pawl_kept_firing ON pawl_kept (shard, firing) WHERE firing IS NOT NULL;

CREATE TABLE pawl_key (
    shard int,
    day int,           -- of `at`, since 1970: whole days are dropped
    id bytea,
    at bigint,
    pos bigint,
    PRIMARY KEY (shard, day, id)
);

CREATE TABLE pawl_snapshot (
    shard int,
    inst bigint,
    seq int,
    text bytea,
    PRIMARY KEY (shard, inst)
);
