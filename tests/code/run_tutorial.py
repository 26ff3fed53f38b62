#!/usr/bin/env python3
"""docs/durable-code.md: every block is compiled and run as it stands there."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "house")]
from web import harness  # noqa: E402
from sentences import BUILD, build_compiler  # noqa: E402

PAGE = (harness.ROOT / "docs/durable-code.md").read_text()
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
MIGRATION = """#include "%s"
#include <pawl_test.h>
int main(void)
{
    pawl_kit kit;
    pawl_kit_open(&kit, "sqlite:moves.db");
    pawl_kit_register(&kit, invoice());
    %s
    pawl_kit_close(&kit);
    return 0;
}
"""
OLD = """const char *id = pawl_kit_start(&kit, "invoice", "{\\"cents\\":500}");
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "payment", "200"));
    puts(id);"""
NEW = """const char *id = getenv("ID");
    PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "payment", "300"));
    PAWL_EXPECT_HISTORY(&kit, id, "start signal:payment amend signal:payment finish");
    PAWL_EXPECT_RESULT(&kit, id, "{\\"paid\\":5}");"""


def environment(shell):
    """Headers and libraries as if they were installed; the compiler of the build under test."""
    tools = shell.folder / "bin"
    tools.mkdir()
    compiler = build_compiler()
    for name in ("cc", "c++"):
        words = " ".join([shutil.which(compiler[0]) or compiler[0]] + compiler[1:])  # not this very cc
        if name == "c++":
            words = re.sub(r"\bcc\b", "c++", words).replace("gcc", "g++").replace("clang", "clang++")
        (tools / name).write_text('#!/bin/sh\ncase " $* " in *" -shared "*) exec %s "$@";; esac\nexec %s "$@"\n' % (
            words.split(" -f")[0], words))
        (tools / name).chmod(0o755)
    (tools / "pawl").symlink_to(os.path.abspath(harness.PAWL))
    return dict(os.environ, PATH="%s:%s" % (tools, os.environ["PATH"]), C_INCLUDE_PATH=str(harness.ROOT / "include"),
                CPLUS_INCLUDE_PATH=str(harness.ROOT / "include"),
                LIBRARY_PATH=str(BUILD), LD_LIBRARY_PATH=str(BUILD), PKG_CONFIG_PATH=str(BUILD / "meson-private"))


def run(shell, text, names):
    """A block of shell commands; a server in the background is given time until it answers, and ended."""
    script = text.replace(" &\n", " > ready.txt &\nserver=$!\nuntil grep -q ready ready.txt; do sleep 0.05; done\n")
    script = "set -e\n" + script + ('kill $server\nwait $server\n' if "server=$!" in script else "")
    done = subprocess.run(["sh", "-c", script], cwd=shell.folder, env=names, capture_output=True, timeout=120)
    assert done.returncode == 0, (text, done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode()


def test_every_block_of_the_page_runs(shell):
    names, said = environment(shell), ""
    for language, file, text in BLOCK.findall(PAGE):
        if file:
            shell.write(file, text)
        elif language == "sh":
            said += run(shell, text, names)
    assert said.startswith("ok\n"), said
    assert '"owed"' in said or "owed" in said, said
    assert "payment" in said, said


def test_the_migration_of_the_page_brings_an_instance_over(shell):
    names = environment(shell)
    for language, file, text in BLOCK.findall(PAGE):
        if file:
            shell.write(file, text)
    shell.write("old.c", MIGRATION % ("invoice.h", OLD))
    shell.write("new.c", MIGRATION % ("invoice2.h", NEW))
    for compiler in ("cc -Wall", "c++ -x c++ -std=c++17 -Wall"):
        id = run(shell, compiler + " -o old old.c -lpawl\n./old\n", names).strip()
        run(shell, compiler + " -o new new.c -lpawl\n./new\npawl --store sqlite:moves.db verify\n", dict(names, ID=id))


def test_each_line_of_the_table_of_what_may_change_has_a_test_of_its_own(shell):
    del shell
    table = PAGE[PAGE.index("| what changes |"):].split("\n\n")[0].splitlines()[2:]
    lines = [line.split(" | ")[0].removeprefix("| ") for line in table]
    tested = re.findall(r"^/\* \| (.*) \| \*/$", (HERE / "change.c").read_text(), re.MULTILINE)
    assert len(lines) > 10 and sorted(set(tested)) == sorted(lines), sorted(set(tested) ^ set(lines))


if __name__ == "__main__":
    harness.main(globals())
