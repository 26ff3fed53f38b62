#!/usr/bin/env python3
"""Workers elsewhere take the turns of code over HTTP: turn.offer, turn.claim, turn.complete."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http")]
from web import Web, harness  # noqa: E402

ROOT = harness.ROOT
os.environ["PYTHONPATH"] = str(ROOT / "clients/python")
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
WORKFLOWS = HERE / "durable_python.py"
TYPE = {"code": "echo", "version": 1, "timers": [], "signals": ["go"], "vars": [], "replay": True}
HELLO = {"pawl": 1, "build": "b1", "types": [TYPE]}
WAITS = {"end": 0, "keeps": 1, "signals": [["await", "go", 0]]}


def worker(shell, address, module=WORKFLOWS):
    child = subprocess.Popen([sys.executable, "-m", "pawl_client", str(module), "--server", "http://" + address.removeprefix("http://")],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shell.children.append(child)
    web = Web(address)
    shell.wait_for(lambda: web.ask("POST", "/v1/instances", {"definition": "child", "input": {"n": 1}}).status == 201)
    return child


def end(child, how=signal.SIGTERM):
    child.send_signal(how)
    child.wait(timeout=60)


def offer(web, hello=HELLO, worker="w1"):
    return web.expect(200, "POST", "/v1/turns/offer", {"worker": worker, "hello": hello}).json["session"]


def claim(web, session, expect=200, **more):
    found = web.expect(expect, "POST", "/v1/turns/claim", {"session": session, "wait": "20s", **more}).json
    return found["turns"][0] if expect == 200 and found["turns"] else found


def complete(web, turn, answer, expect=200):
    return web.expect(expect, "POST", "/v1/turns/%s/complete" % turn["turn_id"], {"lease": turn["lease"], "answer": answer})


def later(shell, *words):
    """A call that waits for its turn, in a process of its own."""
    return subprocess.Popen([os.path.abspath(harness.PAWL), *words], cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=shell.environment())


def get(web, id):
    return web.get("/v1/instances/" + id).json


def history(web, id):
    """What is not an id, a time or a hash of this very store."""
    text = json.dumps([{key: one[key] for key in ("sequence_number", "action", "payload", "step", "reason") if key in one}
                       for one in web.get("/v1/instances/%s/history" % id).json["entries"]])
    return re.sub(r"[0-9A-HJKMNP-TV-Z]{26}", "ID", text)


def play(web, shell):
    """One run of many types; the histories by type."""
    made = {"order": web.create(definition="order", input={"lines": [{"sku": "a", "count": 2}]}),
            "invoice": web.create(definition="invoice", input={"cents": 500}),
            "ticker": web.create(definition="ticker", input={"most": 8}),
            "parent": web.create(definition="parent", input={"count": 2}),
            "helpers": web.create(definition="helpers", input={})}
    made["sender"] = web.create(definition="sender", input={"to": made["invoice"]})
    for _ in range(12):
        shell.wait_for(lambda: not web.get("/v1/steps").json["steps"] or get(web, made["order"])["status"] != "running" or
                       "pending" in json.dumps(web.get("/v1/steps").json))
        web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    web.expect(202, "POST", "/v1/instances/%s/signals" % made["invoice"], {"name": "paid", "payload": 400})
    for id in made.values():
        shell.wait_for(lambda id=id: get(web, id)["status"] == "completed")
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    return {name: history(web, id) for name, id in made.items()}


def test_a_worker_elsewhere_makes_the_same_history_as_a_module(shell):
    child, address = shell.serve("--test", "--module", str(WORKFLOWS))
    here = play(Web(address), shell)
    shell.stop(child)
    shell.pawl("--store", "sqlite:other.db", "init")
    child, address = shell.serve("--test", "--store", "sqlite:other.db")
    one = worker(shell, address)
    web = Web(address)
    there = play(web, shell)
    end(one)
    for name in here:
        assert here[name] == there[name], (name, here[name], there[name])


def test_a_turn_whose_worker_dies_is_given_to_another_one_and_the_late_answer_is_lease_lost(shell):
    child, address = shell.serve()
    web = Web(address)
    first, second = offer(web), offer(web, worker="w2")
    starting = later(shell, "start", "echo")
    turn = claim(web, first, lease="300ms")
    assert turn["request"]["type"] == "echo" and turn["request"]["fresh"][0]["kind"] == 1, turn
    again = claim(web, second)
    assert again["turn_id"] == turn["turn_id"] and again["request"]["fresh"] == turn["request"]["fresh"], (turn, again)
    web.refused("lease-lost", "POST", "/v1/turns/%s/complete" % turn["turn_id"], {"lease": turn["lease"], "answer": {"end": 1, "value": "late"}})
    complete(web, again, {"end": 1, "value": "in time"})
    id = starting.communicate(timeout=60)[0].decode().split()[0]
    assert get(web, id)["result"] == "in time"
    web.refused("lease-lost", "POST", "/v1/turns/%s/complete" % again["turn_id"], {"lease": again["lease"], "answer": {"end": 1}})


def test_a_turn_that_three_workers_do_not_answer_pauses_its_instance(shell):
    child, address = shell.serve("--test")
    web = Web(address)
    session = offer(web)
    starting = later(shell, "start", "echo")
    complete(web, claim(web, session), {"end": 0, "keeps": 1, "timers": [["arm", "late", 1, 0]]})
    id = starting.communicate(timeout=60)[0].decode().split()[0]
    moving = threading.Thread(target=lambda: Web(address).expect(200, "POST", "/v1/test/advance", {"by": "1s"}))
    moving.start()
    for _ in range(3):
        assert claim(web, session, lease="100ms")["request"]["fresh"][0]["kind"] == 2
    moving.join(timeout=60)
    assert get(web, id)["status"] == "paused"
    assert "3 workers in turn did not answer" in json.dumps(web.get("/v1/instances/%s/why" % id).json)
    resuming = later(shell, "resume", id)
    complete(web, claim(web, session), {"end": 1, "value": 7})
    resuming.wait(timeout=60)
    shell.wait_for(lambda: get(web, id)["status"] == "completed")


def test_without_a_worker_events_wait_and_go_on_when_one_comes(shell):
    child, address = shell.serve("--test")
    web = Web(address)
    one = worker(shell, address)
    id = web.create(definition="ticker", input={"most": 5})
    end(one)
    shell.stop(child)
    child, address = shell.serve("--test")
    web = Web(address)
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    assert get(web, id)["status"] != "completed"
    one = worker(shell, address)
    while get(web, id)["status"] != "completed":
        web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    assert get(web, id)["result"] == 5
    end(one)


def test_what_does_not_match_is_refused_by_name(shell):
    flows = shell.write("mine.py", "from pawl_client import workflow\n@workflow\nasync def mine() -> int:\n    return 1\n")
    child, address = shell.serve("--module", flows)
    web = Web(address)
    session = offer(web)

    def refused(words, **change):
        found = web.refused("invalid-request", "POST", "/v1/turns/offer", {"worker": "w2", "hello": {**HELLO, **change}})
        assert words in found.json["detail"], found.json
    refused("speaks version 2 of the turn protocol", pawl=2)
    refused("'build'", build="")
    refused("in another build (b1", build="b2")
    refused("in another build", types=[{**TYPE, "signals": ["go", "stop"]}])
    refused("run by this server itself", types=[{**TYPE, "code": "mine"}])
    refused("expected a type as an object", types=[7])
    refused("expected one type or more", types=[])
    newer = offer(web, {**HELLO, "build": "b2", "types": [{**TYPE, "version": 2}]}, worker="w3")
    refused("version 1 of the code type 'echo' is offered, and version 2 is in force")
    found = web.refused("not-known", "POST", "/v1/turns/claim", {"session": session})
    assert "not in force" in found.json["detail"] or "in force any more" in found.json["detail"], found.json
    assert claim(web, newer, wait="0s") == {"results": [], "turns": []}
    web.refused("not-known", "POST", "/v1/turns/claim", {"session": "0" * 32})
    web.refused("invalid-request", "POST", "/v1/turns/claim", {"session": newer, "lease": "5m"})
    web.refused("invalid-request", "POST", "/v1/turns/claim", {"session": newer, "max": 0})


def test_an_answer_that_cannot_be_read_changes_nothing(shell):
    child, address = shell.serve()
    web = Web(address)
    session = offer(web)
    for answer in ({"end": 9}, {"calls": 7, "end": 0}, {"end": 0, "timers": [["send", "x", {}]]}, {}):
        starting = later(shell, "start", "echo")
        complete(web, claim(web, session), answer)
        assert starting.wait(timeout=60) != 0
    assert not [row for row in web.get("/v1/instances").json["instances"] if row["definition"] == "echo"]


def test_what_a_worker_has_in_memory_is_not_sent_again_and_what_it_forgot_is(shell):
    child, address = shell.serve()
    web = Web(address)
    session = offer(web)
    starting = later(shell, "start", "echo")
    first = claim(web, session)
    complete(web, first, WAITS)
    id = starting.communicate(timeout=60)[0].decode().split()[0]
    sending = later(shell, "signal", id, "go", "--payload", "1")
    turn = claim(web, session)
    assert turn["request"]["have"] == first["request"]["keep"] and "events" not in turn["request"], turn
    complete(web, turn, {"need": 1})
    whole = claim(web, session)
    assert len(whole["request"]["events"]) == 1 and "have" not in whole["request"], whole
    complete(web, whole, {"end": 1, "value": 1})
    assert sending.wait(timeout=60) == 0


def test_workers_share_types_and_one_that_is_killed_loses_nothing(shell):
    child, address = shell.serve()
    web = Web(address)
    workers = [worker(shell, address) for _ in range(3)]
    ids = [web.create(definition="parent", input={"count": 1}) for _ in range(6)]
    end(workers[0], signal.SIGKILL)
    ids += [web.create(definition="parent", input={"count": 1}) for _ in range(6)]
    end(workers[1], signal.SIGKILL)
    for id in ids:
        shell.wait_for(lambda id=id: get(web, id)["status"] == "completed", seconds=120)
    end(workers[2])
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_an_offer_needs_the_scope_define_and_a_claim_the_scope_work(shell):
    tokens = {scope: shell.json("token", "create", "--scope", scope)["token"] for scope in ("define", "work", "read")}
    child, address = shell.serve()
    web = Web(address)

    def asked(scope, path, body):
        return web.ask("POST", path, body, {"Authorization": "Bearer " + tokens[scope]}).status
    offered = {"worker": "w1", "hello": HELLO}
    assert [asked(scope, "/v1/turns/offer", offered) for scope in ("define", "work", "read")] == [200, 403, 403]
    assert [asked(scope, "/v1/turns/claim", {"session": "x"}) for scope in ("work", "define", "read")] == [404, 403, 403]


if __name__ == "__main__":
    harness.main(globals())
