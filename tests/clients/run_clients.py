"""The clients of clients/, against a real server that is killed under them.

F19-F31 of RELIABILITY.md as far as a client can help: a lost answer is asked for again and done once, a stream
goes on where it was, a worker's result is recorded once."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "http"))
sys.path.insert(0, str(HERE.parents[1] / "clients/python"))
import described  # noqa: E402
import pawl_client as client  # noqa: E402
from web import harness  # noqa: E402

LONG = os.environ.get("PAWL_TEST_LONG")
ORDER = (harness.EXAMPLES / "order.yaml").read_text()
WHEEL = "states: [a, b]\ninitial_state: a\nterminal_states: [b]\nterminal_kinds: {b: success}\ntransitions:\n" \
        "  - {from_state: a, action: turn, to_state: a}\n  - {from_state: a, action: stop, to_state: b}\n"
CHAIN = "steps:\n  start: {name: one, tool: note, RETRY, next: two}\n  two: {tool: note, RETRY, next: three}\n  three: {tool: note, RETRY, done: true}\n".replace(
    "RETRY", "retry: {max: 9, backoff: [10ms]}")
LANGUAGES = {"python": [sys.executable, str(HERE / "worker.py")], "node": ["node", str(HERE / "worker.mjs")]}


def node():
    if not shutil.which("node"):
        raise harness.Skip("there is no node here")
    return "node"


def tour(address, *words):
    done = subprocess.run([node(), str(HERE / "tour.mjs"), address, *words], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


class Server:
    """One that can be killed and comes back on its port."""

    def __init__(self, shell, *words):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.shell, self.words, self.address = shell, words, "http://127.0.0.1:%d" % self.port
        self.start()

    def start(self):
        self.child = self.shell.begin("serve", "--listen", "127.0.0.1:%d" % self.port, *self.words)
        assert b"ready" in self.child.stdout.readline()

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.communicate()


def test_every_operation_is_in_both_clients(shell):
    names = [name for name, method, _, _ in described.operations() if method]
    missing = [name for name in names if not hasattr(client.Pawl, name.replace(".", "_"))]
    assert not missing, "clients/python/pawl_client/__init__.py lacks %s: run tools/gen-reference" % missing
    found = tour("http://127.0.0.1:1", "names")
    missing = [name for name in names if re.sub(r"[._](.)", lambda m: m.group(1).upper(), name) not in found]
    assert not missing, "clients/node/pawl_client.mjs lacks %s: run tools/gen-reference" % missing


def test_every_reason_has_a_class_in_both_clients(shell):
    reasons = list(described.document()["components"]["examples"])
    assert len(reasons) > 20
    classes = {"".join(word.capitalize() for word in reason.split("-")) for reason in reasons}
    assert {kind.__name__ for kind in client.REASONS.values()} >= classes
    assert set(tour("http://127.0.0.1:1", "reasons")) >= classes


def test_the_python_client_speaks_to_a_real_server(shell):
    _, address = shell.serve()
    pawl = client.Pawl(address)
    assert pawl.definition_put("py/order", ORDER.replace("name: order", ""))["version"] == 1
    made = pawl.instance_create(definition="py/order", labels={"by": "python"}, subject_ref="A-17")
    try:
        pawl.instance_fire(made["instance_id"], "ship")
        assert False, "it was accepted"
    except client.InvalidTransition as error:
        assert error.status == 409 and "legal now" in error.detail and isinstance(error, client.PawlError)
    assert pawl.instance_fire(made["instance_id"], "pay", actor_ref="ann", expected_sequence=1)["new_state"] == "paid"
    assert [e["action"] for e in pawl.instance_history(made["instance_id"])["entries"]] == ["pay"]
    assert [i["subject_ref"] for i in pawl.instance_list(labels={"by": "python"})["instances"]] == ["A-17"]
    got, created = pawl.batch(
        [("instance.get", {"instance_id": made["instance_id"]}), ("instance.create", {"definition": "py/order"})])
    assert got["body"]["current_state"] == "paid" and created["status"] == 201
    assert pawl.definition_get("py/order")["text"] == ORDER.replace("name: order", "")
    assert b"states" in pawl.instance_declaration(made["instance_id"]) and b"# TYPE" in pawl.metrics_get()
    try:
        client.Pawl(address, store="other").instance_list()
        assert False, "there is no such store"
    except client.NotKnown:
        pass


def test_the_node_client_speaks_to_a_real_server(shell):
    _, address = shell.serve()
    told = tour(address, "tour")
    assert told["put"]["version"] == 1 and told["fired"]["new_state"] == "paid" and told["text"] and told["metrics"], told
    assert told["wrong"] == ["InvalidTransition", "invalid-transition", 409] and told["again"] == "Terminal", told
    assert len(told["listed"]) == 1 and told["got"] == "paid" and told["made"] == 201 and "states" in told["declaration"], told


class Forgetful(threading.Thread):
    """Hands requests on and loses the first answers: the server has done what was asked, and nobody hears of it."""

    def __init__(self, port, lose):
        super().__init__(daemon=True)
        self.port, self.lose, self.keys = port, lose, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            near, _ = self.listener.accept()
            with near, socket.create_connection(("127.0.0.1", self.port)) as far:
                text = near.recv(65536)
                while b"\r\n\r\n" not in text or len(text.partition(b"\r\n\r\n")[2]) < int((re.search(rb"(?i)content-length: (\d+)", text) or [0, 0])[1]):
                    text += near.recv(65536)
                self.keys += re.findall(rb"(?i)idempotency-key: (\S+)", text)
                far.sendall(text.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n", 1))
                answer = b"".join(iter(lambda: far.recv(65536), b""))
                self.lose -= 1
                if self.lose < 0:
                    near.sendall(answer)


def test_a_call_whose_answer_was_lost_is_repeated_and_done_once(shell):
    server = Server(shell)
    straight = client.Pawl(server.address)
    straight.definition_put("order", ORDER)
    for number, create in enumerate((lambda address: client.Pawl(address).instance_create(definition="order"),
                                     lambda address: tour(address, "create", "x")), 1):
        between = Forgetful(server.port, lose=2)
        made = create(between.address)
        assert len(between.keys) == 3 and len(set(between.keys)) == 1, between.keys
        assert straight.instance_list()["instances"][0]["instance_id"] == made["instance_id"]
        assert straight.instance_counts()["total"] == number, "it was done more than once"


def test_what_node_calls_in_one_turn_shares_a_request_and_each_call_has_its_own_answer(shell):
    server = Server(shell)
    client.Pawl(server.address).definition_put("order", ORDER)
    told = tour(server.address, "together")
    assert told["before"] == ['pawl_operation_seconds_count{operation="instance.create"} 1'], told["before"]
    assert told["asked"] == ['pawl_operation_seconds_count{operation="batch"} 1', 'pawl_operation_seconds_count{operation="instance.create"} 2'], \
        "all but the long one go in one request, that alone: %r" % told["asked"]
    made, none, paid, jumped, shipped, long, first, again = told["answers"]
    assert (none, jumped) == ("NotKnown", "InvalidTransition") and (paid["new_state"], shipped["new_state"]) == ("paid", "shipped"), told["answers"]
    assert len({made["instance_id"], long["instance_id"], first["instance_id"]}) == 3, told["answers"]
    assert first["instance_id"] == again["instance_id"], "a key's call is made once"


def test_calls_that_shared_a_request_whose_answer_was_lost_are_repeated_and_done_once(shell):
    server = Server(shell)
    straight = client.Pawl(server.address)
    straight.definition_put("order", ORDER)
    made = tour(Forgetful(server.port, lose=4).address, "crowd")
    assert len({one["instance_id"] for one in made}) == straight.instance_counts()["total"] == 600
    assert {straight.instance_get(made[i]["instance_id"])["subject_ref"] for i in (0, 255, 256, 599)} == {"0", "255", "256", "599"}


def test_what_must_not_be_repeated_is_not(shell):
    server = Server(shell)
    between = Forgetful(server.port, lose=1)
    try:
        client.Pawl(between.address).token_create("read")
        assert False, "it was repeated: a second secret that nobody knows of"
    except client.Unreachable:
        assert len(client.Pawl(server.address).token_list()["tokens"]) == 1


def follow_python(address, instance):
    seen = []
    for event in client.Pawl(address).instance_events(instance, from_start=True):
        seen.append(event["sequence_number"])
        if event["action"] == "stop":
            return seen


def test_a_stream_goes_on_without_gap_or_repeat_when_the_server_is_killed(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    pawl.definition_put("wheel", WHEEL)
    id = pawl.instance_create(definition="wheel")["instance_id"]
    heard = []
    followers = [threading.Thread(target=lambda f=f: heard.append(f(server.address, id)))
                 for f in (follow_python, lambda address, one: tour(address, "follow", one))]
    for follower in followers:
        follower.start()
    for _ in range(3):
        for _ in range(5):
            pawl.instance_fire(id, "turn")
        server.kill()
        server.start()
    pawl.instance_fire(id, "stop")
    for follower in followers:
        follower.join(60)
    assert heard == [list(range(1, 17))] * 2, heard


# ---- Workers ----

class Hands:
    """Workers of a language, as processes."""

    def __init__(self, shell, address, language):
        if language == "node":
            node()
        self.shell, self.words, self.notes = shell, LANGUAGES[language] + [address, str(shell.folder / "notes")], shell.folder / "notes"
        self.all = []

    def hire(self):
        with open(self.shell.folder / "said", "a") as said:
            self.all.append(subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=said))
        self.shell.children.append(self.all[-1])
        return self.all[-1]

    def noted(self):
        return self.notes.read_text().split() if self.notes.exists() else []


def accepted(pawl, id):
    """How often each step was completed, by the history."""
    counts = {}
    for entry in pawl.instance_history(id)["entries"]:
        if entry["action"] == "step.complete":
            counts[entry["step"]] = counts.get(entry["step"], 0) + 1
    return counts


def storm(shell, language, count):
    """Server and workers are killed in turn until everything has ended."""
    server = Server(shell)
    pawl, hands = client.Pawl(server.address), Hands(shell, server.address, language)
    pawl.definition_put("chain", CHAIN)
    made = pawl.batch([("instance.create", {"definition": "chain"})] * count)
    hands.hire()
    victim, goal = hands.hire(), count * 3 // 4
    for share in range(1, 4):
        shell.wait_for(lambda: len(hands.noted()) >= share * goal)
        if share == 2:
            victim.kill()
            hands.hire()
        else:
            server.kill()
            server.start()
    shell.wait_for(lambda: pawl.instance_counts()["by_status"].get("completed") == count, 120)
    for answer in made:
        assert accepted(pawl, answer["body"]["instance_id"]) == {"one": 1, "two": 1, "three": 1}
    assert len(set(hands.noted())) == 3 * count, "a step was never begun, or under another key"
    assert pawl.store_verify()["valid"]


def test_python_workers_end_every_instance_while_server_and_workers_are_killed(shell):
    storm(shell, "python", 400 if LONG else 60)


def test_node_workers_end_every_instance_while_server_and_workers_are_killed(shell):
    storm(shell, "node", 400 if LONG else 60)


def steps_of(pawl, id):
    return [(s["status"], s["attempt"], s["error"] or s["result"]) for s in pawl.instance_steps(id)["steps"]]


def test_failures_leases_and_a_graceful_stop(shell):
    """Both languages: an exception is the step's error and is retried, Fail ends it; a tool longer than its lease
    keeps it; SIGTERM lets what was begun end."""
    server = Server(shell)
    pawl = client.Pawl(server.address)
    pawl.definition_put("stumble", "steps:\n  start: {name: s, tool: stumble, retry: {max: 5, backoff: [10ms]}, done: true}\n")
    pawl.definition_put("long", "steps:\n  start: {name: l, tool: long, retry: {max: 1}, done: true}\n")
    for language, kind in (("python", "ValueError"), ("node", "TypeError")):
        worker = Hands(shell, server.address, language).hire()
        failing, lasting = (pawl.instance_create(definition=name)["instance_id"] for name in ("stumble", "long"))
        shell.wait_for(lambda: pawl.instance_get(failing)["status"] == "failed")
        (_, _, error), last = steps_of(pawl, failing)
        assert error.pop("traceback") and error == {"type": kind, "message": "the first time"} and last == ("failed", 2, {"why": "for good"})
        shell.wait_for(lambda: pawl.instance_steps(lasting)["steps"][0]["status"] == "running")
        worker.terminate()
        assert worker.wait(60) == 0, (shell.folder / "said").read_text()
        assert steps_of(pawl, lasting) == [("done", 1, "kept")], (language, steps_of(pawl, lasting))


def test_a_worker_hears_whether_its_answer_was_recorded_or_refused(shell):
    server = Server(shell)
    pawl = client.Pawl(server.address)
    pawl.definition_put("chain", CHAIN)
    pawl.definition_put("long", "steps:\n  start: {name: l, tool: long, retry: {max: 1}, done: true}\n")
    for language in LANGUAGES:
        hands = Hands(shell, server.address, language)
        worker, heard = hands.hire(), pathlib.Path(str(hands.notes) + ".answered")
        heard.unlink(missing_ok=True)
        pawl.instance_create(definition="chain")
        shell.wait_for(lambda: heard.exists() and heard.read_text() == "note done\n" * 3)
        lasting = pawl.instance_create(definition="long")["instance_id"]
        shell.wait_for(lambda: pawl.instance_steps(lasting)["steps"][0]["status"] == "running")
        pawl.instance_cancel(lasting)
        shell.wait_for(lambda: "long lease-lost\n" in heard.read_text())
        worker.terminate()
        assert worker.wait(60) == 0, (shell.folder / "said").read_text()


def test_a_result_that_is_no_json_is_its_steps_failure_and_nobody_elses(shell):
    """C35: a tool that answers with what JSON has no words for leaves the worker, and the answers of others, alone."""
    server = Server(shell)
    pawl = client.Pawl(server.address)
    pawl.definition_put("odd", "dopar:\n" + "".join("  - {name: s%d, action: odd, payload: %d}\n" % (n, n) for n in range(6)) +
                        "  - {name: fine, action: note, payload: 1}\n")
    for language, words in (("python", "TypeError"), ("node", "TypeError")):
        worker = Hands(shell, server.address, language).hire()
        id = pawl.instance_create(definition="odd")["instance_id"]
        shell.wait_for(lambda: pawl.instance_get(id)["status"] == "failed")
        steps = {step["name"]: step for step in pawl.instance_steps(id)["steps"]}
        assert steps["fine"]["status"] == "done" and steps["s0"]["error"]["type"] == words, steps
        assert {steps["s%d" % n]["status"] for n in range(6)} == {"failed"}, steps
        worker.terminate()
        assert worker.wait(60) == 0, (shell.folder / "said").read_text()


if __name__ == "__main__":
    harness.main(globals())
