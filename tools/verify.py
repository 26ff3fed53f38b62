#!/usr/bin/env python3
"""Check a pawl store (an SQLite file) by docs/format.md alone.

    verify.py [--json] FILE

A second reader of the frozen page: it shares no code with pawl, imports nothing but the
standard library, and opens the file read-only, live or not. It prints one line,

    valid: 120 records, 100 entries, 9 instances
    INVALID at position 17 (instance 0000000003..., entry 4): what is wrong

and ends with 0 or 1; with 2 if it was not asked properly, with 3 if it can't judge the file: it is no
pawl store, one of a version that the page does not know, or one whose -wal may not be read. It runs no reducer: whether a flow's
entries are what its plan gives (rule 5 of the page) only `pawl verify` can say.
"""

import hashlib
import json
import os
import re
import sqlite3
import sys
import urllib.parse

APPLICATION_ID = 0x7061776C
# Numbers of migrations; user_version is that of the last one.
TABLES, VIEWS, QUERIES, KEYS, PAUSES, KEPT, LEASES, FAMILY, SEED, TRACE, SHORT, TREE, SEED_AGAIN, ENDS, CODE, FIRING, CREATED, CLOCKS, REDRIVES, DECLARED, POLL, INTEREST, SINCE, POLL_AGAIN, ATTEMPTED, ERASED = range(1, 27)
SKIP_EVERY = 64
NO_HASH = bytes(32)
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
STORE_ID_TEXT = "0" * 26
CREATE, DEFINE, PAUSE, RESUME, ALARM, KEEP_SIGNAL, TOKEN, ERASE = -1, -2, -3, -4, -5, -6, -7, -8
IMPORT, CLOCK, RIGHTS, HOLD, ARCHIVE, GONE = -10, -11, -12, -13, -14, -15
CONTROLS = range(ARCHIVE, 0)
ERASED_FLAG = 2  # of a record whose body, or whose instance's row, has lost what could be private
MOVED_MAX = 1 << 60  # an import moves no timer by as much
NEVER = 1 << 62  # no shift of the clock moves a due time of at least this
START = 0   # the first transition of a flow
AMEND = 11  # the transition of a flow that goes on by another plan
FAILURES = {"step.fail", "step.timeout", "gate.reject"}  # their entries end a step with an error
KINDS = {1: "machine", 2: "flow", 3: "code"}
TERMINALS = {None: 0, "plain": 1, "success": 2, "failure": 3, "cancel": 4}
PENDING, READY, RUNNING = 0, 1, 2
STATUSES = {"pending": PENDING, "ready": READY}
NUMBER_MAX = (1 << 50) - 1
KEY_KEPT_MS = 7 * 24 * 3600 * 1000
LEASE_COMPILER = 2  # from this compiler on, an entry covers every lease
META_KEYS = {b"format", b"store_id", b"flushed", b"test_now"}
SHARD_KEYS = {b"whole_id", b"shard", b"shards"}
SEED_VIEWS = {b"workflows", b"workflow_steps"}

# SHA-256 over the objects of each schema, by its last migration: (in a file of its own, in a host's file).
SCHEMAS = {
    1: ("0225ef1238bef2e55cfbcc72b7716faf41b2c0d3e237a8ea819cafdeb4cdea02",
        "0225ef1238bef2e55cfbcc72b7716faf41b2c0d3e237a8ea819cafdeb4cdea02"),
    2: ("3638a7233cbdabf12653caae288ab422991d2fdcf711085b09f9da786df6e1d9",
        "3638a7233cbdabf12653caae288ab422991d2fdcf711085b09f9da786df6e1d9"),
    3: ("6dedbd179bc96099a23c647449f73176c0706c801d016c4ba17846fda56e8d38",
        "6dedbd179bc96099a23c647449f73176c0706c801d016c4ba17846fda56e8d38"),
    4: ("bcf59e572b06a862f290661a36bd42b6f81c94b087381c71f558deb5c1d62c43",
        "bcf59e572b06a862f290661a36bd42b6f81c94b087381c71f558deb5c1d62c43"),
    5: ("8003fbfdca2cbc051e68b770e155f81507438e6d488614fb0e09043fb0f03589",
        "8003fbfdca2cbc051e68b770e155f81507438e6d488614fb0e09043fb0f03589"),
    6: ("d450a1dd8f41c0c3d29a399174f8ba9b6cf2497dd5049692d3d385fa487e79e4",
        "d450a1dd8f41c0c3d29a399174f8ba9b6cf2497dd5049692d3d385fa487e79e4"),
    7: ("e9167ae91063654834034cd820dc1663b19bccb4523710b183991666f0167130",
        "e9167ae91063654834034cd820dc1663b19bccb4523710b183991666f0167130"),
    8: ("c4a202762e8894a3a81021bff45bda0c2d67b49a601dcf2f037d2d588901f56d",
        "c4a202762e8894a3a81021bff45bda0c2d67b49a601dcf2f037d2d588901f56d"),
    9: ("8dde2e507fa990c3a36d3681e12c63066ed8098df5c6e2ffda5fca82817425b0",
        "c4a202762e8894a3a81021bff45bda0c2d67b49a601dcf2f037d2d588901f56d"),
    10: ("f43fa36a24388a780d41181dadccf96b6c8f8f5398ef11e45b2c0db92026b2c8",
        "7009330e9b5c3d99db661d2e818b7d32b92ccffd37867db052f8dfb8a6f76fb2"),
    11: ("f43fa36a24388a780d41181dadccf96b6c8f8f5398ef11e45b2c0db92026b2c8",
        "7009330e9b5c3d99db661d2e818b7d32b92ccffd37867db052f8dfb8a6f76fb2"),
    12: ("3f433ebda60886d8cd9315ed20d4ca46fae2b74d8469f69b493946dc9da5224a",
        "485863aa51f9a0ecc2d61e1009f817935f6be7974724fc8ff8491b1600704e52"),
    13: ("4068a9373c159f809e1da5b2686dd4d44699fb4aab86da9c5fbf2524aaf7b137",
        "485863aa51f9a0ecc2d61e1009f817935f6be7974724fc8ff8491b1600704e52"),
    14: ("bc7f00cb6b196d31c4d9a6538c0dea185d363fb20dcb9a04e3ca4d74c025ba3d",
        "bcf503f0727ad546de768a394c8b4ee3fa769d5808616398fc3c8e2a552622f4"),
    15: ("245037509112a2275fdd6c5cc0a6fa4db935acf07ec959d1607faa7d038d4a3d",
        "06e1accb633bbef8f1c3af8a48248580f5af2bc437f19ce990d766e11bc627a6"),
    16: ("884d251715612263c66cb1f7ae61e87d8ac9a81d2935eb89c7147ae25f12bfc9",
        "ea3e9d579eb42afc4f92021d1f327c16400e1dddcf7065e38036dc155a8c6d18"),
    17: ("884d251715612263c66cb1f7ae61e87d8ac9a81d2935eb89c7147ae25f12bfc9",
        "ea3e9d579eb42afc4f92021d1f327c16400e1dddcf7065e38036dc155a8c6d18"),
    18: ("7df0d5c093645175657dbba4a8bcc1dea5f9494b0a6617993c722f1e26421031",
        "bfdd486b59dea1fabb00530ca31a9e9140677890290f1e053707f35f7e5cca90"),
    19: ("5134335a5b64ba315f277a537a395f327b67c8807bfc06b07cc279af7edfe9da",
        "70d880ad7971995590d1690962868eedfacb34fa6130732db11a82a15cb69bc2"),
    20: ("13da331d19cc2b7a3f0733fc7ed5a3b65c63d2b9f8b980b0e9365e2798bf6904",
        "a54dcb9eb9b7ebc400970c712835127e4e7ef3752d6478d9f770c44cd5592950"),
    21: ("2ab17181ba23ae89c38e1acc8b77245f3d68955da0e665e528aef3bcbab0dffc",
        "a54dcb9eb9b7ebc400970c712835127e4e7ef3752d6478d9f770c44cd5592950"),
    22: ("644b68d67028d269d6ccbcaa52be9a29b9aa3d8ec4cd51e3d758d42cca5cb729",
        "482b8ece9ff966c62199ea788a7e0b7dcc60e71b6d7ae27d7a9da73a40bb260f"),
    23: ("4d84a773469fb2fa6f1e81ebf54639e0e9f31a6a50340b82dd5b09a232a6d19f",
        "60703c0498d39e618e3fda4ae50af0a9b23e8bb870bbc1e2c6083c4c2fd8d2a1"),
    24: ("50cce345d0364f07255f8886c42874704076f785904c0626fff975003432104f",
        "60703c0498d39e618e3fda4ae50af0a9b23e8bb870bbc1e2c6083c4c2fd8d2a1"),
    25: ("19ba704de475b10371b5013ab5d43ea3708f8b9f296d6af60947ca81bff1a191",
        "deb102131c8ed49b206cb9354715962693e8a9e4ee3cff1bfddc5070ae83fdb6"),
    26: ("19ba704de475b10371b5013ab5d43ea3708f8b9f296d6af60947ca81bff1a191",
        "deb102131c8ed49b206cb9354715962693e8a9e4ee3cff1bfddc5070ae83fdb6"),
    27: ("19ba704de475b10371b5013ab5d43ea3708f8b9f296d6af60947ca81bff1a191",
        "deb102131c8ed49b206cb9354715962693e8a9e4ee3cff1bfddc5070ae83fdb6"),
}
NEWEST = max(SCHEMAS)


# ---- Hashes -----------------------------------------------------------------------------------


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def zigzag(n):
    return varint((n << 1) ^ (n >> 63))


def lp(data):
    data = data or b""
    return varint(len(data)) + data


def opt(digest):
    return b"\0" if digest is None else b"\1" + digest


def value_commitment(salt, data):
    return sha(salt, data)


def instance_id(number, random):
    bits = number << 80 | int.from_bytes(random, "big")
    return "".join(ALPHABET[bits >> 5 * i & 31] for i in reversed(range(26)))


def creation_body(source_sha, compiled_sha, name, version, subject, input_, metadata, correlation,
                  labels, parent_id, test):
    return b"".join([
        source_sha, compiled_sha, lp(name), varint(version), opt(subject), opt(input_),
        opt(metadata), lp(correlation), lp(labels), lp(parent_id), varint(test)])


def record_hash(prev, id_text, seq, what, at, fired, step, ordinal, attempt, flags, actor, payload,
                reason, body, key):
    return sha(
        b"pawl.rec.1", prev, id_text.encode(), varint(seq), zigzag(what), zigzag(at),
        zigzag(fired), varint(step), varint(ordinal), varint(attempt), varint(flags), opt(actor),
        opt(payload), opt(reason), lp(body), lp(key))


def first_root(store_id):
    return sha(b"pawl.store.1", store_id)


def next_root(previous, hashes):
    return sha(b"pawl.root.1", previous, *hashes)


def define_body(name, version, kind, source_sha, compiled_sha, rights=None):
    return json.dumps(
        {"name": name, "version": version, "kind": kind, "source": source_sha.hex(),
         "compiled": compiled_sha.hex(), **({} if rights is None else {"rights": rights})},
        separators=(",", ":"), ensure_ascii=False).encode()


def check_on_end(told):
    """The machine that is told of an end, and the actions that are fired; at least one, in this order."""
    words = ("instance", "completed", "failed", "cancelled")
    if (not isinstance(told, dict) or len(told) < 2 or "instance" not in told
            or list(told) != [word for word in words if word in told]
            or not all(isinstance(value, str) and value for value in told.values())):
        raise Bad("an end of which no machine is told")


def check_names(rights):
    """Rights are names of definitions in byte order, each once, with commas; none: nothing."""
    if not isinstance(rights, str):
        raise Bad("rights that are not a text")
    names = rights.split(",") if rights else []
    if names != sorted(set(names)) or not all(re.fullmatch(r"[A-Za-z0-9._/-]{1,128}", n) for n in names):
        raise Bad("rights that do not name definitions in order")


# A body that tells a request's traceparent begins with it; the rest is what the entry caused.
TRACE_HEAD = b'[["trace","'
TRACE = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def effects_of(body):
    effects = json.loads(body) if body else []
    if (body or b"").startswith(TRACE_HEAD):
        _, trace = effects.pop(0)
        if not TRACE.fullmatch(trace):
            raise ValueError(f"{trace!r} is no traceparent")
    return effects


def raw_items(text):
    """The items of a JSON array as they are written: values of waits are compared by their bytes."""
    decoder, items, at = json.JSONDecoder(), [], 1
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return items
        end = decoder.raw_decode(text, at)[1]
        items.append(text[at:end])
        at = end


def awaited_values(body):
    """[VALUE] of the await effects of a body, in their order; None for one without a value."""
    values = []
    for item in raw_items(body.decode()) if b'"await"' in (body or b"") else []:
        if item.startswith("["):
            parts = raw_items(item)
            if parts and json.loads(parts[0]) == "await":
                values.append(parts[3].encode() if len(parts) > 3 else None)
    return values


# ---- What is wrong ----------------------------------------------------------------------------


class Bad(Exception):
    """The first thing found wrong, and where."""

    def __init__(self, what, pos=0, number=0, seq=0):
        super().__init__(what)
        self.what, self.pos = what, pos
        self.number, self.seq = (n if isinstance(n, int) else 0 for n in (number, seq))


class Unknown(Exception):
    """The file is none that the page speaks of, or cannot be read whole: neither valid nor invalid."""


def number_in(value, name, low=0, high=(1 << 63) - 1):
    """An integer column; NULL counts as 0."""
    if value is None:
        value = 0
    if not isinstance(value, int):
        raise Bad(f"{name} is not a number")
    if not low <= value <= high:
        raise Bad(f"{name} is out of range")
    return value


def bytes_in(value, name, size=None):
    if not isinstance(value, bytes):
        raise Bad(f"{name} is missing")
    if size is not None and len(value) != size:
        raise Bad(f"{name} has {len(value)} bytes, not {size}")
    return value


def optional_bytes(value, name):
    return None if value is None else bytes_in(value, name)


# The steps of a registration of code, in the order of their indexes.
STEP_LISTS = (("call", "calls"), ("external", "externals"), ("child", "children"))

# ---- Definitions ------------------------------------------------------------------------------


class Definition:
    """A definition's row, checked against its texts."""

    def __init__(self, row, sources):
        (self.id, name, version, kind, source, compiled, compiled_sha, compiler, self.created_at) = row
        self.compiler = compiler
        self.name = optional_bytes(name, "its name")
        self.version = number_in(version, "its version", high=0xFFFFFFFF)
        self.kind = KINDS.get(kind)
        self.compiled_sha = bytes_in(compiled_sha, "the hash of its compiled text", 32)
        self.is_defined = False
        if source not in sources:
            raise Bad("its source is missing")
        self.source_sha = sources[source]
        compiled = bytes_in(compiled, "its compiled text")
        if sha(compiled) != self.compiled_sha:
            raise Bad("the compiled text does not match its hash")
        if bool(self.name) != (self.version != 0):
            raise Bad("a name and a version go together")
        self.read(compiled, compiler)

    def read(self, compiled, compiler):
        try:
            text = json.loads(compiled)
            self.states = [(s["name"], TERMINALS[s.get("terminal")]) for s in text["states"]]
            self.transitions = [
                (t["from"], t["action"], t["to"], t.get("guard"),
                 int(t.get("requires_reason", False)), int(t.get("by") == "engine"))
                for t in text["transitions"]]
            self.initial = text["initial"]
            plan = text.get("plan") if self.kind == "code" else {}
            flow = text.get("plan") if self.kind == "flow" else None
            self.step_names = [step["name"] for step in (flow or {}).get("steps", [])]
            self.steps = [[word, step] for word, key in STEP_LISTS for step in plan.get(key, [])]
            self.deadlines = [(d["state"], d["after"], self.transitions[d["transition"]][1])
                              for d in text.get("deadlines", [])]
            self.check(text, compiler)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Bad(f"the compiled text can't be read: {error}") from error

    def check(self, text, compiler):
        if text["kind"] != self.kind:
            raise Bad("its kind is not the compiled one")
        if text["compiler"] != compiler:
            raise Bad("its compiler is not the compiled one")
        known = range(len(self.states))
        if self.initial not in known:
            raise Bad("it has no initial state")
        for start, _, end, *_ in self.transitions:
            if start not in known or end not in known:
                raise Bad("a transition joins unknown states")

    def is_terminal(self, state):
        return self.states[state][1] != 0

    def deadline_effects(self, start, end, at):
        """What coming from `start` (None: created) into `end` does to a machine's timers."""
        if self.is_terminal(end):
            return []
        return ([["disarm", name, 0] for state, _, name in self.deadlines if state == start] +
                [["arm", name, at + after, 0] for state, after, name in self.deadlines if state == end])


# ---- Instances --------------------------------------------------------------------------------


def long_form(effect):
    """An effect with its word: bodies leave out those of steps, of work begun (-ORD) and ended (ORD)."""
    if isinstance(effect, bool) or not isinstance(effect, (int, list)):
        raise ValueError(f"{effect!r} is no effect")
    if isinstance(effect, int):
        if not 0 < abs(effect) <= 0xFFFFFFFF:
            raise ValueError(f"there is no row {effect}")
        return ["run", -effect] if effect < 0 else ["end", effect]
    first = effect[0] if effect else None
    return ["step", *effect] if isinstance(first, int) and not isinstance(first, bool) else effect


class Chain:
    """What the log has told about one instance; number 0 is the store itself."""

    def __init__(self, number, id_text, definition=None, test=0):
        self.number, self.id, self.definition, self.test = number, id_text, definition, test
        self.seq = self.pos = self.skip_pos = 0
        self.state = definition.initial if definition else 0
        self.hash = NO_HASH
        self.steps, self.timers, self.waits, self.children = {}, {}, {}, {}
        self.step_names = list(definition.step_names) if definition else []  # of a flow, by index
        self.code_steps = None    # of code, after an amend that brought a registration
        self.kept = []            # signals that nothing has taken yet
        self.paused = None        # the position of the pause in force
        self.is_opaque = False    # bodies were erased: what its effects leave behind is not known
        self.snapshot = None      # (seq, hash) that the last entry to speak of one told
        self.flushed = (0, 0, 0)  # (pos, seq, state) at the last position not after `flushed`
        self.later = {}           # the same, by position, after it

    def remember(self, flushed):
        here = (self.pos, self.seq, self.state)
        if self.pos <= flushed:
            self.flushed = here
        else:
            self.later[self.pos] = here

    def apply(self, effect, at, value=None):
        """Apply an effect of an entry of this time to the live rows; `value`: an await's, as it is written."""
        word, *rest = long_form(effect)
        if word == "step":
            ordinal, plan, attempt, status = rest if len(rest) > 2 else (*rest, 1, "ready")
            self.steps[ordinal] = (plan, attempt, STATUSES[status], None, 0, at if STATUSES[status] == READY else 0)
        elif word == "ready":
            self.steps[rest[0]] = (*self.steps[rest[0]][:2], READY, None, 0, at)
        elif word == "run":
            ordinal, *lease = rest
            length, digest = lease or (0, None)
            if lease and not (isinstance(length, int) and length > 0 and re.fullmatch("[0-9a-f]{40}", digest)):
                raise ValueError(f"{lease!r} is no lease")
            self.steps[ordinal] = (*self.steps[ordinal][:2], RUNNING, digest and digest.encode(), length, 0)
        elif word == "end":
            self.steps.pop(rest[0], None)
            self.timers = {k: v for k, v in self.timers.items() if k[0] != rest[0]}
            self.waits = {k: v for k, v in self.waits.items() if k[0] != rest[0]}
            self.children.pop(rest[0], None)
        elif word == "arm":
            name, due, ordinal, *by = rest
            if by not in ([], ["wall"]):
                raise ValueError(f"a timer can't be armed by {by!r}")
            self.timers[ordinal, name.encode()] = (due, self.test, len(by), 0)
        elif word == "disarm":
            self.timers.pop((rest[1], rest[0].encode()), None)
        elif word == "await":
            self.waits[rest[1], rest[0].encode()] = value
        elif word == "leave":
            self.waits.pop((rest[1], rest[0].encode()), None)
        elif word == "spawn":
            if rest[1]:  # one that could not be created has no id
                self.children[rest[0]] = (rest[1], int(rest[2:] == ["abandon"]))
        elif word == "take":
            self.kept.remove(rest[0])
        elif word == "redrive":
            pass  # whom it runs again; its row is noted with the entry
        elif word == "plan":
            pass  # what it goes on by; verified by whoever decides again
        elif word == "snapshot":
            self.snapshot = (self.seq, rest[0])
        elif word not in ("state", "call", "version", "reduce", "note", "send"):
            raise ValueError(f"unknown effect {word!r}")

    def shift(self, by):
        """The store's clock is shifted, and timers by it with it. (due as armed, test, wall, shift)"""
        for key, (due, test, wall, moved) in self.timers.items():
            if not wall and due + moved < NEVER:
                self.timers[key] = (due, test, wall, moved + by)

    def move(self, key, by):
        """Move one timer; False if it is not armed, or by the wall clock, or never due."""
        due, test, wall, moved = self.timers.get(key, (0, 0, 1, 0))
        if wall or not -NEVER < due < NEVER:
            return False
        self.timers[key] = (due, test, wall, moved + by)
        return True

    def end(self):
        self.steps, self.timers, self.waits, self.children = {}, {}, {}, {}
        self.paused = None


# ---- The store --------------------------------------------------------------------------------


def open_file(path):
    """The database, only to read it. SQLite wants to make files beside one in WAL mode; where it may not, the file
    is read without locks (immutable), if no -wal with entries is beside it: then no process has it open."""
    def connect(how):
        return sqlite3.connect(f"file:{urllib.parse.quote(path)}?{how}", uri=True, isolation_level=None, timeout=30)

    db = connect("mode=ro")
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        wal = path + "-wal"
        if os.path.exists(wal) and os.path.getsize(wal) > 0:
            if str(error) != "unable to open database file":
                raise
            raise Unknown(f"{wal} has entries that are not in the file yet, and may not be read here ({error}): copy both files into a"
                          " folder that you may write, and check them there") from error
        db.close()
        db = connect("immutable=1")
    except sqlite3.DatabaseError:
        pass  # no database: what is asked next says so
    return db


class Store:
    def __init__(self, path):
        self.db = open_file(path)
        self.db.text_factory = bytes  # a damaged text need not be UTF-8
        self.db.execute("BEGIN")      # one moment of a file that may be written to
        self.records = self.entries = 0
        self.chains = {0: Chain(0, STORE_ID_TEXT)}
        self.definitions, self.by_name, self.commitments = {}, {}, {}
        self.last_pos = self.last_at = 0
        self.imported = 0  # records of another store still to come
        self.import_pos = 0  # of the import record that announced them, until the one behind them
        self.kept = {}  # (what, id) -> (due, pos, wall) of tokens and alarms in force, and of the clock
        self.peak_at = -(1 << 63)
        self.keys = {}  # key id -> (at, pos) of its last record
        self.gone = {}    # commitment of a value without bytes -> position of the last record that uses it
        self.erased = {}  # commitment -> position of the last erase record that names it
        self.archived = {}  # position of an archive record -> what it names, and the places that name it
        self.departed = set()  # ids that it names
        self.references = set()  # values that are actors or subjects
        self.named = set()  # values that a record names
        self.where = 0  # the position of the record that is being checked
        self.foreign = []  # (type, name, table) of the host's objects

    def one(self, sql, *args):
        row = self.db.execute(sql, args).fetchone()
        return row[0] if row else None

    def verify(self):
        self.check_header()
        self.check_schema()
        self.check_file()
        self.check_values()
        self.check_sources()
        self.check_definitions()
        self.check_instances()
        self.check_log()
        self.check_defined()
        self.check_created()
        self.check_heads()
        self.check_live()
        self.check_types()
        self.check_labels()
        self.check_integrity()
        self.check_snapshots()
        self.check_keys()
        self.check_kept()
        self.check_test_clock()
        self.check_named_sources()
        self.check_erased()
        self.check_interned()
        self.check_named()

    def check_header(self):
        """The numbers of the file, or of a guest in a host's file: pawl_meta has its schema."""
        try:
            application_id = self.one("PRAGMA application_id")
            version = self.one("PRAGMA user_version")
            views = self.one("SELECT count(*) FROM sqlite_schema WHERE type = 'view'"
                             " AND name LIKE 'pawl\\_%' ESCAPE '\\'")
            self.is_hosted = application_id != APPLICATION_ID
            if self.is_hosted:
                version = self.guest_schema()
        except sqlite3.DatabaseError as error:
            raise Unknown(f"the file is no pawl store: {error}") from error
        if not isinstance(version, int):
            raise Unknown("the file is no pawl store")
        if not TABLES <= version <= NEWEST or (version < VIEWS and views):
            raise Unknown(f"the file says schema {version}, which is none that it can have")
        self.schema = version

    def guest_schema(self):
        if not self.one("SELECT count(*) FROM sqlite_schema WHERE name = 'pawl_meta'"):
            return None
        return self.one("SELECT value FROM pawl_meta WHERE key = 'schema'")

    def is_ours(self, kind, name, table):
        """By its table (that of a table or view is itself), whatever its own name; an index also by its name."""
        return (table.startswith(b"pawl_") or (kind == b"index" and name.startswith(b"pawl_"))
                or (not self.is_hosted and table in SEED_VIEWS))

    def check_schema(self):
        """Our tables, indexes and views are those of the migrations, and none of them has a trigger."""
        digest = hashlib.sha256()
        for kind, name, table, sql in self.db.execute(
                "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"):
            if not self.is_ours(kind, name.lower(), table.lower()):
                self.foreign.append((kind.decode(), name.decode(), table.decode()))
                continue
            if kind == b"trigger":
                raise Bad(f"the schema: trigger {name.decode()} is on {table.decode()}")
            digest.update(b"".join(part + b"\0" for part in (kind, name, table, sql)))
        if digest.hexdigest() != SCHEMAS[self.schema][int(self.is_hosted)]:
            raise Bad(f"the schema: its tables, indexes and views are not those of migration {self.schema}")

    def check_file(self):
        meta = dict(self.db.execute("SELECT key, value FROM pawl_meta"))
        known = META_KEYS | ({b"schema"} if self.is_hosted else set())
        if self.schema < CREATED:
            known |= {b"created_at"}
        if SHARD_KEYS & set(meta):
            known |= SHARD_KEYS
        for key in meta:
            if key not in known:
                raise Bad(f"pawl_meta has an unknown row: {key!r}")
        if meta.get(b"format") != 1:
            raise Bad(f"the format is {meta.get(b'format')!r}, not 1")
        self.store_id = bytes_in(meta.get(b"store_id"), "the store_id", 16)
        self.check_shard(meta)
        self.root = first_root(self.store_id)
        self.test_now = meta.get(b"test_now")
        if meta.get(b"flushed") is None:
            raise Bad("pawl_meta has no number in a row flushed")
        self.flushed = number_in(meta.get(b"flushed"), "flushed")

    def check_shard(self, meta):
        """One of several shards has an id that says which, and numbers that say so too."""
        self.shard, self.shards = 0, 1
        if not SHARD_KEYS & set(meta):
            return
        self.shard = number_in(meta.get(b"shard"), "shard")
        self.shards = number_in(meta.get(b"shards"), "shards")
        whole = bytes_in(meta.get(b"whole_id"), "the whole_id", 16)
        if self.shards not in [1 << n for n in range(1, 11)] or self.shard >= self.shards:
            raise Bad(f"it is said to be shard {self.shard} of {self.shards}")
        named = sha(b"pawl.shard.1" + whole + varint(self.shard) + varint(self.shards))[:16]
        if named != self.store_id:
            raise Bad(f"its store_id is not that of shard {self.shard} of {self.shards}")

    # -- values, sources, definitions

    def check_values(self):
        """Wrong ones are only remembered: the record that names one tells where."""
        for id_, commitment, salt, data in self.db.execute(
                "SELECT id, commitment, salt, bytes FROM pawl_value"):
            try:
                if (salt is None) != (data is None):
                    raise Bad("half of it is erased")
                if data is not None:
                    found = value_commitment(bytes_in(salt, "its salt", 16), bytes_in(data, "its text"))
                    commitment = found if commitment is None else commitment
                    if found != commitment:
                        raise Bad("it does not match its commitment")
                self.commitments[id_] = bytes_in(commitment, "its commitment", 32)
                if data is None:
                    self.gone.setdefault(commitment, 0)
            except Bad as bad:
                self.commitments[id_] = Bad(f"value {id_}: {bad.what}")

    def commitment(self, value, name):
        id_ = number_in(value, name)
        if id_ == 0:
            return None
        self.named.add(id_)
        found = self.commitments.get(id_)
        if found is None:
            raise Bad(f"{name} is value {id_}, which is missing")
        if isinstance(found, Bad):
            raise Bad(found.what)
        if found in self.gone:
            self.gone[found] = self.where
        return found

    def check_sources(self):
        self.sources = {}
        for id_, digest, data in self.db.execute("SELECT id, sha256, bytes FROM pawl_source"):
            if sha(bytes_in(data, f"source {id_}")) != digest:
                raise Bad(f"source {id_} does not match its hash")
            self.sources[id_] = digest

    def check_named_sources(self):
        named = {row[0] for row in self.db.execute("SELECT source FROM pawl_definition")}
        for id_ in self.sources:
            if id_ not in named:
                raise Bad(f"source {id_} belongs to no definition")

    def check_definitions(self):
        for row in self.db.execute(
                "SELECT id, name, version, kind, source, compiled, compiled_sha256, compiler, created_at"
                " FROM pawl_definition ORDER BY id"):
            try:
                found = Definition(row, self.sources)
            except Bad as bad:
                raise Bad(f"definition {row[0]}: {bad.what}") from bad
            self.definitions[found.id] = found
            if found.name:
                self.by_name[found.name, found.version] = found
        self.check_definition_rows()

    def check_definition_rows(self):
        def blank(value):
            return b"" if value is None else value

        def flag(value):
            return number_in(value, "a state's or transition's column")

        wanted_states, wanted_transitions = [], []
        for id_, d in self.definitions.items():
            wanted_states += [(id_, i, name.encode(), terminal)
                              for i, (name, terminal) in enumerate(d.states)]
            wanted_transitions += [
                (id_, i, start, action.encode(), end, guard.encode() if guard else b"", reason, by)
                for i, (start, action, end, guard, reason, by) in enumerate(d.transitions)]
        states = [(d, i, name, flag(terminal)) for d, i, name, terminal in self.db.execute(
            "SELECT definition, idx, name, terminal FROM pawl_state ORDER BY definition, idx")]
        transitions = [
            (d, i, start, action, end, blank(guard), flag(reason), flag(by))
            for d, i, start, action, end, guard, reason, by in self.db.execute(
                "SELECT definition, idx, from_state, action, to_state, guard, requires_reason,"
                " by_engine FROM pawl_transition ORDER BY definition, idx")]
        self.compare_rows("pawl_state", wanted_states, states)
        self.compare_rows("pawl_transition", wanted_transitions, transitions)

    @staticmethod
    def compare_rows(table, wanted, found):
        if wanted != found:
            missing = [row for row in wanted if row not in found] or found
            raise Bad(f"{table} does not repeat what definition {missing[0][0]} compiled to")

    # -- instances

    def check_instances(self):
        self.instances = {}
        for row in self.db.execute(
                "SELECT number, random, definition, instantiated_at, created_pos, creator, subject,"
                " input, metadata, parent, correlation, labels, test FROM pawl_instance"):
            if row[0] % self.shards != self.shard:
                raise Bad(f"the number of instance {row[0]} is another shard's")
            self.instances[row[0]] = row

    def id_of(self, number):
        row = self.instances.get(number)
        if row is None or not 0 < number <= NUMBER_MAX:
            raise Bad(f"the row of instance {number} is missing")
        return instance_id(number, bytes_in(row[1], "the random part of its id", 10))

    def create(self, record):
        """Begin the chain of an instance; give the body that its creation's hash covers."""
        number = record["inst"]
        if number in self.chains:
            raise Bad("the instance is created a second time")
        id_text = self.id_of(number)
        (_, _, definition, instantiated_at, created_pos, creator, subject, input_, metadata,
         parent, correlation, labels, test) = self.instances[number]
        if created_pos != record["pos"]:
            raise Bad("the instance's row says it was created at another position")
        if number_in(creator, "its creator") != record["actor"]:
            raise Bad("the instance's row names another creator")
        if instantiated_at != record["fired"]:
            raise Bad("the instance's row says another time of creation")
        if definition not in self.definitions:
            raise Bad(f"definition {definition} is missing")
        found = self.definitions[definition]
        if not found.name and not found.is_defined:
            self.begin_definition(found, record)
        self.references.add(number_in(subject, "its subject"))
        test = number_in(test, "test", high=1)
        self.chains[number] = Chain(number, id_text, found, test)
        return creation_body(
            found.source_sha, found.compiled_sha, found.name, found.version,
            self.commitment(subject, "its subject"), self.commitment(input_, "its input"),
            self.commitment(metadata, "its metadata"),
            optional_bytes(correlation, "its correlation"), optional_bytes(labels, "its labels"),
            self.id_of(parent).encode() if number_in(parent, "its parent") else None, test)

    # -- the log

    COLUMNS = ("pos inst seq prev skip what flags at fired step ord attempt actor payload reason"
               " body key hash root").split()

    def check_log(self):
        hashes, at = [], None
        for row in self.db.execute(f"SELECT {', '.join(self.COLUMNS)} FROM pawl_log ORDER BY pos"):
            record = dict(zip(self.COLUMNS, row))
            if record["pos"] != self.last_pos + 1:
                raise Bad("the record at this position is missing", self.last_pos + 1)
            try:
                at = self.check_record(record, at)
                hashes = self.check_root(record, hashes)
            except Bad as bad:
                raise Bad(bad.what, record["pos"], record["inst"], record["seq"]) from bad
            self.last_pos = record["pos"]
        if hashes:
            raise Bad("the last record has no root: the end of a commit is missing", self.last_pos)
        if self.flushed > self.last_pos:
            raise Bad("flushed is after the last record")

    def check_root(self, record, hashes):
        hashes.append(record["hash"])
        if record["root"] is None:
            return hashes
        self.root = next_root(self.root, hashes)
        if record["root"] != self.root:
            raise Bad("the root of this commit does not follow from the one before")
        return []

    def check_record(self, record, previous_at):
        for name in ("inst", "seq", "prev", "skip", "step", "ord", "attempt", "flags", "actor",
                     "payload", "reason"):
            record[name] = number_in(record[name], name)
        for name in ("what", "at"):
            record[name] = number_in(record[name], name, low=-(1 << 63))
        if record["fired"] is None:
            record["fired"] = record["at"]
        record["fired"] = number_in(record["fired"], "fired", low=-(1 << 63))
        self.where = record["pos"]
        self.references.add(record["actor"])
        previous_at = self.check_time(record, previous_at)
        if record["what"] == GONE:
            self.check_gone(record)
            return previous_at
        body = optional_bytes(record["body"], "body")
        if record["what"] == CREATE:
            if body:
                raise Bad("a creation has no body of its own")
            body = self.create(record)
        chain = self.chains.get(record["inst"])
        if chain is None:
            raise Bad("the instance has a record before it is created")
        self.check_place(chain, record)
        self.check_hash(chain, record, body)
        self.note_key(record)
        self.check_meaning(chain, record, body)
        self.advance(chain, record, body)
        if record["what"] == IMPORT:
            self.begin_import(record, body)
        return previous_at

    def check_time(self, record, previous_at):
        """Times never fall, but for records of another store; the time that counts from here on."""
        if self.imported:
            self.imported -= 1
            if (record["inst"] == 0 and record["what"] != GONE) or record["root"] is not None:
                raise Bad("an import brings a record of the store itself, or ends a commit")
            if record["at"] > previous_at:
                raise Bad("the time of this record is after that of its import")
            return previous_at
        shift = self.clock_of(record).get("shift", 0) if record["what"] == CLOCK else 0
        if previous_at is not None and record["at"] < previous_at + min(shift, 0):
            raise Bad("the time of this record is before that of the one before it")
        self.peak_at = max(self.peak_at, record["at"])
        return record["at"]

    @staticmethod
    def clock_of(record):
        """What a clock record says: {"test_now"}, or {"wall", "offset"} and maybe {"shift"}."""
        try:
            clock = json.loads(optional_bytes(record["body"], "body") or b"")
            for name, value in clock.items():
                number_in(value, name, low=-(1 << 63))
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise Bad(f"a clock record can't be read: {error}") from error
        if set(clock) not in ({"test_now"}, {"wall", "offset"}, {"wall", "offset", "shift"}) or record["inst"] != 0:
            raise Bad("a clock record has an invalid body, or is in an instance's chain")
        if clock.get("test_now") == 0 or clock.get("shift") == 0:
            raise Bad("a clock record with a test_now or a shift of 0")
        if "shift" in clock and (clock["offset"] != 0 or clock["wall"] != record["at"]):
            raise Bad("the clock is moved, but not to the wall clock")
        return clock

    def note_clock(self, record):
        clock = self.clock_of(record)
        if "shift" in clock:
            for chain in self.chains.values():
                chain.shift(clock["shift"])
            for what, (due, pos, wall, firing) in self.kept.items():
                if what[0] == ALARM and not wall and due < NEVER:
                    self.kept[what] = (due + clock["shift"], pos, wall, firing)
        if "test_now" in clock:
            self.kept[CLOCK, b"test"] = (clock["test_now"], record["pos"], 0, None)
        else:
            self.kept[CLOCK, b"wall"] = (clock["offset"], record["pos"], 0, None)

    def begin_import(self, record, body):
        if record["inst"] != 0:
            raise Bad("an import in an instance's chain")
        try:
            text = json.loads(body or b"")
            self.imported = number_in(text["records"], "records")
            if "offset" in text or "moved" in text:
                self.move_timers(text)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Bad(f"an import can't be read: {error}") from error
        self.import_pos = record["pos"] if self.imported else 0

    def move_timers(self, text):
        """Behind imported records: how far their timers are due from what their entries say."""
        if self.imported or not self.import_pos:
            raise Bad("an import moves timers, and brings none")
        brought = [c for c in self.chains.values() if c.number and c.pos > self.import_pos]
        by_id = {c.id: c for c in brought}
        for id_, name, ordinal, by in text.get("moved", []):
            chain = by_id.get(id_)
            if chain is None and id_ in self.departed:
                continue  # it was moved into an archive file since
            if chain is None or not chain.move((ordinal, name.encode()), self.distance(by)):
                raise Bad("an import moves a timer that it does not bring")
        for chain in brought if "offset" in text else []:
            for key in chain.timers:
                chain.move(key, self.distance(text["offset"]))

    @staticmethod
    def distance(by):
        if number_in(by, "how far a timer has moved", low=1 - MOVED_MAX, high=MOVED_MAX - 1) == 0:
            raise Bad("an import moves timers by 0")
        return by

    def check_place(self, chain, record):
        is_entry = record["what"] >= 0
        seq = chain.seq + is_entry
        skip = chain.skip_pos if is_entry and seq % SKIP_EVERY == 0 else 0
        for name, wanted in (("prev", chain.pos), ("seq", seq), ("skip", skip)):
            if record[name] != wanted:
                raise Bad(f"{name} is {record[name]}; it must be {wanted}")

    def check_hash(self, chain, record, body):
        digest = record_hash(
            chain.hash, chain.id, record["seq"], record["what"], record["at"], record["fired"],
            record["step"], record["ord"], record["attempt"], record["flags"],
            self.commitment(record["actor"], "actor"),
            self.commitment(record["payload"], "payload"),
            self.commitment(record["reason"], "reason"), body,
            optional_bytes(record["key"], "key"))
        if record["flags"] & ERASED_FLAG and digest != record["hash"]:
            self.note_redacted(chain, record, digest)
        elif record["flags"] & ERASED_FLAG or digest != record["hash"]:
            raise Bad("the record does not match its hash")

    def note_redacted(self, chain, record, digest):
        """It lost a part of its body: an erase record must name its hash and what it hashes to now."""
        self.gone[record["hash"], digest] = record["pos"]
        if record["what"] != CREATE:
            chain.is_opaque = True

    def note_key(self, record):
        self.last_at = record["at"]
        key = optional_bytes(record["key"], "key")
        if not key:
            return
        if len(key) != 48:
            raise Bad(f"its key has {len(key)} bytes; it must have 48")
        self.keys[key[:16]] = (record["at"], record["pos"])

    def check_keys(self):
        """Each row names a record with its key, and every key used in the last 7 days, or since a
        firing alarm began to fire, has a row."""
        rows = {} if self.schema < KEYS else {
            id_: (at, pos) for id_, at, pos in self.db.execute("SELECT id, at, pos FROM pawl_key")}
        for id_, (at, pos) in rows.items():
            found = self.db.execute("SELECT substr(key, 1, 16), at FROM pawl_log WHERE pos = ?",
                                    (pos,)).fetchone()
            if found != (id_, at):
                raise Bad("a key row names a record that has no such key, or another time", pos)
        since = min([max(self.last_at, self.peak_at) - KEY_KEPT_MS] + [at for *_, at in self.kept.values() if at is not None])
        for id_, (at, pos) in self.keys.items():
            if at >= since and rows.get(id_) != (at, pos):
                raise Bad("the row of this record's key is missing or names another", pos)

    def check_meaning(self, chain, record, body):
        what = record["what"]
        if what < 0 and what not in CONTROLS:
            raise Bad(f"there is no control record {what}")
        if what == DEFINE:
            self.check_define(record, body)
        if what == CLOCK:
            self.note_clock(record)
        if what in (ALARM, TOKEN, HOLD):
            self.note_kept(record, body)
        if what == ERASE:
            self.note_erase(record, body)
        if what == ARCHIVE:
            self.note_archive(record)
        if what in (PAUSE, RESUME):
            self.check_pause(chain, record)
        if what == RIGHTS:
            self.check_rights(chain, record, body)
        if what < 0:
            return
        if chain.number == 0:
            raise Bad("the store itself has no transitions")
        if chain.definition.is_terminal(chain.state):
            raise Bad("an entry after the instance has ended")
        if what >= len(chain.definition.transitions):
            raise Bad(f"transition {what} is not declared")
        start, _, _, guard, requires_reason, _ = chain.definition.transitions[what]
        if start != chain.state:
            raise Bad(f"transition {what} leaves state {start}, but the instance was in state"
                      f" {chain.state}")
        if (guard is not None) != bool(record["flags"] & 1):
            raise Bad("the guard flag is not as declared")
        if requires_reason and record["reason"] == 0:
            raise Bad("the transition requires a reason, and the entry has none")
        self.check_deadlines(chain, record, body)
        if what == AMEND and chain.definition.kind == "flow":
            self.check_results(chain, record, body)
        if what == AMEND and (chain.definition.kind == "flow" or self.check_steps(chain, body)):
            self.kept[what, chain.id.encode()] = (0, record["pos"], 0, None)
        if chain.definition.kind != "machine" and what == START:
            for effect in json.loads(body) if body else []:
                if isinstance(effect, list) and effect[0] == "redrive":
                    self.kept[START, effect[1].encode()] = (0, record["pos"], 0, None)

    def check_results(self, chain, record, body):
        """A flow that goes on by another plan takes results over from entries that have them."""
        text = self.one("SELECT bytes FROM pawl_value WHERE id = ?", record["payload"])
        try:
            for step, seq in (json.loads(text) if text else {}).get("entries", {}).items():
                if isinstance(seq, bool) or not isinstance(seq, int) or not 0 < seq < record["seq"]:
                    raise Bad(f"an amend takes the result of '{step}' from an entry that is not before it")
                if not self.has_result(chain, record["prev"], seq, step):
                    raise Bad(f"an amend takes the result of '{step}' from entry {seq}, which has none")
            for effect in json.loads(body) if body else []:
                if isinstance(effect, list) and effect[:1] == ["plan"]:
                    names = [step["name"] for step in effect[1]["steps"]]
                    chain.step_names += [name for name in names if name not in chain.step_names]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Bad(f"an amend's payload or plan can't be read: {error}") from error

    def has_result(self, chain, pos, wanted, step):
        """Has entry `wanted`, before the record at `pos`, ended this step with a result?"""
        while pos:
            found = self.db.execute("SELECT seq, what, prev, skip, step, ord, body FROM pawl_log WHERE pos = ?",
                                    (pos,)).fetchone()
            seq, what, prev, skip, index, row, body = found
            if seq < wanted or (what >= 0 and seq == wanted):
                break
            pos = skip if skip and seq >= wanted + SKIP_EVERY else prev
        if not pos or seq != wanted or chain.definition.transitions[what][1] in FAILURES:
            return False
        names = chain.step_names[index - 1:index] if index else []
        return names == [step] and ["end", row] in [long_form(e) for e in (json.loads(body) if body else [])]

    @staticmethod
    def check_steps(chain, body):
        """Code that goes on by another registration keeps its steps in their places. False: it has none."""
        plans = [e for e in (json.loads(body) if body else []) if isinstance(e, list) and e[:1] == ["plan"]]
        if chain.definition.kind != "code" or not plans:
            return False
        try:
            _, registration, steps = plans[0]
            if registration["code"].encode() != chain.definition.name:
                raise Bad("an amend goes on by the registration of another code type")
            before = chain.code_steps if chain.code_steps is not None else chain.definition.steps
            words = [word for word, _ in STEP_LISTS]
            if steps[:len(before)] != before or not all(word in words for word, name in steps):
                raise Bad("an amend's steps do not keep those before it in their places")
        except (ValueError, TypeError, KeyError) as error:
            raise Bad(f"an amend's plan can't be read: {error}") from error
        chain.code_steps = steps
        return True

    @staticmethod
    def check_deadlines(chain, record, body):
        if chain.definition.kind != "machine":
            return
        start, _, end, *_ = chain.definition.transitions[record["what"]]
        effects = chain.definition.deadline_effects(start, end, record["at"])
        try:
            found = effects_of(body)
        except (ValueError, RecursionError) as error:
            raise Bad(f"its effects can't be read: {error}") from error
        if found != effects or bool(body) != (bool(effects) or (body or b"").startswith(TRACE_HEAD)):
            raise Bad("its effects are not those of its definition's deadlines")

    def note_kept(self, record, body):
        if record["inst"] != 0:
            raise Bad("a token or alarm in an instance's chain")
        try:
            text = json.loads(body or b"")
            what = record["what"], text["id"].encode()
            if "firing" in text:
                self.note_firing(what, record)
            elif "over" in text:
                _, _, _, firing = self.kept.pop(what, (0, 0, 0, 0))
                if firing == 0:
                    raise Bad("a token or alarm ends that is not in force")
                if firing is not None and text["over"] == "cancelled":
                    raise Bad("an alarm that was firing ends as cancelled")
            elif what in self.kept:
                raise Bad("a token or alarm begins twice")
            else:
                self.kept[what] = (number_in(text["due"], "due", low=-(1 << 63)), record["pos"],
                                   int(text.get("wall") is True), None)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Bad(f"a token or alarm can't be read: {error}") from error

    def note_firing(self, what, record):
        """An alarm over many instances has at most one `firing` record, while it is in force."""
        due, pos, wall, firing = self.kept.get(what, (0, 0, 0, 0))
        if what[0] != ALARM or firing is not None:
            raise Bad("an alarm is firing that is not in force, or fires a second time")
        self.kept[what] = (due, pos, wall, record["at"])

    def note_erase(self, record, body):
        try:
            text = json.loads(body or b"")
            lists = [text[name] for name in ("values", "bodies", "instances") if name in text]
            if not lists or not all(lists) or not all(isinstance(names, list) for names in lists):
                raise ValueError("it names nothing, or has a list that names nothing")
            for value in text.get("values", []):
                self.erased[self.hash_of(value)] = record["pos"]
            for found in text.get("bodies", []):
                if not isinstance(found, list) or len(found) != 2:
                    raise ValueError(f"{found!r} is no body")
                self.erased[self.hash_of(found[0]), self.hash_of(found[1])] = record["pos"]
            for id_ in text.get("instances", []):
                self.note_erased_instance(record, id_)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Bad(f"an erase record can't be read: {error}") from error

    @staticmethod
    def hash_of(text):
        if not re.fullmatch("[0-9a-f]{64}", text):
            raise ValueError(f"{text!r} is no commitment")
        return bytes.fromhex(text)

    def note_erased_instance(self, record, id_):
        if not re.fullmatch(f"[{ALPHABET}]{{26}}", id_):
            raise ValueError(f"{id_!r} is no id")
        number = 0
        for letter in id_[:10]:
            number = number * 32 + ALPHABET.index(letter)
        chain = self.chains.get(number) if number else None
        if chain is None and id_ in self.departed:
            return
        if chain is None or chain.id != id_ or not chain.definition.is_terminal(chain.state):
            raise Bad("an erase record names an instance that is not here or has not ended")
        self.kept[ERASE, id_.encode()] = (0, record["pos"], 0, None)

    # -- instances that were moved into an archive file

    def archive_at(self, pos):
        """What the archive record at `pos` names: {id: (records, last hash)}, and the places so far."""
        if pos not in self.archived:
            found = self.db.execute("SELECT inst, what, body FROM pawl_log WHERE pos = ?", (pos,)).fetchone()
            if pos < self.where or found is None or found[0] != 0 or found[1] != ARCHIVE:
                raise Bad("a record has gone, and no archive record is named that says so")
            try:
                text = json.loads(found[2])
                named = {id_: (number_in(count, "records", low=1), self.hash_of(last)) for id_, count, last in text["instances"]}
                if not named or not all(re.fullmatch(f"[{ALPHABET}]{{26}}", id_) for id_ in named):
                    raise ValueError("it names nothing, or what is no id")
                redriven = [id_.encode() for id_ in text.get("redriven", [])]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise Bad(f"an archive record can't be read: {error}") from error
            self.archived[pos] = [named, 0, set(), redriven]
            self.departed |= named.keys()
        return self.archived[pos]

    def check_gone(self, record):
        if any(record[name] for name in ("inst", "prev", "skip", "step", "ord", "attempt", "flags", "actor", "payload", "reason")) or (
                record["body"] is not None or record["key"] is not None or record["fired"] != record["at"]):
            raise Bad("a record has gone, and something of it is left")
        archived = self.archive_at(record["seq"])
        archived[1] += 1
        archived[2].add(record["hash"])
        self.records += 1

    def note_archive(self, record):
        if record["inst"] != 0:
            raise Bad("an archive record in an instance's chain")
        named, count, hashes, redriven = self.archive_at(record["pos"])
        if count != sum(records for records, _ in named.values()) or not {last for _, last in named.values()} <= hashes:
            raise Bad("an archive record names other records than those that have gone")
        here = {chain.id for chain in self.chains.values()}
        for id_ in named:
            if id_ in here:
                raise Bad("an archive record names an instance that is here")
            self.kept.pop((ERASE, id_.encode()), None)
            self.kept[ARCHIVE, id_.encode()] = (0, record["pos"], 0, None)
        for id_ in redriven:
            self.kept.pop((START, id_), None)

    def check_erased(self):
        """An erase record names each value without bytes, and each body that lost a part, behind every record
        that uses it."""
        for commitment, used in self.gone.items():
            if self.erased.get(commitment, 0) <= used:
                raise Bad("a value or body of this record is erased, and no erase record behind it names it"
                          if used else "a value has no bytes, and no erase record names it", used)
        for chain in self.chains.values():
            if chain.is_opaque and not chain.definition.is_terminal(chain.state):
                raise Bad(f"a body of {chain.id} was erased, but the instance has not ended")

    def check_interned(self):
        """Of the values with the same bytes that are actors or subjects the first is interned, and no other."""
        first = set()
        for id_, data, interned in self.db.execute("SELECT id, bytes, interned FROM pawl_value ORDER BY id"):
            if self.departed and id_ not in self.named and interned in (None, 0, 1):
                if interned:
                    first.add(data)  # a name stays when the instances that had it are moved
                continue
            wanted = id_ in self.references and data is not None and data not in first
            if wanted:
                first.add(data)
            if interned not in ((None, 0) if not wanted else (1,)):
                raise Bad(f"value {id_} is {'not ' if wanted else ''}found by its bytes (interned)")

    def check_named(self):
        """A record names each value, by itself or by the row of its instance."""
        for id_ in () if self.departed else self.commitments.keys() - self.named:
            raise Bad(f"no record names value {id_}")

    def check_kept(self):
        firing = "firing" if self.schema >= FIRING else "NULL"
        wall = "wall" if self.schema >= CLOCKS else "NULL"
        rows = {} if self.schema < KEPT else {
            (what, id_): (due, pos, wall or 0, since) for what, id_, due, pos, wall, since in self.db.execute(
                f"SELECT what, id, due, pos, {wall}, {firing} FROM pawl_kept")}
        if rows != self.kept:
            raise Bad("the rows of tokens, alarms, amends, definitions and the clock are not what the log says")

    def check_test_clock(self):
        """An older program left it; the first record of one that writes clock records holds it."""
        if self.test_now is not None and (
                self.test_now == 0 or (CLOCK, b"test") in self.kept or
                any(found.compiler > 1 for found in self.definitions.values())):
            raise Bad("pawl_meta has a test clock, and a clock record must hold it")

    def check_pause(self, chain, record):
        if chain.number == 0:
            raise Bad("the store itself is paused or resumed")
        if chain.definition.is_terminal(chain.state):
            raise Bad("a pause or resumption after the instance has ended")
        if (record["what"] == PAUSE) == (chain.paused is not None):
            raise Bad("it is paused a second time" if chain.paused
                      else "it is resumed, but was not paused")
        chain.paused = record["pos"] if record["what"] == PAUSE else None

    def check_rights(self, chain, record, body):
        """At the position right behind the create record: a list of names, and whom its end is told; nothing else."""
        if chain.number == 0:
            raise Bad("rights in the store's own chain")
        before = self.db.execute("SELECT what, inst FROM pawl_log WHERE pos = ?", (record["pos"] - 1,)).fetchone()
        if before != (CREATE, chain.number):
            raise Bad("rights that do not stand right behind the creation")
        try:
            fixed = json.loads(body)
            if not set(fixed) <= {"rights", "on_end"} or not fixed:
                raise Bad("a rights record holds more than rights")
            if "rights" in fixed:
                check_names(fixed["rights"])
            if "on_end" in fixed:
                check_on_end(fixed["on_end"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Bad(f"rights that can't be read: {error}") from error
        in_order = {key: fixed[key] for key in ("rights", "on_end") if key in fixed}
        if body != json.dumps(in_order, separators=(",", ":"), ensure_ascii=False).encode() or any(
                record[name] for name in ("actor", "payload", "reason")):
            raise Bad("a rights record holds more than rights")

    def check_define(self, record, body):
        if record["inst"] != 0:
            raise Bad("a definition is put in an instance's chain")
        try:
            text = json.loads(body)
            found = self.by_name.get((text["name"].encode(), text["version"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Bad(f"the define record can't be read: {error}") from error
        if found is None:
            raise Bad("the definition that this record puts is missing")
        rights = text.get("rights")
        if "rights" in text:
            check_names(rights)
            self.kept[DEFINE, b"%s@%d" % (found.name, found.version)] = (0, record["pos"], 0, None)
        if body != define_body(found.name.decode(), found.version, found.kind, found.source_sha,
                               found.compiled_sha, rights):
            raise Bad(f"definition {found.id} is not the one that was put here")
        if found.is_defined:
            raise Bad(f"definition {found.id} was put before")
        self.begin_definition(found, record)

    def begin_definition(self, found, record):
        found.is_defined = True
        if not found.name and self.departed and (found.created_at or 0) < record["at"]:
            return  # its first instance was moved
        if self.schema >= CREATED and found.created_at != record["at"]:
            raise Bad(f"the time of definition {found.id}'s row is not that of the record that defines it")

    def advance(self, chain, record, body):
        chain.pos, chain.seq, chain.hash = record["pos"], record["seq"], record["hash"]
        self.records += 1
        if record["what"] == KEEP_SIGNAL:
            self.keep_signal(chain, record, body)
        if record["what"] == CREATE:
            for effect in chain.definition.deadline_effects(None, chain.state, record["at"]):
                chain.apply(effect, record["at"])
        if record["what"] >= 0:
            self.entries += 1
            if record["seq"] % SKIP_EVERY == 0:
                chain.skip_pos = record["pos"]
            if not chain.is_opaque:
                self.apply_effects(chain, body, record["at"])
            chain.state = chain.definition.transitions[record["what"]][2]
            if chain.definition.is_terminal(chain.state):
                chain.end()
        chain.remember(self.flushed)

    @staticmethod
    def keep_signal(chain, record, body):
        if record["inst"] == 0 or chain.definition.is_terminal(chain.state):
            raise Bad("a signal is kept where nothing can take it")
        try:
            chain.kept.append(json.loads(body)["name"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Bad(f"a kept signal without a name: {error!r}") from error

    @staticmethod
    def apply_effects(chain, body, at):
        try:
            values = iter(awaited_values(body))
            for effect in effects_of(body):
                is_wait = isinstance(effect, list) and effect[:1] == ["await"]
                chain.apply(effect, at, next(values) if is_wait else None)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, StopIteration,
                RecursionError) as error:
            raise Bad(f"its effects can't be applied: {error!r}") from error

    # -- rows that follow from the log

    def check_defined(self):
        for found in self.definitions.values():
            if found.name and not found.is_defined:
                raise Bad(f"definition {found.id} has a name, but no record puts it")

    def check_created(self):
        for number in self.instances:
            if number not in self.chains:
                raise Bad(f"instance {number} has a row, but no record creates it", number=number)
        for value in self.commitments.values():
            if isinstance(value, Bad):
                raise value

    def check_heads(self):
        heads = {inst: row for inst, *row in self.db.execute(
            "SELECT inst, seq, state, pos FROM pawl_head")}
        for number, chain in self.chains.items():
            row = heads.pop(number, None)
            if row is None:
                if chain.flushed[0]:
                    raise Bad("its head row is missing", number=number, seq=chain.seq)
                continue
            seq, state, pos = (number_in(n, "a head row's column") for n in row)
            known = chain.flushed if pos == chain.flushed[0] else chain.later.get(pos)
            if (pos, seq, state) != known or (pos == 0 and chain.pos > 0):
                raise Bad("its head row is not what the log says", number=number, seq=chain.seq)
        for number in heads:
            raise Bad(f"a head row belongs to no instance ({number})")

    def check_snapshots(self):
        for inst, seq, text in self.db.execute("SELECT inst, seq, text FROM pawl_snapshot"):
            chain = self.chains.get(inst)
            data = text.encode() if isinstance(text, str) else bytes(text or b"")
            if chain is None or chain.snapshot != (seq, hashlib.sha256(data).hexdigest()):
                raise Bad(f"its snapshot of entry {seq} is not the one an entry tells of",
                          number=inst, seq=chain.seq if chain else 0)

    def check_integrity(self):
        for words, in self.db.execute("PRAGMA integrity_check(1)"):
            text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
            if text != "ok":
                raise Bad(f"SQLite finds damage: {text}")

    def check_types(self):
        """Each column holds what its table declares: INTEGER, TEXT, BLOB, or nothing."""
        for table, in self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"
                                      " AND name LIKE 'pawl\\_%' ESCAPE '\\'").fetchall():
            table = table.decode()
            for _, name, declared, *_ in self.db.execute(f"PRAGMA table_info({table})").fetchall():
                name, declared = name.decode(), declared.decode().lower()
                wrong = (f"typeof({name}) NOT IN ('null', '{declared}')" if declared else
                         f"typeof({name}) <> CASE WHEN key IN ('store_id', 'whole_id')"
                         " THEN 'blob' ELSE 'integer' END")
                if self.one(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1"):
                    raise Bad(f"a row of {table} holds in {name} what the column does not declare")

    def check_labels(self):
        if self.schema < QUERIES:
            return
        rows = {}
        for key, value, inst in self.db.execute("SELECT key, value, inst FROM pawl_label"):
            rows.setdefault(inst, set()).add((key, value))
        for number, row in self.instances.items():
            try:
                labels = json.loads(row[11]) if row[11] else {}
                wanted = {(k.encode(), v.encode()) for k, v in labels.items() if isinstance(v, str)}
            except (ValueError, AttributeError, RecursionError):
                wanted = set()
            if rows.pop(number, set()) != wanted:
                raise Bad("its label rows are not what its labels say", number=number)
        for number in rows:
            raise Bad(f"a label row belongs to no instance ({number})")

    def known_lease(self, inst, ordinal, row):
        """Before compiler 2 no entry covered a lease: a running step's row may then hold its token."""
        chain = self.chains.get(inst)
        wanted = chain and chain.steps.get(ordinal)
        if (wanted and chain.definition.compiler < LEASE_COMPILER and wanted[3] is None and row[2] == RUNNING
                and row[3] is not None and len(row[3]) == 32 and row[4] > 0):
            return (*row[:3], None, 0, row[5])
        return row

    def known_since(self, inst, ordinal, ready):
        """Since when a step is ready; before migration 23 its row did not say so."""
        if self.schema >= SINCE:
            return number_in(ready, "since when it is ready")
        chain = self.chains.get(inst)
        return chain.steps[ordinal][5] if chain and ordinal in chain.steps else 0

    def check_live(self):
        def small(value):
            return number_in(value, "a live row's column", high=0xFFFFFFFF)

        steps, timers, waits, children = {}, {}, {}, {}
        lease_columns = "lease, lease_ms" if self.schema >= LEASES else "NULL, NULL"
        ready_column = "ready_at" if self.schema >= SINCE else "NULL"
        for inst, ordinal, plan, attempt, status, lease, length, ready in self.db.execute(
                f"SELECT inst, ord, plan, attempt, status, {lease_columns}, {ready_column} FROM pawl_step"):
            row = (small(plan), small(attempt), small(status), optional_bytes(lease, "a lease"),
                   number_in(length, "a lease's length"), self.known_since(inst, small(ordinal), ready))
            steps.setdefault(inst, {})[small(ordinal)] = self.known_lease(inst, small(ordinal), row)
        columns = "wall, shift" if self.schema >= CLOCKS else "NULL, NULL"
        for inst, ordinal, name, due, test, wall, moved in self.db.execute(
                f"SELECT inst, ord, name, due, test, {columns} FROM pawl_timer"):
            moved = number_in(moved or 0, "shift", low=-(1 << 63))
            timers.setdefault(inst, {})[small(ordinal), name] = (due - moved, small(test), small(wall or 0), moved)
        column = "value" if self.schema >= FAMILY else "NULL"
        for inst, ordinal, name, value in self.db.execute(
                f"SELECT inst, ord, name, {column} FROM pawl_wait"):
            if ordinal == 0 and name.startswith(b"~"):
                raise Bad("a wait row that should be an interest row", number=inst)
            waits.setdefault(inst, {})[small(ordinal), name] = optional_bytes(value, "a wait's value")
        for inst, name in [] if self.schema < INTEREST else self.db.execute("SELECT inst, name FROM pawl_interest"):
            if not name.startswith(b"~"):
                raise Bad("an interest row does not begin with ~", number=inst)
            waits.setdefault(inst, {})[0, name] = None
        for inst, ordinal, child, abandon, ended in [] if self.schema < FAMILY else self.db.execute(
                "SELECT inst, ord, child, abandon, ended FROM pawl_child"):
            found = self.chains.get(child)
            ended = number_in(ended, "ended", high=1)
            if found is None or bool(ended) != found.definition.is_terminal(found.state):
                raise Bad(f"the row of child {child} is not what its entries left", number=inst)
            children.setdefault(inst, {})[small(ordinal)] = (self.id_of(child), small(abandon))
        pauses = {} if self.schema < PAUSES else dict(
            self.db.execute("SELECT inst, pos FROM pawl_pause"))
        for number, chain in self.chains.items():
            if pauses.pop(number, None) != chain.paused:
                raise Bad("its pause row is not what the log says", number=number, seq=chain.seq)
            for word, found, wanted in (("step", steps.pop(number, {}), chain.steps),
                                        ("timer", timers.pop(number, {}), chain.timers),
                                        ("wait", waits.pop(number, {}), chain.waits),
                                        ("child", children.pop(number, {}), chain.children)):
                if found != wanted:
                    raise Bad(f"its {word} rows are not what its entries left", number=number,
                              seq=chain.seq)
        for left in (steps, timers, waits, children, pauses):
            for number in left:
                raise Bad(f"a live row belongs to no instance ({number})")


# ---- FILE-head: the root that is remembered beside the file -------------------------------------


def check_head(store, path):
    """A line of 512 bytes. If it is missing, unreadable or of another store, nothing is compared."""
    try:
        with open(path + "-head", "rb") as file:
            text = file.read(512)
    except OSError:
        return
    signed, found, rest = text.partition(b'"check":')
    if not found or len(text) != 512 or hashlib.sha256(signed).hexdigest()[:16] != rest[1:17].decode("latin-1"):
        return
    head = json.loads(text)
    if head["format"] != 1 or head["store"] != store.store_id.hex():
        return
    if head["position"] > store.last_pos:
        raise Bad(f"the log ends at position {store.last_pos}, and FILE-head remembers position {head['position']}", head["position"])
    row = store.db.execute("SELECT root FROM pawl_log WHERE pos = ?", (head["position"],)).fetchone()
    if not row or row[0] is None or row[0].hex() != head["root"]:
        raise Bad(f"the root at position {head['position']} is not the one that FILE-head remembers", head["position"])


# ---- Asking and answering ---------------------------------------------------------------------


def report(path):
    """The result as a dict, the same members as `pawl verify --json` gives; `valid` None: Unknown."""
    store = None
    try:
        store = Store(path)
        store.verify()
        if not store.is_hosted:
            check_head(store, path)
        bad = None
    except Unknown as unknown:
        return {"valid": None, "what": str(unknown)}
    except Bad as found:
        bad = found
    except Exception as error:  # damage shows in more ways than sqlite3.Error
        at = store.last_pos + 1 if store else 0
        bad = Bad(f"the store can't be read: {error}", at)
    finally:
        if store:
            store.db.close()
    out = {"valid": bad is None, "records": store.records if store else 0,
           "entries": store.entries if store else 0,
           "instances": len(store.chains) - 1 if store else 0}
    if store and store.foreign:
        out["foreign"] = [dict(zip(("type", "name", "table"), object_)) for object_ in store.foreign]
    if not bad:
        out["root"] = store.root.hex()
    else:
        out.update(first_bad=bad.seq, what=bad.what, instance_id=name_of(store, bad.number),
                   position=bad.pos)
    return out


def name_of(store, number):
    try:
        return store.id_of(number) if number else ""
    except (Bad, AttributeError):
        return ""


def foreign_line(result):
    names = [f"{object_['type']} {object_['name']}" for object_ in result.get("foreign", [])]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"\n  not pawl's, and not checked: {', '.join(names[:5])}{more}" if names else ""


def line(result):
    if result["valid"]:
        return (f"valid: {result['records']} records, {result['entries']} entries,"
                f" {result['instances']} instances")
    who = (f" (instance {result['instance_id']}, entry {result['first_bad']})"
           if result["instance_id"] else "")
    return f"INVALID at position {result['position']}{who}: {result['what']}"


def main(arguments):
    as_json = "--json" in arguments
    paths = [a for a in arguments if a != "--json"]
    if len(paths) != 1 or paths[0].startswith("-"):
        print("usage: verify.py [--json] FILE", file=sys.stderr)
        return 2
    try:
        with open(paths[0], "rb"):
            pass
    except OSError as error:
        print(f"verify.py: {error}", file=sys.stderr)
        return 2
    result = report(paths[0])
    if result["valid"] is None:
        print(f"verify.py: {result['what']}", file=sys.stderr)
        return 3
    print(json.dumps(result) if as_json else line(result) + foreign_line(result))
    return 0 if result["valid"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
