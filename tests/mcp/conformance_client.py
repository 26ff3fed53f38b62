"""The client that the conformance suite of MCP tests: `pawl run` of a flow whose steps call the suite's server.

The suite starts it with the server's address as its last word, and says in the environment which scenario it plays."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PAWL = os.path.abspath(os.environ.get("PAWL", "build/pawl"))
MODERN_ONLY = {"sep-2322-client-request-state", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers"}


def call(tool, args=None, **more):
    return {"tool": "mcp", "args": {"server": "suite", "tool": tool, **({"args": args} if args else {}), **more}}


def listed(what):
    return {"tool": "mcp", "args": {"server": "suite", "list": what}}


def steps_of(scenario, context):
    """The steps of the flow, one after the other."""
    if scenario == "tools_call":
        return [listed("tools"), call("add_numbers", {"a": 5, "b": 3})]
    if scenario == "elicitation-sep1034-client-defaults":
        return [call("test_client_elicitation_defaults")]
    if scenario == "sse-retry":
        return [call("test_reconnection")]
    if scenario == "sep-2322-client-request-state":
        return [call("test_mrtr_echo_state"), call("test_mrtr_unrelated"), call("test_mrtr_no_state"), call("test_mrtr_no_result_type")]
    if scenario == "http-standard-headers":
        return [listed("tools"), call("test_headers"), listed("resources"),
                {"tool": "mcp", "args": {"server": "suite", "resource": "file:///path/to/file%20name.txt"}}, listed("prompts"),
                {"tool": "mcp", "args": {"server": "suite", "prompt": "test_prompt"}}]
    if scenario == "http-custom-headers":
        return [listed("tools")] + [call(one["name"], one["arguments"]) for one in context.get("toolCalls", [])]
    if scenario == "http-invalid-tool-headers":
        return [listed("tools"), call("valid_tool", {"region": "us-west1"})]
    if scenario == "json-schema-2020-12-preservation":
        return [listed("tools"), call("json_schema_echo", {"schema": "{{steps.s0.result.tools.0.inputSchema}}"})]
    return [listed("tools")]


def flow_of(steps):
    """A gate that a server's question opens is approved by `pawl run --approve`."""
    named = {"s%d" % number: {**step, "next": "s%d" % (number + 1)} for number, step in enumerate(steps)}
    del named["s%d" % (len(steps) - 1)]["next"]
    named["s%d" % (len(steps) - 1)]["done"] = True
    return {"name": "suite", "steps": named}


def pawl(folder, *words):
    return subprocess.run([PAWL, *words], cwd=folder, timeout=60, capture_output=True, text=True)


def run_with_approvals(folder):
    """A server, one instance, and a person who approves each gate as it is."""
    server = subprocess.Popen([PAWL, "serve", "--listen", "127.0.0.1:0"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        pawl(folder, "define", "flow.yaml")
        id = pawl(folder, "start", "suite").stdout.strip()
        until = time.monotonic() + 25
        while time.monotonic() < until:
            found = json.loads(pawl(folder, "show", id, "--json").stdout)
            if found["status"] in ("completed", "failed", "cancelled"):
                print(found, file=sys.stderr)
                return 0 if found["status"] == "completed" else 1
            for gate in json.loads(pawl(folder, "gates", "--json").stdout)["gates"]:
                pawl(folder, "approve", gate["step_id"], "--actor", "suite", "--payload", '{"confirmed": true}')
            time.sleep(0.05)
        return 1
    finally:
        server.terminate()
        server.wait(20)


def main():
    scenario, address = os.environ["MCP_CONFORMANCE_SCENARIO"], sys.argv[-1]
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    era = "modern" if scenario in MODERN_ONLY else "legacy" if version and version < "2026" else "auto"
    with tempfile.TemporaryDirectory(prefix="pawl-mcp-") as folder:
        place = pathlib.Path(folder)
        (place / "pawl.yaml").write_text(json.dumps({"tools": {"mcp": {"servers": {"suite": {"url": address, "era": era, "timeout": "20s"}}}}}))
        (place / "flow.yaml").write_text(json.dumps(flow_of(steps_of(scenario, context))))
        if scenario in ("elicitation-sep1034-client-defaults", "sep-2322-client-request-state"):
            return run_with_approvals(folder)
        done = pawl(folder, "run", "flow.yaml")
    print(done.stdout[-2000:], done.stderr[-1000:], file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
