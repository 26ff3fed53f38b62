"""A flow that notifies: what is started when it ends, fails or waits for a person, and signed webhooks."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

from web import Web, harness

EXAMPLES = harness.ROOT / "examples"
KEY = {"HOOK_KEY": "a secret of more than sixty-four bytes, so that it is hashed before it is used as a key"}
CONFIG = "tools:\n  http: {hosts: [127.0.0.1], private: [127.0.0.1], secrets: [HOOK_KEY, NOT_SET]}\n"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def serve(shell, port):
    shell.write("config.yaml", CONFIG)
    child = shell.begin("serve", "--config", "config.yaml", "--listen", "127.0.0.1:%d" % port, env=KEY)
    assert b"ready" in child.stdout.readline()
    return child, Web("http://127.0.0.1:%d" % port)


def receive(shell, program, port):
    """An example's receiver; what it took is in a file."""
    out = open(shell.folder / "taken", "a")
    command = ["node"] if program.endswith(".mjs") else [sys.executable]
    child = subprocess.Popen(command + [str(EXAMPLES / program), str(port)], stdout=out, env={**os.environ, **KEY})
    shell.children.append(child)
    return child


def taken(shell):
    lines = (shell.folder / "taken").read_text().splitlines() if (shell.folder / "taken").exists() else []
    return [(line.split(" ", 1)[0], json.loads(line.split(" ", 1)[1])) for line in lines]


def put(web, name, text):
    web.ask("PUT", "/v1/definitions/" + name, text, {"Content-Type": "application/yaml"})
    return web.expect(200, "PUT", "/v1/definitions/" + name, text, {"Content-Type": "application/yaml"})


def told(port, on):
    return "notify: {definition: webhook, on: [%s], input: {url: 'http://127.0.0.1:%d/', team: shop}}\n" % (on, port)


def test_an_end_a_failure_and_a_gate_are_told_once_and_signed(shell):
    for program in ("webhook_receiver.py", "webhook_receiver.mjs"):
        if program.endswith("mjs") and not shutil.which("node"):
            continue
        (shell.folder / "taken").unlink(missing_ok=True)
        port = free_port()
        server, web = serve(shell, free_port())
        receive(shell, program, port)
        put(web, "webhook", (EXAMPLES / "webhook.yaml").read_text().replace("initial: 1s", "initial: 50ms").replace("factor: 3", "factor: 1"))
        put(web, "good-%d" % port, "do: [{name: a, tool: log, args: {message: hi}}]\noutput: {n: 1}\n" + told(port, "completed, failed"))
        put(web, "bad-%d" % port, "do: [{name: a, tool: fail, args: {error: no}}]\n" + told(port, "completed, failed"))
        put(web, "ask-%d" % port, "steps: {ok: {approval: {by: [ann]}, done: true}}\n" + told(port, "gate"))
        good, bad, ask = (web.create(definition="%s-%d" % (name, port)) for name in ("good", "bad", "ask"))
        shell.wait_for(lambda: len(taken(shell)) == 3)
        notices = {event["instance_id"]: event for _, event in taken(shell)}
        assert notices[good]["on"] == "completed" and notices[good]["result"] == {"n": 1}, notices
        assert notices[bad]["on"] == "failed" and notices[bad]["error"] == "no" and notices[bad]["instance"]["definition"] == "bad-%d" % port
        assert notices[ask] == {"instance_id": ask, "on": "gate", "step": "ok"}, "its first decision: the flow has no words of its own yet"
        assert len({key for key, _ in taken(shell)}) == 3
        assert web.get("/v1/instances/" + good).json["status"] == "completed" and web.get("/v1/instances/" + bad).json["status"] == "failed"
        assert web.expect(200, "POST", "/v1/verify").json["valid"]
        shell.stop(server)
    tool = subprocess.run([sys.executable, str(harness.ROOT / "tools/verify.py"), str(shell.folder / "pawl.db")], capture_output=True)
    assert tool.returncode == 0, tool.stdout


def test_a_notice_outlives_kill_9_and_a_receiver_that_is_away_and_changes_no_outcome(shell):
    port, address = free_port(), free_port()
    server, web = serve(shell, address)
    put(web, "webhook", (EXAMPLES / "webhook.yaml").read_text().replace("initial: 1s, factor: 3", "initial: 100ms, factor: 1"))
    put(web, "good", "do: [{name: a, tool: log, args: {message: hi}}]\n" + told(port, "completed"))
    instance = web.create(definition="good")
    shell.wait_for(lambda: len(web.get("/v1/instances?definition=webhook").json["instances"]) == 1)
    shell.stop(server, signal.SIGKILL, expect=None)
    receive(shell, "webhook_receiver.py", port)
    server, web = serve(shell, address)
    shell.wait_for(lambda: len(taken(shell)) == 1)
    assert taken(shell)[0][1]["instance_id"] == instance
    [notice] = web.get("/v1/instances?definition=webhook").json["instances"]
    shell.wait_for(lambda: web.get("/v1/instances/" + notice["instance_id"]).json["status"] == "completed")
    assert web.get("/v1/instances/" + instance).json["status"] == "completed"
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    assert shell.stop(server)


def test_a_notice_that_cannot_be_started_or_sent_changes_no_outcome(shell):
    server, web = serve(shell, free_port())
    put(web, "none", "do: [{name: a, tool: set, args: {x: 1}}]\nnotify: {definition: is-not-there}\n")
    put(web, "unlisted", "do: [{name: t, tool: http, args: {url: 'http://127.0.0.1:1/', json: 1, sign: PATH}}]")
    put(web, "unset", "do: [{name: t, tool: http, args: {url: 'http://127.0.0.1:1/', json: 1, sign: NOT_SET}}]")
    instances = [web.create(definition=name) for name in ("none", "unlisted", "unset")]
    shell.wait_for(lambda: all(web.get("/v1/instances/" + one).json["status"] in ("completed", "failed") for one in instances))
    ends = [web.get("/v1/instances/" + one).json for one in instances]
    assert ends[0]["status"] == "completed", ends[0]
    assert "'PATH' is not listed in tools.http.secrets" in str(ends[1]["error"]), ends[1]
    assert "the environment of pawl has no secret 'NOT_SET'" in str(ends[2]["error"]), ends[2]
    assert shell.stop(server)


def test_a_result_too_deep_or_too_large_for_a_notice_is_left_out_of_it(shell):
    _, address = shell.serve()
    web = Web(address)
    put(web, "tell", "do: [{name: a, tool: set, args: {got: '{{input.event}}'}}]\noutput: '{{steps.a.result.got}}'")
    put(web, "echo", "do: [{name: a, tool: set, args: {v: '{{input.v}}'}}]\noutput: '{{steps.a.result}}'\nnotify: {definition: tell}")
    for value in (json.loads("[" * 60 + "]" * 60), "x" * 20000):
        instance = web.create(definition="echo", input={"v": value})
        shell.wait_for(lambda: web.get("/v1/instances/" + instance).json["status"] == "completed")
    shell.wait_for(lambda: [one["status"] for one in web.get("/v1/instances?definition=tell").json["instances"]] == ["completed"] * 2)
    for one in web.get("/v1/instances?definition=tell").json["instances"]:
        event = web.get("/v1/instances/" + one["instance_id"]).json["result"]
        assert event["left_out"] > 100 and "result" not in event, event
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_a_notice_and_hundreds_of_children_may_come_of_one_answer(shell):
    web = Web(shell.serve()[1])
    put(web, "heard", "do: [{tool: log, args: {message: heard}}]")
    put(web, "kid", "do: [{wait: {signal: x}}]")
    put(web, "many", "notify: {definition: heard, on: [gate]}\ndo:\n  - {tool: far}\n  - dopar: [{approval: {}}, {map: "
        "{over: %s, collect: false, step: {spawn: {definition: kid}}}}]" % list(range(900)))
    web.create(definition="many")
    [step] = web.post("/v1/steps/claim", {"tools": ["far"], "worker": "w"}).json["steps"]
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    shell.wait_for(lambda: web.get("/v1/instances/counts?definition=heard").json["by_status"].get("completed") == 1)
    assert web.get("/v1/instances/counts?definition=kid").json["total"] == 900


def test_what_cannot_be_a_notice_is_refused_when_the_definition_is_put(shell):
    _, address = shell.serve()
    web = Web(address)
    for text, words in (("notify: webhook", "expected {definition: NAME"), ("notify: {definition: w, on: [ended]}", "expected completed, failed or gate, found ended"),
                        ("notify: {definition: w, on: []}", "must be a list of"), ("notify: {definition: self@2}", "would never end"),
                        ("notify: {definition: w, url: x}", "url"),
                        ("notify: {definition: w, input: {event: 1}}", "'input.event' is what happened"), ("notify: {definition: w, input: [1]}", "must be an object")):
        refused = web.ask("PUT", "/v1/definitions/self", "name: self\ndo: [{tool: log}]\n" + text, {"Content-Type": "application/yaml"})
        assert refused.reason == "invalid-definition" and words in refused.json["detail"], (text, refused.json)


if __name__ == "__main__":
    harness.main(globals())
