"""Compressed answers: the same bytes, fewer on the wire, only for clients that read them, and never
where they would hold something up."""
import gzip
import json

from raw import Raw
from sse import Stream
from web import Web, harness

GZIP = {"Accept-Encoding": "gzip"}
LONG = {"states": ["s%03d" % i for i in range(200)], "initial_state": "s000", "terminal_states": ["s199"], "transitions": [
    {"from_state": "s%03d" % i, "action": "go", "to_state": "s%03d" % (i + 1)} for i in range(199)]}


def start(shell):
    _, address = shell.serve()
    web = Web(address)
    web.ids = [web.create(declaration=LONG) for _ in range(20)]
    return web


def test_a_long_answer_is_compressed_for_whom_it_suits_and_says_so(shell):
    web = start(shell)
    paths = ["/v1/instances", "/v1/instances/%s/declaration" % web.ids[0], "/metrics"]
    for path in paths:
        plain, small = web.get(path), web.ask("GET", path, None, GZIP)
        assert "content-encoding" not in plain.headers and small.headers["content-encoding"] == "gzip", path
        assert plain.headers["vary"] == small.headers["vary"] == "Accept-Encoding", path
        assert int(small.headers["content-length"]) == len(small.body) < len(plain.body) / 2, path
        assert plain.headers["content-type"] == small.headers["content-type"]
        if path != "/metrics":
            assert gzip.decompress(small.body) == plain.body, path


def test_what_a_client_accepts_is_read_as_it_is_meant(shell):
    web = start(shell)
    for header, wanted in (("gzip", True), ("GZIP", True), ("deflate, gzip;q=0.5, br", True), ("br , gzip", True), ("gzip; q=1.0", True),
                           ("gzip;q=0", False), ("gzip; q=0.000", False), ("identity", False), ("", False), ("xgzip", False), ("gzip2", False),
                           (",,,", False), (";", False), ("gzip;q=0.001", True)):
        reply = web.ask("GET", "/v1/instances", None, {"Accept-Encoding": header})
        assert ("content-encoding" in reply.headers) == wanted, header


def test_a_short_answer_and_a_refusal_are_left_alone(shell):
    web = start(shell)
    for path in ("/healthz", "/v1/instances/%s/current" % web.ids[0], "/v1/instances/none"):
        reply = web.ask("GET", path, None, GZIP)
        assert "content-encoding" not in reply.headers and "vary" not in reply.headers, path
        json.loads(reply.body)


def test_a_head_a_tag_and_a_batch_go_with_it(shell):
    web = start(shell)
    path = "/v1/instances/%s/declaration" % web.ids[0]
    raw = Raw(web)
    raw.ask("HEAD", path, headers=["Accept-Encoding: gzip"])
    _, head, _ = raw.reply(is_head=True)
    first = web.ask("GET", path, None, GZIP)
    assert head["content-length"] == first.headers["content-length"] and head["content-encoding"] == "gzip"
    plain = web.get(path)
    assert first.headers["etag"] == "W/" + plain.headers["etag"], "one tag for two codings must be weak"
    for tag in (first.headers["etag"], plain.headers["etag"]):
        for more in (GZIP, {}):
            again = web.expect(304, "GET", path, None, {"If-None-Match": tag, **more})
            assert again.body == b"" and again.headers["vary"] == "Accept-Encoding" and "content-encoding" not in again.headers
    plain, small = web.get("/openapi.json"), web.ask("GET", "/openapi.json", None, GZIP)  # made by a worker
    assert small.headers["etag"] == "W/" + plain.headers["etag"] and gzip.decompress(small.body) == plain.body
    lines = "\n".join(json.dumps({"operation": "instance.get", "input": {"instance_id": i}}) for i in web.ids)
    both = [web.ask("POST", "/v1/batch", lines, headers) for headers in ({}, GZIP)]
    assert gzip.decompress(both[1].body) == both[0].body


def test_a_stream_is_never_compressed(shell):
    web = start(shell)
    host, port = web.host.rsplit(":", 1)
    stream = Stream.__new__(Stream)
    stream.raw, stream.text, stream.comments, stream.ended = b"", b"", 0, False
    stream.socket = Raw(web).socket
    stream.socket.sendall(("GET /v1/events?from=start HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: gzip\r\n\r\n" % web.host).encode())
    stream.open()
    assert "content-encoding" not in stream.headers and "vary" not in stream.headers, stream.headers
    web.expect(200, "POST", "/v1/instances/%s/fire" % web.ids[0], {"action": "go"})
    assert stream.event().entry["instance_id"] == web.ids[0]


harness.main(globals())
