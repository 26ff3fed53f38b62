#!/usr/bin/env python3
"""run_citations.py - every line of docs/internals/requirements.md is cited by a test, or says here
why it is not. A citation is the line's id in a comment or a docstring of tests/: `D19`, or
`D20-D23` for all of them; or in the name of a test: `b14_b15_a_join_happens_once`."""
import re

from sentences import ROOT, main

PAGE = "docs/internals/requirements.md"
# A24-A33 are tasks over MCP and validation as a workflow: not machines, and not built yet.
NOT_BUILT = ["A%d" % number for number in range(24, 34)]
LINES = [line for line in re.findall(r"^- ([A-EX]\d+) ", (ROOT / PAGE).read_text(), re.MULTILINE)
         if line not in NOT_BUILT]

NOT_TESTED = {
    "D46": "a list of what the machine does not do; there is nothing to see of it",
    "A10": "compensation is a reserved word, refused until it is built",
    "A36": "a list of what the seed leaves out",
    "E32": "a comparison with doing it by hand: each of its claims is another line of E",
    "E33": "a list of what it is not for; there is nothing to see of it",
    "B46": "a list of what the seed leaves out",
    "C32": "tables of the seed's SQL runner; ours are on docs/format.md",
    "C40": "pruning a tree in memory; a plan is compiled and never changed",
}
CITATION = re.compile(r"\b([A-EX])(\d+)(?:\s?[-\u2013]\s?\1?(\d+))?\b")
NAME = re.compile(r"TEST\(\w+,\s*(\w+)\)|def test_(\w+)\(")  # b14_b15_a_join_happens_once
ITSELF = "tests/house/run_citations.py"


def cited_in(text):
    """The ids that a text cites, ranges written out."""
    for letter, first, last in CITATION.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield letter + str(number)
    for names in NAME.findall(text):
        for word in "".join(names).split("_"):
            if re.fullmatch(r"[a-ex]\d+", word):
                yield word.upper()


def citations():
    """id -> the files that cite it."""
    found = {}
    for path in sorted(p for ending in ("c", "h", "py") for p in (ROOT / "tests").rglob("*." + ending)):
        name = str(path.relative_to(ROOT))
        for line in cited_in(path.read_text()) if name != ITSELF else ():
            found.setdefault(line, set()).add(name)
    return found


def test_every_line_is_cited_by_a_test_or_says_why_not():
    found = citations()
    missing = [line for line in LINES if line not in found and line not in NOT_TESTED]
    assert not missing, "no test cites %s: write one, or say why not in NOT_TESTED" % ", ".join(missing)


def test_the_page_has_each_line_once_and_in_order():
    lines = re.findall(r"^- ([A-EX])(\d+) ", (ROOT / PAGE).read_text(), re.MULTILINE)
    for letter in "ABCDEX":
        numbers = [int(number) for found, number in lines if found == letter]
        assert numbers == list(range(1, len(numbers) + 1)), "%s: %s" % (letter, numbers)


def test_what_is_excused_is_not_tested_after_all():
    found = citations()
    for line, why in NOT_TESTED.items():
        assert line in LINES and len(why) > 20, "%s: no such line, or no reason" % line
        assert line not in found, "%s is cited by %s: take it out of NOT_TESTED" % (line, ", ".join(sorted(found[line])))


def test_the_search_sees_citations_and_nothing_else():
    assert list(cited_in("/* D20-D23, A17 */ and D7-9")) == ["D20", "D21", "D22", "D23", "A17", "D7", "D8", "D9"]
    assert list(cited_in("A-17 AD5 D xD3 PD4")) == []
    assert list(cited_in("TEST(flow, b14_b15_a_join)\ndef test_c8_it(shell): c9_no()")) == ["B14", "B15", "C8"]


main(globals())
