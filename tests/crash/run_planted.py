#!/usr/bin/env python3
"""run_planted.py - each deliberate defect of src/base/planted.h is found by an ordinary test.

README.md beside this names the test for each. It must pass as the engine is, and fail with
PAWL_BUG=NAME, in a build with -Dplanted_bugs=true. Where the row names a script, that script turns
the defect on in a test of its own, and only its text is looked at here. An ordinary build has no defects to turn on:
then one is built beside it where PAWL_TEST_LONG is set or --build is given, and else this is
skipped, and says so.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", ROOT / "build"))
ROW = re.compile(r"^\| `([A-Z_]+)` \|.*\| `([\w/.]+): ([\w.]+)` \|$", re.MULTILINE)


def names():
    text = (ROOT / "src/base/planted.h").read_text()
    return re.findall(r"^\s+X\((\w+),", text, re.MULTILINE)


def finders():
    """defect -> (program, part of a test's name)."""
    return {name: (program, test) for name, program, test in ROW.findall((HERE / "README.md").read_text())}


def has_switch(build):
    options = build / "meson-info" / "intro-buildoptions.json"
    return options.exists() and re.search(
        r'"name": "planted_bugs", "value": true', options.read_text()) is not None


def make_build(folder):
    subprocess.run(["meson", "setup", folder, str(ROOT), "-Dplanted_bugs=true", "-Db_lundef=false"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, *{"tests/test_" + p for p, _ in finders().values() if not p.endswith(".py")}],
                   check=True, stdout=subprocess.DEVNULL)
    return pathlib.Path(folder)


def passes(build, program, test, bug):
    """Does this test pass with this defect (None: with none)? And what did it say?"""
    environment = {k: v for k, v in os.environ.items() if k != "PAWL_BUG"}
    if bug:
        environment["PAWL_BUG"] = bug
    done = subprocess.run([str(build / "tests" / ("test_" + program)), test], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = done.stdout.decode("utf-8", "replace")
    assert re.search(r"^# [01] passed, [01] failed", output, re.MULTILINE), output
    return "# 1 passed, 0 failed" in output, output


def check_script(script, test, name):
    """A script that turns the defect on by itself: does this test of it name the defect?"""
    body = re.search(r"^def test_%s\(.*\n((?:    .*\n)+)" % test, (ROOT / script).read_text(), re.MULTILINE)
    good = body is not None and '"%s"' % name in body.group(1)
    return good, "%s - %s: %s, by itself" % ("ok" if good else "not ok", name, script)


def check(build, name):
    """(is it found, what to print)."""
    if name not in finders():
        return False, "not ok - %s: README.md names no test that finds it" % name
    program, test = finders()[name]
    if program.endswith(".py"):
        return check_script(program, test, name)
    sound, output = passes(build, program, test, None)
    caught = not passes(build, program, test, name)[0]
    return sound and caught, "%s - %s: %s %s%s%s" % (
        "ok" if sound and caught else "not ok", name, test,
        "passes without it" if sound else "FAILS WITHOUT IT",
        " and finds it" if caught else ", AND DOES NOT NOTICE IT", "" if sound else "\n" + output)


def check_all(build):
    stale = set(finders()) - set(names())
    failed = len(stale)
    for name in stale:
        print("not ok - %s: README.md has a row for it, planted.h has not" % name)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for good, words in pool.map(lambda name: check(build, name), names()):
            failed += not good
            print(words, flush=True)
    return len(names()) + len(stale) - failed, failed


def main():
    if has_switch(BUILD):
        passed, failed = check_all(BUILD)
    elif os.environ.get("PAWL_TEST_LONG") or "--build" in sys.argv:
        with tempfile.TemporaryDirectory(prefix="pawl-planted-") as folder:
            passed, failed = check_all(make_build(folder))
    else:
        print("SKIPPED: %s was built without -Dplanted_bugs=true; --build makes one" % BUILD)
        passed, failed = 0, 0
    print("# %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
