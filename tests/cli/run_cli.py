"""The verbs on a store in a file, one after the other."""
import json
import os
import re
import sqlite3

from harness import EXAMPLES, main

ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
FLOW = """name: short
steps:
  start: {name: one, tool: set, args: {a: "{{input.a}}"}, next: two}
  two: {tool: exec, args: {argv: [echo, '{"b": 2}']}, done: true}
"""
BROKEN = "name: broken\nsteps:\n  start: {name: no, tool: fail, args: {error: too-bad}, retry: {max: 1}, done: true}\n"


def order(shell, *words):
    """An order in a new store; its id."""
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    return shell.pawl("start", "order", *words).out.strip()


def test_a_store_that_runs_no_countdown_has_no_record_of_it(shell):
    order(shell)
    assert shell.json("sql", "select count(*) from pawl_definitions where name = 'countdown'")["rows"] == [[0]]
    assert "countdown" not in shell.pawl("export").out
    id = shell.json("start", "countdown", "--input", '{"from":1,"every":"1h"}')["instance_id"]
    assert shell.json("sql", "select name, version from pawl_definitions where name = 'countdown'")["rows"] == [["countdown", 1]]
    assert shell.json("show", id)["definition"] == "countdown"
    shell.pawl("verify")


def test_without_a_verb_there_is_an_overview(shell):
    found = shell.pawl()
    for verb in ("init", "fire", "verify", "serve", "demo"):
        assert re.search(r"^  %s\b" % verb, found.out, re.MULTILINE), found
    assert shell.pawl("--help").out == found.out


def test_every_verb_has_help_with_examples(shell):
    for verb in re.findall(r"^  ([a-z]+) ", shell.pawl().out, re.MULTILINE)[1:]:
        found = shell.pawl(verb, "--help")
        assert found.out.startswith("pawl " + verb) and "Examples\n  pawl " in found.out, found


def test_version(shell):
    assert re.fullmatch(r"pawl \d+\.\d+\.\d+\n", shell.pawl("--version").out)


def test_wrong_words_are_usage_and_touch_nothing(shell):
    for words in (["frie"], ["fire"], ["fire", "x"], ["list", "x"], ["list", "--nope"], ["list", "-x"],
                  ["list", "--state"], ["fire", "x", "y", "--guard=1"], ["define", "missing.yaml"],
                  ["--store"], ["run", "missing.yaml"], ["check", "missing.yaml"],
                  ["start", "order", "--input", "@missing.json"], ["run", "x", "--input", "@missing.json"],
                  ["fire", "@last", "pay", "--payload", "@missing.json"], ["serve", "--module-time", "zz"],
                  ["resume", "@last", "--module-time", "0"], ["verify", "--limit", "zz"]):
        found = shell.pawl(*words, expect=2)
        assert found.err.startswith("pawl: ") and not found.out, (words, found)
    assert "did you mean 'fire'" in shell.pawl("frie", expect=2).err
    assert os.listdir(shell.folder) == []


def test_a_run_with_a_wrong_input_puts_no_definition_and_makes_no_store(shell):
    for words, told in ((("--input", "{"), "--input is not JSON"), (("--label", "region"), "--label: expected K=V, found 'region'"),
                        (("--label", "=eu"), "expected K=V"), (("--label", "a=1", "--label", "a=2"), "--label: expected each key once, found 'a' again")):
        found = shell.pawl("run", str(EXAMPLES / "welcome.yaml"), *words, expect=1)
        assert found.err.startswith("pawl: invalid-request: ") and told in found.err, (words, found)
    assert os.listdir(shell.folder) == []
    shell.pawl("init")
    assert "--label: expected each key once, found 'a' again" in shell.pawl("list", "--label", "a=1", "--label", "a=1", expect=1).err


def test_init_creates_the_store_once(shell):
    assert "created" in shell.pawl("init").out
    assert "already" in shell.pawl("init").out
    assert (shell.folder / "pawl.db").exists()


def test_a_missing_store_is_named_with_the_way_to_make_one(shell):
    found = shell.pawl("--store", "sqlite:other.db", "list", expect=1)
    assert found.err.startswith("pawl: not-known: ") and "--store sqlite:other.db init" in found.err
    assert os.listdir(shell.folder) == []


def test_the_environment_names_the_store(shell):
    shell.pawl("init", env={"PAWL_STORE": "sqlite:named.db"})
    assert (shell.folder / "named.db").exists()


def test_define_answers_name_and_version(shell):
    path = str(EXAMPLES / "order.yaml")
    assert shell.pawl("define", path).out.startswith("order@1  machine")
    assert shell.pawl("define", path).out.startswith("order@1 "), "the same text is the same version"
    shell.write("other.yaml", (EXAMPLES / "order.yaml").read_text().replace("name: order\n", ""))
    assert shell.pawl("define", "other.yaml", "--name", "other").out.startswith("other@1 ")
    assert "--name" in shell.pawl("define", "other.yaml", expect=1).err


def test_a_wrong_definition_is_refused_with_file_line_and_column(shell):
    shell.write("bad.yaml", "name: bad\nstates: [a]\ninitial_state: b\nterminal_states: [a]\nterminal_kinds: {a: success}\ntransitions: []\n")
    found = shell.pawl("define", "bad.yaml", expect=1)
    assert re.match(r"pawl: invalid-definition: bad\.yaml: .*line 3", found.err), found
    shell.write("broken.yaml", "name: [\n")
    assert "broken.yaml" in shell.pawl("define", "broken.yaml", expect=1).err


def test_check_needs_no_store_and_stores_nothing(shell):
    assert shell.pawl("check", str(EXAMPLES / "order.yaml")).out.endswith("order.yaml: valid\n")
    shell.write("bad.yaml", "name: bad\nstates: [a]\ninitial_state: b\nterminal_states: [a]\nterminal_kinds: {a: success}\ntransitions: []\n")
    found = shell.pawl("check", "bad.yaml", expect=1)
    assert re.search(r"^bad\.yaml:3:\d+: error: ", found.out, re.MULTILINE), found
    assert os.listdir(shell.folder) == ["bad.yaml"]


def test_every_example_is_valid(shell):
    shell.pawl("check", *map(str, sorted(EXAMPLES.glob("*.yaml"))))


def test_start_prints_the_id_alone(shell):
    assert ID.fullmatch(order(shell, "--subject", "A-17"))


def test_fire_moves_and_says_where(shell):
    order(shell)
    assert shell.pawl("fire", "@last", "pay", "--actor", "ann").out == "paid  entry 1\n"
    answer = shell.json("fire", "@last", "ship")
    assert answer["new_state"] == "shipped" and answer["sequence_number"] == 2


def test_a_refusal_has_token_words_and_the_next_command(shell):
    order(shell)
    found = shell.pawl("fire", "@last", "ship", expect=1)
    assert re.match(r"pawl: invalid-transition: .*pay, drop", found.err), found
    assert "try: pawl show @last" in found.err and not found.out
    found = shell.pawl("fire", "@last", "ship", "--json", expect=1)
    assert found.json["reason"] == "invalid-transition" and found.json["status"] == 409


def test_guard_reason_payload_time_and_sequence_reach_the_entry(shell):
    shell.pawl("define", str(EXAMPLES / "batch-release.yaml"))
    shell.pawl("start", "batch-release")
    shell.pawl("fire", "@last", "begin-testing")
    assert "--guard" in shell.pawl("fire", "@last", "release", expect=1).err
    assert "conflict" in shell.pawl("fire", "@last", "release", "--guard", "--expect", "7", expect=1).err
    assert "is 0, but the next entry is number 2" in shell.pawl(
        "fire", "@last", "release", "--guard", "--expect", "0", expect=1).err
    shell.write("note.json", '{"n": 1.50}')
    shell.pawl("fire", "@last", "release", "--guard", "--reason", "good", "--payload", "@note.json",
               "--expect", "2")
    entry = shell.json("history", "@last")["entries"][1]
    assert entry["guard_satisfied"] and entry["reason"] == "good" and entry["payload"] == {"n": 1.5}
    assert "1.50" in shell.pawl("history", "@last", "--json").out, "numbers keep their text"


def test_what_is_not_json_is_refused_before_anything_happens(shell):
    order(shell)
    found = shell.pawl("fire", "@last", "pay", "--payload", "hello", expect=1)
    assert found.err.startswith("pawl: invalid-request: --payload is not JSON"), found
    assert "--expect" in shell.pawl("fire", "@last", "pay", "--expect", "x", expect=1).err
    assert shell.json("history", "@last")["entries"] == []


def test_an_id_may_be_a_prefix_or_last(shell):
    first, second = order(shell), order(shell)
    assert shell.json("show", "@last")["instance_id"] == second
    assert shell.json("show", first[:10])["instance_id"] == first
    assert shell.json("show", first[:12].lower())["instance_id"] == first
    assert "more than one" in shell.pawl("show", first[:4], expect=1).err
    assert "not-known" in shell.pawl("show", "ZZZ", expect=1).err
    assert "not-known" in shell.pawl("show", "Z" * 26, expect=1).err


def test_a_prefix_that_ends_within_the_random_part_must_fit_it(shell):
    id = order(shell)
    other = id[:11] + ("0" if id[11] != "0" else "1")
    assert "not-known" in shell.pawl("show", other, expect=1).err
    assert "not-known" in shell.pawl("show", "0000000001!", expect=1).err
    assert shell.json("show", id[:25])["instance_id"] == id


def test_a_rejection_tells_what_to_try_next(shell):
    order(shell)
    for words, hint in ((["start", "oder"], "there are: order\n  try: pawl define FILE"),
                        (["show", "ZZZ"], "try: pawl list"), (["fire", "@last", "ship"], "try: pawl show @last"),
                        (["list", "--limit", "0"], "see: pawl list --help"),
                        (["signal", "@last", "x"], "try: pawl why @last")):
        found = shell.pawl(*words, expect=1)
        assert hint in found.err, (words, hint, found)
    (shell.folder / "no.db").write_text("no store " * 300)
    assert "try: pawl --store sqlite:no.db doctor" in shell.pawl("--store", "sqlite:no.db", "list", expect=3).err


def test_stores_are_listed(shell):
    shell.pawl("init")
    assert shell.pawl("stores").out == "default\n"


def test_run_of_a_machine_ends_where_somebody_has_to_fire(shell):
    found = shell.pawl("run", str(EXAMPLES / "order.yaml"), expect=1)
    id = found.out.splitlines()[0]
    assert "pay → paid" in found.out, found
    assert "waiting in 'new' for an action" in found.err, found
    assert "pawl fire %s pay" % id[:10] in found.out, found
    shell.pawl("fire", id, "pay")
    assert "waiting in 'paid'" in shell.pawl("resume", id, expect=1).err


def test_run_of_a_machine_waits_for_its_deadlines(shell):
    shell.write("offer.yaml", "name: offer\nstates: [open, gone]\ninitial_state: open\nterminal_states: [gone]\n"
                "terminal_kinds: {gone: success}\ntransitions:\n  - {from_state: open, action: expire, to_state: gone}\n"
                "deadlines:\n  - {state: open, after: 50ms, action: expire}\n")
    assert "✔ gone" in shell.pawl("run", "offer.yaml").out


def test_last_of_an_empty_store_is_not_known(shell):
    shell.pawl("init")
    assert "not-known" in shell.pawl("show", "@last", expect=1).err


def test_cancel_goes_the_declared_way_or_is_refused(shell):
    order(shell)
    assert shell.pawl("cancel", "@last", "--reason", "changed my mind").out.startswith("dropped")
    assert "terminal" in shell.pawl("cancel", "@last", expect=1).err
    kept = re.sub(r".*refund.*\n", "", (EXAMPLES / "order.yaml").read_text()).replace("name: order", "name: kept")
    shell.pawl("define", shell.write("kept.yaml", kept))
    shell.pawl("start", "kept")
    shell.pawl("fire", "@last", "pay")
    assert "no-cancel-transition" in shell.pawl("cancel", "@last", expect=1).err


def test_cancel_takes_all_that_belong_together(shell):
    order(shell, "--correlation", "c-1")
    order(shell, "--correlation", "c-1")
    order(shell, "--correlation", "c-2")
    assert shell.pawl("cancel", "--correlation", "c-1").out == "cancelled 2, refused 0\n"
    assert shell.json("cancel", "--correlation", "c-1") == {"cancelled": 0, "refused": 2}
    assert shell.json("stats")["by_state"] == {"new": 1, "dropped": 2}
    shell.pawl("cancel", expect=2)
    shell.pawl("cancel", "@last", "--correlation", "c-2", expect=2)


def test_list_filters(shell):
    order(shell, "--subject", "A-1", "--label", "region=eu", "--label", "tier=gold")
    order(shell, "--subject", "A-2", "--correlation", "c-9")
    shell.pawl("fire", "@last", "pay")
    assert len(shell.json("list")["instances"]) == 2
    for words, subject in ((["--state", "paid"], "A-2"), (["--label", "region=eu"], "A-1"),
                           (["--correlation", "c-9"], "A-2"), (["--subject", "A-1"], "A-1"),
                           (["--limit", "1"], "A-2"), (["--limit", "1", "--order", "oldest"], "A-1")):
        found = shell.json("list", *words)["instances"]
        assert [row["subject_ref"] for row in found] == [subject], (words, found)
    table = shell.pawl("list").out
    assert re.search(r"order@1 +paid +waiting +A-2", table), table
    assert "invalid-query" in shell.pawl("list", "--limit", "0", expect=1).err


def test_stats_counts_by_status_and_state(shell):
    order(shell)
    order(shell)
    shell.pawl("fire", "@last", "pay")
    assert shell.json("stats", "--definition", "order")["by_state"] == {"new": 1, "paid": 1}
    table = shell.pawl("stats").out
    assert re.search(r"2  waiting\n", table) and re.search(r"1  paid\n", table) and "2  in all" in table, table


def test_show_tells_facts_path_and_next_actions(shell):
    order(shell, "--subject", "A-17", "--actor", "ann")
    shell.pawl("fire", "@last", "pay", "--actor", "bob", "--reason", "by card")
    found = shell.pawl("show", "@last").out
    for part in ("order", "A-17", "paid", "waiting", "by bob", "by card", "ship → shipped", "fire 0000000001 ship"):
        assert part in found, (part, found)
    assert "\033" not in found, "no colours off a terminal"


def test_history_is_a_table_and_takes_filters(shell):
    order(shell)
    shell.pawl("fire", "@last", "pay", "--actor", "ann")
    shell.pawl("fire", "@last", "ship", "--actor", "bob")
    assert re.search(r"^1 .*new → paid +pay +ann", shell.pawl("history", "@last").out, re.MULTILINE)
    assert [e["action"] for e in shell.json("history", "@last", "--actor", "bob")["entries"]] == ["ship"]
    assert [e["action"] for e in shell.json("history", "@last", "--up-to", "1")["entries"]] == ["pay"]


def test_why_names_the_actions_it_waits_for(shell):
    order(shell)
    assert re.findall(r"^action +(\w+)", shell.pawl("why", "@last").out, re.MULTILINE) == ["pay", "drop"]


def test_verify_says_valid_and_how_much(shell):
    order(shell)
    shell.pawl("fire", "@last", "pay")
    assert "valid  1 entry of 1 instance\n" in shell.pawl("verify").out
    assert shell.json("verify", "@last")["valid"] is True


def test_verify_finds_a_changed_byte(shell):
    order(shell)
    shell.pawl("fire", "@last", "pay")
    with sqlite3.connect(shell.folder / "pawl.db") as db:
        db.execute("update pawl_log set at = at - 1 where pos = (select max(pos) from pawl_log)")
    db.close()
    found = shell.pawl("verify", expect=1)
    assert "not valid" in found.out, found
    answer = shell.json("verify", expect=1)
    assert answer["valid"] is False and answer["first_bad"] == 1, answer


def test_sql_reads_and_never_writes(shell):
    order(shell, "--subject", "A-17")
    found = shell.json("sql", "select name, version from pawl_definitions where name = 'order'")
    assert found["columns"] == ["name", "version"] and found["rows"] == [["order", 1]], found
    assert shell.json("sql", "select '1', 1.5, null")["rows"] == [["1", 1.5, None]]
    assert re.search(r"^order +1$", shell.pawl("sql", "select name, version from pawl_definitions").out, re.M)
    assert "order" in shell.pawl("sql", "select name from pawl_definitions").out
    for text in ("delete from pawl_log", "create table x (a)", "selec", ""):
        shell.pawl("sql", text, expect=1)
    assert shell.json("verify")["valid"]


def test_run_takes_a_flow_to_its_end(shell):
    shell.write("short.yaml", FLOW)
    found = shell.pawl("run", "short.yaml", "--input", '{"a": [1, 2]}')
    lines = found.out.splitlines()
    assert ID.fullmatch(lines[0]), "the id comes first"
    assert "step.complete" in found.out and "completed" in found.out, found
    steps = shell.json("show", "@last")
    assert steps["status"] == "completed" and steps["result"] == {"b": 2}, steps
    shown = shell.pawl("show", "@last").out
    assert re.search(r"✔ two +exec +\d+ ms", shown), shown


def test_run_of_a_flow_that_fails_exits_1_and_says_why(shell):
    shell.write("broken.yaml", BROKEN)
    found = shell.pawl("run", "broken.yaml", expect=1)
    assert "too-bad" in found.out and "failed" in found.out, found


def test_run_with_json_answers_twice(shell):
    shell.write("short.yaml", FLOW)
    first, last = shell.pawl("run", "short.yaml", "--json").out.splitlines()
    assert json.loads(first)["instance_id"] == json.loads(last)["instance_id"]
    assert json.loads(last)["status"] == "completed"


def test_run_of_the_report_retries_and_delivers(shell):
    found = shell.pawl("run", str(EXAMPLES / "report.yaml"), "--input", '{"month": "May"}')
    assert "step.retry" in found.out or "attempt 2" in found.out, found
    result = shell.json("show", "@last")["result"]
    assert result == {"report": {"month": "May", "orders": 12, "total": 340.5}, "delivered_by": "printer 2"}


def test_a_countdown_counts_and_hears_signals(shell):
    shell.pawl("init")
    shell.pawl("start", "countdown", "--input", '{"from": 2, "every": "50ms"}')
    shell.pawl("resume", "@last")
    assert shell.json("show", "@last")["result"] == {"ticks": 2}
    shell.pawl("start", "countdown", "--input", '{"from": 5, "every": "1h"}')
    shell.pawl("signal", "@last", "add", "--payload", "3")
    shell.pawl("signal", "@last", "stop")
    assert shell.json("show", "@last")["result"] == {"stopped_at": 8}
    assert "not-awaiting" in shell.pawl("signal", "@last", "stop", expect=1).err or \
        "terminal" in shell.pawl("signal", "@last", "stop", expect=1).err
    shell.pawl("start", "countdown", "--input", '{"from": "x"}')
    assert shell.json("show", "@last")["status"] == "failed"


def test_a_memory_store_works_for_one_command(shell):
    shell.write("short.yaml", FLOW)
    shell.pawl("--store", "memory:", "run", "short.yaml")
    assert "no instances" in shell.pawl("--store", "memory:", "list").out
    assert os.listdir(shell.folder) == ["short.yaml"]


def test_a_file_that_is_no_store_is_a_storage_failure(shell):
    shell.write("pawl.db", "this is no database, but it is long enough to be looked at " * 50)
    found = shell.pawl("list", expect=3)
    assert found.err.startswith("pawl: storage-failure: "), found



def test_sql_that_takes_too_long_is_stopped_and_says_what_to_do(shell):
    shell.pawl("init")
    endless = "with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) from c"
    stopped = shell.pawl("sql", "--timeout", "100ms", endless, expect=1)
    assert "too-large" in stopped.err and "took longer than 100ms and was stopped" in stopped.err, stopped
    assert "--timeout" in stopped.err, stopped
    assert "expected a duration" in shell.pawl("sql", "--timeout", "soon", "select 1", expect=1).err
    assert shell.pawl("sql", "--timeout", "1h", "select 6 * 7").out.split()[-1] == "42"


def test_who_may_not_decide_a_gate_learns_who_may_and_nothing_of_tokens(shell):
    shell.pawl("define", str(EXAMPLES / "approval.yaml"))
    id = shell.pawl("start", "approval", "--input", '{"what": "x"}').out.split()[0]
    refused = shell.pawl("approve", id + ".1", "--actor", "eve", expect=1).err
    assert "forbidden: only ann, bob, cat may decide step 'request_approval', not 'eve'" in refused, refused
    assert "token" not in refused and "scope" not in refused, refused


main(globals())
