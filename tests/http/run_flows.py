"""Flows over HTTP: graphs, trees, gates, waits, and workers elsewhere (B, C; DESIGN section 5)."""
import json
import os
import signal
import subprocess
import sys

from web import Web, harness


def server(shell, *words):
    child, address = shell.serve(*words)
    return child, Web(address)


def yaml(web, name, text):
    return web.expect(201, "PUT", "/v1/definitions/" + name, text, {"Content-Type": "application/yaml"}).json


def claim(web, tool, **members):
    body = {"tools": [tool], "worker": "w1", **members}
    return web.expect(200, "POST", "/v1/steps/claim", body).json["steps"]


def complete(web, step, result):
    body = {"lease": step["lease"], "result": result}
    return web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], body).json


def fail(web, step, error):
    body = {"lease": step["lease"], "error": error, "retry": False}
    return web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], body).json


def steps(web, instance):
    return web.get("/v1/instances/%s/steps" % instance).json["steps"]


def actions(web, instance):
    return [e["action"] for e in web.get("/v1/instances/%s/history" % instance).json["entries"]]


def state(web, instance):
    got = web.get("/v1/instances/" + instance).json
    return got["current_state"], got["status"]


def test_expressions_make_arguments_lists_and_output_and_a_check_finds_the_same(shell):
    _, web = server(shell)
    yaml(web, "bill", """steps:
  look: {tool: look, args: {limit: "{{= input.n * 2 }}", text: "n is {{= input.n + 0.5 }}"}, next: each}
  each:
    map: {over: "{{= steps.look.result.list }}", as: row, step: {tool: pack, args: {v: "{{= row.a .. index }}"}}}
    done: true
output: {count: "{{= #steps.each.result }}"}
""")
    instance = web.create(definition="bill", input={"n": 4})
    [step] = claim(web, "look")
    assert step["args"] == {"limit": 8, "text": "n is 4.5"}, step
    complete(web, step, {"list": [{"a": "x"}, {"a": "y"}]})
    packed = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["pack"], "worker": "w1", "max": 2}).json["steps"]
    assert [one["args"] for one in packed] == [{"v": "x0"}, {"v": "y1"}], packed
    for step in packed:
        complete(web, step, 1)
    assert web.get("/v1/instances/" + instance).json["result"] == {"count": 2}
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_the_steps_of_an_item_follow_each_other_through_a_death_a_failure_and_a_redrive(shell):
    child, web = server(shell)
    yaml(web, "kid", "steps: {k: {tool: kid, args: {of: '{{input}}'}, retry: {max: 1}, done: true}}")
    yaml(web, "parcels", """do:
  - name: all
    map:
      over: "{{input.list}}"
      do:
        - {name: weigh, tool: scale, args: {id: "{{item}}"}}
        - {name: sub, spawn: {definition: kid, input: {id: "{{item}}", grams: "{{steps.weigh.result}}"}}, retry: {max: 2, backoff: [1ms]}}
        - {tool: stamp, args: {n: "{{index}}", grams: "{{= steps.weigh.result + 1 }}", kid: "{{steps.sub.result}}"}}
    augment: {all: identity}
""")
    instance = web.create(definition="parcels", input={"list": ["a", "b", "c"]})
    scales = claim(web, "scale", max=3)
    assert [step["args"]["id"] for step in scales] == ["a", "b", "c"], scales
    for step, grams in zip(reversed(scales), (30, 20, 10)):
        complete(web, step, grams)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    web = Web(shell.serve()[1])
    kids = sorted(claim(web, "kid", max=3), key=lambda step: step["args"]["of"]["grams"])
    assert [step["args"]["of"] for step in kids] == [{"id": i, "grams": n} for i, n in (("a", 10), ("b", 20), ("c", 30))], kids
    fail(web, kids[1], "no")
    [again] = claim(web, "kid", wait="5s")
    assert again["args"]["of"] == {"id": "b", "grams": 20}, again  # another child, for the same item
    for step in (kids[0], again, kids[2]):
        complete(web, step, "kid of " + step["args"]["of"]["id"])
    stamps = sorted(claim(web, "stamp", max=3, wait="5s"), key=lambda step: step["args"]["n"])
    assert [step["args"] for step in stamps] == [{"n": n, "grams": 10 * n + 11, "kid": "kid of " + "abc"[n]} for n in range(3)], stamps
    complete(web, stamps[0], "A")
    fail(web, stamps[1], "torn")
    complete(web, stamps[2], "C")
    assert state(web, instance) == ("failed", "failed")
    next_id = web.expect(201, "POST", "/v1/instances/%s/redrive" % instance).json["instance_id"]
    assert claim(web, "scale") == [] and claim(web, "kid") == []
    [step] = claim(web, "stamp")
    assert step["args"] == stamps[1]["args"] and step["idempotency_key"] == stamps[1]["idempotency_key"], step
    complete(web, step, "B")
    assert web.get("/v1/instances/" + next_id).json["result"]["all"] == ["A", "B", "C"]
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    told = subprocess.run([sys.executable, harness.ROOT / "tools" / "verify.py", shell.folder / "pawl.db"], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr


def test_an_expression_that_fails_fails_its_step_for_good_and_says_which_it_is(shell):
    _, web = server(shell)
    for name, text in (("taken", "steps: {a: {tool: nowhere, args: {v: '{{= input.n + 1 }}'}, on_error: b, next: b}, b: {tool: log, "
                        "args: {message: '{{context.exec/last-error}}'}, done: true}}"),
                       ("pure", "steps: {a: {tool: set, args: {v: '{{= input.n + 1 }}'}, on_error: b, next: b}, b: {tool: log, "
                        "args: {message: '{{context.exec/last-error}}'}, done: true}}")):
        yaml(web, name, text)
        instance = web.create(definition=name, input={"n": "x"})
        assert claim(web, "nowhere") == []
        while state(web, instance)[1] == "running":
            pass
        entries = web.get("/v1/instances/%s/history" % instance).json["entries"]
        [failed] = [entry for entry in entries if entry["action"] == "step.fail"]
        assert failed["payload"].startswith("expression 'input.n + 1': attempt to"), (name, failed)
        assert "input.n + 1" in web.get("/v1/instances/" + instance).json["result"], "the error leads on"
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_an_expression_that_does_not_compile_is_refused_with_its_place(shell):
    _, web = server(shell)
    refused = web.ask("PUT", "/v1/definitions/bad", "do:\n- {tool: log, args: {message: '{{= 1 + }}'}}\n", {"Content-Type": "application/yaml"})
    assert refused.reason == "invalid-definition", refused
    assert "line 2, column 31: step 'do.0': '1 +' is not an expression: expression:1:" in refused.json["detail"], refused.json


def test_progress_is_shown_while_the_step_runs_and_the_log_knows_nothing_of_it(shell):
    _, web = server(shell)
    yaml(web, "one", "do:\n- {name: a, tool: count, retry: {max: 2}}\n")
    instance = web.create(definition="one")
    [step] = claim(web, "count")
    beat = "/v1/steps/%s/heartbeat" % step["step_id"]

    def told(lease=step["lease"], **body):
        return web.expect(200, "POST", beat, {"lease": lease, **body}).json

    assert told()["status"] == "running" and "progress" not in steps(web, instance)[0]
    told(progress={"done": 40, "of": [100, None]})
    [shown] = steps(web, instance)
    assert shown["progress"] == {"done": 40, "of": [100, None]} and shown["progress_at"], shown
    [waiting] = web.get("/v1/instances/%s/why" % instance).json["waiting_for"]
    assert waiting["held"]["progress"] == shown["progress"] and waiting["held"]["progress_at"] == shown["progress_at"], waiting
    view = web.get("/v1/instances/%s/view" % instance).json
    assert view["steps"][0]["progress"] == view["waiting_for"][0]["held"]["progress"] == shown["progress"], view
    assert web.get("/v1/steps?status=running").json["steps"][0]["progress"] == shown["progress"]
    told()
    assert steps(web, instance)[0]["progress"] == shown["progress"], "a heartbeat without any leaves it"
    assert "progress {\"done\": 40, \"of\": [100, null]}" in shell.pawl("show", instance).out
    for n in range(50):
        told(progress=n)
    assert steps(web, instance)[0]["progress"] == 49 and actions(web, instance) == ["start", "step.start"], "nothing is recorded"
    web.refused("too-large", "POST", beat, {"lease": step["lease"], "progress": "x" * 2047})
    web.refused("lease-lost", "POST", beat, {"lease": "0" * 32, "progress": 1})
    assert steps(web, instance)[0]["progress"] == 49
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "no"})
    web.refused("lease-lost", "POST", beat, {"lease": step["lease"], "progress": 1})
    assert all("progress" not in one for one in steps(web, instance)), "it goes with its attempt"
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


QUERIED = """do:
- {name: a, tool: work, augment: {done: n}}
- {name: b, tool: work, args: {after: "{{context.done}}"}}
queries:
  progress: "{done = context.done or 0, of = input.of, in_state = state}"
  last: "steps.a.result and steps.a.result.n"
  wrong: "input.of.x.y"
  who: "instance.definition .. '@' .. instance.version"
"""


def test_queries_are_asked_of_an_instance_that_waits_runs_or_has_failed_and_change_nothing(shell):
    _, web = server(shell)
    yaml(web, "queried", QUERIED)
    instance = web.create(definition="queried", input={"of": 2})
    path = "/v1/instances/%s/queries/" % instance

    def ask(name):
        return web.get(path + name).json["value"]

    assert ask("progress") == {"done": 0, "of": 2, "in_state": "running"} and ask("last") is None and ask("who") == "queried@1"
    [step] = claim(web, "work")
    complete(web, step, {"n": 1})
    assert ask("progress") == {"done": 1, "of": 2, "in_state": "running"} and ask("last") == 1
    before = actions(web, instance)
    refused = web.refused("invalid-request", "GET", path + "wrong")
    assert "query 'wrong': attempt to index a number value" in refused.json["detail"], refused
    refused = web.refused("not-known", "GET", path + "none")
    assert "there are: progress, last, wrong, who" in refused.json["detail"], refused
    assert actions(web, instance) == before
    [step] = claim(web, "work")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "no", "retry": False})
    assert ask("progress") == {"done": 1, "of": 2, "in_state": "failed"} and ask("last") == 1
    assert web.get("/v1/instances/%s/variables" % instance).json["variables"]["done"] == 1, "the context of a failed tree is there"
    assert shell.pawl("query", instance, "progress").out == '{"done":1,"in_state":"failed","of":2}\n'
    assert '"done":1' in shell.pawl("variables", instance).out
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_a_query_that_does_not_compile_is_refused_and_a_machine_has_none(shell):
    _, web = server(shell)
    for text, words in (("queries: {a: '1 +'}", "'1 +' is not an expression: query:1:"), ("queries: {a: 1}", "'a' must be an expression in quotes"),
                        ("queries: {}", "expected {NAME: EXPRESSION}"), ("queries: {'a/b': '1'}", "a name has 1 to 128"),
                        ("queries: {a: steps.no.result}", "there is no such step")):
        refused = web.ask("PUT", "/v1/definitions/bad", "do: [{tool: log}]\n" + text, {"Content-Type": "application/yaml"})
        assert refused.reason == "invalid-definition" and words in refused.json["detail"], (text, refused.json)
    yaml(web, "light", "states: [on, off]\ninitial_state: on\nterminal_states: [off]\nterminal_kinds: {off: success}\n"
         "transitions: [{from_state: on, action: turn, to_state: off}]\n")
    web.refused("not-known", "GET", "/v1/instances/%s/queries/a" % web.create(definition="light"))


RESEARCH = """steps:
  start: {name: search, tool: knowledge_search, args: {query: "{{input.topic}}"}, next: summarize}
  summarize: {tool: knowledge_get, args: {id: "{{steps.search.result.id}}"}, next: notify}
  notify: {tool: pushover_send, done: true}
"""


def test_a_worker_serves_a_flow_step_by_step(shell):  # B43
    _, web = server(shell)
    yaml(web, "research", RESEARCH)
    instance = web.create(definition="research", input={"topic": "pawls"}, actor_ref="ann")
    assert state(web, instance) == ("running", "running")
    [step] = claim(web, "knowledge_search")
    assert step["args"] == {"query": "pawls"} and step["attempt"] == 1 and step["name"] == "search", step
    assert step["step_id"] == instance + ".1" == step["idempotency_key"] and step["instance_id"] == instance
    assert claim(web, "knowledge_search") == [], "a step is handed out once"
    assert complete(web, step, {"id": 7}) == {"status": "done"}
    web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    [step] = claim(web, "knowledge_get")
    assert step["args"] == {"id": 7}
    complete(web, step, "a text")
    [step] = claim(web, "pushover_send")
    complete(web, step, {"sent": True})
    assert state(web, instance) == ("completed", "completed")
    assert web.get("/v1/instances/" + instance).json["result"] == {"sent": True}
    assert actions(web, instance) == ["start"] + ["step.start", "step.complete"] * 3 + ["finish"]
    assert web.post("/v1/verify").json["valid"]


def test_leases_protect_answers_and_are_extended_by_heartbeats(shell):
    _, web = server(shell, "--test")
    yaml(web, "one", "steps: {a: {tool: far, retry: {max: 2, backoff: [5s]}, done: true}}")
    instance = web.create(definition="one")
    [step] = claim(web, "far", lease="10s")
    path = "/v1/steps/%s/" % step["step_id"]
    web.refused("invalid-request", "POST", path + "complete", {"result": 1})
    web.refused("lease-lost", "POST", path + "complete", {"lease": "0" * 32, "result": 1})
    web.refused("lease-lost", "POST", path + "fail", {"lease": "nonsense", "error": "x"})
    web.refused("not-known", "POST", "/v1/steps/%s.99/complete" % instance, {"result": 1})
    web.refused("not-known", "POST", "/v1/steps/nobody/complete", {"result": 1})
    web.expect(200, "POST", "/v1/test/advance", {"by": "9s"})
    beat = web.expect(200, "POST", path + "heartbeat", {"lease": step["lease"]}).json
    assert beat["status"] == "running" and beat["lease_expires_at"], beat
    web.expect(200, "POST", "/v1/test/advance", {"by": "9s"})
    assert steps(web, instance)[0]["status"] == "running"
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    assert [s["status"] for s in steps(web, instance)] == ["failed", "pending"]
    assert steps(web, instance)[0]["error"] == "timeout"
    web.refused("lease-lost", "POST", path + "complete", {"lease": step["lease"], "result": 1})
    web.refused("lease-lost", "POST", path + "heartbeat", {"lease": step["lease"]})
    web.expect(200, "POST", "/v1/test/advance", {"by": "5s"})
    [again] = claim(web, "far")
    assert again["attempt"] == 2 and again["idempotency_key"] == step["idempotency_key"], again
    body = {"lease": again["lease"], "error": {"code": 3}, "retry": False}
    assert web.expect(200, "POST", "/v1/steps/%s/fail" % again["step_id"], body).json == {"status": "failed"}
    assert state(web, instance) == ("failed", "failed")
    assert web.get("/v1/instances/" + instance).json["error"] == {"code": 3}
    assert "step.timeout" in actions(web, instance)
    assert web.post("/v1/verify").json["valid"]


def test_many_leases_that_run_out_together_all_fail_their_attempts(shell):
    _, web = server(shell, "--test")
    yaml(web, "fan", "dopar:\n" + "  - {action: far, payload: {}}\n" * 60)
    instance = web.create(definition="fan")
    short, longer = claim(web, "far", max=40, lease="10s"), claim(web, "far", max=20, lease="20s")
    assert (len(short), len(longer)) == (40, 20)
    web.expect(200, "POST", "/v1/test/advance", {"by": "10s"})
    over = {s["step_id"]: s["error"] for s in steps(web, instance) if s["status"] == "failed"}
    assert over == {s["step_id"]: "timeout" for s in short}, over
    web.expect(200, "POST", "/v1/test/advance", {"by": "10s"})
    assert state(web, instance) == ("failed", "failed"), "the later ones are not forgotten"


def test_a_paused_flow_hands_out_nothing_and_goes_on_when_it_is_resumed(shell):
    _, web = server(shell)
    yaml(web, "research", RESEARCH)
    instance = web.create(definition="research", input={"topic": "x"})
    web.expect(200, "POST", "/v1/instances/%s/pause" % instance)
    for _ in range(3):
        assert claim(web, "knowledge_search") == [], "nothing is handed out, and nothing is refused"
    web.expect(200, "POST", "/v1/instances/%s/resume" % instance)
    found = []
    shell.wait_for(lambda: found.extend(claim(web, "knowledge_search")) or found)
    assert len(found) == 1 and claim(web, "knowledge_search") == []
    complete(web, found[0], {"id": 1})


def test_who_claimed_a_step_is_told_by_the_entry_that_started_it(shell):
    _, web = server(shell)
    yaml(web, "research", RESEARCH)
    instance = web.create(definition="research", input={"topic": "x"}, actor_ref="ann")
    claim(web, "knowledge_search", worker="w7")
    [started] = [e for e in web.get("/v1/instances/%s/history" % instance).json["entries"] if e["action"] == "step.start"]
    assert started["actor_ref"] == "w7", started


def test_a_workers_whole_turn_is_one_request(shell):
    _, web = server(shell)
    yaml(web, "fan", "dopar:\n" + "".join("  - {action: far, payload: {n: %d}}\n" % n for n in range(5)))
    instance = web.create(definition="fan")
    first = claim(web, "far", max=3)
    assert len(first) == 3
    answers = [{"step_id": s["step_id"], "lease": s["lease"], "result": s["args"]} for s in first]
    answers.append({"step_id": first[0]["step_id"], "lease": "0" * 32, "result": 1})
    turn = web.expect(200, "POST", "/v1/steps/complete",
                      {"steps": answers, "claim": {"tools": ["far"], "worker": "w", "max": 10}}).json
    assert [r.get("status") or r["reason"] for r in turn["results"]] == ["done"] * 3 + ["lease-lost"], turn
    assert len(turn["steps"]) == 2
    for step in turn["steps"]:
        complete(web, step, 1)
    assert state(web, instance) == ("completed", "completed")


def test_the_answers_of_a_turn_share_a_commit_and_are_judged_one_by_one(shell):
    """Issue 5 section 2: a worker's whole turn in one request."""
    child, web = server(shell)
    yaml(web, "fan", "dopar:\n" + "".join("  - {action: far, payload: {n: %d}}\n" % n for n in range(30)))
    yaml(web, "one", "steps: {a: {tool: far, next: b}, b: {tool: set, args: {x: '{{steps.a.result}}'}, done: true}}")
    fan, ones = web.create(definition="fan"), [web.create(definition="one") for _ in range(20)]
    found = claim(web, "far", max=60)
    assert len(found) == 50
    answers = [{"step_id": s["step_id"], "lease": s["lease"], "result": 1} for s in found]
    answers[3:3] = [{"step_id": found[0]["step_id"], "lease": found[0]["lease"], "result": 2},
                    {"step_id": found[40]["step_id"], "lease": "0" * 32, "result": 3}]
    failed = next(a for a in answers[10:] if a["step_id"].startswith(fan))
    failed.update(error="rain", retry=False)
    del failed["result"]
    turn = web.expect(200, "POST", "/v1/steps/complete", {"steps": answers}).json["results"]
    assert [n for n, r in enumerate(turn) if r.get("reason") == "lease-lost"] == [3, 4], turn
    assert [r["step_id"] for r in turn if r.get("status") == "failed"] == [failed["step_id"]], turn
    shell.wait_for(lambda: {state(web, i)[0] for i in ones} == {"completed"} and state(web, fan)[0] == "failed")
    shell.stop(child)
    rows = shell.json("sql", "select count(*) as roots from pawl_log where root is not null and pos between"
                             " (select min(pos) from pawl_log where what = 2) and"
                             " (select max(pos) from pawl_log where what in (2, 3) and step = 1)")
    assert rows["rows"] in ([[0]], [[1]]), "50 answers took more than one commit: %r" % rows
    assert shell.json("verify")["valid"]


def test_leases_of_workers_survive_the_servers_death(shell):
    child, web = server(shell)
    yaml(web, "research", RESEARCH)
    instance = web.create(definition="research", input={"topic": "x"})
    [step] = claim(web, "knowledge_search")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    _, web = server(shell)
    assert steps(web, instance)[0]["status"] == "running"
    assert complete(web, step, {"id": 1}) == {"status": "done"}
    [step] = claim(web, "knowledge_get")
    assert step["args"] == {"id": 1}


GATE = """steps:
  request_approval: {tool: null, approval: {by: [ann, bob], count: 2}, next: execute_write}
  execute_write: {tool: set, args: {by: "{{steps.request_approval.result}}"}, done: true}
"""


def test_a_gate_waits_for_those_it_names(shell):  # B37, B38, B43
    _, web = server(shell)
    yaml(web, "gate", GATE)
    instance = web.create(definition="gate")
    assert state(web, instance) == ("running", "suspended")
    [gate] = steps(web, instance)
    assert (gate["status"], gate["tool"], gate["name"]) == ("pending", None, "request_approval"), gate
    rule = {"by": ["ann", "bob"], "count": 2}
    assert (gate["waiting_until"], gate["approval"], gate["approved_by"]) == (None, rule, []), gate
    [why] = web.get("/v1/instances/%s/why" % instance).json["waiting_for"]
    assert why == {"kind": "approval", "name": "request_approval", "step_id": gate["step_id"],
                   "since": gate["waiting_since"], "approval": rule, "approved_by": []}, why
    path = "/v1/steps/%s/" % gate["step_id"]
    web.refused("not-known", "POST", "/v1/steps/nobody/approve", {"actor_ref": "  "})
    web.refused("invalid-request", "POST", path + "approve", {"actor_ref": "  "})
    web.refused("forbidden", "POST", path + "approve", {"actor_ref": "eve"})
    assert web.expect(200, "POST", path + "approve", {"actor_ref": "ann"}).json == {"status": "pending"}
    assert web.get("/v1/steps?status=pending").json["steps"][0]["approved_by"] == ["ann"]
    assert web.expect(200, "POST", path + "approve", {"actor_ref": "bob"}).json == {"status": "done"}
    shell.wait_for(lambda: state(web, instance)[0] == "completed")
    web.refused("not-awaiting", "POST", path + "approve", {"actor_ref": "bob"})
    assert actions(web, instance)[1:4] == ["gate.wait", "gate.approve", "gate.approve"]
    [wait] = web.get("/v1/instances/%s/history?action=gate.wait" % instance).json["entries"]
    assert wait["payload"] == rule and wait["step_id"] == gate["step_id"], wait
    assert wait["recorded_at"] == gate["waiting_since"], "it waits from its entry on"
    other = web.create(definition="gate")
    body = {"actor_ref": "ann", "reason": "too dear"}
    assert web.expect(200, "POST", "/v1/steps/%s.1/reject" % other, body).json == {"status": "failed"}
    assert web.get("/v1/instances/" + other).json["error"] == "too dear"
    [gate] = steps(web, other)
    assert gate["waiting_since"] <= gate["completed_at"], "how long it waited is known afterwards"
    yaml(web, "timed", "steps: {ask: {tool: null, timeout: 2d, done: true}}")
    timed = web.create(definition="timed")
    [gate], [why] = steps(web, timed), web.get("/v1/instances/%s/why" % timed).json["waiting_for"]
    assert gate["waiting_until"] == why["until"] > gate["waiting_since"] == why["since"], (gate, why)
    assert gate["approval"] == why["approval"] == {"by": None, "count": 1}, gate
    assert web.post("/v1/verify").json["valid"]


ORDER = """steps:
  start: {name: wait, select: [{signal: paid, then: ship}, {timer: 3d, then: drop}]}
  ship: {tool: set, args: {amount: "{{steps.wait.result.payload.amount}}"}, done: true}
  drop: {tool: fail, args: {error: late}, retry: {max: 1}, done: true}
"""


def test_a_signal_races_a_timer_and_one_wins(shell):  # E11
    _, web = server(shell, "--test")
    yaml(web, "order", ORDER)
    paid, late = web.create(definition="order"), web.create(definition="order")
    waits = {(w["kind"], w["name"]) for w in web.get("/v1/instances/%s/why" % paid).json["waiting_for"]}
    assert ("signal", "paid") in waits and ("timer", "wait") in waits, waits
    web.refused("not-awaiting", "POST", "/v1/instances/%s/signals" % paid, {"name": "other"})
    web.expect(202, "POST", "/v1/instances/%s/signals" % paid, {"name": "paid", "payload": {"amount": 5}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "72h"})
    assert web.get("/v1/instances/" + paid).json["result"] == {"amount": 5}
    assert state(web, late) == ("failed", "failed")
    assert web.get("/v1/instances/" + late).json["error"] == "late"
    assert web.post("/v1/verify").json["valid"]


def test_an_external_step_is_ended_from_outside(shell):  # B39
    _, web = server(shell)
    yaml(web, "ext", "steps: {a: {external: true, next: b}, b: {tool: set, args: {x: '{{steps.a.result}}'}, done: true}}")
    instance = web.create(definition="ext")
    assert state(web, instance) == ("running", "suspended")
    assert claim(web, "a") == []
    assert web.get("/v1/instances/%s/why" % instance).json["waiting_for"] == [{"kind": "step", "name": "a"}]
    web.expect(200, "POST", "/v1/steps/%s.1/complete" % instance, {"result": 3})
    shell.wait_for(lambda: state(web, instance)[0] == "completed")
    web.refused("lease-lost", "POST", "/v1/steps/%s.1/complete" % instance, {"result": 3})


TREE = """try:
  - {action: set, payload: {id: 1}, augment: {repo.id: id}}
  - dopar:
      - {action: set, payload: {n: 1}, augment: {a: n}}
      - {action: fail, payload: {error: broken}}
rescue:
  - {action: set, payload: {seen: "{{context.exec/last-error}}"}, augment: {rescued: seen}}
finally:
  - {action: log, payload: {message: "cleaned up"}}
"""


def test_a_tree_is_rescued_and_its_context_is_its_result(shell):  # C6, C15, C25, C27
    _, web = server(shell)
    yaml(web, "tree", TREE)
    instance = web.create(definition="tree")
    shell.wait_for(lambda: state(web, instance)[0] != "running")
    got = web.get("/v1/instances/" + instance).json
    assert got["current_state"] == "completed", got
    assert got["result"] == {"repo": {"id": 1}, "a": 1, "rescued": "broken", "exec/last-error": "broken"}, got["result"]
    names = [s["name"] for s in steps(web, instance)]
    assert names == ["try.0", "try.1.dopar.0", "try.1.dopar.1", "rescue.0", "finally.0"], names


def test_the_context_of_a_tree_is_read_while_it_runs_and_after_it_failed(shell):
    _, web = server(shell)
    yaml(web, "two", """
do:
  - {action: set, payload: {id: 7}, augment: {repo.id: id}}
  - {name: hold, action: far, payload: {}}
""")
    instance = web.create(definition="two")
    context = lambda: web.get("/v1/instances/%s/variables" % instance).json["variables"]
    (step,) = claim(web, "far", wait="10s")
    assert state(web, instance)[0] == "running" and context() == {"repo": {"id": 7}}
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"error": "broken", "lease": step["lease"]})
    assert state(web, instance)[0] == "failed" and context() == {"repo": {"id": 7}, "exec/last-error": "broken"}
    assert '  context     {"repo":{"id":7}' in shell.pawl("--store", "http://" + web.host, "show", instance).out


def test_a_timeout_says_which_time_ran_out_and_whose(shell):
    _, web = server(shell, "--test")
    yaml(web, "slow", """
steps:
  a: {tool: far, args: {}, timeout: 10m, retry: {max: 2, backoff: [1s]}, done: true}
""")
    instance = web.create(definition="slow")
    (step,) = claim(web, "far", wait="10s", lease="5s")
    web.expect(200, "POST", "/v1/test/advance", {"by": "6s"})
    reasons = lambda: [e.get("reason") for e in web.get("/v1/instances/%s/history" % instance).json["entries"] if e["action"] == "step.timeout"]
    shell.wait_for(lambda: len(reasons()) == 1)
    web.expect(200, "POST", "/v1/test/advance", {"by": "2s"})
    (step,) = claim(web, "far", wait="10s", lease="1h")
    web.expect(200, "POST", "/v1/test/advance", {"by": "11m"})
    shell.wait_for(lambda: len(reasons()) == 2)
    assert reasons() == ["the lease of the worker w1 ran out", "the step's own timeout ran out at the worker w1"], reasons()


def test_a_thousand_branches_join_once(shell):  # B14, B15
    _, web = server(shell)
    names = ["b%d" % n for n in range(1000)]
    text = "steps:\n  start: {tool: set, args: {}, parallel: [%s]}\n" % ", ".join(names)
    text += "".join("  %s: {tool: set, args: {}, join: end}\n" % n for n in names)
    text += "  end: {tool: set, args: {done: true}, done: true}\n"
    yaml(web, "fan", text)
    instance = web.create(definition="fan")
    shell.wait_for(lambda: state(web, instance)[0] == "completed")
    assert sum(s["name"] == "end" for s in steps(web, instance)) == 1
    assert web.post("/v1/instances/%s/verify" % instance).json["valid"]


def test_live_steps_are_listed_page_by_page(shell):
    _, web = server(shell)
    yaml(web, "gate", GATE)
    yaml(web, "fan", "dopar:\n" + "".join("  - {action: far, payload: {n: %d}}\n" % n for n in range(5)))
    gate, fan = web.create(definition="gate"), web.create(definition="fan")
    seen, after = [], ""
    while after is not None:
        page = web.expect(200, "GET", "/v1/steps?limit=2" + (after and "&after=" + after)).json
        seen += [s["step_id"] for s in page["steps"]]
        after = page["next"]
    assert seen == [gate + ".1"] + [fan + ".%d" % n for n in range(1, 6)], seen
    [pending] = web.get("/v1/steps?status=pending").json["steps"]
    assert pending["name"] == "request_approval" and pending["instance_id"] == gate
    assert len(web.get("/v1/steps?tool=far&status=ready").json["steps"]) == 5
    [step] = claim(web, "far")
    complete(web, step, 1)
    assert [s["step_id"] for s in web.get("/v1/steps?instance_id=%s&status=done" % fan).json["steps"]] == [step["step_id"]]
    web.refused("invalid-query", "GET", "/v1/steps?status=lazy")
    web.refused("invalid-query", "GET", "/v1/steps?colour=1")
    web.refused("invalid-query", "GET", "/v1/steps?after=x")
    web.refused("not-known", "GET", "/v1/steps?instance_id=nobody")


def test_claims_that_make_no_sense_are_refused_by_name(shell):
    _, web = server(shell)
    for body in ({}, {"tools": [], "worker": "w"}, {"tools": ["a"]}, {"tools": "a", "worker": "w"},
                 {"tools": ["a"], "worker": "w", "max": 0}, {"tools": ["a"], "worker": "w", "wait": 5},
                 {"tools": ["a"], "worker": "w", "lease": "soon"}, {"tools": [1], "worker": "w"},
                 {"tools": ["a"], "worker": "w", "colour": 1}):
        web.refused("invalid-request", "POST", "/v1/steps/claim", body)


def test_an_answer_tells_what_became_of_the_step(shell):
    _, web = server(shell, "--test")
    yaml(web, "picky", "steps: {a: {tool: far, branch: [{if: 'result > 3', then: z}]}, z: {tool: far, done: true}}")
    for result, status in ((4, "done"), ("x", "failed")):
        web.create(definition="picky")
        [step] = claim(web, "far")
        assert complete(web, step, result) == {"status": status}, result
        answers = {"steps": [{"step_id": s["step_id"], "lease": s["lease"], "result": 1} for s in claim(web, "far")]}
        assert all(r["status"] == "done" for r in web.post("/v1/steps/complete", answers).json["results"])
    for text, words in (("tool: null, approval: {by: [ann, ann], count: 2}, done: true", "names 'ann' twice"),
                        ("tool: far, parallel: []", "a list of one or more, found an empty one")):
        refused = web.refused("invalid-definition", "PUT", "/v1/definitions/odd", "steps: {a: {%s}}" % text,
                              {"Content-Type": "application/yaml"})
        assert words in refused.json["detail"], refused


def test_seed_001_reads_its_two_tables(shell):  # B2, B3, B6, B8, B9, X1
    _, web = server(shell, "--test")
    yaml(web, "two", """steps:
  start: {name: a, tool: far, args: {q: "{{input.q}}"}, retry: {max: 2, backoff: [5s]}, next: b}
  b: {tool: null, done: true}
""")
    one = web.create(definition="two", input={"q": 1}, actor_ref="ann")
    [step] = claim(web, "far")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "rain"})
    web.expect(200, "POST", "/v1/test/advance", {"by": "5s"})
    [step] = claim(web, "far")
    complete(web, step, {"n": 2})

    def rows(text):
        return shell.json("sql", text)["rows"]

    assert rows("SELECT name, input_json, status, created_by, completed_at FROM workflows") == [
        ["two", '{"q": 1}', "running", "ann", None]]
    query = "SELECT name, tool, result_json, status, attempt, workflow_id, started_at IS NULL FROM workflow_steps ORDER BY id"
    assert rows(query) == [["a", "far", '"rain"', "failed", 1, 1, 0], ["a", "far", '{"n": 2}', "done", 2, 1, 0],
                           ["b", None, None, "pending", 1, 1, 1]]
    columns = shell.json("sql", "SELECT * FROM workflow_steps")["columns"]
    assert columns == ["id", "updated_at", "workflow_id", "name", "tool", "args_json", "result_json", "status", "attempt", "ready_at",
                       "started_at", "completed_at"], "B9: a row knows nothing of what comes before or after it"
    at = rows("SELECT updated_at FROM workflows")[0][0]
    told = web.get("/v1/instances/" + one).json["updated_at"]
    assert at % 60000 == int(told[17:19]) * 1000 + int(told[20:23]), "B6: milliseconds: %s, %s" % (at, told)
    web.expect(200, "POST", "/v1/instances/%s/cancel" % one, {})
    assert rows("SELECT status, cancelled_at IS NULL FROM workflows") == [["cancelled", 0]]
    assert rows(query)[2][3] == "cancelled"


def test_c36_the_tree_can_be_read_with_what_came_of_each_of_its_steps(shell):
    _, web = server(shell, "--test")
    web.expect(201, "PUT", "/v1/definitions/tree", {"do": [
        {"action": "far", "payload": 1, "retry": {"max": 2, "backoff": ["5s"]}},
        {"dopar": [{"wait": {"signal": "go"}}, {"action": "near", "payload": {}, "name": "second"}]}, {"action": "last", "payload": {}}]})
    one = web.create(definition="tree")

    def tree():
        return shell.json("sql", "SELECT name, kind, tool, status, attempts, result, error FROM pawl_tree ORDER BY step_index")["rows"]

    def attempts():
        keys = "step_id name tool attempt status result error ready_at started_at completed_at".split()
        told = [dict(zip(keys, row)) for row in shell.json("sql", "SELECT %s FROM pawl_attempts ORDER BY step_ordinal" % ", ".join(keys))["rows"]]
        for row in told:
            row.update((k, row[k] and json.loads(row[k])) for k in ("result", "error"))
        assert told == [{key: step[key] for key in keys} for step in steps(web, one)], (told, steps(web, one))

    assert tree() == [["do.0", "tool", "far", "ready", 1, None, None], ["do.1.dopar.0", "wait", None, "unstarted", 0, None, None],
                      ["second", "tool", "near", "unstarted", 0, None, None], ["do.2", "tool", "last", "unstarted", 0, None, None]]
    attempts()
    [step] = claim(web, "far")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "rain"})
    assert tree()[0][3:] == ["pending", 2, None, None]
    attempts()
    web.expect(200, "POST", "/v1/test/advance", {"by": "5s"})
    complete(web, claim(web, "far")[0], {"n": 2})
    complete(web, claim(web, "near")[0], None)
    assert [row[3:6] for row in tree()] == [["done", 2, '{"n": 2}'], ["pending", 1, None], ["done", 1, "null"], ["unstarted", 0, None]]
    attempts()
    web.expect(200, "POST", "/v1/instances/%s/cancel" % one, {})
    assert [row[3] for row in tree()] == ["done", "cancelled", "done", "unstarted"]
    attempts()
    # X14, X15: what waited is gone, what happened stays, and the tree is a view of that.
    live = ["SELECT count(*) FROM " + table for table in ("pawl_step", "pawl_timer", "pawl_wait")]
    assert [shell.json("sql", text)["rows"] for text in live] == [[[0]]] * 3
    assert web.get("/v1/instances/%s/history" % one).json["entries"][0]["action"] == "start"


def test_a_call_that_no_worker_takes_in_time_fails_and_one_that_is_taken_does_not(shell):
    child, web = server(shell, "--test")
    yaml(web, "ask", "steps: {ask: {tool: far, wait_for_worker: 1h, timeout: 9h, retry: {max: 1}, on_error: end, done: true}, "
                     "end: {tool: set, args: {by: '{{context.exec/last-error}}'}, done: true}}")
    both = {web.create(definition="ask"), web.create(definition="ask")}
    [step] = web.post("/v1/steps/claim", {"tools": ["far"], "worker": "w", "max": 1, "lease": "8h"}).json["steps"]
    (other,) = both - {step["instance_id"]}
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    assert web.get("/v1/instances/" + other).json["result"] == {"by": "no-worker"}
    assert web.post("/v1/steps/claim", {"tools": ["far"], "worker": "w"}).json["steps"] == []
    complete(web, step, 7)
    assert state(web, step["instance_id"]) == ("completed", "completed")
    shell.stop(child)
    shell.pawl("verify")


def test_a_group_that_runs_out_of_time_ends_what_runs_in_it_also_after_a_death(shell):
    child, web = server(shell, "--test")
    yaml(web, "kid", "do: [{wait: {signal: never}}]")
    yaml(web, "visit", """timeout: 9h
do:
  - try:
      - dopar: [{name: a, tool: far}, {name: b, wait: {signal: s}}, {name: c, spawn: {definition: kid}}]
    timeout: 1h
    retry: {max: 2, backoff: [1m]}
    rescue: [{name: r, tool: set, args: {why: "{{context.exec/last-error}}"}, augment: {why: why}}]
    finally: [{name: f, tool: far}]
""")
    id = web.create(definition="visit")
    [step] = claim(web, "far")
    for _ in range(2):
        shell.stop(child, 9, expect=-9)
        child, web = server(shell, "--test")
        web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
        web.expect(200, "POST", "/v1/test/advance", {"by": "1m"})
    web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    kids = web.get("/v1/instances?definition=kid").json["instances"]
    assert [kid["status"] for kid in kids] == ["cancelled", "cancelled"], kids
    rows = {(s["name"], s["attempt"]): s["status"] for s in web.get("/v1/instances/%s/steps" % id).json["steps"]}
    assert rows[("do.0.try", 1)] == rows[("do.0.try", 2)] == "failed" and rows[("r", 1)] == "done", rows
    [step] = claim(web, "far")
    complete(web, step, 1)
    assert web.get("/v1/instances/" + id).json["result"]["why"] == "timeout"
    shell.stop(child)
    shell.pawl("verify")


if __name__ == "__main__":
    harness.main(globals())
