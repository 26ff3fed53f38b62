"""Seed 000, workflows as substrate: the lines of docs/internals/requirements.md part A that concern machines, over
HTTP, and what a shell reads of them. What is told elsewhere is found by tests/house/run_citations.py."""
import json
import sqlite3
import tempfile

from one_server import Machine, Web, harness, machine, main, transition

TICKET = machine(["open", "held", "solved", "broken", "withdrawn"],
                 [("open", "hold", "held"), ("held", "go-on", "open"), ("open", "solve", "solved"),
                  transition("open", "give-up", "broken", requires_reason=True, guard="boss"), ("open", "withdraw", "withdrawn")],
                 ["solved", "broken", "withdrawn"], {"solved": "success", "broken": "failure", "withdrawn": "cancel"})


def put(web, name, definition):
    return web.expect(201, "PUT", "/v1/definitions/" + name, definition).json


def ended(web, action, **members):
    ticket = Machine(web, declaration=TICKET)
    ticket.fire(action, **members)
    return ticket


def cancel(web, one, **members):
    return web.ask("POST", one.base + "/cancel", members)


# ---- the model ----

def test_everything_about_a_process_is_read_back_as_data_after_a_restart(web):
    """A1, A2, A3, A4, A5, A6, A11: by any shell, from views, without a word to the server"""
    with tempfile.TemporaryDirectory(prefix="pawl-data-") as folder:
        shell = harness.Shell(folder)
        child, address = shell.serve()
        put(Web(address), "ticket", TICKET)
        ticket = Machine(Web(address), definition="ticket", subject_ref="S-1", actor_ref="ann", input={"n": 1}, instance_metadata=["m"])
        ticket.fire("hold", actor_ref="bob", reason="lunch")
        ticket.fire("go-on")
        history = ticket.history()
        shell.stop(child)
        db = sqlite3.connect(shell.folder / "pawl.db")

        def rows(text):
            return [tuple(row) for row in db.execute(text)]
        states = rows("select name, terminal, terminal_kind from pawl_states where definition = 'ticket' order by idx")
        assert states == [("open", 0, None), ("held", 0, None), ("solved", 1, "success"), ("broken", 1, "failure"), ("withdrawn", 1, "cancel")]
        declared = rows("select from_state, action, to_state, guard, requires_reason from pawl_transitions where definition = 'ticket' order by idx")
        assert declared[3] == ("open", "give-up", "broken", "boss", 1) and len(declared) == 5
        assert json.loads(rows("select text from pawl_definitions where name = 'ticket'")[0][0]) == TICKET
        assert rows("select id, definition, version, current_state, subject_ref, created_by, input, instance_metadata from pawl_instances") == [
            (ticket.id, "ticket", 1, "open", "S-1", "ann", '{"n": 1}', '["m"]')]
        entries = rows("select sequence_number, transition_id, from_state, action, to_state, actor_ref, reason, fired_at from pawl_history order by 1")
        assert entries == [tuple(e.get(k) for k in ("sequence_number", "transition_id", "from_state", "action", "to_state", "actor_ref", "reason", "fired_at")) for e in history]
        via = rows("select h.sequence_number, t.idx from pawl_history h join pawl_instances i on i.id = h.id join pawl_transitions t"
                   " on t.definition = i.definition and t.from_state = h.from_state and t.action = h.action order by 1")
        assert via == [(1, 0), (2, 1)], "each entry refers to the transition that fired"
        db.close()


def test_a_process_is_one_chain_with_one_state(web):
    """A7, A8"""
    ticket = Machine(web, declaration=TICKET)
    for action in ("hold", "go-on", "hold", "go-on", "solve"):
        ticket.fire(action)
        assert isinstance(ticket.current(), str) and ticket.current() in TICKET["states"]
    entries = ticket.history()
    assert [e["from_state"] for e in entries] == ["open"] + [e["to_state"] for e in entries][:-1]


# ---- kinds ----

def test_a_kind_is_declared_and_never_guessed(web):
    """A12, A13, A14"""
    base = machine(["a", "error"], [("a", "go", "error")], ["error"])
    for kinds in ({}, {"error": "timeout"}, {"error": "success", "a": "failure"}, {"error": ""}, {"error": "Success"}, {"other": "success"}):
        web.refused("invalid-definition", "PUT", "/v1/definitions/odd", {**base, "terminal_kinds": kinds})
    put(web, "calm", {**base, "terminal_kinds": {"error": "success"}})
    calm = Machine(web, definition="calm")
    calm.fire("go", payload={"error": "terrible"})
    assert calm.get()["terminal_kind"] == "success" and calm.get()["status"] == "completed"


def test_the_three_kinds_stay_apart_for_who_looks(web):
    """A15, A16"""
    solved, broken = ended(web, "solve"), ended(web, "give-up", reason="r", guard_satisfied=True)
    withdrawn = ended(web, "withdraw")
    for one, kind, status in ((solved, "success", "completed"), (broken, "failure", "failed"), (withdrawn, "cancel", "cancelled")):
        assert (one.get()["terminal_kind"], one.get()["status"]) == (kind, status)
        listed = [i["instance_id"] for i in web.get("/v1/instances?limit=1000&status=" + status).json["instances"]]
        assert one.id in listed and not {solved.id, broken.id, withdrawn.id} - {one.id} & set(listed)
    plain = Machine(web, declaration=machine(["a", "z"], [("a", "go", "z")], ["z"]))
    plain.fire("go")
    assert plain.get()["terminal_kind"] is None and plain.get()["status"] == "completed"


# ---- cancelling ----

def test_can_cancel_says_what_cancel_would_do_and_does_nothing(web):
    """A19, A17, A18: in every state of the machine"""
    for way in ([], ["hold"], ["hold", "go-on"], ["solve"], ["withdraw"]):
        ticket = Machine(web, declaration=TICKET)
        for action in way:
            ticket.fire(action)
        before = ticket.get(), ticket.history()
        assert (ticket.get(), ticket.history()) == before
        reply = cancel(web, ticket)
        assert before[0]["can_cancel"] == (reply.status == 200), (way, reply)
        if reply.status != 200:
            assert (ticket.get(), ticket.history()) == before


def test_three_ways_of_writing_it_cancel_everywhere_nowhere_and_in_places(web):
    """A21, A20"""
    everywhere = machine(["a", "b", "aborted", "done"], [("a", "go", "b"), ("b", "go", "done"), ("*", "stop", "aborted")],
                         ["aborted", "done"], {"aborted": "cancel", "done": "success"})
    nowhere = machine(["a", "cancellation-info"], [("a", "cancel", "cancellation-info")], ["cancellation-info"], {"cancellation-info": "success"})
    for name, definition, found in (("everywhere", everywhere, [True, True, False]), ("nowhere", nowhere, [False]), ("places", TICKET, [True, False])):
        put(web, name, definition)
        for steps, expected in enumerate(found):
            one = Machine(web, definition=name)
            for action in {"everywhere": ["go", "go"], "nowhere": [], "places": ["hold"]}[name][:steps]:
                one.fire(action)
            assert one.get()["can_cancel"] is expected and (cancel(web, one).status == 200) is expected, (name, steps)


def test_a_refused_cancel_says_why(web):
    """A18, A22"""
    held = Machine(web, declaration=TICKET)
    held.fire("hold")
    assert cancel(web, held).reason == "no-cancel-transition"
    assert cancel(web, ended(web, "solve")).reason == "terminal"
    web.refused("not-known", "POST", "/v1/instances/00000000ZZ0123456789ABCDEF/cancel", {})


def test_a_cancel_without_a_reason_records_none_and_is_refused_where_one_is_required(web):
    """A23, as issue 13 has it: the engine makes up no reason"""
    wants = machine(["a", "gone"], [transition("a", "leave", "gone", requires_reason=True)], ["gone"], {"gone": "cancel"})
    one, other = Machine(web, declaration=wants), Machine(web, declaration=wants)
    one.refused("reason-required", "leave")
    assert cancel(web, one).reason == "reason-required" and one.history() == []
    free = Machine(web, declaration=machine(["a", "gone"], [transition("a", "leave", "gone")], ["gone"], {"gone": "cancel"}))
    assert cancel(web, free).json == {"new_state": "gone", "terminal_kind": "cancel"}
    assert free.history()[0].get("reason") is None
    cancel(web, other, reason="changed my mind", actor_ref="ann")
    assert (other.history()[0]["reason"], other.history()[0]["actor_ref"]) == ("changed my mind", "ann")


# ---- reuse ----

def consumer(web, id):
    """One way to look at anything that takes time."""
    got = web.expect(200, "GET", "/v1/instances/" + id).json
    entries = web.expect(200, "GET", "/v1/instances/%s/history" % id).json["entries"]
    return got["status"], got["terminal_kind"], len(entries) == got["next_sequence_number"] - 1, got["can_cancel"]


def test_unrelated_tools_are_watched_and_cancelled_by_one_piece_of_code(web):
    """A34, A35: a machine, a flow and code; no status table of their own"""
    put(web, "import", {"steps": {"start": {"name": "rest", "tool": "sleep", "args": {"for": "1h"}, "next": "end"}, "end": {"tool": "set", "args": {}, "done": True}}})
    ids = [Machine(web, declaration=TICKET).id, Machine(web, definition="import").id,
           Machine(web, definition="countdown", input={"from": 3, "every": "1h"}).id]
    for id in ids:
        status, kind, counted, can_cancel = consumer(web, id)
        assert status in ("running", "suspended") and kind is None and counted and can_cancel, (id, status)
        assert web.expect(200, "POST", "/v1/instances/%s/cancel" % id, {}).json["terminal_kind"] == "cancel"
        assert consumer(web, id) == ("cancelled", "cancel", True, False)


# ---- what the origin's own code does ----

def test_a_definition_is_named_versioned_and_keeps_its_authors_own_keys(web):
    """A37, A43: put twice it is the one that is there"""
    text = {**TICKET, "labels": "A ticket", "x-owner": {"team": 7}}
    web.refused("invalid-definition", "PUT", "/v1/definitions/labelled", {**text, "label": "A ticket"})
    first = put(web, "labelled", text)
    assert (first["version"], first["kind"]) == (1, "machine")
    again = web.expect(200, "PUT", "/v1/definitions/labelled", text).json
    assert (again["version"], again["sha256"]) == (1, first["sha256"])
    assert json.loads(web.get("/v1/definitions/labelled").json["text"]) == text
    web.refused("not-known", "GET", "/v1/definitions/nobody")


def test_a_process_begins_by_name_and_many_may_be_about_one_subject(web):
    """A38"""
    put(web, "begin", TICKET)
    web.refused("not-known", "POST", "/v1/instances", {"definition": "no-such"})
    web.refused("invalid-definition", "PUT", "/v1/definitions/no-begin", {k: v for k, v in TICKET.items() if k != "initial_state"})
    one, other = (Machine(web, definition="begin", subject_ref="S-38", input={"x": 1}) for _ in range(2))
    web.expect(200, "POST", "/v1/test/advance", {"by": "5s"})
    one.fire("solve")
    got = one.get()
    assert got["instantiated_at"] < got["updated_at"] == one.history()[-1]["fired_at"], "when it began, and when it ended"
    assert other.get()["instantiated_at"] == other.get()["updated_at"]
    assert [i["instance_id"] for i in web.get("/v1/instances?subject_ref=S-38").json["instances"]] == [other.id, one.id]


def test_the_order_of_checks_is_transition_then_reason_then_guard(web):
    """A39, A44: the same action may have other rules elsewhere"""
    rules = machine(["a", "b", "z"], [transition("a", "go", "b", requires_reason=True, guard="g"), ("b", "go", "z")], ["z"])
    one = Machine(web, declaration=rules)
    for token, words, detail in (("invalid-transition", {"action": "fly"}, "legal now: go"), ("reason-required", {"action": "go"}, "wants a reason"),
                                  ("guard-not-satisfied", {"action": "go", "reason": "r"}, "guarded by 'g'")):
        assert detail in one.refused(token, **words).json["detail"]
    one.fire("go", reason="because", guard_satisfied=True, actor_ref="ann")
    one.fire("go")
    keys = ("action", "from_state", "to_state", "actor_ref", "reason")
    assert [tuple(e.get(k) for k in keys) for e in one.history()] == [("go", "a", "b", "ann", "because"), ("go", "b", "z", None, None)]


def test_what_can_be_fired_now_is_listed_with_what_it_asks(web):
    """A40: a guard is named, and never evaluated here (X9)"""
    ticket = Machine(web, declaration=TICKET)
    listed = {a["action"]: a for a in ticket.get()["actions"]}
    assert list(listed) == ["hold", "solve", "give-up", "withdraw"], listed
    assert listed["give-up"] == {"action": "give-up", "to_state": "broken", "guard": "boss", "requires_reason": True}
    assert {t["name"] for t in web.get(ticket.base + "/why").json["waiting_for"]} == set(listed)
    ticket.fire("solve")
    assert ticket.get()["actions"] == []


def test_processes_are_found_by_subject_state_and_whether_they_go_on(web):
    """A42"""
    put(web, "found", TICKET)
    many = [Machine(web, definition="found", subject_ref="S-%d" % (n % 2)) for n in range(6)]
    for one, action in zip(many, ("hold", "solve", "hold", "withdraw")):
        one.fire(action)

    def ids(query):
        return [i["instance_id"] for i in web.get("/v1/instances?definition=found&" + query).json["instances"]]
    everything = [one.id for one in reversed(many)]
    assert ids("") == everything, "newest first"
    assert ids("state=held") == [many[2].id, many[0].id] and ids("subject_ref=S-0&state=held") == [many[2].id, many[0].id]
    assert ids("status=suspended") == [i for i in everything if i not in (many[1].id, many[3].id)]
    assert ids("status=completed") == [many[1].id] and ids("status=cancelled") == [many[3].id]
    ended = [many[3].id, many[1].id]
    assert ids("active=true") == [i for i in everything if i not in ended] and ids("active=false") == ended
    since = many[3].get()["updated_at"]
    assert many[3].id in ids("ended_after=" + since) and ids("ended_after=2020-01-01T00:00:00Z") == ended
    assert ids("ended_before=2020-01-01T00:00:00Z") == [] and ids("ended_after=2999-01-01T00:00:00Z") == []
    for wrong in ("active=maybe", "active=", "ended_after=soon", "ended_after=2026-02-01T00:00:00Z&ended_before=2026-01-01T00:00:00Z"):
        web.refused("invalid-query", "GET", "/v1/instances?" + wrong)


def test_nothing_may_leave_a_terminal_state_not_even_to_retry(web):
    """A45: X7 decides for seed 003"""
    reopen = {**TICKET, "transitions": TICKET["transitions"] + [transition("solved", "reopen", "open")]}
    web.refused("invalid-definition", "PUT", "/v1/definitions/reopen", reopen)
    web.refused("invalid-declaration", "POST", "/v1/instances", {"declaration": reopen})


main(globals())
