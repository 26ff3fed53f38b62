"""What people type: ids, times, words for stores and options; and the words of the answers."""
import json
import re
import socket
import urllib.request

from harness import EXAMPLES, Terminal, family, main

ORDER = str(EXAMPLES / "order.yaml")
MACHINE = '{ "states": ["a", "b"],\n  "initial_state": "a", "terminal_states": ["b"],\n' \
          '  "transitions": [{"from_state": "a",  "action": "go", "to_state": "b"}] }\n'
GATES = "name: gates\ndopar:\n  - {name: legal, tool: null, approval: {by: [ann]}}\n  - {name: money, tool: null, approval: {by: [bob]}}\n"
UNSERVED = "name: unserved\nsteps:\n  start: {name: go, tool: charge_crd, done: true}\n"


def test_an_instance_can_be_created_from_a_declaration_of_its_own(shell):
    shell.pawl("init")
    shell.write("m.json", MACHINE)
    id = shell.pawl("start", "--declaration", "m.json", "--metadata", '{"batch": 7}', "--at",
                    "2026-05-01").out.strip()
    assert shell.pawl("declaration", id).out == MACHINE.rstrip("\n")
    assert shell.pawl("current", id).out == "a\n" and shell.json("current", id) == {"current_state": "a"}
    found = shell.json("show", id)
    assert found["instance_metadata"] == {"batch": 7}, found
    assert found["instantiated_at"] == "2026-05-01T00:00:00.000Z", found
    shell.write("m.yaml", "states: [a, b]\ninitial_state: a\nterminal_states: [b]\n"
                          "transitions: [{from_state: a, action: go, to_state: b}]\n")
    shell.pawl("start", "--declaration", "m.yaml")
    assert json.loads(shell.pawl("declaration", "@last").out)["initial_state"] == "a"
    for words in (["start"], ["start", "order", "--declaration", "m.json"], ["start", "--declaration", "no.json"]):
        shell.pawl(*words, expect=2)
    shell.write("bad.json", '{"states": [')
    assert "bad.json" in shell.pawl("start", "--declaration", "bad.json", expect=1).err


def test_an_error_in_a_declaration_is_told_with_its_file_and_its_place_there(shell):
    yaml = "# a comment\nstates:\n  - a\n  - b\ninitial_state: a\nterminal_states: [b]\nterminal_kinds: {b: success}\ntransitions:\n" \
           "  - {from_state: a, action: go, to_state: b}\n  - {from_state: a, action: 'an odd one', to_state: nowhere}\n"
    json_text = "\n" + json.dumps({"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"], "terminal_kinds": {"b": "success"},
                                   "transitions": [{"from_state": "a", "action": "go", "to_state": "nowhere"}]}, indent=1)
    shell.pawl("init")
    for name, text in (("odd.yaml", yaml), ("odd.json", json_text)):
        shell.write(name, text)
        at = text.index("nowhere") - (name == "odd.json")
        line, column = text[:at].count("\n") + 1, at - text[:at].rfind("\n")
        for words, input in (((name,), None), (("-",), text.encode())):
            said = shell.pawl("start", "--declaration", *words, expect=1, input=input).err
            assert said.startswith("pawl: invalid-declaration: %s: line %d, column %d: 'to_state'" % (words[0], line, column)), said
            caret = said.splitlines()[2].index("^") if len(said.splitlines()) > 2 else -1
            assert said.splitlines()[1][caret:].lstrip('"').startswith("nowhere"), said


def test_a_definition_without_a_name_is_told_without_a_place(shell):
    shell.write("part.yaml", "states: [a, b]\ninitial_state: a\n")
    said = shell.pawl("define", "part.yaml", expect=1).err
    assert "found neither" in said and "^" not in said and len(said.splitlines()) == 1, said


def test_a_refused_option_is_named_and_its_value_shown_as_it_was_typed(shell):
    shell.pawl("define", ORDER)
    shell.pawl("start", "order")
    for words, status, said in (
            (("graph", "order", "--format", "sgv"), "invalid-request", "--format: expected text, mermaid, dot, svg, json or layout, found 'sgv'"),
            (("start", "order", "--key", ""), "invalid-request", "--key: expected 1..128 bytes of UTF-8"),
            (("history", "1", "--fired", "2026-05-02..2026-05-01"), "invalid-query",
             "--fired: expected a range whose second time is not the earlier one, found '2026-05-02..2026-05-01'")):
        refused = shell.pawl(*words, expect=1).err
        assert refused.startswith("pawl: %s: %s" % (status, said)), refused


def test_a_store_that_is_typed_wrong_is_named_where_it_was_typed_with_what_was_meant(shell):
    forms = "expected sqlite:FILE, postgres://HOST/DATABASE, memory: or http://host:port, found "
    for store, option, variable in (
            ("o.db", "--store: " + forms + "'o.db'; did you mean --store sqlite:o.db?",
             "PAWL_STORE: " + forms + "'o.db'; did you mean PAWL_STORE=sqlite:o.db?"),
            ("memory", "--store: " + forms + "'memory'; did you mean --store memory:?",
             "PAWL_STORE: " + forms + "'memory'; did you mean PAWL_STORE=memory:?"),
            ("ftp://a", "--store: " + forms + "'ftp://a'\n", "PAWL_STORE: " + forms + "'ftp://a'\n"),
            ("sqlite://no-such.db", "there is no store at '//no-such.db'; did you mean --store sqlite:no-such.db?",
             "there is no store at '//no-such.db'; did you mean PAWL_STORE=sqlite:no-such.db?"),
            ("sqlite://no-such/o.db", "there is no store at '//no-such/o.db'; did you mean --store sqlite:no-such/o.db?",
             "there is no store at '//no-such/o.db'; did you mean PAWL_STORE=sqlite:no-such/o.db?")):
        for said, refused in ((option, shell.pawl("--store", store, "list", expect=1)),
                              (variable, shell.pawl("list", env={"PAWL_STORE": store}, expect=1))):
            assert said in refused.err and "init" not in refused.err, refused


def test_a_file_that_is_not_a_store_is_said_to_be_none_in_plain_words(shell):
    shell.write("batch.json", '{"operations": [' + 40 * '{"operation": "instance.list"}, ' + "{}]}")
    refused = shell.pawl("--store", "sqlite:batch.json", "list", expect=3).err
    assert "batch.json is not a pawl store: expected a file that pawl made, found no SQLite database" in refused, refused
    assert "application_id" not in refused, refused


def test_a_port_in_use_names_the_cause_and_the_option(shell):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        refused = shell.pawl("serve", "--listen", address, expect=3).err
    assert refused == "pawl: in-use: cannot listen on %s: another program listens there; choose another address with " \
                      "--listen HOST:PORT\n" % address, refused


def test_one_is_counted_in_the_singular(shell):
    shell.pawl("define", ORDER)
    shell.pawl("start", "order")
    assert shell.pawl("export", "--output", "one.ndjson").out == "1 definition and 1 instance\n"
    shell.pawl("start", "order")
    assert shell.pawl("export", "--output", "two.ndjson").out == "1 definition and 2 instances\n"


def test_times_are_typed_as_people_say_them(shell):
    shell.pawl("define", ORDER)
    shell.pawl("start", "order", "--at", "yesterday")
    shell.pawl("start", "order")
    for since, count in (("7d", 2), ("1h", 1), ("today", 1), ("yesterday", 2), ("2026-01-01", 2),
                         ("2026-01-01T09:30", 2), ("2999-01-01", 0), ("now", 0)):
        assert len(shell.json("list", "--since", since)["instances"]) == count, since
    for until, count in (("yesterday", 1), ("today", 2), ("1h", 1), ("2026-01-01", 0)):
        assert len(shell.json("list", "--until", until)["instances"]) == count, until
    shell.pawl("fire", "1", "pay", "--at", "yesterday")
    for fired, count in (("yesterday", 1), ("today", 0), ("7d..now", 1), ("7d", 1), ("..1h", 1), ("1h..", 0),
                         ("yesterday..today", 1), ("2026-01-01..2026-01-31", 0), ("2026-01-01", 0)):
        assert len(shell.json("history", "1", "--fired", fired)["entries"]) == count, fired
    refused = shell.pawl("history", "1", "--fired", "bogus", expect=1).err
    assert refused.startswith("pawl: invalid-query: --fired: expected a time"), refused
    refused = shell.pawl("list", "--since", "1x", expect=1).err
    assert refused.startswith("pawl: invalid-query: --since: expected a time"), refused
    assert "--limit" in shell.pawl("list", "--limit", "0", expect=1).err
    shell.pawl("fire", "1", "ship", "--at", "30s")
    assert len(shell.json("history", "1", "--until", "20s")["entries"]) == 2
    assert shell.json("history", "1", "--since", "20s")["entries"] == []
    shell.pawl("alarm", "set", "instance.fire", "--at", "2h", "--input",
               json.dumps({"instance_id": shell.json("show", "1")["instance_id"], "action": "ship"}))
    due = shell.json("alarm", "list")["alarms"][0]["at"]
    assert due > shell.json("show", "@last")["updated_at"], due


def test_ids_are_typed_as_numbers_and_steps_by_the_number_of_their_instance(shell):
    shell.pawl("define", ORDER, shell.write("gates.yaml", GATES))
    first, second = shell.pawl("start", "order").out.strip(), shell.pawl("start", "gates").out.strip()
    assert shell.json("show", "1")["instance_id"] == first
    assert shell.json("show", "2")["instance_id"] == second
    assert shell.json("show", second[:10].lower())["instance_id"] == second
    assert "not-known" in shell.pawl("show", "3", expect=1).err
    several = shell.pawl("approve", "2", "--actor", "ann", expect=1).err
    assert "2 gates wait" in several and "(legal)" in several and "(money)" in several, several
    legal = re.search(r"(2\.\d+) \(legal\)", several).group(1)
    assert shell.pawl("approve", legal, "--actor", "ann").out == "done\n"
    assert shell.pawl("approve", "@last", "--actor", "bob").out == "done\n"
    assert "not-awaiting" in shell.pawl("approve", "2", "--actor", "ann", expect=1).err


def test_a_number_is_decimal_as_the_views_print_it(shell):
    shell.pawl("init")
    _, address = shell.serve()
    line = json.dumps({"operation": "instance.create", "input": {"declaration": json.loads(MACHINE)}}) + "\n"
    urllib.request.urlopen(urllib.request.Request(
        address + "/v1/batch", (40 * line).encode(), {"Content-Type": "application/x-ndjson"})).read()
    rows = shell.json("sql", "select number, id from pawl_instances where number in (8, 10, 32, 40)")["rows"]
    assert len(rows) == 4
    for number, id in rows:
        assert shell.json("show", str(number))["instance_id"] == id, number
        assert shell.json("show", id[:10])["instance_id"] == id
    assert "there is no instance number 41" in shell.pawl("show", "41", expect=1).err
    assert "there is no instance number 99999999999999999999" in shell.pawl("show", "9" * 20, expect=1).err
    screen = Terminal(shell, "list", "--order", "oldest", "--limit", "40", columns=60, rows=60)
    assert screen.end() == 0
    assert re.findall(r"^(\d+) ", screen.text(), re.MULTILINE) == [str(n) for n in range(1, 41)], screen.text()


def test_last_is_what_this_user_created_last(shell):
    parent, child = family(shell)
    assert shell.json("show", "@last")["instance_id"] == parent != child
    other = {"XDG_STATE_HOME": str(shell.folder / "other")}
    newest = shell.pawl("show", "@last", "--json", env=other)
    assert newest.json["instance_id"] == child and "newest" in newest.err, newest
    refused = shell.pawl("cancel", "@last", env=other, expect=1).err
    assert "invalid-request" in refused and "another user's" in refused, refused
    _, address = shell.serve()
    assert shell.pawl("--store", address, "show", "@last", "--json", env=other).json["instance_id"] == child
    refused = shell.pawl("--store", address, "cancel", "@last", env=other, expect=1).err
    assert "invalid-request" in refused and "another user's" in refused, refused
    mine = shell.pawl("--store", address, "start", "parent", env=other).out.strip()
    assert shell.pawl("--store", address, "start", "parent").out.strip() != mine
    shell.pawl("cancel", "@last", env=other)
    assert shell.json("show", mine)["status"] == "cancelled"
    assert shell.json("show", parent)["status"] == "suspended"


def test_messages_name_the_option_that_was_typed(shell):
    shell.pawl("define", ORDER)
    shell.pawl("start", "order")
    for words, told, member in (
            (["start", "order", "--at", "tomorrow"], "--at: ", "instantiated_at"),
            (["fire", "@last", "pay", "--at", "tomorrow"], "--at: ", "fired_at"),
            (["fire", "@last", "pay", "--at", "400d"], "--at: ", "fired_at"),
            (["start", "order", "--subject", "x" * 2000], "--subject", "subject_ref"),
            (["alarm", "set", "instance.cancel", "--at", "tomorrow"], "--input is missing", "'input'"),
            (["token", "create"], "--scope is missing", "scopes"),
            (["alarm", "set", "instance.cancel", "--at", "bogus"], "--at: expected a time", "'at'"),
            (["list", "--status", "bogus"], "expected running, waiting, paused", "suspended"),
            (["list", "--since", "now", "--until", "7d"], "--until is earlier than --since", "created_")):
        found = shell.pawl(*words, expect=1).err
        assert told in found and member not in found, (words, found)
    answer = shell.pawl("start", "order", "--at", "tomorrow", "--json", expect=1)
    assert "instantiated_at" in answer.json["detail"], answer
    refused = shell.pawl("fire", "@last", "subject_ref", expect=1).err
    assert "subject_ref" in refused and "--subject" not in refused, refused


def test_what_the_wire_calls_suspended_is_shown_as_waiting(shell):
    family(shell)
    texts = [shell.pawl(*words).out for words in (
        ["list"], ["list", "--status", "waiting"], ["show", "1"], ["show", "2", "--timeline"], ["stats"])]
    assert all("waiting" in text and "suspended" not in text for text in texts), texts
    assert shell.json("show", "1")["status"] == "suspended"
    assert len(shell.json("list", "--status", "waiting")["instances"]) == 2


def test_run_says_at_once_which_tool_is_missing(shell):
    shell.write("u.yaml", UNSERVED)
    found = shell.pawl("run", "u.yaml", expect=1)
    assert "step 'go' needs the tool 'charge_crd', which is not here" in found.err, found
    assert "--stub charge_crd=" in found.err and "pawl serve" in found.err and "pawl resume" in found.err, found
    assert "waits for a worker with the tool charge_crd" in shell.pawl("why", "@last").out
    assert shell.json("why", "@last")["waiting_for"] == [
        {"kind": "step", "name": "go", "tool": "charge_crd", "status": "ready", "here": False}]
    assert "waits for a worker with the tool charge_crd" in shell.pawl("show", "@last").out
    assert shell.pawl("run", "u.yaml", "--json", expect=1).out.count('"suspended"') == 0
    shell.pawl("resume", "@last", "--stub", "charge_crd=1")
    shell.write("p.yaml", "name: p\ndo:\n  - {name: kid, spawn: {definition: unserved, input: {}}}\n")
    assert "'charge_crd'" in shell.pawl("run", "p.yaml", expect=1).err


def test_run_prints_the_last_state_once(shell):
    shell.write("f.yaml", "name: f\nsteps:\n  start: {name: go, tool: fail, args: {error: no}, retry: {max: 1}, done: true}\n")
    for _ in range(5):
        found = shell.pawl("run", "f.yaml", expect=1).out
        assert "✘ failed" in found and "○ failed" not in found, found


def test_a_store_that_cannot_be_meant_gets_a_sentence_and_a_right_command(shell):
    for store, words in (("orders.db", "--store sqlite:orders.db"), ("127.0.0.1:7295", "--store http://127.0.0.1:7295"),
                         ("https://a.example", "TLS"), ("mysql://a", "expected sqlite:FILE, postgres://HOST/DATABASE, memory: or http://"),
                         ("file:s.db", "--store sqlite:s.db?"), ("http://127.0.0.1:1", "pawl serve --listen 127.0.0.1:1\n"),
                         ("http://nosuch.invalid:80", "'nosuch.invalid' cannot be resolved"),
                         ("http://127.0.0.1:99999", "expected a port from 1 to 65535, found '99999'"),
                         ("sqlite:no/such/s.db", "there is no folder 'no/such'; make it: mkdir -p no/such\n")):
        found = shell.pawl("--store", store, "list", expect=None)
        assert words in found.err and "doctor" not in found.err and "token" not in found.err, found
        assert ("pawl serve" in words) == ("pawl serve" in found.err) and "init" not in found.err, found
    assert "mkdir -p no/such\n" in shell.pawl("--store", "sqlite:no/such/s.db", "init", expect=3).err
    shell.pawl("--store", "SQLite:upper.db", "init")
    assert (shell.folder / "upper.db").exists()
    assert shell.pawl("list", env={"PAWL_STORE": "SQLITE:upper.db"}).out == "no instances\n"
    assert "pawl list" not in shell.pawl("show", "1", expect=1).err
    assert "did you mean --status?" in shell.pawl("list", "--statsu", "x", expect=2).err
    assert "--listen" in shell.pawl("serve", "--port", "1", expect=2).err
    shell.pawl("init")
    assert "pawl_instances" in shell.pawl("sql", "select * from instances", expect=1).err


main(globals())
