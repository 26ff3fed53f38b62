"""in_turn.py - several nodes of one store in PostgreSQL that look like one server: an address whose connections go to the nodes
in turn, and a child that is all of them. PAWL_TEST_NODES=3 (with PAWL_TEST_STORE=postgres) runs any file of tests so."""
import itertools
import os
import re
import signal
import socket
import threading

READY = re.compile(rb"pawl is ready on (http://127\.0\.0\.1:(\d+)) \(store \S+\)\n")


def pump(source, sink):
    """What one side says the other hears; an end is an end there."""
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (source, sink):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Turn:
    """A port of the loopback. Each connection goes to the next of `ports` that takes it."""

    def __init__(self, ports):
        self.ports = itertools.cycle(ports)
        self.count = len(ports)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def dial(self):
        for _ in range(self.count):
            try:
                return socket.create_connection(("127.0.0.1", next(self.ports)), timeout=10)
            except OSError:
                continue
        return None

    def carry(self, near):
        with near:
            far = self.dial()
            if far is None:
                return
            with far:
                for side in (near, far):
                    side.settimeout(None)
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                back = threading.Thread(target=pump, args=(far, near), daemon=True)
                back.start()
                pump(near, far)
                back.join()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Nodes:
    """What tests do with a child, done with all: `begin` starts one and returns it."""

    def __init__(self, begin, count):
        self.children = [begin() for _ in range(count)]
        self.lines = [child.stdout.readline() for child in self.children]
        self.turn, self.found = None, [READY.fullmatch(line) for line in self.lines]
        if all(self.found):
            self.turn = Turn([int(found.group(2)) for found in self.found])

    @property
    def pid(self):
        return self.children[0].pid

    @property
    def stderr(self):
        return self.children[0].stderr

    @property
    def stdout(self):
        return self.children[0].stdout

    @property
    def returncode(self):
        return next((child.returncode for child in self.children if child.returncode), self.children[0].returncode)

    def poll(self):
        ends = [child.poll() for child in self.children]
        return None if None in ends else self.returncode

    def send_signal(self, number):
        for child in self.children:
            child.send_signal(number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout=None):
        for child in self.children:
            child.wait(timeout)
        self.end()
        return self.returncode

    def communicate(self, timeout=None):
        said = [child.communicate(timeout=timeout) for child in self.children]
        self.end()
        return b"".join(out for out, _ in said), b"".join(err for _, err in said)

    def end(self):
        if self.turn:
            self.turn.close()
        self.turn = None


def count():
    return int(os.environ.get("PAWL_TEST_NODES", "1")) if os.environ.get("PAWL_TEST_STORE") == "postgres" else 1

