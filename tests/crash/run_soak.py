#!/usr/bin/env python3
"""run_soak.py [SECONDS]: kill -9 of a server and of its workers at random, under load (issue 5, section 4; B15, B24, B26, B28-B34,
C31, C34; the defects D3-D8 of seed 001 in RELIABILITY.md).

Clients create flows and code and send signals; workers of clients/python claim, fail now and then, and answer; a server owns the store. Any of them
may die at any time and comes back. When it is over, every instance has reached its end, each accepted result is recorded once, joins
happened once, no step was tried more often than it says, no timer fired early, twice or too seldom and none is left, and two verifiers find the store whole.
Schedules had each slot once, no limit was exceeded, and what retention moved is whole in the archive, none before its time (issue 23). A few
seconds here, 30 minutes with PAWL_TEST_LONG; script/soak 300 for more."""
import datetime
import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "clients" / "python"))
import rig  # noqa: E402
from pawl_client import Pawl, PawlError  # noqa: E402

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 1800 if rig.LONG else 6
SEED = int(os.environ.get("PAWL_SOAK_SEED", random.randrange(1 << 32)))
WORKERS, CLIENTS = 2, 2
PATIENCE_S = 180

AGAIN = "retry: {max: 1000, backoff: [20ms]}"
GRAPH = """name: soak-graph
steps:
  start: {name: split, tool: soak_work, %(again)s, parallel: [a, b, nap, quick]}
  a: {tool: soak_work, %(again)s, next: a2}
  a2: {tool: soak_work, %(again)s, join: all}
  b: {tool: soak_work, %(again)s, join: all}
  nap: {wait: {timer: 150ms}, join: all}
  quick: {tool: set, args: {n: "{{input.n}}"}, join: all}
  all: {tool: soak_work, %(again)s, next: race}
  race: {select: [{signal: go, then: last}, {timer: 300ms, then: last}]}
  last: {tool: set, args: {n: "{{steps.quick.result.n}}"}, %(again)s, done: true}
""" % {"again": AGAIN}
TREE = """name: soak-tree
do:
  - dopar:
      - {name: left, action: soak_work, payload: {}, idempotent: true, %(again)s}
      - {name: nap, wait: {timer: 100ms}}
      - try:
          - {name: risky, action: fail, payload: {error: on purpose}}
        rescue:
          - try: [{name: twice, action: fail, payload: {error: again}, idempotent: true, retry: {max: 2, backoff: [20ms]}}]
            rescue: [{name: well, action: set, payload: {}, idempotent: true, %(again)s}]
          - {name: mend, action: soak_work, payload: {}, idempotent: true, %(again)s}
        finally:
          - {name: tidy, action: soak_work, payload: {}, idempotent: true, %(again)s}
  - {name: kid, spawn: {definition: soak-kid, input: {n: "{{input.n}}"}}}
output: {n: "{{input.n}}"}
""" % {"again": AGAIN}
KID = """name: soak-kid
steps:
  start: {name: rest, tool: sleep, args: {for: 50ms}, next: work}
  work: {tool: soak_work, %(again)s, done: true}
""" % {"again": AGAIN}

SLOTS = """name: soak-slots
steps:
  tick: {schedule: {every: 1s, catch_up: 100}, next: note}
  note: {tool: set, args: {at: "{{steps.tick.result.slot}}"}, %(again)s, next: tick}
""" % {"again": AGAIN}
LIMIT = 2
LIMITED = """name: soak-limited
steps:
  start: {name: few, tool: soak_work, %(again)s, concurrency: {max: %(max)d, key: "{{input.key}}"}, done: true}
""" % {"again": AGAIN, "max": LIMIT}
KEPT_MS = 2000  # then they move into the archive file
MAYFLY = """name: soak-mayfly
retention: {after_end: 2s, then: archive}
steps:
  start: {name: hum, tool: set, args: {n: "{{input.n}}"}, %(again)s, next: kid}
  kid: {name: larva, spawn: {definition: soak-kid, input: {n: "{{input.n}}"}}, done: true}
""" % {"again": AGAIN}

ATTEMPTS = {"risky": 1, "twice": 2, "nap": 1, "race": 1, "kid": 1, "quick": 3, "rest": 1}  # as each step says, or by default (X8)
TICKS = 5


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Soak:
    def __init__(self, folder):
        self.folder, self.chance = folder, random.Random(SEED)
        self.address = "http://127.0.0.1:%d" % free_port()
        self.ledger = os.path.join(folder, "ledger")
        self.stopping, self.created, self.failures = False, 0, []
        self.mayflies = set()
        self.deaths = {"server": 0, "worker": 0}
        self.errors = open(os.path.join(folder, "server.err"), "ab")
        self.server = self.workers = None
        self.module = os.path.join(folder, "ticker.so")
        subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-I", str(HERE.parents[1] / "include"), "-o", self.module,
                        str(HERE / "soak_ticker.c")], check=True)

    # ---- Those who die ----

    def begin_server(self):
        self.server = subprocess.Popen([rig.PAWL, "--store", "sqlite:store.db", "serve", "--listen", self.address[7:], "--module", self.module], cwd=self.folder,
                                       stdout=subprocess.PIPE, stderr=self.errors)
        line = self.server.stdout.readline()
        assert b"ready" in line, "the store can not be served any more: %r" % line

    def begin_worker(self):
        return subprocess.Popen([sys.executable, str(HERE / "soak_worker.py"), self.address, self.ledger], stderr=self.errors)

    def kill_somebody(self):
        if self.chance.random() < 0.4:
            self.server.send_signal(signal.SIGKILL)
            self.server.wait()
            self.server.stdout.close()
            self.deaths["server"] += 1
            self.begin_server()
        else:
            at = self.chance.randrange(WORKERS)
            self.workers[at].kill()
            self.workers[at].wait()
            self.deaths["worker"] += 1
            self.workers[at] = self.begin_worker()

    # ---- Those who want something ----

    def create(self, number):
        pawl = Pawl(self.address, patience=60.0)
        while not self.stopping:
            n = self.created = self.created + 1
            definition = ("soak-graph", "soak-tree", "soak-ticker", "soak-limited", "soak-mayfly")[n % 5]
            try:
                made = {"n": n, "key": str(n % 3)} if definition == "soak-limited" else {"n": n}
                id = pawl.instance_create(definition=definition, subject_ref="s-%d-%d" % (number, n), input=made)["instance_id"]
                if definition == "soak-mayfly":
                    self.mayflies.add(id)
                if n % 10 == 0:
                    time.sleep(0.2)
                    self.signal(pawl, id)
            except PawlError as error:
                self.failures.append(error)
                return
            time.sleep(0.01)

    def signal(self, pawl, id):
        try:
            pawl.signal_send(id, "go", payload={"by": "hand"})
        except PawlError as refused:
            if refused.reason not in ("not-awaiting", "terminal"):
                raise

    # ---- All of it ----

    def run(self):
        self.begin_server()
        pawl = Pawl(self.address)
        for text in (GRAPH, TREE, KID, SLOTS, LIMITED, MAYFLY):
            name = text.split("\n")[0].split()[1]
            pawl.definition_put(name, text)
        slots = [pawl.instance_create(definition="soak-slots")["instance_id"] for _ in range(3)]
        self.workers = [self.begin_worker() for _ in range(WORKERS)]
        clients = [threading.Thread(target=self.create, args=(i,)) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            time.sleep(self.chance.uniform(0.1, 0.9))
            self.kill_somebody()
        self.stopping = True
        for client in clients:
            client.join()
        assert not self.failures, self.failures
        pawl = Pawl(self.address, patience=60.0)
        for id in slots:
            pawl.instance_cancel(id)
        self.wait_for_all(pawl)
        self.wait_for_retention(pawl)
        self.end()

    def wait_for_all(self, pawl):
        until = time.monotonic() + PATIENCE_S
        while True:
            counts = pawl.instance_counts()["by_status"]
            if set(counts) <= {"completed", "failed", "cancelled"} or not sum(counts.get(s, 0) for s in ("running", "suspended", "paused")):
                return
            if time.monotonic() > until:
                stuck = pawl.instance_list(status="running", limit=3)["instances"] + pawl.instance_list(status="suspended", limit=3)["instances"]
                raise AssertionError("still under way after %d s: %s\n%s" % (PATIENCE_S, counts, [
                    (one["definition"], one["instance_id"], pawl.instance_why(one["instance_id"])) for one in stuck]))
            time.sleep(0.1)

    def wait_for_retention(self, pawl):
        """What is due has left, but for the newest instance of the store, which stays."""
        until = time.monotonic() + PATIENCE_S
        pawl.instance_create(definition="soak-kid", input={"n": 0})
        while True:
            left = pawl.instance_list(definition="soak-mayfly", limit=3)["instances"]
            if not left and not pawl.instance_counts()["by_status"].get("suspended"):
                return
            assert time.monotonic() < until, "still here after %d s: %s" % (PATIENCE_S, left)
            time.sleep(0.1)

    def end(self):
        for worker in self.workers or ():
            worker.terminate()
        for worker in self.workers or ():
            worker.wait()
        if self.server and self.server.poll() is None:
            self.server.terminate()
            self.server.wait()


# ---- What is left ----


def read(folder, query, store="store.db"):
    db = sqlite3.connect(os.path.join(folder, store))
    rows = db.execute(query).fetchall()
    db.close()
    return rows


HISTORY = """SELECT h.number, h.action, h.step_index, coalesce(h.step_ordinal, 0), l.at, l.body, h.payload
    FROM pawl_history h JOIN pawl_log l ON l.pos = h.position ORDER BY h.position"""


def check_ends(folder):
    ends = read(folder, "SELECT definition, status, count(*), count(DISTINCT subject_ref) FROM pawl_instances GROUP BY 1, 2")
    for definition, status, count, subjects in ends:
        assert status == ("cancelled" if definition == "soak-slots" else "completed"), ends
        assert definition in ("soak-kid", "soak-slots") or count == subjects, "one was created twice: %s" % ends
    counts = {row[0]: row[2] for row in ends}
    assert counts.get("soak-kid", 0) == counts.get("soak-tree", 0) + 1, counts  # one came last
    for table in ("pawl_step", "pawl_timer", "pawl_wait"):
        assert read(folder, "SELECT count(*) FROM %s" % table) == [(0,)], "%s: something is left that nobody waits for" % table
    return counts


def effects(body):
    """What an entry caused, in words; a body may have them in short (docs/format.md)."""
    for effect in json.loads(body or "[]"):
        if isinstance(effect, int):
            yield ["end", effect] if effect > 0 else ["run", -effect]
        else:
            yield ["step", *effect] if isinstance(effect[0], int) else effect


def without_given_back(rows):
    """Without the starts of attempts whose worker was killed before it read the answer to its claim, and without the retries that
    give them back: such an attempt was never a worker's."""
    kept, started = [], {}
    for row in rows:
        key = row[0], row[3]
        if row[1] == "step.retry" and key in started:
            kept[started.pop(key)] = None
            continue
        if row[1] == "step.start":
            started[key] = len(kept)
        kept.append(row)
    return [row for row in kept if row]


def check_attempts(rows):
    """Each attempt is begun once and ends once; each step completes once; joins are made once."""
    begun, ended, completed, made = {}, {}, {}, {}
    for number, action, step, ordinal, at, body, payload in rows:
        if action == "step.start":
            begun[number, ordinal] = begun.get((number, ordinal), 0) + 1
        if action in ("step.complete", "step.fail", "step.timeout"):
            ended[number, ordinal] = ended.get((number, ordinal), 0) + 1
        if action == "step.complete":
            completed[number, step] = completed.get((number, step), 0) + 1
        for effect in effects(body):
            if effect[0] == "step" and (len(effect) == 3 or effect[3] == 1):
                made[number, effect[2]] = made.get((number, effect[2]), 0) + 1
    for what, counts in (("begun", begun), ("ended", ended), ("completed", completed), ("made", made)):
        twice = {key: count for key, count in counts.items() if count != 1}
        assert not twice, "%s more than once: %s" % (what, dict(list(twice.items())[:5]))


def check_tries(folder):
    """No step is tried more often than it says."""
    tried = read(folder, "SELECT name, max(attempt) FROM pawl_attempts GROUP BY 1")
    for name, attempt in tried:
        assert attempt <= ATTEMPTS.get(name, 1000), "'%s' was tried %d times; it may be %d times" % (name, attempt, ATTEMPTS[name])
    assert set(ATTEMPTS) <= {name for name, _ in tried} or SECONDS < 1, tried


def check_ticks(folder, rows):
    """Of one timer that is armed again and again each due time comes once."""
    tickers = {row[0] for row in read(folder, "SELECT number FROM pawl_instances WHERE definition = 'soak-ticker'")}
    ticks = [row[0] for row in rows if row[0] in tickers and row[1] == "timer"]
    wrong = {number: ticks.count(number) for number in tickers if ticks.count(number) != TICKS}
    assert not wrong, "ticks of instances, %d each: %s" % (TICKS, wrong)
    assert tickers or SECONDS < 1, "no code was created"


def check_results(rows, ledger):
    """What was accepted is there once; what was refused, at most once (its first answer may have been lost)."""
    kept = {}
    for number, action, step, ordinal, at, body, payload in rows:
        if action == "step.complete" and payload and '"mark"' in payload:
            mark = json.loads(payload)["mark"]
            kept[mark] = kept.get(mark, 0) + 1
    assert all(count == 1 for count in kept.values()), "a result is there twice"
    lines = [json.loads(line) for line in pathlib.Path(ledger).read_text().splitlines() if line.endswith("]")]
    accepted = [mark for _, mark, told in lines if told == "done" and mark]
    lost = [mark for mark in accepted if mark not in kept]
    assert not lost, "%d results were accepted and are not there: %s" % (len(lost), lost[:3])
    assert len(accepted) == len(set(accepted)), "one was accepted twice"
    return len(accepted), sum(1 for line in lines if line[2] == "lease-lost")


def check_timers(rows):
    """No timer before its time, and none that was not armed; each at most once."""
    armed, fired, latest = {}, 0, 0
    for number, action, step, ordinal, at, body, payload in rows:
        mine = armed.setdefault((number, ordinal), {})
        if action in ("timer", "step.retry"):
            due = min((due for due in mine.values() if due <= at), default=None)
            assert due is not None, "instance %d, step %s: '%s' at %d, armed were %s" % (number, ordinal, action, at, mine)
            fired, latest = fired + 1, max(latest, at - due)
            mine.clear()
        for effect in effects(body):
            if effect[0] == "arm":
                armed.setdefault((number, effect[3]), {})[effect[1]] = effect[2]
            if effect[0] == "disarm":
                armed.get((number, effect[2]), {}).pop(effect[1], None)
    return fired, latest


def check_slots(rows):
    """Each slot comes once, in order, and none is left out."""
    slots = {}
    for number, action, step, ordinal, at, body, payload in rows:
        if action == "timer" and payload and '"slot"' in payload:
            text = json.loads(payload)["slot"]
            due = int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())
            assert at >= 1000 * due, "slot %s came early, at %d" % (text, at)
            slots.setdefault(number, []).append(due)
    for number, dues in slots.items():
        assert dues == list(range(dues[0], dues[0] + len(dues))), "slots of %d: %s" % (number, dues)
    assert len(slots) == 3 or SECONDS < 2, slots
    return sum(len(dues) for dues in slots.values())


def check_limits(folder, rows):
    """Of each key no more than so many worked at once."""
    keys = dict(read(folder, "SELECT number, json_extract(CAST(input AS TEXT), '$.key') FROM pawl_instances WHERE definition = 'soak-limited'"))
    working, most = {}, 0
    for number, action, step, ordinal, at, body, payload in rows:
        if number not in keys:
            continue
        mine = working.setdefault(keys[number], set())
        if action != "step.start":
            mine.discard(number)
            continue
        mine.add(number)
        assert len(mine) <= LIMIT, "of key %s %d work at once: %s" % (keys[number], len(mine), mine)
        most = max(most, len(mine))
    return most


def check_archive(folder, mayflies):
    """Each is there once with all it has begun, no earlier than its definition says, and the archive is valid."""
    if not mayflies:
        return 0
    moved = dict(read(folder, "SELECT id, at FROM pawl_kept JOIN pawl_log ON pawl_log.pos = pawl_kept.pos WHERE pawl_kept.what = -14"))
    there = read(folder, "SELECT id, definition, status FROM pawl_instances", "store.db-archive")
    ended = dict(read(folder, "SELECT id, max(at) FROM pawl_instances JOIN pawl_log ON inst = number GROUP BY 1", "store.db-archive"))
    found = {id for id, definition, _ in there if definition == "soak-mayfly"}
    assert found == mayflies, "lost: %s, unknown: %s" % (mayflies - found, found - mayflies)
    assert {id for id, _, _ in there} == set(moved) and len(there) == 2 * len(mayflies), (len(there), len(moved), len(mayflies))
    assert all(status == "completed" for _, _, status in there)
    early = {id: moved[id] - ended[id] for id in found if moved[id] - ended[id] < KEPT_MS}
    assert not early, "moved before its time: %s" % early
    for words in ((rig.PAWL, "--store", "sqlite:store.db-archive", "verify"), (sys.executable, str(rig.ROOT / "tools" / "verify.py"), "store.db-archive")):
        done = subprocess.run(words, cwd=folder, capture_output=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    return len(found)


def main():
    with tempfile.TemporaryDirectory(prefix="pawl-soak-") as folder:
        soak = Soak(folder)
        try:
            soak.run()
        finally:
            soak.end()
            for worker in soak.workers or ():
                worker.kill()
            if soak.server and soak.server.poll() is None:
                soak.server.kill()
            soak.errors.close()
        rig.check_no_sanitizer(folder)
        counts, rows = check_ends(folder), without_given_back(read(folder, HISTORY))
        rounds = {row[0] for row in read(folder, "SELECT number FROM pawl_instances WHERE definition = 'soak-slots'")}
        check_attempts([row for row in rows if row[0] not in rounds])
        check_tries(folder)
        check_ticks(folder, rows)
        moved_rows = without_given_back(read(folder, HISTORY, "store.db-archive")) if soak.mayflies else []
        check_attempts(moved_rows)
        accepted, refused = check_results(rows + moved_rows, soak.ledger)
        fired, latest = check_timers(rows)
        slots, most = check_slots(rows), check_limits(folder, rows)
        moved = check_archive(folder, soak.mayflies)
        verified = rig.verify(folder)
        size = os.path.getsize(os.path.join(folder, "store.db"))
        print("# %.0f s, seed %d: deaths %s; ended %s; %d results accepted, %d refused; %d timers, none early, the latest %d ms late; "
              "%d slots, once each; at most %d of a key worked at once; %d moved into the archive; %d records verified twice, %d bytes each"
              % (SECONDS, SEED, soak.deaths, counts, accepted, refused, fired, latest, slots, most, moved, verified["records"], size // verified["records"]))


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        print("seed %d: PAWL_SOAK_SEED=%d script/soak %.0f" % (SEED, SEED, SECONDS))
        print("# 0 passed, 1 failed", flush=True)
        raise
    print("ok - killed at random every instance reaches its end with each result once and no timer early or lost")
    print("# 1 passed, 0 failed")
