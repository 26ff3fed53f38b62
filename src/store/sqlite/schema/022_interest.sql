-- 022_interest.sql - the instances that a broadcast reaches although they do not await its signal now: those that
-- keep it. Follows from the log; src/model/interest.h says what the names are. Beside pawl_wait, which people read.
CREATE TABLE pawl_interest (
    inst INTEGER,
    name TEXT, -- ~SIGNAL: it keeps the signal; ~SIGNAL=VALUE: it has subscribed to this value of it
    PRIMARY KEY (inst, name)
) WITHOUT ROWID;
CREATE INDEX pawl_interest_name ON pawl_interest (name, inst);

PRAGMA user_version = 22;
