"""What is asked about many instances, deadlines, and the store read as SQL: over HTTP, against a
real server on a real file."""
import datetime
import json
import re
import signal
import sqlite3
import subprocess
import sys

from web import Web, harness

CLAIM = """
states: [open, asked, lapsed, settled]
initial_state: open
terminal_states: [lapsed, settled]
terminal_kinds: {lapsed: failure, settled: success}
transitions:
  - {from_state: open, action: ask, to_state: asked}
  - {from_state: open, action: lapse, to_state: lapsed}
  - {from_state: asked, action: remind, to_state: asked}
  - {from_state: asked, action: settle, to_state: settled}
deadlines:
  - {state: open, after: %s, action: lapse}
  - {state: asked, after: 2h, action: remind}
"""
YAML = {"Content-Type": "application/yaml"}


def server(shell, *words):
    child, address = shell.serve(*words)
    return child, Web(address)


def put_claim(web, after="24h"):
    web.expect(201, "PUT", "/v1/definitions/claim", CLAIM % after, YAML)


def verified(shell, valid=True):
    """Both verifiers say so."""
    python = subprocess.run([sys.executable, str(harness.ROOT / "tools" / "verify.py"), "pawl.db"], cwd=shell.folder, capture_output=True)
    program = shell.pawl("verify", "--json", expect=None)
    assert (python.returncode == 0) == valid, python.stdout
    assert program.json["valid"] == valid, program
    return python.stdout.decode() + program.out


def millis(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


# ---- deadlines ----


def test_deadlines_fire_at_their_due_time_by_the_test_clock(shell):
    child, web = server(shell, "--test")
    put_claim(web)
    held, asked = web.create(definition="claim"), web.create(definition="claim")
    made = web.get("/v1/instances/" + held).json["instantiated_at"]
    web.expect(200, "POST", "/v1/instances/%s/fire" % asked, {"action": "ask"})
    waiting = web.get("/v1/instances/%s/why" % held).json["waiting_for"]
    assert waiting[-1]["kind"] == "timer" and waiting[-1]["name"] == "lapse", waiting
    assert millis(waiting[-1]["until"]) - millis(made) == 24 * 3600000, waiting
    web.expect(200, "POST", "/v1/test/advance", {"by": "5h"})
    assert web.get("/v1/instances/%s/current" % held).json["current_state"] == "open"
    entries = web.get("/v1/instances/%s/history" % asked).json["entries"]
    assert [e["action"] for e in entries] == ["ask", "remind", "remind"], entries
    assert [millis(e["fired_at"]) - millis(made) for e in entries[1:]] == [2 * 3600000, 4 * 3600000], entries
    assert entries[1]["actor_ref"] == "pawl/timer", entries
    shell.stop(child)
    verified(shell)
    child, web = server(shell, "--test")
    web.expect(200, "POST", "/v1/test/advance", {"by": "19h"})
    assert web.get("/v1/instances/" + held).json["status"] == "failed"
    shell.stop(child)
    verified(shell)


def test_a_wrong_deadline_is_refused_with_line_and_column(shell):
    _, web = server(shell)
    refused = web.refused("invalid-definition", "PUT", "/v1/definitions/claim", CLAIM % "soon", YAML)
    assert "line 12, column 26" in refused.json["detail"], refused
    checked = web.expect(200, "POST", "/v1/definitions/check", CLAIM.replace("2h, action: remind", "2h, action: lapse") % "1s", YAML).json
    assert checked["errors"][0]["line"] == 13 and checked["errors"][0]["column"] > 0, checked


def test_a_deadline_outlives_a_killed_server_and_is_never_early(shell):
    child, web = server(shell)
    put_claim(web, "300ms")
    id = web.create(definition="claim")
    shell.stop(child, signal.SIGKILL, expect=-signal.SIGKILL)
    child, web = server(shell)
    for _ in range(20000):
        got = web.get("/v1/instances/" + id).json
        if got["status"] == "failed":
            break
    entry = web.get("/v1/instances/%s/history" % id).json["entries"][0]
    assert entry["action"] == "lapse" and millis(entry["fired_at"]) - millis(got["instantiated_at"]) >= 300, (entry, got)
    assert len(web.get("/v1/instances/%s/history" % id).json["entries"]) == 1
    shell.stop(child)
    verified(shell)


def test_both_verifiers_miss_a_timer_and_find_one_too_many(shell):
    for change in ("DELETE FROM pawl_timer WHERE inst = 1", "UPDATE pawl_timer SET due = due + 1 WHERE inst = 2",
                   "INSERT INTO pawl_timer (inst, ord, name, due, test) SELECT inst, 0, 'settle', due, test FROM pawl_timer WHERE inst = 2"):
        (shell.folder / "pawl.db").unlink(missing_ok=True)
        child, web = server(shell)
        put_claim(web)
        web.create(definition="claim")
        web.expect(200, "POST", "/v1/instances/%s/fire" % web.create(definition="claim"), {"action": "ask"})
        shell.stop(child)
        verified(shell)
        with sqlite3.connect(shell.folder / "pawl.db") as db:
            db.execute(change)
        db.close()
        assert "timer" in verified(shell, valid=False)


# ---- labels ----


def test_label_rows_repeat_the_labels_and_both_verifiers_see_when_they_do_not(shell):
    child, web = server(shell)
    put_claim(web)
    labels = {"region": "eu", "tier": "gold", "q\"": "tab\t", "ключ": "значение", "": "x"}
    id = web.create(definition="claim", labels=labels)
    web.create(definition="claim", labels={"region": "eu"})
    web.create(definition="claim", labels={})
    web.create(definition="claim")
    assert [i["instance_id"] for i in web.get("/v1/instances?label.tier=gold&label.region=eu").json["instances"]] == [id]
    assert len(web.get("/v1/instances?label.region=eu").json["instances"]) == 2
    assert web.get("/v1/instances?label.region=e").json["instances"] == []
    shell.stop(child)
    verified(shell)
    for change in ("DELETE FROM pawl_label WHERE key = 'tier'", "UPDATE pawl_label SET value = 'us' WHERE inst = 2",
                   "INSERT INTO pawl_label VALUES ('region', 'eu', 4)", "INSERT INTO pawl_label VALUES ('region', 'eu', 99)"):
        before = (shell.folder / "pawl.db").read_bytes()
        with sqlite3.connect(shell.folder / "pawl.db") as db:
            db.execute(change)
        db.close()
        assert "label" in verified(shell, valid=False), change
        for file in shell.folder.glob("pawl.db-*"):
            file.unlink()
        (shell.folder / "pawl.db").write_bytes(before)
        verified(shell)


# ---- cancelling what belongs together ----


def test_all_of_one_correlation_are_cancelled_each_by_its_own_way(shell):
    _, web = server(shell)
    put_claim(web)
    web.expect(201, "PUT", "/v1/definitions/order", {"states": ["new", "gone"], "initial_state": "new", "terminal_states": ["gone"],
               "terminal_kinds": {"gone": "cancel"}, "transitions": [{"from_state": "new", "action": "drop", "to_state": "gone", "requires_reason": True}]})
    orders = [web.create(definition="order", correlation_id="c", subject_ref="s") for _ in range(3)]
    code = web.create(definition="countdown", correlation_id="c", input={"from": 3, "every": "1h"})
    web.create(definition="claim", correlation_id="c")  # it has no way to cancel
    other = web.create(definition="order", correlation_id="d", subject_ref="s")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % orders[2], {"reason": "rain"})
    assert web.expect(200, "POST", "/v1/cancel", {"correlation_id": "c", "actor_ref": "ann", "reason": "storm"}).json == {"cancelled": 3, "refused": 2}
    entry = web.get("/v1/instances/%s/history" % orders[0]).json["entries"][-1]
    assert (entry["actor_ref"], entry["reason"]) == ("ann", "storm"), entry
    assert web.get("/v1/instances/" + code).json["status"] == "cancelled"
    assert web.get("/v1/instances/" + other).json["status"] == "suspended"
    assert len(web.get("/v1/instances?subject_ref=s").json["instances"]) == 4
    assert web.expect(200, "POST", "/v1/cancel", {"correlation_id": "nobody"}).json == {"cancelled": 0, "refused": 0}
    for body in ({}, {"correlation_id": " "}, {"correlation_id": ""}, {"correlation_id": 7}, {"correlation_id": "c", "x": 1},
                 {"correlation_id": "c", "actor_ref": " "}):
        web.refused("invalid-request", "POST", "/v1/cancel", body)


# ---- views ----

PAGE = (harness.ROOT / "docs/reference/views.md").read_text()
SCHEMA = harness.ROOT / "src/store/sqlite/schema"


def sql(shell, text):
    return [tuple(row) for row in shell.json("sql", text)["rows"]]


def documented():
    """view -> its columns, as the page lists them."""
    for part in PAGE.split("\n## ")[1:]:
        rows = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
        yield part.split("\n")[0], [name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]


def work_of(path, query):
    """How much SQLite does for a query, in hundreds of instructions; and its rows."""
    db, count = sqlite3.connect("file:%s?mode=ro" % path, uri=True), [0]

    def note():
        count[0] += 1

    db.set_progress_handler(note, 100)
    rows = db.execute(query).fetchall()
    db.close()
    return count[0], rows


def test_asking_for_ready_steps_costs_what_is_ready_and_not_what_has_ended(shell):
    child, web = server(shell)
    for name, last in (("over", {"tool": "set", "done": True}), ("waits", {"tool": "far", "done": True})):
        steps = {"start": {"name": "start", "tool": "set", "next": "s0"}, "last": last}
        steps.update({"s%d" % i: {"tool": "set", "next": "s%d" % (i + 1) if i < 19 else "last"} for i in range(20)})
        web.expect(201, "PUT", "/v1/definitions/" + name, {"steps": steps})

    def run(name, count):
        ids = [web.create(definition=name) for _ in range(count)]
        shell.wait_for(lambda: not web.get("/v1/steps?tool=set&limit=1").json["steps"])
        shell.wait_for(lambda: sql(shell, "SELECT (SELECT value FROM pawl_meta WHERE key = 'flushed') = max(pos) FROM pawl_log") == [(1,)])
        return ids

    poll = "SELECT id FROM workflow_steps WHERE status='ready' ORDER BY ready_at LIMIT 50"
    waiting = run("waits", 2)
    run("over", 2)
    before, rows = work_of(shell.folder / "pawl.db", poll)
    assert sorted(rows) == [(number * 2**32 + 22,) for number in (1, 2)], rows
    run("over", 40)
    after, again = work_of(shell.folder / "pawl.db", poll)
    assert again == rows and after < 2 * before, "with 880 more steps that have ended: %d, then %d" % (before, after)
    of_one, rows = work_of(shell.folder / "pawl.db", "SELECT name, status FROM workflow_steps WHERE workflow_id = 1 ORDER BY id")
    assert rows == [("start", "done")] + [("s%d" % i, "done") for i in range(20)] + [("last", "ready")], rows
    counts = dict(sql(shell, "SELECT status, count(*) FROM workflow_steps GROUP BY status"))
    assert counts == {"done": 42 * 22 + 2 * 21, "ready": 2}, counts
    assert counts == dict(sql(shell, "SELECT status, count(*) FROM pawl_attempts GROUP BY status"))

    web.expect(201, "PUT", "/v1/definitions/one", {"steps": {"start": {"name": "start", "tool": "far", "done": True}}})
    one = json.dumps({"operation": "instance.create", "input": {"definition": "one"}})
    web.expect(200, "POST", "/v1/batch", (one + "\n") * 300)
    many, rows = work_of(shell.folder / "pawl.db", poll)
    assert len(rows) == 50 and many - after < 300, "a poll costs %d instructions for each ready step" % ((many - after) / 3)
    told = sql(shell, "SELECT workflow_id, ready_at, updated_at FROM workflow_steps WHERE status = 'ready' ORDER BY id")
    assert len(told) == 302 and told == sql(shell, "SELECT number, ready_at, ready_at FROM pawl_attempted WHERE status = 'ready' ORDER BY 1")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % waiting[0])
    assert sql(shell, "SELECT status FROM workflow_steps WHERE id = %d" % (2**32 + 22)) == [("cancelled",)]
    shell.stop(child)

    ready = "SELECT * FROM workflow_steps WHERE status = 'ready' ORDER BY id"
    told = sql(shell, ready)
    with sqlite3.connect(shell.folder / "pawl.db") as db:  # as it was before migration 23
        db.executescript((SCHEMA / "021_poll.sql").read_text() + "ALTER TABLE pawl_step DROP COLUMN ready_at; PRAGMA user_version = 22")
    db.close()
    assert len(told) == 301 and sql(shell, ready) == told
    assert shell.json("verify")["valid"]


def test_expanded_transitions_are_data_and_inline_instances_join_their_declaration(shell):
    child, web = server(shell)
    wild = {"states": ["a", "b", "c", "no"], "initial_state": "a", "terminal_states": ["c", "no"], "terminal_kinds": {"c": "success", "no": "cancel"},
            "transitions": [{"from_state": "a", "action": "go", "to_state": "b", "guard": "g"}, {"from_state": "b", "action": "go", "to_state": "c"},
                            {"from_state": "*", "action": "drop", "to_state": "no", "requires_reason": True}]}
    web.expect(201, "PUT", "/v1/definitions/wild", wild)
    id = web.create(definition="wild")
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "drop", "reason": "r"})
    table = [{"from_state": "a", "action": "go", "to_state": "b", "guard": "g", "by": "caller"},
             {"from_state": "b", "action": "go", "to_state": "c", "by": "caller"},
             *({"from_state": state, "action": "drop", "to_state": "no", "requires_reason": True, "by": "caller"} for state in "ab")]
    for path in ("/v1/definitions/wild", "/v1/instances/" + id):
        assert "transitions" not in web.get(path).json
        found = web.expect(200, "GET", path + "?expanded=true").json["transitions"]
        assert sorted(map(str, found)) == sorted(map(str, table)), found
        web.refused("invalid-request", "GET", path + "?expanded=yes")
    triples = {(t["from_state"], t["action"], t["to_state"]) for t in table}
    assert all((e["from_state"], e["action"], e["to_state"]) in triples for e in web.get("/v1/instances/%s/history" % id).json["entries"])
    inline = web.create(declaration={"states": ["x", "y"], "initial_state": "x", "transitions": [{"from_state": "x", "action": "z", "to_state": "y"}]})
    rows = sql(shell, "SELECT t.from_state, t.action, t.to_state FROM pawl_instances i JOIN pawl_transitions t USING (definition_id) WHERE i.id = '%s'" % inline)
    assert rows == [("x", "z", "y")], rows
    shell.stop(child)


def test_the_page_lists_every_view_and_every_column(shell):
    child, _ = server(shell)
    views = dict(documented())
    found = sql(shell, "SELECT name FROM sqlite_schema WHERE type = 'view' AND name NOT IN ('pawl_ids', 'pawl_current', 'pawl_attempted')")
    assert sorted(views) == sorted(name for name, in found), (views, found)
    for view, columns in views.items():
        found = [row[1] for row in sql(shell, "PRAGMA table_info(%s)" % view)]
        assert sorted(found) == sorted(columns), (view, found, columns)
    shell.stop(child)




def test_every_query_of_the_page_tells_the_acknowledged_truth_beside_a_live_server(shell):
    child, web = server(shell)
    put_claim(web)
    ids = [web.create(definition="claim", labels={"region": "eu" if n % 2 else "us"}) for n in range(5)]
    queries = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert len(queries) >= 8
    for id in ids:  # each fire is seen by the query after it: head rows lag meanwhile
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "ask", "actor_ref": "ann"})
        assert sql(shell, "SELECT current_state, sequence_number FROM pawl_instances WHERE id = '%s'" % id) == [("asked", 1)]
        assert sql(shell, "SELECT name FROM pawl_timers WHERE id = '%s'" % id) == [("remind",)]
        assert sql(shell, "SELECT action, actor_ref FROM pawl_history WHERE id = '%s'" % id) == [("ask", "ann")]
    answers = [sql(shell, query) for query in queries]
    assert ("claim", 1, "machine") in answers[0], answers[0]
    assert ("claim", "open", 86400000, "lapse") in answers[1], answers[1]
    assert ("asked", 5) in answers[4], answers[4]
    labelled = answers[[n for n, query in enumerate(queries) if "pawl_labels" in query][-1]]
    assert sorted(labelled) == [("eu", 2), ("us", 3)], labelled
    web.expect(200, "POST", "/v1/instances/%s/fire" % ids[0], {"action": "settle"})
    assert sql(shell, "SELECT count(*) FROM pawl_timers WHERE id = '%s'" % ids[0]) == [(0,)]
    shell.stop(child)


FLOW = {"steps": {"start": {"name": "look", "tool": "set", "args": {"n": 1}, "branch": [{"if": "input.bad", "then": "break"}, {"if": "true", "then": "end"}]},
                  "break": {"tool": "fail", "args": {"error": {"why": "bad"}}, "done": True}, "end": {"tool": "set", "args": {"got": [1, "x"]}, "done": True}}}


def test_an_instance_tells_in_sql_when_it_ended_and_with_what(shell):
    child, web = server(shell, "--test")
    put_claim(web)
    web.expect(201, "PUT", "/v1/definitions/trip", FLOW)
    ids = [web.create(definition="trip", input={"bad": bad}) for bad in (False, True)] + [web.create(definition="claim") for _ in range(3)]
    web.expect(200, "POST", "/v1/instances/%s/fire" % ids[2], {"action": "ask"})
    web.expect(200, "POST", "/v1/instances/%s/fire" % ids[2], {"action": "settle", "payload": {"no": "result"}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "30m"})
    for n in range(2):  # the tail of the log tells it, and then the rows
        for id in ids:
            told = web.expect(200, "GET", "/v1/instances/" + id).json
            row = sql(shell, "SELECT status, ended_at, result, error FROM pawl_instances WHERE id = '%s'" % id)[0]
            assert row[0] == told["status"] and (row[1] or told["updated_at"]) == told["updated_at"], (row, told)
            assert (row[1] is None) == (told["terminal_kind"] is None), (row, told)
            assert [part and json.loads(part) for part in row[2:]] == [told["result"], told["error"]], (row, told)
        shell.stop(child)
        child, web = server(shell, "--test")
    assert [row[0] for row in sql(shell, "SELECT status FROM pawl_instances ORDER BY number")] == ["completed", "failed", "completed", "suspended", "suspended"]
    verified(shell)
    shell.stop(child)


if __name__ == "__main__":
    harness.main(globals())
