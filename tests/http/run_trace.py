"""A request's W3C traceparent is kept in the entries it causes, and hashed with them (issue 4)."""
import hashlib
import http.server
import json
import re
import sqlite3
import subprocess
import sys
import threading

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


def test_a_trace_goes_on_to_children_and_to_what_is_started_whenever_that_is(shell):
    child, address = shell.serve()
    web = Web(address)
    starter = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"], "terminal_kinds": {"off": "success"},
               "transitions": [{"from_state": "on", "action": "go", "to_state": "off", "starts": {"definition": "kid"}}]}
    for name, text in (("kid", {"do": [{"tool": "deep"}]}), ("mid", {"do": [{"tool": "near"}, {"spawn": {"definition": "kid"}}]}),
                       ("top", {"do": [{"tool": "near"}, {"map": {"over": [1], "step": {"spawn": {"definition": "mid"}}}}]}),
                       ("heard", {"do": [{"tool": "deep"}]}), ("teller", {"do": [{"tool": "near"}], "notify": {"definition": "heard"}}),
                       ("wheel", starter)):
        web.expect(201, "PUT", "/v1/definitions/" + name, text)

    def turn(tool, wanted):
        [step] = web.post("/v1/steps/claim", {"tools": [tool], "worker": "w", "wait": "5s"}).json["steps"]
        assert step.get("traceparent") == wanted, (tool, step)
        web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
        return step["instance_id"]

    for headers in (WITH, {}):
        wanted = headers.get("traceparent")
        web.expect(201, "POST", "/v1/instances", {"definition": "top"}, headers)
        turn("near", wanted)
        middle = turn("near", wanted)
        if headers:  # also when it was read again after a death
            child.kill()
            child.wait()
            child, address = shell.serve()
            web = Web(address)
        deep = turn("deep", wanted)
        assert traces(web, middle)[0] == wanted and traces(web, deep)[0] == wanted
        web.expect(201, "POST", "/v1/instances", {"definition": "teller"}, headers)
        turn("near", wanted)
        assert traces(web, turn("deep", wanted))[0] == wanted  # what `notify` started
        wheel = web.create(definition="wheel")
        web.expect(200, "POST", "/v1/instances/%s/fire" % wheel, {"action": "go"}, headers)
        assert traces(web, turn("deep", wanted))[0] == wanted  # what a machine started
    assert web.post("/v1/verify").json["valid"]


class Collector(http.server.ThreadingHTTPServer):
    """Takes spans as OTLP/HTTP has them; what is wrong with them is refused."""

    def __init__(self):
        self.spans, self.requests, self.comes = {}, 0, threading.Condition()
        super().__init__(("127.0.0.1", 0), Collecting)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server_port

    def take(self, body):
        for resource in body["resourceSpans"]:
            assert {"key": "service.name", "value": {"stringValue": "pawl"}} in resource["resource"]["attributes"]
            for span in resource["scopeSpans"][0]["spans"]:
                assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"]), span
                assert re.fullmatch("([0-9a-f]{16})?", span["parentSpanId"]) and int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]), span
                span["values"] = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
                self.spans[span["spanId"]] = span
        self.requests += 1


class Collecting(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.comes:
            good = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
            if good:
                self.server.take(body)
            self.server.comes.notify_all()
        try:
            self.send_response(200 if good else 400)
            self.end_headers()
            self.wfile.write(b"{}")
        except OSError:
            pass  # it was killed

    def log_message(self, *_):
        pass


def test_the_example_sends_instances_and_their_steps_to_a_collector_of_traces(shell):
    collector = Collector()
    address = shell.serve()[1]
    web = Web(address)
    for name, text in (("kid", {"do": [{"name": "deep", "tool": "deep"}]}), ("trip", {"steps": {
            "near": {"tool": "near", "retry": {"max": 2, "backoff": ["1ms"]}, "next": "hear"},
            "hear": {"wait": {"signal": "go"}, "next": "sub"}, "sub": {"spawn": {"definition": "kid"}, "done": True}}}), ("wheel", WHEEL)):
        web.expect(201, "PUT", "/v1/definitions/" + name, text)
    id = web.expect(201, "POST", "/v1/instances", {"definition": "trip", "labels": {"team": "a"}, "subject_ref": "S-1"}, WITH).json["instance_id"]
    claim = {"tools": ["near", "deep"], "worker": "w", "wait": "5s"}
    [step] = web.post("/v1/steps/claim", claim).json["steps"]
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": {"code": "busy"}})
    [step] = web.post("/v1/steps/claim", claim).json["steps"]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "go"})
    [step] = web.post("/v1/steps/claim", claim).json["steps"]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    wheel = web.create(definition="wheel")
    for action in ("turn", "stop"):
        web.expect(200, "POST", "/v1/instances/%s/fire" % wheel, {"action": action})
    example = [sys.executable, str(harness.ROOT / "examples/otlp.py"), address, collector.url]
    for which in (id, step["instance_id"], wheel):
        told = subprocess.run(example + ["--instance", which], capture_output=True, text=True, timeout=60)
        assert told.returncode == 0, told.stderr
    by_name = {span["name"]: span for span in collector.spans.values()}
    near = [span for span in collector.spans.values() if span["name"] == "near"]
    trace, above = TRACE.split("-")[1:3]
    assert {by_name[name]["traceId"] for name in ("trip", "near", "kid", "deep")} == {trace}, by_name
    assert by_name["trip"]["parentSpanId"] == above and by_name["kid"]["parentSpanId"] == by_name["trip"]["spanId"], by_name
    assert by_name["deep"]["parentSpanId"] == by_name["kid"]["spanId"], by_name
    assert sorted((s["values"]["pawl.step.attempt"], s["status"]["code"], s["values"].get("error.type")) for s in near) == [
        ("1", 2, "busy"), ("2", 1, None)], near
    assert {"pawl.instance.id": id, "pawl.instance.status": "completed", "pawl.definition.version": "1", "pawl.label.team": "a",
            "pawl.subject_ref": "S-1"}.items() <= by_name["trip"]["values"].items(), by_name["trip"]
    assert [event["name"] for event in by_name["trip"]["events"]] == ["signal"]
    assert [event["name"] for event in by_name["wheel"]["events"]] == ["turn", "stop"] and by_name["wheel"]["parentSpanId"] == ""
    follow_it(shell, web, collector, example)


def follow_it(shell, web, collector, example):
    """Everything that has ended, and after a restart what has ended since; what a death leaves open comes again, as the same spans."""
    known, collector.spans = set(collector.spans), {}
    for _ in range(2):
        child = subprocess.Popen(example + ["--cursor", str(shell.folder / "cursor")], stderr=subprocess.PIPE)
        with collector.comes:
            assert collector.comes.wait_for(lambda: known <= set(collector.spans), 60), (known, collector.spans)
        child.kill()
        child.communicate()
        assert known == set(collector.spans), (known, collector.spans)
        last = web.create(definition="wheel")
        web.expect(200, "POST", "/v1/instances/%s/fire" % last, {"action": "stop"})
        known = known | {hashlib.sha256(last.encode()).hexdigest()[:16]}


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
