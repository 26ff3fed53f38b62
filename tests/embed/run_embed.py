#!/usr/bin/env python3
"""run_embed.py - programs of other people: they have pawl.h and a library, and nothing else."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
sys.dont_write_bytecode = True
from sentences import BUILD, LIBRARIES, ROOT, Skip, build_compiler, main, need, need_long, sh  # noqa: E402

EXAMPLES = ROOT / "examples/embed"
PAWL = BUILD / "pawl"
EMBED = ROOT / "examples/embed.c"
SAYS = ["no 'ship' from 'new'; legal now: pay, drop", "1 new -> paid"]
ONE_FILE = tempfile.TemporaryDirectory(prefix="pawl-embed-")  # pawl.o of the amalgamation
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


@contextlib.contextmanager
def program(source, library):
    """Compile against one library; gives (program, environment, an empty folder)."""
    with tempfile.TemporaryDirectory(prefix="pawl-embed-") as folder:
        out, empty = pathlib.Path(folder) / "program", pathlib.Path(folder) / "empty"
        empty.mkdir()
        more = ["-lsqlite3"] if "sqlite3.h" in source.read_text() else []
        link = {"static": [BUILD / "libpawl.a", *LIBRARIES], "shared": ["-L", BUILD, "-lpawl", "-lpthread"],
                "one file": [ONE_FILE.name + "/pawl.o", *LIBRARIES, "-lm"]}[library]
        sh(*build_compiler(), *WARNINGS, "-D_GNU_SOURCE", "-g", "-I", ROOT / "include", source, "-o", out, *link, *more)
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


def compile_one_file(compiler, *options):
    sh(need("ninja"), "-C", BUILD, "amalgamation/pawl.c")
    sh(compiler, *options, "-Wall", "-Werror", "-c", BUILD / "amalgamation/pawl.c", "-o", ONE_FILE.name + "/pawl.o", timeout=1200)


def test_the_library_in_one_file_is_compiled_by_one_command_and_has_no_other_names():
    compile_one_file("cc", "-O0")
    names = [line.split()[-1] for line in sh("nm", "-g", "--defined-only", ONE_FILE.name + "/pawl.o").splitlines()]
    assert "pawl_open" in names and all(name.startswith("pawl_") for name in names), names
    run_twice("one file")


def c_block(page):
    """The C program with pawl_open in a page of Markdown, or None."""
    blocks = re.findall(r"^```c\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return next((block for block in blocks if "pawl_open" in block), None)


def test_the_page_about_embedding_shows_that_very_program():
    page = ROOT / "docs/embedding.md"
    assert c_block(page) == EMBED.read_text(), "docs/embedding.md and examples/embed.c differ"


def expect_loop(library):
    said = run(EXAMPLES / "loop.c", library)
    assert said[:2] == ["the host got 'x'", "completed \"result\":{\"grams\":250"], said
    assert said[2:] == ["completed \"result\":3", "weighed 2 times"], said


def test_a_host_without_threads_drives_a_flow_and_code():
    expect_loop("static")


def test_a_host_without_threads_does_so_with_the_shared_library():
    expect_loop("shared")


def expect_threads(*words, library="static"):
    said = run(EXAMPLES / "threads.c", library, *words)
    assert said == ["1200 pressed, 200 of them on one lamp", "valid"], said


def test_many_threads_share_a_store_in_memory():
    expect_threads("memory:", "shared")


def test_many_threads_share_a_file():
    expect_threads("sqlite:lamps.db", "shared")


def test_many_threads_share_an_owned_file_with_workers():
    expect_threads("sqlite:lamps.db", "own")


def expect_join(library):
    with program(EXAMPLES / "join.c", library) as (out, environment, empty):
        said = sh(out, cwd=empty, env=environment).splitlines()
        assert said == ["silver was taken back, its process too", "tea is paid"], said
        return_values = sh("sqlite3", empty / "shop.db", "SELECT count(*) FROM orders").split()
        assert return_values == ["1"], return_values
        expect_readable(empty / "shop.db")


def expect_readable(path):
    """The host's file, by every program that reads a store."""
    store = ["--store", "sqlite:%s" % path]
    assert "valid" in sh(PAWL, *store, "verify")
    assert "paid" in sh(PAWL, *store, "sql", "SELECT current_state FROM pawl_instances")
    sh(sys.executable, ROOT / "tools/verify.py", path)
    sh("sqlite3", path, "UPDATE pawl_log SET at = at + 1 WHERE pos = 2")
    for words in ([PAWL, *store, "verify"], [sys.executable, ROOT / "tools/verify.py", path]):
        try:
            sh(*words)
        except AssertionError:
            continue
        raise AssertionError("%s did not see what was changed" % words[0])


def test_a_host_joins_pawl_to_its_own_transaction_and_every_program_reads_its_file():
    expect_join("static")


def test_a_host_joins_pawl_to_its_own_transaction_with_the_shared_library():
    expect_join("shared")


def test_a_host_killed_at_each_sync_finds_its_row_and_the_entry_both_or_neither():
    strace = shutil.which("strace")
    if not strace:
        raise Skip("there is no strace here")
    with program(EXAMPLES / "join.c", "static") as (out, environment, empty):
        environment["ASAN_OPTIONS"] = "detect_leaks=0"  # it can't work in a process that is traced
        seen = set()
        for n in range(1, 40):
            path = empty / ("shop-%d.db" % n)
            done = subprocess.run([strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e",
                                   "inject=fdatasync,fsync:signal=SIGKILL:when=%d" % n, out, path],
                                  cwd=empty, capture_output=True, env=dict(os.environ, **environment))
            seen.add(count_both(path))
            if done.returncode == 0:
                break
        assert done.returncode == 0 and seen == {0, 1}, (done.returncode, seen)


def count_both(path):
    """How many orders there are, each with its process that was paid."""
    db = sqlite3.connect(path)
    tables = {name for name, in db.execute("SELECT name FROM sqlite_schema")}
    rows = db.execute("SELECT count(*) FROM orders").fetchone()[0] if "orders" in tables else 0
    paid = 0
    if "pawl_instances" in tables:
        paid = db.execute("SELECT count(*) FROM pawl_instances WHERE current_state = 'paid'").fetchone()[0]
        assert db.execute("SELECT count(*) FROM pawl_instance").fetchone()[0] == rows
        sh(PAWL, "--store", "sqlite:%s" % path, "verify")
    assert rows == paid, (rows, paid)
    db.close()
    return rows


@contextlib.contextmanager
def installed():
    """A folder with everything as it is installed: (folder, what pkg-config says of a package, the environment to run in)."""
    need("pkg-config")
    with tempfile.TemporaryDirectory(prefix="pawl-embed-") as folder:
        sh(need("meson"), "install", "-C", BUILD, "--destdir", folder, "--no-rebuild", "--quiet")
        found = next(pathlib.Path(folder).rglob("pawl.pc"))
        environment = {"PKG_CONFIG_PATH": str(found.parent)}
        prefix = folder + sh("pkg-config", "--variable=prefix", "pawl", env=environment).strip()

        def flags(package):  # a sysroot would be put before the folders of other packages too
            return sh("pkg-config", "--cflags", "--libs", "--define-variable=prefix=" + prefix, package, env=environment).split()

        yield pathlib.Path(folder), flags, {"LD_LIBRARY_PATH": str(found.parent.parent)}


def test_once_installed_pkg_config_names_what_a_host_and_the_modules_it_loads_need():
    with installed() as (folder, flags, environment):
        for package in ("pawl", "pawl-static"):
            sh(*build_compiler(), EMBED, *flags(package), "-o", folder / "program")
            os.makedirs(folder / package)
            said = sh(folder / "program", cwd=folder / package, env=environment).splitlines()
            assert said == SAYS, said
        sh("cc", *WARNINGS, "-shared", "-fPIC", *[f for f in flags("pawl") if f.startswith("-I")],
           ROOT / "examples/code/flows.c", "-o", folder / "flows.so")
        for package, words in (("pawl", []), ("pawl-static", []), ("pawl-main", ["-DFULL"])):
            sh(*build_compiler(), *WARNINGS, *words, ROOT / "tests/embed/modules.c", *flags(package), "-o", folder / "program")
            run = ["run", "combat", "--test", "--input", '{"target_id":7,"damage":20}', "--module"] if words else []
            said = sh(folder / "program", *run, folder / "flows.so", cwd=folder, env=environment)
            assert 'hit {"target":7,"damage":20}\n' in said, (package, said)


def expect_plan(library):
    said = run(EXAMPLES / "plan.c", library)
    assert [line[:20] for line in said] == ['[{"node":1,"action":', '[{"node":5,"action":', '[{"node":8,"action":', "[]", "success",
                                            "results: node 99 is "], said


def test_a_tree_is_run_by_another_program():  # C8
    expect_plan("shared")


def expect_next(library):
    said = [json.loads(line) for line in run(EXAMPLES / "next.c", library)]
    assert [[step["name"] for step in turn["steps"]] for turn in said] == [["start"], ["fan"], ["mail", "print"], [], ["end"], []], said
    assert said[2]["steps"][0]["args"] == {"to": "ann"} and said[3]["joined"] == ["end"], said
    assert [turn["status"] for turn in said] == 5 * ["pending"] + ["success"] and said[-1]["result"] == 2, said


def test_a_graph_is_run_by_another_program():  # B18
    expect_next("shared")


def expect_every_program(compiler):
    compile_one_file(compiler, "-O2")
    run_twice("one file")
    expect_loop("one file")
    expect_threads("memory:", "shared", library="one file")
    expect_threads("sqlite:lamps.db", "own", library="one file")
    expect_join("one file")
    expect_plan("one file")
    expect_next("one file")


def test_every_program_runs_with_the_library_in_one_file_that_gcc_compiles_without_a_warning():
    need_long("compiling it with -O2")
    expect_every_program(need("gcc"))


def test_every_program_runs_with_the_library_in_one_file_that_clang_compiles_without_a_warning():
    need_long("compiling it with -O2")
    expect_every_program(need("clang"))


def test_the_page_about_embedding_names_every_program_and_shows_what_it_quotes():
    page = (ROOT / "docs/embedding.md").read_text()
    for source in sorted(EXAMPLES.glob("*.c")):
        assert "examples/embed/%s" % source.name in page, source.name
    programs = "".join(p.read_text() for p in [EMBED, *EXAMPLES.glob("*.c")])
    for block in re.findall(r"^```c\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        assert block in programs, "docs/embedding.md quotes what is in no program:\n%s" % block


main(globals())
