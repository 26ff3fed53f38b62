#!/usr/bin/env python3
"""Durable code in Python: `pawl serve --module game.py` takes its turns and its steps in processes of python3."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "pip")]
from packages import Unavailable, environment  # noqa: E402
from web import Web, harness  # noqa: E402

ROOT = harness.ROOT
os.environ["PYTHONPATH"] = str(ROOT / "clients/python")
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
WORKFLOWS = HERE / "durable_python.py"


class Served:
    """A server with the module, that is stopped or killed, and begun again."""

    def __init__(self, shell, *words, module=None):
        self.shell, self.words = shell, [*words, "--module", str(module or WORKFLOWS)]
        self.begin()

    def begin(self):
        self.child, self.address = self.shell.serve(*self.words)
        self.web = Web(self.address)

    def again(self, how=signal.SIGTERM):
        self.end(how)
        self.begin()

    def end(self, how=signal.SIGTERM):
        if how == signal.SIGKILL:
            self.child.kill()
            self.child.wait()
        else:
            self.shell.stop(self.child)

    def create(self, definition, **input):
        return self.web.create(definition=definition, input=input)

    def get(self, id):
        return self.web.get("/v1/instances/" + id).json

    def signal(self, id, name, payload=None, expect=202):
        return self.web.expect(expect, "POST", "/v1/instances/%s/signals" % id, {"name": name, "payload": payload})

    def advance(self, by):
        self.web.expect(200, "POST", "/v1/test/advance", {"by": by})

    def until(self, id, status="completed"):
        self.shell.wait_for(lambda: self.get(id)["status"] == status)
        return self.get(id)

    def why(self, id):
        return json.dumps(self.web.get("/v1/instances/%s/why" % id).json)

    def history(self, id):
        return [(one["action"], one.get("payload")) for one in self.web.get("/v1/instances/%s/history" % id).json["entries"]]

    def verify(self):
        assert self.web.expect(200, "POST", "/v1/verify").json["valid"]


def test_steps_run_at_once_with_typed_arguments_and_are_tried_again_under_one_key(shell):
    s = Served(shell)
    id = s.create("order", lines=[{"sku": "a", "count": 2}, {"sku": "b", "count": 5}])
    found = s.until(id)["result"]
    assert found["sum"] == 21 and found["reason"] == "declined" and found["late"] == "later a", found
    assert found["tries"][1] == "3" and found["tries"][0].startswith(id), found
    starts = [action for action, _ in s.history(id)]
    assert starts[:3] == ["start", "step.start", "step.start"], starts
    assert starts.count("step.retry") == 2, starts
    s.verify()
    s.end()


def test_a_key_of_the_authors_own_is_the_same_each_time_around(shell):
    s = Served(shell)
    id = s.create("keyed")
    assert s.until(id)["result"] == [id + ":refund"] * 2, s.get(id)
    s.end()


def test_a_select_in_a_loop_waits_for_weeks_and_through_deaths(shell):
    s = Served(shell, "--test")
    id = s.create("invoice", cents=500)
    for _ in range(3):
        s.advance("8d")
        s.again(signal.SIGKILL)
    s.signal(id, "paid", 200)
    said = s.web.refused("invalid-request", "POST", "/v1/instances/%s/signals" % id, {"name": "paid", "payload": "lots"})
    assert "expected int" in said.json["detail"], said.json
    s.again(signal.SIGKILL)
    s.signal(id, "paid", 300)
    assert s.get(id)["result"] == {"paid": 500, "reminders": 3}, s.get(id)
    assert [action for action, _ in s.history(id)] == ["start"] + ["timer"] * 3 + ["signal"] * 2 + ["finish"]
    late = s.create("invoice")
    s.advance("30d")
    assert s.get(late)["status"] == "failed" and s.get(late)["error"] == "does not pay", s.get(late)
    s.verify()
    s.end()


def test_an_input_that_does_not_fit_is_refused_by_name(shell):
    s = Served(shell, "--test")
    for definition, input, words in (("invoice", {"cents": "many"}, "'cents': expected int"), ("invoice", {"euro": 1}, "unknown member 'euro'"),
                                     ("child", {}, "'n' is missing")):
        said = s.web.refused("invalid-request", "POST", "/v1/instances", {"definition": definition, "input": input})
        assert words in said.json["detail"], said.json
    s.end()


def test_time_and_chance_are_the_same_when_the_code_is_replayed(shell):
    s = Served(shell, "--test")
    ids = [s.create("chance", rounds=6) for _ in range(4)]
    for i in range(6):
        s.advance("1s")
        if i % 2:
            s.again(signal.SIGKILL)
    for id in ids:
        found = s.get(id)["result"]
        assert len(found) == 19 and found[3::3] == [id] * 6, found
        assert len(set(found[2::3])) == 6 and found[1::3] == sorted(found[1::3]), found
    s.verify()
    s.end()


def test_a_checkpoint_is_where_it_is_replayed_from(shell):
    s = Served(shell, "--test")
    id = s.create("ticker", most=200)
    for _ in range(4):
        s.advance("50s")
        s.again(signal.SIGKILL)
    found = s.get(id)
    assert found["status"] == "completed" and found["result"] == 200, found
    s.verify()
    s.end()


def test_helpers_await_and_are_cancelled(shell):
    s = Served(shell, "--test")
    id = s.create("helpers")
    s.advance("2s")
    found = s.get(id)
    assert found["status"] == "completed", s.why(id)
    assert found["result"][0] in ("slow", "both"), found
    s.end()


def test_children_run_at_once_and_their_results_come_in_order(shell):
    s = Served(shell, "--test")
    id = s.create("parent", count=5)
    s.advance("3s")
    s.again(signal.SIGKILL)
    s.advance("9s")
    assert s.until(id)["result"] == [0, 1, 4, 9, 16], s.get(id)
    s.verify()
    s.end()


def test_others_are_started_and_signalled_with_the_commit_of_a_turn(shell):
    s = Served(shell, "--test")
    to = s.create("invoice", cents=100)
    id = s.create("sender", to=to)
    s.again(signal.SIGKILL)
    s.advance("1s")
    s.advance("1ms")
    assert s.get(id)["result"] == "sent", s.why(id)
    assert s.until(to)["result"] == {"paid": 100, "reminders": 0}, s.get(to)
    started = s.web.get("/v1/instances?definition=child").json["instances"]
    assert len(started) == 1 and s.get(started[0]["instance_id"])["input"] == {"n": 5}, started
    s.verify()
    s.end()
    subprocess.run([sys.executable, ROOT / "tools/verify.py", shell.folder / "pawl.db"], check=True, stdout=subprocess.DEVNULL)


def test_an_external_step_and_a_broadcast_reach_it(shell):
    s = Served(shell, "--test")
    human, hunter = s.create("human"), s.create("hunter", enemy="bear")
    step = s.web.get("/v1/instances/%s/steps" % human).json["steps"][0]["step_id"]
    s.web.expect(200, "POST", "/v1/steps/%s/complete" % step, {"result": {"receipt": 9}})
    assert s.get(human)["result"] == {"receipt": 9}, s.get(human)
    s.web.expect(202, "POST", "/v1/signals", {"name": "killed", "payload": "w", "filter": "wolf"})
    assert s.get(hunter)["status"] == "suspended"
    s.web.expect(202, "POST", "/v1/signals", {"name": "killed", "payload": "b", "filter": "bear"})
    assert s.get(hunter)["result"] == "b", s.get(hunter)
    s.end()


def test_a_crash_an_endless_loop_and_a_mistake_pause_their_instance_alone(shell):
    s = Served(shell, "--test", "--module-time", "1500")
    good = s.create("invoice", cents=1)
    for mode, words in (("crash", "ended its process twice"), ("loop", "no answer in 1500 ms")):
        id = s.create("wild", mode=mode)
        said = s.web.refused("paused", "POST", "/v1/instances/%s/signals" % id, {"name": "go"})
        assert words in said.json["detail"], said.json
    bug = s.create("wild", mode="bug")
    s.signal(bug, "go")
    found = s.get(bug)
    assert found["status"] == "paused", found
    assert "KeyError: 'a mistake'" in s.why(bug) and "durable_python.py:" in s.why(bug), s.why(bug)
    s.signal(good, "paid", 1)
    assert s.get(good)["status"] == "completed"
    s.verify()
    s.end()


ODD = """
import asyncio
import sys

from pawl_client import Fail, select, step, workflow


def same(x: object) -> object:
    return sys.exit(3) if x == "exit" else float("nan") if x == "nan" else "\\ud800" if x == "half" else x


@workflow
async def odd(how: str) -> object:
    if how == "fail":
        raise Fail(float("inf"))
    if how == "asyncio":
        await asyncio.sleep(1)
    if how == "exit":
        sys.exit(3)
    if how == "none":
        await select()
    if how == "args":
        return await step(same, "x" * 1100000)
    if how.startswith("step "):
        return await step(same, how[5:])
    return {"nan": [float("nan")], "half": {"\\udc00": 1}, "object": object(), "large": "x" * 1100000}[how]
"""


def test_what_is_no_json_ends_no_process_and_is_named_with_its_line(shell):
    shell.write("odd.py", ODD)
    s = Served(shell, "--test", module="odd.py")
    for how, words in (("nan", "expected what JSON can hold, found nan"), ("half", "surrogates not allowed"), ("object", "found object"), ("fail", "found inf"),
                       ("asyncio", "belongs in a step (" + str(shell.folder)), ("exit", "SystemExit: 3 ("), ("none", "one arm or more"),
                       ("args", "the arguments of 'same' are over 1048576 bytes"), ("large", "its result is over 1048576 bytes")):
        id = s.create("odd", how=how)
        assert s.get(id)["status"] == "paused" and words in s.why(id), (how, s.why(id))
    for how, words in (("step exit", "SystemExit"), ("step nan", "expected what JSON can hold, found nan"), ("step half", "surrogates not allowed")):
        assert words in json.dumps(s.until(s.create("odd", how=how), "failed")["error"]), how
    assert s.until(s.create("odd", how="step fine"))["result"] == "fine"
    s.verify()
    s.end()


def test_a_step_that_kills_its_process_is_a_failed_step(shell):
    s = Served(shell)
    id = s.create("wild", mode="step")
    s.signal(id, "go")
    found = s.until(id, "failed")
    assert "ended its process" in json.dumps(found["error"]), found
    s.end()


QUICK = '''
import os
import time

from pawl_client import step, workflow

FLAG = "%s"


def quick(n: int) -> list[int]:
    if n < 0 and not os.path.exists(FLAG):
        os._exit(7)
    return [n, os.getpid()]


@workflow
async def many(count: int = 30, end: int = 0, spin: int = 0) -> dict[str, list[int]]:
    found, mine = [], []
    for n in range(count):
        found.append(await step(quick, n))
        mine.append(os.getpid())
    if end:
        found.append(await step(quick, -end))
    while spin and not os.path.exists(FLAG):
        time.sleep(0.01)
    return {"n": [one[0] for one in found], "steps": [one[1] for one in found], "turns": mine}
'''


def test_quick_steps_go_together_to_the_process_that_has_their_code_and_one_that_ends_it_takes_none_with_it(shell):
    flag = shell.folder / "flag"
    shell.write("quick.py", QUICK % flag)
    s = Served(shell, "--module-time", "1500", module="quick.py")
    first = s.until(s.create("many", count=90))["result"]  # the first sixteen show that they are quick
    assert set(first["steps"][16:]) & set(first["turns"]), first  # a step and the turn behind it, by one process
    ids = [s.create("many") for _ in range(12)]
    dead, ill = s.create("many", end=1), s.create("many", spin=1)
    ids += [s.create("many") for _ in range(12)]
    for id in ids:
        found = s.until(id)["result"]
        assert found["n"] == list(range(30)), found
        assert [action for action, _ in s.history(id)].count("step.complete") == 30
    found = s.until(dead, "failed")
    assert "ended its process" in json.dumps(found["error"]), found
    s.until(ill, "paused")
    assert "no answer in 1500 ms" in s.why(ill), s.why(ill)
    flag.write_text("")
    s.web.expect(200, "POST", "/v1/instances/%s/resume" % ill)
    assert s.until(ill)["result"]["n"] == list(range(30))
    assert [action for action, _ in s.history(ill)].count("step.complete") == 30
    s.verify()
    s.end()


def test_steps_that_are_asked_for_together_are_answered_in_order_with_the_turns_they_lead_to(shell):
    shell.write("quick.py", QUICK % "flag")
    ask_together(subprocess.Popen([sys.executable, "-m", "pawl_client", str(shell.folder / "quick.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE))


def ask_together(child):
    """tests/vectors/turns.json has one request at a time: this is how a process that says `many` is asked."""
    assert hear(child)["many"] == 1
    begun = ask(child, {"type": "many", "at": 5, "keep": 1, "events": [], "open": {"timers": [], "signals": [], "calls": []},
                        "fresh": [{"kind": 1, "at": 5, "payload": {"count": 2}}]})
    assert begun == {"end": 0, "keeps": 1, "calls": [{"name": "quick", "args": {"n": 0}}]}, begun
    one = {"tool": "quick", "args": {"n": 0}, "instance": "I", "step": "quick"}
    then = {"type": "many", "at": 9, "have": 1, "keep": 2, "call": 1}
    answers, turns = [], None
    body = json.dumps({"many": [{**one, "then": then}, one, {**one, "then": {**then, "have": 99}}, {**one, "args": {"x": 1}, "then": then}]}).encode()
    child.stdin.write(struct.pack("<I", len(body)) + body)
    child.stdin.flush()
    while turns is None:
        found = hear(child)
        answers, turns = answers + found.get("answers", []), found.get("turns")
    assert [answer.get("result", [None])[0] for answer in answers] == [0, 0, 0, None] and answers[3]["failed"], answers
    assert turns == [{"turn": {"end": 0, "keeps": 1, "calls": [{"name": "quick", "args": {"n": 1}}]}}, None, None, None], turns
    child.stdin.close()
    child.stdout.close()
    assert child.wait(timeout=30) == 0


def edited(shell, *changes):
    text = WORKFLOWS.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (shell.folder / "game.py").write_text(text)
    return shell.folder / "game.py"


def test_code_that_comes_elsewhere_is_held_and_goes_on_when_it_is_put_right(shell):
    s = Served(shell, "--test", module=edited(shell))
    id = s.create("changing")
    s.signal(id, "one")
    edited(shell, ('    await signal("one")\n', '    await sleep(5)\n    await signal("one")\n'))
    s.again()
    s.signal(id, "two")
    assert s.get(id)["status"] == "paused", s.get(id)
    why = s.why(id)
    assert "NondeterminismError" in why and "entry 2" in why and "signal 'one'" in why and "game.py:" in why, why
    edited(shell)
    s.again()
    s.web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    assert s.until(id)["result"] == "new", s.get(id)
    s.verify()
    s.end()


def test_patched_code_runs_for_those_that_come_to_it_and_not_for_those_that_are_past(shell):
    unpatched = ('    if patched("greeting"):\n        said = "new"\n', "")
    s = Served(shell, "--test", module=edited(shell, unpatched))
    past, before = s.create("changing"), s.create("changing")
    s.signal(past, "one")
    edited(shell)
    s.again(signal.SIGKILL)
    s.signal(before, "one")
    s.again(signal.SIGKILL)
    for id, said in ((past, "old"), (before, "new")):
        s.signal(id, "two")
        assert s.get(id)["result"] == said, (s.get(id), s.why(id))
    s.end()


def test_a_changed_file_is_not_mixed_with_the_build_that_was_loaded(shell):
    s = Served(shell, "--test", "--module-time", "1000", module=edited(shell))
    old = s.create("invoice", cents=7)
    edited(shell, ('return {"paid": got, "reminders": reminders}', 'return {"paid": got, "reminders": -1}'))
    id = s.create("wild", mode="crash")
    said = s.web.refused("not-known", "POST", "/v1/instances/%s/signals" % id, {"name": "go"})
    assert "has changed since it was loaded" in said.json["detail"], said.json
    s.child.send_signal(signal.SIGHUP)
    shell.wait_for(lambda: "module.reloaded" in json.dumps(s.web.get("/v1/info").json) or
                   s.web.post("/v1/instances/%s/signals" % old, {"name": "paid", "payload": 7}).status == 202)
    assert s.get(old)["result"] == {"paid": 7, "reminders": -1}, s.get(old)
    s.end()


def test_a_changed_file_that_the_workflows_import_is_another_build_too(shell):
    shell.write("helper.py", "WORD = 'old'\n")
    shell.write("uses.py", "import os\nimport helper\nfrom pawl_client import workflow\n\n@workflow\nasync def w(die: bool = False) -> str:\n"
                           "    if die:\n        os._exit(3)\n    return helper.WORD\n")
    s = Served(shell, module="uses.py")
    assert s.get(s.create("w"))["result"] == "old"
    shell.write("helper.py", "WORD = 'new'\n")
    said = s.web.post("/v1/instances", {"definition": "w", "input": {"die": True}})
    assert "has changed since it was loaded" in said.json["detail"], said
    s.child.send_signal(signal.SIGHUP)
    shell.wait_for(lambda: s.web.post("/v1/instances", {"definition": "w"}).status == 201)
    assert s.get(s.create("w"))["result"] == "new"
    s.end()


def test_answers_that_come_during_a_pause_are_all_handled_at_resume(shell):
    s = Served(shell, "--test")
    id = s.create("parent", count=3)
    s.web.expect(200, "POST", "/v1/instances/%s/pause" % id)
    s.advance("9s")
    assert s.get(id)["status"] == "paused"
    s.again(signal.SIGKILL)
    s.web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    assert s.until(id)["result"] == [0, 1, 4], (s.get(id), s.why(id))
    s.verify()
    s.end()


# ---- The first five minutes ----------------------------------------------------------------------------------------------------------

HELLO = '''
from pawl_client import sleep, step, workflow


def greet(name: str) -> str:
    return "hello " + name


@workflow
async def hello(name: str = "world") -> list[str]:
    said = []
    for i in range(3):
        said.append(await step(greet, "%s %d" % (name, i)))
        await sleep(0.5)
    return said
'''


def test_the_first_five_minutes_from_a_wheel_to_a_run_that_is_killed_and_goes_on(shell):
    python, source, venv = from_pip(), shell.folder / "source", shell.folder / "venv"
    shutil.copytree(ROOT / "clients/python", source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    for words in (["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", "dist", str(source)], ["-m", "venv", "--without-pip", str(venv)]):
        subprocess.run([python, *words], cwd=shell.folder, check=True)
    [wheel] = (shell.folder / "dist").glob("pawl_client-*.whl")
    subprocess.run([python, "-m", "pip", "--python", str(venv / "bin/python"), "install", "--quiet", "--no-index", str(wheel)], cwd=shell.folder, check=True)
    shell.write("hello.py", HELLO)
    mine = {"PATH": "%s:%s" % (venv / "bin", os.environ["PATH"]), "PYTHONPATH": ""}
    child = shell.begin("run", "hello.py", env=mine)
    shell.wait_for(lambda: (shell.folder / "pawl.db").exists() and "hello world 1" in shell.pawl("show", "@last", expect=None).out)
    child.kill()
    child.wait()
    said = shell.pawl("run", "hello.py", env=mine)
    assert "no handler" not in said.err and "Traceback" not in said.err, said.err
    said = said.out
    assert "was unfinished and goes on" in said and '["hello world 0","hello world 1","hello world 2"]' in said, said
    assert shell.pawl("verify")


BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_every_block_of_the_page_is_run_as_it_stands_there(shell):
    """docs/durable-python.md"""
    (shell.folder / "bin").mkdir()
    (shell.folder / "bin/pawl").symlink_to(os.path.abspath(harness.PAWL))
    path = "%s:%s" % (shell.folder / "bin", os.environ["PATH"])
    out, count = "", 0
    for kind, name, text in BLOCK.findall((ROOT / "docs/durable-python.md").read_text()):
        if name:
            shell.write(name, text)
        elif kind == "sh":
            out = subprocess.run(["bash", "-ec", text], cwd=shell.folder, env=shell.environment({"PATH": path}), check=True,
                                 stdout=subprocess.PIPE, timeout=120).stdout.decode()
            count += 1
        elif kind == "text":
            assert text.strip().lstrip("\u2026") in out, (text, out)
    assert count == 3, count
    assert shell.pawl("run", "ticker.py", "--test").out.rstrip().endswith("1000")


# ---- What a process is asked, and answers ----------------------------------------------------------------------------------------------


def ask(child, request):
    body = json.dumps(request).encode()
    child.stdin.write(struct.pack("<I", len(body)) + body)
    child.stdin.flush()
    return whole(hear(child))


def whole(answer):
    """But for how long a step took, which is told where it took any time."""
    return {key: value for key, value in answer.items() if key != "ms"}


def hear(child):
    return json.loads(child.stdout.read(struct.unpack("<I", child.stdout.read(4))[0]))


def test_the_client_answers_every_vector_of_the_protocol(shell):
    """tests/vectors/turns.json: the types of durable_python.py, in any language."""
    for vector in json.loads((HERE.parent / "vectors/turns.json").read_text())["vectors"]:
        child = subprocess.Popen([sys.executable, "-m", "pawl_client", str(WORKFLOWS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert hear(child)["pawl"] == 1
        for request, answer in vector["turns"]:
            found = ask(child, request)
            assert found == answer, (vector["name"], request, found, answer)
        child.stdin.close()
        child.stdout.close()
        assert child.wait(timeout=30) == 0


def from_pip(name="requirements"):
    try:
        return environment(name)
    except Unavailable as why:
        raise harness.Skip(why)


def test_the_client_and_the_examples_are_typed_strictly(shell):
    done = subprocess.run([from_pip(), "-m", "mypy", "--strict", "--cache-dir", str(shell.folder), "pawl_client", str(WORKFLOWS),
                           str(ROOT / "examples/python/game.py")], cwd=ROOT / "clients/python", capture_output=True,
                          env={**os.environ, "MYPYPATH": "%s:." % (ROOT / "examples/python")})
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


# ---- What speaks the protocol wrongly --------------------------------------------------------------------------------------------------

FAKE = '''
import json, os, struct, sys
ANSWER = %r
def say(body):
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()
say(%r)
while True:
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        break
    sys.stdin.buffer.read(struct.unpack("<I", head)[0])
    say(ANSWER)
'''
GOOD = json.dumps({"pawl": 1, "build": "b", "types": [{"code": "fake", "version": 1, "timers": [], "signals": ["go"], "vars": [], "replay": True}]})


def fake(shell, answer, hello=GOOD):
    return shell.write("fake.py", FAKE % (answer.encode(), hello.encode()))


def test_a_module_that_greets_wrongly_is_refused_by_name(shell):
    for hello, words in (("[]", "not a JSON object"), ("{", "not a JSON object"), ('{"types":[]}', "version 0 of the turn protocol"),
                         ('{"pawl":2,"types":[]}', "version 2 of the turn protocol"), ('{"pawl":1}', "no list 'types'"),
                         ('{"pawl":1,"types":[7]}', "expected a type"), ('{"error":"no such thing"}', "no such thing"),
                         ('{"pawl":1,"types":[{"code":"x","version":1,"signals":[5]}]}', "expected a name")):
        fake(shell, "{}", hello)
        said = shell.pawl("serve", "--listen", "127.0.0.1:0", "--module", "python3 fake.py", expect=None)
        assert said.code != 0 and words in said.err, (hello, said)
    shell.write("quiet.py", "pass\n")
    said = shell.pawl("serve", "--listen", "127.0.0.1:0", "--module", "python3 quiet.py", expect=None)
    assert "ended its process while loading" in said.err and "turn-protocol" in said.err, said
    said = shell.pawl("serve", "--listen", "127.0.0.1:0", "--module", "python3 'quiet.py", expect=None)
    assert "a quote is not closed" in said.err, said


def test_a_module_that_answers_wrongly_changes_nothing_and_the_server_lives(shell):
    wrong = ("", "{", "[]", "{}", '{"end":9}', '{"end":0,"keeps":1}', '{"end":0,"timers":[["end",1]]}', '{"end":0,"calls":7}', '{"end":0,"calls":[{}]}',
             '{"end":0,"calls":[{"name":"nothing"}]}', '{"end":0,"keeps":2}', '{"end":0,"dropped":[["arm","x",1,0]]}', '{"need":1}', '{"status":1}',
             '{"end":0,"state":7,"signals":[["await","go",0]]}', "\\u0000" * 8, '{"end":0,"signals":[["await",1,0]]}')
    for answer in wrong:
        fake(shell, answer)
        child, address = shell.serve("--test", "--module", "python3 fake.py")
        said = Web(address).post("/v1/instances", {"definition": "fake", "input": {}})
        assert said.status in (201, 400, 404, 409), (answer, said)
        if said.status == 201:
            assert Web(address).get("/v1/instances/" + said.json["instance_id"]).json["status"] == "paused", (answer, said)
        assert Web(address).expect(200, "POST", "/v1/verify").json["valid"]
        shell.stop(child)


TOGETHER = '''
import json, struct, sys
WRONG = %r
def say(body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()
say({"pawl": 1, "many": 1, "build": "b", "tools": ["t"], "types": [{"code": "fake", "version": 1, "timers": [], "signals": [], "calls": ["t"], "vars": [], "replay": True}]})
while True:
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        break
    asked = json.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    if "many" in asked:
        for body in WRONG:
            say(body)
    elif "tool" in asked:
        say({"result": asked["args"]})
    elif "have" in asked:
        say({"need": 1})
    else:
        done = len([one for one in asked["events"] + asked["fresh"] if one["kind"] in (4, 5)])
        say({"end": 1, "value": done} if done == 20 else {"end": 0, "keeps": 1, "calls": [{"name": "t", "args": done}]})
'''


def some(*all):
    """A few of them each day."""
    return all if os.environ.get("PAWL_TEST_LONG") else random.sample(all, 3)


def test_a_module_that_answers_wrongly_to_several_steps_is_asked_for_each(shell):
    for wrong in some([b""], [b"{"], [[]], [{}], [{"answers": 7}], [{"answers": []}], [{"answers": [7]}], [{"answers": [{}] * 99}], [{"turns": [None]}],
                  [{"answers": [{"result": 1}] * 40}], [b"\0" * 9]):
        shell.write("fake.py", TOGETHER % wrong)
        s = Served(shell, "--store", "sqlite:%d.db" % hash(str(wrong)), module="python3 fake.py")
        ids = [s.create("fake") for _ in range(4)]
        for id in ids:
            assert s.until(id)["result"] == 20, (wrong, s.get(id))
            assert [action for action, _ in s.history(id)].count("step.start") == 20, wrong
        s.verify()
        s.end()


def test_turns_behind_steps_that_are_wrong_change_nothing_that_a_turn_could_not(shell):
    """What a process says of a turn is checked as any answer is, and used for the turn that it says alone."""
    for turns in some([], 7, [7] * 40, [{"turn": 7}] * 40, [{"turn": {"end": 9}}] * 40, [{"turn": {"end": 0, "keeps": 1}}] * 40, [{"turn": {"need": 1}}] * 40):
        wrong = TOGETHER.replace("for body in WRONG:\n            say(body)",
                                 'say({"answers": [{"result": one["args"]} for one in asked["many"]]})\n        say({"turns": WRONG})')
        shell.write("fake.py", wrong % turns)
        s = Served(shell, "--store", "sqlite:%d.db" % hash(str(turns)), module="python3 fake.py")
        ids = [s.create("fake") for _ in range(4)]
        for id in ids:
            s.shell.wait_for(lambda id=id: s.get(id)["status"] in ("completed", "paused"))
        s.verify()
        s.end()


if __name__ == "__main__":
    harness.main(globals())
