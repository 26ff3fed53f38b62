"""What a transition of a machine starts (A9): once, in the commit of the entry, also after a death."""
import signal

from web import Web, harness

TESTS = {"name": "tests", "do": [{"action": "set", "payload": {"batch": "{{input.event.instance_id}}", "method": "{{input.method}}"}},
                                 {"name": "look", "external": True}]}
SWEEP = {"name": "sweep", "do": [{"action": "set", "payload": {"why": "{{input.event.reason}}"}}]}
BATCH = {"name": "batch", "states": ["sampled", "testing", "released", "aborted"], "initial_state": "sampled",
         "terminal_states": ["released", "aborted"], "terminal_kinds": {"released": "success", "aborted": "cancel"},
         "transitions": [
             {"from_state": "sampled", "action": "begin-testing", "to_state": "testing",
              "starts": {"definition": "tests", "input": {"method": "hplc"}}},
             {"from_state": "testing", "action": "release", "to_state": "released"},
             {"from_state": "*", "action": "abort", "to_state": "aborted", "starts": {"definition": "sweep@1"}}]}


def server(shell, *words):
    child, address = shell.serve(*words)
    web = Web(address)
    web.child = child
    for flow in (TESTS, SWEEP, BATCH):
        web.expect(201, "PUT", "/v1/definitions/" + flow["name"], flow)
    return web


def started(shell, web, definition, count=1):
    def found():
        return web.get("/v1/instances?definition=" + definition).json["instances"]
    shell.wait_for(lambda: len(found()) >= count)
    assert len(found()) == count, found()
    return found()


def test_a9_a_transition_starts_a_flow_which_is_told_what_has_happened(shell):
    web = server(shell)
    id = web.create(definition="batch", actor_ref="ann", subject_ref="B-7", correlation_id="C-1")
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "begin-testing", "actor_ref": "bob", "payload": {"lot": 1.50}})
    (flow,) = started(shell, web, "tests")
    whole = web.get("/v1/instances/" + flow["instance_id"]).json
    assert (whole["subject_ref"], whole["correlation_id"]) == ("B-7", "C-1"), whole
    assert whole["instance_metadata"] == {"started_by": {"instance_id": id, "sequence_number": 1}}
    assert whole["input"] == {"method": "hplc", "event": {
        "instance_id": id, "sequence_number": 1, "action": "begin-testing", "from_state": "sampled", "to_state": "testing",
        "actor_ref": "bob", "payload": {"lot": 1.5}}}
    steps = web.get("/v1/instances/%s/steps" % flow["instance_id"]).json["steps"]
    assert steps[0]["result"] == {"batch": id, "method": "hplc"}
    assert web.get("/v1/alarms").json["alarms"] == []
    assert web.get("/v1/instances/%s/current" % id).json["current_state"] == "testing"
    shell.stop(web.child)
    shell.pawl("verify")


def test_e25_what_a_test_instance_starts_is_one_too(shell):
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/tests", {"name": "tests", "do": [{"name": "nap", "wait": {"timer": "1ms"}}]})
    for is_test in (True, False):
        id = web.create(definition="batch", test=is_test)
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "begin-testing"})
    flows = [web.get("/v1/instances/" + flow["instance_id"]).json for flow in started(shell, web, "tests", 2)]
    real = next(flow["instance_id"] for flow in flows if flow["instance_metadata"]["started_by"]["instance_id"] == id)
    shell.wait_for(lambda: web.get("/v1/instances/" + real).json["status"] == "completed")
    (other,) = (flow["instance_id"] for flow in flows if flow["instance_id"] != real)
    web.expect(200, "POST", "/v1/test/instances/%s/timers/nap/fire" % other)
    shell.stop(web.child)


def test_a9_a_fire_that_is_refused_or_repeated_starts_nothing_more(shell):
    web = server(shell)
    id = web.create(definition="batch")
    path = "/v1/instances/%s/fire" % id
    assert web.post(path, {"action": "release"}).reason == "invalid-transition"
    for _ in range(3):
        web.expect(200, "POST", path, {"action": "begin-testing"}, {"Idempotency-Key": "one"})
    assert web.post(path, {"action": "begin-testing"}).reason == "invalid-transition"
    started(shell, web, "tests")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % id, {"reason": "spoilt"})
    (sweep,) = started(shell, web, "sweep")
    shell.wait_for(lambda: web.get("/v1/instances/" + sweep["instance_id"]).json["status"] == "completed")
    assert web.get("/v1/instances/%s/steps" % sweep["instance_id"]).json["steps"][0]["result"] == {"why": "spoilt"}
    started(shell, web, "tests")


def test_a9_what_was_to_be_started_is_started_once_after_a_death(shell):
    web = server(shell)
    ids = [web.create(definition="batch") for _ in range(20)]
    for id in ids:
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "begin-testing"})
    shell.stop(web.child, signal.SIGKILL, expect=-9)
    child, address = shell.serve()
    web = Web(address)
    flows = started(shell, web, "tests", 20)
    told = [web.get("/v1/instances/" + flow["instance_id"]).json["input"]["event"]["instance_id"] for flow in flows]
    assert sorted(told) == sorted(ids)
    shell.stop(child)
    shell.pawl("verify")


def test_a41_what_cannot_be_started_is_told_and_the_machine_stands_where_it_was_fired_to(shell):
    child, address = shell.serve("--log-format", "logfmt")
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/batch", BATCH)
    id = web.create(definition="batch")
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "begin-testing"})
    shell.wait_for(lambda: web.get("/v1/alarms").json["alarms"] == [])
    assert web.get("/v1/instances/%s/current" % id).json["current_state"] == "testing"
    child.send_signal(signal.SIGTERM)
    assert "no definition 'tests'" in child.communicate(timeout=60)[1].decode()


def test_a41_what_is_too_large_to_be_started_holds_up_nobody(shell):
    """Neither other starts nor timers: it would be too large the next time as well."""
    child, address = shell.serve()
    web = Web(address)
    nap = {"name": "nap", "do": [{"wait": {"timer": "1ms"}}]}
    for flow in (TESTS, SWEEP, BATCH, nap):
        web.expect(201, "PUT", "/v1/definitions/" + flow["name"], flow)
    large, small = (web.create(definition="batch") for _ in range(2))
    payload = "[%s]" % ",".join(["0"] * 500000)  # its nodes are what takes memory
    web.expect(200, "POST", "/v1/instances/%s/fire" % large, '{"action": "begin-testing", "payload": %s}' % payload)
    web.expect(200, "POST", "/v1/instances/%s/fire" % small, {"action": "begin-testing"})
    sleeper = web.create(definition="nap")
    (flow,) = started(shell, web, "tests")
    assert web.get("/v1/instances/" + flow["instance_id"]).json["instance_metadata"]["started_by"]["instance_id"] == small
    shell.wait_for(lambda: web.get("/v1/instances/" + sleeper).json["status"] == "completed")
    assert "alarm.refused: it takes more than 67108864 bytes" in shell.stop(child)[1]
    shell.pawl("verify")


def test_a_machine_whose_starts_are_wrong_is_refused_with_the_place(shell):
    web = server(shell)

    def put(starts):
        bad = dict(BATCH, transitions=[dict(BATCH["transitions"][0], starts=starts), BATCH["transitions"][1]])
        return web.expect(422, "PUT", "/v1/definitions/batch", bad).json["detail"]

    assert "expected {definition, input, on_end}, found a string" in put("tests")
    assert "found no 'definition'" in put({"input": {}})
    assert "expected name or name@version, found 'a b'" in put({"definition": "a b"})
    assert "expected name or name@version, found 'a@0'" in put({"definition": "a@0"})
    assert "'input': expected an object, found an array" in put({"definition": "a", "input": []})
    assert "'event' is filled in when it is started" in put({"definition": "a", "input": {"event": 1}})


# ---- the way back: on_end ----

ENDS = {"completed": "released", "failed": "spoilt", "cancelled": "dropped"}
LOT = {"name": "lot", "states": ["new", "testing", "good", "bad", "gone"], "initial_state": "new",
       "terminal_states": ["good", "bad", "gone"], "terminal_kinds": {"good": "success", "bad": "failure", "gone": "cancel"},
       "transitions": [
           {"from_state": "new", "action": "begin", "to_state": "testing",
            "starts": {"definition": "work", "on_end": ENDS}},
           {"from_state": "testing", "action": "released", "to_state": "good", "by": "engine"},
           {"from_state": "testing", "action": "spoilt", "to_state": "bad", "requires_reason": True},
           {"from_state": "testing", "action": "dropped", "to_state": "gone"},
           {"from_state": "testing", "action": "end", "to_state": "bad"}]}
GIVES = {"name": "work", "do": [{"action": "set", "idempotent": True, "retry": {"max": 9, "backoff": ["1ms"]}, "payload": {"ok": 1}, "augment": {"got": "ok"}}]}
FAILS = {"name": "work", "do": [{"tool": "fail", "payload": {"message": "no power"}}]}
LOOKS = {"name": "work", "do": [{"name": "look", "external": True}]}
CHILD = {"name": "work", "do": [{"spawn": {"definition": "deeper"}}]}
DEEPER = {"name": "deeper", "do": [{"tool": "fail", "payload": {"message": "no water"}}]}


def lots(shell, *flows, words=()):
    child, address = shell.serve(*words)
    web = Web(address)
    web.child = child
    for flow in flows + (LOT,):
        web.expect(201, "PUT", "/v1/definitions/" + flow["name"], flow)
    return web


def begin(web):
    id = web.create(definition="lot")
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "begin", "actor_ref": "ann"})
    return id


def ended(shell, web, id):
    shell.wait_for(lambda: web.get("/v1/instances/%s/current" % id).json["current_state"] != "testing")
    shell.wait_for(lambda: web.get("/v1/alarms").json["alarms"] == [])
    history = web.get("/v1/instances/%s/history" % id).json["entries"]
    assert len(history) == 2, history
    assert history[1]["actor_ref"] == "pawl/on_end", history[1]
    return history[1]


def test_what_was_started_tells_its_machine_of_its_result(shell):
    web = lots(shell, GIVES)
    id = begin(web)
    entry = ended(shell, web, id)
    (flow,) = started(shell, web, "work")
    assert entry["action"] == "released" and entry["reason"] == "what was started has completed", entry
    assert entry["payload"] == {"instance_id": flow["instance_id"], "status": "completed", "result": {"got": 1}}, entry
    assert web.post("/v1/instances/%s/fire" % begin(web), {"action": "released"}).reason == "invalid-transition", "by: engine"
    shell.stop(web.child)
    shell.pawl("verify")


def test_what_was_started_and_fails_below_its_children_tells_its_machine_of_the_error(shell):
    web = lots(shell, CHILD, DEEPER)
    entry = ended(shell, web, begin(web))
    assert entry["action"] == "spoilt" and entry["payload"]["status"] == "failed", entry
    assert entry["payload"]["error"]["reason"] == "child-failed", entry
    shell.stop(web.child)
    shell.pawl("verify")


def test_what_was_started_and_is_cancelled_tells_its_machine_so(shell):
    web = lots(shell, LOOKS)
    id = begin(web)
    (flow,) = started(shell, web, "work")
    web.expect(200, "POST", "/v1/instances/%s/cancel" % flow["instance_id"], {"reason": "not needed"})
    entry = ended(shell, web, id)
    assert entry["action"] == "dropped" and entry["payload"] == {
        "instance_id": flow["instance_id"], "status": "cancelled", "reason": "not needed"}, entry
    shell.stop(web.child)


def test_what_could_not_be_created_counts_as_failed(shell):
    web = lots(shell)
    entry = ended(shell, web, begin(web))
    assert entry["action"] == "spoilt" and entry["reason"] == "what was started could not be created", entry
    assert entry["payload"]["error"]["reason"] == "not-known" and "instance_id" not in entry["payload"], entry
    shell.stop(web.child)
    shell.pawl("verify")


def test_a_machine_that_is_started_tells_the_one_that_started_it(shell):
    machine = {"name": "work", "states": ["a", "z"], "initial_state": "a", "terminal_states": ["z"], "terminal_kinds": {"z": "success"},
               "transitions": [{"from_state": "a", "action": "go", "to_state": "z"}]}
    web = lots(shell, machine)
    id = begin(web)
    (other,) = started(shell, web, "work")
    web.expect(200, "POST", "/v1/instances/%s/fire" % other["instance_id"], {"action": "go", "payload": 7})
    assert ended(shell, web, id)["payload"] == {"instance_id": other["instance_id"], "status": "completed", "result": 7}
    shell.stop(web.child)
    shell.pawl("verify")


def test_an_end_for_which_no_action_is_legal_any_more_is_told_and_its_record_says_why(shell):
    child, address = shell.serve("--log-format", "logfmt")
    web = Web(address)
    for flow in (LOOKS, LOT):
        web.expect(201, "PUT", "/v1/definitions/" + flow["name"], flow)
    id = begin(web)
    (flow,) = started(shell, web, "work")
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "end"})
    (step,) = web.get("/v1/instances/%s/steps" % flow["instance_id"]).json["steps"]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"result": 5})
    shell.wait_for(lambda: web.get("/v1/alarms").json["alarms"] == [])
    assert web.get("/v1/instances/%s/current" % id).json["current_state"] == "bad"
    assert "alarm.refused: the instance has ended in 'bad'" in shell.stop(child)[1]
    shell.pawl("verify")


def test_a_machine_that_is_held_is_told_of_an_end_once_it_goes_on(shell):
    web = lots(shell, LOOKS)
    ids = [begin(web) for _ in range(3)]
    flows = {web.get("/v1/instances/" + flow["instance_id"]).json["instance_metadata"]["started_by"]["instance_id"]: flow["instance_id"]
             for flow in started(shell, web, "work", 3)}
    for id in ids[:2]:
        web.expect(200, "POST", "/v1/instances/%s/pause" % id, {})
    for id in ids:
        (step,) = web.get("/v1/instances/%s/steps" % flows[id]).json["steps"]
        web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"result": 5})
    shell.wait_for(lambda: web.get("/v1/instances/%s/current" % ids[2]).json["current_state"] == "good")  # holds up nobody
    assert len(web.get("/v1/alarms").json["alarms"]) == 2
    web.expect(200, "POST", "/v1/instances/%s/resume" % ids[0], {})
    shell.wait_for(lambda: web.get("/v1/instances/%s/current" % ids[0]).json["current_state"] == "good")
    assert web.get("/v1/instances/%s/current" % ids[1]).json["current_state"] == "testing"
    web.expect(200, "POST", "/v1/instances/%s/resume" % ids[1], {})
    ended(shell, web, ids[1])
    shell.stop(web.child)
    shell.pawl("verify")


def test_each_machine_is_told_once_though_the_server_dies_again_and_again(shell):
    web = lots(shell, GIVES)
    ids = []
    for _ in range(4):
        ids += [begin(web) for _ in range(8)]
        shell.stop(web.child, signal.SIGKILL, expect=-9)
        web.child, address = shell.serve()
        web.host = Web(address).host
    for id in ids:
        entry = ended(shell, web, id)
        assert entry["payload"].get("result") == {"got": 1}, entry
    shell.stop(web.child)
    shell.pawl("verify")


def test_nobody_can_be_told_by_metadata_that_only_say_they_were_started(shell):
    web = lots(shell, LOOKS)
    id = begin(web)
    started(shell, web, "work")
    web.expect(201, "PUT", "/v1/definitions/other", dict(GIVES, name="other"))
    web.create(definition="other", instance_metadata={"started_by": {"instance_id": id, "sequence_number": 1}})
    shell.wait_for(lambda: web.get("/v1/alarms").json["alarms"] == [])
    assert web.get("/v1/instances/%s/current" % id).json["current_state"] == "testing"
    shell.stop(web.child)


def test_on_end_is_checked_with_the_place(shell):
    web = lots(shell)

    def put(on_end, **more):
        bad = dict(LOT, transitions=[dict(LOT["transitions"][0], starts={"definition": "work", "on_end": on_end}, **more)] + LOT["transitions"][1:])
        return web.expect(422, "PUT", "/v1/definitions/lot", bad).json["detail"]

    assert "no transition of this machine has the action 'nope'" in put({"completed": "nope"})
    assert "expected {completed, failed, cancelled}, each an action, found a string" in put("released")
    assert "expected {completed, failed, cancelled}, each an action, found none" in put({})
    assert "did you mean 'cancelled'" in put({"canceled": "dropped"})
    assert "leads to 'bad', which is terminal" in put({"completed": "released"}, to_state="bad")
    assert "expected caller or engine, found ann" in put(ENDS, by="ann")
    guarded = dict(LOT, transitions=[LOT["transitions"][0], dict(LOT["transitions"][1], guard="g")] + LOT["transitions"][2:])
    assert "'released' from 'testing' has a guard" in web.expect(422, "PUT", "/v1/definitions/lot", guarded).json["detail"]


if __name__ == "__main__":
    harness.main(dict(globals()))
