-- 004_keys.sql - which record an idempotency key was used for. Follows from the log.

CREATE TABLE pawl_key (
    id BLOB PRIMARY KEY, -- the first 16 bytes of the record's key
    at INTEGER,          -- of that record: rows are dropped 7 days later
    pos INTEGER
) WITHOUT ROWID;
CREATE INDEX pawl_key_at ON pawl_key (at);

PRAGMA user_version = 4;
