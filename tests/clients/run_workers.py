"""What the workers of clients/ say and what they survive: the same in Python and in Node."""
import json
import re
import socket
import subprocess
import threading

from run_clients import LANGUAGES, Server, client, harness, node, tour

ONE = "steps:\n  start: {name: s, tool: TOOL, args: {which: WHICH}, retry: {max: 1}, done: true}\n"
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO|WARNING|ERROR) (.*)$")
FREE = "http://127.0.0.1:1"  # a port at which no server listens


class Hand:
    """One worker as a process, and what it has written to stderr."""

    def __init__(self, shell, language, address, **options):
        if language == "node":
            node()
        self.path, self.shell = shell.folder / ("said-%s-%d" % (language, len(shell.children))), shell
        with open(self.path, "w") as said:
            self.child = subprocess.Popen(LANGUAGES[language] + [address, str(shell.folder / "notes"), json.dumps(options)],
                                          stdout=subprocess.DEVNULL, stderr=said)
        shell.children.append(self.child)

    def text(self):
        return self.path.read_text()

    def lines(self, level):
        found = [LINE.match(line) for line in self.text().splitlines()]
        return [one.group(2) for one in found if one and one.group(1) == level]

    def wait_for(self, level, words):
        self.shell.wait_for(lambda: any(words in line for line in self.lines(level)))

    def end(self):
        self.child.terminate()
        assert self.child.wait(60) == 0, self.text()


def run(shell, pawl, tool, which=0):
    """An instance of one step, when it has ended: its step."""
    pawl.definition_put("one", ONE.replace("TOOL", tool).replace("WHICH", str(which)))
    id = pawl.instance_create(definition="one")["instance_id"]
    shell.wait_for(lambda: pawl.instance_get(id)["status"] in ("completed", "failed"))
    return pawl.instance_steps(id)["steps"][-1]


def test_a_worker_says_at_start_which_tools_it_serves_and_where_and_ends_without_its_server(shell):
    for language in LANGUAGES:
        hand = Hand(shell, language, FREE)
        hand.wait_for("INFO", "serves note, stumble, long, slow, odd, lone, raise at http://127.0.0.1:1, 8 at a time")
        hand.wait_for("WARNING", "gets no answer from http://127.0.0.1:1: ")
        hand.child.terminate()
        assert hand.child.wait(10) == 0, "its claim was repeated for 30 s: " + hand.text()
        assert len(hand.lines("INFO")) == 1 and len(hand.lines("WARNING")) == 1, hand.text()


def test_a_worker_says_once_that_the_server_is_gone_and_once_that_it_is_back(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    hands = [Hand(shell, language, server.address) for language in LANGUAGES]
    for _ in hands:
        assert run(shell, pawl, "note")["status"] == "done"
    for hand in hands:
        hand.wait_for("INFO", "serves ")
    for number in (1, 2):
        server.kill()
        for hand in hands:
            shell.wait_for(lambda: len(hand.lines("WARNING")) == number)
        server.start()
        for hand in hands:
            shell.wait_for(lambda: len(hand.lines("INFO")) == 1 + number)
        assert run(shell, pawl, "note")["status"] == "done"
    for hand in hands:
        hand.end()
        assert len(hand.lines("WARNING")) == 2 and len(hand.lines("INFO")) == 3 and not hand.lines("ERROR"), hand.text()
        assert re.search(r"is connected to %s again, after \d+\.\d s" % server.address, hand.lines("INFO")[1]), hand.text()


def test_an_idle_worker_says_at_once_that_its_server_is_back(shell):
    server = Server(shell)
    hands = [Hand(shell, language, server.address, wait=wait) for language, wait in (("python", 50.0), ("node", "50s"))]
    for hand in hands:
        hand.wait_for("INFO", "serves ")
    pawl = client.Pawl(server.address)
    for number in (1, 2):
        shell.wait_for(lambda: b"pawl_claims_waiting 2\n" in pawl.metrics_get())
        server.kill()
        for hand in hands:
            shell.wait_for(lambda: len(hand.lines("WARNING")) == number)
        server.start()
        for hand in hands:
            shell.wait_for(lambda: len(hand.lines("INFO")) == 1 + number, 40)
    for hand in hands:
        hand.child.kill()


def test_a_worker_without_a_token_is_not_told_of_its_token(shell):
    server = Server(shell, "--require-token")
    for language in LANGUAGES:
        hand = Hand(shell, language, server.address)
        assert hand.child.wait(60) == 1, hand.text()
        last = hand.text().splitlines()[-1]
        assert re.search(r"ERROR %s rejects worker \S+: unauthenticated: .*'pawl token create --scope work'" % server.address, last), hand.text()


def test_a_failure_is_logged_with_its_traceback_which_is_in_the_error_as_well(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    pawl.definition_put("stumble", "steps:\n  start: {name: s, tool: stumble, retry: {max: 5, backoff: [10ms]}, done: true}\n")
    for language, kind, place in (("python", "ValueError", 'worker.py", line '), ("node", "TypeError", "worker.mjs:")):
        hand = Hand(shell, language, server.address)
        id = pawl.instance_create(definition="stumble")["instance_id"]
        shell.wait_for(lambda: pawl.instance_get(id)["status"] == "failed")
        first, last = pawl.instance_steps(id)["steps"]
        assert first["error"]["type"] == kind and first["error"]["message"] == "the first time", first
        assert place in first["error"]["traceback"] and kind + ": the first time" in first["error"]["traceback"], first
        assert last["error"] == {"why": "for good"}, "the error of a Fail is recorded as it is"
        hand.end()
        failed = hand.lines("ERROR")
        assert len(failed) == 2 and all("(tool stumble, attempt %d) failed" % n in line for n, line in enumerate(failed, 1)), hand.text()
        assert failed[0].startswith("step " + first["step_id"]) and hand.text().count(place) >= 2, hand.text()
        assert first["error"]["traceback"].strip() in hand.text(), hand.text()
        assert "for good" in failed[1] + hand.text().partition(failed[1])[2] and "[object" not in hand.text(), hand.text()


def test_a_tool_says_how_far_it_is(shell):
    server = Server(shell)
    for language in LANGUAGES:
        hand = Hand(shell, language, server.address)
        pawl = client.Pawl(server.address)
        pawl.definition_put("slow", ONE.replace("TOOL", "slow").replace("WHICH", "0"))
        id = pawl.instance_create(definition="slow")["instance_id"]
        shell.wait_for(lambda: pawl.instance_steps(id)["steps"][-1].get("progress") == {"done": 1, "of": 2})
        (shell.folder / "notes.go").touch()
        shell.wait_for(lambda: pawl.instance_get(id)["status"] == "completed")
        assert "progress" not in pawl.instance_steps(id)["steps"][-1], "an attempt that is over has its result alone"
        (shell.folder / "notes.go").unlink()
        hand.end()


def test_a_url_without_a_scheme_is_refused(shell):
    for url in ("localhost:7295", "127.0.0.1:7295", "pawl.example.com", "sqlite:orders.db", "http://", "http://127.0.0.1:port", ""):
        expected = "begins with http:// or https://, like http://127.0.0.1:7295, found '%s'" % url
        try:
            client.Pawl(url)
            assert False, url + " was taken"
        except ValueError as refused:
            assert expected in str(refused), refused
        assert expected in tour(url, "url"), url
    assert client.Pawl("https://pawl.example.com")._url == "https://pawl.example.com"


def test_the_path_of_a_url_names_the_store_as_on_the_command_line_and_any_other_path_is_refused(shell):
    server = Server(shell)
    default, batch = client.Pawl(server.address), client.Pawl(server.address, store="batch")
    default.store_put("batch")
    named = server.address + "/v1/stores/batch"
    for pawl in (client.Pawl(named), client.Pawl(named + "/"), client.Pawl(named, store="batch")):
        pawl.definition_put("order", "steps:\n  start: {name: s, tool: note, done: true}\n")
        pawl.instance_create(definition="order")
    tour(named, "create", "A-17")
    assert len(batch.instance_list()["instances"]) == 4 and not default.instance_list()["instances"]
    for language in LANGUAGES:
        hand = Hand(shell, language, named)
        hand.wait_for("INFO", "at %s, 8 at a time" % named)
        assert run(shell, batch, "note")["status"] == "done", "its worker claims the steps of the store it names"
        hand.end()
    for path in ("/foo", "/v1/stores/", "/v1/stores/a/b", "/v1/instances", "?x=1", "#x", "/v1/stores/batch?x=1"):
        expected = "expected http://host:port or http://host:port/v1/stores/NAME, found '%s'" % (server.address + path)
        try:
            client.Pawl(server.address + path)
            assert False, path + " was taken"
        except ValueError as refused:
            assert expected in str(refused), refused
        assert expected in tour(server.address + path, "url"), path
    for made in (lambda: client.Pawl(named, store="other"), lambda: (_ for _ in ()).throw(ValueError(tour(named, "url", "other")))):
        try:
            made()
            assert False, "two stores were taken"
        except ValueError as refused:
            assert "the URL names the store 'batch', and store is 'other'" in str(refused), refused


def test_a_rejected_token_ends_a_worker_with_a_sentence(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    reader = pawl.token_create("read")["token"]
    for language in LANGUAGES:
        for token, reason in (("0123456789abcdef.wrong", "unauthenticated"), (reader, "forbidden")):
            hand = Hand(shell, language, server.address, token=token)
            assert hand.child.wait(60) == 1, hand.text()
            last = hand.text().splitlines()[-1]
            assert re.search(r"ERROR %s rejects the token of worker \S+: %s: .*'pawl token create --scope work'" % (server.address, reason), last), hand.text()
            assert len(hand.text().splitlines()) == 2, hand.text()


def test_a_token_that_is_revoked_ends_a_worker_as_well(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    for language in LANGUAGES:
        made = pawl.token_create("work")
        hand = Hand(shell, language, server.address, token=made["token"])
        assert run(shell, pawl, "note")["status"] == "done"
        pawl.token_revoke(made["token_id"])
        assert hand.child.wait(60) == 1, hand.text()
        assert "rejects the token of worker" in hand.lines("ERROR")[-1], hand.text()


def test_an_exception_in_a_callback_ends_nothing(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    for language, how in (("python", "raise"), ("node", "raise"), ("node", "reject")):
        hand = Hand(shell, language, server.address, answered=how)
        for number in (1, 2):
            assert run(shell, pawl, "note")["status"] == "done"
            shell.wait_for(lambda: len(hand.lines("ERROR")) == number)
        assert "the callback 'answered' failed for step" in hand.lines("ERROR")[0] and "the callback's own" in hand.text(), hand.text()
        hand.end()


def test_a_logger_that_fails_ends_nothing(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    for language in LANGUAGES:
        hand = Hand(shell, language, server.address, log="raise")
        assert run(shell, pawl, "raise", 2)["status"] == "failed"
        assert run(shell, pawl, "note")["status"] == "done"
        hand.end()


def test_whatever_a_tool_raises_is_its_steps_failure(shell):
    """An exit, an exception without a text, nothing at all, a text that JSON does not have, or one that is longer than an error may be."""
    server = Server(shell)
    pawl = client.Pawl(server.address)
    for language, kinds in (("python", ("SystemExit", "Silent", "ValueError")), ("node", ("undefined", None, "TypeError"))):
        hand = Hand(shell, language, server.address)
        for number, kind in enumerate(kinds):
            step = run(shell, pawl, "raise", number)
            assert step["status"] == "failed" and kind in (None, step["error"]["type"]) and "traceback" in step["error"], step
        assert step["error"]["message"].startswith("odd ") and step["error"]["message"].endswith(" text"), step
        error = run(shell, pawl, "raise", len(kinds))["error"]
        assert error["message"].startswith("...x") and error["message"].endswith("x the end"), error["message"][-80:]
        assert "worker." in error["traceback"] and "x the end" in error["traceback"], error["traceback"][:300]
        hand.end()


def test_an_answer_that_the_server_refuses_is_its_steps_failure_and_no_other_answer_is_lost(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    pawl.definition_put("mixed", "dopar:\n" + "".join("  - {name: s%d, action: %s, payload: 1}\n" % (n, tool)
                                                      for n, tool in enumerate(("note", "lone", "note", "lone"))))
    for language in LANGUAGES:
        id = pawl.instance_create(definition="mixed")["instance_id"]
        hand = Hand(shell, language, server.address)
        shell.wait_for(lambda: pawl.instance_get(id)["status"] == "failed")
        steps = {step["name"]: step for step in pawl.instance_steps(id)["steps"]}
        assert [steps["s%d" % n]["status"] for n in range(4)] == ["done", "failed", "done", "failed"], steps
        assert steps["s1"]["error"]["type"] == "invalid-request" and "surrogate" in steps["s1"]["error"]["message"], steps
        hand.end()
        assert len([line for line in hand.lines("ERROR") if "refuses its answer" in line]) == 2, hand.text()


class Proxy(threading.Thread):
    """Answers 502 until it is opened; then it hands connections on, and notes which claims and answers pass."""

    def __init__(self, port, is_open=False):
        super().__init__(daemon=True)
        self.port, self.is_open, self.refused, self.asked = port, is_open, 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            near, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        with near:
            if not self.is_open:
                near.recv(65536)
                near.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone")
                self.refused += 1
                return
            with socket.create_connection(("127.0.0.1", self.port)) as far:
                back = threading.Thread(target=self.copy, args=(far, near), daemon=True)
                back.start()
                self.copy(near, far)
                back.join()

    def copy(self, source, target):
        try:
            while text := source.recv(65536):
                self.asked += re.findall(rb"^POST /v1/steps/(claim|complete) ", text)
                target.sendall(text)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_a_proxy_without_its_server_does_not_end_a_worker(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    for language in LANGUAGES:
        proxy = Proxy(server.port)
        hand = Hand(shell, language, proxy.address)
        shell.wait_for(lambda: proxy.refused >= 2)
        proxy.is_open = True
        assert run(shell, pawl, "note")["status"] == "done"
        hand.wait_for("INFO", "is connected to %s again" % proxy.address)
        hand.end()
        assert len(hand.lines("WARNING")) == 1 and "HTTP 502" in hand.lines("WARNING")[0], hand.text()


def test_a_worker_whose_steps_follow_each_other_claims_with_its_answers_alone(shell):
    server = Server(shell)
    proxy = Proxy(server.port, True)
    node()
    hand = Hand(shell, "node", proxy.address, wait="60s")
    shell.wait_for(lambda: proxy.asked == [b"claim"])
    pawl = client.Pawl(server.address)
    chain = "".join("  s%d: {tool: note, %s}\n" % (n, "next: s%d" % (n + 1) if n < 9 else "done: true") for n in range(10))
    pawl.definition_put("chain", "steps:\n" + chain)
    id = pawl.instance_create(definition="chain")["instance_id"]
    shell.wait_for(lambda: pawl.instance_get(id)["status"] == "completed")
    shell.wait_for(lambda: len(proxy.asked) >= 12)
    assert proxy.asked == [b"claim"] + [b"complete"] * 10 + [b"claim"], proxy.asked
    hand.child.kill()  # its claim would wait for a minute


def test_an_answer_that_was_not_recorded_is_logged(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    pawl.definition_put("long", ONE.replace("TOOL", "long").replace("WHICH", "0"))
    for language in LANGUAGES:
        hand = Hand(shell, language, server.address)
        id = pawl.instance_create(definition="long")["instance_id"]
        shell.wait_for(lambda: pawl.instance_steps(id)["steps"][0]["status"] == "running")
        pawl.instance_cancel(id)
        hand.wait_for("WARNING", "(tool long) was not recorded: lease-lost: ")
        hand.end()


def test_a_worker_says_so_when_its_url_is_no_pawl_server(shell):
    class Page(Proxy):
        def serve(self, near):
            with near:
                near.recv(65536)
                near.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<p/>")

    for language in LANGUAGES:
        hand = Hand(shell, language, Page(0).address)
        assert hand.child.wait(60) == 1 and "is this the URL of a pawl server?" in hand.lines("ERROR")[-1], hand.text()


if __name__ == "__main__":
    harness.main(globals())
