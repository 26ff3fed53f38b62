"""A flow that failed is run again from where it failed, as a new instance (X7, C38; DESIGN section 5)."""
from run_amend import amend, verify_twice
from run_flows import actions, claim, complete, server, state, steps, yaml
from web import harness

CHAIN = """steps:
  start: {name: a, tool: a, augment: {seen: identity}, next: b}
  b: {tool: b, args: {from: "{{steps.a.result.n}}", seen: "{{context.seen.n}}"}, retry: {max: 1}, next: c}
  c: {tool: c, args: {from: "{{steps.b.result}}"}, done: true}
"""


def fail(web, step, error="no"):
    body = {"lease": step["lease"], "error": error, "retry": False}
    return web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], body).json


def redrive(web, instance, **members):
    return web.expect(201, "POST", "/v1/instances/%s/redrive" % instance, members).json["instance_id"]


def failed_chain(web):
    yaml(web, "chain", CHAIN)
    instance = web.create(definition="chain", input={"x": 1}, actor_ref="ann", subject_ref="S-1",
                          correlation_id="C-1", labels={"k": "v"})
    complete(web, claim(web, "a")[0], {"n": 5})
    fail(web, claim(web, "b")[0])
    assert state(web, instance) == ("failed", "failed")
    return instance


def test_x7_c38_it_begins_at_the_failed_step_with_the_results_before_it(shell):
    _, web = server(shell)
    first = failed_chain(web)
    before = web.get("/v1/instances/%s/history" % first).body
    second = redrive(web, first)
    assert second != first and web.get("/v1/instances/%s/history" % first).body == before, "the old history stays"
    got = web.get("/v1/instances/" + second).json
    assert got["retry_of"] == first and "retry_of" not in web.get("/v1/instances/" + first).json
    for member in ("definition", "version", "input", "created_by", "subject_ref", "correlation_id", "labels"):
        assert got[member] == web.get("/v1/instances/" + first).json[member], member
    start = web.get("/v1/instances/%s/history" % second).json["entries"][0]
    assert start["action"] == "start" and start["payload"]["retry_of"] == first, start
    assert start["payload"]["context"]["exec/retries"] == 1, start
    assert claim(web, "a") == [], "what succeeded is not run again"
    [step] = claim(web, "b")
    assert step["args"] == {"from": 5, "seen": 5} and step["instance_id"] == second, step
    complete(web, step, 6)
    [step] = claim(web, "c")
    assert step["args"] == {"from": 6}, step
    complete(web, step, 7)
    assert state(web, second) == ("completed", "completed")
    verify_twice(shell, web)


def test_it_can_fail_and_be_run_again_once_more_and_counts(shell):
    _, web = server(shell)
    second = redrive(web, failed_chain(web), actor_ref="bob")
    assert web.get("/v1/instances/" + second).json["created_by"] == "bob"
    fail(web, claim(web, "b")[0])
    third = redrive(web, second)
    start = web.get("/v1/instances/%s/history" % third).json["entries"][0]
    assert start["payload"]["context"]["exec/retries"] == 2 and start["payload"]["retry_of"] == second, start
    [step] = claim(web, "b")
    assert step["args"] == {"from": 5, "seen": 5}, step
    verify_twice(shell, web)


def test_what_was_not_failed_is_refused_and_named(shell):
    _, web = server(shell)
    yaml(web, "chain", CHAIN)
    instance = web.create(definition="chain")
    path = "/v1/instances/%s/redrive" % instance
    web.refused("conflict", "POST", path)
    yaml(web, "quick", "do: [{action: log, payload: {message: x}}]")
    done = web.create(definition="quick")
    shell.wait_for(lambda: state(web, done)[0] == "completed")
    web.refused("terminal", "POST", "/v1/instances/%s/redrive" % done)
    web.refused("not-known", "POST", "/v1/instances/%s/redrive" % ("0" * 26))
    web.expect(201, "PUT", "/v1/definitions/machine", {"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"],
               "terminal_kinds": {"b": "failure"}, "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}]})
    machine = web.create(definition="machine")
    web.refused("invalid-transition", "POST", "/v1/instances/%s/redrive" % machine)
    yaml(web, "nowhere", "steps: {a: {tool: a, branch: [{if: 'result == 1', then: a}]}}")
    lost = web.create(definition="nowhere")
    [step] = [s for s in claim(web, "a", max=9) if s["instance_id"] == lost]
    complete(web, step, 2)
    assert web.get("/v1/instances/" + lost).json["error"] == "no-branch-matched"
    web.refused("conflict", "POST", "/v1/instances/%s/redrive" % lost)
    verify_twice(shell, web)


def test_cancelled_branches_and_waiting_joins_go_on(shell):
    _, web = server(shell)
    yaml(web, "fan", """steps:
  start: {tool: s, parallel: [a, b, c]}
  a: {tool: a, join: end}
  b: {tool: b, retry: {max: 1}, join: end}
  c: {tool: c, join: end}
  end: {tool: e, done: true}
""")
    first = web.create(definition="fan")
    complete(web, claim(web, "s")[0], 1)
    complete(web, claim(web, "a")[0], 1)
    fail(web, claim(web, "b")[0])
    assert [s["status"] for s in steps(web, first)] == ["done", "done", "failed", "cancelled"]
    second = redrive(web, first)
    assert claim(web, "a") == [] and [s["name"] for s in steps(web, second)] == ["b", "c"]
    complete(web, claim(web, "b")[0], 1)
    assert claim(web, "e") == [], "c can still arrive"
    complete(web, claim(web, "c")[0], 1)
    complete(web, claim(web, "e")[0], "end")
    assert web.get("/v1/instances/" + second).json["result"] == "end"
    verify_twice(shell, web)


TREE = """do:
  - {name: one, action: one, payload: {}, augment: {one: identity}}
  - try: [{name: shaky, action: shaky, payload: {}}]
    rescue: [{name: help, action: help, payload: {}}]
  - dopar:
      - {name: good, action: good, payload: {}}
      - do: [{name: first, action: first, payload: {}}, {name: bad, action: bad, payload: {}}, {name: after, action: after, payload: {}}]
  - {name: last, action: last, payload: {}}
"""


def test_c38_a_tree_does_only_what_is_left(shell):
    _, web = server(shell)
    yaml(web, "tree", TREE)
    first = web.create(definition="tree")
    complete(web, claim(web, "one")[0], 11)
    fail(web, claim(web, "shaky")[0])  # rescued: no reason to do it again
    complete(web, claim(web, "help")[0], 1)
    complete(web, claim(web, "good")[0], 1)
    complete(web, claim(web, "first")[0], 1)
    fail(web, claim(web, "bad")[0], "broken")
    assert state(web, first)[0] == "failed"
    second = redrive(web, first)
    assert [s["name"] for s in steps(web, second)] == ["bad"]
    fail(web, claim(web, "bad")[0], "broken again")
    third = redrive(web, second)
    assert [s["name"] for s in steps(web, third)] == ["bad"], "what the first one did counts for the third"
    complete(web, claim(web, "bad")[0], 1)
    complete(web, claim(web, "after")[0], 1)
    complete(web, claim(web, "last")[0], 1)
    result = web.get("/v1/instances/" + third).json["result"]
    assert result == {"one": 11, "exec/last-error": "broken again", "exec/retries": 2}, result
    verify_twice(shell, web)


def test_a_cancelled_flow_and_an_amended_one_are_run_again(shell):
    _, web = server(shell)
    yaml(web, "chain", CHAIN)
    first = web.create(definition="chain")
    complete(web, claim(web, "a")[0], {"n": 1})
    yaml(web, "chain", CHAIN.replace("tool: b", "tool: b2").replace("tool: c", "tool: c2"))
    amend(web, first, "chain@2")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % first)
    second = redrive(web, first)
    assert web.get("/v1/instances/" + second).json["version"] == 2
    complete(web, claim(web, "b2")[0], 1)
    complete(web, claim(web, "c2")[0], 1)
    assert actions(web, second)[-1] == "finish"
    verify_twice(shell, web)


def test_a_key_makes_one_new_instance(shell):
    _, web = server(shell)
    path, key = "/v1/instances/%s/redrive" % failed_chain(web), {"Idempotency-Key": "k"}
    first = web.expect(201, "POST", path, {}, key).json
    assert web.expect(201, "POST", path, {}, key).json == first


def test_the_command_line_redrives_too(shell):
    shell.write("bad.yaml", "name: bad\ndo: [{action: set, payload: {a: 1}}, {action: fail, payload: {error: no}}]")
    shell.pawl("run", "bad.yaml", expect=1)
    assert len(shell.pawl("redrive", "@last").out.strip()) == 26
    assert "retry of" in shell.pawl("show", "@last").out


if __name__ == "__main__":
    harness.main(globals())
