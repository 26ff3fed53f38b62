#!/usr/bin/env python3
"""Instances of Python and Node, while the processes that run them are killed at random: all end, each step has one result, the ledger is
clean. PAWL_TEST_LONG=1: 10,000 of them, and the server is killed as well."""
import os
import pathlib
import random
import signal
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent.parent / "clients/python")]
from pawl_client import Pawl  # noqa: E402
from run_node import installed  # noqa: E402
from run_python import Served  # noqa: E402
from web import harness  # noqa: E402

LONG = bool(os.environ.get("PAWL_TEST_LONG"))
COUNT = 5000 if LONG else 20  # of each language
LEDGER = "ledger.txt"

PYTHON = '''
from pawl_client import gather, retries, select, signal, sleep, step, step_info, workflow


@retries(max_attempts=100, first="10ms", longest="50ms")
def py_charge(n: int) -> int:
    with open("%s", "a") as ledger:
        ledger.write("%%s\\n" %% step_info().idempotency_key)
    return 2 * n


@workflow
async def py_order(n: int) -> int:
    a = await step(py_charge, n)
    await sleep(0.1)
    b, c = await gather(step(py_charge, a), step(py_charge, a + 1))
    await select(go=signal("go"), late=sleep(0.1))
    return a + b + c
''' % LEDGER

NODE = '''
import fs from "node:fs";
import { gather, retries, select, signal, sleep, step, stepInfo, workflow } from "pawl-client/durable";

const charge = retries({ maxAttempts: 100, first: "10ms", longest: "50ms" }, function js_charge({ n }) {
    fs.appendFileSync("%s", stepInfo().idempotencyKey + "\\n");
    return 2 * n;
});

export const order = workflow({ signals: ["go"], steps: [charge] }, async function js_order({ n }) {
    const a = await step(charge, { n });
    await sleep(100);
    const [b, c] = await gather([step(charge, { n: a }), step(charge, { n: a + 1 })]);
    await select({ go: signal("go"), late: sleep(100) });
    return a + b + c;
});
''' % LEDGER


def age_s(pid):
    """One that dies while it loads is a module that does not load: that is another test."""
    begun = int(pathlib.Path("/proc/%s/stat" % pid).read_text().rsplit(")")[-1].split()[19]) / os.sysconf("SC_CLK_TCK")
    return float(pathlib.Path("/proc/uptime").read_text().split()[0]) - begun


class Killer(threading.Thread):
    """Kills a process of a module now and then."""

    def __init__(self, server, dice):
        super().__init__(daemon=True)
        self.server, self.dice, self.kills, self.is_over = server, dice, 0, threading.Event()

    def run(self):
        while not self.is_over.wait(0.1):
            try:
                # each thread has the children that it began
                threads = pathlib.Path("/proc/%d/task" % self.server.child.pid).glob("*/children")
                children = [pid for thread in threads for pid in thread.read_text().split() if age_s(pid) > 1]
                if children:
                    os.kill(int(self.dice.choice(children)), signal.SIGKILL)
                    self.kills += 1
            except OSError:
                pass  # it had ended, or the server had



def test_workers_that_are_killed_at_random_lose_nothing_and_do_nothing_twice(shell):
    installed(shell.folder)
    shell.write("game.py", PYTHON)
    shell.write("game.mjs", NODE)
    s = Served(shell, "--module", "game.py", module="game.mjs")
    pawl = Pawl(s.address)
    dice = random.Random()
    killer = Killer(s, dice)
    killer.start()
    ids = {}
    n = 0
    while n < COUNT or killer.kills < 3:
        assert n < 100 * COUNT, "%d kills in %d instances" % (killer.kills, n)
        for name in ("py_order", "js_order"):
            ids[pawl.instance_create(definition=name, input={"n": n})["instance_id"]] = n
        if LONG and n % 1000 == 500:
            s.again(signal.SIGKILL)
            pawl = Pawl(s.address)
        n += 1
    shell.wait_for(lambda: settled(pawl), 60 if not LONG else 1800)
    killer.is_over.set()
    killer.join()
    for id, n in ids.items():
        found = pawl.instance_get(id)
        assert found["status"] == "completed" and found["result"] == 2 * n + 4 * n + 2 * (2 * n + 1), (found, pawl.instance_why(id))
        done = [entry["action"] for entry in pawl.instance_history(id)["entries"]].count("step.complete")
        assert done == 3, pawl.instance_history(id)
    wrote = (shell.folder / LEDGER).read_text().split()
    assert len(set(wrote)) == 3 * len(ids) and {key.split(".")[0].split(":")[0] for key in wrote} == set(ids), (len(set(wrote)), len(ids))
    s.verify()
    s.end()


def settled(pawl):
    """All have ended. Killed twice in the same turn, an instance is paused: it is resumed, as an operator would."""
    for one in pawl.instance_list(status="paused", limit=100)["instances"]:
        pawl.instance_resume(one["instance_id"])
    counts = pawl.instance_counts()["by_status"]
    return sum(counts.values()) == sum(counts.get(status, 0) for status in ("completed", "failed", "cancelled"))


if __name__ == "__main__":
    harness.main(globals())
