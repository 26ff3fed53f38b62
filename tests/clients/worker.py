"""worker.py - a worker of the tests: notes each call in a file.   worker.py URL FILE [OPTIONS]

OPTIONS is JSON: {"token", "answered": "raise", "log": "raise"}"""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python"))
from pawl_client import Fail, Pawl, Worker  # noqa: E402


options = json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}")


def answered(step, outcome):
    if options.get("answered") == "raise":
        raise RuntimeError("the callback's own")
    with open(sys.argv[2] + ".answered", "a") as heard:
        heard.write("%s %s\n" % (step["tool"], outcome.get("status") or outcome["reason"]))


class Broken:
    def __getattr__(self, name):
        raise RuntimeError("the logger's own")


log = {"log": Broken()} if options.get("log") == "raise" else {}
worker = Worker(Pawl(sys.argv[1], token=options.get("token")), lease="1s", wait=options.get("wait", 0.5), answered=answered, **log)
notes = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@worker.tool("note")
def note(args, step):
    os.write(notes, (step["idempotency_key"] + "\n").encode())
    return {"key": step["idempotency_key"]}


@worker.tool("stumble")
def stumble(args, step):
    if step["attempt"] == 1:
        raise ValueError("the first time")
    raise Fail({"why": "for good"}, retry=False)


@worker.tool("long")
def long(args, step):
    until = time.monotonic() + 1.5  # longer than a lease
    while time.monotonic() < until and not step["lost"]():
        time.sleep(0.05)
    return "lost" if step["lost"]() else "kept"


@worker.tool("slow")
def slow(args, step):
    step["progress"]({"done": 1, "of": 2})
    while not os.path.exists(sys.argv[2] + ".go"):
        time.sleep(0.02)
    step["progress"]("x" * 3000)  # too large: said in the log, and the step goes on
    return "done"


@worker.tool("odd")
def odd(args, step):
    """What JSON has no words for."""
    if args == 2:
        raise Fail({1, 2})
    return [{1, 2}, float("nan")][args]


@worker.tool("lone")
def lone(args, step):
    """What only the server refuses."""
    return "\udcff"


class Silent(Exception):
    def __str__(self):
        raise ValueError("no text")


@worker.tool("raise")
def leave(args, step):
    raise [SystemExit(3), Silent(), ValueError("odd \udcff \0 text"), ValueError("x" * (2 << 20) + " the end")][args["which"]]


worker.run()
