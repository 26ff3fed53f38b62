"""Streams whose clients do not read: no request waits for them, and nothing is buffered for them (RELIABILITY.md F20)."""
import re
import socket

from raw import Raw
from web import Web, harness

WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"], "terminal_kinds": {"off": "success"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"}]}
SILENT, SIZE = 300, 20000


def figure(web, name):
    return int(re.search(r"^%s (\d+)" % name, web.expect(200, "GET", "/metrics").body.decode(), re.M).group(1))


def silent_stream(web):
    line = Raw(web)
    line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.ask("GET", "/v1/events")
    return line


def test_hundreds_of_clients_that_do_not_read_share_no_thread_with_requests_and_are_given_a_bounded_number_of_bytes(shell):
    web = Web(shell.serve()[1])
    id = web.create(declaration=WHEEL)
    lines = [silent_stream(web) for _ in range(SILENT)]
    shell.wait_for(lambda: figure(web, "pawl_http_streams") == SILENT)
    assert figure(web, "pawl_http_shared_streams") == 0
    for _ in range(60):
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn", "payload": "x" * SIZE})
    given = figure(web, "pawl_http_stream_bytes") / SILENT
    assert given < 300000 < 60 * SIZE, given  # what both kernels buffer for one stream, not all that there was to send
    assert figure(web, "pawl_http_streams") == SILENT
    del lines


def test_streams_behind_another_request_on_their_connection_are_few(shell):
    web = Web(shell.serve()[1])
    lines = [Raw(web) for _ in range(257)]
    for line in lines:
        line.ask("GET", "/healthz")
        assert line.reply()[0] == 200
        line.ask("GET", "/v1/events")
    heads = []
    for line in lines:
        while b"\r\n\r\n" not in line.rest:
            line.more()
        heads.append(int(line.rest.split()[1]))
    assert sorted(set(heads)) == [200, 503] and heads.count(503) == 1, heads
    assert figure(web, "pawl_http_shared_streams") == 256
    for line in lines:
        line.close()


harness.main(globals())
