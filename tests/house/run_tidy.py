#!/usr/bin/env python3
"""run_tidy.py - the rules of tools/tidy over this repository, each rule a test; and each rule
over a small tree that breaks it, so that a rule which sees nothing is noticed."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
loader = importlib.machinery.SourceFileLoader("tidy", str(ROOT / "tools/tidy"))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
loader.exec_module(tidy)

# check: the files of a tree that breaks it, and where; then files that do not.
BROKEN = {
    "layers_include_only_downwards": [
        ("src/model/a.c", '/* a.c - x */\n#include "store/store.h"\n', 2),
        ("src/flow/a.c", '#include "machine/sort.h"\n', 1),
        ("src/surface/cli/a.c", '#include "engine/engine.h"\n', 1),
        ("src/main.c", '#include "api/ops.h"\n', 1),
        ("src/elsewhere/a.c", "int a;\n", 1),
    ],
    "private_headers_stay_in_their_folder": [
        ("src/engine/a.c", '#include "flow/flow_int.h"\n', 1),
        ("src/store/store.c", '#include "store/sqlite/sqlite_int.h"\n', 1),
    ],
    "libraries_have_one_place": [("src/engine/a.c", "\n#include <sqlite3.h>\n", 2)],
    "the_world_is_reached_through_its_door": [
        ("src/engine/a.c", "int f(void)\n{\n    return time(NULL);\n}\n", 3),
        ("src/flow/a.c", "int b = printf(0);\n", 1),
        ("src/api/a.c", "void *p = malloc (3);\n", 1),
        ("src/machine/a.c", "int c = getrandom(0, 0, 0) + usleep(1);\n", 1),
    ],
    "nobody_calls_unsafe_string_functions": [("tests/unit/a.c", "\n\nint d = strcpy(a, b);\n", 3)],
    "files_are_short": [("src/base/a.c", "\n" * 701, 701), ("tests/unit/a.c", "\n" * 1101, 1101)],
    "functions_fit_a_screen": [("src/base/a.c", "int f(void)\n{\n" + "    a();\n" * 69 + "}\n", 2)],
    "every_layer_has_a_readme": [("src/base/a.c", "", None), ("src/env/README.md", "short\n", 1)],
    "texts_are_clean": [
        ("src/base/a.c", "int a;\n\tint b;\n", 2),
        ("src/base/b.c", "int a; \n", 1),
        ("src/base/c.c", "int a;\r\n", 1),
        ("src/base/d.c", "/* %s: later */\n" % tidy.WORDS[0], 1),
        ("src/base/e.c", "int a;", 1),
    ],
    "every_file_says_what_it_is_for": [("src/base/a.c", "/* b.c - something else */\n", 1)],
    "every_source_is_built": [("tests/unit/a.c", "", 1), ("src/base/b.c", "", 1)],
    "lists_are_fresh": [
        ("include/pawl.h", "#define PAWL_STATUS_MAP(X) \\\n X(OK, 0, \"ok\", 200, \"done\")\n"
                           "typedef enum pawl_status {\n", None),
        ("docs/reference/status.md", "old\n", 1),
    ],
}
INNOCENT = [
    ("src/flow/a.c", '/* a.c - time( and printf( in words; #include "store/store.h" */\n'
                     '#include "machine/machine.h"\n#include "flow/flow_int.h"\n'
                     'const char *a = "printf(\\"%d\\") strcpy(";\nchar b = \'"\'; // rand()\n'
                     "int c = query_time(1) + env->random(2) + x.free(3) + heap_free(4);\n"),
    ("src/env/env_os.c", "/* env_os.c - x */\nint a = clock_gettime(1, 2);\n"),
    ("bench/peers/node_modules/b/c.h", "\tstrcpy(a, b); "),
    ("src/flow/meson.build", "files('a.c')\n"),
    ("src/env/meson.build", "files('env_os.c')\n"),
    ("src/flow/README.md", "line\n" * 20),
    ("src/env/README.md", "line\n" * 60),
    ("src/env/b.h", "/* b.h - x */\nint f(void)\n{\n" + "    a();\n" * 68 + "}\n"),
]


def write(root, files):
    for name, text, *_ in files:
        path = pathlib.Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def over_this_repository(check):
    found = list(check(tidy.Tree(ROOT)))
    assert not found, "\n".join("%s:%d: %s" % violation for violation in found)


def over_a_broken_tree(check):
    files = BROKEN[check.__name__]
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        found = {(name, line) for name, line, _ in check(tidy.Tree(root))}
    missed = [(name, line) for name, _, line in files if line is not None and (name, line) not in found]
    assert not missed, "not seen: %s, only %s" % (missed, sorted(found))


def over_an_innocent_tree(check):
    if check.__name__ == "lists_are_fresh":
        return  # over_this_repository() says the same
    with tempfile.TemporaryDirectory() as root:
        write(root, INNOCENT)
        found = list(check(tidy.Tree(root)))
    assert not found, "wrongly accused: %s" % found


def main():
    passed = failed = 0
    for check in tidy.CHECKS:
        for test in (over_this_repository, over_a_broken_tree, over_an_innocent_tree):
            try:
                test(check)
                passed += 1
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print("not ok - %s, %s:\n%s" % (check.__name__, test.__name__.replace("_", " "), error))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
