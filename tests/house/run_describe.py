#!/usr/bin/env python3
"""run_describe.py - tools/gen-ops: descriptions that make no sense fail the build, and say where."""
import pathlib
import sys
import tempfile

from sentences import ROOT, main

sys.path.append(str(ROOT / "tools"))
sys.dont_write_bytecode = True
from ops import c_table, openapi, operations, plain_yaml, statuses, verbs  # noqa: E402

GOOD = """operations:
  thing.get:
    summary: A thing
    route: GET /v1/things/{name}
    scope: read
    where: home
    flags: [quick]
    takes:
      name: text -- which one
      limit?: count -- how many
    answer: {thing: json}
    example: {name: a, limit: 3}
    gives: {thing: 1}
"""


def described(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "a.yaml")
        path.write_text(text)
        return operations.Described([path], ["read", "write"])


def refused(words, run, *arguments):
    try:
        run(*arguments)
    except plain_yaml.Defect as defect:
        assert words in str(defect), defect
    else:
        raise AssertionError("expected to be refused: " + words)


def test_a_description_becomes_a_row_of_c_and_a_prototype():
    made = described(GOOD)
    assert ('static const struct op_param thing_get_params[] = {\n'
            '    { "name", IN_PATH, OP_STRING, true, "which one" },\n'
            '    { "limit", IN_QUERY, OP_INTEGER, false, "how many" },\n    { 0 },\n};') in c_table.table(made)
    assert '{ "thing.get", "GET", "/v1/things/{name}", OP_QUICK, 200, "A thing", thing_get_params, op_thing_get, "read", AT_HOME }' in c_table.table(made)
    assert "pawl_status op_thing_get(struct op_call *call, struct buf *out);" in c_table.handlers(made)


def status_map(*rows):
    return "#define PAWL_STATUS_MAP(X) \\\n%s\ntypedef enum pawl_status {" % " \\\n".join(rows)


def test_a_status_may_go_on_in_the_next_line():
    wrapped = 'X(TERMINAL, 7,   \\\n      "terminal", 409, \\\n "the instance has ended")'
    assert statuses.read(status_map('X(OK, 0, "ok", 200, "done")', wrapped)) == [
        ("OK", "0", "ok", "200", "done"), ("TERMINAL", "7", "terminal", "409", "the instance has ended")]


def test_a_status_that_cannot_be_read_is_not_left_out():
    refused("has 2 rows, but 1 of them read", statuses.read, status_map('X(OK, 0, "ok", 200, "done")', 'X(LOST, 1, "lost" "er", 2, "")'))


def test_a_parameter_is_where_the_route_says():
    def place(text):
        return described(text).operations[0].params[1].place

    assert place(GOOD) == "query" and place(GOOD.replace("GET", "POST")) == "body"
    assert place(GOOD.replace("GET", "POST").replace("flags:", "query: [limit]\n    flags:")) == "query"


def test_what_an_operation_may_refuse_follows_from_its_flags():
    def reasons(text):
        op = described(text).operations[0]
        return {reason for reason in ("invalid-query", "conflict", "outcome-unknown", "terminal", "in-use") if openapi.rejects(op, reason)}

    assert reasons(GOOD) == {"in-use"}
    assert reasons(GOOD.replace("[quick]", "[any_query]\n    rejects: [terminal]")) == {"in-use", "invalid-query", "terminal"}
    assert reasons(GOOD.replace("[quick]", "[writes]")) == {"in-use", "outcome-unknown", "conflict"}
    assert reasons(GOOD.replace("[quick]", "[writes, no_key]")) == {"in-use", "outcome-unknown"}


def test_a_description_that_makes_no_sense_is_refused():
    for old, new, words in (("    summary: A thing\n", "", "'summary'"), ("scope: read", "scope: nobody", "unknown or missing scope: nobody"),
                            ("{name}", "{other}", "parameter: other"), ("limit: 3", "limt: 3", "parameter of the example: limt"),
                            ("    gives: {thing: 1}\n", "", "gives"), ("flags:", "flgs:", "key: flgs"),
                            ("text -- which one", "txt -- which one", "'txt' is not a type"), ("text -- which one", "text", "expected TYPE -- WORDS"),
                            ("flags:", "later: [limt]\n    flags:", "parameter: limt"), ("operations:", "operation:", "no section")):
        assert old in GOOD
        refused(words, described, GOOD.replace(old, new))


def verb(options, **others):
    told = {"group": "Look", "operands": "ID", "summary": "s", "operation": "thing.get", "render": "status", "examples": "e\n", **others}
    return verbs.Verb("look", {**told, "options": options}, {"--own": "--own V -- words"}, {op.name: op for op in described(GOOD).operations})


def test_an_option_takes_its_kind_and_its_words_from_the_parameter():
    made = verb("--max N = limit\n--name NAME = name -- other\n    words\n--own\n--all -- a flag\n")
    assert [(o.name, o.value, o.kind, o.member, o.summary) for o in made.options] == [
        ("max", "N", "number", "limit", "how many"), ("name", "NAME", "text", "name", "other words"),
        ("own", "V", "text", None, "words"), ("all", None, "flag", None, "a flag")]
    assert '{ "max", "N", OPTION_NUMBER, "limit", "how many" }' in verbs.table([made])
    assert made.count() == [1, 1] and verb("--own\n", operands="FILE...").count() == [1, "many"]


def test_a_verb_that_makes_no_sense_is_refused():
    for options, others, words in (("--max N = limt\n", {}, "no operation that it calls takes this: limt"), ("--all\n", {}, "without words"),
                                   ("max\n", {}, "not an option"), ("--own\n", {"operation": "thing.put"}, "unknown operations: thing.put"),
                                   ("--own\n", {"members": ["nam"]}, "unknown members: nam"), ("--own\n", {"rnder": "x"}, "unknown keys: rnder"),
                                   ("--key K = idempotency_key -- k\n", {}, "takes this: idempotency_key")):
        refused(words, lambda: verb(options, **others))


def test_what_is_not_our_part_of_yaml_is_refused_with_its_line():
    def read(text):
        return plain_yaml.read("a.yaml", text)

    assert read('a: {b: [1, "x: y"],\n    c?: t -- u}\nd: >-\n  one\n  two\ne: |\n  f\n\n  g\nh:\n  - {i: null}\n  - j\nk: 0.5\nl: 1.2.3\n') == {
        "a": {"b": [1, "x: y"], "c?": "t -- u"}, "d": "one two", "e": "f\n\ng\n", "h": [{"i": None}, "j"], "k": 0.5, "l": "1.2.3"}
    for text, words in (("a: 1\na: 2\n", "a.yaml:2: 'a' occurs twice"), ("a: b: c\n", "a.yaml:1: quote this"), ("a:\n  b: 1\n   c: 2\n", "a.yaml:2: quote this"),
                        ("a: [1\nb: 2\n", "ends inside"), ("a: &x 1\n", "quote this"), ("- a\n", "expected KEY: VALUE"),
                        ("a: {b: 1, b: 2}\n", "occurs twice"), ('a: "b\n', "not closed"), ("a: {b: c: d}\n", "quote it")):
        refused(words, read, text)


main(globals())
