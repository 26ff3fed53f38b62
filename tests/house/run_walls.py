#!/usr/bin/env python3
"""The parts of the engine have walls: who touches another part's struct is counted.

A part of the engine (src/engine/PART/) has a struct of its own, struct engine's member of that name.
Its files use that struct; another part calls its functions. TOUCHES is how often files of one part
touch the struct of another. A count that grows fails; one that falls asks to be written down."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("writer", "actors", "work", "clock", "registry", "queries", "shell")
TOUCHES = {
    ("writer", "actors"): 8,
    ("writer", "work"): 2,
    ("writer", "clock"): 4,
    ("actors", "writer"): 16,
    ("actors", "work"): 4,
    ("work", "writer"): 2,
    ("clock", "writer"): 26,
    ("clock", "actors"): 3,
    ("clock", "work"): 3,
    ("registry", "writer"): 2,
    ("registry", "actors"): 2,
    ("queries", "writer"): 4,
    ("shell", "writer"): 10,
    ("shell", "work"): 5,
}
SLEEPS = re.compile(r"pthread_create|pthread_join|pthread_cond_(?:timed)?wait|guard_wait")
TOUCH = re.compile(r"\bengine->(%s)\." % "|".join(PARTS))


def touches(root):
    found = collections.Counter()
    for part in PARTS:
        for path in sorted((root / "src/engine" / part).glob("*.c")):
            for other in TOUCH.findall(path.read_text(encoding="utf-8")):
                if other != part:
                    found[part, other] += 1
    return found


def test_no_part_touches_anothers_struct_more_often_than_is_written_down(found):
    more = {way: count for way, count in found.items() if count > TOUCHES.get(way, 0)}
    assert not more, "call a function of that part instead: %s" % more


def test_a_count_that_fell_is_written_down(found):
    fewer = {way: found[way] for way, count in TOUCHES.items() if found[way] < count}
    assert not fewer, "lower TOUCHES to: %s" % fewer


def test_only_the_shell_starts_threads_and_waits_for_them(_):
    files = [path for path in sorted((ROOT / "src/engine").rglob("*.[ch]")) if path.parent.name != "shell"]
    found = ["%s: %s" % (path.relative_to(ROOT), word) for path in files for word in SLEEPS.findall(path.read_text(encoding="utf-8"))]
    assert not found, "the core waits for no thread: %s" % found


def main():
    found, failed = touches(ROOT), 0
    assert sum(found.values()) or not TOUCHES, "src/engine has no parts any more"
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    for test in tests:
        try:
            test(found)
            print("ok - %s" % test.__name__[5:].replace("_", " "))
        except AssertionError as error:
            failed += 1
            print("not ok - %s\n%s" % (test.__name__[5:].replace("_", " "), error))
    print("%d passed, %d failed" % (len(tests) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
