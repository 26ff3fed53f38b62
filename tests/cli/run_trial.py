"""`pawl run --test` and `--stub`: flows tried out without waiting and without their tools; and every example of
examples/ run to its end (issue 5, section 3; B43)."""
import json
import os
import re
import signal
import subprocess

from harness import EXAMPLES, Terminal, main

LONG = bool(os.environ.get("PAWL_TEST_LONG"))

MONTH = """name: month
steps:
  start: {name: nap, wait: {timer: 30d}, next: work}
  work: {tool: paint, args: {colour: "{{input.colour}}"}, retry: {max: 3, backoff: [1h, 1d]}, done: true}
"""


def run(shell, file, *words, expect=0):
    """What it came to, and its entries, of a run in a store that stays."""
    found = shell.pawl("--store", "sqlite:test.db", "run", file, "--test", "--json", *words, expect=expect)
    instance = json.loads(found.out.splitlines()[-1])
    history = shell.json("--store", "sqlite:test.db", "history", instance["instance_id"])["entries"]
    if LONG:
        assert shell.json("--store", "sqlite:test.db", "verify")["valid"]
    return instance, history


def actions(history, step):
    return [entry["action"] for entry in history if entry.get("step") == step]


# ---- The clock ----


def test_the_usual_store_is_not_moved_by_a_trial(shell):
    """Only a store that --store names: $PAWL_STORE is where one lives by the real clock."""
    shell.write("month.yaml", MONTH)
    usual = {"PAWL_STORE": "sqlite:usual.db"}
    shell.pawl("run", "month.yaml", "--test", "--stub", "paint=7", env=usual)
    assert not (shell.folder / "usual.db").exists()
    shell.pawl("init", env=usual)
    shell.pawl("define", "month.yaml", env=usual)
    shell.pawl("start", "month", "--input", '{"colour": "red"}', env=usual)
    shell.pawl("run", "month", "--test", "--stub", "paint=7", env=usual)  # as that store defines it


def test_thirty_days_pass_at_once_and_nothing_is_left_behind(shell):
    shell.write("month.yaml", MONTH)
    found = shell.pawl("run", "month.yaml", "--test", "--stub", "paint=7", "--json")
    last = json.loads(found.out.splitlines()[1])
    assert last["status"] == "completed" and last["result"] == 7, last
    assert last["updated_at"] > last["instantiated_at"] and "+30 d" in shell.pawl(
        "run", "month.yaml", "--test", "--stub", "paint=7").out
    assert [path.name for path in shell.folder.iterdir()] == ["month.yaml"], "a trial lives in memory"


def test_a_trial_keeps_to_a_store_that_is_named_and_never_moves_a_real_clock(shell):
    shell.write("month.yaml", MONTH)
    instance, history = run(shell, "month.yaml", "--stub", "paint=1")
    assert instance["status"] == "completed" and len(history) >= 4
    run(shell, "month.yaml", "--stub", "paint=1")
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    found = shell.pawl("--store", "sqlite:pawl.db", "run", "month.yaml", "--test", expect=1)
    assert "conflict" in found.err and "real clock" in found.err, found


def test_backoffs_and_timeouts_pass_as_they_would(shell):
    shell.write("month.yaml", MONTH)
    instance, history = run(shell, "month.yaml", "--stub", "paint=fail:dry", "--stub", "paint=fail:wet",
                            "--stub", 'paint={"done":true}')
    assert instance["result"] == {"done": True}
    assert actions(history, "work") == ["step.start", "step.fail", "step.retry", "step.start", "step.fail",
                                        "step.retry", "step.start", "step.complete"]
    hours = [entry["fired_at"][:13] for entry in history if entry["action"] == "step.retry"]
    assert hours[0][:10] < hours[1][:10], "a day between the second attempt and the third: %s" % hours


def test_what_never_ends_is_told_after_ten_years_of_its_time(shell):
    shell.write("tick.yaml", "name: tick\nsteps:\n  start: {name: a, wait: {timer: 365d}, next: b}\n"
                "  b: {tool: set, args: {}, next: a}\n")
    found = shell.pawl("run", "tick.yaml", "--test", expect=1)
    assert "will not come by itself" in found.err and found.out.count("step.complete") == 10, found


# ---- Stubs ----


def test_a_stub_answers_for_a_tool_that_is_here_or_elsewhere(shell):
    shell.write("a.yaml", "name: a\nsteps:\n  start: {name: x, tool: exec, args: {argv: [touch, called]}, next: y}\n"
                "  y: {tool: far, args: {a: 1}, done: true}\n")
    shell.write("far.json", '{"from": "a file", "n": 1.50}')
    shell.pawl("run", "a.yaml", "--stub", 'exec={"told": 1}', "--stub", "far=@far.json")
    assert shell.json("show", "@last")["result"] == {"from": "a file", "n": 1.5}
    assert "1.50" in shell.pawl("show", "@last", "--json").out, "as it was written"
    assert not (shell.folder / "called").exists()


def test_a_stub_that_fails_says_why_as_json_or_in_words(shell):
    shell.write("a.yaml", "name: a\nsteps:\n  start: {name: x, tool: far, retry: {max: 1}, done: true}\n")
    for given, error in (("fail:out of paint", "out of paint"), ("fail:404", 404), ('fail:{"code":7}', {"code": 7}),
                         ("fail:", "")):
        shell.pawl("run", "a.yaml", "--stub", "far=" + given, expect=1)
        assert shell.json("show", "@last")["error"] == error, given


def test_a_stub_that_is_no_answer_is_refused_before_anything_happens(shell):
    shell.write("a.yaml", "name: a\nsteps:\n  start: {name: x, tool: far, done: true}\n")
    for word, words in (("far", "expected TOOL=ANSWER"), ("=1", "expected TOOL=ANSWER"), ("far={", "is not JSON"),
                        ("far=word", "needs its quotes"), ("sleep=1", "'sleep' is a timer"), ("far@2d=1", "not after a time")):
        assert words in shell.pawl("run", "a.yaml", "--stub", word, expect=1).err, word
    assert not (shell.folder / "pawl.db").exists() or shell.json("list")["instances"] == []
    assert "goes with --test" in shell.pawl("run", "a.yaml", "--approve", "ann", expect=2).err


def test_a_stub_needs_the_store_for_itself(shell):
    shell.write("a.yaml", "name: a\nsteps:\n  start: {name: x, tool: far, done: true}\n")
    shell.serve()
    found = shell.pawl("run", "a.yaml", "--stub", "far=1", expect=3)
    assert "in-use" in found.err and "--stub needs a store of its own" in found.err, found


def test_run_and_resume_read_the_rules_for_tools(shell):
    shell.write("a.yaml", "name: a\nsteps:\n  start: {name: x, tool: exec, args: {argv: ['/bin/false']}, retry: {max: 1}, done: true}\n")
    shell.write("pawl.yaml", "tools:\n  exec: {for: [ann]}\n")
    shell.pawl("run", "a.yaml", expect=1)
    assert "forbidden" in shell.json("show", "@last")["error"]
    shell.write("other.yaml", "tools:\n  exec: {answers: [{result: told}]}\n")
    shell.pawl("run", "a.yaml", "--config", "other.yaml")
    assert shell.json("show", "@last")["result"] == "told"
    shell.write("wait.yaml", "name: wait\nsteps:\n  start: {name: x, tool: far, done: true}\n")
    shell.pawl("define", "wait.yaml")
    shell.pawl("start", "wait")
    shell.pawl("resume", "@last", "--stub", "far=5")
    assert shell.json("show", "@last")["result"] == 5


# ---- What it waits for ----


def test_a_trial_that_waits_for_somebody_says_for_whom_and_what_to_say(shell):
    found = shell.pawl("run", str(EXAMPLES / "research.yaml"), "--test", expect=1)
    assert "say: --stub knowledge_search=JSON" in found.err, found
    shell.write("sig.yaml", "name: sig\ndo:\n  - {name: go, wait: {signal: start}}\n  - {name: ok, tool: null}\n")
    assert "say: --signal start=JSON" in shell.pawl("run", "sig.yaml", "--test", expect=1).err
    found = shell.pawl("run", "sig.yaml", "--test", "--signal", "start=1", expect=1)
    assert "say: --approve WHO" in found.err, found
    shell.pawl("run", "sig.yaml", "--test", "--signal", "start=1", "--approve", "ann")


def test_a_signal_is_sent_once_when_it_is_awaited_or_when_its_time_has_come(shell):
    payment = str(EXAMPLES / "payment.yaml")
    instance, history = run(shell, payment, "--signal", 'paid@2d={"amount":12}', "--input", '{"order":"A"}')
    assert instance["result"] == {"order": "A", "amount": 12}
    day = [entry["fired_at"] for entry in history if entry["action"] == "signal"][0]
    assert day[:10] > history[0]["fired_at"][:10], history
    instance, _ = run(shell, payment, "--signal", 'paid@4d={"amount":12}', expect=1)
    assert instance["error"] == "not paid in time", "the timer of three days was first"


def test_two_gates_side_by_side_are_each_asked_once(shell):
    shell.write("gates.yaml", "name: gates\ndopar:\n  - {name: a, tool: null, approval: {by: [ann, bob], count: 2}}\n"
                "  - {name: b, tool: null, approval: {by: [cat], count: 1}}\n")
    found = shell.pawl("run", "gates.yaml", "--test", "--approve", "ann", "--approve", "cat", expect=1)
    assert "waits for approval a" in found.err and found.out.count("gate.approve") == 2, found
    shell.pawl("run", "gates.yaml", "--test", "--approve", "ann", "--approve", "cat", "--approve", "bob")


# ---- What machines and external steps wait for ----


LETTER = """name: letter
steps:
  start: {name: sign, external: true, retry: {max: 3, backoff: [1h]}, next: post}
  post: {spawn: {definition: booking}, done: true}
"""


def test_the_actions_of_a_child_are_fired_as_told_each_once_and_in_its_time(shell):
    trip, booking = str(EXAMPLES / "trip.yaml"), str(EXAMPLES / "booking.yaml")
    words = (trip, "--with", booking, "--input", '{"to":"Turin"}', "--actor", "ann")
    instance, history = run(shell, *words, "--fire", "confirm", "--fire", 'confirm@1d={"room":7}')
    assert instance["result"] == {"booked": "Turin"}, instance
    children = [e["fired_at"] for e in history if e["action"] == "child"]
    assert children[0][:10] == history[0]["fired_at"][:10] < children[1][:10], history
    ids = [c["instance_id"] for c in shell.json("--store", "sqlite:test.db", "list", "--definition", "booking")["instances"]]
    fired = [shell.json("--store", "sqlite:test.db", "history", id)["entries"] for id in ids]
    assert [[(e["action"], e["actor_ref"], e.get("payload")) for e in entries] for entries in fired] == [
        [("confirm", "ann", {"room": 7})], [("confirm", "ann", None)]], fired
    instance, _ = run(shell, *words, "--fire", "confirm", "--fire", "refuse")
    assert instance["result"]["sorry"] == "child-failed", "in the order given, one after another"


def test_a_machine_is_fired_through_with_its_guards_and_reasons(shell):
    instance, history = run(shell, str(EXAMPLES / "batch-release.yaml"), "--fire", "release@3d", "--fire", "begin-testing")
    assert instance["status"] == "completed" and instance["current_state"] == "released"
    assert [(e["action"], e.get("guard_satisfied")) for e in history] == [("begin-testing", None), ("release", True)]
    shell.write("m.yaml", "name: m\nstates: [a, b]\ninitial_state: a\nterminal_states: [b]\nterminal_kinds: {b: success}\n"
                "transitions:\n  - {from_state: a, action: go, to_state: b, requires_reason: true}\n")
    _, history = run(shell, "m.yaml", "--fire", "go")
    assert history[0]["reason"] == "given by --fire", history
    found = shell.pawl("run", "m.yaml", "--test", expect=1)
    assert "waits for action go; say: --fire go" in found.err, found


def test_external_steps_are_completed_as_told_attempt_by_attempt(shell):
    shell.write("letter.yaml", LETTER)
    words = ("letter.yaml", "--with", str(EXAMPLES / "booking.yaml"), "--fire", "confirm")
    shell.write("signed.json", '{"by": "ann"}')
    instance, history = run(shell, *words, "--complete", "sign=fail:pen is dry", "--complete", "sign=@signed.json")
    assert instance["status"] == "completed"
    assert actions(history, "sign") == ["step.fail", "step.retry", "step.complete"]
    assert [e["payload"] for e in history if e.get("step") == "sign" and "payload" in e] == ["pen is dry", {"by": "ann"}]
    _, history = run(shell, *words, "--complete", "sign@2d=null")
    assert history[1]["action"] == "step.complete" and history[1]["fired_at"][:10] > history[0]["fired_at"][:10]


def test_who_is_stuck_is_told_the_words_for_children_and_external_steps(shell):
    shell.write("letter.yaml", LETTER)
    words = ("run", "letter.yaml", "--test", "--with", str(EXAMPLES / "booking.yaml"))
    assert "waits for step sign; say: --complete sign=JSON" in shell.pawl(*words, expect=1).err
    found = shell.pawl(*words, "--complete", "sign=1", expect=1)
    assert "waits for child post, which\n    waits for action confirm; say: --fire confirm\n" in found.err, found
    assert shell.pawl(*words, "--json", expect=1).out.splitlines()[-1].count('"status":"suspended"') == 1


def test_words_that_nothing_waited_for_are_told_at_the_end(shell):
    shell.write("month.yaml", MONTH)
    found = shell.pawl("run", "month.yaml", "--test", "--stub", "paint=1", "--signal", "tpyo=1", "--fire", "go@40d", "--complete", "work=1")
    for word in ("--signal tpyo=1: nothing waited for it\n", "--fire go@40d: nothing waited for it then\n",
                 "--complete work=1: nothing waited for it\n"):
        assert word in found.err, found


def test_words_of_a_trial_that_say_nothing_are_refused_before_anything_happens(shell):
    shell.write("month.yaml", MONTH)
    for words, told in (
            (("--signal", "go@zz=1"), "expected a duration like 30s or 2d after the '@', found 'zz'"),
            (("--signal", "go@=1"), "after the '@', found ''"), (("--signal", "go@2=1"), "found '2'"),
            (("--signal", "go"), "expected NAME[@AFTER]=JSON, found 'go'"), (("--signal", "@2d=1"), "expected NAME[@AFTER]=JSON"),
            (("--signal", "go=word"), "needs its quotes"), (("--signal", "go=@none.json"), "none.json"),
            (("--fire", "go@soon"), "found 'soon'"), (("--fire", "=1"), "expected ACTION[@AFTER][=JSON]"), (("--fire", "go="), "is not JSON"),
            (("--fire", ""), "expected ACTION"), (("--complete", "sign"), "expected STEP[@AFTER]=ANSWER, found 'sign'"),
            (("--complete", "sign@-1d=1"), "found '-1d'"), (("--complete", "sign={"), "is not JSON")):
        found = shell.pawl("--store", "sqlite:none.db", "run", "month.yaml", "--test", *words, expect=1)
        assert "invalid-request" in found.err and told in found.err, (words, found)
        assert not (shell.folder / "none.db").exists(), words
    assert "--approve: expected the name of an actor, found ' '" in shell.pawl("run", "month.yaml", "--test", "--approve", " ", expect=1).err
    for option in ("fire", "complete"):
        assert "--%s goes with --test" % option in shell.pawl("run", "month.yaml", "--" + option, "x=1", expect=2).err


# ---- The examples ----


def test_the_order_with_a_timeout_against_a_signal_goes_both_ways(shell):
    payment = str(EXAMPLES / "payment.yaml")
    assert run(shell, payment, "--input", '{"order":"A"}', "--signal", 'paid={"amount":3}')[0]["result"]["amount"] == 3
    instance, history = run(shell, payment, "--input", '{"order":"A"}', expect=1)
    assert instance["error"] == "not paid in time" and actions(history, "wait") == ["timer"]


def test_the_approval_gate_takes_two_of_three_and_is_rejected_by_one_B43(shell):
    gate = str(EXAMPLES / "approval.yaml")
    instance, _ = run(shell, gate, "--input", '{"what":"w"}', "--approve", "cat", "--approve", "ann")
    assert instance["result"] == {"written": "w", "because": "approved"}
    assert run(shell, gate, "--reject", "bob", expect=1)[0]["error"] == "rejected"
    instance, history = run(shell, gate, "--approve", "ann", expect=1)
    assert instance["error"] == "timeout" and actions(history, "request_approval")[-1] == "step.timeout"


def test_research_searches_summarizes_and_notifies_B43(shell):
    instance, history = run(shell, str(EXAMPLES / "research.yaml"), "--input", '{"topic":"pawls","doc_id":7}', "--stub",
                            "knowledge_search=[7]", "--stub", 'knowledge_get="short"', "--stub", "pushover_send=null")
    assert instance["status"] == "completed"
    assert [e["step"] for e in history if e["action"] == "step.complete"] == ["search", "summarize", "notify"]


def test_check_admin_branches_both_ways_B43(shell):
    for answer, greeting in (("true", "welcome back, ann"), ("false", "hello, ann")):
        instance, _ = run(shell, str(EXAMPLES / "check-admin.yaml"), "--input", '{"user":"ann"}', "--stub", "is_admin=" + answer)
        assert instance["result"] == {"greeting": greeting}
    instance, _ = run(shell, str(EXAMPLES / "check-admin.yaml"), "--input", '{"user":"ann"}', "--stub", 'is_admin="perhaps"', expect=1)
    assert instance["error"] == "no-branch-matched"


def test_create_deployable_is_rescued_and_tidied_up(shell):
    instance, history = run(shell, str(EXAMPLES / "create-deployable.yaml"), "--input", '{"name":"shop"}')
    assert instance["result"] == {"repository": 7, "dsn": "https://errors/7", "went_wrong": "the smoke test found smoke"}
    done = [e["step"] for e in history if e["action"] == "step.complete"]
    assert done[0] == "repository" and sorted(done[1:3]) == ["build", "project"] and done[3:] == ["roll-back", "tidy-up"]


def test_a_trip_waits_for_its_bookings_and_says_so_when_none_comes(shell):
    trip, booking = str(EXAMPLES / "trip.yaml"), str(EXAMPLES / "booking.yaml")
    instance, _ = run(shell, trip, "--with", booking, "--input", '{"to":"Turin"}')
    assert instance["result"]["sorry"] == "timeout", instance
    children = shell.json("--store", "sqlite:test.db", "list", "--definition", "booking")["instances"]
    assert [child["status"] for child in children] == ["cancelled", "cancelled"], "withdrawn with it"
    shell.pawl("define", booking, trip)
    parent = shell.pawl("start", "trip", "--input", '{"to":"Turin"}').out.strip()
    for child in shell.json("list", "--definition", "booking")["instances"]:
        shell.pawl("fire", child["instance_id"], "confirm")
    assert "completed" in shell.pawl("resume", parent).out


def test_the_fan_out_of_a_thousand_joins_once(shell):
    flow = subprocess.run(["sh", str(EXAMPLES / "fan-out.sh")], capture_output=True, check=True).stdout.decode()
    shell.write("fan-out.yaml", flow)
    instance, history = run(shell, "fan-out.yaml")
    assert instance["result"] == {"first": 1, "last": 1000}
    assert actions(history, "all") == ["step.start", "step.complete"], "one join"
    done = [e["step"] for e in history if e["action"] == "step.complete"]
    assert len(done) == len(set(done)) == 1002
    shown = shell.pawl("--store", "sqlite:test.db", "show", "@last").out
    assert "✔ w1  set" in shown and "✔ all  set" in shown and "lines more" in shown and shown.count("\n") < 40, shown


def test_the_nightly_report_comes_every_night_until_it_is_stopped(shell):
    instance, history = run(shell, str(EXAMPLES / "nightly-report.yaml"), "--input", '{"shop":"Turin"}', "--signal", 'stop@80h="moved"')
    assert instance["result"] == {"stopped_because": "moved", "last": {"shop": "Turin", "orders": 12, "visits": 97}}
    assert actions(history, "deliver").count("step.complete") == 3 and actions(history, "report").count("step.start") == 3
    assert "✔ deliver  log  ×3  0 ms" in shell.pawl("--store", "sqlite:test.db", "show", "@last").out, "three rounds, the last took no time"
    nights = [e["fired_at"] for e in history if e["action"] == "timer"]
    assert len({night[11:] for night in nights}) == 1, "at the same time every night: %s" % nights


def test_the_migration_is_approved_and_applied(shell):
    instance, history = run(shell, str(EXAMPLES / "migrate.yaml"), "--approve", "ann", "--input", '{"version":7}',
                            "--stub", "apply_schema=fail:locked", "--stub", 'apply_schema={"tables":3}')
    assert instance["result"] == {"version": 7, "tables": 3} and not instance["can_cancel"], instance
    assert actions(history, "apply") == ["step.start", "step.fail", "step.retry", "step.start", "step.complete"]


def test_report_and_welcome_wait_for_nobody(shell):
    assert run(shell, str(EXAMPLES / "welcome.yaml"), "--input", '{"name":"Ann"}')[0]["result"] == {"greeted": "Ann"}
    instance, _ = run(shell, str(EXAMPLES / "report.yaml"), "--input", '{"month":"May"}')
    assert instance["result"]["delivered_by"] == "printer 2"


def test_every_example_that_is_listed_is_there_and_every_one_there_is_listed(shell):
    listed = set(re.findall(r"`([\w./-]+\.(?:yaml|sh|py|mjs|c))`", (EXAMPLES / "README.md").read_text()))
    there = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".yaml", ".sh")}
    assert there <= listed, "not in examples/README.md: %s" % sorted(there - listed)
    gone = [name for name in listed if not name.startswith(("src/", "tests/")) and not (EXAMPLES / name).exists()]
    assert not gone, "listed, but not there: %s" % gone


# ---- A name in the place of a file ----


def test_a_definition_of_the_store_and_a_code_type_are_run_by_name(shell):
    found = shell.pawl("run", "countdown", "--input", '{"from": 1, "every": "10ms"}', "--subject", "7")
    assert '"ticks":1' in found.out and "completed" in found.out, found
    assert shell.json("show", "@last")["subject_ref"] == "7"
    shell.pawl("define", str(EXAMPLES / "check-admin.yaml"))
    assert "completed" in shell.pawl("run", "check-admin", "--stub", "is_admin=true", "--input", '{"user":"ann"}').out
    shell.pawl("run", "check-admin@1", "--stub", 'is_admin="perhaps"', expect=1)
    assert shell.json("show", "@last")["error"] == "no-branch-matched", "exit status by kind"
    found = shell.pawl("run", "check-admin@2", expect=1)
    assert "no file 'check-admin@2', and no definition or code type of that name" in found.err and "there are: check-admin, countdown" in found.err, found


def test_ctrl_c_leaves_what_was_run_by_name_suspended(shell):
    child = shell.begin("run", "countdown", "--input", '{"from": 1, "every": "1h"}')
    id = child.stdout.readline().decode().strip()
    shell.wait_for(lambda: len(shell.json("history", id)["entries"]) == 1)
    _, err = shell.stop(child, signal.SIGINT, expect=1)
    assert "left waiting after entry 1; go on: pawl resume " + id in err, err
    assert shell.json("show", id)["status"] == "suspended"


def test_a_word_is_the_file_that_is_there_and_else_a_name(shell):
    shell.write("countdown", "name: other\nsteps:\n  start: {name: a, tool: set, args: {x: 1}, done: true}\n")
    assert '{"x":1}' in shell.pawl("run", "countdown").out
    assert "completed" in shell.pawl("run", "countdown@1", "--test", "--input", '{"from": 2, "every": "9d"}').out
    (shell.folder / "countdown").unlink()
    (shell.folder / "countdown").mkdir()
    assert '"ticks":1' in shell.pawl("run", "countdown", "--test", "--input", '{"from": 1, "every": "9d"}').out, "a folder is no definition"
    assert "--name goes with a FILE" in shell.pawl("run", "countdown", "--name", "x", expect=2).err


def test_a_name_that_means_nothing_makes_no_store(shell):
    found = shell.pawl("run", "cuontdown", expect=1)
    assert "not-known: no file 'cuontdown', and no definition or code type of that name" in found.err, found
    assert "there are: countdown" in found.err and "--module FILE" in found.err, found
    shell.pawl("run", "countdown", "--module", "missing.so", expect=1)
    assert list(shell.folder.iterdir()) == []


def test_a_trial_of_a_name_takes_the_definitions_of_the_store_and_leaves_it_alone(shell):
    trip = (EXAMPLES / "trip.yaml").read_text()
    shell.pawl("define", str(EXAMPLES / "booking.yaml"), shell.write("trip.yaml", trip))
    shell.pawl("define", shell.write("trip.yaml", trip.replace("timeout: 2d", "timeout: 9d")))
    shell.pawl("start", "trip", "--input", '{"to":"Rome"}')
    (shell.folder / "trip.yaml").unlink()
    before = shell.json("stats")
    found = shell.pawl("run", "trip", "--test", "--fire", "confirm", "--fire", "confirm@5d", "--json", "--input", '{"to":"Turin"}')
    assert json.loads(found.out.splitlines()[-1])["result"] == {"booked": "Turin"}, found
    found = shell.pawl("run", "trip@1", "--test", "--fire", "confirm", "--fire", "confirm@5d", "--json", "--input", '{"to":"Turin"}')
    assert json.loads(found.out.splitlines()[-1])["result"]["sorry"] == "timeout", "the first version waits two days"
    assert "no file 'trip@3', and no definition" in shell.pawl("run", "trip@3", "--test", expect=1).err
    assert shell.json("stats") == before and len(shell.json("list", "--definition", "trip")["instances"]) == 1
    shell.serve()
    shell.pawl("run", "trip", "--test", "--fire", "confirm", "--fire", "confirm", "--input", '{"to":"Turin"}')


def test_a_name_goes_to_the_owner_of_the_store_and_is_followed_there(shell):
    shell.serve()
    found = shell.pawl("run", "countdown", "--input", '{"from": 1, "every": "10ms"}')
    assert "completed" in found.out, found
    found = shell.pawl("run", "countdown", "--module", "x.so", expect=3)
    assert "--module needs a store of its own" in found.err, found


# ---- How it looks ----


def test_a_trial_on_a_terminal_is_drawn_as_a_tree_and_fits(shell):
    for columns in (80, 120):
        term = Terminal(shell, "run", str(EXAMPLES / "create-deployable.yaml"), "--test", "--input", '{"name": "%s"}' % ("s" * 90),
                        columns=columns)
        assert term.end() == 0 and term.widest() <= columns, term.text()
        assert "│  └─ ✘ smoke-test  fail" in term.text() and "…" in term.text(), term.text()


def test_a_running_step_turns(shell):
    shell.write("slow.yaml", "name: slow\nsteps:\n  start: {name: nap, tool: exec, args: {argv: [sleep, '0.5']}, done: true}\n")
    term = Terminal(shell, "run", "slow.yaml")
    assert term.end() == 0
    assert len(set(re.findall(r"  ([⠋⠙⠹⠸⠼⠴⠦⠧]) nap", term.text()))) > 1, term.text()


def test_resume_on_a_terminal_has_one_title(shell):
    shell.write("wait.yaml", "name: wait\nsteps:\n  start: {name: x, tool: far, done: true}\n")
    shell.pawl("define", "wait.yaml")
    shell.pawl("start", "wait")
    term = Terminal(shell, "resume", "@last", "--stub", "far=5")
    assert term.end() == 0
    before = term.text().split("✔ x")[0]
    assert re.search(r"wait@1", before) and not re.search(r"wait@1[^\n]*\n[^\n]*wait@1", before), before


def test_a_gate_is_shown_with_the_words_that_approve_it(shell):
    shell.pawl("define", str(EXAMPLES / "approval.yaml"))
    id = shell.pawl("start", "approval").out.strip()
    found = shell.pawl("show", "@last").out
    assert "pawl approve %s.1 --actor WHO" % id in found, found


main(globals())
