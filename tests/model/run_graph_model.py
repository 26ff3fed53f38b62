#!/usr/bin/env python3
"""run_graph_model.py - ALL graphs up to a small size, cycles among them, against a model of them (B10-B18, B38).

The model is written from the requirements: who can still arrive at a join is searched for in the graph, each time anew. Every graph is
taken through every outcome of every step, every time it is reached, in every order. Graphs that differ in their names alone are one; the order in which its
steps are written down is none of a graph's business but where two joins wait for each other, so each is written forwards and backwards.
Then the validator: what it refuses, and what it warns of, against a check of the model's own."""
import itertools
import re
import sys

sys.dont_write_bytecode = True
from walking import LONG, Tally, answers, explore, in_portions, main, text  # noqa: E402

NAMES = ["start", "b", "c", "d", "e", "f"]
WORD = re.compile(r"(\d+)(.)(?:@([^=]*))?(?:=(.*))?$")
WAITS = "GW"  # a gate, a timer; T is a tool; E2 is a tool whose error leads to step 2

# ---- All graphs: a list of (kind, way, targets), the first being the first ----


def ways_of(count):
    numbers = range(count)
    yield ("done", ())
    for target in numbers:
        yield from (("next", (target,)), ("join", (target,)), ("branch", (target,)), ("twice", (target, target)))
    for pair in itertools.product(numbers, repeat=2):
        yield ("branch", pair)
    for size in range(2, count + 1):
        for targets in itertools.combinations(numbers, size):
            yield ("parallel", targets)


def leads_to(steps, start, goal):
    """Is there a way from one to the other? Those whose way is not known yet lead nowhere."""
    ahead, seen = [start], {start}
    while ahead:
        at = ahead.pop()
        if at == goal:
            return True
        found = set(steps[at][1]) - seen if at < len(steps) else ()
        seen.update(found)
        ahead.extend(found)
    return False


def shapes(count, ways, is_acyclic, known=1, steps=()):
    """All in which every step is reached; steps are numbered in the order in which they are."""
    if len(steps) == known:
        if known == count:
            yield steps
        return
    for way, targets in ways:
        now = known
        for target in targets:
            now += target == now
        if any(target >= now or (is_acyclic and leads_to(steps, target, len(steps))) for target in targets):
            continue
        yield from shapes(count, ways, is_acyclic, now, steps + ((way, targets),))


def renamed(graph, order):
    """The same with step i called order[i]."""
    steps = [None] * len(graph)
    for number, (kind, way, targets) in enumerate(graph):
        targets = tuple(order[target] for target in targets)
        kind = "E%d" % order[int(kind[1:])] if kind[0] == "E" else kind
        steps[order[number]] = (kind, way, tuple(sorted(targets)) if way == "parallel" else targets)
    return tuple(steps)


def is_first_of_its_kind(graph):
    """Of all that are equal but for names, the least."""
    others = itertools.permutations(range(1, len(graph)))
    return all(graph <= renamed(graph, (0, *order)) for order in others)


def graphs(count, kinds, is_acyclic=False, without=()):
    ways = [("parallel" if way == "twice" else way, targets) for way, targets in ways_of(count) if way not in without]
    for shape in shapes(count, ways, is_acyclic):
        for letters in itertools.product(kinds, repeat=count):
            graph = tuple((letter, *way) for letter, way in zip(letters, shape))
            if is_first_of_its_kind(graph):
                yield graph


def definition_of(graph, is_backwards):
    steps = {}
    for number, (kind, way, targets) in list(enumerate(graph))[:: -1 if is_backwards else 1]:
        names = [NAMES[target] if target < len(graph) else "nowhere" for target in targets]
        step = {"T": {"tool": "x"}, "E": {"tool": "x"}, "G": {"tool": None}, "W": {"wait": {"timer": "1s"}}}[kind[0]].copy()
        if kind[0] == "E":
            step["on_error"] = NAMES[int(kind[1:])]
        if way in ("next", "join"):
            step[way] = names[0]
        elif way == "both":
            step.update({"next": names[0], "done": True})
        elif way != "none":
            step[way] = {"done": True, "parallel": names, "branch": [
                {"if": "result " + word, "then": name} for word, name in zip(("== true", "!= nil"), names)]}[way]
        steps[NAMES[number]] = step
    return {"steps": steps}


# ---- The model ----


def leads(graph, step):
    """Wherever a step may lead, when it succeeds or fails."""
    kind, _, targets = graph[step]
    return targets + ((int(kind[1:]),) if kind[0] == "E" else ())


def arrives(graph, step, join, seen):
    """Can somebody who is at `step` still arrive at `join`? Who comes through the join's own step begins another round: none is waited for."""
    way, targets = graph[step][1:]
    if way == "join" and targets[0] == join:
        return True
    return any(arrives(graph, target, join, seen | {target}) for target in leads(graph, step) if target not in seen and target != join)


class Graph:
    def __init__(self, graph, is_backwards):
        self.graph, self.order = graph, sorted(range(len(graph)), reverse=is_backwards)
        self.live, self.waiting, self.last, self.state, self.said, self.over = (), frozenset(), 0, "running", "", ()
        self.noted = "{}"
        self.begin(0)

    def begin(self, step):
        self.last += 1
        self.live += ((self.last, step),)

    def line(self):
        live = ",".join("%d:%s:1:%s" % (ordinal, NAMES[step], "running" if self.graph[step][0][0] in "TE" else "pending")
                        for ordinal, step in self.live)
        return "%s|%s|%s|%s" % (self.state, live, self.noted, self.said)

    def key(self):
        return tuple(step for ordinal, step in self.live), self.waiting, self.state

    def words(self):
        if len(self.live) > len(self.graph):
            return  # a cycle that begins more than it ends: enough of it was seen
        for ordinal, step in self.live:
            kind, way = self.graph[step][:2]
            results = ("=true", "=false") if way == "branch" else ("=true",)
            if kind[0] in "TE":
                yield from ("%dd%s" % (ordinal, result) for result in results)
                yield '%dx="bad"' % ordinal
            if kind == "G":
                yield from ("%dg@ann%s" % (ordinal, result) for result in (results if way == "branch" else ("",)))
                yield "%dj@ann" % ordinal
            if kind == "W":
                yield "%dw@%s" % (ordinal, NAMES[step])

    def refused(self):
        """A second answer to what is over (B34): to what ended just now, and with the flow."""
        for ordinal, step in self.over:
            kind = self.graph[step][0]
            words = {"T": "%dd=true", "E": "%dd=true", "G": "%dg@bob", "W": "%dw@" + NAMES[step]}
            yield words[kind[0]] % ordinal, "lease-lost" if kind[0] in "TE" else "not-awaiting"

    def after(self, word):
        other = Graph.__new__(Graph)
        other.__dict__.update(self.__dict__)
        ordinal, letter, _, result = WORD.match(word).groups()
        other.answer(int(ordinal), letter, {"w": "null", "g": '"approved"'}.get(letter) if result is None else result)
        return other

    def end(self, state, said):
        self.over += self.live
        self.state, self.live, self.said = state, (), "end 0 " + said

    def answer(self, ordinal, letter, result):
        step = dict(self.live)[ordinal]
        way, targets = self.graph[step][1:]
        self.live = tuple(one for one in self.live if one[0] != ordinal)
        self.over, self.said = ((ordinal, step),), ""
        if letter == "x" and self.graph[step][0][0] == "E":  # its error leads on, and is in the context
            self.noted = '{"exec/last-error":"bad"}'
            self.go_on("next", (int(self.graph[step][0][1:]),), result)
        elif letter in "xj":  # it fails for good, and the flow with it
            self.end("failed", '"bad"' if letter == "x" else '"rejected"')
        elif way == "done":
            self.end("completed", result)
        else:
            self.go_on(way, targets, result)

    def go_on(self, way, targets, result):
        if way == "branch":  # B13: true matches both conditions and the first wins; null, of a timer, matches neither
            targets = {"true": targets[:1], "false": targets[1:]}.get(result, ())
        if way == "join":
            self.waiting |= {targets[0]}
        for target in targets if way != "join" else ():
            self.begin(target)
        while self.complete_one():
            pass
        assert self.live or not self.waiting, "a join that can never complete: %s" % (self.graph,)
        if not self.live:  # B13: nothing is left to do
            self.end("failed", '"no-branch-matched"')

    def complete_one(self):
        """B15: a join is complete when nobody can arrive any more, neither who is under way nor who waits elsewhere."""
        def before(one, other):
            return arrives(self.graph, one, other, frozenset())

        open_ones = [join for join in self.order if join in self.waiting and not any(before(step, join) for _, step in self.live)]
        for join in open_ones:
            if all(before(join, other) for other in open_ones if other != join and before(other, join)):
                self.waiting -= {join}
                self.begin(join)
                return True
        return False


def has_cycle(graph):
    steps = [(None, leads(graph, step)) for step in range(len(graph))]
    return any(leads_to(steps, target, number) for number, (_, targets) in enumerate(steps) for target in targets)


def order_matters(graph):
    return len({targets for _, way, targets in graph if way == "join"}) > 1


def cases(found):
    """Without cycles every order to its end; with them until it comes to where it was, or further than any new way leads."""
    for graph in found:
        is_cyclic = has_cycle(graph)
        for is_backwards in (False, True) if LONG or order_matters(graph) else (False,):
            ways, lines = explore(Graph(graph, is_backwards), 2 * len(graph) if is_cyclic else 99, set() if is_cyclic else None)
            yield definition_of(graph, is_backwards), ways, lines


def hold(*sizes):
    for size in sizes:
        tally = in_portions(cases(graphs(*size)), Tally())
        print("# %d steps of %s%s%s: %s" % (size[0], size[1], ", no cycles" if len(size) > 2 and size[2] else "",
                                           "".join(", no " + way for way in size[3]) if len(size) > 3 else "", tally), flush=True)


def test_every_graph_of_up_to_three_steps_does_what_the_model_says_in_every_order_also_in_cycles():  # B10-B18, B34, B38
    hold((1, "TGW"), (2, "TGW"), (3, "TGW" if LONG else "T"))
    if LONG:
        hold((4, "T", False, ("branch", "twice")))


def test_every_graph_of_four_steps_without_cycles_does_what_the_model_says_in_every_order():  # B12-B18, B34, B38
    hold((3, "TGW", True), (4, "T", True, () if LONG else ("twice",)))
    if LONG:
        hold((5, "T", True, ("branch", "twice")))


def test_an_error_leads_to_its_step_in_every_graph_of_up_to_three_steps():  # on_error
    hold((1, ["E0"]), (2, ["T", "E0", "E1", "G"]), (3, ["T", "E0", "E1", "E2"] if LONG else ["E2", "E1"], True))
    if LONG:
        hold((3, ["T", "E2"], False, ("twice",)), (4, ["T", "E3"], True, ("twice", "branch")))


# ---- The validator: None if it must refuse, else what it must warn of ----


def check(graph):
    """Steps whose way leads nowhere, or that have none or two, are refused. Of the others: what none leads to, who joins alone, and
    who goes round without ever waiting."""
    if any(way in ("none", "both") or any(target >= len(graph) for target in targets) for _, way, targets in graph):
        return None
    ways = [(way, targets) for _, way, targets in graph]
    hasty = [(way, () if kind in WAITS else targets) for kind, way, targets in graph]
    reached = [number for number in range(len(graph)) if leads_to(ways, 0, number)]
    joins = [graph[number][2] for number in reached if graph[number][1] == "join"]
    return {"unreached": {number for number in range(len(graph)) if number not in reached},
            "alone": {number for number in reached if graph[number][1] == "join" and joins.count(graph[number][2]) == 1},
            "round": {number for number in reached if any(leads_to(hasty, target, number) for target in hasty[number][1])}}


SAYS = {"no way leads here": "unreached", "no other step joins at": "alone", "a cycle without a wait leads through it": "round"}


def told(line):
    """What the validator warned of."""
    if line == "refused":
        return None
    found = {word: set() for word in SAYS.values()}
    for message in line.split("|")[1:]:
        name, words = re.match(r"step '(\w+)': (.*)", message).groups()
        found[next(word for says, word in SAYS.items() if says in words)].add(NAMES.index(name))
    return found


def all_written(count, kinds, targets):
    """Whatever can be written down: steps that none leads to, and ways that lead nowhere, too."""
    ways = [("none", ()), ("both", (0,))] + [("parallel" if way == "twice" else way, found) for way, found in ways_of(targets)]
    return itertools.product([(kind, *way) for kind in kinds for way in ways], repeat=count)


def test_the_validator_refuses_and_warns_of_what_the_model_does():  # B10-B17
    for count, kinds, targets in ((1, "TGW", 3), (2, "TGW" if LONG else "TW", 3), (3, "TW" if LONG else "T", 3)):
        written = list(all_written(count, kinds, targets))
        refused = warned = 0
        for graph, lines in zip(written, answers([(definition_of(graph, False), "") for graph in written])):
            expected, found = check(graph), told(lines[0])
            rounds = (expected or {}).pop("round", set()), (found or {}).pop("round", set())
            assert expected == found, "%s\nthe model: %s, the validator: %s" % (text(definition_of(graph, False)), expected, lines[0])
            assert bool(rounds[0]) == bool(rounds[1]) and rounds[1] <= rounds[0], "%s\nround go %s, the validator: %s" % (
                text(definition_of(graph, False)), rounds[0], lines[0])
            refused, warned = refused + (expected is None), warned + bool(found and (any(found.values()) or rounds[1]))
        print("# %d steps of %s: %d definitions, %d refused, %d warned of" % (count, kinds, len(written), refused, warned), flush=True)


if __name__ == "__main__":
    sys.exit(main(globals()))
