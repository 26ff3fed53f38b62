-- 016_firing.sql - an alarm over many instances says that it is firing before it begins. Follows from the log.

ALTER TABLE pawl_kept ADD COLUMN firing INTEGER; -- `at` of the record that says so; NULL: none does
CREATE INDEX pawl_kept_firing ON pawl_kept (firing) WHERE firing IS NOT NULL;

PRAGMA user_version = 16;
