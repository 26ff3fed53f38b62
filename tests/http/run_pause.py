"""Pause and resume over HTTP and from the command line, against real servers and stores."""
import json
import subprocess
import sys
import time

from web import Web, harness

TRIP = """name: trip
steps:
  start: {name: pack, tool: log, args: {message: packed}, next: ride}
  ride: {tool: sleep, args: {for: 1h}, next: unpack}
  unpack: {tool: set, args: {got: 1}, done: true}
"""


def test_a_flow_that_is_paused_through_a_kill_goes_on_at_resume(shell):
    child, address = shell.serve("--test")
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/trip", TRIP, {"Content-Type": "application/yaml"})
    trip = web.create(definition="trip")
    base = "/v1/instances/" + trip
    assert web.expect(200, "POST", base + "/pause", {"actor_ref": "ann", "reason": "audit"}).json == {
        "status": "paused"}
    child.kill()
    child.wait()
    web = Web(shell.serve("--test")[1])
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    assert web.get(base).json["status"] == "paused"
    assert [w["kind"] for w in web.get(base + "/why").json["waiting_for"]][0] == "pause"
    assert trip in [i["instance_id"] for i in web.get("/v1/instances?status=paused").json["instances"]]
    web.refused("paused", "POST", base + "/signals", {"name": "x"})
    web.refused("invalid-request", "POST", base + "/pause", {"colour": 1})
    web.refused("not-known", "POST", "/v1/instances/%s/pause" % ("0" * 25 + "1"))
    web.expect(200, "POST", base + "/resume")
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    assert web.get(base).json["status"] == "completed"
    web.refused("terminal", "POST", base + "/pause")
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_the_command_line_pauses_and_resumes_with_and_without_a_server(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    shell.pawl("define", shell.write("trip.yaml", TRIP.replace("1h", "1ms")))
    order = shell.json("start", "order")["instance_id"]
    trip = shell.json("start", "trip")["instance_id"]
    for words in (("pause", order, "--actor", "ann"), ("pause", trip, "--reason", "audit")):
        assert shell.json(*words) == {"status": "paused"}
    refused = shell.pawl("fire", order, "pay", expect=1)
    assert "paused" in refused.err, refused
    assert "audit" in shell.pawl("why", trip).out
    shell.pawl("resume", trip)  # to its end
    assert shell.json("show", trip)["status"] == "completed"
    shell.pawl("resume", order)
    shell.pawl("fire", order, "pay")
    child, _ = shell.serve()
    assert shell.json("pause", order) == {"status": "paused"}
    shell.pawl("resume", order)
    assert shell.json("show", order)["status"] == "suspended"
    shell.stop(child)
    assert shell.json("verify")["valid"]


def test_a_paused_instance_shows_who_paused_it_since_when_and_why(shell):
    web = Web(shell.serve("--test")[1])
    web.expect(201, "PUT", "/v1/definitions/trip", TRIP, {"Content-Type": "application/yaml"})
    web.expect(201, "PUT", "/v1/definitions/order", (harness.EXAMPLES / "order.yaml").read_text(), {"Content-Type": "application/yaml"})
    token = {"Authorization": "Bearer " + web.expect(201, "POST", "/v1/tokens", {"scopes": "write,read", "actor": "ann"}).json["token"]}
    for definition in ("trip", "order"):
        one = web.create(definition=definition)
        base = "/v1/instances/" + one
        line = json.dumps({"operation": "instance.pause", "input": {"instance_id": one, "reason": "audit"}})
        later = {"after": "1s", "operation": "instance.pause", "input": {"instance_id": one, "reason": "audit"}}
        assert "pause" not in web.get(base).json
        for pause in (lambda: web.expect(200, "POST", base + "/pause", {"reason": "audit"}, token), lambda: web.expect(200, "POST", "/v1/batch", line, token),
                      lambda: web.expect(201, "POST", "/v1/alarms", later, token) and web.expect(200, "POST", "/v1/test/advance", {"by": "2s"})):
            pause()
            held = web.get(base).json["pause"]
            assert (held["actor_ref"], held["reason"]) == ("ann", "audit") and held["paused_at"], held
            (why,) = [w for w in web.get(base + "/why").json["waiting_for"] if w["kind"] == "pause"]
            assert why == {"kind": "pause", "name": "audit", **held}, why
            assert [i["pause"] for i in web.get("/v1/instances?status=paused").json["instances"]] == [held]
            shown = shell.pawl("show", one).out
            assert "paused" in shown and "by ann" in shown and "audit" in shown, shown
            assert "by ann" in shell.pawl("why", one).out
            web.refused("forbidden", "POST", base + "/resume", {"actor_ref": "bob"}, token)
            web.expect(200, "POST", base + "/resume", {"reason": "done"}, token)
        web.expect(200, "POST", base + "/pause")
        assert {w["name"] for w in web.get(base + "/why").json["waiting_for"] if w["kind"] == "pause"} == {None}
        assert (web.get(base).json["pause"]["actor_ref"], web.get(base).json["pause"]["reason"]) == (None, None)
        web.expect(200, "POST", base + "/resume")


CLAIM = {"name": "claim", "states": ["open", "late", "gone"], "initial_state": "open", "terminal_states": ["gone"],
         "terminal_kinds": {"gone": "cancel"},
         "transitions": [{"from_state": "open", "action": "lapse", "to_state": "late"},
                         {"from_state": "open", "action": "drop", "to_state": "gone"}],
         "deadlines": [{"state": "open", "after": "1h", "action": "lapse"}]}


def test_a_deadline_of_a_paused_machine_waits_for_resume(shell):
    child, address = shell.serve("--test")
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/claim", CLAIM)
    held, free, dropped = (web.create(definition="claim") for _ in range(3))
    for id in (held, dropped):
        web.expect(200, "POST", "/v1/instances/%s/pause" % id)
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    assert [web.get("/v1/instances/" + id).json["current_state"] for id in (held, free)] == ["open", "late"]
    assert web.get("/v1/instances/counts").json["by_status"] == {"paused": 2, "suspended": 1}
    for filters in ("", "&definition=claim", "&state=open"):
        found = web.get("/v1/instances?status=paused" + filters).json["instances"]
        assert {i["instance_id"] for i in found} == {held, dropped}, (filters, found)
    found = web.get("/v1/instances?status=suspended").json["instances"]
    assert [i["instance_id"] for i in found] == [free]
    web.expect(200, "POST", "/v1/instances/%s/cancel" % dropped)
    child.kill()
    child.wait()
    web = Web(shell.serve("--test")[1])
    assert web.get("/v1/instances/" + held).json["status"] == "paused"
    web.expect(200, "POST", "/v1/instances/%s/resume" % held)
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    assert web.get("/v1/instances/" + held).json["current_state"] == "late"
    assert web.get("/v1/instances/counts").json["by_status"] == {"suspended": 2, "cancelled": 1}
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_a_check_that_goes_on_remembers_pauses_keys_tokens_and_alarms(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"), "--key", "put")
    one = shell.json("start", "order", "--key", "s")["instance_id"]
    shell.pawl("token", "create", "--scope", "read")
    gone = shell.json("token", "create", "--scope", "read")["token_id"]
    shell.pawl("pause", one, "--key", "p")
    shell.pawl("alarm", "set", "instance.resume", "--after", "9d", "--input", '{"instance_id": "%s"}' % one)
    shell.pawl("token", "revoke", gone)
    shell.pawl("start", "order", "--key", "t")
    for limit in ("1", "3"):
        for _ in range(20):
            done = shell.pawl("verify", "--resume", "--limit", limit, expect=None)
            if done.code != 4:
                break
        assert done.code == 0, done


ROUND = """name: round
steps:
  start: {name: a, tool: set, args: {x: 1}, next: b}
  b: {tool: set, args: {x: 2}, next: start}
"""
SAWN = """name: sawn
do:
  - dopar:
    - {action: saw, payload: {}, name: one}
    - {action: saw, payload: {}, name: two}
  - {action: set, payload: {x: 1}}
"""


def held_at(web, base, most):
    """How many entries it has, once it is paused at the limit `most`."""
    reason = "limit: the instance has reached max_entries, %d entries; cancel it, or raise max_entries and resume it" % most
    for _ in range(600):
        one = web.get(base).json
        if one["status"] == "paused":
            break
        time.sleep(0.05)
    assert (one["pause"]["actor_ref"], one["pause"]["reason"]) == ("pawl/limit", reason), one
    assert [w["name"] for w in web.get(base + "/why").json["waiting_for"] if w["kind"] == "pause"] == [reason]
    return one["next_sequence_number"] - 1


def test_a_flow_that_goes_round_is_paused_at_max_entries_and_continues_when_that_is_raised(shell):
    for wrong in ("0", "-1", "x", "4294967296"):
        assert "max-entries" in shell.pawl("serve", "--max-entries", wrong, expect=2).err
    child, address = shell.serve("--max-entries", "100")
    web = Web(address)
    for name, text in (("round", ROUND), ("sawn", SAWN)):
        web.expect(201, "PUT", "/v1/definitions/" + name, text, {"Content-Type": "application/yaml"})
    one = web.create(definition="round")
    base = "/v1/instances/" + one
    count = held_at(web, base, 100)
    assert 100 <= count <= 102, count
    for command in ("show", "why"):
        assert "max_entries" in shell.pawl(command, one).out and "pawl/limit" in shell.pawl(command, one).out
    assert web.expect(200, "POST", base + "/resume").json == {"status": "paused"}
    assert "at a limit" in shell.pawl("resume", one, expect=1).err
    child.kill()
    child.wait()
    child, address = shell.serve("--max-entries", "100")
    web = Web(address)
    assert held_at(web, base, 100) == count
    shell.stop(child)
    shell.write("pawl.yaml", "limits: {max_entries: 200, max_live_steps: 50}")
    child, address = shell.serve()
    web = Web(address)
    assert held_at(web, base, 100) == count
    assert web.expect(200, "POST", base + "/resume").json == {"status": "running"}
    assert 200 <= held_at(web, base, 200) <= 202
    web.expect(200, "POST", base + "/cancel")
    assert web.get(base).json["status"] == "cancelled"
    shell.stop(child)
    check = subprocess.run([sys.executable, str(harness.ROOT / "tools" / "verify.py"), "pawl.db"], cwd=shell.folder, capture_output=True)
    assert check.returncode == 0 and shell.json("verify")["valid"], check


def test_a_worker_answers_what_it_holds_of_an_instance_that_is_at_its_limit(shell):
    web = Web(shell.serve("--test", "--max-entries", "3")[1])
    web.expect(201, "PUT", "/v1/definitions/sawn", SAWN, {"Content-Type": "application/yaml"})
    base = "/v1/instances/" + web.create(definition="sawn")
    steps = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["saw"], "worker": "w/1", "max": 2}).json["steps"]
    assert len(steps) == 2 and web.get(base).json["status"] == "running"
    done = [{"step_id": step["step_id"], "lease": step["lease"], "result": 1} for step in steps]
    answers = web.expect(200, "POST", "/v1/steps/complete", {"steps": done}).json
    assert held_at(web, base, 3) == 5, answers
    actions = [entry["action"] for entry in web.get(base + "/history").json["entries"]]
    assert actions == ["start", "step.start", "step.start", "step.complete", "step.complete"], actions
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


if __name__ == "__main__":
    harness.main(globals())
