-- 027_archive.sql - instances that were moved into an archive file. What was a record of theirs
-- keeps its place, time, hash and root (pawl_log.what -15), archive records name them, and rows of
-- pawl_kept (what -14) do so by their ids. No table changes: the number keeps those away who would
-- not understand.
PRAGMA user_version = 27;
