-- 003_queries.sql - what finds instances among millions: by definition, by label. And what
-- people read of labels and timers.

-- Rowids follow the key, so that the instances of one definition come in order of number.
CREATE INDEX pawl_instance_definition ON pawl_instance (definition);

-- Repeats pawl_instance.labels, one row for each label.
CREATE TABLE pawl_label (
    key TEXT,
    value TEXT,
    inst INTEGER,
    PRIMARY KEY (key, value, inst)
) WITHOUT ROWID;

INSERT INTO pawl_label (key, value, inst)
    SELECT e.key, e.value, i.number
    FROM pawl_instance i, json_each(CASE WHEN json_valid(i.labels) THEN i.labels END) e
    WHERE i.labels IS NOT NULL AND e.type = 'text';

CREATE VIEW pawl_labels AS
    SELECT n.id AS id,
        l.key AS key,
        l.value AS value,
        l.inst AS number
    FROM pawl_label l
    JOIN pawl_ids n ON n.number = l.inst;

-- Armed timers only: what has fired is in the history. They are written with the entry that
-- arms or disarms them, and never lag.
CREATE VIEW pawl_timers AS
    SELECT n.id AS id,
        t.name AS name,
        strftime('%Y-%m-%dT%H:%M:%fZ', t.due / 1000.0, 'unixepoch') AS due_at,
        nullif(t.ord, 0) AS step_ordinal,
        coalesce(t.test, 0) AS test,
        t.inst AS number
    FROM pawl_timer t
    JOIN pawl_ids n ON n.number = t.inst;

PRAGMA user_version = 3;
