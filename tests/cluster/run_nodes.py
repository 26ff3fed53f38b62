#!/usr/bin/env python3
"""Several nodes serve one store in PostgreSQL: any of them takes any request, one that dies is followed by another, and one that
is told to stop hands over without a lost call."""
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "http"), str(HERE.parent / "store")]
import harness  # noqa: E402
import run_postgres as one  # noqa: E402
from web import Web  # noqa: E402

LEASE = "1500"  # milliseconds: tests wait for leases in real time
WAIT = "name: w\ndo:\n  - {name: a, wait: {signal: go}}\n  - {name: b, tool: work, args: {n: 1}}\n"


class Node:
    def __init__(self, shell, store, *words, env=None):
        self.shell, self.store = shell, store
        self.child = shell.begin("serve", "--listen", "127.0.0.1:0", "--store", store, *words, env=env)
        found = re.search(r" on (http://127\.0\.0\.1:\d+) ", self.child.stdout.readline().decode())
        assert found, self.child.communicate()[1].decode()
        self.address = found.group(1)
        self.web = Web(self.address)

    def kill(self, number=signal.SIGKILL):
        self.child.send_signal(number)

    def stop(self):
        return self.shell.stop(self.child)


def nodes(shell, name, count, *words):
    store = one.url(name, lease=LEASE)
    return [Node(shell, store, *words) for _ in range(count)]


def seen(node):
    return node.web.get("/v1/nodes").json


def owner_of(node, shard=0):
    return seen(node)["shards"][shard]["node"]


def define(node, text):
    name = text.split("\n")[0].split(": ")[1]
    answer = node.web.ask("PUT", "/v1/definitions/" + name, text, headers={"Content-Type": "application/yaml"})
    assert answer.status in (200, 201), answer


def test_any_node_takes_any_request(shell):
    first, second = nodes(shell, "any", 2)
    define(second, one.ORDER)
    ids = [node.web.create(definition="order") for node in (first, second, first, second)]
    for node, id in zip((second, first, second, first), ids):
        assert node.web.post("/v1/instances/%s/fire" % id, {"action": "pay"}).status == 200
    for node in (first, second):
        listed = node.web.get("/v1/instances").json["instances"]
        assert sorted(row["instance_id"] for row in listed) == sorted(ids)
        assert {row["current_state"] for row in listed} == {"paid"}
        refused = node.web.post("/v1/instances/%s/fire" % ids[0], {"action": "pay"})
        assert refused.status == 409 and refused.json["reason"] == "terminal", refused
    first.stop()
    second.stop()
    assert shell.json("--store", first.store, "verify")["valid"]


def test_a_node_that_was_killed_is_followed_by_another_and_nothing_acknowledged_is_lost(shell):
    first, second = nodes(shell, "killed", 2)
    define(first, one.ORDER)
    ids = [first.web.create(definition="order") for _ in range(5)]
    first.kill()
    for id in ids:  # with a key the node repeats it by itself
        second.web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"}, {"Idempotency-Key": id})
    for id in ids:
        assert len(second.web.get("/v1/instances/%s/history" % id).json["entries"]) == 1
    second.stop()
    assert shell.json("--store", first.store, "verify")["valid"]


def test_a_node_that_is_told_to_stop_hands_over_without_a_lost_call(shell):
    first, second = nodes(shell, "handed", 2)
    define(first, one.ORDER)
    failed, done, stop = [], [], threading.Event()

    def ask(node):
        while not stop.is_set():
            answer = node.web.post("/v1/instances", {"definition": "order"})
            (done if answer.status == 201 else failed).append(answer)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(ask, second) for _ in range(4)]
        shell.wait_for(lambda: len(done) > 50)
        first.stop()
        count = len(done)
        shell.wait_for(lambda: len(done) > count + 50)
        stop.set()
        for task in tasks:
            task.result()
    assert not failed, failed[:3]
    assert second.web.get("/v1/instances/counts").json["total"] == len(done)
    second.stop()
    assert shell.json("--store", first.store, "verify")["valid"]


def test_a_forwarded_call_has_its_callers_rights_and_a_forged_one_is_refused(shell):
    store = one.url("rights", lease=LEASE)
    shell.pawl("--store", store, "define", shell.write("order.yaml", one.ORDER))
    tokens = {scope: shell.json("--store", store, "token", "create", "--name", scope, "--scope", scope)["token"]
              for scope in ("read", "write")}
    pair = [Node(shell, store, "--require-token") for _ in range(2)]
    for node in pair:  # one of them forwards
        for scope, status in (("write", 201), ("read", 403)):
            node.web.expect(status, "POST", "/v1/instances", {"definition": "order"}, {"Authorization": "Bearer " + tokens[scope]})
        node.web.expect(401, "POST", "/v1/instances", {"definition": "order"})
        name = pair[0].web.ask("GET", "/v1/nodes", None, {"Authorization": "Bearer " + tokens["read"]}).json["nodes"][0]["node"]
        forged = {"Pawl-Signed": "%s 1 1795000000000 %s %s" % (name, "0" * 64, "0" * 64), "Pawl-As": "-.-.-."}
        node.web.expect(401, "POST", "/v1/instances", {"definition": "order"}, forged)
    for node in pair:
        node.stop()


def worker(node, name, done, stop):
    """Claims at one node, whatever node owns the steps."""
    while not stop.is_set():
        answer = node.web.post("/v1/steps/claim", {"tools": ["work"], "worker": name, "max": 4, "wait": "1s"})
        assert answer.status == 200, answer
        steps = answer.json["steps"]
        if steps:
            results = [{"step_id": s["step_id"], "lease": s["lease"], "result": {"by": name}} for s in steps]
            turn = node.web.post("/v1/steps/complete", {"steps": results}).json["results"]
            done.extend(r["step_id"] for r in turn if r.get("status") == "done")


def spread(shell, name, count, shards=8):
    found = nodes(shell, name, count, "--shards", str(shards))
    shell.wait_for(lambda: all(0 < n["shards"] <= -(-shards // count) for n in seen(found[0])["nodes"]), 40)
    return found


def test_shards_spread_over_nodes_and_every_call_works_at_each(shell):
    three = spread(shell, "spread", 3)
    first = three[0]
    define(first, one.ORDER)
    define(three[1], WAIT)
    ids = [node.web.create(definition="order") for node in three for _ in range(6)]
    flows = [node.web.create(definition="w", correlation_id="c1") for node in three for _ in range(4)]
    for n, id in enumerate(ids):
        three[n % 3].web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"})
    for node in three:
        assert node.web.get("/v1/instances/counts").json["total"] == 30
        rows, after = [], ""
        while after is not None:
            page = node.web.get("/v1/instances?limit=7" + after).json
            rows += [row["instance_id"] for row in page["instances"]]
            after = "&after=" + page["next"] if page.get("next") else None
        assert sorted(rows) == sorted(ids + flows)
    reached = three[2].web.post("/v1/signals", {"name": "go", "payload": 1}, {"Idempotency-Key": "k"})
    assert reached.status == 202 and reached.json["delivered"] == 12, reached
    again = three[1].web.post("/v1/signals", {"name": "go", "payload": 1}, {"Idempotency-Key": "k"})
    assert again.json == reached.json, again
    lines = "\n".join(json.dumps({"operation": "instance.create", "input": {"definition": "order"}}) for _ in range(20))
    answers = first.web.post("/v1/batch", lines + "\n", {"Content-Type": "application/x-ndjson"})
    metrics = first.web.get("/metrics").body.decode()
    assert "pawl_node_shards " in metrics and "pawl_node_forwarded_total " in metrics, metrics
    assert [json.loads(line)["status"] for line in answers.body.splitlines()] == [201] * 20, answers
    done, stop = [], threading.Event()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(worker, node, "w%d" % n, done, stop) for n, node in enumerate(three[:2])]
        shell.wait_for(lambda: len(done) == 12 or any(task.done() for task in tasks))
        stop.set()
        for task in tasks:
            task.result()
    assert len(set(done)) == 12, done
    shell.wait_for(lambda: first.web.get("/v1/instances/counts?definition=w").json["by_state"] == {"completed": 12})
    for n in range(12):
        three[n % 3].web.create(definition="w", correlation_id="c2")
    three[2].kill()  # a broadcast or a cancel reaches every shard once, though a node dies
    found = first.web.post("/v1/cancel", {"correlation_id": "c2"}, {"Idempotency-Key": "cancel"})
    assert found.status == 200 and found.json["cancelled"] == 12, found
    for node in three[:2]:
        node.stop()
    assert shell.json("--store", first.store, "verify")["valid"]


# ---- What only the owner's memory has ----

LIMITED = "name: few\ndo:\n  - {name: b, tool: work, args: {n: 1}, concurrency: {max: 2}}\n"


def test_limits_count_at_the_next_owner_what_is_under_way(shell):
    first, second = nodes(shell, "limits", 2)
    define(first, LIMITED)
    for _ in range(4):
        first.web.create(definition="few")
    held = [claim(first, "w", "0s")[0] for _ in range(2)]
    assert claim(first, "w", "0s") == []
    first.kill()
    assert claim(second, "w", "0s") == [], "two are under way: the claim has waited for the new owner, which counts them"
    second.web.expect(200, "POST", "/v1/steps/%s/complete" % held[0]["step_id"], {"lease": held[0]["lease"], "result": 1})
    assert len(claim(second, "w", "10s")) == 1 and claim(second, "w", "0s") == []
    second.stop()


def test_a_node_that_owns_nothing_answers_as_the_owner_does(shell):
    owner, other = nodes(shell, "other", 2)
    define(owner, "name: v\ndo:\n  - {name: b, tool: work, args: {n: 1}}\n")
    for wrong in ({"tools": [], "worker": "w"}, {"tools": ["work"]}, {"tools": ["work"], "worker": "w", "max": 0}):
        other.web.refused("invalid-request", "POST", "/v1/steps/claim", wrong)
        other.web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [], "claim": wrong})
    other.web.refused("invalid-request", "POST", "/v1/steps/complete", {"steps": [1]})
    id = other.web.create(definition="v")
    assert other.web.post("/v1/steps/claim", {"tools": ["another"], "worker": "ann"}).json["steps"] == []
    for path in ("/v1/workers", "/v1/instances/%s/why" % id):
        here, there = (node.web.get(path).json for node in (owner, other))
        assert '"another"' in json.dumps(here) and '"another"' in json.dumps(there), (here, there)
    [step] = claim(other, "ann", "0s")
    turn = other.web.post("/v1/steps/complete", {"steps": [{"step_id": step["step_id"], "lease": step["lease"], "result": 1}],
                                                 "claim": {"tools": ["work"], "worker": "ann", "wait": "1ms"}})
    assert turn.json == {"results": [{"step_id": step["step_id"], "status": "done"}], "steps": []}, turn
    hello = {"pawl": 1, "build": "b", "types": [{"code": "echo", "version": 1, "timers": [], "signals": [], "vars": [], "replay": True}]}
    session = other.web.post("/v1/turns/offer", {"worker": "w", "hello": hello}).json["session"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        made = pool.submit(lambda: other.web.create(definition="echo"))
        [turn] = other.web.post("/v1/turns/claim", {"session": session, "wait": "30s"}).json["turns"]
        other.web.expect(200, "POST", "/v1/turns/%s/complete" % turn["turn_id"], {"lease": turn["lease"], "answer": {"end": 1, "value": 1}})
        assert other.web.get("/v1/instances/%s" % made.result()).status == 200
    for node in (owner, other):
        node.stop()


# ---- Clocks ----

WALL_CLOCK = pathlib.Path(os.environ.get("PAWL_BUILD", "build")).resolve() / "tests/wall_clock.so"


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_a_node_whose_clock_is_an_hour_ahead_or_behind_stamps_what_the_database_says(shell):
    store = one.url("clocks", lease=LEASE)
    three = [Node(shell, store, "--shards", "8")]
    for name, ahead in (("ahead", 3600), ("behind", -3600)):
        (shell.folder / name).write_text(str(ahead))
        three.append(Node(shell, store, env={"LD_PRELOAD": str(WALL_CLOCK), "WALL_CLOCK": str(shell.folder / name), "ASAN_OPTIONS":
                                             os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"}))
    shell.wait_for(lambda: all(1 < one["shards"] < 4 for one in seen(three[0])["nodes"]), 40)
    define(three[1], one.ORDER)
    begun = time.time()
    ids = [node.web.create(definition="order") for node in three for _ in range(4)]
    for n, id in enumerate(ids):
        three[n % 3].web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"})
    for id in ids:
        found = three[0].web.get("/v1/instances/%s" % id).json
        [entry] = three[0].web.get("/v1/instances/%s/history" % id).json["entries"]
        for at in (found["instantiated_at"], entry["fired_at"], entry["recorded_at"]):
            assert begun - 1 < seconds_of(at) < time.time() + 1, (id, at, begun)
    advice = shell.pawl("--store", three[1].address, "doctor").out
    assert "3 nodes up, 0 silent, 0 of another version, 0 shards without an owner" in advice, advice
    assert re.search(r"node clock +the node that answered is 3[56]\d{5} ms ahead of the database", advice), advice
    told = [seen(node)["clock_difference_ms"] for node in three]
    assert abs(told[0]) < 1000 and abs(told[1] + 3600000) < 1000 and abs(told[2] - 3600000) < 1000, told
    said = [node.stop()[1] for node in three]
    assert "clock.skew" not in said[0] and re.search(r"clock.skew: this machine.s clock is 3[56]\d{5} ms ahead of", said[1]), said
    assert shell.json("--store", store, "verify")["valid"]


# ---- Nodes that wait for each other ----

def paused(node, id, n):
    """With a key it needs a thread of the server until it is answered."""
    return node.web.post("/v1/instances/%s/%s" % (id, ("pause", "resume")[n % 2]), {}, {"Idempotency-Key": "%s-%d" % (id, n)}).status


def test_nodes_whose_calls_are_all_about_each_others_shards_answer_them_all(shell):
    two = spread(shell, "circle", 2)
    define(two[0], WAIT)
    ids = [[node.web.create(definition="w") for _ in range(4)] for node in two]  # each on a shard of its own
    for node in two:
        node.kill(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(96) as pool:
        tasks = [pool.submit(paused, two[n % 2], ids[(n + 1) % 2][n % 4], n) for n in range(96)]
        for node in two:  # now all of them are there at once
            node.kill(signal.SIGCONT)
        assert [task.result() for task in tasks] == [200] * 96
    for node in two:
        node.stop()


def claim(node, name, wait):
    return node.web.post("/v1/steps/claim", {"tools": ["work"], "worker": name, "max": 1, "wait": wait}).json["steps"]


def test_claims_that_wait_hold_up_no_other_call_and_hear_of_steps_at_once(shell):
    for count, shards in ((2, 1), (2, 8)):
        some = spread(shell, "claims%d" % shards, count, shards) if shards > 1 else nodes(shell, "claims%d" % shards, count)
        define(some[0], "name: v\ndo:\n  - {name: b, tool: work, args: {n: 1}}\n")
        define(some[0], one.ORDER)
        asked = next(node for node in some if owner_of(node) not in [one["node"] for one in seen(node)["nodes"] if one["this"]])
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            tasks = [pool.submit(claim, asked, "w%d" % n, "55s") for n in range(24)]
            shell.wait_for(lambda: "pawl_node_forwarded_total 0" not in asked.web.get("/metrics").body.decode())
            made = [asked.web.expect(201, "POST", "/v1/instances", {"definition": "order"}, {"Idempotency-Key": "k%d" % n}).json["instance_id"]
                    for n in range(2 * shards)]
            assert len(set(made)) == 2 * shards and not any(task.done() for task in tasks)
            for n in range(24):
                some[n % 2].web.create(definition="v")
            given = [step["step_id"] for task in tasks for step in task.result()]
        assert len(given) == len(set(given)) == 24, given
        for node in some:
            node.stop()


def test_a_node_where_claims_wait_hands_over_without_waiting_for_them(shell):
    first = nodes(shell, "waiting", 1, "--shards", "8")[0]
    define(first, "name: v\ndo:\n  - {name: b, tool: work, args: {n: 1}}\n")
    second = Node(shell, first.store)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(claim, first, "w%d" % n, "55s") for n in range(3)]
        shell.wait_for(lambda: all(0 < one["shards"] < 8 for one in seen(first)["nodes"]), 30)
        first.stop()
        assert [task.result() for task in tasks] == [[], [], []]
    assert [one["shards"] for one in seen(second)["nodes"] if one["this"]] == [8], seen(second)
    second.stop()


if __name__ == "__main__":
    harness.main(globals())
