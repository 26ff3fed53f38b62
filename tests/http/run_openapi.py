"""/openapi.json: the table of operations described, each whole, each true.

Every answer of every test over HTTP is held against it as well (web.py); here it is held against the official
schema, against the table's source, and against what the handlers let in."""
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import described
import table
from sse import Stream
from web import Web, harness

sys.path.insert(0, str(harness.ROOT / "tests/npm"))
from modules import Unavailable, npm_modules  # noqa: E402

ROOT = harness.ROOT
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", ROOT / "build")).resolve()
HOW = "add it to src/api/describe/ (its README.md says how)"
ORDER = (harness.EXAMPLES / "order.yaml").read_text()
ROWS = [op.name for op in table.ALL]
ABSENT = object()


def walk(value):
    """Every object in a document."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(part)


def answers(operation):
    return [r for status, r in operation["responses"].items() if status.startswith("2")]


def test_every_operation_has_a_schema_a_scope_a_doc_line_and_an_example(shell):
    described_rows = {name: operation for name, _, _, operation in described.operations()}
    assert sorted(described_rows) == sorted(ROWS), "the document has other operations than src/api/describe"
    missing = []
    for name, operation in described_rows.items():
        first = (answers(operation) or [{}])[0].get("content", {})
        media = next(iter(first.values()), {})
        for what, there in (("an answer", "schema" in media), ("an example", "x-example" in operation),
                            ("what the example gives", "example" in media), ("a doc line", len(operation["summary"]) > 5),
                            ("a scope", operation["x-scope"] in ("none", "any", "read", "write", "work", "define", "test", "admin"))):
            if not there:
                missing.append("%s lacks %s" % (name, what))
    assert not missing, "; ".join(missing) + ": " + HOW


def test_the_server_gives_the_document_that_the_descriptions_make(shell):
    assert len(ROWS) > 40 and described.document() == table.document()


def test_the_descriptions_name_nothing_that_is_not_there(shell):
    """Parameters and scopes are checked when pawl is built (tests/house/run_describe.py)."""
    reasons = described.document()["components"]["examples"]
    strange = [(op.name, token) for op in table.ALL for token in op.told.get("rejects", ()) if token not in reasons]
    assert not strange, "no such reason: %s" % strange


def test_every_reference_leads_somewhere_and_every_type_is_used(shell):
    root, used = described.document(), set()
    for part in walk(root):
        if "$ref" in part:
            described.resolve(part, root)
            used.add(part["$ref"])
    unused = [kind + "/" + name for kind in ("schemas", "parameters") for name in root["components"][kind]
              if "#/components/%s/%s" % (kind, name) not in used]
    assert not unused, "nobody uses %s" % unused


def whole_schema(operation):
    """Everything an operation takes as one object, as pawl_call() and a batch give it."""
    members, required = {}, []
    for parameter in operation["parameters"]:
        if "name" in parameter:
            members[parameter["name"]] = parameter["schema"]
            required += [parameter["name"]] if parameter["required"] else []
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        if media == "application/json" and "properties" in content["schema"]:
            members.update(content["schema"]["properties"])
            required += content["schema"]["required"]
        elif media != "application/json":
            members["text"] = {"type": "string"}
    return {"type": "object", "properties": members, "required": required, "additionalProperties": False}


def test_every_example_is_as_its_schema_says(shell):
    for name, _, _, operation in described.operations():
        wrong = list(described.defects(whole_schema(operation), operation["x-example"]))
        assert not wrong, "the example of %s: %s" % (name, wrong)
        for answer in answers(operation):
            media, content = next(iter(answer["content"].items()))
            wrong = list(described.defects(content["schema"], content["example"])) if media == "application/json" else []
            assert not wrong, "what the example of %s gives: %s" % (name, wrong)


def test_every_rejection_has_an_example_that_says_something(shell):
    root = described.document()
    reasons = re.findall(r'X\(\w+, \d+, "([^"]+)", (\d+), "([^"]+)"\)', (ROOT / "include/pawl.h").read_text())
    assert len(reasons) > 20
    for reason, http, title in reasons[1:]:
        example = root["components"]["examples"][reason]["value"]
        assert not list(described.defects(root["components"]["schemas"]["problem"], example))
        assert (example["status"], example["title"], example["reason"]) == (int(http), title, reason)
        assert example["detail"] != title, "problems: has no sentence for %s: %s" % (reason, HOW)


def test_the_check_of_answers_would_see_a_wrong_one(shell):
    good = {"new_state": "paid", "sequence_number": 1, "transition_id": "0" * 26 + "-1"}
    path = "/v1/instances/%s/fire" % ("0" * 26)

    def wrong(status, value, kind="application/json"):
        return described.answer_defects("POST", path, status, kind, json.dumps(value))

    assert not wrong(200, good)
    for broken in ({**good, "more": 1}, {k: v for k, v in good.items() if k != "new_state"}, {**good, "sequence_number": "1"},
                   {**good, "sequence_number": -1}, {**good, "transition_id": "x"}, {**good, "new_state": None}, []):
        assert wrong(200, broken), broken
    assert wrong(201, good) and wrong(200, good, "text/html")
    problem = described.document()["components"]["examples"]["terminal"]["value"]
    assert not wrong(409, problem, "application/problem+json")
    assert wrong(409, {**problem, "reason": "no-cancel-transition"}, "application/problem+json")
    assert list(described.defects({"$ref": "#/components/schemas/time"}, "yesterday"))


def official(shell, text):
    try:
        modules, name = npm_modules(), shell.write("openapi.json", text)
    except Unavailable as why:
        raise harness.Skip(why)
    done = subprocess.run(["node", str(ROOT / "tests/npm/openapi.mjs"), str(modules), str(shell.folder / name)],
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_it_is_valid_against_the_official_schema_of_openapi_3_1(shell):
    result = official(shell, json.dumps(described.document()))
    assert result["valid"] is True and result["version"] == "3.1", result
    broken = json.loads(json.dumps(described.document()))
    broken["paths"]["/v1/instances"]["post"]["responses"]["201"].pop("description")
    assert official(shell, json.dumps(broken))["valid"] is False


def test_it_has_a_tag_by_which_it_need_not_be_sent_again(shell):
    _, address = shell.serve()
    web = Web(address)
    first = web.expect(200, "GET", "/openapi.json")
    assert first.headers["etag"] and first.headers["content-type"] == "application/json"
    again = web.ask("GET", "/openapi.json", None, {"If-None-Match": first.headers["etag"]})
    assert again.status == 304 and not again.body, again
    web.refused("invalid-request", "GET", "/openapi.json?pretty=1")


# ---- What is let in ----

class Stage:
    """A server with one of each thing that an operation can be about."""

    def __init__(self, shell):
        _, address = shell.serve("--test")
        self.web = web = Web(address)
        web.expect(201, "PUT", "/v1/definitions/order", ORDER, {"Content-Type": "application/yaml"})
        web.expect(201, "PUT", "/v1/definitions/flow", {"steps": {"start": {"name": "start", "tool": "elsewhere", "done": True}}})
        web.expect(201, "PUT", "/v1/definitions/gate", {"steps": {"start": {"name": "start", "tool": None, "done": True}}})
        self.machine = web.create(definition="order")
        self.gate = web.create(definition="gate")

    def path(self, template):
        values = {"name": "order", "instance_id": self.machine, "step_id": self.gate + ".1", "alarm_id": "0" * 16, "token_id": "0" * 16, "turn_id": "7", "store": "other"}
        return re.sub(r"\{(\w+)\}", lambda found: values[found.group(1)], template)


def wrong_value(schema, root):
    """A value that the schema does not allow, or ABSENT if it allows everything."""
    for value in ({"no": 1}, 17.5, "\u0001", [[]]):
        if list(described.defects(schema, value, root)):
            return value
    return ABSENT


# Types are checked first, but for these the contract has a later place and another word (DESIGN.md section 5).
LATER = {("instance.create", "declaration"): "invalid-declaration", ("instance.fire", "guard_satisfied"): "guard-not-satisfied"}


def bodies(operation):
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return content.get("schema", {}).get("properties") and content


def test_what_the_schemas_require_the_handlers_require_and_what_they_do_not_know_is_refused(shell):
    stage, root, seen = Stage(shell), described.document(), 0
    for name, method, path, operation in described.operations():
        content = bodies(operation) if method else None
        if not content:
            continue
        target, good = stage.path(path), {k: v for k, v in content["example"].items()}
        for member in content["schema"]["required"]:
            less = {k: v for k, v in good.items() if k != member}
            refused = stage.web.refused("invalid-request", method, target, less)
            assert member in refused.json["detail"], (name, member, refused)
            stage.web.refused("invalid-request", method, target, {**less, member: None})
        refused = stage.web.refused("invalid-request", method, target, {**good, "acter": "ann"})
        assert "acter" in refused.json["detail"], (name, refused)
        for member, schema in content["schema"]["properties"].items():
            value = wrong_value(schema, root)
            if value is ABSENT:
                continue
            stage.web.refused(LATER.get((name, member), "invalid-request"), method, target,
                              {**({} if (name, member) in LATER else good), member: value})
            seen += 1
    assert seen > 40, seen


def test_filters_that_are_not_described_are_refused(shell):
    stage, seen = Stage(shell), 0
    for name, method, path, operation in described.operations():
        if method == "GET" and path.startswith("/v1/"):
            reply = stage.web.ask("GET", stage.path(path) + "?colour=red")
            assert reply.status == 400 and "colour" in reply.json["detail"], (name, reply)
            seen += 1
    assert seen > 12, seen


def test_parts_of_a_body_take_what_is_described_and_nothing_else(shell):
    """`claim` and the items of `steps` are objects inside a body: types.yaml describes them."""
    stage, root = Stage(shell), described.document()
    schemas = root["components"]["schemas"]
    answer = {"step_id": stage.gate + ".1", "lease": "x", "result": 1}
    claim = {"tools": ["nobody"], "worker": "w", "max": 1, "wait": "0s", "lease": "30s"}
    assert set(claim) == set(schemas["claim"]["properties"])
    assert {**answer, "error": 0, "retry": 0}.keys() == schemas["step_answer"]["properties"].keys()
    stage.web.expect(200, "POST", "/v1/steps/complete", {"steps": [answer], "claim": claim})
    for member in schemas["claim"]["required"]:
        stage.web.refused("invalid-request", "POST", "/v1/steps/complete",
                          {"steps": [], "claim": {k: v for k, v in claim.items() if k != member}})
    for member, schema in schemas["claim"]["properties"].items():
        stage.web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [], "claim": {**claim, member: wrong_value(schema, root)}})
    stage.web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [], "claim": {**claim, "more": 1}})
    stage.web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [{**answer, "more": 1}]})
    stage.web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [{"lease": "x", "result": 1}]})
    for member in ("step_id", "lease", "retry"):
        stage.web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [{**answer, member: {"no": 1}}]})


# ---- What is answered ----

class Recorder(Web):
    """A Web that remembers which operations answered with success, as they are described."""

    def __init__(self, address):
        super().__init__(address)
        self.seen = set()

    def ask(self, method, path, body=None, headers=None):
        reply = super().ask(method, path, body, headers)
        found = described.find(method, path)
        if found and reply.status < 300:
            self.seen.add(found[0])
        return reply


FLOW = {"steps": {"start": {"name": "start", "tool": "elsewhere", "next": "gate"},
                  "gate": {"tool": None, "next": "wait"}, "wait": {"wait": {"signal": "go"}, "next": "last"},
                  "last": {"wait": {"timer": "1h"}, "done": True}}}
SPARE = {"steps": {"start": {"name": "start", "tool": None, "done": True}}}


def work_through(web, flow):
    """A flow that is claimed, beaten for, completed, approved, signalled and waited for."""
    def claim():
        return web.post("/v1/steps/claim", {"tools": ["elsewhere"], "worker": "w"}).json["steps"][0]

    def turn(step, **answer):
        return web.post("/v1/steps/complete", {"steps": [{"step_id": step["step_id"], "lease": step["lease"], **answer}]})

    def gate():
        return next(s for s in web.get("/v1/instances/%s/steps" % flow).json["steps"] if s["name"] == "gate")["step_id"]

    step = claim()
    web.expect(200, "POST", "/v1/steps/%s/heartbeat" % step["step_id"], {"lease": step["lease"]})
    assert turn(step, result={"hits": 3}).json["results"][0]["status"] == "done"
    assert turn(step, result=1).json["results"][0]["reason"] == "lease-lost"
    web.get("/v1/steps?instance_id=" + flow)
    web.expect(200, "POST", "/v1/steps/%s/approve" % gate(), {"actor_ref": "ann"})
    web.get("/v1/instances/%s/why" % flow)
    web.expect(202, "POST", "/v1/test/instances/%s/signals" % flow, {"name": "go", "payload": [1]})
    web.expect(200, "POST", "/v1/test/instances/%s/timers/last/fire" % flow)
    assert web.get("/v1/instances/%s" % flow).json["status"] == "completed"


def test_the_real_answers_of_every_operation_are_as_described(shell):
    shell.pawl("init")
    countdown = shell.json("start", "countdown", "--input", '{"from":3,"every":"1h"}')["instance_id"]
    _, address = shell.serve("--test")
    web = Recorder(address)
    yaml = {"Content-Type": "application/yaml"}
    web.expect(201, "PUT", "/v1/definitions/order", ORDER, yaml)
    web.expect(200, "PUT", "/v1/definitions/order", ORDER, yaml)
    web.expect(201, "PUT", "/v1/definitions/flow", FLOW)
    web.expect(201, "PUT", "/v1/definitions/gate", SPARE)
    web.expect(201, "PUT", "/v1/definitions/worker", {"steps": {"start": {"name": "start", "tool": "other", "retry": {"max": 2, "backoff": ["1s"]}, "done": True}}})
    web.expect(201, "PUT", "/v1/definitions/signalled", {"steps": {"start": {"name": "start", "wait": {"signal": "go"}, "done": True}}})
    web.post("/v1/definitions/check?against=order", ORDER.replace("ship", "shp"), yaml)
    web.post("/v1/definitions/check", "states: [", yaml)
    machine = web.create(definition="order", labels={"a": "b"}, actor_ref="ann", input={"x": 1}, correlation_id="C", instance_metadata=[1])
    web.expect(200, "POST", "/v1/instances/%s/fire" % machine, {"action": "pay", "actor_ref": "ann", "reason": "r", "payload": {"p": None}})
    for path in ("", "/current", "/view", "/history", "/declaration", "/why", "/steps"):
        web.ask("GET", "/v1/instances/%s%s" % (machine, path))
    web.expect(201, "PUT", "/v1/definitions/queried", {"do": [{"wait": {"signal": "go"}}], "queries": {"n": "input.n"}})
    web.expect(200, "GET", "/v1/instances/%s/queries/n" % web.create(definition="queried", input={"n": 1}))
    for path in ("/variables", "/view"):
        web.expect(200, "GET", "/v1/instances/%s%s" % (countdown, path))
    for verb in ("pause", "resume", "verify"):
        web.expect(200, "POST", "/v1/instances/%s/%s" % (machine, verb))
    work_through(web, web.create(definition="flow", test=True))
    for verb in ("reject", "approve"):
        web.expect(200, "POST", "/v1/steps/%s.1/%s" % (web.create(definition="gate"), verb), {"actor_ref": "ann"})
    web.create(definition="worker")
    step = web.post("/v1/steps/claim", {"tools": ["other"], "worker": "w"}).json["steps"][0]
    web.expect(200, "GET", "/v1/workers")
    web.expect(200, "GET", "/v1/tools")
    web.expect(200, "GET", "/v1/nodes")
    hello = {"pawl": 1, "build": "b", "types": [{"code": "echo", "version": 1, "timers": [], "signals": ["go"], "vars": [], "replay": True}]}
    session = web.expect(200, "POST", "/v1/turns/offer", {"worker": "w", "hello": hello}).json["session"]
    starting = threading.Thread(target=lambda: Web(address).create(definition="echo"))
    starting.start()
    turn = web.expect(200, "POST", "/v1/turns/claim", {"session": session, "wait": "30s"}).json["turns"][0]
    web.expect(200, "POST", "/v1/turns/%s/complete" % turn["turn_id"], {"lease": turn["lease"], "answer": {"end": 1, "value": 1}})
    starting.join()
    web.refused("lease-lost", "POST", "/v1/turns/%s/complete" % turn["turn_id"], {"lease": turn["lease"], "answer": {"end": 1, "value": 1}})
    web.ask("GET", "/v1/instances/%s/why" % step["instance_id"])
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": {"why": "rain"}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "2s"})
    step = web.post("/v1/steps/claim", {"tools": ["other"], "worker": "w"}).json["steps"][0]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": None})
    web.expect(202, "POST", "/v1/instances/%s/signals" % web.create(definition="signalled"), {"name": "go"})
    failed = web.create(definition="gate")
    web.expect(200, "GET", "/v1/gates?approver=ann")
    web.expect(200, "POST", "/v1/instances/%s/amend" % failed, {"definition": "gate@1"})
    web.expect(200, "POST", "/v1/steps/%s.1/reject" % failed)
    web.expect(201, "POST", "/v1/instances/%s/redrive" % failed)
    web.expect(200, "POST", "/v1/instances/%s/cancel" % web.create(definition="order"), {"reason": "r"})
    web.expect(200, "POST", "/v1/cancel", {"correlation_id": "C"})
    erased = web.create(definition="order", subject_ref="S", input={"x": 1})
    web.expect(200, "POST", "/v1/instances/%s/cancel" % erased, {"reason": "r"})
    web.expect(200, "POST", "/v1/instances/%s/erase" % erased, {"reason": "r", "actor_ref": "dpo"})
    for path in ("", "/view", "/history", "/records", "/export"):
        web.expect(200, "GET", "/v1/instances/%s%s" % (erased, path))
    web.expect(200, "POST", "/v1/erase", {"subject_ref": "S"})
    web.expect(201, "PUT", "/v1/definitions/kept", ORDER.replace("name: order", "name: kept\nretention: {after_end: 9d, then: erase}"), yaml)
    web.expect(200, "POST", "/v1/instances/%s/hold" % erased, {"reason": "r", "actor_ref": "dpo"})
    for path in ("/v1/holds?limit=1", "/v1/retention"):
        web.expect(200, "GET", path)
    web.expect(200, "POST", "/v1/instances/%s/lift" % erased, {"reason": "r"})
    web.create(definition="order")  # the newest stays
    web.expect(200, "POST", "/v1/instances/%s/archive" % erased, {"reason": "r", "actor_ref": "ops"})
    web.expect(200, "POST", "/v1/archive", {"definition": "none", "ended_before": "2026-01-01T00:00:00.000Z"})
    alarm = web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.fire", "input": {"instance_id": machine, "action": "ship"}}).json
    web.expect(201, "PUT", "/v1/stores/other")
    web.expect(200, "PUT", "/v1/stores/other")
    token = web.expect(201, "POST", "/v1/tokens", {"scopes": "read", "name": "ci"}).json
    for path in ("/v1/instances?limit=2", "/v1/instances?label.a=b", "/v1/instances/counts", "/v1/definitions", "/v1/definitions/flow",
                 "/v1/graphs/flow?format=svg", "/v1/instances/%s/graph" % machine, "/v1/instances/find", "/v1/info",
                 "/v1/export/flow", "/v1/instances/%s/export" % machine, "/v1/instances/%s/records" % machine,
                 "/v1/timers", "/v1/schedule?cron=@daily&zone=Asia/Tokyo", "/v1/definitions/flow?expanded=true", "/v1/graphs/order?format=layout", "/v1/instances/%s/variables?sequence_to=1" % countdown,
                 "/v1/steps", "/v1/alarms", "/v1/tokens", "/v1/stores", "/metrics", "/healthz", "/openapi.json"):
        web.expect(200, "GET", path)
    web.expect(200, "DELETE", "/v1/alarms/" + alarm["alarm_id"])
    web.expect(200, "DELETE", "/v1/tokens/" + token["token_id"])
    web.expect(200, "POST", "/v1/verify", {})
    checked = web.expect(201, "POST", "/v1/validations", {"definition": "order"}).json["instance_id"]
    web.expect(200, "POST", "/v1/validations/%s/run" % checked, {"max": 1})
    web.ask("POST", "/v1/validations/%s/cancel" % checked, {})
    web.expect(202, "POST", "/v1/signals", {"name": "go"})
    cart = {"signals": {"add": {"buffer": True}}, "steps": {"first": {"wait": {"signal": "add"}, "next": "next"}, "next": {"wait": {"signal": "add"}, "done": True}}}
    web.expect(201, "PUT", "/v1/definitions/cart", cart)
    for _ in range(2):
        web.expect(202, "POST", "/v1/signals/start", {"name": "add", "definition": "cart", "subject_ref": "ann"})
    lines = web.expect(200, "POST", "/v1/batch", json.dumps({"operation": "instance.get", "input": {"instance_id": machine}})).body
    assert not list(described.defects({"$ref": "#/components/schemas/instance"}, json.loads(lines)["body"]))
    for path in ("/v1/events", "/v1/instances/%s/events" % machine):
        event = Stream(web, path + "?from=start").open().event()
        assert not list(described.defects({"$ref": "#/components/schemas/event"}, event.entry)), event
        web.expect(200, "HEAD", path)
        web.seen.add(described.find("GET", path)[0])
    missed = {name for name, method, _, _ in described.operations() if method} - web.seen
    assert not missed, "no real answer of %s was seen: call it here, with success" % ", ".join(sorted(missed))


if __name__ == "__main__":
    harness.main(globals())
