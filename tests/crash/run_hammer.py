#!/usr/bin/env python3
"""run_hammer.py - 24 clients fire without a rest while the server is killed and started again (issue 4, F19-F31).

Each has a machine of its own and gives every fire an Idempotency-Key; a call that got no answer is repeated with the same key. At
the end each history has each fire once, in order, and the store verifies."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

CLIENTS, FIRES, KILLS = 24, 60, 4
PAWL = os.environ.get("PAWL") or "build-test/pawl"
WHEEL = {"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"], "transitions": [
    {"from_state": "a", "action": "turn", "to_state": "a"}, {"from_state": "a", "action": "stop", "to_state": "b"}]}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Hammer:
    def __init__(self, folder):
        self.folder, self.port, self.done, self.changed, self.wrong = folder, free_port(), 0, threading.Condition(), []

    def start(self):
        self.server = subprocess.Popen([PAWL, "serve", "--listen", "127.0.0.1:%d" % self.port, "--store", "sqlite:%s/pawl.db" % self.folder],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert b"ready" in self.server.stdout.readline()

    def end(self, how):
        self.server.send_signal(how)
        self.server.wait(60)
        self.server.stdout.close()

    def call(self, method, path, body=None, key=None):
        """Until it is answered, by this server or the next."""
        while True:
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                link.request(method, path, json.dumps(body) if body is not None else None,
                             {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})})
                answer = link.getresponse()
                return answer.status, json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                with self.changed:
                    self.changed.wait(0.02)  # nobody listens yet: no call to wait on
            finally:
                link.close()

    def client(self, n):
        try:
            status, made = self.call("POST", "/v1/instances", {"declaration": WHEEL}, "make-%d" % n)
            assert status == 201, made
            for i in range(1, FIRES + 1):
                status, fired = self.call("POST", "/v1/instances/%s/fire" % made["instance_id"], {"action": "turn"}, "%d-%d" % (n, i))
                assert (status, fired.get("sequence_number")) == (200, i), (n, i, status, fired)
                with self.changed:
                    self.done += 1
                    self.changed.notify_all()
            entries = self.call("GET", "/v1/instances/%s/history" % made["instance_id"])[1]["entries"]
            assert [e["sequence_number"] for e in entries] == list(range(1, FIRES + 1)), (n, len(entries))
        except Exception as error:  # told by the main thread
            self.wrong.append(repr(error))
            with self.changed:
                self.done += CLIENTS * FIRES
                self.changed.notify_all()

    def run(self):
        self.start()
        clients = [threading.Thread(target=self.client, args=(n,)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        for n in range(1, KILLS + 1):
            with self.changed:
                self.changed.wait_for(lambda: self.done >= n * CLIENTS * FIRES // (KILLS + 1), 120)
            self.end(signal.SIGKILL)
            self.start()
        for client in clients:
            client.join()
        self.end(signal.SIGTERM)
        assert not self.wrong, self.wrong[:3]
        assert self.done == CLIENTS * FIRES, self.done
        told = subprocess.run([PAWL, "--store", "sqlite:%s/pawl.db" % self.folder, "verify", "--json"], capture_output=True, text=True)
        assert told.returncode == 0 and json.loads(told.stdout)["entries"] == CLIENTS * FIRES, told.stdout + told.stderr


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Hammer(folder).run()
    print("ok - 24 clients hammer through %d kills: each fire is recorded once, in order" % KILLS)
    print("# 1 passed, 0 failed")
    sys.exit(0)
