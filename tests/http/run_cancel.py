"""A definition says where a flow can be cancelled; can_cancel and the rejection follow it."""
import hashlib
import pathlib
import os
import sqlite3
import subprocess
import sys

from run_family import PARENT, children
from run_flows import actions, claim, complete, server, state, yaml
from web import harness

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "verify"))
import forge  # noqa: E402

NEVER = "cancel: false\nsteps: {work: {tool: far, done: true}}"
FREE = "steps: {work: {tool: far, done: true}}"
MIGRATE = """cancel: {not_from: [apply]}
steps:
  copy: {tool: copy, next: apply}
  apply: {tool: apply, retry: {max: 2, backoff: [1h]}, next: tell}
  tell: {tool: tell, done: true}
"""


def can(web, instance):
    got = web.get("/v1/instances/" + instance).json
    assert [a["action"] for a in got["actions"]] == (["cancel"] if got["can_cancel"] else []), got
    return got["can_cancel"]


def cancel(web, instance):
    return web.expect(200, "POST", "/v1/instances/%s/cancel" % instance, {"reason": "enough"})


def refuse(web, instance, *words):
    problem = web.refused("no-cancel-transition", "POST", "/v1/instances/%s/cancel" % instance, {"reason": "enough"})
    assert problem.status == 409 and all(w in problem.json["detail"] for w in words), problem.json
    assert not can(web, instance)


def verify_twice(shell, store="pawl.db"):
    tool = subprocess.run([sys.executable, str(harness.ROOT / "tools" / "verify.py"), str(shell.folder / store)], capture_output=True)
    if os.environ.get("PAWL_TEST_STORE") == "postgres":
        return shell.json("verify", expect=None)["valid"], tool.returncode == 0
    return shell.json("verify", "--store", "sqlite:%s" % (shell.folder / store), expect=None)["valid"], tool.returncode == 0


def test_a_flow_that_says_so_cannot_be_cancelled_by_any_call_and_is_counted_as_refused(shell):
    _, web = server(shell)
    yaml(web, "never", NEVER)
    yaml(web, "free", FREE)
    fixed = web.create(definition="never", correlation_id="c")
    free = web.create(definition="free", correlation_id="c")
    assert can(web, free)
    refuse(web, fixed, "cancel: false")
    web.refused("invalid-transition", "POST", "/v1/instances/%s/fire" % fixed, {"action": "cancel"})
    shell.pawl("cancel", fixed, expect=1)
    done = web.expect(200, "POST", "/v1/cancel", {"correlation_id": "c"}).json
    assert (done["cancelled"], done["refused"]) == (1, 1), done
    assert [e for e in actions(web, fixed)] == ["start"]
    [step] = claim(web, "far")
    complete(web, step, 1)
    assert state(web, fixed)[1] == "completed"
    assert not can(web, fixed)
    assert verify_twice(shell) == (True, True), shell.pawl("verify", expect=None)


def test_while_a_step_applies_waits_to_be_tried_again_or_is_ready_cancelling_is_refused(shell):
    _, web = server(shell, "--test")
    yaml(web, "migrate", MIGRATE)
    one = web.create(definition="migrate")
    assert can(web, one)
    [step] = claim(web, "copy")
    complete(web, step, 1)
    refuse(web, one, "'apply'", "ready")
    [step] = claim(web, "apply")
    refuse(web, one, "'apply'", "running")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "busy"})
    refuse(web, one, "'apply'", "pending")
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    [step] = claim(web, "apply")
    complete(web, step, 1)
    assert can(web, one)
    cancel(web, one)
    early = web.create(definition="migrate")
    cancel(web, early)
    again = web.expect(201, "POST", "/v1/instances/%s/redrive" % one).json["instance_id"]
    assert can(web, again), "it can be cancelled after the step that bars it"
    assert verify_twice(shell) == (True, True), shell.pawl("verify", expect=None)


def test_after_an_amend_the_new_definition_says_whether_it_can_be_cancelled(shell):
    _, web = server(shell)
    yaml(web, "free", FREE)
    one, kid = web.create(definition="free"), None
    yaml(web, "parent", PARENT % ("free", ""))
    parent = web.create(definition="parent", input={"n": 1})
    [kid] = children(web, parent)
    yaml(web, "never", NEVER)
    for instance in (one, kid):
        web.expect(200, "POST", "/v1/instances/%s/amend" % instance, {"definition": "never"})
        refuse(web, instance, "cancel: false")
    cancel(web, parent)
    assert state(web, kid)[1] == "running", "its parent cannot either"
    web.expect(200, "POST", "/v1/instances/%s/amend" % one, {"definition": "free"})
    cancel(web, one)
    assert verify_twice(shell) == (True, True), shell.pawl("verify", expect=None)


def test_only_a_pause_of_the_engines_own_lets_a_flow_be_cancelled_against_its_definition(shell):
    child, web = server(shell, "--max-entries", "40")
    yaml(web, "never", NEVER)
    yaml(web, "round", "cancel: false\nsteps: {a: {tool: set, args: {}, next: b}, b: {tool: set, args: {}, next: a}}")
    held = web.create(definition="never")
    web.expect(200, "POST", "/v1/instances/%s/pause" % held, {"actor_ref": "pawl", "reason": "poison: not really"})
    refuse(web, held)
    full = web.create(definition="round")
    shell.wait_for(lambda: web.get("/v1/instances/" + full).json["status"] == "paused")
    assert can(web, full)
    cancel(web, full)
    shell.stop(child)
    assert verify_twice(shell) == (True, True), shell.pawl("verify", expect=None)


def test_a_child_that_cannot_be_cancelled_outlives_its_parent(shell):
    _, web = server(shell)
    kids = {"never": NEVER, "migrate": MIGRATE, "free": FREE}
    for name, text in kids.items():
        yaml(web, name, text)
        yaml(web, "of-" + name, PARENT % (name, ""))

    def family(name):
        parent = web.create(definition="of-" + name, input={"n": 1})
        return parent, children(web, parent)[0]
    pairs = [family(name) for name in ("never", "free", "migrate", "migrate")]
    applying = claim(web, "copy")[0]
    complete(web, applying, 1)
    for parent, _ in pairs:
        cancel(web, parent)
    found = {child: state(web, child)[1] for _, child in pairs}
    assert found == {child: "running" if n == 0 or child == applying["instance_id"] else "cancelled"
                     for n, (_, child) in enumerate(pairs)}, found
    for tool in ("far", "apply", "tell"):
        [step] = claim(web, tool)
        complete(web, step, 1)
    assert state(web, applying["instance_id"])[1] == state(web, pairs[0][1])[1] == "completed"
    assert verify_twice(shell) == (True, True), shell.pawl("verify", expect=None)


def forged(shell, change):
    """Valid by its hashes: what both verifiers say of it."""
    path = shell.folder / "forged.db"
    with sqlite3.connect(shell.folder / "pawl.db") as source, sqlite3.connect(path) as copy:
        source.backup(copy)
    forger = forge.Forger(path)
    change(forger)
    forger.seal()
    return verify_twice(shell, "forged.db")


def test_a_recorded_cancel_that_the_definition_does_not_allow_is_found(shell):
    child, web = server(shell)
    yaml(web, "free", FREE)
    yaml(web, "never", NEVER)
    yaml(web, "barred", NEVER.replace("false", "{not_from: [work]}"))
    cancel(web, web.create(definition="free"))
    shell.stop(child)

    def made_by(name):
        return lambda forger: forger.db.execute(
            "UPDATE pawl_instance SET definition = (SELECT id FROM pawl_definition WHERE name = ?)", (name,))
    assert forged(shell, made_by("free")) == (True, True)
    for name in ("never", "barred"):
        assert forged(shell, made_by(name)) == (False, True), "only a verifier that decides again can see it"


def as_older(forger):
    """The one definition as compiler 1 made it, which did not know `cancel`."""
    forger.db.text_factory = str
    [(compiled, old)] = forger.db.execute("SELECT compiled, hex(compiled_sha256) FROM pawl_definition WHERE name = 'never'")
    compiled = compiled.replace('"compiler":3', '"compiler":1').replace(',"cancel":false', "")
    digest = hashlib.sha256(compiled.encode()).digest()
    forger.db.execute("UPDATE pawl_definition SET compiled = ?, compiled_sha256 = ?, compiler = 1 WHERE name = 'never'", (compiled, digest))
    forger.db.execute("UPDATE pawl_log SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE what = -2", (old.lower(), digest.hex()))


def test_a_version_that_an_older_pawl_put_stays_cancellable_and_its_text_put_again_is_a_new_one(shell):
    child, web = server(shell)
    yaml(web, "never", NEVER)
    shell.stop(child)
    assert forged(shell, as_older) == (True, True)
    _, web = server(shell, "--store", "sqlite:forged.db")
    old = web.create(definition="never")
    assert can(web, old)
    assert yaml(web, "never", NEVER)["version"] == 2
    again = web.expect(200, "PUT", "/v1/definitions/never", NEVER, {"Content-Type": "application/yaml"})
    assert again.json["version"] == 2, "and only once"
    refuse(web, web.create(definition="never"), "cancel: false")
    cancel(web, old)
    assert verify_twice(shell, "forged.db") == (True, True)


def test_an_alarm_that_was_firing_never_ends_as_cancelled(shell):
    child, web = server(shell, "--test")
    web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.cancel_many", "input": {"correlation_id": "C"}})
    made = web.expect(201, "POST", "/v1/alarms", {"after": "2h", "operation": "instance.cancel_many", "input": {"correlation_id": "C"}})
    web.expect(200, "DELETE", "/v1/alarms/" + made.json["alarm_id"])
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    shell.stop(child)

    def over(word):
        return lambda forger: forger.db.execute(
            "UPDATE pawl_log SET body = CAST(replace(CAST(body AS TEXT), '\"fired\"', ?) AS BLOB) WHERE what = -5", ('"%s"' % word,))
    assert forged(shell, over("fired")) == (True, True)
    assert forged(shell, over("cancelled")) == (False, False)


RENT = """try:
  - {name: enter, tool: enter}
  - {name: stay, wait: {signal: leave}}
rescue: [{name: never, tool: never}]
finally:
  - {name: close, tool: close, retry: {max: 9, backoff: [1ms]}, args: {why: "{{context.exec/last-error}}"}}
"""


def why(web, instance):
    return web.get("/v1/instances/%s/why" % instance).json


def in_the_flat(web, definition="rent"):
    instance = web.create(definition=definition)
    [step] = claim(web, "enter")
    complete(web, step, 1)
    return instance


def test_a_flow_whose_finally_is_open_cleans_up_before_it_is_cancelled_also_after_a_death(shell):
    child, web = server(shell)
    yaml(web, "rent", RENT)
    instance = in_the_flat(web)
    assert "cancelling" not in why(web, instance)
    done = web.expect(200, "POST", "/v1/instances/%s/cancel" % instance, {"reason": "enough", "actor_ref": "ann"}).json
    assert done == {"new_state": "running", "terminal_kind": None}, done
    assert state(web, instance) == ("running", "running")
    told = why(web, instance)["cancelling"]
    assert (told["actor_ref"], told["reason"]) == ("ann", "enough") and told["since"], told
    said = shell.pawl("why", instance).out
    assert "is being cancelled since" in said and "by ann because: enough" in said, said
    shell.stop(child, 9, expect=-9)
    child, web = server(shell)
    before = actions(web, instance)
    again = web.expect(200, "POST", "/v1/instances/%s/cancel" % instance, {"reason": "once more", "actor_ref": "bob"}).json
    assert again == done and actions(web, instance) == before, again  # it changes nothing
    [step] = claim(web, "close")
    assert step["args"] == {"why": "cancelled"}, step
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "jammed"})
    shell.wait_for(lambda: (step.update(next(iter(claim(web, "close")), {})), "attempt" in step and step["attempt"] == 2)[1])
    complete(web, step, 1)
    assert state(web, instance) == ("cancelled", "cancelled") and "clean-up" in before and "cancel" not in before
    last = web.get("/v1/instances/%s/history" % instance).json["entries"][-1]
    assert (last["action"], last["actor_ref"], last["reason"]) == ("cancel", "ann", "enough"), last
    assert not claim(web, "never")
    shell.stop(child)
    assert verify_twice(shell) == (True, True), shell.pawl("verify", expect=None)


def test_a_child_whose_finally_is_open_cleans_up_when_its_parent_is_cancelled(shell):
    child, web = server(shell)
    yaml(web, "rent", RENT)
    yaml(web, "parent", "do: [{spawn: {definition: rent}}]")
    parent = web.create(definition="parent")
    [step] = claim(web, "enter")
    complete(web, step, 1)
    cancel(web, parent)
    assert state(web, parent) == ("cancelled", "cancelled")
    step = {}
    shell.wait_for(lambda: (step.update(next(iter(claim(web, "close")), {})), bool(step))[1])
    assert why(web, step["instance_id"])["cancelling"]["actor_ref"] == "pawl/parent"
    complete(web, step, 1)
    assert state(web, step["instance_id"]) == ("cancelled", "cancelled")
    shell.stop(child)
    assert verify_twice(shell) == (True, True), shell.pawl("verify", expect=None)


if __name__ == "__main__":
    harness.main(globals())
