#!/usr/bin/env python3
"""run_sql.py - the SQL of a store in PostgreSQL is what its distributed relatives have as well: nothing that is slow under load or
missing in one of them (docs/internals/cluster.md says which were tried)."""
import re
import sys

from sentences import ROOT, main

sys.dont_write_bytecode = True
STORE = ROOT / "src/store/postgres"

# What is missing somewhere, or makes a hot spot, or joins shards.
REFUSED = {
    "a sequence or an identity column": r"nextval|currval|setval|\bserial\b|bigserial|\bsequence\b|generated\s+(always|by\s+default)",
    "LISTEN or NOTIFY": r"\blisten\b|\bnotify\b|pg_notify",
    "an advisory lock": r"advisory",
    "COPY": r"\bcopy\s+\w+\s*(\(|from|to)",
    "SKIP LOCKED": r"skip\s+locked|\bnowait\b",
    "ctid": r"\bctid\b|\bxmin\b",
    "a trigger, a function or a rule": r"create\s+(or\s+replace\s+)?(trigger|function|procedure|rule)|plpgsql|\bdo\s+\$",
    "a foreign key": r"\breferences\b|foreign\s+key",
    "another isolation level": r"serializable|repeatable\s+read",
    "a lock of a whole table": r"lock\s+table|\btruncate\b",
    "MERGE": r"\bmerge\s+into\b",
    "what depends on the time in RETURNING": r"returning[^;]*(now\(\)|clock_timestamp|current_timestamp)",
    "a column with an interval added to it, in an UPDATE or DELETE": r"(update|delete)\s[^;]*\bbeat\s*[+]",
}
STATEMENT = re.compile(r"^(select|insert|update|delete|with|create|alter|drop|set|begin|commit|declare|fetch)\b", re.I)
# pawl_store and pawl_node are the same for all shards.
FOR_ALL = {"pawl_store", "pawl_node"}


def statements_of(text):
    """What C code has as text and that begins as SQL does: neighbours are one, defined words are put in."""
    code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
    defined = dict(re.findall(r"^#define (\w+)(?:\(\w+\))?[ \t]+(\"[^\n]*)$", code, flags=re.M))
    for _ in range(3):
        for name, words in defined.items():
            code = re.sub(r"\b%s\b(?=\s*[\";,(])" % name, lambda found, words=words: words, code)
    runs = re.findall(r"(?:\"(?:[^\"\\\n]|\\.)*\"\s*)+", code)
    joined = ["".join(re.findall(r"\"((?:[^\"\\\n]|\\.)*)\"", run)) for run in runs]
    return [text for text in joined if STATEMENT.match(text)]


def schema():
    return {path.name: re.sub(r"--.*", "", path.read_text()) for path in sorted((STORE / "schema").glob("*.sql"))}


def sources():
    found = {path.name: statements_of(path.read_text()) for path in sorted(STORE.glob("*.c"))}
    found.update({name: [part.strip() for part in text.split(";")] for name, text in schema().items()})
    return found


def faults(text):
    return [name for name, pattern in REFUSED.items() if re.search(pattern, text, flags=re.I | re.S)]


def test_no_statement_uses_what_a_relative_of_postgresql_has_not():
    count, wrong = 0, []
    for name, statements in sources().items():
        count += len(statements)
        wrong += ["%s: %s: %s" % (name, fault, text[:100]) for text in statements for fault in faults(text)]
    assert not wrong, "\n".join(wrong)
    assert count > 120, "only %d statements were found" % count


def keys_without_shard(text):
    """Of tables that belong to shards: each key and each index begins with it."""
    wrong = []
    for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", text, flags=re.S):
        keys = re.findall(r"^\s*(\w+)[^,\n]*\bPRIMARY KEY\b|PRIMARY KEY \((\w+)", body, flags=re.M)
        first = [a if a and a != "PRIMARY" else b for a, b in keys]
        if table not in FOR_ALL and first != ["shard"]:
            wrong.append("%s has the key %s" % (table, first))
        if re.search(r"\bUNIQUE\b", body):
            wrong.append("%s has a UNIQUE constraint" % table)
    for name, table, column in re.findall(r"INDEX (\w+) ON (\w+) \((\w+)", text):
        if table not in FOR_ALL and column != "shard":
            wrong.append("%s begins with %s" % (name, column))
    return wrong


def test_every_key_and_index_begins_with_the_shard():
    text = "".join(schema().values())
    assert text.count("CREATE TABLE") > 15
    assert not keys_without_shard(text), keys_without_shard(text)


def test_what_is_refused_is_found_where_it_is_written():
    for text in ("SELECT nextval('a')", "LISTEN a", "SELECT pg_advisory_lock(1)", "COPY a FROM STDIN", "SELECT 1 FOR UPDATE SKIP LOCKED",
                 "DELETE FROM a WHERE ctid = $1", "CREATE FUNCTION a()", "CREATE TABLE a (b int REFERENCES c)",
                 "BEGIN ISOLATION LEVEL SERIALIZABLE", "LOCK TABLE a", "UPDATE a SET b = 1 RETURNING now()",
                 "UPDATE pawl_node SET state = 3 WHERE beat + ttl_ms * interval '1 ms' < now()"):
        assert faults(text), text
    assert statements_of('#define A "UPDATE a"\nx = A " SET b"\n    " = 1"; y = "no statement";')[-1] == "UPDATE a SET b = 1"
    assert keys_without_shard("CREATE TABLE a (\n    id int,\n    PRIMARY KEY (id, shard)\n)")
    assert keys_without_shard("CREATE TABLE a (\n    id int PRIMARY KEY\n)")
    assert keys_without_shard("CREATE INDEX i ON pawl_log (pos);")


if __name__ == "__main__":
    main(globals())
