"""A request's W3C traceparent is kept in the entries it causes, and hashed with them (issue 4)."""
import json
import sqlite3
import subprocess
import sys

from run_tools import LOCAL, Peer, configure
from sse import Stream
from web import Web, harness

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"], "terminal_kinds": {"off": "cancel"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"},
                         {"from_state": "on", "action": "stop", "to_state": "off"}]}
TIMED = dict(WHEEL, deadlines=[{"state": "on", "after": "9h", "action": "stop"}])
FLOW = {"steps": {"start": {"name": "first", "tool": "far", "next": "gate"}, "gate": {"name": "gate", "tool": None, "next": "hear"},
                  "hear": {"wait": {"signal": "go"}, "done": True}}}
WITH = {"traceparent": TRACE}


def open_server(shell):
    web = Web(shell.serve()[1])
    for name, text in (("wheel", WHEEL), ("timed", TIMED), ("flow", FLOW)):
        web.expect(201, "PUT", "/v1/definitions/" + name, text)
    return web


def traces(web, id):
    return [e.get("traceparent") for e in web.get("/v1/instances/%s/history" % id).json["entries"]]


def check_store(web, shell, id):
    """By the server, the program beside it and the verifier that shares no code with either."""
    assert web.post("/v1/instances/%s/verify" % id).json["valid"]
    assert shell.json("verify")["valid"]
    told = subprocess.run([sys.executable, harness.ROOT / "tools" / "verify.py", shell.folder / "pawl.db"], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr


def worker_turn(web):
    step = web.post("/v1/steps/claim", {"tools": ["far"], "worker": "w"}, WITH).json["steps"][0]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    return step


def test_an_entry_tells_the_traceparent_of_its_request_and_no_other_entry_does(shell):
    web = open_server(shell)
    for definition in ("wheel", "timed"):
        id = web.create(definition=definition)
        for headers in (WITH, {}, {"traceparent": OTHER}, {"traceparent": TRACE[:-1]}, {"traceparent": TRACE.upper()}):
            web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn"}, headers)
        web.expect(200, "POST", "/v1/instances/%s/cancel" % id, {}, WITH)
        assert traces(web, id) == [TRACE, None, OTHER, None, None, TRACE]
        check_store(web, shell, id)


def test_every_way_to_cause_an_entry_of_a_flow_keeps_its_trace(shell):
    web = open_server(shell)
    id = web.expect(201, "POST", "/v1/instances", {"definition": "flow"}, WITH).json["instance_id"]
    worker_turn(web)
    gate = [s for s in web.get("/v1/instances/%s/steps" % id).json["steps"] if s["status"] == "pending"][0]
    web.expect(200, "POST", "/v1/steps/%s/approve" % gate["step_id"], {"actor_ref": "ann"}, {"traceparent": OTHER})
    web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "go"}, WITH)
    entries = web.get("/v1/instances/%s/history" % id).json["entries"]
    assert [(e["action"], e.get("traceparent")) for e in entries] == [
        ("start", TRACE), ("step.start", TRACE), ("step.complete", None), ("gate.wait", None), ("gate.approve", OTHER), ("signal", TRACE),
        ("finish", TRACE)], entries
    check_store(web, shell, id)


def test_what_one_request_does_to_many_is_traced_in_each(shell):
    web = open_server(shell)
    wheels = [web.create(definition="wheel", correlation_id="lot") for _ in range(3)]
    lines = [json.dumps({"operation": "instance.fire", "input": {"instance_id": id, "action": "turn"}}) for id in wheels]
    web.expect(200, "POST", "/v1/batch", "\n".join(lines), WITH)
    web.expect(200, "POST", "/v1/cancel", {"correlation_id": "lot"}, {"traceparent": OTHER})
    assert [traces(web, id) for id in wheels] == [[TRACE, OTHER]] * 3
    flow = web.create(definition="flow")
    worker_turn(web)
    gate = [s for s in web.get("/v1/instances/%s/steps" % flow).json["steps"] if s["status"] == "pending"][0]
    web.expect(200, "POST", "/v1/steps/%s/approve" % gate["step_id"])
    assert web.expect(202, "POST", "/v1/signals", {"name": "go"}, WITH).json == {"delivered": 1}
    assert traces(web, flow)[-2:] == [TRACE, TRACE]


def test_every_way_to_read_an_entry_tells_its_trace(shell):
    web = open_server(shell)
    stream = Stream(web).open()
    id = web.create(definition="wheel")
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn"}, WITH)
    assert stream.event().entry["traceparent"] == TRACE
    assert TRACE in shell.pawl("history", id).out and TRACE in shell.pawl("show", id).out
    assert shell.json("history", id)["entries"][0]["traceparent"] == TRACE
    rows = sqlite3.connect("file:%s?mode=ro" % (shell.folder / "pawl.db"), uri=True).execute("SELECT traceparent FROM pawl_history").fetchall()
    assert rows == [(TRACE,)], rows


def test_what_works_for_an_instance_is_told_the_trace_of_its_creation(shell):
    peer = Peer()
    configure(shell, LOCAL + "  exec: {programs: [sh]}\n")
    child, address = shell.serve("--allow-exec")
    web = Web(address)
    say = {"argv": ["sh", "-c", "printf '\"%s\"' \"$TRACEPARENT\""]}
    web.expect(201, "PUT", "/v1/definitions/works", {"steps": {
        "start": {"name": "say", "tool": "exec", "args": say, "next": "call"},
        "call": {"tool": "http", "args": {"url": "http://127.0.0.1:%d/200" % peer.port}, "next": "far"},
        "far": {"tool": "far", "done": True}}})
    ids = [web.expect(201, "POST", "/v1/instances", {"definition": "works"}, headers).json["instance_id"] for headers in (WITH, {})]
    shell.wait_for(lambda: len(web.get("/v1/steps?tool=far&status=ready").json["steps"]) == 2)
    results = [web.get("/v1/instances/%s/steps" % id).json["steps"][0]["result"] for id in ids]
    assert [r if isinstance(r, str) else r["stdout"].strip('"') for r in results] == [TRACE, ""], results
    assert sorted(headers.get("traceparent", "") for _, _, headers, _ in peer.seen) == ["", TRACE], peer.seen
    shell.stop(child)
    web = Web(shell.serve()[1])
    claimed = web.post("/v1/steps/claim", {"tools": ["far"], "worker": "w", "max": 2}).json["steps"]
    assert {s["instance_id"]: s.get("traceparent") for s in claimed} == {ids[0]: TRACE, ids[1]: None}, claimed


def test_a_trace_is_covered_by_the_hash_and_goes_with_an_export(shell):
    web = open_server(shell)
    id = web.create(definition="wheel")
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn"}, WITH)
    lines = shell.pawl("export", id).out
    assert TRACE in lines
    (shell.folder / "lines").write_text(lines)
    other = shell.folder / "other.db"
    shell.pawl("--store", "sqlite:%s" % other, "import", "lines")
    assert shell.json("--store", "sqlite:%s" % other, "history", id)["entries"][0]["traceparent"] == TRACE
    (shell.folder / "lines").write_text(lines.replace(TRACE, OTHER))
    assert shell.pawl("--store", "sqlite:%s" % (shell.folder / "third.db"), "import", "lines", expect=1).code == 1


if __name__ == "__main__":
    harness.main(dict(globals()))
