#!/usr/bin/env python3
"""Random programs of awaits, written as C with pawl_code.h and as a tree that a model interprets.

Each program is compiled, driven by random timers and signals with restarts in between, and must record what the
model says, with the same variables (E2, E11, E12, E17, E18). PAWL_SEED=N chooses the programs; PAWL_TEST_LONG=1
does many."""
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "house")]
from web import harness  # noqa: E402
from sentences import BUILD, build_compiler  # noqa: E402

VARIABLES, TIMERS, SIGNALS = 3, 3, 3
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


class Maker:
    """A random program. A statement is (kind, ...); places are numbered."""

    def __init__(self, dice):
        self.dice, self.places, self.loops = dice, 0, 0

    def place(self):
        self.places += 1
        return self.places

    def block(self, depth, in_loop):
        return [self.statement(depth, in_loop) for _ in range(self.dice.randint(1, 3))]

    def statement(self, depth, in_loop):
        kinds = ["add", "timer", "select", "signal"]
        if depth > 0:
            kinds += ["if", "for", "for", "select"]
        if in_loop:
            kinds += ["jump"]
        return getattr(self, self.dice.choice(kinds))(depth, in_loop)

    def add(self, depth, in_loop):
        return ("add", self.dice.randrange(VARIABLES), self.dice.randint(1, 9))

    def timer(self, depth, in_loop):
        return ("timer", self.place(), self.dice.randrange(TIMERS), self.dice.randint(1, 5))

    def signal(self, depth, in_loop):
        return ("signal", self.place(), self.dice.randrange(SIGNALS), self.dice.randrange(VARIABLES))

    def jump(self, depth, in_loop):
        return ("jump", self.dice.randrange(VARIABLES), self.dice.randint(2, 4), self.dice.choice(["break", "continue"]))

    def select(self, depth, in_loop):
        arms = [("timer", n, self.dice.randint(1, 5)) for n in self.dice.sample(range(TIMERS), self.dice.randint(0, 2))]
        arms += [("signal", n) for n in self.dice.sample(range(SIGNALS), self.dice.randint(1, 2))]
        return ("select", self.place(), [(arm, self.block(depth - 1, in_loop) if depth > 0 else [self.add(0, False)])
                                         for arm in arms])

    def __getattr__(self, name):
        return {"if": self.condition, "for": self.loop}[name]

    def condition(self, depth, in_loop):
        return ("if", self.dice.randrange(VARIABLES), self.block(depth - 1, in_loop), self.block(depth - 1, in_loop))

    def loop(self, depth, in_loop):
        self.loops += 1
        return ("for", self.loops - 1, self.dice.randint(1, 3), self.block(depth - 1, True))


# ---- as C ----

def as_c(block, pad="    "):
    out = ""
    for s in block:
        if s[0] == "add":
            out += "%sself->v%d += %d;\n" % (pad, s[1], s[2])
        elif s[0] == "timer":
            out += "%sPAWL_TIMER(p%d, T%d, PAWL_SECS(%d));\n" % (pad, s[1], s[2], s[3])
        elif s[0] == "signal":
            out += "%sPAWL_SIGNAL(p%d, S%d);\n%sself->v%d += got->S%d;\n" % (pad, s[1], s[2], pad, s[3], s[2])
        elif s[0] == "jump":
            out += "%sif (self->v%d %% %d == 0)\n%s    %s;\n" % (pad, s[1], s[2], pad, s[3])
        elif s[0] == "if":
            out += "%sif (self->v%d %% 2 == 0) {\n%s%s} else {\n%s%s}\n" % (
                pad, s[1], as_c(s[2], pad + "    "), pad, as_c(s[3], pad + "    "), pad)
        elif s[0] == "for":
            out += "%sfor (self->i%d = 0; self->i%d < %d; self->i%d++) {\n%s%s}\n" % (
                pad, s[1], s[1], s[2], s[1], as_c(s[3], pad + "    "), pad)
        else:
            out += "%sPAWL_SELECT(p%d) {\n" % (pad, s[1])
            for arm, body in s[2]:
                out += "%s    PAWL_ON_%s {\n%s%s    }\n" % (
                    pad, "TIMER(T%d, PAWL_SECS(%d))" % arm[1:] if arm[0] == "timer" else "SIGNAL(S%d)" % arm[1],
                    as_c(body, pad + "        "), pad)
            out += "%s} PAWL_AWAIT;\n" % pad
    return out


def program(number, maker, block):
    rows = ["has(var, int64_t, v%d)" % i for i in range(VARIABLES)] + ["has(var, int64_t, i%d)" % i for i in range(maker.loops)]
    rows += ["has(timer, T%d)" % i for i in range(TIMERS)] + ["has(signal, S%d, int64_t)" % i for i in range(SIGNALS)]
    rows += ["has(await, p%d)" % (i + 1) for i in range(maker.places)]
    rows += ["has(result, int64_t, v%d)" % i for i in range(VARIABLES)]
    ends = "".join("    result->v%d = self->v%d;\n" % (i, i) for i in range(VARIABLES))
    return "#define L%d(has) %s\nPAWL_CODE(r%d, L%d)\n{\n    PAWL_BEGIN(L%d);\n%s%s    PAWL_END;\n}\n" % (
        number, " \\\n    ".join(rows), number, number, number, as_c(block), ends)


# ---- as the model has it ----

class Jump(Exception):
    pass


class Model:
    """Runs a program as a generator: yields what it waits for, is sent (kind, number, payload)."""

    def __init__(self):
        self.v = [0] * VARIABLES

    def run(self, block):
        for s in block:
            if s[0] == "add":
                self.v[s[1]] += s[2]
            elif s[0] == "timer":
                yield {("timer", s[2]): s[3]}
            elif s[0] == "signal":
                _, _, payload = yield {("signal", s[2]): 0}
                self.v[s[3]] += payload
            elif s[0] == "jump":
                if self.v[s[1]] % s[2] == 0:
                    raise Jump(s[3])
            elif s[0] == "if":
                yield from self.run(s[2] if self.v[s[1]] % 2 == 0 else s[3])
            elif s[0] == "for":
                yield from self.repeat(s)
            else:
                kind, number, _ = yield {(arm[0], arm[1]): arm[2] if arm[0] == "timer" else 0 for arm, _ in s[2]}
                yield from self.run(next(body for arm, body in s[2] if arm[:2] == (kind, number)))

    def repeat(self, s):
        for _ in range(s[2]):
            try:
                yield from self.run(s[3])
            except Jump as jump:
                if str(jump) == "break":
                    break


def play(block, dice):
    """Steps for the real thing, and what must come of them."""
    model, steps, history = Model(), [], ["start"]
    running = model.run(block)
    try:
        waits = next(running)
        for _ in range(60):
            timers = {k: after for k, after in waits.items() if k[0] == "timer"}
            signals = [k for k in waits if k[0] == "signal"]
            stray = [n for n in range(SIGNALS) if ("signal", n) not in waits]
            if stray and dice.random() < 0.2:
                steps.append("N %d" % dice.choice(stray))  # nobody awaits it: refused
            if dice.random() < 0.2:
                steps.append("R")
            least = min(timers.values()) if timers else 0
            if timers and (not signals or dice.random() < 0.5) and list(timers.values()).count(least) == 1:
                kind, number = min(timers, key=timers.get)
                steps.append("A %d" % least)
                event = (kind, number, 0)
            elif signals:
                kind, number = dice.choice(signals)
                payload = dice.randint(0, 9)
                if least > 1:
                    steps.append("A %d" % (least - 1))  # not yet
                steps.append("S %d %d" % (number, payload))
                event = (kind, number, payload)
            else:  # two timers at one instant: which is first is the engine's to say
                return None
            history.append("%s:%s%d" % (event[0], event[0][0], event[1]))
            waits = running.send(event)
    except StopIteration:
        history.append("finish")
    return steps, " ".join(history), model.v


DRIVER = """
int main(void)
{
    static pawl_kit kit;
    char line[256], word, *end;
    const char *id = NULL;
    pawl_kit_open(&kit, "sqlite:random.db");
%s    while (fgets(line, sizeof line, stdin)) {
        long n = strtol(line + 1, &end, 10);
        char name[16], payload[32];
        word = line[0];
        snprintf(name, sizeof name, "s%%ld", n);
        snprintf(payload, sizeof payload, "%%ld", strtol(end, NULL, 10));
        if (word == 'B') {
            snprintf(name, sizeof name, "r%%ld", n);
            id = pawl_kit_start(&kit, name, NULL);
        } else if (word == 'A')
            pawl_kit_advance(&kit, PAWL_SECS(n));
        else if (word == 'S')
            PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, name, payload));
        else if (word == 'N')
            PAWL_EXPECT_STATUS(&kit, pawl_kit_signal(&kit, id, name, payload), PAWL_NOT_AWAITING);
        else if (word == 'R')
            pawl_kit_restart(&kit);
        else {
            puts(pawl_kit_history(&kit, id));
            puts(pawl_kit_ask(&kit, "instance.variables", id));
            PAWL_EXPECT_OK(&kit, pawl_cancel(kit.p, id, NULL, NULL, NULL, &kit.error) == PAWL_TERMINAL
                                     ? PAWL_OK : kit.error.status);
        }
    }
    pawl_kit_close(&kit);
    return 0;
}
"""


def test_random_programs_do_what_the_model_says(shell):
    seed = int(os.environ.get("PAWL_SEED", random.randrange(1 << 30)))
    dice = random.Random(seed)
    count = 60 if os.environ.get("PAWL_TEST_LONG") else 12
    made = []
    while len(made) < count:
        maker = Maker(dice)
        block = maker.block(3, False)
        game = play(block, dice) if 0 < maker.places < 40 else None
        if game:
            made.append((maker, block, game))
    source = '#include <pawl_code.h>\n#include <pawl_test.h>\n' + "".join(
        program(i, maker, block) for i, (maker, block, _) in enumerate(made)) + DRIVER % "".join(
            "    pawl_kit_register(&kit, r%d());\n" % i for i in range(count))
    shell.write("random.c", source)
    subprocess.run([*build_compiler(), *WARNINGS, "-g", "-I", harness.ROOT / "include", "random.c", "-o", "driver",
                    "-L", BUILD, "-lpawl"], cwd=shell.folder, check=True)
    script = "".join("B %d\n%sE\n" % (i, "".join(step + "\n" for step in game[0])) for i, (_, _, game) in enumerate(made))
    done = subprocess.run([shell.folder / "driver"], cwd=shell.folder, input=script.encode(), capture_output=True, timeout=300,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD)))
    assert done.returncode == 0, (seed, done.stderr.decode()[-2000:], source)
    lines = done.stdout.decode().splitlines()
    for i, (_, block, (steps, history, variables)) in enumerate(made):
        found = [word for word in lines[2 * i].split() if word != "cancel"]
        assert " ".join(found) == history, (seed, i, block, steps, history, lines[2 * i])
        for n, value in enumerate(variables):
            assert '"v%d":%d' % (n, value) in lines[2 * i + 1], (seed, i, block, steps, variables, lines[2 * i + 1])
    shell.pawl("--store", "sqlite:random.db", "verify")


if __name__ == "__main__":
    harness.main(globals())
