#!/usr/bin/env python3
"""run_scope.py - the whole small scope: every machine of up to three states and two actions (up to
the names of states and actions), every sequence of four calls, D35's ten invariants after each
call. 170 million calls, so: with PAWL_TEST_LONG=1 only, in an optimised build of its own, and once,
not for each build of script/test. test_scope walks a part of it every day, with the sanitizers.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
sys.dont_write_bytecode = True
from sentences import ROOT, main, need_long, sh  # noqa: E402

PART = 250


def make_build(folder):
    sh("meson", "setup", folder, ROOT, "-Dbuildtype=release", "-Db_lundef=false")
    sh("ninja", "-C", folder, "tests/scope_walk", timeout=1800)
    return str(pathlib.Path(folder) / "tests" / "scope_walk")


def walk(program, first):
    done = subprocess.run([program, str(first), str(PART)], capture_output=True)
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, "from chart %d on: %s%s" % (first, out, err[-3000:])
    return [int(n) for n in re.findall(r"\d+", out)]


def test_every_small_machine_keeps_all_ten_invariants_in_every_sequence_of_four_calls():
    need_long("the whole scope")
    with tempfile.TemporaryDirectory(prefix="pawl-scope-") as folder:
        program = make_build(folder)
        charts = int(re.match(r"\d+", subprocess.check_output([program]).decode()).group())
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            parts = list(pool.map(lambda first: walk(program, first), range(0, charts, PART)))
    machines, sequences, calls = (sum(part[i] for part in parts) for i in range(3))
    print("# %d machines, %d sequences, %d calls" % (machines, sequences, calls))
    assert machines >= charts, (machines, charts)


main(globals())
