#!/usr/bin/env python3
"""Damage a store in every way that one UPDATE can, and require that both verifiers say so.

    flip.py [--pawl PROGRAM [--by-cli] | --many VERIFY_FILE] [--store FILE] [--fuzz COUNT] [--seed N] [--verbose]

Each column of each table is flipped in several rows of a copy, and each kind of row is taken
away once; tools/verify.py and PROGRAM (asked as `PROGRAM --store sqlite:F verify --json`) must
both find it. VERIFY_FILE is one process that is asked about every copy. What is not covered is listed below, with the reason. --fuzz puts odd values into
random columns, where the two must agree, and flips random bits of the file itself: then they may
differ, but neither may crash. Without --store the file of make_store.py is used, with --by-cli one
that PROGRAM itself was made to write; without --pawl, the Python verifier is asked alone.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import make_store

verify = make_store.verify
ROWS_PER_COLUMN = 4 if os.environ.get("PAWL_TEST_LONG") else 2

# Columns that no hash and no rule covers.
UNCOVERED = {
    ("pawl_step", "lease"): "of a running step that compiler 1 made: make_store.py's are",
    ("pawl_step", "lease_ms"): "likewise",
}
# pawl_meta is keyed: these are its rows that matter. flushed may be lower than it could be.
META_COVERED = ("format", "store_id")
KEYS = {"pawl_meta": ["key"], "pawl_state": ["definition", "idx"],
        "pawl_transition": ["definition", "idx"], "pawl_step": ["inst", "ord"],
        "pawl_timer": ["inst", "ord", "name"], "pawl_label": ["key", "value", "inst"], "pawl_wait": ["inst", "ord", "name"],
        "pawl_interest": ["inst", "name"],
        "pawl_kept": ["what", "id"]}
UNKEYED = {"pawl_log": "pos", "pawl_value": "id", "pawl_source": "id", "pawl_definition": "id",
           "pawl_instance": "number", "pawl_head": "inst", "pawl_snapshot": "inst",
           "pawl_key": "id", "pawl_pause": "inst"}
TABLES = sorted(set(KEYS) | set(UNKEYED))


def place(result):
    """Position, instance and entry of the first finding; None if there is none."""
    if result["valid"]:
        return None
    return result.get("position", 0), result.get("instance_id", ""), result["first_bad"]


class Trial:
    def __init__(self, options, store, folder):
        self.pawl, self.verbose = options.pawl, options.verbose
        self.many = options.many and subprocess.Popen([options.many, "--many"], stdin=subprocess.PIPE,
                                                      stdout=subprocess.PIPE, text=True, errors="replace")
        self.store, self.copy = store, folder / "copy.db"
        self.count, self.failures = 0, []

    def fresh(self):
        for old in self.copy.parent.glob("copy.db*"):
            old.unlink()
        shutil.copy(self.store, self.copy)
        wal = self.store.with_name(self.store.name + "-wal")
        if wal.exists():
            shutil.copy(wal, self.copy.with_name("copy.db-wal"))

    def ask_python(self):
        result = verify.report(str(self.copy))
        if result["valid"] is None:
            return None, result["what"], None
        return result["valid"], verify.line(result), place(result)

    def ask_pawl(self):
        """(valid, words, place), valid None: it does not judge; a crash is never an answer."""
        done = subprocess.run([self.pawl, "--store", f"sqlite:{self.copy}", "verify", "--json"],
                              capture_output=True, text=True, errors="replace", timeout=120)
        if done.returncode not in (0, 1, 3):
            raise SystemExit(f"{self.pawl} ended with {done.returncode}:\n{done.stderr}")
        words = (done.stdout + done.stderr).strip()
        try:
            result = json.loads(done.stdout)
            return result["valid"], words, place(result)
        except (ValueError, KeyError):
            return None if done.returncode == 3 else done.returncode == 0, words, None

    def ask_many(self):
        """Like ask_pawl(); a process that crashed answers no line."""
        self.many.stdin.write(f"{self.copy}\n")
        self.many.stdin.flush()
        words = self.many.stdout.readline().strip()
        if not words:
            raise SystemExit(f"the verifier ended with {self.many.wait()} at trial {self.count}")
        result = json.loads(words)
        reason = result.get("refused", result.get("failed"))
        if reason is not None:
            return None, reason, None
        return result["valid"], words, place(result)

    def answers(self):
        yield "verify.py", *self.ask_python()
        if self.pawl:
            yield "pawl", *self.ask_pawl()
        if self.many:
            yield "verify_file", *self.ask_many()

    def end(self):
        """The process may not have leaked anything: its exit status says so."""
        if self.many:
            self.many.stdin.close()
            if self.many.wait() != 0:
                self.failures.append(f"the verifier ended with {self.many.returncode}")

    def expect(self, valid, label, same_place=False):
        self.count += 1
        places = []
        for who, found, words, where in self.answers():
            places.append(where)
            if found is not valid or not words:
                self.failures.append(f"{who} says {found}, not {valid}, of {label}: {words}")
            if self.verbose:
                print(f"# {label}\n#   {who}: {words}")
        if same_place and len(set(places)) > 1:
            self.failures.append(f"the verifiers place {label} differently: {places}")


# ---- Flips ------------------------------------------------------------------------------------


def flipped(value, bit):
    """The value with one bit changed; an absent one appears."""
    if value is None:
        return 1
    if isinstance(value, int):
        return value ^ (1 << bit)
    data = bytearray(value if isinstance(value, bytes) else value.encode())
    if not data:
        return "x" if isinstance(value, str) else b"x"
    data[len(data) // 2] ^= 1
    return bytes(data) if isinstance(value, bytes) else data.decode(errors="replace")


def keys_of(table):
    return KEYS.get(table) or [UNKEYED[table]]


def some_rows(db, table, column):
    """A few rows, with the column set if there are such: the first, the last, in the long tier two between."""
    order = ", ".join(keys_of(table))
    for condition in (f"{column} IS NOT NULL", f"{column} IS NULL"):
        rows = db.execute(
            f"SELECT {order} FROM {table} WHERE {condition} ORDER BY {order}").fetchall()
        step = max(1, (len(rows) - 1) // (ROWS_PER_COLUMN - 1))
        yield from dict.fromkeys(rows[::step][:ROWS_PER_COLUMN] + rows[-1:])


def where(table):
    return " AND ".join(f"{key} = ?" for key in keys_of(table))


def flip(trial, table, column, key):
    trial.fresh()
    db = sqlite3.connect(trial.copy, isolation_level=None)
    old = db.execute(f"SELECT {column} FROM {table} WHERE {where(table)}", key).fetchone()[0]
    for bit in (0, 20, 3):
        try:
            new = flipped(old, bit)
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where(table)}", (new, *key))
            break
        except sqlite3.IntegrityError:
            continue  # such a row is there already: another bit
    db.close()
    trial.expect(False, f"{table}.{column} of {key}: {old!r} -> {new!r}"[:200],
                 same_place=table == "pawl_log")


def flip_all(trial):
    db = sqlite3.connect(f"file:{trial.store}?mode=ro", uri=True)
    for table in TABLES:
        for column in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]:
            if (table, column) in UNCOVERED:
                continue
            for key in some_rows(db, table, column):
                if table != "pawl_meta" or key[0] in META_COVERED:
                    flip(trial, table, column, key)
    db.close()


# ---- Rows taken away, and tails -----------------------------------------------------------------


def change(trial, label, *statements):
    trial.fresh()
    db = sqlite3.connect(trial.copy, isolation_level=None)
    for sql in statements:
        db.execute(sql)
    db.close()
    trial.expect(False, label)


def literal(value):
    return f"X'{value.hex()}'" if isinstance(value, bytes) else repr(value)


def delete_rows(trial):
    db = sqlite3.connect(f"file:{trial.store}?mode=ro", uri=True)
    flushed = db.execute("SELECT value FROM pawl_meta WHERE key = 'flushed'").fetchone()[0]
    for table in TABLES:
        if table in ("pawl_meta", "pawl_snapshot"):  # a snapshot may be thrown away
            continue
        keys = keys_of(table)
        for key in some_rows(db, table, keys[0]):
            first = db.execute("SELECT min(pos) FROM pawl_log WHERE inst = ?",
                               key[:1]).fetchone()[0]
            if table == "pawl_head" and (first is None or first > flushed):
                continue  # a row that need not be there yet
            text = " AND ".join(f"{k} = {literal(v)}" for k, v in zip(keys, key))
            change(trial, f"a missing row of {table}: {key}", f"DELETE FROM {table} WHERE {text}")
    db.close()


def wider_damage(trial):
    change(trial, "a cut tail",
           "DELETE FROM pawl_log WHERE pos > (SELECT max(pos) - 4 FROM pawl_log)")
    change(trial, "a root taken away",
           "UPDATE pawl_log SET root = NULL WHERE pos = (SELECT max(pos) FROM pawl_log)")
    change(trial, "two records exchanged",
           "UPDATE pawl_log SET pos = -1 WHERE pos = 5",
           "UPDATE pawl_log SET pos = 5 WHERE pos = 6",
           "UPDATE pawl_log SET pos = 6 WHERE pos = -1")
    change(trial, "a stray value",
           "INSERT INTO pawl_value VALUES (4000000000000, x'00', x'00', x'00', 0)")
    change(trial, "a wrong value that nothing names",
           "INSERT INTO pawl_value SELECT max(id) + 1, zeroblob(32), zeroblob(16), x'00', 0"
           " FROM pawl_value")
    change(trial, "a stray instance",
           "INSERT INTO pawl_instance (number, random, definition)"
           " SELECT max(number) + 1, zeroblob(10), 1 FROM pawl_instance")
    change(trial, "a stray live row", "INSERT INTO pawl_wait VALUES (1, 9, 'nobody', NULL)")
    change(trial, "a stray interest", "INSERT INTO pawl_interest VALUES (1, '~nothing')")
    change(trial, "an interest among the waits", "INSERT INTO pawl_wait VALUES (1, 0, '~nothing', NULL)")
    change(trial, "a stray step of no instance", "INSERT INTO pawl_step VALUES (99999, 1, 1, 1, 1, NULL, NULL, NULL)")
    change(trial, "flushed too far", "UPDATE pawl_meta SET value = 1 << 40 WHERE key = 'flushed'")
    change(trial, "a source of nobody",
           "INSERT INTO pawl_source SELECT max(id) + 1, x'%s', x'61' FROM pawl_source"
           % verify.sha(b"a").hex())
    change(trial, "a source of nobody that is wrong as well",
           "INSERT INTO pawl_source SELECT max(id) + 1, zeroblob(32), x'61' FROM pawl_source")
    trial.fresh()
    db = sqlite3.connect(trial.copy, isolation_level=None)
    make_store.erase(db, 2)
    db.close()
    trial.expect(False, "an erased value that no erase record names")
    change(trial, "half an erasure", "UPDATE pawl_value SET salt = NULL WHERE id = 1")
    change(trial, "an erasure that left no commitment",
           "UPDATE pawl_value SET commitment = NULL, salt = NULL, bytes = NULL WHERE id = 2")
    change(trial, "a value that nothing names, with nothing in it",
           "INSERT INTO pawl_value SELECT max(id) + 1, NULL, NULL, NULL, 0 FROM pawl_value")
    change(trial, "a value that nothing names, with half a salt",
           "INSERT INTO pawl_value SELECT max(id) + 1, NULL, x'00', x'00', 0 FROM pawl_value")


def strange_files(trial):
    """What is no store of a known version is neither valid nor invalid: both end with 3."""
    for label, sql in (("no schema", "PRAGMA user_version = 0"),
                       ("tables without views, that are there", "PRAGMA user_version = 1"),
                       ("a newer schema", "PRAGMA user_version = 1000"),
                       ("a negative schema", "PRAGMA user_version = -1"),
                       ("another application", "PRAGMA application_id = 7")):
        trial.fresh()
        db = sqlite3.connect(trial.copy, isolation_level=None)
        db.execute(sql)
        db.close()
        trial.expect(None, label)
    trial.fresh()
    trial.copy.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    trial.expect(None, "no database")


def harmless(trial):
    """What must not be called wrong: it is how owners and erasure work."""
    for label, act in (
            ("flushed lower than it could be",
             lambda db: db.execute("UPDATE pawl_meta SET value = 0 WHERE key = 'flushed'")),
            ("no snapshots", lambda db: db.execute("DELETE FROM pawl_snapshot"))):
        trial.fresh()
        db = sqlite3.connect(trial.copy, isolation_level=None)
        db.execute("PRAGMA wal_autocheckpoint = 0")
        act(db)
        trial.expect(True, label)  # while the writer is there, and its WAL not yet in the file
        db.close()


# ---- Wild values ------------------------------------------------------------------------------

WILD = (None, 0, 1, -1, 2, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63), 1.5, "x", "", b"",
        b"\xff\0", "1", b"0" * 32, bytes(16), "[]", "{}", "[[1]]")


def wild(trial, count, seed):
    """Any value anywhere, the uncovered columns apart: the verifiers must agree."""
    dice = random.Random(seed)
    source = sqlite3.connect(f"file:{trial.store}?mode=ro", uri=True)
    for _ in range(count):
        trial.fresh()
        db = sqlite3.connect(trial.copy, isolation_level=None)
        table = dice.choice([t for t in TABLES if t not in ("pawl_meta", "pawl_snapshot")])
        column = dice.choice([row[1] for row in source.execute(f"PRAGMA table_info({table})")])
        keys = ", ".join(keys_of(table))
        rows = source.execute(f"SELECT {keys} FROM {table}").fetchall()
        value = dice.choice(WILD)
        if (table, column) in UNCOVERED or not rows:
            continue
        key = dice.choice(rows)
        try:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where(table)}", (value, *key))
        except sqlite3.IntegrityError:
            continue
        finally:
            db.close()
        trial.count += 1
        found = {who: (valid, words) for who, valid, words, _ in trial.answers()}
        if len({valid for valid, _ in found.values()}) > 1:
            trial.failures.append(f"they differ on {table}.{column} of {key} = {value!r}: {found}")
    source.close()


# ---- Damage below SQL -------------------------------------------------------------------------


def fuzz(trial, count, seed):
    dice = random.Random(seed)
    for _ in range(count):
        trial.fresh()
        data = bytearray(trial.copy.read_bytes())
        for _ in range(dice.choice((1, 1, 2, 8, 64))):
            data[dice.randrange(100, len(data))] ^= 1 << dice.randrange(8)
        trial.copy.write_bytes(data)
        trial.count += 1
        for _ in trial.answers():
            pass


# ---- A store made by the command line -----------------------------------------------------------

ORDER = """name: order
states: [new, paid, shipped, dropped]
initial_state: new
terminal_states: [shipped, dropped]
terminal_kinds: {shipped: success, dropped: cancel}
transitions:
  - {from_state: new, action: pay, to_state: paid}
  - {from_state: new, action: drop, to_state: dropped}
  - {from_state: paid, action: refund, to_state: new}
  - {from_state: paid, action: ship, to_state: shipped}
"""
WAITING = """name: waiting
steps:
  start: {name: nap, tool: sleep, args: {for: 72h}, next: end}
  end: {tool: log, args: {message: done}, done: true}
"""
WORKING = """name: working
steps:
  start: {name: take, tool: set, args: {n: "{{input.n}}"}, next: nap}
  nap: {tool: sleep, args: {for: 1ms}, next: give}
  give: {tool: set, args: {got: "{{steps.take.result.n}}"}, done: true}
"""


def make_by_cli(pawl, folder):
    store = folder / "made.db"

    def run(*words):
        subprocess.run([pawl, "--store", f"sqlite:{store}", *words], check=True,
                       capture_output=True, timeout=60)

    for name, text in (("order", ORDER), ("waiting", WAITING)):
        (folder / f"{name}.yaml").write_text(text)
        run("define", str(folder / f"{name}.yaml"))
    run("start", "order", "--input", '{"n": 1.50}', "--actor", "ann")
    for action in ("pay", "refund") * 33 + ("pay", "ship"):
        run("fire", "@last", action, "--actor", "bob")
    run("start", "order", "--key", "a second one")
    run("start", "order", "--key", "a second one")
    run("start", "waiting", "--input", "{}")
    (folder / "working.yaml").write_text(WORKING)
    run("run", str(folder / "working.yaml"), "--input", '{"n": [1, "two"]}', "--actor", "eve")
    return store


def main():
    parser = argparse.ArgumentParser(description="Flip every column of a store.")
    parser.add_argument("--pawl", help="the program whose verify is asked")
    parser.add_argument("--many", help="a verifier that is given the files one by one")
    parser.add_argument("--by-cli", action="store_true", help="let that program make the store")
    parser.add_argument("--store", help="a store file that is not in use")
    parser.add_argument("--fuzz", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        by_hand = not options.store and not options.by_cli
        if options.by_cli:
            store = make_by_cli(options.pawl, folder)
        else:
            store = pathlib.Path(options.store) if options.store else folder / "made.db"
        if by_hand:
            make_store.main(str(store))
        trial = Trial(options, store, folder)
        trial.fresh()
        trial.expect(True, "the store as it is")
        if not trial.failures:
            flip_all(trial)
            delete_rows(trial)
            if by_hand:
                wider_damage(trial)
                harmless(trial)
                strange_files(trial)
            wild(trial, options.fuzz, options.seed)
            fuzz(trial, options.fuzz, options.seed)
        trial.end()
    for failure in trial.failures:
        print(f"not ok - {failure}")
    print(f"{trial.count} trials, {len(trial.failures)} failures")
    return 1 if trial.failures else 0


if __name__ == "__main__":
    sys.exit(main())
