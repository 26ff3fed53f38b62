-- 011_short.sql - a store that takes less room. A value that is there has no commitment of its own any
-- more, since that follows from it; bodies are written in short: [ORD,PLAN,...] for
-- ["step",ORD,PLAN,...], -ORD for ["run",ORD], ORD for ["end",ORD]. What was written before stays as it
-- is, nothing else changes: the number keeps those away who would not understand.
PRAGMA user_version = 11;
