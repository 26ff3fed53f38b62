#!/usr/bin/env python3
"""run_flow_model.py - the reducer of flows against a model of it, written from the requirements and nothing else.

Trees (C3-C6, C11-C20): what a node came to is worked out from its leaves each time, from the root down; the reducer keeps
states and walks. Graphs (B12-B17): who can still arrive is searched for each time; the reducer has tables. Both are driven
through every outcome of every step and every order of events (flow_driver.c). Then the same with steps that are tried again, lost, too
late, or wait for a time, a signal, people, a child or the first of two (B29, B30, B34, B37, B38, X8), every kind beside every other.
PAWL_TEST_LONG=1: all trees up to four leaves and many more graphs; else all up to two leaves, and a sample of the others that is the
same every time."""
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys

import walking

BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", "build"))
LONG = os.environ.get("PAWL_TEST_LONG") == "1"

# ---- Fates: the first letter of a step's name says what happens to it (flow_driver.c has the same list) ----

STAGES = {"S": 1, "T": 1, "F": 1, "R": 3, "Q": 3, "L": 2, "O": 1, "W": 1, "V": 1, "G": 1, "A": 2, "J": 1, "B": 2, "E": 1,
          "C": 1, "D": 1, "K": 1}
BAD = "FQOJBDK"  # how it ends: Q has no attempt left, O was too late, J and B are rejected, D's and K's child fails and is cancelled


def fate_json(name):
    """A step of this fate, without its way."""
    again = {"max": 2, "backoff": ["1s"]}
    both, child = {"by": ["ann", "bob"], "count": 2}, {"spawn": {"definition": "kid"}}
    return {"R": {"tool": "x", "retry": again}, "Q": {"tool": "x", "retry": again},
            "L": {"tool": "x", "idempotent": True, "retry": again}, "O": {"tool": "x", "timeout": "5s", "retry": {"max": 1}},
            "W": {"wait": {"timer": "1s"}}, "V": {"wait": {"signal": name}}, "G": {"tool": None}, "J": {"tool": None},
            "A": {"tool": None, "approval": both}, "B": {"tool": None, "approval": both},
            "E": {"external": True}, "C": child, "D": child, "K": child}.get(name[0], {"tool": "x"})


# ---- Trees: a leaf is its name; ("do", [...]), ("dopar", [...]), ("try", forms, rescue, finally), ("select", name, [...], [...]) ----


def splits(count, parts):
    """Ways to give `count` leaves to `parts` places, each at least one."""
    if parts == 1:
        return [(count,)] if count > 0 else []
    return [(first, *rest) for first in range(1, count) for rest in splits(count - first, parts - 1)]


def lists(count, depth):
    """Lists of trees with so many leaves in all."""
    if count == 0:
        return [[]]
    return [list(items) for parts in range(1, count + 1) for split in splits(count, parts)
            for items in itertools.product(*(trees(size, depth) for size in split))]


KNOWN = {}


def trees(count, depth):
    if (count, depth) not in KNOWN:
        found = ["leaf"] if count == 1 else []
        if depth > 0:
            found += [(kind, items) for kind in ("do", "dopar") for items in lists(count, depth - 1)
                      if len(items) > 1 or items[0] != "leaf"]
            for forms in range(1, count + 1):
                for rescue in range(count - forms + 1):
                    found += [("try", a, b, c) for a in lists(forms, depth - 1) for b in lists(rescue, depth - 1)
                              for c in lists(count - forms - rescue, depth - 1)]
        KNOWN[count, depth] = found
    return KNOWN[count, depth]


def name_leaves(tree, names):
    if tree == "leaf":
        return next(names)
    if tree[0] == "select":
        return ("select", next(names), *([name_leaves(item, names) for item in arm] for arm in tree[1:]))
    if tree[0] == "if":
        return ("if", tree[1], *([name_leaves(item, names) for item in arm] for arm in tree[2:]))
    if tree[0] == "try":
        return ("try", *([name_leaves(item, names) for item in part] for part in tree[1:]))
    return (tree[0], [name_leaves(item, names) for item in tree[1]])


def as_json(tree):
    if isinstance(tree, str) and tree[0] in "STF":
        return {"name": tree, "action": "x", "payload": {}}
    if isinstance(tree, str):
        return {"name": tree, **fate_json(tree)}
    if tree[0] == "select":
        return {"name": tree[1], "select": [{"signal": tree[1], "do": [as_json(t) for t in tree[2]]},
                                            {"timer": "1s", "do": [as_json(t) for t in tree[3]]}]}
    if tree[0] == "if":
        words = ("context.none", "input", "steps")  # the first is nil; the others are there
        return {"if": words[tree[1] == 0], "then": [as_json(t) for t in tree[2]],
                "elif": [{"if": words[tree[1] == 1], "then": [as_json(t) for t in tree[3]]}], "else": [as_json(t) for t in tree[4]]}
    if tree[0] == "try":
        return {"try": [as_json(t) for t in tree[1]], "rescue": [as_json(t) for t in tree[2]],
                "finally": [as_json(t) for t in tree[3]]}
    if tree[0] == "timed":
        return {**as_json(tree[2]), "timeout": "1h"}
    return {tree[0]: [as_json(t) for t in tree[1]]}


def outcome(tree, answered):
    """None: not settled yet; else whether it succeeded."""
    if isinstance(tree, str):
        return None if answered.count(tree) < STAGES[tree[0]] else tree[0] not in BAD
    if tree[0] == "select":  # what it comes to is what came of the arm that was first
        for arm in (0, 1):
            if "%s/%d" % (tree[1], arm) in answered:
                return outcome(("do", tree[2 + arm]), answered)
        return None
    if tree[0] == "if":  # its conditions are known: what it comes to is what came of the arm that holds
        return outcome(("do", tree[2 + tree[1]]), answered)
    if tree[0] == "timed":  # from when its time was over only what cleans up goes on
        if tree[1] not in answered:
            return outcome(tree[2], answered)
        at = answered.index(tree[1])
        return False if rest(tree[2], answered[:at], answered[at + 1:])[0] else None
    if tree[0] == "do":
        for child in tree[1]:  # C11: a failed child stops it
            found = outcome(child, answered)
            if found is not True:
                return found
        return True
    if tree[0] == "dopar":  # C12, C14: settled when all are
        found = [outcome(child, answered) for child in tree[1]]
        return None if None in found else all(found)
    body = outcome(("do", tree[1]), answered)
    if body is False and tree[2]:  # C6
        body = outcome(("do", tree[2]), answered)
    if body is None:
        return None
    last = outcome(("do", tree[3]), answered)  # C15: what fails in finally fails it
    return None if last is None else body and last


def live(tree, answered):
    if isinstance(tree, str):
        return set() if answered.count(tree) == STAGES[tree[0]] else {tree}
    if tree[0] == "select":
        for arm in (0, 1):
            if "%s/%d" % (tree[1], arm) in answered:
                return live(("do", tree[2 + arm]), answered)
        return {tree[1]}
    if tree[0] == "if":
        return live(("do", tree[2 + tree[1]]), answered)
    if tree[0] == "timed":
        if outcome(tree, answered) is not None:
            return set()
        if tree[1] not in answered:
            return live(tree[2], answered) | {tree[1]}
        at = answered.index(tree[1])
        return rest(tree[2], answered[:at], answered[at + 1:])[1] | {tree[1]}
    if tree[0] == "do":
        for child in tree[1]:
            if outcome(child, answered) is not True:
                return set() if outcome(child, answered) is False else live(child, answered)
        return set()
    if tree[0] == "dopar":
        return set().union(*(live(child, answered) for child in tree[1]))
    forms = ("do", tree[1])
    if outcome(forms, answered) is None:  # C18, C19: the rest waits until all that was begun is over
        return live(forms, answered)
    if outcome(forms, answered) is False and tree[2] and outcome(("do", tree[2]), answered) is None:
        return live(("do", tree[2]), answered)
    return live(("do", tree[3]), answered)


def words_of(name, path=()):
    """What may happen to it next: one thing, or either arm of a select; of a group: its time is over, once."""
    if name[0].islower():
        return () if name in path else (name,)
    return (name + "/0", name + "/1") if name.startswith("X") else (name,)


def tree_paths(tree):
    ahead, found = [()], {}
    while ahead:
        path = ahead.pop()
        result = outcome(tree, path)
        if result is None:
            begun = live(tree, path)
            found[path] = (frozenset(begun), "running")
            ahead += [path + (word,) for name in begun for word in words_of(name, path)]
        else:
            found[path] = (frozenset(), "completed" if result else "failed")
    return found


# ---- Cancelled: what was open cleans up ----


def rest(tree, before, after):
    """A tree that was cancelled when `before` had been answered: (is it over, what is live), `after` having been answered since."""
    if isinstance(tree, str) or outcome(tree, before) is not None:
        return True, set()
    if tree[0] == "select":
        arms = [arm for arm in (0, 1) if "%s/%d" % (tree[1], arm) in before]
        return rest(("do", tree[2 + arms[0]]), before, after) if arms else (True, set())
    if tree[0] == "if":
        return rest(("do", tree[2 + tree[1]]), before, after)
    if tree[0] == "timed" and tree[1] in before:  # it cleaned up already
        at = before.index(tree[1])
        return rest(tree[2], before[:at], before[at + 1:] + after)
    if tree[0] == "timed":
        return rest(tree[2], before, after)
    if tree[0] == "do":
        return rest(next(child for child in tree[1] if outcome(child, before) is not True), before, after)
    if tree[0] == "dopar":
        all_of = [rest(child, before, after) for child in tree[1]]
        return all(over for over, _ in all_of), set().union(*(begun for _, begun in all_of))
    last, forms = ("do", tree[3]), ("do", tree[1])
    if outcome(forms, before) is None:
        over, begun = rest(forms, before, after)
    elif outcome(forms, before) is False and tree[2] and outcome(("do", tree[2]), before) is None:
        over, begun = rest(("do", tree[2]), before, after)
    else:
        over, begun = True, set()
    if not over:
        return over, begun
    return outcome(last, before + after) is not None, live(last, before + after) if outcome(last, before + after) is None else set()


def cancelled_paths(tree):
    found = tree_paths(tree)
    for before in [path for path, (_, state) in found.items() if state == "running"]:
        ahead = [()]
        while ahead:
            after = ahead.pop()
            over, begun = rest(tree, before, after)
            found[before + ("~",) + after] = (frozenset(begun), "cancelled" if over else "running")
            ahead += [after + (word,) for name in begun for word in words_of(name, before + after)]
    return found


# ---- Graphs: name -> (way, targets) ----


def reaches(graph, start, join, seen=()):
    """Can a step that is live at `start` still arrive at `join`?"""
    way, targets = graph[start]
    if way == "join" and targets[0] == join:
        return True
    return any(reaches(graph, target, join, seen + (start,)) for target in targets if target not in seen)


class Graph:
    def __init__(self, graph):
        self.graph, self.live, self.joining, self.state = graph, [], set(), "running"
        self.stages = {}  # of steps to which not everything has happened yet
        self.live.append(next(iter(graph)))

    def copy(self):
        other = Graph.__new__(Graph)
        other.graph, other.live, other.joining, other.state = self.graph, list(self.live), set(self.joining), self.state
        other.stages = dict(self.stages)
        return other

    def answer(self, word):
        name, _, arm = word.partition("/")
        way, targets = self.graph[name]
        self.stages[name] = self.stages.get(name, 0) + 1
        if self.stages[name] < STAGES.get(name[0], 1):
            return  # it stays live: there is more to come
        del self.stages[name]
        self.live.remove(name)
        if name[0] in BAD:  # a graph step that fails for good fails the flow at once
            self.state, self.live = "failed", []
            return
        if way == "done":
            self.state, self.live = "completed", []
            return
        if way in ("next", "parallel"):
            self.live += targets
        if way == "branch":  # B13: T goes to the first, null (of a timer) nowhere, others to the second, if there is one
            self.live += [] if name[0] == "W" else targets[:1] if name.startswith("T") else targets[1:]
        if way == "select":
            self.live.append(targets[int(arm)])
        if way == "join":
            self.joining.add(targets[0])
        for join in [n for n in self.graph if n in self.joining]:  # B15
            if not any(reaches(self.graph, step, join) for step in self.live):
                self.joining.discard(join)
                self.live.append(join)
        if not self.live:
            self.state = "failed"  # B13: nothing is left to run


class TimedGraph(Graph):
    """It has a time as a whole, whose row is live as long as the flow is: when it is over the flow has failed."""

    def __init__(self, graph):
        super().__init__(graph)
        self.live.append("steps")

    def copy(self):
        other = TimedGraph.__new__(TimedGraph)
        other.__dict__.update(super().copy().__dict__)
        return other

    def answer(self, word):
        self.live.remove("steps")
        if word == "steps":
            self.state, self.live = "failed", []
        else:
            super().answer(word)
        if self.state == "running":
            self.live.append("steps")


def timed_paths(graph):
    return graph_paths(graph, TimedGraph)


def timed_json(graph):
    return {"timeout": "1h", **graph_json(graph)}


def graph_paths(graph, of=Graph):
    ahead, found = [((), of(graph))], {}
    while ahead:
        path, at = ahead.pop()
        found[path] = (frozenset(at.live), at.state)
        for word in (word for name in set(at.live) for word in words_of(name)):
            after = at.copy()
            after.answer(word)
            ahead.append((path + (word,), after))
    return found


def graph_json(graph):
    steps = {}
    for name, (way, targets) in graph.items():
        step = {} if way == "select" else fate_json(name)
        if way == "select":
            step["select"] = [{"signal": name, "then": targets[0]}, {"timer": "1s", "then": targets[1]}]
        elif way == "done":
            step["done"] = True
        elif way == "branch":
            step["branch"] = [{"if": "result == " + word, "then": target} for word, target in zip(("true", "false"), targets)]
        else:
            step[way] = targets if way == "parallel" else targets[0]
        steps[name] = step
    return {"steps": steps}


def random_graph(roll, letters="STTF"):
    """Without cycles: every way leads to later steps. At most one attempt of a step is live at once."""
    count = roll.randint(2, 6 if letters == "STTF" else 5)
    names = [roll.choice("ST" if i == 0 else letters.replace("X", "") if i == count - 1 else letters) + str(i) for i in range(count)]
    graph = {}
    for i, name in enumerate(names):
        later = names[i + 1:]
        way = roll.choice(["next", "parallel", "branch", "join", "join", "done"]) if later else "done"
        way = "select" if name.startswith("X") else way
        if way == "parallel":
            graph[name] = (way, roll.sample(later, min(len(later), roll.randint(1, 3))))
        elif way == "branch":
            graph[name] = (way, roll.sample(later, min(len(later), roll.randint(1, 2))))
        elif way == "select":
            graph[name] = (way, [roll.choice(later), roll.choice(later)])
        else:
            graph[name] = (way, [roll.choice(later)] if way != "done" else [])
    return graph


# ---- Holding one against the other ----


def drive(cases, mark=""):
    """What the reducer does, for each case: path -> (live, state); None: refused when it was put."""
    lines = "".join(mark + json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([str(BUILD / "tests/flow_driver")], input=lines.encode(), capture_output=True, timeout=3000)
    assert done.returncode == 0, done.stdout.decode()[-500:] + done.stderr.decode()[-2000:]
    blocks = done.stdout.decode().split("\n\n")[:-1]
    assert len(blocks) == len(cases), "%d answers to %d cases" % (len(blocks), len(cases))
    for block in blocks:
        if block.startswith("refused"):
            yield None
            continue
        found = {}
        for row in block.split("\n"):
            path, begun, state = row.split("|")
            found[tuple(filter(None, path.split(",")))] = (frozenset(filter(None, begun.split(","))), state)
        yield found


def compare(cases, to_json, model, mark=""):
    paths = refused = 0
    for case, found in zip(cases, drive([to_json(case) for case in cases], mark)):
        if found is None:
            refused += 1
            continue
        expected = model(case)
        for path in sorted(set(expected) | set(found), key=len):
            assert expected.get(path) == found.get(path), "%s\nafter %s: the model says %s, the reducer %s" % (
                json.dumps(to_json(case)), list(path), expected.get(path), found.get(path))
        paths += len(found)
    return paths, refused


def tree_cases():
    sizes, roll = ((1, 2, 3, 4) if LONG else (1, 2, 3)), random.Random(5)
    for size in sizes:
        all_of = [t for t in trees(size, 3 if size < 4 else 2) if t != "leaf"]
        if not LONG and size > 2:
            all_of = roll.sample(all_of, 150)
        for tree in all_of:
            for outcomes in itertools.product("SF", repeat=size):
                yield name_leaves(tree, iter([word + str(i) for i, word in enumerate(outcomes)]))


def test_every_small_tree_does_what_the_model_says_in_every_order():  # C3-C6, C11-C20
    cases = [("do", [tree]) if isinstance(tree, str) else tree for tree in tree_cases()]
    paths, refused = compare(cases, as_json, tree_paths)
    assert refused == 0 and paths > 5000, (paths, refused)
    print("# %d trees, %d paths" % (len(cases), paths))


def has_twins(graph):
    """Two attempts of one step at once: their answers cannot be told apart by name."""
    ahead = [Graph(graph)]
    while ahead:
        at = ahead.pop()
        if len(at.live) != len(set(at.live)):
            return True
        for word in (word for name in at.live for word in words_of(name)):
            after = at.copy()
            after.answer(word)
            ahead.append(after)
    return False


def test_small_graphs_do_what_the_model_says_in_every_order():  # B12-B18
    roll = random.Random(7)
    cases = [g for g in (random_graph(roll) for _ in range(20000 if LONG else 1500)) if not has_twins(g)]
    paths, refused = compare(cases, graph_json, graph_paths)
    assert paths > 2000 and refused < len(cases) / 2, (paths, refused, len(cases))
    print("# %d graphs, %d refused when put, %d paths" % (len(cases), refused, paths))


def trees_with_ifs():
    """An if in every place of small trees, with each of its three arms, some of them empty, and one in another."""
    for arm, a, b, c in itertools.product(range(3), "SF", "SF", "SF"):
        full = ("if", arm, [a + "1"], [b + "2"], [c + "3"])
        bare = ("if", arm, [], [b + "2"], [])
        nested = ("if", arm, [("if", 2 - arm, [], [a + "1"], [c + "4"]), "S5"], [], [bare])
        for one in (full, bare, nested):
            yield from (("do", [one, "S6"]), ("do", ["S6", one, one_more(one)]), ("dopar", [one, b + "6"]), ("dopar", [bare_twin(one), one]),
                        ("try", [one], ["S6"], ["S7"]), ("try", [a + "6"], [one], ["S7"]), ("try", ["S6"], [], [one]))


def one_more(tree):
    return ("if", 0, ["S8"], [], [])


def bare_twin(tree):
    return ("if", 2, ["S8"], ["S9"], [])


def test_trees_with_conditions_do_what_the_model_says():
    cases = list(trees_with_ifs())
    paths, refused = compare(cases, as_json, tree_paths)
    assert refused == 0 and paths > 500, (paths, refused)
    print("# %d trees, %d paths" % (len(cases), paths))


def tries(roll, size, depth, number=None):
    """A random tree in which many a try has a finally, one within another."""
    number = number if number is not None else itertools.count()
    if size <= 1 or depth == 0:
        return roll.choice("SSSFQRWVX") + str(next(number)) if depth else roll.choice("SSF") + str(next(number))
    sizes = [1 + roll.randrange(size - 1)]
    sizes.append(size - sizes[0])
    parts = [tries(roll, one, depth - 1, number) for one in sizes]
    parts = [("select", part, ["S%d" % next(number)], []) if isinstance(part, str) and part[0] == "X" else part for part in parts]
    kind = roll.choice(["do", "dopar", "try", "try", "try"])
    if kind != "try":
        return (kind, parts)
    return ("try", [parts[0]], [roll.choice("SF") + str(next(number))] if roll.random() < 0.3 else [], [parts[1]])


def test_a_tree_that_is_cancelled_anywhere_cleans_up_as_the_model_says():
    roll = random.Random(17)
    cases = [tree for tree in (tries(roll, roll.randint(2, 4), 3) for _ in range(4000 if LONG else 250)) if not isinstance(tree, str)]
    paths, refused = compare(cases, as_json, cancelled_paths, "~")
    assert refused == 0 and paths > 5000, (paths, refused)
    print("# %d trees, %d paths" % (len(cases), paths))


def with_limits(roll, tree, path=""):
    """Some groups of it have a time, and are called by their paths as the compiler calls them."""
    if isinstance(tree, str):
        return tree
    below = path + "." if path else ""
    if tree[0] == "try":
        parts = [[with_limits(roll, one, "%s%s.%d" % (below, word, i)) for i, one in enumerate(part)]
                 for word, part in zip(("try", "rescue", "finally"), tree[1:])]
        return ("try", *parts)
    found = (tree[0], [with_limits(roll, one, "%s%s.%d" % (below, tree[0], i)) for i, one in enumerate(tree[1])])
    return ("timed", below + tree[0], found) if roll.random() < 0.7 else found


def test_a_tree_whose_groups_run_out_of_time_anywhere_goes_on_as_the_model_says():
    roll = random.Random(19)
    made = [tries(roll, roll.randint(2, 4), 3) for _ in range(6000 if LONG else 300)]
    cases = [with_limits(roll, tree) for tree in made if not isinstance(tree, str) and "select" not in str(tree) and "X" not in str(tree)]
    for mark, model in (("", tree_paths), ("~", cancelled_paths)):
        part = cases if LONG or not mark else cases[:60]
        paths, refused = compare(part, as_json, model, mark)
        assert refused == 0 and paths > 2000, (paths, refused)
        print("# %d trees, %d paths" % (len(part), paths))


# ---- The same with every fate ----


def fated_trees():
    """Every shape of two leaves with every pair of fates, and a select in each place; a sample of larger ones."""
    roll, letters = random.Random(11), list(STAGES)
    pairs = [t for t in trees(2, 2) if t != "leaf"]
    for tree in pairs if LONG else roll.sample(pairs, min(len(pairs), 30)):
        for outcomes in itertools.product(letters, repeat=2):
            yield name_leaves(tree, iter([word + str(i) for i, word in enumerate(outcomes)]))
    triples = [t for t in trees(3, 3) if t != "leaf"]
    for tree in roll.sample(triples, 1500 if LONG else 60):
        outcomes = [roll.choice(letters) for _ in range(3)]
        yield name_leaves(tree, iter([word + str(i) for i, word in enumerate(outcomes)]))
    for a, b, c in itertools.product("SFRQWGJ" if LONG else "SFQ", repeat=3):
        select = ("select", "X0", [a + "1"], [b + "2"])
        yield from (select, ("do", [select, c + "3"]), ("dopar", [select, c + "3"]), ("try", [select], [c + "3"], ["S4"]),
                    ("try", [c + "3"], [select], []), ("select", "X0", [], [("dopar", [a + "1", b + "2", c + "3"])]))


def test_trees_whose_steps_wait_are_tried_again_or_rejected_do_what_the_model_says():  # B29, B30, B34, B37, B38, C11-C20, X8
    cases = [("do", [tree]) if isinstance(tree, str) or tree[0] == "select" else tree for tree in fated_trees()]
    paths, refused = compare(cases, as_json, tree_paths)
    assert refused == 0 and paths > 10000, (paths, refused)
    print("# %d trees, %d paths" % (len(cases), paths))


def test_graphs_whose_steps_wait_are_tried_again_or_rejected_do_what_the_model_says():  # B12-B17, B29, B30, B34, B37, B38, X8
    roll = random.Random(13)
    letters = "".join(STAGES) + 3 * "X"
    cases = [g for g in (random_graph(roll, letters) for _ in range(6000 if LONG else 700)) if not has_twins(g)]
    paths, refused = compare(cases, graph_json, graph_paths)
    assert paths > 2000 and refused < len(cases) / 2, (paths, refused, len(cases))
    print("# %d graphs, %d refused when put, %d paths" % (len(cases), refused, paths))


def test_graphs_that_have_a_time_as_a_whole_end_with_it_or_as_ever():
    roll = random.Random(23)
    letters = "".join(STAGES) + 3 * "X"
    cases = [g for g in (random_graph(roll, letters) for _ in range(2000 if LONG else 150)) if not has_twins(g)]
    paths, refused = compare(cases, timed_json, timed_paths)
    assert paths > 500 and refused < len(cases) / 2, (paths, refused, len(cases))
    print("# %d graphs, %d refused when put, %d paths" % (len(cases), refused, paths))


if __name__ == "__main__":
    sys.exit(walking.main(globals()))
