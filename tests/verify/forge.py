"""forge.py - change the history of a store and hash it anew, as if it had always been so.

A chain of hashes proves that nothing was changed afterwards, not that it was right to begin with. What
is forged here is valid by docs/format.md, and tools/verify.py says so; only who decides the events again
can see that the flow would never have done it.
"""
import json
import sqlite3

import make_store

verify = make_store.verify


def reader_of(db):
    """The state of a check before it reads the log."""
    reader = verify.Store.__new__(verify.Store)
    reader.__dict__.update(db=db, definitions={}, by_name={}, commitments={}, gone={}, references=set(), named=set(), where=0,
                           schema=verify.NEWEST, shard=0, shards=1, chains={0: verify.Chain(0, verify.STORE_ID_TEXT)})
    reader.begin_definition = lambda found, record: None
    reader.check_values()
    reader.check_sources()
    reader.check_definitions()
    reader.check_instances()
    return reader


class Forger:
    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("BEGIN")

    # -- what can be changed

    def entries(self, inst):
        """[(pos, action, body)] of an instance, oldest first."""
        return [(pos, self.action(inst, what), [verify.long_form(e) for e in json.loads(body or "[]")])
                for pos, what, body in self.db.execute(
                    "SELECT pos, what, body FROM pawl_log WHERE inst = ? AND what >= 0 ORDER BY pos", (inst,))]

    def action(self, inst, what):
        return self.db.execute(
            "SELECT t.action FROM pawl_transition t JOIN pawl_instance i ON i.definition = t.definition"
            " WHERE i.number = ? AND t.idx = ?", (inst, what)).fetchone()[0]

    def find(self, inst, action, which=0):
        """(pos, body) of an entry of this action."""
        return [(pos, body) for pos, name, body in self.entries(inst) if name == action][which]

    def set(self, pos, **columns):
        if isinstance(columns.get("body"), list):
            columns["body"] = make_store.compact(columns["body"]).encode() or None
        for name, value in columns.items():
            self.db.execute(f"UPDATE pawl_log SET {name} = ? WHERE pos = ?", (value, pos))

    def value(self, text):
        """The id of a new value."""
        salt = make_store.noise(f"forged {text}", 16)
        return self.db.execute("INSERT INTO pawl_value (commitment, salt, bytes, interned) VALUES (?, ?, ?, 0)",
                               (verify.value_commitment(salt, text.encode()), salt, text.encode())).lastrowid

    def append(self, inst, what, body, actor=None, reason=None):
        """A record more, in a commit of its own, that seal() hashes: (pos, at)."""
        pos, at = self.db.execute("SELECT pos + 1, at FROM pawl_log ORDER BY pos DESC LIMIT 1").fetchone()
        prev, seq = self.db.execute("SELECT pos, seq FROM pawl_log WHERE inst = ? ORDER BY pos DESC LIMIT 1", (inst,)).fetchone()
        self.db.execute("INSERT INTO pawl_log (pos, inst, seq, prev, what, at, actor, reason, body, hash, root)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, x'', x'')",
                        (pos, inst, seq, prev, what, at, actor, reason, make_store.compact(body).encode()))
        self.db.execute("UPDATE pawl_head SET pos = ? WHERE inst = ?", (pos, inst))
        return pos, at

    def record_erasure(self, *ids, inst=0, **more):
        """A chain says that these values, which have no bytes, were erased."""
        commitments = [self.db.execute("SELECT commitment FROM pawl_value WHERE id = ?", (id_,)).fetchone()[0].hex()
                       for id_ in ids]
        self.append(inst, verify.ERASE, {"values": commitments}, **more)

    def erase(self, *ids, **more):
        """Erase values, and record it."""
        for id_ in ids:
            make_store.erase(self.db, id_)
            self.db.execute("UPDATE pawl_value SET interned = NULL WHERE id = ?", (id_,))
        self.record_erasure(*ids, **more)

    def flush(self):
        """Every head row stands where its chain ends."""
        last = "SELECT %s FROM pawl_log l%s WHERE l.inst = pawl_head.inst%s ORDER BY l.pos DESC LIMIT 1"
        to_state = last % ("to_state", " JOIN pawl_instance i ON i.number = l.inst JOIN pawl_transition t"
                           " ON t.definition = i.definition AND t.idx = l.what", " AND l.what >= 0")
        self.db.execute("INSERT OR IGNORE INTO pawl_head SELECT DISTINCT inst, 0, 0, 0 FROM pawl_log")
        self.db.execute(f"UPDATE pawl_head SET seq = ({last % ('seq', '', '')}), pos = ({last % ('l.pos', '', '')}),"
                        f" state = coalesce(({to_state}), state)")
        self.db.execute("UPDATE pawl_meta SET value = (SELECT max(pos) FROM pawl_log) WHERE key = 'flushed'")

    def cut(self, pos):
        """Take this record and all after it away; what stood before is the end of a commit."""
        self.db.execute("DELETE FROM pawl_log WHERE pos >= ?", (pos,))
        self.db.execute("UPDATE pawl_log SET root = x'00' WHERE pos = ?", (pos - 1,))
        self.db.execute("UPDATE pawl_meta SET value = 0 WHERE key = 'flushed'")
        self.db.execute("DELETE FROM pawl_head")

    def rows(self, table, *rows):
        self.db.execute(f"DELETE FROM {table}")
        for row in rows:
            self.db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    # -- hashing it anew

    def seal(self):
        self.db.text_factory = bytes
        reader = reader_of(self.db)
        root = verify.first_root(dict(self.db.execute("SELECT key, value FROM pawl_meta"))[b"store_id"])
        hashes = []
        for row in self.db.execute(f"SELECT {', '.join(reader.COLUMNS)} FROM pawl_log ORDER BY pos").fetchall():
            record = {name: value or 0 if name not in ("fired", "body", "key", "root") else value
                      for name, value in zip(reader.COLUMNS, row)}
            digest = self.hash(reader, record)
            hashes.append(digest)
            self.db.execute("UPDATE pawl_log SET hash = ? WHERE pos = ?", (digest, record["pos"]))
            if record["root"] is not None:
                root, hashes = verify.next_root(root, hashes), []
                self.db.execute("UPDATE pawl_log SET root = ? WHERE pos = ?", (root, record["pos"]))
        self.db.execute("COMMIT")
        self.db.close()

    @staticmethod
    def hash(reader, record):
        record["fired"] = record["at"] if record["fired"] is None else record["fired"]
        body = reader.create(record) if record["what"] == verify.CREATE else record["body"]
        chain = reader.chains[record["inst"]]
        chain.hash = verify.record_hash(
            chain.hash, chain.id, record["seq"], record["what"], record["at"], record["fired"], record["step"],
            record["ord"], record["attempt"], record["flags"], reader.commitment(record["actor"], "actor"),
            reader.commitment(record["payload"], "payload"), reader.commitment(record["reason"], "reason"), body,
            record["key"])
        return chain.hash
