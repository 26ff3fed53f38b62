#!/usr/bin/env python3
"""What a compiler says of durable code: nothing where it is right, and a clear sentence where it is wrong.

The table WRONG is the table of docs/durable-code.md, "What the compiler refuses"."""
import concurrent.futures
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
from sentences import ROOT, main  # noqa: E402

SCREEN = 24  # lines
COMPILERS = ["gcc"] + [name for name in ("clang",) if shutil.which(name)]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

LIST = """#include <pawl_code.h>

#define SAMPLE(has)                      \\
    has(input, uint32_t, secs, 60)       \\
    has(input, text, who, 32)            \\
    has(var, uint32_t, n)                \\
    has(timer, Tick)                     \\
    has(signal, Go, uint32_t)            \\
    has(call, charge, int64_t)           \\
    has(call, refund)                    \\
    has(result, uint32_t, total)         \\
    has(await, one)                      \\
    has(await, two)
"""
HEAD = """
PAWL_CODE(sample, SAMPLE)
{
    PAWL_BEGIN(SAMPLE);
"""
FOOT = """
    result->total = self->n;
    PAWL_END;
}
"""
ONE = "    PAWL_TIMER(one, Tick, PAWL_SECS(self->secs));\n"
TWO = "    PAWL_SIGNAL(two, Go);\n    self->n += got->Go;\n"
LOOP = """    for (;;) {
        PAWL_SELECT(two) {
            PAWL_ON_TIMER(Tick, 5) break;
            PAWL_ON_SIGNAL(Go) self->n += got->Go;
        } PAWL_AWAIT;
    }
"""


def code(body):
    return LIST + HEAD + body + FOOT


def select(*arms):
    return ONE + "    PAWL_SELECT(two) {\n        %s\n    } PAWL_AWAIT;\n" % "\n        ".join(arms)


def gather():
    return ("    PAWL_GATHER(two) {\n        PAWL_GATHER_CALL(charge, NULL);\n    } PAWL_EACH {\n        self->n += !PAWL_ERROR;\n"
            "    } PAWL_GATHERED;\n")


def listed(right, wrong):
    assert right in LIST
    return LIST.replace(right, wrong) + HEAD + ONE + TWO + FOOT


JUMP = "jump skips variable initialization"

# A mistake: the program, what gcc says first, what clang says first (None: to clang it is right, and it works).
# What "may be" wrong where one of several things is awaited is a warning of clang, and no error.
WRONG = {
    "a local that is used after an await":
        (code(LOOP + "    uint32_t x = self->n * 2;\n" + ONE + "    self->n += x;\n"),
         JUMP, "variable 'x' is uninitialized when used here"),
    "a counter of a loop around an await":
        (code("    for (int i = 0; i < 3; i++) {\n    " + ONE + "    }\n" + TWO),
         JUMP, "variable 'i' is uninitialized when used here"),
    "arguments in a local beside the await":
        (code(ONE + '    const char *args = pawl_turn_text(turn, "[%u]", (unsigned)self->n);\n'
              "    PAWL_CALL(two, charge, args);\n"), JUMP, None),
    "an array of variable length around an await":
        (code(TWO + "    char x[self->n];\n    x[0] = 1;\n" + ONE + "    self->n = (uint32_t)x[0];\n"),
         "jump into scope of identifier with variably modified type", "cannot jump from this goto statement"),
    "a place of the list that the code does not have":
        (code(ONE), "label 'pawl_place_two_' used but not defined", "use of undeclared label 'pawl_place_two_'"),
    "a place that the code has twice":
        (code(ONE + TWO + TWO), "duplicate label 'pawl_place_two_'", "redefinition of label 'pawl_place_two_'"),
    "a place that the list does not have":
        (code(ONE + TWO + "    PAWL_SIGNAL(three, Go);\n"), "'pawl_await_three_' undeclared",
         "undeclared identifier 'pawl_await_three_'"),
    "a timer that the list does not have":
        (code(TWO + "    PAWL_TIMER(one, Tock, 5);\n"), "'pawl_timer_Tock_' undeclared",
         "undeclared identifier 'pawl_timer_Tock_'"),
    "a signal that the list does not have":
        (code(ONE + "    PAWL_SIGNAL(two, Stop);\n"), "'pawl_signal_Stop_' undeclared",
         "undeclared identifier 'pawl_signal_Stop_'"),
    "a variable that the list does not have":
        (code(ONE + TWO + "    self->m = 1;\n"), "no member named 'm'", "no member named 'm'"),
    "a select in a loop without its await":
        (code(ONE + LOOP.replace(" PAWL_AWAIT;", "")), "'PAWL_SELECT_has_no_PAWL_AWAIT_'",
         "'PAWL_SELECT_has_no_PAWL_AWAIT_'"),
    "a select without its await":
        (code(select("PAWL_ON_SIGNAL(Go) self->n++;").replace(" PAWL_AWAIT;", "")),
         "'PAWL_SELECT_has_no_PAWL_AWAIT_'", "'PAWL_SELECT_has_no_PAWL_AWAIT_'"),
    "an await without its select":
        (code(ONE + TWO + "    PAWL_AWAIT;\n"), "'PAWL_SELECT_has_no_PAWL_AWAIT_' undeclared",
         "undeclared identifier 'PAWL_SELECT_has_no_PAWL_AWAIT_'"),
    "an arm outside of a select":
        (code(ONE + TWO + "    PAWL_ON_SIGNAL(Go) self->n++;\n"), "'PAWL_ON_outside_of_a_PAWL_SELECT_' undeclared",
         "undeclared identifier 'PAWL_ON_outside_of_a_PAWL_SELECT_'"),
    "a gather without what is done with each answer":
        (code(ONE + gather().replace(" PAWL_EACH {\n        self->n += !PAWL_ERROR;\n    }", "")),
         "'PAWL_EACH_has_no_PAWL_GATHERED_' undeclared", "undeclared identifier 'PAWL_EACH_has_no_PAWL_GATHERED_'"),
    "a gather without its end":
        (code(ONE + gather().replace(" PAWL_GATHERED;", "")), "'PAWL_EACH_has_no_PAWL_GATHERED_'",
         "'PAWL_EACH_has_no_PAWL_GATHERED_'"),
    "what a gather begins, outside of one":
        (code(ONE + TWO + "    PAWL_GATHER_CALL(charge, NULL);\n"), "'PAWL_GATHER_CALL_outside_of_a_PAWL_GATHER_' undeclared",
         "undeclared identifier 'PAWL_GATHER_CALL_outside_of_a_PAWL_GATHER_'"),
    "a local that lives across a gather":
        (code(ONE + "    uint32_t x = self->n * 2;\n" + gather() + "    self->n += x;\n"), JUMP,
         "variable 'x' may be uninitialized when used here"),
    "two arms of one select for one timer":
        (code(select("PAWL_ON_TIMER(Tick, 5) self->n++;", "PAWL_ON_TIMER(Tick, 7) self->n--;")),
         "'two_arms_of_one_select_for_timer_Tick'", "'two_arms_of_one_select_for_timer_Tick'"),
    "two arms of one select for one signal":
        (code(select("PAWL_ON_SIGNAL(Go) self->n++;", "PAWL_ON_SIGNAL(Go) self->n--;")),
         "'two_arms_of_one_select_for_signal_Go'", "'two_arms_of_one_select_for_signal_Go'"),
    "two calls in one select":
        (code(select('PAWL_ON_CALL(charge, "[]") {}', 'PAWL_ON_CALL(refund, "[]") {}')),
         "'two_arms_of_one_select_for_calls_externals_or_children'",
         "'two_arms_of_one_select_for_calls_externals_or_children'"),
    "an arm with a condition and no braces":
        (code(select("if (self->n) PAWL_ON_TIMER(Tick, 5) self->n++;", "PAWL_ON_SIGNAL(Go) self->n--;")),
         "expected expression before 'pawl_arm_with_a_condition_needs_braces'", "expected expression"),
    "a break of a select outside of a loop":
        (code(select("PAWL_ON_SIGNAL(Go) break;")), "break statement not within loop or switch",
         "'break' statement not in loop or switch statement"),
    "code without its end":
        (LIST + HEAD + ONE + TWO + "}\n", "expected declaration or statement at end of input", "expected '}'"),
    "a policy of a call that the list does not have":
        (listed("has(call, refund) ", "has(call, refund) has(retry, refnd, 3) "), "'pawl_call_refnd_' undeclared",
         "undeclared identifier 'pawl_call_refnd_'"),
    "two policies of one call":
        (listed("has(call, refund) ", "has(call, refund) has(retry, refund, 3) has(retry, refund, 4) "),
         "redeclaration of enumerator 'pawl_retry_refund_'", "redefinition of enumerator 'pawl_retry_refund_'"),
    "the kind int":
        (listed("has(var, uint32_t, n)", "has(var, int, n)"), "n: expected the kind int8_t to int64_t, ", ", found int"),
    "the kind string":
        (listed("has(input, text, who, 32)", "has(input, string, who)"), ", found string", ", found string"),
    "the kind size_t":
        (listed("has(signal, Go, uint32_t)", "has(signal, Go, size_t)"), ", found size_t", ", found size_t"),
    "the kind of two words":
        (listed("has(var, uint32_t, n)", "has(var, unsigned int, n)"), ", found unsigned int", ", found unsigned int"),
    "the kind and the name in the wrong order":
        (listed("has(var, uint32_t, n)", "has(var, n, uint32_t)"), "uint32_t: expected the kind ", ", found n"),
    "the kind of a payload in place of its name":
        (listed("has(signal, Go, uint32_t)", "has(signal, uint32_t, Go)"), "uint32_t: expected the kind ", ", found Go"),
    "the kind of a result, a pointer":
        (listed("has(result, uint32_t, total)", "has(result, char *, total)"), ", found char *", ", found char *"),
    "a list of what is no number":
        (listed("has(input, text, who, 32)", "has(var, list, xs, int, 3)"),
         "list, xs, KIND, MAX: expected the KIND of a number or bool, found int", "or bool, found int"),
    "a text without its size":
        (listed("has(input, text, who, 32)", "has(input, text, who)"),
         "text, who, SIZE: expected a size of 2 bytes or more", "text, who, SIZE: expected a size"),
}

# A list that the preprocessor refuses, whichever compiler it is of: the program, and what it says first.
NO_LIST = {
    "a word that is none":
        (listed("has(var, uint32_t, n)", "has(variable, uint32_t, n)"),
         "has(variable, ...): expected var, input, required, "),
    "a timer's word that is none":
        (listed("has(timer, Tick)", "has(tiemr, Tick)"), "has(tiemr, ...): expected var, "),
    "a line without a word": (listed("has(timer, Tick)", "has(timer, Tick) has()"), "has(, ...): expected var, "),
    "a variable without a name":
        (listed("has(var, uint32_t, n)", "has(var, uint32_t)"),
         "has(var, uint32_t): expected the kind and the name of a variable"),
    "a kind without the comma behind it":
        (listed("has(var, uint32_t, n)", "has(var, uint32_t n)"),
         "has(var, uint32_t n): expected the kind and the name of a variable, with a comma between them"),
    "a word without the comma behind it":
        (listed("has(timer, Tick)", "has(timer Tick)"), "PAWL_no_comma_before_ Tick"),
    "a variable's word without the comma behind it":
        (listed("has(var, uint32_t, n)", "has(var uint32_t, n)"), "PAWL_no_comma_before_the_kind_ uint32_t"),
    "a comma between the lines":
        (listed("has(timer, Tick)", "has(timer, Tick),"),
         "expected lines of has(...) with a backslash behind each but the last, found ,"),
    "a semicolon between the lines": (listed("has(timer, Tick)", "has(timer, Tick);"), "but the last, found ;"),
    "a semicolon behind the last line": (listed("has(await, two)", "has(await, two);"), "but the last, found ;"),
    "has, misspelt": (listed("has(timer, Tick)", "hsa(timer, Tick)"), "but the last, found hsa(timer, Tick)"),
    "has, left out": (listed("has(timer, Tick)", "(timer, Tick)"), "but the last, found (timer, Tick)"),
    "a parenthesis too many": (listed("has(timer, Tick)", "has(timer, Tick))"), "but the last, found"),
    "has without its parenthesis": (listed("has(timer, Tick)", "has timer, Tick)"), "found PAWL_NOTHING_ timer, Tick"),
    "a list that is given nothing": (listed("SAMPLE(has) ", "SAMPLE "), "but the last, found has(input, uint32_t, secs, 60)"),
    "a list of another name in the head":
        ((LIST + HEAD + ONE + TWO + FOOT).replace("(sample, SAMPLE)", "(sample, SAMPEL)"), "but the last, found SAMPEL("),
    "a list of another name at the beginning":
        ((LIST + HEAD + ONE + TWO + FOOT).replace("BEGIN(SAMPLE)", "BEGIN(SAMPEL)"), "but the last, found SAMPEL("),
    "a semicolon in the list of a struct":
        ("#include <pawl_code.h>\n#define LINE(has) has(text, sku, 16); has(uint32_t, count)\nPAWL_STRUCT(line, LINE);\n",
         "expected lines of has(...) with a backslash behind each but the last, found ;"),
}

RIGHT = {
    "all that the table has, done right": code(ONE + LOOP),
    "a local that ends before the await":
        code("    {\n        uint32_t k = self->n * 2;\n        self->n = k;\n    }\n" + ONE + TWO),
    "a local after the last await":
        code(ONE + TWO + "    uint32_t k = self->n * 2;\n    self->n = k;\n"),
    "a local before the beginning":
        code(ONE + TWO + "    self->n += k;\n").replace("    PAWL_BEGIN", "    uint32_t k = self->secs;\n\n    PAWL_BEGIN"),
    "an await in a switch of one's own":
        code("    switch (self->n) {\n    case 0:\n" + ONE + "        break;\n    default:\n" + TWO + "    }\n"),
    "an arm with a condition, in braces":
        code(select("if (self->n) {", "PAWL_ON_TIMER(Tick, 5) self->n++;", "}", "PAWL_ON_SIGNAL(Go) self->n--;")),
    "a select inside of a select":
        code(select("PAWL_ON_TIMER(Tick, 5) {}",
                    "PAWL_ON_SIGNAL(Go) {", "PAWL_SELECT(one) {", "PAWL_ON_TIMER(Tick, 5) {}", "PAWL_ON_SIGNAL(Go) {}",
                    "} PAWL_AWAIT;", "}").replace(ONE, "")),
    "a local for each stretch between awaits":
        code("    uint32_t i;\n\n    while (self->n < 9) {\n        for (i = 0; i < 3; i++)\n            self->n += i;\n" + ONE +
             "        for (i = 0; i < 5; i++)\n            self->n += i;\n" + TWO + "    }\n"),
    "a local for the arguments of each await":
        code("    const char *args;\n\n    args = pawl_turn_text(turn, \"[%u]\", (unsigned)self->n);\n"
             "    PAWL_CALL(one, charge, args);\n    args = \"[2]\";\n    PAWL_CALL(two, refund, args);\n"),
    "a local that is given a value inside of the select":
        code(ONE + "    uint32_t x;\n" + select("x = 0;", "PAWL_ON_SIGNAL(Go) x = got->Go;", "PAWL_ON_TIMER(Tick, 5) {}")
             .replace(ONE, "") + "    self->n = x;\n"),
    "a select as the only statement of an if":
        code(ONE + "    if (self->n)\n" + select("PAWL_ON_SIGNAL(Go) self->n--;").replace(ONE, "")),
    "a select whose await has no semicolon":
        code(select("PAWL_ON_SIGNAL(Go) self->n--;").replace("PAWL_AWAIT;", "PAWL_AWAIT") + "    self->n++;\n"),
}


def run(words, folder=None):
    done = subprocess.run(words, capture_output=True, cwd=folder, env=dict(os.environ, LC_ALL="C"))
    return done.returncode, done.stderr.decode()


def compile_text(compiler, text, *words):
    with tempfile.TemporaryDirectory() as folder:
        is_cpp = compiler.endswith("++")
        path = pathlib.Path(folder) / ("sample.cc" if is_cpp else "sample.c")
        path.write_text(text)
        (path.parent / "include").symlink_to(ROOT / "include")  # messages have no path of this machine
        words = ["include" if word == str(ROOT / "include") else word for word in words]
        return run([compiler, "-std=c++17" if is_cpp else "-std=c11", *words, path.name], folder)


def all_of(jobs):
    """The answers of many compilers, several at a time: {key: (exit, what it said)}."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {key: pool.submit(*job) for key, job in jobs.items()}
        return {key: future.result() for key, future in futures.items()}


@functools.lru_cache(None)
def said_of_wrong():
    """As a user compiles with installed headers and the documents' -Wall."""
    flags = ["-Wall", "-fsyntax-only", "-isystem", str(ROOT / "include")]
    return all_of({(compiler, name): (compile_text, compiler, row[0], *flags)
                   for compiler in COMPILERS for name, row in WRONG.items()})


def first_message(said):
    return next((line for line in said.splitlines() if "error:" in line or "warning:" in line), "")


def test_each_mistake_is_refused_and_the_first_message_says_which():
    for (compiler, name), (status, said) in said_of_wrong().items():
        words = WRONG[name][1 if compiler == "gcc" else 2]
        if words is None:
            assert status == 0 and not said, (compiler, name, said)
        else:
            assert words in first_message(said), (compiler, name, said)
            assert (status != 0) == ("may be" not in words), (compiler, name, said)


def lines_of_100(said):
    return sum(max(1, -(-len(line) // 100)) for line in said.splitlines())


def test_what_gcc_says_of_a_mistake_fits_on_a_screen():
    for (compiler, name), (_, said) in said_of_wrong().items():
        assert compiler != "gcc" or lines_of_100(said) <= SCREEN, (name, said)


def test_what_clang_says_of_a_wrong_kind_fits_on_a_screen():
    for (compiler, name), (_, said) in said_of_wrong().items():
        if name.startswith("the kind") or name == "a text without its size":
            assert lines_of_100(said) <= SCREEN, (compiler, name, said)


def test_a_list_that_is_none_is_one_sentence_and_nothing_that_follows_from_it():
    flags = ["-Wall", "-fsyntax-only", "-isystem", str(ROOT / "include")]
    answers = all_of({(compiler, name): (compile_text, compiler, row[0], *flags)
                      for compiler in [*COMPILERS, "g++"] for name, row in NO_LIST.items()})
    for (compiler, name), (status, said) in answers.items():
        assert status != 0 and NO_LIST[name][1] in first_message(said), (compiler, name, said)
        assert len(re.findall("error:", said)) <= 2 and len(said.splitlines()) <= SCREEN, (compiler, name, said)
        # A list that is given nothing is quoted whole.
        assert lines_of_100(said) <= SCREEN or name == "a list that is given nothing", (compiler, name, said)


# Mistakes after which no compiler can be stopped: the program, what gcc says first, what clang says first.
NAMED_FIRST = {
    "a first value behind an equals sign":
        (listed("has(var, uint32_t, n)", "has(var, uint32_t, n = 3)"), "n = 3: expected the name alone", "expected ';'"),
    "a result with a value":
        (listed("has(result, uint32_t, total)", "has(result, uint32_t, total = 3)"), "total = 3: expected the name alone",
         "expected ';'"),
    "a name of two words":
        (listed("has(var, uint32_t, n)", "has(var, uint32_t, n m)"), "n m: expected the name alone", "expected ';'"),
    "an array": (listed("has(var, uint32_t, n)", "has(var, uint32_t, n[3])"), "n[3]: expected the name alone", "array"),
    "a comment of two slashes":
        (listed("has(timer, Tick)                     \\", "has(timer, Tick) // each second \\"), "multi-line comment",
         "multi-line // comment"),
}


def test_what_cannot_be_stopped_is_named_first():
    """Not on a screen, because what follows from it is in the author's own code, once for each use.

    A paste joins the first or the last word of an argument alone, so no macro can tell `n = 3` from `n`, and only a
    macro can stop gcc: it has no pragma that makes an error fatal. A comment is gone before macros are read: what is left
    is a right list without the lines below it. Awaits without PAWL_BEGIN lack names that only it can declare, since they
    do not know their type."""
    flags = ["-Wall", "-fsyntax-only", "-isystem", str(ROOT / "include")]
    answers = all_of({(compiler, name): (compile_text, compiler, row[0], *flags)
                      for compiler in COMPILERS for name, row in NAMED_FIRST.items()})
    for (compiler, name), (status, said) in answers.items():
        words = NAMED_FIRST[name][1 if compiler == "gcc" else 2]
        assert status != 0 and words in first_message(said), (compiler, name, said)


def lost_backslashes(text):
    """The program with each line of its list without its backslash: {number of the line below it: program}."""
    lines = text.splitlines()
    cuts = {at: lines[:at] + [lines[at].rstrip("\\").rstrip()] + lines[at + 1:] for at in range(2, len(lines) - 1)}
    return {at + 2: "\n".join(cut) + "\n" + HEAD + ONE + LOOP + FOOT for at, cut in cuts.items()}


def said_of_lost_backslashes(compilers, text):
    flags = ["-Wall", "-fsyntax-only", "-isystem", str(ROOT / "include")]
    return all_of({(compiler, line): (compile_text, compiler, program, *flags)
                   for compiler in compilers for line, program in lost_backslashes(text).items()})


def test_a_lost_backslash_is_one_sentence_and_the_line_below_it():
    for (compiler, line), (status, said) in said_of_lost_backslashes(COMPILERS, LIST).items():
        words = "sample.c:%d:.*expected lines of has.* with a backslash behind each but the last, found has" % line
        assert status != 0 and re.search(words, first_message(said)), (compiler, line, said)
        assert len(re.findall("error:", said)) <= 2 and lines_of_100(said) <= SCREEN, (compiler, line, said)


def test_a_lost_backslash_is_named_where_has_is_called_otherwise_and_in_cpp():
    otherwise = said_of_lost_backslashes(COMPILERS, LIST.replace("has", "item"))
    for (compiler, line), (status, said) in {**otherwise, **said_of_lost_backslashes(["g++"], LIST)}.items():
        # clang takes the last line alone, and the first of two without kinds, for the head of a function of old C.
        is_named = re.search("sample[.]cc?:%d:" % line, said) or compiler == "clang"
        assert status != 0 and is_named and "sample_if_no_backslash_is_missing_'" in said, (compiler, line, said)
        # To gcc a line without a kind is such a head, which takes more words.
        room = SCREEN + 10 if compiler == "gcc" and "Wimplicit-int" in said else SCREEN + 2
        assert lines_of_100(said) <= room and "in this function" not in said, (compiler, line, said)


def test_a_program_may_have_a_has_of_its_own():
    text = (LIST + HEAD + ONE + LOOP + FOOT + "static int has(int x, int y) { return x + y; }\n"
            "int own(int x);\nint own(int x) { return has(x, 1) + (has)(-x, 1); }\n#undef has\n"
            "int own2(int x);\nint own2(int x) { return has(-x, 1); }\n")
    for compiler in COMPILERS:
        status, said = compile_text(compiler, text, *STRICT, "-fsyntax-only", "-I", str(ROOT / "include"))
        assert status == 0 and not said, (compiler, said)


def test_code_without_its_beginning_is_named_first_and_clang_stops_there():
    text = code(ONE + LOOP).replace("    PAWL_BEGIN(SAMPLE);\n", "")
    for compiler in [*COMPILERS, "g++"]:
        status, said = compile_text(compiler, text, "-Wall", "-fsyntax-only", "-isystem", str(ROOT / "include"))
        assert status != 0 and "PAWL_BEGIN_is_missing_" in first_message(said), (compiler, said)
        assert compiler != "clang" or lines_of_100(said) <= SCREEN, said


# Locals without a first value, lost across an await. What they are called, and the code with WAIT for an await.
LOST = {
    "a counter of a for loop": "    uint32_t x;\n\n    for (x = 0; x < 3; x++) {\nWAIT    }\n",
    "a counter of a while loop": "    uint32_t x;\n\n    x = 0;\n    while (x++ < 3) {\nWAIT    }\n",
    "counters of two loops":
        "    uint32_t y, x;\n\n    for (y = 0; y < 3; y++)\n        for (x = 0; x < 3; x++) {\nWAIT        }\n",
    "a sum": "    uint32_t x;\n\n    x = 0;\n    while (self->n < 3) {\nWAIT        x += 2;\n        self->n++;\n    }\n"
             "    self->n = x;\n",
    "a value": "    uint32_t x;\n\n    x = self->n;\nWAIT    self->n += x;\n",
    "a value that is used sometimes":
        "    uint32_t x;\n\n    x = self->n * 2;\nWAIT    if (self->n > 3)\n        self->n = x;\n",
    "what a timer is given": "    int64_t x;\n\n    x = self->n * 2;\nWAIT    PAWL_TIMER(more, Tick, PAWL_SECS(x));\n",
    "what a call is given":
        '    const char *x;\n\n    x = pawl_turn_text(turn, "[%u]", (unsigned)self->n);\nWAIT'
        "    PAWL_CALL(more, refund, x);\n",
    "what a failure says": "    int x;\n\n    x = (int)self->n;\nWAIT    if (self->n)\n        PAWL_FAIL(\"%d\", x);\n",
}
WAITS = {
    "alone": "    PAWL_TIMER(one, Late, 5);\n",
    "select": "    PAWL_SELECT(one) {\n        PAWL_ON_TIMER(Late, 5) {}\n        PAWL_ON_SIGNAL(Go) {}\n    } PAWL_AWAIT;\n",
}


def lost(what, wait):
    body = TWO + LOST[what].replace("WAIT", WAITS[wait])
    if "more" not in body:
        body += "    PAWL_TIMER(more, Late, 1);\n"
    return LIST.replace("has(await, two)", "has(await, two) has(await, more) has(timer, Late)") + HEAD + body + FOOT


def test_a_local_without_a_first_value_that_is_lost_across_an_await_is_refused():
    """By gcc and g++, with and without optimization. g++ looks into the arguments of a call only for its numbers."""
    jobs = {(compiler, level, what, wait): (compile_text, compiler, lost(what, wait), level, "-S", "-o", os.devnull,
                                            "-isystem", str(ROOT / "include"))
            for compiler in ("gcc", "g++") for level in ("-O0", "-Og", "-O1", "-O2") for what in LOST for wait in WAITS
            if compiler == "gcc" or what != "what a call is given"}
    for key, (status, said) in all_of(jobs).items():
        assert status != 0 and re.search("error: .x. (may be|is) used uninitialized", first_message(said)), (key, said)


def test_clang_refuses_locals_that_an_await_of_one_thing_loses_and_warns_of_those_a_select_loses():
    jobs = {(what, wait): (compile_text, "clang", lost(what, wait), "-fsyntax-only", "-isystem", str(ROOT / "include"))
            for what in LOST for wait in WAITS}
    for (what, wait), (status, said) in all_of(jobs).items() if "clang" in COMPILERS else ():
        assert re.search("variable '[xy]' (is|may be) (used )?uninitialized", first_message(said)), (what, wait, said)
        assert (status != 0) == (wait == "alone"), (what, wait, said)


def test_in_cpp_a_local_across_an_await_is_refused():
    text = WRONG["a counter of a loop around an await"][0]
    status, said = compile_text("g++", text, "-Wall", "-fsyntax-only", "-I", str(ROOT / "include"))
    assert status != 0 and "crosses initialization of" in said, said


def test_right_code_compiles_without_a_warning():
    flags = [*STRICT, "-Wshadow", "-Wdeclaration-after-statement", "-S", "-o", os.devnull, "-I", str(ROOT / "include")]
    answers = all_of({(compiler, level, name): (compile_text, compiler, text, *flags, level)
                      for compiler in COMPILERS for level in ("-O0", "-O1") for name, text in RIGHT.items()})
    for key, (status, said) in answers.items():
        assert status == 0 and not said, (key, said)


def test_gcc_knows_that_one_of_the_arms_was_taken():
    text = code(ONE + "    uint32_t x;\n\n    for (;;) {\n" +
                select("PAWL_ON_SIGNAL(Go) x = got->Go;", "PAWL_ON_TIMER(Tick, 5) x = self->secs;").replace(ONE, "") +
                "        self->n += x;\n        if (x > 7)\n            break;\n    }\n")
    for level in ("-O0", "-Og", "-O1", "-O2", "-O3"):
        status, said = compile_text("gcc", text, *STRICT, level, "-S", "-o", os.devnull, "-I", str(ROOT / "include"))
        assert status == 0 and not said, (level, said)


def test_the_examples_and_the_modules_of_the_tests_compile_without_a_warning():
    files = ["examples/code/flows.c", "tests/code/bad.c", "tests/code/plain.c"]
    jobs = {("g++", files[0]): (run, ["g++", "-x", "c++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", "-I",
                                      str(ROOT / "include"), str(ROOT / files[0])])}
    for compiler in COMPILERS:
        for how in (["-std=c11", "-O2"], ["-std=gnu11", "-O0"], ["-std=c11", "-O0", "-fsanitize=address,undefined"]):
            for file in files:
                jobs[compiler, file, *how] = (run, [compiler, *how, *STRICT, "-S", "-o", os.devnull, "-I",
                                                      str(ROOT / "include"), str(ROOT / file)])
    for key, (status, said) in all_of(jobs).items():
        assert status == 0 and not said, (key, said)


def test_every_command_of_the_documents_that_compiles_has_wall_and_for_durable_code_optimizes():
    command = re.compile(r"(?:^|[`(* ])(?:cc|gcc|clang|c[+][+]|g[+][+]) [^`\n]*[.](?:c|cc|cpp)\b", re.MULTILINE)
    pages = [page for folder in ("docs", "man", "include", "examples") for page in (ROOT / folder).rglob("*")
             if page.suffix in (".md", ".h", ".c", ".1", ".3", ".5")] + [ROOT / "README.md"]
    found = [(str(page), line) for page in pages for line in command.findall(page.read_text().replace("\\-", "-"))]
    assert len(found) > 8, found
    assert not [each for each in found if "-Wall" not in each[1]], found
    of_code = [each for each in found if "-shared" in each[1] or each[0].endswith("durable-code.md")]
    assert len(of_code) > 8 and not [each for each in of_code if "-O2" not in each[1]], of_code


main(globals())
