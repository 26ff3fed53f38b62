"""random_flows.py - random definitions with every kind of step, and what each must come to: worked out from how it was made, by a model
that shares nothing with the reducer. Used by run_random_flows.py.

A step of a worker has its whole script in its arguments (`Call`), so the worker of the test decides nothing. At most one branch of what runs
side by side may fail: otherwise which error is the last one would be chance."""
import itertools
import random

ERRORS = ("busy", "broken", {"code": "torn"}, {"kind": "late", "n": 1})
LAST = "exec/last-error"


class Failed(Exception):
    def __init__(self, error):
        super().__init__(error)
        self.error = error


class World:
    """What a flow has done so far, as the model sees it: results by step, the context, how often each step began."""

    def __init__(self, maker, input):
        self.maker, self.input, self.results, self.context, self.rounds = maker, input, {}, {}, {}

    def begin(self, name):
        self.rounds[name] = self.rounds.get(name, -1) + 1
        return self.rounds[name]


# ---- Steps: each has a name, emit() -> its JSON, and run(world, item) -> its result, or Failed ----


class Call:
    """A worker's. fails: so many attempts fail at first; bad: items, or rounds, in which it fails for good."""

    def __init__(self, roll, name, fallible, sure, in_map=False):
        self.name, self.max, self.value, self.error = name, roll.choice((1, 2, 3)), roll.randrange(9), roll.choice(ERRORS)
        self.fails = roll.randrange(self.max)
        self.is_bad = fallible and roll.random() < 0.3
        self.bad_items, self.bad_rounds = [], 0
        self.in_map, self.after = in_map, None
        self.echo = roll.choice(sure) if sure and roll.random() < 0.7 else None
        self.calculates = roll.random() < 0.5
        self.kinds = roll.choice(({}, {}, {"on": ["busy", "torn", "broken", "late"]}, {"never": ["other"]}))

    def emit(self):
        args = {"v": self.value, "fails": self.fails, "bad": self.is_bad, "error": self.error, "rounds": self.bad_rounds}
        if self.in_map:
            args.update(items=self.bad_items, i="{{index}}", item="{{= thing }}")
        if self.after:
            args["before"] = "{{steps.%s.result.v}}" % self.after
        if self.echo:
            args["echo"] = ("{{= steps.%s.result.v + 1 }}" if self.calculates else "{{steps.%s.result.v}}") % self.echo
        return {"tool": "do", "args": args, "retry": {"max": self.max, "backoff": ["1ms"], **self.kinds}}

    def run(self, world, item=None):
        turn = world.begin((self.name, item))
        if self.is_bad or turn < self.bad_rounds or (self.in_map and item in self.bad_items):
            raise Failed(self.error)
        result = {"v": self.value, "round": turn}
        if self.in_map:
            result["i"] = item
        if self.after:
            result["before"] = world.results[self.after, item]["v"]
        if self.echo:
            result["echo"] = world.results[self.echo]["v"] + (1 if self.calculates else 0)
        return result


class Simple:
    """Done in the server, or from outside, in one way only."""

    def __init__(self, name, json, result):
        self.name, self.json, self.result = name, json, result

    def emit(self):
        return dict(self.json)

    def run(self, world, item=None):
        if isinstance(self.result, Failed):
            raise Failed(self.result.error)
        return self.result


AGAIN = {"idempotent": True, "retry": {"max": 99, "backoff": ["1ms"]}}  # a death takes what runs in the server with it


def simple(roll, name, fallible):
    """One of the kinds that wait, or that the server does itself."""
    kind = roll.choice(("set", "log", "sleep", "timer", "until", "signal", "gate", "gate", "external", "worker", "schedule"))
    bad = fallible and roll.random() < 0.4
    if kind == "set":
        return Simple(name, {"tool": "set", "args": {"v": 3, "sum": "{{= 1 + 2 }}"}, **AGAIN}, {"v": 3, "sum": 3})
    if kind == "log":
        return Simple(name, {"tool": "log", "args": {"message": "m"}, **AGAIN}, "m")
    if kind == "sleep":
        return Simple(name, {"tool": "sleep", "args": {"for": "2ms"}}, None)
    if kind == "timer":
        return Simple(name, {"wait": {"timer": "%dms" % roll.randrange(5)}}, None)
    if kind == "until":
        return Simple(name, {"wait": {"until": "2020-01-01T00:00:00Z"}}, None)
    if kind == "signal" and bad:
        return Simple(name, {"wait": {"signal": "never"}, "timeout": "5ms"}, Failed("timeout"))
    if kind == "signal":
        return Simple(name, {"wait": {"signal": "go"}}, "gone")
    if kind == "gate":
        return Simple(name, {"approval": {"ask": {"reject": bad}}}, Failed("no") if bad else "approved")
    if kind == "external" and bad:
        return Simple(name, {"external": True, "timeout": "5ms"}, Failed("timeout"))
    if kind == "external":
        return Simple(name, {"external": True, "idempotent": True}, "done")
    if kind == "worker" and bad:
        return Simple(name, {"tool": "nobody", "wait_for_worker": "5ms", "retry": {"max": 1}}, Failed("no-worker"))
    if kind == "schedule" and roll.random() < 0.1:
        return Slot(name)
    return Simple(name, {"wait": {"timer": "1ms"}}, None)


class Slot(Simple):
    """Its result is a time that nobody knows before."""

    def __init__(self, name):
        super().__init__(name, {"schedule": {"every": "1s"}}, None)


class Spawn:
    def __init__(self, roll, name, maker, fallible):
        self.name, self.maker, self.max = name, maker, roll.choice((1, 2))
        self.of = maker.child(roll, fallible)

    def emit(self):
        return {"spawn": {"definition": self.of.name, "input": {"n": "{{input.n}}"}}, "retry": {"max": self.max, "backoff": ["1ms"]}}

    def run(self, world, item=None):
        status, value = self.of.outcome()
        if status == "failed":  # a grandchild's is passed on as it is
            is_passed = isinstance(value, dict) and value.get("reason") == "child-failed"
            raise Failed(value if is_passed else {"reason": "child-failed", "error": value})
        return value


class Map:
    def __init__(self, roll, name, maker, fallible, sure):
        self.name, self.count = name, roll.randrange(5)
        self.tolerate, self.collect = roll.choice((0, 0, 1, 2)), roll.random() < 0.7
        self.parallel = roll.choice((1, 2, 9))
        fails = roll.choice((0, 0, self.tolerate, self.tolerate + 1)) if fallible else 0
        self.bad = sorted(roll.sample(range(self.count), min(fails, self.count)))
        self.steps = [Call(roll, "%s.map.%d" % (name, place), False, sure, in_map=True) for place in range(roll.choice((1, 1, 2, 3)))]
        self.steps[roll.randrange(len(self.steps))].bad_items = self.bad
        for before, after in zip(self.steps, self.steps[1:]):
            after.after = before.name
        if roll.random() < 0.2:
            self.steps.append(Simple("%s.map.%d" % (name, len(self.steps)), {"wait": {"timer": "{{thing}}ms"}}, None))

    def emit(self):
        steps = [step.emit() for step in self.steps]
        body = {"do": steps} if len(steps) > 1 else {"step": steps[0]}
        return {"map": {"over": list(range(self.count)), "as": "thing", "max_parallel": self.parallel, "tolerate": self.tolerate,
                        "collect": self.collect, **body}}

    def run(self, world, item=None):
        found, errors = [], []
        for index in range(self.count):
            try:
                for step in self.steps:
                    result = world.results[step.name, index] = step.run(world, index)
                found.append(result)
            except Failed as failed:
                errors.append((index, failed.error))
                found.append({"failed": True, "index": index, "error": failed.error})
        if len(errors) > self.tolerate:
            raise Failed({"reason": "item-failed", "index": errors[0][0], "error": errors[0][1]})
        return found if self.collect else {"count": self.count, "failed": len(errors)}


def a_step(roll, maker, fallible, sure, depth):
    name = maker.name_step()
    kind = roll.random()
    if kind < 0.45:
        return Call(roll, name, fallible, sure)
    if kind < 0.6:
        return Map(roll, name, maker, fallible, sure)
    if kind < 0.7 and depth > 0:
        return Spawn(roll, name, maker, fallible)
    return simple(roll, name, fallible)


# ---- Trees ----


class Leaf:
    def __init__(self, roll, maker, fallible, sure, depth):
        self.step = a_step(roll, maker, fallible, sure, depth)
        self.puts = not isinstance(self.step, Slot) and roll.random() < 0.6
        self.undo = maker.undo(roll, self.step)

    def emit(self):
        return {"name": self.step.name, **self.step.emit(), **({"augment": {self.step.name: "identity"}} if self.puts else {}), **self.undo}

    def run(self, world):
        try:
            result = self.step.run(world)
        except Failed as failed:
            world.context[LAST] = failed.error
            raise
        world.results[self.step.name] = result
        if self.puts:
            world.context[self.step.name] = result

    def sure(self):
        return [self.step.name] if isinstance(self.step, Call) else []


class Group:
    """do, dopar, try, if, select, with limits or without."""

    def __init__(self, roll, maker, fallible, sure, depth, kind=None):
        self.kind = kind or roll.choice(("do", "dopar", "try", "try", "if", "select", "late", "again"))
        self.sure_of = []
        part = lambda may_fail, known, most=3: self.list(roll, maker, may_fail, known, depth - 1, roll.randint(1, most))  # noqa: E731
        if self.kind == "dopar":
            odd = roll.randrange(3)
            self.parts = [[node(roll, maker, fallible and i == odd, sure, depth - 1)] for i in range(3)]
        elif self.kind == "try":
            body = part(True, sure)
            self.parts = [body, part(fallible, sure, 2) if roll.random() < 0.7 or not fallible else [], part(fallible, sure, 2) if roll.random() < 0.6 else []]
        elif self.kind == "if":
            self.arm = roll.randrange(3)
            self.parts = [part(fallible, sure, 2) for _ in range(3)]
        elif self.kind == "select":
            self.arm, self.name = roll.randrange(2), maker.name_step()
            self.parts = [part(fallible, sure, 2), part(fallible, sure, 2)]
        elif self.kind == "late":
            self.name = maker.name_step()
            self.parts = [[node(roll, maker, False, sure, 0)]] if not fallible else [[]]
        elif self.kind == "again":  # it fails in its first rounds, and is tried again as a whole
            call = Leaf(roll, maker, False, sure, 0)
            call.step = Call(roll, call.step.name, False, sure)
            call.undo, call.puts = {}, True
            call.step.bad_rounds = roll.randrange(3)
            self.max = call.step.bad_rounds + 1 if not fallible else roll.choice((1, 2, 3))
            self.parts = [[call]]
        else:
            self.parts = [part(fallible, sure)]
        if self.kind == "do":
            self.sure_of = [name for item in self.parts[0] for name in item.sure()]

    @staticmethod
    def list(roll, maker, fallible, sure, depth, count):
        found, known = [], list(sure)
        for _ in range(count):
            found.append(node(roll, maker, fallible, known, depth))
            known += found[-1].sure()
        return found

    def sure(self):
        return self.sure_of

    def emit(self):
        lists = [[item.emit() for item in part] for part in self.parts]
        if self.kind == "try":
            return {"try": lists[0], **({"rescue": lists[1]} if lists[1] else {}), **({"finally": lists[2]} if lists[2] else {})}
        if self.kind == "if":
            words = ("context.none", "input.n == 1")  # the first is nil, the second holds
            return {"if": words[self.arm == 0], "then": lists[0], "elif": [{"if": words[self.arm == 1], "then": lists[1]}], "else": lists[2]}
        if self.kind == "select":
            signals = [{"signal": "go" if self.arm == 0 else "never", "do": lists[0]}]
            return {"name": self.name, "select": signals + [{"timer": "1ms" if self.arm else "9h", "do": lists[1]}]}
        if self.kind == "late":
            never = {"do": [{"name": self.name, "wait": {"signal": "never"}}], "timeout": "5ms"}
            return never if not self.parts[0] else {"try": [never], "rescue": lists[0]}
        if self.kind == "again":
            return {"do": lists[0], "retry": {"max": self.max, "backoff": ["1ms"]}}
        return {self.kind: [item for part in lists for item in part]}

    def run(self, world):
        if self.kind in ("if", "select"):
            return self.run_list(world, self.parts[self.arm])
        if self.kind == "try":
            return self.run_try(world)
        if self.kind == "late":
            world.context[LAST] = "timeout"
            if not self.parts[0]:
                raise Failed("timeout")
        if self.kind == "again":
            return self.run_again(world)
        if self.kind == "dopar":
            return self.run_all(world)
        return self.run_list(world, [item for part in self.parts for item in part])

    @staticmethod
    def run_list(world, items):
        for item in items:
            item.run(world)

    def run_all(self, world):
        errors = []
        for part in self.parts:
            try:
                self.run_list(world, part)
            except Failed as failed:
                errors.append(failed)
        if errors:
            raise errors[0]

    def run_try(self, world):
        error = None
        try:
            self.run_list(world, self.parts[0])
        except Failed as failed:
            error = failed
        if error and self.parts[1]:
            try:
                self.run_list(world, self.parts[1])
                error = None
            except Failed as failed:
                error = failed
        self.run_list(world, self.parts[2])
        if error:
            raise error

    def run_again(self, world):
        for left in reversed(range(self.max)):
            try:
                return self.run_list(world, self.parts[0])
            except Failed:
                if left == 0:
                    raise


def node(roll, maker, fallible, sure, depth):
    return Group(roll, maker, fallible, sure, depth) if depth > 0 and roll.random() < 0.5 else Leaf(roll, maker, fallible, sure, depth)


class Tree:
    def __init__(self, roll, maker, fallible):
        self.root = Group(roll, maker, fallible, [], 3, kind=roll.choice(("do", "do", "try")) if fallible else "do")
        self.output = roll.random() < 0.3

    def emit(self):
        return {**self.root.emit(), **({"output": {"all": "{{context}}", "n": "{{= input.n + 1 }}"}} if self.output else {})}

    def run(self, world):
        self.root.run(world)
        return {"all": world.context, "n": world.input["n"] + 1} if self.output else world.context


# ---- Graphs: blocks one after another ----


class Block:
    """One step; or one whose result chooses between two; or several side by side that join; or one that is done in rounds. An error may
    lead to another step, behind which the flow goes on as ever."""

    def __init__(self, roll, maker, fallible, sure, depth):
        self.kind = roll.choice(("one", "one", "one", "branch", "parallel", "rounds"))
        self.entry = a_step(roll, maker, fallible, sure, depth) if self.kind in ("one", "parallel") else Call(roll, maker.name_step(), fallible, sure)
        self.others = [a_step(roll, maker, False, sure, depth) for _ in range(2)] if self.kind in ("branch", "parallel") else []
        self.join = Call(roll, maker.name_step(), False, sure) if self.kind == "parallel" else None
        self.begins = Simple(maker.name_step(), {"tool": "log", "args": {"message": "b"}}, "b") if self.kind == "parallel" else None
        self.handler = Call(roll, maker.name_step(), False, sure) if roll.random() < 0.6 else None
        self.form = roll.randrange(3)  # of on_error: a name, a list whose condition holds, a list of which none does
        self.more, self.is_taken = roll.randrange(1, 4), self.form != 2
        self.undo = maker.undo(roll, self.entry)

    def sure(self):
        steps = [self.entry] if not self.handler and self.kind != "parallel" else [self.join] if self.join else []
        return [step.name for step in steps if isinstance(step, Call)]

    def first(self):
        return (self.begins or self.entry).name

    def on_error(self):
        if not self.handler:
            return {}
        to = self.handler.name
        return {"on_error": (to, [{"if": "error == nil", "then": to}, {"if": "error ~= nil", "then": to}], [{"if": "error == 'xyz'", "then": to}])[self.form]}

    def emit(self, after):
        way = {"next": after}
        steps = {}
        if self.kind == "branch":
            way = {"branch": [{"if": "result.v > 4", "then": self.others[0].name}, {"if": "true", "then": self.others[1].name}]}
            steps = {step.name: {**step.emit(), "next": after} for step in self.others}
        if self.kind == "rounds":
            way = {"branch": [{"if": "result.round < %d" % self.more, "then": self.entry.name}, {"if": "true", "then": after}]}
        ends = {"next": after}
        if self.kind == "parallel":
            way = ends = {"join": self.join.name}
            steps = {step.name: {**step.emit(), **way} for step in self.others}
            steps[self.join.name] = {**self.join.emit(), "next": after}
            steps[self.begins.name] = {**self.begins.emit(), "parallel": [self.entry.name] + [step.name for step in self.others]}
        if self.handler:
            steps[self.handler.name] = {**self.handler.emit(), **ends}
        steps[self.entry.name] = {**self.entry.emit(), **way, **self.on_error(), **self.undo}
        return {self.first(): steps.pop(self.first()), **steps}

    def run(self, world):
        try:
            for _ in range(self.more if self.kind == "rounds" else 0):
                self.note(world, self.entry)
            self.note(world, self.entry)
        except Failed as failed:
            if self.handler:
                world.context[LAST] = failed.error
            if not self.handler or not self.is_taken:
                raise
            self.note(world, self.handler)
            if self.kind in ("branch", "rounds"):
                return
        if self.kind == "branch":
            self.note(world, self.others[0 if self.entry.value > 4 else 1])
        if self.kind == "parallel":
            for step in self.others + [self.join]:
                self.note(world, step)

    @staticmethod
    def note(world, step):
        world.results[step.name] = step.run(world)


class Graph:
    def __init__(self, roll, maker, fallible):
        self.blocks, sure = [], []
        self.is_late = fallible and roll.random() < 0.1  # its time as a whole is over before it ends
        for _ in range(roll.randint(1, 4)):
            self.blocks.append(Block(roll, maker, fallible and not self.is_late, sure, 2))
            sure = sure + self.blocks[-1].sure()
        self.end = Call(roll, maker.name_step(), False, sure)
        self.time = "300ms" if self.is_late else roll.choice((None, "9h"))

    def emit(self):
        steps, names = {}, [block.first() for block in self.blocks] + ["never" if self.is_late else self.end.name]
        for block, after in zip(self.blocks, names[1:]):
            steps.update(block.emit(after))
        if self.is_late:
            steps["never"] = {"wait": {"signal": "never"}, "next": self.end.name}
        steps[self.end.name] = {**self.end.emit(), "done": True}
        return {"steps": steps, **({"timeout": self.time} if self.time else {})}

    def run(self, world):
        if self.is_late:
            raise Failed("timeout")
        for block in self.blocks:
            block.run(world)
        return self.end.run(world)


# ---- A definition ----


class Flow:
    def __init__(self, roll, maker, name, fallible, is_saga):
        self.name, self.maker, self.is_saga, self.numbers = name, maker, is_saga, itertools.count()
        maker.making.append(self)
        self.body = roll.choice((Tree, Graph))(roll, maker, fallible)
        maker.making.pop()
        self.tells = roll.random() < 0.5
        self.found = None

    def emit(self):
        return {**self.body.emit(), "signals": {"go": {"buffer": True}}, "queries": {"n": "input.n"},
                **({"notify": {"definition": "told", "input": {"of": self.name}}} if self.tells else {})}

    def outcome(self):
        """(status, its result or its error)."""
        if not self.found:
            try:
                self.found = "completed", self.body.run(World(self.maker, {"n": 1}))
            except Failed as failed:
                self.found = "failed", failed.error
        return self.found


class Maker:
    def __init__(self, seed):
        self.roll, self.making, self.flows, self.children, self.names = random.Random(seed), [], [], [], itertools.count()

    def name_step(self):
        return "s%d" % next(self.making[-1].numbers)

    def undo(self, roll, step):
        """In a saga what a worker does can be undone; some of it cannot from then on."""
        if not self.making[-1].is_saga or not isinstance(step, Call):
            return {}
        way = roll.random()
        if way < 0.1:
            return {"compensate": "pivot"}
        if way < 0.2:
            return {"compensate": "read-only"}
        return {"compensate": {"tool": "undo", "args": {"of": step.name, "v": "{{steps.%s.result.v}}" % step.name, "fails": roll.randrange(2)},
                               "retry": {"max": 1}}}

    def child(self, roll, fallible):
        """One that was made before, or a new one. What may not fail gets one that does not."""
        fits = [flow for flow in self.children if fallible or flow.outcome()[0] == "completed"]
        if fits and roll.random() < 0.8:
            return roll.choice(fits)
        made = Flow(roll, self, "kid%d" % next(self.names), fallible, False)
        self.children.append(made)
        return made

    def make(self):
        made = Flow(self.roll, self, "flow%d" % len(self.flows), True, self.roll.random() < 0.5)
        self.flows.append(made)
        return made
