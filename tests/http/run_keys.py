"""Idempotency-Key over HTTP and from the command line, against a real server that is killed."""
import http.client
import json
import threading

from web import Web, harness

LAMP = {"name": "lamp", "states": ["dark", "lit", "broken"], "initial_state": "dark",
        "terminal_states": ["broken"], "terminal_kinds": {"broken": "cancel"},
        "transitions": [{"from_state": "dark", "action": "switch", "to_state": "lit"},
                        {"from_state": "lit", "action": "switch", "to_state": "dark"},
                        {"from_state": "dark", "action": "break", "to_state": "broken"}]}


def keyed(key):
    return {"Idempotency-Key": key}


def test_every_writing_operation_answers_a_repeated_call_as_the_first_time(shell):
    _, address = shell.serve("--test")
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/lamp", LAMP, keyed("put"))
    web.expect(201, "PUT", "/v1/definitions/lamp", LAMP, keyed("put"))
    web.expect(200, "PUT", "/v1/definitions/lamp", LAMP, keyed("put again"))
    web.expect(200, "PUT", "/v1/definitions/lamp", LAMP, keyed("put again"))
    lamp = web.expect(201, "POST", "/v1/instances", {"definition": "lamp"}, keyed("c")).json
    assert web.expect(201, "POST", "/v1/instances", {"definition": "lamp"}, keyed("c")).json == lamp
    assert web.expect(201, "POST", "/v1/instances", {"definition": "lamp"}, keyed("d")).json != lamp
    base = "/v1/instances/" + lamp["instance_id"]
    code = web.create(definition="countdown", input={"from": 9, "every": "1h"}, test=True)
    calls = [("POST", base + "/fire", {"action": "switch"}, 200),
             ("POST", "/v1/instances/%s/signals" % code, {"name": "add", "payload": 2}, 202),
             ("POST", "/v1/test/instances/%s/signals" % code, {"name": "add", "payload": 2}, 202),
             ("POST", "/v1/test/instances/%s/timers/tick/fire" % code, {}, 200),
             ("POST", "/v1/instances/%s/cancel" % code, {"reason": "enough"}, 200),
             ("POST", "/v1/test/advance", {"by": "1h"}, 200)]
    first = [web.expect(status, method, path, body, keyed("k%d" % i)).body
             for i, (method, path, body, status) in enumerate(calls)]
    second = [web.expect(status, method, path, body, keyed("k%d" % i)).body
              for i, (method, path, body, status) in enumerate(calls)]
    assert first == second, (first, second)
    assert len(web.get(base + "/history").json["entries"]) == 1
    actions = [e["action"] for e in web.get("/v1/instances/%s/history" % code).json["entries"]]
    assert actions == ["start", "signal", "signal", "timer", "cancel"], actions
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_the_same_key_with_another_body_path_or_operation_is_a_conflict(shell):
    harness.one_shard("a key that is misused in another shard is not noticed")
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/lamp", LAMP)
    one, two = web.create(definition="lamp"), web.create(definition="lamp")
    fire = {"action": "switch"}
    web.expect(200, "POST", "/v1/instances/%s/fire" % one, fire, keyed("k"))
    web.refused("conflict", "POST", "/v1/instances/%s/fire" % two, fire, keyed("k"))
    web.refused("conflict", "POST", "/v1/instances/%s/fire" % one, {**fire, "actor_ref": "a"}, keyed("k"))
    web.refused("conflict", "POST", "/v1/instances/%s/cancel" % one, {}, keyed("k"))
    web.refused("conflict", "POST", "/v1/instances", {"definition": "lamp"}, keyed("k"))
    web.refused("invalid-request", "POST", "/v1/instances/%s/fire" % one, fire, keyed("k" * 129))
    web.refused("invalid-request", "POST", "/v1/instances/%s/fire" % one, fire, keyed(""))
    web.expect(200, "GET", "/v1/instances/" + one, None, keyed("k"))  # nothing to repeat


def test_the_command_line_repeats_through_the_server_what_it_did_without(shell):
    def key(*words):
        return shell.json(*words)

    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"), "--key", "put")
    began = key("start", "order", "--subject", "A-1", "--key", "s")
    paid = key("fire", began["instance_id"], "pay", "--actor", "ann", "--key", "f")
    shell.serve()
    assert key("start", "order", "--subject", "A-1", "--key", "s") == began
    assert key("fire", began["instance_id"], "pay", "--actor", "ann", "--key", "f") == paid
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"), "--key", "put")
    assert len(key("history", began["instance_id"])["entries"]) == 1
    assert len(key("list")["instances"]) == 1


def test_clients_that_repeat_until_they_are_answered_are_heard_once_through_kills(shell):
    """Each of many calls is repeated over several deaths until it is answered; one entry each."""
    child, address = shell.serve()
    at = {"web": Web(address), "child": child}
    at["web"].expect(201, "PUT", "/v1/definitions/lamp", LAMP)
    lamp = at["web"].create(definition="lamp")
    answers, failures = {}, []

    def insist(worker):
        for i in range(40):
            key = "%d-%d" % (worker, i)
            while key not in answers:
                try:
                    reply = at["web"].post("/v1/instances/%s/fire" % lamp,
                                           {"action": "switch", "payload": key}, keyed(key))
                except (OSError, http.client.HTTPException):
                    continue
                if reply.status == 200:
                    answers[key] = reply.json["sequence_number"]
                elif reply.status != 503:
                    failures.append(reply)
                    return

    threads = [threading.Thread(target=insist, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for deaths in range(1, 6):
        while len(answers) < 25 * deaths and not failures:
            threads[0].join(0.01)
        at["child"].kill()
        at["child"].wait()
        at["child"], address = shell.serve()
        at["web"] = Web(address)
    for thread in threads:
        thread.join()
    assert not failures, failures
    entries = at["web"].get("/v1/instances/%s/history" % lamp).json["entries"]
    assert {e["payload"]: e["sequence_number"] for e in entries} == answers
    assert len(entries) == len(answers) == 160
    assert at["web"].expect(200, "POST", "/v1/verify").json["valid"]


def test_one_key_in_many_fires_at_once_is_one_entry(shell):
    """They share commits and hold no thread; whoever comes second in a commit is answered after it."""
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/lamp", LAMP)
    lamp = web.create(definition="lamp")
    answers = []

    def fire(key):
        answers.append((key, Web(address).post("/v1/instances/%s/fire" % lamp, {"action": "switch"}, keyed(key))))

    for turn in range(10):
        threads = [threading.Thread(target=fire, args=("k%d" % turn,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 120
    for key, reply in answers:
        assert reply.status == 200 and reply.json["sequence_number"] == int(key[1:]) + 1, (key, reply)
    assert len(web.get("/v1/instances/%s/history" % lamp).json["entries"]) == 10


WORK = {"steps": {"start": {"name": "far", "tool": "far", "retry": {"max": 1}, "next": "gate"},
                  "gate": {"approval": {"count": 2}, "tool": None, "done": True}}}


def test_a_worker_repeats_its_claims_heartbeats_and_turns(shell):
    """Any POST may carry a key (DESIGN.md section 5)."""
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/work", WORK)
    for _ in range(4):
        web.create(definition="work")
    claim = {"tools": ["far"], "worker": "w"}
    first = web.expect(200, "POST", "/v1/steps/claim", claim, keyed("c1"))
    assert len(first.json["steps"]) == 1
    assert web.expect(200, "POST", "/v1/steps/claim", claim, keyed("c1")).body == first.body
    assert web.expect(200, "POST", "/v1/steps/claim", claim, keyed("c2")).json["steps"] != first.json["steps"]
    web.refused("conflict", "POST", "/v1/steps/claim", {**claim, "max": 2}, keyed("c1"))
    step = first.json["steps"][0]
    path = "/v1/steps/%s/" % step["step_id"]
    beat = web.expect(200, "POST", path + "heartbeat", {"lease": step["lease"], "extend": "1h"}, keyed("h"))
    assert web.expect(200, "POST", path + "heartbeat", {"lease": step["lease"], "extend": "1h"}, keyed("h")).body == beat.body
    turn = {"steps": [{"step_id": step["step_id"], "lease": step["lease"], "result": 1}], "claim": claim}
    done = web.expect(200, "POST", "/v1/steps/complete", turn, keyed("t"))
    assert done.json["results"][0]["status"] == "done" and len(done.json["steps"]) == 1, done
    assert web.expect(200, "POST", "/v1/steps/complete", turn, keyed("t")).body == done.body
    web.refused("lease-lost", "POST", path + "heartbeat", {"lease": step["lease"]}, keyed("h2"))
    assert web.expect(200, "POST", path + "heartbeat", {"lease": step["lease"], "extend": "1h"}, keyed("h")).body == beat.body
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_one_key_in_many_claims_at_once_is_one_claim(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/work", WORK)
    claim, answers = {"tools": ["far"], "worker": "w", "wait": "20s"}, []
    threads = [threading.Thread(target=lambda: answers.append(web.ask("POST", "/v1/steps/claim", claim, keyed("k")).body)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        web.create(definition="work")
    for thread in threads:
        thread.join()
    assert len(set(answers)) == 1 and len(json.loads(answers[0])["steps"]) == 1, answers
    assert len(web.get("/v1/steps?status=running").json["steps"]) == 1


def test_a_repeated_approval_is_told_what_it_was_told(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/gate", {"steps": {"start": WORK["steps"]["gate"]}})
    id = web.create(definition="gate")
    path = "/v1/steps/%s.1/approve" % id
    for actor, status in (("ann", "pending"), ("bob", "done"), ("ann", "pending"), ("bob", "done")):
        assert web.expect(200, "POST", path, {"actor_ref": actor}, keyed(actor)).json == {"status": status}, actor


def test_what_cannot_be_told_twice_takes_no_key(shell):
    _, address = shell.serve()
    web = Web(address)
    body = {"scopes": "read"}
    web.refused("invalid-request", "POST", "/v1/tokens", body, keyed("k"))
    line = json.dumps({"operation": "token.create", "input": body})
    reply = web.expect(200, "POST", "/v1/batch", line, keyed("k"))
    assert json.loads(reply.body)["body"]["reason"] == "invalid-request", reply


def test_a_whole_batch_is_told_again_and_its_lines_are_done_once(shell):
    child, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/lamp", LAMP)
    lamp = web.create(definition="lamp")
    lines = [("instance.fire", {"instance_id": lamp, "action": "switch"}), ("instance.fire", {"instance_id": lamp, "action": "fly"}),
             ("instance.get", {"instance_id": lamp}), ("instance.create", {"definition": "lamp"})]
    text = "\n".join(json.dumps({"operation": name, "input": members}) for name, members in lines)
    first = web.expect(200, "POST", "/v1/batch", text, keyed("b"))
    assert [json.loads(line)["status"] for line in first.body.splitlines()] == [200, 409, 200, 201], first
    web.expect(200, "POST", "/v1/instances/%s/fire" % lamp, {"action": "switch"})
    again = web.expect(200, "POST", "/v1/batch", text, keyed("b"))
    assert again.body == first.body and again.headers["content-type"] == first.headers["content-type"] == "application/x-ndjson"
    web.refused("conflict", "POST", "/v1/batch", text + "\n" + text, keyed("b"))
    assert web.expect(200, "POST", "/v1/batch", "", keyed("e")).body == web.expect(200, "POST", "/v1/batch", "", keyed("e")).body == b""
    assert len(web.get("/v1/instances").json["instances"]) == 2 and len(web.get("/v1/instances/%s/history" % lamp).json["entries"]) == 2
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_lines_of_a_batch_have_keys_of_their_own(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/lamp", LAMP)
    lamp = web.create(definition="lamp")

    def batch(*lines, headers=None):
        text = "\n".join(json.dumps({"operation": name, "input": members}) for name, members in lines)
        reply = web.ask("POST", "/v1/batch", text, {"Content-Type": "application/x-ndjson", **(headers or {})})
        return reply if headers else [json.loads(line) for line in reply.body.splitlines()]

    fire = ("instance.fire", {"instance_id": lamp, "action": "switch", "idempotency_key": "f"})
    other = ("instance.fire", {"instance_id": lamp, "action": "break", "idempotency_key": "f"})
    create = ("instance.create", {"definition": "lamp", "idempotency_key": "c"})
    first = batch(fire, fire, create, create, other)
    assert [line["status"] for line in first] == [200, 200, 201, 201, 409], first
    assert first[0] == first[1] and first[2] == first[3]
    assert batch(fire, create) == [first[0], first[2]]
    assert web.expect(200, "POST", "/v1/instances/%s/fire" % lamp, {"action": "switch"}, keyed("f")).json == first[0]["body"]
    assert len(web.get("/v1/instances/%s/history" % lamp).json["entries"]) == 1
    assert json.loads(batch(fire, headers=keyed("whole")).body) == first[0]


def test_cancelling_many_with_a_key_is_told_again(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/lamp", LAMP)
    for _ in range(3):
        web.create(definition="lamp", correlation_id="C-9")
    body = {"correlation_id": "C-9"}
    first = web.expect(200, "POST", "/v1/cancel", body, keyed("k")).json
    assert first["cancelled"] == 3, first
    web.create(definition="lamp", correlation_id="C-9")
    assert web.expect(200, "POST", "/v1/cancel", body, keyed("k")).json == first
    assert web.expect(200, "POST", "/v1/cancel", body, keyed("l")).json["cancelled"] == 1
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


if __name__ == "__main__":
    harness.main(globals())
