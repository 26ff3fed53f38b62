"""Commands beside a server, a running flow, and processes that die."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import urllib.error
import urllib.request

from harness import EXAMPLES, PAWL, Skip, main

SLOW = """name: slow
steps:
  start: {name: first, tool: set, args: {a: 1}, next: wait}
  wait: {tool: sleep, args: {for: 400ms}, next: work}
  work: {tool: exec, args: {argv: [sh, -c, 'sleep 0.3; echo 7']}, next: last,
         retry: {max: 3, backoff: [100ms]}}
  last: {tool: set, args: {got: "{{steps.work.result}}"}, done: true}
"""


def entries(shell):
    answer = shell.pawl("history", "@last", "--json", expect=None)
    return answer.json["entries"] if answer.code == 0 else []


def tls_server(shell, listen, *words):
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                           "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=pawl.example.com"],
                          cwd=shell.folder, capture_output=True)
    if made.returncode != 0:
        raise Skip("there is no openssl to make a certificate")
    child = shell.begin("serve", "--listen", listen, "--tls-cert", "cert.pem", "--tls-key", "key.pem", *words)
    return child, re.match(r"pawl is ready on (https://\S+:\d+)", child.stdout.readline().decode()).group(1)


def test_a_store_that_is_served_with_tls_is_open_to_the_command_line_by_its_file(shell):
    shell.pawl("init")
    shell.pawl("token", "create", "--scope", "all")
    for listen in ("127.0.0.1:0", "0.0.0.0:0", "[::1]:0"):  # it needs the secret beside the store
        server, _ = tls_server(shell, listen, "--require-token")
        shell.pawl("define", str(EXAMPLES / "order.yaml"))
        id = shell.pawl("start", "order").out.strip()
        shell.pawl("fire", id, "pay")
        assert shell.json("list")["instances"][0]["current_state"] == "paid"
        assert len(shell.json("token", "list")["tokens"]) == 1
        watch = shell.begin("watch", id)
        assert b"pay" in watch.stdout.readline()
        shell.pawl("fire", id, "ship")
        assert b"ship" in watch.stdout.read()
        assert shell.pawl("export", id).out.count("\n") > 3, "an answer that comes in pieces"
        shell.stop(server)


def test_a_server_at_an_ipv6_address_is_reached_by_its_file_and_by_its_address(shell):
    child = shell.begin("serve", "--listen", "[::1]:0")
    address = re.match(r"pawl is ready on (http://\[::1\]:\d+)", child.stdout.readline().decode()).group(1)
    assert shell.json("list")["instances"] == shell.json("--store", address, "list")["instances"] == []


def test_plain_http_at_a_port_that_speaks_tls_is_reported_as_such(shell):
    _, address = tls_server(shell, "127.0.0.1:0")
    plain = address.replace("https:", "http:")
    for words in (("list",), ("export", "@last"), ("watch",)):
        refused = shell.pawl("--store", plain, *words, expect=None)
        assert refused.code == 3 and "%s answers with TLS" % plain in refused.err, (words, refused.err)
        assert "--store sqlite:FILE" in refused.err, refused.err


def test_serve_says_one_line_and_stops_when_asked(shell):
    for number in (signal.SIGTERM, signal.SIGINT):
        server, address = shell.serve()
        assert urllib.request.urlopen(address + "/healthz").status == 200
        out, err = shell.stop(server, number)
        assert out == "" and err == "", (out, err)


def test_commands_go_silently_through_the_owner(shell):
    server, _ = shell.serve()
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    assert shell.pawl("fire", "@last", "pay").out == "paid  entry 1\n"
    assert "invalid-transition" in shell.pawl("fire", "@last", "drop", expect=1).err
    assert "valid" in shell.pawl("verify").out
    shell.stop(server)
    assert shell.json("show", "@last")["current_state"] == "paid"


def test_the_same_verbs_work_by_address(shell):
    server, address = shell.serve("--store", "memory:")
    shell.pawl("--store", address, "define", str(EXAMPLES / "order.yaml"))
    shell.pawl("--store", address, "start", "order", "--subject", "A-17")
    local, remote = {}, json.loads(shell.pawl("--store", address, "show", "@last", "--json").out)
    local = json.load(urllib.request.urlopen(address + "/v1/instances/" + remote["instance_id"]))
    assert local == remote
    assert os.listdir(shell.folder) == []


def test_a_second_server_is_in_use(shell):
    _, address = shell.serve()
    found = shell.pawl("serve", "--listen", "127.0.0.1:0", expect=3)
    assert found.err.startswith("pawl: in-use: ") and address in found.err, found


def test_a_taken_port_is_in_use(shell):
    _, address = shell.serve()
    found = shell.pawl("--store", "sqlite:other.db", "serve", "--listen", address[7:], expect=3)
    assert found.err.startswith("pawl: in-use: "), found


def test_serve_with_examples_begins_instances_once(shell):
    server, _ = shell.serve("--examples")
    names = {row["definition"] for row in shell.json("list")["instances"]}
    assert names == {"order", "batch-release", "welcome", "countdown", "approval"}, names
    count = len(shell.json("list")["instances"])
    shell.stop(server)
    server, _ = shell.serve("--examples")
    assert len(shell.json("list")["instances"]) == count
    shell.stop(server)
    assert shell.json("verify")["valid"]


def test_serve_test_has_a_clock_that_stands_still(shell):
    server, address = shell.serve("--test")
    shell.pawl("start", "countdown", "--input", '{"from": 1, "every": "72h"}')
    request = urllib.request.Request(address + "/v1/test/advance", b'{"by":"72h"}',
                                     {"Content-Type": "application/json"})
    urllib.request.urlopen(request)
    assert shell.json("show", "@last")["result"] == {"ticks": 1}
    shell.stop(server)


def test_exec_is_off_in_serve_unless_allowed(shell):
    shell.write("slow.yaml", SLOW)
    for words, status in (([], "failed"), (["--allow-exec"], "completed")):
        server, _ = shell.serve(*words)
        shell.pawl("define", "slow.yaml")
        shell.pawl("start", "slow")
        shell.wait_for(lambda: shell.json("show", "@last")["status"] in ("failed", "completed"))
        assert shell.json("show", "@last")["status"] == status
        shell.stop(server)


def test_a_signal_reaches_what_run_is_running(shell):
    shell.write("c.json", '{"from": 1000, "every": "1h"}')
    shell.pawl("init")
    shell.pawl("start", "countdown", "--input", "@c.json")
    child = shell.begin("resume", "@last")
    shell.wait_for(lambda: shell.pawl("list", "--json", expect=None).code == 0 and
                   (shell.folder / "pawl.db-owner").exists())
    shell.pawl("signal", "@last", "stop")
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and b"stopped_at" in out, (out, err)


WAITS = "name: waits\nsteps:\n  start: {name: w, wait: {signal: go}, done: true}\n"


def ask(address, path, body=None, bearer=None):
    """The HTTP status of a request."""
    headers = {"Content-Type": "application/json"}
    if bearer:
        headers["Authorization"] = "Bearer " + bearer
    try:
        return urllib.request.urlopen(urllib.request.Request(address + path, body, headers)).status
    except urllib.error.HTTPError as error:
        return error.code


def owner_address(shell):
    """The address of the live owner, once it has said it."""
    file = shell.folder / "pawl.db-owner"
    shell.wait_for(lambda: file.exists() and "http" in file.read_text())
    return file.read_text().split()[1]


def test_a_request_without_the_secret_of_a_running_flow_is_refused(shell):
    shell.write("waits.yaml", WAITS)
    child = shell.begin("run", "waits.yaml")
    id = child.stdout.readline().decode().strip()
    address, secret = owner_address(shell), shell.folder / "pawl.db-secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    for bearer in (None, "0" * 64, secret.read_text().strip()[:-1]):
        assert ask(address, "/v1/instances", bearer=bearer) == 401
        assert ask(address, "/v1/instances/%s/signals" % id, b'{"name":"go"}', bearer) == 401
        assert ask(address, "/v1/stores/other/instances", bearer=bearer) == 401
    assert ask(address, "/v1/instances", bearer=secret.read_text().strip()) == 200
    refused = shell.pawl("--store", address, "list", expect=1)
    assert "unauthenticated" in refused.err, refused
    assert shell.json("show", id)["status"] == "suspended"
    secret.chmod(0o400)
    assert shell.pawl("signal", id, "go", env={"PAWL_TOKEN": "not-a-token"}).code == 0
    assert child.wait(60) == 0 and not secret.exists()


def test_a_command_that_cannot_read_the_secret_says_whose_it_is(shell):
    child = shell.begin("run", shell.write("waits.yaml", WAITS))
    child.stdout.readline()
    owner_address(shell)
    (shell.folder / "pawl.db-secret").unlink()
    (shell.folder / "pawl.db-secret").mkdir()  # root can read every file
    refused = shell.pawl("list", expect=3)
    assert refused.err.startswith("pawl: in-use: ") and "pawl.db-secret" in refused.err, refused
    assert "process %d" % child.pid in refused.err and "PAWL_TOKEN" not in refused.err, refused
    assert "unauthenticated" in shell.pawl("list", env={"PAWL_TOKEN": "x"}, expect=1).err
    shell.stop(child, signal.SIGINT, expect=None)


def test_the_secret_of_a_run_that_was_killed_is_no_one_elses(shell):
    child = shell.begin("run", shell.write("waits.yaml", WAITS))
    child.stdout.readline()
    owner_address(shell)
    shell.stop(child, signal.SIGKILL, expect=None)
    old = (shell.folder / "pawl.db-secret").read_text()
    server, address = shell.serve()
    assert not (shell.folder / "pawl.db-secret").exists()
    assert ask(address, "/v1/instances") == 200 and shell.json("list")["instances"]
    shell.stop(server)
    server, address = shell.serve("--require-token")
    assert (shell.folder / "pawl.db-secret").read_text() != old
    shell.stop(server)


def test_serve_with_require_token_refuses_local_callers_without_one(shell):
    server, address = shell.serve("--require-token")
    assert ask(address, "/v1/instances") == 401 and ask(address, "/healthz") == 200
    token = shell.json("token", "create", "--scope", "read")["token"]
    assert ask(address, "/v1/instances", bearer=token) == 200
    assert ask(address, "/v1/signals", b'{"name":"go"}', bearer=token) == 403
    shell.pawl("stores", "create", "a")
    assert "no instances" in shell.pawl("--store", "sqlite:pawl.db-stores/a.db", "list").out
    shell.stop(server)


def test_ctrl_c_leaves_a_flow_that_resume_finishes(shell):
    shell.write("slow.yaml", SLOW)
    child = shell.begin("run", "slow.yaml")
    id = child.stdout.readline().decode().strip()
    shell.wait_for(lambda: len(entries(shell)) >= 3)
    out, err = shell.stop(child, signal.SIGINT, expect=1)
    assert "pawl resume " + id in err, err
    assert "completed" in shell.pawl("resume", id).out
    assert shell.json("show", id)["result"] == {"got": 7}
    assert shell.json("verify")["valid"]


def test_killed_with_9_it_goes_on_where_it_was(shell):
    shell.write("slow.yaml", SLOW)
    for wanted in (3, 5, 6, 7):
        child = shell.begin("run", "slow.yaml")
        id = child.stdout.readline().decode().strip()
        shell.wait_for(lambda: len(entries(shell)) >= wanted or child.poll() is not None)
        shell.stop(child, signal.SIGKILL, expect=None)
        before = shell.json("history", id)["entries"]
        shell.pawl("resume", id)
        after = shell.json("history", id)["entries"]
        assert after[:len(before)] == before, "what was recorded stays"
        assert shell.json("show", id)["result"] == {"got": 7}
    assert shell.json("verify")["valid"]


def test_resume_of_what_has_ended_says_so(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    shell.pawl("fire", "@last", "pay")
    shell.pawl("fire", "@last", "ship")
    assert "completed" in shell.pawl("resume", "@last").out


def test_the_demo_goes_as_told(shell):
    found = shell.pawl("demo", "--fast", env={"TMPDIR": str(shell.folder)})
    assert "All of it went as announced." in found.out, found
    assert "not valid" in found.out and "invalid-transition" in found.err, found
    assert os.listdir(shell.folder) == [], "it cleans up behind itself"


def in_terminal(shell, *words, columns=80, env=None):
    """What a command shows on a terminal of this width."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:  # a chroot without /dev/pts
        raise Skip("no terminal can be had here: %s" % error)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([os.path.abspath(PAWL), *words], cwd=shell.folder, stdin=theirs,
                             stdout=theirs, stderr=subprocess.PIPE,
                             env=shell.environment({"TERM": "xterm-256color", **(env or {})}))
    os.close(theirs)
    shown, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        ready, _, _ = select.select([ours], [], [], 1)
        try:
            data = os.read(ours, 65536) if ready else b"" if child.poll() is not None else None
        except OSError:
            break
        if data == b"":
            break
        shown += data or b""
    child.communicate(timeout=10)
    os.close(ours)
    return child.returncode, shown.decode()


def test_on_a_terminal_there_are_colours_unless_unwanted(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    assert "\033[" in in_terminal(shell, "show", "@last")[1]
    assert "\033[" not in in_terminal(shell, "show", "@last", env={"NO_COLOR": "1"})[1]


def test_lines_fit_the_terminal(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order", "--subject", "a very long subject that does not fit " * 4)
    shell.pawl("fire", "@last", "pay", "--reason", "words and words " * 30)
    for verb in (["list"], ["show", "@last"], ["history", "@last"]):
        _, shown = in_terminal(shell, *verb, columns=72)
        for line in shown.splitlines():
            plain = re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", line)
            assert len(plain) <= 72, (verb, len(plain), plain)


def test_run_on_a_terminal_shows_it_live(shell):
    shell.write("slow.yaml", SLOW)
    code, shown = in_terminal(shell, "run", "slow.yaml")
    assert code == 0 and "waits for" in shown and "completed" in shown, shown


main(globals())
