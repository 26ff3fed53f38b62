#!/usr/bin/env python3
"""run_map_model.py - maps of up to four items against a model of them, in every order and with every outcome of every item.

The model is a list of what came of each item and nothing else: which items are under way, what the map comes to and what its result is
are worked out from it each time. The reducer keeps counts, and finds an item by the order in which attempts began."""
import itertools
import sys

sys.dont_write_bytecode = True
from walking import LONG, Tally, explore, in_portions, main, text  # noqa: E402


class Map:
    """outcomes: by item, None while it has none, else (is_done, value); live: (ordinal, item, attempt, place of its step)."""

    def __init__(self, count, parallel, tolerate, collect, tries, is_tree, steps=1):
        self.count, self.parallel, self.tolerate, self.collect, self.tries, self.is_tree = count, parallel, tolerate, collect, tries, is_tree
        self.steps = steps  # for each item, one after the other
        self.outcomes, self.live, self.backing, self.last, self.said, self.end, self.over = {}, (), (), 1, "", None, ()
        self.begun = 0
        self.go_on()

    def definition(self):
        # In trees the same values as expressions.
        args = {"v": "{{= thing }}", "n": "{{= index * 1 }}"} if self.is_tree else {"v": "{{thing}}", "n": "{{index}}"}
        retry = {"max": self.tries, "backoff": ["1s"]}
        step = {"tool": "x", "args": args, "retry": retry}
        options = {"over": "{{input.none}}" if self.count is None else ["i%d" % i for i in range(self.count)], "as": "thing",
                   **self.body(step, retry), "max_parallel": self.parallel, "tolerate": self.tolerate, "collect": self.collect}
        if self.is_tree:
            return {"do": [{"name": "m", "map": options, "augment": {"all": "identity"}}], "output": "{{context.all}}"}
        return {"steps": {"m": {"map": options, "done": True}}}

    def body(self, step, retry):
        if self.steps == 1:
            return {"step": step}
        more = [{"name": "s%d" % place, "tool": "x", "retry": retry, "args": {"i": "{{index}}", "p": "{{steps.%s.result}}" % (
            "m.map.0" if place == 1 else "s%d" % (place - 1))}} for place in range(1, self.steps)]
        return {"do": [step] + more}

    def call(self, ordinal, item, place):
        """Each step but the first sees what the one before it brought for the same item."""
        args = {"v": "i%d" % item, "n": item} if place == 0 else {"i": item, "p": "r%d.%d" % (item, place - 1)}
        return "call %d %s" % (ordinal, text(args))

    def failed(self):
        return [item for item in sorted(self.outcomes) if not self.outcomes[item][0]]

    def go_on(self):
        """Items begin in the order of the list, as many as may, as long as not too many have failed."""
        self.said = ""
        said = []
        while len(self.failed()) <= self.tolerate and self.begun < self.count and len(self.live) < self.parallel:
            self.last += 1
            self.live += ((self.last, self.begun, 1, 0),)
            said.append(self.call(self.last, self.begun, 0))
            self.begun += 1
        self.said = ";".join(said)
        if self.live:
            return
        failed = self.failed()
        if len(failed) > self.tolerate:
            self.end = "failed", {"reason": "item-failed", "index": failed[0], "error": self.outcomes[failed[0]][1]}
        elif self.collect:
            self.end = "completed", [self.outcomes[i][1] if self.outcomes[i][0] else
                                     {"failed": True, "index": i, "error": self.outcomes[i][1]} for i in range(self.count)]
        else:
            self.end = "completed", {"count": self.count, "failed": len(failed)}
        self.said = "end 0 " + text(self.end[1])

    def context(self):
        if not self.end or not self.is_tree:
            return {}
        return {"all": self.end[1]} if self.end[0] == "completed" else {"exec/last-error": self.end[1]}

    def line(self):
        rows = ["1:m:1:pending"] + ["%d:%s:%d:%s" % (ordinal, "s%d" % place if place else "m.map.0", attempt,
                                                     "pending" if ordinal in self.backing else "running")
                                    for ordinal, item, attempt, place in self.live]
        return "%s|%s|%s|%s" % (self.end[0] if self.end else "running", "" if self.end else ",".join(rows), text(self.context()), self.said)

    def key(self):
        return self.live, self.backing, tuple(sorted(self.outcomes.items())), self.end is None

    def words(self):
        for ordinal, item, attempt, place in () if self.end else self.live:
            if ordinal in self.backing:
                yield "%dr" % ordinal
            else:
                yield '%dd="r%d%s"' % (ordinal, item, ".%d" % place if place + 1 < self.steps else "")
                yield '%de="e%d"' % (ordinal, item)

    def refused(self):
        """A second answer to an item that is over."""
        for ordinal in self.over:
            yield "%dd=1" % ordinal, "lease-lost"

    def after(self, word):
        other = Map.__new__(Map)
        other.__dict__.update(self.__dict__)
        other.outcomes = dict(self.outcomes)
        ordinal, letter = int(word[:-1] if word.endswith("r") else word.split("=")[0][:-1]), word.split("=")[0][-1]
        item, attempt, place = next(row[1:] for row in self.live if row[0] == ordinal)
        other.said = ""
        if letter == "r":
            other.backing = tuple(one for one in self.backing if one != ordinal)
            other.said = self.call(ordinal, item, place)
            return other
        other.live = tuple(row for row in self.live if row[0] != ordinal)
        other.over = (ordinal,)
        if letter == "e" and attempt < self.tries:
            other.last += 1
            other.live = tuple(sorted(other.live + ((other.last, item, attempt + 1, place),)))
            other.backing += (other.last,)
            return other
        if letter == "d" and place + 1 < self.steps:
            other.last += 1
            other.live += ((other.last, item, 1, place + 1),)
            other.said = self.call(other.last, item, place + 1)
            return other
        other.outcomes[item] = (letter == "d", "%s%d" % ("r" if letter == "d" else "e", item))
        other.go_on()
        return other


def cases(counts, tries, steps=1):
    for count, parallel, tolerate, collect, is_tree in itertools.product(counts, (1, 2, 9), (0, 1, 9), (True, False), (False, True)):
        model = Map(count, parallel, tolerate, collect, tries, is_tree, steps)
        ways, lines = explore(model, 99)
        yield model.definition(), ways, lines


def test_maps_of_up_to_three_items_do_what_the_model_says_in_every_order():
    tally = in_portions(cases((0, 1, 2, 3, 4) if LONG else (0, 1, 2, 3), 1), Tally())
    print("# %s" % tally)


def test_items_that_are_tried_again_keep_to_their_place_in_the_list():
    tally = in_portions(cases((1, 2, 3) if LONG else (1, 2), 2), Tally())
    print("# %s" % tally)


def test_items_of_several_steps_do_them_in_turn_and_see_their_own_results():
    tally = in_portions(cases((1, 2, 3) if LONG else (1, 2), 1, 2), Tally())
    in_portions(cases((1, 2) if LONG else (1,), 1, 3), tally)
    in_portions(cases((1, 2) if LONG else (1,), 2, 2), tally)
    print("# %s" % tally)


if __name__ == "__main__":
    sys.exit(main(globals()))
