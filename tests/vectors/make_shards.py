#!/usr/bin/env python3
"""Print tests/vectors/shards.json: ids, roots and cursors of a store that has several shards, written from
docs/internals/cluster.md without looking at the program.

    make_shards.py > shards.json      write it anew (only for a new version of the format)
    make_shards.py --check            does the file still say what this computes?
"""

import hashlib
import json
import pathlib
import sys

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def base32(data):
    bits = "".join(format(byte, "08b") for byte in data)
    bits += "0" * (-len(bits) % 5)
    return "".join(DIGITS[int(bits[i:i + 5], 2)] for i in range(0, len(bits), 5))


def store_id(whole, shard, shards):
    return hashlib.sha256(b"pawl.shard.1" + whole + varint(shard) + varint(shards)).digest()[:16]


def cluster_root(whole, tips):
    body = b"".join(varint(pos) + root for pos, root in tips)
    return hashlib.sha256(b"pawl.cluster.1" + whole + varint(len(tips)) + body).digest()


def cursor(at):
    out, before = varint(len(at)), 0
    for n in at:
        difference = n - before
        out += varint(difference << 1 if difference >= 0 else (-difference << 1) - 1)
        before = n
    return "v" + base32(out)


def ids():
    for whole in (bytes(16), bytes(range(16))):
        for shard, shards in ((0, 1), (0, 8), (7, 8), (63, 64), (1023, 1024)):
            yield {"store_id": whole.hex(), "shard": shard, "shards": shards,
                   "shard_id": store_id(whole, shard, shards).hex()}


def roots():
    for count in (1, 2, 8):
        tips = [(i * 1000, hashlib.sha256(b"%d" % i).digest()) for i in range(count)]
        yield {"store_id": bytes(range(16)).hex(),
               "tips": [{"pos": pos, "root": root.hex()} for pos, root in tips],
               "root": cluster_root(bytes(range(16)), tips).hex()}


def cursors():
    top = (1 << 63) - 1
    for at in ([0], [7], [top], [1, 2], [top, 0], [0, top, top - 1, 3], [5] * 8,
               [100 + i * i for i in range(64)], [i % 3 for i in range(1024)]):
        yield {"at": [str(n) for n in at], "text": cursor(at)}


def places():
    for shards in (1, 8, 64, 1024):
        for number in (1, 8, 65, 1_000_003, (1 << 50) - 1):
            key = hashlib.sha256(b"%d" % number).digest()[:16]
            yield {"shards": shards, "number": number, "of_number": number % shards, "key": key.hex(),
                   "of_key": int.from_bytes(key[:4], "big") % shards, "alarm": key.hex(),
                   "of_alarm": int(key.hex()[:4], 16) % shards}


def bad():
    """Texts that are no cursor, whatever they look like."""
    good = cursor([1000, 99])
    assert good.lower() != good
    return ["", "v", "V" + good[1:], good[1:], good + "0", good[:-1], good.lower(), good + " ", "v" + base32(varint(3) + bytes(3)),
            "v" + base32(varint(0)), "v" + base32(varint(2048) + bytes(2048)), "v" + base32(varint(1) + b"\x80\x00"),
            "v" + base32(varint(1) + b"\x01"), "v" + base32(varint(1) + b"\xff" * 9 + b"\x01"), "v" + base32(varint(1) + b"\xff" * 12),
            "v" + base32(varint(2) + varint(((1 << 63) - 1) << 1) + varint(2)), "v" + base32(varint(1) + bytes(1))[:-1] + "1",
            "v" + "Z" * 20000, "vI", "v\u00fc"]


def main():
    made = {"about": "made by make_shards.py", "ids": list(ids()), "roots": list(roots()), "cursors": list(cursors()),
            "places": list(places()), "bad": bad()}
    text = json.dumps(made, indent=1) + "\n"
    if sys.argv[1:] != ["--check"]:
        sys.stdout.write(text)
        return
    kept = (pathlib.Path(__file__).resolve().parent / "shards.json").read_text()
    if kept != text:
        sys.exit("shards.json is not what make_shards.py computes")


main()
