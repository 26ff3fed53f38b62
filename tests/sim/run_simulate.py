#!/usr/bin/env python3
"""run_simulate.py - script/simulate: what it prints of a seed that fails repeats exactly, its bounds
hold, and it finds planted defects. With PAWL_TEST_LONG: a million crashes, and every planted defect that
docs/internals/simulation.md says it finds, within 100,000 seeds.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", ROOT / "build"))
LONG = "PAWL_TEST_LONG" in os.environ
EXAMPLE = "KEY_IGNORED"
CRASHES, SECONDS, SEEDS = 1_000_000, 3600, 100_000
SAID = re.compile(r"(\d+) runs, (\d+) crashes")


def simulate(*words, build=BUILD):
    """(exit status, what it printed)."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PAWL_SIM_BUILD", "PAWL_TEST_LONG")}
    if build:
        environment["PAWL_SIM_BUILD"] = str(build)
    done = subprocess.run([str(ROOT / "script/simulate"), *map(str, words)], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def defects():
    """Those that the table of the page says are found."""
    page = (ROOT / "docs/internals/simulation.md").read_text()
    return re.findall(r"^\| `([A-Z_]+)` \| seed ", page, re.MULTILINE)


def broken(output):
    """What was broken, where: without the trace before it."""
    return re.findall(r"^# seed \d+, step .*|^# to repeat it: .*", output, re.MULTILINE)


def has_defects():
    options = BUILD / "meson-info" / "intro-buildoptions.json"
    return options.exists() and '"name": "planted_bugs", "value": true' in options.read_text()


def a_seed_that_fails_is_printed_with_the_command_that_repeats_it():
    code, output = simulate("--seed", 1, "--runs", 1000, "--seconds", 100, "--bug", EXAMPLE)
    assert code == 1, output
    command = re.search(r"^# to repeat it: script/simulate (.*)$", output, re.MULTILINE)
    assert command, output
    for _ in range(2):
        again_code, again = simulate(*command.group(1).split())
        assert again_code == 1 and broken(again) == broken(output), again
    sound = [word for word in command.group(1).split() if word not in ("--bug", EXAMPLE)]
    code, output = simulate(*sound)
    assert code == 0, output


def the_bounds_hold_for_processes_side_by_side():
    code, output = simulate("--seed", 7, "--jobs", 2, "--runs", 3, "--seconds", 100)
    assert code == 0 and "# together: 6 runs" in output, output
    code, output = simulate("--seed", 7, "--jobs", 2, "--crashes", 20, "--seconds", 100)
    crashes = int(SAID.findall(output)[-1][1])
    assert code == 0 and 20 <= crashes < 200, output


def wrong_words_are_refused():
    for words in (["--seed", "x"], ["--runs", "-1"], ["--bug", "NONE"], ["--other"]):
        code, output = simulate(*words)
        assert code == 2 and "usage:" in output, output


def a_million_crashes_break_no_promise():
    code, output = simulate("--jobs", 2, "--crashes", CRASHES, "--seconds", SECONDS, build=None)
    assert code == 0, output
    print("\n".join(line for line in output.splitlines() if SAID.search(line)), flush=True)


def every_planted_defect_of_the_page_is_found():
    assert len(defects()) > 20
    for name in defects():
        code, output = simulate("--seed", 1, "--runs", SEEDS, "--seconds", SECONDS, "--bug", name, build=None)
        assert code == 1 and broken(output), "%s was not found\n%s" % (name, output)
        print("# %s: %s" % (name, broken(output)[0]), flush=True)


def main():
    tests = [a_seed_that_fails_is_printed_with_the_command_that_repeats_it, the_bounds_hold_for_processes_side_by_side,
             wrong_words_are_refused]
    if LONG:
        tests += [every_planted_defect_of_the_page_is_found, a_million_crashes_break_no_promise]
    if not has_defects():
        print("SKIPPED: %s was built without -Dplanted_bugs=true, so no seed of it fails" % BUILD)
        tests = tests[1:]
    wanted = [test for test in tests if all(word in test.__name__ for word in sys.argv[1:])]
    failed = 0
    for test in wanted:
        try:
            test()
            print("ok - %s" % test.__name__.replace("_", " "), flush=True)
        except AssertionError as error:
            failed += 1
            print("not ok - %s\n%s" % (test.__name__.replace("_", " "), error), flush=True)
    print("# %d passed, %d failed" % (len(wanted) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
