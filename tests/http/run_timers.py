"""Many timers due at one instant, after a kill too: each fires once, none early, none is lost (issue 5, section 4; B32, B40).
100,000 of them with PAWL_TEST_LONG=1, a thousand else."""
import http.client
import json
import os
import signal
import sqlite3

from run_flows import server, yaml
from web import harness

COUNT = 100000 if os.environ.get("PAWL_TEST_LONG") else 1000
LINES = 1000


def create_many(web, count):
    line = json.dumps({"operation": "instance.create", "input": {"definition": "nap"}})
    for _ in range(0, count, LINES):
        reply = web.expect(200, "POST", "/v1/batch", "\n".join([line] * LINES), {"Content-Type": "application/x-ndjson"})
        assert reply.body.count(b'"instance_id"') == LINES, reply


def advance(web, by):
    connection = http.client.HTTPConnection(web.host, timeout=1800)  # it answers when nothing more is due
    connection.request("POST", "/v1/test/advance", json.dumps({"by": by}), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    connection.close()


def counts(web):
    return {status: count for status, count in web.get("/v1/instances/counts").json["by_status"].items() if count}


def rows(shell, query):
    db = sqlite3.connect(shell.folder / "pawl.db")
    found = db.execute(query).fetchall()
    db.close()
    return found


def test_timers_that_fall_due_together_each_fire_once_and_none_early(shell):
    child, web = server(shell, "--test")
    yaml(web, "nap", "do: [{name: nap, wait: {timer: 1h}}, {name: after, wait: {timer: 1m}}]")
    create_many(web, COUNT)
    advance(web, "59m")
    assert counts(web) == {"suspended": COUNT}, "none is early"
    shell.stop(child, signal.SIGKILL, expect=None)
    child, web = server(shell, "--test")
    advance(web, "2m")
    assert counts(web) == {"completed": COUNT}, "none is lost"
    shell.stop(child)
    assert rows(shell, "SELECT count(*), count(DISTINCT number || '/' || step_ordinal) FROM pawl_history "
                       "WHERE action = 'timer'") == [(2 * COUNT, 2 * COUNT)], "each once"
    early = rows(shell, """SELECT count(*) FROM (SELECT (julianday(max(recorded_at)) - julianday(min(recorded_at))) * 86400 AS apart
                           FROM pawl_history WHERE action = 'timer' GROUP BY number) WHERE apart < 59.99""")
    assert early == [(0,)], "the second follows the first by its minute"
    assert rows(shell, "SELECT count(*) FROM pawl_timer") == [(0,)]
    check = shell.begin("verify")  # of a hundred thousand instances it takes its time
    out, err = check.communicate(timeout=3000)
    assert check.returncode == 0, out + err


WATCHED = """
states: [held, late]
initial_state: held
terminal_states: [late]
terminal_kinds: {late: success}
transitions:
  - {from_state: held, action: expire, to_state: late}
deadlines:
  - {state: held, after: 50ms, action: expire}
"""
STARTER = """
states: [idle, busy]
initial_state: idle
transitions:
  - {from_state: idle, action: go, to_state: busy, starts: {definition: noted}}
"""
TRIES, SOON_MS = 5, 20  # the best of a few: a loaded machine may be late by itself


def test_a_deadline_of_50_ms_on_an_idle_server_fires_within_20_ms_of_it(shell):
    child, web = server(shell)
    yaml(web, "watched", WATCHED)
    for n in range(TRIES):
        web.expect(201, "POST", "/v1/instances", {"definition": "watched"})
        shell.wait_for(lambda: counts(web) == {"completed": n + 1})
    shell.stop(child)
    late = rows(shell, "SELECT e.at - c.at - 50 FROM pawl_log e JOIN pawl_log c ON c.inst = e.inst AND c.what = -1 WHERE e.what >= 0 AND e.inst > 0")
    assert len(late) == TRIES and min(late)[0] >= 0, late
    assert min(late)[0] <= SOON_MS, late


def test_what_a_transition_starts_begins_within_20_ms_on_an_idle_server(shell):
    child, web = server(shell)
    yaml(web, "noted", "do: [{action: log, payload: {message: hello}}]")
    yaml(web, "starter", STARTER)
    for n in range(TRIES):
        made = web.expect(201, "POST", "/v1/instances", {"definition": "starter"}).json["instance_id"]
        web.expect(200, "POST", f"/v1/instances/{made}/fire", {"action": "go"})
        shell.wait_for(lambda: counts(web).get("completed") == n + 1)
    shell.stop(child)
    fired = rows(shell, "SELECT l.at FROM pawl_log l WHERE l.what = -5 AND CAST(l.body AS TEXT) LIKE '%due%' ORDER BY l.pos")
    begun = rows(shell, "SELECT l.at FROM pawl_log l JOIN pawl_instance i ON i.number = l.inst JOIN pawl_definition d ON d.id = i.definition "
                        "WHERE l.what = -1 AND d.name = 'noted' ORDER BY l.pos")
    late = [b[0] - f[0] for f, b in zip(fired, begun)]
    assert len(late) == TRIES and min(late) <= SOON_MS, late


if __name__ == "__main__":
    harness.main(globals())
