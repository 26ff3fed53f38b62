"""mcp.py - clients of /mcp and of `pawl mcp`, written against the protocol and not against pawl."""
import http.client
import json
import pathlib
import subprocess
import sys
import threading
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
import harness  # noqa: E402

PREFIX = "io.modelcontextprotocol/"
TASKS = PREFIX + "tasks"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId",
         "tasks/update": "taskId", "tasks/cancel": "taskId"}


def capabilities(tasks=True, form=False):
    return {**({"extensions": {TASKS: {}}} if tasks else {}), **({"elicitation": {}} if form else {})}


def meta(caps):
    return {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": caps}


def events(text):
    """The messages of a stream of server-sent events."""
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]


class Reply:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text
        is_stream = headers.get("content-type", "").startswith("text/event-stream")
        self.messages = events(text) if is_stream else [json.loads(text)] if text else []

    @property
    def result(self):
        assert "result" in self.messages[-1], self
        return self.messages[-1]["result"]

    @property
    def error(self):
        assert "error" in self.messages[-1], self
        return self.messages[-1]["error"]

    def __repr__(self):
        return "%d %s" % (self.status, self.text[:600])


class Http:
    """POSTs messages; what is not given follows from the message."""

    def __init__(self, address, token=None):
        self.host, self.token, self.last = urllib.parse.urlparse(address).netloc, token, 0

    def open(self, body, headers):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        if self.token:
            sent["Authorization"] = "Bearer " + self.token
        connection.request("POST", "/mcp", body if isinstance(body, (bytes, str)) else json.dumps(body), sent)
        return connection, connection.getresponse()

    def post(self, body, headers=None):
        connection, response = self.open(body, headers or {})
        reply = Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode())
        connection.close()
        return reply

    def request(self, method, params, caps):
        self.last += 1
        body = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": {**params, "_meta": meta(caps)}}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
        if method in NAMED:
            headers["Mcp-Name"] = str(params.get(NAMED[method], ""))
        return body, headers

    def call(self, method, params=None, caps=None):
        body, headers = self.request(method, params or {}, capabilities() if caps is None else caps)
        return self.post(body, headers)

    def tool(self, name, arguments=None, caps=None):
        return self.call("tools/call", {"name": name, "arguments": arguments or {}}, caps)


class Listening:
    """A stream that stays open: its messages one by one."""

    def __init__(self, client, method, params, caps=None):
        body, headers = client.request(method, params, capabilities() if caps is None else caps)
        self.id = client.last
        self.connection, self.response = client.open(body, headers)
        assert self.response.status == 200, self.response.read()

    def next(self):
        while True:
            line = self.response.readline().decode()
            assert line, "the stream has ended"
            if line.startswith("data: "):
                return json.loads(line[6:])

    def close(self):
        self.connection.close()


class Legacy(Http):
    """A session of an older version."""

    def __init__(self, address, version="2025-11-25", caps=None, token=None):
        super().__init__(address, token)
        self.version, self.headers = version, {}
        begun = self.ask("initialize", {"protocolVersion": version, "capabilities": caps or {},
                                        "clientInfo": {"name": "test", "version": "1"}})
        self.begun = begun.result
        self.headers = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": version}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers)

    def message(self, method, params):
        self.last += 1
        return {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}}

    def ask(self, method, params=None):
        return self.post(self.message(method, params), self.headers)


class Stdio:
    """`pawl mcp` as a child of this process."""

    def __init__(self, shell, *words):
        import os
        self.child = subprocess.Popen([os.path.abspath(harness.PAWL), *words], cwd=shell.folder, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=shell.environment())
        shell.children.append(self.child)
        self.last = 0

    def send(self, message):
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.child.stdin.write(text + b"\n")
        self.child.stdin.flush()

    def read(self):
        line = self.child.stdout.readline()
        assert line, "it has closed its output: %s" % self.child.stderr.read().decode()
        return json.loads(line)

    def answer(self, number):
        """The answer to a request; what comes before it is dropped."""
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                return message

    def ask(self, method, params=None):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}})
        return self.answer(self.last)

    def modern(self, method, params=None, caps=None):
        return self.ask(method, {**(params or {}), "_meta": meta(capabilities() if caps is None else caps)})

    def end(self):
        self.child.stdin.close()
        code = self.child.wait(timeout=30)
        text = self.child.stderr.read().decode()
        assert code == 0 and "Sanitizer" not in text, (code, text)


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread
