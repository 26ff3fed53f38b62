-- 026_erase.sql - what was erased. Bodies may have lost what was private (pawl_log.flags 2), erase
-- records name such bodies and instances, and there are hold records. No table changes: the number
-- keeps those away who would not understand.
PRAGMA user_version = 26;
