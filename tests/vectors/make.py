#!/usr/bin/env python3
"""Print tests/vectors/format.json: what docs/format.md hashes to, as tools/verify.py reads it.

    make.py > format.json      write it anew (only for a new version of the format)
    make.py --check            does the file still say what verify.py computes?
"""

import importlib.util
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("verify", HERE.parent.parent / "tools" / "verify.py")
v = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(v)

BIG = (1 << 63) - 1
A, B, C = (v.sha(letter) for letter in (b"a", b"b", b"c"))
KEY = bytes(range(48))


def text(data):
    return None if data is None else data.hex()


def values():
    for salt, data in ((bytes(16), b""), (bytes(range(16)), b"ann"),
                       (b"\xff" * 16, '{"n": 1.50, "t": "\u00fc"}'.encode()),
                       (bytes(range(16)), b"with a \0 in it"), (bytes(16), b"x" * 500)):
        yield {"salt": salt.hex(), "bytes": data.hex(),
               "commitment": v.value_commitment(salt, data).hex()}


def ids():
    for number, random in ((1, bytes(10)), (31, b"\xff" * 10), (32, bytes(range(10))),
                           (1_000_000, bytes.fromhex("0123456789abcdef0123")),
                           ((1 << 50) - 1, b"\x80" + bytes(9))):
        yield {"number": number, "random": random.hex(), "id": v.instance_id(number, random)}


def creations():
    parent = v.instance_id(7, bytes(range(10))).encode()
    cases = (
        dict(name=b"", version=0, subject=None, input_=None, metadata=None, correlation=None,
             labels=None, parent_id=None, test=0),
        dict(name=b"order", version=1, subject=A, input_=None, metadata=None, correlation=None,
             labels=None, parent_id=None, test=0),
        dict(name=b"ship/fast", version=300, subject=A, input_=B, metadata=C, correlation=b"c-1",
             labels=b'{"team":"x"}', parent_id=parent, test=1),
        dict(name=b"n" * 128, version=0xFFFFFFFF, subject=None, input_=B, metadata=None,
             correlation=b"c" * 200, labels=b"{}", parent_id=None, test=0))
    for case in cases:
        row = {name.rstrip("_"): value if isinstance(value, int) else text(value)
               for name, value in case.items()}
        yield {"source_sha": A.hex(), "compiled_sha": B.hex(), **row,
               "body": v.creation_body(A, B, **case).hex()}


def records():
    base = dict(prev=bytes(32), id_text="0" * 26, seq=0, what=-2, at=0, fired=0, step=0, ordinal=0,
                attempt=0, flags=0, actor=None, payload=None, reason=None, body=None, key=None)
    one = v.instance_id(1, bytes(range(10)))
    cases = (
        {}, {"body": b'{"name":"order"}'}, {"id_text": one, "what": -1, "body": bytes(range(100))},
        {"id_text": one, "prev": A, "seq": 1, "what": 0, "at": 1_780_000_000_000,
         "fired": 1_780_000_000_000, "actor": B},
        {"id_text": one, "prev": A, "seq": 128, "what": 65535, "at": 1_780_000_000_001,
         "fired": -1, "flags": 1, "actor": A, "payload": B, "reason": C, "key": KEY},
        {"id_text": one, "prev": B, "seq": 2, "what": 3, "step": 10000, "ordinal": 127,
         "attempt": 1000, "body": b'[["run",127]]'},
        {"id_text": one, "prev": B, "seq": BIG, "what": 0x7FFFFFFF, "at": BIG, "fired": -BIG - 1,
         "step": 0xFFFFFFFF, "ordinal": 0xFFFFFFFF, "attempt": 0xFFFFFFFF, "flags": 0xFFFFFFFF},
        *({"id_text": one, "prev": C, "seq": 9, "what": 1, "body": b"b" * size, "key": key}
          for size in (127, 128, 399, 400, 401, 447, 448, 449, 2000) for key in (None, KEY)),
        # An erase record of the store's chain, and a start that hands its step to a worker elsewhere.
        {"prev": A, "what": v.ERASE, "at": 1_780_000_000_002, "fired": 1_780_000_000_002, "actor": B, "reason": C,
         "body": b'{"values":["%s","%s"]}' % (A.hex().encode(), C.hex().encode())},
        {"id_text": one, "prev": C, "seq": 3, "what": 1, "step": 1, "ordinal": 1, "attempt": 1,
         "body": b'[["run",1,120000,"%s"]]' % v.sha(b"0123456789abcdef" * 2).hex()[:40].encode()},
        # An entry of code, what it hashes to once its body is erased, and the erase record that says so; a hold.
        {"id_text": one, "prev": A, "seq": 1, "what": 0, "payload": B, "body": b'[["state",{"who":"ann"}],["call",1,{"to":"ann"},"k"]]'},
        {"id_text": one, "prev": A, "seq": 1, "what": 0, "payload": B, "flags": v.ERASED_FLAG, "body": b'[["state",{}],["call",1,null]]'},
        {"prev": A, "what": v.ERASE, "actor": B,
         "body": b'{"instances":["%s"],"values":["%s"],"bodies":[["%s","%s"]]}' % (one.encode(), *(h.hex().encode() for h in (B, A, C)))},
        {"prev": A, "what": v.HOLD, "actor": B, "reason": C, "body": b'{"id":"%s","due":0}' % one.encode()})
    for case in cases:
        fields = {**base, **case}
        row = {name: text(value) if name not in ("id_text",) and not isinstance(value, int)
               else value for name, value in fields.items()}
        row["id"] = row.pop("id_text")
        yield {**row, "hash": v.record_hash(**fields).hex()}


def erased_bodies():
    """Bodies of entries, and what is left of them."""
    for before, after in (
            ('[["state",{"who":"ann"}],["call",1,{"to":"ann"},"k"],["note",{"t":1}],["reduce","add",[1]]]',
             '[["state",{}],["call",1,null],["note",null],["reduce","add",null]]'),
            ('[["await","go",1,"ann"],["await","~go=\\"ann\\"",0],["leave","~go=1",0],["take","~go=ann"],["send","signal.send",{"a":1}]]',
             '[["await","go",1],["await","~go",0],["leave","~go",0],["take","~go"],["send","signal.send",{}]]'),
            ('[["trace","00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],[2,1],-2,2,["arm","t",5,0],["snapshot","%s"]]' % A.hex(),
             '[["trace","00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],[2,1],-2,2,["arm","t",5,0]]'),
            ('[[1,0],["await","go",1],["spawn",2,"%s"],["disarm","t",0]]' % v.instance_id(7, bytes(10)), None)):
        yield {"before": before, "after": after or before}


def roots():
    for store_id, commits in ((bytes(16), [[A]]), (bytes(range(16)), [[A, B], [C], [A] * 100])):
        root = v.first_root(store_id)
        out = {"store_id": store_id.hex(), "first": root.hex(), "commits": []}
        for hashes in commits:
            root = v.next_root(root, hashes)
            out["commits"].append({"hashes": [h.hex() for h in hashes], "root": root.hex()})
        yield out


def make():
    groups = {"values": values, "ids": ids, "creations": creations, "records": records,
              "erased_bodies": erased_bodies, "roots": roots}
    parts = [f'"{name}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows()) + "\n]"
             for name, rows in groups.items()]
    return '{"format": 1,\n' + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if (HERE / "format.json").read_text() == make() else "format.json differs")
    sys.stdout.write(make())
