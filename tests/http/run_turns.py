"""A lone caller's request is served by the thread that read it: no hand-over but the commit's."""
import glob
import json
import os
import re
import tempfile

from raw import Raw
from web import Web, harness

STEPS = 400
ROUNDS, TURNS = 6, 60
LINE = "name: line\nsteps:\n  start: {name: s0, tool: far, next: s1}\n" + "".join(
    "  s%d: {tool: far, %s}\n" % (i, "next: s%d" % (i + 1) if i < STEPS else "done: true") for i in range(1, STEPS + 1))
WHEEL = {"states": ["on"], "initial_state": "on", "terminal_states": [], "terminal_kinds": {},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"}]}
CLAIM = {"tools": ["far"], "worker": "lone", "max": 1, "wait": "20s"}


def server(shell):
    """Its store is in memory where there is such a folder: a sync waits for no disk."""
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    shell.store = tempfile.TemporaryDirectory(prefix="pawl-turns-", dir=home)
    child, address = shell.serve("--store", "sqlite:%s/turns.db" % shell.store.name)
    web = Web(address)
    web.child = child
    return web


def switches(web):
    """How often a thread of the server has gone to sleep."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/status" % web.child.pid):
        with open(path) as file:
            total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M).group(1))
    return total


def fewest(web, turn):
    """Sleeps of the server a turn, in the best of some rounds: another process may be in the way, and a quiet
    moment is used to write rows that lag."""
    found = []
    for _ in range(ROUNDS):
        before = switches(web)
        for _ in range(TURNS):
            turn()
        found.append((switches(web) - before) / TURNS)
    return min(found)


def ask(line, method, path, body, expect=200):
    line.ask(method, path, body)
    status, _, answer = line.reply()
    assert status == expect, answer
    return json.loads(answer)


def test_a_lone_workers_turn_costs_at_most_two_sleeps_of_the_server(shell):
    harness.one_shard("it counts the sleeps of one engine")
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/line", LINE, {"Content-Type": "application/yaml"})
    web.create(definition="line")
    line = Raw(web)
    held = ask(line, "POST", "/v1/steps/claim", CLAIM)["steps"]

    def turn():
        answers = [{"step_id": step["step_id"], "lease": step["lease"], "result": {}} for step in held]
        held[:] = ask(line, "POST", "/v1/steps/complete", {"steps": answers, "claim": CLAIM})["steps"]
        assert len(held) == 1, held

    found = fewest(web, turn)
    assert found <= 2, found


def test_a_lone_fire_and_a_lone_creation_cost_at_most_two_sleeps_of_the_server(shell):
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/wheel", json.dumps(WHEEL), {"Content-Type": "application/json"})
    web.expect(201, "PUT", "/v1/definitions/line", LINE, {"Content-Type": "application/yaml"})
    id = web.create(definition="wheel")
    line = Raw(web)
    path = "/v1/instances/%s/fire" % id
    found = fewest(web, lambda: ask(line, "POST", path, {"action": "turn"}))
    assert found <= 2, found
    for name in ("wheel", "line"):
        found = fewest(web, lambda: ask(line, "POST", "/v1/instances", {"definition": name}, 201))
        assert found <= 2, (name, found)


if __name__ == "__main__":
    harness.main(dict(globals()))
