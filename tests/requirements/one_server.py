"""one_server.py - tests that share a server, whose clock stands still unless they move it. Each
makes instances of its own; a test is a function whose name is a sentence, given a Web."""
import pathlib
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "http"))
sys.dont_write_bytecode = True
from web import Web, harness  # noqa: E402


class Machine:
    """One instance, and what can be asked of it."""

    def __init__(self, web, **members):
        self.web, self.made = web, web.expect(201, "POST", "/v1/instances", members).json
        self.id = self.made["instance_id"]
        self.base = "/v1/instances/" + self.id

    def fire(self, action, **members):
        return self.web.expect(200, "POST", self.base + "/fire", {"action": action, **members}).json

    def refused(self, token, action, **members):
        """The rejection names its cause, and nothing has changed (D23, D40)."""
        before = self.web.get(self.base).body, self.web.get(self.base + "/history").body
        reply = self.web.refused(token, "POST", self.base + "/fire", {"action": action, **members})
        assert (self.web.get(self.base).body, self.web.get(self.base + "/history").body) == before, action
        return reply

    def history(self, query=""):
        return self.web.expect(200, "GET", self.base + "/history" + query).json["entries"]

    def current(self):
        return self.web.expect(200, "GET", self.base + "/current").json["current_state"]

    def get(self):
        return self.web.expect(200, "GET", self.base).json

    def declaration(self):
        return self.web.expect(200, "GET", self.base + "/declaration").body.decode()


def transition(from_state, action, to_state, **more):
    return {"from_state": from_state, "action": action, "to_state": to_state, **more}


def machine(states, transitions, terminal=(), kinds=None, **more):
    """A declaration; the first state is where it begins."""
    return {"states": states, "initial_state": states[0], "terminal_states": list(terminal),
            "transitions": [transition(*t) if isinstance(t, tuple) else t for t in transitions],
            **({"terminal_kinds": kinds} if kinds else {}), **more}


def main(tests):
    passed = failed = 0
    chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="pawl-requirements-") as folder:
        shell = harness.Shell(folder)
        child, address = shell.serve("--test")
        for name, test in list(tests.items()):
            if not name.startswith("test_") or (chosen and not any(c in name for c in chosen)):
                continue
            try:
                test(Web(address))
                passed += 1
                print("ok - " + name[5:].replace("_", " "), flush=True)
            except Exception:
                failed += 1
                print("not ok - " + name[5:].replace("_", " "), flush=True)
                traceback.print_exc(file=sys.stdout)
        shell.stop(child)
        try:
            assert shell.json("verify")["valid"], "the store is not valid afterwards"
        except AssertionError as error:
            failed += 1
            print("not ok - %s" % error)
    print("# %d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed else 0)
