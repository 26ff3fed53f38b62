"""pawl check: what is wrong or odd with a definition, and whether a new version is safe."""
import json
import os
import re
import sqlite3

from harness import ROOT, main

BAD = "name: bad\nstates: [a, a]\ninitial_state: b\nterminal_states: [a]\nterminal_kinds: {a: success}\ntransitions: []\n"


def machine(**changes):
    """A machine that has nothing odd about it, and what is changed about it."""
    text = {"name": "order", "states": ["new", "paid", "shipped", "dropped"], "initial_state": "new",
            "terminal_states": ["shipped", "dropped"], "terminal_kinds": {"shipped": "success", "dropped": "cancel"},
            "transitions": [{"from_state": "new", "action": "pay", "to_state": "paid"},
                            {"from_state": "paid", "action": "ship", "to_state": "shipped"},
                            {"from_state": "*", "action": "drop", "to_state": "dropped"}]}
    text.update(changes)
    return json.dumps(text)


def test_an_error_shows_the_line_it_means_with_a_caret(shell):
    shell.write("bad.yaml", BAD)
    assert shell.pawl("check", "bad.yaml", expect=1).out == (
        "bad.yaml:2:13: error: state 'a' is declared twice, first at line 2, column 10; keep one\n"
        "     2 | states: [a, a]\n"
        "       |             ^\n"
        "bad.yaml:3:16: error: 'initial_state': expected one of 'states', found 'b'; declare it there or correct the name\n"
        "     3 | initial_state: b\n"
        "       |                ^\n"
        "see 'Machines' in man pawl-definition, or docs/definitions.md#machines\n")


def test_a_report_ends_with_the_section_that_describes_the_key_of_an_error(shell):
    step = "name: f\nsteps:\n  wait: {%s, done: true}\n"
    for text, words in ((step % "tool: log, args: {message: a}, timout: 3s", "see 'Timeouts' in man pawl-definition, or docs/definitions.md#timeouts"),
                        (step % "tool: log, args: {message: a}, retry: {max: 0}", "see man pawl-definition, or docs/definitions.md"),
                        (step % "spawn: {definition: 7}", "see 'Spawn: children' in man pawl-definition, or docs/definitions.md#spawn-children"),
                        ("name: f\ncancel: {not_from: [x]}\n" + (step % "tool: log, args: {message: a}")[8:],
                         "see 'Cancelling a flow' in man pawl-definition, or docs/definitions.md#cancelling-a-flow")):
        shell.write("bad.yaml", text)
        assert shell.pawl("check", "bad.yaml", expect=1).out.endswith("\n%s\n" % words), shell.pawl("check", "bad.yaml", expect=1)
        assert shell.pawl("define", "bad.yaml", expect=1).err.endswith("\n%s\n" % words)
    page = (ROOT / "docs/definitions.md").read_text()
    for title, anchor in (("## Machines", "machines"), ("### Spawn: children", "spawn-children"), ("## Cancelling a flow", "cancelling-a-flow")):
        assert "\n%s\n" % title in page, title


def test_a_definition_without_errors_is_not_sent_to_the_page(shell):
    shell.write("order.json", machine())
    assert "pawl-definition" not in shell.pawl("check", "order.json").out


def test_a_file_that_is_no_utf_8_is_refused_with_its_place_and_never_changed_on_the_way(shell):
    for bad, place in ((b"states: [a]\n# caf\xe9\n", "2:6: expected UTF-8, found the byte 0xE9"),
                       (b"states: [\xc3\xa9\x00]\n", "1:11: expected UTF-8, found the byte 0x00")):
        (shell.folder / "bad.yaml").write_bytes(bad)
        for verb in ("check", "define", "run"):
            assert place in shell.pawl(verb, "bad.yaml", expect=1).err, verb
    assert shell.json("list")["instances"] == []


def test_a_guard_that_nobody_is_ever_asked_for_is_told(shell):
    lost = {"from_state": "lost", "action": "find", "to_state": "paid", "guard": "found"}
    used = {"from_state": "paid", "action": "hold", "to_state": "paid", "guard": "checked"}
    order = json.loads(machine())
    text = machine(states=order["states"] + ["lost"], transitions=order["transitions"] + [lost, used])
    shell.write("lost.json", text)
    told = shell.pawl("check", "lost.json").out
    assert "the guard 'found' is never asked for: no way leads to 'lost'" in told and "'checked'" not in told, told


def odd(more):
    return ("name: odd\nstates: [a, z]\n%sinitial_state: a\nterminal_states: [z]\n"
            "terminal_kinds: {z: success}\ntransitions:\n  - {from_state: a, action: go, to_state: z}\n" % more)


def test_a_warning_shows_its_line_and_the_definition_is_valid(shell):
    shell.write("odd.yaml", odd("").replace("[z]", "[z, z]"))
    assert shell.pawl("check", "odd.yaml").out == (
        "odd.yaml:4:22: warning: terminal state 'z' is listed twice; keep one\n"
        "     4 | terminal_states: [z, z]\n"
        "       |                      ^\n"
        "odd.yaml: valid\n")


def test_an_unknown_key_is_an_error_under_the_key_and_a_key_of_ones_own_is_kept(shell):
    shell.write("odd.yaml", odd("inital_state: a\n"))
    assert shell.pawl("check", "odd.yaml", expect=1).out == (
        "odd.yaml:3:1: error: unknown key 'inital_state'; did you mean 'initial_state'? known here: name, description, "
        "input, states, initial_state, terminal_states, terminal_kinds, transitions, deadlines, mcp, retention, labels, version\n"
        "     3 | inital_state: a\n"
        "       | ^\n"
        "see 'Machines' in man pawl-definition, or docs/definitions.md#machines\n")
    assert "invalid-definition" in shell.pawl("define", "odd.yaml", expect=1).err
    shell.write("own.yaml", odd("x-team: {name: a}\n"))
    assert shell.pawl("define", "own.yaml").err == ""
    stored = shell.json("sql", "select text from pawl_definitions where name = 'odd'")["rows"]
    assert len(stored) == 1 and "x-team: {name: a}" in stored[0][0], stored


def test_the_caret_stands_under_the_character_meant_in_a_line_of_any_width(shell):
    states = ["ärger%d" % i for i in range(200)]
    text = json.dumps({"states": states, "initial_state": "nowhere", "transitions": []}, ensure_ascii=False)
    shell.write("wide.json", text)
    where, line, caret, _ = shell.pawl("check", "wide.json", expect=1).out.splitlines()
    assert where.startswith("wide.json:1:%d: error: " % (len(text.split('"nowhere"')[0].encode()) + 1)), where
    assert len(line) <= 80 and line[caret.index("^"):].startswith('"nowhere"'), (line, caret)


def test_control_characters_of_a_text_reach_no_terminal(shell):
    shell.write("bell.yaml", "name: bell\nstates: [\"a\x1b[31m\", b]\ninitial_state: b\ntransitions: []\n\"k\x1b[2J\": 1\n")
    found = shell.pawl("check", "bell.yaml", expect=None)
    assert "\x1b" not in found.out + found.err, found


def test_a_refused_definition_shows_every_error_and_is_not_put(shell):
    shell.write("bad.yaml", BAD)
    found = shell.pawl("define", "bad.yaml", expect=1)
    assert found.out == "" and found.err.splitlines()[:3] == [
        "pawl: invalid-definition: bad.yaml: line 2, column 13: state 'a' is declared twice, first at line 2, column 10; keep one",
        "     2 | states: [a, a]",
        "       |             ^"], found
    assert "bad.yaml:3:16: error: 'initial_state'" in found.err, found
    assert "bad.yaml: line 2, column 13" in shell.pawl("run", "bad.yaml", expect=1).err
    assert shell.json("sql", "select count(*) as n from pawl_definitions where name = 'bad'")["rows"] == [[0]]


def test_a_definition_with_warnings_is_put_and_they_go_to_stderr(shell):
    shell.write("odd.json", machine(terminal_states=["shipped", "dropped", "shipped"]))
    found = shell.pawl("define", "odd.json")
    assert found.out.startswith("order@1  machine") and found.out.count("\n") == 1, found
    assert re.fullmatch(r"odd\.json:1:\d+: warning: terminal state 'shipped' is listed twice; keep one\n", found.err), found
    assert [w["message"][:21] for w in shell.json("define", "odd.json")["warnings"]] == ["terminal state 'shipp"]


GREET = """name: greet
do:
  - {name: hail, tool: set, args: {to: "{{input.who.name}}", again: "{{input.who.name}}", all: "{{input}}"}}
output: {said: "{{input.words}}"}
"""


def test_start_and_run_warn_when_the_input_lacks_what_templates_read(shell):
    shell.write("greet.yaml", GREET)
    shell.pawl("define", "greet.yaml")
    lacks = ("pawl: warning: the input has no 'who.name', which {{input.who.name}} of 'hail' reads: "
             "it is replaced by an empty text\n"
             "pawl: warning: the input has no 'words', which {{input.words}} of 'output' reads: "
             "it is replaced by an empty text\n")
    assert shell.pawl("start", "greet").err == lacks
    assert shell.pawl("--store", "memory:", "run", "greet.yaml").err == lacks
    assert shell.pawl("start", "greet", "--input", '{"who": {"name": null}, "words": ""}').err == ""
    created = shell.json("start", "greet", "--input", '{"words": 1}')
    assert [w["message"][:30] for w in created["warnings"]] == ["the input has no 'who.name', w"], created
    assert "warnings" not in shell.json("start", "greet", "--input", '{"who": {"name": 1}, "words": 1}')
    shell.write("typed.yaml", GREET.replace("greet", "typed") + "input: {properties: {who: {}, words: {}}}\n")
    shell.pawl("define", "typed.yaml")
    assert shell.pawl("start", "typed").err == "", "with a schema, what is optional may be missing"


def test_json_gives_findings_as_data_without_pictures(shell):
    shell.write("bad.yaml", BAD)
    found = shell.json("check", "bad.yaml", expect=1)
    assert [(e["line"], e["column"]) for e in found["errors"]] == [(2, 13), (3, 16)] and found["warnings"] == []
    assert os.listdir(shell.folder) == ["bad.yaml"]


def under_way(shell):
    """Two orders that are new, one that is paid, one that was dropped."""
    shell.write("order.json", machine())
    shell.pawl("define", "order.json")
    for action in (None, None, "pay", "drop"):
        shell.pawl("start", "order")
        if action:
            shell.pawl("fire", "@last", action)


RENAMED = [{"from_state": "new", "action": "pay", "to_state": "paid"},
           {"from_state": "paid", "action": "send", "to_state": "shipped"},
           {"from_state": "new", "action": "drop", "to_state": "dropped"}]


def test_a_new_version_that_has_a_place_for_every_instance_is_safe(shell):
    under_way(shell)
    shell.write("new.json", machine(description="the same with words"))
    assert shell.pawl("check", "new.json", "--against", "order").out == (
        "new.json: valid\n"
        "state  instances  verdict\n"
        "new    2          safe\n"
        "paid   1          safe\n"
        "new.json: safe against order, of which 3 instances are under way\n")


def test_a_new_version_without_an_exit_that_is_needed_is_not_safe(shell):
    under_way(shell)
    shell.write("new.json", machine(transitions=RENAMED))
    found = shell.pawl("check", "new.json", "--against", "order", expect=1)
    assert found.out.endswith(
        "state  instances  verdict\n"
        "new    2          safe\n"
        "paid   1          exits missing: ship, drop\n"
        "new.json: not safe against order, of which 3 instances are under way\n"), found
    found = shell.json("check", "new.json", "--against", "order", expect=1)["against"]
    assert found["safe"] is False and found["versions"] == [1], found
    assert found["states"][1] == {"state": "paid", "instances": 1, "verdict": "exits missing", "missing": ["ship", "drop"]}
    assert shell.json("sql", "select max(version) from pawl_definitions where name = 'order'")["rows"] == [[1]]


def test_against_works_through_a_server_and_through_the_owner_of_the_store(shell):
    under_way(shell)
    shell.write("new.json", machine(transitions=RENAMED))
    here = shell.json("check", "new.json", "--against", "order", expect=1)
    child, address = shell.serve()
    assert shell.json("--store", address, "check", "new.json", "--against", "order", expect=1) == here
    assert shell.json("check", "new.json", "--against", "order", expect=1) == here
    shell.pawl("cancel", "@last", expect=1)
    shell.stop(child)


def test_against_needs_a_store_a_name_that_is_known_and_one_file(shell):
    shell.write("new.json", machine())
    assert "there is no store" in shell.pawl("check", "new.json", "--against", "order", expect=1).err
    shell.pawl("init")
    assert "no definition 'order' to compare with" in shell.pawl("check", "new.json", "--against", "order", expect=1).err
    shell.pawl("check", "new.json", "new.json", "--against", "order", expect=2)
    shell.pawl("define", "new.json")
    assert shell.pawl("check", "new.json", "--against", "order").out.endswith(
        "new.json: safe against order: none of its instances is under way\n")


def test_against_a_damaged_store_is_a_storage_failure(shell):
    shell.write("flow.yaml", "name: nap\nsteps:\n  a: {tool: sleep, args: {for: 1h}, done: true}\n")
    under_way(shell)
    shell.pawl("define", "flow.yaml")
    shell.pawl("start", "nap")
    with sqlite3.connect(shell.folder / "pawl.db") as db:
        db.execute("update pawl_state set name = 'paied' where name = 'paid'")
        db.execute("update pawl_step set plan = 77")
    for path, name in (("order.json", "order"), ("flow.yaml", "nap")):
        found = shell.pawl("check", path, "--against", name, expect=3)
        assert found.err.startswith("pawl: storage-failure: ") and "run pawl verify" in found.err, found


def test_the_page_about_checking_names_every_verdict(shell):
    page = (ROOT / "docs" / "howto" / "check.md").read_text()
    names = re.findall(r'X\([A-Z_]+, "([a-z ]+)"\)', (ROOT / "src" / "engine" / "engine.h").read_text())
    assert len(names) >= 6 and all("`" + name in page for name in names), names


main(globals())
