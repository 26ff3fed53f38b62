#!/usr/bin/env python3
"""poll.py - how long the poll query on workflow_steps takes, by the number of entries.

    bench/poll.py [ENTRIES [READY]]     2,000,000 entries and 10 ready steps by default; needs a minute and
                                        300 MB in $TMPDIR

Rows are written as the engine writes them for a flow that loops, without hashes: views do not read those.
Each ready step is of an instance of its own. Prints the time of the poll query, and its ratio to one read of the live rows (pawl_step) in the same run.
"""
import pathlib
import sqlite3
import sys
import tempfile
import time

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "src/store/sqlite/schema"
POLL = "SELECT id FROM workflow_steps WHERE status='ready' ORDER BY ready_at LIMIT 50"
LIVE = "SELECT inst, ord FROM pawl_step WHERE status = 1 LIMIT 50"
STARTED, COMPLETED, CREATED = 1, 2, -1


def rows(instance, first, entries):
    """(pos, inst, seq, prev, what, at, body) of a flow whose one step is made again and again."""
    yield first, instance, 0, 0, CREATED, 0, None
    yield first + 1, instance, 1, first, 0, 1, b"[[1,0]]"
    for seq in range(2, entries + 1):
        ordinal, is_start = seq // 2, seq % 2 == 0
        body = b"[-%d]" % ordinal if is_start else b"[%d,[%d,0]]" % (ordinal, ordinal + 1)
        yield first + seq, instance, seq, first + seq - 1, STARTED if is_start else COMPLETED, seq, body


def make(path, entries, instances=10):
    db = sqlite3.connect(path)
    for part in sorted(SCHEMA.glob("*.sql")):
        db.executescript(part.read_text())
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("INSERT INTO pawl_definition (id, name, version, kind, compiled) VALUES (1, 'loop', 1, 2, ?)",
               ('{"initial":0,"plan":{"steps":[{"name":"a","tool":"far"}]}}',))
    each, pos = entries // instances | 1, 1  # odd: the last step of each is ready
    for number in range(1, instances + 1):
        db.execute("INSERT INTO pawl_instance (number, random, definition, created_pos) VALUES (?, zeroblob(10), 1, ?)", (number, pos))
        db.executemany("INSERT INTO pawl_log (pos, inst, seq, prev, what, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)", rows(number, pos, each))
        pos += each
        db.execute("INSERT INTO pawl_head VALUES (?, ?, 1, ?)", (number, each, pos))
        db.execute("INSERT INTO pawl_step (inst, ord, plan, attempt, status, ready_at) VALUES (?, ?, 0, 1, 1, ?)",
                   (number, each // 2 + 1, each))
        pos += 1
    db.execute("INSERT OR REPLACE INTO pawl_meta VALUES ('flushed', ?)", (pos,))
    db.commit()
    return db


def median_ms(db, query, count=5):
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        found = db.execute(query).fetchall()
        times.append(1000 * (time.perf_counter() - begun))
    return sorted(times)[count // 2], len(found)


def main():
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    ready = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory() as folder:
        db = make(folder + "/poll.db", entries, ready)
        (poll, found), (live, _) = median_ms(db, POLL), median_ms(db, LIVE)
        print("%d entries, %d ready: %d steps in %.2f ms, %.0f times a read of their rows (%.3f ms)" % (entries, ready, found, poll, poll / live, live))


if __name__ == "__main__":
    main()
