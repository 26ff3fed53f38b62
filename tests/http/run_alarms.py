"""Alarms over HTTP and from the command line: once, also through a death at every commit (B40)."""
import sqlite3

from web import Web, harness

ORDER = str(harness.EXAMPLES / "order.yaml")


BELL = """name: bell
states: [quiet]
initial_state: quiet
terminal_states: []
transitions: [{from_state: quiet, action: ring, to_state: quiet}]
"""


GATE = """name: gate
steps:
  start: {name: go, tool: null, approval: {}, done: true}
"""


def actions(web, instance):
    return [e["action"] for e in web.get("/v1/instances/%s/history" % instance).json["entries"]]


def test_an_alarm_is_set_listed_cancelled_and_fires(shell):
    _, address = shell.serve("--test")
    web = Web(address)
    shell.pawl("define", ORDER)
    order = web.create(definition="order")
    pay = {"instance_id": order, "action": "pay"}
    made = web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.fire", "input": pay})
    other = shell.json("alarm", "set", "instance.cancel", "--after", "30m", "--input",
                       '{"instance_id":"%s"}' % order)
    listed = [a["alarm_id"] for a in web.get("/v1/alarms").json["alarms"]]
    assert listed == [other["alarm_id"], made.json["alarm_id"]], listed
    assert "instance.fire" in shell.pawl("alarm", "list").out
    shell.pawl("alarm", "cancel", other["alarm_id"])
    web.refused("not-known", "DELETE", "/v1/alarms/" + other["alarm_id"])
    web.expect(200, "POST", "/v1/test/advance", {"by": "59m"})
    assert actions(web, order) == []
    web.expect(200, "POST", "/v1/test/advance", {"by": "1m"})
    assert actions(web, order) == ["pay"]
    assert web.get("/v1/alarms").json["alarms"] == []
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_an_alarm_that_can_never_succeed_is_refused_when_it_is_set(shell):
    _, address = shell.serve()
    web = Web(address)
    shell.pawl("define", ORDER)
    order = web.create(definition="order")

    def refused(reason, operation, **given):
        answer = web.refused(reason, "POST", "/v1/alarms", {"after": "1h", "operation": operation, "input": given})
        return answer.json["detail"]

    for given in ("@last", order[:8], "0" * 26, " "):
        refused("invalid-request" if given == " " else "not-known", "instance.cancel", instance_id=given)
    assert "@last" in refused("not-known", "instance.cancel", instance_id="@last")
    refused("not-known", "step.approve", step_id="0" * 26 + ".1")
    refused("not-known", "step.approve", step_id="nonsense")
    refused("invalid-request", "instance.cancel")
    refused("invalid-request", "instance.cancel", instance_id=order, why="x")
    refused("invalid-request", "instance.cancel", instance_id=7)
    assert web.get("/v1/alarms").json["alarms"] == []
    assert "not-known" in shell.pawl("alarm", "set", "instance.cancel", "--after", "1h", "--input",
                                     '{"instance_id":"@last"}', expect=1).err


def test_an_alarm_happens_once_whichever_commit_its_server_dies_at(shell):
    shell.pawl("define", shell.write("bell.yaml", BELL))
    for point in ("before-commit", "after-commit"):
        for number in (1, 2):
            bell = shell.json("start", "bell")["instance_id"]
            shell.pawl("alarm", "set", "instance.fire", "--after", "0s", "--input",
                       '{"instance_id":"%s","action":"ring"}' % bell)
            dying = shell.begin("serve", "--listen", "127.0.0.1:0",
                                env={"PAWL_CRASH_AT": "%s:%d" % (point, number)})
            dying.wait(60)  # the overdue alarm makes the commit it dies at
            assert dying.returncode != 0
            child, address = shell.serve()
            web = Web(address)
            shell.wait_for(lambda: web.get("/v1/alarms").json["alarms"] == [])
            assert actions(web, bell) == ["ring"], (point, number)
            assert web.expect(200, "POST", "/v1/verify").json["valid"]
            shell.stop(child)


def test_an_answer_to_a_step_ends_its_alarm_in_the_same_commit(shell):
    web = Web(shell.serve("--test")[1])
    shell.pawl("define", shell.write("gate.yaml", GATE))
    gate = web.create(definition="gate")
    web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "step.approve", "input": {"step_id": gate + ".1"}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    assert "gate.approve" in actions(web, gate) and web.get("/v1/alarms").json["alarms"] == []
    commits = [[]]
    for what, is_last in sqlite3.connect(shell.folder / "pawl.db").execute("SELECT what, root IS NOT NULL FROM pawl_log ORDER BY pos"):
        commits[-1].append(what)
        commits += [[]] if is_last else []
    fired = [commit for commit in commits if -5 in commit][-1]  # a control record of an alarm
    assert any(what >= 0 for what in fired), commits


def test_an_alarm_may_reach_many_and_nothing_that_is_for_whoever_asks(shell):
    """Any writing operation, later (B40)."""
    web = Web(shell.serve("--test")[1])
    web.expect(201, "PUT", "/v1/definitions/hear", {"steps": {"start": {"name": "a", "wait": {"signal": "go"}, "done": True}}})
    heard = [web.create(definition="hear", correlation_id="C") for _ in range(3)]
    web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "signal.broadcast", "input": {"name": "go"}})
    web.expect(201, "POST", "/v1/alarms", {"after": "2h", "operation": "instance.cancel_many", "input": {"correlation_id": "C"}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    late = web.create(definition="hear", correlation_id="C")
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    assert [web.get("/v1/instances/" + id).json["status"] for id in heard + [late]] == ["completed"] * 3 + ["cancelled"]
    for operation, given in (("step.claim", {"tools": ["a"], "worker": "w"}), ("batch", {}), ("test.advance", {"by": "1s"}),
                             ("instance.get", {"instance_id": late}), ("token.create", {"scopes": "read"})):
        web.refused("invalid-request", "POST", "/v1/alarms", {"after": "1h", "operation": operation, "input": given})
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_whoever_sets_an_alarm_must_be_allowed_to_do_what_it_does(shell):
    shell.pawl("define", ORDER)
    order = shell.json("start", "order")["instance_id"]
    token = shell.json("token", "create", "--scope", "write:order")["token"]
    _, address = shell.serve()
    web, headers = Web(address), {"Authorization": "Bearer " + token}
    fire = {"after": "1h", "operation": "instance.fire", "input": {"instance_id": order, "action": "pay"}}
    web.expect(201, "POST", "/v1/alarms", fire, headers)
    for operation, inner in (("definition.put", {"name": "order", "text": "x"}),
                             ("instance.create", {"definition": "other"}), ("token.revoke", {"token_id": "x"})):
        web.refused("forbidden", "POST", "/v1/alarms",
                    {"after": "1h", "operation": operation, "input": inner}, headers)


if __name__ == "__main__":
    harness.main(globals())
