#!/usr/bin/env python3
"""run_embed.py - programs of other people: they have pawl.h and a library, and nothing else."""
import contextlib
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
sys.dont_write_bytecode = True
from sentences import BUILD, LIBRARIES, ROOT, Skip, build_compiler, main, sh  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
EMBED = ROOT / "examples/embed.c"
SAYS = ["no 'ship' from 'new'; legal now: pay, drop", "1 new -> paid"]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


@contextlib.contextmanager
def program(source, library):
    """Compile against one library; gives (program, environment, an empty folder)."""
    with tempfile.TemporaryDirectory(prefix="pawl-embed-") as folder:
        out, empty = pathlib.Path(folder) / "program", pathlib.Path(folder) / "empty"
        empty.mkdir()
        link = [BUILD / "libpawl.a"] + LIBRARIES if library == "static" else ["-L", BUILD, "-lpawl", "-lpthread"]
        sh(*build_compiler(), *WARNINGS, "-D_GNU_SOURCE", "-g", "-I", ROOT / "include", source, "-o", out, *link)
        yield out, {"LD_LIBRARY_PATH": str(BUILD)}, empty


def run(source, library, *words):
    with program(source, library) as (out, environment, empty):
        return sh(out, *words, cwd=empty, env=environment).splitlines()


def run_twice(library):
    with program(EMBED, library) as (out, environment, empty):
        for _ in range(2):  # the second time the store is there, and has the definition
            said = sh(out, cwd=empty, env=environment).splitlines()
            assert said == SAYS, "expected %s, found %s" % (SAYS, said)
        assert (empty / "orders.db").exists()


def test_the_program_of_the_design_runs_twice_with_the_static_library():
    run_twice("static")


def test_the_program_of_the_design_runs_twice_with_the_shared_library():
    run_twice("shared")


def c_block(page):
    """The C program with pawl_open in a page of Markdown, or None."""
    blocks = re.findall(r"^```c\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return next((block for block in blocks if "pawl_open" in block), None)


def test_the_readme_shows_that_very_program():
    page = ROOT / "README.md"
    if not page.exists() or c_block(page) is None:
        raise Skip("README.md shows no program with pawl_open")
    assert c_block(page) == EMBED.read_text(), "README.md and examples/embed.c differ"


def expect_loop(library):
    said = run(HERE / "host_loop.c", library)
    assert said[0] == "completed \"result\":{\"grams\":250", said
    assert said[1:] == ["completed \"result\":3", "weighed 2 times"], said


def test_a_host_without_threads_drives_a_flow_and_code():
    expect_loop("static")


def test_a_host_without_threads_does_so_with_the_shared_library():
    expect_loop("shared")


def expect_threads(*words):
    said = run(HERE / "many_threads.c", "static", *words)
    assert said == ["1200 pressed, 200 of them on one lamp", "valid"], said


def test_many_threads_share_a_store_in_memory():
    expect_threads("memory:", "shared")


def test_many_threads_share_a_file():
    expect_threads("sqlite:lamps.db", "shared")


def test_many_threads_share_an_owned_file_with_workers():
    expect_threads("sqlite:lamps.db", "own")


main(globals())
