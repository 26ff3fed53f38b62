"""What is counted, named and logged: GET /metrics, X-Request-Id, traceparent, request logs (RELIABILITY.md section 4, 7)."""
import json
import re

from raw import Raw
from sse import Stream
from web import Web, harness

SAMPLE = re.compile(r'([a-z_]+)(?:\{([^}]*)\})? ([0-9.]+)')
WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"],
         "terminal_kinds": {"off": "success"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"},
                         {"from_state": "on", "action": "stop", "to_state": "off"}]}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def server(shell, *words):
    child, address = shell.serve(*words)
    web = Web(address)
    web.child = child
    return web


def metrics(web):
    """{(name, labels): value}, after checking that each has its HELP and TYPE before it."""
    reply = web.expect(200, "GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4"), reply.headers
    types, helped, values = {}, set(), {}
    for line in reply.body.decode().splitlines():
        if line.startswith("# HELP "):
            helped.add(line.split()[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in types and name in helped and kind in ("counter", "gauge", "histogram"), line
            types[name] = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found, "no sample: %r" % line
            name = found.group(1)
            base = re.sub("_(bucket|sum|count)$", "", name)
            assert name in types or types.get(base) == "histogram", line
            key = (name, found.group(2) or "")
            assert key not in values, "twice: %r" % line
            values[key] = float(found.group(3))
    return values


def test_metrics_have_help_type_and_sound_histograms(shell):
    web = server(shell)
    id = web.create(declaration=WHEEL)
    for _ in range(5):
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn"})
    values = metrics(web)
    for name in ("pawl_records_total", "pawl_queue_depth", "pawl_claims_waiting", "pawl_flush_lag_records", "pawl_wal_bytes",
                 "pawl_commits_failed_total", "pawl_http_connections", "pawl_http_streams"):
        assert (name, "") in values, name
    assert values["pawl_records_total", ""] == 6, values  # a creation and five fires
    assert values["pawl_wal_bytes", ""] > 0
    assert values["pawl_operation_seconds_count", 'operation="instance.fire"'] == 5
    assert values["pawl_operation_seconds_sum", 'operation="instance.fire"'] > 0
    assert values["pawl_commit_seconds_count", ""] >= 6
    series = {}
    for (name, labels), value in values.items():
        if name.endswith("_bucket"):
            labels = labels.split(",")
            series.setdefault((name, tuple(labels[:-1])), []).append((labels[-1], value))
    assert len(series) >= 3
    for (name, labels), buckets in series.items():
        counts = [value for _, value in buckets]
        assert counts == sorted(counts) and buckets[-1][0] == 'le="+Inf"', buckets
        assert counts[-1] == values[name.replace("_bucket", "_count"), ",".join(labels)]


def test_answers_streams_and_refusals_are_counted(shell):
    web = server(shell)
    before = metrics(web)
    stream = Stream(web).open()
    for _ in range(3):
        web.refused("not-known", "GET", "/v1/instances/nobody")
    web.refused("too-large", "POST", "/v1/instances", b" " * (2 << 20))
    after = metrics(web)
    assert after["pawl_http_streams", ""] == 1 and after["pawl_http_connections", ""] >= 2
    assert after["pawl_http_answers_total", 'status="404"'] == 3
    assert after["pawl_http_answers_total", 'status="413"'] == 1
    assert after["pawl_http_refused_total", 'limit="body"'] == before["pawl_http_refused_total", 'limit="body"'] + 1
    assert {labels for name, labels in after if name == "pawl_http_refused_total"} == {
        'limit="body"', 'limit="bodies"', 'limit="work"', 'limit="connections"', 'limit="time"'}
    stream.close()


def test_a_request_has_a_name_which_may_be_the_clients(shell):
    web = server(shell)
    line = Raw(web)
    made = []
    for _ in range(3):
        line.ask("GET", "/healthz")
        made.append(line.reply()[1]["x-request-id"])
    assert len(set(made)) == 3 and all(re.fullmatch(r"[0-9a-f]{16}-\d+", id) for id in made), made
    line.ask("POST", "/v1/instances", {}, headers=["X-Request-Id: order-7/a"])
    assert line.reply()[1]["x-request-id"] == "order-7/a"
    for bad in ('a"b', "x" * 65, "a b", "a%0Ab"):
        line.ask("GET", "/healthz", headers=["X-Request-Id: " + bad])
        assert re.fullmatch(r"[0-9a-f]{16}-\d+", line.reply()[1]["x-request-id"])
    assert "x-request-id" in Stream(web).open().headers


def test_a_trace_is_carried_into_the_answer_with_a_span_of_our_own(shell):
    web = server(shell)
    reply = web.ask("GET", "/healthz", headers={"traceparent": TRACE})
    version, trace, span, flags = reply.headers["traceparent"].split("-")
    assert (version, trace, flags) == ("00", TRACE.split("-")[1], "01")
    assert re.fullmatch("[0-9a-f]{16}", span) and span != TRACE.split("-")[2]
    for bad in (TRACE[:-1], TRACE.replace("00-", "ff-", 1), TRACE.replace("b7ad6b7169203331", "0" * 16),
                TRACE.replace("0af7651916cd43dd8448eb211c80319c", "G" * 32), "00"):
        assert "traceparent" not in web.ask("GET", "/healthz", headers={"traceparent": bad}).headers, bad


def some_requests(web):
    id = web.create(declaration=WHEEL)
    web.ask("POST", "/v1/instances/%s/fire" % id, {"action": "turn"}, {"X-Request-Id": "mine", "traceparent": TRACE})
    web.ask("POST", "/v1/instances/%s/fire" % id, {"action": "jump"})
    web.ask("GET", "/v1/instances?subject_ref=secret%20person")
    web.ask("GET", "/v1/no%20thing%22x")
    return id


def test_request_logs_are_one_json_line_each(shell):
    web = server(shell, "--log-format", "json")
    id = some_requests(web)
    _, err = shell.stop(web.child)
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(l["method"], l.get("operation"), l["status"], l.get("reason")) for l in lines] == [
        ("POST", "instance.create", 201, None), ("POST", "instance.fire", 200, None),
        ("POST", "instance.fire", 409, "invalid-transition"), ("GET", "instance.list", 200, None),
        ("GET", None, 404, "not-known")], lines
    assert lines[1]["id"] == "mine" and lines[1]["trace"] == TRACE.split("-")[1] and lines[1]["sent"] > 20
    assert lines[1]["path"] == "/v1/instances/%s/fire" % id and lines[1]["us"] > 0 and lines[1]["received"] > 10
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", lines[0]["at"])
    assert "secret" not in err, "a query is not logged"


def test_request_logs_in_logfmt_can_be_split_at_blanks(shell):
    web = server(shell, "--log-format", "logfmt")
    some_requests(web)
    _, err = shell.stop(web.child)
    lines = [dict(re.findall(r'(\w+)=("(?:\\.|[^"\\])*"|\S*)', line)) for line in err.splitlines()]
    assert [line["status"] for line in lines] == ["201", "200", "409", "200", "404"], err
    assert lines[2]["reason"] == "invalid-transition" and lines[1]["id"] == "mine"
    assert json.loads(lines[4]["path"]) == "/v1/no%20thing%22x"
    assert "secret" not in err


def test_without_being_asked_the_server_says_nothing_about_requests(shell):
    web = server(shell)
    some_requests(web)
    assert shell.stop(web.child)[1] == ""
    refused = shell.pawl("serve", "--log-format", "xml", expect=2)
    assert "logfmt" in refused.err


if __name__ == "__main__":
    harness.main(dict(globals()))
