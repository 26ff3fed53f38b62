#!/usr/bin/env python3
"""run_planted.py - each deliberate defect of src/base/planted.h is found.

test_planted has one small test for each, of the same name. All pass as they are; with
PAWL_BUG=NAME in a build with -Dplanted_bugs=true the one of that name must fail. An ordinary
build has no defects to turn on: then one is built beside it where PAWL_TEST_LONG is set or
--build is given, and else this is skipped, and says so.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", ROOT / "build"))


def names():
    text = (ROOT / "src/base/planted.h").read_text()
    return re.findall(r"^\s+X\((\w+),", text, re.MULTILINE)


def has_switch(build):
    options = build / "meson-info" / "intro-buildoptions.json"
    return options.exists() and re.search(
        r'"name": "planted_bugs", "value": true', options.read_text()) is not None


def make_build(folder):
    subprocess.run(["meson", "setup", folder, str(ROOT), "-Dplanted_bugs=true", "-Db_lundef=false"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "tests/test_planted"], check=True,
                   stdout=subprocess.DEVNULL)
    return pathlib.Path(folder)


def passes(build, test, bug):
    """Does this test pass with this defect (None: with none)?"""
    environment = {k: v for k, v in os.environ.items() if k != "PAWL_BUG"}
    if bug:
        environment["PAWL_BUG"] = bug
    done = subprocess.run([str(build / "tests" / "test_planted"), "planted." + test],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = done.stdout.decode("utf-8", "replace")
    assert re.search(r"^# [01] passed, [01] failed", output, re.MULTILINE), output
    return "# 1 passed, 0 failed" in output, output


def check_all(build):
    failed = 0
    for name in names():
        sound, output = passes(build, name, None)
        caught = not passes(build, name, name)[0]
        good = sound and caught
        failed += not good
        print("%s - %s: %s%s" % ("ok" if good else "not ok", name,
                                 "passes without it" if sound else "FAILS WITHOUT IT",
                                 ", and finds it" if caught else ", NOBODY NOTICED"), flush=True)
        if not sound:
            print(output)
    return len(names()) - failed, failed


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
