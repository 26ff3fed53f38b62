"""HTTP/1.1 as it is on the wire: keep-alive, methods, tags, limits, slow and broken clients (RELIABILITY.md F19)."""
import json
import os
import resource
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
    line.ask("GET", "http://%s" % web.host)
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


def test_broken_requests_are_refused_and_their_connections_closed(shell):
    web = server(shell)
    start = "POST /v1/instances HTTP/1.1\r\nHost: %s\r\n" % web.host
    ours = {
        "two lengths": start + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "length beside chunks": start + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "a blank in a name": "GET /healthz HTTP/1.1\r\nHost: %s\r\nX : y\r\n\r\n" % web.host,
        "no host": "GET /healthz HTTP/1.1\r\n\r\n",
    }
    for what, text in ours.items():
        line = Raw(web)
        line.send(text)
        status, headers, body = line.reply()
        assert status == 400 and headers["content-type"] == "application/problem+json", (what, status, body)
        assert json.loads(body)["reason"] == "invalid-request", (what, body)
    library = {  # answered by libmicrohttpd itself, in HTML: src/surface/http/README.md
        400: [start + "Content-Length: -1\r\n\r\n", start + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
              "GET /healthz HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"],
        413: [start + "Content-Length: 99999999999999999999999\r\n\r\n"],
        414: ["GET /" + "x" * 9000 + " HTTP/1.1\r\n\r\n"],
        431: [start + "Cookie: " + "x" * 9000 + "\r\n\r\n"],
        505: ["GET /healthz HTTP/3.0\r\n\r\n"],
    }
    for status, texts in library.items():
        for text in texts:
            line = Raw(web)
            line.send(text)
            assert line.reply()[0] == status and line.is_closed(), text[:80]
    for text in (b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n", b"hello\r\n\r\n"):
        line = Raw(web)
        line.send(text)
        assert line.is_closed()
    Raw(web).send(b"\x00" * 100 + b"\r\n\r\n")  # taken for the beginning of a line: dropped after 10 s
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
