"""The command line against servers that behave, misbehave, or are not there."""
import json
import socket
import threading

from harness import main

ID = "0000000001ABCDEFGHJKMNPQRS"


class Server:
    """Answers each connection with the next of `answers`, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for answer in self.answers:
            connection, _ = self.socket.accept()
            with connection:
                self.asked.append(self.read(connection))
                connection.sendall(answer)
        self.socket.close()

    def read(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        size = 0
        for line in head.decode().split("\r\n"):
            if line.lower().startswith("content-length:"):
                size = int(line.split(":")[1])
        while len(body) < size:
            body += connection.recv(65536)
        return head.decode(), body.decode()


def answer(body, status="200 OK", kind="application/json"):
    text = (body if isinstance(body, str) else json.dumps(body)).encode()
    return ("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (
        status, kind, len(text))).encode() + text


def problem(reason, detail, status="409 Conflict"):
    return answer({"status": 409, "title": "t", "detail": detail, "reason": reason}, status,
                  "application/problem+json")


def test_path_parameters_go_into_the_path_and_the_rest_into_the_body(shell):
    server = Server(answer({"new_state": "paid", "sequence_number": 1, "transition_id": "x"}))
    shell.pawl("--store", server.url, "fire", ID, "pay", "--actor", "ann", "--payload", '{"a": 1.10}')
    head, body = server.asked[0]
    assert head.startswith("POST /v1/instances/%s/fire HTTP/1.1\r\n" % ID), head
    assert json.loads(body) == {"action": "pay", "actor_ref": "ann", "payload": {"a": 1.1}}
    assert "1.10" in body, "numbers must keep their text"


def test_query_parameters_are_escaped(shell):
    server = Server(answer({"instances": [], "next": None}))
    shell.pawl("--store", server.url, "list", "--state", "a b&c=ü", "--label", "k=v w")
    assert server.asked[0][0].startswith(
        "GET /v1/instances?state=a%20b%26c%3D%C3%BC&label.k=v%20w HTTP/1.1"), server.asked[0][0]


def test_a_definition_is_sent_as_it_is_with_its_type(shell):
    server = Server(*2 * [answer({"name": "x", "version": 1, "kind": "machine", "sha256": "0" * 64,
                                  "warnings": []}, "201 Created")])
    yaml, text = "# ü\nname: x/y\nstates: [a]\n", ' {"name": "x"}\n'
    shell.write("x.yaml", yaml)
    shell.write("x.json", text)
    shell.pawl("--store", server.url, "define", "x.yaml", "x.json")
    assert server.asked[0][0].startswith("PUT /v1/definitions/x%2Fy ")
    assert "Content-Type: application/yaml" in server.asked[0][0] and server.asked[0][1] == yaml
    assert "Content-Type: application/json" in server.asked[1][0] and server.asked[1][1] == text


def test_a_rejection_keeps_its_token_and_words(shell):
    server = Server(problem("invalid-transition", "no 'ship' from 'new'; legal now: pay, drop"))
    found = shell.pawl("--store", server.url, "fire", ID, "ship", expect=1)
    assert found.err.startswith(
        "pawl: invalid-transition: no 'ship' from 'new'; legal now: pay, drop\n"), found
    assert "try: pawl --store %s show" % server.url in found.err


def test_with_json_a_rejection_is_a_problem_on_stdout(shell):
    server = Server(problem("terminal", "it has ended"))
    found = shell.pawl("--store", server.url, "fire", ID, "ship", "--json", expect=1)
    assert found.json["reason"] == "terminal" and found.json["detail"] == "it has ended"


def test_chunks_are_joined(shell):
    body = b'{"waiting_for":[]}'
    server = Server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + body[:5] +
                    b"\r\nd\r\n" + body[5:] + b"\r\n0\r\n\r\n")
    assert shell.pawl("--store", server.url, "why", ID).out == "waits for nothing\n"


def test_an_answer_that_breaks_off_is_outcome_unknown(shell):
    server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"new_")
    found = shell.pawl("--store", server.url, "fire", ID, "pay", expect=3)
    assert found.err.startswith("pawl: outcome-unknown: "), found


def test_no_answer_at_all_is_outcome_unknown(shell):
    server = Server(b"")
    assert "outcome-unknown" in shell.pawl("--store", server.url, "fire", ID, "pay", expect=3).err


def test_an_answer_that_is_not_http_is_outcome_unknown(shell):
    server = Server(b"SSH-2.0-OpenSSH\r\n")
    assert "outcome-unknown" in shell.pawl("--store", server.url, "why", ID, expect=3).err


def test_an_error_without_a_reason_is_a_storage_failure(shell):
    server = Server(answer("<html>bad gateway</html>", "502 Bad Gateway", "text/html"))
    refused = shell.pawl("--store", server.url, "why", ID, expect=3).err
    assert refused.startswith("pawl: storage-failure: %s answered 502, but not as a pawl server does" % server.url), refused
    assert "another program" in refused and "proxy" in refused, refused


def test_nobody_listening_is_a_storage_failure(shell):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = "http://127.0.0.1:%d" % taken.getsockname()[1]
    found = shell.pawl("--store", url, "list", expect=3)
    assert found.err.startswith("pawl: storage-failure: cannot reach " + url), found


def test_a_bad_address_is_refused(shell):
    for url in ("http://", "http://a/b", "https://x", "ftp:x"):
        found = shell.pawl("--store", url, "list", expect=1)
        assert found.err.startswith("pawl: invalid-request: "), found


def test_escape_sequences_of_stored_texts_never_reach_the_terminal(shell):
    server = Server(answer({"waiting_for": [{"kind": "signal", "name": "\x1b[31mred\x07"}]}))
    found = shell.pawl("--store", server.url, "why", ID)
    assert "\x1b" not in found.out and "red" in found.out, found


def test_a_prefix_is_one_question_however_many_instances_there_are(shell):
    server = Server(answer({"instance_id": "0000000002ABCDEFGHJKMNPQRS"}), answer({"waiting_for": []}))
    shell.pawl("--store", server.url, "why", "0000000002a")
    assert server.asked[0][0].startswith("GET /v1/instances/find?prefix=0000000002A "), server.asked
    assert server.asked[1][0].startswith("GET /v1/instances/0000000002ABCDEFGHJKMNPQRS/why "), server.asked


main(globals())
