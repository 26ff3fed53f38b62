"""mcp_tools.py - the tools of the MCP surface that manage instances, as a table in C (surface/mcp/mcp_int.h).

Parameters, their types and words are those of the operations; src/surface/mcp/tools.yaml only names them.
"""
import json

from . import openapi, plain_yaml
from .c_table import text

FILE = "src/surface/mcp/tools.yaml"
KEYS = {"operation", "decides", "title", "hints", "without", "preset", "adds", "about", "answers"}


def inline(schema, described):
    """A schema without references: hosts read tools one by one."""
    if isinstance(schema, list):
        return [inline(one, described) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        found = described.scalars.get(name)
        made = openapi.scalar_schema(found) if found else openapi.schema(described.types[name])
        return {**inline(made, described), **{key: value for key, value in schema.items() if key != "$ref"}}
    return {key: inline(value, described) for key, value in schema.items()}


def without_words(schema):
    """Of an answer the shape alone: tool lists stay small."""
    if isinstance(schema, list):
        return [without_words(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: without_words(value) for key, value in schema.items() if key != "properties"}
    if "properties" in schema:
        kept["properties"] = {name: without_words(one) for name, one in schema["properties"].items()}
    return {key: value for key, value in kept.items() if key not in ("description", "examples", "format", "pattern")
            or key == "properties"}


class Tool:
    def __init__(self, name, told, described):
        self.name, self.told, self.described = name, told, described
        self.decided, self.choices = next(iter(told.get("decides", {"": {}}).items()))
        names = list(self.choices.values()) or [told["operation"]]
        operations = {op.name: op for op in described.operations}
        self.operations = [operations[one] for one in names]
        wrong = set(told) - KEYS
        if wrong:
            raise plain_yaml.Defect("%s: %s: unknown key %s" % (FILE, name, ", ".join(sorted(wrong))))

    def properties(self):
        out = {}
        if self.decided:
            out[self.decided] = {"type": "string", "enum": list(self.choices), "description": "what to do"}
        for key, words in self.told.get("adds", {}).items():
            type_, _, summary = words.partition(" -- ")
            out[key] = {**openapi.schema(type_), "description": summary}
        for op in self.operations:
            for param in op.params:
                if param.name not in self.told.get("without", ()):
                    out.setdefault(param.name, {**openapi.schema(param.type), "description": param.summary})
        return inline(out, self.described)

    def required(self):
        names = [param.name for param in self.operations[0].params if param.required]
        return ([self.decided] if self.decided else []) + names + (["text"] if "text_body" in self.operations[0].flags else [])

    def input_schema(self):
        return {"type": "object", "properties": self.properties(), "required": self.required(), "additionalProperties": False}

    def output_schema(self):
        op = self.operations[0]
        if "answers" in self.told:
            return json.loads(self.told["answers"])
        if self.told.get("adds") or "raw_answer" in op.flags:
            return None
        return without_words(inline(openapi.schema(op.told["answer"]), self.described))

    def annotations(self):
        hints = self.told["hints"]
        out = {"title": self.told["title"], "readOnlyHint": "read" in hints, "openWorldHint": False}
        if "read" not in hints:
            out.update(destructiveHint="destroy" in hints, idempotentHint="again" in hints)
        return out

    def description(self):
        parts = [op.summary for op in self.operations] + [self.operations[0].told.get("doc", ""), self.told.get("about", "")]
        return " ".join(part if part.endswith((".", "?")) else part + "." for part in parts if part)


def packed(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def row(tool):
    names = [op.name for op in tool.operations] + [None]
    output = tool.output_schema()
    return "    { %s, %s, %s, %s, { %s, %s },\n      %s,\n      %s,\n      %s,\n      %s,\n      %s },\n" % (
        text(tool.name), text(tool.told["title"]), text(tool.decided), text(packed(tool.told.get("preset", {}))),
        text(names[0]), text(names[1]), text(tool.description()), text(packed(tool.annotations())),
        text(packed(tool.input_schema())), text(packed(output) if output else None),
        text(",".join(tool.choices)))


def table(root, described):
    told = plain_yaml.read(FILE, (root / FILE).read_text())
    tools = [Tool(name, one, described) for name, one in told["tools"].items()]
    return ('/* Made by tools/gen-ops from %s; not to be edited. */\n#include "surface/mcp/mcp_int.h"\n\n' % FILE
            + "const struct manage_tool manage_tools[] = {\n%s    { 0 },\n};\n" % "".join(row(tool) for tool in tools))
