-- 018_clock.sql - two clocks: durations run by the store's, absolute times by the wall clock.
-- `wall` is 1 where a timer or an alarm is due by the wall clock, else NULL. `shift` is how far a
-- timer's due time has moved with the store's clock since it was armed; NULL: not at all. The last
-- recorded values of the clock itself are in pawl_kept, too (what = -11).

ALTER TABLE pawl_timer ADD COLUMN wall INTEGER;
ALTER TABLE pawl_timer ADD COLUMN shift INTEGER;
DROP INDEX pawl_timer_due;
CREATE INDEX pawl_timer_due ON pawl_timer (due, inst, ord, name) WHERE test = 0 AND wall IS NULL;
CREATE INDEX pawl_timer_wall ON pawl_timer (due, inst, ord, name) WHERE test = 0 AND wall = 1;

ALTER TABLE pawl_kept ADD COLUMN wall INTEGER;
CREATE INDEX pawl_kept_store ON pawl_kept (due, id) WHERE what = -5 AND wall IS NULL;
CREATE INDEX pawl_kept_wall ON pawl_kept (due, id) WHERE what = -5 AND wall = 1;

PRAGMA user_version = 18;
