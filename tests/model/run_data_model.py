#!/usr/bin/env python3
"""run_data_model.py - what flows carry along, against a model of it: attempts that are tried again (B29, B30, X8), children, signals that are kept
until somebody awaits them (once, oldest first), the context, and templates and conditions that read it (B21, C24-C27).

In all graphs of one and two steps with their cycles and of three without, and in trees; every outcome, and every order of events. Written from
DESIGN.md section 4 and "Exact words" of section 5; who goes where is run_graph_model.py's, and run_flow_model.py's for trees."""
import itertools
import json
import random
import re
import sys

sys.dont_write_bytecode = True
import run_flow_model as trees_of  # noqa: E402
from run_graph_model import NAMES, WORD, Graph, graphs, has_cycle  # noqa: E402
from walking import LONG, Tally, explore, in_portions, main, text  # noqa: E402

# ---- What a step is, by its letter ----

AGAIN = {"retry": {"max": 2, "backoff": ["1s"]}, "timeout": "5s"}
SPAWN = {"definition": "kid", "input": {"n": "{{input.q}}"}}
KINDS = {"T": {"tool": "x"}, "R": {"tool": "x", **AGAIN}, "N": {"tool": "x", "idempotent": False, **AGAIN}, "A": {"wait": {"signal": "a"}},
         "B": {"wait": {"signal": "b"}}, "C": {"spawn": SPAWN}, "D": {"spawn": {**SPAWN, "on_parent_end": "abandon"}}}
TOOLS, CHILDREN, SIGNALS = "TRN", "CD", {"A": "a", "B": "b", "X": "a"}  # X: the signal a, or a timer
KEPT = {"signals": {"a": {"buffer": True}}}

# ---- The context and what reads it ----


def look_up(value, path):
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return ""  # a missing path is ""
        value = value[key]
    return value


def expand(value, world):
    """Templates at any depth; one that is all of a string keeps its type."""
    if isinstance(value, dict):
        return {key: expand(one, world) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{\{([\w./-]+)\}\}", value)
    if whole:
        return look_up(world, whole.group(1).split("."))
    return re.sub(r"\{\{([\w./-]+)\}\}", lambda found: as_text(look_up(world, found.group(1).split("."))), value)


def as_text(value):
    return value if isinstance(value, str) else text(value)


def put(context, dest, value):
    """`context` with `value` at the path; what stands in the way is replaced."""
    key, rest = dest[0], dest[1:]
    old = context.get(key)
    return {**context, key: put(old if isinstance(old, dict) else {}, rest, value) if rest else value}


def augmented(context, augment, result):
    for dest, source in augment.items():  # C25; later ones see what earlier ones put
        context = put(context, dest.split("."), result if source == "identity" else look_up(result, source.split(".")))
    return context


AUGMENTS = [{"v": "identity"}, {"deep.x": "n", "v": "b"}, {"deep": "n", "w.y.z": "identity"}]
ARGS = {"v": "{{context.v}}", "n": "{{context.v.n}}", "r": {"of": "{{steps.start.result}}"}, "s": "{{input.q}}: {{context.deep}}, {{context.none}}",
        "i": "{{input.q}}"}
OUTPUT = {"all": "{{context}}", "n": "n={{steps.start.result.n}}"}


# ---- Graphs ----


class Rich(Graph):
    """A graph whose steps do more than succeed or fail. `signals` may be sent so often; with `data` there are results and a context."""

    def __init__(self, graph, signals=0, data=False):
        self.tries, self.context, self.results, self.kept, self.sent = {}, {}, {}, (), 0
        self.signals, self.data, self.begun = signals, data, ()
        super().__init__(graph, False)
        self.settle()

    def definition(self):
        steps = {}
        for number, (kind, way, targets) in enumerate(self.graph):
            names = [NAMES[target] for target in targets]
            step = dict(KINDS.get(kind, {}))
            if kind == "X":
                step["select"] = [{"signal": "a", "then": names[0]}, {"timer": "1s", "then": names[1]}]
            elif way == "branch":
                told = "(result.b == %s)" if self.data else "result == %s"
                step["branch"] = [{"if": told % word, "then": name} for word, name in zip(("true", "false"), names)]
            else:
                step[way] = {"done": True, "parallel": names}.get(way) or names[0]
            if self.data:
                step["augment"] = AUGMENTS[number]
                step.update({"args": ARGS} if kind == "T" else {})
            elif kind in "AB":
                step["augment"] = {"got": "identity"}
            steps[NAMES[number]] = step
        return {"steps": steps, **(KEPT if self.signals else {}), **({"output": OUTPUT} if self.data else {})}

    # What is told

    def status(self, ordinal, step):
        return self.tries.get(ordinal, (1, "running" if self.graph[step][0] in TOOLS else "pending"))

    def line(self):
        live = ",".join("%d:%s:%d:%s" % (ordinal, NAMES[step], *self.status(ordinal, step)) for ordinal, step in self.live)
        return "%s|%s|%s|%s" % (self.state, live, text(self.context), self.said)

    def key(self):
        live = tuple((step, *self.status(ordinal, step)) for ordinal, step in self.live)
        return live, self.waiting, self.state, text(self.context), self.kept, self.sent

    # What may happen

    def words(self):
        if self.state != "running" or len(self.live) > len(self.graph) + 1:
            return
        for ordinal, step in self.live:
            yield from self.words_of(ordinal, self.graph[step][0], self.graph[step][1], step)
        if self.sent < self.signals:
            yield "0s@a=%d" % (self.sent + 1)
            if any(self.graph[step][0] == "B" for _, step in self.live):
                yield "0s@b=%d" % (self.sent + 1)

    def words_of(self, ordinal, kind, way, step):
        results = [self.result_of(ordinal, truth) for truth in ((True, False) if way == "branch" else (True,))]
        if kind in TOOLS and self.status(ordinal, step)[1] == "pending":
            yield "%dr" % ordinal
            return
        if kind in TOOLS:
            yield from ("%dd=%s" % (ordinal, text(result)) for result in results)
            yield '%dx="bad"' % ordinal
        if kind in "RN":
            yield from ('%de="bad"' % ordinal, "%dl" % ordinal, "%do" % ordinal)
        if kind in CHILDREN:
            yield from ("%dc=%s" % (ordinal, text(result)) for result in results)
            yield from ('%dy="oh"' % ordinal, "%dz" % ordinal)
        if kind == "X":
            yield "%dw@%s" % (ordinal, NAMES[step])

    def result_of(self, ordinal, truth):
        return {"n": ordinal, "b": truth} if self.data else truth

    def refused(self):
        for ordinal, step in self.over:  # answers to what is over
            kind = self.graph[step][0]
            if kind in TOOLS:
                yield "%dd=true" % ordinal, "lease-lost"
            elif kind in CHILDREN:
                yield "%dc=true" % ordinal, "not-awaiting"
            elif kind == "X":
                yield "%dw@%s" % (ordinal, NAMES[step]), "not-awaiting"
        for ordinal, step in self.live:
            if self.graph[step][0] in TOOLS and self.status(ordinal, step)[1] == "pending":
                yield "%dd=true" % ordinal, "lease-lost"  # its backoff is not over
            elif self.graph[step][0] in "RN":
                yield "%dr" % ordinal, "not-awaiting"
            elif self.graph[step][0] == "T":
                yield "%dc=true" % ordinal, "not-awaiting"  # it has no child
        if self.signals:
            if self.state != "running":
                yield "0s@a=9", "terminal"
            elif not any(self.graph[step][0] == "B" for _, step in self.live):
                yield "0s@b=9", "not-awaiting"  # it is not one of those that are kept

    # What happens

    def after(self, word):
        other = Rich.__new__(Rich)
        other.__dict__.update(self.__dict__)
        other.tries, other.begun, other.over, other.said = dict(self.tries), (), (), ""
        ordinal, letter, name, value = WORD.match(word).groups()
        other.happen(int(ordinal), letter, name, json.loads(value) if value else None)
        other.settle()
        return other

    def begin(self, step):
        super().begin(step)
        self.begun += (self.last,)

    def happen(self, ordinal, letter, name, value):
        if letter == "s":
            self.sent += 1
            waits = [one for one, step in self.live if SIGNALS.get(self.graph[step][0]) == name]
            if waits:
                self.succeed(waits[0], value, 0)  # the oldest
            else:
                self.kept += ((name, value),)
        elif letter == "r":
            self.tries[ordinal] = (self.tries[ordinal][0], "running")
            self.begun += (ordinal,)
        elif letter in "elo":
            self.fail(ordinal, {"e": value, "l": "lost", "o": self.timeout(ordinal)}[letter], letter)
        elif letter in "xyz":
            self.fail(ordinal, {"x": value, "y": {"reason": "child-failed", "error": value}, "z": "child-cancelled"}[letter], None)
        else:
            self.succeed(ordinal, value, 1)

    def remove(self, ordinal):
        step = dict(self.live)[ordinal]
        self.live = tuple(one for one in self.live if one[0] != ordinal)
        self.over += ((ordinal, step),)
        return step

    def timeout(self, ordinal):
        step = dict(self.live)[ordinal]
        is_last = self.graph[step][0] == "R" or self.status(ordinal, step)[0] == 2
        return "timeout" if is_last else "timeout: its outcome is unknown, and it is declared idempotent: false, so it is not run again"

    def fail(self, ordinal, error, letter):
        attempt = self.status(ordinal, dict(self.live)[ordinal])[0]
        step = self.remove(ordinal)
        if letter is None or attempt == 2 or (letter in "lo" and self.graph[step][0] == "N"):
            self.end("failed", text(error))
            return
        self.begin(step)  # lost: at once; else after a while
        self.tries[self.last] = (attempt + 1, "running" if letter == "l" else "pending")

    def succeed(self, ordinal, value, arm):
        step = self.remove(ordinal)
        kind, way, targets = self.graph[step]
        if kind == "X":
            value, targets, way = {"arm": arm, "payload": value}, targets[arm:arm + 1], "next"
        self.results = {**self.results, NAMES[step]: {"result": value}}
        self.context = augmented(self.context, AUGMENTS[step] if self.data else {"got": "identity"} if kind in "AB" else {}, value)
        if way == "done":
            self.end("completed", text(expand(OUTPUT, self.world()) if self.data else value))
        elif way == "branch":
            self.go_on(way, targets, text(value["b"] if self.data else value))
        else:
            self.go_on(way, targets, None)

    def world(self):
        return {"input": {"q": 7}, "context": self.context, "steps": self.results}

    def settle(self):
        """Kept signals are taken by who has begun to wait, the oldest by the oldest; then what has begun is told."""
        while self.state == "running" and self.take_kept():
            pass
        said = [] if self.said == "" else [self.said]
        told = dict(self.live)
        children = [(ordinal, self.graph[step][0]) for ordinal, step in self.every_begun() if self.graph[step][0] in CHILDREN]
        said[:0] = ["%s %d %s" % ("spawn" if kind == "C" else "abandon", ordinal, text({"n": 7})) for ordinal, kind in children]
        if self.data:
            said += ["call %d %s" % (ordinal, text(expand(ARGS, self.world()))) for ordinal in self.begun
                     if ordinal in told and self.graph[told[ordinal]][0] == "T"]
        self.said = ";".join(said)

    def every_begun(self):
        steps = dict(self.live + self.over)
        return [(ordinal, steps[ordinal]) for ordinal in self.begun]

    def take_kept(self):
        for ordinal, step in self.live:
            for place, (name, value) in enumerate(self.kept):
                if SIGNALS.get(self.graph[step][0]) == name:
                    self.kept = self.kept[:place] + self.kept[place + 1:]
                    self.succeed(ordinal, value, 0)
                    return True
        return False


def fits(graph):
    """A select has two ways, a signal's payload is no truth to branch by."""
    return all((kind == "X") <= (way == "branch" and len(targets) == 2) and (kind in "AB") <= (way != "branch") for kind, way, targets in graph)


def graph_cases(sizes, must, depth, **how):
    for size in sizes:
        for graph in filter(fits, graphs(*size)):
            if not any(kind in must for kind, _, _ in graph):
                continue
            model = Rich(graph, **how)
            is_many = has_cycle(graph) or (len(graph) > 2 and any(kind in "RN" for kind, _, _ in graph))
            yield (model.definition(), *explore(model, depth if is_many or how.get("signals") else 99, set() if is_many else None))


def test_steps_that_are_tried_again_lost_or_late_keep_to_their_attempts_in_every_small_graph():  # B29, B30, B34, X8
    sizes = ((1, "RN"), (2, "TRN"), *(((3, "TR", True),) if LONG else ()))
    print("# %s" % in_portions(graph_cases(sizes, "RN", 6 if LONG else 4), Tally()))


def test_children_end_the_step_that_waits_for_them_in_every_small_graph():
    sizes = ((1, "CD"), (2, "TCD"), (3, "TC", True))
    print("# %s" % in_portions(graph_cases(sizes, "CD", 6 if LONG else 5), Tally()))


def test_kept_signals_are_taken_once_and_in_order_in_every_small_graph():
    sizes = ((1, "AB"), (2, "TABX"), (3, "TAB" if LONG else "TA", True, ("twice", "branch")))
    print("# %s" % in_portions(graph_cases(sizes, "ABX", 7 if LONG else 5, signals=3 if LONG else 2), Tally()))


def test_the_context_and_what_reads_it_are_what_the_model_says_in_every_small_graph():  # B19, B21, C24-C26
    sizes = ((1, "T"), (2, "T"), (3, "T", True))
    print("# %s" % in_portions(graph_cases(sizes, "T", 5, data=True), Tally()))


def mixed_graphs():
    """A join at step 4, at which 1 waits and 3 may still arrive; meanwhile 2 leads to that step on a way of its own, and it may be tried again."""
    ways = [("T", "next", (4,)), ("T", "parallel", (4, 5)), ("T", "branch", (4,)), ("T", "branch", (5, 4)), ("X", "branch", (5, 4))]
    for way, kind, then, last in itertools.product(ways, "TR", (("branch", (5,)), ("join", (5,))), (("done", ()), ("join", (4,)))):
        yield (("T", "parallel", (1, 2, 3)), ("T", "join", (4,)), way, ("T", "branch", (1,)), (kind, *then), ("T", *last))


def test_who_waits_at_a_join_is_not_forgotten_when_its_step_begins_on_other_ways_or_again():  # B15
    cases = ((model.definition(), *explore(model, 9 if LONG else 7, set())) for model in map(Rich, mixed_graphs()))
    print("# %s" % in_portions(cases, Tally()))


def rolled(roll):
    """A larger graph with few joins, and ways that lead to their steps directly as well."""
    count = roll.randint(4, 6)
    joins = roll.sample(range(1, count), roll.choice((1, 1, 2)))
    graph = [(roll.choice("TR"), "parallel", tuple(roll.sample(range(1, count), roll.randint(2, 3))))]
    for number in range(1, count):
        ahead = [*range(number + 1, count)] + joins + ([0] if roll.random() < 0.1 else [])
        way = roll.choice(("join", "join", "next", "parallel", "branch", "branch", "done" if number == count - 1 else "join"))
        targets = {"join": [roll.choice(joins)], "next": [roll.choice(ahead)], "done": []}.get(way)
        if targets is None:
            targets = [roll.choice(ahead) for _ in range(roll.randint(1, 2))]
        graph.append((roll.choice("TTRC" if way == "branch" else "TTRCA"), way, tuple(targets)))
    return tuple(graph)


def rolled_cases(count):
    roll = random.Random(19)
    for _ in range(count):
        model = Rich(rolled(roll), signals=1)
        yield (model.definition(), *explore(model, 7, set()))


def test_larger_graphs_that_mix_all_of_it_do_what_the_model_says():  # B12-B18, B29
    print("# a sample: %s" % in_portions(rolled_cases(5000 if LONG else 80), Tally()))


# ---- Trees: leaves S succeed, F fail, C, D and K have a child that ends well, fails and is cancelled, M awaits a kept signal ----


trees_of.STAGES["M"] = 1
PART = {"S": {"action": "x"}, "F": {"action": "x"}, "C": {"spawn": SPAWN}, "D": {"spawn": SPAWN}, "K": {"spawn": SPAWN}, "M": KINDS["A"]}


def leaves_of(tree):
    if isinstance(tree, str):
        return [tree]
    return [leaf for part in tree[1:] for item in part for leaf in leaves_of(item)]


class Tree:
    """Each try has its own error: `errors` has what every leaf failed with, the rest follows from the tree (C27)."""
    def __init__(self, tree, signals):
        self.tree, self.leaves, self.signals = tree, leaves_of(tree), signals
        self.answered, self.live, self.last, self.state = (), (), 0, "running"
        self.context, self.results, self.errors, self.kept, self.sent = {}, {}, {}, (), 0
        self.turn(lambda: None)

    def args(self):
        return {**ARGS, "r": {"of": "{{steps.%s.result}}" % self.leaves[0]}, "e": "{{context.exec/last-error}}"}

    def definition(self):
        def part(tree):
            if isinstance(tree, str):
                more = {"payload": self.args()} if tree[0] in "SF" else {}
                return {"name": tree, "augment": AUGMENTS[int(tree[1:])], **PART[tree[0]], **more}
            if tree[0] == "try":
                return dict(zip(("try", "rescue", "finally"), [[part(one) for one in items] for items in tree[1:]]))
            return {tree[0]: [part(one) for one in tree[1]]}

        return {**part(self.tree), **KEPT}

    def line(self):
        live = ",".join("%d:%s:1:%s" % (ordinal, leaf, "running" if leaf[0] in "SF" else "pending") for ordinal, leaf in self.live)
        return "%s|%s|%s|%s" % (self.state, live, text(self.context), self.said)

    def refused(self):
        if self.state != "running":
            yield "0s@a=9", "terminal"

    def words(self):
        for ordinal, leaf in self.live:
            word = {"S": 'd={"n":%d,"b":true}', "F": 'x={"e":%d}', "C": 'c={"n":%d,"b":1}', "D": 'y="oh%d"', "K": "z"}.get(leaf[0])
            if word:
                yield "%d%s" % (ordinal, word % ordinal if "%" in word else word)
        if self.state == "running" and self.sent < self.signals:
            yield '0s@a={"n":%d,"b":0}' % (100 + self.sent)

    def after(self, word):
        other = Tree.__new__(Tree)
        other.__dict__.update(self.__dict__)
        ordinal, letter, _, value = WORD.match(word).groups()
        other.turn(lambda: other.happen(int(ordinal), letter, json.loads(value) if value else None))
        return other

    def happen(self, ordinal, letter, value):
        if letter == "s":
            self.sent, self.kept = self.sent + 1, self.kept + (value,)
        elif letter in "dc":
            self.succeed(ordinal, value)
        else:
            self.fail(ordinal, {"x": value, "y": {"reason": "child-failed", "error": value}, "z": "child-cancelled"}[letter])

    def settle(self, ordinal):
        leaf = dict(self.live)[ordinal]
        self.live = tuple(one for one in self.live if one[0] != ordinal)
        self.answered += (leaf,)
        return leaf

    def succeed(self, ordinal, value):
        leaf = self.settle(ordinal)
        self.results = {**self.results, leaf: {"result": value}}
        self.context = augmented(self.context, AUGMENTS[int(leaf[1:])], value)

    def fail(self, ordinal, error):
        self.errors = {**self.errors, self.settle(ordinal): error}
        self.context = {**self.context, "exec/last-error": error}

    def failed(self, tree):
        return trees_of.outcome(tree, self.answered) is False

    def settled_at(self, tree):
        return max(self.answered.index(leaf) for leaf in leaves_of(tree) if leaf in self.answered)

    def error_of(self, tree):
        """What failed it: the branch of a dopar that was the last to fail; a finally before a rescue before the forms."""
        if isinstance(tree, str):
            return self.errors[tree]
        if tree[0] == "try":
            return self.error_of(next(("do", part) for part in reversed(tree[1:]) if self.failed(("do", part))))
        failed = [one for one in tree[1] if self.failed(one)]
        return self.error_of(max(failed, key=self.settled_at) if tree[0] == "dopar" else failed[0])

    def seen_by(self, leaf, tree):
        """The error of the innermost try in whose rescue or finally the leaf is; () if there is none."""
        if isinstance(tree, str):
            return ()
        for place, part in enumerate(tree[1:]):
            for one in part:
                if leaf not in leaves_of(one):
                    continue
                around = tree[1:1 + place] if tree[0] == "try" else ()
                failed = [("do", before) for before in reversed(around) if self.failed(("do", before))]
                return self.seen_by(leaf, one) or tuple(self.error_of(before) for before in failed[:1])
        return ()

    def is_after_forms(self, leaf, tree):
        """Is the leaf in the rescue or finally of a try?"""
        if isinstance(tree, str):
            return False
        for place, part in enumerate(tree[1:]):
            for one in part:
                if leaf in leaves_of(one):
                    return (tree[0] == "try" and place > 0) or self.is_after_forms(leaf, one)
        return False

    def turn(self, happens):
        """Something happens, what follows begins, and what was kept for it is taken, until nothing more follows."""
        before = self.last
        happens()
        self.go_on()
        waits = [ordinal for ordinal, leaf in self.live if leaf[0] == "M"]
        while self.state == "running" and self.kept and waits:
            value, self.kept = self.kept[0], self.kept[1:]
            self.succeed(waits[0], value)
            self.go_on()
            waits = [ordinal for ordinal, leaf in self.live if leaf[0] == "M"]
        self.tell(before)

    def go_on(self):
        result = trees_of.outcome(self.tree, self.answered)
        if result is not None:
            self.state, self.live = "completed" if result else "failed", ()
            return
        begun = trees_of.live(self.tree, self.answered) - {leaf for _, leaf in self.live}
        for leaf in (one for one in self.leaves if one in begun):
            self.last += 1
            self.live += ((self.last, leaf),)

    def world(self, leaf):
        errors = self.seen_by(leaf, self.tree) or (("",) if self.is_after_forms(leaf, self.tree) else ())
        seen = {"exec/last-error": error for error in errors}
        return {"input": {"q": 7}, "context": {**self.context, **seen}, "steps": self.results}

    def tell(self, before):
        new = [(ordinal, leaf) for ordinal, leaf in self.live if ordinal > before]
        said = ["spawn %d %s" % (ordinal, text({"n": 7})) for ordinal, leaf in new if leaf[0] in "CDK"]
        said += {"completed": ["end 0 " + text(self.context)], "failed": ["end 0 " + text(self.error_of(self.tree))] if self.state == "failed" else []}.get(self.state, [])
        said += ["call %d %s" % (ordinal, text(expand(self.args(), self.world(leaf)))) for ordinal, leaf in new if leaf[0] in "SF"]
        self.said = ";".join(said)


def all_trees():
    """All of one and two leaves with everything that may come of them; of three a sample."""
    roll = random.Random(17)
    for size, depth in ((1, 2), (2, 2)):
        for tree in trees_of.trees(size, depth):
            for letters in itertools.product(PART, repeat=size):
                yield tree, letters
    triples = trees_of.trees(3, 3)
    for tree in triples if LONG else roll.sample(triples, 800):
        for _ in range(4 if LONG else 1):
            yield tree, [roll.choice(list(PART)) for _ in range(3)]


def tree_cases():
    for tree, letters in all_trees():
        named = trees_of.name_leaves(tree, iter(letter + str(number) for number, letter in enumerate(letters)))
        model = Tree(("do", [named]) if isinstance(named, str) else named, 2 if "M" in letters else 0)
        yield (model.definition(), *explore(model, 99))


def test_trees_carry_context_errors_children_and_kept_signals_as_the_model_says():  # B21, C24-C27
    print("# %s" % in_portions(tree_cases(), Tally()))


if __name__ == "__main__":
    sys.exit(main(globals()))
