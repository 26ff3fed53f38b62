#!/usr/bin/env python3
"""run_reference.py - docs/reference/ and man/ are what the program says of itself."""
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys

from sentences import BUILD, ROOT, Skip, main

PAWL = os.environ.get("PAWL", str(BUILD / "pawl"))


def load():
    loader = importlib.machinery.SourceFileLoader("gen_reference", str(ROOT / "tools/gen-reference"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


TOOL = load()
MADE = TOOL.pages(os.path.abspath(PAWL))


def test_every_page_is_what_the_program_says():
    wrong, left = TOOL.stale(MADE)
    assert not wrong and not left, "run tools/gen-reference: stale are %s" % ", ".join(wrong + left)


def test_every_operation_and_every_verb_has_its_place():
    pages = "".join(text for path, text in MADE.items() if path.endswith(".md"))
    rows = [name for name, _, _, _ in TOOL.operations(TOOL.ask_document(PAWL))]
    assert len(rows) > 40 and all("\n## %s\n" % name in pages for name in rows)
    verbs = [line.split()[0] for line in TOOL.ask_help(PAWL).split("\nEverywhere")[0].split("\n") if line.startswith("  ")][1:]
    assert len(verbs) > 20 and len(verbs) == len(set(verbs)), "a verb is there twice: %s" % sorted(verbs)
    for verb in verbs:
        assert "man/man1/pawl-%s.1" % verb in MADE and "\n### %s\n" % verb in pages, verb


def test_a_changed_page_would_be_seen():
    other = {**MADE, "man/man1/pawl.1": MADE["man/man1/pawl.1"] + "more"}
    assert TOOL.stale(other)[0] == ["man/man1/pawl.1"]
    assert TOOL.stale({k: v for k, v in MADE.items() if k != "man/man1/pawl.1"})[1] == ["man/man1/pawl.1"]


def test_the_man_pages_are_clean_roff():
    if not shutil.which("groff"):
        raise Skip("there is no groff here")
    for path, text in MADE.items():
        if path.startswith("man/"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text.encode(), capture_output=True, timeout=60)
            assert done.returncode == 0 and not done.stderr, "%s: %s" % (path, done.stderr.decode())


main(globals())
