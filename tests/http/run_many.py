"""Many connections at once: nobody waits for a thread, every request is answered once, in order."""
import json
import signal

from raw import Raw
from web import Web, harness

WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"],
         "terminal_kinds": {"off": "success"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"},
                         {"from_state": "on", "action": "stop", "to_state": "off"}]}


def server(shell, *words):
    child, address = shell.serve(*words)
    web = Web(address)
    web.child = child
    return web


def fire(connection, id, **members):
    connection.ask("POST", "/v1/instances/%s/fire" % id, {"action": "turn", **members})


def test_hundreds_of_connections_fire_at_once_and_each_is_answered(shell):
    web = server(shell)
    ids = [web.create(declaration=WHEEL) for _ in range(4)]
    lines = [Raw(web) for _ in range(200)]
    seen = {id: [] for id in ids}
    for _ in range(5):
        for i, line in enumerate(lines):
            fire(line, ids[i % 4])
        for i, line in enumerate(lines):
            status, _, body = line.reply()
            assert status == 200, body
            seen[ids[i % 4]].append(json.loads(body)["sequence_number"])
    for id in ids:
        assert sorted(seen[id]) == list(range(1, 251))
        assert len(web.get("/v1/instances/%s/history" % id).json["entries"]) == 250


def test_pipelined_requests_are_answered_in_their_order(shell):
    web = server(shell)
    id = web.create(declaration=WHEEL)
    line = Raw(web)
    for _ in range(30):
        fire(line, id)
        line.ask("GET", "/v1/instances/%s/current" % id)
        line.ask("POST", "/v1/instances", {"declaration": WHEEL})
        line.ask("POST", "/v1/instances/%s/fire" % id, {"action": "jump"})
        line.ask("GET", "/v1/nothing")
    for i in range(30):
        replies = [line.reply() for _ in range(5)]
        assert [r[0] for r in replies] == [200, 200, 201, 409, 404], replies
        assert json.loads(replies[0][2])["sequence_number"] == i + 1
        assert json.loads(replies[3][2])["reason"] == "invalid-transition"


def test_fires_at_flows_wait_for_their_turn_elsewhere(shell):
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/nap", {"name": "nap", "do": [{"action": "sleep", "payload": {"for": "1h"}}]})
    naps = [web.create(definition="nap") for _ in range(20)]
    wheel = web.create(declaration=WHEEL)
    lines = [Raw(web) for _ in range(40)]
    for i, line in enumerate(lines):
        line.ask("POST", "/v1/instances/%s/fire" % (naps[i // 2] if i % 2 else wheel),
                 {"action": "finish" if i % 2 else "turn"})
    for i, line in enumerate(lines):
        status, _, body = line.reply()
        assert (status, json.loads(body).get("reason")) == ((409, "invalid-transition") if i % 2 else (200, None)), body


def test_a_client_that_leaves_while_it_is_worked_on_harms_nobody(shell):
    web = server(shell)
    id = web.create(declaration=WHEEL)
    for _ in range(100):
        line = Raw(web)
        fire(line, id)
        line.close()
        line = Raw(web)
        line.ask("GET", "/v1/instances")
        line.close()
    assert web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn"}).json["sequence_number"] <= 101
    shell.stop(web.child)


def test_what_was_answered_before_a_stop_is_there_after_it(shell):
    web = server(shell)
    ids = [web.create(declaration=WHEEL) for _ in range(4)]
    lines = [Raw(web) for _ in range(60)]
    for line in lines:
        for id in ids:
            fire(line, id)
    web.child.send_signal(signal.SIGTERM)
    answered = {id: 0 for id in ids}
    for line in lines:
        for id in ids:
            try:
                reply = line.reply()
            except ConnectionError:
                break
            if reply is None:
                break
            assert reply[0] in (200, 503), reply
            answered[id] += reply[0] == 200
    web.child.communicate(timeout=60)
    assert web.child.returncode == 0
    web = server(shell)
    for id in ids:
        assert len(web.get("/v1/instances/%s/history" % id).json["entries"]) >= answered[id]


if __name__ == "__main__":
    harness.main(dict(globals()))
