"""The dashboard over HTTP, without a browser: its files and their headers, the token that a browser keeps, and the
operations that its pages need. tests/browser/run_browser.py has what a real browser shows."""
import gzip
import hashlib
import http.client
import json
import pathlib
import re

from run_tokens import bearer, make
from web import Web, harness

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "src/surface/dashboard"
FILES = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".js", ".css", ".html", ".svg"))
PAGE = {"X-Pawl-Page": "1"}
GROWS = {"steps": {"start": {"name": "one", "tool": "set", "args": {"x": 1}, "augment": {"first": "x"}, "next": "two"},
                   "two": {"tool": "sleep", "args": {"for": "1h"}, "next": "three"},
                   "three": {"tool": "set", "args": {"y": 2}, "augment": {"second": "y"}, "done": True}}}


def raw(web, method, path, headers=None):
    """Without the check against /openapi.json, which does not describe pages."""
    connection = http.client.HTTPConnection(web.host, timeout=60)
    connection.request(method, path, None, headers or {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_the_root_is_a_page_and_every_file_is_served_as_it_is_in_the_repository(shell):
    _, address = shell.serve()
    web = Web(address)
    answer, body = raw(web, "GET", "/")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8", answer.headers
    assert body == (FOLDER / "index.html").read_bytes()
    for name in FILES:
        answer, body = raw(web, "GET", "/dashboard/" + name)
        assert answer.status == 200 and body == (FOLDER / name).read_bytes(), name
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and answer.headers["X-Content-Type-Options"] == "nosniff"
        again, empty = raw(web, "GET", "/dashboard/" + name, {"If-None-Match": answer.headers["ETag"]})
        assert again.status == 304 and not empty, name
    answer, body = raw(web, "GET", "/dashboard/none.js")
    assert answer.status == 404 and json.loads(body)["reason"] == "not-known", body
    assert raw(web, "POST", "/")[0].status == 405


def test_what_is_served_is_small_and_has_no_inline_script_and_no_markup_from_text(_):
    assert sum(len(gzip.compress((FOLDER / name).read_bytes())) for name in FILES) < 250 * 1024
    page = (FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|\son[a-z]+=|style=", page), page
    for name in FILES:
        text = (FOLDER / name).read_text()
        assert not re.search(r"\.(innerHTML|outerHTML|insertAdjacentHTML)\b|document\.write|\beval\(|new Function\(", text), name
        for used in re.findall(r'from "\./([a-z]+\.js)"', text):
            assert used in FILES, (name, used)


def cookie_of(answer):
    found = re.fullmatch(r"(pawl-\d+=[0-9a-f.]+); Path=/; HttpOnly; SameSite=Strict", answer.headers["Set-Cookie"])
    assert found, answer.headers["Set-Cookie"]
    return {"Cookie": found.group(1)}


def login(web, token):
    connection = http.client.HTTPConnection(web.host, timeout=60)
    connection.request("POST", "/dashboard/login", json.dumps({"token": token}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.document = json.loads(answer.read())
    connection.close()
    return answer


def test_a_token_is_exchanged_for_a_cookie_that_reads_and_that_writes_only_with_a_header_of_our_pages(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    token = make(shell, "read,write", "--actor", "ann", "--name", "desk")
    _, address = shell.serve("--require-token")
    web = Web(address)
    assert raw(web, "GET", "/")[0].status == 200 and raw(web, "GET", "/dashboard/app.js")[0].status == 200
    web.refused("unauthenticated", "GET", "/v1/instances")
    assert raw(web, "GET", "/dashboard/who")[0].status == 401
    assert login(web, "0123456789abcdef.00").status == 401
    answer = login(web, token["token"])
    assert answer.status == 200 and answer.document["actor_ref"] == "ann" and answer.document["scopes"] == "read,write", answer.document
    cookie = cookie_of(answer)
    web.expect(200, "GET", "/v1/instances", None, cookie)
    assert json.loads(raw(web, "GET", "/dashboard/who", cookie)[1])["actor_ref"] == "ann"
    web.refused("unauthenticated", "POST", "/v1/instances", {"definition": "order"}, cookie)
    made = web.expect(201, "POST", "/v1/instances", {"definition": "order"}, {**cookie, **PAGE}).json
    assert web.expect(200, "GET", "/v1/instances/" + made["instance_id"], None, cookie).json["created_by"] == "ann"
    web.refused("forbidden", "POST", "/v1/instances", {"definition": "order"}, {**cookie, **PAGE, "Origin": "https://other.example"})
    web.refused("unauthenticated", "GET", "/v1/instances", None, {"Cookie": "pawl-1=" + token["token"]})
    assert raw(web, "HEAD", "/v1/events", cookie)[0].status == 200 and raw(web, "HEAD", "/v1/events")[0].status == 401
    out, _ = raw(web, "POST", "/dashboard/logout", cookie)
    assert out.status == 200 and "Max-Age=0" in out.headers["Set-Cookie"], out.headers
    admin = make(shell, "admin")["token"]
    web.expect(200, "DELETE", "/v1/tokens/" + token["token_id"], None, bearer(admin))
    web.refused("unauthenticated", "GET", "/v1/instances", None, cookie)


def lp(data):
    size, out = len(data), b""
    while True:
        out += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
        if not size:
            return out + data


def test_the_records_of_an_instance_can_be_read_by_who_may_read_it_and_have_what_their_hashes_cover(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    reader, other = make(shell, "read:order")["token"], make(shell, "read:report")["token"]
    _, address = shell.serve("--require-token")
    web = Web(address)
    writer = bearer(make(shell, "write")["token"])
    made = web.expect(201, "POST", "/v1/instances", {"definition": "order", "subject_ref": "A-1"}, writer).json["instance_id"]
    web.expect(200, "POST", "/v1/instances/%s/fire" % made, {"action": "pay", "actor_ref": "ann", "payload": {"n": 1}}, writer)
    web.refused("forbidden", "GET", "/v1/instances/%s/records" % made, None, bearer(other))
    lines = [json.loads(line) for line in web.expect(200, "GET", "/v1/instances/%s/records" % made, None, bearer(reader)).body.decode().splitlines()]
    assert [next(iter(line)) for line in lines] == ["instance", "record", "record"], lines
    payload = lines[2]["record"]["payload"]
    assert hashlib.sha256(bytes.fromhex(payload["salt"]) + payload["text"].encode()).hexdigest() == payload["commitment"]
    assert lines[0]["instance"]["subject"]["text"] == "A-1" and json.loads(payload["text"]) == {"n": 1}


def test_timers_are_listed_by_when_they_are_due_and_only_those_that_may_be_read(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    _, address = shell.serve("--test")
    web = Web(address)
    for name, wait in (("late", "2h"), ("soon", "1h")):
        web.expect(201, "PUT", "/v1/definitions/" + name, {"steps": {"start": {"name": "rest", "tool": "sleep", "args": {"for": wait}, "done": True}}})
        web.create(definition=name, subject_ref="about " + name)
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    found = web.expect(200, "GET", "/v1/timers").json
    assert [(timer["definition"], timer["subject_ref"]) for timer in found["timers"]] == [("soon", "about soon"), ("late", "about late")], found
    assert found["more"] is False and found["timers"][0]["step_id"].endswith(".1") and found["timers"][0]["due_at"] < found["timers"][1]["due_at"]
    first = web.expect(200, "GET", "/v1/timers?limit=1").json
    assert len(first["timers"]) == 1 and first["more"] is True, first
    web.refused("invalid-query", "GET", "/v1/timers?colour=red")
    token = make(shell, "read:late")["token"]
    web.refused("forbidden", "GET", "/v1/timers", None, bearer(token))
    mine = web.expect(200, "GET", "/v1/timers?definition=late", None, bearer(token)).json
    assert [timer["definition"] for timer in mine["timers"]] == ["late"] and mine["more"] is False, mine
    web.expect(200, "POST", "/v1/test/advance", {"by": "3h"})
    assert web.expect(200, "GET", "/v1/timers").json == {"timers": [], "more": False}


def test_a_picture_of_the_past_has_the_state_of_the_past(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    _, address = shell.serve()
    web = Web(address)
    order = web.create(definition="order")
    for action in ("pay", "ship"):
        web.expect(200, "POST", "/v1/instances/%s/fire" % order, {"action": action})

    def marks(seq):
        nodes = web.expect(200, "GET", "/v1/instances/%s/graph?format=layout&sequence_to=%d" % (order, seq)).json["nodes"]
        return {node["name"]: node["mark"] for node in nodes if node["mark"]}

    assert marks(0) == {"new": "present"} and marks(1) == {"new": "passed", "paid": "present"}, (marks(0), marks(1))
    assert marks(2) == {"new": "passed", "paid": "passed", "shipped": "done"} == marks(9), marks(2)


def test_the_variables_of_a_flow_and_of_code_are_known_as_each_entry_left_them(shell):
    shell.pawl("init")
    count = shell.json("start", "countdown", "--input", '{"from":3,"every":"1h"}')["instance_id"]
    _, address = shell.serve("--test")
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/grows", GROWS)
    flow = web.create(definition="grows")
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})

    def all_of(instance):
        last = web.get("/v1/instances/" + instance).json["next_sequence_number"] - 1
        each = [web.expect(200, "GET", "/v1/instances/%s/variables?sequence_to=%d" % (instance, seq)).json["variables"] for seq in range(1, last + 1)]
        assert each[-1] == web.expect(200, "GET", "/v1/instances/%s/variables" % instance).json["variables"], each
        return each

    grown = all_of(flow)
    assert [one for i, one in enumerate(grown) if i == 0 or one != grown[i - 1]] == [{}, {"first": 1}, {"first": 1, "second": 2}], grown
    assert [one["remaining"] for one in all_of(count)] == [3, 2, 1], all_of(count)
    web.refused("not-known", "GET", "/v1/instances/%s/variables?sequence_to=99" % flow)
    web.refused("invalid-request", "GET", "/v1/instances/%s/variables?sequence_to=x" % flow)


if __name__ == "__main__":
    harness.main(globals())
