-- 006_kept.sql - tokens and alarms that are in force. Follows from the log.

CREATE TABLE pawl_kept (
    what INTEGER, -- of their records: -5 alarm, -7 token
    id TEXT,
    due INTEGER,  -- when an alarm falls due, a token expires; 0: never
    pos INTEGER,  -- of the record that began it
    PRIMARY KEY (what, id)
) WITHOUT ROWID;
CREATE INDEX pawl_kept_due ON pawl_kept (what, due, id);

PRAGMA user_version = 6;
