"""Seed 004 over HTTP, with its own examples in a module: the operations, the tables, entities and groups."""
import pathlib
import sqlite3
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http")]
from web import Web, harness  # noqa: E402


def server(shell):
    out = shell.folder / "flows.so"
    if not out.exists():
        subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-I", harness.ROOT / "include", "-o", out,
                        harness.ROOT / "examples/code/flows.c"], check=True)
    child, address = shell.serve("--test", "--module", str(out))
    return child, Web(address)


def status(web, id):
    return web.get("/v1/instances/" + id).json["status"]


def test_every_operation_of_the_seed_has_its_own(shell):
    """E23, E24, E25, E16, E26: start, start_test, signal, broadcast, procedure_complete, cancel, fire_timer, send_signal."""
    _, web = server(shell)
    buff = web.create(definition="buff", subject_ref="42", input={"duration_secs": 5})
    assert web.get("/v1/instances?limit=1").json["instances"][0]["instance_id"] == buff  # the last one created
    web.refused("not-known", "POST", "/v1/instances", {"definition": "no-such"})
    test = web.create(definition="buff", test=True)
    web.expect(200, "POST", "/v1/test/advance", {"by": "60s"})
    assert (status(web, buff), status(web, test)) == ("completed", "suspended")
    web.expect(200, "POST", "/v1/test/instances/%s/timers/expire/fire" % test)
    assert status(web, test) == "completed"
    quest = web.create(definition="quest", test=True, input={"enemy": "wolf", "kills": 2})
    web.expect(202, "POST", "/v1/test/instances/%s/signals" % quest, {"name": "enemy_killed", "payload": "rat"})
    assert web.expect(202, "POST", "/v1/signals", {"name": "enemy_killed", "filter": "rat", "payload": "rat"}).json == {"delivered": 0}
    assert web.expect(202, "POST", "/v1/signals", {"name": "enemy_killed", "filter": "wolf", "payload": "wolf"}).json == {"delivered": 1}
    web.refused("not-awaiting", "POST", "/v1/instances/%s/signals" % quest, {"name": "enemy_killed", "payload": "x"})
    early = web.create(definition="quest", input={"enemy": "bear", "kills": 1, "item": 5})
    assert web.expect(202, "POST", "/v1/signals", {"name": "item_collected", "filter": 5, "payload": 5}).json == {"delivered": 0, "kept": 1}
    assert web.expect(202, "POST", "/v1/signals", {"name": "enemy_killed", "filter": "bear", "payload": "bear"}).json == {"delivered": 1}
    assert web.get("/v1/instances/" + early).json["result"] == {"completed": True}, "found while it hunted"
    trade = web.create(definition="trade", input={"buyer": 1, "seller": 1})
    web.expect(202, "POST", "/v1/instances/%s/signals" % trade, {"name": "accept", "payload": 1})
    step = web.get("/v1/instances/%s/steps" % trade).json["steps"][-1]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"result": 9})
    assert web.get("/v1/instances/" + trade).json["result"] == {"receipt": 9}
    gone = web.create(definition="buff")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % gone)
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    web.refused("terminal", "POST", "/v1/instances/%s/signals" % gone, {"name": "dispel"})
    assert [e["action"] for e in web.get("/v1/instances/%s/history" % gone).json["entries"]] == ["start", "cancel"]


def test_an_answer_that_comes_after_the_end_is_lease_lost_as_a_flows_is(shell):
    """E26, E10: what a cancelled instance had called has no effect any more; its worker hears what any worker does who is too late."""
    _, web = server(shell)
    trade = web.create(definition="trade", input={"buyer": 1, "seller": 1})
    web.expect(202, "POST", "/v1/instances/%s/signals" % trade, {"name": "accept", "payload": 1})
    damage = web.create(definition="damage")
    [claimed] = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["compute_damage"], "worker": "w"}).json["steps"]
    for id in (trade, damage):
        web.expect(200, "POST", "/v1/instances/%s/cancel" % id)
    for step, lease in ((web.get("/v1/instances/%s/steps" % trade).json["steps"][0]["step_id"], {}), (claimed["step_id"], {"lease": claimed["lease"]})):
        web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % step, {"result": 1, **lease})
        web.refused("lease-lost", "POST", "/v1/steps/%s/fail" % step, {"error": "x", **lease})
        [told] = web.expect(200, "POST", "/v1/steps/complete", {"steps": [{"step_id": step, "result": 1, **lease}]}).json["results"]
        assert told["reason"] == "lease-lost", told
    assert [e["action"] for e in web.get("/v1/instances/%s/history" % damage).json["entries"]] == ["start", "step.start", "cancel"]


def test_x6_code_is_cancelled_wherever_it_waits_and_a_machine_only_where_it_says_so(shell):
    """X6, E26: by a timer, an answer, in a loop, or held."""
    _, web = server(shell)
    timer, loop, held, answer = (web.create(definition=name, input=input) for name, input in (
        ("counter", {}), ("patrol", {}), ("buff", {}), ("trade", {"buyer": 1, "seller": 1})))
    web.expect(202, "POST", "/v1/instances/%s/signals" % answer, {"name": "accept", "payload": 1})
    web.expect(200, "POST", "/v1/instances/%s/pause" % held)
    for id in (timer, loop, held, answer):
        assert web.get("/v1/instances/" + id).json["can_cancel"]
        assert web.expect(200, "POST", "/v1/instances/%s/cancel" % id, {"reason": "enough"}).json == {"new_state": "cancelled", "terminal_kind": "cancel"}
        web.refused("terminal", "POST", "/v1/instances/%s/cancel" % id)
        assert web.get("/v1/instances/%s/why" % id).json["waiting_for"] == []
    web.expect(200, "POST", "/v1/test/advance", {"by": "30d"})
    assert [len(web.get("/v1/instances/%s/history" % id).json["entries"]) for id in (timer, loop, held, answer)] == [2, 2, 2, 3]
    narrow = {"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"], "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}]}
    web.refused("no-cancel-transition", "POST", "/v1/instances/%s/cancel" % web.create(declaration=narrow))


def test_entities_and_groups_are_found_and_cancelled(shell):
    """E29: all of an entity, by type and status; all of a group, and their end."""
    _, web = server(shell)
    for entity in ("1", "2"):
        web.create(definition="buff", subject_ref=entity, correlation_id="spell-7")
    web.create(definition="counter", subject_ref="1")
    ended = web.create(definition="buff", subject_ref="1")
    web.expect(202, "POST", "/v1/instances/%s/signals" % ended, {"name": "dispel"})
    found = web.get("/v1/instances?subject_ref=1").json["instances"]
    assert len(found) == 3
    found = web.get("/v1/instances?subject_ref=1&definition=buff&status=suspended").json["instances"]
    assert len(found) == 1 and found[0]["subject_ref"] == "1"
    assert len(web.get("/v1/instances?correlation_id=spell-7").json["instances"]) == 2
    assert web.expect(200, "POST", "/v1/cancel", {"correlation_id": "spell-7"}).json == {"cancelled": 2, "refused": 0}


def test_the_tables_of_the_seed_can_be_read_in_sql(shell):
    """E22, E30: workflows with their place and state, timers, subscriptions, pending procedures; the history is the audit log."""
    child, web = server(shell)
    quest = web.create(definition="quest", subject_ref="9", input={"enemy": "wolf", "item": 5})
    trade = web.create(definition="trade", input={"buyer": 1, "seller": 1})
    web.expect(202, "POST", "/v1/instances/%s/signals" % trade, {"name": "accept", "payload": 1})
    counter = web.create(definition="counter")
    shell.stop(child)
    db = sqlite3.connect(str(shell.folder / "pawl.db"))
    row = db.execute("SELECT definition, subject_ref, status FROM pawl_instances WHERE id = ?", (quest,)).fetchone()
    assert row == ("quest", "9", "suspended"), row
    state = """SELECT json_extract(e.value, '$[1].phase'), json_extract(e.value, '$[1].item')
               FROM pawl_log, json_each(body) AS e WHERE inst = 1 AND json_extract(e.value, '$[0]') = 'state'
               ORDER BY pos DESC LIMIT 1"""
    assert db.execute(state).fetchone() == ("hunting", 5)
    assert db.execute("SELECT name FROM pawl_timers WHERE id = ?", (counter,)).fetchall() == [("tick",)]
    assert db.execute("SELECT name, value FROM pawl_wait WHERE inst = 1").fetchall() == [("enemy_killed", '"wolf"')]
    assert db.execute("SELECT count(*) FROM pawl_steps WHERE id = ?", (trade,)).fetchone() == (1,)
    actions = db.execute("SELECT action FROM pawl_history WHERE id = ? ORDER BY sequence_number", (trade,)).fetchall()
    assert actions == [("start",), ("signal",)], actions


if __name__ == "__main__":
    harness.main(globals())
