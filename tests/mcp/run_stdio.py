"""MCP on stdin and stdout: both eras in one process, questions, subscriptions, bad lines, the end."""
import json
import signal

import mcp
from mcp import Stdio, capabilities, harness

WAITING = "name: waiting\nsteps:\n  wait: {wait: {signal: go}, done: true}\n"
GATED = "name: gated\nsteps:\n  sign: {approval: {by: [ann]}, next: ship}\n  ship: {tool: set, args: {shipped: true}, done: true}\n"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}


def define(shell, *texts):
    for text in texts:
        shell.pawl("define", shell.write("d.yaml", text))


def test_both_eras_are_spoken_by_one_process(shell):
    define(shell, WAITING)
    client = Stdio(shell, "mcp")
    found = client.modern("server/discover")["result"]
    assert mcp.TASKS in found["capabilities"]["extensions"] and "tasks" not in found["capabilities"], found
    assert client.ask("tools/list")["error"]["code"] == -32600  # of the older era, before initialize
    assert client.ask("initialize", HELLO)["result"]["protocolVersion"] == "2025-11-25"
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    names = [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
    assert "waiting" in names and names == [tool["name"] for tool in client.modern("tools/list")["result"]["tools"]]
    task = client.modern("tools/call", {"name": "waiting"})["result"]["taskId"]
    client.end()
    again = Stdio(shell, "mcp")  # the process has gone, the task has not
    assert again.modern("tasks/get", {"taskId": task})["result"]["status"] == "working"
    again.end()


def test_a_legacy_client_is_asked_about_a_gate_while_it_waits_for_the_result(shell):
    define(shell, GATED)
    client = Stdio(shell, "mcp", "--actor", "ann")
    client.ask("initialize", HELLO)
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    task = client.ask("tools/call", {"name": "gated", "task": {}})["result"]["task"]["taskId"]
    assert client.ask("tasks/get", {"taskId": task})["result"]["status"] == "input_required"
    client.send({"jsonrpc": "2.0", "id": "r", "method": "tasks/result", "params": {"taskId": task}})
    asked = client.read()
    assert asked["method"] == "elicitation/create", asked
    assert asked["params"]["_meta"][mcp.PREFIX + "related-task"] == {"taskId": task}, asked
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"decision": "approve"}}})
    assert client.answer("r")["result"]["structuredContent"] == {"shipped": True}
    history = client.ask("tools/call", {"name": "process_history", "arguments": {"instance_id": task}})
    assert "ann" in [entry.get("actor_ref") for entry in history["result"]["structuredContent"]["entries"]]
    client.end()


def test_a_listener_and_a_subscriber_are_told_on_the_same_channel(shell):
    define(shell, WAITING)
    client = Stdio(shell, "mcp")
    task = client.modern("tools/call", {"name": "waiting"})["result"]["taskId"]
    client.ask("initialize", HELLO)
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    client.ask("resources/subscribe", {"uri": "pawl://process/" + task})
    client.send({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": {
        "notifications": {"taskIds": [task]}, "_meta": mcp.meta(capabilities())}})
    assert client.read()["method"] == "notifications/subscriptions/acknowledged"
    client.send({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": {
        "name": "process_signal", "arguments": {"instance_id": task, "name": "go"}}})
    seen = set()
    while not {"notifications/tasks", "answered"} <= seen:
        message = client.read()
        seen.add(message.get("method", "answered"))
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
        "requestId": "l", "_meta": mcp.meta({})}})
    assert client.modern("tools/list")["result"]["tools"]
    client.end()


def test_a_batch_of_2025_03_26_has_one_answer_and_no_other_version_takes_one(shell):
    define(shell, GATED)
    client = Stdio(shell, "mcp", "--actor", "ann")
    ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
    client.send([ping])
    assert client.read()["error"]["code"] == -32600  # before initialize
    client.ask("initialize", {**HELLO, "protocolVersion": "2025-03-26"})
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    call = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "process_list", "arguments": {}}}
    client.send([ping, {"jsonrpc": "2.0", "method": "notifications/x"}, 7, call, {**ping, "id": "b", "method": "no/such"}])
    answers = client.read()
    assert [one.get("id") for one in answers] == ["p", None, "c", "b"], answers
    assert answers[1]["error"]["code"] == -32600 and answers[3]["error"]["code"] == -32601, answers
    assert answers[2]["result"]["structuredContent"]["instances"] == [], answers
    client.send([{"jsonrpc": "2.0", "method": "notifications/x"}])  # nothing to answer
    client.send([])
    assert client.read()["error"]["code"] == -32600
    client.send([ping] * 101)
    assert client.read()["error"]["code"] == -32600
    assert client.ask("ping")["result"] == {}
    client.end()
    newer = Stdio(shell, "mcp")
    newer.ask("initialize", HELLO)
    newer.send([ping])
    assert newer.read()["error"]["code"] == -32600
    newer.end()


def test_a_request_that_is_given_up_gets_no_answer_in_either_era(shell):
    define(shell, "name: slow\nmcp: {sync_wait: 60s}\nsteps:\n  wait: {tool: sleep, args: {for: 600s}, done: true}\n")
    client = Stdio(shell, "mcp")
    for number, more in (("a", {"_meta": mcp.meta({})}), ("b", {})):  # its own _meta is optional
        client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "slow", "_meta": {**mcp.meta({}), "progressToken": number}}})
        assert client.read()["params"]["progressToken"] == number  # it waits
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, **more}})
    client.ask("initialize", HELLO)
    client.send({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "slow", "_meta": {"progressToken": "c"}}})
    assert client.read()["params"]["progressToken"] == "c"
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}})
    assert len(client.ask("tools/call", {"name": "process_list"})["result"]["structuredContent"]["instances"]) == 3  # they go on
    client.child.stdin.close()
    rest = client.child.stdout.read()  # were one of them not given up, it would be answered now
    assert client.child.wait(timeout=30) == 0 and rest == b"", rest


def test_bad_lines_are_answered_one_by_one_and_nothing_else_is_written(shell):
    client = Stdio(shell, "mcp")
    for line, code in ((b"{", -32700), (b"[]", -32600), (b"\xff\xff", -32700), (b"7", -32600), (b"x" * (1 << 21), -32600)):
        client.send(line)
        assert client.read()["error"]["code"] == code, line[:20]
    client.send(b"")
    client.send(b"   ")
    assert client.modern("tasks/get", {"taskId": "none"})["error"]["code"] == -32602
    client.end()


def test_a_signal_ends_it_at_once_also_while_a_call_waits(shell):
    define(shell, WAITING)
    client = Stdio(shell, "mcp")
    client.send({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
                 "params": {"notifications": {"toolsListChanged": True}, "_meta": mcp.meta(capabilities())}})
    client.read()
    client.child.send_signal(signal.SIGTERM)
    assert client.read()["result"]["resultType"] == "complete"
    assert client.child.wait(timeout=30) == 0
    assert json.loads(shell.pawl("list", "--json").out)["instances"] == []


if __name__ == "__main__":
    harness.main(globals())
