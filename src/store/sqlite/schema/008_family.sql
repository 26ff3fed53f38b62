-- 008_family.sql - children that a step of another instance waits for, and whom a broadcast reaches.
-- Both follow from the log.

CREATE TABLE pawl_child (
    child INTEGER PRIMARY KEY, -- the number of an instance
    inst INTEGER,              -- its parent's
    ord INTEGER,               -- the row of the parent's step that waits for it
    abandon INTEGER,           -- 1: it outlives its parent
    ended INTEGER              -- 1: it has ended, and its parent has not heard of it
);
CREATE INDEX pawl_child_parent ON pawl_child (inst, ord);
CREATE INDEX pawl_child_ended ON pawl_child (child) WHERE ended = 1;

ALTER TABLE pawl_wait ADD COLUMN value TEXT; -- what a broadcast's filter is compared with
CREATE INDEX pawl_wait_name ON pawl_wait (name, inst);
CREATE INDEX pawl_wait_value ON pawl_wait (name, value, inst) WHERE value IS NOT NULL;

PRAGMA user_version = 8;
