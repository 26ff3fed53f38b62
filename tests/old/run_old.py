#!/usr/bin/env python3
"""Stores that an older pawl wrote, left in the middle of their work, open, verify, continue and migrate.

make.py made them with commit 3a70f79; nothing here may need to change for them to stay valid.
"""
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "code")]
import run_module  # noqa: E402
from web import Web, harness  # noqa: E402

VERIFY_PY = harness.ROOT / "tools" / "verify.py"
KEPT = ("transition_id", "sequence_number", "from_state", "to_state", "action", "actor_ref", "fired_at",
        "guard_satisfied", "reason", "payload", "hash", "step", "attempt")


class Old:
    """One of the stores, unpacked, and what its own program answered about it."""

    def __init__(self, shell, name):
        self.shell, self.path = shell, shell.folder / "s.db"
        with tarfile.open(HERE / (name + ".tar.xz")) as files:
            files.extractall(shell.folder)
        self.facts = json.loads((HERE / (name + ".json")).read_text())

    def __getitem__(self, name):
        return self.facts[name]

    def serve(self, *words):
        child, address = self.shell.serve("--store", "sqlite:s.db", *words)
        self.child, self.web = child, Web(address)
        return self.web

    def stop(self):
        self.shell.stop(self.child)

    def check(self):
        """Both verifiers."""
        answer = self.shell.pawl("--store", "sqlite:s.db", "verify", "--json", expect=None)
        assert answer.code == 0 and answer.json["valid"], answer
        done = subprocess.run([sys.executable, str(VERIFY_PY), str(self.path)], capture_output=True)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()

    def same_past(self):
        """The old program's history is unchanged."""
        for id, seen in self["instances"].items():
            now = self.web.get("/v1/instances/%s/history" % id).json["entries"]
            for old, new in zip(seen["history"], now, strict=False):
                assert {k: old.get(k) for k in KEPT} == {k: new.get(k) for k in KEPT}, (old, new)
            assert len(now) >= len(seen["history"]), (id, len(now))

    def view(self, id):
        return self.web.get("/v1/instances/" + id).json

    def complete(self, step, result):
        return self.web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"],
                               {"lease": step["lease"], "result": result})

    def wait(self, id, status="completed"):
        """Steps of this process end by themselves: wait for the event."""
        self.shell.wait_for(lambda: self.view(id)["status"] == status)
        return self.view(id)

    def steps(self, id, name):
        return [s for s in self.web.get("/v1/instances/%s/steps" % id).json["steps"] if s["name"] == name]

    def why(self, id):
        return self.web.get("/v1/instances/%s/why" % id).json["waiting_for"][0]


def opened(shell, name, *words):
    old = Old(shell, name)
    old.check()  # as the older program left it: checking migrates nothing
    old.serve(*words)
    old.same_past()
    return old


def closed(old):
    old.same_past()
    old.stop()
    old.check()


def test_machines_of_an_older_store_continue_where_they_stood(shell):
    old = opened(shell, "machines")
    web, lit, held = old.web, old["lit"], old["held"]
    fire = "/v1/instances/%s/fire"
    again = {"action": "switch", "actor_ref": "ann", "reason": "it is dark", "payload": {"n": 1}}
    key = {"Idempotency-Key": "first-switch"}
    assert web.expect(200, "POST", fire % lit, again, key).json["sequence_number"] == 1, "its key is remembered"
    web.refused("guard-not-satisfied", "POST", fire % lit, {"action": "switch"})
    web.expect(200, "POST", fire % lit, {"action": "switch", "guard_satisfied": True})
    web.refused("paused", "POST", fire % held, {"action": "switch", "guard_satisfied": True})
    web.expect(200, "POST", "/v1/instances/%s/resume" % held)
    web.expect(200, "POST", fire % held, {"action": "burn-out"})
    assert web.get("/v1/instances/%s/declaration" % old["inline"]).body.startswith(b'{ "states"')
    web.expect(200, "POST", fire % old["inline"], {"action": "end"})
    web.expect(200, "POST", fire % old["kettle"], {"action": "pour"})
    assert [a["alarm_id"] for a in web.get("/v1/alarms").json["alarms"]] == [old["alarm"]]
    web.expect(200, "DELETE", "/v1/alarms/" + old["alarm"])
    assert old["token"] in [t["token_id"] for t in web.get("/v1/tokens").json["tokens"]]
    closed(old)


def test_flows_of_an_older_store_continue_in_the_middle(shell):
    old = opened(shell, "flows")
    web = old.web
    old.complete(old["left"], {"l": 1})  # the lease is still valid
    web.expect(202, "POST", "/v1/instances/%s/signals" % old["graph"], {"name": "news", "payload": 5})
    shell.wait_for(lambda: old.why(old["graph"])["kind"] == "timer")
    web.expect(200, "POST", "/v1/steps/%s/fail" % old["b"]["step_id"], {"lease": old["b"]["lease"], "error": "no", "retry": False})
    shell.wait_for(lambda: old.steps(old["tree"], "ok"))
    for who in ("ann", "bob"):
        web.expect(200, "POST", "/v1/steps/%s/approve" % old.steps(old["tree"], "ok")[0]["step_id"], {"actor_ref": who})
    assert old.wait(old["tree"])["terminal_kind"] == "success"
    web.expect(200, "POST", "/v1/steps/%s/approve" % old["gate_step"], {"actor_ref": "bob"})
    web.expect(202, "POST", "/v1/instances/%s/signals" % old["gate"], {"name": "stop"})
    assert old.wait(old["gate"])["result"] == {"why": "stopped"}
    closed(old)


def test_children_and_amended_flows_of_an_older_store_end_as_they_would_have(shell):
    old = opened(shell, "flows")
    web = old.web
    for id in (old["amended"], *[i for i, t in old["instances"].items() if t["view"]["parent_id"] == old["parent"]]):
        [step] = old.steps(id, "ext")
        web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"result": 9})
    assert old.wait(old["parent"])["result"] == {"child": {"from": "above", "ext": 9}}
    assert old.wait(old["amended"])["result"] == {"from": "here", "ext": 9, "v": 2}
    web.expect(200, "POST", "/v1/instances/%s/cancel" % old["backoff"], {"reason": "enough"})
    [step] = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["remote/round"], "worker": "new"}).json["steps"]
    old.complete(step, {})
    web.expect(200, "POST", "/v1/steps/claim", {"tools": ["remote/round"], "worker": "new", "wait": "10s"})
    closed(old)


def test_an_older_stores_test_clock_continues(shell):
    old = opened(shell, "advanced", "--test")
    old.web.expect(200, "POST", "/v1/test/advance", {"by": "23h"})
    assert old.why(old["later"])["name"] == "long"
    old.web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    assert old.why(old["later"])["name"] == "until"
    old.web.expect(200, "POST", "/v1/test/advance", {"by": "2000d"})
    assert old.view(old["later"])["status"] == "completed"
    closed(old)


def test_code_of_an_older_store_continues_where_it_waited(shell):
    module = run_module.module(shell, harness.ROOT / "examples/code/flows.c")
    old = opened(shell, "code", "--test", "--module", module)
    web = old.web
    [step] = web.get("/v1/steps?instance_id=" + old["trade"]).json["steps"]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"result": 77})
    assert old.view(old["trade"])["result"] == {"receipt": 77}
    web.expect(200, "POST", "/v1/test/advance", {"by": "10m"})
    assert old.view(old["buff"])["result"] == {"final_stacks": 5}
    assert old.view(old["night"])["status"] in ("suspended", "running")
    closed(old)


def test_an_older_export_is_imported_with_its_hashes(shell):
    with tarfile.open(HERE / "export.tar.xz") as files:
        files.extractall(shell.folder)
    facts = json.loads((HERE / "flows.json").read_text())
    shell.pawl("--store", "sqlite:new.db", "import", "export.jsonl")
    answer = shell.json("--store", "sqlite:new.db", "verify")
    assert answer["valid"], answer
    for id, seen in facts["instances"].items():
        entries = shell.json("--store", "sqlite:new.db", "history", id)["entries"]
        assert [e["hash"] for e in entries][:len(seen["history"])] == [e["hash"] for e in seen["history"]]


def test_migrating_an_older_store_changes_no_record(shell):
    old = Old(shell, "flows")
    shutil.copytree(shell.folder, shell.folder / "before", ignore=lambda *_: ["before"])
    old.shell.pawl("--store", "sqlite:s.db", "init")
    records = "SELECT pos, inst, seq, what, at, fired, body, hash, root FROM pawl_log ORDER BY pos"
    with sqlite3.connect(shell.folder / "before" / "s.db") as db:
        before, version = db.execute(records).fetchall(), db.execute("PRAGMA user_version").fetchone()
    with sqlite3.connect(old.path) as db:
        after, newer = db.execute(records).fetchall(), db.execute("PRAGMA user_version").fetchone()
    assert after[:len(before)] == before and newer >= version, (version, newer)


if __name__ == "__main__":
    harness.main(globals())
