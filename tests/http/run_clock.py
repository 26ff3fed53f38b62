"""The machine's clock is set while a server runs, and while it does not: which durations and absolute
times move, and what is reported. A preloaded library (wall_clock.c) moves the server's wall clock only."""
import datetime
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

from run_flows import claim, yaml
from web import Web, harness

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))
import forge  # noqa: E402

LIBRARY = pathlib.Path(os.environ["PAWL_BUILD"]).resolve() / "tests/wall_clock.so"
HOUR, YEAR = 3600, 365 * 24 * 3600
LENGTH, SLACK = 3, 2  # seconds: the length of each duration, and how far a jump may move it

FLOWS = {
    "nap": "do: [{name: nap, wait: {timer: %ds}}]" % LENGTH,
    "again": "steps: {a: {tool: fail, args: {error: rain}, retry: {max: 2, backoff: [%ds]}, done: true}}" % LENGTH,
    "slow": "steps: {a: {tool: far, timeout: %ds, done: true}}" % LENGTH,
    "held": "steps: {a: {tool: near, done: true}}",
}
WATCHED = """
states: [held, late]
initial_state: held
terminal_states: [late]
terminal_kinds: {late: success}
transitions: [{from_state: held, action: expire, to_state: late}]
deadlines: [{state: held, after: %ds, action: expire}]
""" % LENGTH
DOOR = """
states: [shut, open]
initial_state: shut
terminal_states: [open]
terminal_kinds: {open: success}
transitions: [{from_state: shut, action: open, to_state: open}]
"""


LOOP = """
states: [on, off]
initial_state: on
terminal_states: [off]
terminal_kinds: {off: success}
transitions: [{from_state: on, action: again, to_state: on}, {from_state: on, action: stop, to_state: off}]
"""
CHILD = "do: [{name: wait, wait: {signal: go}}]"
PARENT = "do: [{name: one, spawn: {definition: child, input: {}}}, {name: hold, wait: {signal: on}}]"


LATER = "do: [{name: nap, wait: {timer: 3h}}]"
LIMIT = DOOR + "deadlines: [{state: shut, after: 3h, action: open}]\n"


class World:
    """A server in a folder of its own, whose wall clock is `ahead` of this machine's."""

    def __init__(self, shell, name, ahead=0):
        self.shell, self.store = shell, "sqlite:%s.db" % name
        self.file = shell.folder / (name + ".clock")
        self.set(ahead)
        self.environment = {"LD_PRELOAD": str(LIBRARY), "WALL_CLOCK": str(self.file),
                            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"}
        self.start()

    def start(self):
        self.child = self.shell.begin("--store", self.store, "serve", "--listen", "127.0.0.1:0", env=self.environment)
        self.web = Web(self.child.stdout.readline().decode().split(" ")[4])

    def stop(self):
        return self.shell.stop(self.child)

    def set(self, ahead):
        self.ahead = ahead
        self.file.with_suffix(".new").write_text(str(ahead))
        self.file.with_suffix(".new").rename(self.file)

    def pawl(self, *words, expect=0):
        store = () if "--store" in words else ("--store", self.store)
        return self.shell.pawl(*store, *words, expect=expect, env=self.environment)

    def check(self, file=None):
        """By both verifiers."""
        file = file or self.store[7:]
        self.pawl("--store", "sqlite:" + file, "verify")
        subprocess.run([sys.executable, HERE.parent.parent / "tools/verify.py", self.shell.folder / file], check=True,
                       stdout=subprocess.DEVNULL)

    def wall(self, more=0):
        at = datetime.datetime.fromtimestamp(time.time() + self.ahead + more, datetime.timezone.utc)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def create(self, definition):
        return self.web.expect(201, "POST", "/v1/instances", {"definition": definition}).json["instance_id"]

    def status(self, id):
        return self.web.get("/v1/instances/" + id).json["status"]

    def fire(self, id, action):
        self.web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": action})

    def open_by_alarm(self, **when):
        id = self.create("door")
        self.web.expect(201, "POST", "/v1/alarms", {**when, "operation": "instance.fire",
                                                    "input": {"instance_id": id, "action": "open"}})
        return id

    def begin(self):
        """Start one of each kind that lasts LENGTH, and of each that is due half an hour later by the wall clock."""
        for name, text in FLOWS.items():
            yaml(self.web, name, text)
        yaml(self.web, "watched", WATCHED)
        yaml(self.web, "door", DOOR)
        yaml(self.web, "until", "do: [{name: later, wait: {until: '%s'}}]" % self.wall(HOUR / 2))
        self.begun = time.monotonic()
        self.lasting = {name: self.create(name) for name in ("nap", "again", "slow", "watched", "held")}
        claim(self.web, "far", lease="1h")
        claim(self.web, "near", lease="%ds" % LENGTH)
        self.lasting["after"] = self.open_by_alarm(after="%ds" % LENGTH)
        self.absolute = {"until": self.create("until"), "at": self.open_by_alarm(at=self.wall(HOUR / 2))}
        self.token = self.web.expect(201, "POST", "/v1/tokens", {"scopes": "read", "expires": "30m"}).json["token"]

    def over(self, ids):
        return {name for name, id in ids.items() if self.has_moved(name, id)}

    def has_moved(self, name, id):
        if name in ("held", "slow"):
            return "step.timeout" in [e["action"] for e in self.history(id)]
        return self.status(id) in ("completed", "failed")

    def history(self, id):
        return self.web.get("/v1/instances/%s/history" % id).json["entries"]


def sleep_until(begun, seconds):
    time.sleep(max(0, begun + seconds - time.monotonic()))


def test_a_jump_of_the_wall_clock_moves_no_duration_and_every_absolute_time(shell):
    worlds = {HOUR: World(shell, "ahead"), -HOUR: World(shell, "back"), 10 * YEAR: World(shell, "glitch")}
    for world in worlds.values():
        world.begin()
    for jump, world in worlds.items():
        world.set(jump)
    time.sleep(0.5)
    worlds[10 * YEAR].create("nap")  # one reading, and a record, years ahead
    worlds[10 * YEAR].set(0)
    for jump, world in worlds.items():
        early = world.over(world.lasting)
        assert time.monotonic() - world.begun > LENGTH or not early, (jump, early)
    for jump, world in worlds.items():
        sleep_until(world.begun, LENGTH + SLACK)
        assert world.over(world.lasting) == set(world.lasting), (jump, world.over(world.lasting))
    assert worlds[HOUR].over(worlds[HOUR].absolute) == {"until", "at"}
    assert worlds[-HOUR].over(worlds[-HOUR].absolute) == set()
    for jump, status in ((HOUR, 401), (-HOUR, 200), (10 * YEAR, 200)):
        world = worlds[jump]
        assert world.web.ask("GET", "/v1/instances", None, {"Authorization": "Bearer " + world.token}).status == status, jump
    ahead, back, glitch = worlds[HOUR], worlds[-HOUR], worlds[10 * YEAR]
    assert [c["condition"] for c in ahead.web.get("/healthz").json["conditions"]] == ["clock-jumped"]
    assert [c["condition"] for c in back.web.get("/healthz").json["conditions"]] == ["clock-jumped"]
    assert glitch.web.get("/healthz").json == {"status": "ok"}
    assert abs(parse(glitch.history(glitch.create("nap"))[-1]["recorded_at"]) - time.time()) < 60
    for world in worlds.values():
        world.stop()
        world.check()


def parse(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_a_store_written_under_a_clock_years_ahead_continues_and_its_clock_is_accepted(shell):
    world = World(shell, "years", 10 * YEAR)
    yaml(world.web, "nap", "do: [{name: nap, wait: {timer: 1s}}]")
    world.create("nap")
    world.stop()
    world.set(0)
    world.start()
    id = world.create("nap")
    shell.wait_for(lambda: world.status(id) == "completed", 10)
    assert abs(parse(world.history(id)[0]["fired_at"]) - time.time()) < 60
    assert parse(world.history(id)[0]["recorded_at"]) > time.time() + 9 * YEAR
    assert "accept-clock" in world.web.get("/healthz").json["conditions"][0]["what"]
    world.web.refused("invalid-request", "POST", "/v1/instances", {"definition": "nap", "instantiated_at": world.wall(HOUR)})
    assert "in-use" in world.pawl("doctor", "--accept-clock", expect=3).err
    world.stop()
    assert "doctor --accept-clock" in world.pawl("doctor").out
    assert "ahead of this machine's; it is now set to it" in world.pawl("doctor", "--accept-clock").out
    assert "nothing to accept" in world.pawl("doctor", "--accept-clock").out
    world.pawl("verify")
    world.start()
    assert world.web.get("/healthz").json == {"status": "ok"}
    id = world.create("nap")
    shell.wait_for(lambda: world.status(id) == "completed", 10)
    entry = world.history(id)[-1]
    assert abs(parse(entry["recorded_at"]) - time.time()) < 60 and entry["recorded_at"] == entry["fired_at"]
    world.stop()
    world.check()


def test_what_was_created_under_a_clock_years_ahead_is_cancelled_and_once_that_is_accepted_fired(shell):
    world = World(shell, "frozen", 3 * YEAR)
    yaml(world.web, "door", DOOR)
    yaml(world.web, "nap", "do: [{name: nap, wait: {timer: 1h}}]")
    door, nap = world.create("door"), world.create("nap")
    world.stop()
    world.set(0)
    world.start()
    refused = world.web.refused("invalid-request", "POST", "/v1/instances/%s/fire" % door, {"action": "open"})
    assert "clock reads" in refused.json["detail"] and "--accept-clock" in refused.json["detail"], refused
    world.web.expect(200, "POST", "/v1/instances/%s/cancel" % nap, {"reason": "late"})
    world.stop()
    world.pawl("doctor", "--accept-clock")
    world.start()
    world.web.expect(200, "POST", "/v1/instances/%s/fire" % door, {"action": "open"})
    entry = world.history(door)[0]
    assert entry["fired_at"] == world.web.get("/v1/instances/" + door).json["instantiated_at"], entry
    assert abs(parse(entry["recorded_at"]) - time.time()) < 60
    world.stop()
    world.check()


def run_ahead(world, act):
    """A run under a clock that is an hour ahead, in which act() is called; then --accept-clock."""
    world.stop()
    world.set(HOUR)
    world.start()
    result = act()
    world.stop()
    world.set(0)
    world.pawl("doctor", "--accept-clock")
    world.start()
    return result


def test_an_instance_recorded_before_and_after_its_clock_was_accepted_is_carried_to_another_store(shell):
    world = World(shell, "fell")
    for name, text in (("loop", LOOP), ("child", CHILD), ("parent", PARENT)):
        yaml(world.web, name, text)
    loop = world.create("loop")
    parent = run_ahead(world, lambda: world.fire(loop, "again") or world.create("parent"))
    [child] = [i["instance_id"] for i in world.web.get("/v1/instances?definition=child").json["instances"]]
    world.create("loop")
    world.fire(loop, "again")
    world.web.expect(202, "POST", "/v1/instances/%s/signals" % child, {"name": "go"})
    shell.wait_for(lambda: world.status(child) == "completed", 10)
    world.fire(loop, "stop")
    times = [parse(e["recorded_at"]) for e in world.history(loop)]
    assert times[0] > times[1] + HOUR / 2, times  # what was accepted
    world.stop()
    world.pawl("export", "--output", "fell.ndjson")
    copy = ("--store", "sqlite:fell-copy.db")
    assert "not come here yet" in world.shell.pawl(*copy, "import", "fell.ndjson", expect=1).err
    world.set(2 * HOUR)
    assert "4 instances" in world.pawl(*copy, "import", "fell.ndjson").out
    world.check("fell-copy.db")
    for id in (loop, parent, child):
        world.pawl(*copy, "verify", id)
        assert world.pawl(*copy, "history", id, "--json").out == world.pawl("history", id, "--json").out
    world.pawl(*copy, "export", "--output", "again.ndjson")  # and from there to a third one
    world.pawl("--store", "sqlite:fell-third.db", "import", "again.ndjson")
    world.check("fell-third.db")


def due_times(shell, file):
    """{instance: due by the wall clock} of the armed timers."""
    store = sqlite3.connect(shell.folder / file)
    try:
        [[offset]] = store.execute("SELECT coalesce(max(due), 0) FROM pawl_kept WHERE what = -11 AND id = 'wall'")
        rows = store.execute("SELECT inst, due, coalesce(wall, 0) FROM pawl_timer").fetchall()
        return {inst: due - (0 if wall else offset) for inst, due, wall in rows}
    finally:
        store.close()


def test_timers_keep_their_durations_when_instances_are_carried_between_stores(shell):
    world = World(shell, "moved")
    yaml(world.web, "later", LATER)
    yaml(world.web, "limit", LIMIT)
    yaml(world.web, "until", "do: [{name: later, wait: {until: '%s'}}]" % world.wall(9 * HOUR))
    run_ahead(world, lambda: [world.create(name) for name in ("later", "limit", "until")])
    world.create("later")  # its clock was never wrong
    world.stop()
    first = due_times(shell, "moved.db")
    assert len(first) == 4 and all(due / 1000 < time.time() + 9.1 * HOUR for due in first.values()), first
    world.pawl("export", "--output", "moved.ndjson")
    world.set(2 * HOUR)
    world.pawl("--store", "sqlite:moved-copy.db", "import", "moved.ndjson")
    assert due_times(shell, "moved-copy.db") == first
    world.check("moved-copy.db")
    world.pawl("--store", "sqlite:moved-copy.db", "export", "--output", "again.ndjson")
    assert world.pawl("--store", "sqlite:moved-third.db", "import", "again.ndjson")
    assert due_times(shell, "moved-third.db") == first
    world.check("moved-third.db")
    world.pawl("--store", "sqlite:moved-third.db", "doctor", "--rebuild")
    assert due_times(shell, "moved-third.db") == first
    text = (shell.folder / "moved.ndjson").read_text()
    assert text.count('{"moved":') == 2, text  # neither by the wall clock, nor where nothing moved
    for place, value in ((0, "nip"), (1, 7), (2, "x"), (2, 0)):
        forged = shell.write("forged.ndjson", "".join(change_moved(line, place, value) for line in text.splitlines()))
        found = world.pawl("--store", "sqlite:moved-forged.db", "import", forged, expect=1)
        assert "timer" in found.err, found


    [(begin, _), (end, body)] = import_records(shell, "moved-copy.db")
    [[id, name, row, by], other] = body["moved"]
    for pos, change in ((end, {}), (end, {"moved": [[id, name, row, by + 1], other]}), (end, {"moved": [[id, "nip", row, by], other]}),
                        (end, {"moved": [[id, name, row, 0], other]}), (end, {"moved": [[id, name, row], other]}),
                        (end, {**body, "offset": 5}), (end, {**body, "offset": 0}), (begin, {"offset": 5})):
        refuse_import(world, "moved-copy.db", pos, change)


def import_records(shell, file):
    store = sqlite3.connect(shell.folder / file)
    try:
        return [(pos, json.loads(body)) for pos, body in
                store.execute("SELECT pos, body FROM pawl_log WHERE what = -10 ORDER BY pos")]
    finally:
        store.close()


def refuse_import(world, file, pos, members):
    """Both verifiers find what the log then says of the timers, though every hash is right."""
    copy = world.shell.folder / "forged.db"
    shutil.copy(world.shell.folder / file, copy)
    forger = forge.Forger(copy)
    [[body]] = forger.db.execute("SELECT body FROM pawl_log WHERE pos = ?", (pos,))
    forger.set(pos, body=json.dumps({"records": json.loads(body)["records"], **members}, separators=(",", ":")).encode())
    forger.seal()
    found = world.pawl("--store", "sqlite:forged.db", "verify", "--json", expect=1).json
    assert "timer" in found["what"], (members, found)
    done = subprocess.run([sys.executable, HERE.parent.parent / "tools/verify.py", copy], capture_output=True, text=True)
    assert done.returncode == 1 and ("timer" in done.stdout or "import" in done.stdout), (members, done)


def change_moved(line, place, value):
    line = json.loads(line)
    if "moved" in line:
        line["moved"]["timers"][0][place] = value
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def test_timers_keep_their_durations_between_stores_whose_clocks_are_off(shell):
    here, there = World(shell, "here"), World(shell, "there")
    for world, jump, count in ((here, HOUR, 2), (there, -HOUR, 1)):
        yaml(world.web, "later", LATER)
        last = [world.create("later") for _ in range(count)][-1]
        world.set(jump)
        shell.wait_for(lambda: world.web.get("/healthz").json["status"] != "ok", 10)
        world.stop()
        if world is here:
            world.pawl("export", last, "--output", "one.ndjson")
    first, second = due_times(shell, "here.db"), due_times(shell, "there.db")
    assert abs(first[2] / 1000 - time.time() - 4 * HOUR) < 60, first
    assert abs(second[1] / 1000 - time.time() - 2 * HOUR) < 60, second
    here.pawl("--store", "sqlite:new.db", "import", "one.ndjson")
    assert due_times(shell, "new.db") == {2: first[2]}
    there.set(0)  # its clock stays an hour ahead
    there.pawl("import", "one.ndjson")
    assert due_times(shell, "there.db") == {**second, 2: first[2]}
    here.check("new.db")
    there.check()


def test_overdue_timers_of_both_clocks_are_counted_and_measured_by_this_machines(shell):
    world = World(shell, "overdue")
    yaml(world.web, "later", LATER)
    yaml(world.web, "until", "do: [{name: later, wait: {until: '%s'}}]" % world.wall(4.5 * HOUR))
    world.create("later")
    world.create("until")
    world.set(HOUR)  # from here on the timer is due four hours from the beginning by the wall clock
    shell.wait_for(lambda: world.web.get("/healthz").json["status"] != "ok", 10)
    info = world.web.get("/v1/info").json
    assert info["timers_overdue"] == 0 and info["oldest_overdue"] is None, info
    assert abs(parse(info["now"]) - time.time() - HOUR) < 60 and abs(info["clock_ahead_ms"] + HOUR * 1000) < 60000, info
    world.stop()
    world.set(5 * HOUR + 600)
    assert "2 overdue, the first by 1 h" in world.pawl("doctor").out, world.pawl("doctor").out
    world.set(4 * HOUR + 2700)
    assert "2 overdue, the first by 45 min" in world.pawl("doctor").out, world.pawl("doctor").out
    world.set(4 * HOUR + 900)
    assert "1 overdue, the first by 15 min" in world.pawl("doctor").out, world.pawl("doctor").out


def test_a_fire_before_its_instance_names_the_clock_and_white_space_is_not_supplied(shell):
    world = World(shell, "order")
    yaml(world.web, "door", DOOR)
    id = world.web.expect(201, "POST", "/v1/instances", {"definition": "door", "instantiated_at": " \t"}).json["instance_id"]
    world.set(-HOUR)
    refused = world.web.refused("invalid-request", "POST", "/v1/instances/%s/fire" % id, {"action": "open"})
    assert "this machine's clock reads" in refused.json["detail"] and "set the clock, or stop the server" in refused.json["detail"], refused
    world.set(0)
    world.web.refused("invalid-request", "POST", "/v1/instances/%s/fire" % id, {"action": "open", "actor_ref": "  "})
    world.web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "open", "fired_at": "  ", "reason": " \n "})
    [entry] = world.history(id)
    assert "reason" not in entry and entry["recorded_at"].endswith("Z"), entry
    shown = world.pawl("history", id).out
    assert entry["fired_at"][:10] in shown and "Z " in shown, shown
    world.stop()


if __name__ == "__main__":
    harness.main(globals())
