"""A flow that failed is run again from where it failed, as a new instance (X7, C38; DESIGN section 5)."""
import concurrent.futures

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


def test_a_result_names_the_instance_that_made_it_over_every_redrive(shell):
    _, web = server(shell)
    first = failed_chain(web)
    second = redrive(web, first)
    complete(web, claim(web, "b")[0], 6)
    fail(web, claim(web, "c")[0])
    third = redrive(web, second)
    reused = [{"name": "a", "instance_id": first}, {"name": "b", "instance_id": second}]
    assert web.get("/v1/instances/%s/steps" % third).json["reused"] == reused
    fail(web, claim(web, "c")[0])
    assert web.get("/v1/instances/%s/steps" % redrive(web, third)).json["reused"] == reused


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
    yaml(web, "running", "steps: {a: {tool: busy, done: true}}")
    instance = web.create(definition="running")
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
    failed = failed_chain(web)
    path = "/v1/instances/%s/redrive" % failed
    assert "'x'" in web.refused("invalid-request", "POST", path, {"from": "x"}).json["detail"]
    web.refused("not-known", "POST", path, {"definition": "absent"})
    assert "graph" in web.refused("invalid-request", "POST", path, {"definition": "quick"}).json["detail"]
    yaml(web, "other", "steps: {z: {tool: z, done: true}}")
    assert "'b'" in web.refused("invalid-request", "POST", path, {"definition": "other"}).json["detail"]
    verify_twice(shell, web)


def test_unfinished_steps_keep_their_idempotency_keys_over_every_redrive(shell):
    child, web = server(shell)
    yaml(web, "chain", CHAIN.replace("retry: {max: 1}", "retry: {max: 2, backoff: [1ms]}"))
    first = web.create(definition="chain")
    [a] = claim(web, "a")
    complete(web, a, {"n": 5})
    [b] = claim(web, "b")
    web.expect(200, "POST", "/v1/steps/%s/fail" % b["step_id"], {"lease": b["lease"], "error": "x"})
    [again] = claim(web, "b", wait="9s")
    fail(web, again)
    assert again["idempotency_key"] == b["idempotency_key"] == first + ".2"
    second = redrive(web, first)
    child.kill()
    child.wait()
    _, web = server(shell)
    [b2] = claim(web, "b")
    assert b2["instance_id"] == second and b2["idempotency_key"] == b["idempotency_key"], b2
    web.expect(200, "POST", "/v1/steps/%s/fail" % b2["step_id"], {"lease": b2["lease"], "error": "x"})
    [again] = claim(web, "b", wait="9s")
    assert again["idempotency_key"] == b["idempotency_key"], "retries keep it too"
    fail(web, again)
    third = redrive(web, second)
    [b3] = claim(web, "b")
    assert b3["idempotency_key"] == b["idempotency_key"], b3
    complete(web, b3, 1)
    assert claim(web, "c")[0]["idempotency_key"] == third + ".2", "a step that never began has its own"
    verify_twice(shell, web)


def test_one_instance_is_redriven_once_at_a_time_and_names_its_successor(shell):
    _, web = server(shell)
    first = failed_chain(web)
    path = "/v1/instances/%s/" % first
    second = redrive(web, first)
    refused = web.refused("conflict", "POST", path + "redrive")
    assert second in refused.json["detail"], refused.json
    assert web.get(path[:-1]).json["retried_as"] == second
    why = web.get(path + "why").json
    assert (why["waiting_for"], why["retried_as"]) == ([], second), why
    assert (why["ended"]["status"], why["ended"]["can_redrive"]) == ("failed", False), why
    assert "retried_as" not in web.get("/v1/instances/" + second).json
    assert shell.json("sql", "SELECT retried_as FROM pawl_instances ORDER BY number")["rows"] == [[second], [None]]
    fail(web, claim(web, "b")[0])
    third = redrive(web, first)
    assert web.get(path[:-1]).json["retried_as"] == third, "the last one counts"
    assert third in web.refused("conflict", "POST", "/v1/instances/%s/redrive" % second).json["detail"]
    complete(web, claim(web, "b")[0], 1)
    complete(web, claim(web, "c")[0], 1)
    assert "completed" in web.refused("conflict", "POST", path + "redrive").json["detail"]
    verify_twice(shell, web)


def test_racing_redrives_make_one_instance(shell):
    _, web = server(shell)
    path = "/v1/instances/%s/redrive" % failed_chain(web)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: web.post(path), range(8)))
    assert sorted(r.status for r in replies) == [201] + [409] * 7, [r.body for r in replies]
    [made] = [r.json["instance_id"] for r in replies if r.status == 201]
    assert all(made in r.json["detail"] for r in replies if r.status == 409), [r.body for r in replies]


def test_a_repaired_definition_is_taken_with_the_results_there_are(shell):
    _, web = server(shell)
    first = failed_chain(web)
    yaml(web, "chain", """steps:
  start: {name: a, tool: a, augment: {seen: identity}, next: b}
  b: {tool: b2, args: {from: "{{steps.a.result.n}}"}, next: c}
  c: {tool: c, args: {all: "{{steps.a.result}}"}, done: true}
""")
    second = redrive(web, first, definition="chain")
    got = web.get("/v1/instances/" + second).json
    assert (got["version"], got["retry_of"]) == (2, first), got
    [b] = claim(web, "b2")
    assert b["args"] == {"from": 5} and b["idempotency_key"] == first + ".2", b
    complete(web, b, 1)
    assert claim(web, "c")[0]["args"] == {"all": {"n": 5}}
    answer = web.get("/v1/instances/%s/steps" % second).json
    assert answer["reused"] == [{"name": "a", "instance_id": first}], answer
    verify_twice(shell, web)


def test_results_too_large_to_be_given_whole_are_given_as_far_as_they_are_read(shell):
    _, web = server(shell)
    yaml(web, "large", """steps:
  start: {name: a, tool: t, next: b}
  b: {tool: t, next: c}
  c: {tool: t, args: {x: "{{steps.a.result.list.1.id}}{{steps.b.result.a.b}}{{steps.b.result.none}}"}, retry: {max: 1}, done: true}
""")
    instance = web.create(definition="large")
    complete(web, claim(web, "t")[0], {"much": "x" * 700000, "list": ["y" * 1000, {"id": 4, "no": 1}, 5]})
    complete(web, claim(web, "t")[0], {"much": "x" * 700000, "a.b": 5, "a": {"b": 6}})
    fail(web, claim(web, "t")[0])
    again = redrive(web, instance)
    given = web.get("/v1/instances/%s/history?limit=1" % again).json["entries"][0]["payload"]["results"]
    assert given == {"a": {"list": [0, {"id": 4}]}, "b": {"a.b": 5, "a": {"b": 6}}}, given
    [step] = claim(web, "t")
    assert step["args"] == {"x": "45"} and step["instance_id"] == again, step
    verify_twice(shell, web)


def test_it_begins_at_a_chosen_step(shell):
    _, web = server(shell)
    first = failed_chain(web)
    second = redrive(web, first, **{"from": "c"})
    assert [s["name"] for s in steps(web, second)] == ["c"]
    web.expect(200, "POST", "/v1/instances/%s/cancel" % second)
    third = redrive(web, first, **{"from": "a"})
    [a] = claim(web, "a")
    assert a["idempotency_key"] == third + ".1", "what is done and run again on purpose has a new key"
    complete(web, a, {"n": 6})
    assert claim(web, "b")[0]["args"]["from"] == 6
    yaml(web, "tree", TREE)
    tree = web.create(definition="tree")
    complete(web, claim(web, "one")[0], 11)
    fail(web, claim(web, "shaky")[0])
    fail(web, claim(web, "help")[0])
    assert "rescue" in web.refused("invalid-request", "POST", "/v1/instances/%s/redrive" % tree, {"from": "help"}).json["detail"]
    again = redrive(web, tree, **{"from": "bad"})
    assert [s["name"] for s in steps(web, again)] == ["good", "bad"], "what the try was before counts as done"
    for tool in ("good", "bad", "after", "last"):
        complete(web, claim(web, tool)[0], 1)
    assert state(web, again)[0] == "completed"
    verify_twice(shell, web)


def test_where_no_branch_matched_the_step_runs_again_or_chooses_by_the_repaired_definition(shell):
    _, web = server(shell)
    yaml(web, "ask", "steps: {a: {tool: ask, branch: [{if: 'result == 1', then: z}]}, z: {tool: z, done: true}}")
    first = web.create(definition="ask")
    complete(web, claim(web, "ask")[0], 2)
    assert web.get("/v1/instances/" + first).json["error"] == "no-branch-matched"
    second = redrive(web, first)
    complete(web, claim(web, "ask")[0], 3)
    assert state(web, second)[0] == "failed"
    refused = web.refused("conflict", "POST", "/v1/instances/%s/redrive" % second, {"definition": "ask@1"})
    assert "'a'" in refused.json["detail"], refused.json
    yaml(web, "ask", "steps: {a: {tool: ask, branch: [{if: 'result == 3', then: z}]}, z: {tool: z, done: true}}")
    third = redrive(web, second, definition="ask")
    assert claim(web, "ask") == [] and [s["name"] for s in steps(web, third)] == ["z"]
    complete(web, claim(web, "z")[0], 1)
    assert state(web, third)[0] == "completed"
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


ORDER = "do: [{name: charge, action: charge, payload: {}}, {name: ship, action: ship, payload: {x: \"{{input.x}}\"}}]"


def spawning(name, after="after"):
    return "do: [{name: o, spawn: {definition: %s, input: {x: 1}}}, " \
        "{name: %s, action: %s, payload: {r: \"{{steps.o.result}}\"}}]" % (name, after, after)


def until(web, instance, *states):
    while state(web, instance)[0] not in states:
        pass


def failed_order(web, definition="parent"):
    """A parent whose child has charged and could not ship: the parent, and both steps."""
    parent = web.create(definition=definition)
    [charge] = claim(web, "charge", wait="10s")
    complete(web, charge, {"paid": 1})
    [ship] = claim(web, "ship", wait="10s")
    fail(web, ship)
    until(web, parent, "failed")
    return parent, charge, ship


def test_a_redriven_parent_runs_its_failed_child_and_grandchild_again_from_where_they_failed(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    yaml(web, "parent", spawning("order"))
    yaml(web, "grand", spawning("parent", "last"))
    first, charge, ship = failed_order(web, "grand")
    old, middle = ship["instance_id"], web.get("/v1/instances/" + ship["instance_id"]).json["parent_id"]
    for number in (1, 2):
        first = redrive(web, first)
        [again] = claim(web, "ship", wait="10s")
        assert again["idempotency_key"] == ship["idempotency_key"], "the key of what did not finish"
        assert claim(web, "charge") == [], "what succeeded in the child is not run again"
        child = web.get("/v1/instances/" + again["instance_id"]).json
        assert child["retry_of"] == old and web.get("/v1/instances/" + old).json["retried_as"] == child["instance_id"]
        reused = web.get("/v1/instances/%s/steps" % child["instance_id"]).json["reused"]
        assert reused == [{"name": "charge", "instance_id": charge["instance_id"]}], reused
        assert web.get("/v1/instances/" + child["parent_id"]).json["retry_of"] == middle
        old, middle = child["instance_id"], child["parent_id"]
        if number == 1:
            fail(web, again)
            until(web, first, "failed")
    complete(web, again, 2)
    [after] = claim(web, "after", wait="10s")
    complete(web, after, 3)
    complete(web, claim(web, "last", wait="10s")[0], 4)
    until(web, first, "completed")
    verify_twice(shell, web)


def test_a_redriven_parent_goes_by_what_became_of_its_child_meanwhile(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    yaml(web, "parent", spawning("order"))
    parent, _, ship = failed_order(web)
    by_hand = redrive(web, ship["instance_id"])
    refusal = web.expect(409, "POST", "/v1/instances/%s/redrive" % parent, {}).json
    assert by_hand in refusal["detail"] and ship["instance_id"] in refusal["detail"], refusal
    fail(web, claim(web, "ship", wait="10s")[0])
    second = redrive(web, parent)
    [again] = claim(web, "ship", wait="10s")
    assert again["idempotency_key"] == ship["idempotency_key"]
    assert web.get("/v1/instances/" + again["instance_id"]).json["retry_of"] == by_hand, "the last one is run again"
    fail(web, again)
    until(web, second, "failed")
    third = redrive(web, again["instance_id"])
    complete(web, claim(web, "ship", wait="10s")[0], {"sent": 1})
    until(web, third, "completed")
    result = web.get("/v1/instances/" + third).json["result"]
    redrive(web, second)
    [after] = claim(web, "after", wait="10s")
    assert after["args"] == {"r": result}, "what has completed is not run again: its result is the step's"
    assert claim(web, "charge") == [] and claim(web, "ship") == []
    verify_twice(shell, web)


def test_of_racing_redrives_of_a_parent_and_its_child_one_is_accepted(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    yaml(web, "parent", spawning("order"))
    for _ in range(4):
        parent, _, ship = failed_order(web)
        paths = ["/v1/instances/%s/redrive" % one for one in (parent, ship["instance_id"])]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(web.post, paths * 4))
        assert sorted(r.status for r in replies) == [201] + [409] * 7, [r.body for r in replies]
        complete(web, claim(web, "ship", wait="10s")[0], 1)
        assert claim(web, "ship") == []
        [complete(web, after, 1) for after in claim(web, "after")]
    verify_twice(shell, web)


def test_a_cancelled_parent_and_its_child_go_on_by_the_newest_version_of_the_child(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    yaml(web, "parent", spawning("order"))
    parent = web.create(definition="parent")
    complete(web, claim(web, "charge", wait="10s")[0], 1)
    [ship] = claim(web, "ship", wait="10s")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % parent)
    yaml(web, "order", ORDER.replace("action: ship", "action: ship2"))
    redrive(web, parent)
    [again] = claim(web, "ship2", wait="10s")
    assert again["idempotency_key"] == ship["idempotency_key"] and claim(web, "charge") == []
    assert web.get("/v1/instances/" + again["instance_id"]).json["version"] == 2
    yaml(web, "order", "steps: {start: {name: ship, tool: ship, args: {}, done: true}}")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % web.get("/v1/instances/" + again["instance_id"]).json["parent_id"])
    refusal = web.expect(400, "POST", "/v1/instances/%s/redrive"
                         % web.get("/v1/instances/" + again["instance_id"]).json["parent_id"], {}).json
    assert "expected a tree" in refusal["detail"] and again["instance_id"] in refusal["detail"], refusal
    verify_twice(shell, web)


def test_a_step_that_spawns_another_definition_now_or_a_machine_has_a_new_child(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    yaml(web, "other", ORDER)
    yaml(web, "parent", spawning("order"))
    parent, charge, _ = failed_order(web)
    yaml(web, "parent", spawning("other"))
    redrive(web, parent, definition="parent")
    [again] = claim(web, "charge", wait="10s")
    assert again["idempotency_key"] != charge["idempotency_key"]
    yaml(web, "lamp", "states: [on, off, broken]\ninitial_state: on\nterminal_states: [off, broken]\n"
         "terminal_kinds: {off: success, broken: failure}\ntransitions: [{from_state: on, action: press, to_state: off}, "
         "{from_state: on, action: drop, to_state: broken}]")
    yaml(web, "lit", spawning("lamp"))
    for action in ("drop", "press"):
        lit = web.create(definition="lit") if action == "drop" else redrive(web, lit)
        [lamp] = [one["instance_id"] for one in web.get("/v1/instances?definition=lamp").json["instances"]
                  if one["parent_id"] == lit]
        web.expect(200, "POST", "/v1/instances/%s/fire" % lamp, {"action": action})
        if action == "drop":
            until(web, lit, "failed")
    assert claim(web, "after", wait="10s")
    verify_twice(shell, web)


def test_a_key_that_no_step_has_used_yet_is_passed_on(shell):
    _, web = server(shell)
    yaml(web, "two", "do: [{name: a, action: a, payload: {}}, {name: b, action: b, payload: {}}]")
    first = web.create(definition="two")
    complete(web, claim(web, "a", wait="10s")[0], 1)
    [step] = claim(web, "b", wait="10s")
    fail(web, step)
    until(web, first, "failed")
    second = redrive(web, first, **{"from": "a"})
    fail(web, claim(web, "a", wait="10s")[0])
    until(web, second, "failed")
    redrive(web, second)
    complete(web, claim(web, "a", wait="10s")[0], 1)
    assert claim(web, "b", wait="10s")[0]["idempotency_key"] == step["idempotency_key"]


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
    assert web.expect(201, "POST", path, {}, key).json == first, "although its successor is under way"


def test_the_command_line_redrives_too(shell):
    shell.write("bad.yaml", "name: bad\ndo: [{action: set, payload: {a: 1}}, {action: fail, payload: {error: no}}]")
    shell.pawl("run", "bad.yaml", expect=1)
    first = shell.json("list")["instances"][0]["instance_id"]
    second = shell.pawl("redrive", "@last").out.strip()
    shown = shell.pawl("show", second).out
    assert len(second) == 26 and "retry of" in shown, shown
    assert "✔ do.0  set  in " + first[:10] in shown, "the step whose result it uses is done"
    assert second in shell.pawl("show", first).out and second in shell.pawl("why", first).out
    shell.pawl("cancel", second)
    shell.write("bad.yaml", "name: bad\ndo: [{action: set, payload: {a: 1}}, {action: set, payload: {b: 2}}]")
    shell.pawl("define", "bad.yaml")
    assert len(shell.pawl("redrive", first, "--definition", "bad@2", "--from", "do.1").out.strip()) == 26


if __name__ == "__main__":
    harness.main(globals())
