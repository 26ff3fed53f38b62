"""What verify does beside finding flipped bits: it decides flows again, it is stopped and goes on, it checks
all of a definition, it shows how far it is (DESIGN.md section 1; D35)."""
import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import forge  # noqa: E402
import schemas  # noqa: E402
from harness import EXAMPLES, PAWL, ROOT, main  # noqa: E402

verify = forge.verify

# A flow with all that one can do now: templates, a failure and its retry, sleep, an end.
WORK = """name: work
steps:
  start: {name: take, tool: set, args: {n: "{{input.n}}"}, next: nap}
  nap: {tool: sleep, args: {for: "{{input.nap}}"}, next: try}
  try: {tool: exec, args: {argv: [sh, -c, 'test -e tried || { touch tried; exit 1; }; echo {\\"ok\\":true}']},
        retry: {max: 3, backoff: [10ms]}, idempotent: true, next: end}
  end: {tool: set, args: {got: "{{steps.try.result.ok}}", n: "{{steps.take.result.n}}"}, done: true}
"""
REST = """name: rest
steps:
  start: {name: nap, tool: sleep, args: {for: "{{input.nap}}"}, next: end}
  end: {tool: log, args: {message: done}, done: true}
"""
FLOW, WAITING = 1, 2  # numbers of instances


def flows(shell):
    """A store with a flow that has ended and one that sleeps."""
    shell.write("work.yaml", WORK)
    shell.pawl("run", "work.yaml", "--input", '{"n": 7, "nap": "10ms"}', "--actor", "ann")
    shell.write("rest.yaml", REST)
    shell.pawl("define", "rest.yaml", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "rest", "--input", '{"nap": "72h"}')
    for _ in range(3):
        shell.pawl("start", "order")
        shell.pawl("fire", "@last", "pay")


def by_python(path):
    return verify.report(str(path))


# ---- Flows are decided again --------------------------------------------------------------------


def change_end(f):
    pos, _ = f.find(FLOW, "finish")
    f.set(pos, payload=f.value('{"got":false}'))
    return pos


def name_an_actor(f):
    pos, _ = f.find(FLOW, "finish")
    f.set(pos, actor=1)
    return pos


def skip_a_step(f):
    pos, body = f.find(FLOW, "start")
    f.set(pos, body=[["step", 1, 2, 1, "ready"]])
    return pos


def count_attempts_wrongly(f):
    pos, body = f.find(FLOW, "step.fail")
    body[[e[0] for e in body].index("step")][3] = 3
    f.set(pos, body=body)
    return pos


def wake_early(f):
    pos, body = f.find(FLOW, "step.complete", 0)
    arm = body[[e[0] for e in body].index("arm")]
    arm[2] -= 1
    f.set(pos, body=body)
    return pos


def sleep_less(f):
    """The same in one that still sleeps, with its row."""
    pos, body = f.find(WAITING, "start")
    arm = body[[e[0] for e in body].index("arm")]
    arm[2] -= 3600000
    f.set(pos, body=body)
    f.db.execute("UPDATE pawl_timer SET due = ? WHERE inst = ?", (arm[2], WAITING))
    return pos


def lose_an_effect(f):
    pos, body = f.find(FLOW, "step.start", 0)
    f.set(pos, body=[e for e in body if e[0] != "run"])
    return pos


def complete_another_attempt(f):
    pos, _ = f.find(FLOW, "step.complete", -1)
    f.set(pos, attempt=2)
    return pos


def forget_the_end(f):
    pos, _ = f.find(FLOW, "finish")
    f.cut(pos)
    f.db.execute("DELETE FROM pawl_instance WHERE number > 1")
    last = f.db.execute("SELECT definition FROM pawl_instance").fetchone()[0]
    f.db.execute("DELETE FROM pawl_definition WHERE id > ?", (last,))
    f.db.execute("DELETE FROM pawl_state WHERE definition > ?", (last,))
    f.db.execute("DELETE FROM pawl_transition WHERE definition > ?", (last,))
    f.db.execute("DELETE FROM pawl_source WHERE id NOT IN (SELECT source FROM pawl_definition)")
    f.db.execute("DELETE FROM pawl_value WHERE id NOT IN (SELECT payload FROM pawl_log WHERE payload IS NOT NULL UNION SELECT actor FROM pawl_log"
                 " WHERE actor IS NOT NULL UNION SELECT input FROM pawl_instance WHERE input IS NOT NULL)")
    for table in ("pawl_step", "pawl_timer", "pawl_wait"):
        f.rows(table)
    return pos - 1


def run_again_after_nothing(f):
    """A start of a redrive that no engine writes."""
    pos, _ = f.find(FLOW, "start")
    f.set(pos, payload=f.value('{"retry_of":"x","keys":[],"after":[1]}'))
    return pos


FORGERIES = [run_again_after_nothing, change_end, name_an_actor, skip_a_step, count_attempts_wrongly, wake_early, sleep_less, lose_an_effect,
             complete_another_attempt, forget_the_end]


def forged(shell, change):
    """A copy of the store with a forgery in it: (path, position)."""
    for old in shell.folder.glob("forged.db*"):
        old.unlink()
    path = shell.folder / "forged.db"
    source, copy = sqlite3.connect(shell.folder / "pawl.db"), sqlite3.connect(path)
    source.backup(copy)
    source.close()
    copy.close()
    forger = forge.Forger(path)
    pos = change(forger)
    forger.seal()
    return path, pos


def test_a_history_that_is_hashed_rightly_but_not_what_its_flow_decides_is_named(shell):
    flows(shell)
    path, _ = forged(shell, lambda f: 0)
    assert shell.json("--store", f"sqlite:{path}", "verify")["valid"], "hashing anew changes nothing"
    for change in FORGERIES:
        path, pos = forged(shell, change)
        by_page = by_python(path)
        assert by_page["valid"], (change.__name__, by_page)
        found = shell.json("--store", f"sqlite:{path}", "verify", expect=1)
        assert found["position"] == pos and "its flow" in found["what"], (change.__name__, pos, found)
        number = WAITING if change is sleep_less else FLOW
        assert found["instance_id"].startswith("%010d" % number), (change.__name__, found)
        one = shell.json("--store", f"sqlite:{path}", "verify", found["instance_id"], expect=1)
        assert one["first_bad"] == found["first_bad"] and one["what"] == found["what"], (change.__name__, one)
    of = shell.json("--store", f"sqlite:{path}", "verify", "--definition", "work", expect=1)
    assert of["position"] == pos, of


def test_an_index_that_does_not_repeat_its_table_is_seen_by_both(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    for n in range(3):
        shell.pawl("start", "order", "--subject", "S%d" % n)
    path = shell.folder / "pawl.db"
    db = sqlite3.connect(path)
    change = "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'pawl_instance_subject'"
    for words in (("(subject)", "(created_pos)"), ("(created_pos)", "(subject)")):
        db.execute("PRAGMA writable_schema = ON")
        db.execute(change, words)
        db.commit()
        db.close()
        db = sqlite3.connect(path)
        if words[0] == "(subject)":
            db.execute("REINDEX pawl_instance_subject")
            db.commit()
    db.close()
    found = shell.json("verify", expect=1)
    assert "SQLite finds damage" in found["what"], found
    assert not by_python(path)["valid"]


def test_what_was_decided_from_an_erased_value_is_not_called_wrong(shell):
    flows(shell)
    db = sqlite3.connect(shell.folder / "pawl.db")
    ids = [row[0] for row in db.execute("SELECT DISTINCT payload FROM pawl_log WHERE payload IS NOT NULL")]
    inputs = [row[0] for row in db.execute("SELECT input FROM pawl_instance WHERE input IS NOT NULL")]
    db.close()
    for id_ in ids + inputs:
        erased = shell.folder / "pawl.db"
        for named in (False, True):
            forger = forge.Forger(erased)
            if named:
                forger.record_erasure(id_)
            else:
                forge.make_store.erase(forger.db, id_)
            forger.seal()
            assert shell.json("verify", expect=0 if named else 1)["valid"] is named, (id_, named)
            assert by_python(erased)["valid"] is named, (id_, named)
    shell.pawl("history", "@last")
    shell.pawl("show", "@last")


def pay_otherwise(f):
    f.set(f.find(3, "pay")[0], payload=f.value('"forged"'))


def pay_as_another(f):
    f.set(f.find(3, "pay")[0], actor=f.db.execute("SELECT id FROM pawl_value WHERE interned = 1").fetchone()[0])


def pay_earlier(f):
    pos, _ = f.find(3, "pay")
    f.set(pos, fired=f.db.execute("SELECT at - 1 FROM pawl_log WHERE pos = ?", (pos,)).fetchone()[0])


def never_pay(f):
    """The last record is taken away, with all that followed from it: the log ends one commit earlier."""
    pos, _ = f.find(5, "pay")
    f.db.execute("DELETE FROM pawl_log WHERE pos = ?", (pos,))
    f.db.execute("UPDATE pawl_head SET seq = 0, state = 0, pos = ? WHERE inst = 5", (pos - 1,))
    f.db.execute("UPDATE pawl_meta SET value = ? WHERE key = 'flushed'", (pos - 1,))


FULL_FORGERIES = [pay_otherwise, pay_as_another, pay_earlier, never_pay]


def test_a_full_forgery_has_another_root_than_the_one_that_was_kept(shell):
    """No check of the file alone can see it: every hash and every root was computed again."""
    flows(shell)
    kept = shell.json("verify")["root"]
    for change in FULL_FORGERIES:
        path, _ = forged(shell, change)
        found = shell.json("--store", f"sqlite:{path}", "verify")
        assert found["valid"] and found["root"] == by_python(path)["root"] != kept, (change.__name__, found)


def test_a_full_forgery_is_reported_at_opening_by_verify_and_by_doctor_because_of_the_head_beside_it(shell):
    flows(shell)
    head = (shell.folder / "pawl.db-head").read_bytes()
    for change in FULL_FORGERIES:
        path, _ = forged(shell, change)
        store = ("--store", f"sqlite:{path}")
        (shell.folder / "forged.db-head").write_bytes(head)
        for _ in range(2 if change is pay_otherwise else 1):  # entries that are appended do not hide it
            assert "pawl: went-back: " in shell.pawl(*store, "list").err, change.__name__
            found = shell.json(*store, "verify", expect=1)
            assert "FILE-head" in found["what"], (change.__name__, found)
            found = by_python(path)
            assert not found["valid"] and "FILE-head" in found["what"], (change.__name__, found)
            answer = shell.pawl(*store, "doctor", expect=None)
            assert answer.code != 0 and "went-back" in answer.out, (change.__name__, answer)
            shell.pawl(*store, "start", "order")
            assert (shell.folder / "forged.db-head").read_bytes() == head, "the evidence is kept"


# ---- The test clock of a store that an older program left ------------------------------------------


def old_test_store(shell):
    """A store of an older program whose test clock is a row of pawl_meta: its time."""
    with tarfile.open(ROOT / "tests/old/advanced.tar.xz") as packed:
        packed.extractall(shell.folder, filter="data")
    (shell.folder / "s.db").rename(shell.folder / "pawl.db")
    (shell.folder / "s.db-wal").rename(shell.folder / "pawl.db-wal")
    return rows(shell, "SELECT value FROM pawl_meta WHERE key = 'test_now'")[0][0]


def rows(shell, sql):
    with contextlib.closing(sqlite3.connect(shell.folder / "pawl.db", isolation_level=None)) as db:
        return db.execute(sql).fetchall()


def both_say(shell, valid):
    found = shell.json("verify", expect=0 if valid else 1), by_python(shell.folder / "pawl.db")
    assert [answer["valid"] for answer in found] == [valid, valid], found
    assert valid or all("a clock record must hold it" in answer["what"] for answer in found), found


def put_a_definition(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))


def import_a_store(shell):
    shell.pawl("--store", "sqlite:other.db", "define", str(EXAMPLES / "order.yaml"))
    for _ in range(2):
        id_ = shell.pawl("--store", "sqlite:other.db", "start", "order").out.strip()
    shell.write("other.jsonl", shell.pawl("--store", "sqlite:other.db", "export", id_).out)
    shell.pawl("import", "other.jsonl")


def accept_the_clock(shell):
    """The wall clock was set back by a year: that makes a clock record, but none of the test clock."""
    back = {"LD_PRELOAD": str(pathlib.Path(os.environ["PAWL_BUILD"]).resolve() / "tests/wall_clock.so"),
            "WALL_CLOCK": shell.folder / shell.write("clock", str(-365 * 24 * 3600)),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"}
    assert "it is now set to it" in shell.pawl("doctor", "--accept-clock", env=back).out
    put_a_definition(shell)


def test_the_test_clock_of_an_old_store_is_valid_until_a_record_holds_it(shell):
    for write in (put_a_definition, import_a_store, accept_the_clock):
        test_now = old_test_store(shell)
        both_say(shell, True)
        rows(shell, "UPDATE pawl_meta SET value = 0 WHERE key = 'test_now'")
        both_say(shell, False)
        rows(shell, f"UPDATE pawl_meta SET value = {test_now} WHERE key = 'test_now'")
        write(shell)
        both_say(shell, True)
        assert rows(shell, "SELECT value FROM pawl_meta WHERE key = 'test_now'") == [], write.__name__
        assert rows(shell, "SELECT due FROM pawl_kept WHERE what = -11 AND id = 'test'") == [(test_now,)], write.__name__
        rows(shell, f"INSERT INTO pawl_meta VALUES ('test_now', {test_now})")
        both_say(shell, False)
        for path in shell.folder.glob("*.db*"):
            path.unlink()


# ---- The digests of the schemas ------------------------------------------------------------------


def page_digests(text):
    """The table of docs/format.md: {migration: (in its own file, in a host's file)}."""
    rows = re.findall(r"^\| (\d+) \| `([0-9a-f]{64})` \| (?:`([0-9a-f]{64})`|the same) \|$", text, re.M)
    return {int(number): (own, hosted or own) for number, own, hosted in rows}


def test_the_schemas_of_verify_py_and_of_the_page_are_those_that_the_migrations_make(_):
    wanted = schemas.all_digests()
    assert wanted and verify.SCHEMAS == wanted, "run tests/verify/schemas.py, and copy what it prints into tools/verify.py"
    page = (ROOT / "docs/format.md").read_text()
    assert page_digests(page) == wanted, "run tests/verify/schemas.py, and copy what it prints into docs/format.md"


# ---- Tables, indexes, views and triggers -----------------------------------------------------------


def change_schema(shell, *statements):
    db = sqlite3.connect(shell.folder / "pawl.db", isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_a_trigger_on_our_tables_is_refused_by_name(shell):
    flows(shell)
    for table in ("pawl_log", "PAWL_VALUE"):
        change_schema(shell, f"CREATE TRIGGER spy AFTER INSERT ON {table} BEGIN SELECT 1; END")
        for words in (("list",), ("verify",), ("start", "order")):
            answer = shell.pawl(*words, expect=None)
            assert answer.code != 0 and "trigger spy on" in answer.err, answer
            assert words != ("verify",) or (answer.code == 1 and "✘ not valid" in answer.out), answer
        assert "trigger spy on" in shell.json("verify", expect=1)["what"]
        assert "trigger spy" in shell.pawl("doctor", expect=None).out
        found = by_python(shell.folder / "pawl.db")
        assert not found["valid"] and "trigger spy" in found["what"], found
        change_schema(shell, "DROP TRIGGER spy")
    assert shell.json("verify")["valid"]


def test_a_changed_view_is_named_by_verify_and_doctor(shell):
    flows(shell)
    change_schema(shell, "DROP VIEW pawl_states", "CREATE VIEW pawl_states AS SELECT 'all is well' AS name")
    found = shell.json("verify", expect=1)
    assert "view pawl_states" in found["what"], found
    assert not by_python(shell.folder / "pawl.db")["valid"]
    assert "view pawl_states" in shell.pawl("doctor", expect=None).out


def test_an_index_on_a_table_of_pawls_is_named_whatever_its_name(shell):
    flows(shell)
    change_schema(shell, "CREATE INDEX mine ON pawl_log (actor)")  # a unique one would make commits fail
    found = shell.json("verify", expect=1)
    assert "index mine" in found["what"], found
    assert not by_python(shell.folder / "pawl.db")["valid"]
    assert "index mine" in shell.pawl("doctor", expect=None).out
    change_schema(shell, "DROP INDEX mine")
    assert shell.json("verify")["valid"] and by_python(shell.folder / "pawl.db")["valid"]


def test_what_is_the_hosts_own_is_listed_and_not_judged(shell):
    flows(shell)
    change_schema(shell, "CREATE TABLE cart (id INTEGER PRIMARY KEY, n)", "CREATE INDEX cart_n ON cart (n)",
                  "CREATE TRIGGER counted AFTER INSERT ON cart BEGIN UPDATE cart SET n = 1; END")
    wanted = [{"type": "table", "name": "cart", "table": "cart"}, {"type": "index", "name": "cart_n", "table": "cart"},
              {"type": "trigger", "name": "counted", "table": "cart"}]
    for found in (shell.json("verify"), by_python(shell.folder / "pawl.db")):
        assert found["valid"] and found["foreign"] == wanted, found
    by_page = subprocess.run([sys.executable, ROOT / "tools/verify.py", shell.folder / "pawl.db"], capture_output=True, text=True)
    for text in (shell.pawl("verify").out, by_page.stdout):
        assert "not pawl's, and not checked: table cart, index cart_n, trigger counted\n" in text, text
    assert "3 others belong to the host" in shell.pawl("doctor", expect=None).out


# ---- Rows that no record names ------------------------------------------------------------------

VALUE = "INSERT INTO pawl_value(id, salt, bytes) VALUES (%s, randomblob(16), x'414243')"
ADDED = [VALUE % "(SELECT max(id) + 1 FROM pawl_value)", VALUE % "(SELECT max(id) + 37 FROM pawl_value)", VALUE % "9999", VALUE % "-5",
         VALUE % "0", "INSERT INTO pawl_state VALUES (9999, 0, 'x', 0)",
         "INSERT INTO pawl_state VALUES ((SELECT max(id) + 1 FROM pawl_definition), 0, 'x', 0)",
         "INSERT INTO pawl_transition SELECT 9999, 0, 0, 'x', 1, NULL, 0, 0", "INSERT INTO pawl_snapshot VALUES (999, 1, '{}')",
         "UPDATE pawl_transition SET from_state = NULL WHERE from_state = 0",
         "DELETE FROM pawl_meta WHERE key = 'flushed'", "UPDATE pawl_meta SET value = NULL WHERE key = 'flushed'"]


def test_added_rows_that_no_record_names_and_missing_ones_are_found_by_both(shell):
    flows(shell)
    both_say(shell, True)
    kept = (shell.folder / "pawl.db").read_bytes()
    unseen = []
    for statement in ADDED:
        (shell.folder / "pawl.db").write_bytes(kept)
        change_schema(shell, statement)
        found = shell.pawl("verify", expect=None).code, by_python(shell.folder / "pawl.db")["valid"]
        unseen += [] if found == (1, False) else [(statement, found)]
    assert not unseen, unseen


def test_a_flow_is_decided_again_without_its_snapshot(shell):
    flows(shell)
    db = sqlite3.connect(shell.folder / "pawl.db")
    db.execute("DELETE FROM pawl_snapshot")
    db.commit()
    db.close()
    assert shell.json("verify")["valid"]


# ---- An amend that takes results over from entries --------------------------------------------------

BEFORE_AMEND = """name: one
steps:
  start: {name: a, wait: {signal: first}, next: b}
  b: {wait: {signal: second}, next: w}
  w: {wait: {signal: go}, done: true}
"""
AFTER_AMEND = """name: two
steps:
  start: {name: a, wait: {signal: first}, next: b}
  b: {wait: {signal: second}, next: w}
  w: {wait: {signal: go}, branch: [{if: "steps.a.result.id > 3", then: x}]}
  x: {wait: {signal: bye}, done: true}
"""


def take_from(seq):
    """A forgery: the amend takes the result of `a` from this entry."""
    def change(f):
        pos, payload = f.db.execute("SELECT pos, payload FROM pawl_log WHERE what = ?", (verify.AMEND,)).fetchone()
        salt, text = f.db.execute("SELECT salt, bytes FROM pawl_value WHERE id = ?", (payload,)).fetchone()
        assert b'{"a":2}' in text, text
        text = text.replace(b'{"a":2}', b'{"a":%s}' % json.dumps(seq).encode())
        f.db.execute("UPDATE pawl_value SET bytes = ?, commitment = ? WHERE id = ?",
                     (text, verify.value_commitment(salt, text), payload))
        return pos
    return change


def test_an_amend_that_takes_a_result_from_an_entry_without_it_is_named_by_both_and_ends_no_process(shell):
    shell.write("one.yaml", BEFORE_AMEND)
    shell.write("two.yaml", AFTER_AMEND)
    shell.pawl("define", "one.yaml", "two.yaml")
    id_ = shell.pawl("start", "one").out.strip()
    shell.pawl("signal", id_, "first", "--payload", '{"id": 7}')
    shell.pawl("signal", id_, "second")
    shell.pawl("amend", id_, "two")
    assert shell.json("verify")["valid"] and by_python(shell.folder / "pawl.db")["valid"]
    shell.pawl("--store", "sqlite:other.db", "define", "two.yaml")
    unseen = []
    for seq in (300, 4, 0, 1, 3, "x"):  # 4: the amend itself; 3: the result of `b`
        path, pos = forged(shell, take_from(seq))
        store = ("--store", f"sqlite:{path}")
        found = shell.pawl(*store, "verify", "--json", expect=None), by_python(path)
        if found[0].code != 1 or found[0].json["position"] != pos or found[1]["valid"]:
            unseen.append((seq, found))
        shell.write("forged.jsonl", shell.pawl(*store, "export", id_, expect=None).out)
        brought = shell.pawl("--store", "sqlite:other.db", "import", "forged.jsonl", expect=None)
        told = shell.pawl(*store, "signal", id_, "go", expect=None)
        if brought.code == 0 or told.code < 0 or (seq == 300 and told.code == 0):
            unseen.append((seq, brought, told))
    assert not unseen, unseen


# ---- Stopped, and gone on -------------------------------------------------------------------------


def test_a_check_in_slices_of_any_size_ends_as_one_in_one_go(shell):
    flows(shell)
    whole = shell.json("verify")
    place = shell.folder / "pawl.db-verify"
    for size in (1, 7):
        answer, rounds = shell.pawl("verify", "--limit", str(size), "--json", expect=4), 0
        assert "valid" not in answer.json and answer.json["stopped_at"] >= size, answer
        while answer.code == 4:
            assert place.exists() and oct(place.stat().st_mode & 0o777) == "0o600"
            before, rounds = answer.json["stopped_at"], rounds + 1
            answer = shell.pawl("verify", "--resume", "--limit", str(size), "--json", expect=None)
            assert answer.json["resumed_at"] == before, answer
        assert answer.code == 0 and rounds > 1, answer
        assert {**whole, "resumed_at": before} == answer.json
        assert not place.exists(), "there is nothing left to go on with"


def test_forgeries_are_found_by_a_check_that_went_on(shell):
    """What a flow remembers is folded again from its history."""
    flows(shell)
    for change in (change_end, sleep_less):
        path, pos = forged(shell, change)
        store = ("--store", f"sqlite:{path}")
        shell.pawl(*store, "verify", "--limit", str(pos - 4), expect=4)
        found = shell.json(*store, "verify", "--resume", expect=1)
        assert found["position"] == pos and 0 < found["resumed_at"] < pos, found


def test_a_place_that_cannot_be_used_is_said_and_all_is_checked(shell):
    flows(shell)
    place = shell.folder / "pawl.db-verify"
    found = shell.pawl("verify", "--resume")
    assert "there is no checkpoint" in found.err and "valid" in found.out
    shell.pawl("verify", "--limit", "5", expect=4)
    data = bytearray(place.read_bytes())
    data[40] ^= 1
    place.write_bytes(data)
    found = shell.pawl("verify", "--resume")
    assert "from the beginning" in found.err and "damaged" in found.err and "valid" in found.out, found


def test_what_holds_no_payload_is_kept(shell):
    shell.write("work.yaml", WORK)
    shell.pawl("run", "work.yaml", "--input", '{"n": "very-secret", "nap": "10ms"}')
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    for size in (2, 5, 9, 11):
        shell.pawl("verify", "--limit", str(size), expect=4)
        assert b"very-secret" not in (shell.folder / "pawl.db-verify").read_bytes()


def catches(child, number):
    """Has it a handler for this signal yet?"""
    status = pathlib.Path("/proc/%d/status" % child.pid).read_text()
    return int(status.split("SigCgt:")[1].split()[0], 16) >> (number - 1) & 1


def test_ctrl_c_and_term_stop_it_and_the_place_is_kept(shell):
    flows(shell)
    place = shell.folder / "pawl.db-verify"
    for number in (signal.SIGINT, signal.SIGTERM):
        os.mkfifo(place)  # reading it waits for a writer: so we know where it is
        child = shell.begin("verify", "--resume", "--json")
        shell.wait_for(lambda: catches(child, number))
        child.send_signal(number)
        os.close(os.open(place, os.O_WRONLY))
        out, err = child.communicate(timeout=60)
        assert child.returncode == 4 and "stopped_at" in json.loads(out), (child.returncode, out, err)
        assert place.is_file()
        found = shell.json("verify", "--resume")
        assert found["valid"] and found["resumed_at"] == found["records"], found


# ---- A definition ---------------------------------------------------------------------------------


def test_all_of_a_definition(shell):
    flows(shell)
    assert shell.json("verify", "--definition", "order") == {"valid": True, "records": 6, "entries": 3, "instances": 3}
    assert shell.json("verify", "--definition", "work@1")["instances"] == 1
    assert "of 3 instances" in shell.pawl("verify", "--definition", "order").out
    shell.pawl("verify", "--definition", "order@2", expect=1)
    assert "not-known" in shell.pawl("verify", "--definition", "nobody", expect=1).err
    db = sqlite3.connect(shell.folder / "pawl.db")
    db.execute("UPDATE pawl_log SET at = at + 1 WHERE pos = (SELECT max(pos) FROM pawl_log)")
    db.commit()
    db.close()
    found = shell.json("verify", "--definition", "order", expect=1)
    assert found["first_bad"] == 1 and "hash" in found["what"], found
    assert shell.json("verify", "--definition", "work")["valid"], "it is another definition's"


def test_a_server_checks_a_definition_too(shell):
    flows(shell)
    child, address = shell.serve()
    assert shell.json("--store", address, "verify", "--definition", "order")["instances"] == 3
    assert shell.json("--store", address, "verify")["valid"]
    assert "sqlite:FILE" in shell.pawl("--store", address, "verify", "--limit", "3", expect=2).err
    shell.stop(child)


def test_what_does_not_go_together_is_usage(shell):
    flows(shell)
    for words in (["@last", "--definition", "order"], ["@last", "--limit", "3"], ["--definition", "order", "--resume"],
                  ["--limit", "0"], ["--limit", "many"], ["--keep-every", "0"]):
        assert shell.pawl("verify", *words, expect=2).err.startswith("pawl: "), words


# ---- How far it is ----------------------------------------------------------------------------------


def on_terminal(shell, *words):
    """The program with a terminal for its standard error, and a pipe for its answer."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([os.path.abspath(PAWL), *words], cwd=shell.folder, stdout=subprocess.PIPE, stderr=theirs,
                             env=shell.environment({"TERM": "xterm"}))
    shell.children.append(child)
    os.close(theirs)
    return child, ours


def read_all(child, terminal):
    shown = b""
    try:
        while data := os.read(terminal, 65536):
            shown += data
    except OSError:  # the other end is closed: that is how a terminal says so
        pass
    os.close(terminal)
    out = child.stdout.read()
    child.wait(timeout=60)
    return out.decode(), shown.decode()


def test_a_bar_is_drawn_on_a_terminal_and_taken_away(shell):
    flows(shell)
    for words in (["verify"], ["verify", "--json"], ["verify", "--definition", "order"]):
        out, shown = read_all(*on_terminal(shell, *words))
        assert "█" in shown and " of " in shown and shown.endswith("\r\033[K"), (words, shown)
        assert "█" not in out and "valid" in out, out
    out, shown = read_all(*on_terminal(shell, "verify"))
    assert "records" in shown and "instances" in shown, shown


def test_nothing_is_drawn_into_a_pipe(shell):
    flows(shell)
    found = shell.pawl("verify")
    assert found.err == "" and "\033" not in found.out and "\r" not in found.out, found


main(globals())
