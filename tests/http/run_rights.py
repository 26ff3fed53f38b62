"""Who may do what with a second definition or another's name, now and later: limited tokens against the table of
operations; and the rights of what a definition spawns or starts, which are those of both its starter and its author
(RELIABILITY.md B5)."""
import json
import sqlite3
import subprocess
import sys

import table
from web import Web, harness

sys.path.insert(0, str(harness.ROOT / "tests" / "verify"))
import forge  # noqa: E402

FLOW = "name: %s\nsteps:\n  start: {name: first, tool: outside, next: second}\n  second: {tool: outside, done: true}\n"
SCOPES = {op.name: op.scope for op in table.ROUTED}
NAMING = {"definition", "against", "instance_id", "step_id"}


def names_definition(op, param):
    return param.name in NAMING or (param.name == "name" and op.name.startswith("definition."))


def bearer(token):
    return {"Authorization": "Bearer " + token}


def make(web, scopes, **more):
    return bearer(web.expect(201, "POST", "/v1/tokens", {"scopes": scopes, **more}).json["token"])


def put(web, name, text, headers=None):
    return web.expect(201, "PUT", "/v1/definitions/" + name, text, {"Content-Type": "application/yaml", **(headers or {})}).json


def call(web, op, values, token):
    """Call the operation over HTTP, with these values of the parameters that name a definition or an instance."""
    filled = {p.name: values.get(p.name, "x") for p in op.params if p.name in values or p.required}
    target = op.target(**{p.name: filled.pop(p.name) for p in op.of("path")})
    query = "&".join("%s=%s" % (p.name, filled.pop(p.name)) for p in op.of("query") if p.name in filled)
    method = "HEAD" if target.endswith("events") else op.method
    if "text_body" in op.flags or op.method == "GET":
        body = None if op.method == "GET" else "x"
    else:
        body = {n: {} if n == "input" else v for n, v in filled.items()}
    return web.ask(method, target + ("?" + query if query else ""), body, token).status


def in_batch(web, op, values, token):
    filled = {p.name: values.get(p.name, "x") for p in op.params if p.name in values or p.required}
    line = json.dumps({"operation": op.name, "input": filled})
    return json.loads(web.expect(200, "POST", "/v1/batch", line, token).body)["status"]


def test_every_operation_that_names_a_definition_anywhere_is_refused_to_a_token_without_it(shell):
    web = Web(shell.serve("--test")[1])
    ids = {}
    for name in ("mine", "other"):
        put(web, name, FLOW % name)
        ids[name] = web.create(definition=name, test=True)

    def values(which):
        return {"definition": which, "against": which, "name": which, "instance_id": ids[which], "step_id": ids[which] + ".1"}
    cells = 0
    for op in table.ROUTED:
        naming = [p.name for p in op.params if names_definition(op, p)]
        if not naming or SCOPES[op.name] in ("any", "none"):
            continue
        token = make(web, SCOPES[op.name] + ":mine")
        ids["mine"] = web.create(definition="mine", test=True)  # an archived one is not there for what comes after it
        given = {n: v for n, v in values("mine").items() if n in naming}
        assert call(web, op, given, token) != 403, (op, "with what is its own")
        for ask in (call, in_batch) if not op.path.endswith("events") else (call,):
            for one in naming:
                assert ask(web, op, {**given, one: values("other")[one]}, token) == 403, (op, one, ask.__name__)
                cells += 1
            nowhere = {**given, **({"instance_id": "0" * 26} if "instance_id" in naming else {"definition": "nobody"} if "definition" in naming else {})}
            if nowhere != given:
                assert ask(web, op, nowhere, token) == 403, (op, "what is not there")
    assert cells > 60, cells


def test_an_amend_needs_the_right_to_the_new_definition(shell):
    web = Web(shell.serve()[1])
    for name in ("floworder", "flowsecret"):
        put(web, name, FLOW % name)
    token = make(web, "write:floworder,read:floworder")
    own = web.expect(201, "POST", "/v1/instances", {"definition": "floworder"}, token).json["instance_id"]
    where = "/v1/instances/%s/amend" % own
    for target in ("flowsecret", "flowsecret@1", "nobody"):
        assert web.refused("forbidden", "POST", where, {"definition": target}, token).status == 403
    alarm = {"after": "0s", "operation": "instance.amend", "input": {"instance_id": own, "definition": "flowsecret"}}
    web.refused("forbidden", "POST", "/v1/alarms", alarm, token)
    assert web.expect(200, "GET", "/v1/instances/" + own, None, token).json["definition"] == "floworder"
    web.expect(200, "POST", where, {"definition": "floworder"}, token)
    web.expect(200, "POST", where, {"definition": "flowsecret"}, make(web, "write:floworder,write:flowsecret"))
    assert web.expect(200, "GET", "/v1/instances?definition=floworder", None, token).json["instances"] == [], "it is no longer one of them"
    assert len(web.get("/v1/instances?definition=floworder").json["instances"]) == 1


def test_no_caller_acts_under_a_name_of_the_engines_own(shell):
    web = Web(shell.serve("--test")[1])
    put(web, "job", FLOW % "job")
    machine = web.create(declaration={"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"], "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}]})
    flow = web.create(definition="job", test=True)
    walked = 0
    for op in table.ROUTED:
        if not any(p.name == "actor_ref" and p.place == "body" for p in op.params):
            continue
        values = {"instance_id": flow, "step_id": flow + ".1", "definition": "job", "action": "go", "name": "s", "correlation_id": "c"}
        if op.name == "instance.fire":
            values["instance_id"] = machine
        body = {p.name: values[p.name] for p in op.of("body") if p.name in values and (p.required or op.name == "instance.create" and p.name == "definition")}
        target = op.target(**{p.name: values[p.name] for p in op.of("path")})
        reply = web.ask(op.method, target, {**body, "actor_ref": "pawl/timer"})
        # A check that comes before attribution may reject it first; the flow is no validation.
        assert reply.status in (400, 409, 422) or (op.name, reply.status) == ("validation.cancel", 404), (op, reply)
        walked += reply.reason == "invalid-request" and "pawl/" in reply.json["detail"]
        assert web.ask(op.method, target, {**body, "actor_ref": "pawl/timer"}).status >= 400, op
    assert walked >= 8, walked
    for worker in ("pawl/timer", "pawl/"):
        reply = web.refused("invalid-request", "POST", "/v1/steps/claim", {"tools": ["outside"], "worker": worker})
        assert "pawl/" in reply.json["detail"], reply
        web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [], "claim": {"tools": ["outside"], "worker": worker}})
    web.refused("invalid-request", "POST", "/v1/tokens", {"scopes": "write", "actor": "pawl/timer"})
    for name in ("pawl", "Pawl/timer", "x/pawl/"):
        web.expect(201, "POST", "/v1/instances", {"definition": "job", "actor_ref": name})
    alarm = {"after": "0s", "operation": "instance.fire", "input": {"instance_id": machine, "action": "go", "actor_ref": "pawl/timer"}}
    web.post("/v1/alarms", alarm)
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    assert web.get("/v1/instances/%s/history" % machine).json["entries"] == []


def test_a_worker_is_called_after_its_tokens_actor(shell):
    web = Web(shell.serve()[1])
    put(web, "job", FLOW % "job")
    flow = web.create(definition="job")
    token = make(web, "work,read", actor="ann")
    claim = {"tools": ["outside"]}
    for worker in ("bob", "annie", "ann/" [:-1] + " ", "Ann", "bob/ann"):
        web.refused("forbidden", "POST", "/v1/steps/claim", {**claim, "worker": worker}, token)
        web.refused("forbidden", "POST", "/v1/steps/complete", {"steps": [], "claim": {**claim, "worker": worker}}, token)
        line = json.dumps({"operation": "step.claim", "input": {**claim, "worker": worker}})
        assert json.loads(web.expect(200, "POST", "/v1/batch", line, token).body)["status"] == 403
    step = web.expect(200, "POST", "/v1/steps/claim", {**claim, "worker": "ann/host-1"}, token).json["steps"][0]
    answer = {"step_id": step["step_id"], "lease": step["lease"], "result": "done"}
    web.expect(200, "POST", "/v1/steps/complete", {"steps": [answer], "claim": {**claim, "worker": "ann"}}, token)
    actors = {e.get("actor_ref") for e in web.get("/v1/instances/%s/history" % flow).json["entries"]} - {None}
    assert actors == {"ann", "ann/host-1"}, actors


def test_a_token_with_an_empty_actor_is_refused_and_so_is_one_on_the_command_line(shell):
    web = Web(shell.serve()[1])
    assert "empty" in web.refused("invalid-request", "POST", "/v1/tokens", {"scopes": "write", "actor": ""}).json["detail"]
    web.refused("invalid-request", "POST", "/v1/tokens", {"scopes": "write", "actor": "  "})
    web.expect(201, "POST", "/v1/tokens", {"scopes": "write", "actor": None})
    for words in (("token", "create", "--scope", "write", "--actor", ""), ("start", "order", "--actor", ""),
                  ("fire", "@last", "pay", "--actor="), ("cancel", "@last", "--actor", "")):
        found = shell.pawl(*words, expect=2)
        assert "--actor is empty" in found.err, (words, found)


def test_a_creator_and_a_token_that_had_such_a_name_before_continue(shell):
    """Before such names were reserved any caller could use one: a history keeps it, and so does what it starts."""
    child, address = shell.serve()
    web = Web(address)
    put(web, "secret", SECRET)
    web.expect(201, "PUT", "/v1/definitions/machine", MACHINE)
    instance = web.create(definition="machine", actor_ref="old")
    token = make(web, "write,read", actor="old")
    shell.stop(child)
    forger = forge.Forger(shell.folder / "pawl.db")
    old = forger.value("pawl/old")
    forger.db.execute("UPDATE pawl_log SET actor = ? WHERE what = -1", (old,))
    forger.db.execute("UPDATE pawl_instance SET creator = ?", (old,))
    forger.db.execute("UPDATE pawl_log SET body = replace(CAST(body AS TEXT), '\"old\"', '\"pawl/old\"') WHERE what = -7")
    forger.seal()
    web = Web(shell.serve()[1])
    web.expect(200, "POST", "/v1/instances/%s/fire" % instance, {"action": "go"}, token)
    assert web.get("/v1/instances/%s/history" % instance).json["entries"][0]["actor_ref"] == "pawl/old"
    shell.wait_for(lambda: secrets(web) == 1)
    assert web.get("/v1/instances?definition=secret").json["instances"][0]["created_by"] == "pawl/old"


# ---- what a definition spawns or starts

SECRET = "name: secret\nsteps: {a: {external: true, done: true}}\n"
DEPUTY = "name: deputy\nsteps: {start: {name: c, spawn: {definition: secret}, done: true}}\n"
LATER = """name: later
steps:
  start: {name: hold, external: true, next: c}
  c: {spawn: {definition: secret}, done: true}
"""
PLAIN = "name: later\nsteps:\n  start: {name: hold, external: true, next: c}\n  c: {external: true, done: true}\n"
MACHINE = {"name": "machine", "states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"],
           "terminal_kinds": {"b": "success"}, "transitions": [{"from_state": "a", "action": "go", "to_state": "b", "starts": {"definition": "secret"}}]}


def start(web, definition, token=None):
    return web.expect(201, "POST", "/v1/instances", {"definition": definition}, token).json["instance_id"]


def secrets(web, name="secret"):
    return len(web.get("/v1/instances?definition=" + name).json["instances"])


def ended(shell, web, instance):
    shell.wait_for(lambda: web.get("/v1/instances/" + instance).json["status"] in ("failed", "completed"))
    return web.get("/v1/instances/" + instance).json


def is_forbidden(shell, web, instance, attempts=1):
    """It failed at once, without a retry, because of what it may not create."""
    found = ended(shell, web, instance)
    steps = [s for s in web.get("/v1/instances/%s/steps" % instance).json["steps"] if s["name"] == "c"]
    assert found["status"] == "failed" and len(steps) == attempts, (found, steps)
    (note,) = [e["payload"] for e in web.get("/v1/instances/%s/history" % instance).json["entries"] if e["action"] == "child"]
    assert note["status"] == "failed" and "forbidden: this instance may not create one of 'secret'" in note["error"], note
    return True


def bodies(shell, what):
    with sqlite3.connect("file:%s?mode=ro" % (shell.folder / "pawl.db"), uri=True) as db:
        return [json.loads(body) for (body,) in db.execute("SELECT body FROM pawl_log WHERE what = ? ORDER BY pos", (what,))]


def verify_twice(shell, web):
    found = web.post("/v1/verify").json
    assert found["valid"], found
    tool = subprocess.run([sys.executable, str(harness.ROOT / "tools" / "verify.py"), str(shell.folder / "pawl.db")], capture_output=True, text=True)
    assert tool.returncode == 0, tool.stdout + tool.stderr


def test_what_a_definition_spawns_needs_the_rights_of_its_starter_and_of_who_put_it(shell):
    web = Web(shell.serve()[1])
    limited, full = make(web, "define:deputy,write:deputy,read"), make(web, "define,write,read")
    put(web, "secret", SECRET)
    put(web, "deputy", DEPUTY, limited)
    for starter in (limited, full, None):
        assert is_forbidden(shell, web, start(web, "deputy", starter)), starter
    assert secrets(web) == 0
    assert put(web, "deputy", DEPUTY, full)["version"] == 2, "the same text put with more rights is a version of its own"
    assert is_forbidden(shell, web, start(web, "deputy", limited))
    assert is_forbidden(shell, web, start(web, "deputy@1", full)), "a version keeps the rights it was put with"
    for n, starter in enumerate((full, None, make(web, "write:deputy,write:secret"))):
        start(web, "deputy", starter)
        assert secrets(web) == n + 1, starter
    assert web.expect(200, "PUT", "/v1/definitions/deputy", DEPUTY, {"Content-Type": "application/yaml", **limited}).json["version"] == 2
    assert web.expect(200, "PUT", "/v1/definitions/deputy", DEPUTY, {"Content-Type": "application/yaml"}).json["version"] == 2
    assert [b.get("rights") for b in bodies(shell, -2)] == [None, "deputy", None], bodies(shell, -2)
    # The child of the last is limited to what its parent may create.
    assert [b["rights"] for b in bodies(shell, -12)] == ["deputy", "deputy", "deputy,secret", "deputy,secret"]
    verify_twice(shell, web)


def test_a_definition_may_create_what_the_token_that_put_it_may_define(shell):
    """A token that only defines cannot start instances, but its definitions may create what it may define."""
    web = Web(shell.serve()[1])
    put(web, "secret", SECRET)
    put(web, "deputy", DEPUTY, make(web, "define"))
    start(web, "deputy", make(web, "write"))
    put(web, "deputy", DEPUTY + "# once more\n", make(web, "define:deputy,define:secret"))
    start(web, "deputy", make(web, "write:deputy,write:secret"))
    assert secrets(web) == 2
    assert is_forbidden(shell, web, start(web, "deputy", make(web, "write:deputy")))


def test_what_a_transition_starts_needs_them_too_and_a_refusal_is_recorded(shell):
    web = Web(shell.serve()[1])
    put(web, "secret", SECRET)
    limited = make(web, "define:machine,write:machine")
    web.expect(201, "PUT", "/v1/definitions/machine", MACHINE, limited)
    for starter in (limited, None):
        instance = start(web, "machine", starter)
        web.expect(200, "POST", "/v1/instances/%s/fire" % instance, {"action": "go"})
    shell.wait_for(lambda: len([b for b in bodies(shell, -5) if "over" in b]) == 2)
    assert [b["over"] for b in bodies(shell, -5) if "over" in b] == ["refused", "refused"]
    assert all(b["more"]["reason"] == "forbidden" for b in bodies(shell, -5) if "over" in b), bodies(shell, -5)
    assert secrets(web) == 0
    web.expect(201, "PUT", "/v1/definitions/machine", MACHINE)
    both = make(web, "write:machine,write:secret")
    instance = start(web, "machine", both)
    web.expect(200, "POST", "/v1/instances/%s/fire" % instance, {"action": "go"}, both)
    shell.wait_for(lambda: secrets(web) == 1)
    assert bodies(shell, -12)[-1]["rights"] == "machine,secret"
    verify_twice(shell, web)


def test_rights_outlive_the_server_and_its_tokens_and_reach_grandchildren(shell):
    child, address = shell.serve()
    web = Web(address)
    put(web, "secret", SECRET)
    put(web, "later", LATER)
    put(web, "outer", "name: outer\nsteps: {start: {name: c, spawn: {definition: later}, done: true}}\n")
    made = web.expect(201, "POST", "/v1/tokens", {"scopes": "write:outer,write:later"}).json
    start(web, "outer", bearer(made["token"]))
    web.expect(200, "DELETE", "/v1/tokens/" + made["token_id"])
    start(web, "outer")
    shell.stop(child)
    web = Web(shell.serve()[1])
    for one in web.get("/v1/instances?definition=later&order=oldest").json["instances"]:
        web.expect(200, "POST", "/v1/steps/%s.1/complete" % one["instance_id"], {"result": 1})
    first, second = (one["instance_id"] for one in web.get("/v1/instances?definition=later&order=oldest").json["instances"])
    assert is_forbidden(shell, web, first)
    assert secrets(web) == 1 and web.get("/v1/instances/" + second).json["status"] == "suspended"
    verify_twice(shell, web)


def test_an_amended_flow_and_one_that_is_run_again_get_no_rights_by_it(shell):
    web = Web(shell.serve()[1])
    put(web, "secret", SECRET)
    put(web, "later", PLAIN)
    limited = make(web, "define:later,write:later,read")
    mine, theirs = start(web, "later", limited), start(web, "later")
    put(web, "later", LATER)
    web.expect(200, "POST", "/v1/instances/%s/amend" % mine, {"definition": "later@2"})
    assert put(web, "later", LATER + "# by another token\n", limited)["version"] == 3
    web.expect(200, "POST", "/v1/instances/%s/amend" % theirs, {"definition": "later@3"})
    for one in (mine, theirs):
        web.expect(200, "POST", "/v1/steps/%s.1/complete" % one, {"result": 1})
        assert is_forbidden(shell, web, one), one
    again = web.expect(201, "POST", "/v1/instances/%s/redrive" % mine, {}).json["instance_id"]
    assert is_forbidden(shell, web, again), "the caller of the redrive has all rights, its first starter has not"
    assert web.get("/v1/instances/" + again).json["retry_of"] == mine, "the first entry is found behind the rights"
    assert secrets(web) == 0
    verify_twice(shell, web)


def test_an_amended_flow_creates_only_what_each_caller_that_amended_it_may_create(shell):
    web = Web(shell.serve()[1])
    put(web, "secret", SECRET)
    put(web, "later", PLAIN)
    put(web, "later", LATER)
    limited = make(web, "write:later,read")
    by_admin, by_limited, by_both = (start(web, "later@1") for _ in range(3))

    def amend(instance, token=None):
        web.expect(200, "POST", "/v1/instances/%s/amend" % instance, {"definition": "later@2"}, token)

    def hold(instance):
        web.expect(200, "POST", "/v1/steps/%s.1/complete" % instance, {"result": 1})
    amend(by_admin)
    amend(by_limited, limited)
    amend(by_both, limited)
    amend(by_both)
    for one in (by_limited, by_both):
        hold(one)
        assert is_forbidden(shell, web, one), "the caller that amended it may not create a secret"
        again = web.expect(201, "POST", "/v1/instances/%s/redrive" % one, {}).json["instance_id"]
        assert is_forbidden(shell, web, again), "running it again gives no rights"
    assert secrets(web) == 0
    hold(by_admin)
    shell.wait_for(lambda: secrets(web) == 1)
    verify_twice(shell, web)


def test_an_alarm_does_what_its_token_could_do_when_it_was_set(shell):
    web = Web(shell.serve("--test")[1])
    put(web, "secret", SECRET)
    put(web, "deputy", DEPUTY)
    put(web, "later", PLAIN)
    made = web.expect(201, "POST", "/v1/tokens", {"scopes": "write:deputy,write:later,define:late", "actor": "ann"}).json
    token = bearer(made["token"])
    own = start(web, "later", token)

    def later(operation, /, **members):
        web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": operation, "input": members}, token)
    later("instance.create", definition="deputy")
    later("definition.put", name="late", text=DEPUTY.replace("name: deputy", "name: late"))
    later("instance.pause", instance_id=own)
    later("alarm.set", after="1s", operation="instance.create", input={"definition": "deputy"})
    gone = start(web, "later", token)
    later("instance.cancel", instance_id=gone)
    put(web, "other", PLAIN.replace("name: later", "name: other"))
    web.expect(200, "POST", "/v1/instances/%s/amend" % gone, {"definition": "other"})
    web.expect(200, "DELETE", "/v1/tokens/" + made["token_id"])
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    deputies = web.get("/v1/instances?definition=deputy").json["instances"]
    assert len(deputies) == 2 and all(is_forbidden(shell, web, one["instance_id"]) for one in deputies), deputies
    assert {web.get("/v1/instances/" + one["instance_id"]).json["created_by"] for one in deputies} == {"ann"}
    assert is_forbidden(shell, web, start(web, "late")), "what it has defined is limited as well"
    assert web.get("/v1/instances/" + own).json["status"] == "paused"
    assert web.get("/v1/instances/" + gone).json["status"] == "suspended", "it is no longer one of later's"
    assert secrets(web) == 0
    verify_twice(shell, web)


def test_an_export_carries_rights_and_both_verifiers_hold_their_place(shell):
    child, address = shell.serve()
    web = Web(address)
    put(web, "secret", SECRET)
    limited = make(web, "define:later,write:later")
    put(web, "later", LATER, limited)
    mine, theirs = start(web, "later", limited), start(web, "later")
    shell.stop(child)
    (shell.folder / "out.jsonl").write_text(shell.pawl("export", mine).out + shell.pawl("export", theirs).out.split("\n", 1)[1])
    shell.pawl("import", "out.jsonl", "--store", "sqlite:other.db")
    shell.pawl("define", shell.write("secret.yaml", SECRET), "--store", "sqlite:other.db")
    shell.pawl("verify", "--store", "sqlite:other.db")
    tool = [sys.executable, str(harness.ROOT / "tools" / "verify.py"), str(shell.folder / "other.db")]
    assert subprocess.run(tool, capture_output=True).returncode == 0
    web = Web(shell.serve("--store", "sqlite:other.db")[1])
    for one in (mine, theirs):
        web.expect(200, "POST", "/v1/steps/%s.1/complete" % one, {"result": 1})
        assert is_forbidden(shell, web, one), one


def forged(shell, change):
    """A copy of the store, changed and hashed again as an attacker who knows the format would."""
    path = shell.folder / "forged.db"
    for beside in shell.folder.glob("forged.db*"):
        beside.unlink()
    with sqlite3.connect(shell.folder / "pawl.db") as source, sqlite3.connect(path) as copy:
        source.backup(copy)
    forger = forge.Forger(path)
    change(forger)
    forger.seal()
    tool = subprocess.run([sys.executable, str(harness.ROOT / "tools" / "verify.py"), str(path)], capture_output=True)
    return shell.json("verify", "--store", "sqlite:%s" % path, expect=None)["valid"], tool.returncode == 0


def test_rights_in_the_wrong_place_or_of_another_form_are_found_by_both_verifiers(shell):
    child, address = shell.serve()
    web = Web(address)
    limited = make(web, "define:later,write:later,define:z")
    put(web, "later", LATER, limited)
    mine, theirs = start(web, "later", limited), start(web, "later")
    web.expect(200, "POST", "/v1/instances/%s/pause" % theirs)
    shell.stop(child)

    def at(forger, what):
        return forger.db.execute("SELECT pos FROM pawl_log WHERE what = ? ORDER BY pos DESC", (what,)).fetchone()[0]

    def body(what, text):
        return lambda forger: forger.set(at(forger, what), body=text.encode())

    def define(forger, text):
        pos = forger.db.execute("SELECT pos FROM pawl_kept WHERE what = -2").fetchone()[0]
        whole = forger.db.execute("SELECT body FROM pawl_log WHERE pos = ?", (pos,)).fetchone()[0]
        whole = whole.decode() if isinstance(whole, bytes) else whole
        forger.set(pos, body=whole.replace(',"rights":"later,z"', text).encode())
    assert forged(shell, lambda forger: None) == (True, True)
    assert forged(shell, body(-12, '{"rights":"a,b"}')) == (True, True), "other names, correctly hashed: only a root kept elsewhere shows it"
    for n, change in enumerate((body(-12, '{"rights":"b,a"}'), body(-12, '{"rights":"later","more":1}'), body(-12, '{"rights":["later"]}'), body(-12, "{}"),
                   lambda forger: forger.set(at(forger, -12), actor=forger.value("ann")),
                   lambda forger: forger.set(at(forger, -3), what=-12, body=b'{"rights":"later"}'),
                   lambda forger: forger.set(at(forger, -7), what=-12, body=b'{"rights":"later"}'),
                   lambda forger: forger.set(at(forger, -12), what=-11),
                   lambda forger: forger.set(at(forger, -12), what=-13),
                   lambda forger: define(forger, ""), lambda forger: define(forger, ',"rights":"z,later"'), lambda forger: define(forger, ',"rights":1'),
                   lambda forger: forger.db.execute("DELETE FROM pawl_kept WHERE what = -2"),
                   lambda forger: forger.db.execute("UPDATE pawl_kept SET id = 'other@1' WHERE what = -2"))):
        found = forged(shell, change)
        assert found == (False, False), (n, found)
    with sqlite3.connect(shell.folder / "pawl.db") as db:
        db.execute("DELETE FROM pawl_kept WHERE what = -2")
    shell.pawl("verify", expect=1)
    shell.pawl("doctor", "--rebuild")
    web = Web(shell.serve()[1])
    web.expect(200, "POST", "/v1/instances/%s/resume" % theirs)
    for one in (mine, theirs):
        web.expect(200, "POST", "/v1/steps/%s.1/complete" % one, {"result": 1})
        assert is_forbidden(shell, web, one), "the error does not reveal that it does not exist"
    verify_twice(shell, web)


if __name__ == "__main__":
    harness.main(globals())
