"""table.py - the operations as src/api/ops.c declares them: what the tests walk, so that a new row is
walked as well."""
import pathlib
import re

TEXT = (pathlib.Path(__file__).resolve().parents[2] / "src/api/ops.c").read_text()
PARAM = re.compile(r'\{\s*"(\w+)",\s*IN_(\w+),\s*OP_(\w+),\s*(true|false),')
MACROS = {name: text for name, text in re.findall(r"#define (\w+)\s*((?:.*\\\n)*.*)", TEXT) if "IN_" in text}


class Param:
    def __init__(self, name, place, kind, required):
        self.name, self.place, self.kind, self.required = name, place.lower(), kind.lower(), required == "true"


class Op:
    def __init__(self, name, method, path, flags, params):
        self.name, self.method, self.path, self.flags = name, method, path, set(re.findall(r"OP_(\w+)", flags))
        self.params = params

    def fields(self, place):
        return [p for p in self.params if p.place == place]

    def target(self, value="x", **others):
        """Its address with every placeholder filled in."""
        return re.sub(r"\{(\w+)\}", lambda m: others.get(m.group(1), value), self.path)

    @property
    def takes_json(self):
        return self.method not in ("GET",) and "TEXT_BODY" not in self.flags

    def __repr__(self):
        return self.name


def params():
    found = {}
    for name, rows in re.findall(r"op_param (\w+)\[\] = \{(.*?)\};", TEXT, re.S):
        for macro, text in MACROS.items():
            rows = re.sub(r"\b%s\b" % macro, lambda m: text, rows)
        found[name] = [Param(*row) for row in PARAM.findall(rows)]
    return found


def operations():
    lists = params()
    rows = re.findall(r'\{ "([a-z]+(?:\.[a-z_]+)?)",\s*"([A-Z]+)",\s*"([^"]+)",\s*([\w |]+?),\s*\d+,\s*"[^"]*",\s*(\w+),', TEXT)
    return [Op(name, method, path, flags, lists[which]) for name, method, path, flags, which in rows]


def scopes():
    """(operation, the scope that a token needs) of every row with a route."""
    return re.findall(r'\{ "([a-z]+(?:\.[a-z_]+)?)", "[A-Z]+", .*?, "([a-z]+)" \},', TEXT, re.S)
