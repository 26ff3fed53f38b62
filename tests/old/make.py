#!/usr/bin/env python3
"""Make the stores of this folder with an older pawl.

    git worktree add /tmp/old 3a70f79 && make -C /tmp/old
    tests/old/make.py /tmp/old/build/pawl /tmp/old [NAME...]

Each store is left in the middle of its work by SIGKILL, so that its write-ahead log is part of it.
NAME.tar.xz holds the files, NAME.json what the older program answered: for each instance its view
and its history, and the leases that its workers held. run_old.py continues from there.
"""
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent

LAMP = """name: lamp
states: [off, on, broken, gone]
initial_state: off
terminal_states: [broken, gone]
terminal_kinds: {broken: failure, gone: cancel}
transitions:
  - {from_state: off, action: switch, to_state: on}
  - {from_state: on, action: switch, to_state: off, guard: hand-on-switch}
  - {from_state: on, action: burn-out, to_state: broken}
  - {from_state: "*", action: remove, to_state: gone, requires_reason: true}
deadlines:
  - {state: on, after: 5000d, action: burn-out}
"""
KETTLE = """name: kettle
states: [cold, hot, poured]
initial_state: cold
terminal_states: [poured]
terminal_kinds: {poured: success}
transitions:
  - {from_state: cold, action: boil, to_state: hot, starts: {definition: lamp, input: {by: kettle}}}
  - {from_state: hot, action: pour, to_state: poured}
"""
INLINE = ('{ "states":["a","b","z"],"initial_state":"a", "terminal_states":["z"],"transitions":['
          '{"from_state":"a","action":"go","to_state":"b"},{"from_state":"b","action":"end","to_state":"z"}] }')

GRAPH = """name: graph
signals: {news: {buffer: true}}
steps:
  start: {name: first, tool: set, args: {n: "{{input.n}}"}, parallel: [left, right]}
  left: {tool: remote/left, args: {n: "{{steps.first.result.n}}"}, retry: {max: 3, backoff: [1s]}, join: meet}
  right: {wait: {signal: news}, join: meet}
  meet: {tool: set, args: {met: true}, next: nap}
  nap: {tool: sleep, args: {for: "5000d"}, next: last}
  last: {tool: set, args: {left: "{{steps.left.result}}", right: "{{steps.right.result}}"}, done: true}
"""
TREE = """name: tree
do:
  - {action: set, name: begun, payload: {topic: "{{input.topic}}"}}
  - dopar:
      - {action: remote/a, name: a, payload: {topic: "{{input.topic}}"}}
      - try:
          - {action: remote/b, name: b, payload: {}}
        rescue:
          - {action: set, name: saved, payload: {saved: true}}
  - {name: ok, tool: null, approval: {by: [ann, bob], count: 2}}
"""
GATE = """name: gated
steps:
  start: {name: ok, tool: null, approval: {by: [ann, bob], count: 2}, next: either}
  either: {select: [{signal: stop, then: stopped}, {timer: 5000d, then: late}]}
  stopped: {tool: set, args: {why: stopped}, done: true}
  late: {tool: set, args: {why: late}, done: true}
"""
PARENT = """name: parent
steps:
  start: {name: kid, spawn: {definition: child, input: {from: "{{input.from}}"}}, next: after}
  after: {tool: set, args: {child: "{{steps.kid.result}}"}, done: true}
"""
CHILD = """name: child
steps:
  start: {name: ext, external: true, next: end}
  end: {tool: set, args: {from: "{{input.from}}", ext: "{{steps.ext.result}}"}, done: true}
"""
BACKOFF = """name: backoff
steps:
  start: {name: shaky, tool: remote/shaky, retry: {max: 3, backoff: [5000d]}, next: end}
  end: {tool: set, args: {done: true}, done: true}
"""
ROUNDS = """name: rounds
steps:
  start: {name: work, tool: remote/round, next: again}
  again: {tool: set, args: {n: 1}, next: work}
"""
LATER = """name: later
steps:
  start: {name: long, wait: {timer: 5000d}, next: until}
  until: {wait: {until: "2045-01-01T00:00:00Z"}, next: end}
  end: {tool: set, args: {done: true}, done: true}
"""


class Server:
    def __init__(self, pawl, folder, *words):
        self.child = subprocess.Popen([pawl, "--store", "sqlite:s.db", "serve", "--listen", "127.0.0.1:0", *words],
                                      cwd=folder, stdout=subprocess.PIPE)
        self.address = self.child.stdout.readline().decode().split()[4]

    def ask(self, method, path, body=None, kind="application/json", key=None):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = {"Content-Type": kind, **({"Idempotency-Key": key} if key else {})}
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as reply:
                return json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            raise SystemExit("%s %s: %s" % (method, path, error.read().decode())) from error

    def post(self, path, body=None, **more):
        return self.ask("POST", path, body or {}, **more)

    def put(self, name, text):
        return self.ask("PUT", "/v1/definitions/" + name, text.encode(), "application/yaml")

    def create(self, **members):
        return self.post("/v1/instances", members)["instance_id"]

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()


def facts(server, **more):
    """The older program's view and history of every instance."""
    ids = [row["instance_id"] for row in server.ask("GET", "/v1/instances?order=oldest&limit=1000")["instances"]]
    return dict(more, instances={id: {
        "view": server.ask("GET", "/v1/instances/" + id),
        "history": server.ask("GET", "/v1/instances/%s/history" % id)["entries"]} for id in ids})


def machines(server):
    server.put("lamp", LAMP)
    server.put("kettle", KETTLE)
    lit = server.create(definition="lamp", actor_ref="ann", subject_ref="hall", labels={"room": "hall"},
                        correlation_id="house", instance_metadata={"watt": 60})
    server.post("/v1/instances/%s/fire" % lit, {"action": "switch", "actor_ref": "ann", "reason": "it is dark",
                                               "payload": {"n": 1}}, key="first-switch")
    held = server.create(definition="lamp")
    server.post("/v1/instances/%s/fire" % held, {"action": "switch"})
    server.post("/v1/instances/%s/pause" % held, {"actor_ref": "bob", "reason": "repairs"})
    gone = server.create(definition="lamp")
    server.post("/v1/instances/%s/cancel" % gone)  # the older program records a reason of its own
    inline = server.ask("POST", "/v1/instances", ('{"declaration":%s}' % INLINE).encode())["instance_id"]
    server.post("/v1/instances/%s/fire" % inline, {"action": "go", "fired_at": None})
    kettle = server.create(definition="kettle", actor_ref="eve")
    server.post("/v1/instances/%s/fire" % kettle, {"action": "boil"})
    while not server.ask("GET", "/v1/instances?definition=lamp&limit=10&created_after=2026-01-01T00:00:00Z")["instances"][3:]:
        pass
    alarm = server.post("/v1/alarms", {"after": "5000d", "operation": "instance.fire",
                                       "input": {"instance_id": lit, "action": "switch", "guard_satisfied": True}})
    token = server.post("/v1/tokens", {"scopes": "read,write:lamp", "name": "ci", "expires": "5000d"})
    return facts(server, lit=lit, held=held, gone=gone, inline=inline, kettle=kettle, alarm=alarm["alarm_id"],
                 token=token["token_id"])


def claim(server, tool, **more):
    return server.post("/v1/steps/claim", {"tools": [tool], "worker": "old-worker", "lease": "5000d", "wait": "10s", **more})["steps"][0]


def flows(server):
    for name, text in (("graph", GRAPH), ("tree", TREE), ("gated", GATE), ("child", CHILD), ("parent", PARENT),
                       ("backoff", BACKOFF), ("rounds", ROUNDS)):
        server.put(name, text)
    graph = server.create(definition="graph", input={"n": 7}, actor_ref="ann", labels={"k": "v"})
    left = claim(server, "remote/left")
    ahead = server.create(definition="graph", input={"n": 8})
    server.post("/v1/instances/%s/signals" % ahead, {"name": "news", "payload": {"said": "early"}})
    server.post("/v1/instances/%s/signals" % ahead, {"name": "news", "payload": {"said": "kept"}})
    tree = server.create(definition="tree", input={"topic": "old stores"})
    a, b = claim(server, "remote/a"), claim(server, "remote/b")
    server.post("/v1/steps/%s/complete" % a["step_id"], {"lease": a["lease"], "result": {"a": 1}})
    gate = server.create(definition="gated")
    ok = server.ask("GET", "/v1/instances/%s/steps" % gate)["steps"][0]["step_id"]
    server.post("/v1/steps/%s/approve" % ok, {"actor_ref": "ann"})
    parent = server.create(definition="parent", input={"from": "above"}, correlation_id="kin")
    backoff = server.create(definition="backoff")
    shaky = claim(server, "remote/shaky")
    server.post("/v1/steps/%s/fail" % shaky["step_id"], {"lease": shaky["lease"], "error": "not today"})
    rounds = server.create(definition="rounds")
    for _ in range(40):
        step = claim(server, "remote/round")
        server.post("/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": {"x": "y" * 40}})
    amended = server.create(definition="child", input={"from": "here"})
    server.put("child", CHILD.replace("ext: \"{{steps.ext.result}}\"", "ext: \"{{steps.ext.result}}\", v: 2"))
    server.post("/v1/instances/%s/amend" % amended, {"definition": "child@2"})
    return facts(server, graph=graph, left=left, ahead=ahead, tree=tree, b=b, gate=gate, gate_step=ok, parent=parent,
                 backoff=backoff, rounds=rounds, amended=amended)


def advanced(server):
    server.put("later", LATER)
    later = server.create(definition="later")
    server.post("/v1/test/advance", {"by": "4999d"})
    return facts(server, later=later)


def code(server):
    buff = server.create(definition="buff", input={"duration_secs": 600}, subject_ref="42")
    server.post("/v1/instances/%s/signals" % buff, {"name": "stack", "payload": 4})
    trade = server.create(definition="trade", input={"buyer": 1, "seller": 2})
    for who in (1, 2):
        server.post("/v1/instances/%s/signals" % trade, {"name": "accept", "payload": who})
    night = server.create(definition="day_night", input={})
    server.post("/v1/test/advance", {"by": "4m"})
    return facts(server, buff=buff, trade=trade, night=night)


def pack(name, folder):
    with tarfile.open(HERE / (name + ".tar.xz"), "w:xz", preset=9) as out:
        for path in sorted(folder.glob("s.db*")):
            if path.suffix in (".db", ".db-wal"):
                data = path.read_bytes()
                info = tarfile.TarInfo(path.name)
                info.size, info.mode = len(data), 0o600
                out.addfile(info, io.BytesIO(data))


def make(name, fill, pawl, *words):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(pawl, folder, *words)
        answers = fill(server)
        server.kill()
        pack(name, pathlib.Path(folder))
        if name == "flows":
            exported = subprocess.run([pawl, "--store", "sqlite:s.db", "export"], cwd=folder, check=True, capture_output=True)
            with tarfile.open(HERE / "export.tar.xz", "w:xz", preset=9) as out:
                info = tarfile.TarInfo("export.jsonl")
                info.size = len(exported.stdout)
                out.addfile(info, io.BytesIO(exported.stdout))
    (HERE / (name + ".json")).write_text(json.dumps(answers, separators=(",", ":"), sort_keys=True) + "\n")


def main():
    """Without names of stores: all of them."""
    pawl, root = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        module = folder + "/flows.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-I", str(root / "include"), "-o", module,
                        str(root / "examples/code/flows.c")], check=True)
        for fill, words in ((machines, []), (flows, []), (advanced, ["--test"]),
                            (code, ["--test", "--module", module])):
            if not sys.argv[3:] or fill.__name__ in sys.argv[3:]:
                make(fill.__name__, fill, pawl, *words)


if __name__ == "__main__":
    main()
