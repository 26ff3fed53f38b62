#!/usr/bin/env python3
"""The six programs of seed 004 in every language: the same events in, the same history out, entry by entry.

A server with the module of a language plays each scenario; what is recorded must be what C's examples record. Only the names of
builds, ids and hashes may differ. Each is killed at its commits too, and continued in a new process."""
import datetime
import difflib
import functools
import http.client
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "house")]
from run_module import libraries  # noqa: E402
from run_node import from_npm, node22  # noqa: E402
from sentences import BUILD, build_compiler  # noqa: E402
from web import Web, harness  # noqa: E402

ROOT = harness.ROOT
LONG = bool(os.environ.get("PAWL_TEST_LONG"))
FOLDER = tempfile.TemporaryDirectory(prefix="pawl-languages-")
os.environ["PYTHONPATH"] = str(ROOT / "clients/python")

# (definition, input, steps). A step: advance BY; signal NAME PAYLOAD; refused REASON NAME PAYLOAD; broadcast NAME FILTER PAYLOAD;
# complete RESULT; fail ERROR; pause; resume; cancel; until STATUS; kill (and begin again).
SCENARIOS = {
    "a buff stacks and runs out": ("buff", {"duration_secs": 60}, ["advance 59s", "signal stack 4", "advance 59s", "signal stack 2", "kill", "advance 60s"]),
    "a buff is dispelled": ("buff", {}, ["advance 1s", "signal dispel null"]),
    "a buff refuses what it does not know": ("buff", {}, ['refused invalid-request stack "four"', "refused not-awaiting heal 1", "signal stack 1", "advance 1h"]),
    "a buff is cancelled": ("buff", {}, ["signal stack 1", "cancel", "refused terminal stack 1"]),
    "a patrol walks to its end": ("patrol", {"waypoints": 2}, ["refused not-awaiting threat_detected 7", "advance 1s", "advance 10s", "kill", "advance 10s"]),
    "a patrol fights and walks on": ("patrol", {"waypoints": 2}, ["advance 5s", "signal threat_detected 77", "refused not-awaiting threat_detected 8", "advance 1s",
                                     "kill", "advance 1s", "advance 99s"]),
    "a patrol stands down": ("patrol", {}, ["advance 11s", "signal stand_down null"]),
    "a patrol is cancelled in its fight": ("patrol", {}, ["advance 1s", "signal threat_detected 7", "cancel", "advance 1h"]),
    "a combat is won": ("combat", {"target_id": 9}, ["advance 1s", "kill", "advance 1s"]),
    "a combat is fled from": ("combat", {"target_id": 9, "damage": 5}, ["advance 1s", "signal flee null"]),
    "an auction without bids": ("auction", {"hours": 1}, ["advance 59m", "advance 1m"]),
    "an auction that is sold": ("auction", {"reserve_cents": 5}, ['signal bid {"bidder":"ann","cents":4}', "advance 10m", 'signal bid {"bidder":"bob","cents":6}',
                                'signal bid {"bidder":"cid","cents":5}', "kill", "advance 1h"]),
    "an auction whose reserve is not reached": ("auction", {}, ['signal bid {"bidder":"ann","cents":999}', "advance 2h"]),
    "an auction that is withdrawn": ("auction", {"item": "a chair"}, ['signal bid {"bidder":"ann","cents":4}', "signal withdraw null"]),
    "a trade is made": ("trade", {"buyer": 1, "seller": 2}, ["signal accept 1", "signal accept 3", "kill", "signal accept 2", "complete 77"]),
    "a trade is declined": ("trade", {"buyer": 1, "seller": 2}, ["signal accept 1", "signal decline 2"]),
    "a trade has no reply": ("trade", {"buyer": 1, "seller": 2}, ["advance 4m", "signal accept 1", "advance 5m"]),
    "a trade's goods are lost": ("trade", {"buyer": 1, "seller": 1}, ["signal accept 1", 'fail "sunk"']),
    "a trade is paused while it waits": ("trade", {"buyer": 1, "seller": 2}, ["signal accept 1", "pause", "refused paused accept 2", "advance 1m", "resume", "signal accept 2",
                                         "complete 5"]),
    "a timer falls due in a pause": ("trade", {}, ["pause", "advance 6m", "kill", "resume", "until failed"]),
    "a quest is reached by broadcasts": ("quest", {"enemy": "bear", "item": 5, "kills": 2}, ['broadcast enemy_killed "wolf" "wolf"', 'broadcast enemy_killed "bear" "bear"',
                                         "kill", 'broadcast enemy_killed "bear" "bear"', "broadcast item_collected 5 5"]),
    "a quest's item is found while it hunts": ("quest", {"enemy": "elk", "item": 6, "kills": 1}, ["signal item_collected 4", "signal item_collected 6", "kill",
                                               'signal enemy_killed "elk"']),
    "an input that does not fit": ("buff", {"duration_secs": "long"}, []),
    "a member that is not known": ("patrol", {"waypoint": 3}, []),
}
# What differs from one run to the next.
OWN = {"hash", "recorded_at"}


@functools.lru_cache(None)
def host():
    """A full pawl with the reduce of combat."""
    out = pathlib.Path(FOLDER.name) / "host"
    subprocess.run([*build_compiler(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", "-o", out, HERE / "host.c",
                    BUILD / "libpawl-main.a", *libraries()], check=True)
    return out


@functools.lru_cache(None)
def c_module():
    out = pathlib.Path(FOLDER.name) / "flows.so"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-I", ROOT / "include", "-o", out, ROOT / "examples/code/flows.c"], check=True)
    return out


def typescript(shell):
    place = from_npm(shell)
    for file in (ROOT / "examples/typescript").glob("*.ts"):
        shell.write(file.name, file.read_text())
    shell.write("package.json", '{"type": "module"}')
    (shell.folder / "bin").mkdir(exist_ok=True)
    if not (shell.folder / "bin/node").exists():
        (shell.folder / "bin/node").symlink_to(node22(place))
    os.environ["PATH"] = "%s:%s" % (shell.folder / "bin", os.environ["PATH"])
    return shell.folder / "game.ts"


LANGUAGES = {
    "C": lambda shell: c_module(),
    "Python": lambda shell: ROOT / "examples/python/game.py",
    "TypeScript": typescript,
    "Lua": lambda shell: ROOT / "examples/lua/game.lua",
}


class Player:
    """A server with a module, and the instance that a scenario is about."""

    def __init__(self, shell, module, store="play.db", crash=None):
        self.shell, self.module, self.store = shell, module, store
        self.begin(crash)

    def begin(self, crash=None):
        environment = self.shell.environment({"PAWL_CRASH_AT": crash} if crash else None)
        self.child = subprocess.Popen([host(), "--store", "sqlite:" + self.store, "serve", "--test", "--listen", "127.0.0.1:0", "--module", str(self.module)],
                                      cwd=self.shell.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        self.shell.children.append(self.child)
        line = self.child.stdout.readline().decode()
        self.web = Web(line.split()[4]) if line.startswith("pawl is ready") else None

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        err = self.child.communicate(timeout=60)[1]
        assert self.child.returncode == 0 and b"Sanitizer" not in err, err

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.begin()

    def create(self, definition, input, key=None):
        return self.web.post("/v1/instances", {"definition": definition, "input": input}, {"Idempotency-Key": key} if key else None)

    def step(self, text, key=None):
        word, _, rest = text.partition(" ")
        getattr(self, "do_" + word)(*rest.split(" ", 2 if word in ("refused", "broadcast") else 1) if rest else [], **({"key": key} if key else {}))

    def post(self, path, body, key=None):
        return self.web.post("/v1/instances/%s%s" % (self.id, path), body, {"Idempotency-Key": key} if key else None)

    def expect(self, reply, *statuses):
        assert reply.status in statuses, reply

    def do_advance(self, by, key=None):
        self.expect(self.web.post("/v1/test/advance", {"by": by}, {"Idempotency-Key": key} if key else None), 200)

    def do_signal(self, name, payload, key=None):
        self.expect(self.post("/signals", {"name": name, "payload": json.loads(payload)}, key), 202)

    def do_refused(self, reason, name, payload, key=None):
        reply = self.post("/signals", {"name": name, "payload": json.loads(payload)})
        assert reply.status >= 400 and reply.reason == reason, reply

    def do_broadcast(self, name, filter, payload, key=None):
        self.expect(self.web.post("/v1/signals", {"name": name, "filter": json.loads(filter), "payload": json.loads(payload)},
                                  {"Idempotency-Key": key} if key else None), 202)

    def answer(self, how, body, key):
        steps = [one for one in self.web.get("/v1/instances/%s/steps" % self.id).json["steps"]]
        self.expect(self.web.post("/v1/steps/%s/%s" % (steps[-1]["step_id"], how), body, {"Idempotency-Key": key} if key else None), 200)

    def do_complete(self, result, key=None):
        self.answer("complete", {"result": json.loads(result)}, key)

    def do_fail(self, error, key=None):
        self.answer("fail", {"error": json.loads(error)}, key)

    def do_pause(self, key=None):
        self.expect(self.post("/pause", {}, key), 200)

    def do_resume(self, key=None):
        self.expect(self.post("/resume", {}, key), 200)

    def do_cancel(self, key=None):
        self.expect(self.post("/cancel", {}, key), 200)

    def do_until(self, status, key=None):
        try:
            self.shell.wait_for(lambda: self.web.get("/v1/instances/" + self.id).json["status"] == status)
        except AssertionError as error:
            told = [self.web.get("/v1/instances/%s%s" % (self.id, what)).json for what in ("", "/why", "/history")]
            raise AssertionError("not %s: %s, %s" % (status, json.dumps(told), self.child.args)) from error

    def do_kill(self, key=None):
        self.kill()

    def play(self, definition, input, steps):
        reply = self.create(definition, input)
        if reply.status != 201:
            return {"refused": reply.reason}
        self.id = reply.json["instance_id"]
        for step in steps:
            self.step(step)
        return self.record(self.id)

    def record(self, id):
        """All that is recorded of it and its children, as every language must have it."""
        entries = self.web.get("/v1/instances/%s/history" % id).json["entries"]
        begun = entries[0]["fired_at"]
        found = self.web.get("/v1/instances/%s" % id).json
        children = [one["instance_id"] for one in self.web.get("/v1/instances?limit=100").json["instances"] if one["parent_id"] == id]
        return {"instance": {key: found[key] for key in ("status", "terminal_kind", "input", "result", "error")},
                "entries": [neutral(entry, begun, [id, *children]) for entry in entries], "children": [self.record(child) for child in children]}


def neutral(entry, begun, ids):
    """Without hashes; times since the creation; ids by their order."""
    made = {key: value for key, value in entry.items() if key not in OWN}
    made["fired_at"] = round((when(made["fired_at"]) - when(begun)).total_seconds() * 1000)
    text = json.dumps(made, sort_keys=True)
    for number, id in enumerate(ids):
        text = text.replace(id, "#%d" % number)
    return json.loads(text)


def when(text):
    return datetime.datetime.fromisoformat(text)


RECORDED = {}


def recorded(language, shell):
    """What each scenario recorded, and what combat did to the host's rows; killed where a scenario says so."""
    if language in RECORDED:
        return RECORDED[language]
    player = Player(shell, LANGUAGES[language](shell), store=language + ".db")
    found = {name: player.play(*scenario) for name, scenario in SCENARIOS.items()}
    assert player.web.expect(200, "POST", "/v1/verify").json["valid"]
    player.end()
    found["the rows of the host"] = rows(shell, player.store)
    RECORDED[language] = found
    return found


def rows(shell, store):
    with sqlite3.connect(str(shell.folder / store)) as db:
        there = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'hit'").fetchone()[0]
        return [json.loads(row[0]) for row in db.execute("SELECT args FROM hit")] if there else []


def same(found, wanted, what):
    lines = [json.dumps(one, indent=1, sort_keys=True).splitlines() for one in (wanted, found)]
    assert found == wanted, what + "\n" + "\n".join(difflib.unified_diff(*lines, "C", "here", lineterm="", n=8))


def compare(shell, language):
    wanted, found = recorded("C", shell), recorded(language, shell)
    assert len(wanted["the rows of the host"]) == 7, wanted["the rows of the host"]
    for name in wanted:
        same(found[name], wanted[name], "%s in %s" % (name, language))


def test_python_records_what_c_records(shell):
    compare(shell, "Python")


def test_typescript_records_what_c_records(shell):
    compare(shell, "TypeScript")


def test_lua_records_what_c_records(shell):
    compare(shell, "Lua")


def test_the_page_shows_the_programs_as_they_are(shell):
    """docs/durable-languages.md"""
    blocks = re.findall(r"^```\w+ file=(\S+)\n(.*?)^```", (ROOT / "docs/durable-languages.md").read_text(), re.DOTALL | re.MULTILINE)
    for name, text in blocks:
        whole = (ROOT / name).read_text()
        assert text in whole if name.endswith("game.lua") else text == whole, name
    assert len(blocks) >= 8, blocks


# ---- Killed at every commit ----------------------------------------------------------------------------------------------------------

GAMES = {
    "buff": ("buff", {"duration_secs": 60}, ["at 59", "signal stack 4", "at 118", "signal stack 2", "at 300"]),
    "patrol": ("patrol", {"waypoints": 2}, ["at 5", "signal threat_detected 77", "at 8", "at 99"]),
    "combat": ("combat", {"target_id": 9}, ["at 1", "at 60"]),
    "auction": ("auction", {"reserve_cents": 5}, ['signal bid {"bidder":"ann","cents":4}', "at 600", 'signal bid {"bidder":"bob","cents":6}', "at 9000"]),
    "trade": ("trade", {"buyer": 1, "seller": 2}, ["signal accept 1", "signal accept 2", "complete 77"]),
    "quest": ("quest", {"item": 5, "kills": 1}, ["signal item_collected 5", 'signal enemy_killed "wolf"']),
}
GONE = (ConnectionError, http.client.HTTPException, TimeoutError)


class Mortal(Player):
    """Is begun again when it died, and does again what was under way: under the same key."""

    def again(self, what):
        for _ in range(3):
            try:
                if self.web is None:
                    raise ConnectionResetError
                return what()
            except GONE:
                self.child.wait(timeout=60)
                self.deaths += 1
                self.begin()
        raise AssertionError("it dies without a crash point")

    def do_at(self, seconds, key=None):
        """Time is told, not added: seconds since the creation."""
        left = self.begun + datetime.timedelta(seconds=int(seconds)) - when(self.web.get("/v1/info").json["now"])
        self.do_advance("%dms" % max(0, round(left.total_seconds() * 1000)))

    def answer(self, how, body, key):
        if self.web.get("/v1/instances/" + self.id).json["status"] == "suspended":  # else it was answered before the death
            super().answer(how, body, key)

    def game(self, definition, input, steps):
        self.deaths = 0
        self.again(lambda: self.do_advance("1d"))  # ahead of the real clock: a slow machine between two lives changes nothing
        reply = self.again(lambda: self.create(definition, input, "create"))
        self.id = reply.json["instance_id"]
        self.begun = when(self.again(lambda: self.web.get("/v1/instances/" + self.id).json["instantiated_at"]))
        for number, step in enumerate(steps):
            self.again(lambda: self.step(step, "step%d" % number))
        self.again(lambda: self.do_until("completed"))
        return self.again(lambda: self.record(self.id))


def kill_everywhere(shell, module, name, first, stride, points):
    """How many deaths a game lived through."""
    deaths = 0

    def played(store, crash=None):
        player = Mortal(shell, module, store, crash)
        found = player.game(*GAMES[name])
        assert player.again(lambda: player.web.expect(200, "POST", "/v1/verify")).json["valid"]  # a late commit may be the one to die at
        player.end()
        return (found, rows(shell, store)), player.deaths

    wanted, _ = played(name + ".db")
    for point in points:
        number, died = first, 1
        while died:
            found, died = played("%s-%s-%d.db" % (name, point, number), "%s:%d" % (point, number))
            assert found == wanted, (name, point, number, wanted, found)
            number += stride
            deaths += died
    return deaths


def test_every_program_killed_at_every_commit_ends_the_same_in_every_language(shell):
    """A sample of the commits each day; with PAWL_TEST_LONG=1 all of them, before and after each."""
    points = ("before-commit", "after-commit", "after-ack") if LONG else ("after-commit",)
    for language in ("Python", "TypeScript", "Lua"):
        module, deaths = LANGUAGES[language](shell), 0
        for name in GAMES if LONG else random.sample(list(GAMES), 1):
            deaths += kill_everywhere(shell, module, name, 1 if LONG else random.randint(2, 4), 1 if LONG else 3, points)
            for file in shell.folder.glob(name + "*.db*"):
                file.unlink()
        assert deaths >= (100 if LONG else 1), (language, deaths)


if __name__ == "__main__":
    harness.main(globals())
