#!/usr/bin/env python3
"""run_damage.py - every column of every table, set to odd values: a store so damaged may be refused,
but opening, checking, reading and using it never crashes or hangs.

fuzz_store.c does the damage and the use. In the everyday run every 40th case is tried, with
PAWL_TEST_LONG all of them."""
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
from sentences import BUILD, build_compiler, main, sh  # noqa: E402
import targets  # noqa: E402

COLUMNS, ROWS = 90, (0, 1, 2)  # columns are counted round, so more than there are does no harm
STRIDE = 1 if os.environ.get("PAWL_TEST_LONG") else 40
CHUNK, TIMEOUT_S, FOUND_MAX = 50, 120, 5


def integer(number):
    return b"\2" + (number % 2 ** 64).to_bytes(8, "big")


def text(words):
    return b"\4" + bytes([len(words)]) + words


VALUES = [b"\0", integer(-1), integer(0), integer(3), integer(2 ** 16), integer(2 ** 31), integer(2 ** 45),
          integer(2 ** 63 - 1), integer(2 ** 63), b"\3\0\5", text(b"abc"), text(b"{}"), text(b"\xff"), b"\5\2[]",
          text(b'[["step",7,99,1,"ready"]]'), text(b'[["arm","x",1,99],["run",1],["state",3]]')]


def cases():
    """(name, input of fuzz_store) of each damage."""
    for column in range(COLUMNS):
        for row in ROWS:
            yield "delete-%d-%d" % (column, row), b"d" + bytes([column, row])
            for index, value in enumerate(VALUES):
                yield "set-%d-%d-%d" % (column, row, index), b"u" + bytes([column, row]) + value


def feed(program, files, folder):
    """Run some in one process: (how many were begun, what it said if it did not end well)."""
    try:
        done = subprocess.run([str(program), *map(str, files)], capture_output=True, timeout=TIMEOUT_S,
                              env=dict(os.environ, PAWL_FUZZ_FOLDER=folder))
        said, error = done.stdout, done.stderr if done.returncode else None
    except subprocess.TimeoutExpired as late:
        said, error = late.stdout or b"", b"took longer than %d s" % TIMEOUT_S
    return said.count(b"\n"), error and error.decode("utf-8", "replace")


def test_a_damaged_store_is_refused_and_never_crashes():
    found = []
    with targets.folder() as folder:
        program = pathlib.Path(folder) / "store"
        sh(*targets.command(build_compiler(), "store", BUILD / "libpawl_core.a", program,
                            [targets.HERE / "drive.c"]))
        files = []
        for name, data in list(cases())[::STRIDE]:
            files.append(pathlib.Path(folder) / name)
            files[-1].write_bytes(data)
        while files and len(found) < FOUND_MAX:
            begun, error = feed(program, files[:CHUNK], folder)
            if error is not None:
                found.append("%s: %s" % (files[max(begun, 1) - 1].name, error[:1500]))
            files = files[max(begun, 1):]
    assert not found, "\n".join(found)


main(globals())
