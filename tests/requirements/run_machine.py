"""Seed 003, the machine: the lines of docs/internals/requirements.md part D that a guarantee can be told of, over
HTTP. What is told elsewhere is found by tests/house/run_citations.py."""
import itertools
import json
import tempfile

from one_server import Machine, Web, harness, machine, main, transition

LAMP = machine(["off", "on"], [("off", "press", "on"), ("on", "press", "off")])
BATCH = machine(["sampled", "testing", "released", "rejected"],
                [("sampled", "begin-testing", "testing"), transition("testing", "release", "released", guard="QP-sign-off"),
                 ("testing", "reject-batch", "rejected")], ["released", "rejected"])
ORDER = machine(["draft", "submitted", "approved", "fulfilled"],
                [("draft", "submit", "submitted"), ("submitted", "approve", "approved"), ("approved", "fulfil", "fulfilled"),
                 ("submitted", "return", "draft")], ["fulfilled"])
UNKNOWN = "00000000ZZ0123456789ABCDEF"


def later(web, time, ms):
    """`time` and so many milliseconds, as the server would print it."""
    import datetime
    moment = datetime.datetime.fromisoformat(time.replace("Z", "+00:00")) + datetime.timedelta(milliseconds=ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (moment.microsecond // 1000)


# ---- store and identity ----

def test_stores_are_independent_and_an_id_belongs_to_one(web):
    """D1"""
    mine = Machine(web, declaration=LAMP)
    with tempfile.TemporaryDirectory(prefix="pawl-other-") as folder:
        shell = harness.Shell(folder)
        child, address = shell.serve()
        other = Web(address)
        theirs = Machine(other, declaration=LAMP)
        other.refused("not-known", "GET", "/v1/instances/" + mine.id)
        web.refused("not-known", "POST", theirs.base + "/fire", {"action": "press"})
        theirs.fire("press")
        assert mine.current() == "off" and theirs.current() == "on"
        assert [i["instance_id"] for i in other.get("/v1/instances").json["instances"]] == [theirs.id]
        shell.stop(child)


def test_ids_are_made_here_never_twice_and_later_ones_sort_later(web):
    """D2"""
    ids = [Machine(web, declaration=LAMP).id for _ in range(20)]
    assert ids == sorted(ids, key=str.encode) and len(set(ids)) == 20 and all(len(i) == 26 for i in ids)
    web.refused("invalid-request", "POST", "/v1/instances", {"declaration": LAMP, "instance_id": ids[0]})


def test_a_transition_id_is_unique_in_its_instance_and_stays(web):
    """D3"""
    lamp = Machine(web, declaration=LAMP)
    told = [lamp.fire("press")["transition_id"] for _ in range(12)]
    assert len(set(told)) == 12 and all(told)
    assert [e["transition_id"] for e in lamp.history()] == told
    lamp.fire("press")
    assert [e["transition_id"] for e in lamp.history()][:12] == told
    assert [e["sequence_number"] for e in lamp.history("?transition_id=" + told[4])] == [5]


def test_a_subject_is_any_text_shared_by_many_and_fixed_at_creation(web):
    """D4"""
    subject = "https://example.com/\u00fc?q=1 \u2603 no such thing"
    first, second = (Machine(web, declaration=LAMP, subject_ref=subject) for _ in range(2))
    first.fire("press", actor_ref="ann")
    assert first.get()["subject_ref"] == second.get()["subject_ref"] == subject
    assert Machine(web, declaration=LAMP).get()["subject_ref"] is None
    web.refused("invalid-request", "POST", "/v1/instances", {"declaration": LAMP, "subject_ref": " \t"})
    first.refused("invalid-request", "press", subject_ref="other")


def test_metadata_is_kept_as_it_was_given_and_never_empty(web):
    """D5"""
    for text in ('{"b": 1.50, "a": [null, {"x":"\\u00e9"}]}', '"word"', "[0]", "17", "false"):
        id = web.expect(201, "POST", "/v1/instances", '{"declaration": %s, "instance_metadata": %s}' % (json.dumps(LAMP), text)).json["instance_id"]
        assert ('"instance_metadata":%s' % text).encode() in web.get("/v1/instances/" + id).body, text
    for empty in ({}, "", []):
        web.refused("invalid-request", "POST", "/v1/instances", {"declaration": LAMP, "instance_metadata": empty})
    assert Machine(web, declaration=LAMP, instance_metadata=None).get()["instance_metadata"] is None


# ---- declaration ----

def test_a_declaration_with_any_defect_is_refused_and_nothing_is_stored(web):
    """D6, D7, D8, D9, D10, D11, D13"""
    before = len(web.get("/v1/instances?limit=1000").json["instances"])
    go = transition("a", "go", "b")
    good = {"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"], "transitions": [go]}
    defects = [{"states": []}, {"states": ["a", " "]}, {"states": ["a", "b", "a"]}, {"states": None}, {"transitions": None},
               {"transitions": [transition("a", "go", "c")]}, {"transitions": [transition("c", "go", "b")]},
               {"transitions": [transition("a", " ", "b")]}, {"transitions": [transition("a", "", "b")]},
               {"transitions": [{**go, "guard": " "}]}, {"transitions": [{**go, "guard": ""}]}, {"transitions": [go, go]},
               {"transitions": [go, transition("a", "go", "a")]}, {"transitions": [go, {**go, "guard": "g"}]},
               {"initial_state": "c"}, {"initial_state": "b"}, {"initial_state": "A"}, {"initial_state": "a "},
               {"terminal_states": ["c"]}, {"transitions": [transition("b", "go", "a")]},
               {"transitions": [transition("*", "go", "b")]}]
    for defect in defects:
        web.refused("invalid-declaration", "POST", "/v1/instances", {"declaration": {**good, **defect}})
    for key in ("states", "initial_state", "transitions"):
        web.refused("invalid-declaration", "POST", "/v1/instances", {"declaration": {k: v for k, v in good.items() if k != key}})
    assert len(web.get("/v1/instances?limit=1000").json["instances"]) == before
    loops = machine(["a", "b", "island"], [("a", "again", "a"), ("a", "go", "b"), ("b", "go", "a"), ("island", "go", "island")])
    for fine in (good, {**good, "transitions": []}, {**good, "terminal_states": [], "transitions": []}, loops,
                 {**good, "states": ["a", "b", "A", "a "]}):
        Machine(web, declaration=fine)


def test_a_declaration_is_read_back_as_it_was_supplied_whatever_was_fired(web):
    """D12, D34"""
    text = '{ "x-extra" : {"deep":[1.0,1e2]},\n\t"transitions":[{"to_state":"on","action":"press","from_state":"off","note":"n"}],"states":["on","off"],"initial_state":"off" ,"terminal_states":[]}'
    id = web.expect(201, "POST", "/v1/instances", '{"declaration":%s}' % text).json["instance_id"]
    for _ in range(2):
        assert web.get("/v1/instances/%s/declaration" % id).body.decode() == text
        web.ask("POST", "/v1/instances/%s/fire" % id, {"action": "press"})
    web.refused("invalid-request", "GET", "/v1/instances/%20/declaration")
    web.refused("not-known", "GET", "/v1/instances/%s/declaration" % UNKNOWN)


# ---- instantiate ----

def test_the_time_of_creation_is_now_or_earlier_never_later(web):
    """D15: the clock of this server stands still, so that `now` is exact"""
    now = Machine(web, declaration=LAMP).get()["instantiated_at"]
    assert Machine(web, declaration=LAMP, instantiated_at=now).get()["instantiated_at"] == now
    assert Machine(web, declaration=LAMP, instantiated_at="1999-12-31T23:59:59.999Z").get()["instantiated_at"] == "1999-12-31T23:59:59.999Z"
    web.refused("invalid-request", "POST", "/v1/instances", {"declaration": LAMP, "instantiated_at": later(web, now, 1)})


def test_a_fresh_instance_stands_in_its_initial_state_with_an_empty_history(web):
    """D16"""
    lamp = Machine(web, declaration=LAMP)
    assert lamp.made["current_state"] == lamp.current() == "off"
    assert lamp.get()["next_sequence_number"] == 1 and lamp.history() == []


# ---- fire ----

def test_a_fire_may_be_dated_back_to_the_creation_and_no_further(web):
    """D19: no order is asked between the times of entries"""
    lamp = Machine(web, declaration=LAMP)
    born = lamp.get()["instantiated_at"]
    lamp.fire("press", fired_at=born)
    lamp.refused("invalid-request", "press", fired_at=later(web, born, -1))
    lamp.refused("invalid-request", "press", fired_at=later(web, born, 1))
    web.expect(200, "POST", "/v1/test/advance", {"by": "10s"})
    lamp.fire("press", fired_at=later(web, born, 7000))
    lamp.fire("press", fired_at=later(web, born, 3000))
    lamp.fire("press")
    lamp.refused("invalid-request", "press", fired_at=later(web, born, 10001))
    assert [e["fired_at"] for e in lamp.history()] == [later(web, born, ms) for ms in (0, 7000, 3000, 10000)]


def test_a_guard_is_satisfied_by_true_alone_and_asked_only_where_declared(web):
    """D20, D21"""
    batch = Machine(web, declaration=BATCH)
    batch.fire("begin-testing", guard_satisfied=True)
    for value in (False, None, "true", 1, [], {}):
        batch.refused("guard-not-satisfied", "release", guard_satisfied=value)
    batch.refused("guard-not-satisfied", "release")
    batch.fire("release", guard_satisfied=True)
    assert ["guard_satisfied" in e for e in batch.history()] == [False, True]


def test_an_accepted_fire_is_one_whole_entry(web):
    """D22, D39"""
    lamp = Machine(web, declaration=LAMP)
    seen = []
    for number, actor in ((1, "ann"), (2, None), (3, "bob")):
        told = lamp.fire("press", actor_ref=actor)
        entries = lamp.history()
        assert entries[:-1] == seen, "what was there is still there"
        entry, seen = entries[-1], entries
        assert told == {"new_state": entry["to_state"], "sequence_number": number, "transition_id": entry["transition_id"]}
        assert set(entry) == {"transition_id", "sequence_number", "from_state", "to_state", "action", "fired_at", "recorded_at", "hash"} | ({"actor_ref"} if actor else set())
        assert lamp.get()["next_sequence_number"] == number + 1 and lamp.current() == entry["to_state"]


def test_the_same_fire_twice_is_two_entries_or_a_rejection(web):
    """D25, D26"""
    counter = Machine(web, declaration=machine(["a", "end"], [("a", "count", "a"), ("a", "stop", "end")], ["end"]))
    for _ in range(2):
        counter.fire("count", actor_ref="ann", payload={"same": 1})
    assert len(counter.history()) == 2
    for name in ("*", "Count", "count ", "coun", "end", "stop\u200b"):
        counter.refused("invalid-transition", name)
    counter.fire("stop")
    for name in ("stop", "count", "reopen", "*"):
        counter.refused("terminal", name)


def test_an_actor_is_supplied_or_not_and_never_blank(web):
    """D27, D33, X16"""
    lamp = Machine(web, declaration=LAMP)
    lamp.fire("press")
    lamp.fire("press", actor_ref=None)
    lamp.fire("press", actor_ref="")
    lamp.fire("press", actor_ref="null")
    for blank in (" ", "\t\n", 5, [], {}, True):
        lamp.refused("invalid-request", "press", actor_ref=blank)
    assert [e.get("actor_ref") for e in lamp.history()] == [None, None, None, "null"]
    assert [e["sequence_number"] for e in lamp.history("?actor_ref=null")] == [4]


# ---- reading ----

def test_reading_changes_nothing_and_is_refused_by_the_same_words(web):
    """D28, A35: without asking the instance anything"""
    lamp = Machine(web, declaration=LAMP)
    before = lamp.get()
    for _ in range(3):
        assert lamp.current() == "off" and lamp.history() == []
    assert lamp.get() == before
    for what in ("current", "history", "declaration"):
        web.refused("invalid-request", "GET", "/v1/instances/%%20/%s" % what)
        web.refused("not-known", "GET", "/v1/instances/%s/%s" % (UNKNOWN, what))


AXES = {"action": ["press", "hold", "none"], "from_state": ["off", "on"], "to_state": ["on", "nowhere"], "actor_ref": ["ann", "bob"],
        "sequence_from": [1, 4, 99], "sequence_to": [3, 6], "fired_after": [2, 9], "fired_before": [2, 5]}


def matches(entry, query, day):
    return all({"sequence_from": lambda v: entry["sequence_number"] >= v, "sequence_to": lambda v: entry["sequence_number"] <= v,
                "fired_after": lambda v: day[entry["sequence_number"]] >= v, "fired_before": lambda v: day[entry["sequence_number"]] <= v,
                }.get(key, lambda v, key=key: entry.get(key) == v)(value) for key, value in query.items())


def test_filters_are_anded_and_ranges_include_their_ends(web):
    """D30, D32, D33, D29: every pair of axes, and all of them, against a filter of our own"""
    lamp = Machine(web, declaration=machine(["off", "on"], [("off", "press", "on"), ("on", "press", "off"), ("on", "hold", "on")]),
                   instantiated_at="2026-01-01T00:00:00Z")
    day = dict(zip(range(1, 9), (1, 2, 2, 5, 4, 9, 9, 3)))
    for number, action, actor in zip(day, ("press", "hold", "press", "press", "hold", "hold", "press", "press"),
                                     ("ann", None, "bob", "ann", "ann", None, "bob", "ann")):
        lamp.fire(action, actor_ref=actor, fired_at="2026-02-%02dT00:00:00Z" % day[number])
    everything = lamp.history()
    queries = [{a: x, b: y} for a, b in itertools.combinations(AXES, 2) for x in AXES[a] for y in AXES[b]]
    queries += [{a: x} for a in AXES for x in AXES[a]] + [{"action": "press", "from_state": "off", "to_state": "on", "actor_ref": "ann",
                "sequence_from": 1, "sequence_to": 8, "fired_after": 1, "fired_before": 9}, {}]
    for query in queries:
        text = "&".join("%s=%s" % (k, "2026-02-%02dT00:00:00Z" % v if k.startswith("fired") else v) for k, v in query.items())
        reversed_range = query.get("sequence_from", 0) > query.get("sequence_to", 99) or query.get("fired_after", 0) > query.get("fired_before", 99)
        if reversed_range:
            web.refused("invalid-query", "GET", lamp.base + "/history?" + text)
        else:
            assert lamp.history("?" + text) == [e for e in everything if matches(e, query, day)], query
    assert [e["sequence_number"] for e in lamp.history("?sequence_from=4&sequence_to=4")] == [4], "a single number is a range too"


# ---- as a whole ----

def check_from_records(records, declaration):
    """D41, checks 4 and 6, and D42's audit: from the entries and the declaration alone."""
    entries, current = records
    declared = {(t["from_state"], t["action"], t["to_state"]): t.get("guard") for t in declaration["transitions"]}
    stands = declaration["initial_state"]
    for number, entry in enumerate(entries, 1):
        triple = (entry["from_state"], entry["action"], entry["to_state"])
        assert entry["sequence_number"] == number and entry["from_state"] == stands, entry
        assert triple in declared and stands not in declaration["terminal_states"], entry
        assert ("guard_satisfied" in entry) == (declared[triple] is not None), entry
        stands = entry["to_state"]
    assert stands == current, (stands, current)


def test_every_terminal_state_absorbs_every_action(web):
    """D41: the six checks of acceptance"""
    kinds = {"done": "success", "failed": "failure", "gone": "cancel"}
    declaration = machine(["a", "b", *kinds], [("a", "go", "b"), ("b", "back", "a"), transition("b", "finish", "done", guard="sure"),
                          ("b", "break", "failed"), ("a", "leave", "gone")], kinds, kinds)
    text = json.dumps(declaration)
    for end, way in (("done", ["go", "finish"]), ("failed", ["go", "back", "go", "break"]), ("gone", ["leave"])):
        one = Machine(web, declaration=declaration)
        one.refused("invalid-transition", "finish")
        assert one.current() == "a"
        for action in way:
            if action == "finish":
                one.refused("guard-not-satisfied", "finish")
            one.fire(action, guard_satisfied=action == "finish")
        assert one.current() == end and len(one.history()) == len(way)
        for action in ("go", "back", "finish", "break", "leave", "anything"):
            one.refused("terminal", action, guard_satisfied=True)
        check_from_records((one.history(), one.current()), declaration)
        assert json.loads(one.declaration()) == json.loads(text)


def test_the_audit_would_see_an_entry_that_was_never_declared(web):
    """D42, D45: a skipped state, a gap, a broken chain, an undeclared guard"""
    order = Machine(web, declaration=ORDER)
    for action in ("submit", "return", "submit", "approve", "fulfil"):
        order.fire(action)
    entries = order.history()
    check_from_records((entries, order.current()), ORDER)
    skip = entries[:3] + [{**entries[4], "sequence_number": 4, "from_state": "submitted"}]
    for forged in (skip, entries[1:], entries[:2] + entries[3:], [{**entries[0], "guard_satisfied": True}] + entries[1:],
                   entries + [{**entries[0], "sequence_number": 6, "from_state": "fulfilled"}], entries[:-1]):
        try:
            check_from_records((forged, order.current()), ORDER)
        except AssertionError:
            continue
        raise RuntimeError("nobody noticed: %s" % forged)


def test_a_disputed_skip_can_not_have_happened(web):
    """D42: nobody gets from submitted to fulfilled without an approval"""
    order = Machine(web, declaration=ORDER)
    order.fire("submit")
    assert "approve" in order.refused("invalid-transition", "fulfil").json["detail"]
    order.fire("approve", actor_ref="boss")
    order.fire("fulfil")
    assert [e["actor_ref"] for e in order.history("?to_state=approved")] == ["boss"]


def test_an_incident_window_includes_both_its_ends(web):
    """D42"""
    lamp = Machine(web, declaration=LAMP, instantiated_at="2026-04-01T00:00:00Z")
    for time in ("2026-04-30T23:59:59.999Z", "2026-05-01T00:00:00Z", "2026-05-02T12:00:00Z", "2026-05-03T23:59:59Z", "2026-05-03T23:59:59.001Z"):
        lamp.fire("press", fired_at=time)
    window = "?fired_after=2026-05-01T00:00:00Z&fired_before=2026-05-03T23:59:59Z"
    assert [e["sequence_number"] for e in lamp.history(window)] == [2, 3, 4]
    assert Machine(web, declaration=LAMP).history(window) == []


def test_the_examples_of_the_seed_behave_as_it_says(web):
    """D43"""
    three = {**BATCH, "states": ["sampled", "testing", "released"]}
    web.refused("invalid-declaration", "POST", "/v1/instances", {"declaration": three})
    batch, other = Machine(web, declaration=BATCH, actor_ref="lab"), Machine(web, declaration=BATCH)
    assert batch.fire("begin-testing", actor_ref="lab")["new_state"] == "testing"
    batch.refused("guard-not-satisfied", "release", actor_ref="qp")
    assert batch.fire("release", actor_ref="qp", guard_satisfied=True)["new_state"] == "released"
    batch.refused("terminal", "begin-testing")
    assert [(e["sequence_number"], e["action"]) for e in batch.history()] == [(1, "begin-testing"), (2, "release")]
    assert other.current() == "sampled" and other.history() == [], "instances are independent"
    Machine(web, declaration=ORDER).refused("invalid-transition", "approve")
    change = Machine(web, declaration=machine(["open", "merged"], [transition("open", "merge", "merged", guard="two-approver-sign-off")], ["merged"]))
    change.refused("guard-not-satisfied", "merge")
    change.fire("merge", guard_satisfied=True)
    web.refused("invalid-declaration", "POST", "/v1/instances", {"declaration": machine(
        ["pending", "yes", "no"], [("pending", "decide", "yes"), ("pending", "decide", "no")], ["yes", "no"])})
    other.refused("invalid-request", " ")


def test_the_lifecycle_of_a_fhir_task_can_be_declared(web):
    """D44"""
    ends = {"completed": "success", "failed": "failure", "cancelled": "cancel", "rejected": "failure"}
    ways = [("requested", "accept", "accepted"), ("requested", "reject", "rejected"), ("accepted", "start", "in-progress"),
            ("in-progress", "complete", "completed"), ("in-progress", "fail", "failed")]
    ways += [(state, "cancel", "cancelled") for state in ("requested", "accepted", "in-progress")]
    declaration = machine(["requested", "accepted", "in-progress", *ends], ways, ends, ends)
    for way, end in ((["accept", "start", "complete"], "completed"), (["accept", "start", "fail"], "failed"),
                     (["accept", "cancel"], "cancelled"), (["reject"], "rejected")):
        task = Machine(web, declaration=declaration, subject_ref="Patient/7")
        for action in way:
            task.fire(action)
        assert task.current() == end and task.get()["terminal_kind"] == ends[end]
        check_from_records((task.history(), task.current()), declaration)


main(globals())
