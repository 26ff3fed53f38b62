#!/usr/bin/env python3
"""run_kill.py - kill -9 at random, at every named point and at every sync, while machines,
flows and countdowns are driven by several clients, over HTTP and from the command line; and
syncs and writes that fail under a server that lives on.

One store lives through all the deaths. After each the ledger (rig.py) is checked; at the end
every instance must end as it should, and both verifiers must agree that the store is valid. D37.
"""
import functools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402

SEED = int(os.environ.get("PAWL_TEST_SEED", "1"))
LOAD_S = 2  # the longest a round waits for a death that does not come
POINTS = re.findall(r'X\([A-Z_]+, "([a-z-]+)"\)', (rig.ROOT / "src/env/env.h").read_text())
CHANCE = random.Random(SEED)  # other deaths on other days
NUMBERS = (1, 2, 3, 5, 8, 13, 21, 55)  # at which visit of a point it dies
SYNCS = range(1, 61) if rig.LONG else (*CHANCE.sample(range(1, 9), 3), *CHANCE.sample(range(9, 61), 3))
FAILURES = [what % n for what, numbers in (
    ("fdatasync:error=EIO:when=%d", range(1, 40) if rig.LONG else (2, 6, 15)),
    ("pwrite64:error=ENOSPC:when=%d", range(30, 200, 7) if rig.LONG else (60, 110)),
    ("pwrite64:error=EIO:when=%d+60", range(30, 200, 13) if rig.LONG else (70, 95))) for n in numbers]
RANDOM_KILLS = 60 if rig.LONG else 5


class Load:
    """Clients that work until their server is gone."""

    def __init__(self, ledger, server, folder):
        self.ledger, self.server, self.folder = ledger, server, folder
        self.errors = []
        jobs = [self.switch_lamps, self.write_papers, self.take_trips, self.count_down, self.look_around,
                self.type_commands]
        self.threads = [threading.Thread(target=self.work, args=(job,)) for job in jobs]
        for thread in self.threads:
            thread.start()

    def work(self, job):
        try:
            job(self.server.client())
        except rig.Gone:
            pass
        except Exception:
            self.errors.append(traceback.format_exc())

    def join(self):
        for thread in self.threads:
            thread.join()
        assert not self.errors, self.errors[0]

    def switch_lamps(self, client):
        lamp = rig.create(self.ledger, client, "lamp", {"definition": "lamp"})
        for i in range(100000):
            if i % 5 == 4:
                refused = rig.switch(self.ledger, client, lamp, "explode")
                assert refused is None, "an action that is not declared was accepted"
            else:
                rig.switch(self.ledger, client, lamp)

    def write_papers(self, client):
        """All that machines can do, declared inline."""
        for i in range(12):
            paper = rig.create(self.ledger, client, "paper", {
                "declaration": rig.PAPER, "actor_ref": "ann", "correlation_id": "c-%d" % i, "input": [i],
                "labels": {"of": "kill"}, "instance_metadata": {"round": i}})
            fire = functools.partial(rig.switch, self.ledger, client, paper)
            number = fire("edit", size=20000, expected_sequence=1, actor_ref="ann")
            assert number in (1, None), number
            assert fire("edit", expected_sequence=77) is None, "a stale expectation was accepted"
            assert fire("send", guard_satisfied=True) is None, "an action that is not declared was accepted"
            assert fire("hold") is None, "no reason was given, and it was accepted"
            if fire("hold", reason="to be signed"):
                assert fire("send") is None, "a guard was not asserted, and it was accepted"
            if i % 2:
                fire("send", guard_satisfied=True)
            else:
                rig.cancel(self.ledger, client, paper)

    def look_around(self, client):
        while True:
            status, body = client.call("GET", "/v1/instances?limit=5")
            assert status in (200, 503), (status, body)
            for one in body["instances"] if status == 200 else ():
                status, body = client.call("GET", "/v1/instances/%s/history" % one["instance_id"])
                assert status in (200, 503), (status, body)
                if status == 200:
                    numbers = [e["sequence_number"] for e in body["entries"]]
                    assert numbers == list(range(1, len(numbers) + 1)), numbers
            time.sleep(0.01)

    def take_trips(self, client):
        for i in range(25):
            rig.create(self.ledger, client, "trip", {"definition": "trip", "input": {"bag": i}})
            time.sleep(0.03)

    def count_down(self, client):
        for _ in range(3):
            instance = rig.create(self.ledger, client, "countdown",
                                  {"definition": "countdown", "input": {"from": 3, "every": "%dms" % rig.EVERY_MS}})
            self.add_one(client, instance)
            time.sleep(0.1)

    def add_one(self, client, instance):
        try:
            status, answer = client.call("POST", "/v1/instances/%s/signals" % instance.id,
                                         {"name": "add", "payload": 1})
        except rig.Gone as gone:
            instance.added_perhaps += gone.sent
            raise
        instance.added += status == 202
        instance.added_perhaps += status == 503
        assert status in (202, 409, 503), (status, answer)

    def type_commands(self, client):
        lamp = rig.create(self.ledger, client, "lamp", {"definition": "lamp"})
        while not self.server.is_dead():
            mark = self.ledger.mark()
            lamp.open.add(mark)
            code, out, err = rig.run_cli(self.folder, "fire", lamp.id, "switch", "--json",
                                         "--payload", json.dumps({"mark": mark}))
            if code == 0:
                lamp.open.discard(mark)
                lamp.acked[json.loads(out)["sequence_number"]] = mark
                self.ledger.note("acknowledged")
            elif code == 1:
                raise AssertionError("the command line was refused: " + err)
            else:
                self.ledger.note("unanswered")


def recover(folder, ledger):
    """The next owner: is everything there?"""
    server = rig.Server(folder)
    assert server.address, "the store can not be served any more"
    ledger.check(server.client())
    return server


def run_round(folder, ledger, env=None, before=(), kill_after=None):
    server = rig.Server(folder, env, before)
    if server.address:
        load = Load(ledger, server, folder)
        if not server.wait(LOAD_S if kill_after is None else kill_after):
            ledger.by_hand += 1
            server.child.kill()
        server.child.wait()
        load.join()
    server.kill()
    ledger.deaths += 1
    recover(folder, ledger).kill()  # and it dies again, with nothing to do


def kill_at_points(folder, ledger):
    for point in POINTS:
        for n in NUMBERS if rig.LONG else (CHANCE.choice(NUMBERS[:3]), CHANCE.choice(NUMBERS[3:])):
            run_round(folder, ledger, env={"PAWL_CRASH_AT": "%s:%d" % (point, n)})


def kill_at_random(folder, ledger):
    for _ in range(RANDOM_KILLS):
        run_round(folder, ledger, kill_after=CHANCE.uniform(0.05, 1.0))


def kill_at_syncs(folder, ledger):
    strace = shutil.which("strace")
    if not strace:
        print("SKIPPED: kill at every sync: there is no strace")
        return
    for n in SYNCS:
        inject = "inject=fdatasync,fsync:signal=SIGKILL:when=%d" % n
        run_round(folder, ledger, before=(strace, "-D", "-f", "-qq", "-o", "/dev/null", "-e",
                                          "trace=fdatasync,fsync", "-e", inject))


def fail_calls(folder, ledger):
    """A sync or a write fails under a server, which goes on, or ends if it can't reopen its
    store; whatever it answers is true."""
    strace = shutil.which("strace")
    if not strace:
        print("SKIPPED: syncs and writes that fail: there is no strace")
        return
    for failure in FAILURES:
        run_round(folder, ledger, kill_after=0.6,
                  before=(strace, "-D", "-f", "-qq", "-o", "/dev/null", "-e",
                          "trace=" + failure.split(":")[0], "-e", "inject=" + failure))


def has_ended(client, instance):
    status, body = client.call("GET", "/v1/instances/" + instance.id)
    assert status == 200, (status, body)
    if body["status"] in ("running", "suspended"):
        return False
    allowed = ("completed", "cancelled") if instance.kind == "paper" else ("completed",)
    assert body["status"] in allowed, "%s: %s" % (instance.kind, body)
    if instance.kind == "paper":
        assert body["labels"] == {"of": "kill"} and body["instance_metadata"] == {"round": body["input"][0]}, body
    if instance.kind == "trip":
        assert body["result"] == {"got": body["input"]["bag"]}, body
    if instance.kind == "countdown":
        ticks = body["result"]["ticks"] - 3
        assert instance.added <= ticks <= instance.added + instance.added_perhaps, (
            body, instance.added, instance.added_perhaps)
    return True


def end_all(folder, ledger):
    """Machines accept the rest; flows and countdowns end by themselves."""
    server = rig.Server(folder)
    client = server.client()
    ledger.check(client, everything=True)
    for instance in ledger.instances:
        if instance.kind == "lamp":
            assert rig.switch(ledger, client, instance, "break") == len(instance.seen) + 1
        if instance.kind == "paper" and not has_ended(client, instance):
            assert rig.switch(ledger, client, instance, "tear") == len(instance.seen) + 1
    for instance in ledger.instances:
        rig.wait_for(lambda: has_ended(client, instance))
    ledger.check(client, everything=True)
    server.stop()


def prepare(folder):
    for name, text in (("lamp.yaml", rig.LAMP), ("trip.yaml", rig.TRIP)):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
        code, _, err = rig.run_cli(folder, "define", name)
        assert code == 0, err


def kill_creation(folder):
    """Killed while it makes the store: there is none, or a whole one; never anything else."""
    strace = shutil.which("strace")
    if not strace:
        print("SKIPPED: kill while the store is made: there is no strace")
        return
    names = "write,pwrite64,fsync,fdatasync,renameat2,rename,ftruncate,unlink,unlinkat,flock,fcntl"
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
    for n in range(1, 1000, 1 if rig.LONG else 41):
        with tempfile.TemporaryDirectory(prefix="pawl-birth-") as birth:
            code = subprocess.run(
                [strace, "-f", "-qq", "-o", "/dev/null", "trace=" + names, "-e", "inject=%s:signal=SIGKILL:when=%d" % (names, n),
                 rig.PAWL, "--store", "sqlite:" + birth + "/store.db", "init"], env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
            rig.run_cli(birth, "init")
            rig.verify(birth)
            left = [f for f in os.listdir(birth) if "-new-" in f]
            assert not left, "left behind: %s" % left
        if code == 0:
            break
    assert n > 20, "no kill: the store was made at once"


def main():
    parts = [kill_at_points, kill_at_random, kill_at_syncs, fail_calls]
    passed = failed = 0
    ledger = rig.Ledger()
    with tempfile.TemporaryDirectory(prefix="pawl-kill-") as folder:
        for part in [prepare, *parts, end_all, rig.verify, rig.check_timers, rig.check_no_sanitizer, kill_creation]:
            begun = time.monotonic()
            try:
                part(folder, ledger) if part in (*parts, end_all) else part(folder)
                passed += 1
                print("ok - %s, %.1f s" % (part.__name__.replace("_", " "),
                                           time.monotonic() - begun), flush=True)
            except Exception:
                failed += 1
                print("not ok - " + part.__name__.replace("_", " "), flush=True)
                traceback.print_exc(file=sys.stdout)
                if part is not kill_creation:
                    kept = tempfile.mkdtemp(prefix="pawl-kill-kept-")
                    shutil.copytree(folder, kept, dirs_exist_ok=True)
                    print("the store is kept in " + kept)
                break
    print("# seed %d, %d deaths (%d by our own hand), %d instances, %s" % (
        SEED, ledger.deaths, ledger.by_hand, len(ledger.instances), ledger.calls))
    print("# %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
