"""rich.py - makes a store with rows of every shape in every table, and records of every kind, for forger.py.

Servers write nearly all of it. What no operation does yet, and what only a server that dies in the middle leaves
behind, is appended by the rules of docs/format.md: records of erased values, and an alarm that is firing.
"""
import json
import os
import pathlib
import sqlite3
import subprocess
import time
import urllib.request

import forge

verify = forge.verify
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOUR = 3600
UNTIL = """name: until
steps:
  start: {name: day, wait: {until: "2045-01-01T00:00:00Z"}, next: end}
  end: {tool: set, args: {done: true}, done: true}
"""
MODULE = """#include "buff.h"
#include "quest.h"
#include "trade.h"
#include <pawl_main.h>
PAWL_MODULE(buff, quest, trade);
"""
DEPUTY = "name: deputy\nsteps: {start: {name: c, spawn: {definition: child, input: {from: deputy}}, done: true}}\n"
LEAVER = """name: leaver
steps:
  start: {name: c, spawn: {definition: child, input: {from: leaver}, on_parent_end: abandon}, done: true}
"""


def server_class(old, environment):
    class Server(old.Server):
        """One whose wall clock can be moved; a cancel has a reason."""
        begun = []

        def __init__(self, pawl, folder, *words):
            self.child = subprocess.Popen([pawl, "--store", "sqlite:s.db", "serve", "--listen", "127.0.0.1:0", *words],
                                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
            self.begun.append(self.child)
            self.address = self.child.stdout.readline().decode().split()[4]

        def post(self, path, body=None, **more):
            return super().post(path, body or ({"reason": "it is old"} if path.endswith("/cancel") else None), **more)

        def as_token(self, token, method, path, body, kind="application/json"):
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            request = urllib.request.Request(self.address + path, data, {
                "Content-Type": kind, "Authorization": "Bearer " + token}, method=method)
            with urllib.request.urlopen(request) as reply:
                return json.loads(reply.read())

        def stop(self):
            self.child.terminate()
            self.child.wait()

    return Server


def import_another(pawl, old, server_of, folder):
    """Instances of another store, one of them inline."""
    other, home = folder / "other", folder / "home"
    for place in (other, home):
        place.mkdir()
    server = server_of(pawl, other)
    server.put("lamp", old.LAMP)
    for who in ("ann", "zoe"):
        lamp = server.create(definition="lamp", actor_ref=who, subject_ref="cellar", labels={"room": "cellar"})
        server.post("/v1/instances/%s/fire" % lamp, {"action": "switch", "actor_ref": who, "reason": "dark"})
    server.ask("POST", "/v1/instances", ('{"declaration":%s}' % old.INLINE).encode())
    server.kill()
    exported = subprocess.run([pawl, "--store", "sqlite:s.db", "export"], cwd=other, check=True, capture_output=True)
    (home / "export.jsonl").write_bytes(exported.stdout)
    subprocess.run([pawl, "--store", "sqlite:s.db", "import", "export.jsonl"], cwd=home, check=True, capture_output=True)
    return home


def child_of(server, parent):
    """The child of an instance, once it is there: it is created after the answer."""
    def found():
        return [one["instance_id"] for one in server.ask("GET", "/v1/instances?definition=child")["instances"]
                if one["parent_id"] == parent]
    wait_until(found)
    return found()[0]


def pauses(server):
    """Held and resumed, by calls with keys; a definition that is put again; a child that ended while its parent is held."""
    lamp = server.create(definition="lamp")
    for word in ("pause", "pause", "resume"):
        server.post("/v1/instances/%s/%s" % (lamp, word), {"actor_ref": "bob"}, key=word)
    server.ask("PUT", "/v1/definitions/until", UNTIL.encode(), "application/yaml", key="again")
    for word in ("hold", "lift", "hold"):
        server.post("/v1/instances/%s/%s" % (lamp, word), {"actor_ref": "bob", "reason": "case"})
    parent = server.create(definition="parent", input={"from": "held"})
    child = child_of(server, parent)
    server.post("/v1/instances/%s/pause" % parent)
    server.post("/v1/instances/%s/cancel" % child)


def code(server):
    """One whose signal was delivered, one that has a step elsewhere, and one whose waits have values."""
    buff = server.create(definition="buff", input={"duration_secs": 400_000_000})
    server.post("/v1/instances/%s/signals" % buff, {"name": "stack", "payload": 4})
    trade = server.create(definition="trade", input={"buyer": 1, "seller": 2})
    for who in (1, 2):
        server.post("/v1/instances/%s/signals" % trade, {"name": "accept", "payload": who})
    for enemy in ("wolf", "bear"):
        server.create(definition="quest", input={"enemy": enemy, "item": 3, "kills": 2})
    server.post("/v1/signals", {"name": "enemy_killed", "payload": "wolf", "filter": "wolf"})


def rights(server):
    """A definition and instances of a caller with limited rights, a child that is abandoned, a signal awaited."""
    token = server.post("/v1/tokens", {"scopes": "define:deputy,write:deputy,write:child,read", "actor": "dan"})["token"]
    server.as_token(token, "PUT", "/v1/definitions/deputy", DEPUTY, "application/yaml")
    deputy = server.as_token(token, "POST", "/v1/instances", {"definition": "deputy"})["instance_id"]
    server.put("leaver", LEAVER)
    for parent in (deputy, server.create(definition="leaver")):
        child_of(server, parent)


def alarms(server):
    """By the store's clock and by the wall clock, ended and in force; the last one is over many instances."""
    server.put("until", UNTIL)
    server.create(definition="until")
    server.create(definition="until", test=True)
    lamp = server.create(definition="lamp")
    for when in ({"after": "5000d"}, {"at": "2045-01-01T00:00:00Z"}):
        alarm = {**when, "operation": "instance.fire", "input": {"instance_id": lamp, "action": "switch"}}
        server.post("/v1/alarms", alarm)
        ended = server.post("/v1/alarms", alarm)["alarm_id"]
        server.ask("DELETE", "/v1/alarms/" + ended)
    return server.post("/v1/alarms", {"after": "4000d", "operation": "signal.broadcast",
                                      "input": {"name": "nothing"}})["alarm_id"]


def count(store, condition):
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        return db.execute("SELECT count(*) FROM " + condition).fetchone()[0]


def holds(server):
    """One that is lifted again, and one that stays."""
    one, other = (server.create(definition="lamp") for _ in range(2))
    for id in (one, other):
        server.post("/v1/instances/%s/hold" % id, {"actor_ref": "ann", "reason": "asked to"})
    server.post("/v1/instances/%s/lift" % one, {"actor_ref": "ann"})


def wait_until(what):
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, "waited 60 s in vain"
        time.sleep(0.05)


def clocks(begin, clock, store, doctor):
    """The wall clock jumps ahead, and the next start follows it; it jumps back, and an operator accepts it; the clock of
    tests is moved; and it jumps once more."""
    def jump(seconds):
        server, records = begin(), f"pawl_log WHERE what = {verify.CLOCK}"
        before = count(store, records)
        clock.with_suffix(".new").write_text(str(seconds))
        clock.with_suffix(".new").rename(clock)
        wait_until(lambda: count(store, records) > before)
        server.create(definition="until")  # fired_at is not recorded_at
        return server

    jump(HOUR).stop()
    jump(HOUR // 2).stop()
    doctor()
    server = begin("--test")
    server.post("/v1/test/advance", {"by": "1s"})
    server.stop()
    jump(HOUR // 3).stop()


def complete(path, alarm):
    """What no server leaves behind: values erased in an instance's chain and in the store's, and an alarm firing."""
    forger = forge.Forger(path)
    one = "SELECT %s FROM pawl_log WHERE %s ORDER BY pos LIMIT 1"
    interned = "(SELECT id FROM pawl_value WHERE bytes = CAST(? AS BLOB) AND interned = 1)"
    payload, inst = forger.db.execute(one % ("payload, inst", "what >= 0 AND payload IS NOT NULL AND key IS NOT NULL")).fetchone()
    reason, zoe = forger.db.execute(one % ("reason, actor", "what >= 0 AND actor = " + interned), ("zoe",)).fetchone()
    ann, = forger.db.execute("SELECT " + interned, ("ann",)).fetchone()
    forger.erase(payload, inst=inst, actor=ann, reason=forger.value("asked to"))
    forger.erase(reason, zoe, actor=ann)
    _, at = forger.append(0, verify.ALARM, {"id": alarm, "firing": True})
    forger.db.execute("UPDATE pawl_kept SET firing = ? WHERE what = ? AND id = ?", (at, verify.ALARM, alarm))
    forger.flush()
    forger.seal()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        found = {row[0] for row in db.execute("SELECT DISTINCT what FROM pawl_log WHERE what < 0")}
    wanted = set(verify.CONTROLS) - {verify.ARCHIVE}  # tests/http/run_archive.py forges what is archived
    assert found == wanted, f"no record of these kinds: {wanted - found}"


def make(pawl, build, folder, load):
    old = load(ROOT / "tests" / "old" / "make.py")
    clock, module = folder / "clock", str(folder / "flows.so")
    clock.write_text("0")
    environment = {**os.environ, "LD_PRELOAD": str(build / "tests" / "wall_clock.so"), "WALL_CLOCK": str(clock),
                   "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"}
    (folder / "flows.c").write_text(MODULE)
    subprocess.run(["cc", "-shared", "-fPIC", "-I", ROOT / "include", "-I", ROOT / "examples" / "code", "-o", module,
                    folder / "flows.c"], check=True)
    server_of = server_class(old, environment)
    home = import_another(pawl, old, server_of, folder)

    def begin(*words):
        return server_of(pawl, home, "--module", module, *words)

    def doctor():
        subprocess.run([pawl, "--store", "sqlite:s.db", "doctor", "--accept-clock"], cwd=home, check=True,
                       env=environment, capture_output=True)

    try:
        server = begin()
        old.machines(server)
        old.flows(server)
        code(server)
        rights(server)
        alarm = alarms(server)
        pauses(server)
        holds(server)
        server.stop()
        clocks(begin, clock, home / "s.db", doctor)
    finally:
        for child in server_of.begun:  # one that still runs would keep the output of a test open
            child.kill()
            child.wait()
    complete(home / "s.db", alarm)
    return home / "s.db"
