"""What a request's head decides: who sends it and how large it may be; nothing is kept before that
(RELIABILITY.md F19 to F22, threat B1)."""
import json
import os
import re
import signal
import socket
import time

from raw import Raw
from run_tokens import bearer, make, open_server
from web import Web, harness

MIB = 1 << 20
WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"], "terminal_kinds": {"off": "success"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"}]}


def figure(web, name, headers=None):
    text = web.expect(200, "GET", "/metrics", None, headers or {}).body.decode()
    return int(re.search(r"^%s (\d+)" % re.escape(name), text, re.M).group(1))


def begin(web, path, length, *headers):
    """Send the head of a request with a body of this length, or (length None) in chunks, and none of the body."""
    line = Raw(web)
    size = "Transfer-Encoding: chunked" if length is None else "Content-Length: %d" % length
    line.send("\r\n".join(["POST %s HTTP/1.1" % path, "Host: " + web.host, size, *headers]) + "\r\n\r\n")
    return line


def reason(reply):
    return reply[0], json.loads(reply[2])["reason"]


def resident(child):
    with open("/proc/%d/statm" % child.pid) as file:
        return int(file.read().split()[1]) * 4096


def is_sanitized():
    with open(harness.PAWL, "rb") as file:
        program = file.read()
    return b"__asan_init" in program or b"__tsan_init" in program


def test_500_unfinished_bodies_without_a_token_are_refused_at_their_head_and_nothing_of_them_is_kept(shell):
    token = bearer(make(shell, "all")["token"])
    child, web = open_server(shell)
    before, lines = resident(child), []
    for i in range(500):
        path = ("/v1/batch", "/v1/stores/nosuch/batch", "/v1/instances")[i % 3]
        lines.append(begin(web, path, None if i % 2 else MIB, *(["Authorization: Bearer " + "0" * 16 + "." + "0" * 64] if i % 5 else [])))
    for line in lines:
        assert reason(line.reply()) == (401, "unauthenticated")
        try:
            line.send(b"x" * 200000)  # discarded, or the connection is closed already
        except ConnectionError:
            pass
    assert figure(web, "pawl_http_body_bytes", token) == 0
    each = 65536 * (4 if is_sanitized() else 1)  # a sanitizer needs memory of its own
    assert resident(child) - before < 500 * each, (before, resident(child))


def test_a_refusal_at_the_head_reaches_a_client_that_sends_all_before_it_reads(shell):
    make(shell, "all")
    _, web = open_server(shell)
    for size in (100, 5000, 70000, 900000, 8 * MIB):
        line = Raw(web)
        line.ask("POST", "/v1/batch", b"x" * size)
        status, headers, body = line.reply()
        assert (status, json.loads(body)["reason"]) == (401, "unauthenticated"), (size, status, body)
        assert headers["www-authenticate"] == "Bearer" and headers["content-type"] == "application/problem+json"


def test_a_client_that_expects_100_gets_its_rejection_instead_or_100_if_accepted(shell):
    token = bearer(make(shell, "write")["token"])
    _, web = open_server(shell)
    mine = "Authorization: " + token["Authorization"]
    for path, length, headers, wanted in (("/v1/instances", 10, [], (401, "unauthenticated")),
                                          ("/v1/batch", 2 * MIB, [], (401, "unauthenticated")),
                                          ("/v1/stores/nosuch/batch", 10, [], (401, "unauthenticated")),
                                          ("/v1/stores/nosuch/batch", 10, [mine], (401, "unauthenticated")),
                                          ("/v1/tokens", 10, [mine], (403, "forbidden")),
                                          ("/v1/nowhere", 10, [mine], (404, "not-known")),
                                          ("/v1/instances", 2 * MIB, [mine], (413, "too-large")),
                                          ("/v1/batch", 17 * MIB, [mine], (413, "too-large"))):
        line = begin(web, path, length, "Expect: 100-continue", *headers)
        assert reason(line.reply()) == wanted, path
        assert line.is_closed()
    body = json.dumps({"declaration": WHEEL}).encode()
    line = begin(web, "/v1/instances", len(body), "Expect: 100-continue", mine)
    assert line.reply()[0] == 100
    line.send(body)
    assert line.reply()[0] == 201


def test_all_bodies_together_are_bounded_and_over_it_is_overloaded(shell):
    shell.write("pawl.yaml", "limits: {body_memory: 16777216}\n")
    child, address = shell.serve()
    web, lines = Web(address), []
    for _ in range(8):
        lines.append(begin(web, "/v1/batch", 10 * MIB))
        lines[-1].socket.settimeout(20)
    answers = []
    for line in lines:
        try:
            line.send(b"x" * (9 * MIB))
        except ConnectionError:
            pass
    assert figure(web, "pawl_http_body_bytes") <= 2 * 16777216  # a buffer that grows may double
    for line in lines:
        line.socket.settimeout(0.2)
        try:
            answers.append(line.reply())
        except (TimeoutError, socket.timeout):
            answers.append(None)
    refused = [answer for answer in answers if answer]
    assert len(refused) >= 7 and all(reason(answer) == (503, "overloaded") and answer[1]["retry-after"] for answer in refused), answers
    for line in lines:
        line.close()  # a client that disconnects releases its memory
    shell.wait_for(lambda: figure(web, "pawl_http_body_bytes") == 0)
    assert web.create(declaration=WHEEL)
    text = web.expect(200, "GET", "/metrics").body.decode()
    assert re.search(r'pawl_http_refused_total\{limit="bodies"\} [1-9]', text), text


def test_a_client_that_disconnects_in_the_middle_of_a_body_releases_its_memory(shell):
    web = Web(shell.serve()[1])
    line = begin(web, "/v1/batch", 10 * MIB)
    line.send(b"x" * (5 * MIB))
    shell.wait_for(lambda: figure(web, "pawl_http_body_bytes") >= 5 * MIB)
    line.close()
    shell.wait_for(lambda: figure(web, "pawl_http_body_bytes") == 0)


def test_to_a_token_without_rights_a_store_that_is_not_there_looks_like_one_that_is(shell):
    admin = bearer(make(shell, "admin")["token"])
    limited = [bearer(make(shell, scope)["token"]) for scope in ("read", "write", "work", "all:order", "read,write,work,define,test")]
    _, web = open_server(shell)
    web.expect(201, "PUT", "/v1/stores/there", None, admin)
    other = web.expect(201, "POST", "/v1/stores/there/tokens", {"scopes": "all"}, admin).json["token"]
    web.expect(201, "PUT", "/v1/stores/mine", None, admin)
    strangers = limited + [{}, bearer("x"), bearer("0" * 16 + "." + "0" * 64), {"Authorization": "Basic eA=="}]
    for method, path in (("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/instances"), ("POST", "/instances"), ("POST", "/batch"),
                         ("GET", "/events"), ("POST", "/steps/claim"), ("GET", "/openapi"), ("DELETE", "/tokens/x")):
        for token in strangers + [bearer(other)]:
            known = "mine" if token == bearer(other) else "there"
            found = [web.ask(method, "/v1/stores/%s%s" % (store, path), {} if method == "POST" else None, token) for store in (known, "nosuch")]
            seen = [(one.status, one.body, {k: v for k, v in one.headers.items() if k not in ("x-request-id", "date")}) for one in found]
            assert seen[0] == seen[1], (method, path, token, seen)
    web.refused("not-known", "GET", "/v1/stores/nosuch/instances", None, admin)
    web.expect(200, "GET", "/v1/stores/there/healthz", None, bearer(other))
    web.expect(200, "GET", "/healthz")


def test_a_request_whose_client_has_closed_its_side_is_answered(shell):
    web = Web(shell.serve()[1])
    web.expect(201, "PUT", "/v1/stores/other", None)
    flow = "steps: {a: {tool: far, done: true}}"
    web.expect(201, "PUT", "/v1/definitions/f", flow, {"Content-Type": "application/yaml"})
    id, flow = web.create(declaration=WHEEL), web.create(definition="f")
    calls = [("POST", "/v1/instances/%s/fire" % id, {"action": "turn"}, 200), ("POST", "/v1/instances", {"declaration": WHEEL}, 201),
             ("POST", "/v1/batch", b'{"operation":"instance.fire","input":{"instance_id":"%s","action":"turn"}}\n' % id.encode(), 200),
             ("GET", "/v1/instances", None, 200), ("GET", "/v1/instances/" + id, None, 200),
             ("POST", "/v1/instances/%s/pause" % flow, {}, 200), ("POST", "/v1/stores/other/instances", {"declaration": WHEEL}, 201),
             ("POST", "/v1/instances/%s/fire" % id, {"action": "none"}, 409)]
    lines = [Raw(web) for _ in range(30)]  # many at once: some wait for the library while their end arrives
    for method, path, body, status in calls:
        for line in lines:
            line.ask(method, path, body)
            line.socket.shutdown(socket.SHUT_WR)
        replies = [line.reply() for line in lines]
        assert [reply and reply[0] for reply in replies] == [status] * 30, (method, path, replies)
        lines = [Raw(web) for _ in lines]
    fires = web.get("/v1/instances/%s/history" % id).json["entries"]
    assert len(fires) == 60, "each was done once"


def test_a_body_that_is_cut_short_by_its_client_is_an_invalid_request(shell):
    """The client has closed its side and can still read: it gets an answer at once, not silence after a minute."""
    child, address = shell.serve()
    web = Web(address)
    head = "POST /v1/instances HTTP/1.1\r\nHost: %s\r\nContent-Length: %%d\r\n\r\n" % web.host
    whole = b'{"declaration":' + json.dumps(WHEEL).encode() + b"}"

    def cut(announced, sent, pause=0.0, together=False, behind=False):
        line = Raw(web, timeout=10)
        if behind:
            line.ask("GET", "/healthz")
            assert line.reply()[0] == 200
        if together:  # the server finds the last bytes and the end at once
            os.kill(child.pid, signal.SIGSTOP)
            os.waitpid(child.pid, os.WUNTRACED)
        line.send((head % announced).encode() + sent)
        time.sleep(pause)
        line.socket.shutdown(socket.SHUT_WR)
        if together:
            os.kill(child.pid, signal.SIGCONT)
        status, _, body = line.reply()
        assert (status, json.loads(body)["reason"]) == (400, "invalid-request"), (announced, body)
        assert "Content-Length" in json.loads(body)["detail"], body
        assert line.is_closed()
    cut(len(whole) + 1, whole)
    cut(len(whole), b"")
    cut(len(whole), whole[:-1], pause=0.3)
    cut(300000, b"x" * 3000, together=True)
    cut(len(whole), whole[:-1], behind=True)
    cut(len(whole), whole[:-1], behind=True, together=True)
    cut(300000, b"x" * 200000, pause=0.3)
    line = Raw(web)
    line.send((head % len(whole)).encode())
    time.sleep(0.1)
    line.send(whole[:7])
    time.sleep(0.1)
    line.send(whole[7:])
    assert line.reply()[0] == 201, "a body may come in pieces"
    assert len(web.get("/v1/instances").json["instances"]) == 1


harness.main(globals())
