"""`pawl doctor`: what is looked at; --rebuild: the rows that follow from the history, made anew."""
import os
import pwd
import re
import sqlite3
import urllib.request

from harness import EXAMPLES, family, main

LIVE = {
    "pawl_head": "inst, seq, state, pos",
    "pawl_step": "inst, ord, plan, attempt, status, lease, lease_ms",
    "pawl_timer": "inst, ord, name, due, test",
    "pawl_wait": "inst, ord, name, value",
    "pawl_interest": "inst, name",
    "pawl_child": "child, inst, ord, abandon, ended",
    "pawl_pause": "inst, pos",
    "pawl_kept": "what, id, due, pos",
    "pawl_key": "hex(id), at, pos",
    "pawl_snapshot": "inst, seq, text",
}
CLAIMED = "name: claimed\nsteps:\n  start: {name: a, tool: elsewhere, args: {}, done: true}\n"


def rows(shell):
    store = sqlite3.connect(shell.folder / "pawl.db")
    try:
        return {table: sorted(store.execute("SELECT %s FROM %s" % (columns, table)).fetchall(), key=repr)
                for table, columns in LIVE.items()}
    finally:
        store.close()


def damage(shell, *statements):
    store = sqlite3.connect(shell.folder / "pawl.db")
    for statement in statements:
        assert store.execute(statement).rowcount != 0, statement
    store.commit()
    store.close()


def fill(shell):
    """A store with something in every live table."""
    for name in ("order", "approval", "payment"):
        shell.pawl("define", str(EXAMPLES / (name + ".yaml")))
    for _ in range(3):
        shell.pawl("start", "order", "--key", "k%d" % _)
    shell.pawl("fire", "@last", "pay", "--key", "fire")
    paid = shell.json("show", "@last")["instance_id"]
    shell.pawl("pause", "@last")
    shell.pawl("start", "approval", "--input", '{"what": "x"}')
    shell.pawl("start", "payment", "--input", '{"order": "A"}')
    shell.pawl("start", "countdown", "--input", '{"from": 3, "every": "1h"}')
    shell.pawl("start", "countdown", "--input", '{"from": 3, "every": "1h"}', "--test")
    family(shell)
    (shell.folder / "keeper.yaml").write_text("name: keeper\nsignals: {item: {buffer: true}}\nsteps: {a: {wait: {signal: go}, done: true}}\n")
    shell.pawl("define", "keeper.yaml")
    shell.pawl("start", "keeper")
    shell.pawl("token", "create", "--scope", "read")
    shell.pawl("alarm", "set", "instance.fire", "--after", "5d", "--input", '{"instance_id": "%s", "action": "pay"}' % paid)


def test_a_healthy_store_is_healthy_here_and_over_http(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    found = shell.json("doctor")
    assert found["healthy"] and all(check["verdict"] == "good" for check in found["checks"]), found
    names = [check["name"] for check in found["checks"]]
    assert names == ["file", "wal", "disk", "owner", "limits", "version", "format", "content", "schema", "clock", "timers", "health",
                     "integrity"], names
    assert "✔ owner      none" in shell.pawl("doctor").out
    child, address = shell.serve()
    assert "at " + address in shell.pawl("doctor").out
    found = shell.json("--store", address, "doctor")
    assert found["healthy"] and "content" in [check["name"] for check in found["checks"]], found
    shell.stop(child)


def test_the_store_is_named_by_its_path_its_user_and_the_process_that_owns_it(shell):
    shell.pawl("init")
    me, path = pwd.getpwuid(os.getuid()).pw_name, os.path.realpath(shell.folder / "pawl.db")
    told = lambda *words, **more: {c["name"]: c["what"] for c in shell.pawl(*words, "doctor", "--json", **more).json["checks"]}  # noqa: E731
    assert re.fullmatch(r"%s, \d+ KiB, of user %s, mode 600; the default store" % (path, me), told()["file"]), told()
    assert told("--store", "sqlite:" + path)["file"].endswith("; from --store")
    assert told(env={"PAWL_STORE": "sqlite:" + path})["file"].endswith("; from PAWL_STORE")
    child, address = shell.serve()
    assert told()["owner"] == "process %d of user %s has the store open, and answers at %s" % (child.pid, me, address), told()


def test_what_is_wrong_is_told_with_the_next_command(shell):
    found = shell.pawl("doctor", expect=1)
    assert "✘ store" in found.out and "try: pawl init" in found.out, found
    (shell.folder / "pawl.db").write_text("this is no store, only a text of some length " * 30)
    found = shell.pawl("doctor", expect=3)
    assert "✘ store" in found.out, found
    (shell.folder / "pawl.db").unlink()
    shell.pawl("define", str(EXAMPLES / "payment.yaml"))
    shell.pawl("start", "payment", "--input", '{"order": "A"}')
    damage(shell, "UPDATE pawl_timer SET due = 1000000000000")
    found = shell.pawl("doctor")
    assert "! timers" in found.out and "try: pawl serve" in found.out, found


def test_rebuilding_a_good_store_changes_nothing(shell):
    fill(shell)
    before = rows(shell)
    assert all(before[table] for table in LIVE if table not in ("pawl_snapshot",)), before
    found = shell.json("doctor", "--rebuild")
    assert found["rebuilt"] and found["differences"] == 0, found
    assert rows(shell) == before
    assert "valid" in shell.pawl("verify").out


def test_damaged_rows_are_rebuilt_from_the_history_and_named(shell):
    fill(shell)
    before = rows(shell)
    damage(shell, "DELETE FROM pawl_step", "UPDATE pawl_timer SET due = due + 1 WHERE test = 0",
           "INSERT INTO pawl_wait (inst, ord, name) VALUES (1, 0, 'nobody')", "UPDATE pawl_head SET state = 2 WHERE inst = 3",
           "DELETE FROM pawl_head WHERE inst = 1", "DELETE FROM pawl_pause", "DELETE FROM pawl_key",
           "UPDATE pawl_child SET ended = 1",
           "UPDATE pawl_kept SET due = 7", "INSERT INTO pawl_step (inst, ord, plan, attempt, status) VALUES (99, 1, 0, 1, 1)")
    shell.pawl("verify", expect=1)
    found = shell.pawl("doctor", "--rebuild").out
    for words in ("does not follow from the entries", "its head row says state 2", "its head row is missing",
                  "key is missing", "is not what the log says"):
        assert words in found, (words, found)
    assert rows(shell) == before
    shell.pawl("verify")


def test_a_lease_is_no_history_and_stays(shell):
    shell.write("claimed.yaml", CLAIMED)
    child, address = shell.serve()
    shell.pawl("define", "claimed.yaml")
    shell.pawl("start", "claimed")
    request = urllib.request.Request(address + "/v1/steps/claim", b'{"tools": ["elsewhere"], "worker": "w"}',
                                     {"Content-Type": "application/json"})
    assert b'"lease"' in urllib.request.urlopen(request).read()
    shell.stop(child)
    before = rows(shell)
    assert before["pawl_step"][0][5], before
    damage(shell, "UPDATE pawl_step SET attempt = 7")
    assert shell.json("doctor", "--rebuild")["differences"] == 1
    assert rows(shell) == before


def test_rebuilding_is_refused_while_somebody_owns_the_store(shell):
    child, address = shell.serve()
    found = shell.pawl("doctor", "--rebuild", expect=3)
    assert "in-use" in found.err, found
    assert "sqlite:FILE" in shell.pawl("--store", address, "doctor", "--rebuild", expect=2).err
    shell.stop(child)


def test_nothing_is_rebuilt_from_a_history_that_is_not_valid(shell):
    fill(shell)
    damage(shell, "UPDATE pawl_log SET at = at + 1 WHERE pos = 4", "DELETE FROM pawl_step")
    before = rows(shell)
    found = shell.pawl("doctor", "--rebuild", expect=1)
    assert "the log itself is not valid at position 4" in found.err and "try: pawl verify" in found.err, found
    assert rows(shell) == before


main(globals())
