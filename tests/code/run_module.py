#!/usr/bin/env python3
"""Code in a module: loaded by the server into a child, or linked into a program that is a full pawl."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "house"), str(HERE.parent / "verify")]
import forge  # noqa: E402
from sse import Stream  # noqa: E402
from web import Web, harness  # noqa: E402
from sentences import BUILD, build_compiler  # noqa: E402

ROOT = harness.ROOT
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def module(shell, source, *words, compiler=("cc", *WARNINGS)):
    """A shared object, built as a user would: with the headers, and without the library."""
    out = shell.folder / (source.stem + ("".join(words)) + ".so")
    subprocess.run([*compiler, *words, "-shared", "-fPIC", "-I", ROOT / "include", "-o", out, source],
                   check=True)
    return str(out)


def libraries():
    """What a program that is a full pawl links beside it."""
    words = subprocess.run(["pkg-config", "--libs", "pawl-main"], check=True, capture_output=True,
                           env=dict(os.environ, PKG_CONFIG_PATH=str(BUILD / "meson-private"))).stdout.decode().split()
    return [word for word in words if word != "-lpawl-main"]


def bad(shell, *words):
    return module(shell, HERE / "bad.c", *words)


def reason(web, id):
    return web.get("/v1/instances/%s/why" % id).json["waiting_for"][0]


def ask(child, request):
    body = json.dumps(request).encode()
    child.stdin.write(struct.pack("<I", len(body)) + body)
    child.stdin.flush()
    return json.loads(child.stdout.read(struct.unpack("<I", child.stdout.read(4))[0]))


def test_a_module_of_c_answers_every_vector_of_the_protocol(shell):
    """tests/vectors/turns_c.json: the examples' types, whose variables are stored."""
    flows = os.open(module(shell, ROOT / "examples/code/flows.c"), os.O_RDONLY)
    child = subprocess.Popen([os.path.abspath(harness.PAWL), "--module-host", "flows.so"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             preexec_fn=lambda: os.dup2(flows, 3), pass_fds=(3,))
    assert json.loads(child.stdout.read(struct.unpack("<I", child.stdout.read(4))[0]))["pawl"] == 1
    for vector in json.loads((HERE.parent / "vectors/turns_c.json").read_text())["vectors"]:
        for request, answer in vector["turns"]:
            found = ask(child, request)
            assert found == answer, (vector["name"], request, found, answer)
    child.stdin.close()
    child.stdout.close()
    assert child.wait(timeout=30) == 0
    os.close(flows)


def test_a_module_runs_its_code_in_a_child_and_lives_through_restarts(shell):
    """E28, E6: nothing has to be called before; the types are there before any operation."""
    flows = module(shell, ROOT / "examples/code/flows.c")
    child, address = shell.serve("--test", "--module", flows)
    web = Web(address)
    id = web.create(definition="buff", input={"duration_secs": 60}, subject_ref="42", correlation_id="spell")
    web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "stack", "payload": 4})
    web.refused("invalid-request", "POST", "/v1/instances/%s/signals" % id, {"name": "stack", "payload": -4})
    said = web.refused("invalid-request", "POST", "/v1/instances", {"definition": "buff", "input": {"duration": 60}})
    assert "found the member 'duration'" in said.json["detail"], said.json
    shell.stop(child)
    child, address = shell.serve("--test", "--module", flows)
    web = Web(address)
    web.expect(200, "POST", "/v1/test/advance", {"by": "60s"})
    found = web.get("/v1/instances/" + id).json
    assert found["status"] == "completed" and found["result"] == {"final_stacks": 5}, found
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)


def test_without_its_module_an_instance_is_there_and_waits(shell):
    flows = module(shell, ROOT / "examples/code/flows.c")
    child, address = shell.serve("--test", "--module", flows)
    one, two = (Web(address).create(definition="counter") for _ in range(2))
    shell.stop(child)
    child, address = shell.serve("--test")
    web = Web(address)
    web.expect(200, "POST", "/v1/test/advance", {"by": "5s"})
    for id in (one, two):
        assert web.get("/v1/instances/" + id).json["status"] == "suspended"
        assert reason(web, id)["name"] == "tick"
    web.expect(200, "POST", "/v1/instances/%s/cancel" % two)
    shell.stop(child)
    child, address = shell.serve("--test", "--module", flows)
    web = Web(address)
    web.expect(200, "POST", "/v1/test/advance", {"by": "5s"})
    assert web.get("/v1/instances/" + one).json["result"] == {"final_count": 3}
    shell.stop(child)


def test_e22_the_place_and_the_variables_are_a_table(shell):
    child, address = shell.serve("--test", "--module", module(shell, ROOT / "examples/code/flows.c"))
    web = Web(address)
    id = web.create(definition="buff", subject_ref="42", input={"duration_secs": 9})

    def look():
        query = "SELECT id, definition, status, phase, state ->> '$.stacks', subject_ref FROM pawl_code"
        return shell.json("sql", query)["rows"]

    assert look() == [[id, "buff", "suspended", "buffed", 1, "42"]], look()
    web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "stack", "payload": 4})
    assert look() == [[id, "buff", "suspended", "buffed", 5, "42"]], look()
    web.expect(200, "POST", "/v1/instances/%s/cancel" % id)
    assert look() == [[id, "buff", "cancelled", "buffed", 5, "42"]], look()
    shell.stop(child)


def test_without_a_server_resume_runs_an_instance_of_a_module_to_its_end(shell):
    flows = module(shell, ROOT / "examples/code/flows.c")
    child, address = shell.serve("--module", flows)
    id = Web(address).create(definition="counter", input={"iterations": 1})
    shell.stop(child)
    shell.pawl("resume", id, "--module", flows)
    assert shell.json("show", id)["result"] == {"final_count": 1}


def test_a_type_of_a_module_is_run_by_its_name_and_tried_out_by_a_clock_of_its_own(shell):
    flows = module(shell, ROOT / "examples/code/flows.c")

    def tried(*words, expect=0):
        return json.loads(shell.pawl("run", *words, "--module", flows, "--test", "--json", expect=expect).out.splitlines()[-1])

    assert "completed" in shell.pawl("run", "conditional", "--module", flows, "--test", "--input", '{"use_short_timer": true}').out
    assert tried("buff", "--signal", "stack@59s=4")["result"] == {"final_stacks": 5}
    assert tried("patrol")["result"] == {"waypoint": 3, "fights": 0}
    assert tried("damage", "--stub", "compute_damage=7", "--stub", "log_death=null")["result"] == {"hits": 15}
    trade = ("trade", "--input", '{"buyer": 1, "seller": 2}', "--signal", "accept=1", "--signal", "accept@1m=2")
    assert tried(*trade, "--complete", "transfer_goods@3d=77")["result"] == {"receipt": 77}
    pay = ("checkout", "--input", '{"cents": 5}', "--stub", "send_goods=null")
    assert tried(*pay, "--stub", "charge_card=null")["result"] == {"sent": True, "problem": ""}
    said = shell.pawl("run", *pay, "--stub", "charge_card=fail:down", "--module", flows, "--test", expect=1)
    assert said.out.count("step.retry") == 4, said.out  # five attempts, by the policy of the module
    said = shell.pawl("run", *pay, "--stub", "charge_card=fail:card-declined", "--module", flows, "--test", expect=1)
    assert "step.retry" not in said.out, said.out
    assert tried("trade", expect=1)["error"] == "no reply for five minutes"
    assert "say: --complete transfer_goods=JSON" in shell.pawl("run", *trade, "--module", flows, "--test", expect=1).err
    assert not (shell.folder / "pawl.db").exists()
    shell.pawl("run", "counter", "--module", flows, "--input", '{"iterations": 1}')
    assert shell.json("show", "@last")["result"] == {"final_count": 1}
    found = shell.pawl("run", "counter", expect=1)
    assert found.err == "pawl: not-known: no handler registered for code type 'counter' in this program\n" \
        "  code comes with --module FILE (of serve, run and resume), or in a program of its own\n", found
    for words in (["combat"], ["patrol", "--signal", "threat_detected=7"]):
        found = shell.pawl("run", *words, "--module", flows, "--test", expect=1)
        assert found.err.startswith("pawl: not-known: no reduce 'apply_damage' is registered in this program\n"), "E13: a reduce needs a program of its own"


def test_the_examples_are_built_as_c_plus_plus_and_do_the_same(shell):
    compiler = ("g++", "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    flows = module(shell, ROOT / "examples/code/flows.c", compiler=compiler)

    def tried(*words):
        return json.loads(shell.pawl("run", *words, "--module", flows, "--test", "--json").out.splitlines()[-1])["result"]

    assert tried("buff", "--signal", "stack@59s=4") == {"final_stacks": 5}
    assert tried("patrol") == {"waypoint": 3, "fights": 0}
    assert tried("damage", "--stub", "compute_damage=7", "--stub", "log_death=null") == {"hits": 15}
    assert tried("checkout", "--input", '{"cents": 5}', "--stub", "send_goods=null", "--stub", "charge_card=null") == {"sent": True, "problem": ""}


def test_u7_a_type_without_macros_is_told_in_a_module_which_child_has_ended(shell):
    """U7, E5: ChildComplete has the child's id, also on the far side of a pipe."""
    shell.pawl("run", "branch", "--module", module(shell, HERE / "plain.c"), "--input", '{"a": [1]}')
    child = shell.json("list", "--definition", "leaf")["instances"][0]
    assert shell.json("list", "--definition", "branch")["instances"][0]["result"] == {"child": child["instance_id"], "gave": {"a": [1]}}


def test_code_that_is_left_is_gone_on_with_by_the_words_that_are_told_and_not_waited_for_in_vain(shell):
    flows = module(shell, ROOT / "examples/code/flows.c")
    child = shell.begin("run", "counter", "--module", flows, "--input", '{"iterations": 2}')
    id = child.stdout.readline().decode().strip()
    shell.wait_for(lambda: len(shell.json("history", id)["entries"]) >= 1)
    _, err = shell.stop(child, signal.SIGINT, expect=1)
    told = re.search(r"go on: pawl (resume .*)\n", err).group(1)
    assert told == "resume %s --module %s" % (id, flows), err
    found = shell.pawl("resume", id, expect=1)
    assert "not-known: no handler registered for code type 'counter' in this program\n  code comes with --module" in found.err, found
    found = shell.pawl("start", "counter", expect=1)
    assert "in this program\n  code comes with --module" in found.err and "define" not in found.err, found
    shell.pawl("pause", id)
    shell.pawl("resume", id, expect=1)
    assert shell.json("show", id)["status"] == "suspended", "the pause is over all the same"
    assert '{"final_count":2}' in shell.pawl(*told.split()).out
    shell.pawl("resume", id)  # has ended: nothing is needed to say so


def test_what_code_has_asked_for_is_answered_from_the_command_line(shell):
    """E10, E23"""
    flows = module(shell, ROOT / "examples/code/flows.c")
    child, address = shell.serve("--module", flows)
    id = shell.pawl("start", "trade", "--input", '{"buyer": 1, "seller": 1}').out.strip()
    shell.pawl("signal", id, "accept", "--payload", "1")
    shown = shell.pawl("show", id).out
    assert "step transfer_goods\n      pawl complete %s.1 --result JSON" % id in shown and "signal" in shown, shown
    shell.pawl("complete", id + ".1", "--result", "77")
    assert shell.json("show", id)["result"] == {"receipt": 77}
    assert "running" in shell.pawl("show", id, "--timeline").out
    id = shell.pawl("start", "trade", "--input", '{"buyer": 1, "seller": 2}').out.strip()
    shell.pawl("signal", id, "decline", "--payload", "2")
    again = shell.pawl("redrive", id).out.strip()
    assert shell.json("show", again)["retry_of"] == id and shell.json("show", id)["retried_as"] == again
    shell.pawl("signal", again, "accept", "--payload", "1")
    shell.stop(child)
    assert shell.json("verify")["valid"]
    subprocess.run([sys.executable, ROOT / "tools/verify.py", shell.folder / "pawl.db"], check=True, stdout=subprocess.DEVNULL)


def test_every_store_of_a_server_has_the_module(shell):
    child, address = shell.serve("--test", "--module", module(shell, ROOT / "examples/code/flows.c"))
    web = Web(address)
    web.expect(201, "PUT", "/v1/stores/other")
    made = web.expect(201, "POST", "/v1/stores/other/instances", {"definition": "buff"}).json["instance_id"]
    web.expect(202, "POST", "/v1/stores/other/instances/%s/signals" % made, {"name": "dispel"})
    assert web.get("/v1/stores/other/instances/" + made).json["status"] == "completed"
    shell.stop(child)


def refused(shell, *words):
    answer = shell.pawl("serve", "--listen", "127.0.0.1:0", *words, expect=None)
    assert answer.code == 1, answer
    return answer.err


def test_a_module_that_cannot_be_used_is_refused_by_name(shell):
    said = refused(shell, "--module", bad(shell, "-DOLD"))
    assert "was built for ABI 99 of pawl 7.0, and this is ABI 2" in said, said
    said = refused(shell, "--module", "./missing.so")
    assert "./missing.so' cannot be loaded" in said, said
    (shell.folder / "plain.c").write_text("int nothing;\n")
    said = refused(shell, "--module", module(shell, shell.folder / "plain.c"))
    assert "has no PAWL_MODULE()" in said, said


def expect_held(web, id, words):
    found = web.get("/v1/instances/" + id).json
    assert found["status"] == "paused", found
    why = reason(web, id)
    assert why["kind"] == "pause" and words in why["name"], why


def test_code_that_crashes_or_never_comes_back_holds_its_instance_and_nothing_else(shell):
    """The poison rule: the child ends, at the second time the instance is paused; never the server."""
    child, address = shell.serve("--test", "--module", bad(shell), "--module-time", "300")
    web = Web(address)
    calm = web.create(definition="bad")
    for signal, words in (("crash", "signal 6"), ("spin", "no answer in 300 ms"), ("leave", "exit status 3")):
        id = web.create(definition="bad")
        base = "/v1/instances/" + id
        web.refused("paused", "POST", base + "/signals", {"name": signal})
        expect_held(web, id, words)
        assert len(web.get(base + "/history").json["entries"]) == 1
        web.expect(202, "POST", "/v1/instances/%s/signals" % calm, {"name": "sit"})
        web.expect(200, "POST", base + "/resume")
        web.expect(202, "POST", base + "/signals", {"name": "sit"})
        web.expect(200, "POST", base + "/cancel")
    web.refused("invalid-request", "POST", "/v1/instances", {"definition": "bad", "input": {"at_once": True}})
    assert web.get("/v1/instances/%s/variables" % calm).json["variables"]["calm"] == 3
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)


def ticked(web, id):
    return web.get("/v1/instances/%s/variables" % id).json["variables"]["n"]


def test_a_turn_that_is_taken_ahead_of_time_and_ends_its_process_spoils_none_before_it(shell):
    """With a test clock a child takes turns of timers before they are asked for."""
    path = bad(shell)
    child, address = shell.serve("--test", "--module", path)
    web = Web(address)
    id = web.create(definition="ticks", input={"most": 300, "crash_at": 100})
    web.expect(200, "POST", "/v1/test/advance", {"by": "200s"})
    expect_held(web, id, "signal 6")
    entries = web.get("/v1/instances/%s/history" % id).json["entries"]
    assert [entry["action"] for entry in entries] == ["start"] + 100 * ["timer"], len(entries)
    assert ticked(web, id) == 99
    shell.stop(child)
    child = shell.begin("serve", "--listen", "127.0.0.1:0", "--test", "--module", path, env={"PAWL_TEST_HEALED": "1"})
    web = Web(child.stdout.readline().decode().split()[4])
    web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    found = web.get("/v1/instances/" + id).json
    assert found.get("result") == {"n": 300}, (found, ticked(web, id))
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)


def test_turns_that_are_taken_ahead_of_time_count_only_if_what_they_expected_comes(shell):
    child, address = shell.serve("--test", "--module", bad(shell))
    web = Web(address)
    first, second = (web.create(definition="ticks", input={"most": 300}) for _ in range(2))
    for round in range(10):
        web.expect(200, "POST", "/v1/test/advance", {"by": "7s"})
        web.expect(202, "POST", "/v1/instances/%s/signals" % first, {"name": "add", "payload": 3})
        assert (ticked(web, first), ticked(web, second)) == (10 * round + 10, 7 * round + 7)
        web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    web.expect(200, "POST", "/v1/instances/%s/cancel" % second)
    web.expect(200, "POST", "/v1/test/advance", {"by": "1h"})
    assert web.get("/v1/instances/" + first).json["result"] == {"n": 300}
    actions = [entry["action"] for entry in web.get("/v1/instances/%s/history?limit=1000" % first).json["entries"]]
    assert actions.count("timer") == 270 and actions.count("signal") == 10, actions
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)


def test_answers_and_reasons_name_a_module_without_its_folders_and_the_log_keeps_them(shell):
    """A remote caller learns nothing about the server's disk."""
    path = bad(shell)
    child = shell.begin("serve", "--listen", "127.0.0.1:0", "--test", "--module", path)
    web = Web(child.stdout.readline().decode().split()[4])
    crashed, other = (web.create(definition="bad") for _ in range(2))
    said = [web.refused("paused", "POST", "/v1/instances/%s/signals" % crashed, {"name": "crash"})]
    os.remove(path)
    web.expect(202, "POST", "/v1/instances/%s/signals" % other, {"name": "sit"})  # it was read at the start
    said += [web.get("/v1/instances/%s/why" % crashed), web.get("/v1/instances/" + crashed)]
    texts = [json.dumps(answer.json) for answer in said]
    assert all("'bad.so'" in text for text in texts[:2]), texts
    assert not any(str(shell.folder) in text for text in texts), texts
    child.terminate()
    logged = child.communicate(timeout=60)[1].decode()
    assert logged.count("module '%s" % path) == 1, logged


def test_a_poisoned_instance_goes_on_with_a_module_that_was_set_right(shell):
    path = bad(shell)
    child, address = shell.serve("--test", "--module", path)
    web = Web(address)
    id = web.create(definition="bad")
    web.refused("paused", "POST", "/v1/instances/%s/signals" % id, {"name": "crash"})
    shell.stop(child)
    child = shell.begin("serve", "--listen", "127.0.0.1:0", "--test", "--module", path, env={"PAWL_TEST_HEALED": "1"})
    web = Web(child.stdout.readline().decode().split()[4])
    expect_held(web, id, "ended its process twice")
    web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "crash"})
    assert web.get("/v1/instances/" + id).json["status"] == "completed"
    shell.stop(child)


def test_a_mistake_pauses_its_instance_with_the_reason_and_resume_retries_it_with_a_module_that_was_set_right(shell):
    words = "the code of 'slip' cannot go on: the handler's result is not JSON"
    child, address = shell.serve("--test", "--module", bad(shell))
    web = Web(address)
    one, two = (web.create(definition="slip") for _ in range(2))
    web.expect(202, "POST", "/v1/instances/%s/signals" % one, {"name": "go"})
    web.expect(200, "POST", "/v1/test/advance", {"by": "1s"})
    for id in (one, two):
        expect_held(web, id, words)
        assert words in web.get("/v1/instances/" + id).json["pause"]["reason"]
        assert words in web.get("/v1/instances/%s/history" % id).json["entries"][1]["reason"]
        assert [item["kind"] for item in web.get("/v1/instances/%s/why" % id).json["waiting_for"]] == ["pause"]
    for verb in (["show", one], ["list"], ["history", one]):
        assert words in shell.pawl(*verb).out, verb
    events = [event.entry for event in Stream(web, "/v1/events?from=start").open().events(4)]
    assert sum(words in (event.get("reason") or "") for event in events) == 2, events
    shell.stop(child)
    found = shell.pawl("resume", one, "--module", bad(shell), expect=1)
    assert "paused: " + words in found.err and "go on: pawl resume" in found.err, found
    found = shell.pawl("run", "slip", "--module", bad(shell), expect=1)
    assert "paused: " + words in found.err, found
    for id, n in ((one, 2), (two, 1)):
        shell.pawl("resume", id, "--module", bad(shell), env={"PAWL_TEST_HEALED": "1"})
        assert shell.json("show", id)["result"] == {"n": n}
    assert shell.json("verify")["valid"]


def test_an_answer_whose_turn_ends_its_process_is_kept_and_handled_at_resume(shell):
    path = bad(shell)
    child, address = shell.serve("--test", "--module", path)
    web = Web(address)
    id = web.create(definition="asker")
    step = web.get("/v1/instances/%s/steps" % id).json["steps"][0]["step_id"]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step, {"result": 7})
    expect_held(web, id, "ended its process twice")
    assert "ended its process twice" in web.get("/v1/instances/%s/history" % id).json["entries"][-1]["reason"]
    web.refused("lease-lost", "POST", "/v1/steps/%s/complete" % step, {"result": 8})
    shell.stop(child)
    child = shell.begin("serve", "--listen", "127.0.0.1:0", "--test", "--module", path, env={"PAWL_TEST_HEALED": "1"})
    web = Web(child.stdout.readline().decode().split()[4])
    web.expect(200, "POST", "/v1/instances/%s/resume" % id)
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    assert web.get("/v1/instances/" + id).json["result"] == {"answer": 7}
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)


def verdicts(shell, store):
    """Of both verifiers."""
    return (json.loads(shell.pawl("--store", "sqlite:" + store, "--json", "verify", expect=None).out),
            forge.verify.report(str(shell.folder / store)))


def test_a_newer_module_brings_instances_to_its_list_and_gives_those_that_wait_a_way_out(shell):
    """The store is valid by both verifiers, and so is a copy of it by export and import."""
    def build(number):
        child, address = shell.serve("--test", "--module", module(shell, HERE / "renewed.c", "-DBUILD=%d" % number))
        return child, Web(address)

    child, web = build(1)
    id, other = (web.create(definition="renewed") for _ in range(2))
    shell.stop(child)
    child, web = build(2)
    web.expect(202, "POST", "/v1/instances/%s/signals" % id, {"name": "go"})
    assert reason(web, id)["name"] == "sign", reason(web, id)
    shell.stop(child)
    child, web = build(3)
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    assert [w["name"] for w in web.get("/v1/instances/%s/why" % other).json["waiting_for"]] == ["late", "go"]
    shell.stop(child)
    shell.pawl("export", "--output", "all.ndjson")
    shell.pawl("--store", "sqlite:copy.db", "init")
    shell.pawl("--store", "sqlite:copy.db", "import", "all.ndjson")
    for store in ("pawl.db", "copy.db"):
        assert [found["valid"] for found in verdicts(shell, store)] == [True, True], verdicts(shell, store)
        assert "sign" in shell.pawl("--store", "sqlite:" + store, "why", id).out
    for plan, words in (({"code": "other"}, "another code type"), ({"code": "renewed"}, "in their places")):
        forger = forge.Forger(shell.folder / "copy.db")
        pos, body = forger.find(1, "amend")
        body = [["plan", plan, [["external", "other"], ["external", "sign"]]] if e[0] == "plan" else e for e in body]
        pos = forger.find(1, "amend", 1)[0]
        forger.set(pos, body=body)
        forger.seal()
        assert all(words in found["what"] for found in verdicts(shell, "copy.db")), verdicts(shell, "copy.db")
    child, web = build(3)
    web.expect(200, "POST", "/v1/test/advance", {"by": "5s"})
    assert web.get("/v1/instances/" + other).json["error"] == "late"


def test_a_turn_that_takes_long_holds_up_its_own_instance_alone(shell):
    child, address = shell.serve("--test", "--module", bad(shell), "--module-time", "60000")
    web = Web(address)
    long, calm = (web.create(definition="bad") for _ in range(2))
    answers = []
    holder = threading.Thread(target=lambda: answers.append(
        Web(address).expect(202, "POST", "/v1/instances/%s/signals" % long, {"name": "hold"})))
    holder.start()
    while not (shell.folder / "held").exists():
        pass
    for _ in range(5):
        web.expect(202, "POST", "/v1/instances/%s/signals" % calm, {"name": "sit"})
    assert not answers, "it should wait for its gate still"
    (shell.folder / "gate").write_text("")
    holder.join()
    assert answers
    assert web.get("/v1/instances/%s/variables" % calm).json["variables"]["calm"] == 5
    shell.stop(child)


def test_a_program_of_somebodys_own_is_a_full_pawl(shell):
    """pawl_main(): the same verbs, with the code inside."""
    program = shell.folder / "mine"
    subprocess.run([*build_compiler(), *WARNINGS, "-DPROGRAM", "-I", ROOT / "include", "-o", program,
                    ROOT / "examples/code/flows.c", BUILD / "libpawl-main.a", *libraries()],
                   check=True)

    def mine(*words):
        done = subprocess.run([program, *words], cwd=shell.folder, capture_output=True, timeout=60)
        assert done.returncode == 0, done
        return done.stdout.decode()

    assert "pawl" in mine("--version")
    mine("init")
    mine("start", "conditional", "--input", '{"use_short_timer": true}', "--subject", "7")
    mine("start", "buff")
    mine("signal", "@last", "dispel")
    assert "completed" in mine("show", "@last")
    assert '"final_stacks":1' in mine("show", "@last", "--json").replace(" ", "")
    mine("verify")
    assert '{"final_stacks":1}' in mine("run", "buff", "--test") and '"value":' in mine("run", "conditional", "--test")
    # E13, X13, E31: what it does to rows of its own is in the same transaction; its children do it too
    assert '{"waypoint":3,"fights":1}' in mine("run", "patrol", "--signal", "threat_detected=7", "--test")
    mine("run", "combat", "--input", '{"target_id": 7, "damage": 20}')
    rows = json.loads(mine("sql", "select target, damage from damage", "--json"))["rows"]
    assert rows == [[7, 20], [7, 20]], "a hit for each round, each once: %s" % rows
    child = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0"], cwd=shell.folder, stdout=subprocess.PIPE)
    web = Web(child.stdout.readline().decode().split()[4])
    web.expect(201, "PUT", "/v1/stores/other")
    made = web.expect(201, "POST", "/v1/stores/other/instances", {"definition": "combat"}).json["instance_id"]
    web.expect(202, "POST", "/v1/stores/other/instances/%s/signals" % made, {"name": "flee"})
    child.terminate()
    assert child.wait() == 0


if __name__ == "__main__":
    harness.main(globals())
