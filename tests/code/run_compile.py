#!/usr/bin/env python3
"""What a compiler says of durable code: nothing where it is right, and a clear word where a name is wrong."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
from sentences import ROOT, main  # noqa: E402

COMPILERS = ["gcc"] + [name for name in ("clang",) if shutil.which(name)]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", str(ROOT / "include")]
CODE = """#include <pawl_code.h>
#define LIST(has) has(var, uint32_t, n) has(timer, Tick) has(signal, Go, uint32_t) has(await, one) has(await, two)
PAWL_CODE(sample, LIST)
{
    PAWL_BEGIN(LIST);
    PAWL_TIMER(one, Tick, PAWL_SECS(1));
    %s
    PAWL_END;
}
"""


def compile_text(compiler, text, standard="c11"):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "sample.c"
        path.write_text(text)
        done = subprocess.run([compiler, "-std=" + standard, *WARNINGS, str(path)], capture_output=True)
    return done.returncode, done.stderr.decode()


def test_the_examples_compile_without_a_warning():
    for compiler in COMPILERS:
        for standard in ("c11", "c17"):
            done = subprocess.run([compiler, "-std=" + standard, "-O1", *WARNINGS, str(ROOT / "examples/code/flows.c")],
                                  capture_output=True)
            assert done.returncode == 0, done.stderr.decode()


def test_right_code_compiles():
    for compiler in COMPILERS:
        code, said = compile_text(compiler, CODE % "PAWL_SIGNAL(two, Go); self->n = got->Go;")
        assert code == 0, said


def refused(body, *words):
    for compiler in COMPILERS:
        code, said = compile_text(compiler, CODE % body)
        assert code != 0 and all(word in said for word in words), (compiler, body, said)


def test_a_place_that_stands_twice_is_a_duplicate_case():
    refused("PAWL_SIGNAL(two, Go); PAWL_SIGNAL(two, Go);", "duplicate case value")


def test_a_place_that_is_not_declared_is_named():
    refused("PAWL_SIGNAL(two, Go); PAWL_SIGNAL(three, Go);", "pawl_await_three_", "undeclared")


def test_a_place_that_stands_nowhere_is_named():
    refused("self->n = 1;", "pawl_await_two_", "not handled in switch")


def test_a_timer_signal_or_variable_that_is_not_declared_is_named():
    refused("PAWL_TIMER(two, Tock, 1);", "pawl_timer_Tock_", "undeclared")
    refused("PAWL_SIGNAL(two, Stop);", "pawl_signal_Stop_", "undeclared")
    refused("PAWL_SIGNAL(two, Go); self->m = 1;", "no member named")


main(globals())
