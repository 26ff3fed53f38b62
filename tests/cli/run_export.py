"""`pawl export` and `pawl import`: instances move between stores with their ids and hashes."""
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
import urllib.request

from harness import EXAMPLES, ROOT, family, main

LOOP = """name: loop
states: [on, off]
initial_state: on
terminal_states: [off]
terminal_kinds: {off: success}
transitions:
  - {from_state: on, action: again, to_state: on}
  - {from_state: on, action: stop, to_state: off}
deadlines:
  - {state: on, after: 2h, action: stop}
"""
COPY = ("--store", "sqlite:copy.db")


def fill(shell):
    """A store with instances of every kind, ended and not; their ids."""
    shell.write("loop.yaml", LOOP)
    for path in (str(EXAMPLES / "order.yaml"), str(EXAMPLES / "approval.yaml"), "loop.yaml"):
        shell.pawl("define", path)
    child, address = shell.serve()
    ids = [shell.pawl("start", "order", "--subject", "S-%d" % n, "--actor", "ann", "--key", "k%d" % n).out.strip()
           for n in range(2)]
    shell.pawl("fire", ids[0], "pay", "--payload", '{"for": "Zoë"}', "--reason", "because")
    shell.pawl("pause", ids[1], "--reason", "audit")
    ids.append(shell.pawl("start", "approval", "--input", '{"what": "x"}', "--label", "a=b", "--correlation", "c").out.strip())
    ids.append(shell.pawl("start", "countdown", "--input", '{"from": 2, "every": "1h"}').out.strip())
    ids.append(shell.pawl("start", "loop").out.strip())
    lines = json.dumps({"operation": "instance.fire", "input": {"instance_id": ids[-1], "action": "again"}}) + "\n"
    request = urllib.request.Request(address + "/v1/batch", (lines * 200).encode(), {"Content-Type": "application/x-ndjson"})
    urllib.request.urlopen(request).read()
    inline = {"declaration": json.loads('{"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"],'
                                        ' "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}]}')}
    request = urllib.request.Request(address + "/v1/instances", json.dumps(inline).encode(), {"Content-Type": "application/json"})
    ids.append(json.loads(urllib.request.urlopen(request).read())["instance_id"])
    shell.stop(child)
    shell.pawl("run", str(EXAMPLES / "create-deployable.yaml"), "--input", '{"name": "s"}')
    return ids + [shell.json("show", "@last")["instance_id"]]


def valid(shell, file="copy.db"):
    """By both verifiers."""
    assert "✔ valid" in shell.pawl("--store", "sqlite:" + file, "verify").out
    done = subprocess.run([sys.executable, str(ROOT / "tools/verify.py"), str(shell.folder / file)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def same(shell, id):
    for verb in ("show", "history", "why"):
        here, there = (shell.pawl(*store, verb, id, "--json").out for store in ((), COPY))
        assert here == there, (verb, here, there)


def dump(shell, file="copy.db"):
    store = sqlite3.connect(shell.folder / file)
    try:
        return "\n".join(store.iterdump())
    finally:
        store.close()


def test_a_whole_store_is_carried_into_a_new_one_and_goes_on_there(shell):
    ids = fill(shell)
    assert "7 instances" in shell.pawl("export", "--output", "all.ndjson").out
    assert "7 instances with their history" in shell.pawl(*COPY, "import", "all.ndjson").out
    valid(shell)
    for id in ids:
        same(shell, id)
    assert shell.json(*COPY, "list", "--subject", "S-1")["instances"][0]["instance_id"] == ids[1]
    assert "paused" in shell.pawl(*COPY, "fire", ids[1], "pay", expect=1).err
    for words in (["fire", ids[0], "ship"], ["approve", ids[2] + ".1", "--actor", "ann"],
                  ["signal", ids[3], "stop"], ["fire", ids[4], "again"], ["fire", ids[5], "go"]):
        shell.pawl(*COPY, *words)
    shell.pawl(*COPY, "start", "order")
    # a repeated call is known there too
    assert shell.pawl(*COPY, "start", "order", "--subject", "S-0", "--actor", "ann", "--key", "k0").out.strip() == ids[0]
    valid(shell)


def test_a_parent_and_its_child_are_carried_together(shell):
    parent, child = family(shell)
    lines = shell.pawl("export", parent, child).out
    shell.pawl(*COPY, "import", "-", input=lines.encode())
    valid(shell)
    same(shell, parent)
    same(shell, child)
    shell.pawl(*COPY, "cancel", parent)
    assert shell.json(*COPY, "show", child)["status"] == "cancelled"
    valid(shell)
    found = shell.pawl("--store", "sqlite:other.db", "import", "-", input=shell.pawl("export", child).out.encode(), expect=1)
    assert "parent" in found.err, found


SAD = "name: sad\nsteps:\n  start: {name: a, tool: fail, args: {error: no}, retry: {max: 1}, done: true}\n"


def test_redriven_instances_of_two_stores_with_one_number_are_carried_together(shell):
    shell.write("sad.yaml", SAD)
    shell.write("loop.yaml", LOOP)
    shell.pawl("define", "loop.yaml")
    for store, others in (((), 4), (COPY, 0)):
        shell.pawl(*store, "run", "sad.yaml", expect=1)
        failed = shell.json(*store, "show", "@last")["instance_id"]
        for _ in range(others):
            shell.pawl(*store, "start", "loop")
        again = shell.pawl(*store, "redrive", failed).out.split()[0]
        lines = shell.pawl(*store, "export", again).out if not store else lines
    shell.pawl(*COPY, "import", "-", input=lines.encode())
    valid(shell)
    shell.pawl("--store", "sqlite:third.db", "import", "-", input=shell.pawl(*COPY, "export").out.encode())
    valid(shell, "third.db")


def test_an_amended_instance_is_carried_alone_with_the_definitions_it_was_moved_to(shell):
    for tool in ("saw", "plane", "drill"):
        shell.write("work.yaml", "name: work\nsteps:\n  start: {name: a, tool: %s, args: {}, next: b}\n"
                                 "  b: {tool: %s, args: {}, done: true}\n" % (tool, tool))
        shell.pawl("define", "work.yaml")
    id = shell.pawl("start", "work@1").out.strip()
    for version in (2, 3):
        shell.pawl("amend", id, "work@%d" % version)
    shell.pawl(*COPY, "import", "-", input=shell.pawl("export", id).out.encode())
    valid(shell)
    same(shell, id)


def test_importing_again_changes_nothing(shell):
    fill(shell)
    shell.pawl("export", "--output", "all.ndjson")
    shell.pawl(*COPY, "import", "all.ndjson")
    before = dump(shell)
    found = shell.json(*COPY, "import", "all.ndjson")
    assert found == {"instances": 0, "records": 0, "definitions": 0, "already_there": 7}, found
    assert dump(shell) == before


def test_single_instances_are_carried_by_a_pipe_in_any_order(shell):
    ids = fill(shell)
    for id in (ids[4], ids[2], ids[0]):
        lines = shell.pawl("export", id).out
        shell.pawl(*COPY, "import", "-", input=lines.encode())
        same(shell, id)
    valid(shell)
    assert shell.json(*COPY, "stats")["total"] == 3
    assert shell.pawl(*COPY, "start", "order").out > ids[4]  # numbers go on behind the highest
    valid(shell)


def test_a_server_exports_the_same_lines(shell):
    fill(shell)
    here = shell.pawl("export").out
    child, address = shell.serve()
    assert shell.pawl("--store", address, "export").out == here
    assert shell.pawl("--store", address, "export", "--definitions").out.count("\n") == 6
    shell.stop(child)


def test_a_file_that_was_changed_is_refused_and_nothing_is_written(shell):
    fill(shell)
    lines = shell.pawl("export").out.splitlines(keepends=True)
    entry = next(i for i, line in enumerate(lines) if "Zoë" in line)
    last = len(lines) - 1
    swap = lambda i, a, b: lines[:i] + [lines[i].replace(a, b, 1)] + lines[i + 1:]
    at = re.search(r'"at":(\d+)', lines[entry]).group(1)
    cases = [
        (swap(entry, "Zoë", "Zoe"), "a value that matches its commitment"),
        (swap(entry, '"at":' + at, '"at":%d' % (int(at) - 1)), "its hash does not check"),
        (lines[:entry] + lines[entry + 1:], "expected 2 records, found 1"),
        (lines[:entry - 1] + lines[entry:], "the creation of an instance first"),
        (lines[:last - 5] + lines[last - 4:], "records, found"),
        (lines[:last - 5] + [lines[last - 4], lines[last - 5]] + lines[last - 3:], None),  # positions tell the order
        (swap(entry, '"hash":"', '"hash":"0'), "a record of an instance"),
        (swap(1, "Two of three", "Two of four"), "a definition whose texts match"),
        (swap(entry, '"seq":1', '"seq":2'), "its hash does not check"),
        (swap(entry, '"what":0', '"what":1'), "its hash does not check"),
        (swap(entry, '"what":0', '"what":-7'), "a record of an instance"),
        (lines + [lines[last]], "records, found"),
        (lines[:entry] + ["nonsense\n"], "line %d" % (entry + 1)),
        (lines[:2] + ['{"else": 1}\n'], "expected a definition, an instance or a record"),
        (lines[1:], 'line 1: expected {"pawl":"export","format":1}, found a line without'),
        (lines[:1] + lines, "line 2: expected a definition"),
        ([], "found an empty file"),
    ]
    for number, words in (("0", "format 0"), ("2", "format 2"), ("99", "format 99"), ('"x"', "a string as"), ('"1"', "a string as"),
                          ("1.5", "format 1.5"), ("null", "null as"), ("[1]", "an array as")):
        cases.append((swap(0, '"format":1', '"format":' + number), 'expected {"pawl":"export","format":1}, found ' + words))
    cases.append((swap(0, ',"format":1', ""), "found no format"))
    shell.pawl(*COPY, "init")
    before = dump(shell)
    for changed, words in cases:
        if words is None:
            shell.pawl("--store", "sqlite:order.db", "import", "-", input="".join(changed).encode())
            valid(shell, "order.db")
            continue
        found = shell.pawl(*COPY, "import", "-", input="".join(changed).encode(), expect=1)
        assert words in found.err, (words, found)
        assert dump(shell) == before, words


def test_erased_values_are_carried_with_what_names_them(shell):
    """Bytes that are merely gone are neither exported nor imported."""
    sys.path.insert(0, str(ROOT / "tests/verify"))
    import forge
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    id = shell.pawl("start", "order", "--actor", "ann", "--subject", "S").out.strip()
    shell.pawl("fire", id, "pay", "--payload", '{"for": "Zoë"}', "--actor", "ann", "--reason", "because")
    store = sqlite3.connect(shell.folder / "pawl.db")
    gone = [row[0] for row in store.execute("SELECT payload FROM pawl_log WHERE payload IS NOT NULL"
                                            " UNION SELECT reason FROM pawl_log WHERE reason IS NOT NULL")]
    for value in gone:
        forge.make_store.erase(store, value)
    store.commit()
    store.close()
    assert "no erase record names it" in shell.pawl("export", id, expect=None).err
    for value in gone:
        forger = forge.Forger(shell.folder / "pawl.db")
        forger.record_erasure(value)
        forger.seal()
    valid(shell, "pawl.db")
    lines = shell.pawl("export", id).out
    assert '{"erased":[' in lines, lines
    without = "".join(line for line in lines.splitlines(keepends=True) if not line.startswith('{"erased"'))
    assert "expected its bytes" in shell.pawl(*COPY, "import", "-", input=without.encode(), expect=1).err
    shell.pawl(*COPY, "import", "-", input=lines.encode())
    valid(shell)
    same(shell, id)
    assert shell.pawl(*COPY, "export", id).out.count('{"erased":[') == 1


def test_many_erased_values_are_read_in_time_in_proportion_to_them(shell):
    """Each of 60,000 names was compared with each of 60,000 values, which took ten times as long as all the rest."""
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    id = shell.pawl("start", "order").out.strip()
    shell.pawl("fire", id, "pay", "--payload", "1")
    *first, last = shell.pawl("export", id).out.splitlines()
    names = [hashlib.sha256(b"%d" % n).hexdigest() for n in range(60000)]
    entry = json.loads(last)
    entry["record"]["payload"] = {"commitment": "NAME"}
    pattern = json.dumps(entry)
    lines = first + [pattern.replace("NAME", name) for name in names]
    erased = [json.dumps({"erased": names[at:at + 5000]}) for at in range(0, len(names), 5000)]

    def seconds(lines):
        begin = time.monotonic()
        answer = shell.pawl(*COPY, "import", "-", input="\n".join(lines).encode(), expect=1)
        assert "expected 2 records, found 60001" in answer.err, answer
        return time.monotonic() - begin

    without = seconds(lines)
    assert seconds(lines + erased) < 3 * without + 1


def test_what_is_there_with_other_records_is_named_and_nothing_is_written(shell):
    ids = fill(shell)
    shell.pawl("export", "--output", "all.ndjson")
    shell.pawl(*COPY, "import", "all.ndjson")
    shell.pawl(*COPY, "fire", ids[4], "again")
    before = dump(shell)
    found = shell.pawl(*COPY, "import", "all.ndjson", expect=1)
    assert "conflict" in found.err and ids[4] in found.err and "other records" in found.err, found
    assert dump(shell) == before
    other = ("--store", "sqlite:other.db")
    shell.pawl(*other, "define", str(EXAMPLES / "order.yaml"))
    mine = shell.pawl(*other, "start", "order").out.strip()
    found = shell.pawl(*other, "import", "all.ndjson", expect=1)
    assert "its number belongs to another one here, " + mine in found.err, found
    shell.pawl(*other, "import", "-", input=shell.pawl("export", ids[4]).out.encode())
    valid(shell, "other.db")


def test_definitions_alone_are_carried_and_a_different_text_is_refused(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.write("two.yaml", (EXAMPLES / "order.yaml").read_text() + "# second\n")
    shell.pawl("define", "two.yaml")
    shell.pawl("export", "--definitions", "--output", "d.ndjson")
    assert shell.json(*COPY, "import", "d.ndjson")["definitions"] >= 2
    valid(shell)
    assert shell.pawl(*COPY, "graph", "order@2").out == shell.pawl("graph", "order@2").out
    shell.pawl("--store", "sqlite:other.db", "define", "two.yaml")
    found = shell.pawl("--store", "sqlite:other.db", "import", "d.ndjson", expect=1)
    assert "order@1" in found.err and "another" in found.err, found


def test_a_store_that_somebody_owns_takes_no_import(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("export", "--output", "d.ndjson")
    child, address = shell.serve()
    assert "in-use" in shell.pawl("import", "d.ndjson", expect=3).err
    assert "sqlite:FILE" in shell.pawl("--store", address, "import", "d.ndjson", expect=2).err
    shell.stop(child)
    assert os.path.exists(shell.folder / "pawl.db")


main(globals())
