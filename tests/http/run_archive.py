"""Instances that have ended move into an archive file, and come back: nothing is lost, and roots stay provable."""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

from run_amend import verify_twice
from run_erase import ORDER, found_in, get, shipped
from run_flows import server, yaml
from web import harness

VERIFY = pathlib.Path(__file__).resolve().parents[2] / "tools/verify.py"
KEPT = ORDER + "retention: {after_end: 10d, then: archive}\n"
FAMILY = "steps: {a: {spawn: {definition: kid, input: {secret: '{{input.secret}}'}}, next: b}, b: {wait: {signal: go}, done: true}}"
KID = "steps: {a: {tool: set, args: {n: '{{input.secret}}'}, done: true}}"


def advance(web, by):
    web.expect(200, "POST", "/v1/test/advance", {"by": by})


def archive(web, instance, **members):
    return web.expect(200, "POST", "/v1/instances/%s/archive" % instance, members).json


def archived(shell, *words):
    """pawl of the archive file."""
    return shell.pawl("--store", "sqlite:" + os.path.join(shell.folder, "pawl.db-archive"), *words)


def found_here(shell, secret):
    """Where it is in the files of the store itself."""
    return [name for name, _ in found_in(shell, secret) if "-archive" not in name]


def ids(shell, store=None):
    words = ["--store", store] if store else []
    return {one["instance_id"] for one in json.loads(shell.pawl(*words, "list", "--json").out)["instances"]}


def root_at(shell, position):
    with sqlite3.connect(os.path.join(shell.folder, "pawl.db")) as db:
        return db.execute("SELECT root FROM pawl_log WHERE pos = ?", (position,)).fetchone()[0]


def test_what_moved_is_whole_in_the_archive_and_gone_here_and_every_root_stays(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    first, second, third = shipped(web, "zzqa"), shipped(web, "zzqb"), shipped(web, "zzqc")
    before = get(web, first), web.get("/v1/instances/%s/history" % first).json
    info = web.get("/v1/info").json
    assert archive(web, first, actor_ref="ops", reason="year end") == {"archived": 1, "records": 3, "left": 0}
    refused = web.refused("not-known", "GET", "/v1/instances/" + first)
    assert "moved into the archive file at 20" in refused.json["detail"], refused.json
    assert root_at(shell, info["records"]).hex() == info["root"], "the root of before is that of before"
    assert found_here(shell, "zzqa") == [] and found_here(shell, "zzqb")
    assert get(web, second)["input"], "others are as before"
    verify_twice(shell, web)
    assert archived(shell, "verify").code == 0
    shown = json.loads(archived(shell, "show", first, "--json").out)
    assert shown["input"] == before[0]["input"] and shown["current_state"] == before[0]["current_state"], shown
    history = json.loads(archived(shell, "history", first, "--json").out)["entries"]
    assert [one["hash"] for one in history] == [one["hash"] for one in before[1]["entries"]]
    listed = web.get("/v1/instances").json["instances"]
    assert {one["instance_id"] for one in listed} == {second, third}
    web.refused("conflict", "POST", "/v1/instances/%s/archive" % third, {})  # the newest
    [kept] = [row for row in web.expect(200, "POST", "/v1/archive", {}).json.items() if row[0] == "left"]
    assert kept[1] == 1


def test_it_comes_back_by_an_import_and_may_leave_again(shell):
    child, web = server(shell)
    yaml(web, "order", ORDER)
    first, _ = shipped(web, "zzqa"), shipped(web, "zzqb")
    before = get(web, first)
    archive(web, first)
    shell.stop(child)
    shell.write("back.ndjson", archived(shell, "export", first).out)
    shell.pawl("import", "back.ndjson")
    child, web = server(shell)
    assert get(web, first) == before
    verify_twice(shell, web)
    archive(web, first)
    web.refused("not-known", "GET", "/v1/instances/" + first)
    verify_twice(shell, web)
    shell.stop(child)
    assert shell.pawl("doctor", "--rebuild").code == 0 and shell.pawl("verify").code == 0


def test_a_family_leaves_together_and_only_when_all_of_it_has_ended(shell):
    _, web = server(shell)
    yaml(web, "kid", KID)
    yaml(web, "family", FAMILY)
    parent = web.create(definition="family", input={"secret": "zzqkid"})
    web.create(definition="kid", input={"secret": "zzqother"})
    shell.wait_for(lambda: get(web, parent)["status"] == "suspended")
    [kid] = [one["instance_id"] for one in web.get("/v1/instances?definition=kid&ended_after=2020-01-01T00:00:00Z&order=oldest&limit=1").json["instances"]]
    said = web.refused("conflict", "POST", "/v1/instances/%s/archive" % kid, {}).json["detail"]
    assert parent in said, said
    said = web.refused("conflict", "POST", "/v1/instances/%s/archive" % parent, {}).json["detail"]
    assert "has not ended" in said, said
    web.expect(202, "POST", "/v1/instances/%s/signals" % parent, {"name": "go"})
    shell.wait_for(lambda: get(web, parent)["status"] == "completed")
    web.expect(200, "POST", "/v1/instances/%s/hold" % kid, {})
    said = web.refused("conflict", "POST", "/v1/instances/%s/archive" % parent, {}).json["detail"]
    assert "on hold" in said and kid in said, said
    web.expect(200, "POST", "/v1/instances/%s/lift" % kid, {})
    assert archive(web, parent)["archived"] == 2
    verify_twice(shell, web)
    assert ids(shell, "sqlite:" + os.path.join(shell.folder, "pawl.db-archive")) == {parent, kid}
    assert found_here(shell, "zzqkid") == []


def test_retention_moves_what_is_due_and_nothing_earlier(shell):
    _, web = server(shell, "--test")
    yaml(web, "order", KEPT)
    first, second = shipped(web, "zzqa"), shipped(web, "zzqb")
    advance(web, "9d")
    last = shipped(web, "zzqc")
    assert get(web, first) and get(web, second)
    [told] = web.expect(200, "GET", "/v1/retention").json["retention"]
    assert told["then"] == "archive" and told["due"] == 0, told
    advance(web, "26h")
    shell.wait_for(lambda: web.get("/v1/instances/" + second).status == 404)
    assert web.get("/v1/instances/" + first).status == 404 and get(web, last)
    verify_twice(shell, web)
    assert archived(shell, "verify").code == 0


def test_an_archive_that_another_process_owns_is_named_and_nothing_leaves(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    first, second, _ = shipped(web, "zzqa"), shipped(web, "zzqb"), shipped(web, "zzqc")
    archive(web, first)
    owner = shell.begin("--store", "sqlite:pawl.db-archive", "serve", "--listen", "127.0.0.1:0")
    assert b"ready" in owner.stdout.readline()
    try:
        web.refused("in-use", "POST", "/v1/instances/%s/archive" % second, {})
        assert get(web, second)["input"]
    finally:
        shell.stop(owner)
    assert archive(web, second)["archived"] == 1
    verify_twice(shell, web)


PLACE = """UPDATE pawl_log SET inst = NULL, seq = (SELECT pos FROM pawl_log WHERE what = -14), prev = NULL, skip = NULL, what = -15, flags = NULL,
    fired = NULL, step = NULL, ord = NULL, attempt = NULL, actor = NULL, payload = NULL, reason = NULL, body = NULL, key = NULL WHERE %s"""
FORGERIES = {
    "a record more is taken away under an archive record's name": PLACE % "inst = 2 AND seq = 2",
    "a whole instance is": (PLACE % "inst = 2") + "; DELETE FROM pawl_instance WHERE number = 2; DELETE FROM pawl_head WHERE inst = 2; DELETE FROM pawl_label WHERE inst = 2",
    "a place has no archive record": "UPDATE pawl_log SET seq = 1 WHERE what = -15",
    "something of a record is left": "UPDATE pawl_log SET ord = 1 WHERE what = -15",
    "a place has another hash": "UPDATE pawl_log SET hash = zeroblob(32) WHERE what = -15",
    "the archive record names fewer": "UPDATE pawl_log SET body = replace(body, ',3,', ',2,') WHERE what = -14",
    "the row is missing": "DELETE FROM pawl_kept WHERE what = -14",
    "the row is of another": "UPDATE pawl_kept SET id = '0000000002' || substr(id, 11) WHERE what = -14",
}


def test_what_is_forged_about_places_is_found_by_both_verifiers(shell):
    child, web = server(shell)
    yaml(web, "order", ORDER)
    first = shipped(web, "zzqa")
    shipped(web, "zzqb"), shipped(web, "zzqc")
    archive(web, first)
    shell.stop(child)
    whole = (shell.folder / "pawl.db").read_bytes()
    for name, sql in FORGERIES.items():
        (shell.folder / "pawl.db").write_bytes(whole)
        db = sqlite3.connect(shell.folder / "pawl.db")
        db.executescript(sql)
        db.close()
        assert shell.pawl("verify", expect=None).code == 1, name
        assert subprocess.run([sys.executable, "-B", str(VERIFY), "pawl.db"], cwd=shell.folder, capture_output=True).returncode == 1, name
    (shell.folder / "pawl.db").write_bytes(whole)
    assert shell.pawl("verify").code == 0


def test_the_file_shrinks_when_many_have_left(shell):
    child, web = server(shell)
    yaml(web, "order", ORDER)
    text = "x" * 400
    for n in range(200):
        shipped(web, text + str(n))
    path = os.path.join(shell.folder, "pawl.db")
    shell.stop(child)
    before = os.path.getsize(path)
    out = shell.pawl("archive", "--all").out
    assert "archived 199" in out, out
    after = os.path.getsize(path)
    assert after < before * 0.6, (before, after)
    assert shell.pawl("verify").code == 0


if __name__ == "__main__":
    harness.main(globals())
