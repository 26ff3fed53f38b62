"""verbs.py - the verbs of the command line, as src/surface/cli/verbs.yaml describes them, and as C.

An option that is a parameter of an operation takes its kind and its words from there, unless the line says otherwise:

    --NAME VALUE = PARAMETER (KIND) -- WORDS
"""
import re

from . import plain_yaml
from .c_table import text

KEYS = {"group", "operands", "count", "summary", "operation", "calls", "members", "options", "examples", "render", "run"}
KINDS = {"string": "text", "integer": "number", "bool": "text", "object": "json", "json": "json"}
OPTION = re.compile(r"--([\w-]+)(?: ([^\s=(-]\S*))?(?: = (\S+))?(?: \((\w+)\))?(?: -- (.+))?")
FILE = "src/surface/cli/verbs.yaml"


class Option:
    def __init__(self, name, value, kind, member, summary):
        self.name, self.value, self.kind, self.member, self.summary = name, value, kind, member, summary


def lines(block):
    """A line that is indented goes on with the one above it."""
    return re.sub(r"\n +", " ", block).rstrip("\n").split("\n")


def is_shared(line):
    return re.fullmatch(r"--[\w-]+(?: --[\w-]+)*", line)


class Verb:
    def __init__(self, name, told, shared, operations):
        self.name, self.told = name, told
        self.fail_if(set(told) - KEYS, "unknown keys")
        called = told.get("calls", []) + ([told["operation"]] if "operation" in told else [])
        self.fail_if(set(called) - set(operations), "unknown operations")
        self.operations = [operations[one] for one in called]
        self.fail_if({member for member in told.get("members", ()) if self.operations and not self.param(member)}, "unknown members")
        self.options = []
        for line in lines(told["options"]) if "options" in told else ():
            for one in line.split() if is_shared(line) else [line]:
                self.options.append(self.option(shared.get(one, line)))

    def fail_if(self, found, what):
        if found:
            raise plain_yaml.Defect("%s: %s: %s: %s" % (FILE, self.name, what, ", ".join(sorted(found))))

    def param(self, member):
        return next((param for op in self.operations for param in op.params if param.name == member), None)

    def takes(self, member):
        """Parameters, the idempotency key of what writes, and `label.` of what has labels."""
        return self.param(member) or (member == "idempotency_key" and any(op.takes_key for op in self.operations)) or (
            member == "label." and any("labels" in op.told for op in self.operations))

    def option(self, line):
        found = OPTION.fullmatch(line)
        self.fail_if(set() if found else {line}, "not an option")
        name, value, member, kind, summary = found.groups()
        self.fail_if(set() if not member or self.takes(member) else {member}, "no operation that it calls takes this")
        param = self.param(member)
        kind = kind or (KINDS[param.kind] if param else "text") if value else "flag"
        if not summary and param:
            summary = param.summary + ("; @FILE reads a file" if kind == "json" else "")
        self.fail_if(set() if summary else {line}, "an option without words")
        return Option(name, value, kind, member, summary)

    def count(self):
        """How many operands: at least, at most."""
        words = self.told.get("operands", "").split()
        least = sum(not word.startswith("[") for word in words)
        return self.told.get("count", [least, "many" if any("..." in word for word in words) else len(words)])


def read(root, described):
    told = plain_yaml.read(FILE, (root / FILE).read_text())
    shared = {line.split()[0]: line for line in lines(told["shared"])}
    operations = {op.name: op for op in described.operations}
    return [Verb(name, one, shared, operations) for name, one in told["verbs"].items()]


# ---- C ----


def option_row(option):
    return "    { %s, %s, OPTION_%s, %s, %s },\n" % (text(option.name), text(option.value), option.kind.upper(),
                                                    text(option.member), text(option.summary))


def verb_row(verb, options):
    told, (least, most) = verb.told, verb.count()
    act = ".run = verb_" + told["run"] if "run" in told else ".render = render_" + told["render"]
    return "    { %s, %s, %s, %s, %s, %s, %s,\n      %s,\n      %s, { %s }, %s },\n" % (
        text(verb.name), text(told["group"]), text(told.get("operands")) if "operands" in told else '""', least,
        "CLI_OPERANDS_MAX" if most == "many" else most, text(told["summary"]), options, text(told["examples"]),
        text(told.get("operation")), ", ".join(text(member) for member in told.get("members", [None])), act)


def table(verbs):
    lists, rows = {}, ""  # verbs with the same options share a list
    for verb in verbs:
        options = "".join(option_row(option) for option in verb.options)
        rows += verb_row(verb, lists.setdefault(options, verb.name.replace("-", "_") + "_options") if options else "NULL")
    out = '/* Made by tools/gen-ops from %s; not to be edited. */\n#include "surface/cli/cli.h"\n\n' % FILE
    for options, name in lists.items():
        out += "static const struct cli_option %s[] = {\n%s    { 0 },\n};\n\n" % (name, options)
    return out + "const struct verb verbs[] = {\n%s    { 0 },\n};\n" % rows
