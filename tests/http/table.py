"""table.py - the operations as src/api/describe/ describes them: what the tests walk, so that a new one is walked
as well."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
sys.dont_write_bytecode = True
from ops import openapi, operations  # noqa: E402

DESCRIBED = operations.read(ROOT)
ALL = DESCRIBED.operations
ROUTED = [op for op in ALL if op.path]


def takes_json(op):
    return op.method != "GET" and "text_body" not in op.flags


def document():
    """/openapi.json, as the build makes it."""
    return openapi.document(DESCRIBED, (ROOT / "include/pawl.h").read_text())
