#!/usr/bin/env python3
"""Write a store by hand, from docs/format.md, with one of everything in it.

    make_store.py FILE

It shares the hash functions of tools/verify.py, so it is `pawl verify` that checks them, and
no engine: if pawl reads such a file as valid, page, program and second reader agree. The
tables come from the schema of the SQLite store, so that pawl itself can open the file.
"""

import importlib.util
import hashlib
import json
import pathlib
import sqlite3
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
_spec = importlib.util.spec_from_file_location("verify", ROOT / "tools" / "verify.py")
verify = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(verify)

CREATE, DEFINE, PAUSE, RESUME, ALARM, KEEP_SIGNAL, TOKEN, ERASE, KEYED = range(-1, -10, -1)
T0 = 1_780_000_000_000

MACHINE = {
    "compiler": 1, "kind": "machine",
    "states": [{"name": "open"}, {"name": "paid"}, {"name": "done", "terminal": "success"},
               {"name": "void", "terminal": "cancel"}],
    "initial": 0,
    "transitions": [
        {"from": 0, "action": "pay", "to": 1, "guard": "funds"},
        {"from": 1, "action": "refund", "to": 0, "requires_reason": True},
        {"from": 1, "action": "ship", "to": 2},
        {"from": 0, "action": "void", "to": 3},
        {"from": 0, "action": "note", "to": 0}]}
INLINE = {
    "compiler": 1, "kind": "machine",
    "states": [{"name": "a"}, {"name": "z", "terminal": "plain"}], "initial": 0,
    "transitions": [{"from": 0, "action": "go \u00fc", "to": 1}]}

(START, STEP_START, STEP_COMPLETE, STEP_FAIL, STEP_RETRY, STEP_TIMEOUT, GATE_APPROVE, GATE_REJECT,
 TIMER, SIGNAL, CHILD, AMEND, FINISH, FAIL, CANCEL, CANCEL_CREATED) = range(16)


def lifecycle(kind, plan):
    running = ["step.start", "step.complete", "step.fail", "step.retry", "step.timeout",
               "gate.approve", "gate.reject", "timer", "signal", "child", "amend"]
    transitions = [{"from": 0, "action": "start", "to": 1, "by": "engine"}]
    transitions += [{"from": 1, "action": a, "to": 1, "by": "engine"} for a in running]
    transitions += [{"from": 1, "action": "finish", "to": 2, "by": "engine"},
                    {"from": 1, "action": "fail", "to": 3, "by": "engine"},
                    {"from": 1, "action": "cancel", "to": 4},
                    {"from": 0, "action": "cancel", "to": 4}]
    return {"compiler": 1, "kind": kind,
            "states": [{"name": "created"}, {"name": "running"},
                       {"name": "completed", "terminal": "success"},
                       {"name": "failed", "terminal": "failure"},
                       {"name": "cancelled", "terminal": "cancel"}],
            "initial": 0, "transitions": transitions, "plan": plan}


def erase(db, id_):
    """A value goes, and its commitment stays."""
    salt, data = db.execute("SELECT salt, bytes FROM pawl_value WHERE id = ?", (id_,)).fetchone()
    db.execute("UPDATE pawl_value SET commitment = ?, salt = NULL, bytes = NULL WHERE id = ?",
               (verify.value_commitment(salt, data), id_))


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def noise(label, size):
    """Bytes that look random and are the same each time."""
    return (verify.sha(label.encode()) + verify.sha(b"more " + label.encode()))[:size]


class Writer:
    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        for part in sorted((ROOT / "src/store/sqlite/schema").glob("*.sql")):
            self.db.executescript(part.read_text())
        self.store_id = noise("store", 16)
        self.root = verify.first_root(self.store_id)
        self.pos, self.at, self.hashes = 0, T0, []
        self.value_count = self.source_count = self.definition_count = self.instance_count = 0
        self.interned, self.commitments, self.definitions = {}, {}, {}
        self.inline = set()  # inline definitions that have an instance
        self.chains = {0: dict(id="0" * 26, seq=0, pos=0, state=0, hash=bytes(32), skip=0)}
        self.db.execute("BEGIN")

    # -- values and definitions

    def value(self, text, interned=False):
        if text is None:
            return None
        if interned and text in self.interned:
            return self.interned[text]
        self.value_count += 1
        id_, data = self.value_count, text.encode()
        salt = noise(f"salt {id_}", 16)
        self.commitments[id_] = verify.value_commitment(salt, data)
        kept = self.commitments[id_] if id_ % 2 else None  # as stores of schema 9 and before have it, and after
        self.db.execute("INSERT INTO pawl_value VALUES (?, ?, ?, ?, ?)", (id_, kept, salt, data, int(interned)))
        if interned:
            self.interned[text] = id_
        return id_

    def erase(self, id_):
        erase(self.db, id_)

    def definition(self, name, version, compiled, source):
        kinds = {"machine": 1, "flow": 2, "code": 3}
        self.source_count += 1
        self.definition_count += 1
        id_, text = self.definition_count, compact(compiled)
        source_sha, compiled_sha = verify.sha(source), verify.sha(text.encode())
        self.db.execute("INSERT INTO pawl_source VALUES (?, ?, ?)",
                        (self.source_count, source_sha, source))
        self.db.execute("INSERT INTO pawl_definition VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        (id_, name, version, kinds[compiled["kind"]], self.source_count, text,
                         compiled_sha, 1, self.at))
        for i, s in enumerate(compiled["states"]):
            self.db.execute("INSERT INTO pawl_state VALUES (?, ?, ?, ?)",
                            (id_, i, s["name"], verify.TERMINALS[s.get("terminal")]))
        for i, t in enumerate(compiled["transitions"]):
            self.db.execute(
                "INSERT INTO pawl_transition VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (id_, i, t["from"], t["action"], t["to"], t.get("guard"),
                 int(t.get("requires_reason", False)), int(t.get("by") == "engine")))
        self.definitions[id_] = (name, version, compiled, source_sha, compiled_sha)
        if name:
            self.record(0, DEFINE, body=verify.define_body(name, version, compiled["kind"],
                                                           source_sha, compiled_sha))
            self.commit()
            self.created(id_)
        return id_

    def created(self, id_):
        """Sets created_at of a definition to the time of the last record."""
        self.db.execute("UPDATE pawl_definition SET created_at = ? WHERE id = ?", (self.at, id_))

    # -- records

    def record(self, inst, what, body=None, hashed_body=None, actor=None, payload=None, reason=None,
               fired=None, step=None, ordinal=None, attempt=None, key=None, tick=7):
        chain = self.chains[inst]
        self.pos += 1
        self.at += tick
        actor = self.value(actor, interned=True)
        payload, reason = self.value(payload), self.value(reason)
        flags, skip, seq = 0, None, chain["seq"] + (what >= 0)
        if what >= 0:
            transition = chain["compiled"]["transitions"][what]
            flags = 1 if transition.get("guard") else 0
            chain["state"] = transition["to"]
            if seq % 64 == 0:
                skip, chain["skip"] = chain["skip"], self.pos
        if isinstance(body, (list, dict)):
            body = compact(body).encode()
        pick = self.commitments.get
        digest = verify.record_hash(
            chain["hash"], chain["id"], seq, what, self.at, self.at if fired is None else fired,
            step or 0, ordinal or 0, attempt or 0, flags, pick(actor), pick(payload), pick(reason),
            body if hashed_body is None else hashed_body, key)
        self.hashes.append(digest)
        self.db.execute(
            f"INSERT INTO pawl_log VALUES ({', '.join('?' * 19)})",
            (self.pos, inst, seq, chain["pos"] or None, skip, what, flags or None, self.at, fired,
             step, ordinal, attempt, actor, payload, reason, body, key, digest, None))
        chain.update(pos=self.pos, seq=seq, hash=digest)
        if key:
            self.live("pawl_key", key[:16], self.at, self.pos)
        return actor, payload, reason

    def commit(self):
        if not self.hashes:
            return
        self.root = verify.next_root(self.root, self.hashes)
        self.hashes = []
        self.db.execute("UPDATE pawl_log SET root = ? WHERE pos = ?", (self.root, self.pos))

    def create(self, definition, actor=None, subject=None, input_=None, metadata=None, parent=None,
               correlation=None, labels=None, test=0, fired=None):
        name, version, compiled, source_sha, compiled_sha = self.definitions[definition]
        self.instance_count += 1
        number = self.instance_count
        random = noise(f"random {number}", 10)
        subject = self.value(subject, interned=True)
        input_, metadata = self.value(input_), self.value(metadata)
        self.chains[number] = dict(id=verify.instance_id(number, random), seq=0, pos=0, skip=0,
                                   state=compiled["initial"], hash=bytes(32), compiled=compiled)
        pick = self.commitments.get
        covered = verify.creation_body(
            source_sha, compiled_sha, (name or "").encode(), version, pick(subject), pick(input_),
            pick(metadata), (correlation or "").encode(), (labels or "").encode(),
            self.chains[parent]["id"].encode() if parent else None, test)
        creator, _, _ = self.record(number, CREATE, hashed_body=covered, actor=actor, fired=fired)
        if not name and definition not in self.inline:
            self.inline.add(definition)
            self.created(definition)
        self.db.execute(
            f"INSERT INTO pawl_instance VALUES ({', '.join('?' * 13)})",
            (number, random, definition, self.at if fired is None else fired, self.pos, creator,
             subject, input_, metadata, parent, correlation, labels, test))
        for key, value in json.loads(labels or "{}").items():
            self.db.execute("INSERT INTO pawl_label VALUES (?, ?, ?)", (key, value, number))
        self.head(number)
        return number

    def head(self, inst):
        chain = self.chains[inst]
        self.db.execute("INSERT OR REPLACE INTO pawl_head VALUES (?, ?, ?, ?)",
                        (inst, chain["seq"], chain["state"], chain["pos"]))

    def flush(self):
        for inst in self.chains:
            self.head(inst)
        self.flushed = self.pos

    def live(self, table, *columns):
        """Columns that later migrations added are absent."""
        names = [row[1] for row in self.db.execute(f"PRAGMA table_info({table})")][:len(columns)]
        self.db.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(columns))})", columns)

    def close(self):
        for key, value in (("store_id", self.store_id), ("flushed", self.flushed)):
            self.db.execute("INSERT OR REPLACE INTO pawl_meta VALUES (?, ?)", (key, value))
        self.db.execute("COMMIT")
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.close()


# ---- One of everything --------------------------------------------------------------------------


def machines(w):
    order = w.definition("order", 1, MACHINE, b"name: order\nstates: [...]\n")
    inline = w.definition(None, 0, INLINE, b'{"states": {"a": {}}}')
    first = w.create(order, actor="ann", subject="cart/7", input_='{"n": 1.50}',
                     metadata='{"k":"v"}', correlation="c-1", labels='{"team":"x"}', fired=T0 - 5)
    w.record(0, KEYED, body={"operation": "x"})
    w.commit()
    for i in range(70):
        w.record(first, 0, actor="ann" if i % 2 else "bob", payload=compact({"i": i}))
        w.record(first, 1, reason="changed my mind", fired=w.at - 3)
        if i % 3 == 0:
            w.commit()
    w.commit()
    gone = w.record(first, 4, actor="eve", payload='"secret"', key=noise("key", 48))[1]
    w.commit()
    w.erase(gone)
    w.record(first, ERASE, body={"values": [w.commitments[gone].hex()]}, actor="ann", reason="asked to")
    second = w.create(inline, parent=first)
    w.record(second, 0, payload='"x"' * 400)
    w.record(second, KEYED, key=noise("another", 48))
    w.commit()
    return order, first


def flows(w, parent):
    ship = w.definition("ship", 3, lifecycle("flow", {"steps": [{"name": "pack"}, {"name": "send"}]}), b"name: ship\n")
    done = w.create(ship, input_="{}")
    w.record(done, START, body=[[1, 0], ["arm", "deadline", w.at + 9000, 0]])  # in short
    w.record(done, STEP_START, body=[-1], step=1, ordinal=1, attempt=1)
    w.record(done, STEP_COMPLETE, body=[1], step=1, ordinal=1, attempt=1, payload="17")
    w.record(done, FINISH)
    w.commit()
    busy = w.create(ship, input_="{}", parent=parent, test=1)
    due = w.at + 60_000
    w.record(busy, START, body=[["step", 1, 0, 1, "ready"], ["step", 2, 1, 1, "pending"],
                                ["arm", "deadline", due, 0]])
    w.record(busy, STEP_START, body=[["run", 1], ["arm", "timeout", due + 1, 1]], step=1, ordinal=1,
             attempt=1)
    w.record(busy, STEP_FAIL, body=[["end", 1], ["disarm", "timeout", 1],
                                    ["step", 3, 0, 2, "pending"], ["arm", "retry", due + 2, 3],
                                    ["ready", 2]],
             step=1, ordinal=1, attempt=1, payload='{"error":"no"}')
    w.record(busy, PAUSE)
    w.record(busy, RESUME)
    w.record(busy, PAUSE, actor="ann", reason="audit")
    w.live("pawl_pause", busy, w.pos)
    w.record(0, ALARM, body={"id": "a1", "due": T0 + 5000}, payload='{"operation":"x"}')
    begun = w.pos
    w.record(0, ALARM, body={"id": "a1", "firing": True})
    w.live("pawl_kept", ALARM, "a1", T0 + 5000, begun, w.at)
    w.record(0, TOKEN, body={"id": "t1", "due": 0})
    w.record(0, TOKEN, body={"id": "t1", "over": "revoked"})
    w.record(0, TOKEN, body={"id": "t2", "due": T0 + 9000, "more": {"hash": "00"}})
    w.live("pawl_kept", TOKEN, "t2", T0 + 9000, w.pos, None)
    w.record(busy, STEP_START, body=[["run", 2], ["await", "go \u00fc", 0], ["await", "x", 2],
                                     ["leave", "x", 2], ["await", "~go \u00fc", 0],
                                     ["snapshot", hashlib.sha256(b"{}").hexdigest()]], step=2, ordinal=2, attempt=1)
    w.commit()
    w.live("pawl_step", busy, 2, 1, 1, 2, None, None, None)
    w.live("pawl_step", busy, 3, 0, 2, 0, None, None, None)
    w.live("pawl_timer", busy, 0, "deadline", due, 1)
    w.live("pawl_timer", busy, 3, "retry", due + 2, 1)
    w.live("pawl_wait", busy, 0, "go \u00fc", None)
    w.live("pawl_interest", busy, "~go \u00fc")
    w.live("pawl_snapshot", busy, 4, "{}")


def codes(w):
    counter = w.definition("counter", 1, lifecycle("code", {"fields": []}), b'{"type":"counter"}')
    c = w.create(counter, actor="eve")
    due = w.at + 5
    w.record(c, START, body=[["state", {"n": 0}], ["arm", "tick", due, 0]])
    w.record(c, KEEP_SIGNAL, body={"name": "add"}, payload="2")
    w.record(c, SIGNAL, body=[["state", {"n": 2}]])
    w.commit()
    w.live("pawl_timer", c, 0, "tick", due, 0)
    return c


def main(path):
    w = Writer(path)
    order, first = machines(w)
    flows(w, first)
    c = codes(w)
    w.flush()
    # An owner's head rows may lag: one stands still, one is ahead of `flushed`.
    still, ahead = w.create(order), w.create(order, test=1)
    w.commit()
    w.record(still, 3)
    w.record(ahead, 0)
    w.head(ahead)
    w.record(c, KEEP_SIGNAL, body={"name": "add"})
    w.commit()
    w.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_store.py FILE")
    main(sys.argv[1])
