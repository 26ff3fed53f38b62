#!/usr/bin/env python3
"""run_look.py - tools/look over small trees: what it objects to, and what it lets pass."""
import pathlib
import subprocess
import sys
import tempfile

LOOK = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/look"

# name of the test: files, the exit status of --check, words of what is printed
TRIES = {
    "a door that opens both ways is named with both includes": (
        {"src/a/a.h": '#include "b/b.h"\n', "src/b/b.h": "\n", "src/b/b.c": '\n#include "a/a.h"\n'}, 1,
        ["a and b include each other: src/a/a.h:1 b/b.h; src/b/b.c:2 a/a.h"]),
    "a folder may share the headers of the folder that it is in": (
        {"src/a/a.h": "\n", "src/a/x.c": '#include "a/in/in.h"\n', "src/a/in/in.h": '#include "a/a.h"\n'}, 0,
        ["a/in                 -> a (1)"]),
    "a struct name that is used twice is named with its places": (
        {"src/a/a.c": "struct twin {\n};\n", "src/b/b.c": "\nstruct twin {\n};\n"}, 1,
        ["struct twin: src/a/a.c:1, src/b/b.c:2"]),
    "a file name that is used twice is named with its places": (
        {"src/a/same.c": "int a;\n", "src/b/same.c": "int b;\n"}, 1,
        ["file same.c: src/a/same.c, src/b/same.c"]),
    "a struct that is only mentioned, also in a comment, is not a definition": (
        {"src/a/a.c": "struct one {\n};\n", "src/b/b.c": "struct one;\n/*\nstruct one {\n*/\n"}, 0,
        ["0 struct names and 0 file names are used twice"]),
    "code, comments and blank lines are counted apart": (
        {"src/a/a.c": "/* a.c - x\n * y */\n\nint a; /* z */\nint b;\n"}, 0,
        ["a                         1       2         3        0"]),
    "archaic words are found in comments, strings and pages, and not in code": (
        {"src/a/a.c": '/* whoever */\nint nobody;\nconst char *t = "anew";\n', "docs/x.md": "It is told.\n"}, 0,
        ["3 archaic words"]),
    "long lines of pages are counted, but not of their code blocks and tables": (
        {"src/a/a.c": "int a;\n", "docs/x.md": "%s\n\n    %s\n\n```sh\n%s\n```\n| %s |\n" % (("x" * 101,) * 4)}, 0,
        ["1 lines of prose over 100 columns"]),
    "more long lines than are left are an objection, and are named": (
        {"src/a/a.c": "int a;\n", "docs/x.md": "%s\n" % ("x" * 101) * 9}, 1,
        ["9 lines of prose over 100 columns", "docs/x.md:1 xxx"]),
    "migrations are frozen and what man shows as it is is code: both may be long": (
        {"src/a/a.c": "int a;\n", "src/store/sqlite/schema/001_x.sql": "-- %s\n" % ("x" * 101) * 9,
         "man/man1/x.1": ".nf\n%s\n.fi\nx\n" % ("x" * 101)}, 0,
        ["0 lines of prose over 100 columns"]),
    "comments that claim a lock and assertions are counted": (
        {"src/a/a.c": "/* Lock held. */\nvoid f(void)\n{\n    ASSERT_LOCKED(a);\n}\n"}, 0,
        ["1 assertions, 1 comments that claim a lock"]),
}


def look(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, LOOK, "--check", root], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    failed = 0
    for name, (files, status, expected) in TRIES.items():
        found, text = look(files)
        wrong = [words for words in expected if words not in text]
        failed += bool(wrong) or found != status
        print("%s - %s" % ("not ok" if wrong or found != status else "ok", name))
        if wrong or found != status:
            print("  expected status %d and %r, found %d and:\n%s" % (status, wrong, found, text))
    done = subprocess.run([sys.executable, LOOK, "--check"], capture_output=True, text=True)
    failed += done.returncode != 0
    print("%s - this repository has no door both ways, no name twice and no new long lines" % (
        "not ok" if done.returncode else "ok"))
    if done.returncode:
        print(done.stdout)
    print("%d passed, %d failed" % (len(TRIES) + 1 - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
