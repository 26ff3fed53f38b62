"""Hostile input on every route of the table (src/api/describe): each is refused by name, changes nothing, and leaves
the server and its store as they were. And many clients through kills: what was acknowledged is there once."""
import http.client
import json
import re
import signal
import threading
import urllib.parse

import table
from web import Web, harness

OPS = table.ROUTED
WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"], "terminal_kinds": {"off": "cancel"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"}, {"from_state": "on", "action": "stop", "to_state": "off"}]}
GATE = "name: gate\nsteps: {start: {name: ask, tool: null, done: true}}\n"
MIB = 1 << 20
GARBAGE = {  # bodies that are no JSON, or none that is allowed
    "cut off": b'{"a":', "two values": b"{} {}", "a comment": b"{/**/}", "single quotes": b"{'a':1}", "no quotes": b"{a:1}", "a comma too many": b'{"a":1,}',
    "NaN": b'{"a":NaN}', "a number that is none": b'{"a":01}', "a bad escape": b'{"a":"\\x"}', "half a surrogate": b'{"a":"\\ud800"}', "a raw NUL": b'{"a":"\0"}',
    "an escaped NUL": b'{"a":"\\u0000"}', "a line end in a string": b'{"a":"\n"}', "bad UTF-8": b'{"a":"\xff"}', "an overlong form": b'{"a":"\xc0\x80"}',
    "a byte order mark": b'\xef\xbb\xbf{}', "UTF-16": '{"a":1}'.encode("utf-16"), "twice the same key": b'{"actor_ref":"a","actor_ref":"b"}',
    "the same key in two spellings": b'{"actor_ref":"a","\\u0061ctor_ref":"b"}', "depth 65": b'{"payload":' + b"[" * 64 + b"]" * 64 + b"}",
    "depth 100,000": b"[" * 100000, "a list": b"[]", "a string": b'"x"', "a number": b"5", "true": b"true", "null beside text": b"null x", "blanks": b" \n",
}
TIMES = ("created_after", "created_before", "ended_after", "ended_before", "fired_after", "fired_before",
         "fired_at")
ODD_IDS = {"%20": "invalid-request", "%E2%80%83": "invalid-request", "%00": "invalid-request", "%ff": "invalid-request", "%zz": "invalid-request", "%": "invalid-request",
           "..": None, "%2e%2e%2fetc%2fpasswd": None, "a" * 3000: None, "'%20or%201=1--": None, "%25s%25n": None, "%3Cscript%3E": None, "%F0%9F%98%80": None}
WRONG = {"string": (5, 1.5, True, [], {}, ["x"]), "integer": ("5", 1.5, True, [], {}, 1e300, 2 ** 63, -2 ** 70), "bool": ("true", 1, 0, [], {}),
         "object": ("x", 5, [], True)}
SHAPES = {("step.claim", "tools"): (5, "x", {}, [5], [""]), ("step.complete_many", "steps"): (5, "x", {}, [5], [[]], [{}]),
          ("step.complete_many", "claim"): (5, "x", [], {"tools": 5}), ("instance.create", "declaration"): (5, "x", [], True),
          ("instance.create", "instance_metadata"): ({}, "")}


class Line:
    """One kept connection; made again where the server closed it."""

    def __init__(self, web):
        self.web, self.connection = web, None

    def ask(self, method, path, body=None, headers=()):
        for _ in range(2):
            self.connection = self.connection or http.client.HTTPConnection(self.web.host, timeout=60)
            try:
                self.connection.request(method, path, body, dict(headers))
                reply = self.connection.getresponse()
                data = reply.read()
                if reply.headers.get("Connection") == "close":
                    self.connection = None
                return reply.status, {k.lower(): v for k, v in reply.getheaders()}, data
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.connection = None
        raise AssertionError("%s %s: closed twice without an answer" % (method, path[:80]))

    def refused(self, what, method, path, body=None, headers=()):
        """The reason."""
        status, names, data = self.ask(method, path, body, headers)
        assert 400 <= status < 500, (what, method, path[:80], status, data[:200])
        assert names["content-type"] == "application/problem+json", (what, names)
        problem = json.loads(data)
        assert problem["status"] == status and problem["detail"], (what, problem)
        return problem["reason"]


class World:
    """A server with one of each, so that a call that is not refused would change something."""

    def __init__(self, shell, prefix="/v1"):
        self.shell = shell
        self.child, address = shell.serve("--test")
        self.web, self.prefix = Web(address), prefix
        self.line = Line(self.web)
        if prefix != "/v1":
            self.web.expect(201, "PUT", prefix)
        self.wheel = self.make("POST", "/instances", {"declaration": WHEEL, "correlation_id": "c"})["instance_id"]
        self.make("PUT", "/definitions/gate", GATE, {"Content-Type": "application/yaml"})
        flow = self.make("POST", "/instances", {"definition": "gate"})["instance_id"]
        step = self.web.get(prefix + "/instances/%s/steps" % flow).json["steps"][0]["step_id"]
        fire = {"instance_id": self.wheel, "action": "turn"}
        alarm = self.make("POST", "/alarms", {"after": "1h", "operation": "instance.fire", "input": fire})["alarm_id"]
        token = self.make("POST", "/tokens", {"scopes": "read"})["token_id"]
        self.ids = {"instance_id": self.wheel, "step_id": step, "alarm_id": alarm, "token_id": token, "name": "gate", "store": "default", "turn_id": "1"}
        self.values = {"action": "turn", "correlation_id": "c", "tools": ["t"], "worker": "w", "steps": [], "name": "s", "by": "1s", "definition": "gate", "subject_ref": "s",
                       "operation": "instance.fire", "input": fire, "scopes": "read", "after": "1h", "lease": "x",
                       "hello": {"pawl": 1}, "session": "x", "answer": {}}
        self.before = self.position()

    def make(self, method, path, body, headers=None):
        return self.web.expect(201, method, self.prefix + path, body, headers).json

    def path(self, op, **others):
        path = op.target(**{**self.ids, **others})
        return self.prefix + path[3:] if path.startswith("/v1") else path

    def body(self, op, **others):
        """What would be accepted, were it not for `others`."""
        wanted = [p.name for p in op.of("body") if p.required or (op.name, p.name) in (("alarm.set", "after"), ("instance.create", "definition"))]
        return {**{name: self.values[name] for name in wanted}, **others}

    def position(self):
        path = self.prefix + "/metrics" if self.prefix != "/v1" else "/metrics"
        return re.search(r"^pawl_records_total (\d+)", self.web.get(path).body.decode(), re.M).group(1)

    def check(self):
        """Nothing was recorded, and all of it is sound."""
        assert self.position() == self.before, "something refused was recorded: %s, before %s" % (self.position(), self.before)
        assert self.web.expect(200, "POST", self.prefix + "/verify").json["valid"]
        assert self.web.get("/healthz").status == 200
        self.shell.stop(self.child)


def throw_bodies(world):
    for op in OPS:
        if not table.takes_json(op):
            continue
        for what, data in GARBAGE.items():
            required = any(p.required for p in op.of("body"))
            if what == "blanks" and not required:
                continue
            reason = world.line.refused((op, what), op.method, world.path(op), data)
            assert reason == "invalid-request", (op, what, reason)
        assert world.line.refused((op, "unknown"), op.method, world.path(op), json.dumps(world.body(op, nonsense=1))) == "invalid-request", op
        for p in op.of("path"):
            twice = json.dumps(world.body(op, **{p.name: world.ids[p.name]}))
            if not any(q.name == p.name for q in op.of("body")):
                assert world.line.refused((op, p.name), op.method, world.path(op), twice) == "invalid-request", (op, p.name)


def throw_types(world):
    for op in OPS:
        if not table.takes_json(op):
            continue
        for p in op.of("body"):
            for value in WRONG.get(p.kind, ()) + SHAPES.get((op.name, p.name), ()):
                reason = world.line.refused((op, p.name, value), op.method, world.path(op),
                                            json.dumps({k: v for k, v in world.body(op, **{p.name: value}).items()
                                                        if not (p.name == "declaration" and k == "definition")}))
                wanted = "invalid-declaration" if p.name == "declaration" else "invalid-request"
                assert reason == wanted, (op, p.name, value, reason)
            if p.required:
                left = {k: v for k, v in world.body(op).items() if k != p.name}
                for body in (left, {**left, p.name: None}):
                    assert world.line.refused((op, p.name), op.method, world.path(op), json.dumps(body)) == "invalid-request", (op, p.name)


def throw_addresses(world):
    for op in OPS:
        body = None if op.method == "GET" else json.dumps(world.body(op))
        for p in op.of("path"):
            for odd, wanted in ODD_IDS.items():
                if p.name in ("name", "store") and (op.method == "PUT" or wanted is None):
                    wanted = None
                reason = world.line.refused((op, odd), op.method, world.path(op, **{p.name: odd}), body)
                if op.name.startswith("turn.") and reason == "lease-lost":
                    continue  # turns are known by their lease alone
                assert reason == wanted or (wanted is None and reason in ("not-known", "invalid-request", "invalid-definition", "not-awaiting")), (op, odd, reason)
        for query in ("nonsense=1", "a=1&a=1", "=", "%zz=1", "x=%ff", "x=%00"):
            if op.path in ("/metrics", "/healthz") and world.prefix != "/v1":
                continue
            reason = world.line.refused((op, query), op.method, world.path(op) + "?" + query, body)
            wanted = "invalid-query" if "any_query" in op.flags and "%zz" not in query and "%ff" not in query and "%00" not in query else "invalid-request"
            assert reason == wanted, (op, query, reason)
        assert world.line.refused((op, "many"), op.method, world.path(op) + "?" + "a=1&" * 40 + "b=2", body) in ("invalid-query", "invalid-request"), op


def throw_queries(world):
    """Every filter of every list, with what it cannot mean."""
    for op in OPS:
        for p in op.of("query") if op.name != "definition.check" else ():  # which tells errors of the text first
            numbers = ("x", "-1", "1.5", "", " ", "99999999999999999999", "0x10", "1e3")
            texts = ("", "%20") if "any_query" in op.flags else ("%20",)  # elsewhere nothing is as good as not supplied
            if p.name in TIMES:  # white space is not supplied
                texts = ("nonsense", "%E2%80%83x", "2026-02-30T00:00:00Z")
            for value in numbers if p.kind == "integer" else texts + (("nonsense",) if "stream" in op.flags else ()):
                path = world.path(op) + "?%s=%s" % (p.name, urllib.parse.quote(value, safe="%"))
                reason = world.line.refused((op, p.name, value), op.method, path)
                wanted = ("invalid-query",) if "any_query" in op.flags else ("invalid-request", "not-known")
                assert reason in wanted, (op, p.name, value, reason)
        times = [p.name for p in op.of("query") if p.name.endswith(("_after", "_before"))]
        for name in times:
            for value in ("yesterday", "2026-13-01T00:00:00Z", "2026-05-01", "0"):
                assert world.line.refused((op, name, value), "GET", world.path(op) + "?%s=%s" % (name, value)) == "invalid-query", (op, name, value)


def throw_methods(world):
    allowed = {}
    for op in OPS:
        allowed.setdefault(world.path(op), set()).update(o.method for o in OPS if re.match(
            re.sub(r"\{name\}$", ".+", re.sub(r"\{(?!name\}$)\w+\}", "[^/]+", o.path)) + "$", op.target(**world.ids)))
    for path, methods in allowed.items():
        wanted = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        status, names, data = world.line.ask("OPTIONS", path)
        assert status == 204 and set(names["allow"].split(", ")) == wanted and data == b"", (path, status, names, wanted)
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get"):
            if method in wanted:
                continue
            status, names, data = world.line.ask(method, path)
            assert status == 405 and set(names["allow"].split(", ")) == wanted, (method, path, status, names)
            assert method == "HEAD" or json.loads(data)["reason"] == "not-allowed", (method, path, data)
        if "GET" in methods and not path.endswith("/events"):
            head, get = world.line.ask("HEAD", path), world.line.ask("GET", path)
            assert head[0] == get[0] and head[2] == b"", path
            if path.split("/")[-1] not in ("metrics",):
                assert head[1].get("content-length") == get[1].get("content-length"), path


def throw_headers(world):
    op = next(o for o in OPS if o.name == "instance.fire")
    body = json.dumps(world.body(op))
    for key in ("", " ", "x" * 129, "a\tb", "\xff" * 3, "\x7f"):
        assert world.line.refused(("key", key), "POST", world.path(op), body, {"Idempotency-Key": key}) == "invalid-request", key
    for name, value in (("Origin", "http://evil.example"), ("Origin", "null"), ("Origin", "http://localhost.evil.example"), ("Origin", ""),
                        ("Origin", "http://localhost@evil.example"), ("Host", "evil.example")):
        assert world.line.refused((name, value), "POST", world.path(op), body, {name: value}) == "forbidden", (name, value)
    for value in ("Bearer", "Bearer x", "Basic eDp5", "Bearer " + "0" * 16 + "." + "0" * 64, "bearer \t"):
        assert world.line.refused(("authorization", value), "POST", world.path(op), body, {"Authorization": value}) == "unauthenticated", value
    status, names, _ = world.line.ask("GET", "/healthz", None, {"X-Request-Id": "a b<script>", "traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"})
    assert status == 200 and "<" not in names["x-request-id"] and "traceparent" not in names


def throw_sizes(world):
    for op in OPS:
        if op.method == "GET":
            continue
        limit = 16 * MIB if op.name == "batch" else MIB
        if limit > MIB and world.prefix != "/v1":
            continue
        assert world.line.refused((op, "size"), op.method, world.path(op), b" " * (limit + 1)) == "too-large", op
    fire = next(o for o in OPS if o.name == "instance.fire")
    exact = json.dumps(world.body(fire, nonsense=""))
    exact = exact[:-2] + "x" * (MIB - len(exact)) + exact[-2:]
    assert len(exact) == MIB and world.line.refused("1 MiB", "POST", world.path(fire), exact) == "invalid-request"


def throw_texts(world):
    """What takes a text instead of JSON."""
    for text in (b"\xff", b"\0", b"{", b"states: [", b"&a [*a]", b"- " * 70 + b"x", b"[" * 65 + b"]" * 65, b'{"states":["a"],"states":["b"]}', b""):
        for kind in ("application/json", "application/yaml", "text/plain"):
            reason = world.line.refused(("put", text, kind), "PUT", world.prefix + "/definitions/x", text, {"Content-Type": kind})
            assert reason == "invalid-definition", (text, kind, reason)
    lines = [b"{", b"[]", b"5", b"\xff", b'{"operation":5}', b'{"operation":"none","input":{}}', b'{"operation":"batch","input":{}}', b'{"operation":"instance.fire"}',
             b'{"operation":"instance.fire","input":[]}', b'{"operation":"instance.fire","input":{},"x":1}', b'{"operation":"events","input":{}}', b"[" * 70]
    status, _, data = world.line.ask("POST", world.prefix + "/batch", b"\n".join(lines))
    answers = [json.loads(one) for one in data.splitlines()]
    assert status == 200 and len(answers) == len(lines), data
    assert all(400 <= one["status"] < 500 and one["body"]["reason"] in ("invalid-request", "not-known") for one in answers), answers


THROWS = (throw_bodies, throw_types, throw_addresses, throw_queries, throw_methods, throw_headers, throw_sizes, throw_texts)


def test_every_route_refuses_every_hostile_input_by_name_and_nothing_changes(shell):
    assert len(OPS) > 40 and sum(len(op.params) for op in OPS) > 80, "the table is not read as it is written"
    world = World(shell)
    for throw in THROWS:
        throw(world)
    world.check()


def test_a_named_store_refuses_them_as_well(shell):
    world = World(shell, "/v1/stores/tenant")
    for throw in (throw_types, throw_addresses, throw_methods, throw_headers):
        throw(world)
    world.check()


# ---- Many clients through kills ----

CLIENTS, KILLS = 24, 3


class Hammer(threading.Thread):
    """Fires at an instance of its own, half of them with a key, through every death of its server."""

    def __init__(self, web, number):
        super().__init__()
        self.web, self.number, self.stop, self.acknowledged, self.open, self.fault = web, number, False, [], 0, None
        self.instance = web.create(declaration=WHEEL)

    def fire(self, key):
        connection = http.client.HTTPConnection(self.web.host, timeout=30)
        try:
            connection.request("POST", "/v1/instances/%s/fire" % self.instance, json.dumps({"action": "turn"}), {"Idempotency-Key": key} if key else {})
            reply = connection.getresponse()
            data = json.loads(reply.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
        if reply.status == 503:
            return None
        assert reply.status == 200, data
        return data["transition_id"]

    def run(self):
        try:
            count = 0
            while not self.stop:
                count += 1
                key = "%d-%d" % (self.number, count) if count % 2 else None
                done = self.fire(key)
                while not done and key:  # the same key until it is answered: once, whatever happened
                    done = self.fire(key)
                if done:
                    self.acknowledged.append(done)
                else:
                    self.open += 1
        except Exception as fault:
            self.fault = fault


def test_what_24_clients_were_told_through_kills_is_in_the_history_once(shell):
    """D37: acknowledged means durable, and exactly once."""
    child, address = shell.serve()
    web = Web(address)
    clients = [Hammer(web, i) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    for kill in range(KILLS + 1):
        told = sum(len(c.acknowledged) for c in clients)
        shell.wait_for(lambda: sum(len(c.acknowledged) for c in clients) >= told + 10 * CLIENTS or any(c.fault for c in clients))
        if kill == KILLS:
            break
        child.send_signal(signal.SIGKILL)
        child.communicate()
        child = shell.begin("serve", "--listen", web.host)
        assert b"ready" in child.stdout.readline()
    for client in clients:
        client.stop = True
    for client in clients:
        client.join()
        assert not client.fault, client.fault
    for client in clients:
        entries = [e["transition_id"] for e in web.get("/v1/instances/%s/history" % client.instance).json["entries"]]
        assert len(set(entries)) == len(entries) and len(set(client.acknowledged)) == len(client.acknowledged)
        assert set(client.acknowledged) <= set(entries), "acknowledged, and not there"
        assert len(entries) <= len(client.acknowledged) + client.open, "more was done than asked for"
    assert web.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)
    shell.pawl("verify")


harness.main(globals())
