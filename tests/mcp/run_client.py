"""Steps that call MCP servers (`tool: mcp`): a second pawl, over HTTP in both eras and as a program, and a server that
hangs up."""
import http.server
import json
import os
import pathlib
import signal
import threading

from mcp import Http, harness

PAWL = os.path.abspath(harness.PAWL)
STEP = "name: %s\nsteps:\n  ask: {tool: mcp, args: {%s}, done: true}\n"
DELETE = STEP % ("delete-%s", "server: %s, tool: confirm_delete, args: {filename: a.txt}")
SLOW = STEP % ("slow-%s", 'server: %s, tool: slow_compute, args: {seconds: %d, label: it}')


class Remote:
    """A pawl in a folder of its own, with the tools of the conformance suite."""

    def __init__(self, shell, port="0"):
        folder = shell.folder / "remote"
        folder.mkdir(exist_ok=True)
        self.shell = harness.Shell(folder)
        self.shell.children = shell.children
        self.child, self.address = self.shell.serve("--mcp-fixtures")


def configure(shell, address, more=""):
    shell.write("pawl.yaml", """tools:
  mcp:
    servers:
      far: {url: "%s/mcp", timeout: 30s}
      old: {url: "%s/mcp", era: legacy, timeout: 30s}
      near: {command: [%s, --store, "sqlite:program.db", mcp, --mcp-fixtures]}
%s""" % (address, address, PAWL, more))


def define(shell, text):
    return shell.pawl("define", shell.write("d.yaml", text))


def instance(shell, id):
    return shell.json("show", id)


def ended(shell, id, status="completed"):
    shell.wait_for(lambda: instance(shell, id)["status"] in ("completed", "failed", "cancelled"))
    found = instance(shell, id)
    assert found["status"] == status, found
    return found


def gate(address):
    """The one gate that waits: what people are asked, and its step."""
    found = Http(address).tool("approval_list").result["structuredContent"]["gates"]
    return (found[0]["ask"], found[0]["step_id"]) if found else None


def wait_gate(shell, address):
    shell.wait_for(lambda: gate(address))
    return gate(address)


def decide(address, step, payload=None, decision="approve"):
    given = {"step_id": step, "decision": decision, "actor_ref": "ann", **({"payload": payload} if payload is not None else {})}
    reply = Http(address).tool("approval_decide", given)
    assert not reply.result.get("isError"), reply


def history(shell, id):
    return [(entry["action"], entry.get("step")) for entry in shell.json("history", id)["entries"]]


def call_of(shell):
    """The newest instance of pawl.mcp."""
    return shell.json("list", "--definition", "pawl.mcp", "--limit", "1")["instances"][0]["instance_id"]


# ---- Calls ----


def test_a_step_calls_a_server_of_either_era_and_a_program(shell):
    remote = Remote(shell)
    configure(shell, remote.address)
    for server in ("far", "old", "near"):
        text = ("name: %s\nsteps:\n  hi: {tool: mcp, args: {server: %s, tool: greet, args: {name: '{{input.who}}'}}, next: slow}\n"
                "  slow: {tool: mcp, args: {server: %s, tool: slow_compute, args: {seconds: %d, label: it}}, next: end}\n"
                "  end: {tool: set, args: {said: '{{steps.hi.result.text}}', then: '{{steps.slow.result.content.0.text}}'}, done: true}\n")
        done = shell.pawl("--store", "sqlite:%s.db" % server, "run", shell.write("d.yaml", text % (server, server, server, server == "far")),
                          "--input", '{"who": "Ann"}')
        assert '{"said":"Hello, Ann!","then":"Computed it in %d s"}' % (server == "far") in done.out.replace('": ', '":'), done


def test_resources_prompts_and_lists_are_read_by_a_step(shell):
    remote = Remote(shell)
    configure(shell, remote.address)
    text = """name: reads
steps:
  one: {tool: mcp, args: {server: far, resource: "test://static-text"}, next: two}
  two: {tool: mcp, args: {server: old, prompt: test_prompt_with_arguments, args: {arg1: a, arg2: b}}, next: three}
  three: {tool: mcp, args: {server: near, list: tools}, next: end}
  end: {tool: set, args: {a: "{{steps.one.result.text}}", b: "{{steps.two.result.text}}", c: "{{steps.three.result.tools.0.name}}"}, done: true}
"""
    out = shell.pawl("run", shell.write("d.yaml", text)).out
    assert '"a":"This is the content of the static text resource."' in out and "arg1='a', arg2='b'" in out, out


def test_pawl_tools_lists_what_steps_can_call_and_what_servers_offer(shell):
    remote = Remote(shell)
    configure(shell, remote.address, "      gone: {url: 'http://127.0.0.1:1/mcp'}\n")
    found = shell.json("tools")
    servers = {one["server"]: one for one in found["servers"]}
    for name, transport, version in (("far", "http", "2026-07-28"), ("old", "http", "2025-11-25"), ("near", "stdio", "2026-07-28")):
        one = servers[name]
        assert (one["transport"], one["version"], one["error"]) == (transport, version, None), one
        assert "greet" in [tool["name"] for tool in one["tools"]], one
    assert servers["gone"]["error"] and servers["gone"]["tools"] == [], servers["gone"]
    on = {one["tool"]: one["on"] for one in found["tools"]}
    assert on["mcp"] and on["log"] and not on["http"] and "mcp.call" not in on, on
    _, address = shell.serve()
    words = shell.pawl("tools").out
    assert "MCP server far (http, 2026-07-28)" in words and "off: pawl.yaml turns it on" in words, words


# ---- Crashes ----


def test_a_remote_task_is_found_again_by_its_id_after_a_kill_of_either_side(shell):
    remote = Remote(shell)
    configure(shell, remote.address)
    child, _ = shell.serve()
    servers = ("far", "old") if os.environ.get("PAWL_TEST_LONG") else ("far",)
    for server in servers:
        define(shell, SLOW % (server, server, 2))
        id = shell.pawl("start", "slow-" + server).out.strip()
        shell.wait_for(lambda: ("step.complete", "keep") in history(shell, call_of(shell)))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child, _ = shell.serve()
        found = ended(shell, id)
        assert found["result"]["text"] == "Computed it in 2 s", found
    assert len(remote.shell.json("list", "--definition", "slow_compute")["instances"]) == len(servers)


def test_a_call_that_was_under_way_at_a_kill_has_an_unknown_outcome_unless_it_may_be_repeated(shell):
    with Hangup(hang=True) as server:
        configure(shell, "http://127.0.0.1:1", "      bad: {url: \"%s\"}\n" % server.address)
        for tool, status in (("write", "failed"), ("read", "completed")):
            child, _ = shell.serve()
            define(shell, STEP % (tool, "server: bad, tool: " + tool))
            before = len(server.calls)
            id = shell.pawl("start", tool).out.strip()
            shell.wait_for(lambda: len(server.calls) > before)
            child.send_signal(signal.SIGKILL)
            child.wait()
            server.hang = False
            child, _ = shell.serve()
            found = ended(shell, id, status)
            if tool == "write":
                assert found["error"]["kind"] == "unknown-outcome" and len(server.calls) == before + 1, found
            shell.stop(child)
            server.hang = True


# ---- Questions ----


def asked_and_answered(shell, server, payload, decision="approve", status="completed"):
    remote = Remote(shell)
    configure(shell, remote.address)
    child, address = shell.serve()
    define(shell, DELETE % (server, server))
    id = shell.pawl("start", "delete-" + server).out.strip()
    ask, step = wait_gate(shell, address)
    assert ask["server"] == server and ask["tool"] == "confirm_delete" and "confirm" in ask["message"], ask
    assert "decision" in ask["requestedSchema"]["properties"], ask
    assert ask["message"] in " ".join(shell.pawl("gates").out.split()), shell.pawl("gates")
    child.send_signal(signal.SIGKILL)  # what was asked is kept
    child.wait()
    _, address = shell.serve()
    assert gate(address) == (ask, step)
    decide(address, step, payload, decision)
    return ended(shell, id, status)


def test_a_question_of_a_remote_task_is_a_gate_that_survives_a_kill(shell):
    found = asked_and_answered(shell, "far", {"decision": "approve"})
    assert found["result"]["text"] == "Deleted a.txt", found


def test_a_question_of_a_remote_task_of_the_older_era_is_a_gate_too(shell):
    found = asked_and_answered(shell, "old", {"decision": "approve"})
    assert found["result"]["text"] == "Deleted a.txt", found


def test_a_gate_that_is_rejected_declines_the_question(shell):
    found = asked_and_answered(shell, "far", None, "reject", "failed")
    assert found["error"]["kind"] == "tool-error", found


def test_questions_before_a_task_and_on_a_call_of_the_older_era_are_gates(shell):
    remote = Remote(shell)
    configure(shell, remote.address)
    _, address = shell.serve()
    for server, tool, args, answers, text in (
            ("far", "test_input_required_result_elicitation", "{}", [{"name": "Ann"}], "Hello, Ann!"),
            ("far", "test_input_required_result_multi_round", "{}", [{"name": "Ann"}, {"color": "red"}], "red"),
            ("far", "test_tool_with_task", "{}", [{"name": "Ann"}], "Ann"),
            ("old", "test_elicitation", "{message: 'who?'}", [{"username": "ann", "email": "a@b.c"}], "ann"),
            ("near", "test_elicitation_sep1034_defaults", "{}", [None], "John Doe")):
        server = "old" if server == "near" else server
        define(shell, STEP % ("q", "server: %s, tool: %s, args: %s" % (server, tool, args)))
        id = shell.pawl("start", "q").out.strip()
        for answer in answers:
            _, step = wait_gate(shell, address)
            decide(address, step, answer)
            shell.wait_for(lambda: not gate(address) or gate(address)[1] != step)
        assert text in ended(shell, id)["result"]["text"], (tool, instance(shell, id))


# ---- Ends ----


def test_a_cancel_is_passed_on_to_the_remote_task(shell):
    remote = Remote(shell)
    configure(shell, remote.address)
    shell.serve()
    for server in ("far", "old"):
        define(shell, SLOW % (server, server, 600))
        id = shell.pawl("start", "slow-" + server).out.strip()
        shell.wait_for(lambda: ("step.complete", "keep") in history(shell, call_of(shell)))
        shell.pawl("cancel", id)
        ended(shell, id, "cancelled")
        shell.wait_for(lambda: not remote.shell.json("list", "--status", "running")["instances"])
    found = remote.shell.json("list", "--definition", "slow_compute")["instances"]
    assert [one["status"] for one in found] == ["cancelled", "cancelled"], found


def test_a_task_that_its_server_does_not_know_is_lost(shell):
    remote = Remote(shell)
    configure(shell, remote.address)
    shell.serve()
    define(shell, SLOW % ("far", "far", 600))
    id = shell.pawl("start", "slow-far").out.strip()
    shell.wait_for(lambda: ("step.complete", "keep") in history(shell, call_of(shell)))
    port = remote.address.rsplit(":", 1)[1]
    remote.shell.stop(remote.child)
    for file in pathlib.Path(remote.shell.folder).glob("pawl.db*"):
        file.unlink()
    remote.shell.begin("serve", "--listen", "127.0.0.1:" + port, "--mcp-fixtures")
    found = ended(shell, id, "failed")
    assert found["error"]["kind"] == "task-lost" and found["error"]["server"] == "far", found


class Hangup:
    """A server of the newer era that hangs up, or waits, instead of answering a call."""

    TOOLS = [{"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": name == "read"}}
             for name in ("read", "write")]

    def __init__(self, hang=False):
        self.calls, self.hang, self.released = [], hang, threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if message["method"] == "tools/call":
                    outer.calls.append(message)
                    if outer.hang:
                        outer.released.wait(60)
                    if outer.hang or len(outer.calls) == 1 or message["params"]["name"] == "write":
                        self.close_connection = True
                        return
                result = {"server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {}},
                          "tools/list": {"tools": outer.TOOLS},
                          "tools/call": {"content": [{"type": "text", "text": "read"}]}}[message["method"]]
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **result}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "http://127.0.0.1:%d/mcp" % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()


def test_a_call_without_an_answer_is_repeated_only_where_that_is_safe(shell):
    with Hangup() as server:
        configure(shell, "http://127.0.0.1:1", "      bad: {url: \"%s\"}\n" % server.address)
        out = shell.pawl("run", shell.write("d.yaml", STEP % ("r", "server: bad, tool: read"))).out
        assert '"text":"read"' in out and len(server.calls) == 2, (out, server.calls)
        assert len({json.dumps(call["params"]["_meta"]["pawl/idempotencyKey"]) for call in server.calls}) == 1, server.calls
        text = STEP % ("w", "server: bad, tool: write")
        out = shell.pawl("run", shell.write("d.yaml", text.replace("done: true", "retry: {max: 3}, done: true")), expect=1).out
        assert '"kind":"unknown-outcome"' in out and len(server.calls) == 3, (out, server.calls)


# ---- Mistakes ----


def test_a_mistake_in_the_rules_or_in_a_step_is_named(shell):
    for rules, words in (("{a: {}}", "either a 'url' or a 'command'"), ("{a: {url: 'ftp://x'}}", "a url of https:// or http://"),
                         ("{a: {command: [x], speed: 1}}", "unknown key 'tools.mcp.servers.a.speed'"),
                         ("{a: {command: []}}", "the program and its arguments"), ("{a: {url: 'http://x', timeout: soon}}", "a duration")):
        shell.write("pawl.yaml", "tools: {mcp: {servers: %s}}\n" % rules)
        assert words in shell.pawl("check", "pawl.yaml", expect=None).out + shell.pawl("serve", expect=None).err, rules
    shell.write("pawl.yaml", "tools: {mcp: {servers: {gone: {url: 'http://127.0.0.1:1/mcp'}, none: {command: [/no/such]},\n"
                "  out: {url: 'http://198.51.100.7/mcp', timeout: 1s}, mine: {command: [/bin/cat], for: [ann]},\n  ends: {command: [sh, -c, 'echo no such key >&2']}}}}\n")
    for args, words in (("server: other, tool: x", "no server 'other'"), ("server: none, tool: x", "could not be started"),
                        ("server: mine, tool: x", "forbidden"), ("server: gone, tool: x", "unreachable"),
                        ("server: ends, tool: x", "stderr: no such key")):
        done = shell.pawl("run", shell.write("d.yaml", STEP % ("m", args)), "--test", expect=1)
        assert words in done.out, (args, done)
    for args, words in (("tool: x", "needs {server"), ("server: a", "one of 'tool', 'resource'"),
                        ("server: a, tool: x, speed: 1", "does not know 'speed'")):
        assert words in shell.pawl("check", shell.write("d.yaml", STEP % ("m", args)), expect=1).out, args


if __name__ == "__main__":
    harness.main(globals())
