"""operations.py - every operation as src/api/describe/*.yaml describes it (its README.md says how)."""
import re

from . import plain_yaml

KEYS = {"summary", "route", "scope", "where", "flags", "status", "handler", "takes", "query", "later", "labels", "body", "media",
        "answer", "also", "rejects", "doc", "example", "gives"}
PLACES = {"instance", "keyed", "alarm", "home", "all", "here"}  # enum op_where
PLAIN = {"text": "string", "int": "integer", "count": "integer", "bool": "bool", "object": "object", "json": "json",
         "null": "json"}


class Param:
    """`kind` is the type that is checked before the handler runs: string, integer, bool, object or json."""

    def __init__(self, name, place, kind, required, type_, summary):
        self.name, self.place, self.kind, self.required = name, place, kind, required
        self.type, self.summary = type_, summary


class Operation:
    def __init__(self, name, told, params):
        self.name, self.told, self.params = name, told, params
        self.summary, self.scope, self.where = told["summary"], told["scope"], told["where"]
        self.method, _, self.path = told.get("route", "").partition(" ")
        self.flags = told.get("flags", [])
        self.status = told.get("status", 200)
        self.handler = "op_" + told.get("handler", name.replace(".", "_"))

    def of(self, place):
        return [param for param in self.params if param.place == place]

    @property
    def takes_key(self):
        return "writes" in self.flags and "no_key" not in self.flags

    def target(self, value="x", **others):
        """Its path with every placeholder filled in."""
        return re.sub(r"\{(\w+)\}", lambda found: others.get(found.group(1), value), self.path)

    def __repr__(self):
        return self.name


class Described:
    """All files together: operations and types by name, in the order in which they are written."""

    def __init__(self, paths, scopes):
        self.scopes = scopes
        self.sections = {"operations": {}, "types": {}, "scalars": {}, "problems": {}, "parameters": {}}
        for path in paths:
            for section, found in plain_yaml.read(str(path), path.read_text()).items():
                for name in found if section in self.sections else fail(path, "no section is called '%s'" % section):
                    if name in self.sections[section]:
                        fail(path, "%s: '%s' is described twice" % (section, name))
                self.sections[section].update(found)
        self.types, self.scalars = self.sections["types"], self.sections["scalars"]
        self.problems = self.sections["problems"]
        self.operations = [self.operation(name, told) for name, told in self.sections["operations"].items()]

    def kind(self, type_):
        """What a value of this type is, as far as the table checks it."""
        if isinstance(type_, (dict, list)):
            return "object" if isinstance(type_, dict) else "json"
        word = type_.partition(" -- ")[0]
        if word in PLAIN:
            return PLAIN[word]
        if word in self.scalars or word.startswith("in "):
            return "string"
        if word.startswith("list of ") or " | " in word:
            return "json"
        if word not in self.types:
            raise plain_yaml.Defect("'%s' is not a type" % word)
        return self.kind(self.types[word])

    def param(self, key, words, told):
        name = key.rstrip("?")
        words = self.sections["parameters"].get(name) if words is None else words
        type_, _, summary = (words or "").partition(" -- ")
        if not summary:
            raise plain_yaml.Defect("'%s': expected TYPE -- WORDS" % name)
        method, _, path = told.get("route", "").partition(" ")
        is_query = method == "GET" or name in told.get("query", ())
        place = "path" if "{%s}" % name in path else "query" if is_query else "body"
        kind = "json" if name in told.get("later", ()) else self.kind(type_)
        return Param(name, place, kind, not key.endswith("?"), type_, summary)

    def operation(self, name, told):
        try:
            params = [self.param(key, words, told) for key, words in told.get("takes", {}).items()]
            check(told, params, self.scopes)
            return Operation(name, told, params)
        except (plain_yaml.Defect, KeyError) as defect:
            return fail("src/api/describe", "%s: %s" % (name, defect))


def check(told, params, scopes):
    """What a reader of the table relies on."""
    names = {param.name for param in params}
    wrong = [("key", set(told) - KEYS), ("scope", {told["scope"]} - set(scopes)),
             ("place (where)", {told["where"]} - PLACES),
             ("parameter", (set(told.get("query", ())) | set(told.get("later", ()))) - names),
             ("parameter", set(re.findall(r"\{(\w+)\}", told.get("route", ""))) - names),
             ("parameter of the example", set(told["example"]) - names), ("example's answer", {"gives"} - set(told))]
    for what, found in wrong:
        if found:
            raise plain_yaml.Defect("unknown or missing %s: %s" % (what, ", ".join(sorted(found))))


def fail(path, what):
    raise plain_yaml.Defect("%s: %s" % (path, what))


FILES = ("types", "definition", "instance", "step", "rest")


def read(root):
    """The descriptions of a source tree, in the order of the table."""
    listed = re.search(r"#define OP_SCOPES (.*)", (root / "src/api/ops.h").read_text()).group(1)
    return Described([root / "src/api/describe" / (name + ".yaml") for name in FILES], re.findall(r"\w+", listed))
