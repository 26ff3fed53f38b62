"""Which rejection comes first, over HTTP (D18, D14, D29; DESIGN.md section 5): every pair of causes
that can occur together. tests/priority does the same through C, with every combination.

A table lists what can be wrong with a call that is right, earliest first: (part, value, token). A
cause spoils one part; two that spoil different parts can occur together."""
import itertools
import json
import urllib.parse

from web import Web, harness

MACHINE = {"states": ["open", "busy", "ended", "dropped"], "initial_state": "open", "terminal_states": ["ended", "dropped"],
           "terminal_kinds": {"ended": "success", "dropped": "cancel"}, "transitions": [
               {"from_state": "open", "action": "note", "to_state": "open", "guard": "checked", "requires_reason": True},
               {"from_state": "open", "action": "end", "to_state": "ended"},
               {"from_state": "open", "action": "work", "to_state": "busy"},
               {"from_state": "open", "action": "drop", "to_state": "dropped"}]}
FUTURE, PAST, UNKNOWN = "2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z", "00000000ZZ0123456789ABCDEF"
ABSENT = object()


def pairs(causes):
    """(token, the parts that are spoilt), for each cause alone and for each pair."""
    for part, value, token in causes:
        yield token, {part: value}
    for (part, value, token), (other, value_too, _) in itertools.combinations(causes, 2):
        if part != other:
            yield token, {part: value, other: value_too}


def expect_order(web, causes, right, path):
    count = 0
    for token, spoilt in pairs(causes):
        call = {k: v for k, v in {**right, **spoilt}.items() if v is not ABSENT}
        where = path % urllib.parse.quote(call.pop("instance_id", ""))
        reply = web.ask("POST", where, call)
        assert reply.reason == token, "expected %s for %s, found %r" % (token, spoilt, reply)
        count += 1
    return count


def world(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/priority", MACHINE)
    ids = {}
    for name, action in (("open", None), ("ended", "end"), ("busy", "work"), ("paused", None)):
        ids[name] = web.create(definition="priority")
        if action:
            web.expect(200, "POST", "/v1/instances/%s/fire" % ids[name], {"action": action})
    web.expect(200, "POST", "/v1/instances/%s/pause" % ids["paused"], {})
    return web, ids


def expect_untouched(web, ids):
    for name, entries in (("open", 0), ("ended", 1), ("busy", 1), ("paused", 0)):
        assert len(web.get("/v1/instances/%s/history" % ids[name]).json["entries"]) == entries, name
    assert len(web.get("/v1/instances").json["instances"]) == 4


def test_the_first_cause_of_a_refused_fire_is_its_token(shell):
    web, ids = world(shell)
    causes = [
        ("instance_id", " ", "invalid-request"), ("action", ABSENT, "invalid-request"), ("action", " ", "invalid-request"),
        ("action", 7, "invalid-request"), ("colour", 1, "invalid-request"), ("actor_ref", 5, "invalid-request"),
        ("expected_sequence", "1", "invalid-request"), ("fired_at", 7, "invalid-request"),
        ("instance_id", UNKNOWN, "not-known"), ("instance_id", "nonsense", "not-known"),
        ("instance_id", ids["ended"], "terminal"), ("action", "nonsense", "invalid-transition"),
        ("reason", ABSENT, "reason-required"), ("reason", " ", "reason-required"),
        ("guard_satisfied", ABSENT, "guard-not-satisfied"), ("guard_satisfied", "true", "guard-not-satisfied"),
        ("guard_satisfied", 1, "guard-not-satisfied"), ("instance_id", ids["paused"], "paused"), ("expected_sequence", 9, "conflict"),
        ("actor_ref", " ", "invalid-request"), ("fired_at", FUTURE, "invalid-request"),
        ("fired_at", PAST, "invalid-request"), ("fired_at", "soon", "invalid-request")]
    right = {"instance_id": ids["open"], "action": "note", "reason": "due", "guard_satisfied": True}
    count = expect_order(web, causes, right, "/v1/instances/%s/fire")
    print("# %d combinations" % count)
    expect_untouched(web, ids)


def test_the_first_cause_of_a_refused_cancel_is_its_token(shell):
    web, ids = world(shell)
    causes = [("instance_id", " ", "invalid-request"), ("colour", 1, "invalid-request"), ("actor_ref", 5, "invalid-request"),
              ("instance_id", UNKNOWN, "not-known"), ("instance_id", ids["ended"], "terminal"),
              ("instance_id", ids["busy"], "no-cancel-transition"), ("actor_ref", " ", "invalid-request")]
    expect_order(web, causes, {"instance_id": ids["open"]}, "/v1/instances/%s/cancel")
    expect_untouched(web, ids)


def test_the_first_cause_of_a_refused_creation_is_its_token(shell):
    web, ids = world(shell)
    causes = [("colour", 1, "invalid-request"), ("actor_ref", 5, "invalid-request"), ("definition", "priority", "invalid-request"),
              ("declaration", {}, "invalid-declaration"), ("declaration", [], "invalid-declaration"),
              ("declaration", "text", "invalid-declaration"), ("declaration", {**MACHINE, "initial_state": "x"}, "invalid-declaration"),
              ("actor_ref", " ", "invalid-request"), ("subject_ref", " ", "invalid-request"),
              ("instance_metadata", {}, "invalid-request"), ("instantiated_at", FUTURE, "invalid-request"),
              ("instantiated_at", "soon", "invalid-request")]
    expect_order(web, causes, {"declaration": MACHINE}, "/v1/instances%s")
    named = [("definition", ABSENT, "invalid-request"), ("definition", "nobody", "not-known"), ("definition", "priority@7", "not-known"),
             ("actor_ref", " ", "invalid-request"), ("instantiated_at", FUTURE, "invalid-request")]
    expect_order(web, named, {"definition": "priority"}, "/v1/instances%s")
    expect_untouched(web, ids)


FLOW = {"steps": {"start": {"name": "gate", "approval": {"by": ["ann"]}, "tool": None, "next": "hear"},
                  "hear": {"wait": {"signal": "go"}, "done": True}}}
LATER = {"steps": {"start": {"name": "gate", "tool": None, "done": True}}}


def flows(shell):
    """Instances of a flow: at its gate, waiting for its signal, ended, paused in either place."""
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/flow", FLOW)
    web.expect(201, "PUT", "/v1/definitions/machine", MACHINE)
    ids = {name: web.create(definition="flow") for name in ("gate", "hear", "ended", "held", "deaf")}
    ids["machine"] = web.create(definition="machine")
    for name in ("hear", "deaf", "ended"):
        web.expect(200, "POST", "/v1/steps/%s.1/approve" % ids[name], {"actor_ref": "ann"})
    web.expect(200, "POST", "/v1/instances/%s/cancel" % ids["ended"])
    for name in ("held", "deaf"):
        web.expect(200, "POST", "/v1/instances/%s/pause" % ids[name])
    return web, ids


def test_the_first_cause_of_a_refused_signal_is_its_token(shell):
    web, ids = flows(shell)
    causes = [("instance_id", " ", "invalid-request"), ("name", ABSENT, "invalid-request"), ("name", " ", "invalid-request"),
              ("colour", 1, "invalid-request"), ("actor_ref", 5, "invalid-request"), ("instance_id", UNKNOWN, "not-known"),
              ("instance_id", ids["ended"], "terminal"), ("instance_id", ids["deaf"], "paused"),
              ("instance_id", ids["gate"], "not-awaiting"), ("instance_id", ids["machine"], "not-awaiting"),
              ("name", "stop", "not-awaiting"), ("actor_ref", " ", "invalid-request")]
    expect_order(web, causes, {"instance_id": ids["hear"], "name": "go"}, "/v1/instances/%s/signals")
    web.expect(202, "POST", "/v1/instances/%s/signals" % ids["hear"], {"name": "go"})


def test_the_first_cause_of_a_refused_decision_is_its_token(shell):
    web, ids = flows(shell)
    step = {name: id + ".1" for name, id in ids.items()}
    causes = [("instance_id", " ", "invalid-request"), ("colour", 1, "invalid-request"), ("actor_ref", 5, "invalid-request"),
              ("instance_id", UNKNOWN + ".1", "not-known"), ("instance_id", "nonsense", "not-known"), ("instance_id", ids["gate"] + ".9", "not-known"),
              ("instance_id", step["machine"], "not-known"), ("instance_id", step["held"], "paused"),
              ("instance_id", step["hear"], "not-awaiting"), ("instance_id", ids["hear"] + ".2", "not-awaiting"),
              ("actor_ref", "bob", "forbidden"), ("actor_ref", " ", "invalid-request")]
    for verb in ("approve", "reject"):
        expect_order(web, causes, {"instance_id": step["gate"], "actor_ref": "ann"}, "/v1/steps/%%s/%s" % verb)
    web.expect(201, "PUT", "/v1/definitions/open", LATER)
    anybody = web.create(definition="open") + ".1"
    web.refused("invalid-request", "POST", "/v1/steps/%s/approve" % anybody, {"actor_ref": " "})
    web.expect(200, "POST", "/v1/steps/%s/approve" % anybody)


def test_the_first_cause_of_a_refused_pause_amend_or_redrive_is_its_token(shell):
    web, ids = flows(shell)
    common = [("instance_id", " ", "invalid-request"), ("colour", 1, "invalid-request"), ("actor_ref", 5, "invalid-request"),
              ("instance_id", UNKNOWN, "not-known")]
    blank = [("actor_ref", " ", "invalid-request")]
    for verb in ("pause", "resume"):
        expect_order(web, common + [("instance_id", ids["ended"], "terminal")] + blank, {"instance_id": ids["held"]}, "/v1/instances/%%s/%s" % verb)
    web.expect(201, "PUT", "/v1/definitions/later", LATER)
    expect_order(web, common + [("instance_id", ids["ended"], "terminal"), ("definition", "nobody", "not-known"),
                                ("instance_id", ids["hear"], "conflict")] + blank,
                 {"instance_id": ids["gate"], "definition": "later"}, "/v1/instances/%s/amend")
    expect_order(web, common + [("instance_id", ids["gate"], "conflict")] + blank, {"instance_id": ids["ended"]}, "/v1/instances/%s/redrive")


def test_the_first_cause_of_a_refused_history_is_its_token(shell):
    web, ids = world(shell)
    causes = [("id", "%20", "invalid-request"), ("id", UNKNOWN, "not-known"), ("colour", "1", "invalid-query"),
              ("fired_at.after", PAST, "invalid-query"), ("action", "", "invalid-query"), ("actor_ref", "%20", "invalid-query"),
              ("sequence_from", "x", "invalid-query"), ("fired_after", "never", "invalid-query")]
    for token, spoilt in pairs(causes):
        call = dict({"id": ids["open"]}, **spoilt)
        query = "&".join("%s=%s" % item for item in call.items() if item[0] != "id")
        reply = web.get("/v1/instances/%s/history?%s" % (call["id"], query))
        assert reply.reason == token, "expected %s for %s, found %r" % (token, spoilt, reply)
    expect_untouched(web, ids)


def test_the_tables_begin_with_calls_that_are_right(shell):
    """Else every refusal above would prove nothing."""
    web, ids = world(shell)
    web.expect(200, "POST", "/v1/instances/%s/fire" % ids["open"], {"action": "note", "reason": "due", "guard_satisfied": True})
    web.expect(200, "GET", "/v1/instances/%s/history" % ids["open"])
    web.expect(200, "POST", "/v1/instances/%s/cancel" % ids["open"], {})
    web.expect(201, "POST", "/v1/instances", json.dumps({"declaration": MACHINE}))
    web.expect(201, "POST", "/v1/instances", {"definition": "priority"})


harness.main(globals())
