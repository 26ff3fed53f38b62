"""MCP over HTTP: tools, tasks, questions and lists, of both eras."""
import http.client
import json
import signal
import sys
import urllib.request

import mcp
from mcp import ROOT, Http, Legacy, Listening, capabilities, harness

sys.path.insert(0, str(ROOT / "tests/http"))
import described  # noqa: E402

ORDER = (harness.EXAMPLES / "order.yaml").read_text()
GATED = """name: release
description: a release that a person approves
steps:
  sign: {approval: {by: [ann]}, next: ship}
  ship: {tool: set, args: {shipped: true}, done: true}
"""
OPEN_GATE = GATED.replace("by: [ann]", "").replace("name: release", "name: open")
FIXED = "name: fixed\ncancel: false\nsteps:\n  wait: {wait: {signal: go}, done: true}\n"
WAITING = "name: waiting\nsteps:\n  wait: {wait: {signal: go}, done: true}\n"


def serve(shell, *words, texts=()):
    for number, text in enumerate(texts):
        shell.pawl("define", shell.write("d%d.yaml" % number, text))
    return shell.serve(*words)


def task_of(reply):
    assert reply.result["resultType"] == "task", reply
    return reply.result["taskId"]


def get(client, task, caps=None):
    return client.call("tasks/get", {"taskId": task}, caps).result


def defects(schema, value):
    return list(described.defects(schema, value))


# ---- One shape ----


def drive(shell, client, tool, arguments):
    """Any tool that takes long and asks a person, without knowing what it does."""
    task = task_of(client.tool(tool, arguments, capabilities(form=True)))
    asks = capabilities(form=True)
    shell.wait_for(lambda: get(client, task, asks)["status"] == "input_required")
    question = get(client, task, asks)["inputRequests"]
    client.call("tasks/update", {"taskId": task, "inputResponses": {key: {"action": "accept", "content": {"decision": "approve"}}
                                                                    for key in question}}, asks)
    shell.wait_for(lambda: get(client, task, asks)["status"] not in ("working", "input_required"))
    entries = client.tool("process_history", {"instance_id": task}).result["structuredContent"]["entries"]
    return question, get(client, task, asks), [entry["action"] for entry in entries]


def test_a34_tokens_and_migrations_are_followed_by_one_client_that_knows_neither(shell):
    texts = [(harness.EXAMPLES / name).read_text() for name in ("issue-token.yaml", "upgrade-schema.yaml")]
    for number, text in enumerate(texts):
        shell.pawl("define", shell.write("d%d.yaml" % number, text))
    _, address = shell.serve("--allow-exec")
    made = Http(address).tool("issue-token", {"account": "x", "file": "y"}, capabilities(form=True)).result["taskId"]
    assert get(Http(address), made, capabilities(form=True))["status"] == "working"  # this caller has no name, and may not decide
    token = shell.json("token", "create", "--scope", "all", "--actor", "ann")["token"]
    client, shop = Http(address, token), str(shell.folder / "shop.db")
    statements = ["create table item (sku text)", "alter table item add column price int"]
    ends = [drive(shell, client, "issue-token", {"account": "builder", "file": str(shell.folder / "builder.token")}),
            drive(shell, client, "upgrade-schema", {"file": shop, "statements": statements}),
            drive(shell, client, "upgrade-schema", {"file": shop, "statements": statements})]
    for question, end, actions in ends:
        assert end["status"] == "completed" and end["_meta"]["pawl/status"] == "success", end
        assert actions[0] == "start" and "gate.approve" in actions and actions[-1] == "finish", actions
    assert len((shell.folder / "builder.token").read_text()) == 48
    assert (shell.folder / "builder.token").read_text() not in json.dumps(ends)
    assert [end["result"]["structuredContent"]["versions"] for _, end, _ in ends[1:]] == [[1, 2], [1, 2]], ends
    assert list(ends[0][0].values())[0]["params"]["message"].startswith("A token for builder"), ends[0]


# ---- Questions before an end, without tasks ----


def test_a_gate_is_a_question_to_a_modern_client_without_tasks_also_after_a_kill(shell):
    child, address = serve(shell, texts=[OPEN_GATE, WAITING])
    asks = capabilities(tasks=False, form=True)
    asked = Http(address).tool("open", caps=asks).result
    assert asked["resultType"] == "input_required" and len(asked["inputRequests"]) == 1, asked
    key, state = list(asked["inputRequests"])[0], asked["requestState"]
    child.send_signal(signal.SIGKILL)
    child.wait()
    _, address = shell.serve()
    client = Http(address)

    def again(name, state, responses):
        return client.call("tools/call", {"name": name, "arguments": {}, "requestState": state, "inputResponses": responses}, asks)

    assert again("open", state, {}).result["resultType"] == "input_required"  # nothing was answered: asked again
    for name, forged in (("waiting", state), ("open", state[:-1] + ("1" if state[-1] == "0" else "0")), ("open", "x" * 5000)):
        assert again(name, forged, {}).error["code"] == -32602, (name, forged)
    done = again("open", state, {key: {"action": "accept", "content": {"decision": "approve"}}}).result
    assert done["resultType"] == "complete" and done["structuredContent"] == {"shipped": True}, done
    assert len(shell.json("list", "--definition", "open")["instances"]) == 1


# ---- Tasks ----


def test_a_task_is_an_instance_and_survives_a_kill_between_create_and_get(shell):
    child, address = serve(shell, texts=[WAITING])
    task = task_of(Http(address).tool("waiting"))
    child.send_signal(signal.SIGKILL)
    child.wait()
    _, address = shell.serve()
    found = get(Http(address), task)
    assert found["status"] == "working" and found["taskId"] == task, found
    assert shell.json("show", task)["instance_id"] == task
    shell.pawl("signal", task, "go", "--payload", '{"n": 7}')
    ended = get(Http(address), task)
    assert ended["status"] == "completed" and ended["result"]["structuredContent"] == {"n": 7}, ended
    assert ended["_meta"]["pawl/status"] == "success" and ended["_meta"]["pawl/terminalKind"] == "success"


def test_a_cancel_follows_what_the_definition_allows_in_both_eras(shell):
    _, address = serve(shell, texts=[FIXED, WAITING])
    client, legacy = Http(address), Legacy(address)
    fixed, waiting, other = [task_of(client.tool(name)) for name in ("fixed", "waiting", "waiting")]
    for refused in (client.call("tasks/cancel", {"taskId": fixed}), legacy.ask("tasks/cancel", {"taskId": fixed})):
        assert refused.error["code"] == -32602 and "no-cancel-transition" in refused.error["message"], refused
    assert get(client, fixed)["status"] == "working"
    for _ in range(2):  # an end is acknowledged again
        assert set(client.call("tasks/cancel", {"taskId": waiting}).result) == {"resultType", "_meta"}
    found = get(client, waiting)
    assert found["status"] == "cancelled" and found["_meta"]["pawl/status"] == "canceled", found
    assert legacy.ask("tasks/cancel", {"taskId": other}).result["status"] == "cancelled"
    assert legacy.ask("tasks/cancel", {"taskId": other}).error["code"] == -32602
    assert legacy.ask("tasks/result", {"taskId": other}).error["code"] == -32603


def test_legacy_tasks_have_lists_results_and_their_own_words(shell):
    _, address = serve(shell, "--mcp-fixtures")
    client = Legacy(address)
    assert client.begun["protocolVersion"] == "2025-11-25" and "list" in client.begun["capabilities"]["tasks"]
    support = {tool["name"]: tool.get("execution") for tool in client.ask("tools/list").result["tools"]}
    assert support["failing_job"] == {"taskSupport": "required"} and support["greet"] == {"taskSupport": "forbidden"}
    made = client.ask("tools/call", {"name": "failing_job", "task": {"ttl": 1000}}).result["task"]
    assert made["status"] == "working" and made["ttl"] is None and made["pollInterval"] > 0, made
    done = client.ask("tasks/result", {"taskId": made["taskId"]}).result
    assert done["isError"] and done["_meta"][mcp.PREFIX + "related-task"] == {"taskId": made["taskId"]}, done
    assert client.ask("tasks/get", {"taskId": made["taskId"]}).result["status"] == "failed"
    assert [task["taskId"] for task in client.ask("tasks/list").result["tasks"]] == [made["taskId"]]
    assert get(Http(address), made["taskId"])["status"] == "completed"  # the same task in the other era
    assert client.ask("tasks/list", {"cursor": "nonsense"}).error["code"] == -32602
    for name, params in (("failing_job", {}), ("greet", {"task": {}, "arguments": {"name": "x"}})):
        assert client.ask("tools/call", {"name": name, **params}).error["code"] == -32601
    failed = client.ask("tools/call", {"name": "protocol_error_job", "task": {}}).result["task"]["taskId"]
    assert client.ask("tasks/result", {"taskId": failed}).error == {"code": -32603, "message": "the backend is gone"}
    assert Legacy(address, "2025-06-18").ask("tasks/list").error["code"] == -32601


def test_a_gate_asks_those_who_may_decide_and_records_who_did(shell):
    shell.pawl("define", shell.write("release.yaml", GATED))
    tokens = {who: shell.json("token", "create", "--scope", "read,write", "--actor", who)["token"] for who in ("ann", "bob")}
    _, address = shell.serve("--require-token")
    ann, bob, form = Http(address, tokens["ann"]), Http(address, tokens["bob"]), capabilities(form=True)
    theirs = task_of(bob.tool("release", caps=form))
    assert get(bob, theirs, form)["status"] == "working"  # bob may not decide
    task = task_of(ann.tool("release", caps=form))
    assert get(ann, task)["status"] == "working"  # asked for nothing that was not declared
    asked = get(ann, task, form)
    assert asked["status"] == "input_required" and list(asked["inputRequests"]) == [task + ".1"], asked
    closed = {"taskId": task, "inputResponses": {task + ".1": {"action": "cancel"}, "unknown": {"action": "accept"}}}
    assert ann.call("tasks/update", closed, form).status == 200 and get(ann, task, form)["status"] == "input_required"
    answer = {"action": "accept", "content": {"decision": "approve", "comment": "looks good"}}
    ann.call("tasks/update", {"taskId": task, "inputResponses": {task + ".1": answer}}, form)
    harness.Shell.wait_for(shell, lambda: get(ann, task, form)["status"] == "completed")
    entries = ann.tool("process_history", {"instance_id": task}).result["structuredContent"]["entries"]
    decided = [entry for entry in entries if entry["action"] == "gate.approve"][0]
    assert decided["actor_ref"] == "ann" and decided["reason"] == "looks good", decided


def test_what_is_not_the_callers_does_not_exist(shell):
    shell.pawl("define", shell.write("w.yaml", WAITING))
    shell.pawl("define", shell.write("o.yaml", ORDER))
    make = lambda *words: shell.json("token", "create", *words)["token"]  # noqa: E731
    ann, bob = [make("--scope", "read,write", "--actor", who) for who in ("ann", "bob")]
    orders = make("--scope", "read:order,write:order")
    _, address = shell.serve("--require-token")
    ann, bob, orders = Http(address, ann), Http(address, bob), Http(address, orders)
    task = task_of(ann.tool("waiting"))
    absent = bob.call("tasks/get", {"taskId": "0" * 26}).error
    for client in (bob, orders):
        for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
            error = client.call(method, {"taskId": task, **more}).error
            assert error == {**absent, "message": absent["message"].replace("0" * 26, task)}, error
    assert get(ann, task)["status"] == "working"
    names = [tool["name"] for tool in orders.call("tools/list").result["tools"]]
    assert "order" in names and "waiting" not in names, names
    refused = Http(address).call("tools/list")
    where = "http://%s/.well-known/oauth-protected-resource/mcp" % ann.host
    assert refused.status == 401 and refused.headers["www-authenticate"] == 'Bearer resource_metadata="%s"' % where, refused.headers
    with urllib.request.urlopen(where) as answer:
        assert json.load(answer)["resource"] == "http://%s/mcp" % ann.host
    assert orders.tool("waiting").error["code"] == -32602


# ---- Tools ----


def test_a_machine_offers_its_legal_next_actions(shell):
    _, address = serve(shell, texts=[ORDER])
    client = Http(address)
    begun = client.tool("order").result["structuredContent"]
    assert [action["action"] for action in begun["actions"]] == ["pay", "drop"] and begun["state"] == "new", begun
    fired = client.tool("process_fire", {"instance_id": begun["process_id"], "action": "pay", "actor_ref": "ann"}).result
    assert fired["structuredContent"]["new_state"] == "paid" and not fired["isError"], fired
    refused = client.tool("process_fire", {"instance_id": begun["process_id"], "action": "pay"}).result
    assert refused["isError"] and refused["_meta"]["pawl/problem"]["reason"] == "invalid-transition", refused
    found = client.tool("process_get", {"instance_id": begun["process_id"]}).result["structuredContent"]
    assert [action["action"] for action in found["actions"]] == ["ship", "refund"], found


def test_every_management_tool_answers_as_its_schema_says(shell):
    asks = WAITING.replace("waiting", "asked") + "queries: {it: '3 + 4'}\n"
    _, address = serve(shell, texts=[OPEN_GATE, ORDER, WAITING, asks])
    client = Http(address)
    schemas = {tool["name"]: tool.get("outputSchema") for tool in client.call("tools/list").result["tools"]}

    def run(tool, **given):
        result = client.tool(tool, given).result
        if not result["isError"]:
            assert not defects(schemas[tool], result["structuredContent"]), (tool, result, defects(schemas[tool], result["structuredContent"]))
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"], result
            checked.add(tool)
        return result

    checked = set()
    order = run("process_start", definition="order", subject_ref="A-17")["structuredContent"]["instance_id"]
    assert run("process_list", definition="order")["structuredContent"]["instances"][0]["subject_ref"] == "A-17"
    assert run("process_why", instance_id=order)["structuredContent"]["waiting_for"][0]["kind"] == "action"
    assert "only flows have queries" in str(run("process_query", instance_id=order, name="none"))
    gated = run("process_start", definition="open")["structuredContent"]["instance_id"]
    step = run("approval_list")["structuredContent"]["gates"][0]["step_id"]
    assert run("approval_decide", decision="perhaps", step_id=step)["isError"]
    assert run("approval_decide", decision="approve", step_id=step)["structuredContent"] == {"status": "done"}
    assert run("process_history", instance_id=gated)["structuredContent"]["entries"]
    waiting = run("process_start", definition="waiting")["structuredContent"]["instance_id"]
    assert not run("process_signal", instance_id=waiting, name="go", payload=1)["isError"]
    assert run("process_cancel", instance_id=order, reason="late")["structuredContent"]["terminal_kind"] == "cancel"
    assert run("definition_check", text="states: [a]")["structuredContent"]["errors"]
    put = run("definition_put", name="mine", text=WAITING.replace("waiting", "mine"))["structuredContent"]
    assert put["version"] == 1 and put["kind"] == "flow", put
    found = run("definition_search", query="approves RELEASE")["structuredContent"]["definitions"]
    assert [one["definition"] for one in found] == ["open"], found
    begun = run("validation_start", definition="order")["structuredContent"]["instance_id"]
    assert run("validation_run", instance_id=begun)["structuredContent"]["terminal_kind"] == "success"
    run("validation_cancel", instance_id=run("validation_start", definition="order")["structuredContent"]["instance_id"])
    assert run("process_fire", instance_id=run("process_start", definition="order")["structuredContent"]["instance_id"],
               action="pay")["structuredContent"]["new_state"] == "paid"
    assert run("process_get", instance_id=order)["structuredContent"]["status"] == "cancelled"
    asked = run("process_start", definition="asked")["structuredContent"]["instance_id"]
    assert run("process_query", instance_id=asked, name="it")["structuredContent"] == {"value": 7}
    assert checked == {name for name in schemas if name not in ("open", "order", "waiting", "asked", "mine")}, checked
    assert client.tool("no_such_tool").error["code"] == -32602


RESULTS = """name: typed
mcp: {result: {type: object, required: [n], properties: {n: {type: integer}}}, idempotent: true}
input: {type: object, properties: {n: {}}}
steps:
  say: {tool: set, args: {n: "{{input.n}}"}, done: true}
"""


def test_tools_of_definitions_say_what_they_return_and_what_they_do(shell):
    outward = "name: outward\nsteps:\n  go: {tool: http, args: {url: 'http://127.0.0.1:1/'}, done: true}\n"
    text = "name: words\nsteps:\n  go: {tool: set, args: {x: 1}, done: true}\noutput: hello\n"
    _, address = serve(shell, texts=[RESULTS, outward, text, ORDER, WAITING])
    client = Http(address)
    tools = {tool["name"]: tool for tool in client.call("tools/list").result["tools"]}
    hints = {name: tools[name]["annotations"] for name in ("typed", "outward", "order")}
    assert hints["typed"] == {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}, hints
    assert hints["outward"]["destructiveHint"] and hints["outward"]["openWorldHint"] and not hints["order"]["openWorldHint"], hints
    assert tools["typed"]["outputSchema"]["anyOf"][0]["required"] == ["n"]
    for name, given, expected in (("typed", {"n": 7}, {"n": 7}), ("words", {}, {"result": "hello"}), ("typed", {"n": "x"}, None),
                                  ("order", {}, None), ("waiting", {}, None)):
        found = client.tool(name, given, {}).result
        assert not defects(tools[name]["outputSchema"], found["structuredContent"]), (name, found)
        assert found["structuredContent"] == expected or (not expected and found["structuredContent"]["process_id"]), found
    task = task_of(client.tool("typed", {"n": 8}))
    shell.wait_for(lambda: get(client, task)["status"] == "completed")
    assert get(client, task)["result"]["structuredContent"] == {"n": 8}
    for mistake, words in (("result: 7", "mcp.result"), ("result: {type: string}", "of an object"), ("read_only: 1", "true or false"),
                           ("harmless: true", "unknown key 'mcp.harmless'")):
        path = shell.write("wrong.yaml", WAITING.replace("steps", "mcp: {%s}\nsteps" % mistake))
        assert words in shell.pawl("check", path, expect=1).out, mistake


def test_a_token_sees_the_tools_that_it_may_call_and_is_told_what_it_lacks(shell):
    for number, text in enumerate((WAITING, ORDER)):
        shell.pawl("define", shell.write("d%d.yaml" % number, text))
    token = lambda scopes: shell.json("token", "create", "--scope", scopes)["token"]  # noqa: E731
    tokens = {scopes: token(scopes) for scopes in ("read", "read,write:order", "work")}
    _, address = shell.serve("--require-token")
    names = lambda scopes: [tool["name"] for tool in Http(address, tokens[scopes]).call("tools/list").result["tools"]]  # noqa: E731
    assert "process_get" in names("read") and not {"process_start", "definition_put", "order"} & set(names("read")), names("read")
    assert "order" in names("read,write:order") and "waiting" not in names("read,write:order") and names("work") == []
    reader = Http(address, tokens["read"])
    where = "resource_metadata=\"http://%s/.well-known/oauth-protected-resource/mcp\"" % reader.host
    for name, given, scope in (("process_start", {"definition": "order"}, "write"), ("waiting", {}, "write"),
                               ("definition_put", {"name": "x", "text": WAITING}, "define")):
        refused = reader.tool(name, given)
        assert refused.status == 403 and refused.error["data"]["reason"] == "forbidden", refused
        assert refused.headers["www-authenticate"] == "Bearer error=\"insufficient_scope\", scope=\"%s\", %s" % (scope, where)
    refused = Http(address, "none").call("tools/list")
    assert refused.status == 401 and refused.headers["www-authenticate"] == "Bearer error=\"invalid_token\", " + where
    assert shell.json("list")["instances"] == []


def test_forty_definitions_are_listed_and_one_more_has_to_be_searched_for(shell):
    for number in range(40):
        shell.write("m%02d.yaml" % number, WAITING.replace("waiting", "m%02d" % number))
    shell.pawl("define", *["m%02d.yaml" % number for number in range(40)])
    _, address = shell.serve()
    client = Http(address)
    names = lambda: [tool["name"] for tool in client.call("tools/list").result["tools"]]  # noqa: E731
    few = names()
    assert few[-40:] == ["m%02d" % number for number in range(40)] and few[0] == "process_start", few
    client.tool("definition_put", {"name": "team/more", "text": WAITING.replace("waiting", "team/more")})
    assert names() == few[:-40]
    assert client.tool("definition_search", {"query": "team"}).result["structuredContent"]["definitions"][0]["tool"] == "team.more"
    assert client.tool("team.more").result["resultType"] == "task"  # what is not listed can be called


def test_the_tools_that_are_listed_can_be_selected(shell):
    _, address = serve(shell, "--mcp-tools", "process_get,order", texts=[ORDER, WAITING])
    client = Http(address)
    assert [tool["name"] for tool in client.call("tools/list").result["tools"]] == ["process_get", "order"]
    assert client.tool("process_list").error["code"] == -32602 and client.tool("waiting").error["code"] == -32602


def test_a_long_list_of_tools_and_of_ids_comes_in_parts(shell):
    texts = [WAITING.replace("waiting", "m%03d" % number) for number in range(130)]
    files = [shell.write("m%03d.yaml" % number, text) for number, text in enumerate(texts)]
    for at in range(0, 130, 50):
        shell.pawl("define", *files[at:at + 50])
    _, address = shell.serve("--mcp-tools", "manage,definitions")
    client = Http(address)
    first = client.call("tools/list").result
    second = client.call("tools/list", {"cursor": first["nextCursor"]}).result
    names = [tool["name"] for page in (first, second) for tool in page["tools"]]
    assert "nextCursor" not in second and len(second["tools"]) == 30, second
    assert names[0] == "process_start" and names[-130:] == ["m%03d" % number for number in range(130)], names
    for wrong in ("nonsense", 7, "process_start"):
        assert client.call("tools/list", {"cursor": wrong}).error["code"] == -32602, wrong
    ids = [client.tool("process_start", {"definition": "m%03d" % number}).result["structuredContent"]["instance_id"] for number in range(130)]
    complete = lambda value, ref=None: client.call("completion/complete", {  # noqa: E731
        "ref": ref or {"type": "ref/resource", "uri": "pawl://process/{id}"}, "argument": {"name": "id", "value": value}})
    for one in (ids[0], ids[-1]):
        assert complete(one[:20]).result["completion"] == {"values": [one], "hasMore": False}, one
    every = complete("").result["completion"]
    assert len(every["values"]) == 100 and every["hasMore"] is True, every
    assert complete("", {"type": "ref/prompt", "name": "none"}).error["code"] == -32602


def test_a_task_says_until_when_its_result_is_kept(shell):
    text = "name: kept\nretention: {after_end: 10d, then: erase}\nsteps:\n  wait: {wait: {signal: go}, done: true}\n"
    _, address = serve(shell, texts=[text, WAITING])
    client, legacy = Http(address), Legacy(address)
    kept, other = [task_of(client.tool(name)) for name in ("kept", "waiting")]
    assert get(client, kept)["ttlMs"] is None
    for task in (kept, other):
        shell.pawl("signal", task, "go")
    found = get(client, kept)
    assert 0 <= found["ttlMs"] - 10 * 86400000 < 60000 and get(client, other)["ttlMs"] is None, found
    assert legacy.ask("tasks/get", {"taskId": kept}).result["ttl"] == found["ttlMs"]


def test_without_tasks_a_call_waits_for_the_end_with_progress_or_gets_a_handle(shell):
    _, address = serve(shell, "--mcp-fixtures", texts=[WAITING])
    client = Http(address)
    params = {"name": "slow_compute", "arguments": {"seconds": 1, "label": "x"}}
    body, headers = client.request("tools/call", params, {})
    body["params"]["_meta"]["progressToken"] = "p1"
    reply = client.post(body, headers)
    told = [message["params"] for message in reply.messages if message.get("method") == "notifications/progress"]
    assert told and all(one["progressToken"] == "p1" for one in told), reply
    assert [one["progress"] for one in told] == sorted({one["progress"] for one in told}), told
    assert reply.result["content"][0]["text"] == "Computed x in 1 s", reply
    handle = client.tool("waiting", caps={}).result  # it waits for a caller: no time is lost
    assert handle["structuredContent"]["process_id"] and "process_get" in handle["content"][0]["text"], handle


def test_a_call_with_the_same_key_starts_one_process(shell):
    _, address = serve(shell, texts=[WAITING])
    client = Http(address)
    body, headers = client.request("tools/call", {"name": "waiting", "arguments": {}}, capabilities())
    body["params"]["_meta"]["pawl/idempotencyKey"] = "k1"
    assert task_of(client.post(body, headers)) == task_of(client.post(body, headers))


# ---- Lists, resources, prompts ----


def test_a_listener_gets_what_it_asked_for_and_nothing_else(shell):
    _, address = serve(shell, texts=[WAITING])
    client = Http(address)
    task, other = task_of(client.tool("waiting")), task_of(client.tool("waiting"))
    stream = Listening(client, "subscriptions/listen", {"notifications": {
        "taskIds": [task, "0" * 26], "resourceSubscriptions": ["pawl://process/" + task], "toolsListChanged": True}})
    first = stream.next()
    assert first["method"] == "notifications/subscriptions/acknowledged", first
    assert first["params"]["notifications"] == {"toolsListChanged": True, "taskIds": [task],
                                                "resourceSubscriptions": ["pawl://process/" + task]}, first
    client.tool("process_signal", {"instance_id": other, "name": "go"})
    client.tool("process_signal", {"instance_id": task, "name": "go"})
    shell.pawl("define", shell.write("more.yaml", WAITING.replace("waiting", "more")))
    found = {}
    while len(found) < 3:
        message = stream.next()
        assert message["params"]["_meta"][mcp.PREFIX + "subscriptionId"] == stream.id, message
        found[message["method"]] = message["params"]
    assert found["notifications/tasks"]["taskId"] == task and found["notifications/tasks"]["status"] == "completed", found
    assert found["notifications/resources/updated"]["uri"] == "pawl://process/" + task, found
    assert "notifications/tools/list_changed" in found, found
    stream.close()


def test_resources_that_are_followed_are_definitions_too_and_only_what_is_there_is_acknowledged(shell):
    texts = [WAITING, ORDER]
    _, address = serve(shell, texts=texts)
    client = Http(address)
    task = task_of(client.tool("waiting"))
    there = ["pawl://definition/waiting", "pawl://diagram/order", "pawl://process/%s/history" % task]
    stream = Listening(client, "subscriptions/listen", {"notifications": {"resourceSubscriptions": [
        *there, "pawl://definition/none", "pawl://process/" + "0" * 26, "pawl://process/%s/none" % task, "file:///etc/passwd"]}})
    assert set(stream.next()["params"]["notifications"]["resourceSubscriptions"]) == set(there)
    shell.pawl("define", shell.write("more.yaml", WAITING.replace("waiting", "more")))  # another one
    shell.pawl("define", shell.write("two.yaml", WAITING.replace("steps", "description: two\nsteps")))
    assert stream.next()["params"]["uri"] == "pawl://definition/waiting"
    client.tool("process_signal", {"instance_id": task, "name": "go"})
    assert stream.next()["params"]["uri"] == "pawl://process/%s/history" % task
    stream.close()


def test_a_legacy_client_is_told_of_the_first_change_after_it_has_subscribed(shell):
    _, address = serve(shell, texts=[WAITING])
    client, task = Legacy(address), task_of(Http(address).tool("waiting"))
    uri = "pawl://process/" + task
    connection = http.client.HTTPConnection(client.host, timeout=60)
    connection.request("GET", "/mcp", headers={**client.headers, "Accept": "text/event-stream"})
    stream = connection.getresponse()
    for wrong in ("pawl://process/" + "0" * 26, "pawl://definition/none", "x"):
        assert client.ask("resources/subscribe", {"uri": wrong}).error["code"] == -32002
    assert client.ask("resources/subscribe", {"uri": uri}).result == {}
    assert client.ask("resources/subscribe", {"uri": "pawl://definition/waiting"}).result == {}
    shell.pawl("signal", task, "go")
    lines = (line.decode() for line in stream)
    told = (json.loads(line[6:]) for line in lines if line.startswith("data: "))
    assert next(told)["params"]["uri"] == uri
    client.ask("resources/unsubscribe", {"uri": uri})
    shell.pawl("define", shell.write("two.yaml", WAITING.replace("steps", "description: two\nsteps")))
    methods = [next(told) for _ in range(3)]
    assert {"notifications/tools/list_changed", "notifications/resources/list_changed"} <= {one["method"] for one in methods}, methods
    assert [one["params"]["uri"] for one in methods if one["method"] == "notifications/resources/updated"] == ["pawl://definition/waiting"]
    connection.close()


def test_resources_show_definitions_and_processes_as_the_operations_do(shell):
    _, address = serve(shell, texts=[ORDER])
    client = Http(address)
    order = client.tool("order").result["structuredContent"]["process_id"]
    read = lambda uri: client.call("resources/read", {"uri": uri}).result["contents"][0]  # noqa: E731
    assert [one["uri"] for one in client.call("resources/list").result["resources"]] == [
        "ui://pawl/process", "pawl://definition/order", "pawl://diagram/order"]
    assert read("pawl://definition/order")["text"] == ORDER
    assert read("pawl://diagram/order")["text"].strip() == shell.pawl("graph", "order", "--format", "mermaid").out.strip()
    assert json.loads(read("pawl://process/" + order)["text"]) == shell.json("show", order)
    assert json.loads(read("pawl://process/%s/history" % order)["text"])["entries"] == []
    for uri in ("pawl://process/" + "0" * 26, "pawl://definition/none", "pawl://process/%s/none" % order, "file:///etc/passwd"):
        assert client.call("resources/read", {"uri": uri}).error == {
            "code": -32602, "message": "Resource not found", "data": {"uri": uri}}
    legacy = Legacy(address)
    assert legacy.ask("resources/read", {"uri": "pawl://none"}).error["code"] == -32002


def test_prompts_and_completions_know_names_and_ids(shell):
    _, address = serve(shell, texts=[ORDER, OPEN_GATE])
    client = Http(address)
    order = client.tool("order").result["structuredContent"]["process_id"]
    client.tool("open")
    said = lambda name, **given: client.call("prompts/get", {  # noqa: E731
        "name": name, "arguments": given}).result["messages"][0]["content"]["text"]
    assert [one["name"] for one in client.call("prompts/list").result["prompts"]] == [
        "start_process", "review_approvals", "explain_process"]
    assert "process_start" in said("start_process", definition="order")
    assert '"step":"sign"' in said("review_approvals")
    assert order in said("explain_process", process_id=order)
    complete = lambda kind, name, value: client.call("completion/complete", {  # noqa: E731
        "ref": {"type": kind, "name": "start_process"}, "argument": {"name": name, "value": value}}).result["completion"]["values"]
    assert complete("ref/prompt", "definition", "or") == ["order"]
    assert order in complete("ref/resource", "id", order[:20])
    assert client.call("prompts/get", {"name": "explain_process"}).error["code"] == -32602


# ---- What is wrong ----


def test_bad_messages_are_refused_by_name_and_the_server_stays(shell):
    child, address = serve(shell, texts=[WAITING])
    client = Http(address)
    good, headers = client.request("ping", {}, {})
    deep = "[" * 200 + "]" * 200
    for text, code in (("", -32700), ("{", -32700), ("\x00", -32700), (b"\xff\xfe{}", -32700), (deep, -32700),
                       ('{"a":1,"a":2}', -32700), ("[]", -32600), ("7", -32600), ("{}", -32600),
                       ('{"jsonrpc":"2.0","id":null,"method":"x"}', -32600), ('{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
                       ('{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}', -32602), ('{"jsonrpc":"2.0","id":1}', -32600)):
        reply = client.post(text, headers)
        assert reply.status == 400 and reply.error["code"] == code, (text, reply)
    assert client.post(b'{"jsonrpc":"2.0","id":1,"method":"%s"}' % (b"x" * (1 << 20)), headers).status == 413
    assert client.call("x" * 500).error["code"] == -32601
    assert client.call("tasks/get", {"taskId": "\u00e9" * 300}).status in (200, 400)
    assert client.post(good, {**headers, "Origin": "http://evil.example"}).status == 403
    for params in ({}, {"name": 7}, {"name": "waiting", "arguments": []}, {"name": "waiting", "arguments": None}):
        assert client.call("tools/call", params).status in (200, 400), params
    shell.stop(child)


def test_a_session_is_its_callers_and_ends(shell):
    tokens = [shell.json("token", "create", "--scope", "read", "--actor", who)["token"] for who in ("ann", "bob")]
    _, address = shell.serve("--require-token")
    ann = Legacy(address, token=tokens[0])
    bob = Http(address, tokens[1])
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert ann.ask("ping").result == {} and bob.post(ping, ann.headers).status == 404
    assert bob.post(ping).status == 400
    for version in ("1999-01-01", "2026-07-28"):
        assert Legacy(address, version, token=tokens[0]).begun["protocolVersion"] == "2025-11-25"
    old = Legacy(address, "2025-03-26", token=tokens[0])
    batch = old.post([ping, {"jsonrpc": "2.0", "method": "notifications/x"}, {**ping, "id": 2}], old.headers)
    assert [one["id"] for one in json.loads(batch.text)] == [1, 2], batch
    assert ann.post([ping], ann.headers).error["code"] == -32600


def test_a_stream_begins_whatever_its_head_and_its_body_are_like(shell):
    _, address = serve(shell, texts=[WAITING])
    client = Http(address)
    task = task_of(client.tool("waiting"))
    for count in (1, 300):  # of which 256 are followed
        wanted = {"notifications": {"resourceSubscriptions": ["pawl://process/" + task] * count}}
        for size in (0, 1500, 1800, 2000, 3000):  # what fits into the memory of a stream's connection, and what does not
            for lines in (0, 8, 16):
                body, headers = client.request("subscriptions/listen", wanted, {})
                more = {"X-A%d" % number: "b" * (size // (lines + 1)) for number in range(lines + 1)}
                connection, response = client.open(body, {**headers, **more})
                assert response.status == 200 and response.readline() == b"event: message\n", (count, size, lines)
                assert b"acknowledged" in response.readline()
                connection.close()


def test_clients_that_vanish_cost_nothing_and_a_stop_ends_every_stream(shell):
    child, address = serve(shell, texts=[WAITING])
    client = Http(address)
    streams = [Listening(client, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}) for _ in range(50)]
    for stream in streams[:25]:
        stream.close()
    kept = streams[25:]
    for stream in kept:
        assert stream.next()["method"] == "notifications/subscriptions/acknowledged"
    client.tool("definition_put", {"name": "more", "text": WAITING.replace("waiting", "more")})
    for stream in kept:
        assert stream.next()["method"] == "notifications/tools/list_changed"
    child.send_signal(signal.SIGTERM)
    for stream in kept:
        assert stream.next()["result"]["_meta"][mcp.PREFIX + "subscriptionId"] == stream.id
    assert child.wait(timeout=30) == 0 and b"Sanitizer" not in child.stderr.read()


if __name__ == "__main__":
    harness.main(globals())
