"""No delete or edit surface for instances or entries, anywhere (D36, D35 inv 10, D39): the operations,
the routes, the command line, the library's symbols, SQL and the views."""
import hashlib
import os
import pathlib
import re
import sqlite3
import subprocess

import table
from web import Web, harness

BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", harness.ROOT / "build"))
EDITS = re.compile(r"delete|remove|erase|purge|edit|update|modify|replace|rewrite|truncate|undo|revert|rewind|reset|rollback|overwrite|drop|\brm\b")
# Erasing takes values away, and is the one way: entries, hashes and the record of who did it stay (run_erase.py).
ERASING = {"instance.erase", "subject.erase", "erase", "/v1/instances/{instance_id}/erase"}
MACHINE = {"states": ["a", "b", "gone"], "initial_state": "a", "terminal_states": ["gone"], "terminal_kinds": {"gone": "cancel"},
           "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}, {"from_state": "b", "action": "go", "to_state": "a"},
                           {"from_state": "a", "action": "leave", "to_state": "gone"}]}


def operations():
    """(name, method, path) of the table."""
    found = [(op.name, op.method, op.path) for op in table.ALL]
    assert len(found) > 20 and "instance.fire" in [name for name, _, _ in found], found
    return found


def verbs(shell):
    found = re.findall(r"^  ([a-z]+) ", shell.pawl("--help").out, re.MULTILINE)
    assert "fire" in found and len(found) > 10, found
    return found


def symbols():
    found = re.findall(r" T (pawl_\w+)", subprocess.check_output(["nm", "-D", "--defined-only", str(BUILD / "libpawl.so")]).decode())
    assert "pawl_fire" in found and len(found) > 20, found
    return found


def test_nothing_that_can_be_called_is_named_after_deleting_or_editing(shell):
    for what in [name for name, _, _ in operations()] + verbs(shell) + symbols():
        assert what in ERASING or not EDITS.search(what), "%s sounds as if it changed what happened" % what
    assert EDITS.search("instance.delete") and EDITS.search("pawl_history_truncate")


def world(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/thing", MACHINE)
    ids = [web.create(definition="thing", subject_ref="s", input={"n": 1}) for _ in range(2)]
    for id in ids:
        for _ in range(2):
            web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "go", "actor_ref": "ann", "payload": {"x": 1}})
    web.expect(200, "POST", "/v1/instances/%s/fire" % ids[1], {"action": "leave"})
    return web, ids


FIXED = ("instance_id", "definition", "version", "kind", "subject_ref", "created_by", "instantiated_at", "input", "instance_metadata")


def seen(web, ids):
    """What may never change: entries with their hashes, and what creation fixed."""
    return [(web.expect(200, "GET", "/v1/instances/%s/history" % id).json["entries"],
             {name: web.expect(200, "GET", "/v1/instances/" + id).json[name] for name in FIXED},
             web.expect(200, "GET", "/v1/instances/%s/declaration" % id).body) for id in ids]


def expect_grown(before, after):
    assert len(after) == len(before)
    for (entries, fixed, text), (entries_now, fixed_now, text_now) in zip(before, after):
        assert entries_now[:len(entries)] == entries, "an entry is gone or has changed"
        assert fixed_now == fixed and text_now == text, (fixed, fixed_now)


def test_no_route_takes_away_or_changes_what_happened(shell):
    web, ids = world(shell)
    before = seen(web, ids)
    paths = {path for _, _, path in operations() if path} - ERASING
    paths |= {"/v1/instances/{instance_id}/" + more for more in ("history/1", "entries", "entries/1", "state", "history/{transition_id}")}
    bodies = (None, {}, {"current_state": "a", "state": "a"}, {"entries": [], "sequence_number": 1, "actor_ref": "eve", "to_state": "a"})
    tried = 0
    for path in sorted(paths):
        for id in ids:
            where = path.replace("{instance_id}", id).replace("{name}", "thing").replace("{transition_id}", id + "-1")
            where = re.sub(r"\{\w+\}", "x", where)
            for method in ("DELETE", "PATCH", "PUT", "POST"):
                for body in bodies:
                    reply = web.ask(method, where, body)
                    assert reply.status < 500 or reply.reason in ("overloaded", "in-use"), (method, where, reply)
                    if method in ("DELETE", "PATCH") and where.startswith("/v1/instances"):
                        assert reply.reason in ("not-allowed", "not-known"), (method, where, reply)
                    tried += 1
    expect_grown(before, seen(web, ids))
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    assert {i["instance_id"] for i in web.get("/v1/instances?limit=1000").json["instances"]} >= set(ids), "an instance is gone"
    print("# %d requests" % tried)


def test_the_check_of_routes_would_see_a_change(shell):
    web, ids = world(shell)
    before = seen(web, ids)
    shorter = [(entries[:-1], fixed, text) for entries, fixed, text in before]
    other = [([{**e, "actor_ref": "eve"} for e in entries], fixed, text) for entries, fixed, text in before]
    for after in (shorter, other, before[:1]):
        try:
            expect_grown(before, after)
        except AssertionError:
            continue
        raise RuntimeError("a change was not seen")


def digest(shell):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in shell.folder.glob("pawl.db")}


def test_sql_at_the_command_line_writes_nothing(shell):
    """ops_no_edit.c tries every table and view; here the way from the shell to it."""
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    shell.pawl("fire", "@last", "pay")
    before = digest(shell)
    for text in ("delete from pawl_history", "update pawl_instances set state = 'new'", "insert into pawl_log default values",
                 "drop view pawl_history", "select 1; delete from pawl_log", "pragma writable_schema = 1"):
        found = shell.pawl("sql", text, expect=1)
        assert "invalid-request" in found.err, (text, found)
    assert digest(shell) == before and shell.json("verify")["valid"]


def test_the_views_can_not_be_written_through_by_any_program(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    shell.pawl("fire", "@last", "pay")
    db = sqlite3.connect(shell.folder / "pawl.db")
    views = [name for name, in db.execute("select name from sqlite_master where type = 'view'")]
    assert {"pawl_instances", "pawl_history", "pawl_definitions"} <= set(views), views
    assert not list(db.execute("select name from sqlite_master where type = 'trigger'")), "a trigger may write through a view"
    for view in views:
        column = db.execute("select name from pragma_table_info(?)", (view,)).fetchone()[0]
        for text in ("delete from %s" % view, "update %s set %s = %s" % (view, column, column), "insert into %s (%s) values (1)" % (view, column)):
            try:
                db.execute(text)
            except sqlite3.OperationalError as error:
                assert "because it is a view" in str(error), (text, error)
                continue
            raise AssertionError("%s was taken" % text)
    db.close()
    assert shell.json("verify")["valid"]


harness.main(globals())
