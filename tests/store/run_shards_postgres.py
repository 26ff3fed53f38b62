#!/usr/bin/env python3
"""Several shards in one schema of PostgreSQL: their number is fixed, a node has few connections however many there are, and goes
on when the database was away. Then a sample of the tests over eight shards in files runs over it; with PAWL_TEST_LONG=1 all of
them, and the other HTTP suites."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "http")]
import harness  # noqa: E402
import postgres  # noqa: E402
import run_postgres as one  # noqa: E402
import run_shards as files  # noqa: E402
from web import Web  # noqa: E402

N = files.N
LONG = bool(os.environ.get("PAWL_TEST_LONG"))


def serve(shell, store, *words):
    child, address = shell.serve("--store", store, *words)
    web = Web(address)
    web.child = child
    return web


def fill(web, count=2 * N):
    files.define(web, one.ORDER)
    return [web.create(definition="order") for _ in range(count)]


# ---- Their number ----

def test_the_number_of_shards_is_fixed_when_a_store_is_made_and_found_again(shell):
    store = one.url("fixed")
    web = serve(shell, store, "--shards", str(N))
    ids = fill(web)
    assert {files.shard_of(id) for id in ids} == set(range(N)), ids
    shell.stop(web.child)
    web = serve(shell, store)
    assert web.get("/v1/info").json["shards"] == N
    assert web.get("/v1/instances/counts").json["total"] == len(ids)
    shell.stop(web.child)
    for words, wanted in ((("serve", "--shards", "4"), "expected 8"), (("serve", "--shards", "3"), "power of two")):
        answer = shell.pawl("--store", store, *words, expect=None)
        assert answer.code != 0 and wanted in answer.err, answer
    for shard, wanted in ((3, "this is shard 3 of a store that has 8"), (8, "the store has shards 0 to 7, found #8")):
        answer = shell.pawl("--store", "%s#%d" % (store, shard), "list", expect=None)
        assert answer.code != 0 and wanted in answer.err, answer
    assert len(shell.json("--store", store, "list")["instances"]) == len(ids)  # without a server, too


def test_a_store_of_one_shard_is_not_opened_as_several(shell):
    store = one.url("single")
    shell.pawl("--store", store, "init")
    answer = shell.pawl("--store", store, "serve", "--shards", "8", expect=None)
    assert answer.code != 0 and "expected 1" in answer.err, answer


def test_a_shard_without_its_row_is_refused_by_name(shell):
    store = one.url("rowless")
    shell.stop(serve(shell, store, "--shards", "8").child)
    one.cluster().sql("DELETE FROM rowless.pawl_shard WHERE shard = 5")
    answer = shell.pawl("--store", store, "serve", expect=None)
    assert answer.code != 0 and "shard 5 has no row in pawl_shard" in answer.err, answer


# ---- Connections, and a database that is away ----

def test_a_node_of_64_shards_has_nine_connections_at_most(shell):
    web = serve(shell, one.url("many"), "--shards", "64")
    ids = fill(web, 128)
    assert {files.number_of(id) % 64 for id in ids} == set(range(64))
    held = int(one.cluster().sql("SELECT count(*) FROM pg_stat_activity a JOIN many.pawl_node n"
                                 " ON a.application_name = 'pawl/' || n.node"))
    assert 1 <= held <= 9, held
    assert one.cluster().sql("SELECT count(*) FROM many.pawl_node") == "1"
    assert one.cluster().sql("SELECT count(DISTINCT node) || ' ' || count(*) FROM many.pawl_shard WHERE epoch = 1") == "1 64"
    shell.stop(web.child)
    assert one.cluster().sql("SELECT count(*) FROM many.pawl_node") == "0"
    assert one.cluster().sql("SELECT count(node) FROM many.pawl_shard") == "0"


def test_a_node_of_eight_shards_goes_on_when_postgresql_was_killed_and_is_back(shell):
    with postgres.private({"fsync": "on", "synchronous_commit": "on"}) as own:
        web = serve(shell, own.url + "&schema=back", "--shards", str(N))
        ids = fill(web)
        own.kill()
        for id in ids[:2]:
            refused = web.post("/v1/instances/%s/fire" % id, {"action": "pay"})
            assert refused.reason in ("outcome-unknown", "storage-failure"), refused
        own.start()

        def is_paid(id):
            return (web.post("/v1/instances/%s/fire" % id, {"action": "pay"}).status == 200
                    or web.get("/v1/instances/" + id).json.get("current_state") == "paid")
        for id in ids:
            shell.wait_for(lambda id=id: is_paid(id))
        assert web.get("/v1/instances/counts").json["by_state"] == {"paid": len(ids)}
        shell.stop(web.child)
        assert shell.json("--store", own.url + "&schema=back", "verify")["valid"]


def test_a_second_node_takes_over_every_shard(shell):
    store = one.url("taken", lease=1500)
    web = serve(shell, store, "--shards", str(N))
    ids = fill(web)
    second = serve(shell, store)
    web.child.kill()
    web.child.wait()
    assert len(second.get("/v1/instances").json["instances"]) == len(ids)
    for id in ids[:N]:
        second.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"})
    shell.stop(second.child)
    assert shell.json("--store", store, "verify")["valid"]


# ---- The suites of eight shards ----

SAMPLE = ["instances_spread", "each_step_once", "over_a_restart"]


def run_over_postgres(path, *words):
    env = {**os.environ, "PAWL_TEST_STORE": "postgres", "PAWL_TEST_POSTGRES": one.cluster().url}
    env.pop("PAWL_TEST_LONG", None)
    if path.name != "run_shards.py":
        env["PAWL_TEST_SHARDS"] = str(N)
    done = subprocess.run([sys.executable, str(path), *words], capture_output=True, timeout=1800, check=False, env=env)
    assert done.returncode == 0, "%s %s: %s" % (path.name, words, done.stdout.decode()[-3000:])


def test_the_suites_over_eight_shards_pass_over_postgresql(shell):
    suite = HERE.parent / "http/run_shards.py"
    run_over_postgres(suite, *([] if LONG else SAMPLE))
    for name in files.EVERY if LONG else []:
        run_over_postgres(suite.parent / name)


if __name__ == "__main__":
    harness.main(globals())
