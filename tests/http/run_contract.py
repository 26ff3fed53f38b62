"""The wire contract of DESIGN.md section 5, over HTTP, against a real server."""
import json

from web import Web, harness

BATCH = """{
  "states": ["sampled", "testing", "released", "rejected", "aborted"], "x-note": 1.50,
  "initial_state": "sampled", "terminal_states": ["released", "rejected", "aborted"],
  "terminal_kinds": {"released": "success", "rejected": "failure", "aborted": "cancel"},
  "transitions": [
    {"from_state": "sampled", "action": "begin-testing", "to_state": "testing"},
    {"from_state": "testing", "action": "release", "to_state": "released", "guard": "QP-sign-off"},
    {"from_state": "testing", "action": "reject-batch", "to_state": "rejected", "requires_reason": true},
    {"from_state": "sampled", "action": "abort", "to_state": "aborted"}]}"""
DECLARATION = json.loads(BATCH)


def server(shell, *words):
    child, address = shell.serve(*words)
    return child, Web(address)


def put_batch(web, name="batch"):
    return web.expect(201, "PUT", "/v1/definitions/" + name, BATCH).json


def test_a_definition_is_put_once_and_read_back_as_supplied(shell):
    _, web = server(shell)
    first = put_batch(web)
    assert (first["name"], first["version"], first["kind"], first["warnings"]) == ("batch", 1, "machine", [
        w for w in first["warnings"]]), first
    assert len(first["sha256"]) == 64
    again = web.expect(200, "PUT", "/v1/definitions/batch", BATCH).json
    assert again["version"] == 1
    other = web.expect(201, "PUT", "/v1/definitions/batch", BATCH + "\n").json
    assert other["version"] == 2
    back = web.expect(201, "PUT", "/v1/definitions/batch", BATCH).json
    assert back["version"] == 3, "a text equal to an older version than the newest is a new version"
    got = web.expect(200, "GET", "/v1/definitions/batch?version=1").json
    assert got["text"] == BATCH and got["kind"] == "machine" and got["version"] == 1, got
    assert web.expect(200, "GET", "/v1/definitions/batch").json["version"] == 3
    listed = web.expect(200, "GET", "/v1/definitions").json
    assert "batch" in [d["name"] for d in listed["definitions"]] and listed["next"] is None
    web.refused("not-known", "GET", "/v1/definitions/nobody")
    web.refused("not-known", "GET", "/v1/definitions/batch?version=9")


def test_yaml_is_taken_with_its_content_type(shell):
    _, web = server(shell)
    text = (harness.EXAMPLES / "order.yaml").read_text()
    for kind in ("application/yaml", "application/x-yaml"):
        web.ask("PUT", "/v1/definitions/order", text, {"Content-Type": kind})
    assert web.get("/v1/definitions/order").json["text"] == text
    web.refused("invalid-definition", "PUT", "/v1/definitions/other", text, {"Content-Type": "application/yaml"})


def test_bad_definitions_are_refused_with_line_and_column(shell):
    _, web = server(shell)
    for text in ("{", "[]", "{}", "null", '{"states":["a"],"initial_state":"b","transitions":[]}',
                 '{"states":["a","b"],"initial_state":"a","terminal_states":["b"],"transitions":[]}',
                 '{"states":["a"],"do":[],"initial_state":"a","transitions":[]}'):
        web.refused("invalid-definition", "PUT", "/v1/definitions/bad", text)
    checked = web.expect(200, "POST", "/v1/definitions/check", '{"states":["a","a"],\n"initial_state":"z",\n"transitions":[]}').json
    assert len(checked["errors"]) >= 2 and checked["errors"][0]["line"] == 1, checked
    assert checked["errors"][1]["line"] == 2 and checked["errors"][1]["column"] >= 1, checked
    assert web.expect(200, "POST", "/v1/definitions/check", BATCH).json["errors"] == []


def test_a_machine_lives_from_create_to_its_end(shell):
    _, web = server(shell)
    put_batch(web)
    made = web.expect(201, "POST", "/v1/instances", {"definition": "batch", "subject_ref": "B-7", "actor_ref": "ann",
                      "correlation_id": "c1", "labels": {"line": "2"}, "input": {"n": 1.50}, "instance_metadata": {"a": 1}}).json
    assert set(made) == {"instance_id", "current_state"} and made["current_state"] == "sampled"
    id, base = made["instance_id"], "/v1/instances/" + made["instance_id"]
    assert web.get(base + "/current").json == {"current_state": "sampled"}
    refused = web.refused("invalid-transition", "POST", base + "/fire", {"action": "release"})
    assert "begin-testing" in refused.json["detail"] and refused.status == 409
    fired = web.expect(200, "POST", base + "/fire", '{"action": "begin-testing", "actor_ref": "bob", "payload": {"x":1.10},'
                       '"reason": "due"}').json
    assert fired["new_state"] == "testing" and fired["sequence_number"] == 1 and fired["transition_id"]
    web.refused("guard-not-satisfied", "POST", base + "/fire", {"action": "release"})
    web.refused("guard-not-satisfied", "POST", base + "/fire", {"action": "release", "guard_satisfied": "yes"})
    web.refused("guard-not-satisfied", "POST", base + "/fire", {"action": "release", "guard_satisfied": 1})
    web.refused("reason-required", "POST", base + "/fire", {"action": "reject-batch"})
    web.refused("no-cancel-transition", "POST", base + "/cancel", {})
    web.expect(200, "POST", base + "/fire", {"action": "release", "guard_satisfied": True})
    web.refused("terminal", "POST", base + "/fire", {"action": "release"})
    web.refused("terminal", "POST", base + "/cancel")
    entries = web.get(base + "/history").json["entries"]
    assert [e["action"] for e in entries] == ["begin-testing", "release"], entries
    first, second = entries
    assert first["actor_ref"] == "bob" and first["reason"] == "due" and first["payload"] == {"x": 1.1}, first
    assert "guard_satisfied" not in first and second["guard_satisfied"] is True and "actor_ref" not in second
    assert first["from_state"] == "sampled" and first["to_state"] == "testing" and len(first["hash"]) == 64
    assert first["fired_at"].endswith("Z") and first["transition_id"] == fired["transition_id"]
    assert b'"payload":{"x":1.10}' in web.get(base + "/history").body, "numbers come back as they were written"
    got = web.get(base).json
    for name, value in {"instance_id": id, "definition": "batch", "version": 1, "kind": "machine", "current_state": "released",
                        "status": "completed", "terminal_kind": "success", "actions": [], "can_cancel": False,
                        "next_sequence_number": 3, "subject_ref": "B-7", "correlation_id": "c1", "labels": {"line": "2"},
                        "parent_id": None, "created_by": "ann", "input": {"n": 1.5}, "instance_metadata": {"a": 1},
                        "result": None, "error": None}.items():
        assert got[name] == value, (name, got[name], value)
    assert got["instantiated_at"] <= got["updated_at"]


def test_an_inline_declaration_comes_back_byte_for_byte(shell):
    _, web = server(shell)
    body = '{"declaration": %s, "actor_ref": null}' % BATCH
    id = web.expect(201, "POST", "/v1/instances", body).json["instance_id"]
    assert web.get("/v1/instances/%s/declaration" % id).body.decode() == BATCH
    got = web.get("/v1/instances/" + id).json
    assert got["definition"] is None and got["version"] is None and got["kind"] == "machine", got
    assert got["can_cancel"] is True and [a["action"] for a in got["actions"]] == ["begin-testing", "abort"]
    assert got["status"] == "suspended" and got["terminal_kind"] is None and got["next_sequence_number"] == 1
    cancelled = web.expect(200, "POST", "/v1/instances/%s/cancel" % id, {"actor_ref": "x"}).json
    assert cancelled["new_state"] == "aborted" and cancelled["terminal_kind"] == "cancel"
    assert "reason" not in web.get("/v1/instances/%s/history" % id).json["entries"][0]  # none was given


def test_creations_that_cannot_be_right_are_refused_by_name(shell):
    _, web = server(shell)
    put_batch(web)
    for body, reason in (
            ({}, "invalid-request"), ({"definition": "batch", "declaration": DECLARATION}, "invalid-request"),
            ({"definition": None, "declaration": None}, "invalid-request"), ({"definition": "nobody"}, "not-known"),
            ({"definition": "batch@7"}, "not-known"), ({"definition": 7}, "invalid-request"),
            ({"definition": "batch", "color": 1}, "invalid-request"), ({"declaration": "text"}, "invalid-declaration"),
            ({"declaration": []}, "invalid-declaration"), ({"declaration": {}}, "invalid-declaration"),
            ({"declaration": {}, "instantiated_at": "2999-01-01T00:00:00Z"}, "invalid-declaration"),
            ({"definition": "batch", "instantiated_at": "2999-01-01T00:00:00Z"}, "invalid-request"),
            ({"definition": "batch", "instantiated_at": "yesterday"}, "invalid-request"),
            ({"definition": "batch", "instance_metadata": {}}, "invalid-request"),
            ({"definition": "batch", "instance_metadata": ""}, "invalid-request"),
            ({"definition": "batch", "labels": {"a": 1}}, "invalid-request"), ({"definition": "batch", "labels": []}, "invalid-request"),
            ({"definition": "batch", "actor_ref": "  "}, "invalid-request"), ({"definition": "batch", "actor_ref": 5}, "invalid-request"),
            ({"definition": "batch", "subject_ref": " "}, "invalid-request"), ({"definition": "batch", "test": "yes"}, "invalid-request"),
            ("[1]", "invalid-request"), ("{", "invalid-request"), ('{"definition":"batch","definition":"batch"}', "invalid-request")):
        web.refused(reason, "POST", "/v1/instances", body)
    assert web.get("/v1/instances").json["instances"] == []
    web.create(definition="batch", actor_ref="", instantiated_at="2020-01-01T00:00:00+02:00")
    assert web.get("/v1/instances").json["instances"][0]["instantiated_at"] == "2019-12-31T22:00:00.000Z"


def test_fires_that_cannot_be_right_are_refused_in_the_order_of_the_contract(shell):
    _, web = server(shell)
    put_batch(web)
    id = web.create(definition="batch")
    fire = "/v1/instances/%s/fire" % id
    unknown = "/v1/instances/%s/fire" % ("0" * 26)
    future = "2999-01-01T00:00:00Z"
    for path, body, reason in (
            (fire, {}, "invalid-request"), (fire, {"action": None}, "invalid-request"), (fire, {"action": " "}, "invalid-request"),
            (fire, {"action": ""}, "invalid-request"), (fire, {"action": 7}, "invalid-request"),
            (fire, {"action": "begin-testing", "colour": 1}, "invalid-request"),
            ("/v1/instances/%20/fire", {"action": "x"}, "invalid-request"),
            (unknown, {"action": " "}, "invalid-request"), (unknown, {"action": "x", "fired_at": future}, "not-known"),
            ("/v1/instances/nonsense/fire", {"action": "x"}, "not-known"),
            (fire, {"action": "x", "fired_at": future}, "invalid-transition"), (fire, {"action": "x", "actor_ref": " "}, "invalid-transition"),
            (fire, {"action": "begin-testing", "expected_sequence": 9, "actor_ref": " "}, "conflict"),
            (fire, {"action": "begin-testing", "fired_at": future}, "invalid-request"),
            (fire, {"action": "begin-testing", "fired_at": "2001-01-01T00:00:00Z"}, "invalid-request"),
            (fire, {"action": "begin-testing", "fired_at": "soon"}, "invalid-request"),
            (fire, {"action": "begin-testing", "actor_ref": "\t"}, "invalid-request"),
            (fire, {"action": "begin-testing", "expected_sequence": "1"}, "invalid-request")):
        web.refused(reason, "POST", path, body)
    assert web.get("/v1/instances/%s/history" % id).json["entries"] == []
    web.expect(200, "POST", fire, {"action": "begin-testing", "expected_sequence": 1})


def test_history_is_filtered_and_bad_filters_are_named(shell):
    _, web = server(shell)
    loop = {"states": ["a", "b"], "initial_state": "a", "terminal_states": [],
            "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}, {"from_state": "b", "action": "back", "to_state": "a"}]}
    id = web.create(declaration=loop, instantiated_at="2026-01-01T00:00:00Z")
    base = "/v1/instances/%s/history" % id
    for day in range(1, 11):
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "go" if day % 2 else "back", "actor_ref": "u%d" % (day % 3),
                   "fired_at": "2026-02-%02dT00:00:00Z" % day})

    def numbers(query):
        return [e["sequence_number"] for e in web.expect(200, "GET", base + query).json["entries"]]
    assert numbers("") == list(range(1, 11))
    assert numbers("?action=go") == [1, 3, 5, 7, 9] and numbers("?from_state=b&actor_ref=u0") == [6]
    assert numbers("?sequence_from=3&sequence_to=5") == [3, 4, 5] and numbers("?sequence_from=99") == []
    assert numbers("?fired_after=2026-02-02T00:00:00Z&fired_before=2026-02-04T00:00:00Z") == [2, 3, 4]
    assert numbers("?to_state=nowhere") == [] and numbers("?transition_id=%s-4" % id) == [4]
    for query in ("?colour=1", "?action=", "?action=%20", "?actor_ref=", "?transition_id=", "?sequence_from=5&sequence_to=4",
                  "?sequence_from=x", "?fired_after=2026-02-04T00:00:00Z&fired_before=2026-02-02T00:00:00Z", "?fired_at.after=2026-02-02T00:00:00Z",
                  "?fired_after=never"):
        web.refused("invalid-query", "GET", base + query)
    web.refused("not-known", "GET", "/v1/instances/%s/history?colour=1" % ("0" * 26))
    web.refused("invalid-request", "GET", "/v1/instances/%20/history?colour=1")


def test_instances_are_listed_by_what_they_are(shell):
    _, web = server(shell)
    put_batch(web)
    ids = [web.create(definition="batch", subject_ref="s%d" % (n % 2), correlation_id="c", labels={"n": str(n)}) for n in range(5)]
    code = web.create(definition="countdown", input={"from": 3, "every": "1h"})
    web.expect(200, "POST", "/v1/instances/%s/fire" % ids[0], {"action": "abort"})

    def listed(query=""):
        return [i["instance_id"] for i in web.expect(200, "GET", "/v1/instances" + query).json["instances"]]
    assert listed() == [code] + ids[::-1] and listed("?order=oldest") == ids + [code]
    assert listed("?definition=batch&state=sampled") == ids[:0:-1] and listed("?status=cancelled") == [ids[0]]
    assert listed("?subject_ref=s1") == [ids[3], ids[1]] and listed("?label.n=2") == [ids[2]] and listed("?kind=code") == [code]
    assert listed("?correlation_id=c&status=suspended") == ids[:0:-1] and listed("?correlation_id=zzz") == []
    page = web.get("/v1/instances?limit=4").json
    assert page["next"] and [i["instance_id"] for i in page["instances"]] == listed()[:4]
    rest = web.get("/v1/instances?limit=4&after=" + page["next"]).json
    assert rest["next"] is None and [i["instance_id"] for i in rest["instances"]] == listed()[4:]
    for query in ("?limit=0", "?limit=1001", "?limit=x", "?status=odd", "?kind=odd", "?order=odd", "?after=odd!", "?colour=1",
                  "?created_after=never", "?state="):
        web.refused("invalid-query", "GET", "/v1/instances" + query)


def test_counts_are_by_state_and_status(shell):
    _, web = server(shell)
    put_batch(web)
    ids = [web.create(definition="batch") for _ in range(3)]
    web.create(definition="countdown", input={"from": 3, "every": "1h"})
    web.expect(200, "POST", "/v1/instances/%s/fire" % ids[0], {"action": "abort"})
    counts = web.expect(200, "GET", "/v1/instances/counts").json
    assert counts == {"by_state": {"aborted": 1, "running": 1, "sampled": 2}, "by_status": {"suspended": 3, "cancelled": 1}, "total": 4}, counts
    assert web.get("/v1/instances/counts?definition=batch").json["total"] == 3
    assert web.get("/v1/instances/counts?definition=nobody").json == {"by_state": {}, "by_status": {}, "total": 0}
    for query in ("?colour=1", "?definition=", "?definition=a@b", "?limit=3"):
        web.refused("invalid-query", "GET", "/v1/instances/counts" + query)
    web.refused("not-allowed", "POST", "/v1/instances/counts", {})


def test_a_flow_a_countdown_and_why(shell):
    _, web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/pair", {"steps": {"start": {"name": "one", "tool": "set", "args": {"x": "{{input.n}}"}, "next": "two"},
               "two": {"tool": "sleep", "args": {"for": "1h"}, "next": "three"}, "three": {"tool": "set", "args": {}, "done": True}}})
    made = web.expect(201, "POST", "/v1/instances", {"definition": "pair", "input": {"n": 7}}).json
    assert made["current_state"] == "running", made
    base = "/v1/instances/" + made["instance_id"]
    for _ in range(2000):
        waiting = web.get(base + "/why").json["waiting_for"]
        if waiting and waiting[0]["kind"] == "timer":
            break
    assert waiting[0]["name"] == "two" and waiting[0]["until"].endswith("Z"), waiting
    got = web.get(base).json
    assert got["status"] == "suspended" and got["kind"] == "flow" and got["actions"] == [{"action": "cancel", "to_state": "cancelled"}] or got["actions"][0]["action"] == "cancel", got
    entries = web.get(base + "/history").json["entries"]
    assert [e["action"] for e in entries] == ["start", "step.start", "step.complete"], entries
    assert entries[2]["step"] == "one" and entries[2]["attempt"] == 1 and entries[2]["payload"] == {"x": 7}, entries[2]
    steps = web.get(base + "/steps").json["steps"]
    assert [(s["name"], s["status"], s["attempt"]) for s in steps] == [("one", "done", 1), ("two", "pending", 1)], steps
    assert steps[0]["result"] == {"x": 7} and steps[0]["step_id"] and steps[0]["tool"] == "set"
    web.refused("invalid-transition", "POST", base + "/fire", {"action": "finish"})
    web.refused("invalid-request", "POST", base + "/fire", {"action": "cancel", "actor_ref": " "})
    web.refused("conflict", "POST", base + "/fire", {"action": "cancel", "expected_sequence": 2})
    web.refused("invalid-request", "POST", base + "/fire", {"action": "cancel", "fired_at": "2999-01-01T00:00:00Z"})
    web.refused("not-awaiting", "POST", base + "/signals", {"name": "x"})
    assert web.expect(200, "POST", base + "/cancel", {"reason": "enough"}).json == {"new_state": "cancelled", "terminal_kind": "cancel"}
    id = web.create(definition="countdown", input={"from": 2, "every": "1h"})
    base = "/v1/instances/" + id
    assert {w["kind"] for w in web.get(base + "/why").json["waiting_for"]} == {"timer", "signal"}
    assert web.expect(202, "POST", base + "/signals", {"name": "add", "payload": 3}).json == {"delivered": 1}
    web.refused("not-awaiting", "POST", base + "/signals", {"name": "nothing"})
    web.refused("invalid-request", "POST", base + "/signals", {"name": ""})
    web.expect(202, "POST", base + "/signals", {"name": "stop"})
    assert web.get(base).json["status"] == "completed" and web.get(base).json["result"] is not None
    web.refused("terminal", "POST", base + "/signals", {"name": "stop"})
    verified = web.expect(200, "POST", base + "/verify").json
    assert verified["valid"] is True and verified["entries"] == 4, verified


def test_the_test_clock_moves_only_by_advance_and_survives_a_restart(shell):
    child, web = server(shell, "--test")
    id = web.create(definition="countdown", input={"from": 3, "every": "24h"})
    made = web.get("/v1/instances/" + id).json["instantiated_at"]
    web.expect(200, "POST", "/v1/test/advance", {"by": "25h"})
    assert web.get("/v1/instances/%s" % id).json["next_sequence_number"] == 3
    shell.stop(child)
    child, web = server(shell, "--test")
    web.expect(200, "POST", "/v1/test/advance", {"by": "47h"})
    got = web.get("/v1/instances/" + id).json
    assert got["status"] == "completed", got
    times = [e["fired_at"] for e in web.get("/v1/instances/%s/history" % id).json["entries"]]
    assert times[1][11:] == made[11:] and times[2][11:] == made[11:], (made, times)
    web.refused("invalid-request", "POST", "/v1/test/advance", {"by": "soon"})
    web.refused("invalid-request", "POST", "/v1/test/advance", {})
    shell.stop(child)
    child, web = server(shell)
    web.refused("not-known", "POST", "/v1/test/advance", {"by": "1h"})


def test_a_timer_of_a_test_instance_fires_by_hand(shell):
    _, web = server(shell)
    id = web.create(definition="countdown", input={"from": 1, "every": "1ms"}, test=True)
    assert web.get("/v1/instances/" + id).json["status"] == "suspended"
    web.refused("not-awaiting", "POST", "/v1/test/instances/%s/timers/tock/fire" % id)
    web.expect(200, "POST", "/v1/test/instances/%s/timers/tick/fire" % id)
    assert web.get("/v1/instances/" + id).json["status"] == "completed"


def test_methods_paths_hosts_and_bodies_are_checked(shell):
    _, web = server(shell)
    assert web.expect(200, "GET", "/healthz").headers["content-type"].startswith("application/json")
    web.refused("not-known", "GET", "/v1/nothing")
    reply = web.refused("not-allowed", "DELETE", "/v1/instances")
    assert reply.status == 405 and "GET" in reply.headers["allow"] and "POST" in reply.headers["allow"]
    web.refused("not-allowed", "GET", "/v1/instances/x/fire")
    assert web.ask("HEAD", "/v1/instances").status == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Host": "127.0.0.1.evil.example:80"}):
        assert web.refused("forbidden", "GET", "/v1/instances", headers=headers).status == 403
    assert web.ask("GET", "/v1/instances", headers={"Origin": "http://" + web.host}).status == 200
    assert web.refused("too-large", "POST", "/v1/instances", b'{"definition":"' + b"x" * (1 << 20) + b'"}').status == 413
    for body in (b'{"definition":"\xff"}', b'{"definition":"a\\u0000"}', b"\xef\xbb\xbf{}", b"[" * 70 + b"]" * 70, b'{"a":1e}', b""):
        assert web.ask("POST", "/v1/instances", body, {"Content-Type": "application/json"}).json["reason"] in ("invalid-request", "not-known")
    assert web.get("/v1/stores").json == {"stores": ["default"]}
    assert web.get("/v1/stores/default/instances").json["instances"] == []
    web.refused("not-known", "GET", "/v1/stores/other/instances")


if __name__ == "__main__":
    harness.main(globals())
