#!/usr/bin/env python3
"""run_saga_model.py - sagas of up to four steps against a model of them (CW1-CW5): every step done or failed, in every order.

The model keeps the list of what was done and says what must be undone: the last first, one at a time, each until it succeeds, and nothing
forward beside it. The reducer keeps captured arguments and walks its plan."""
import itertools
import sys

sys.dont_write_bytecode = True
from walking import LONG, Tally, explore, in_portions, main, text  # noqa: E402


class Saga:
    """kinds: a letter a step: c has a compensation, r is read-only, p is the pivot. is_par: all at once, else one after the other."""

    def __init__(self, kinds, is_par):
        self.kinds, self.is_par = kinds, is_par
        self.live, self.last, self.done, self.error, self.end, self.said, self.failed = (), 0, (), None, None, "", False
        self.turn(self.begin_forward, range(len(kinds)) if is_par else (0,))

    def definition(self):
        steps = []
        for number, kind in enumerate(self.kinds):
            undo = {"c": {"name": "u%d" % number, "tool": "y", "args": {"was": "{{steps.s%d.result}}" % number}, "retry": {"max": 1}},
                    "r": "read-only", "p": "pivot"}[kind]
            steps.append({"name": "s%d" % number, "tool": "x", "compensate": undo})
        return {"saga": True, "output": {"q": 7}, ("dopar" if self.is_par else "do"): steps}

    def turn(self, act, *args):
        self.said = ""
        act(*args)

    def begin_forward(self, numbers):
        for number in numbers:
            self.last += 1
            self.live += ((self.last, "s%d" % number, 1),)

    def undo(self):
        """What is to be undone next, if nothing that was begun is under way."""
        if self.live:
            return
        if self.done:
            number, value = self.done[-1]
            self.last += 1
            self.live = ((self.last, "u%d" % number, 1),)
            self.said = "call %d %s" % (self.last, text({"was": value}))
        else:
            self.end, self.said = "failed", "end 0 " + text(self.error)

    def over(self, ordinal, name, attempt, is_done):
        number = int(name[1:])
        self.live = tuple(row for row in self.live if row[0] != ordinal)
        if name[0] == "u" and not is_done:  # never skipped
            self.last += 1
            self.live = ((self.last, name, attempt + 1),)
            self.said = "call %d %s" % (self.last, text({"was": self.done[-1][1]}))
        elif name[0] == "u":
            self.done = self.done[:-1]
            self.undo()
        else:
            self.forward_over(number, is_done)

    def forward_over(self, number, is_done):
        kind = self.kinds[number]
        if is_done:
            self.done = () if kind == "p" else self.done + (((number, "r%d" % number),) if kind == "c" else ())
        else:
            self.failed, self.error = True, "e%d" % number
        if self.is_par and self.live:
            return
        if self.failed:
            self.undo()
        elif not self.is_par and number + 1 < len(self.kinds):
            self.begin_forward((number + 1,))
        else:
            self.end, self.said = "completed", "end 0 " + text({"q": 7})

    def line(self):
        rows = ",".join("%d:%s:%d:running" % row for row in self.live)
        context = {"exec/last-error": self.context} if self.context is not None else {}
        return "%s|%s|%s|%s" % (self.end or "running", "" if self.end else rows, text(context), self.said)

    context = None

    def key(self):
        return self.live, self.done, self.end

    def words(self):
        for ordinal, name, attempt in () if self.end else self.live:
            yield '%dd="r%s"' % (ordinal, name[1:])
            if attempt < 3:
                yield '%dx="e%s"' % (ordinal, name[1:])

    def refused(self):
        return ()

    def after(self, word):
        other = Saga.__new__(Saga)
        other.__dict__.update(self.__dict__)
        ordinal, letter = int(word.split("=")[0][:-1]), word.split("=")[0][-1]
        name, attempt = next(row[1:] for row in self.live if row[0] == ordinal)
        if letter == "x" and name[0] == "s":
            other.context = "e" + name[1:]
        other.turn(other.over, ordinal, name, attempt, letter == "d")
        return other


def cases(counts):
    for count in counts:
        for kinds, is_par in itertools.product(itertools.product("crp", repeat=count), (False, True)):
            model = Saga("".join(kinds), is_par)
            yield (model.definition(), *explore(model, 99))


def test_sagas_undo_what_was_done_in_reverse_order_whatever_fails_and_when():  # CW2-CW5
    print("# %s" % in_portions(cases((1, 2, 3) if LONG else (1, 2)), Tally()))


if __name__ == "__main__":
    sys.exit(main(globals()))
