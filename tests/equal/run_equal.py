#!/usr/bin/env python3
"""run_equal.py - the same calls through every surface have the same results, refusals and their words included:
pawl_call(), the typed functions of pawl.h, the command line on a file and through a server, HTTP, and HTTP in a named
store. A scenario is a list of (operation, input); ids made on the way are $1, $2, ..."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "http"))
import table  # noqa: E402
from web import Reply, Web, harness  # noqa: E402

CALLER = pathlib.Path(os.environ.get("PAWL_BUILD", "build")).resolve() / "tests/equal_caller"
OPS = {op.name: op for op in table.ROUTED}
ORDER = """name: order
states: [new, paid, shipped, dropped]
initial_state: new
terminal_states: [shipped, dropped]
terminal_kinds: {shipped: success, dropped: cancel}
transitions:
  - {from_state: new, action: pay, to_state: paid}
  - {from_state: new, action: drop, to_state: dropped, requires_reason: true}
  - {from_state: paid, action: ship, to_state: shipped, guard: packed}
  - {from_state: paid, action: pay, to_state: paid}
"""
ASK = "name: ask\\nsteps:\\n  start: {name: gate, tool: null, next: wait}\\n  wait: {wait: {signal: go}, done: true}\\n".replace("\\n", "\n")
INLINE = {"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"], "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}]}


# ---- Surfaces: each takes (operation, input) and answers {"answer": ...} or {"reason": ..., "detail": ...} ----

class Caller:
    """A program that links the library."""

    def __init__(self, shell, name, how):
        self.name, self.how = name, how
        self.child = subprocess.Popen([CALLER, "sqlite:%s.db" % how], cwd=shell.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        shell.children.append(self.child)

    def has_place_for(self, operation, given):
        """Struct members have types: what has another, or no member, can only be said by name."""
        kinds = {p.name: p.kind for p in OPS[operation].params}
        types = {"string": str, "integer": int, "bool": bool}
        return all(name == "idempotency_key" or name in kinds and (value is None or isinstance(value, types.get(kinds[name], object)))
                   for name, value in given.items()) and given.get("guard_satisfied", True) is True

    def call(self, operation, given):
        how = self.how if self.has_place_for(operation, given) else "call"
        self.child.stdin.write("%s\t%s\t%s\n" % (how, operation, json.dumps(given)))
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        assert line, self.child.stderr.read()
        return json.loads(line)


class Http:
    def __init__(self, name, web, prefix="/v1"):
        self.name, self.web, self.prefix = name, web, prefix

    def call(self, operation, given):
        op = OPS[operation]
        places = {p.name: p.place for p in op.params}
        rest, headers, query = dict(given), {}, []
        if "idempotency_key" in rest:
            headers["Idempotency-Key"] = rest.pop("idempotency_key")
        path = re.sub(r"\{(\w+)\}", lambda m: urllib.parse.quote(rest.pop(m.group(1), ""), safe=""), op.path)
        for name in [n for n in rest if places.get(n) == "query" or (n not in places and op.method == "GET")]:
            query.append((name, rest.pop(name)))
        text = rest.pop("text", None) if "text_body" in op.flags else None
        if query:
            path += "?" + urllib.parse.urlencode(query)
        body = text if "text_body" in op.flags else None if op.method == "GET" else json.dumps(rest)
        if text is not None:
            headers["Content-Type"] = "application/json" if text.startswith("{") else "application/yaml"
        path = self.prefix + path[3:] if path.startswith("/v1") else self.prefix[3:] and self.prefix + path or path
        connection = http.client.HTTPConnection(self.web.host, timeout=60)
        connection.request(op.method, path, body.encode() if body is not None else None, headers)
        reply = Reply(connection.getresponse())
        connection.close()
        if reply.status < 300:
            return {"answer": reply.json}
        return {"reason": reply.json["reason"], "detail": reply.json["detail"]}


class Untold(Exception):
    """The command line has no words for it."""


class Cli:
    """Words for the members of an input."""

    VERBS = {  # operation: (verb, operands, {member: option})
        "instance.create": ("start", ["definition"], {"input": "input", "subject_ref": "subject", "actor_ref": "actor", "correlation_id": "correlation",
                                                      "test": "test", "labels": "label", "singleton": "singleton", "idempotency_key": "key"}),
        "signal.start": ("signal-start", ["definition", "name"], {"subject_ref": "subject", "payload": "payload", "input": "input", "correlation_id": "correlation",
                                                                  "labels": "label", "actor_ref": "actor", "idempotency_key": "key"}),
        "instance.fire": ("fire", ["instance_id", "action"], {"actor_ref": "actor", "reason": "reason", "payload": "payload", "guard_satisfied": "guard",
                                                              "fired_at": "at", "expected_sequence": "expect", "idempotency_key": "key"}),
        "instance.cancel": ("cancel", ["instance_id"], {"actor_ref": "actor", "reason": "reason", "idempotency_key": "key"}),
        "instance.cancel_many": ("cancel", [], {"correlation_id": "correlation", "actor_ref": "actor", "reason": "reason", "idempotency_key": "key"}),
        "instance.erase": ("erase", ["instance_id"], {"actor_ref": "actor", "reason": "reason", "idempotency_key": "key"}),
        "instance.hold": ("hold", ["instance_id"], {"actor_ref": "actor", "reason": "reason", "idempotency_key": "key"}),
        "instance.lift": ("lift", ["instance_id"], {"actor_ref": "actor", "reason": "reason", "idempotency_key": "key"}),
        "instance.archive": ("archive", ["instance_id"], {"actor_ref": "actor", "reason": "reason"}),
        "store.archive": ("archive", [], {"definition": "definition", "ended_before": "ended-before", "actor_ref": "actor", "reason": "reason"}),
        "hold.list": ("holds", [], {"limit": "limit"}),
        "retention.list": ("retention", [], {}),
        "subject.erase": ("erase", [], {"subject_ref": "subject", "actor_ref": "actor", "reason": "reason", "idempotency_key": "key"}),
        "instance.query": ("query", ["instance_id", "name"], {}),
        "instance.variables": ("variables", ["instance_id"], {"sequence_to": "after"}),
        "instance.pause": ("pause", ["instance_id"], {"actor_ref": "actor", "reason": "reason"}),
        "signal.send": ("signal", ["instance_id", "name"], {"payload": "payload", "actor_ref": "actor", "idempotency_key": "key"}),
        "signal.broadcast": ("broadcast", ["name"], {"payload": "payload", "actor_ref": "actor"}),
        "instance.amend": ("amend", ["instance_id", "definition"], {"actor_ref": "actor", "idempotency_key": "key"}),
        "instance.redrive": ("redrive", ["instance_id"], {"definition": "definition", "from": "from", "actor_ref": "actor", "idempotency_key": "key"}),
        "step.approve": ("approve", ["step_id"], {"actor_ref": "actor", "reason": "reason", "payload": "payload"}),
        "step.reject": ("reject", ["step_id"], {"actor_ref": "actor", "reason": "reason"}),
        "instance.get": ("show", ["instance_id"], {}),
        "instance.why": ("why", ["instance_id"], {}),
        "schedule.preview": ("schedule", ["cron"], {"every": "every", "zone": "zone", "after": "from", "limit": "limit"}),
        "gate.list": ("gates", [], {"approver": "approver", "definition": "definition", "limit": "limit", "after": "after"}),
        "instance.list": ("list", [], {"definition": "definition", "kind": "kind", "state": "state", "status": "status", "subject_ref": "subject",
                                       "correlation_id": "correlation", "created_after": "since", "created_before": "until", "order": "order", "limit": "limit",
                                       "active": "active", "ended_after": "ended-since", "ended_before": "ended-until"}),
        "instance.counts": ("stats", [], {"definition": "definition"}),
        "instance.history": ("history", ["instance_id"], {"action": "action", "actor_ref": "actor", "from_state": "from", "to_state": "to", "sequence_from": "first",
                                                          "sequence_to": "up-to", "sequence_number": "number", "fired_at": "fired", "limit": "limit", "after": "after", "fired_after": "since", "fired_before": "until", "transition_id": "transition"}),
        "alarm.set": ("alarm set", ["operation"], {"at": "at", "after": "after", "input": "input", "idempotency_key": "key"}),
        "alarm.list": ("alarm list", [], {}), "alarm.cancel": ("alarm cancel", ["alarm_id"], {}),
        "store.list": ("stores", [], {}), "store.put": ("stores create", ["store"], {}),
        "instance.verify": ("verify", ["instance_id"], {}),
    }
    JSON = ("input", "payload")

    def __init__(self, shell, name, store):
        self.shell, self.name, self.store = shell, name, store

    def words(self, operation, given):
        if operation in ("definition.put", "definition.check"):
            self.shell.write("text.yaml", given["text"])
            return ["define", "text.yaml", "--name", given["name"]] if operation == "definition.put" else ["check", "text.yaml"]
        if operation not in self.VERBS:
            raise Untold(operation)
        verb, operands, options = self.VERBS[operation]
        words = verb.split()
        for name in operands:
            if not isinstance(given.get(name), str) or not given[name] or given[name].startswith("-"):
                raise Untold(name)
            words.append(given[name])
        for name, value in given.items():
            if name in operands:
                continue
            if name not in options or value is None:
                raise Untold(name)
            words += self.option(options[name], name, value)
        return words

    def option(self, option, name, value):
        if value is True:
            return ["--" + option]
        if option in ("guard", "test", "singleton"):
            raise Untold(name)
        if name == "labels" and isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            return [w for k, v in value.items() for w in ("--label", "%s=%s" % (k, v))]
        if name in self.JSON:
            return ["--" + option, json.dumps(value)]
        is_number = option in ("expect", "first", "up-to", "limit")
        if isinstance(value, str) and (not is_number or (option != "expect" and value.isdigit())):
            return ["--" + option, value]
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0 and is_number:
            return ["--" + option, str(value)]
        raise Untold(name)

    def call(self, operation, given):
        done = self.shell.pawl("--store", self.store, *self.words(operation, given), "--json", expect=None)
        if done.code == 2:  # a wrong word is none that could be sent
            raise Untold(operation)
        assert done.code in (0, 1), done
        answer = json.loads(done.out)
        if "reason" in answer and "detail" in answer:
            assert done.code == 1 and done.err.startswith("pawl: %s: " % answer["reason"]), done
            return {"reason": answer["reason"], "detail": re.sub(r"^text\.yaml: ", "", answer["detail"])}  # it names the file
        assert done.code == 0 or operation in ("definition.check", "instance.verify"), done
        return {"answer": answer}


# ---- Comparing ----

class Names:
    """Ids of one surface, called $1, $2, ... in the order in which they were made."""

    def __init__(self):
        self.ids = []

    def learn(self, answer):
        for member in ("instance_id", "alarm_id"):
            if isinstance(answer.get("answer"), dict) and isinstance(answer["answer"].get(member), str) and answer["answer"][member] not in self.ids:
                self.ids.append(answer["answer"][member])

    def fill(self, value):
        if isinstance(value, str):
            return re.sub(r"\$(\d+)", lambda m: self.ids[int(m.group(1)) - 1], value)
        if isinstance(value, dict):
            return {k: self.fill(v) for k, v in value.items()}
        return [self.fill(v) for v in value] if isinstance(value, list) else value

    def plain(self, value):
        answer = value.get("answer")
        if isinstance(answer, dict):  # the binary brings a code type of its own, which is one record and one definition more
            answer.pop("records", None)
            if "definitions" in answer:
                answer["definitions"] = [d for d in answer["definitions"] if d["name"] != "countdown"]
        text = json.dumps(value, sort_keys=True)
        for i, one in enumerate(self.ids):
            text = text.replace(one, "$%d" % (i + 1))
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z(?<!2000-01-01T00:00:00Z)", "TIME", text)
        text = re.sub(r'"store_id": "[0-9a-f]{32}"', '"store_id": "STORE"', text)
        return json.loads(re.sub(r'"[0-9a-f]{64}"', '"HASH"', text))


def is_within(small, large):
    return isinstance(small, dict) and isinstance(large, dict) and all(small[k] == large.get(k) for k in small)


def is_alike(name, answer, wanted):
    """A typed function answers with less, and checks its arguments in words of its own; the command line looks for
    an id by its beginning before it asks, takes more kinds of times, and names the option that was typed."""
    if "answer" in answer:
        return name == "typed" and is_within(answer["answer"], wanted.get("answer"))
    of_cli = answer["reason"] == "not-known" or (answer["detail"].startswith("--") and ": expected a time" in answer["detail"]
                                                 and " a time like " in wanted.get("detail", ""))
    return answer["reason"] == wanted.get("reason") and (name == "typed" or (name in ("cli", "remote") and of_cli))


def compare(surfaces, steps):
    names, differences = {s.name: Names() for s in surfaces}, []
    for number, (operation, given) in enumerate(steps):
        found = {}
        for surface in surfaces:
            try:
                answer = surface.call(operation, names[surface.name].fill(given))
            except Untold:
                continue
            names[surface.name].learn(answer)
            found[surface.name] = names[surface.name].plain(answer)
        wanted = found["http"]
        assert "reason" in wanted or "writes" not in OPS[operation].flags or "cli" in found or not any(isinstance(s, Cli) for s in surfaces), \
            "step %d, %s: the command line cannot say it, and it changes something" % (number, operation)
        for name, answer in found.items():
            same = answer == wanted or is_alike(name, answer, wanted)
            if not same:
                differences.append("step %d, %s %s:\n  http   %s\n  %-6s %s" % (
                    number, operation, json.dumps(given), json.dumps(wanted), name, json.dumps(answer)))
    assert not differences, "%d differences\n%s" % (len(differences), "\n".join(differences))


def surfaces(shell, with_cli, with_remote=True):
    _, address = shell.serve("--store", "sqlite:http.db")
    web = Web(address)
    for name in ("named", "remote"):
        web.expect(201, "PUT", "/v1/stores/" + name)
    found = [Http("http", web), Http("named", web, "/v1/stores/named"), Caller(shell, "call", "call"), Caller(shell, "typed", "typed")]
    if with_cli:
        shell.pawl("--store", "sqlite:cli.db", "init")
        found += [Cli(shell, "cli", "sqlite:cli.db")]
        found += [Cli(shell, "remote", "%s/v1/stores/remote" % address)] if with_remote else []
    return found


# ---- The table ----

def define(text, name):
    return ("definition.put", {"name": name, "text": text})


def fire(instance, action, **more):
    return ("instance.fire", {"instance_id": instance, "action": action, **more})


def make(**members):
    return ("instance.create", members)


def look(instance, **filters):
    return ("instance.history", {"instance_id": instance, **filters})


BLANK = " \u2003 "
MACHINE = [
    define(ORDER, "order"), define(ORDER, "order"), define("states: [a", "bad"), define("name: x\nstates: []\n", "y"),
    ("definition.check", {"text": "name: x\nstates: [a]\n"}), ("definition.check", {"text": ORDER}),
    make(definition="order", subject_ref="A-1", actor_ref="ann", correlation_id="c", labels={"k": "v"}, input={"n": 1.50}),
    make(definition="order@1"), make(definition="none"), make(definition="order@9"), make(definition=BLANK), make(definition="order", actor_ref=BLANK),
    make(definition="order", subject_ref=BLANK), make(definition="order", correlation_id=BLANK), make(definition="order", labels={"k": 5}),
    make(definition="order", instance_metadata={}), make(definition="order", instantiated_at="soon"), make(definition="order", instantiated_at="2999-01-01T00:00:00Z"),
    make(definition="order", declaration=INLINE), make(declaration=5), make(declaration={"states": []}), make(), make(definition="order", nonsense=1), make(definition=5),
    fire("$1", "ship"), fire("$1", "drop"), fire("$1", "drop", reason=BLANK), fire("$1", "pay", actor_ref=BLANK), fire("$1", "pay", reason=BLANK),
    fire("$1", "pay", fired_at="x"), fire("$1", "pay", fired_at="2000-01-01T00:00:00Z"), fire("$1", "pay", fired_at="2999-01-01T00:00:00Z"),
    fire("$1", "pay", expected_sequence=7), fire("$1", ""), fire("$1", "pay", expected_sequence="1"), fire("$1", "pay", nonsense=1),
    fire("$1", "pay", actor_ref="ann", reason="why \"not\" \u00e4", payload={"n": 1.50, "big": 10 ** 30}, expected_sequence=1),
    fire("$1", "ship"), fire("$1", "ship", guard_satisfied=False), fire("$1", "ship", guard_satisfied="yes"), fire("$1", "pay", idempotency_key="k"),
    fire("$1", "pay", idempotency_key="k"), fire("$1", "ship", idempotency_key="k"), fire("$1", "pay", idempotency_key=""), fire("$1", "pay", idempotency_key="x" * 129),
    fire("$1", "ship", guard_satisfied=True), fire("$1", "pay"), fire("$1", "nonsense", actor_ref=BLANK),
    fire(" ", "pay"), fire("$1", BLANK), fire("none", "pay"), fire("0" * 26, "pay"),
    look("$1"), look("$1", action="pay"), look("$1", sequence_from="2"), look("$1", sequence_from="x"), look("$1", nonsense="1"), look("$1", actor_ref="ann"), look("$1", actor_ref=BLANK),
    look("$1", fired_after="x"), look("$1", transition_id="$1-1"), look("$1", sequence_from="9", sequence_to="2"), look("0" * 26), look(" "),
    ("instance.current", {"instance_id": "$1"}), ("instance.current", {"instance_id": "$2"}), ("instance.current", {"instance_id": " "}),
    ("instance.get", {"instance_id": "$1"}), ("instance.get", {"instance_id": "$2"}), ("instance.view", {"instance_id": "$1"}), ("instance.view", {"instance_id": "$2", "entries": "1001"}), ("instance.why", {"instance_id": "$2"}), ("instance.why", {"instance_id": "$1"}),
    ("instance.cancel", {"instance_id": "$1"}), ("instance.cancel", {"instance_id": "$2", "actor_ref": BLANK}), ("instance.cancel", {"instance_id": "$2", "reason": BLANK}),
    ("instance.pause", {"instance_id": "$2", "actor_ref": "ann", "reason": "look"}), fire("$2", "pay"), ("instance.cancel", {"instance_id": "$2", "actor_ref": "ann"}),
    ("instance.cancel", {"instance_id": "$2"}), ("instance.cancel", {"instance_id": "$1", "reason": BLANK}), ("instance.cancel_many", {"correlation_id": "c"}),
    ("instance.cancel_many", {"correlation_id": BLANK}), ("instance.cancel_many", {}),
    ("instance.list", {"definition": "order"}), ("instance.list", {"status": "cancelled"}), ("instance.list", {"status": "gone"}), ("instance.list", {"limit": "0"}),
    ("instance.list", {"limit": "1001"}), ("instance.list", {"order": "oldest"}), ("instance.list", {"order": "x"}), ("instance.list", {"nonsense": "1"}), ("instance.list", {"state": BLANK}),
    ("instance.list", {"created_after": "x"}), ("instance.list", {"active": "true"}), ("instance.list", {"active": "false"}), ("instance.list", {"active": "yes"}),
    ("instance.list", {"ended_after": "2020-01-01T00:00:00Z"}), ("instance.list", {"ended_before": "2020-01-01T00:00:00Z"}), ("instance.list", {"ended_after": "x"}),
    ("instance.list", {"label.k": "v"}), ("instance.list", {"kind": "code"}), ("instance.list", {"kind": "x"}),
    ("instance.counts", {}), ("instance.counts", {"definition": "order"}), ("instance.counts", {"definition": "none"}),
    ("instance.verify", {"instance_id": "$1"}), ("instance.declaration", {"instance_id": "none"}), ("definition.get", {"name": "order"}), ("definition.get", {"name": "none"}),
    ("instance.find", {"prefix": "$1"}), ("instance.find", {"prefix": "none"}), ("instance.find", {}),
    ("instance.hold", {"instance_id": "$1", "actor_ref": "dpo", "reason": "case"}), ("instance.hold", {"instance_id": "$1"}), ("instance.hold", {"instance_id": "none"}),
    ("instance.erase", {"instance_id": "$1"}), ("hold.list", {}), ("hold.list", {"limit": "0"}), ("retention.list", {}), ("instance.lift", {"instance_id": "$1", "reason": "over"}),
    ("instance.lift", {"instance_id": "$1", "actor_ref": BLANK}), ("instance.erase", {"instance_id": "$1", "actor_ref": "dpo", "reason": "asked"}), ("instance.erase", {"instance_id": "$1"}), ("instance.erase", {"instance_id": "none"}),
    ("instance.erase", {"instance_id": "$1", "actor_ref": BLANK}), ("instance.get", {"instance_id": "$1"}), look("$1"), ("subject.erase", {"subject_ref": "A-1", "reason": "asked"}),
    ("instance.archive", {"instance_id": "$1"}), ("instance.archive", {"instance_id": "none"}), ("instance.archive", {"instance_id": "$1", "actor_ref": BLANK}),
    ("store.archive", {"definition": "none"}), ("store.archive", {"ended_before": "soon"}),
    ("subject.erase", {"subject_ref": "A-1"}), ("subject.erase", {"subject_ref": BLANK}), ("subject.erase", {}), ("instance.get", {"instance_id": "$1"}),
    ("definition.get", {"name": "order", "version": "9"}), ("definition.list", {}), ("definition.list", {"limit": "0"}), ("store.verify", {}), ("store.verify", {"definition": "none"}),
]
FLOW = [
    define(ASK, "ask"), make(definition="ask"), ("instance.get", {"instance_id": "$1"}), ("instance.steps", {"instance_id": "$1"}), ("instance.view", {"instance_id": "$1"}), ("instance.why", {"instance_id": "$1"}),
    ("gate.list", {}), ("gate.list", {"approver": "eve"}), ("gate.list", {"definition": "none"}), ("gate.list", {"limit": "0"}), ("gate.list", {"after": "x"}),
    ("schedule.preview", {"cron": "@daily", "zone": "Asia/Tokyo", "after": "2026-05-01T00:00:00Z", "limit": "2"}), ("schedule.preview", {"cron": "x"}), ("schedule.preview", {"every": "90s", "after": "2026-05-01T00:00:00Z", "limit": "2"}), ("schedule.preview", {"colour": "1"}),
    ("timer.list", {}), ("timer.list", {"limit": "0"}), ("timer.list", {"colour": "1"}), ("instance.variables", {"instance_id": "$1", "sequence_to": "1"}), ("instance.variables", {"instance_id": "$1", "sequence_to": "99"}),
    ("signal.send", {"instance_id": "$1", "name": "go"}), ("signal.send", {"instance_id": "$1", "name": BLANK}), ("signal.send", {"instance_id": "none", "name": "go"}),
    ("signal.send", {"instance_id": "$1", "name": "go", "actor_ref": BLANK}), fire("$1", "pay"),
    ("step.approve", {"step_id": "$1.9"}), ("step.approve", {"step_id": "none"}), ("step.approve", {"step_id": "$1.1", "actor_ref": BLANK}), ("step.approve", {"step_id": "$1.1", "reason": BLANK}),
    ("step.approve", {"step_id": "$1.1", "actor_ref": "ann", "reason": "fine", "payload": {"a": 1}}), ("step.approve", {"step_id": "$1.1"}), ("step.reject", {"step_id": "$1.1"}),
    ("signal.send", {"instance_id": "$1", "name": "stop"}), ("signal.send", {"instance_id": "$1", "name": "go", "payload": [1, 2], "actor_ref": "bob"}),
    ("signal.send", {"instance_id": "$1", "name": "go"}), look("$1"), ("instance.steps", {"instance_id": "$1"}), ("instance.get", {"instance_id": "$1"}),
    make(definition="ask"), ("step.reject", {"step_id": "$2.1", "actor_ref": "ann", "reason": "no"}), ("instance.get", {"instance_id": "$2"}), look("$2"),
    make(definition="ask"), ("instance.cancel", {"instance_id": "$3", "reason": "why"}), look("$3"), ("step.list", {}), ("step.list", {"instance_id": "$3"}), ("step.list", {"status": "x"}),
    ("signal.broadcast", {"name": "go"}), ("signal.broadcast", {"name": BLANK}), ("signal.broadcast", {"name": "go", "actor_ref": BLANK}), ("signal.broadcast", {}),
    make(definition="ask"), ("step.approve", {"step_id": "$4.1"}), ("signal.broadcast", {"name": "go", "payload": 5, "actor_ref": "ann"}), look("$4"),
    ("instance.amend", {"instance_id": "$1", "definition": "ask"}), ("instance.amend", {"instance_id": "none", "definition": "ask"}), ("instance.redrive", {"instance_id": "$1"}),
    make(definition="ask"), ("instance.amend", {"instance_id": "$5", "definition": "none"}), ("instance.amend", {"instance_id": "$5", "definition": BLANK}),
    ("instance.amend", {"instance_id": "$5", "definition": "ask", "actor_ref": BLANK}), ("instance.redrive", {"instance_id": "$5"}), define(ASK.replace("go", "on"), "ask"),
    ("instance.amend", {"instance_id": "$5", "definition": "ask", "actor_ref": "ann"}), look("$5"), ("instance.redrive", {"instance_id": "$2", "actor_ref": BLANK}),
    ("instance.redrive", {"instance_id": "$2", "actor_ref": "ann"}), look("$6"), ("instance.get", {"instance_id": "$6"}),
    ("instance.variables", {"instance_id": "$1"}), ("instance.query", {"instance_id": "$1", "name": "none"}), ("instance.list", {"kind": "flow"}), ("store.verify", {}),
    make(definition="ask", subject_ref="A", singleton=True), make(definition="ask", subject_ref="A", singleton=True), make(definition="ask", singleton=True),
    ("signal.start", {"definition": "ask", "name": "none", "subject_ref": "A"}), ("signal.start", {"definition": "none", "name": "go", "subject_ref": "A"}),
    ("signal.start", {"definition": "ask", "name": "go", "subject_ref": BLANK}), ("signal.start", {"definition": "ask", "subject_ref": "A"}),
]
ALARMS = [
    define(ORDER, "order"), make(definition="order"), ("alarm.set", {"after": "1h", "operation": "instance.fire", "input": {"instance_id": "$1", "action": "pay"}}),
    ("alarm.set", {"after": "x", "operation": "instance.fire", "input": {}}), ("alarm.set", {"operation": "instance.fire", "input": {}}),
    ("alarm.set", {"after": "1h", "at": "2999-01-01T00:00:00Z", "operation": "instance.fire", "input": {}}), ("alarm.set", {"after": "1h", "operation": "none", "input": {}}),
    ("alarm.set", {"after": "1h", "operation": "instance.get", "input": {"instance_id": "$1"}}), ("alarm.set", {"after": "1h", "operation": "instance.fire", "input": {"nonsense": 1}}),
    ("alarm.set", {"after": "1h", "operation": "instance.fire", "input": 5}), ("alarm.list", {}), ("alarm.cancel", {"alarm_id": "$2"}), ("alarm.cancel", {"alarm_id": "$2"}),
    ("alarm.cancel", {"alarm_id": "none"}), ("alarm.list", {}),
]
INLINES = [
    make(declaration=INLINE, instantiated_at="2000-01-01T00:00:00Z", test=False),
    make(declaration=INLINE, instance_metadata={"a": [1, None]}), fire("$1", "go", payload=None), fire("$1", "go"), ("instance.declaration", {"instance_id": "$1"}), look("$1"),
    make(declaration=INLINE, labels={"a": "b"}, idempotency_key="one"), make(declaration=INLINE, labels={"a": "b"}, idempotency_key="one"), make(declaration=INLINE, idempotency_key="one"),
    ("test.advance", {"by": "1s"}), ("test.advance", {"by": "x"}), ("test.fire_timer", {"instance_id": "$1", "name": "x"}), ("token.create", {"scopes": "nonsense"}),
    ("token.create", {"scopes": "read", "expires": "x"}), ("token.revoke", {"token_id": "none"}), ("step.claim", {"tools": [], "worker": "w"}), ("step.claim", {"tools": ["t"], "worker": BLANK}),
    ("step.claim", {"tools": ["t"], "worker": "w", "max": 0}), ("step.claim", {"tools": ["t"], "worker": "w", "wait": "x"}), ("step.claim", {"tools": ["t"], "worker": "w"}),
    ("step.complete", {"step_id": "none", "lease": "x"}), ("step.fail", {"step_id": "$1.1", "lease": "x"}), ("step.heartbeat", {"step_id": "$1.1"}),
    ("step.complete_many", {"steps": 5}), ("events", {"from": "x"}), ("instance.events", {"instance_id": "none"}), ("health.get", {}),
]


def test_machines_are_equal_through_every_surface(shell):
    compare(surfaces(shell, True, bool(os.environ.get("PAWL_TEST_LONG"))), MACHINE)


def test_flows_are_equal_through_every_surface(shell):
    compare(surfaces(shell, True), FLOW)


def test_alarms_are_equal_through_every_surface(shell):
    compare(surfaces(shell, True), ALARMS)


def test_what_the_command_line_has_no_words_for_is_equal_in_c_and_over_http(shell):
    compare(surfaces(shell, False), INLINES)


def test_every_operation_stands_in_the_table_or_says_why_not(shell):
    told = {operation for steps in (MACHINE, FLOW, ALARMS, INLINES) for operation, _ in steps}
    elsewhere = {"batch": "run_batch.py", "token.list": "run_tokens.py: secrets differ", "store.put": "run_stores.py", "store.list": "run_stores.py",
                 "metrics.get": "each surface counts its own", "turn.offer": "a session is a secret: run_elsewhere.py", "turn.claim": "run_elsewhere.py", "turn.complete": "run_elsewhere.py", "worker.list": "each process has its own workers: run_causes.py", "tool.list": "each process has its own rules: tests/mcp/run_client.py", "node.list": "tests/cluster/run_nodes.py", "store.info": "each store is another", "openapi.get": "run_openapi.py", "definition.graph": "a picture: run_graph.py",
                 "instance.graph": "a picture: run_graph.py", "definition.export": "run_export.py", "instance.export": "run_export.py", "instance.records": "run_dashboard.py", "validation.start": "run_validation.py", "validation.run": "run_validation.py", "validation.cancel": "run_validation.py", "test.signal": "as signal.send", "instance.resume": "the command line runs the instance"}
    assert sorted(set(OPS) - told - set(elsewhere)) == [], sorted(set(OPS) - told - set(elsewhere))


harness.main(globals())
