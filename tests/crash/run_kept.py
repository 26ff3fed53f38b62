#!/usr/bin/env python3
"""Retention under load and kill -9: nothing is erased early or while it is on hold, nothing is lost, and in the end
nothing of what was due is in any file. Seconds a day; PAWL_TEST_LONG=1 goes on for PAWL_TEST_SECONDS (1800)."""
import datetime
import json
import os
import pathlib
import random
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "http")]
from run_amend import verify_twice  # noqa: E402
from run_erase import ORDER, found_in  # noqa: E402
from run_flows import yaml  # noqa: E402
from web import Web, harness  # noqa: E402

LONG = os.environ.get("PAWL_TEST_LONG")
SECONDS = float(os.environ.get("PAWL_TEST_SECONDS", 1800)) if LONG else 2
KEPT = ORDER + "retention: {after_end: 1s, then: erase}\n"
AT_ONCE = 200 if LONG else 20


def batch(web, operations):
    text = "\n".join(json.dumps({"operation": name, "input": input}) for name, input in operations)
    reply = web.ask("POST", "/v1/batch", text, {"Content-Type": "application/x-ndjson"})
    return [json.loads(line)["body"] for line in reply.body.decode().splitlines()] if reply.status == 200 else []


def make(web, made, secret):
    """Orders that end at once; one of ten is put on hold first. What was acknowledged is in `made`: id -> is it on hold?"""
    created = batch(web, [("instance.create", {"definition": "order", "input": {"card": secret}}) for _ in range(AT_ONCE)])
    ids = [one["instance_id"] for one in created if "instance_id" in one]
    made.update({id: False for id in ids})
    for id in ids[::10]:
        if web.ask("POST", "/v1/instances/%s/hold" % id, {"reason": "case"}).status == 200:
            made[id] = True
    for action in ("pay", "ship"):
        batch(web, [("instance.fire", {"instance_id": id, "action": action, "payload": {"said": secret}}) for id in ids])


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def instances(web, query=""):
    after, found = "", []
    while after is not None:
        page = web.get("/v1/instances?limit=1000&order=oldest%s%s" % (query, after and "&after=" + after)).json
        assert "instances" in page, page
        found, after = found + page["instances"], page["next"]
    return found


def on_hold(web):
    return {one["instance_id"] for one in web.get("/v1/holds").json["holds"]}


def settle(shell, web):
    """Ends what a death left under way, and waits until all that is due is erased."""
    left = [one["instance_id"] for one in instances(web, "&active=true")]
    for action in ("pay", "ship"):
        batch(web, [("instance.fire", {"instance_id": id, "action": action}) for id in left])
    held = on_hold(web)
    shell.wait_for(lambda: all(("erased" in one) == (one["instance_id"] not in held) for one in instances(web)))


def check(web, made):
    found = {one["instance_id"]: one for one in instances(web)}
    assert set(made) <= set(found), "what was acknowledged is lost"
    for got in found.values():
        assert got["current_state"] == "shipped" and got["next_sequence_number"] == 3, got
        if "erased" in got:
            assert instant(got["erased"]["erased_at"]) - instant(got["updated_at"]) >= 1, "early: %r" % got
            assert got["input"] is None, got


def test_what_is_due_is_erased_through_kills_and_nothing_else_is(shell):
    seed = int(os.environ.get("PAWL_TEST_SEED", random.randrange(1 << 30) if LONG else 7))
    dice, made, round, sizes = random.Random(seed), {}, 0, []
    child, address = shell.serve()
    yaml(Web(address), "order", KEPT)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        web, round = Web(address), round + 1
        deadline = time.monotonic() + dice.uniform(0.5, 2)
        while time.monotonic() < deadline:
            make(web, made, "zzqsoak")
        child.send_signal(signal.SIGKILL)
        child.communicate()
        child, address = shell.serve()
        sizes.append((len(made), (shell.folder / "pawl.db").stat().st_size))
    web = Web(address)
    settle(shell, web)
    check(web, made)
    held = on_hold(web)
    assert {id for id, is_held in made.items() if is_held} <= held, "a hold that was acknowledged is lost"
    for id in held:
        web.expect(200, "POST", "/v1/instances/%s/lift" % id, {})
    settle(shell, web)
    check(web, made)
    shell.wait_for(lambda: found_in(shell, "zzqsoak") == [])
    verify_twice(shell, web)
    print("# %d instances, %d kills, seed %d, sizes %r" % (len(made), round, seed, sizes[-1]))


if __name__ == "__main__":
    harness.main(globals())
