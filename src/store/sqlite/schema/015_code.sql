-- 015_code.sql - code instances with the place where they wait and their variables (E22): what the last entry says that changed them.

CREATE VIEW pawl_code AS
    WITH found AS (
        SELECT c.number AS number,
            (WITH RECURSIVE back (prev, state) AS (
                 SELECT c.pos, NULL
                 UNION ALL
                 SELECT l.prev,
                     CASE WHEN l.what >= 0 AND l.body IS NOT NULL THEN
                         (SELECT json_extract(e.value, '$[1]') FROM json_each(CAST(l.body AS TEXT)) e
                          WHERE e.type = 'array' AND json_extract(e.value, '$[0]') = 'state') END
                 FROM back b JOIN pawl_log l ON l.pos = b.prev
                 WHERE b.state IS NULL)
             SELECT state FROM back WHERE state IS NOT NULL) AS state
        FROM pawl_current c
        JOIN pawl_definition d ON d.id = c.definition AND d.kind = 3)
    SELECT i.id AS id,
        i.number AS number,
        i.definition AS definition,
        i.version AS version,
        i.status AS status,
        json_extract(f.state, '$.phase') AS phase,
        f.state AS state,
        i.subject_ref AS subject_ref,
        i.correlation_id AS correlation_id
    FROM found f JOIN pawl_instances i ON i.number = f.number;

PRAGMA user_version = 15;
