"""harness.py - run the program in a folder of its own and say what passed.

A test is a function whose name is a sentence; it is given a Shell and asserts. main() runs
those of the calling module and ends with "N passed, M failed".
"""
import atexit
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import in_turn  # noqa: E402
import postgres  # noqa: E402

PAWL = os.environ.get("PAWL", "build/pawl")
STATE = tempfile.TemporaryDirectory(prefix="pawl-state-")  # what @last means is kept here
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"


class Skip(Exception):
    """What this test needs is not to be had on this machine: said loudly, counted as neither."""


SHARDS = os.environ.get("PAWL_TEST_SHARDS")  # the suites run against a store of so many: tests/http/run_shards.py


def one_shard(why):
    """What this test holds is not promised with several shards (docs/internals/cluster.md)."""
    if SHARDS:
        raise Skip("of one shard: " + why)


def one_file(why):
    """What this test holds is about a file of SQLite."""
    if os.environ.get("PAWL_TEST_STORE") == "postgres":
        raise Skip("of a file: " + why)


def one_process(why):
    """What this test holds is kept in the memory of the process that is asked."""
    if in_turn.count() > 1:
        raise Skip("of one process: " + why)


def _no_sql(*_, **__):
    one_shard("it asks the one file by SQL")
    one_file("it asks it by SQL")


_run = subprocess.run


def _run_over_copy(words, *given, **named):
    """Over PostgreSQL tools/verify.py reads a copy, and while the store is served pawl verify reads it instead."""
    path = pathlib.Path(named.get("cwd") or ".") / words[-1] if isinstance(words, list) else pathlib.Path()
    if path.name != "pawl.db" or path.exists() or not any(str(word).endswith("tools/verify.py") for word in words):
        return _run(words, *given, **named)
    store = postgres_store(path.parent)
    copied = Shell(path.parent).pawl("copy", store, "sqlite:" + str(path), expect=None)
    if copied.code != 0:
        assert "in-use" in copied.err, copied
        return _run([os.path.abspath(PAWL), "--store", store, "verify"], *given, **named)
    try:
        return _run(words, *given, **named)
    finally:
        for file in path.parent.glob("pawl.db*"):
            file.unlink()


if os.environ.get("PAWL_TEST_STORE") == "postgres":
    subprocess.run = _run_over_copy
    sqlite3.connect = _no_sql
if SHARDS:
    sqlite3.connect = _no_sql


class Answer:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return "exit %d\n--- stdout\n%s\n--- stderr\n%s" % (self.code, self.out, self.err)


def postgres_store(folder):
    """With PAWL_TEST_STORE=postgres: the store of a folder is a schema of one private cluster."""
    if "PAWL_TEST_POSTGRES" not in os.environ:
        cluster = postgres.Private()
        atexit.register(cluster.stop)
        os.environ["PAWL_TEST_POSTGRES"] = cluster.url
    return "%s&schema=t%s" % (os.environ["PAWL_TEST_POSTGRES"], hashlib.sha256(str(folder).encode()).hexdigest()[:20])


class Shell:
    """A folder, and commands typed in it. What still runs at the end is ended."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.children = []

    def environment(self, extra=None):
        names = {k: v for k, v in os.environ.items() if k not in ("PAWL_STORE", "NO_COLOR")}
        if os.environ.get("PAWL_TEST_STORE") == "postgres":
            names["PAWL_STORE"] = postgres_store(self.folder)
        return {**names, "XDG_STATE_HOME": STATE.name, **(extra or {})}

    def pawl(self, *words, expect=0, env=None, input=None):
        if "sql" in words[:3]:
            one_shard("it asks the one file by SQL")
        done = subprocess.run([os.path.abspath(PAWL), *words], cwd=self.folder, capture_output=True,
                              timeout=120, env=self.environment(env), input=input)
        answer = Answer(done)
        assert expect is None or answer.code == expect, "expected exit %s from pawl %s, found %r" % (
            expect, " ".join(words), answer)
        assert "Sanitizer" not in answer.err and "runtime error" not in answer.err, answer.err
        return answer

    def json(self, *words, expect=0):
        return self.pawl(*words, "--json", expect=expect).json

    def begin(self, *words, env=None):
        child = subprocess.Popen([os.path.abspath(PAWL), *words], cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment(env))
        self.children.append(child)
        return child

    def serve(self, *words):
        """A server on a free port: (child, address)."""
        new = SHARDS and "--shards" not in words and not (self.folder / "pawl.db").exists()
        words = ("serve", "--listen", "127.0.0.1:0", *(["--shards", SHARDS] if new else []), *words)
        if in_turn.count() > 1 and "--store" not in words:
            nodes = in_turn.Nodes(lambda: self.begin(*words), in_turn.count())
            assert nodes.turn, "expected the line that it is ready of each, found %r" % nodes.lines
            return nodes, nodes.turn.address
        child = self.begin(*words)
        line = child.stdout.readline().decode()
        found = re.fullmatch(r"pawl is ready on (http://127\.0\.0\.1:\d+) \(store \S+\)\n", line)
        assert found, "expected the line that it is ready, found %r" % line
        return child, found.group(1)

    def stop(self, child, number=signal.SIGTERM, expect=0):
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        assert expect is None or child.returncode == expect, (child.returncode, out, err)
        assert b"Sanitizer" not in err, err.decode()
        return out.decode(), err.decode()

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def wait_for(self, what, seconds=60):
        """Poll until `what()` is true: the only way to wait for another process."""
        until = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < until, "waited %d s in vain" % seconds
            time.sleep(0.02)


FAMILY = {
    "child": "name: child\nsignals: {go: {buffer: true}}\ndo:\n  - {name: nap, wait: {timer: 1h}}\n  - {name: wait, wait: {signal: go}}\n",
    "parent": "name: parent\ndo:\n  - {name: kid, spawn: {definition: child, input: {}}}\n",
}


def family(shell, *store):
    """A parent that waits for its child, which has a signal kept for later: their ids."""
    for name in ("child", "parent"):
        shell.pawl(*store, "define", shell.write(name + ".yaml", FAMILY[name]))
    parent = shell.pawl(*store, "start", "parent").out.strip()
    child = shell.json(*store, "list", "--limit", "1")["instances"][0]["instance_id"]
    assert child != parent
    shell.pawl(*store, "signal", child, "go", "--payload", "7")
    return parent, child


class Terminal:
    """A command on a terminal of its own, `columns` wide; text() is all it has written."""

    def __init__(self, shell, *words, columns=80, rows=24, env=None):
        self.columns, self.bytes, self.code = columns, b"", None
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(shell.folder)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(os.path.abspath(PAWL), [PAWL, *words],
                      shell.environment({"TERM": "xterm", **(env or {})}))
        self.pid = pid

    def read(self, seconds=60):
        """What comes next; False at its end."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        assert ready, "nothing was written for %d s; so far: %r" % (seconds, self.bytes)
        try:
            got = os.read(self.fd, 65536)
        except OSError:
            got = b""
        self.bytes += got
        return bool(got)

    def wait_for(self, pattern):
        while not re.search(pattern, self.text()):
            assert self.read(), "it ended without %r: %r" % (pattern, self.bytes)

    def press(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Read to its end: the exit status."""
        while self.read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        self.code = os.waitstatus_to_exitcode(status)
        assert "Sanitizer" not in self.text(), self.text()
        return self.code

    def text(self):
        """Without colours and movements."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.bytes.decode(errors="replace")).replace("\r", "")

    def widest(self):
        return max(len(line) for line in self.text().split("\n"))


def main(tests):
    passed = failed = 0
    chosen = sys.argv[1:]
    for name, test in list(tests.items()):
        if not name.startswith("test_") or (chosen and not any(c in name for c in chosen)):
            continue
        with tempfile.TemporaryDirectory(prefix="pawl-cli-") as folder:
            shell = Shell(folder)
            try:
                test(shell)
                passed += 1
                print("ok - " + name[5:].replace("_", " "), flush=True)
            except Skip as why:
                print("SKIPPED - %s: %s" % (name[5:].replace("_", " "), why), flush=True)
            except Exception:
                failed += 1
                print("not ok - " + name[5:].replace("_", " "), flush=True)
                traceback.print_exc(file=sys.stdout)
            finally:
                for child in shell.children:
                    if child.poll() is None:
                        child.kill()
                        child.communicate()
    print("# %d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed else 0)
