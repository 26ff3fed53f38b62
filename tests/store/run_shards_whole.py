#!/usr/bin/env python3
"""What people do with a whole store they do with one of several shards, in files and in PostgreSQL: ask it with SQL, let doctor
look at it and rebuild its rows, export and import it, copy it."""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "http")]
import harness  # noqa: E402
import run_postgres as one  # noqa: E402
from web import Web  # noqa: E402

N = 4
PARENT = "name: parent\ndo:\n  - {name: spawn, spawn: {definition: kid}}\n"
KID = "name: kid\ndo:\n  - {name: b, wait: {signal: go}}\n"


def stores(shell, name):
    """Of files, and of a schema."""
    yield "sqlite:%s.db" % name
    yield one.url(name)


def serve(shell, store, shards=N):
    child, address = shell.serve("--store", store, *(["--shards", str(shards)] if shards else []))
    web = Web(address)
    web.child = child
    return web


def fill(shell, store, shards=N, count=3 * N):
    """Machines and flows on every shard: fired, waiting, with labels, subjects, keys, an inline definition."""
    web = serve(shell, store, shards)
    for name, text in (("order", one.ORDER), ("f", one.FLOW)):
        web.expect(201, "PUT", "/v1/definitions/" + name, text, {"Content-Type": "application/yaml"})
    ids = []
    for n in range(count):
        ids.append(web.create(definition="order", subject_ref="customer/%d" % n, labels={"n": str(n % 3)}))
        if n % 2:
            web.expect(200, "POST", "/v1/instances/%s/fire" % ids[-1], {"action": "pay", "actor_ref": "ann"}, {"Idempotency-Key": "k%d" % n})
        if n % 3 == 0:
            ids.append(web.create(definition="f", input={"n": n}))
    shell.stop(web.child)
    return ids


def python_verifies(shell, path):
    done = subprocess.run([sys.executable, str(harness.ROOT / "tools/verify.py"), str(path)], cwd=shell.folder, capture_output=True,
                          check=False)
    assert done.returncode == 0, (path, done.stdout, done.stderr)


def files_of(name, shards=N):
    return ["%s.db" % name, *("%s.db-shards/%d.db" % (name, i) for i in range(1, shards))]


def test_sql_sees_every_shard_and_says_which(shell):
    for store in stores(shell, "asked"):
        ids = fill(shell, store)
        found = shell.json("--store", store, "sql", "SELECT id, shard FROM pawl_instances ORDER BY id")
        assert [row[0] for row in found["rows"]] == sorted(ids), found
        assert {row[1] for row in found["rows"]} == set(range(N)), found
        paid = shell.json("--store", store, "sql", "SELECT count(*) FROM pawl_history WHERE action = 'pay'")["rows"][0][0]
        assert paid == 3 * N // 2, paid
        shards = shell.json("--store", store, "sql", "SELECT count(DISTINCT shard) FROM pawl_definition")["rows"]
        assert shards == [[N]], shards
        refused = shell.pawl("--store", store, "sql", "DELETE FROM pawl_head", expect=1).err
        assert "invalid-request" in refused, refused


def test_sql_over_more_files_than_sqlite_reads_together_says_so(shell):
    shell.stop(serve(shell, "sqlite:wide.db", 16).child)
    refused = shell.pawl("--store", "sqlite:wide.db", "sql", "SELECT 1", expect=1).err
    assert "this store has 16 shards" in refused and "11 files together" in refused, refused


def test_doctor_finds_a_store_of_several_shards_healthy_and_counts_all_of_them(shell):
    for store in stores(shell, "doctored"):
        ids = fill(shell, store)
        found = shell.json("--store", store, "doctor")
        assert found["healthy"], found
        said = {check["name"]: check["what"] for check in found["checks"]}
        assert "%d instances" % len(ids) in said["content"], said
        assert "%d shards" % N in said["content"], said
    with sqlite3.connect(shell.folder / "doctored.db-shards/2.db") as db:
        db.execute("PRAGMA journal_mode = DELETE")
    damage(shell.folder / "doctored.db-shards/2.db")
    found = shell.json("--store", "sqlite:doctored.db", "doctor", expect=None)
    assert not found["healthy"], found


def damage(path):
    """Every page but the first few."""
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data), 512):
        data[at] ^= 0x55
    path.write_bytes(data)


def test_rebuild_makes_the_rows_of_every_shard_and_touches_none_where_a_log_is_not_valid(shell):
    for store in stores(shell, "rebuilt"):
        ids = fill(shell, store)
        assert shell.json("--store", store, "doctor", "--rebuild")["differences"] == 0
        if store.startswith("sqlite:"):
            with sqlite3.connect(shell.folder / "rebuilt.db-shards/3.db") as db:
                db.execute("DELETE FROM pawl_head")
        else:
            one.cluster().sql("DELETE FROM rebuilt.pawl_head WHERE shard = 3")
        found = shell.json("--store", store, "doctor", "--rebuild")
        assert found["rebuilt"] and found["differences"] > 0 and all("shard 3: " in what for what in found["what"]), found
        assert found["heads"] >= len(ids), found
        assert shell.json("--store", store, "verify")["valid"]
    with sqlite3.connect(shell.folder / "rebuilt.db-shards/3.db") as db:
        db.execute("UPDATE pawl_log SET at = at + 1 WHERE pos = 2")
    with sqlite3.connect(shell.folder / "rebuilt.db") as db:
        db.execute("DELETE FROM pawl_head")
    found = shell.json("--store", "sqlite:rebuilt.db", "doctor", "--rebuild", expect=1)
    assert not found["rebuilt"] and "shard 3: " in found["what"], found
    with sqlite3.connect(shell.folder / "rebuilt.db") as db:
        assert db.execute("SELECT count(*) FROM pawl_head").fetchone() == (0,)


def test_an_accepted_head_is_that_of_the_shard_which_went_back(shell):
    fill(shell, "sqlite:back.db")
    path = shell.folder / "back.db-shards/1.db"
    old = {p: p.read_bytes() for p in path.parent.iterdir() if p.name.startswith("1.db") and p.name in ("1.db", "1.db-wal")}
    web = serve(shell, "sqlite:back.db", 0)
    for _ in range(2 * N):
        web.create(definition="order")
    shell.stop(web.child)
    for p, content in old.items():
        p.write_bytes(content)
    if "1.db-wal" not in {p.name for p in old}:
        (path.parent / "1.db-wal").unlink(missing_ok=True)
    assert "shard 1: " in shell.json("--store", "sqlite:back.db", "verify", expect=None)["what"]
    found = shell.json("--store", "sqlite:back.db", "doctor", "--accept-head")
    assert found["accepted"] and found["shard"] == 1 and found["shards"] == 1, found
    assert shell.json("--store", "sqlite:back.db", "verify")["valid"]
    assert not shell.json("--store", "sqlite:back.db", "doctor", "--accept-head")["accepted"]


def test_an_export_goes_into_the_shards_that_the_ids_say_and_comes_out_the_same(shell):
    fill(shell, "sqlite:from.db", 1)
    shell.pawl("--store", "sqlite:from.db", "export", "--output", "one.ndjson")
    for n, store in enumerate(stores(shell, "into")):
        shell.stop(serve(shell, store).child)
        answer = shell.json("--store", store, "import", "one.ndjson")
        assert answer["instances"] > 0 and answer["already_there"] == 0, answer
        assert shell.json("--store", store, "verify")["valid"]
        again = shell.json("--store", store, "import", "one.ndjson")
        assert again["instances"] == 0 and again["already_there"] == answer["instances"], again
        shell.pawl("--store", store, "export", "--output", "two%d.ndjson" % n)
        lines = [sorted(told(shell, name)) for name in ("one.ndjson", "two%d.ndjson" % n)]
        assert lines[0] == lines[1]
        web = serve(shell, store, 0)
        page = web.get("/v1/instances?state=new&limit=100").json["instances"]
        for row in page:
            web.expect(200, "POST", "/v1/instances/%s/fire" % row["instance_id"], {"action": "pay"})
        assert page
        web.create(definition="order")
        shell.stop(web.child)
        assert shell.json("--store", store, "verify")["valid"]
    for path in files_of("into"):
        python_verifies(shell, path)


def told(shell, name):
    """Lines of a file, without what is this store's own: positions, and times of definitions."""
    for line in (shell.folder / name).read_text().splitlines():
        value = json.loads(line)
        value.get("record", {}).pop("position", None)
        value.get("definition", {}).pop("created_at", None)
        yield json.dumps(value, sort_keys=True)


def test_an_import_of_a_family_that_would_lie_in_two_shards_is_refused_by_name(shell):
    for name, text in (("kid.yaml", KID), ("parent.yaml", PARENT)):
        shell.pawl("--store", "sqlite:family.db", "define", shell.write(name, text))
    child, _ = shell.serve("--store", "sqlite:family.db")
    shell.pawl("--store", "sqlite:family.db", "start", "parent")
    shell.wait_for(lambda: len(shell.json("--store", "sqlite:family.db", "list")["instances"]) == 2)
    shell.stop(child)
    shell.pawl("--store", "sqlite:family.db", "export", "--output", "family.ndjson")
    shell.stop(serve(shell, "sqlite:split.db").child)
    refused = shell.pawl("--store", "sqlite:split.db", "import", "family.ndjson", expect=1).err
    assert "a family lies in one shard" in refused, refused
    assert shell.json("--store", "sqlite:split.db", "list")["instances"] == []


def test_a_copy_of_several_shards_has_every_root_in_both_directions_and_both_verifiers_pass(shell):
    fill(shell, "sqlite:a.db")
    far = one.url("copied4")
    told = shell.json("--store", "sqlite:a.db", "verify")
    copied = shell.json("copy", "sqlite:a.db", far)
    assert copied["root"] == told["root"] and copied["shards"] == N and copied["records"] == told["records"], (copied, told)
    assert shell.json("--store", far, "verify") == told
    assert shell.json("copy", far, "sqlite:b.db")["root"] == told["root"]
    assert shell.json("--store", "sqlite:b.db", "verify") == told
    for path in files_of("b"):
        python_verifies(shell, path)
    again = shell.pawl("copy", "sqlite:a.db", far, expect=1).err
    assert "expected that there is no store yet" in again, again
    shell.pawl("--store", one.url("alone"), "init")
    other = shell.pawl("copy", "sqlite:a.db", one.url("alone"), expect=1).err
    assert "expected that there is no store yet" in other, other
    web = serve(shell, far, 0)
    web.create(definition="order")
    shell.stop(web.child)
    assert shell.json("--store", far, "verify")["valid"]


if __name__ == "__main__":
    harness.main(globals())
