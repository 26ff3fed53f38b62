"""pawl.yaml, the http tool, and in whose name steps run (B27; DESIGN section 4)."""
import http.server
import json
import socket
import threading

from run_flows import claim, server, state, steps, yaml
from web import harness


class Peer:
    """A server beside us that keeps what it was asked."""

    def __init__(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen.append((self.command, self.path, dict(self.headers), body))
                code = int(self.path.strip("/").split("?")[0] or 200)
                text = b'{"a":[1, 2.50]}' if code != 206 else b"x" * 5000
                self.send_response(code)
                self.send_header("Content-Type", "application/json" if code != 203 else "text/plain")
                if code == 302:
                    self.send_header("Location", "http://127.0.0.1:%d/200" % self.server.server_port)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def configure(shell, text):
    shell.write("pawl.yaml", text)


def run(shell, web, args, **members):
    """The one step of a flow that calls http; waits for its end."""
    text = json.dumps({"steps": {"a": {"tool": "http", "args": args, "retry": {"max": 1}, "done": True}}})
    web.ask("PUT", "/v1/definitions/call", text)
    instance = web.create(definition="call", **members)
    shell.wait_for(lambda: state(web, instance)[0] != "running")
    return steps(web, instance)[0]


LOCAL = "tools:\n  http: {hosts: [127.0.0.1, localhost], private: [127.0.0.1, '::1'], timeout: 20s, size: 4000}\n"


def test_http_calls_a_listed_host_and_answers_with_its_json(shell):
    peer = Peer()
    configure(shell, LOCAL)
    _, web = server(shell)
    base = "http://127.0.0.1:%d" % peer.port
    step = run(shell, web, {"url": base + "/200?x=1", "headers": {"X-A": "b"}})
    assert step["status"] == "done" and step["result"] == {"status": 200, "body": {"a": [1, 2.5]}}, step
    method, path, headers, _ = peer.seen[-1]
    assert (method, path, headers["X-A"]) == ("GET", "/200?x=1", "b")
    assert headers["Idempotency-Key"] == step["step_id"], headers
    step = run(shell, web, {"url": base + "/201", "json": {"q": [1]}, "expect": [201, 202]})
    assert step["status"] == "done" and peer.seen[-1][0] == "POST" and json.loads(peer.seen[-1][3]) == {"q": [1]}, step
    step = run(shell, web, {"url": base + "/203", "method": "PUT", "body": "text"})
    assert step["result"]["body"] == '{"a":[1, 2.50]}' and peer.seen[-1][3] == b"text", step
    step = run(shell, web, {"url": base + "/404"})
    assert step["status"] == "failed" and step["error"] == {"status": 404, "body": {"a": [1, 2.5]}}, step
    step = run(shell, web, {"url": base + "/302"})
    assert step["status"] == "failed" and step["error"]["status"] == 302, "redirects are not followed: %s" % step
    step = run(shell, web, {"url": base + "/206"})
    assert "over 4000 bytes" in step["error"], step
    assert web.post("/v1/verify").json["valid"]


def test_http_that_nobody_answers_fails_when_its_time_is_over(shell):
    silent = socket.create_server(("127.0.0.1", 0))  # takes the call and says nothing
    configure(shell, LOCAL.replace("20s", "300ms"))
    _, web = server(shell)
    step = run(shell, web, {"url": "http://127.0.0.1:%d/" % silent.getsockname()[1]})
    assert step["status"] == "failed" and step["error"] == "timeout: http took longer than 300 ms", step


class Liar:
    """Answers each call with the bytes that its path stands for, and hangs up."""

    ANSWERS = {
        "/short": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[1]",
        "/endless": b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nabc",
        "/beyond": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nabc",
        "/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "/half-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
        "/latin": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ncaf\xe9",
        "/json-latin": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n\"caf\xe9\"",
        "/nul": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b",
        "/broken": b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\ncaf\xe9",
        "/empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "/whole": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ncaf\xc3\xa9",
    }

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.calls = self.listener.getsockname()[1], []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            peer = self.listener.accept()[0]
            head = b""
            while b"\r\n\r\n" not in head:
                head += peer.recv(4096)
            self.calls.append(head.split()[1].decode())
            peer.sendall(self.ANSWERS[self.calls[-1]])
            peer.close()


def test_http_fails_where_an_answer_is_cut_short_or_is_no_text(shell):
    liar = Liar()
    configure(shell, LOCAL)
    _, web = server(shell)
    for path, words in (("/short", "cut short"), ("/endless", "over 4000 bytes"), ("/beyond", "over 4000 bytes"),
                        ("/chunk", "cut short"), ("/half-chunk", "cut short"), ("/latin", "not text"),
                        ("/json-latin", "not text"), ("/nul", "not text")):
        step = run(shell, web, {"url": "http://127.0.0.1:%d%s" % (liar.port, path)})
        assert step["status"] == "failed" and words in step["error"], (path, step)
    step = run(shell, web, {"url": "http://127.0.0.1:%d/broken" % liar.port})
    assert step["status"] == "failed" and step["error"] == {"status": 500, "body": None}, step
    for path, body in (("/empty", None), ("/whole", "caf\u00e9")):
        step = run(shell, web, {"url": "http://127.0.0.1:%d%s" % (liar.port, path)})
        assert step["status"] == "done" and step["result"] == {"status": 200, "body": body}, (path, step)


def test_http_that_was_cut_short_is_tried_again_as_its_retry_says(shell):
    liar = Liar()
    configure(shell, LOCAL)
    _, web = server(shell)
    yaml(web, "again", "steps: {a: {tool: http, args: {url: 'http://127.0.0.1:%d/short'}, retry: {max: 3, backoff: [1ms]}, done: true}}"
         % liar.port)
    instance = web.create(definition="again")
    shell.wait_for(lambda: state(web, instance)[0] == "failed")
    assert liar.calls == ["/short"] * 3, liar.calls


def test_http_asks_nobody_who_is_not_listed(shell):
    peer = Peer()
    configure(shell, "tools: {http: {hosts: [127.0.0.1, localhost, 'a.example'], private: [10.9.9.9]}}\n")
    _, web = server(shell)
    for host, words in (("127.0.0.1", "private address"), ("localhost", "private address"), ("127.0.0.2", "not listed"),
                        ("evil.example", "not listed"), ("a.example@127.0.0.1", "may not name a user"),
                        ("0x7f000001", "")):
        step = run(shell, web, {"url": "http://%s:%d/200" % (host, peer.port)})
        assert step["status"] == "failed" and words in step["error"], (host, step)
    for args in ({"url": "file:///etc/passwd"}, {"url": "ftp://127.0.0.1/"}, {"url": 5}, {}, {"url": "http://127.0.0.1/", "x": 1},
                 {"url": "http://127.0.0.1/", "method": "TRACE"}, {"url": "http://127.0.0.1/", "headers": {"Host": "x"}},
                 {"url": "http://127.0.0.1/", "headers": {"A": "b\r\nC: d"}}, {"url": "http://127.0.0.1/", "json": 1, "body": "x"}):
        step = run(shell, web, args)
        assert step["status"] == "failed" and step["error"].startswith("http:"), (args, step)
    assert peer.seen == []


def test_http_is_off_unless_it_is_configured_and_so_is_exec(shell):
    _, web = server(shell)
    assert "http is off" in run(shell, web, {"url": "http://127.0.0.1/"})["error"]
    yaml(web, "e", "steps: {a: {tool: exec, args: {argv: [echo, '1']}, retry: {max: 1}, done: true}}")
    instance = web.create(definition="e")
    shell.wait_for(lambda: state(web, instance)[0] != "running")
    assert "exec is off" in steps(web, instance)[0]["error"]


def test_exec_runs_what_is_listed_and_nothing_else(shell):
    configure(shell, "tools: {exec: {programs: [echo]}}\nlimits: {workers: 2}\n")
    _, web = server(shell)
    yaml(web, "e", "steps: {a: {tool: exec, args: {argv: '{{input}}'}, retry: {max: 1}, done: true}}")
    good, bad = web.create(definition="e", input=["echo", "7"]), web.create(definition="e", input=["cat"])
    shell.wait_for(lambda: state(web, good)[0] != "running" and state(web, bad)[0] != "running")
    assert steps(web, good)[0]["result"] == 7
    assert "'cat' is not listed" in steps(web, bad)[0]["error"]


def test_what_cannot_succeed_is_not_tried_again(shell):
    """Three attempts are the default; each wait between them would be 30 s and more."""
    configure(shell, "tools: {exec: {programs: [echo]}}\n")
    _, web = server(shell, "--test")
    for tool, args, words in (("exec", {"argv": ["cat"]}, "'cat' is not listed"), ("exec", {"argv": ["echo"], "x": 1}, "unknown argument 'x'"),
                              ("http", {"url": "http://127.0.0.1/"}, "http is off")):
        yaml(web, "final", json.dumps({"steps": {"a": {"tool": tool, "args": args, "done": True}}}))
        instance = web.create(definition="final")
        shell.wait_for(lambda: state(web, instance)[0] != "running")
        assert [(step["attempt"], step["status"]) for step in steps(web, instance)] == [(1, "failed")], steps(web, instance)
        assert words in steps(web, instance)[0]["error"]


def test_a_shell_job_needs_no_json(shell):
    configure(shell, "tools: {exec: true}\n")
    _, web = server(shell)
    yaml(web, "job", """
steps:
  list: {tool: exec, args: {argv: [sort, -r], stdin: "a\\nc\\nb\\n", as: lines}, next: say}
  say: {tool: exec, args: {argv: [sh, -c, 'echo "hello $WHO"; pwd'], env: {WHO: "{{input.name}}"}, cwd: /usr}, done: true}
""")
    instance = web.create(definition="job", input={"name": "ann"})
    shell.wait_for(lambda: state(web, instance)[0] != "running")
    assert [step["result"] for step in steps(web, instance)] == [["c", "b", "a"], "hello ann\n/usr"]


def test_b27_a_step_runs_with_the_rights_of_who_created_the_instance(shell):
    configure(shell, "tools: {log: {for: [ann]}, far: {for: [ann]}}\n")
    _, web = server(shell)
    yaml(web, "l", "steps: {a: {tool: log, args: {message: x}, done: true}}")
    yaml(web, "f", "steps: {a: {tool: far, done: true}}")
    for who in ("bob", None):
        members = {"actor_ref": who} if who else {}
        for name in ("l", "f"):  # f: also where a worker elsewhere would serve it
            instance = web.create(definition=name, **members)
            shell.wait_for(lambda: state(web, instance)[0] != "running")
            [step] = steps(web, instance)
            assert step["status"] == "failed" and "forbidden" in step["error"] and step["attempt"] == 1, step
    assert claim(web, "far") == []
    mine = web.create(definition="f", actor_ref="ann")
    [step] = claim(web, "far")
    assert step["instance_id"] == mine
    done = web.create(definition="l", actor_ref="ann")
    shell.wait_for(lambda: state(web, done)[0] == "completed")
    assert web.post("/v1/verify").json["valid"]


def test_a_config_that_says_what_nobody_knows_is_refused_with_its_place(shell):
    for text, words in (("listn: x\n", "line 1, column 1: unknown key 'listn'"), ("tls: {cert: a}\n", "both cert and key"),
                        ("tools:\n  http:\n    host: [a]\n", "line 3, column 5: unknown key 'tools.http.host'"),
                        ("log: xml\n", "expected logfmt or json"), ("limits: {workers: 0}\n", "1 to 256"), ("- a\n", "expected an object"),
                        ("listen: [\n", "line 2")):
        configure(shell, text)
        for verb in (("serve",), ("check", "pawl.yaml")):
            refused = shell.pawl(*verb, expect=1)
            assert words in refused.err and "pawl.yaml" in refused.err, refused
    configure(shell, "limits: {}  # nothing\n")
    assert "valid" in shell.pawl("check", "pawl.yaml").out


def test_a_config_says_where_to_listen_and_which_store_and_options_win(shell):
    shell.write("mine.yaml", "listen: 127.0.0.1:0\nstore: sqlite:mine.db\nhosts: [a.example]\nlog: json\n")
    child = shell.begin("serve", "--config", "mine.yaml")
    assert "(store sqlite:mine.db)" in child.stdout.readline().decode()
    shell.stop(child)
    child = shell.begin("--store", "sqlite:other.db", "serve", "--config", "mine.yaml")
    assert "(store sqlite:other.db)" in child.stdout.readline().decode()
    shell.stop(child)


def tokens_of(shell, *people):
    return {who: {"Authorization": "Bearer " + shell.json("token", "create", "--scope", "read,write,work", "--actor", who)["token"]}
            for who in people}


def test_nobody_has_a_tool_called_or_a_gate_opened_in_the_name_of_another_B27(shell):
    configure(shell, "tools:\n  paint: {for: [ann]}\n")
    tokens = tokens_of(shell, "ann", "bob")
    _, web = server(shell)
    yaml(web, "art", "steps: {a: {tool: paint, next: b}, b: {tool: null, approval: {by: [ann], count: 1}, done: true}}")

    def create(who, **members):
        return web.ask("POST", "/v1/instances", {"definition": "art", **members}, tokens[who])

    assert create("bob", actor_ref="ann").reason == "forbidden"
    one = create("bob").json["instance_id"]
    shell.wait_for(lambda: state(web, one)[0] == "failed")
    assert "forbidden: 'paint' is not for 'bob'" in steps(web, one)[0]["error"]
    two = create("ann", actor_ref="ann").json["instance_id"]
    assert web.get("/v1/instances/" + two).json["created_by"] == "ann"
    [step] = claim(web, "paint")
    web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    gate = steps(web, two)[1]["step_id"]
    for body in ({"actor_ref": "ann"}, {}):  # as ann, and as himself
        web.refused("forbidden", "POST", "/v1/steps/%s/approve" % gate, body, tokens["bob"])
    web.expect(200, "POST", "/v1/steps/%s/approve" % gate, {}, tokens["ann"])
    assert state(web, two)[0] == "completed"


def test_a_token_acts_for_its_actor_in_a_batch_in_an_alarm_and_when_it_runs_again_B27(shell):
    tokens = tokens_of(shell, "bob")
    _, web = server(shell)
    yaml(web, "f", "steps: {a: {tool: fail, retry: {max: 1}, done: true}}")
    lines = [json.dumps({"operation": "instance.create", "input": {"definition": "f", **more}}) for more in ({"actor_ref": "ann"}, {})]
    reply = web.ask("POST", "/v1/batch", "\n".join(lines), {"Content-Type": "application/x-ndjson", **tokens["bob"]})
    answers = [json.loads(line) for line in reply.body.decode().splitlines()]
    assert answers[0]["status"] == 403 and answers[1]["status"] == 201, answers
    alarm = {"after": "1h", "operation": "instance.create", "input": {"definition": "f", "actor_ref": "ann"}}
    web.refused("forbidden", "POST", "/v1/alarms", alarm, tokens["bob"])
    anns = web.create(definition="f", actor_ref="ann")
    shell.wait_for(lambda: state(web, anns)[0] == "failed")
    again = web.expect(201, "POST", "/v1/instances/%s/redrive" % anns, {}, tokens["bob"]).json["instance_id"]
    assert web.get("/v1/instances/" + again).json["created_by"] == "bob", "not with ann's rights"
    told = web.ask("GET", "/v1/instances/%s/history?actor_ref=ann" % anns, None, tokens["bob"]).json
    assert "entries" in told, "what one looks for is no name one acts in"


if __name__ == "__main__":
    harness.main(globals())
