"""serve under a service manager: a socket that is open before it (LISTEN_FDS), and word when it is ready
(NOTIFY_SOCKET). The manager is played here, by its protocol; where systemd-socket-activate is, it plays too."""
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.request

import harness

PAWL = os.path.abspath(harness.PAWL)
# Like a manager: the socket becomes number 3, and LISTEN_PID is the process's own.
ACTIVATE = ["python3", "-c", "import os, sys\nos.dup2(int(sys.argv[1]), 3)\nos.set_inheritable(3, True)\n"
            "os.environ.update(LISTEN_PID=sys.argv[2] or str(os.getpid()), LISTEN_FDS=sys.argv[3])\nos.execv(sys.argv[4], sys.argv[4:])"]


class Manager:
    """Opens a socket, and listens for what it is told."""

    def __init__(self, shell, name="notify"):
        self.shell = shell
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.where = "\0pawl-test-%d" % os.getpid() if name == "abstract" else str(shell.folder / name)
        self.notify.bind(self.where)
        self.notify.settimeout(60)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "http://127.0.0.1:%d" % self.listener.getsockname()[1]

    def start(self, *words, pid="", count="1", file=None):
        environment = self.shell.environment({"NOTIFY_SOCKET": self.where.replace("\0", "@")})
        child = subprocess.Popen([*ACTIVATE, str((file or self.listener).fileno()), pid, count, PAWL, "serve", *words], cwd=self.shell.folder,
                                 env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[(file or self.listener).fileno()])
        self.shell.children.append(child)
        return child

    def told(self):
        return self.notify.recv(4096).decode()


def health(address):
    with urllib.request.urlopen(address + "/healthz", timeout=60) as answer:
        return json.load(answer)["status"]


def test_the_manager_is_told_when_it_is_ready_and_when_it_stops(shell):
    for name in ("notify", "abstract"):
        manager = Manager(shell, name)
        child = manager.start()
        assert manager.told() == "READY=1"
        assert health(manager.address) == "ok", "it was told before it was true"
        child.send_signal(signal.SIGTERM)
        assert manager.told() == "STOPPING=1"
        assert child.wait(60) == 0, child.stderr.read()


def test_a_socket_that_was_open_before_it_is_served(shell):
    manager = Manager(shell)
    early = socket.create_connection(manager.listener.getsockname())  # before there is a server at all
    early.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    child = manager.start("--listen", "127.0.0.1:1")
    assert child.stdout.readline().decode().startswith("pawl is ready on %s " % manager.address), "it took another socket"
    early.settimeout(60)
    assert early.recv(4096).startswith(b"HTTP/1.1 200"), "the early caller was not answered"
    assert shell.json("list")["instances"] == [], "the command line does not find its owner"


def test_a_socket_for_another_process_is_left_alone(shell):
    child = Manager(shell).start("--listen", "127.0.0.1:0", pid="1")
    line = child.stdout.readline().decode()
    assert line.startswith("pawl is ready on http://127.0.0.1:"), line


def test_what_is_no_socket_for_it_is_refused_by_name(shell):
    manager = Manager(shell)
    two = manager.start(count="2")
    assert two.wait(60) == 1 and b"gave 2 sockets" in two.stderr.read()
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(shell.folder / "listen"))
    unix.listen()
    quiet = socket.socket()
    for file in (unix, quiet):
        child = manager.start(file=file)
        assert child.wait(60) == 1 and b"listens on an IP address" in child.stderr.read()


def test_systemd_itself_starts_it_when_somebody_calls(shell):
    tool = shutil.which("systemd-socket-activate")
    if not tool:
        raise harness.Skip("there is no systemd-socket-activate here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = subprocess.Popen([tool, "-l", "127.0.0.1:%d" % port, PAWL, "serve"], cwd=shell.folder, env=shell.environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    shell.children.append(child)

    def answers():
        try:
            return health("http://127.0.0.1:%d" % port) == "ok"
        except OSError:
            return False

    shell.wait_for(answers)


if __name__ == "__main__":
    harness.main(globals())
