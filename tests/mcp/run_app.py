"""The page of a process (MCP Apps) in a real Chromium, inside a minimal host (app_host.mjs)."""
import os
import shutil
import subprocess
import sys

from mcp import ROOT, Http, harness

sys.path.insert(0, str(ROOT / "tests/npm"))
from modules import npm_modules  # noqa: E402

GATED = """name: release
steps:
  sign: {approval: {}, next: ship}
  ship: {tool: set, args: {shipped: true}, done: true}
"""


def show(shell, address, instance, button, text):
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert chromium, "there is no Chromium here: script/install-deps chromium, or set CHROMIUM"
    profile = shell.folder / "tmp"
    profile.mkdir(exist_ok=True)
    places = {name: str(profile) for name in ("TMPDIR", "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    done = subprocess.run(["node", str(ROOT / "tests/mcp/app_host.mjs"), str(npm_modules()), address, instance, button, text],
                          env=shell.environment({"CHROMIUM": chromium, **places}), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-4000:]


def test_a_gate_is_approved_and_an_action_is_fired_inside_the_chat(shell):
    for text in (GATED, (harness.EXAMPLES / "order.yaml").read_text()):
        shell.pawl("define", shell.write("d.yaml", text))
    _, address = shell.serve()
    client = Http(address)
    release = client.tool("release", caps={}).result["structuredContent"]["process_id"]
    show(shell, address, release, "Approve", "ended: success")
    entries = client.tool("process_history", {"instance_id": release}).result["structuredContent"]["entries"]
    assert [entry["reason"] for entry in entries if entry["action"] == "gate.approve"] == ["looks good"], entries
    order = client.tool("order").result["structuredContent"]["process_id"]
    show(shell, address, order, "pay", "paid (suspended)")


if __name__ == "__main__":
    harness.main(globals())
