#!/usr/bin/env python3
"""A store of eight shards behaves like one: each instance once in every list, each step given once, each signal delivered once,
each event once over a restart; every shard is a store that both verifiers check. Then a sample of the other HTTP suites runs
against eight shards, with PAWL_TEST_LONG=1 more of them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

from sse import Stream
from web import Web, harness

N = 8
HERE = pathlib.Path(__file__).resolve().parent
LONG = bool(os.environ.get("PAWL_TEST_LONG"))
ORDER = """name: order
states: [new, paid, dropped]
initial_state: new
terminal_states: [paid, dropped]
terminal_kinds: {paid: success, dropped: cancel}
transitions:
  - {from_state: new, action: pay, to_state: paid}
  - {from_state: new, action: drop, to_state: dropped}
"""
WORK = "name: work\ndo:\n  - {name: do, tool: elsewhere}\n"
HEAR = "name: hear\ndo:\n  - {name: wait, wait: {signal: go}}\n"
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def number_of(id):
    number = 0
    for digit in id[:10]:
        number = number * 32 + DIGITS.index(digit)
    return number


def shard_of(id):
    return number_of(id) % N


def server(shell, *words):
    child, address = shell.serve("--shards", str(N), *words)
    web = Web(address)
    web.child = child
    return web


def define(web, *texts):
    for text in texts:
        name = text["name"] if isinstance(text, dict) else re.match(r"name: (\w+)", text).group(1)
        web.expect(201, "PUT", "/v1/definitions/" + name, text, None if isinstance(text, dict) else {"Content-Type": "application/yaml"})


def files(shell):
    return [shell.folder / "pawl.db", *(shell.folder / "pawl.db-shards" / ("%d.db" % i) for i in range(1, N))]


def of_files():
    """What this test holds is about the files of shards."""
    if os.environ.get("PAWL_TEST_STORE") == "postgres":
        raise harness.Skip("of shards that are files")


def verified(shell):
    """Both verifiers, each shard and the whole; the second reads files."""
    for path in [] if os.environ.get("PAWL_TEST_STORE") == "postgres" else files(shell):
        done = subprocess.run([sys.executable, str(harness.ROOT / "tools" / "verify.py"), str(path)], capture_output=True, timeout=60)
        assert done.returncode == 0, (path, done.stdout)
    answer = shell.json("verify")
    assert answer["valid"] and [shard["shard"] for shard in answer["shards"]] == list(range(N)), answer
    return answer


def everything(web, path, member, key, limit=3):
    """All pages of a list, and that none is told twice."""
    seen, after = [], ""
    while after is not None:
        page = web.get("%slimit=%d%s" % (path, limit, "&after=" + after if after else "")).json
        seen += [item[key] for item in page[member]]
        after = page["next"]
    assert len(set(seen)) == len(seen), seen
    return seen


def test_instances_spread_over_all_shards_and_lists_are_in_the_order_of_creation(shell):
    web = server(shell)
    define(web, ORDER)
    made = [web.create(definition="order") for _ in range(3 * N)]
    assert sorted({shard_of(id) for id in made}) == list(range(N)) and made == sorted(made)
    assert everything(web, "/v1/instances?order=oldest&", "instances", "instance_id") == made
    assert everything(web, "/v1/instances?", "instances", "instance_id") == made[::-1]
    assert web.get("/v1/instances/counts").json["total"] == 3 * N
    assert web.get("/v1/info").json["instances"] == 3 * N
    shell.stop(web.child)
    verified(shell)


def test_a_page_goes_on_where_it_stopped_whatever_is_created_meanwhile(shell):
    web = server(shell)
    define(web, ORDER)
    made = [web.create(definition="order") for _ in range(N)]
    seen, after = [], ""
    while after is not None:
        page = web.get("/v1/instances?order=oldest&limit=3" + ("&after=" + after if after else "")).json
        seen += [one["instance_id"] for one in page["instances"]]
        after = page["next"]
        if after is not None and len(made) < 3 * N:
            made += [web.create(definition="order") for _ in range(2)]
    assert sorted(seen) == sorted(made)


def test_a_cursor_that_was_not_given_out_is_refused_and_never_crashes(shell):
    web = server(shell)
    define(web, ORDER)
    for _ in range(2 * N):
        web.create(definition="order")
    good = web.get("/v1/instances?limit=5").json["next"]
    bad = ["x", "v", good[:-1], good + "0", good + "Z" * 3000, good.lower(), "0" * 26, "v10", good.replace("v", "w")]
    for path in ("/v1/instances", "/v1/gates", "/v1/steps", "/v1/events"):
        for text in bad:
            web.refused("invalid-query", "GET", "%s?after=%s" % (path, text))
    assert web.get("/v1/instances?after=" + good).status == 200


def test_a_repeated_key_is_answered_alike_and_its_misuse_for_the_same_call_is_a_conflict(shell):
    web = server(shell)
    define(web, ORDER)
    for i in range(2 * N):
        name = {"Idempotency-Key": "key-%d" % i}
        first = web.expect(201, "POST", "/v1/instances", {"definition": "order"}, name).json["instance_id"]
        assert web.expect(201, "POST", "/v1/instances", {"definition": "order"}, name).json["instance_id"] == first
        web.refused("conflict", "POST", "/v1/instances", {"definition": "order", "subject_ref": "other"}, name)
    assert web.get("/v1/instances/counts").json["total"] == 2 * N


def test_a_broadcast_and_a_cancel_reach_every_shard_and_are_summed(shell):
    web = server(shell)
    define(web, HEAR, ORDER)
    made = [web.create(definition="hear", correlation_id="c") for _ in range(2 * N)]
    name = {"Idempotency-Key": "once"}
    assert web.post("/v1/signals", {"name": "go"}, name).json == {"delivered": 2 * N}
    assert web.post("/v1/signals", {"name": "go"}, name).json == {"delivered": 2 * N}
    assert all(web.get("/v1/instances/" + id).json["status"] == "completed" for id in made)
    for _ in range(N + 2):
        web.create(definition="order", correlation_id="c")
    assert web.post("/v1/cancel", {"correlation_id": "c"}).json == {"cancelled": N + 2, "refused": 2 * N}
    shell.stop(web.child)
    verified(shell)


def test_a_definition_has_one_version_everywhere_and_is_recorded_where_it_is_used(shell):
    web = server(shell)
    define(web, ORDER)
    define(web, ORDER + "# second\n")
    first = [web.create(definition="order@1") for _ in range(3)]
    newest = [web.create(definition="order") for _ in range(N)]
    assert {web.get("/v1/instances/" + id).json["version"] for id in newest} == {2}
    assert {web.get("/v1/instances/" + id).json["version"] for id in first} == {1}
    define(web, ORDER + "# third\n")
    assert web.get("/v1/instances/" + web.create(definition="order")).json["version"] == 3
    web.refused("not-known", "POST", "/v1/instances", {"definition": "order@4"})
    shell.stop(web.child)
    verified(shell)


def test_a_claim_takes_from_any_shard_and_never_more_than_it_asked_for(shell):
    web = server(shell)
    define(web, WORK)
    made = [web.create(definition="work") for _ in range(3 * N)]
    given = []
    while len(given) < 3 * N:
        steps = web.post("/v1/steps/claim", {"tools": ["elsewhere"], "worker": "w", "max": 5}).json["steps"]
        assert 0 < len(steps) <= 5, steps
        given += steps
    assert sorted(step["instance_id"] for step in given) == sorted(made)
    results = [{"step_id": step["step_id"], "lease": step["lease"], "result": 1} for step in given]
    answer = web.post("/v1/steps/complete", {"steps": results}).json
    assert [one["status"] for one in answer["results"]] == ["done"] * 3 * N, answer
    assert web.get("/v1/instances/counts").json["by_status"] == {"completed": 3 * N}


def test_claims_that_wait_are_given_each_step_once_and_as_many_as_there_are(shell):
    web = server(shell)
    define(web, WORK)
    given, lock = [], threading.Lock()

    def wait():
        steps = web.post("/v1/steps/claim", {"tools": ["elsewhere"], "worker": "w", "wait": "60s", "max": 1}).json["steps"]
        with lock:
            given.extend(steps)

    threads = [threading.Thread(target=wait) for _ in range(N)]
    for thread in threads:
        thread.start()
    shell.wait_for(lambda: b"pawl_claims_waiting %d\n" % N in web.get("/metrics").body)
    made = [web.create(definition="work") for _ in range(N)]
    for thread in threads:
        thread.join()
    assert sorted(step["instance_id"] for step in given) == sorted(made)
    assert web.post("/v1/steps/claim", {"tools": ["elsewhere"], "worker": "w"}).json["steps"] == []


def told(stream, count):
    return [stream.event(("created", "entry")) for _ in range(count)]


def test_a_stream_has_every_entry_once_over_a_restart_and_each_instances_in_order(shell):
    web = server(shell)
    define(web, ORDER)
    made = [web.create(definition="order") for _ in range(2 * N)]
    stream = Stream(web, "/v1/events?from=start").open()
    seen = told(stream, 2 * N)
    for id in made:
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"})
    seen += told(stream, N)
    shell.stop(web.child)
    web = server(shell)
    again = Stream(web, "/v1/events", last=seen[-1].id).open()
    seen += told(again, N)
    all_ = [(e.kind, e.entry["instance_id"]) for e in seen]
    assert len(set(all_)) == len(all_) == 4 * N
    assert all(all_.index(("created", id)) < all_.index(("entry", id)) for id in made)
    web.expect(200, "GET", "/v1/instances/" + made[0])


def test_an_alarm_lies_where_it_acts_and_all_are_listed_in_order_of_time(shell):
    web = server(shell, "--test")
    define(web, ORDER)
    made = [web.create(definition="order") for _ in range(N)]
    set_ = [web.post("/v1/alarms", {"after": "%dh" % (N - i), "operation": "instance.fire", "input": {"instance_id": id, "action": "pay"}}).json["alarm_id"]
            for i, id in enumerate(made)]
    assert [int(alarm[:4], 16) % N for alarm in set_] == [shard_of(id) for id in made]
    assert [one["alarm_id"] for one in web.get("/v1/alarms").json["alarms"]] == set_[::-1]
    web.expect(200, "DELETE", "/v1/alarms/" + set_[0])
    web.post("/v1/alarms", {"after": "30m", "operation": "instance.create", "input": {"definition": "order"}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "24h"})
    assert web.get("/v1/instances/counts").json["by_state"] == {"new": 2, "paid": N - 1}
    assert web.get("/v1/alarms").json["alarms"] == []
    shell.stop(web.child)
    verified(shell)


def test_an_alarm_that_creates_does_so_once_also_where_its_definition_was_never_used(shell):
    web = server(shell, "--test")
    define(web, ORDER, HEAR)
    for _ in range(2 * N):
        web.post("/v1/alarms", {"after": "1h", "operation": "instance.create", "input": {"definition": "hear"}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    assert web.get("/v1/instances/counts").json["total"] == 2 * N
    assert web.get("/v1/alarms").json["alarms"] == []
    shell.stop(web.child)
    verified(shell)


def test_a_machine_learns_of_the_end_of_what_it_started_in_each_shard(shell):
    """`on_end`: once for each machine; and both verifiers take the records behind the creations."""
    web = server(shell)
    define(web, {"name": "work", "do": [{"wait": {"signal": "go"}}]},
           {"name": "lot", "states": ["new", "busy", "good"], "initial_state": "new", "terminal_states": ["good"],
            "terminal_kinds": {"good": "success"}, "transitions": [
                {"from_state": "new", "action": "go", "to_state": "busy", "starts": {"definition": "work", "on_end": {"completed": "fr\u00e4\u201d\n"}}},
                {"from_state": "busy", "action": "fr\u00e4\u201d\n", "to_state": "good", "by": "engine", "requires_reason": True}]})
    made = [web.create(definition="lot") for _ in range(2 * N)]
    for id in made:
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "go"})
    shell.wait_for(lambda: web.get("/v1/instances/counts?definition=work").json["total"] == 2 * N)
    web.expect(202, "POST", "/v1/signals", {"name": "go"})
    shell.wait_for(lambda: web.get("/v1/instances/counts?definition=lot").json["by_state"] == {"good": 2 * N})
    assert {shard_of(id) for id in made} == set(range(N))
    assert all(len(web.get("/v1/instances/%s/history" % id).json["entries"]) == 2 for id in made)
    shell.stop(web.child)
    verified(shell)


def test_tokens_hold_whatever_shard_a_call_goes_to(shell):
    web = server(shell, "--require-token")
    token = shell.json("token", "create", "--scope", "read,write:order,define")["token"]
    name = {"Authorization": "Bearer " + token}
    web.expect(201, "PUT", "/v1/definitions/order", ORDER, {**name, "Content-Type": "application/yaml"})
    for _ in range(N):
        id = web.expect(201, "POST", "/v1/instances", {"definition": "order"}, name).json["instance_id"]
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"}, name)
    web.refused("unauthenticated", "GET", "/v1/instances/" + id)


def test_what_is_no_store_of_eight_is_refused_by_name(shell):
    of_files()
    web = server(shell)
    shell.stop(web.child)
    for words, wanted in ((("serve", "--shards", "4"), "expected 8"), (("serve", "--shards", "3"), "power of two"),
                          (("--store", "sqlite:pawl.db-shards/3.db", "list"), "shard 3")):
        answer = shell.pawl(*words, expect=None)
        assert answer.code != 0 and wanted in answer.err, answer
    shutil.copy(files(shell)[2], files(shell)[5])
    answer = shell.pawl("list", expect=None)
    assert answer.code != 0 and "shard 5" in answer.err and "shard 2" in answer.err, answer


def test_a_shard_whose_file_is_gone_is_not_made_again_empty(shell):
    of_files()
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/order", ORDER, {"Content-Type": "application/yaml"})
    shell.stop(web.child)
    lost = files(shell)[3]
    lost.rename(lost.with_name("kept"))
    refused = shell.pawl("serve", "--listen", "127.0.0.1:0", expect=None)
    assert refused.code != 0 and lost.name in refused.err, refused
    lost.with_name("kept").rename(lost)
    web = server(shell)
    assert web.get("/v1/definitions/order").status == 200
    shell.stop(web.child)


def test_a_server_that_is_killed_comes_back_with_all_it_had_acknowledged(shell):
    web = server(shell)
    define(web, ORDER)
    made = [web.create(definition="order") for _ in range(2 * N)]
    for id in made[::2]:
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"})
    web.child.kill()
    web.child.wait()
    web = server(shell)
    assert web.get("/v1/instances/counts").json["by_state"] == {"new": N, "paid": N}
    shell.stop(web.child)
    verified(shell)


# ---- The other suites ----

DAILY = ["run_pages.py"]
EVERY = [*DAILY, *("run_%s.py" % name for name in (
    "alarms", "amend", "batch", "cancel", "causes", "check", "claims", "clock", "contract", "events", "family", "flows", "keys",
    "pause", "redrive", "starts", "tokens", "trace", "view"))]


def run_suite(name):
    env = {**os.environ, "PAWL_TEST_SHARDS": str(N)}
    env.pop("PAWL_TEST_LONG", None)
    done = subprocess.run([sys.executable, str(HERE / name)], capture_output=True, env=env, timeout=1800)
    assert done.returncode == 0, "%s: %s" % (name, done.stdout.decode()[-3000:])


def test_the_other_suites_pass_against_eight_shards(shell):
    if os.environ.get("PAWL_TEST_SHARDS"):
        raise harness.Skip("it is run by itself")
    for name in EVERY if LONG else DAILY:
        run_suite(name)


if __name__ == "__main__":
    harness.main(dict(globals()))
