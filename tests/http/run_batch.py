"""POST /v1/batch (DESIGN.md section 5, batch): lines in, lines out, in order."""
import json

from sse import Stream
from web import Web, harness

WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"],
         "terminal_kinds": {"off": "success"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"},
                         {"from_state": "on", "action": "stop", "to_state": "off"}]}


def server(shell, *words):
    child, address = shell.serve(*words)
    web = Web(address)
    web.child = child
    return web


def batch(web, lines, status=200):
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    reply = web.expect(status, "POST", "/v1/batch", text, {"Content-Type": "application/x-ndjson"})
    assert reply.headers["content-type"] == "application/x-ndjson", reply.headers
    return [json.loads(line) for line in reply.body.decode().splitlines()]


def fire(id, action="turn", **members):
    return {"operation": "instance.fire", "input": {"instance_id": id, "action": action, **members}}


def test_an_answer_that_has_no_room_beside_the_others_is_too_large_and_the_others_are_answered(shell):
    web = server(shell)
    ids = [web.create(declaration=WHEEL) for _ in range(3)]
    for id in ids[:2]:
        for _ in range(35):
            web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn", "payload": "x" * 1000000})
    history = [{"operation": "instance.history", "input": {"instance_id": id}} for id in ids]
    answers = batch(web, [fire(ids[2]), history[0], fire(ids[2]), history[1], fire(ids[2]), history[2]])
    assert [answer["status"] for answer in answers] == [200, 200, 200, 413, 200, 200], [answer["status"] for answer in answers]
    assert answers[3]["body"]["reason"] == "too-large" and "limit" in answers[3]["body"]["detail"], answers[3]
    assert [len(answers[at]["body"]["entries"]) for at in (1, 5)] == [35, 3]


def test_each_line_is_answered_as_it_would_be_alone(shell):
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/wheel", json.dumps(WHEEL))
    id = web.create(definition="wheel")
    answers = batch(web, [
        fire(id, actor_ref="ann", payload={"a": 1}), fire(id, "jump"), fire("nobody"), fire(id, " "), fire(id),
        {"operation": "instance.current", "input": {"instance_id": id}},
        {"operation": "instance.create", "input": {"definition": "wheel", "subject_ref": "s"}},
        {"operation": "instance.list", "input": {"subject_ref": "s", "limit": "1"}},
        {"operation": "definition.put", "input": {"name": "wheel", "text": json.dumps(WHEEL)}},
        {"operation": "instance.declaration", "input": {"instance_id": id}},
        {"operation": "health.get"},
        fire(id, "stop"), fire(id)])
    assert [a["status"] for a in answers] == [200, 409, 404, 400, 200, 200, 201, 200, 200, 200, 200, 200, 409], answers
    assert answers[0]["body"] == {"new_state": "on", "sequence_number": 1, "transition_id": id + "-1"}
    assert answers[1]["body"]["reason"] == "invalid-transition" and "jump" in answers[1]["body"]["detail"], answers[1]
    assert answers[2]["body"]["reason"] == "not-known" and "nobody" in answers[2]["body"]["detail"], answers[2]
    assert answers[5]["body"] == {"current_state": "on"}
    assert answers[6]["body"]["instance_id"] == answers[7]["body"]["instances"][0]["instance_id"]
    assert answers[9]["body"] == WHEEL
    assert answers[12]["body"]["reason"] == "terminal"
    history = web.get("/v1/instances/%s/history" % id).json["entries"]
    assert [e["action"] for e in history] == ["turn", "turn", "stop"]
    assert history[0]["actor_ref"] == "ann" and history[0]["payload"] == {"a": 1}


def test_a_bad_line_is_answered_in_its_place_and_stops_nobody(shell):
    web = server(shell)
    id = web.create(declaration=WHEEL)
    deep = '{"operation": "instance.fire", "input": {"instance_id": "%s", "action": "turn", "payload": %s}}' % (
        id, "[" * 70 + "]" * 70)
    bad = ["{", "[]", "7", "null", '"x"', '{"operation": 7}', "{}", '{"operation": "instance.fire", "extra": 1}',
           '{"operation": "instance.fire", "input": []}', '{"operation": "instance.fire", "operation": "health.get"}',
           '{"operation": "instance.nothing"}', '{"operation": "store.sql", "input": {"text": "select 1"}}',
           '{"operation": "batch", "input": {"text": ""}}', '{"operation": "events"}', deep,
           fire(id, color="red"), fire(id, payload="x" * (1 << 20))]
    lines = []
    for line in bad:
        lines += [fire(id), line]
    answers = batch(web, lines)
    assert len(answers) == 2 * len(bad)
    assert [a["status"] for a in answers[::2]] == [200] * len(bad)
    assert [a["body"]["sequence_number"] for a in answers[::2]] == list(range(1, len(bad) + 1))
    reasons = [a["body"]["reason"] for a in answers[1::2]]
    assert reasons == ["invalid-request"] * 10 + ["not-known"] * 2 + ["invalid-request"] * 4 + ["too-large"], reasons
    assert all(a["body"]["status"] == a["status"] and a["body"]["detail"] for a in answers[1::2])


def test_blank_lines_are_none_and_an_empty_batch_is_fine(shell):
    web = server(shell)
    id = web.create(declaration=WHEEL)
    assert batch(web, []) == []
    assert batch(web, ["", "  ", "\r"]) == []
    assert [a["body"]["sequence_number"] for a in batch(web, ["", json.dumps(fire(id)) + "\r", "", fire(id), ""])] == [1, 2]


def test_line_ends_inside_an_answer_do_not_break_its_line(shell):
    web = server(shell)
    text = json.dumps(WHEEL, indent=2)
    id = web.expect(201, "POST", "/v1/instances", '{"declaration": %s}' % text).json["instance_id"]
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, '{"action":"turn","payload":{"a":\n"b\\n"}}')
    answers = batch(web, [{"operation": "instance.declaration", "input": {"instance_id": id}},
                          {"operation": "instance.history", "input": {"instance_id": id}}])
    assert answers[0]["body"] == WHEEL
    assert answers[1]["body"]["entries"][0]["payload"] == {"a": "b\n"}


def test_a_batch_is_bounded_in_lines_and_bytes(shell):
    web = server(shell)
    id = web.create(declaration=WHEEL)
    line = json.dumps(fire(id)) + "\n"
    answers = batch(web, [line.strip()] * 10000)
    assert [a["body"]["sequence_number"] for a in answers] == list(range(1, 10001))
    assert web.refused("too-large", "POST", "/v1/batch", line * 10001).status == 413
    wide = json.dumps(fire(id, payload="x" * 1000000)) + "\n"
    web.expect(200, "POST", "/v1/batch", wide * 15)
    assert web.refused("too-large", "POST", "/v1/batch", wide * 17).status == 413
    web.refused("too-large", "POST", "/v1/instances", wide * 2)
    assert web.get("/v1/instances/" + id).json["next_sequence_number"] == 10016


def test_fires_of_a_batch_share_commits(shell):
    web = server(shell)
    ids = [web.create(declaration=WHEEL) for _ in range(10)]
    batch(web, [fire(id) for id in ids * 20])
    shell.stop(web.child)
    rows = shell.json("sql", "select count(*) as roots from pawl_log where root is not null and what >= 0")
    assert rows["rows"] == [[1]], "200 fires took more than one commit: %r" % rows


def test_creations_of_a_batch_share_commits_and_are_answered_as_they_would_be_alone(shell):
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/nap", {"name": "nap", "do": [{"action": "sleep", "payload": {"for": "1h"}}]})
    web.expect(201, "PUT", "/v1/definitions/wheel", json.dumps(WHEEL))
    ways = [{"definition": "wheel", "actor_ref": "ann"}, {"declaration": WHEEL, "subject_ref": "s"}, {"definition": "nap"},
            {"definition": "none"}, {"declaration": {}}, {"definition": "wheel", "instance_metadata": {}},
            {"definition": "wheel", "idempotency_key": "k"}, {"definition": "wheel", "idempotency_key": "k"},
            {"definition": "countdown", "input": {"from": 1, "every": "1h"}}]
    answers = batch(web, [{"operation": "instance.create", "input": way} for way in ways * 25])
    assert [a["status"] for a in answers] == [201, 201, 201, 404, 422, 400, 201, 201, 201] * 25, answers[:9]
    made = [a["body"].get("instance_id") for a in answers]
    assert len({made[i] for i in range(len(ways) * 25) if i % 9 in (6, 7)}) == 1, "a key's call is made once"
    assert len(set(made) - {None}) == 4 * 25 + 1
    assert answers[0]["body"]["current_state"] == "on" and answers[2]["body"]["current_state"] == "running"
    assert web.get("/v1/instances/" + made[0]).json["created_by"] == "ann"
    assert web.get("/v1/instances/" + made[1]).json["subject_ref"] == "s"
    fired = batch(web, [{"operation": "instance.create", "input": {"definition": "wheel"}}, fire(made[0]), fire(made[1])])
    assert [a["status"] for a in fired] == [201, 200, 200], fired
    shell.stop(web.child)
    rows = shell.json("sql", "select count(*) from pawl_log l where root is not null and exists"
                             " (select 1 from pawl_log c where c.what = -1 and c.pos <= l.pos and c.pos > coalesce((select max(b.pos)"
                             "  from pawl_log b where b.root is not null and b.pos < l.pos), 0))")
    assert rows["rows"][0][0] <= 6, "101 creations, 25 of them of code, took %r commits" % rows
    shell.pawl("verify")


def test_a_flow_in_a_batch_goes_through_its_mailbox(shell):
    web = server(shell)
    web.expect(201, "PUT", "/v1/definitions/nap", {"name": "nap", "do": [{"action": "sleep", "payload": {"for": "1h"}}]})
    wheel, nap = web.create(declaration=WHEEL), web.create(definition="nap")
    answers = batch(web, [fire(wheel), fire(nap, "finish"), fire(wheel),
                          {"operation": "instance.cancel", "input": {"instance_id": nap}}, fire(nap, "finish")])
    assert [a["status"] for a in answers] == [200, 409, 200, 200, 409], answers
    assert [a["body"].get("reason") for a in answers] == [None, "invalid-transition", None, None, "terminal"]


def test_the_entries_of_a_batch_are_streamed_in_order(shell):
    harness.one_shard("there is no order between instances")
    web = server(shell)
    ids = [web.create(declaration=WHEEL) for _ in range(3)]
    streams = [Stream(web).open(), Stream(web, "/v1/instances/%s/events" % ids[1]).open()]
    batch(web, [fire(id) for id in ids * 1000])
    assert [e.entry["instance_id"] for e in streams[0].events(3000)] == ids * 1000
    assert [e.entry["sequence_number"] for e in streams[1].events(1000)] == list(range(1, 1001))


if __name__ == "__main__":
    harness.main(dict(globals()))
