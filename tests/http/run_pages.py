"""Reading what is long: whole histories, steps and exports in pieces, or by pages (DESIGN.md section 5,
instance.history, instance.steps, step.list). Values of 0.9 MB make an instance long with few entries."""
import http.client
import json

from web import Reply, Web, harness

LAMP = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"], "terminal_kinds": {"off": "cancel"},
        "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"},
                        {"from_state": "on", "action": "cancel", "to_state": "off"}]}
BIG = "x" * 900000
MANY = 76  # of BIG: more than the 64 MiB that one unit of work may hold


def fire_many(web, id, members):
    lines = [json.dumps({"operation": "instance.fire", "input": {"instance_id": id, "action": "turn", **m}}) for m in members]
    for at in range(0, len(lines), 16):
        reply = web.expect(200, "POST", "/v1/batch", "\n".join(lines[at:at + 16]), {"Content-Type": "application/x-ndjson"})
        assert all('"status":200' in line for line in reply.body.decode().splitlines()), reply


def read(web, path):
    """Without a look at the schema, which takes its time for so much."""
    connection = http.client.HTTPConnection(web.host, timeout=60)
    connection.request("GET", path)
    reply = Reply(connection.getresponse())
    connection.close()
    assert reply.status == 200, reply
    return reply.headers, reply.json


def pages(web, path, member, **query):
    """Every item of every page, and how many pages there were."""
    items, count, after = [], 0, None
    while count == 0 or after is not None:
        words = "&".join("%s=%s" % pair for pair in {**query, **({"after": after} if after else {})}.items())
        page = web.expect(200, "GET", path + "?" + words).json
        assert set(page) == {member, "next"}, set(page)
        items += page[member]
        after, count = page["next"], count + 1
    return items, count


def test_a_history_larger_than_memory_is_streamed_paged_and_exported(shell):
    _, address = shell.serve()
    web = Web(address)
    id = web.create(declaration=LAMP)
    fire_many(web, id, [{"payload": BIG, "actor_ref": "ann" if i % 10 else "bob"} for i in range(MANY)])
    path = "/v1/instances/%s/history" % id
    headers, whole = read(web, path)
    assert "content-length" not in headers, "it comes in pieces"
    assert set(whole) == {"entries"}
    assert [e["sequence_number"] for e in whole["entries"]] == list(range(1, MANY + 1))
    assert all(e["payload"] == BIG for e in whole["entries"])
    _, page = read(web, path + "?limit=1000&after=60")
    assert page["entries"] == whole["entries"][60:70] and page["next"] == "70", "a page ends when it holds 8 MiB: %s" % page["next"]
    bobs = web.expect(200, "GET", path + "?actor_ref=bob&limit=3").json
    assert [e["sequence_number"] for e in bobs["entries"]] == [1, 11, 21] and bobs["next"] == "21", bobs["next"]
    shell.pawl("--store", address, "export", id, "--output", "one.ndjson")
    lines = (shell.folder / "one.ndjson").read_bytes().splitlines()
    assert sum(line.startswith(b'{"record":') for line in lines) == MANY + 1
    assert not (shell.folder / "one.ndjson.partial").exists()
    shell.pawl("--store", "sqlite:copy.db", "import", "one.ndjson")
    printed = shell.pawl("--store", "sqlite:copy.db", "history", id, "--json").json
    assert [e["hash"] for e in printed["entries"]] == [e["hash"] for e in whole["entries"]]


def test_pages_of_a_history_are_the_history_and_its_own_axes_are_filters(shell):
    _, address = shell.serve()
    web = Web(address)
    id = web.create(declaration=LAMP, instantiated_at="2026-01-01T00:00:00Z")
    fire_many(web, id, [{"fired_at": "2026-02-%02dT00:00:00Z" % (1 + i % 28)} for i in range(1300)])
    path = "/v1/instances/%s/history" % id
    whole = web.get(path).json["entries"]
    assert [e["sequence_number"] for e in whole] == list(range(1, 1301))
    for limit in (1, 7, 512, 1000):
        if limit == 1:
            assert web.get(path + "?limit=1").json == {"entries": whole[:1], "next": "1"}
            continue
        items, count = pages(web, path, "entries", limit=limit)
        assert items == whole and count == -(-1300 // limit), (limit, count)
    assert web.get(path + "?limit=5&after=1295").json == {"entries": whole[1295:], "next": None}
    assert web.get(path + "?after=1298").json == {"entries": whole[1298:]}, "without a limit, the rest"

    def numbers(query):
        return [e["sequence_number"] for e in web.expect(200, "GET", path + "?" + query).json["entries"]]

    assert numbers("sequence_number=700") == [700]
    assert numbers("sequence_number=3..7") == [3, 4, 5, 6, 7]
    assert numbers("sequence_number=1299..") == [1299, 1300] and numbers("sequence_number=..2") == [1, 2]
    assert numbers("sequence_number=1..10&sequence_from=9") == [9, 10], "filters meet"
    assert numbers("fired_at=2026-02-03T00:00:00Z&limit=2") == [3, 31]
    assert numbers("fired_at=2026-02-03T00:00:00Z..2026-02-04T01:00:00%2B01:00&sequence_to=40") == [3, 4, 31, 32]
    assert numbers("fired_at=2026-02-28T00:00:00Z..&sequence_to=60") == [28, 56]
    assert numbers("fired_at=2026-02-03&limit=2") == [3, 31]
    assert numbers("fired_at=2026-02-03..2026-02-04&sequence_to=40") == [3, 4, 31, 32]
    for bad in ("fired_at=2026-02-30", "fired_at=2026-2-3", "sequence_number=x", "sequence_number=7..3", "sequence_number=..", "sequence_number=1...2", "fired_at=today",
                "fired_at=2026-02-03T00:00:00Z..2026-02-02T00:00:00Z", "limit=0", "limit=1001", "after=x&limit=1", "limit=1&limit=2"):
        web.refused("invalid-query", "GET", path + "?" + bad)
    detail = web.refused("invalid-query", "GET", path + "?sequence=3").json["detail"]
    assert "sequence_number" in detail and "fired_at" in detail and "limit" in detail, detail
    web.expect(200, "POST", "/v1/instances/%s/cancel" % id)
    assert numbers("action=cancel") == [1301]
    last = [e["sequence_number"] for e in shell.json("history", id, "--last", "5")["entries"]]
    assert last == [1297, 1298, 1299, 1300, 1301], last
    last = shell.json("history", id, "--last", "2", "--fired", "2026-02-03T00:00:00Z")["entries"]
    assert [e["sequence_number"] for e in last] == [1263, 1291], last
    rows = shell.pawl("history", id).out.splitlines()
    assert len(rows) == 1302 and sum("FIRED AT" in row for row in rows) == 1, len(rows)


LOOP = {"name": "loop", "steps": {"start": {"name": "start", "tool": "set", "args": {"text": "{{input.big}}", "n": 1}, "next": "again"}, **{
    "again": {"tool": "set", "args": {"text": "{{input.big}}"}, "next": "s0"}}, **{
    "s%d" % i: {"tool": "set", "args": {"text": "{{input.big}}"}, "next": "s%d" % (i + 1)} for i in range(36)},
    "s36": {"tool": "log", "args": {"message": "done"}, "done": True}}}


def test_steps_with_large_results_are_listed_and_drawn(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/loop", json.dumps(LOOP))
    id = web.create(definition="loop", input={"big": BIG})
    shell.wait_for(lambda: web.get("/v1/instances/%s/current" % id).json["current_state"] != "running")
    path = "/v1/instances/%s/steps" % id
    _, whole = read(web, path)
    assert set(whole) == {"steps"} and len(whole["steps"]) == 39
    assert all(step["result"]["text"] == BIG == step["args"]["text"] for step in whole["steps"][:-1])
    _, page = read(web, path + "?limit=10")
    assert page["steps"] == whole["steps"][:5] and page["next"], "a page ends when it holds 8 MiB: %d" % len(page["steps"])
    _, page = read(web, "/v1/steps?instance_id=%s&limit=10&after=%s" % (id, page["next"]))
    assert page["steps"] == whole["steps"][5:10]
    ended = web.get("/v1/steps?instance_id=%s&status=done&tool=log&limit=10" % id).json
    assert [step["name"] for step in ended["steps"]] == ["s36"] and ended["next"] is None, ended["next"]
    web.expect(200, "GET", "/v1/instances/%s/graph" % id)
    for bad in ("limit=0", "after=x", "status=done"):
        web.refused("invalid-query", "GET", path + "?" + bad)
    assert "s36" in shell.pawl("show", id).out
    assert "s36" in shell.pawl("graph", "--instance", id).out


def test_a_ready_step_behind_ten_thousand_that_wait_is_found_page_by_page(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/rest", {"steps": {"start": {"name": "rest", "wait": {"signal": "go"}, "done": True}}})
    web.expect(201, "PUT", "/v1/definitions/work", {"steps": {"start": {"name": "work", "tool": "far", "done": True}}})
    line = json.dumps({"operation": "instance.create", "input": {"definition": "rest"}})
    for _ in range(2):
        web.expect(200, "POST", "/v1/batch", "\n".join([line] * 5001), {"Content-Type": "application/x-ndjson"})
    made = web.create(definition="work")
    first = web.expect(200, "GET", "/v1/steps?status=ready").json
    assert first["steps"] == [] and first["next"], "a page looks at 10,000 instances: %s" % first
    found, count = pages(web, "/v1/steps", "steps", status="ready")
    assert [step["instance_id"] for step in found] == [made] and count == 2, (found, count)
    assert len(pages(web, "/v1/steps", "steps", status="pending", limit=1000)[0]) == 10_002


def test_a_failed_export_leaves_no_file(shell):
    shell.pawl("init")
    (shell.folder / "lamp.json").write_text(json.dumps({"name": "lamp", **LAMP}))
    shell.pawl("define", "lamp.json")
    shell.pawl("start", "lamp")
    (shell.folder / "old.ndjson").write_text("before")
    refused = shell.pawl("export", "ZZZZ", "--output", "old.ndjson", expect=1)
    assert "not-known" in refused.err
    assert (shell.folder / "old.ndjson").read_text() == "before", "what was there stays"
    assert [p.name for p in shell.folder.glob("*.partial")] == []
    shell.pawl("export", "--output", "old.ndjson")
    assert (shell.folder / "old.ndjson").read_text().startswith("{")


if __name__ == "__main__":
    harness.main(globals())
