"""Claims that wait: without a thread each, and a step that becomes ready is theirs in the commit that made it so."""
import json
import select
import signal
import socket
import sqlite3
import struct
import time

from raw import Raw
from web import Web, harness

TWO = {"name": "two", "steps": {"start": {"tool": "saw", "args": {}, "next": "end"},
                                "end": {"tool": "saw", "args": {}, "done": True}}}
ROUND = {"name": "round", "steps": {"start": {"tool": "saw", "args": {}, "next": "again"},
                                    "again": {"tool": "saw", "args": {}, "next": "start"}}}
FAN = {"name": "fan", "dopar": [{"action": "saw", "payload": {"n": n}} for n in range(6)]}


def server(shell):
    child, address = shell.serve()
    web = Web(address)
    web.child = child
    for flow in (TWO, FAN):
        web.expect(201, "PUT", "/v1/definitions/" + flow["name"], flow)
    return web


def claim(line, wait, tool="saw", **more):
    line.ask("POST", "/v1/steps/claim", {"tools": [tool], "worker": "w/1", "wait": wait, **more})


def wait_for_parked(shell, web, count=1):
    shell.wait_for(lambda: b"pawl_claims_waiting %d\n" % count in web.get("/metrics").body)


def answers(lines, count):
    """Steps for those of the lines that get an answer first."""
    steps = []
    while len(steps) < count:
        for number in select.select([line.socket for line in lines], [], [], 60)[0]:
            line = next(line for line in lines if line.socket == number)
            lines.remove(line)
            steps += answer(line)
    return steps


def answer(line):
    status, _, body = line.reply()
    assert status == 200, body
    return json.loads(body)["steps"]


def read(shell, query):
    db = sqlite3.connect("file:%s?mode=ro" % (shell.folder / "pawl.db"), uri=True)
    rows = db.execute(query).fetchall()
    db.close()
    return rows


def commits(shell):
    """The actions of the only instance's entries, those of one commit together."""
    rows = read(shell, "SELECT coalesce(t.action, 'create'), l.root IS NOT NULL FROM pawl_log l JOIN pawl_instance i ON i.number = l.inst"
                       " LEFT JOIN pawl_transition t ON t.definition = i.definition AND t.idx = l.what ORDER BY l.pos")
    found = [[]]
    for action, is_last in rows:
        found[-1].append(action)
        found += [[]] if is_last else []
    return found[:-1]


def test_hundreds_of_claims_wait_and_the_server_answers_others(shell):
    """B30: a parked claim holds no thread: there are sixteen."""
    web = server(shell)
    lines = [Raw(web) for _ in range(300)]
    for line in lines:
        claim(line, "50s")
    for _ in range(20):  # each of these needs a thread of those
        web.create(definition="two")
    got = answers(lines, 20)
    assert len({step["step_id"] for step in got}) == 20 and all(step["attempt"] == 1 for step in got)
    for step in got:
        web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    second = answers(lines, 20)
    assert sorted(step["instance_id"] for step in second) == sorted(step["instance_id"] for step in got)
    assert {step["name"] for step in second} == {"end"}
    shell.stop(web.child)


def test_the_commit_that_makes_a_step_ready_starts_it_for_a_claim_that_waits(shell):
    """B30, B32"""
    web = server(shell)
    line = Raw(web)
    claim(line, "50s")
    wait_for_parked(shell, web)
    web.create(definition="two")
    (step,) = answer(line)
    assert commits(shell) == [["create", "start", "step.start"]], commits(shell)
    turn = {"steps": [{"step_id": step["step_id"], "lease": step["lease"], "result": 1}],
            "claim": {"tools": ["saw"], "worker": "w/1"}}
    reply = web.expect(200, "POST", "/v1/steps/complete", turn).json
    assert [step["name"] for step in reply["steps"]] == ["end"], reply
    assert commits(shell)[1:] == [["step.complete", "step.start"]], commits(shell)


def claim_in_batch(line, tool, max):
    text = json.dumps({"operation": "step.claim", "input": {"tools": [tool], "worker": "w/1", "max": max}})
    line.ask("POST", "/v1/batch", text.encode(), ["Content-Type: application/x-ndjson"])


def test_steps_whose_client_closes_in_the_middle_of_the_answer_are_ready_again_and_cost_no_attempt(shell):
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/heavy", {"name": "heavy", "steps": {
        "start": {"tool": "lift", "args": {"x": "{{input.x}}"}, "retry": {"max": 1}, "done": True}}})
    before = 0
    for ask in (lambda line: claim(line, "0s", tool="lift", max=12), lambda line: claim_in_batch(line, "lift", 12)):
        before = close_in_the_middle(shell, web, ask, before)


def close_in_the_middle(shell, web, ask, before):
    made = [web.create(definition="heavy", input={"x": "y" * 500_000}) for _ in range(12)]
    line = Raw(web)
    ask(line)
    assert b" 200 " in line.socket.recv(1000)  # the answer has begun; 6 MB are more than the kernel takes over
    line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.socket.close()
    got = []
    shell.wait_for(lambda: len(got) == 12 or got.extend(web.expect(200, "POST", "/v1/steps/claim", {
        "tools": ["lift"], "worker": "w/2", "max": 12}).json["steps"]))
    assert {step["instance_id"] for step in got} == set(made) and {step["attempt"] for step in got} == {1}
    for view in ("pawl_attempts", "workflow_steps"):
        assert read(shell, "SELECT count(*) FROM " + view) == [(before + len(got),)], view
    return before + len(got)


def test_what_was_claimed_by_waiting_is_the_workers_alone(shell):
    """B31, B34"""
    web = server(shell)
    line = Raw(web)
    claim(line, "50s", lease="45s")
    wait_for_parked(shell, web)
    web.create(definition="two")
    (step,) = answer(line)
    path = "/v1/steps/%s/" % step["step_id"]
    assert web.expect(409, "POST", path + "complete", {"lease": "f" * 32, "result": 1}).reason == "lease-lost"
    assert web.expect(200, "POST", path + "heartbeat", {"lease": step["lease"]}).json["status"] == "running"
    assert web.expect(200, "POST", "/v1/steps/claim", {"tools": ["saw"], "worker": "w/2"}).json == {"steps": []}
    assert web.expect(200, "POST", path + "complete", {"lease": step["lease"], "result": 1}).json == {"status": "done"}


def test_steps_of_one_decision_are_shared_among_those_who_wait(shell):
    web = server(shell)
    lines = [Raw(web) for _ in range(3)]
    for line in lines[:2]:
        claim(line, "50s", max=2)
    wait_for_parked(shell, web, 2)
    web.create(definition="fan")
    got = answer(lines[0]) + answer(lines[1])
    assert len(got) == 4, got
    claim(lines[2], "50s", max=9)
    got += answer(lines[2])
    assert sorted(step["args"]["n"] for step in got) == list(range(6))


def test_a_step_that_waits_gets_its_turn_beside_a_flow_that_goes_round(shell):
    """B32: a worker's turn is given what its own answers make ready, but not for ever before what was there first."""
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/round", ROUND)
    web.create(definition="round")
    waiting = web.create(definition="two")
    wanted = {"tools": ["saw"], "worker": "w/1", "max": 1, "wait": "50s"}
    steps = web.expect(200, "POST", "/v1/steps/claim", wanted).json["steps"]
    for turns in range(64):
        if steps[0]["instance_id"] == waiting:
            break
        done = [{"step_id": steps[0]["step_id"], "lease": steps[0]["lease"], "result": 1}]
        steps = web.expect(200, "POST", "/v1/steps/complete", {"steps": done, "claim": wanted}).json["steps"]
    assert turns < 16, "it was not among the steps of %d turns" % turns
    shell.stop(web.child)


def given(shell, web, line, id):
    """The claim that waits on this line has an answer, which is in the client's kernel, unread."""
    shell.wait_for(lambda: web.get("/v1/instances/%s/steps" % id).json["steps"][0]["status"] == "running")
    assert select.select([line.socket], [], [], 60)[0]


def wait_for_no_other(shell, web):
    """Connections of requests that were answered may not have ended yet: none but the one that asks."""
    shell.wait_for(lambda: b"\npawl_http_connections 1\n" in web.get("/metrics").body)


def status_of(web, id):
    (step,) = web.get("/v1/instances/%s/steps" % id).json["steps"]
    return step["status"], step["attempt"]


def test_a_step_whose_answer_was_never_read_is_ready_again_and_costs_no_attempt(shell):
    """A process that is killed, or that stops reading: its kernel resets the connection."""
    web = server(shell)
    for read in (0, 100):
        line = Raw(web)
        claim(line, "50s")
        wait_for_parked(shell, web)
        id = web.create(definition="two")
        given(shell, web, line, id)
        assert len(line.socket.recv(read)) == read
        line.close()
        shell.wait_for(lambda: status_of(web, id) == ("ready", 1))
        (step,) = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["saw"], "worker": "w/2"}).json["steps"]
        assert step["instance_id"] == id and step["attempt"] == 1
        web.expect(200, "POST", "/v1/instances/%s/cancel" % id)


def test_a_step_whose_answer_was_read_stays_the_workers_whatever_becomes_of_the_connection(shell):
    web = server(shell)
    for way in ("closed", "reset by a later answer"):
        line = Raw(web)
        id = web.create(definition="two")
        claim(line, "0s")
        (step,) = answer(line)
        if way != "closed":
            line.ask("GET", "/v1/instances/" + id)
            assert select.select([line.socket], [], [], 60)[0]
        line.close()
        wait_for_no_other(shell, web)
        assert status_of(web, id) == ("running", 1), way
        web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"]})
        web.expect(200, "POST", "/v1/instances/%s/cancel" % id)


def test_a_claim_whose_client_has_gone_is_given_nothing(shell):
    """A suspended connection does not notice: the engine looks before it starts a step for it."""
    web = server(shell)
    for hard in (False, True):  # as a process that ends, and as a machine that has forgotten the connection
        gone, stays = Raw(web), Raw(web)
        claim(gone, "50s")
        wait_for_parked(shell, web)
        if hard:
            gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
        claim(stays, "50s")
        wait_for_parked(shell, web, 2)
        id = web.create(definition="two")
        (step,) = answer(stays)
        assert step["attempt"] == 1
        assert web.get("/v1/instances/%s/steps" % id).json["steps"][0]["status"] == "running"


def test_a_client_that_has_gone_is_noticed_however_it_went(shell):
    """By a reset, or behind a request that nobody has read yet."""
    web = server(shell)
    for way in ("reset", "behind a request"):
        gone, stays = Raw(web), Raw(web)
        claim(gone, "50s")
        wait_for_parked(shell, web)
        if way == "reset":
            gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            gone.ask("GET", "/healthz")
        gone.close()
        claim(stays, "50s")
        wait_for_parked(shell, web, 2)
        web.create(definition="two")
        (step,) = answer(stays)
        assert step["attempt"] == 1, (way, step)
        web.expect(200, "POST", "/v1/instances/%s/cancel" % step["instance_id"])


def test_a_step_that_is_ready_again_passes_by_those_who_have_gone(shell):
    web = server(shell)
    id = web.create(definition="two")
    web.expect(200, "POST", "/v1/instances/%s/pause" % id)
    assert web.expect(200, "POST", "/v1/steps/claim", {"tools": ["saw"], "worker": "w/1"}).json == {"steps": []}
    gone, stays = Raw(web), Raw(web)
    claim(gone, "50s")
    wait_for_parked(shell, web)
    gone.close()
    claim(stays, "50s")
    wait_for_parked(shell, web, 2)
    begun = time.monotonic()
    web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    assert len(answer(stays)) == 1 and time.monotonic() - begun < 45


def test_a_claim_that_waits_in_vain_is_told_so_in_time(shell):
    web = server(shell)
    lines = [Raw(web) for _ in range(3)]
    begun = time.monotonic()
    for line, wait in zip(lines, ("900ms", "300ms", "600ms")):
        claim(line, wait, tool="none")
    for line in lines:
        assert answer(line) == []
    assert 0.85 < time.monotonic() - begun < 30


def test_a_workers_name_is_as_long_as_any_reference_may_be(shell):
    web = server(shell)
    web.create(definition="two")
    asked = {"tools": ["saw"], "worker": "w" * 1025}
    for path, body in (("/v1/steps/claim", asked), ("/v1/steps/complete", {"steps": [], "claim": asked})):
        reply = web.refused("invalid-request", "POST", path, body)
        assert "worker: expected at most 1024 bytes, found 1025" in reply.json["detail"], reply
    (step,) = web.post("/v1/steps/claim", dict(asked, worker="w" * 1024)).json["steps"]
    assert step["attempt"] == 1


def test_a_turn_tells_of_a_step_that_cannot_be_as_it_was_given(shell):
    web = server(shell)
    reply = web.expect(200, "POST", "/v1/steps/complete", {"steps": [{"step_id": "no step", "lease": "x", "result": 1}]}).json
    assert [(one["step_id"], one["reason"]) for one in reply["results"]] == [("no step", "not-known")], reply


def test_a_server_that_stops_answers_those_who_wait_at_once(shell):
    web = server(shell)
    lines = [Raw(web) for _ in range(40)]
    for line in lines:
        claim(line, "5m")
    wait_for_parked(shell, web, 40)
    begun = time.monotonic()
    web.child.send_signal(signal.SIGTERM)
    for line in lines:
        assert answer(line) == []
    web.child.communicate(timeout=60)
    assert web.child.returncode == 0 and time.monotonic() - begun < 45


def test_a_server_that_stops_answers_those_too_who_hold_a_thread(shell):
    """With a key, and as lines of a batch, of which the next would wait as well."""
    web = server(shell)
    web.expect(201, "PUT", "/v1/stores/beside")
    asked = {"tools": ["none"], "worker": "w/1", "wait": "5m"}
    keyed, there, batch = Raw(web), Raw(web), Raw(web)
    keyed.ask("POST", "/v1/steps/claim", asked, ["Idempotency-Key: one"])
    there.ask("POST", "/v1/stores/beside/steps/claim", asked, ["Idempotency-Key: one"])
    batch.ask("POST", "/v1/batch", b"\n".join([json.dumps({"operation": "step.claim", "input": asked}).encode()] * 20))
    wait_for_parked(shell, web, 2)
    shell.wait_for(lambda: b"pawl_claims_waiting 1\n" in web.get("/v1/stores/beside/metrics").body)
    web.child.send_signal(signal.SIGTERM)
    assert answer(keyed) == answer(there) == []
    assert batch.reply()[2].count(b'{"steps":[]}') == 20
    web.child.communicate(timeout=60)
    assert web.child.returncode == 0


def test_a_paused_instance_gives_nothing_to_those_who_wait_until_it_is_resumed(shell):
    web = server(shell)
    line = Raw(web)
    id = web.create(definition="two")
    (step,) = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["saw"], "worker": "w/1"}).json["steps"]
    web.expect(200, "POST", "/v1/instances/%s/pause" % id)
    claim(line, "50s")
    wait_for_parked(shell, web)
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    (step,) = answer(line)
    assert step["name"] == "end"


def test_steps_of_one_turn_that_reach_the_bound_of_entries_are_decided_each_by_itself(shell):
    """At 5 entries the claim reaches the bound, at 9 the answers do: those are recorded, as single ones are."""
    for bound, count, status in ((5, 1, "paused"), (9, 6, "completed")):
        child, address = shell.serve("--max-entries", str(bound))
        web = Web(address)
        web.ask("PUT", "/v1/definitions/fan", FAN)
        id = web.create(definition="fan")
        steps = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["saw"], "worker": "w/1", "max": 6}).json["steps"]
        given = [{"step_id": step["step_id"], "lease": step["lease"], "result": 1} for step in steps]
        results = web.expect(200, "POST", "/v1/steps/complete", {"steps": given}).json["results"]
        assert [result.get("status") for result in results] == ["done"] * count, results
        found = web.get("/v1/instances/" + id).json
        assert found["status"] == status, (bound, found)
        assert web.expect(200, "POST", "/v1/verify").json["valid"]
        shell.stop(child)


if __name__ == "__main__":
    harness.main(dict(globals()))
