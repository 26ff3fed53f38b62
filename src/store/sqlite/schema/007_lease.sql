-- 007_lease.sql - a step that a worker elsewhere holds: its token, and how long a lease lasts. No
-- history: after a restart each lease has one full period.

ALTER TABLE pawl_step ADD COLUMN lease TEXT;
ALTER TABLE pawl_step ADD COLUMN lease_ms INTEGER;

PRAGMA user_version = 7;
