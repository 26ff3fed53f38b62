#!/usr/bin/env python3
"""run_kinds.py - a step kind is a row of src/flow/kinds.h: no other file asks which kind a step is.

Allowed are kinds.h, kinds.c and step_<kind>.c. Everything else reads a column of the row, so that a
new kind is one row, one file and no branch elsewhere (docs/internals/adding.md)."""
import importlib.machinery
import importlib.util
import re
import sys

from sentences import ROOT, main

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("tidy", str(ROOT / "tools/tidy"))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
loader.exec_module(tidy)

OWN = re.compile(r"src/flow/(kinds\.[ch]|step_\w+\.c)$")


def listed(text):
    """The kinds that the list has, however many lines it takes."""
    return re.findall(r"X\((\w+)\)", re.search(r"#define STEP_KINDS\(X\)((?:.*\\\n)*.*)", text).group(1))


KINDS = listed((ROOT / "src/flow/kinds.h").read_text())
# A lookup by a word that is written in the code: the default of a document and of a plan, and what
# an amend removes.
LOOKUPS_MAX = 3


def elsewhere(pattern):
    """Places in src/ that match, comments not counted, except in the kinds' own files."""
    found = []
    for name, text in tidy.Tree(ROOT).sources("src"):
        if OWN.match(name):
            continue
        for number, line in enumerate(tidy.without_comments(text).split("\n"), 1):
            found += ["%s:%d" % (name, number)] * len(re.findall(pattern, line))
    return found


def test_the_list_is_read_whole_on_one_line_and_on_several():
    assert listed("#define STEP_KINDS(X) X(a) X(b)\n\nX(c)\n") == ["a", "b"]
    assert listed("#define STEP_KINDS(X)   \\\n    X(a) X(b) \\\n    X(c)\n#define X(d)\n") == ["a", "b", "c"]
    rows = [row for path in sorted((ROOT / "src/flow").glob("*.c"))
            for row in re.findall(r"^const struct step_kind step_kind_(\w+) = \{", path.read_text(), re.M)]
    assert sorted(rows) == sorted(KINDS), (rows, KINDS)


def test_no_file_but_its_own_names_the_row_of_a_kind():
    found = elsewhere(r"\bstep_kind_(%s)\b|\bSTEP_KIND_(?!COUNT\b)\w+" % "|".join(KINDS))
    assert not found, "ask a column of the row instead (src/flow/kinds.h): " + ", ".join(found)


def test_hardly_any_file_looks_a_kind_up_by_a_word_of_its_own():
    found = elsewhere(r'\bstep_kind_find\(STR\("|\?[^?]*: STR\("(%s)"\), step->tool' % "|".join(KINDS))
    assert len(found) <= LOOKUPS_MAX, "%d, at most %d: %s" % (len(found), LOOKUPS_MAX, ", ".join(found))


def test_each_kind_has_a_row_in_its_file_or_in_kinds_c():
    for kind in KINDS:
        own = ROOT / ("src/flow/step_%s.c" % kind)
        path = own if own.exists() else ROOT / "src/flow/kinds.c"
        assert "const struct step_kind step_kind_%s = {" % kind in path.read_text(), path


main(globals())
