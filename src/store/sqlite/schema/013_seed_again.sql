-- 013_seed_again.sql - seed 001's steps over pawl_attempted, so that a step has the right name behind an amend.
-- Not in a host's file, like 009_seed.sql.
DROP VIEW workflow_steps;

CREATE VIEW workflow_steps AS
    SELECT number * 4294967296 + ord AS id,
        updated_at,
        number AS workflow_id,
        json_extract(declared, '$.name') AS name,
        json_extract(declared, '$.tool') AS tool,
        json_extract(declared, '$.args') AS args_json,
        outcome AS result_json,
        status,
        attempt,
        ready_at,
        started_at,
        completed_at
    FROM pawl_attempted;

PRAGMA user_version = 13;
