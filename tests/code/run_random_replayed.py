#!/usr/bin/env python3
"""Random programs of awaits, written as Python and as TypeScript, and as a tree that a model interprets.

A server takes their turns; random timers and signals come, and the processes of the module are killed in between, so that the code is
replayed. What is recorded must be what the model says, with the same variables. PAWL_SEED=N chooses the programs;
PAWL_TEST_LONG=1 does many."""
import os
import pathlib
import random
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http")]
from run_node import installed  # noqa: E402
from run_python import Served  # noqa: E402
from run_random import SIGNALS, TIMERS, VARIABLES, Jump, Maker, Model  # noqa: E402
from web import harness  # noqa: E402

LONG = bool(os.environ.get("PAWL_TEST_LONG"))


class Replayed(Maker):
    """With gather, and helpers that await."""

    def __init__(self, dice):
        super().__init__(dice)
        self.helpers = []

    def statement(self, depth, in_loop):
        word = self.dice.choice(["gather", "helper", "", "", ""] if depth > 0 else ["gather", "", "", ""])
        return getattr(self, word)(depth) if word else super().statement(depth, in_loop)

    def gather(self, depth):
        self.place()
        timers = [("timer", n, self.dice.randint(1, 5)) for n in self.dice.sample(range(TIMERS), self.dice.randint(0, 2))]
        return ("gather", timers, [("signal", n, self.dice.randrange(VARIABLES)) for n in self.dice.sample(range(SIGNALS), self.dice.randint(1, 2))])

    def helper(self, depth):
        self.helpers.append(self.block(depth - 1, False))
        return ("helper", len(self.helpers) - 1)


class Interpreter(Model):
    """Is sent (kind, number, payload, seconds since the last event)."""

    def __init__(self, helpers):
        super().__init__()
        self.helpers = helpers

    def run(self, block):
        for s in block:
            if s[0] == "gather":
                yield from self.gather(s)
            elif s[0] == "helper":
                yield from self.run(self.helpers[s[1]])
            elif s[0] == "signal":
                self.v[s[3]] += (yield {("signal", s[2]): 0})[2]
            elif s[0] == "select":
                event = yield {(arm[0], arm[1]): arm[2] if arm[0] == "timer" else 0 for arm, _ in s[2]}
                yield from self.run(next(body for arm, body in s[2] if arm[:2] == event[:2]))
            else:
                yield from super().run([s])

    def gather(self, s):
        waits = {("timer", n): after for _, n, after in s[1]} | {("signal", n): 0 for _, n, _ in s[2]}
        target = {n: variable for _, n, variable in s[2]}
        while waits:
            kind, number, payload, elapsed = yield waits
            waits = {key: after - elapsed if key[0] == "timer" else 0 for key, after in waits.items() if key != (kind, number)}
            if kind == "signal":
                self.v[target[number]] += payload


# ---- As source ----

def python(block, name, pad="    "):
    out = ""
    for s in block:
        if s[0] == "add":
            out += "%sv[%d] += %d\n" % (pad, s[1], s[2])
        elif s[0] == "timer":
            out += '%sawait sleep(%d, name="t%d")\n' % (pad, s[3], s[2])
        elif s[0] == "signal":
            out += "%sv[%d] += await signal(S[%d])\n" % (pad, s[3], s[2])
        elif s[0] == "jump":
            out += "%sif v[%d] %% %d == 0:\n%s    %s\n" % (pad, s[1], s[2], pad, s[3])
        elif s[0] == "if":
            out += "%sif v[%d] %% 2 == 0:\n%s%selse:\n%s" % (pad, s[1], python(s[2], name, pad + "    "), pad, python(s[3], name, pad + "    "))
        elif s[0] == "for":
            out += "%sfor _ in range(%d):\n%s" % (pad, s[2], python(s[3], name, pad + "    "))
        elif s[0] == "helper":
            out += "%sawait %s_h%d(v)\n" % (pad, name, s[1])
        elif s[0] == "gather":
            arms = ['sleep(%d, name="t%d")' % (after, n) for _, n, after in s[1]] + ["signal(S[%d])" % n for _, n, _ in s[2]]
            out += "%sgot = await gather(%s)\n" % (pad, ", ".join(arms))
            out += "".join("%sv[%d] += got[%d]\n" % (pad, variable, i + len(s[1])) for i, (_, _, variable) in enumerate(s[2]))
        else:
            arms = ['t%d=sleep(%d, name="t%d")' % (arm[1], arm[2], arm[1]) if arm[0] == "timer" else "s%d=signal(S[%d])" % (arm[1], arm[1]) for arm, _ in s[2]]
            out += "%swhich, _ = await select(%s)\n" % (pad, ", ".join(arms))
            out += "".join('%sif which == "%s%d":\n%s' % (pad, arm[0][0], arm[1], python(body, name, pad + "    ")) if i == 0 else
                           '%selif which == "%s%d":\n%s' % (pad, arm[0][0], arm[1], python(body, name, pad + "    ")) for i, (arm, body) in enumerate(s[2]))
    return out


def as_python(made):
    out = "from pawl_client import Signal, gather, select, signal, sleep, workflow\n\nS = [Signal('s%%d' %% n, int, kept=False) for n in range(%d)]\n" % SIGNALS
    for i, (maker, block, _) in enumerate(made):
        out += "".join("\n\nasync def r%d_h%d(v):\n%s" % (i, n, python(helper, "r%d" % i)) for n, helper in enumerate(maker.helpers))
        out += "\n\n@workflow(signals=S)\nasync def r%d():\n    v = [0] * %d\n%s    return v\n" % (i, VARIABLES, python(block, "r%d" % i))
    return out


def script(block, name, pad="    "):
    out = ""
    for s in block:
        if s[0] == "add":
            out += "%sv[%d] += %d;\n" % (pad, s[1], s[2])
        elif s[0] == "timer":
            out += '%sawait sleep("%ds", "t%d");\n' % (pad, s[3], s[2])
        elif s[0] == "signal":
            out += "%sv[%d] += await signal(S[%d]);\n" % (pad, s[3], s[2])
        elif s[0] == "jump":
            out += "%sif (v[%d] %% %d === 0) %s;\n" % (pad, s[1], s[2], s[3])
        elif s[0] == "if":
            out += "%sif (v[%d] %% 2 === 0) {\n%s%s} else {\n%s%s}\n" % (pad, s[1], script(s[2], name, pad + "    "), pad, script(s[3], name, pad + "    "), pad)
        elif s[0] == "for":
            out += "%sfor (let i = 0; i < %d; i++) {\n%s%s}\n" % (pad, s[2], script(s[3], name, pad + "    "), pad)
        elif s[0] == "helper":
            out += "%sawait %s_h%d(v);\n" % (pad, name, s[1])
        elif s[0] == "gather":
            arms = ['sleep("%ds", "t%d")' % (after, n) for _, n, after in s[1]] + ["signal(S[%d])" % n for _, n, _ in s[2]]
            out += "%s{\n%s    const got = await gather([%s]);\n" % (pad, pad, ", ".join(arms))
            out += "".join("%s    v[%d] += got[%d];\n" % (pad, variable, i + len(s[1])) for i, (_, _, variable) in enumerate(s[2])) + pad + "}\n"
        else:
            arms = ['t%d: sleep("%ds", "t%d")' % (arm[1], arm[2], arm[1]) if arm[0] == "timer" else "s%d: signal(S[%d])" % (arm[1], arm[1]) for arm, _ in s[2]]
            out += "%s{\n%s    const [which] = await select({ %s });\n" % (pad, pad, ", ".join(arms))
            out += "".join('%s    %sif (which === "%s%d") {\n%s%s    }\n' % (pad, "else " if i else "", arm[0][0], arm[1], script(body, name, pad + "        "), pad)
                           for i, (arm, body) in enumerate(s[2])) + pad + "}\n"
    return out


def as_script(made):
    out = 'import { Signal, gather, select, signal, sleep, workflow } from "pawl-client/durable";\n'
    out += 'const S = [0, 1, 2].map((n) => new Signal("s" + n, { type: "integer" }, { kept: false }));\n'
    for i, (maker, block, _) in enumerate(made):
        out += "".join("async function r%d_h%d(v) {\n%s}\n" % (i, n, script(helper, "r%d" % i)) for n, helper in enumerate(maker.helpers))
        out += "workflow({ signals: S }, async function r%d() {\n    const v = Array(%d).fill(0);\n%s    return v;\n});\n" % (i, VARIABLES, script(block, "r%d" % i))
    return out


# ---- Played ----

def play(maker, block, dice):
    """Steps for the real thing, and what must come of them; None where two timers fall due at once, which the engine orders."""
    model, steps, history = Interpreter(maker.helpers), [], ["start"]
    running = model.run(block)
    try:
        waits = next(running)
        for _ in range(60):
            timers = {k: after for k, after in waits.items() if k[0] == "timer"}
            signals = [k for k in waits if k[0] == "signal"]
            stray = [n for n in range(SIGNALS) if ("signal", n) not in waits]
            if stray and dice.random() < 0.2:
                steps.append(("stray", dice.choice(stray)))
            if dice.random() < 0.3:
                steps.append(("kill", 0))
            least = min(timers.values()) if timers else 0
            if timers and (not signals or dice.random() < 0.5):
                if list(timers.values()).count(least) != 1:
                    return None
                kind, number = min(timers, key=timers.get)
                steps.append(("advance", least))
                event = (kind, number, 0, least)
            else:
                kind, number = dice.choice(signals)
                elapsed = least - 1 if least > 1 else 0
                steps += [("advance", elapsed)] if elapsed else []
                event = (kind, number, dice.randint(0, 9), elapsed)
                steps.append(("signal", event[1:3]))
            history.append("%s:%s%d" % (event[0], event[0][0], event[1]))
            waits = running.send(event)
    except StopIteration:
        return steps, [*history, "finish"], model.v
    except Jump:
        raise AssertionError("a jump out of no loop")
    return None  # not at its end after 60 events


def programs(seed, count):
    dice, made = random.Random(seed), []
    while len(made) < count:
        maker = Replayed(dice)
        block = maker.block(3, False)
        game = play(maker, block, dice) if 1 < maker.places < 40 else None
        if game:
            made.append((maker, block, game))
    return made


def kill_processes(server):
    """Those that the module runs in: the next turn is replayed from the journal."""
    for pid in pathlib.Path("/proc/%d/task/%d/children" % (server.pid, server.pid)).read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def actions(s, id):
    out = []
    for entry in s.web.get("/v1/instances/%s/history" % id).json["entries"]:
        name = (entry.get("payload") or {}).get(entry["action"]) if entry["action"] in ("timer", "signal") else None
        out.append(entry["action"] + (":" + name if name else ""))
    return out


def does_what_the_model_says(shell, name, source):
    seed = int(os.environ.get("PAWL_SEED", random.randrange(1 << 30)))
    made = programs(seed, 60 if LONG else 4)
    (installed(shell.folder) / name).write_text(source(made))
    s = Served(shell, "--test", module=shell.folder / name)
    for i, (maker, block, (steps, history, variables)) in enumerate(made):
        id = s.create("r%d" % i)
        for word, number in steps:
            if word == "advance":
                s.advance("%ds" % number)
            elif word == "kill":
                kill_processes(s.child)
            elif word == "stray":
                s.web.refused("not-awaiting", "POST", "/v1/instances/%s/signals" % id, {"name": "s%d" % number, "payload": 0})
            else:
                s.signal(id, "s%d" % number[0], number[1])
        found = (actions(s, id), s.get(id)["result"])
        assert found == (history, variables), (seed, i, block, maker.helpers, steps, (history, variables), found, s.why(id))
    s.verify()
    s.end()


def test_random_programs_in_python_do_what_the_model_says(shell):
    does_what_the_model_says(shell, "random_game.py", as_python)


def test_random_programs_in_javascript_do_what_the_model_says(shell):
    does_what_the_model_says(shell, "random_game.mjs", as_script)


if __name__ == "__main__":
    harness.main(globals())
