"""c_table.py - the descriptions as C: the table of api/ops.h, and the prototypes of its handlers."""
import json

HEAD = "/* Made by tools/gen-ops from src/api/describe/; not to be edited. */\n"


def text(value):
    """A C string."""
    return json.dumps(value, ensure_ascii=False) if value else "NULL"


def param(one):
    return "    { %s, IN_%s, OP_%s, %s, %s },\n" % (text(one.name), one.place.upper(), one.kind.upper(),
                                                   "true" if one.required else "false", text(one.summary))


def row(op, params):
    flags = " | ".join("OP_" + flag.upper() for flag in op.flags) or "0"
    return "    { %s, %s, %s, %s, %d, %s, %s, %s, %s, AT_%s },\n" % (
        text(op.name), text(op.method), text(op.path), flags, op.status, text(op.summary), params, op.handler, text(op.scope),
        op.where.upper())


def table(described):
    lists, rows = {}, ""  # operations that take the same share a list
    for op in described.operations:
        name = lists.setdefault("".join(param(one) for one in op.params), op.name.replace(".", "_") + "_params")
        rows += row(op, name)
    out = HEAD + '#include "api/ops_int.h"\n\n'
    for params, name in lists.items():
        out += "static const struct op_param %s[] = {\n%s    { 0 },\n};\n\n" % (name, params)
    return out + "const struct op ops[] = {\n%s    { 0 },\n};\n" % rows


def handlers(described):
    names = sorted({op.handler for op in described.operations})
    return HEAD + "#ifndef PAWL_API_OP_HANDLERS_H\n#define PAWL_API_OP_HANDLERS_H\n\n" + "".join(
        "pawl_status %s(struct op_call *call, struct buf *out);\n" % name for name in names) + "\n#endif\n"
