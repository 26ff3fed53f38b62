#!/usr/bin/env python3
"""run_flow_seeds.py - lines of seeds 001 (B) and 002 (C) that are seen from outside, over HTTP."""
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "http"))
from run_flows import actions, claim, complete, server, state, steps, yaml  # noqa: E402
from web import harness  # noqa: E402


def ended(shell, web, instance):
    shell.wait_for(lambda: state(web, instance)[0] in ("completed", "failed", "cancelled"))
    return web.get("/v1/instances/" + instance).json


def kill(child):
    child.send_signal(signal.SIGKILL)
    child.wait()


def test_b1_b41_one_command_starts_it_and_starting_twice_keeps_what_was_there(shell):
    child, web = server(shell)
    yaml(web, "one", "steps: {a: {tool: far, done: true}}")
    instance = web.create(definition="one")
    shell.stop(child)
    assert sorted(os.listdir(shell.folder)) and not (shell.folder / "pawl.yaml").exists()
    _, web = server(shell)
    assert state(web, instance) == ("running", "running")


def test_b4_c41_what_has_ended_lies_in_no_table_that_is_looked_through_for_work(shell):
    _, web = server(shell)
    yaml(web, "f", "do: [{action: set, payload: {}}, {name: nap, wait: {timer: 1ms}}, {action: set, payload: {}}]")
    yaml(web, "w", "steps: {a: {tool: far, done: true}}")
    waits = web.create(definition="w")
    for instance in [web.create(definition="f") for _ in range(50)]:
        ended(shell, web, instance)
    rows = shell.json("sql", "SELECT (SELECT count(*) FROM pawl_step), (SELECT count(*) FROM pawl_timer), (SELECT count(*) FROM pawl_wait)")
    assert rows["rows"] == [[1, 0, 0]], "one step waits for a worker, and that is all: %s" % rows
    assert claim(web, "far")[0]["instance_id"] == waits
    sizes = shell.json("sql", "SELECT max(length(body)) FROM pawl_log WHERE inst IS NOT NULL")["rows"]
    assert sizes[0][0] < 400, "an entry says what changed, not how all stands: %s" % sizes


def test_b8_b31_a_failed_step_keeps_its_reason_and_statuses_are_the_declared_ones(shell):
    _, web = server(shell)
    yaml(web, "f", "steps: {a: {tool: fail, args: {error: 'a reason'}, retry: {max: 1}, done: true}}")
    got = ended(shell, web, web.create(definition="f"))
    assert (got["status"], got["error"]) == ("failed", "a reason"), got
    [step] = steps(web, got["instance_id"])
    assert (step["status"], step["error"], step["result"]) == ("failed", "a reason", None), step


def test_b22_templates_of_the_input_see_the_input_it_was_created_with(shell):
    _, web = server(shell)
    yaml(web, "t", "steps: {a: {tool: set, args: {x: 2}, next: b}, b: {tool: set, args: {x: '{{input.x}}'}, done: true}}")
    assert ended(shell, web, web.create(definition="t", input={"x": 1}))["result"] == {"x": 1}


def test_b24_b36_answers_that_come_together_are_handled_one_after_the_other(shell):
    _, web = server(shell)
    names = ["w%d" % i for i in range(20)]
    flow = {"s": {"tool": "log", "args": {"message": 1}, "parallel": names}, "end": {"tool": "log", "args": {"message": 2}, "done": True}}
    flow.update({name: {"tool": "far", "join": "end"} for name in names})
    web.expect(201, "PUT", "/v1/definitions/fan", {"steps": flow})
    instance = web.create(definition="fan")
    shell.wait_for(lambda: len([s for s in steps(web, instance) if s["status"] == "ready"]) == 20)
    answers = [{"step_id": s["step_id"], "lease": s["lease"], "result": 1} for s in claim(web, "far", max=20)]
    web.expect(200, "POST", "/v1/steps/complete", {"steps": answers})
    assert ended(shell, web, instance)["status"] == "completed"
    assert [s["name"] for s in steps(web, instance)].count("end") == 1


def test_b33_a_step_that_nobody_is_heard_of_for_two_minutes_has_failed_with_timeout(shell):
    _, web = server(shell, "--test")
    yaml(web, "slow", "steps: {a: {tool: far, done: true}}")
    instance = web.create(definition="slow")
    claim(web, "far")
    web.expect(200, "POST", "/v1/test/advance", {"by": "119s"})
    assert steps(web, instance)[0]["status"] == "running"
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    first, second = steps(web, instance)
    assert (first["status"], first["error"], second["status"], second["attempt"]) == ("failed", "timeout", "pending", 2)


def test_b32_b35_after_a_kill_ready_steps_are_found_and_retries_still_come(shell):
    child, web = server(shell, "--test")
    yaml(web, "r", "steps: {a: {tool: far, retry: {max: 2, backoff: [30s]}, done: true}}")
    waiting, ready = web.create(definition="r"), web.create(definition="r")
    [step] = [s for s in claim(web, "far", max=1)]
    body = {"lease": step["lease"], "error": "no"}
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], body)
    assert step["instance_id"] == waiting
    kill(child)
    _, web = server(shell, "--test")
    [found] = claim(web, "far", max=9)
    assert found["instance_id"] == ready and found["attempt"] == 1
    web.expect(200, "POST", "/v1/test/advance", {"by": "30s"})
    [again] = claim(web, "far", max=9)
    assert again["instance_id"] == waiting and again["attempt"] == 2


def test_b44_an_instance_is_read_with_its_steps_in_creation_order(shell):
    _, web = server(shell)
    yaml(web, "two", "steps: {a: {tool: set, args: {}, next: b}, b: {tool: set, args: {}, done: true}}")
    instance = web.create(definition="two")
    ended(shell, web, instance)
    assert [s["name"] for s in steps(web, instance)] == ["a", "b"]
    assert len(web.get("/v1/instances?limit=1").json["instances"]) == 1


LOG = "{action: log, payload: {message: %s}}"
TREE = "dopar:\n  - %s\n  - do: [%s, %s]\n  - try: [%s]\n    rescue: [%s]\n    finally: [%s]\n" % tuple(LOG % c for c in "abcdef")


def test_c1_c7_c23_c30_the_example_tree_runs_and_logs_what_it_should(shell):
    _, web = server(shell)
    yaml(web, "tree", TREE)
    as_json = {"dopar": [{"action": "log", "payload": {"message": "a"}}]}
    assert web.expect(201, "PUT", "/v1/definitions/json", json.dumps(as_json)).json["kind"] == "flow"  # both forms
    got = ended(shell, web, web.create(definition="tree"))
    assert got["status"] == "completed"
    assert sorted(s["result"] for s in steps(web, got["instance_id"])) == ["a", "b", "c", "d", "f"], "no rescue: e is not run"


def test_c2_a_payload_is_any_json_and_reaches_the_worker_as_it_is(shell):
    _, web = server(shell)
    for payload in (5, "five", [1, {"a": None}], None, True):
        web.expect(201, "PUT", "/v1/definitions/any", {"do": [{"action": "far", "payload": payload}]})
        web.create(definition="any")
        assert claim(web, "far")[0]["args"] == payload, payload
    web.expect(201, "PUT", "/v1/definitions/any", {"do": [{"action": "set", "payload": "{{input}}", "augment": {"got": "identity"}}]})
    got = ended(shell, web, web.create(definition="any", input=[1, 2]))
    assert got["result"] == {"got": [1, 2]}, got


def test_c28_what_a_leaf_came_to_is_kept_with_its_times(shell):
    _, web = server(shell)
    yaml(web, "one", "do: [{action: set, payload: {a: 1.50}}]")
    got = ended(shell, web, web.create(definition="one"))
    [step] = steps(web, got["instance_id"])
    assert step["result"] == {"a": 1.5} and step["started_at"] <= step["completed_at"], step


def test_c29_c35_an_action_that_fails_leaves_the_worker_alive(shell):
    _, web = server(shell)
    yaml(web, "bad", "do: [{action: fail, payload: {error: {code: 7}}}]")
    yaml(web, "good", "do: [{action: set, payload: {}}]")
    assert ended(shell, web, web.create(definition="bad"))["error"] == {"code": 7}
    assert ended(shell, web, web.create(definition="good"))["status"] == "completed"


def test_c31_c33_submitting_and_working_are_apart_and_nothing_is_done_twice(shell):
    shell.pawl("define", shell.write("f.yaml", "name: f\ndo: [{action: set, payload: {}}]"))
    instance = shell.pawl("start", "f").out.strip()  # nobody owns the store: it is recorded, and waits
    assert shell.json("show", instance)["current_state"] == "running"
    _, web = server(shell)
    assert ended(shell, web, instance)["status"] == "completed"
    assert actions(web, instance) == ["start", "step.start", "step.complete", "finish"]


def test_c34_a_hundred_leaves_are_each_handed_out_once(shell):
    _, web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/wide", {"dopar": [{"action": "far", "payload": {"n": n}} for n in range(100)]})
    instance = web.create(definition="wide")
    seen = [s["args"]["n"] for _ in range(10) for s in claim(web, "far", max=15)]
    assert sorted(seen) == list(range(100))
    assert len(steps(web, instance)) == 100


def test_c37_an_abort_is_a_cancel_with_a_reason_and_unstarted_leaves_stay_untouched(shell):
    _, web = server(shell)
    yaml(web, "two", "do: [{action: far, payload: {}}, {action: far, payload: {}}]")
    instance = web.create(definition="two")
    [step] = claim(web, "far")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % instance, {"reason": "aborted"})
    assert [s["status"] for s in steps(web, instance)] == ["cancelled"]
    web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})


def test_c39_what_was_under_way_at_a_crash_is_failed_or_tried_again_and_siblings_are_not_lost(shell):
    child, web = server(shell, "--allow-exec")
    exec_ = "{action: exec, payload: {argv: [sleep, '600']}%s}"
    yaml(web, "crash", "dopar:\n  - %s\n  - do: [{action: far, payload: {}}]\n" % (exec_ % ""))
    instance = web.create(definition="crash")
    shell.wait_for(lambda: any(s["status"] == "running" for s in steps(web, instance)))
    kill(child)
    _, web = server(shell, "--allow-exec")
    shell.wait_for(lambda: any(s["error"] == "lost" for s in steps(web, instance)))
    complete(web, claim(web, "far")[0], 1)
    assert ended(shell, web, instance)["status"] == "failed"


# ---- The ten defects of seed 001 (RELIABILITY.md), each as what holds here instead ----


def test_b5_defect_1_a_thousand_steps_of_one_instant_have_a_thousand_ids_in_order(shell):
    _, web = server(shell, "--test")
    web.expect(201, "PUT", "/v1/definitions/wide", {"dopar": [{"action": "far", "payload": {}}] * 1000})
    found = steps(web, web.create(definition="wide"))
    assert len({s["step_id"] for s in found}) == 1000 and len({s["ready_at"] for s in found}) == 1
    ids = [web.create(definition="wide") for _ in range(3)]
    assert ids == sorted(set(ids)), "what was created later sorts later"
    rows = [row[0] for row in shell.json("sql", "SELECT id FROM workflow_steps WHERE workflow_id = 1 ORDER BY id LIMIT 1000")["rows"]]
    assert len(set(rows)) == 1000, "seed 001's own ids do not collide either"


def test_defects_2_and_3_what_was_answered_is_durable_together_with_what_follows(shell):
    child, web = server(shell)
    yaml(web, "two", "steps: {a: {tool: far, next: b}, b: {tool: near, done: true}}")
    for _ in range(5):  # killed right behind the answer
        instance = web.create(definition="two")
        complete(web, claim(web, "far")[0], 1)
        kill(child)
        child, web = server(shell)
        assert [(s["name"], s["status"]) for s in steps(web, instance)] == [("a", "done"), ("b", "ready")]
    assert web.post("/v1/verify").json["valid"]


def test_defects_4_and_5_a_late_answer_and_a_second_claim_change_nothing(shell):
    _, web = server(shell, "--test")
    yaml(web, "two", "steps: {a: {tool: far, retry: {max: 2, backoff: [1s]}, next: b}, b: {tool: near, done: true}}")
    instance = web.create(definition="two")
    [first] = claim(web, "far", max=5)
    assert claim(web, "far", max=5) == []
    web.expect(200, "POST", "/v1/test/advance", {"by": "121s"})
    [second] = claim(web, "far", max=5)
    web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % first["step_id"], {"lease": first["lease"], "result": 1})
    complete(web, second, 2)
    web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % first["step_id"], {"lease": first["lease"], "result": 1})
    assert [s["name"] for s in steps(web, instance)] == ["a", "a", "b"]


def test_defect_6_a_retry_that_waits_survives_a_kill(shell):
    child, web = server(shell, "--test")
    yaml(web, "r", "steps: {a: {tool: far, retry: {max: 2, backoff: [1h]}, done: true}}")
    instance = web.create(definition="r")
    [step] = claim(web, "far")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": 1})
    kill(child)
    _, web = server(shell, "--test")
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    assert claim(web, "far")[0]["instance_id"] == instance


def test_defect_7_a_join_with_retries_and_late_siblings_happens_once(shell):
    _, web = server(shell, "--test")
    yaml(web, "j", "steps: {s: {tool: go, parallel: [a, b]}, a: {tool: far, retry: {max: 2, backoff: [1s]}, join: e}, "
                   "b: {tool: far, join: e}, e: {tool: end, done: true}}")
    instance = web.create(definition="j")
    complete(web, claim(web, "go")[0], 1)
    a, b = sorted(claim(web, "far", max=2), key=lambda s: s["name"])
    web.expect(200, "POST", "/v1/steps/%s/fail" % a["step_id"], {"lease": a["lease"], "error": 1})
    complete(web, b, 1)
    assert claim(web, "end") == [], "a will be tried again"
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    complete(web, claim(web, "far")[0], 1)
    assert [s["name"] for s in steps(web, instance)].count("e") == 1 and len(claim(web, "end")) == 1


def test_defect_8_nothing_is_appended_after_the_end(shell):
    _, web = server(shell)
    yaml(web, "p", "steps: {s: {tool: go, parallel: [a, b]}, a: {tool: bad, retry: {max: 1}, done: true}, b: {tool: far, done: true}}")
    instance = web.create(definition="p")
    complete(web, claim(web, "go")[0], 1)
    [late], [bad] = claim(web, "far"), claim(web, "bad")
    web.expect(200, "POST", "/v1/steps/%s/fail" % bad["step_id"], {"lease": bad["lease"], "error": 1})
    before = web.get("/v1/instances/%s/history" % instance).body
    web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % late["step_id"], {"lease": late["lease"], "result": 1})
    assert web.get("/v1/instances/%s/history" % instance).body == before and state(web, instance)[0] == "failed"


def test_defect_9_a_new_version_does_not_reach_what_is_under_way(shell):
    _, web = server(shell)
    yaml(web, "v", "steps: {a: {tool: far, next: b}, b: {tool: old, done: true}}")
    instance = web.create(definition="v")
    yaml(web, "v", "steps: {a: {tool: far, next: b}, b: {tool: new, done: true}}")
    complete(web, claim(web, "far")[0], 1)
    assert claim(web, "new") == [] and claim(web, "old")[0]["instance_id"] == instance


def test_defect_10_a_step_has_its_own_time_and_a_jump_of_the_clock_fails_only_what_is_over(shell):
    _, web = server(shell, "--test")
    yaml(web, "slow", "steps: {a: {tool: far, timeout: 3h, done: true}}")
    yaml(web, "quick", "steps: {a: {tool: near, timeout: 5s, done: true}}")
    slow, quick = web.create(definition="slow"), web.create(definition="quick")
    claim(web, "far", lease="4h"), claim(web, "near", lease="4h")
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    assert steps(web, slow)[0]["status"] == "running" and steps(web, quick)[0]["error"] == "timeout"


if __name__ == "__main__":
    harness.main(globals())
