#!/usr/bin/env python3
"""A module's file is replaced under a server: turns run in what was loaded, until SIGHUP loads it again."""
import hashlib
import os
import pathlib
import shutil
import signal
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "http"), str(HERE.parent / "house")]
from run_module import bad, module  # noqa: E402
from web import Web, harness  # noqa: E402


def serve(shell, source, *builds):
    """A server with the first of the builds in place: (child, web, the file, all of them)."""
    built = [module(shell, HERE / source, "-DBUILD=%d" % number) for number in builds]
    path = str(shell.folder / "flows.so")
    shutil.copy(built[0], path)
    child, address = shell.serve("--test", "--module", path)
    return child, Web(address), path, built


def place(built, path):
    """In the same file, as cp does it, under those who run it."""
    shutil.copyfile(built, path)


def reload(child):
    """The line of the log, after what the module's process may have said: then it is over."""
    child.send_signal(signal.SIGHUP)
    line = child.stderr.readline()
    while line and not line.startswith(b"pawl: module."):
        line = child.stderr.readline()
    return line.decode()


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def loaded(web):
    return [(found["file"], found["sha256"]) for found in web.get("/v1/info").json["modules"]]


def sit(web, id, base=""):
    web.expect(202, "POST", "/v1%s/instances/%s/signals" % (base, id), {"name": "sit"})


def taken_by(web, id, base=""):
    return web.get("/v1%s/instances/%s/variables" % (base, id)).json["variables"]["by"]


def hold(shell, web, id):
    """A turn that is under way until the gate is opened."""
    def send():
        web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "hold"})

    holder = threading.Thread(target=send)
    holder.start()
    shell.wait_for((shell.folder / "held").exists)
    return holder


def test_a_file_that_is_replaced_under_a_server_never_mixes_builds_and_sighup_brings_the_new_one(shell):
    child, web, path, (one, two) = serve(shell, "builds.c", 1, 2)
    web.expect(201, "PUT", "/v1/stores/other")
    there = web.expect(201, "POST", "/v1/stores/other/instances", {"definition": "builds"}).json["instance_id"]
    long, calm = (web.create(definition="builds") for _ in range(2))
    was = digest(path)
    holder = hold(shell, web, long)  # so that the next turn needs another process
    place(two, path)
    for _ in range(3):
        sit(web, calm)
    assert taken_by(web, calm) == [1, 1, 1] and loaded(web) == [("flows.so", was)], "it runs what was loaded"

    said = reload(child)
    assert said == "pawl: module.reloaded: module '%s': turns that begin now run in sha256 %s, those under way end in " \
        "sha256 %s\n" % (path, digest(path)[:12], was[:12]), said
    sit(web, calm)
    sit(web, there, "/stores/other")
    assert taken_by(web, calm) == [1, 1, 1, 2] and taken_by(web, there, "/stores/other") == [2]
    assert loaded(web) == [("flows.so", digest(path))]
    assert web.get("/v1/stores/other/info").json["modules"][0]["types"] == ["builds", "fresh"]
    web.create(definition="fresh")
    assert taken_by(web, long) == [], "its turn is under way"
    (shell.folder / "gate").write_text("")
    holder.join()
    sit(web, long)
    assert taken_by(web, long) == [1, 2], "the turn under way has ended in its own build"
    assert web.get("/v1/definitions/builds").json["version"] == 1, "the same list is the same version"

    os.remove(path)
    said = reload(child)
    assert "module.refused: module '%s' cannot be loaded: No such file or directory; the build that was loaded before goes on: " \
        "sha256 %s" % (path, digest(two)[:12]) in said, said
    for content, words in ((b"no module at all", "cannot be loaded"), (pathlib.Path(two).read_bytes()[:4000], "loading"),
                           (pathlib.Path(bad(shell, "-DOLD")).read_bytes(), "was built for ABI 99 of pawl 7.0, and this is ABI 2")):
        pathlib.Path(path).write_bytes(content)
        said = reload(child)
        assert "module.refused: module '%s'" % path in said and words in said and "/proc" not in said, said
        sit(web, calm)
    place(two, path)
    assert "module.reloaded: module '%s': the file is as it was: sha256 %s" % (path, digest(two)[:12]) in reload(child)
    sit(web, calm)
    assert taken_by(web, calm) == [1, 1, 1, 2, 2, 2, 2, 2]
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)


def test_sighup_brings_instances_that_wait_to_a_higher_version(shell):
    child, web, path, (one, three) = serve(shell, "renewed.c", 1, 3)
    id = web.create(definition="renewed")
    place(three, path)
    assert "turns that begin now" in reload(child)
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    assert [w["name"] for w in web.get("/v1/instances/%s/why" % id).json["waiting_for"]] == ["late", "go"]
    fresh = web.create(definition="renewed")
    assert [web.get("/v1/instances/" + each).json["version"] for each in (id, fresh)] == [1, 2]
    place(one, path)
    assert "turns that begin now" in reload(child)
    web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "go"})
    assert web.get("/v1/instances/" + id).json["status"] == "completed", "a build before goes on with what it can hold"
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)


def test_sighup_of_a_server_without_modules_is_a_line_in_the_log(shell):
    child, address = shell.serve("--test")
    assert reload(child) == "pawl: module.reloaded: there is no module to load again\n"
    assert Web(address).get("/v1/info").json["modules"] == []
    shell.stop(child)


def test_a_server_ends_in_order_when_its_terminal_goes(shell):
    """The terminal's end is a SIGHUP as well."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the server would inherit that it is ignored, and stay
    screen = harness.Terminal(shell, "serve", "--listen", "127.0.0.1:0")
    screen.wait_for("pawl is ready")
    os.kill(screen.pid, signal.SIGHUP)
    screen.wait_for("there is no module to load again")
    os.close(screen.fd)
    assert os.waitpid(screen.pid, 0)[1] == 0


if __name__ == "__main__":
    harness.main(globals())
