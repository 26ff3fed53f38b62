"""openapi.py - the descriptions as an OpenAPI 3.1 document.

Nothing is known here of a single operation. What an operation may refuse follows from its flags (rejects()), the
rest it lists.
"""
import re

from .statuses import read as read_statuses

PLAIN = {"text": {"type": "string"}, "int": {"type": "integer"}, "count": {"type": "integer", "minimum": 0},
         "bool": {"type": "boolean"}, "object": {"type": "object"}, "null": {"type": "null"}, "json": {}}
ALWAYS = {"invalid-request", "forbidden", "too-large", "overloaded", "no-memory"}
OF_A_STORE = {"not-known", "storage-failure", "in-use"}
PARAMETERS = {
    "idempotency_key": {
        "name": "Idempotency-Key", "in": "header", "required": False,
        "description": "repeated with the same key and body it is done once, and answered again",
        "schema": {"type": "string", "minLength": 1, "maxLength": 128}, "example": "pay-A-17"},
    "last_event_id": {
        "name": "Last-Event-ID", "in": "header", "required": False,
        "description": "the id of the last event that was seen; wins over after", "schema": {"type": "string"},
        "example": "42"},
    "labels": {
        "name": "labels", "in": "query", "required": False, "style": "form", "explode": True,
        "description": "label.K=V: instances with this label; any number of them",
        "schema": {"type": "object", "propertyNames": {"pattern": "^label[.]."},
                   "additionalProperties": {"type": "string"}},
        "example": {"label.region": "eu"}},
}
PROBLEM = {
    "type": "object", "description": "RFC 9457",
    "properties": {
        "type": {"const": "about:blank"},
        "title": {"type": "string", "description": "what the reason means"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what was expected, found, and where"},
        "reason": {"type": "string", "description": "the token"}},
    "required": ["type", "title", "status", "detail", "reason"],
}
ETAG = {"ETag": {"description": "of these very bytes; If-None-Match is answered with 304", "schema": {"type": "string"}}}
ABOUT = ("Every operation of pawl. These are the default store's addresses; another store's begin with "
         "/v1/stores/{store} in place of /v1.")

# ---- Types ----


def word_schema(word):
    if word.startswith("in "):
        return {"type": "string", "enum": word[3:].split(" ")}
    if word.startswith("list of "):
        return {"type": "array", "items": word_schema(word[8:])}
    return dict(PLAIN[word]) if word in PLAIN else {"$ref": "#/components/schemas/" + word}


def words_schema(words, nullable):
    parts = words.split(" | ")
    if words == "json" or (len(parts) == 1 and not nullable):
        return word_schema(words)
    return {"anyOf": [word_schema(part) for part in parts + (["null"] if nullable else [])]}


def object_schema(type_):
    if "*" in type_:
        return {"type": "object", "additionalProperties": schema(type_["*"])}
    return {"type": "object", "properties": {name.rstrip("?"): schema(member) for name, member in type_.items()},
            "required": [name for name in type_ if not name.endswith("?")], "additionalProperties": False}


def schema(type_, nullable=False):
    """A type as JSON Schema. A word may have what it is for behind ` -- `."""
    if isinstance(type_, dict):
        return object_schema(type_)
    if isinstance(type_, list):
        return {"type": "array", "items": schema(type_[0])}
    words, _, summary = ("null" if type_ is None else type_).partition(" -- ")
    return {**words_schema(words, nullable), **({"description": summary} if summary else {})}


def param_schema(param):
    """null counts as not supplied."""
    return {**schema(param.type, param.place == "body" and not param.required), "description": param.summary}


def params_schema(params):
    return {"type": "object", "properties": {param.name: param_schema(param) for param in params},
            "required": [param.name for param in params if param.required], "additionalProperties": False}


def scalar_schema(told):
    return {"type": "string", **{key: value for key, value in told.items() if key != "example"}, "examples": [told["example"]]}


# ---- What an operation takes ----


def reference(kind, name):
    return {"$ref": "#/components/%s/%s" % (kind, name)}


def parameter(op, param):
    out = {"name": param.name, "in": param.place, "required": param.place == "path", "description": param.summary,
           "schema": param_schema(param)}
    return {**out, "example": op.told["example"][param.name]} if param.name in op.told["example"] else out


def parameters(op):
    out = [parameter(op, param) for param in op.params if param.place != "body"]
    for name, is_taken in (("labels", "labels" in op.told), ("idempotency_key", op.takes_key), ("last_event_id", "stream" in op.flags)):
        out += [reference("parameters", name)] if is_taken else []
    return out


def text_body(op):
    out = {media: {"schema": schema(type_)} for media, type_ in op.told["body"].items()}
    if "text" in op.told["example"]:
        next(iter(out.values()))["example"] = op.told["example"]["text"]
    return out


def json_body(op):
    example = {param.name: op.told["example"][param.name] for param in op.of("body") if param.name in op.told["example"]}
    return {"application/json": {"schema": params_schema(op.of("body")), "example": example}}


def body(op):
    is_text = "text_body" in op.flags
    return {"required": is_text or any(param.required for param in op.of("body")),
            "content": text_body(op) if is_text else json_body(op)}


# ---- What it answers ----


def answer(op):
    content = {media: {"schema": schema(op.told["answer"])} for media in op.told.get("media", ["application/json"])}
    next(iter(content.values()))["example"] = op.told["gives"]
    return {"description": op.summary, **({"headers": ETAG} if "fixed" in op.flags else {}), "content": content}


def rejects(op, reason):
    if reason in ALWAYS or reason in op.told.get("rejects", ()):
        return True
    follows = {"invalid-query": "any_query" in op.flags, "unauthenticated": op.scope != "none",
               "outcome-unknown": "writes" in op.flags, "conflict": op.takes_key}
    return follows.get(reason, reason in OF_A_STORE and op.path.startswith("/v1/"))


def problem(rows):
    of_reason = {"properties": {"reason": {"enum": [token for token, _ in rows]}}}
    return {"description": "; ".join("%s: %s" % row for row in rows),
            "content": {"application/problem+json": {
                "schema": {"allOf": [reference("schemas", "problem"), of_reason]},
                "examples": {token: reference("examples", token) for token, _ in rows}}}}


def problems(op, statuses):
    """By their HTTP status."""
    found = {}
    for _, _, token, http, text in statuses:
        if int(http) >= 400 and rejects(op, token):
            found.setdefault(http, []).append((token, text))
    return {http: problem(rows) for http, rows in sorted(found.items())}


def responses(op, statuses):
    out = {str(status): answer(op) for status in [op.status] + op.told.get("also", [])}
    if "fixed" in op.flags:
        out["304"] = {"description": "what the client has is right"}
    return {**out, **problems(op, statuses)}


# ---- All of it ----


def operation(op, statuses):
    out = {"operationId": op.name, "summary": op.summary}
    if "doc" in op.told:
        out["description"] = op.told["doc"]
    out["tags"] = [op.name.partition(".")[0]]
    out["x-scope"] = op.scope
    out["security"] = [{"token": [op.scope]}, {}] if op.scope != "none" else []  # loopback needs no token
    out["x-example"] = op.told["example"]
    out["parameters"] = parameters(op)
    if op.of("body"):
        out["requestBody"] = body(op)
    out["responses"] = responses(op, statuses)
    return out


def example(status, detail):
    _, _, token, http, text = status
    return {"value": {"type": "about:blank", "title": text, "status": int(http), "detail": detail, "reason": token}}


def components(described, statuses):
    return {
        "schemas": {"problem": PROBLEM, **{name: scalar_schema(told) for name, told in described.scalars.items()},
                    **{name: schema(type_) for name, type_ in described.types.items()}},
        "parameters": PARAMETERS,
        "examples": {status[2]: example(status, described.problems[status[2]]) for status in statuses[1:]},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "pawl token create --scope ..."}},
    }


def document(described, header):
    """`header` is the text of include/pawl.h: the version, and PAWL_STATUS_MAP."""
    statuses = read_statuses(header)
    paths, local = {}, {}
    for op in described.operations:  # one without a route is for the library and the command line
        place = paths.setdefault(op.path, {}) if op.path else local
        place[op.method.lower() if op.path else op.name] = operation(op, statuses)
    return {
        "openapi": "3.1.0",
        "info": {"title": "pawl", "version": re.search(r'#define PAWL_VERSION "(.*)"', header).group(1),
                 "summary": "a durable workflow engine", "description": ABOUT,
                 "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "x-local": local,
        "components": components(described, statuses),
    }


def rows(document):
    """(name, method, path, operation) of each; method and path are None where there is no route."""
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            yield found["operationId"], method.upper(), path, found
    for name, found in document["x-local"].items():
        yield name, None, None, found
