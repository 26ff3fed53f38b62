"""Children, broadcasts and kept signals over HTTP (E9, E14, E15, E16, E26, X13; DESIGN section 5)."""
import os
import signal

from run_flows import actions, claim, complete, server, state, steps, yaml
from web import harness

ORDER = """states: [new, paid, lost, dropped]
initial_state: new
terminal_states: [paid, lost, dropped]
terminal_kinds: {paid: success, lost: failure, dropped: cancel}
transitions:
  - {from_state: new, action: pay, to_state: paid}
  - {from_state: new, action: lose, to_state: lost}
  - {from_state: new, action: drop, to_state: dropped}
"""
STUCK = """states: [new, paid]
initial_state: new
terminal_states: [paid]
terminal_kinds: {paid: success}
transitions: [{from_state: new, action: pay, to_state: paid}]
"""
PARENT = """steps:
  start: {name: child, spawn: {definition: %s, input: {n: "{{input.n}}"}%s}, next: after}
  after: {tool: set, args: {got: "{{steps.child.result}}"}, done: true}
"""


def settle(web):
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})


def fire(web, instance, action):
    web.expect(200, "POST", "/v1/instances/%s/fire" % instance, {"action": action})


def children(web, instance):
    found = web.get("/v1/instances?order=oldest&limit=1000").json["instances"]
    return [i["instance_id"] for i in found if i["parent_id"] == instance]


def family(web, child_text, more="", **members):
    yaml(web, "kid", child_text)
    yaml(web, "parent", PARENT % ("kid", more))
    parent = web.create(definition="parent", input={"n": 7}, **members)
    [child] = children(web, parent)
    return parent, child


def test_a_child_is_created_with_its_parents_entry_and_its_result_is_the_steps(shell):  # E9
    _, web = server(shell, "--test")
    parent, child = family(web, "steps: {a: {tool: far, args: {m: '{{input.n}}'}, done: true}}",
                           actor_ref="ann", correlation_id="c-1")
    got = web.get("/v1/instances/" + child).json
    assert (got["parent_id"], got["created_by"], got["correlation_id"]) == (parent, "ann", "c-1"), got
    assert got["input"] == {"n": 7} and got["status"] == "running", got
    assert state(web, parent) == ("running", "suspended")
    [why] = web.get("/v1/instances/%s/why" % parent).json["waiting_for"]
    assert (why["kind"], why["name"], why["instance_id"]) == ("child", "child", child), why
    [step] = claim(web, "far")
    assert step["args"] == {"m": 7} and step["instance_id"] == child
    complete(web, step, {"sum": 42})
    settle(web)
    assert web.get("/v1/instances/" + parent).json["result"] == {"got": {"sum": 42}}
    assert actions(web, parent) == ["start", "child", "step.start", "step.complete", "finish"]
    assert [(s["name"], s["status"], s["result"]) for s in steps(web, parent)][0] == ("child", "done", {"sum": 42})
    assert web.post("/v1/verify").json["valid"]


def test_a_child_may_be_a_machine_and_its_kinds_reach_the_parent(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", ORDER)
    yaml(web, "parent", PARENT % ("kid", ""))
    for action, error in (("pay", None), ("lose", "child-failed"), ("drop", "child-cancelled")):
        parent = web.create(definition="parent", input={"n": 1})
        [child] = children(web, parent)
        web.expect(200, "POST", "/v1/instances/%s/fire" % child, {"action": action, **({"reason": "nobody asked"} if action == "drop" else {})})
        settle(web)
        got = web.get("/v1/instances/" + parent).json
        assert got["error"] == error and got["status"] == ("completed" if not error else "failed"), got
        if error:
            assert actions(web, parent) == ["start", "child", "step.fail", "fail"], actions(web, parent)
            [entry] = web.get("/v1/instances/%s/history?action=child" % parent).json["entries"]
            end = {"lose": "'lost' (failure) by 'lose'", "drop": "'dropped' (cancel) by 'drop': nobody asked"}[action]
            assert entry["reason"] == "the child ended in " + end, entry
            assert steps(web, parent)[0]["error"] == error and steps(web, parent)[0]["status"] == "failed"
    found = web.post("/v1/verify").json
    assert found["valid"], found


def test_a_tree_rescues_a_failed_child_and_sees_what_it_said(shell):  # E26
    _, web = server(shell, "--test")
    yaml(web, "kid", "steps: {a: {tool: fail, args: {error: {code: 3}}, retry: {max: 1}, done: true}}")
    yaml(web, "parent", """try: [{name: c, spawn: {definition: kid}}]
rescue: [{name: r, tool: set, args: {why: "{{context.exec/last-error}}"}, augment: {said: why}}]
output: {said: "{{context.said}}"}
""")
    parent = web.create(definition="parent")
    settle(web)
    cause = {"reason": "child-failed", "error": {"code": 3}}
    assert web.get("/v1/instances/" + parent).json["result"] == {"said": cause}
    yaml(web, "middle", "steps: {c: {spawn: {definition: kid}, done: true}}")
    yaml(web, "top", "steps: {c: {spawn: {definition: middle}, done: true}}")
    top = web.create(definition="top")
    settle(web)
    assert web.get("/v1/instances/" + top).json["error"] == cause, "a grandchild's is passed on as it is"
    entries = web.get("/v1/instances/%s/history?action=child" % parent).json["entries"]
    assert [e["payload"] for e in entries] == [{"status": "failed", "error": {"code": 3}}], entries
    assert web.post("/v1/verify").json["valid"]


def test_any_end_of_the_parent_cancels_its_children_and_theirs_in_that_commit(shell):  # E26
    _, web = server(shell, "--test")
    yaml(web, "leaf", "steps: {a: {wait: {signal: never}, done: true}}")
    yaml(web, "middle", "steps: {a: {spawn: {definition: leaf}, done: true}}")
    yaml(web, "top", """dopar:
  - {spawn: {definition: middle}}
  - {spawn: {definition: leaf}}
""")
    top = web.create(definition="top")
    below = children(web, top) + [c for m in children(web, top) for c in children(web, m)]
    assert len(below) == 3, below
    before = web.post("/v1/verify").json["records"]
    web.expect(200, "POST", "/v1/instances/%s/cancel" % top, {"actor_ref": "ann"})
    for child in below:
        assert state(web, child) == ("cancelled", "cancelled"), child
        last = web.get("/v1/instances/%s/history" % child).json["entries"][-1]
        assert (last["action"], last["actor_ref"]) == ("cancel", "pawl/parent"), last
    assert web.post("/v1/verify").json["records"] == before + 4


def test_an_abandoned_child_outlives_its_parent_and_so_does_one_without_a_cancel(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", ORDER)
    yaml(web, "stuck", STUCK)
    yaml(web, "parent", """dopar:
  - {spawn: {definition: kid, on_parent_end: abandon}}
  - {spawn: {definition: stuck}}
""")
    parent = web.create(definition="parent")
    kid, stuck = children(web, parent)
    web.expect(200, "POST", "/v1/instances/%s/cancel" % parent, {})
    assert state(web, kid) == ("new", "suspended") == state(web, stuck)
    fire(web, kid, "pay")
    fire(web, stuck, "pay")
    settle(web)
    assert state(web, parent)[0] == "cancelled" and web.post("/v1/verify").json["valid"]


def test_a_step_that_times_out_takes_its_child_with_it(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", ORDER)
    yaml(web, "parent", "steps: {c: {spawn: {definition: kid}, timeout: 10s, done: true}}")
    parent = web.create(definition="parent")
    [kid] = children(web, parent)
    web.expect(200, "POST", "/v1/test/advance", {"by": "11s"})
    assert state(web, kid)[0] == "dropped"
    assert web.get("/v1/instances/" + parent).json["error"] == "timeout"
    assert web.post("/v1/verify").json["valid"]


def test_a_child_that_cannot_be_created_fails_the_step_at_once(shell):
    _, web = server(shell, "--test")
    yaml(web, "parent", "steps: {c: {spawn: {definition: '{{input.which}}'}, done: true}}")
    for which in ("nobody", "parent@9", "", 7):
        parent = web.create(definition="parent", input={"which": which})
        got = web.get("/v1/instances/" + parent).json
        assert got["status"] == "failed", (which, got)
    assert web.post("/v1/verify").json["valid"]


def test_flows_that_spawn_themselves_for_ever_come_to_an_end(shell):
    _, web = server(shell, "--test")
    yaml(web, "hydra", """dopar:
  - {spawn: {definition: hydra}}
  - {spawn: {definition: hydra}}
""")
    hydra = web.create(definition="hydra")
    settle(web)
    assert state(web, hydra)[0] == "failed"
    assert web.post("/v1/verify").json["valid"]


def test_a_thousand_children_in_one_flow_are_all_awaited(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", "steps: {a: {tool: set, args: {n: '{{input.n}}'}, done: true}}")
    yaml(web, "wide", "dopar:\n" + "".join("  - {spawn: {definition: kid, input: {n: %d}}}\n" % n for n in range(1000)))
    wide = web.create(definition="wide")
    settle(web)
    assert state(web, wide)[0] == "completed"
    assert actions(web, wide).count("child") == 1000
    assert web.post("/v1/verify").json["valid"]


def test_an_end_that_the_parent_had_not_heard_of_is_told_after_a_death(shell):
    child, web = server(shell, "--test")
    parent, kid = family(web, ORDER)
    web.expect(200, "POST", "/v1/instances/%s/pause" % parent, {})
    fire(web, kid, "pay")
    settle(web)
    assert state(web, parent)[1] == "paused", "a paused parent hears nothing"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    _, web = server(shell, "--test")
    settle(web)
    assert state(web, parent)[1] == "paused"
    web.expect(200, "POST", "/v1/instances/%s/resume" % parent, {})
    settle(web)
    assert state(web, parent)[0] == "completed"
    assert web.post("/v1/verify").json["valid"]


def example(web, name):
    path = os.path.join(os.environ["PAWL_ROOT"], "examples", name + ".yaml")
    with open(path, encoding="utf-8") as file:
        yaml(web, name, file.read())


def test_the_examples_of_children_and_of_seed_001_run_as_they_say(shell):  # B43
    _, web = server(shell, "--test")
    for name in ("booking", "trip", "research", "check-admin"):
        example(web, name)
    for confirmed, context in ((2, {"booked": "Turin"}), (1, {"exec/last-error": "child-failed", "sorry": "child-failed"})):
        trip = web.create(definition="trip", input={"to": "Turin"})
        for number, booking in enumerate(children(web, trip)):
            fire(web, booking, "confirm" if number < confirmed else "refuse")
        settle(web)
        assert web.get("/v1/instances/" + trip).json["result"] == context
    trip = web.create(definition="trip", input={"to": "Turin"})
    web.expect(200, "POST", "/v1/instances/%s/cancel" % trip, {})
    assert [state(web, b)[0] for b in children(web, trip)] == ["withdrawn"] * 2
    research = web.create(definition="research", input={"topic": "pawls", "doc_id": 7})
    for tool, args, result in (("knowledge_search", {"query": "pawls"}, [7]), ("knowledge_get", {"id": 7}, "a text"),
                               ("pushover_send", {"text": "a text"}, None)):
        [step] = claim(web, tool)
        assert step["args"] == args, step
        complete(web, step, result)
    assert state(web, research)[0] == "completed"
    for is_admin, greeting in ((True, "welcome back, ann"), (False, "hello, ann")):
        user = web.create(definition="check-admin", input={"user": "ann"})
        [step] = claim(web, "is_admin")
        complete(web, step, is_admin)
        settle(web)
        assert web.get("/v1/instances/" + user).json["result"] == {"greeting": greeting}


WAITER = "steps: {w: {wait: {signal: go%s}, done: true}}"


def test_a_broadcast_reaches_each_instance_that_awaits_it_once(shell):  # E14, E15
    _, web = server(shell, "--test")
    yaml(web, "plain", WAITER % "")
    yaml(web, "zone", WAITER % ", value: '{{input.zone}}'")
    yaml(web, "twice", "dopar: [{wait: {signal: go}}, {wait: {signal: go}}]")
    plain, twice = web.create(definition="plain"), web.create(definition="twice")
    north = web.create(definition="zone", input={"zone": "north"})
    south = web.create(definition="zone", input={"zone": {"s": [1, 2]}})
    paused = web.create(definition="plain")
    web.expect(200, "POST", "/v1/instances/%s/pause" % paused, {})

    def broadcast(**body):
        return web.expect(202, "POST", "/v1/signals", {"name": "go", **body}).json

    assert broadcast(filter="east") == {"delivered": 0}
    assert broadcast(filter="north", payload=5) == {"delivered": 1}
    assert web.get("/v1/instances/" + north).json["result"] == 5
    assert broadcast(filter={"s": [1, 2]}) == {"delivered": 1}
    assert state(web, south)[0] == "completed" and state(web, plain)[0] == "running"
    assert broadcast() == {"delivered": 2}, "plain, and one wait of twice"
    assert state(web, plain)[0] == "completed" and state(web, twice)[0] == "running"
    assert broadcast(filter=None) == {"delivered": 1}
    assert state(web, twice)[0] == "completed" and state(web, paused)[1] == "paused"
    assert broadcast() == {"delivered": 0}
    web.refused("invalid-request", "POST", "/v1/signals", {})
    web.refused("invalid-request", "POST", "/v1/signals", {"name": " "})
    web.refused("invalid-request", "POST", "/v1/signals", {"name": "go", "to": 1})
    assert web.post("/v1/verify").json["valid"]


KEEPER = """signals: {item: {buffer: true}}
steps:
  start: {wait: {signal: go}, next: a}
  a: {wait: {signal: item}, next: b}
  b: {wait: {signal: item}, next: end}
  end: {tool: set, args: {got: ["{{steps.a.result}}", "{{steps.b.result}}"]}, done: true}
"""


def test_a_kept_signal_is_consumed_once_and_in_order(shell):  # E16
    child, web = server(shell, "--test")
    yaml(web, "keeper", KEEPER)
    one = web.create(definition="keeper")

    def send(name, status=202, **body):
        return web.expect(status, "POST", "/v1/instances/%s/signals" % one, {"name": name, **body})

    web.refused("not-awaiting", "POST", "/v1/instances/%s/signals" % one, {"name": "other"})
    for n in (1, 2, 3):
        assert send("item", payload=n).json == {"delivered": 0, "kept": 1}
    assert actions(web, one) == ["start"], "a kept signal is no entry"
    assert web.post("/v1/verify").json["valid"]
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    _, web = server(shell, "--test")
    web.expect(202, "POST", "/v1/instances/%s/signals" % one, {"name": "go"})
    settle(web)
    assert web.get("/v1/instances/" + one).json["result"] == {"got": [1, 2]}
    assert actions(web, one).count("signal") == 3
    assert web.post("/v1/verify").json["valid"]


def test_a_broadcast_is_kept_by_those_that_keep_its_signal(shell):  # E14, E15, E16
    child, web = server(shell, "--test")
    yaml(web, "keeper", KEEPER)
    yaml(web, "deaf", "steps: {start: {wait: {signal: go}, next: a}, a: {wait: {signal: item}, done: true}}")
    ended, one, paused, waiting = (web.create(definition="keeper") for _ in range(4))
    deaf = web.create(definition="deaf")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % ended, {})
    web.expect(202, "POST", "/v1/instances/%s/signals" % waiting, {"name": "go"})
    web.expect(200, "POST", "/v1/instances/%s/pause" % paused, {})
    assert web.get("/v1/instances/%s/why" % one).json["waiting_for"] == [{"kind": "signal", "name": "go"}]

    def broadcast(key=None, **body):
        headers = {"Idempotency-Key": key} if key else {}
        return web.expect(202, "POST", "/v1/signals", {"name": "item", **body}, headers).json

    assert broadcast("k1", payload=1) == {"delivered": 1, "kept": 2}, "waiting takes it; deaf and ended do not"
    assert broadcast("k1", payload=1) == {"delivered": 1, "kept": 2}, "the repeat is answered, and nothing is kept twice"
    assert actions(web, one) == ["start"] == actions(web, deaf)
    assert broadcast(filter="north") == {"delivered": 0}, "no wait of theirs has this value"
    said = shell.pawl("--store", "http://" + web.host, "broadcast", "item", "--payload", "2").out
    assert said == "delivered to 1\nkept by 2 until it is awaited\n", said
    settle(web)
    assert web.get("/v1/instances/" + waiting).json["result"] == {"got": [1, 2]}
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    _, web = server(shell, "--test")
    web.expect(200, "POST", "/v1/instances/%s/resume" % paused, {})
    assert web.expect(202, "POST", "/v1/signals", {"name": "go"}).json == {"delivered": 3}
    settle(web)
    for instance in (one, paused):
        assert web.get("/v1/instances/" + instance).json["result"] == {"got": [1, 2]}
    assert web.get("/v1/instances/%s/why" % deaf).json["waiting_for"] == [{"kind": "signal", "name": "item"}]
    assert web.expect(202, "POST", "/v1/signals", {"name": "item"}).json == {"delivered": 1}
    assert web.post("/v1/verify").json["valid"]


CHOOSY = """signals: {item: {buffer: true}}
steps:
  start: {wait: {signal: go}, next: a}
  a: {wait: {signal: item, value: "{{input.zone}}"}, next: b}
  b: {wait: {signal: item, value: {all: [1, 2]}}, next: c}
  c: {select: [{timer: 1s, then: end}, {signal: item, value: "{{steps.a.result}}", then: end}]}
  end: {tool: set, args: {got: ["{{steps.a.result}}", "{{steps.b.result}}"]}, done: true}
"""


def test_a_broadcast_with_a_filter_is_kept_for_the_wait_that_will_have_its_value(shell):  # E14
    child, web = server(shell, "--test")
    yaml(web, "choosy", CHOOSY)
    north, south = (web.create(definition="choosy", input={"zone": zone}) for zone in ("north", "south"))

    def broadcast(**body):
        return web.expect(202, "POST", "/v1/signals", {"name": "item", **body}).json

    assert broadcast(filter={"all": [1, 2]}, payload="all") == {"delivered": 0, "kept": 2}
    assert broadcast(filter="north", payload=1) == {"delivered": 0, "kept": 1}
    assert broadcast(filter="east", payload=2) == {"delivered": 0}
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    _, web = server(shell, "--test")
    assert web.expect(202, "POST", "/v1/signals", {"name": "go"}).json == {"delivered": 2}
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    assert web.get("/v1/instances/" + north).json["result"] == {"got": [1, "all"]}
    assert web.get("/v1/instances/%s/why" % south).json["waiting_for"][-1] == {"kind": "signal", "name": "item"}
    assert broadcast(filter="south", payload=3) == {"delivered": 1}
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    assert web.get("/v1/instances/" + south).json["result"] == {"got": [3, "all"]}
    held = web.create(definition="choosy", input={"zone": "up"})
    web.expect(202, "POST", "/v1/signals", {"name": "go"})
    assert broadcast(filter="up", payload=7) == {"delivered": 1} == broadcast(filter={"all": [1, 2]})
    web.expect(200, "POST", "/v1/instances/%s/pause" % held, {})
    assert broadcast(filter=7) == {"delivered": 0, "kept": 1}, "a paused wait has it, whatever gave the value"
    web.expect(200, "POST", "/v1/instances/%s/resume" % held, {})
    settle(web)
    assert state(web, held)[0] == "completed"
    late = web.create(definition="choosy", input={"zone": "west"})
    yaml(web, "choosy", CHOOSY.replace("{{input.zone}}", "all of {{input.zone}}"))
    web.expect(200, "POST", "/v1/instances/%s/amend" % late, {"definition": "choosy"})
    assert broadcast(filter="west") == {"delivered": 0}, "the new definition's wait has another value"
    assert broadcast(filter="all of west", payload=4) == {"delivered": 0, "kept": 1}
    assert web.post("/v1/verify").json["valid"]


def test_an_amended_flow_keeps_what_its_new_definition_keeps(shell):
    _, web = server(shell, "--test")
    yaml(web, "keeper", KEEPER)
    yaml(web, "other", KEEPER.replace("item: {buffer", "late: {buffer").replace("b: {wait: {signal: item}", "b: {wait: {signal: late}"))
    one = web.create(definition="keeper")
    assert web.expect(202, "POST", "/v1/signals", {"name": "item", "payload": 1}).json == {"delivered": 0, "kept": 1}
    web.expect(200, "POST", "/v1/instances/%s/amend" % one, {"definition": "other"})
    assert web.expect(202, "POST", "/v1/signals", {"name": "item"}).json == {"delivered": 0}, "the new one keeps no item"
    assert web.expect(202, "POST", "/v1/signals", {"name": "late", "payload": 2}).json == {"delivered": 0, "kept": 1}
    web.expect(202, "POST", "/v1/instances/%s/signals" % one, {"name": "go"})
    settle(web)
    assert web.get("/v1/instances/" + one).json["result"] == {"got": [1, 2]}
    assert web.post("/v1/verify").json["valid"]


def test_kept_signals_survive_snapshots_and_are_bounded(shell):
    _, web = server(shell, "--test")
    yaml(web, "many", """signals: {item: {buffer: true}}
steps:
  start: {wait: {signal: item}, next: work}
  work: {tool: set, args: {pad: "{{input.pad}}", n: "{{steps.start.result}}"}, next: start}
""")
    many = web.create(definition="many", input={"pad": "x" * 3000})
    path = "/v1/instances/%s/signals" % many
    for n in range(40):
        web.expect(202, "POST", path, {"name": "item", "payload": n})
    settle(web)
    assert actions(web, many).count("signal") == 40
    web.expect(200, "POST", "/v1/instances/%s/pause" % many, {})
    web.refused("paused", "POST", path, {"name": "other"})
    for n in (40, 41):
        assert web.expect(202, "POST", path, {"name": "item", "payload": n}).json == {"delivered": 0, "kept": 1}
    assert actions(web, many).count("signal") == 40, "a paused instance takes nothing"
    assert web.post("/v1/verify").json["valid"]
    web.expect(200, "POST", "/v1/instances/%s/resume" % many, {})
    settle(web)
    taken = web.get("/v1/instances/%s/history?action=signal" % many).json["entries"]
    assert [e["payload"] for e in taken[-2:]] == [40, 41] and len(taken) == 42, taken[-2:]
    assert web.post("/v1/verify").json["valid"]


def test_a_signal_with_a_key_is_kept_once(shell):
    _, web = server(shell, "--test")
    yaml(web, "keeper", KEEPER)
    one = web.create(definition="keeper")
    for _ in range(3):
        got = web.expect(202, "POST", "/v1/instances/%s/signals" % one, {"name": "item", "payload": 1},
                         {"Idempotency-Key": "k"}).json
        assert got == {"delivered": 0, "kept": 1}, "a repeated call is answered as before"
    web.expect(202, "POST", "/v1/instances/%s/signals" % one, {"name": "go"})
    settle(web)
    assert actions(web, one).count("signal") == 2, "go, and the one item"


def keeps(web, name, text, signals, result="a"):
    """An instance whose first step is a worker's; the signals come before it is done."""
    yaml(web, name, "signals: {go: {buffer: true}, ho: {buffer: true}}\n" + text)
    one = web.create(definition=name)
    for signal_name, payload in signals:
        web.expect(202, "POST", "/v1/instances/%s/signals" % one, {"name": signal_name, "payload": payload})
    [step] = claim(web, "ext")
    complete(web, step, result)
    settle(web)
    return web.get("/v1/instances/" + one).json


def test_what_takes_kept_signals_builds_on_what_came_before_in_the_same_commit(shell):  # B15, C24
    _, web = server(shell, "--test")
    got = keeps(web, "join", """steps:
  start: {name: a, tool: ext, parallel: [w1, w2]}
  w1: {wait: {signal: go}, join: j}
  w2: {wait: {signal: ho}, join: j}
  j: {tool: set, args: {n: "{{steps.w1.result}}{{steps.w2.result}}"}, done: true}
""", [("go", 1), ("ho", 2)])
    assert (got["status"], got["result"]) == ("completed", {"n": "12"}), got
    got = keeps(web, "tree", """do:
  - {name: a, action: ext, payload: {}, augment: {a: identity}}
  - dopar: [{name: w1, wait: {signal: go}, augment: {w1: identity}}, {name: w2, wait: {signal: ho}, augment: {w2: identity}}]
""", [("go", 1), ("ho", 2)])
    assert got["result"] == {"a": "a", "w1": 1, "w2": 2}, got
    got = keeps(web, "line", """output: {a: "{{steps.a.result}}", w1: "{{steps.w1.result}}", w2: "{{steps.w2.result}}"}
steps:
  start: {name: a, tool: ext, next: w1}
  w1: {wait: {signal: go}, next: w2}
  w2: {wait: {signal: go}, done: true}
""", [("go", 1), ("go", 2)])
    assert got["result"] == {"a": "a", "w1": 1, "w2": 2}, got
    assert [s["result"] for s in steps(web, got["instance_id"])] == ["a", 1, 2]
    assert web.post("/v1/verify").json["valid"]


def test_many_kept_signals_leave_a_store_that_is_valid(shell):
    _, web = server(shell, "--test")
    yaml(web, "hoard", "signals: {go: {buffer: true}}\nsteps: {start: {name: g, tool: null, done: true}}")
    one = web.create(definition="hoard")
    for n in range(90):
        web.expect(202, "POST", "/v1/instances/%s/signals" % one, {"name": "go", "payload": "x" * 60})
    assert web.post("/v1/verify").json["valid"]
    web.expect(200, "POST", "/v1/steps/%s.1/approve" % one, {})
    found = web.post("/v1/verify").json
    assert found["valid"], found


def test_what_a_paused_flow_could_not_hear_comes_before_what_fell_due(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", ORDER)
    yaml(web, "hasty", "steps: {start: {name: c, spawn: {definition: kid}, timeout: 30s, done: true}}")
    parent = web.create(definition="hasty")
    web.expect(200, "POST", "/v1/instances/%s/pause" % parent, {})
    fire(web, children(web, parent)[0], "pay")
    web.expect(200, "POST", "/v1/test/advance", {"by": "60s"})
    web.expect(200, "POST", "/v1/instances/%s/resume" % parent, {})
    settle(web)
    assert state(web, parent)[0] == "completed", web.get("/v1/instances/" + parent).json


def test_an_abandoned_child_is_there_also_if_its_parent_ends_at_once(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", ORDER)
    yaml(web, "brief", """steps:
  start: {name: a, tool: set, args: {}, parallel: [x, z, y]}
  x: {spawn: {definition: kid, on_parent_end: abandon}, join: j}
  z: {spawn: {definition: nobody, on_parent_end: abandon}, join: j}
  y: {tool: set, args: {}, done: true}
  j: {tool: set, args: {}, done: true}
""")
    parent = web.create(definition="brief")
    settle(web)
    assert state(web, parent)[0] in ("completed", "failed")
    [kid] = children(web, parent)
    assert state(web, kid) == ("new", "suspended")
    assert web.post("/v1/verify").json["valid"]


def test_cancelling_a_correlation_counts_children_that_went_with_their_parents(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", ORDER)
    yaml(web, "parent", PARENT % ("kid", ""))
    for _ in range(2):
        web.create(definition="parent", correlation_id="C")
    assert web.expect(200, "POST", "/v1/cancel", {"correlation_id": "C"}).json == {"cancelled": 4, "refused": 0}
    assert web.expect(200, "POST", "/v1/cancel", {"correlation_id": "C"}).json == {"cancelled": 0, "refused": 4}


def test_a_flow_with_more_children_than_one_commit_can_hold_is_refused_when_it_is_put(shell):
    _, web = server(shell, "--test")
    text = "dopar:\n" + "".join("  - {spawn: {definition: kid}}\n" for _ in range(2501))
    refused = web.refused("invalid-definition", "PUT", "/v1/definitions/vast", text, {"Content-Type": "application/yaml"})
    assert "more than 2500 steps that spawn" in refused.json["detail"], refused


if __name__ == "__main__":
    harness.main(globals())
