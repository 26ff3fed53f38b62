#!/usr/bin/env python3
"""run_damage.py - every column of every table set to odd values, and every kind of page damaged where
it hurts: a store so damaged may be refused, but opening, checking, reading and using it never crashes
or hangs; and both verifiers take it, and say the same of it.

fuzz_store.c does the damage and the use. In the everyday run some cases are tried, with PAWL_TEST_LONG
all of them."""
import functools
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "house"), str(HERE.parent.parent / "tools")]
from sentences import BUILD, build_compiler, main, sh  # noqa: E402
import targets  # noqa: E402
import verify  # noqa: E402

LONG = bool(os.environ.get("PAWL_TEST_LONG"))
COLUMNS, ROWS = 90, (0, 1, 2)  # columns are counted round, so more than there are does no harm
CHUNK, TIMEOUT_S, FOUND_MAX = 50, 120, 5


def integer(number):
    return b"\2" + (number % 2 ** 64).to_bytes(8, "big")


def text(words):
    return b"\4" + bytes([len(words)]) + words


VALUES = [b"\0", integer(-1), integer(0), integer(3), integer(2 ** 16), integer(2 ** 31), integer(2 ** 45),
          integer(2 ** 63 - 1), integer(2 ** 63), b"\3\0\5", text(b"abc"), text(b"{}"), text(b"\xff"), b"\5\2[]",
          text(b'[["step",7,99,1,"ready"]]'), text(b'[["arm","x",1,99],["run",1],["state",3]]')]


def row_cases():
    """(name, input of fuzz_store) of each damage to a row."""
    for column in range(COLUMNS):
        for row in ROWS:
            yield "delete-%d-%d" % (column, row), b"d" + bytes([column, row])
            for index, value in enumerate(VALUES):
                yield "set-%d-%d-%d" % (column, row, index), b"u" + bytes([column, row]) + value


# ---- Pages ----

KINDS = {2: "index-inner", 5: "table-inner", 10: "index-leaf", 13: "table-leaf"}
FILE_HEADER = (0, 16, 17, 18, 19, 20, 21, 24, 28, 31, 32, 35, 36, 39, 44, 47, 52, 56, 59, 60, 64, 68, 92, 96)
PAGE_HEADER = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16)


def free_list(data, size):
    """The numbers of pages on the free list: trunks and leaves."""
    trunk, trunks, leaves = int.from_bytes(data[32:36], "big"), [], []
    while trunk:
        page = data[(trunk - 1) * size:trunk * size]
        trunks.append(trunk)
        leaves += [int.from_bytes(page[8 + 4 * i:12 + 4 * i], "big") for i in range(int.from_bytes(page[4:8], "big"))]
        trunk = int.from_bytes(page[:4], "big")
    return trunks, leaves


def pages_by_kind(data):
    """kind -> the numbers of its pages."""
    size = int.from_bytes(data[16:18], "big")
    trunks, leaves = free_list(data, size)
    kinds = {"free-trunk": trunks, "free-leaf": leaves}
    for number in range(1, len(data) // size + 1):
        first = data[(number - 1) * size + (100 if number == 1 else 0)]
        if number not in trunks + leaves:
            kinds.setdefault(KINDS.get(first, "overflow"), []).append(number)
    return size, kinds


def flip(offset, mask):
    return b"x" + offset.to_bytes(3, "big") + bytes([mask])


def page_cases(data):
    """(name, input) of damage to the file's header and to one or two pages of every kind."""
    size, kinds = pages_by_kind(data)
    missing = {*KINDS.values(), "overflow", "free-trunk", "free-leaf"} - set(kinds)
    assert not missing, "the sample has no page of kind %s" % missing
    for offset in FILE_HEADER:
        for mask in (1, 0xff):
            yield "file-%d-%d" % (offset, mask), flip(offset, mask)
    for kind, numbers in sorted(kinds.items()):
        for number in {numbers[0], numbers[-1]}:
            start = (number - 1) * size + (100 if number == 1 else 0)
            for offset in (*PAGE_HEADER, size // 2, size - 101, size - 120):
                for mask in (1, 0xff):
                    yield "%s-%d-%d-%d" % (kind, number, offset, mask), flip(start + offset, mask)


# ---- Running ----

PLACE = targets.folder()  # of the program, which all tests run


@functools.cache
def build():
    program = pathlib.Path(PLACE.name) / "store"
    sh(*targets.command(build_compiler(), "store", BUILD / "libpawl_core.a", program, [targets.HERE / "drive.c"]))
    return program


def feed(program, files, folder, kept=None):
    """Run some in one process: (how many were begun, what it said, whether it ended well)."""
    environment = dict(os.environ, PAWL_FUZZ_FOLDER=folder, **({"PAWL_FUZZ_KEPT": str(kept)} if kept else {}))
    try:
        done = subprocess.run([str(program), *map(str, files)], capture_output=True, timeout=TIMEOUT_S,
                              env=environment)
        begun, said, well = done.stdout.count(b"\n"), done.stderr, done.returncode == 0
    except subprocess.TimeoutExpired as late:
        begun, said, well = (late.stdout or b"").count(b"\n"), b"took longer than %d s" % TIMEOUT_S, False
    return begun, said.decode("utf-8", "replace"), well


def write_cases(cases, folder):
    files = []
    for name, data in cases:
        files.append(pathlib.Path(folder) / name)
        files[-1].write_bytes(data)
    return files


def sample_of(program, folder):
    """The undamaged file."""
    kept = pathlib.Path(folder) / "kept.db"
    _, said, well = feed(program, write_cases([("untouched", b"")], folder), folder, kept)
    assert well and "verdict: valid" in said, said
    return kept.read_bytes()


def never_crashes(cases, program, folder):
    found, files = [], write_cases(cases, folder)
    while files and len(found) < FOUND_MAX:
        begun, said, well = feed(program, files[:CHUNK], folder)
        if not well:
            found.append("%s: %s" % (files[max(begun, 1) - 1].name, said[:1500]))
        files = files[max(begun, 1):]
    assert not found, "\n".join(found)


def both_agree(cases, program, folder):
    """Neither verifier crashes, and where ours can read the file they say the same of it. One whose
    index is damaged, say, ours refuses; verify.py uses no index, and may find all that counts."""
    found, kept = [], pathlib.Path(folder) / "kept.db"
    for file in write_cases(cases, folder):
        _, said, well = feed(program, [file], folder, kept)
        ours = "verdict: valid" in said
        theirs = verify.report(str(kept))
        if not well or (ours != theirs["valid"] and "refused" not in said):
            found.append("%s: ours: %s; verify.py: %s" % (file.name, said[:400].strip(), theirs))
    assert not found, "\n".join(found)


def run(check, make_cases, stride, first=0):
    with targets.folder() as folder:
        cases = list(make_cases(sample_of(build(), folder)))
        check(cases if LONG else cases[first::stride], build(), folder)


def test_a_store_with_damaged_rows_is_refused_and_never_crashes():
    run(never_crashes, lambda data: row_cases(), 40)


def test_a_store_with_damaged_pages_of_every_kind_is_refused_and_never_crashes():
    run(never_crashes, page_cases, 9)


def test_both_verifiers_say_the_same_of_damaged_rows():
    run(both_agree, lambda data: row_cases(), 499, 7)


def test_both_verifiers_say_the_same_of_damaged_pages():
    run(both_agree, page_cases, 71, 3)


main(globals())
