#!/usr/bin/env python3
"""Random flows of every kind of step, killed at random moments, come to what a model says: a status, and a result or an error.

random_flows.py makes the definitions and works out what they come to. Here a server runs them, a worker and people answer it, and `kill -9` hits it
again and again, in the middle of whatever it does but a claim (a lease that nobody heard of would have to run out). What was undone is held
against the history: the last first, with what was done (CW3), and each once (CW5). PAWL_TEST_LONG=1: 1,000 flows and 60 deaths."""
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "http")]
import random_flows  # noqa: E402
from web import Web, harness  # noqa: E402

LONG = bool(os.environ.get("PAWL_TEST_LONG"))
FLOWS, DEATHS = (1000, 60) if LONG else (int(os.environ.get("PAWL_TEST_FLOWS", "20")), 3)
SEED = int(os.environ.get("PAWL_TEST_SEED", "1"))
TOLD = {"do": [{"tool": "log", "args": {"message": "told"}, "idempotent": True, "retry": {"max": 99, "backoff": ["1ms"]}}]}


class Killer:
    """The server, and who kills it: at moments that chance chooses, as often as it is told."""

    def __init__(self, shell, roll):
        self.shell, self.roll, self.deaths, self.over = shell, roll, 0, threading.Event()
        self.claiming, self.changed = threading.Lock(), threading.Condition()
        self.start()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        self.child, address = self.shell.serve()
        with self.changed:
            self.web = Web(address)
            self.changed.notify_all()

    def run(self):
        while self.deaths < DEATHS and not self.over.wait(self.roll.uniform(0.05, 0.6)):
            with self.claiming:
                self.child.send_signal(signal.SIGKILL)
                self.child.wait()
                self.deaths += 1
                self.start()

    def ask(self, method, path, body=None, key=None):
        """Repeated over deaths; what was accepted before is answered by its key."""
        wrong = None
        for _ in range(DEATHS + 8):
            web = self.web
            try:
                reply = web.ask(method, path, body, {"Idempotency-Key": key} if key else {})
                if reply.status != 503:
                    return reply
                wrong = reply
            except (OSError, http.client.HTTPException) as error:
                wrong = error
            with self.changed:
                self.changed.wait_for(lambda: self.web is not web, 2)
        if self.child.poll() is not None:
            wrong = "the server has died by itself: %s %s" % (self.child.returncode, self.child.stderr.read().decode()[-3000:])
        raise AssertionError("%s %s %s: %r" % (method, path, body, wrong))

    def get(self, path):
        reply = self.ask("GET", path)
        assert reply.status == 200, (path, reply)
        return reply.json

    def pages(self, path, key):
        after, mark = "", "&" if "?" in path else "?"
        while after is not None:
            page = self.get(path + "%slimit=1000%s" % (mark, after and "&after=" + after))
            yield from page[key]
            after = page["next"]


class World:
    """The worker, the people and the programs outside."""

    def __init__(self, server, flows, roll):
        self.server, self.roll, self.number = server, roll, 0
        self.flows = {flow.name: flow for flow in flows}
        self.texts = {flow.name: json.dumps(flow.emit()) for flow in flows}
        self.known, self.rounds, self.undone, self.cancelled, self.roots = {}, {}, {}, set(), {}

    def key(self):
        self.number += 1
        return "w%d" % self.number

    def answer(self, step):
        """A step's script is in its arguments; the worker adds which round of it this is."""
        args, at = step["args"], {"step_id": step["step_id"], "lease": step["lease"]}
        if step["tool"] == "undo":
            if step["attempt"] <= args["fails"]:
                return {**at, "error": "undo"}
            self.undone.setdefault(step["instance_id"], []).append((args["of"], args["v"], step["idempotency_key"]))
            return {**at, "result": None}
        keys = self.rounds.setdefault((step["instance_id"], step["name"], args.get("i")), [])
        if step["idempotency_key"] not in keys:
            keys.append(step["idempotency_key"])
        turn = keys.index(step["idempotency_key"])
        if args["bad"] or turn < args["rounds"] or args.get("i") in args.get("items", ()):
            return {**at, "error": args["error"], "retry": False}
        if step["attempt"] <= args["fails"]:
            return {**at, "error": args["error"]}
        return {**at, "result": {"v": args["v"], "round": turn, **{k: args[k] for k in ("i", "before", "echo") if k in args}}}

    def work(self):
        with self.server.claiming:
            reply = self.server.ask("POST", "/v1/steps/claim", {"tools": ["do", "undo"], "worker": "w", "max": 100, "wait": "20ms", "lease": "10m"})
        steps = reply.json["steps"]
        if steps:
            body = {"steps": [self.answer(step) for step in steps]}
            assert self.server.ask("POST", "/v1/steps/complete", body, self.key()).status == 200
        return len(steps)

    def meet(self):
        """Each instance that is new gets all its signals at once: they are kept."""
        for row in list(self.server.pages("/v1/instances?order=oldest", "instances")):
            id, name = row["instance_id"], row["definition"]
            if id not in self.known and name in self.texts:
                for n in range(self.texts[name].count('"signal": "go"')):
                    reply = self.server.ask("POST", "/v1/instances/%s/signals" % id, {"name": "go", "payload": "gone"}, "go-%s-%d" % (id, n))
                    assert reply.status == 202 or reply.reason == "terminal", reply
            self.known[id] = name

    def decide(self):
        for gate in list(self.server.pages("/v1/gates", "gates")):
            word = "reject" if gate["ask"]["reject"] else "approve"
            self.server.ask("POST", "/v1/steps/%s/%s" % (gate["step_id"], word), {"actor_ref": "ann", **({"reason": "no"} if word == "reject" else {})})
        for step in list(self.server.pages("/v1/steps?status=pending", "steps")):
            name = self.known.get(step["instance_id"])
            if name in self.texts and '"%s": {"external": true, "idempotent"' % step["name"] in self.texts[name] or \
                    name in self.texts and '"name": "%s", "external": true, "idempotent"' % step["name"] in self.texts[name]:
                self.server.ask("POST", "/v1/steps/%s/complete" % step["step_id"], {"result": "done"})
        for row in list(self.server.pages("/v1/instances?status=paused", "instances")):
            assert row["created_by"] != "x", row
            waits = self.server.get("/v1/instances/%s/why" % row["instance_id"])["waiting_for"]
            assert [one["reason"] for one in waits if one["kind"] == "pause"] in (["compensation-failed"], []), waits
            self.server.ask("POST", "/v1/instances/%s/resume" % row["instance_id"], {})

    def begin(self, flows):
        for flow in flows:
            reply = self.server.ask("POST", "/v1/instances", {"definition": flow.name, "input": {"n": 1}}, "make-" + flow.name)
            assert reply.status == 201, reply
            self.roots[reply.json["instance_id"]] = flow

    def cancel_some(self):
        """One in ten, at some moment."""
        for id in self.roots:
            if id not in self.cancelled and hash_of(id) % 10 == 0 and self.roll.random() < 0.1:
                reply = self.server.ask("POST", "/v1/instances/%s/cancel" % id, {"reason": "enough"})
                assert reply.status == 200 or reply.reason in ("terminal", "conflict"), reply
                self.cancelled.add(id)

    def is_over(self):
        counts = self.server.get("/v1/instances/counts")["by_status"]
        return sum(counts.get(word, 0) for word in ("running", "suspended", "paused")) == 0

    def stuck(self):
        """What has not ended, and what it waits for."""
        rows = [row for row in self.server.pages("/v1/instances?order=oldest", "instances") if row["status"] in ("running", "suspended", "paused")]
        tell = lambda id, what: self.server.get("/v1/instances/%s/%s" % (id, what))  # noqa: E731
        return "\n".join("%s %s\n%s\n%s\n%s" % (row["instance_id"], self.texts.get(row["definition"]), tell(row["instance_id"], "why"), [
            (step["name"], step["status"], step["attempt"]) for step in tell(row["instance_id"], "steps")["steps"]], [
                (entry["action"], entry.get("step")) for entry in tell(row["instance_id"], "history")["entries"][-4:]]) for row in rows[:3])

    def run(self):
        quiet, idle = 0, 0
        while quiet < 2:
            worked = self.work()
            idle = 0 if worked else idle + 1
            assert idle < 200, self.stuck()
            self.meet()
            self.decide()
            self.cancel_some()
            quiet = quiet + 1 if not worked and self.is_over() else 0


def hash_of(id):
    return sum(id.encode())


# ---- What it must have come to ----


def check_outcome(world, id, flow):
    found = world.server.get("/v1/instances/" + id)
    status, value = flow.outcome()
    told = found["status"], found["result"] if found["status"] == "completed" else found["error"]
    if id in world.cancelled and found["status"] == "cancelled":
        return found["status"]
    assert told == (status, value), "%s\n%s\n%s\nthe model says %s %s\nit came to %s %s" % (
        id, world.texts[flow.name], story(world, id), status, json.dumps(value), told[0], json.dumps(told[1]))
    return found["status"]


def story(world, id):
    """Its entries, and below them those of its children."""
    lines = ["%s %s %s" % (entry["action"], entry.get("step") or "", json.dumps(entry.get("payload")))
             for entry in world.server.get("/v1/instances/%s/history" % id)["entries"]]
    for row in world.server.pages("/v1/instances?order=oldest", "instances"):
        if row["parent_id"] == id:
            lines += ["  " + line for line in [row["definition"]] + story(world, row["instance_id"]).split("\n")]
    return "\n".join(lines)


def check_undone(world, id, flow, status):
    """What was done and can be undone is a stack, which a pivot empties: an end but success takes everything from it, the last first."""
    text, stack, forward = world.texts[flow.name], [], True
    undoes = {step["name"] for step in world.server.get("/v1/instances/%s/steps" % id)["steps"] if step["name"].endswith(".compensate")}
    for entry in world.server.get("/v1/instances/%s/history" % id)["entries"]:
        name = entry.get("step") or ""
        if entry["action"] == "compensate":
            forward = False
        if entry["action"] == "step.start" and not name.endswith(".compensate"):
            assert forward, (id, entry, "a forward step begins after `compensate`")
        if entry["action"] != "step.complete":
            continue
        if name.endswith(".compensate"):
            assert stack and stack[-1][0] + ".compensate" == name, (id, name, stack, text)
            stack.pop()
        elif has_undo(text, name, "pivot"):
            stack = []
        elif has_undo(text, name, None):
            stack.append((name, entry["payload"]["v"], entry["step_id"]))
    assert status == "completed" or not stack, (id, status, stack, text)
    done = world.undone.get(id, [])
    assert len(undoes) == 0 or done, (id, undoes)
    assert len(set(key for _, _, key in done)) == len(done), (id, done, "undone twice")


def has_undo(text, name, kind):
    """Does this step have a compensation, or is it a pivot?"""
    wanted = '"compensate": "pivot"' if kind else '"compensate": {"tool": "undo", "args": {"of": "%s"' % name
    if not kind:
        return wanted in text
    return any(wanted in part.split('"name": "')[0] and part.startswith('%s"' % name) for part in text.split('"name": "')) or \
        any(part.startswith('"%s": {' % name) and '"compensate": "pivot"' in own_part(part) for part in parts_of(text, name))


def parts_of(text, name):
    at = text.find('"%s": {' % name)
    return [text[at:]] if at >= 0 else []


def own_part(text):
    """The object that begins behind the first colon."""
    return json.dumps(json.JSONDecoder().raw_decode(text[text.index("{"):])[0])


def check_told(world):
    """Each that has completed or failed was told of once, and no other."""
    told = [row["input"]["event"]["instance_id"] for row in world.server.pages("/v1/instances?definition=told", "instances")]
    wanted = [row["instance_id"] for name, flow in world.flows.items() if flow.tells
              for row in world.server.pages("/v1/instances?definition=" + name, "instances") if row["status"] in ("completed", "failed")]
    assert sorted(told) == sorted(wanted), (len(told), len(wanted), set(told) ^ set(wanted))


def test_random_flows_of_all_kinds_come_to_what_the_model_says_through_deaths(shell):
    roll = random.Random(SEED)
    maker = random_flows.Maker(SEED)
    flows = [maker.make() for _ in range(FLOWS)]
    server = Killer(shell, roll)
    world = World(server, flows + maker.children, roll)
    for name, text in [("told", json.dumps(TOLD)), *world.texts.items()]:
        reply = server.ask("PUT", "/v1/definitions/" + name, text)
        assert reply.status in (200, 201), (reply, text)
    server.thread.start()
    world.begin(flows)
    world.run()
    server.over.set()
    server.thread.join()
    ends = {}
    for id, flow in world.roots.items():
        status = check_outcome(world, id, flow)
        check_undone(world, id, flow, status)
        ends[status] = ends.get(status, 0) + 1
    check_told(world)
    assert server.ask("POST", "/v1/verify").json["valid"]
    shell.stop(server.child)
    told = subprocess.run([sys.executable, harness.ROOT / "tools" / "verify.py", shell.folder / "pawl.db"], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
    print("# seed %d: %s, %d children, %d deaths" % (SEED, ends, len(world.known) - len(world.roots), server.deaths))


if __name__ == "__main__":
    harness.main(dict(globals()))
