"""Limits: how many calls or instances work at once, how many begin in a time, and who is first; through kills of the server too."""
import concurrent.futures
import json
import signal

from run_cancel import verify_twice
from run_flows import server, yaml
from run_timers import advance
from web import harness

ONE = "steps: {work: {tool: call, args: {n: \"{{input.n}}\"}%s, done: true}}"
LIMITED = {"step-places": ONE % ", concurrency: {max: 1}", "places": "concurrency: {max: 1}\n" + ONE % "",
           "step-rate": ONE % ", rate: {max: 1, per: 1h}", "rate": "rate: {max: 1, per: 1h}\n" + ONE % ""}


def start(web, name, count=1, **values):
    return [web.create(definition=name, input=dict(values, n=n)) for n in range(count)]


def claim(web, most=100, tools=("call",), **more):
    body = {"tools": list(tools), "worker": "w/1", "max": most, **more}
    return web.expect(200, "POST", "/v1/steps/claim", body).json["steps"]


def end(web, step, how="complete", **body):
    body = body or {"result": 1}
    return web.expect(200, "POST", "/v1/steps/%s/%s" % (step["step_id"], how), dict(body, lease=step["lease"]))


def of(steps):
    return [step["instance_id"] for step in steps]


def test_no_more_calls_of_a_step_are_under_way_than_it_allows(shell):
    child, web = server(shell)
    yaml(web, "flow", ONE % ", concurrency: {max: 2}")
    ids = start(web, "flow", 5)
    first = claim(web)
    assert of(first) == ids[:2], "the oldest"
    assert claim(web) == []
    end(web, first[0])
    second = claim(web)
    assert of(second) == ids[2:3] and claim(web) == []
    end(web, first[1], "fail", error="no", retry=False)
    end(web, second[0])
    assert of(claim(web)) == ids[3:]
    shell.stop(child)


def test_a_place_is_free_again_after_a_cancel_a_lost_lease_and_a_retry(shell):
    child, web = server(shell, "--test")
    yaml(web, "flow", ONE % ", concurrency: {max: 1}, retry: {max: 2, backoff: [1h]}")
    ids = start(web, "flow", 4)
    (held,) = claim(web)
    web.expect(200, "POST", "/v1/instances/%s/cancel" % held["instance_id"], {"actor_ref": "ann"})
    (held,) = claim(web, lease="10s")
    assert held["instance_id"] == ids[1]
    advance(web, "11s")
    (held,) = claim(web)
    assert held["instance_id"] == ids[2], "the second waits for its next attempt, and holds nothing meanwhile"
    end(web, held, "fail", error="busy")
    assert of(claim(web)) == ids[3:]
    shell.stop(child)


def test_each_key_has_places_of_its_own_and_one_backlog_is_in_no_other_way(shell):
    child, web = server(shell)
    yaml(web, "flow", ONE % ", concurrency: {max: 1, key: \"{{input.who}}\"}")
    start(web, "flow", 50, who="much")
    others = [start(web, "flow", 1, who=who)[0] for who in ("ann", "bob", 7)]
    steps = claim(web)
    assert len(steps) == 4 and of(steps)[1:] == others, "one of the fifty, and each of the others"
    shell.stop(child)


def waits(web, keys):
    """One worker with four hands: after how many of its rounds each key's only instance has been served."""
    lines = [{"operation": "instance.create", "input": {"definition": "flow", "input": {"n": 0, "who": who}}} for who in keys]
    reply = web.expect(200, "POST", "/v1/batch", "\n".join(json.dumps(line) for line in lines), {"Content-Type": "application/x-ndjson"})
    ids = {json.loads(line)["body"]["instance_id"]: who for line, who in zip(reply.body.splitlines(), keys)}
    served, rounds = {}, 0
    while len(served) < len(set(keys) - {"much"}):
        rounds += 1
        for step in claim(web, 4):
            if ids[step["instance_id"]] != "much":
                served[ids[step["instance_id"]]] = rounds
            end(web, step)
    return sorted(served.values())


def test_of_a_hundred_keys_one_with_a_thousand_times_the_load_doubles_no_wait_of_the_others(shell):
    child, web = server(shell)
    yaml(web, "flow", ONE % ", concurrency: {max: 1, key: \"{{input.who}}\"}")
    keys = ["k%d" % n for n in range(99)]
    alone = waits(web, keys)
    beside = waits(web, ["much"] * 1000 + keys)
    assert beside[-2] <= 2 * alone[-2], (alone[-1], beside[-1])  # p99
    shell.stop(child)


def test_an_instance_keeps_its_place_between_its_steps_until_it_ends(shell):
    child, web = server(shell)
    yaml(web, "flow", """concurrency: {max: 1, key: "{{input.who}}"}
steps:
  a: {tool: call, next: pay}
  pay: {wait: {signal: paid}, next: b}
  b: {tool: call, done: true}""")
    ids = start(web, "flow", 2, who="ann")
    (a,) = claim(web)
    end(web, a)
    assert claim(web) == [], "the first waits for its payment, and keeps its place"
    web.expect(202, "POST", "/v1/instances/%s/signals" % ids[0], {"name": "paid"})
    (b,) = claim(web)
    assert (b["instance_id"], b["name"]) == (ids[0], "b"), "not the second one's first step"
    end(web, b)
    assert of(claim(web)) == ids[1:]
    shell.stop(child)


def test_parallel_steps_of_an_instance_that_waits_begin_together(shell):
    child, web = server(shell)
    yaml(web, "flow", "{concurrency: {max: 1}, dopar: [{action: call, payload: {}}, {action: call, payload: {}}, {action: call, payload: {}}]}")
    ids = start(web, "flow", 2)
    held = claim(web)
    assert of(held) == [ids[0]] * 3 and claim(web) == []
    for step in held:
        end(web, step)
    assert of(claim(web)) == [ids[1]] * 3
    shell.stop(child)


def test_no_more_calls_begin_in_any_span_than_the_rate_allows(shell):
    child, web = server(shell, "--test")
    yaml(web, "flow", ONE % ", rate: {max: 3, per: 1m}")
    ids = start(web, "flow", 7)
    assert of(claim(web)) == ids[:3]
    advance(web, "59s")
    assert claim(web) == []
    advance(web, "1s")
    assert of(claim(web, 2)) == ids[3:5]
    advance(web, "30s")
    assert of(claim(web)) == ids[5:6], "the third of this minute"
    advance(web, "29s")
    assert claim(web) == []
    advance(web, "1s")
    assert of(claim(web)) == ids[6:]
    shell.stop(child)


def test_a_rate_of_a_flow_counts_instances(shell):
    child, web = server(shell, "--test")
    yaml(web, "flow", "{rate: {max: 1, per: 1h}, do: [{action: call, payload: {}}, {action: call, payload: {}}]}")
    ids = start(web, "flow", 2)
    for _ in range(2):
        (step,) = claim(web)
        assert step["instance_id"] == ids[0]
        end(web, step)
    assert claim(web) == []
    advance(web, "1h")
    assert of(claim(web)) == ids[1:]
    shell.stop(child)


def test_a_tool_has_limits_for_all_flows_together(shell):
    (shell.folder / "pawl.yaml").write_text("tools: {call: {concurrency: {max: 2}, rate: {max: 3, per: 1m}}}\n")
    child, web = server(shell, "--test", "--config", str(shell.folder / "pawl.yaml"))
    for name in ("one", "two"):
        yaml(web, name, ONE % "")
    ids = start(web, "one", 2) + start(web, "two", 2)
    held = claim(web)
    assert of(held) == ids[:2] and claim(web) == []
    for step in held:
        end(web, step)
    (third,) = claim(web)
    assert third["instance_id"] == ids[2]
    end(web, third)
    assert claim(web) == [], "three have begun in this minute"
    advance(web, "1m")
    assert of(claim(web)) == ids[3:]
    shell.stop(child)


def test_what_is_under_way_and_what_began_lately_is_counted_after_a_kill(shell):
    child, web = server(shell, "--test")
    yaml(web, "once", ONE % ", concurrency: {max: 2}")
    yaml(web, "whole", "{concurrency: {max: 1}, do: [{action: call, payload: {}}, {wait: {signal: go}}, {action: call, payload: {}}]}")
    yaml(web, "slow", ONE % ", rate: {max: 2, per: 1h}")
    once, whole, slow = start(web, "once", 3), start(web, "whole", 2), start(web, "slow", 3)
    held = {step["instance_id"]: step for step in claim(web, lease="2h")}
    assert sorted(held) == sorted(once[:2] + whole[:1] + slow[:2])
    end(web, held[whole[0]])
    end(web, held[slow[0]])
    advance(web, "50m")
    shell.stop(child, signal.SIGKILL, expect=None)
    child, web = server(shell, "--test")
    assert claim(web) == [], "two calls, an instance that waits for its signal, and two starts of this hour"
    end(web, held[once[1]])
    assert of(claim(web, lease="2h")) == once[2:]
    web.expect(202, "POST", "/v1/instances/%s/signals" % whole[0], {"name": "go"})
    (step,) = claim(web)
    assert step["instance_id"] == whole[0]
    end(web, step)
    assert of(claim(web)) == whole[1:]
    advance(web, "11m")
    assert of(claim(web)) == slow[2:]
    shell.stop(child)


def test_of_the_steps_that_wait_those_of_the_highest_priority_are_first(shell):
    child, web = server(shell)
    yaml(web, "flow", "priority: \"{{input.urgency}}\"\n" + ONE % "")
    yaml(web, "last", ONE % ", priority: -1")
    low = start(web, "last") + start(web, "flow", urgency=0)
    high, higher = start(web, "flow", urgency=1)[0], start(web, "flow", urgency=9)[0]
    none = start(web, "flow", urgency="what")[0]
    assert of(claim(web)) == [higher, high, low[1], none, low[0]]
    shell.stop(child)


def test_priorities_hold_among_those_that_wait_for_a_place_and_after_a_kill(shell):
    child, web = server(shell)
    yaml(web, "flow", ONE % ", concurrency: {max: 1}, priority: \"{{input.urgency}}\"")
    first = start(web, "flow", urgency=0)
    (held,) = claim(web)
    assert of([held]) == first
    ids = [start(web, "flow", urgency=urgency)[0] for urgency in (1, 3, 2)]
    assert claim(web) == []
    end(web, held)
    (held,) = claim(web)
    assert held["instance_id"] == ids[1]
    shell.stop(child, signal.SIGKILL, expect=None)
    child, web = server(shell)
    assert claim(web) == []
    end(web, held)
    (held,) = claim(web)
    assert held["instance_id"] == ids[2]
    shell.stop(child)


def test_tools_of_the_server_itself_have_limits_too(shell):
    child, web = server(shell, "--test")
    yaml(web, "flow", "steps: {say: {tool: log, args: {message: hi}, rate: {max: 2, per: 1m}, done: true}}")
    ids = start(web, "flow", 5)
    done = lambda: [web.get("/v1/instances/" + one).json["status"] for one in ids].count("completed")  # noqa: E731
    shell.wait_for(lambda: done() == 2)
    advance(web, "1m")
    assert done() == 4
    advance(web, "1m")
    assert done() == 5
    shell.stop(child)


def test_why_names_the_limit_that_a_step_waits_for(shell):
    child, web = server(shell)
    yaml(web, "flow", ONE % ", concurrency: {max: 1, key: \"{{input.who}}\"}")
    ids = start(web, "flow", 2, who="ann")
    claim(web)
    (waits,) = web.get("/v1/instances/%s/why" % ids[1]).json["waiting_for"]
    assert waits["limit"] == {"limit": "concurrency", "definition": "flow", "step": "work", "key": "ann", "max": 1}, waits
    assert "limit" not in web.get("/v1/instances/%s/why" % ids[0]).json["waiting_for"][0]
    out = shell.pawl("why", ids[1]).out
    assert "concurrency" in out and "ann" in out, out
    shell.stop(child)


BOX = {"name": "box", "states": ["open", "shut"], "initial_state": "open", "terminal_states": ["shut"],
       "terminal_kinds": {"shut": "success"}, "transitions": [{"from_state": "open", "action": "shut", "to_state": "shut"}]}


def once(web, name, subject, status, key=None, **more):
    headers = {"Idempotency-Key": key} if key else None
    body = {"definition": name, "subject_ref": subject, "singleton": True, **more}
    reply = web.expect(status, "POST", "/v1/instances", body, headers).json
    assert reply.get("existing", False) == (status == 200), reply
    return reply["instance_id"]


def test_a_singleton_is_created_once_and_again_when_it_has_ended(shell):
    child, web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/box", BOX)
    yaml(web, "flow", ONE % "")
    box = once(web, "box", "A-1", 201)
    assert once(web, "box", "A-1", 200) == box and once(web, "box@1", "A-1", 200) == box
    others = {once(web, "box", "A-2", 201), once(web, "flow", "A-1", 201, input={"n": 1}), web.create(definition="box", subject_ref="A-1")}
    assert len(others | {box}) == 4, "another subject, another definition, and one that does not ask"
    web.expect(200, "POST", "/v1/instances/%s/fire" % box, {"action": "shut"})
    found = once(web, "box", "A-1", 200)
    assert found in others, "the one that was created beside it has not ended"
    web.expect(200, "POST", "/v1/instances/%s/fire" % found, {"action": "shut"})
    assert once(web, "box", "A-1", 201) not in others | {box}
    for body in ({"definition": "box", "singleton": True}, {"declaration": BOX, "subject_ref": "A-1", "singleton": True}):
        assert "expected both" in web.refused("invalid-request", "POST", "/v1/instances", body).json["detail"]
    shell.stop(child)


def test_racing_calls_get_one_singleton_and_a_key_the_answer_that_it_had(shell):
    child, web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/box", BOX)
    lines = [{"operation": "instance.create", "input": {"definition": "box", "subject_ref": "A-%d" % (n % 7), "singleton": True}} for n in range(200)]
    reply = web.expect(200, "POST", "/v1/batch", "\n".join(json.dumps(line) for line in lines), {"Content-Type": "application/x-ndjson"})
    assert reply.body.count(b'"existing":true') == 193, reply
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda n: web.post("/v1/instances", {"definition": "box", "subject_ref": "B", "singleton": True}), range(64)))
    assert sorted(reply.status for reply in replies) == [200] * 63 + [201]
    assert len({reply.json["instance_id"] for reply in replies}) == 1
    box = once(web, "box", "B", 200, key="one")
    web.expect(200, "POST", "/v1/instances/%s/fire" % box, {"action": "shut"})
    shell.stop(child, signal.SIGKILL, expect=None)
    child, web = server(shell)
    assert once(web, "box", "B", 200, key="one") == box, "the answer of its key"
    assert once(web, "box", "B", 201) != box
    shell.stop(child)
    assert shell.pawl("verify").code == 0


def test_a_signal_with_start_reaches_the_one_instance_and_creates_it_first(shell):
    child, web = server(shell)
    yaml(web, "cart", """signals: {add: {buffer: true}}
steps:
  first: {wait: {signal: add}, next: second}
  second: {wait: {signal: add}, done: true}""")
    call = {"name": "add", "payload": 1, "definition": "cart", "subject_ref": "ann", "input": {"shop": 1}, "labels": {"a": "b"}}
    first = web.expect(202, "POST", "/v1/signals/start", call).json
    assert (first["existing"], first["delivered"]) == (False, 1), first
    assert web.get("/v1/instances/" + first["instance_id"]).json["labels"] == {"a": "b"}
    second = web.expect(202, "POST", "/v1/signals/start", dict(call, payload=2), {"Idempotency-Key": "k"}).json
    assert second["instance_id"] == first["instance_id"] and second["existing"]
    assert web.expect(202, "POST", "/v1/signals/start", dict(call, payload=2), {"Idempotency-Key": "k"}).json == second
    assert web.get("/v1/instances/" + first["instance_id"]).json["result"] == 2
    third = web.expect(202, "POST", "/v1/signals/start", call).json
    assert third["instance_id"] != first["instance_id"] and not third["existing"], "the first has ended"
    assert shell.pawl("signal-start", "cart", "add", "--subject", "bob").code == 0
    assert [one["subject_ref"] for one in web.get("/v1/instances?definition=cart").json["instances"]] == ["bob", "ann", "ann"]
    web.refused("invalid-request", "POST", "/v1/signals/start", {"name": "add", "definition": "cart", "subject_ref": " "})
    web.refused("not-known", "POST", "/v1/signals/start", {"name": "add", "definition": "none", "subject_ref": "x"})
    web.refused("not-awaiting", "POST", "/v1/signals/start", {"name": "other", "definition": "cart", "subject_ref": "ann"})
    shell.stop(child)


def test_what_no_worker_takes_yet_has_not_begun_and_holds_no_place(shell):
    child, web = server(shell, "--test")
    for name, limit in (("places", "concurrency: {max: 1}"), ("rated", "rate: {max: 1, per: 1m}")):
        yaml(web, name, "steps: {a: {tool: first, next: b}, b: {tool: call, %s, done: true}}" % limit)
        ids = start(web, name, 2)
        for step in claim(web, tools=("first",)):
            end(web, step)
        web.expect(200, "POST", "/v1/instances/%s/pause" % ids[0], {"actor_ref": "ann"})
        advance(web, "10m")
        assert of(claim(web, lease="1h")) == ids[1:], "the first has a ready step that nobody runs"
        web.expect(200, "POST", "/v1/instances/%s/resume" % ids[0], {"actor_ref": "ann"})
        assert claim(web) == [], "ten minutes of waiting were no beginning"
    shell.stop(child)


def test_one_that_is_paused_while_it_waits_lets_the_others_go_first(shell):
    child, web = server(shell, "--test")
    for name, text in LIMITED.items():
        yaml(web, name, text)
        ids = start(web, name, 3)
        (held,) = claim(web, lease="1h")
        assert claim(web) == []
        web.expect(200, "POST", "/v1/instances/%s/pause" % ids[1], {"actor_ref": "ann"})
        end(web, held)
        advance(web, "1h")
        (next_one,) = claim(web, lease="2h")
        assert next_one["instance_id"] == ids[2], name
        web.expect(200, "POST", "/v1/instances/%s/resume" % ids[1], {"actor_ref": "ann"})
        assert claim(web) == []
        end(web, next_one)
        advance(web, "1h")
        (last,) = claim(web)
        assert last["instance_id"] == ids[1], name
        end(web, last)
    shell.stop(child)


def test_a_place_that_was_for_a_call_which_never_began_is_given_to_the_next(shell):
    child, web = server(shell, "--test")
    for name, limit in (("places", "concurrency: {max: 1}"), ("rated", "rate: {max: 1, per: 1m}")):
        yaml(web, name, limit + """
steps:
  a: {tool: call, wait_for_worker: 30s, done: true, on_error: w, retry: {max: 1}}
  w: {wait: {signal: go}, done: true}
""")
        ids = start(web, name, 3)
        (held,) = claim(web)
        assert held["instance_id"] == ids[0] and claim(web) == []
        end(web, held)
        advance(web, "2m")
        assert of(claim(web)) == [], "those that waited wait for their signal now"
        last = start(web, name, 1)
        assert of(claim(web)) == last, name
    shell.stop(child)


def test_an_amended_flow_has_the_limits_of_its_new_definition_and_its_old_place_is_free(shell):
    child, web = server(shell, "--test")
    yaml(web, "free", ONE % "")
    for name, text in LIMITED.items():
        yaml(web, name, text)
        ids = start(web, name, 2)
        (held,) = claim(web)
        assert claim(web) == []
        web.expect(200, "POST", "/v1/instances/%s/amend" % ids[1], {"definition": "free"})
        assert of(claim(web)) == ids[1:], name + ": the new one has no limit"
    for n in range(20):
        yaml(web, "key%d" % n, "{concurrency: {max: 1, key: \"%d-{{input.who}}\"}, steps: {work: {tool: call, next: work}}}" % n)
    one, other = start(web, "key0", 2, who="ann")
    found = claim(web)
    for n in range(1, 20):
        assert of(found) == [one], n
        end(web, found[0])
        web.expect(200, "POST", "/v1/instances/%s/amend" % one, {"definition": "key%d" % n})
        found = claim(web) + claim(web)
        if n == 1:
            assert sorted(of(found)) == [one, other], "it moved to the place of its new key"
            found = [step for step in found if step["instance_id"] == one]
    assert verify_twice(shell) == (True, True)
    shell.stop(child)


def test_a_newer_version_that_allows_more_lets_those_in_that_wait(shell):
    child, web = server(shell)
    for name, text in (("step", ONE % ", concurrency: {max: %d}"), ("whole", "concurrency: {max: %d}\n" + ONE % "")):
        yaml(web, name, text % 1)
        ids = start(web, name, 3)
        assert of(claim(web)) == ids[:1] and claim(web) == []
        yaml(web, name, text % 5)
        ids += start(web, name, 1)
        assert of(claim(web)) + of(claim(web)) == ids[1:]
    shell.stop(child)


def test_limits_that_say_nothing_or_could_change_are_refused_with_their_place(shell):
    child, web = server(shell)
    for text, words in (
            (ONE % ", concurrency: {key: \"{{input.n}}\"}", "needs 'max'"),
            (ONE % ", concurrency: {max: 0}", "1..1000000"),
            (ONE % ", concurrency: 5", "{max, key}"),
            (ONE % ", concurrency: {max: 1, key: \"{{context.n}}\"}", "{{input...}}"),
            (ONE % ", concurrency: {max: 1, key: ann}", "without a key all are counted together"),
            (ONE % ", rate: {max: 1}", "needs 'per'"),
            (ONE % ", rate: {max: 1, per: 2d}", "at most a day"),
            (ONE % ", rate: {max: 1, per: 1m, burst: 4}", "unknown key 'rate.burst'"),
            (ONE % ", priority: 1000", "-100..100"),
            (ONE % ", priority: high", "-100..100"),
            ("steps: {rest: {wait: {timer: 1h}, concurrency: {max: 1}, done: true}}", "for calls of a tool"),
            ("{concurrency: {max: -1}, do: [{action: call, payload: {}}]}", "1..1000000")):
        reply = web.refused("invalid-definition", "PUT", "/v1/definitions/bad", text, {"Content-Type": "application/yaml"})
        assert words in reply.json["detail"] and "line 1" in reply.json["detail"], (text, reply.json["detail"])
    shell.stop(child)


if __name__ == "__main__":
    harness.main(globals())
