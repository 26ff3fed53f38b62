"""HTTP/1.1 as it is on the wire: keep-alive, methods, tags, limits, slow and broken clients (RELIABILITY.md F19)."""
import json
import os
import re
import resource
import socket
import ssl
import subprocess
import time

from raw import Raw
from web import Web, harness

LONG = bool(os.environ.get("PAWL_TEST_LONG"))
WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"],
         "terminal_kinds": {"off": "success"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"},
                         {"from_state": "on", "action": "stop", "to_state": "off"}]}


def server(shell, *words):
    child, address = shell.serve(*words)
    web = Web(address)
    web.child = child
    return web


def test_a_connection_is_kept_and_closed_as_asked(shell):
    web = server(shell)
    line = Raw(web)
    for _ in range(20):
        line.ask("GET", "/healthz")
        assert line.reply()[0] == 200
    line.ask("GET", "/healthz", headers=["Connection: close"])
    status, headers, _ = line.reply()
    assert status == 200 and headers["connection"].lower() == "close" and line.is_closed()
    old = Raw(web)
    old.send("GET /healthz HTTP/1.0\r\nHost: %s\r\n\r\n" % web.host)
    assert old.reply()[0] == 200 and old.is_closed()


def test_head_and_options_tell_without_doing(shell):
    web = server(shell)
    line = Raw(web)
    for path in ("/healthz", "/v1/instances", "/v1/definitions/nobody"):
        line.ask("HEAD", path)
        head = line.reply(is_head=True)
        line.ask("GET", path)
        got = line.reply()
        assert head[0] == got[0] and head[1]["content-length"] == got[1]["content-length"], (head, got)
        assert head[1]["content-type"] == got[1]["content-type"]
    line.ask("OPTIONS", "/v1/instances")
    status, headers, body = line.reply()
    assert status == 204 and body == b"" and {"GET", "HEAD", "POST", "OPTIONS"} == set(headers["allow"].split(", "))
    line.ask("OPTIONS", "*")
    assert line.reply()[0] == 204
    line.ask("OPTIONS", "/v1/nothing")
    assert line.reply()[0] == 404
    line.ask("PATCH", "/v1/batch")
    status, headers, _ = line.reply()
    assert status == 405 and headers["allow"] == "POST, OPTIONS"


def test_an_absolute_target_is_its_path(shell):
    web = server(shell)
    line = Raw(web)
    line.ask("GET", "http://%s/healthz" % web.host)
    assert line.reply()[0] == 200
    line.ask("GET", "HTTPS://%s/healthz" % web.host)
    assert line.reply()[0] == 200
    line.ask("GET", "http://%s" % web.host)
    status, headers, _ = line.reply()
    assert status == 200 and headers["content-type"].startswith("text/html"), "the path / is the dashboard"
    line.ask("GET", "http://%s/nowhere" % web.host)
    assert json.loads(line.reply()[2])["reason"] == "not-known"


def test_what_never_changes_has_a_tag_and_is_sent_once(shell):
    web = server(shell)
    text = json.dumps(WHEEL)
    web.expect(201, "PUT", "/v1/definitions/wheel", text)
    id = web.create(definition="wheel")
    for path in ("/v1/definitions/wheel?version=1", "/v1/instances/%s/declaration" % id):
        first = web.expect(200, "GET", path)
        tag = first.headers["etag"]
        again = web.expect(304, "GET", path, headers={"If-None-Match": '"other", W/%s' % tag})
        assert again.body == b"" and again.headers["etag"] == tag
        assert web.expect(304, "GET", path, headers={"If-None-Match": "*"}).body == b""
        assert web.expect(200, "GET", path, headers={"If-None-Match": '"other"'}).body == first.body
    assert "etag" not in web.get("/v1/instances/" + id).headers
    newest = web.get("/v1/definitions/wheel").headers["etag"]
    web.expect(201, "PUT", "/v1/definitions/wheel", text + " ")
    web.expect(200, "GET", "/v1/definitions/wheel", headers={"If-None-Match": newest})


POST = b"POST /v1/instances HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
REJECTED = {  # what: (reason, bytes). On every connection, whatever came before
    "four words": ("invalid-request", b"GET /healthz /x HTTP/1.1\r\n\r\n"),
    "two blanks": ("invalid-request", b"GET  /healthz HTTP/1.1\r\n\r\n"),
    "a method that is no word": ("invalid-request", b"G@T /healthz HTTP/1.1\r\n\r\n"),
    "no host": ("invalid-request", b"GET /healthz HTTP/1.1\r\n\r\n"),
    "an empty host": ("invalid-request", b"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n"),
    "two hosts": ("invalid-request", GET + b"Host: localhost\r\n\r\n"),
    "a foreign host": ("forbidden", b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
    "a foreign target": ("forbidden", b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "a foreign target with TLS": ("forbidden", b"GET https://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "a blank in a name": ("invalid-request", GET + b"X : y\r\n\r\n"),
    "a lone CR in a value": ("invalid-request", GET + b"X: a\rContent-Length: 5\r\n\r\n"),
    "a long target": ("too-large", b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "a length too large to read": ("too-large", POST + b"Content-Length: 9999999999999\r\n\r\n"),
    "two lengths": ("invalid-request", POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    "a length beside chunks": ("invalid-request", POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"),
    "another coding": ("invalid-request", POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
}
FIRST = {  # as the first request of a connection; behind another one, and within TLS, the library decides
    "nothing but bytes": ("invalid-request", b"\0\1\2\r\n\r\n"),
    "no method": ("invalid-request", b" /healthz HTTP/1.1\r\n\r\n"),
    "NUL in the target": ("invalid-request", b"GET /healthz\0x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "no name": ("invalid-request", GET + b": x\r\n\r\n"),
    "a folded line": ("invalid-request", GET + b"X: y\r\n z\r\n\r\n"),
    "a first line folded": ("invalid-request", b"GET /healthz HTTP/1.1\r\n X: y\r\nHost: localhost\r\n\r\n"),
    "NUL in a value": ("invalid-request", GET + b"X: a\0b\r\n\r\n"),
    "a line without end": ("too-large", b"A" * 20000),
    "a long header": ("too-large", GET + b"Cookie: " + b"x" * 9000 + b"\r\n\r\n"),
    "many headers": ("too-large", GET + b"".join(b"X%d: y\r\n" % i for i in range(2000)) + b"\r\n"),
}
NOT_HTTP = {  # the library's own answer, or none
    "one word": b"hello\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/3": b"GET /healthz HTTP/3.0\r\n\r\n",
    "another protocol": b"GET /healthz HTTQ/1.1\r\n\r\n",
    "a version in small letters": b"GET /healthz http/1.1\r\n\r\n",
    "no colon": GET + b"no colon\r\n\r\n",
    "a length that is no number": POST + b"Content-Length: abc\r\n\r\n{}",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n{}",
    "a length with a sign": POST + b"Content-Length: +2\r\n\r\n{}",
    "an empty length": POST + b"Content-Length:\r\n\r\n{}",
    "a list of lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "a length beyond all": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "a chunk without a size": CHUNKED + b"ZZ\r\n{}\r\n0\r\n\r\n",
    "a chunk of negative size": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "a chunk beyond all": CHUNKED + b"f" * 20 + b"\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED + b"2\r\n{}x0\r\n\r\n",
    "a second chunk that is none": CHUNKED + b"2\r\n{}\r\nZZ\r\n\r\n",
}
NO_END = {  # the library waits for more
    "TLS": b"\x16\x03\x01\x00\xa5\x01\x00",
    "HTTP/0.9": b"GET /healthz\r\n",
}


def expect_our_words(connect, rows, before=b""):
    """Each malformed request on a connection of its own, behind `before`."""
    status_of = {"invalid-request": 400, "forbidden": 403, "too-large": 413}
    for what, (reason, data) in rows.items():
        line = connect()
        if before:
            line.send(before)
            assert line.reply()[0] == 200
        line.send(data)
        status, headers, body = line.reply()
        assert headers["content-type"] == "application/problem+json" and headers["x-request-id"], (what, body)
        problem = json.loads(body)
        assert problem["reason"] == reason and problem["status"] == status == status_of[reason] and problem["detail"], (what, body)


def test_every_request_that_breaks_a_rule_is_told_what_is_wrong_with_it_in_our_words(shell):
    web = server(shell)
    expect_our_words(lambda: Raw(web), {**REJECTED, **FIRST})
    figures = web.get("/metrics").body.decode()
    counted = int(re.search(r'^pawl_http_answers_total\{status="413"\} (\d+)', figures, re.M).group(1))
    assert counted == sum(reason == "too-large" for reason, _ in {**REJECTED, **FIRST}.values()), "rejections are counted like answers"


def test_the_same_rules_hold_behind_a_good_request(shell):
    web = server(shell)
    expect_our_words(lambda: Raw(web), REJECTED, GET + b"\r\n")


def test_the_same_rules_hold_within_tls(shell):
    web = Web("https://" + tls_server(shell))
    trust = ssl.create_default_context(cafile=os.path.join(shell.folder, "cert.pem"))

    def connect():
        line = Raw(web)
        line.socket = trust.wrap_socket(line.socket, server_hostname="127.0.0.1")
        return line

    expect_our_words(connect, REJECTED)
    expect_our_words(connect, REJECTED, GET + b"\r\n")


def test_bytes_that_are_not_http_do_nothing_and_are_told_so_by_a_status_or_the_end_of_the_connection(shell):
    web = server(shell)
    for before in (b"", GET + b"\r\n"):
        for what, data in {**NOT_HTTP, **NO_END}.items():
            line = Raw(web)
            line.send(before)
            assert not before or line.reply()[0] == 200
            line.send(data)
            if what in NO_END:
                line.close()
                continue
            reply = line.reply()
            assert not reply or reply[0] in (400, 413, 505), (what, reply)
            while line.more():
                pass
        line = Raw(web)
        line.send(before + CHUNKED + b"2000\r\n" + b" " * 0x2000 + b"\r\nZZ\r\n")
        assert not before or line.reply()[0] == 200
        assert line.reply()[0] == 400 and line.is_closed(), "a bad chunk far behind"
    assert web.get("/v1/instances").json["instances"] == []


def tls_server(shell):
    """HOST:PORT of a server with a certificate of its own."""
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem",
                           "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                          cwd=shell.folder, capture_output=True)
    if made.returncode != 0:
        raise harness.Skip("there is no openssl to make a certificate")
    child = shell.begin("serve", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    return re.match(r"pawl is ready on https://(127\.0\.0\.1:\d+)", child.stdout.readline().decode()).group(1)


def test_a_request_may_come_in_any_pieces(shell):
    web = server(shell)
    for data in (b"\r\n\r\n" + GET + b"\r\n", GET.replace(b"\r\n", b"\n") + b"\n", GET + b"X: " + b"y" * 5000 + b"\r\n\r\n"):
        for size in (1, 7, 10000):
            line = Raw(web)
            line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, min(len(data), 200), size):
                line.send(data[at:at + size])
            line.send(data[at + size:])
            assert line.reply()[0] == 200, (data[:60], size)
    line = Raw(web)
    line.send(GET + b"Content-Le")
    line.socket.shutdown(socket.SHUT_WR)
    assert line.is_closed()
    assert web.get("/healthz").status == 200


def test_a_body_too_large_is_refused_whether_announced_or_not(shell):
    web = server(shell)
    line = Raw(web)
    line.send("POST /v1/instances HTTP/1.1\r\nHost: %s\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n" % web.host)
    status, headers, body = line.reply()
    assert status == 413 and json.loads(body)["reason"] == "too-large"
    line = Raw(web)
    line.send("POST /v1/instances HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % web.host)
    for _ in range(20):
        line.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
    line.send(b"0\r\n\r\n")
    status, headers, body = line.reply()
    assert status == 413 and json.loads(body)["reason"] == "too-large"
    line.ask("GET", "/healthz")
    assert line.reply()[0] == 200, "a body that was read to its end leaves the connection usable"


def test_slow_clients_hold_nobody_up(shell):
    web = server(shell)
    id = web.create(declaration=WHEEL)
    slow = []
    for i in range(300):
        line = Raw(web)
        line.send("POST /v1/instances/%s/fire HTTP/1.1\r\nHost: %s\r\n" % (id, web.host))
        if i % 2:
            line.send("Content-Length: 1000\r\n\r\n{")
        slow.append(line)
    for i in range(50):
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn"})
        web.expect(200, "GET", "/v1/instances")
        slow[i].send(" " if i % 2 else "X")
    for line in slow:
        line.close()
    assert web.get("/v1/instances/" + id).json["next_sequence_number"] == 51


def test_slow_clients_are_dropped_in_the_end(shell):
    if not LONG:
        raise harness.Skip("takes more than a minute of real time: PAWL_TEST_LONG")
    web = server(shell)
    silent, head, body = Raw(web), Raw(web), Raw(web)
    kept = Raw(web)
    kept.ask("GET", "/healthz")
    assert kept.reply()[0] == 200
    head.send("GET /healthz HTTP/1.1\r\n")
    body.send("POST /v1/instances HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\n" % web.host)
    begun, ended = time.monotonic(), {}
    while time.monotonic() < begun + 75:
        for name, line in (("head", head), ("body", body)):
            try:
                line.send("x")
            except OSError:
                ended.setdefault(name, time.monotonic() - begun)
        time.sleep(0.5)
    assert silent.is_closed() and 9 < ended["head"] < 15 and 58 < ended["body"] < 70, ended
    kept.ask("GET", "/healthz")
    assert kept.reply()[0] == 200, "a connection may rest between requests"


def test_more_connections_than_can_be_served_are_told_so(shell):
    if not LONG:
        raise harness.Skip("opens 12,000 connections: PAWL_TEST_LONG")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 13000:
        raise harness.Skip("only %d files may be open" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    web = server(shell)
    lines = [Raw(web) for _ in range(12001)]
    late = Raw(web)
    late.ask("GET", "/healthz")
    status, headers, body = late.reply()
    assert status == 503 and json.loads(body)["reason"] == "overloaded" and late.is_closed(), body
    assert headers["retry-after"] == "1"
    for line in lines:
        line.close()
    shell.wait_for(lambda: web.ask("GET", "/healthz").status == 200)
    assert 'pawl_http_refused_total{limit="connections"}' in web.get("/metrics").body.decode()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


if __name__ == "__main__":
    harness.main(dict(globals()))
