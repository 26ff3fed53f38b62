"""A disk that is full, and storage that goes away under a server: what callers, health and the log are told."""
import subprocess

from web import Web, harness

LOOP = "name: loop\nstates: [on, off]\ninitial_state: on\nterminal_states: [off]\nterminal_kinds: {off: success}\ntransitions:\n" \
       "  - {from_state: on, action: again, to_state: on}\n  - {from_state: on, action: stop, to_state: off}\n"


def begin(shell, store="s.db", *words):
    """A server on a store with one instance that can be fired for ever: (child, web, id)."""
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
        assert web.get("/v1/instances/" + id).json["next_sequence_number"] == done + 1
        batch = web.ask("POST", "/v1/batch", b'{"operation":"instance.fire","input":{"instance_id":"%s","action":"again","payload":"%s"}}\n'
                        % (id.encode(), b"y" * 20000), {"Content-Type": "application/x-ndjson"})
        assert "storage-failure" in batch.body.decode() and str(shell.folder) not in batch.body.decode(), batch
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        shell.wait_for(lambda: web.get("/healthz").status == 200)  # by itself: nobody asked for anything
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
    assert "s.db-stores/spoilt.db is not a pawl store" in shell.stop(child)[1]
    assert "s.db-stores/spoilt.db" in shell.pawl("--store", "sqlite:s.db-stores/spoilt.db", "list", expect=3).err


if __name__ == "__main__":
    harness.main(globals())
