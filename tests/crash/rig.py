"""rig.py - a server that dies, clients that go on, and a ledger of what they were told.

The ledger knows of every call whether it was acknowledged, refused, or never answered. After
each restart it is held against what the server shows: what was acknowledged is there, what
was refused is not, what was never answered is there wholly or not at all; and what was once
seen stays, hash by hash.
"""
import atexit
import http.client
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAWL = os.path.abspath(os.environ.get("PAWL", ROOT / "build" / "pawl"))
EVERY_MS = 60  # of countdowns
LONG = bool(os.environ.get("PAWL_TEST_LONG"))

LAMP = """name: lamp
states: [dark, lit, broken]
initial_state: dark
terminal_states: [broken]
terminal_kinds: {broken: success}
transitions:
  - {from_state: dark, action: switch, to_state: lit}
  - {from_state: lit, action: switch, to_state: dark}
  - {from_state: '*', action: break, to_state: broken}
"""

# Declared inline: a self-loop, a guard, a reason, a way to cancel.
PAPER = {"states": ["draft", "held", "sent", "torn"], "initial_state": "draft",
         "terminal_states": ["sent", "torn"], "terminal_kinds": {"sent": "success", "torn": "cancel"},
         "transitions": [
             {"from_state": "draft", "action": "edit", "to_state": "draft"},
             {"from_state": "draft", "action": "hold", "to_state": "held", "requires_reason": True},
             {"from_state": "held", "action": "send", "to_state": "sent", "guard": "signed"},
             {"from_state": "held", "action": "free", "to_state": "draft"},
             {"from_state": "draft", "action": "tear", "to_state": "torn"},
             {"from_state": "held", "action": "tear", "to_state": "torn"}]}
MARKED = ("lamp", "paper")  # kinds whose every entry bears the mark of its call

# Every attempt may be lost with its process, and is made again.
TRIP = """name: trip
steps:
  start:
    name: pack
    tool: set
    idempotent: true
    retry: {max: 100}
    args: {bag: "{{input.bag}}"}
    next: ride
  ride:
    tool: sleep
    args: {for: 50ms}
    next: unpack
  unpack:
    tool: set
    idempotent: true
    retry: {max: 100}
    args: {got: "{{steps.pack.result.bag}}"}
    done: true
"""


class Gone(Exception):
    """The server went away; `sent` tells whether it may have heard the request."""

    def __init__(self, sent):
        super().__init__("the server went away")
        self.sent = sent


class Client:
    """One connection. Answers are (status, body)."""

    def __init__(self, address):
        host, port = address.split("//")[1].split(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)

    def call(self, method, path, body=None):
        sent = False
        try:
            if self.connection.sock is None:
                self.connection.connect()
            sent = True
            data = None if body is None else json.dumps(body)
            self.connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError):
            self.connection.close()
            raise Gone(sent) from None


class Server:
    """`pawl serve` on a store. `env` and `before` (words before the command) bring its death."""

    def __init__(self, folder, env=None, before=(), words=()):
        environment = {k: v for k, v in os.environ.items() if k not in ("PAWL_STORE", "PAWL_CRASH_AT")}
        environment.update(env or {})
        if before:  # the leak check can't work in a process that is traced
            environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.errors = open(os.path.join(folder, "server.err"), "ab")
        self.child = subprocess.Popen(
            [*before, PAWL, "--store", "sqlite:store.db", "serve", "--listen", "127.0.0.1:0", *words],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=self.errors)
        atexit.register(self.end)
        line = self.child.stdout.readline().decode()
        found = re.match(r"pawl is ready on (http://127\.0\.0\.1:\d+)", line)
        self.address = found.group(1) if found else None  # None: it died before it was ready

    def client(self):
        return Client(self.address)

    def is_dead(self):
        return self.child.poll() is not None

    def wait(self, seconds):
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self):
        if not self.is_dead():
            self.child.kill()
        self.child.wait()
        self.close()

    def end(self):
        """Whatever happens, no server outlives its test."""
        if not self.is_dead():
            self.child.kill()
            self.child.wait()

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(60)
        code = self.child.returncode
        self.close()
        assert code == 0, "the server ended with %d" % code

    def close(self):
        self.child.stdout.close()
        self.errors.close()


class Instance:
    """What is known of one instance."""

    def __init__(self, kind, subject):
        self.kind, self.subject = kind, subject
        self.id = None
        self.acked = {}       # number of the entry -> the mark in its payload
        self.open = set()     # marks of calls that were never answered
        self.refused = set()  # marks of calls that were refused
        self.must_see = set() # marks that were acknowledged without a number
        self.seen = []        # hashes, in order
        self.added = self.added_perhaps = 0  # signals to a countdown
        self.may_be_missing = False          # its creation was never answered

    def check(self, entries):
        numbers = [e["sequence_number"] for e in entries]
        assert numbers == list(range(1, len(entries) + 1)), "%s: numbers %s" % (self.id, numbers)
        hashes = [e["hash"] for e in entries]
        assert hashes[:len(self.seen)] == self.seen, "%s: what was seen has changed" % self.id
        self.seen = hashes
        if self.kind in MARKED:
            self.check_marks(entries)

    def check_marks(self, entries):
        lost = [n for n in self.acked if n > len(entries)]
        assert not lost, "%s: entries %s were acknowledged and are lost" % (self.id, lost)
        for entry in entries:
            number = entry["sequence_number"]
            mark = entry["payload"]["mark"] if "payload" in entry else entry["reason"]  # of a cancel
            assert mark not in self.refused, "%s: %s was refused and is there" % (self.id, mark)
            if number in self.acked:
                assert self.acked[number] == mark, "%s-%d: expected %s, found %s" % (
                    self.id, number, self.acked[number], mark)
            else:
                assert mark in self.open, "%s-%d: nobody sent %s" % (self.id, number, mark)
                self.acked[number] = mark
        marks = list(self.acked.values())
        assert self.must_see <= set(marks), "%s: %s was acknowledged and is lost" % (self.id, self.must_see)
        assert len(marks) == len(set(marks)), "%s: something is there twice" % self.id
        self.open.clear()


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.instances = []
        self.touched = set()
        self.counter = 0
        self.calls = {"acknowledged": 0, "refused": 0, "unanswered": 0}
        self.deaths = self.by_hand = 0

    def mark(self):
        with self.lock:
            self.counter += 1
            return "m%d" % self.counter

    def note(self, what):
        with self.lock:
            self.calls[what] += 1

    def add(self, kind):
        instance = Instance(kind, "s-" + self.mark())
        with self.lock:
            self.instances.append(instance)
        self.touch(instance)
        return instance

    def touch(self, instance):
        with self.lock:
            self.touched.add(instance)

    def find(self, client, instance):
        """The instance whose creation was never answered: is it there?"""
        status, body = client.call("GET", "/v1/instances?subject_ref=" + instance.subject)
        assert status == 200, (status, body)
        found = body["instances"]
        assert len(found) <= 1, "%s was created %d times" % (instance.subject, len(found))
        assert found or instance.may_be_missing, "%s was acknowledged and is lost" % instance.subject
        if found:
            assert instance.id in (None, found[0]["instance_id"])
            instance.id = found[0]["instance_id"]
            instance.may_be_missing = False

    def check(self, client, everything=False):
        chosen = list(self.instances) if everything else [i for i in self.instances
                                                          if i in self.touched]
        for instance in chosen:
            self.find(client, instance)
            if instance.id:
                status, body = client.call("GET", "/v1/instances/%s/history" % instance.id)
                assert status == 200, (status, body)
                instance.check(body["entries"])
        # A creation that is not there now was never made.
        self.instances = [i for i in self.instances if i.id]
        self.touched.clear()


def create(ledger, client, kind, body):
    instance = ledger.add(kind)
    instance.may_be_missing = True
    try:
        status, answer = client.call("POST", "/v1/instances", {**body, "subject_ref": instance.subject})
    except Gone as gone:
        ledger.note("unanswered") if gone.sent else None
        raise
    if status == 201:
        ledger.note("acknowledged")
        instance.id = answer["instance_id"]
        instance.may_be_missing = False
        return instance
    assert status == 503, (status, answer)
    raise Gone(True)


def marked(ledger, client, instance, path, body, mark):
    """Call, and note how it went; the answer, or None if it was refused."""
    instance.open.add(mark)
    ledger.touch(instance)
    try:
        status, answer = client.call("POST", "/v1/instances/%s/%s" % (instance.id, path), body)
    except Gone as gone:
        ledger.note("unanswered") if gone.sent else None
        raise
    if status == 200:
        ledger.note("acknowledged")
        return answer
    if answer.get("reason") != "outcome-unknown":
        instance.open.discard(mark)
        instance.refused.add(mark)
        ledger.note("refused")
    return None


def switch(ledger, client, instance, action="switch", size=0, **members):
    """Fire, with a payload of some `size`; the entry's number, or None if it was refused."""
    mark = ledger.mark()
    payload = {"mark": mark, "text": "x" * size} if size else {"mark": mark}
    answer = marked(ledger, client, instance, "fire", {"action": action, "payload": payload, **members}, mark)
    if answer is None:
        return None
    instance.open.discard(mark)
    instance.acked[answer["sequence_number"]] = mark
    return answer["sequence_number"]


def cancel(ledger, client, instance):
    """Its answer tells no number: it stays open until it is seen, but it must be seen."""
    mark = ledger.mark()
    answer = marked(ledger, client, instance, "cancel", {"reason": mark}, mark)
    instance.must_see.update([mark] if answer else [])
    return answer


def run_cli(folder, *words):
    """(exit status, what it printed)."""
    environment = {k: v for k, v in os.environ.items() if k != "PAWL_STORE"}
    done = subprocess.run([PAWL, "--store", "sqlite:store.db", *words], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert b"Sanitizer" not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def verify(folder):
    """`pawl verify` and tools/verify.py say the same, and that it is valid."""
    code, out, err = run_cli(folder, "verify", "--json")
    ours = json.loads(out) if out else None
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "verify.py"), "--json", "store.db"],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    theirs = json.loads(done.stdout) if done.stdout else None
    assert code == 0 and ours and ours["valid"], (code, out, err)
    assert done.returncode == 0 and theirs and theirs["valid"], (done.stdout, done.stderr)
    for what in ("records", "entries", "instances"):
        assert ours[what] == theirs[what], (what, ours, theirs)
    return ours


def check_timers(folder):
    """No countdown's timer fired before the entry that armed it said; each fired once."""
    store = sqlite3.connect(os.path.join(folder, "store.db"))
    armed, fired = {}, 0
    rows = store.execute("""SELECT l.inst, l.at, t.action, l.body FROM pawl_log l
        JOIN pawl_instance i ON i.number = l.inst JOIN pawl_definition d ON d.id = i.definition
        JOIN pawl_transition t ON t.definition = d.id AND t.idx = l.what
        WHERE d.name = 'countdown' ORDER BY l.pos""")
    for inst, at, action, body in rows:
        due = armed.pop(inst, None)
        if action == "timer":
            assert due is not None, "instance %d: a timer fired that was not armed" % inst
            assert at >= due, "instance %d: a timer fired %d ms early" % (inst, due - at)
            fired += 1
        for effect in json.loads(body or "[]"):
            if effect[0] == "arm":
                armed[inst] = effect[2]
    store.close()
    assert not armed and fired > 0, (armed, fired)


def check_no_sanitizer(folder):
    text = pathlib.Path(folder, "server.err").read_text(errors="replace")
    for bad in ("Sanitizer", "runtime error", "broken promise"):
        assert bad not in text, text[-4000:]


def wait_for(what, seconds=60):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "waited %d s in vain" % seconds
        time.sleep(0.02)
