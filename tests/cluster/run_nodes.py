#!/usr/bin/env python3
"""Several nodes serve one store in PostgreSQL: any of them takes any request, one that dies is followed by another, and one that
is told to stop hands over without a lost call."""
import concurrent.futures
import json
import os
import pathlib
import signal
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "http"), str(HERE.parent / "store")]
import harness  # noqa: E402
import run_postgres as one  # noqa: E402
from web import Web  # noqa: E402

LEASE = "1500"  # milliseconds: tests wait for leases in real time
WAIT = "name: w\ndo:\n  - {name: a, wait: {signal: go}}\n  - {name: b, tool: work, args: {n: 1}}\n"


class Node:
    def __init__(self, shell, store, *words):
        self.shell, self.store = shell, store
        try:
            self.child, self.address = shell.serve("--store", store, *words)
        except AssertionError:
            print(shell.children[-1].communicate()[1].decode())
            raise
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
    first, second = nodes(shell, "anynode", 2)
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


if __name__ == "__main__":
    harness.main(globals())
