-- 016_firing.sql - an alarm over many instances is recorded as firing before it begins. Follows
-- from the log.

ALTER TABLE pawl_kept ADD COLUMN firing INTEGER; -- `at` of its `firing` record; NULL: none
CREATE INDEX pawl_kept_firing ON pawl_kept (firing) WHERE firing IS NOT NULL;

PRAGMA user_version = 16;
