#!/usr/bin/env python3
"""docs/howto/scale.md: its five commands, as they stand there, take a store from a file to three nodes."""
import pathlib
import re
import shlex
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "http"), str(HERE.parent / "store")]
import harness  # noqa: E402
import postgres  # noqa: E402
import run_postgres as one  # noqa: E402
from web import Web  # noqa: E402

PAGE = harness.ROOT / "docs/howto/scale.md"


def commands():
    """Of the block below the title, with places of this machine instead of those of the page."""
    section = PAGE.read_text().split("## Three nodes in five commands")[1]
    lines = re.search(r"```text\n(.*?)```", section, re.S).group(1).splitlines()
    url = one.url("five", lease=1500)
    for line in lines:
        line = line.replace("postgres://pawl@db.example/work", url)
        yield shlex.split(re.sub(r"10\.0\.0\.\d:7295", lambda found: "127.0.0.1:%d" % postgres.free_port(), line))[1:]


def test_five_commands_lead_from_one_file_to_three_nodes(shell):
    one.fill(shell, "sqlite:pawl.db")
    root = shell.json("--store", "sqlite:pawl.db", "verify")["root"]
    copy, verify, *serves = commands()
    assert len(serves) == 3 and copy[0] == "copy" and verify[-1] == "verify" and all("serve" in words for words in serves)
    shell.pawl(*copy)
    assert shell.json(*verify)["root"] == root
    children = [shell.begin(*words) for words in serves]
    webs = [Web(re.search(r"http://\S+", child.stdout.readline().decode()).group()) for child in children]
    ids = [web.create(definition="order") for web in webs for _ in range(2)]
    for n, id in enumerate(ids):
        webs[n % 3].expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"})
    for web in webs:
        assert web.get("/v1/instances/counts").json["total"] == 6 + len(ids)
        # a node hears of the others with its next beat
        shell.wait_for(lambda: len(web.get("/v1/nodes").json["nodes"]) == 3)
    for child in children:
        shell.stop(child)
    assert shell.pawl(*verify).code == 0


if __name__ == "__main__":
    harness.main(globals())
