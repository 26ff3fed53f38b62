"""instance.view: what the other reads say of an instance, in one answer, bounded for any size."""
import os

from run_flows import claim, complete, server, yaml
from web import harness

WHEEL = """states: [a, end]
initial_state: a
terminal_states: [end]
terminal_kinds: {end: success}
transitions: [{from_state: a, action: turn, to_state: a}, {from_state: a, action: stop, to_state: end}]
"""
MIXED = """steps:
  start: {name: one, tool: set, args: {x: 1}, next: two}
  two: {tool: far, retry: {max: 3, backoff: [1h]}, next: ask}
  ask: {approval: {by: [ann, bob], count: 2}, timeout: 7d, next: kid}
  kid: {spawn: {definition: kid}, next: end}
  end: {tool: set, args: {y: "{{steps.two.result}}"}, done: true}
"""
ROUND = """steps:
  start: {name: turn, tool: set, args: {n: 1}, next: rest}
  rest: {tool: sleep, args: {for: 1s}, next: start}
"""


def view(web, instance, query=""):
    return web.expect(200, "GET", "/v1/instances/%s/view%s" % (instance, query)).json


def part(web, instance, path, member=None):
    got = web.expect(200, "GET", "/v1/instances/%s%s" % (instance, path)).json
    return got[member] if member else got


def compare(web, instance):
    """Each part is what its own operation answers, once nothing more happens."""
    if web.get("/v1/info").json["test_clock"]:
        web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    got = view(web, instance, "?entries=1000&steps=1000")
    assert got["instance"] == part(web, instance, ""), (got["instance"], part(web, instance, ""))
    assert got["waiting_for"] == part(web, instance, "/why", "waiting_for"), got["waiting_for"]
    assert got["entries"] == part(web, instance, "/history", "entries")
    assert (got["entries_before"], got["waiting_more"]) == (0, 0), got
    if got["instance"]["kind"] != "machine":
        assert got["steps"] == [{**s, "args": None} for s in part(web, instance, "/steps", "steps")], got["steps"]
        assert got["variables"] == part(web, instance, "/variables", "variables")
        assert got["steps_before"] == 0
    if got["instance"]["kind"] == "flow":
        assert got["graph"] == part(web, instance, "/graph?format=json")
    return got


def test_steps_that_were_all_made_before_the_entries_that_are_read_are_no_damage(shell):
    _, web = server(shell)
    yaml(web, "wide", "dopar:\n" + "".join("  - {name: s%d, tool: set, args: {n: %d}}\n" % (n, n) for n in range(600)))
    wide = web.create(definition="wide")
    shell.wait_for(lambda: web.get("/v1/instances/" + wide).json["status"] == "completed")
    got = view(web, wide)
    assert got["entries_before"] > 1000 and got["steps_before"] + len(got["steps"]) == 600, (got["entries_before"], got["steps_before"])


def test_a_view_says_what_the_other_reads_say_at_every_step_of_a_flow(shell):
    _, web = server(shell, "--test")
    yaml(web, "kid", "steps: {a: {tool: far, done: true}}")
    yaml(web, "mixed", MIXED)
    flow = web.create(definition="mixed", subject_ref="s", correlation_id="c", labels={"k": "v"}, actor_ref="eve", input={"i": 1}, instance_metadata=[1])
    compare(web, flow)
    [step] = claim(web, "far")
    compare(web, flow)
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": {"why": "rain"}})
    compare(web, flow)
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    complete(web, claim(web, "far")[0], "done")
    compare(web, flow)
    web.expect(200, "POST", "/v1/instances/%s/pause" % flow, {"actor_ref": "op", "reason": "look"})
    compare(web, flow)
    web.expect(200, "POST", "/v1/instances/%s/resume" % flow)
    gate = part(web, flow, "/why", "waiting_for")[0]["step_id"]
    for name in ("bob", "bob", "ann"):
        web.expect(200, "POST", "/v1/steps/%s/approve" % gate, {"actor_ref": name})
        compare(web, flow)
    got = compare(web, flow)
    [child] = got["children"]
    assert child["awaited"] and child["step"] == "kid" and (got["children_more"], got["children_awaited"]) == (0, 1), got
    assert compare(web, child["instance_id"])["instance"]["parent_id"] == flow
    complete(web, claim(web, "far")[0], 1)
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    got = compare(web, flow)
    assert got["instance"]["status"] == "completed" and not got["children"][0]["awaited"] and got["children_awaited"] == 0, got


def test_a_view_of_what_was_amended_redriven_or_is_code_says_what_the_other_reads_say(shell):
    shell.pawl("init")
    code = shell.json("start", "countdown", "--input", '{"from":3,"every":"1h"}')["instance_id"]
    _, web = server(shell, "--test")
    compare(web, code)
    yaml(web, "f", "steps: {one: {tool: set, args: {x: 1}, next: two}, two: {tool: far, retry: {max: 1}, done: true}}")
    flow = web.create(definition="f")
    yaml(web, "f", "steps: {one: {tool: set, args: {x: 1}, next: two}, two: {tool: near, retry: {max: 1}, next: three}, three: {tool: set, args: {}, done: true}}")
    web.expect(200, "POST", "/v1/instances/%s/amend" % flow, {"definition": "f"})
    compare(web, flow)
    [step] = claim(web, "near")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "rain"})
    again = web.expect(201, "POST", "/v1/instances/%s/redrive" % flow).json["instance_id"]
    assert compare(web, flow)["instance"]["retried_as"] == again
    got = compare(web, again)
    assert got["instance"]["retry_of"] == flow and got["reused"] == part(web, again, "/steps", "reused"), got


def test_a_view_of_a_machine_has_its_last_entries(shell):
    _, web = server(shell)
    yaml(web, "wheel", WHEEL)
    machine = web.create(definition="wheel")
    for _ in range(30):
        web.expect(200, "POST", "/v1/instances/%s/fire" % machine, {"action": "turn"})
    compare(web, machine)
    got = view(web, machine)
    assert [e["sequence_number"] for e in got["entries"]] == list(range(11, 31)) and got["entries_before"] == 10, got
    assert "steps" not in got and "graph" not in got
    assert view(web, machine, "?entries=0")["entries"] == []


def test_a_view_refuses_what_it_cannot_show(shell):
    _, web = server(shell)
    yaml(web, "wheel", WHEEL)
    machine = web.create(definition="wheel")
    for query in ("entries=1001", "steps=-1", "children=x", "entries="):
        web.refused("invalid-request", "GET", "/v1/instances/%s/view?%s" % (machine, query))
    web.refused("not-known", "GET", "/v1/instances/%s/view" % ("0" * 26))


def test_a_view_of_a_long_history_reads_its_newest_part_and_counts_the_rest(shell):
    _, web = server(shell, "--test")
    yaml(web, "round", ROUND)
    turns = 20000 if os.environ.get("PAWL_TEST_LONG") else 700
    flow = web.create(definition="round")
    web.expect(200, "POST", "/v1/test/advance", {"by": "%ds" % turns})
    got = view(web, flow, "?entries=1000&steps=1000&children=1000")
    last = got["instance"]["next_sequence_number"] - 1
    assert got["entries_before"] + len(got["entries"]) == last > 1024, got["entries_before"]
    ordinals = [int(s["step_id"].rsplit(".", 1)[1]) for s in got["steps"]]
    assert ordinals == list(range(ordinals[0], ordinals[-1] + 1)) and got["steps_before"] == ordinals[0] - 1 > 0, got["steps_before"]
    every = {s["step_id"]: s for s in part(web, flow, "/steps?without_args=true&limit=1000&after=%s.%d" % (flow, ordinals[0] - 1), "steps")}
    assert all(every[s["step_id"]] == s for s in got["steps"])
    assert {n["name"]: n["mark"] for n in got["graph"]["nodes"] if n["name"] in ("turn", "rest")} == {"turn": "done", "rest": "present"}, got["graph"]["nodes"]


def test_a_view_of_very_many_children_is_bounded_and_counts_them(shell):
    _, web = server(shell)
    width = 2500 if os.environ.get("PAWL_TEST_LONG") else 300
    yaml(web, "kid", "steps: {a: {tool: far, done: true}}")
    web.expect(201, "PUT", "/v1/definitions/wide", {"dopar": [{"name": "k%d" % i, "spawn": {"definition": "kid"}} for i in range(width)]})
    flow = web.create(definition="wide")
    got = view(web, flow)
    assert len(got["children"]) == 20 and got["children_awaited"] == width, got["children_awaited"]
    assert got["children_more"] == width - 20, got["children_more"]
    assert len(got["waiting_for"]) == 100 and got["waiting_more"] == width - 100
    assert len(got["steps"]) == 100 and got["steps_before"] == width - 100
    assert all(w["instance_id"] for w in got["waiting_for"]) and len(view(web, flow, "?children=1000")["children"]) == min(width, 1000)


harness.main(globals())
