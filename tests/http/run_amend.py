"""A flow under way goes on by another definition (B42, X2; DESIGN section 5, instance.amend)."""
import signal
import subprocess
import sys

from run_flows import actions, claim, complete, server, state, steps, yaml
from web import harness

ONE = """steps:
  start: {name: search, tool: find, next: ask}
  ask: {tool: ask, next: notify}
  notify: {tool: push, args: {text: old}, done: true}
"""
# `ask` goes on to a step that was not there, which asks for a result that nobody had asked for.
TWO = """steps:
  start: {name: search, tool: find, next: ask}
  ask: {tool: ask, next: check}
  check: {tool: check, args: {seen: "{{steps.search.result.id}}"}, branch: [{if: "result > 3", then: notify}]}
  notify: {tool: push, args: {text: new}, done: true}
"""


def amend(web, instance, definition, **members):
    return web.expect(200, "POST", "/v1/instances/%s/amend" % instance, {"definition": definition, **members}).json


def begin(web):
    """An instance of ONE whose `ask` is being worked on; TWO is there as the second version."""
    yaml(web, "research", ONE)
    instance = web.create(definition="research")
    [step] = claim(web, "find")
    complete(web, step, {"id": 7})
    [asked] = claim(web, "ask")
    yaml(web, "research", TWO)
    return instance, asked


def verify_twice(shell, web):
    assert web.post("/v1/verify").json["valid"], web.post("/v1/verify").json
    tool = str(harness.ROOT / "tools" / "verify.py")
    done = subprocess.run([sys.executable, tool, str(shell.folder / "pawl.db")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_b42_x2_a_running_flow_goes_on_by_another_version_from_its_next_step(shell):
    _, web = server(shell)
    instance, asked = begin(web)
    before = web.get("/v1/instances/%s/declaration" % instance).body
    got = amend(web, instance, "research", actor_ref="ann")
    assert got == {"definition": "research", "version": 2, "sequence_number": 5}, got
    entry = web.get("/v1/instances/%s/history" % instance).json["entries"][-1]
    assert (entry["action"], entry["from_state"], entry["to_state"], entry["actor_ref"]) == \
        ("amend", "running", "running", "ann"), entry
    assert entry["payload"]["definition"] == "research" and entry["payload"]["version"] == 2, entry
    assert web.get("/v1/instances/" + instance).json["version"] == 2
    assert web.get("/v1/instances/%s/declaration" % instance).body == before, "what was supplied stays"
    complete(web, asked, "yes")  # a step that was live goes on
    [check] = claim(web, "check")
    assert check["args"] == {"seen": 7}, "the result was not kept by the first plan: %s" % check
    assert [s["name"] for s in steps(web, instance)] == ["search", "ask", "check"]
    assert web.get("/v1/instances/%s/why" % instance).json["waiting_for"][0]["name"] == "check"
    complete(web, check, 4)
    [push] = claim(web, "push")
    assert push["args"] == {"text": "new"}
    complete(web, push, "sent")
    assert state(web, instance) == ("completed", "completed")
    names = [e.get("step") for e in web.get("/v1/instances/%s/history" % instance).json["entries"]]
    told = shell.json("sql", "SELECT name FROM pawl_attempts ORDER BY step_ordinal")["rows"]
    assert told == [["search"], ["ask"], ["check"], ["notify"]], told
    assert names == [None, "search", "search", "ask", None, "ask", "check", "check", "notify", "notify", None], names
    assert web.get("/v1/instances/" + instance).json["version"] == 2
    told = shell.json("sql", "SELECT name, status FROM pawl_tree ORDER BY step_index")["rows"]
    assert told == [[name, "done"] for name in ("search", "ask", "check", "notify")], told
    verify_twice(shell, web)


def test_an_amend_finds_results_of_any_size_that_nothing_had_asked_for(shell):
    """Together they are larger than one value may be; and the second amend finds what the first one brought."""
    _, web = server(shell)
    chain = ["start: {name: a, tool: t, next: b}", "b: {tool: t, next: c}", "c: {tool: t, next: d}", "d: {tool: t, next: e}"]
    yaml(web, "big", "steps:\n  %s\n  e: {tool: t, done: true}\n" % "\n  ".join(chain))
    yaml(web, "more", "steps:\n  %s\n  e: {tool: t, args: {x: '{{steps.a.result.id}}{{steps.b.result.id}}'}, next: f}\n  f: {tool: t, next: g}\n"
         "  g: {tool: t, done: true}\n" % "\n  ".join(chain))
    yaml(web, "most", "steps:\n  %s\n  e: {tool: t, next: f}\n  f: {tool: t, next: g}\n"
         "  g: {tool: t, args: {x: '{{steps.a.result.nr}}{{steps.e.result.id}}'}, done: true}\n" % "\n  ".join(chain))
    instance = web.create(definition="big")
    for name in "abcd":
        complete(web, claim(web, "t")[0], {"id": name, "nr": name.upper(), "much": "x" * 700000})
    amend(web, instance, "more")
    entry = web.get("/v1/instances/%s/history?limit=1&after=9" % instance).json["entries"][0]
    assert entry["payload"]["entries"] == {"a": 3, "b": 5}, entry
    [step] = claim(web, "t")
    assert step["args"] == {"x": "ab"}, step
    complete(web, step, {"id": "e", "much": "x" * 700000})
    amend(web, instance, "most")
    complete(web, claim(web, "t")[0], 1)
    [step] = claim(web, "t")
    assert step["args"] == {"x": "Ae"}, step
    verify_twice(shell, web)


def test_an_amended_flow_survives_a_kill_and_a_restart(shell):
    child, web = server(shell)
    instance, asked = begin(web)
    amend(web, instance, "research@2")
    child.send_signal(signal.SIGKILL)
    child.wait()
    _, web = server(shell)
    complete(web, asked, "yes")  # leases of workers elsewhere live on
    [check] = claim(web, "check")
    assert check["args"] == {"seen": 7}, check
    verify_twice(shell, web)


def test_what_cannot_be_amended_is_refused_and_named(shell):
    _, web = server(shell)
    instance, asked = begin(web)
    path = "/v1/instances/%s/amend" % instance
    yaml(web, "other", "steps: {start: {tool: find, done: true}}")
    yaml(web, "tree", "do: [{name: ask, action: ask, payload: {}}]")
    yaml(web, "gate", "steps: {start: {name: ask, tool: null, done: true}}")
    web.expect(201, "PUT", "/v1/definitions/machine", {"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"],
               "terminal_kinds": {"b": "success"}, "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}]})
    assert "'ask' does not exist" in web.refused("conflict", "POST", path, {"definition": "other"}).json["detail"]
    assert "a graph cannot be moved to a tree" in web.refused("conflict", "POST", path, {"definition": "tree"}).json["detail"]
    assert "'ask' is of another kind" in web.refused("conflict", "POST", path, {"definition": "gate"}).json["detail"]
    web.refused("invalid-request", "POST", path, {"definition": "machine"})
    web.refused("not-known", "POST", path, {"definition": "nosuch"})
    web.refused("not-known", "POST", path, {"definition": "research@9"})
    web.refused("invalid-request", "POST", path, {})
    web.refused("not-known", "POST", "/v1/instances/%s/amend" % ("0" * 26), {"definition": "other"})
    web.refused("invalid-transition", "POST", "/v1/instances/%s/fire" % instance, {"action": "amend"})
    machine = web.create(definition="machine")
    web.refused("invalid-transition", "POST", "/v1/instances/%s/amend" % machine, {"definition": "research"})
    assert "amend" not in actions(web, instance), "nothing was recorded"
    web.expect(200, "POST", "/v1/instances/%s/cancel" % instance)
    web.refused("terminal", "POST", path, {"definition": "research"})
    verify_twice(shell, web)


PICK = """steps:
  start: {name: w, select: [%s]}
  b: {tool: first, done: true}
  c: {tool: second, done: true}
"""


def test_arms_of_a_select_are_matched_by_what_they_wait_for(shell):
    child, web = server(shell)
    yaml(web, "pick", PICK % "{signal: s0, then: b}, {signal: s1, then: c}, {timer: 1h, then: c}")
    yaml(web, "fewer", PICK % "{signal: s0, then: b}, {timer: 1h, then: c}")
    yaml(web, "swapped", PICK % "{timer: 1h, then: c}, {signal: s1, then: c}, {signal: s0, then: b}")
    ids = [web.create(definition="pick") for _ in range(2)]
    refused = web.refused("conflict", "POST", "/v1/instances/%s/amend" % ids[0], {"definition": "fewer"})
    assert "the live step 'w' waits for signal s1, and no arm" in refused.json["detail"], refused
    for one in ids:
        amend(web, one, "swapped")
    web.post("/v1/instances/%s/signals" % ids[0], {"name": "s0"})
    assert [step["instance_id"] for step in claim(web, "first")] == [ids[0]]
    child.send_signal(signal.SIGKILL)
    child.wait()
    _, web = server(shell)
    web.post("/v1/instances/%s/signals" % ids[1], {"name": "s1"})
    assert [step["instance_id"] for step in claim(web, "second")] == [ids[1]]
    verify_twice(shell, web)


def test_a_key_amends_once_and_a_paused_flow_can_be_amended(shell):
    _, web = server(shell)
    instance, _ = begin(web)
    web.expect(200, "POST", "/v1/instances/%s/pause" % instance)
    path, key = "/v1/instances/%s/amend" % instance, {"Idempotency-Key": "k1"}
    first = web.expect(200, "POST", path, {"definition": "research"}, key).json
    assert web.expect(200, "POST", path, {"definition": "research"}, key).json == first
    assert actions(web, instance).count("amend") == 1
    verify_twice(shell, web)


def test_amends_build_on_each_other(shell):
    _, web = server(shell)
    instance, asked = begin(web)
    amend(web, instance, "research@2")
    amend(web, instance, "research@1")
    assert web.get("/v1/instances/" + instance).json["version"] == 1
    yaml(web, "third", TWO.replace("check", "look"))
    amend(web, instance, "third")
    complete(web, asked, 1)
    [look] = claim(web, "look")
    assert look["name"] == "look" and look["args"] == {"seen": 7}, look
    assert web.get("/v1/instances/" + instance).json["definition"] == "third"
    complete(web, look, 9)
    complete(web, claim(web, "push")[0], 1)
    assert state(web, instance)[0] == "completed"
    verify_twice(shell, web)


TREE = """do:
  - {name: a, action: a, payload: {}}
  - try:
      - dopar: [{name: b, action: b, payload: {}}, {name: c, action: c, payload: {}}]
      %s
    rescue: [{name: r, action: r, payload: {}}]
    finally: [{name: f, action: f, payload: {}}]
"""


def test_a_tree_goes_on_under_the_same_groups(shell):
    _, web = server(shell)
    yaml(web, "tree", TREE % "")
    instance = web.create(definition="tree")
    complete(web, claim(web, "a")[0], 1)
    [b], [c] = claim(web, "b"), claim(web, "c")
    yaml(web, "tree", TREE % "- {name: d, action: d, payload: {}}")
    yaml(web, "moved", "do: [{name: b, action: b, payload: {}}, {name: c, action: c, payload: {}}]")
    path = "/v1/instances/%s/amend" % instance
    assert "in other groups" in web.refused("conflict", "POST", path, {"definition": "moved"}).json["detail"]
    complete(web, b, 1)
    amend(web, instance, "tree")
    complete(web, c, 1)
    complete(web, claim(web, "d")[0], 1)
    assert claim(web, "r") == []
    complete(web, claim(web, "f")[0], 1)
    assert state(web, instance)[0] == "completed", steps(web, instance)
    verify_twice(shell, web)


def test_a_version_that_does_not_allow_the_input_is_refused_in_the_words_of_a_start(shell):
    flow = "name: t\n%sdo:\n  - {name: w, wait: {signal: go}}\n"
    shell.pawl("define", shell.write("t.yaml", flow % ""))
    shell.pawl("start", "t", "--input", '{"n": "x"}')
    shell.pawl("define", shell.write("t.yaml", flow % "input: {type: object, properties: {n: {type: integer}}}\n"))
    refused = shell.pawl("start", "t", "--input", '{"n": "x"}', expect=1).err
    assert "input.n" in refused and shell.pawl("amend", "@last", "t", expect=1).err.splitlines()[0] == refused.splitlines()[0]
    shell.pawl("define", shell.write("t.yaml", flow % "input: {type: object, properties: {n: {type: string}}}\n"))
    shell.pawl("amend", "@last", "t")


def test_the_command_line_amends_too(shell):
    shell.write("one.yaml", ONE)
    shell.write("two.yaml", TWO)
    shell.pawl("define", "one.yaml", "--name", "research")
    shell.pawl("start", "research")
    shell.pawl("define", "two.yaml", "--name", "research")
    assert "research@2" in shell.pawl("amend", "@last", "research", "--actor", "ann").out
    assert "amend" in shell.pawl("history", "@last").out


if __name__ == "__main__":
    harness.main(globals())
