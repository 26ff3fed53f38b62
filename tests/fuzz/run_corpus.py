#!/usr/bin/env python3
"""run_corpus.py - every fuzz target over its kept inputs, without libFuzzer: what was once found
stays fixed. script/fuzz looks for more."""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
from sentences import BUILD, build_compiler, main, sh  # noqa: E402
import targets  # noqa: E402


def run(name):
    files = targets.corpus(name)
    assert files, "tests/fuzz/corpus/%s is empty" % name
    with targets.folder() as folder:
        program = pathlib.Path(folder) / name
        sh(*targets.command(build_compiler(), name, BUILD / "libpawl_core.a", program,
                            [targets.HERE / "drive.c"]))
        said = sh(program, *files, env={"PAWL_FUZZ_FOLDER": folder}).splitlines()
    assert said == [str(path) for path in files], said


for target in targets.names():
    globals()["test_%s_takes_every_kept_input" % target] = lambda name=target: run(name)

main(globals())
