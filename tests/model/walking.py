"""walking.py - a model of flows and the reducer, taken along the same ways; what one says of each place, the other must say too.

A model is an object with: words(), what may happen next; refused(), pairs of what would be refused and why; after(word), the model after
it; line(), what is to be told of it (flow_walker.c says how); key(), equal for two that differ in nothing but their past."""
import json
import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", "build"))
LONG = os.environ.get("PAWL_TEST_LONG") == "1"


def text(value):
    return json.dumps(value, separators=(",", ":"))


def explore(model, depth, seen=None):
    """Every order of everything that may happen, `depth` events far; with `seen`, not again from where it was before. The ways as
    flow_walker.c reads them, and the lines it must answer."""
    lines, ways = [model.line()], []
    if seen is not None:
        if model.key() in seen:
            return "", lines
        seen.add(model.key())
    for word, reason in model.refused():
        ways.append(word)
        lines.append("refused " + reason)
    for word in model.words() if depth > 0 else ():
        further, told = explore(model.after(word), depth - 1, seen)
        ways.append(word + ("(%s)" % further if further else ""))
        lines += told
    return " ".join(ways), lines


def parsed(line):
    """As data: JSON may be written in more than one way."""
    parts = line.split("|")
    if len(parts) != 4:
        return line
    said = [word.split(" ", 2) for word in parts[3].split(";")] if parts[3] else []
    return parts[:2], json.loads(parts[2]), [(word, number, json.loads(value)) for word, number, value in said]


def same(expected, found):
    return expected == found or parsed(expected) == parsed(found)


def answers(cases):
    """What the reducer says to each pair of a definition and ways."""
    lines = "".join("%s\t%s\n" % (text(definition), ways) for definition, ways in cases)
    done = subprocess.run([str(BUILD / "tests/flow_walker")], input=lines.encode(), capture_output=True, timeout=3000)
    assert done.returncode == 0, done.stdout.decode()[-500:] + done.stderr.decode()[-2000:]
    blocks = done.stdout.decode().split("\n\n")[:-1]
    assert len(blocks) == len(cases), "%d answers to %d cases" % (len(blocks), len(cases))
    return [block.split("\n") for block in blocks]


class Tally:
    def __init__(self):
        self.cases = self.places = self.refused = 0

    def __str__(self):
        return "%d definitions, %d places, %d refusals" % (self.cases, self.places, self.refused)


def compare(cases, tally):
    """Of each case: its definition, the ways, what is to be answered; found() is handed what was found when it was put."""
    for (definition, ways, expected), found in zip(cases, answers([case[:2] for case in cases])):
        assert found[0].startswith("put"), "refused: " + text(definition)
        found = found[1:]
        assert len(found) == len(expected), "%s\n%s\n%d lines instead of %d" % (text(definition), ways, len(found), len(expected))
        for number, (wanted, told) in enumerate(zip(expected, found)):
            assert same(wanted, told), "%s\n%s\nline %d, after %s: the model says\n  %s\nthe reducer\n  %s" % (
                text(definition), ways, number, way_to(ways, number), wanted, told)
        tally.cases += 1
        tally.places += len(expected)
        tally.refused += sum(1 for line in expected if line.startswith("refused"))


def way_to(ways, number):
    """The events that lead to the line of this number."""
    path, at = [], 0
    for token in ways.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            path.append(None)
        elif token == ")":
            path.pop()
        else:
            at += 1
            path[-1:] = [token] if path else [token]
            if at == number:
                return [word for word in path if word]
    return []


def in_portions(cases, tally, places=300000):
    """So many places at a time, that not all of them have to be kept."""
    portion, count = [], 0
    for case in cases:
        portion.append(case)
        count += len(case[2])
        if count > places:
            compare(portion, tally)
            portion, count = [], 0
    compare(portion, tally)
    return tally


def main(tests):
    passed = failed = 0
    for name, test in list(tests.items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            passed += 1
            print("ok - " + name[5:].replace("_", " "), flush=True)
        except AssertionError as error:
            failed += 1
            print("not ok - %s\n%s" % (name[5:].replace("_", " "), error), flush=True)
    print("# %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0
