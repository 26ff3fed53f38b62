"""A full disk, and storage that disappears under a server: what callers get, and what health and the log report."""
import json
import os
import shutil
import signal
import subprocess
import sys

from web import Web, harness

LOOP = "name: loop\nstates: [on, off]\ninitial_state: on\nterminal_states: [off]\nterminal_kinds: {off: success}\ntransitions:\n" \
       "  - {from_state: on, action: again, to_state: on}\n  - {from_state: on, action: stop, to_state: off}\n"


def begin(shell, store="s.db", *words):
    """Start a server on a store with one instance that can be fired for ever: (child, web, id)."""
    shell.write("loop.yaml", LOOP)
    shell.pawl("--store", "sqlite:" + store, "define", "loop.yaml")
    child, address = shell.serve("--store", "sqlite:" + store, *words)
    web = Web(address)
    return child, web, web.create(definition="loop")


def again(web, id, payload=None):
    return web.post("/v1/instances/%s/fire" % id, {"action": "again", "payload": payload})


def no_paths(shell, reply):
    text = reply.body.decode()
    assert str(shell.folder) not in text and "s.db" not in text, text
    return reply.json["detail"]


def small_disk(shell, size):
    folder = shell.folder / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        raise harness.Skip("a small tmpfs cannot be mounted: " + done.stderr.strip())
    return folder


def test_on_a_full_disk_nothing_happens_and_storage_failure_and_health_say_so(shell):
    disk = small_disk(shell, "3m")
    try:
        child, web, id = begin(shell, "disk/s.db")
        done, refused = 0, 0
        while refused < 20:
            reply = again(web, id, "x" * 20000)
            assert reply.status == 200 or reply.reason == "storage-failure", reply
            if reply.status != 200:
                refused += 1
                assert "the disk is full" in no_paths(shell, reply)
            done += reply.status == 200
        health = web.refused("storage-failure", "GET", "/healthz")
        assert health.status == 503 and "disk-full" in no_paths(shell, health)
        reply = web.get("/v1/instances/" + id)
        assert reply.json.get("next_sequence_number") == done + 1, reply
        batch = web.ask("POST", "/v1/batch", b'{"operation":"instance.fire","input":{"instance_id":"%s","action":"again","payload":"%s"}}\n'
                        % (id.encode(), b"y" * 20000), {"Content-Type": "application/x-ndjson"})
        assert "storage-failure" in batch.body.decode() and str(shell.folder) not in batch.body.decode(), batch
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        shell.wait_for(lambda: web.get("/healthz").status == 200)  # by itself, without a request
        assert again(web, id).json["sequence_number"] == done + 1
        out, err = shell.stop(child)
        assert "health.failing: disk-full" in err and "disk/s.db" in err, err
        assert "✔ valid" in shell.pawl("--store", "sqlite:disk/s.db", "verify").out
    finally:
        for other in shell.children:
            other.kill()
            other.wait()
        subprocess.run(["umount", str(disk)])


def test_remote_callers_see_no_path_of_a_store_that_cannot_be_opened(shell):
    child, web, id = begin(shell)
    web.expect(201, "PUT", "/v1/stores/spoilt")
    shell.stop(child)
    (shell.folder / "s.db-stores/spoilt.db").write_bytes(b"no store at all")
    child, address = shell.serve("--store", "sqlite:s.db")
    reply = Web(address).refused("storage-failure", "GET", "/v1/stores/spoilt/instances")
    assert "is not a pawl store" in no_paths(shell, reply)
    reply = Web(address).refused("storage-failure", "POST", "/v1/stores/spoilt/instances", {"definition": "x" * 100_000})
    assert "is not a pawl store" in no_paths(shell, reply)
    assert "s.db-stores/spoilt.db is not a pawl store" in shell.stop(child)[1]
    assert "s.db-stores/spoilt.db" in shell.pawl("--store", "sqlite:s.db-stores/spoilt.db", "list", expect=3).err


def test_storage_that_goes_away_under_a_server_is_noticed_at_the_next_commit(shell):
    """Nothing more is acknowledged, callers, health and the log say so, and acknowledged entries are kept where that is possible."""
    def replace(path):
        shutil.copy(path, str(path) + "-copy")
        os.replace(str(path) + "-copy", path)
    cases = [("wal", lambda: os.unlink(shell.folder / "wal.db-wal"), "-wal file was deleted", 5),
             ("shm", lambda: os.unlink(shell.folder / "shm.db-shm"), "-shm file was deleted", None),
             ("both", lambda: [os.unlink(shell.folder / ("both.db" + e)) for e in ("-wal", "-shm")], "-wal file was deleted", 5),
             ("file", lambda: os.unlink(shell.folder / "file.db"), "database file was deleted", None),
             ("inode", lambda: replace(shell.folder / "inode.db"), "database file was replaced", None),
             ("cut", lambda: os.truncate(shell.folder / "cut.db-wal", 0), "-wal file was truncated", None),
             ("zero", lambda: os.truncate(shell.folder / "zero.db", 0), "database file was truncated", None),
             ("read", lambda: os.truncate(shell.folder / "read.db", 0), "database file was truncated", None)]
    for name, harm, words, kept in cases:
        child, web, id = begin(shell, name + ".db")
        for _ in range(5):
            assert again(web, id).status == 200
        shell.wait_for(lambda: name != "read" or web.get("/v1/info").json["rows_behind"] == 0)  # no commit comes by itself
        harm()
        for _ in range(3):
            reply = web.get("/v1/definitions/loop") if name == "read" else again(web, id)
            assert reply.reason == "storage-failure", (name, reply)
        assert str(shell.folder) not in reply.body.decode() and name + ".db" not in reply.body.decode(), reply
        if name == "read":  # health notices it by itself soon
            shell.wait_for(lambda: web.get("/healthz").status == 503)
        health = web.refused("storage-failure", "GET", "/healthz")
        assert "storage-gone" in health.json["detail"], health
        web.refused("storage-failure", "GET", "/v1/instances/" + id)
        child.kill()
        err = child.communicate()[1].decode()
        assert words in err and "health.failing: storage-gone" in err, err
        if kept:
            store = ("--store", "sqlite:%s.db" % name)
            assert shell.json(*store, "show", id)["next_sequence_number"] == kept + 1, name
            assert "✔ valid" in shell.pawl(*store, "verify").out


def test_a_second_name_of_a_store_is_refused_and_reported(shell):
    child, web, id = begin(shell)
    os.link(shell.folder / "s.db", shell.folder / "t.db")
    second = shell.begin("serve", "--listen", "127.0.0.1:0", "--store", "sqlite:t.db")
    assert "2 names (hard links)" in second.communicate(timeout=60)[1].decode() and second.returncode == 3
    assert again(web, id).status == 200
    assert web.get("/healthz").json["conditions"][0]["condition"] == "second-name"
    os.unlink(shell.folder / "t.db")
    assert again(web, id).status == 200 and web.get("/healthz").json == {"status": "ok"}
    os.link(shell.folder / "s.db", shell.folder / "t.db")
    subprocess.run([sys.executable, "-c", "import sqlite3; sqlite3.connect('t.db').execute('CREATE TABLE host(a)')"], cwd=shell.folder, check=True)
    assert again(web, id).reason == "storage-failure"  # written by that name, into another write-ahead log
    assert "storage-gone" in web.refused("storage-failure", "GET", "/healthz").json["detail"]
    assert "was changed by another program under another name" in shell.stop(child)[1]


def test_files_of_a_new_store_are_their_owners_alone_and_those_of_an_old_one_stay(shell):
    old = os.umask(0)
    try:
        child, web, id = begin(shell)
        web.expect(201, "PUT", "/v1/stores/one")
        again(web, id)
        mode = lambda name: os.stat(shell.folder / name).st_mode & 0o777
        for name in ("s.db", "s.db-wal", "s.db-shm", "s.db-owner", "s.db-head", "s.db-stores/one.db", "s.db-stores/one.db-owner"):
            assert mode(name) == 0o600, (name, oct(mode(name)))
        assert mode("s.db-stores") == 0o700
        shell.stop(child)
        os.chmod(shell.folder / "s.db", 0o660)
        os.unlink(shell.folder / "s.db-head")
        child, address = shell.serve("--store", "sqlite:s.db")
        again(Web(address), id)
        shell.wait_for(lambda: (shell.folder / "s.db-head").exists())
        for name, wanted in (("s.db", 0o660), ("s.db-wal", 0o660), ("s.db-head", 0o660), ("s.db-owner", 0o600)):
            assert mode(name) == wanted, (name, oct(mode(name)))
        shell.stop(child)
    finally:
        os.umask(old)


# ---- FILE-head ----


def verdicts(shell, file="s.db"):
    """What pawl verify, tools/verify.py, doctor and health say: (exit, text) of the first three, and the conditions."""
    tool = subprocess.run([sys.executable, str(harness.ROOT / "tools/verify.py"), str(shell.folder / file)], capture_output=True, text=True)
    verify = shell.pawl("--store", "sqlite:" + file, "verify", expect=None)
    doctor = shell.pawl("--store", "sqlite:" + file, "doctor", expect=None)
    child, address = shell.serve("--store", "sqlite:" + file)
    health = Web(address).get("/healthz").json
    err = shell.stop(child)[1]
    return (verify.code, verify.out), (tool.returncode, tool.stdout), (doctor.code, doctor.out), health, err


def expect_went_back(shell, words):
    verify, tool, doctor, health, err = verdicts(shell)
    assert verify[0] == 1 and words in verify[1] and "FILE-head remembers" in verify[1], verify
    assert tool[0] == 1 and "FILE-head remembers" in tool[1], tool
    assert doctor[0] == 1 and "went-back" in doctor[1] and "doctor --accept-head" in doctor[1], doctor
    assert health["status"] == "degraded" and health["conditions"][0]["condition"] == "went-back", health
    assert "health.degraded: went-back" in err, err


def expect_fine(shell):
    verify, tool, doctor, health, err = verdicts(shell)
    assert (verify[0], tool[0], doctor[0], health) == (0, 0, 0, {"status": "ok"}), (verify, tool, doctor, health)


def test_a_store_that_went_back_in_time_is_reported_until_an_operator_accepts_it(shell):
    child, web, id = begin(shell)
    for _ in range(5):
        again(web, id)
    shell.stop(child)
    expect_fine(shell)
    shutil.copy(shell.folder / "s.db", shell.folder / "backup")
    for _ in range(3):
        shell.pawl("--store", "sqlite:s.db", "fire", id, "again")
    shutil.copy(shell.folder / "backup", shell.folder / "s.db")
    expect_went_back(shell, "the log ends at position 7")
    assert "pawl: went-back: the log ends at position 7" in shell.pawl("--store", "sqlite:s.db", "list").err
    for _ in range(9):  # it works, and new entries do not hide it
        shell.pawl("--store", "sqlite:s.db", "fire", id, "again")
    expect_went_back(shell, "another root at position 10")
    child, address = shell.serve("--store", "sqlite:s.db")
    assert "in-use" in shell.pawl("--store", "sqlite:s.db", "doctor", "--accept-head", expect=3).err
    shell.stop(child)
    assert "✔ accepted" in shell.pawl("--store", "sqlite:s.db", "doctor", "--accept-head").out
    expect_fine(shell)
    lines = (shell.folder / "s.db-head").read_text().splitlines()
    assert len(lines) == 2 and '"accepted"' in lines[1] and '\\"position\\":10' in lines[1] and '"by":' in lines[1], lines
    assert "nothing to accept" in shell.pawl("--store", "sqlite:s.db", "doctor", "--accept-head").out


def test_a_flipped_bit_in_the_wal_that_takes_acknowledged_entries_is_reported(shell):
    child, web, id = begin(shell)
    for _ in range(200):
        assert again(web, id).status == 200
    child.send_signal(signal.SIGKILL)
    child.wait()
    wal = bytearray((shell.folder / "s.db-wal").read_bytes())
    wal[32 + 10 * (4096 + 24) + 2000] ^= 1  # in the 11th frame
    (shell.folder / "s.db-wal").write_bytes(wal)
    expect_went_back(shell, "records that were acknowledged are missing")


def test_a_head_that_is_missing_or_of_another_store_or_damaged_judges_nothing(shell):
    child, web, id = begin(shell)
    shell.stop(child)
    head = (shell.folder / "s.db-head").read_bytes()
    os.unlink(shell.folder / "s.db-head")
    expect_fine(shell)
    shell.pawl("--store", "sqlite:other.db", "define", "loop.yaml")
    for text, words in (((shell.folder / "other.db-head").read_bytes(), "belongs to another store"), (head[:50] + b"x" + head[51:], "cannot be read"),
                        (b"", "cannot be read")):
        (shell.folder / "s.db-head").write_bytes(text)
        verify, tool, doctor, health, err = verdicts(shell)
        assert verify[0] == 0 and tool[0] == 0 and words in health["conditions"][0]["what"], (verify, tool, health)
        assert (shell.folder / "s.db-head").read_bytes() == text


def test_a_store_that_is_made_where_another_was_says_so_once_and_is_healthy(shell):
    child, web, id = begin(shell)
    again(web, id)
    shell.stop(child)
    old = json.loads((shell.folder / "s.db-head").read_text())
    os.unlink(shell.folder / "s.db")  # and not the files beside it
    first = shell.pawl("--store", "sqlite:s.db", "define", "loop.yaml")
    assert first.err.startswith("pawl: a new store was made") and f"FILE-head-{old['store']}" in first.err, first.err
    assert shell.pawl("--store", "sqlite:s.db", "list").err == ""
    expect_fine(shell)
    assert json.loads((shell.folder / f"s.db-head-{old['store']}").read_text()) == old
    assert json.loads((shell.folder / "s.db-head").read_text())["store"] != old["store"]


if __name__ == "__main__":
    harness.main(globals())
