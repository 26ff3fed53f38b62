#!/usr/bin/env python3
"""Durable code in Lua: pawl itself runs the file, in a process of its own, replayed and limited."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http")]
from run_python import Served  # noqa: E402
from web import harness  # noqa: E402

ROOT = harness.ROOT
WORKFLOWS = HERE / "durable_lua.lua"


def served(shell, *words, module=WORKFLOWS):
    return Served(shell, *words, module=module)


def work(s, tools, count):
    """Answers so many steps: a function of the arguments for each tool."""
    for _ in range(count):
        for step in s.web.expect(200, "POST", "/v1/steps/claim", {"tools": list(tools), "worker": "w", "wait": "20s"}).json["steps"]:
            result = tools[step["tool"]](step["args"])
            kind = "fail" if isinstance(result, dict) and "error" in result else "complete"
            body = {"lease": step["lease"], **(result if kind == "fail" else {"result": result})}
            s.web.expect(200, "POST", "/v1/steps/%s/%s" % (step["step_id"], kind), body)


def test_calls_run_at_once_and_an_error_is_caught(shell):
    s = served(shell)
    id = s.create("order", lines=[{"count": 2}, {"count": 5}])
    work(s, {"price": lambda args: args["count"] * 3, "decline": lambda args: {"error": {"code": "declined"}, "retry": False}}, 3)
    assert s.until(id)["result"] == {"sum": 21, "declined": "declined"}
    s.verify()


def test_time_and_chance_are_the_same_when_it_is_replayed_after_a_death(shell):
    s = served(shell, "--test")
    id = s.create("chance")
    s.advance("1s")
    s.again(signal.SIGKILL)
    s.advance("1s")
    s.again()
    s.advance("1s")
    found = s.get(id)["result"]
    assert 0 <= found[0] < 1 and 1 <= found[1] <= 6 and len(found) == 8, found
    assert [later - sooner for sooner, later in zip(found[3::2], found[5::2])] == [1, 1], found
    other = s.get(s.create("chance"))
    assert other["status"] != "paused", other
    s.verify()


def test_a_checkpoint_is_gone_on_from_and_helpers_wait_side_by_side(shell):
    s = served(shell, "--test")
    ticker, helpers = s.create("ticker", most=8), s.create("helpers")
    parent, sender = s.create("parent", count=3), None
    wild = s.create("wild")
    for n in range(8):
        if n % 3 == 1:
            s.again(signal.SIGKILL)
        s.advance("1s")
    assert s.get(ticker)["result"] == 8 and s.get(helpers)["result"] == ["both", "one"], s.why(helpers)
    assert s.get(parent)["result"] == [1, 4, 9], s.get(parent)
    sender = s.create("sender", to=wild)
    s.advance("1s")
    assert s.get(sender)["result"] == "sent"
    s.verify()


def test_what_does_not_fit_is_refused_by_name(shell):
    s = served(shell, "--test")
    for input, words in (({}, "'most': expected integer, found nil"), ({"most": 1.5}, "expected integer, found number"),
                         ({"most": 1, "more": 2}, "unknown member 'more'; expected count, most")):
        said = s.web.refused("invalid-request", "POST", "/v1/instances", {"definition": "ticker", "input": input})
        assert words in said.json["detail"], said.json
    id = s.create("wild")
    said = s.web.refused("invalid-request", "POST", "/v1/instances/%s/signals" % id, {"name": "go", "payload": 7})
    assert "the payload of 'go': expected string, found integer" in said.json["detail"], said.json
    s.signal(id, "go", "well")
    assert s.get(id)["result"] == "well"
    failing = s.create("child", n=99)
    assert s.get(failing)["error"] == {"code": "too many"}


def test_mistakes_and_limits_pause_and_say_where(shell):
    s = served(shell, "--test")
    for how, words in (("mistake", r"durable_lua.lua:\d+: attempt to index a nil value \(global 'nothing'\)"), ("loop", "more than 50000000 operations"),
                       ("address", "a table has no text of its own"), ("keys", "a key is a table, which has no order"), ("function", "a function is no JSON"),
                       ("infinite", "not finite"), ("undeclared", "the file does not name it in quotes"), ("memory", "memory")):
        id = s.create("wild")
        s.web.ask("POST", "/v1/instances/%s/signals" % id, {"name": "go", "payload": how})
        assert s.get(id)["status"] == "paused" and re.search(words, s.why(id)), (how, s.why(id))
    id = s.create("wild")
    s.signal(id, "go", "swallow")
    assert s.get(id)["error"] == "not swallowed"
    s.verify()


def test_the_sandbox_has_no_doors_and_an_order(shell):
    s = served(shell, "--test")
    for how, wanted in (("globals", []), ("order", [1, 3, "ant", "mole", "zebra"])):
        id = s.create("wild")
        s.signal(id, "go", how)
        assert s.get(id)["result"] == wanted, s.get(id)


def test_code_that_comes_elsewhere_when_it_is_replayed_is_found_and_patched_keeps_the_old_way(shell):
    old = 'workflow("w", function()\n  await(sleep(1, "a"))\n  await(sleep(1, "b"))\n  return "old"\nend)\n'
    file = shell.folder / shell.write("w.lua", old)
    s = served(shell, "--test", module=file)
    id, kept = s.create("w"), s.create("w")
    s.advance("1s")
    s.end()
    file.write_text(old.replace('"b"', '"c"'))
    s.begin()
    s.advance("1s")
    assert s.get(id)["status"] == "paused" and "NondeterminismError" in s.why(id) and "timer 'c'" in s.why(id), s.why(id)
    s.end()
    file.write_text(old.replace('  await(sleep(1, "b"))\n', '  if patched("c") then await(sleep(1, "c")) else await(sleep(1, "b")) end\n'))
    s.begin()
    for one in (id, kept):
        s.web.ask("POST", "/v1/instances/%s/resume" % one)
    s.advance("2s")
    assert s.get(id)["result"] == s.get(kept)["result"] == "old"
    s.again()
    new = s.create("w")
    s.advance("3s")
    assert {"timer": "c"} in [payload for _, payload in s.history(new)], s.why(new)


def test_a_file_that_is_wrong_is_refused_with_its_line(shell):
    for text, words in (("workflow(\"a\", function(\n", "wrong.lua:2:"), ("local x = 1\n", "the file has no workflow"), ("workflow(7)\n", "wrong.lua:1: workflow: expected"),
                        ("workflow(\"a\", { input = { n = \"int\" } }, function() end)\n", "expected any, string"), ("error(\"no\")\n", "no"),
                        ("while true do end\n", "operations")):
        file = shell.write("wrong.lua", text)
        answer = shell.pawl("run", file, expect=None)
        assert answer.code != 0 and words in answer.err, (text, answer)


def test_who_defines_a_file_of_code_is_told_what_runs_it(shell):
    shell.write("game.lua", (ROOT / "examples/lua/game.lua").read_text())
    answer = shell.pawl("define", "game.lua", expect=None)
    assert answer.code == 2 and "pawl serve --module game.lua" in answer.err, answer


def test_ten_thousand_turns_with_checkpoints_are_resumed_at_once(shell):
    file = shell.write("long.lua", 'workflow("long", function(input)\n  local n = input.n or 0\n  for _ = 1, 100 do\n    await(sleep(1))\n    n = n + 1\n  end\n'
                                   '  if n >= (input.most or 1000) then await(signal "end") return n end\n  continue_as { n = n, most = input.most }\nend)\n')
    s = served(shell, "--test", module=file)
    most = 10000 if os.environ.get("PAWL_TEST_LONG") else 400
    id = s.create("long", most=most)
    s.advance("%ds" % most)
    s.again(signal.SIGKILL)
    s.signal(id, "end")
    assert s.get(id)["result"] == most


def test_the_page_runs_as_it_stands(shell):
    """docs/durable-lua.md"""
    (shell.folder / "bin").mkdir()
    (shell.folder / "bin/pawl").symlink_to(os.path.abspath(harness.PAWL))
    path, out, count = "%s:%s" % (shell.folder / "bin", os.environ["PATH"]), "", 0
    for kind, name, text in re.findall(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```", (ROOT / "docs/durable-lua.md").read_text(), re.DOTALL | re.MULTILINE):
        if name:
            shell.write(name, text)
        elif kind == "sh":
            out = subprocess.run(["bash", "-ec", text], cwd=shell.folder, env=shell.environment({"PATH": path}), check=True,
                                 stdout=subprocess.PIPE, timeout=120).stdout.decode()
            count += 1
        elif kind == "text":
            assert text.strip().lstrip("\u2026") in out, (text, out)
    assert count == 1, count


if __name__ == "__main__":
    harness.main(globals())
