"""described.py - what the server says of itself (/openapi.json), and whether an answer is like that.

web.py holds every answer of every test against it. validate() knows as much of JSON Schema as the document
uses, and refuses to guess about the rest.
"""
import gzip
import json
import os
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

PAWL = pathlib.Path(os.environ.get("PAWL", "build/pawl")).resolve()
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
KNOWN = {"type", "$ref", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "allOf",
         "pattern", "format", "minimum", "minLength", "maxLength", "propertyNames", "description", "examples"}
_document = None


def fetch():
    """From a server of this very program."""
    child = subprocess.Popen([str(PAWL), "--store", "memory:", "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE)
    try:
        address = re.search(r"http://\S+", child.stdout.readline().decode()).group()
        with urllib.request.urlopen(address + "/openapi.json", timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as refused:
        raise AssertionError("there is no document: " + json.load(refused)["detail"]) from refused
    finally:
        child.terminate()
        child.communicate(timeout=60)


def document():
    """Asked for once; kept beside the program, which it is younger than."""
    global _document
    if _document is None:
        kept = PAWL.with_name("openapi-of-tests.json")
        if not kept.exists() or kept.stat().st_mtime <= PAWL.stat().st_mtime:
            own = kept.with_name("%s.%d" % (kept.name, os.getpid()))
            own.write_bytes(fetch())
            own.replace(kept)
        _document = json.loads(kept.read_bytes())
    return _document


def operations(root=None):
    """(name, method, path, operation) of each row; method and path are None where there is no route."""
    root = root or document()
    for path, methods in root["paths"].items():
        for method, operation in methods.items():
            yield operation["operationId"], method.upper(), path, operation
    for name, operation in root["x-local"].items():
        yield name, None, None, operation


# ---- Is a value as a schema says? ----

def resolve(schema, root):
    found = root
    for word in schema["$ref"][2:].split("/"):
        found = found[word]
    return found


def is_type(value, name):
    if name in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
                              "number": (int, float), "null": type(None)}[name])


def check_object(schema, value, root, at):
    for name in schema.get("required", ()):
        if name not in value:
            yield "%s: '%s' is missing" % (at, name)
    for name, member in value.items():
        if name in schema.get("properties", {}):
            yield from defects(schema["properties"][name], member, root, "%s.%s" % (at, name))
        elif schema.get("additionalProperties") is False:
            yield "%s: '%s' is not described" % (at, name)
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from defects(schema["additionalProperties"], member, root, "%s.%s" % (at, name))
        if "propertyNames" in schema:
            yield from defects(schema["propertyNames"], name, root, at + " (name)")


def check_text(schema, value, at):
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield "%s: %r is not like %s" % (at, value, schema["pattern"])
    if schema.get("format") == "date-time" and not TIME.fullmatch(value):
        yield "%s: %r is no time" % (at, value)
    if len(value) < schema.get("minLength", 0):
        yield "%s: %r is too short" % (at, value)


def defects(schema, value, root=None, at="$"):
    """Sentences about all that is wrong."""
    root = root or document()
    assert set(schema) <= KNOWN, "the tests do not know %s" % sorted(set(schema) - KNOWN)
    if "$ref" in schema:
        yield from defects(resolve(schema, root), value, root, at)
    for part in schema.get("allOf", ()):
        yield from defects(part, value, root, at)
    if "anyOf" in schema and all(list(defects(part, value, root, at)) for part in schema["anyOf"]):
        yield "%s: %r is none of %s" % (at, value, json.dumps(schema["anyOf"]))
    if "type" in schema and not is_type(value, schema["type"]):
        yield "%s: expected %s, found %r" % (at, schema["type"], value)
        return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r is none of %s" % (at, value, schema["enum"])
    if "const" in schema and value != schema["const"]:
        yield "%s: expected %r, found %r" % (at, schema["const"], value)
    if "minimum" in schema and value < schema["minimum"]:
        yield "%s: %r is less than %r" % (at, value, schema["minimum"])
    if isinstance(value, dict):
        yield from check_object(schema, value, root, at)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from defects(schema["items"], item, root, "%s[%d]" % (at, index))
    if isinstance(value, str):
        yield from check_text(schema, value, at)


# ---- Is an answer as the operation says? ----

def fits(template, path):
    """A name of a definition may contain '/': at the end it takes all the rest."""
    pattern = re.sub(r"\\\{name\\\}$", ".+", re.escape(template))
    return re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", pattern), path)


def find(method, target, root=None):
    """The operation, or None. Literal segments win over placeholders, as the table's order has it."""
    path = re.sub(r"^/v1/stores/[^/?]+/", "/v1/", target.split("?")[0])
    for name, of_method, template, operation in operations(root):
        if of_method == method and fits(template, path):
            return name, operation
    return None


def answer_defects(method, target, status, content_type, body, root=None):
    """What is wrong with an answer. Nothing is, where the address is none of the table's."""
    found = find(method, target, root)
    if not found or status in (204, 405):
        return []
    name, operation = found
    if body[:2] == b"\x1f\x8b":  # its Content-Encoding is no part of what it says
        body = gzip.decompress(body)
    described = operation["responses"].get(str(status))
    if not described:
        return ["%s: the status %d is not described (%s)" % (name, status, body[:200])]
    if status == 304:
        return []
    media = described.get("content", {}).get(content_type.split(";")[0])
    if not media:
        return ["%s: %d with %s is not described" % (name, status, content_type)]
    if content_type not in ("application/json", "application/problem+json") or "schema" not in media:
        return []
    return ["%s %d: %s" % (name, status, words) for words in defects(media["schema"], json.loads(body), root)]
