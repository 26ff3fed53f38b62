#!/usr/bin/env python3
"""Change each column of each table, rows of each shape, and each object of the schema of a rich store, as an attacker
who knows the format would, and require that both verifiers see each change.

    forger.py --pawl PROGRAM --many VERIFY_FILE [--verbose]

Tables and columns are read from SQLite, so new ones are tried automatically. Where a column is repeated elsewhere, the
other place is changed too, and what plain SQL can hash again on the spot (a value, a text, the record itself) is hashed
again; the records behind it and the roots are not (run_verify.py has a forger who hashes all of it). A column is tried in
all its ways in the first row that has it, and in fewer in the first row of each shape; with PAWL_TEST_LONG=1 in all. The
last three lines are "N columns tried, M unseen", and the same of tables and objects.
"""
import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import forge  # noqa: E402
import rich  # noqa: E402

verify = forge.verify

LONG = os.environ.get("PAWL_TEST_LONG") == "1"
SEED = int(os.environ.get("PAWL_TEST_SEED", "0"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_of_" + path.parent.name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- Asking -------------------------------------------------------------------------------------


class Trial:
    def __init__(self, store, folder, many, verbose):
        self.store, self.folder, self.verbose = store, folder, verbose
        self.many = subprocess.Popen([many, "--many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True, errors="replace")
        self.tried, self.unseen = {}, {}

    def open(self):
        self.path = self.folder / "forged.db"
        for old in self.folder.glob("forged.db*"):
            old.unlink()
        shutil.copy(self.store, self.path)
        return sqlite3.connect(self.path, isolation_level=None)

    def ask(self):
        """What each verifier says, at the same time: valid or not."""
        self.many.stdin.write(f"{self.path}\n")
        self.many.stdin.flush()
        found = verify.report(str(self.path))
        return {"verify.py": found, "pawl": json.loads(self.many.stdout.readline())}

    def judge(self, what, label):
        self.tried.setdefault(what, 0)
        self.tried[what] += 1
        answers = self.ask()
        missed = [who for who, answer in answers.items() if answer["valid"]]
        if missed:
            self.unseen.setdefault(what, []).append(f"{label}: not seen by {', '.join(missed)}")
        if self.verbose:
            print(f"# {label}: {[a.get('what') for a in answers.values()]}")


# ---- Columns ------------------------------------------------------------------------------------


def tables(db):
    return [name for name, in db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'pawl\\_%' ESCAPE '\\' ORDER BY name")]


def columns(db, table):
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def key_columns(db, table):
    found = sorted((row[5], row[1]) for row in db.execute(f"PRAGMA table_info({table})") if row[5])
    return [name for _, name in found]


# What tells rows of a table apart: a change of each must be seen. Others: only whether a column is set.
SHAPES = {
    "pawl_child": "abandon, ended",
    "pawl_definition": "kind, name IS NULL",
    "pawl_head": "inst = 0",
    "pawl_interest": "instr(name, '=') > 0",
    "pawl_instance": "(SELECT kind FROM pawl_definition d WHERE d.id = definition), test",
    "pawl_kept": "what, CASE what WHEN -11 THEN id END, firing IS NULL, wall",
    "pawl_log": "CASE WHEN what < 0 THEN what ELSE (SELECT kind FROM pawl_instance JOIN pawl_definition d ON d.id ="
                " definition WHERE number = inst) END",
    "pawl_meta": "key",
    "pawl_step": "status, lease IS NULL",
    "pawl_timer": "test, wall, shift IS NULL, ord = 0",
    "pawl_value": "bytes IS NULL, commitment IS NULL, interned, id IN (SELECT actor FROM pawl_log)",
    "pawl_wait": "value IS NULL, ord = 0",
}


def rows_of(db, table, column):
    """(key, value) of some rows: the first and the last that are set, the last that is not, the first of each shape."""
    keys = ", ".join(key_columns(db, table))
    found = {}
    for condition in ("IS NOT NULL", "IS NULL"):
        rows = db.execute(f"SELECT {column}, {keys} FROM {table} WHERE {column} {condition} ORDER BY {keys}").fetchall()
        for row in (rows[:1] if condition == "IS NOT NULL" else []) + rows[-1:]:
            found.setdefault(row[1:], row[0])
    return [*found.items(), *(item for item in shapes_of(db, table, column) if item[0] not in found)]


def shapes_of(db, table, column):
    """(key, value) of the first row of each shape."""
    keys = key_columns(db, table)
    group = f"PARTITION BY {SHAPES[table]}" if table in SHAPES else ""
    rows = db.execute(f"SELECT {column} AS it, {', '.join(keys)} FROM (SELECT *, row_number() OVER"
                      f" ({group} ORDER BY {', '.join(keys)}) AS nth FROM {table}) WHERE nth = 1").fetchall()
    return [(row[1:], row[0]) for row in rows]


def candidates(db, table, column, old):
    """Other values that the column could have."""
    yield None
    if isinstance(old, int):
        yield from (old + 1, str(old) + "x", float(old) + 0.5)
    elif isinstance(old, str):
        yield from (old + "x", old.encode(), 7)
    elif isinstance(old, bytes):
        yield from (bytes([old[0] ^ 1]) + old[1:] if old else b"x", old.decode("latin-1"), 7)
    else:
        yield from (1, "x", b"x")
    others = [row[0] for row in db.execute(
        f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL AND {column} IS NOT ? LIMIT 1", (old,))]
    yield from others


def counts_the_same(old, new):
    """An absent number is NULL and counts as 0."""
    return old == new and type(old) is type(new) or {old or 0, new or 0} == {0} and not isinstance(new, (str, bytes))


def where(db, table):
    return " AND ".join(f"{key} IS ?" for key in key_columns(db, table))


def is_harmless(db, table, column, key, old, new):
    if table == "pawl_log" and column == "fired" and (old is None or new is None):
        return False
    if table == "pawl_value" and column == "commitment" and new is None:  # it follows from salt and bytes
        return db.execute("SELECT bytes IS NOT NULL FROM pawl_value WHERE id IS ?", key).fetchone()[0]
    if table == "pawl_meta":
        if key[0] == "flushed" and column == "value":  # it says up to where head rows are valid: a lower one is still true
            return new is None or isinstance(new, int) and 0 <= new <= old
        if key[0] == "flushed" and column == "key":
            return False
    return False


def forge_one(trial, table, column, key, old, new):
    db = trial.open()
    try:
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {where(db, table)}", (new, *key))
        Consistent(db).after(table, column, key, new)
    except sqlite3.IntegrityError:
        return  # the schema itself does not take it
    finally:
        db.close()
    trial.judge(f"{table}.{column}", f"{table}.{column} of {key}: {old!r} -> {new!r}"[:160])


def swap(trial, table, column, one, other):
    db = trial.open()
    try:
        for key, value in ((one[0], other[1]), (other[0], one[1])):
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where(db, table)}", (value, *key))
            Consistent(db).after(table, column, key, value)
    except sqlite3.IntegrityError:
        return
    finally:
        db.close()
    trial.judge(f"{table}.{column}", f"{table}.{column}: {one[0]} and {other[0]} exchanged"[:160])


def ways_of(db, table, column, key, old, nth):
    """Values to try in the nth row: all in the first and one in others, unless there is time for all. Of the many
    shapes of rows every eighth is tried in a column (of records, whose hashes are checked alike, every 16th), and
    others in the next column and on the next day."""
    ways = [new for new in candidates(db, table, column, old)
            if not counts_the_same(old, new) and not is_harmless(db, table, column, key, old, new)]
    if LONG:
        return ways
    if nth == 0:  # of values of a wrong type one is enough
        wrong = [new for new in ways if new is not None and old is not None and type(new) is not type(old)]
        return [new for new in ways if new not in wrong[1:]]
    if nth > 2 and (nth + columns(db, table).index(column) + SEED) % (16 if table == "pawl_log" else 8):
        return []
    return ways[(nth + (SEED if nth > 2 else 0)) % 2:][:1]  # some values a key's index refuses


def try_columns(trial):
    db = sqlite3.connect(f"file:{trial.store}?mode=ro", uri=True)
    for table in tables(db):
        for column in columns(db, table):
            rows = rows_of(db, table, column)
            trial.tried.setdefault(f"{table}.{column}", 0)
            for nth, (key, old) in enumerate(rows):
                for new in ways_of(db, table, column, key, old, nth):
                    forge_one(trial, table, column, key, old, new)
            pairs = [(a, b) for a in rows for b in rows if a[0] < b[0] and not counts_the_same(a[1], b[1])
                     and column not in key_columns(db, table)] if not column.startswith("key") else []
            for one, other in pairs[:None if LONG else 1]:
                if table != "pawl_meta":
                    swap(trial, table, column, one, other)
    db.close()


# ---- Rows ---------------------------------------------------------------------------------------

META_MORE = [("test_now", 1), ("created_at", 1), ("schema", 18), ("more", 1)]


def may_be_absent(table, key):
    """Is a row of this table allowed to be absent? Snapshots can be made again from the entries."""
    return table == "pawl_snapshot" or table == "pawl_meta" and key == ("flushed",)


def try_rows(trial):
    """A row of each shape is deleted, and a row is added that is a copy of another but for its key."""
    db = sqlite3.connect(f"file:{trial.store}?mode=ro", uri=True)
    for table in tables(db):
        keys = key_columns(db, table)
        for key, _ in shapes_of(db, table, keys[0]):
            if not may_be_absent(table, key):
                change_row(trial, table, f"{table} without {key}", f"DELETE FROM {table} WHERE {where(db, table)}", key)
            if table not in ("pawl_meta", "pawl_value"):  # run_verify.py adds values
                add_copy(trial, db, table, keys, key)
    for row in META_MORE:
        change_row(trial, "pawl_meta", f"pawl_meta with {row}", "INSERT INTO pawl_meta VALUES (?, ?)", row)
    db.close()


def add_copy(trial, db, table, keys, key):
    names = columns(db, table)
    row = dict(zip(names, db.execute(f"SELECT * FROM {table} WHERE {where(db, table)}", key).fetchone()))
    last = keys[-1]
    row[last] = db.execute(f"SELECT max({last}) FROM {table}").fetchone()[0]
    row[last] = row[last] + 1 if isinstance(row[last], int) else row[last] + (b"x" if isinstance(row[last], bytes) else "x")
    if table == "pawl_source":
        row["bytes"] += b" "
        row["sha256"] = hashlib.sha256(row["bytes"]).digest()
    change_row(trial, table, f"{table} with a copy of {key}", f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})",
               tuple(row.values()))


def change_row(trial, table, label, sql, values):
    db = trial.open()
    try:
        db.execute(sql, values)
    except sqlite3.IntegrityError:
        return
    finally:
        db.close()
    trial.judge(table, label[:160])


class Consistent:
    """Changes what follows from a change."""

    def __init__(self, db):
        self.db = db

    def after(self, table, column, key, new):
        act = getattr(self, f"after_{table}", None)
        if act:
            act(column, key, new)

    def after_pawl_value(self, column, key, new):
        """A value and its commitment; one that loses its bytes keeps the commitment, as erasing leaves it."""
        row = self.db.execute("SELECT salt, bytes, commitment FROM pawl_value WHERE id IS ?", key).fetchone()
        if column not in ("bytes", "salt") or row is None:
            return
        if new is None:
            self.db.execute("UPDATE pawl_value SET commitment = ?, salt = NULL, bytes = NULL WHERE id IS ?",
                            (self.old_commitment(key), *key))
        elif row[2] is not None and isinstance(row[0], bytes) and isinstance(row[1], bytes):
            self.db.execute("UPDATE pawl_value SET commitment = ? WHERE id IS ?",
                            (hashlib.sha256(row[0] + row[1]).digest(), *key))

    def old_commitment(self, key):
        """The commitment in the unchanged store."""
        path = pathlib.Path(self.db.execute("PRAGMA database_list").fetchone()[2]).parent / "store.db"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as old:
            commitment, salt, data = old.execute("SELECT commitment, salt, bytes FROM pawl_value WHERE id IS ?", key).fetchone()
        data = data.encode() if isinstance(data, str) else data
        return commitment or hashlib.sha256(salt + data).digest()

    def after_pawl_source(self, column, key, new):
        if column == "bytes" and isinstance(new, bytes):
            self.db.execute("UPDATE pawl_source SET sha256 = ? WHERE id IS ?", (hashlib.sha256(new).digest(), *key))

    def after_pawl_definition(self, column, key, new):
        if column == "compiled" and isinstance(new, str):
            self.db.execute("UPDATE pawl_definition SET compiled_sha256 = ? WHERE id IS ?",
                            (hashlib.sha256(new.encode()).digest(), *key))

    def after_pawl_instance(self, column, key, new):
        """Its labels, and the record that created it."""
        number = key[0]
        if column == "labels":
            self.db.execute("DELETE FROM pawl_label WHERE inst = ?", (number,))
            try:
                items = json.loads(new).items() if new else ()
                self.db.executemany("INSERT INTO pawl_label VALUES (?, ?, ?)", [(k, v, number) for k, v in items])
            except (ValueError, AttributeError, TypeError, sqlite3.Error):
                pass
        if column in ("instantiated_at", "creator"):
            self.db.execute(f"UPDATE pawl_log SET {'fired' if column == 'instantiated_at' else 'actor'} = ?"
                            " WHERE inst = ? AND what = -1", (new, number))

    def after_pawl_log(self, column, key, new):
        """Its keys' rows and its instance's row; and the record's own hash."""
        pos = key[0]
        if column == "at":
            self.db.execute("UPDATE pawl_key SET at = ? WHERE pos = ?", (new, pos))
        if column == "fired":
            self.db.execute("UPDATE pawl_instance SET instantiated_at = ? WHERE created_pos = ?", (new, pos))
        if column == "actor":
            self.db.execute("UPDATE pawl_instance SET creator = ? WHERE created_pos = ?", (new, pos))
        if column != "hash":
            self.hash_record(pos)

    def hash_record(self, pos):
        self.db.text_factory = bytes
        try:
            digest = record_hash(self.db, pos)
            self.db.execute("UPDATE pawl_log SET hash = ? WHERE pos = ?", (digest, pos))
        except (verify.Bad, TypeError, ValueError, KeyError, AttributeError, OverflowError):
            pass  # a record that cannot be hashed is left as it is
        finally:
            self.db.text_factory = str


def record_hash(db, pos):
    """The hash of the record at `pos`, from its present row."""
    reader = forge.reader_of(db)
    row = db.execute(f"SELECT {', '.join(reader.COLUMNS)} FROM pawl_log WHERE pos = ?", (pos,)).fetchone()
    record = {name: value or 0 if name not in ("fired", "body", "key", "root") else value
              for name, value in zip(reader.COLUMNS, row)}
    record["fired"] = record["at"] if record["fired"] is None else record["fired"]
    before = db.execute("SELECT hash FROM pawl_log WHERE pos = ?", (record["prev"],)).fetchone()
    body = reader.create(record) if record["what"] == verify.CREATE else record["body"]
    id_text = reader.id_of(record["inst"]) if record["inst"] else verify.STORE_ID_TEXT
    return verify.record_hash(
        before[0] if before else verify.NO_HASH, id_text, record["seq"], record["what"], record["at"], record["fired"],
        record["step"], record["ord"], record["attempt"], record["flags"], reader.commitment(record["actor"], "actor"),
        reader.commitment(record["payload"], "payload"), reader.commitment(record["reason"], "reason"), body, record["key"])


# ---- Objects of the schema ----------------------------------------------------------------------


def object_changes(kind, name, table, sql):
    yield "dropped", [f"DROP {kind} {name}"]
    if kind == "view":
        yield "shows something else", [f"DROP VIEW {name}", f"{sql} LIMIT 1000000"]
        yield "with a trigger", [f"CREATE TRIGGER spy INSTEAD OF INSERT ON {name} BEGIN SELECT 1; END"]
    if kind == "index":
        yield "over something else", [f"DROP INDEX {name}", f"CREATE INDEX {name} ON {table} (1)"]
    if kind == "table":
        yield "with a column more", [f"ALTER TABLE {name} ADD COLUMN more"]
        yield "with a trigger", [f"CREATE TRIGGER spy AFTER INSERT ON {name} BEGIN SELECT 1; END"]


def try_objects(trial):
    db = sqlite3.connect(f"file:{trial.store}?mode=ro", uri=True)
    objects = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").fetchall()
    db.close()
    for kind, name, table, sql in objects:
        for label, statements in object_changes(kind, name, table, sql):
            change_objects(trial, f"{kind} {name}", f"{kind} {name} {label}", statements)
    change_objects(trial, "table pawl_more", "a table more", ["CREATE TABLE pawl_more (a)"])
    change_objects(trial, "view pawl_more", "a view more", ["CREATE VIEW pawl_more AS SELECT 1"])
    change_objects(trial, "index pawl_more", "an index more", ["CREATE INDEX pawl_more ON pawl_log (at)"])
    change_objects(trial, "index more", "an index of another name", ["CREATE INDEX more ON pawl_log (at)"])


def change_objects(trial, what, label, statements):
    db = trial.open()
    db.execute("PRAGMA legacy_alter_table = ON")
    for statement in statements:
        db.execute(statement)
    db.close()
    trial.judge(what, label)


# ---- All of it ----------------------------------------------------------------------------------


def report(kind, trial):
    for what, lines in trial.unseen.items():
        for line in lines:
            print(f"not ok - {line}")
    untried = [what for what, count in trial.tried.items() if count == 0]
    if untried:
        print(f"not ok - no row of the store has these, or no change of them was taken: {untried}")
    print(f"{len(trial.tried)} {kind} tried in {sum(trial.tried.values())} ways, {len(trial.unseen)} unseen")
    return not trial.unseen and not untried


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pawl", required=True)
    parser.add_argument("--many", required=True)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        store = folder / "store.db"
        shutil.copy(rich.make(options.pawl, pathlib.Path(options.many).resolve().parent.parent, folder, load), store)
        good = True
        for kind, act in (("columns", try_columns), ("tables", try_rows), ("objects", try_objects)):
            trial = Trial(store, folder, options.many, options.verbose)
            trial.open().close()
            answers = trial.ask()
            if not all(answer["valid"] for answer in answers.values()):
                sys.exit(f"the store as it is: {answers}")
            act(trial)
            good = report(kind, trial) and good
            trial.many.stdin.close()
            if trial.many.wait() != 0:
                raise SystemExit(f"the verifier ended with {trial.many.returncode}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
