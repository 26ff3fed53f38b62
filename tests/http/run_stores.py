"""Named stores over HTTP, from the command line and through a death (D1): they share nothing but
their server."""
import json
import os
import re
import signal
import sqlite3

import table
from raw import Raw
from sse import Stream
from web import Web, harness

ORDER = (harness.EXAMPLES / "order.yaml").read_text()
ROWS = [(op.name, op.method, op.path) for op in table.ROUTED]
SOON = """name: soon
states: [waiting, done]
initial_state: waiting
terminal_states: [done]
terminal_kinds: {done: success}
transitions: [{from_state: waiting, action: end, to_state: done}]
deadlines: [{state: waiting, after: 1500ms, action: end}]
"""
BAD_NAMES = ("..", ".", ".hidden", "-x", "_x", "a%2Fb", "a%5Cb", "..%2F..%2Fetc", "%2Fetc%2Fpasswd", "a%00b", "a%0Ab", "a%20b",
             "%C3%A4", "a:b", "a%40b", "*", "~", "x" * 129, "%2e%2e", "a%2500")


class Store(Web):
    """The same routes, of one store."""

    def __init__(self, web, name):
        super().__init__("http://" + web.host)
        self.name = name

    def ask(self, method, path, body=None, headers=None):
        assert path.startswith("/v1/")
        return super().ask(method, "/v1/stores/" + self.name + path[3:], body, headers)


def serve(shell, *words):
    child, address = shell.serve(*words)
    return child, Web(address)


def make(web, *names):
    for name in names:
        assert web.expect(201, "PUT", "/v1/stores/" + name).json == {"store": name}
    return [Store(web, name) for name in names]


def define(web, name, text):
    web.expect(201, "PUT", "/v1/definitions/" + name, text, {"Content-Type": "application/yaml"})


def paid_order(web):
    define(web, "order", ORDER)
    order = web.create(definition="order")
    web.expect(200, "POST", "/v1/instances/%s/fire" % order, {"action": "pay"})
    return order


def test_a_store_is_made_once_listed_and_used(shell):
    _, web = serve(shell)
    assert web.get("/v1/stores").json == {"stores": ["default"]}
    make(web, "b", "a.1_x-Y", "a" * 128)
    for name in ("b", "default"):
        assert web.expect(200, "PUT", "/v1/stores/" + name).json == {"store": name}
    assert web.get("/v1/stores").json == {"stores": ["default", "a.1_x-Y", "a" * 128, "b"]}
    store = Store(web, "a.1_x-Y")
    assert store.get("/v1/instances/%s/current" % paid_order(store)).json["current_state"] == "paid"
    web.refused("not-allowed", "GET", "/v1/stores/b")
    web.refused("invalid-request", "PUT", "/v1/stores/c", {"x": 1})
    keyed = [web.ask("PUT", "/v1/stores/keyed", None, {"Idempotency-Key": "k"}).status for _ in range(2)]
    assert keyed == [201, 201], keyed


def test_hostile_names_make_no_store_and_find_none(shell):
    _, web = serve(shell)
    before = sorted(os.listdir(shell.folder))
    for name in BAD_NAMES:
        web.refused("invalid-request", "PUT", "/v1/stores/" + name)
        reason = web.ask("GET", "/v1/stores/%s/instances" % name).reason
        assert reason == ("invalid-request" if "%00" in name else "not-known"), (name, reason)
    web.refused("not-known", "PUT", "/v1/stores/a/b")
    for path in ("/v1/stores/../instances", "/v1/stores//instances", "/v1/stores/default/../b/instances", "/v1/stores/b/",
                 "/v1/stores/default/stores/default/instances"):
        web.refused("not-known", "GET", path)
    assert sorted(os.listdir(shell.folder)) == before
    assert web.get("/v1/stores").json == {"stores": ["default"]}


def test_stores_share_nothing(shell):
    """D1: ids, definitions, keys, alarms, tokens, lists and histories of one are not those of another."""
    _, web = serve(shell)
    a, b = make(web, "a", "b")
    order = paid_order(a)
    key = {"Idempotency-Key": "same"}
    made = a.expect(201, "POST", "/v1/instances", {"definition": "order"}, key).json["instance_id"]
    for other in (web, b):
        other.refused("not-known", "GET", "/v1/instances/" + order)
        other.refused("not-known", "POST", "/v1/instances/%s/fire" % order, {"action": "pay"})
        other.refused("not-known", "GET", "/v1/definitions/order")
        assert other.get("/v1/instances").json["instances"] == []
    define(b, "order", ORDER)
    assert b.expect(201, "POST", "/v1/instances", {"definition": "order"}, key).json["instance_id"] != made
    assert a.expect(201, "POST", "/v1/instances", {"definition": "order"}, key).json["instance_id"] == made
    a.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.fire",
                                         "input": {"instance_id": order, "action": "ship"}})
    assert [len(s.get("/v1/alarms").json["alarms"]) for s in (a, b, web)] == [1, 0, 0]
    a.expect(201, "POST", "/v1/tokens", {"scopes": "read"})
    assert [len(s.get("/v1/tokens").json["tokens"]) for s in (a, b, web)] == [1, 0, 0]
    for store in (a, b, web):
        assert store.expect(200, "POST", "/v1/verify").json["valid"]


def test_every_route_is_there_in_every_store_and_in_no_store_that_is_not(shell):
    _, web = serve(shell, "--test")
    store, = make(web, "a")
    assert len(ROWS) > 40, ROWS
    for name, method, path in ROWS:
        target = re.sub(r"\{[a-z_]+\}", "x", path)
        if path.endswith("/events") or not path.startswith("/v1/"):
            continue
        here, there = web.ask(method, target, {}), store.ask(method, target, {})
        assert here.status == there.status or name == "store.put", (name, here, there)
        assert here.status == 200 or here.json.get("reason") == there.json.get("reason"), (name, here, there)
        if not path.startswith("/v1/stores"):
            web.refused("not-known", method, "/v1/stores/none" + target[3:], {})
        wrong = store.refused("not-allowed", "PATCH", target, {})
        assert wrong.headers["allow"] == web.refused("not-allowed", "PATCH", target, {}).headers["allow"], name
    assert store.get("/v1/stores").json == web.get("/v1/stores").json
    for path in ("/metrics", "/healthz"):
        assert web.get("/v1/stores/a" + path).status == 200
        web.refused("not-known", "GET", "/v1/stores/none" + path)


def test_streams_batches_and_figures_are_of_one_store(shell):
    _, web = serve(shell)
    a, b = make(web, "a", "b")
    streams = [Stream(web, "/v1/stores/%s/events" % s.name) for s in (a, b)]
    for stream in streams:
        stream.open()
    line = {"operation": "instance.fire", "input": {"action": "pay"}}
    orders = {}
    for store in (a, b):
        define(store, "order", ORDER)
        orders[store.name] = store.create(definition="order")
    line["input"]["instance_id"] = orders["a"]
    outside = json.dumps({"operation": "store.put", "input": {"store": "c"}})
    answers = a.ask("POST", "/v1/batch", json.dumps(line) + "\n" + outside).body.decode().splitlines()
    assert [json.loads(one)["status"] for one in answers] == [200, 404], answers
    assert streams[0].event().entry["instance_id"] == orders["a"]
    b.expect(200, "POST", "/v1/instances/%s/fire" % orders["b"], {"action": "drop"})
    assert streams[1].event().entry["instance_id"] == orders["b"], "an entry of another store came first"
    figures = {path: web.get(path).body.decode() for path in ("/metrics", "/v1/stores/a/metrics")}
    assert all("pawl_stores_open 2\n" in text and "pawl_http_streams 2\n" in text for text in figures.values()), figures
    position = [re.search(r"^pawl_records_total (\d+)", text, re.M).group(1) for text in figures.values()]
    assert position[0] != position[1], figures


def test_each_store_has_a_test_clock_and_workers_of_its_own(shell):
    _, web = serve(shell, "--test")
    a, b = make(web, "a", "b")
    flow = "name: ask\nsteps: {start: {name: one, tool: elsewhere, done: true}}\n"
    for store in (a, b):
        define(store, "soon", SOON)
        define(store, "ask", flow)
        store.waiting, store.asked = store.create(definition="soon"), store.create(definition="ask")
    a.expect(200, "POST", "/v1/test/advance", {"by": "2s"})
    states = [s.get("/v1/instances/%s/current" % s.waiting).json["current_state"] for s in (a, b)]
    assert states == ["done", "waiting"], states
    claim = {"tools": ["elsewhere"], "worker": "w", "max": 10}
    steps = b.expect(200, "POST", "/v1/steps/claim", claim).json["steps"]
    assert [s["instance_id"] for s in steps] == [b.asked], steps
    done = {"lease": steps[0]["lease"], "result": 1}
    a.refused("not-known", "POST", "/v1/steps/%s/complete" % steps[0]["step_id"], done)
    b.expect(200, "POST", "/v1/steps/%s/complete" % steps[0]["step_id"], done)
    assert b.get("/v1/instances/" + b.asked).json["status"] == "completed"


def test_stores_survive_a_kill_and_their_timers_fire_though_nobody_asks(shell):
    child, web = serve(shell)
    a, b = make(web, "a", "b")
    order = paid_order(a)
    define(b, "soon", SOON)
    soon = b.create(definition="soon")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    child, web = serve(shell)
    assert web.get("/v1/stores").json == {"stores": ["default", "a", "b"]}
    file = sqlite3.connect("file:%s?mode=ro" % (shell.folder / "pawl.db-stores" / "b.db"), uri=True)
    shell.wait_for(lambda: file.execute("SELECT count(*) FROM pawl_history").fetchone() == (1,))
    file.close()
    a, b = Store(web, "a"), Store(web, "b")
    assert b.get("/v1/instances/%s/current" % soon).json["current_state"] == "done"
    assert a.get("/v1/instances/%s/current" % order).json["current_state"] == "paid"
    for store in (a, b):
        assert store.expect(200, "POST", "/v1/verify").json["valid"]
    shell.stop(child)
    for name in "ab":
        shell.pawl("--store", "sqlite:pawl.db-stores/%s.db" % name, "verify")


def test_many_clients_make_and_use_the_same_store_at_once(shell):
    _, web = serve(shell)
    connections = [Raw(web) for _ in range(24)]
    for i, one in enumerate(connections):
        one.ask("PUT", "/v1/stores/s%d" % (i % 3), b"")
    statuses = sorted(one.reply()[0] for one in connections)
    assert statuses == [200] * 21 + [201] * 3, statuses
    for i, one in enumerate(connections):
        one.ask("POST", "/v1/stores/s%d/instances" % (i % 3), {"declaration": {
            "states": ["a"], "initial_state": "a", "terminal_states": [], "transitions": []}})
    assert [one.reply()[0] for one in connections] == [201] * 24
    for i in range(3):
        assert len(Store(web, "s%d" % i).get("/v1/instances").json["instances"]) == 8


def test_a_store_in_memory_has_others_in_memory(shell):
    _, web = serve(shell, "--store", "memory:")
    b, a = make(web, "b", "a")
    order = paid_order(a)
    assert web.get("/v1/stores").json == {"stores": ["default", "a", "b"]}
    assert a.get("/v1/instances/%s/current" % order).json["current_state"] == "paid"
    b.refused("not-known", "GET", "/v1/instances/" + order)
    assert sorted(os.listdir(shell.folder)) == []


def test_the_command_line_reaches_a_store_by_its_address_and_by_its_file(shell):
    assert shell.pawl("stores", expect=1).err.startswith("pawl: not-known:")
    assert shell.json("stores", "create", "a") == {"store": "a"}
    assert shell.pawl("stores").out == "default\na\n"
    file = ("--store", "sqlite:pawl.db-stores/a.db")
    shell.pawl(*file, "define", str(harness.EXAMPLES / "order.yaml"))
    order = shell.json(*file, "start", "order")["instance_id"]
    _, web = serve(shell)
    server = ("--store", "http://%s/v1/stores/a" % web.host)
    for words in (file, server):  # the file now leads to its server
        assert [i["instance_id"] for i in shell.json(*words, "list")["instances"]] == [order]
        assert shell.json(*words, "stores") == {"stores": ["default", "a"]}
        assert "valid" in shell.pawl(*words, "verify").out
    shell.pawl(*file, "fire", order, "pay")
    shell.pawl(*server, "fire", order, "ship")
    assert [e["action"] for e in shell.json(*server, "history", order)["entries"]] == ["pay", "ship"]
    assert shell.json("list")["instances"] == []
    assert shell.pawl("stores", "create", "../x", expect=1).err.startswith("pawl: invalid-request:")
    for wrong in ("/v1", "/v1/stores/", "/v1/stores/a/b", "/v1/stores/..", "/x"):
        assert shell.pawl("--store", "http://%s%s" % (web.host, wrong), "list", expect=1).err.startswith("pawl: invalid-request:") or wrong == "/v1/stores/", wrong
    shell.pawl("--store", "http://%s/v1/stores/none" % web.host, "list", expect=1)


def test_a_token_counts_in_its_own_store_and_that_of_an_administrator_in_all(shell):
    tokens = {scope: shell.json("token", "create", "--scope", scope)["token"] for scope in ("all", "read", "admin", "all:order")}
    child = shell.begin("serve", "--listen", "0.0.0.0:0")
    port = re.match(r"pawl is ready on http://0\.0\.0\.0:(\d+)", child.stdout.readline().decode()).group(1)
    web = Web("http://127.0.0.1:" + port)

    def ask(token, method, path, body=None):
        reply = web.ask(method, path, body, {"Authorization": "Bearer " + token} if token else {})
        return reply.json.get("reason", reply.status)

    assert ask(tokens["read"], "PUT", "/v1/stores/a") == "forbidden"
    assert ask(tokens["admin"], "PUT", "/v1/stores/a") == 201
    assert ask(tokens["read"], "GET", "/v1/stores") == 200
    for token, here, there in ((None, "unauthenticated", "unauthenticated"), (tokens["read"], 200, "unauthenticated"),
                               (tokens["all:order"], "forbidden", "unauthenticated"), (tokens["all"], 200, 200), (tokens["admin"], "forbidden", "forbidden")):
        assert (ask(token, "GET", "/v1/instances"), ask(token, "GET", "/v1/stores/a/instances")) == (here, there), token
    for store in ("a", "none"):  # who may not ask does not learn which there are
        assert ask(None, "GET", "/v1/stores/%s/instances" % store) == "unauthenticated"
    assert ask(tokens["all"], "GET", "/v1/stores/none/instances") == "not-known"
    own = web.expect(201, "POST", "/v1/stores/a/tokens", {"scopes": "all"}, {"Authorization": "Bearer " + tokens["admin"]}).json["token"]
    assert ask(own, "GET", "/v1/stores/a/instances") == 200
    assert ask(own, "GET", "/v1/stores/none/instances") == "unauthenticated"
    for method, path in (("GET", "/v1/instances"), ("PUT", "/v1/stores/b"), ("GET", "/v1/stores"), ("GET", "/v1/stores/a/stores"),
                         ("PUT", "/v1/stores/a/stores/b")):
        assert ask(own, method, path) == "unauthenticated", path
    batch = json.dumps({"operation": "store.put", "input": {"store": "b"}})
    reply = web.ask("POST", "/v1/stores/a/batch", batch, {"Authorization": "Bearer " + own})
    assert json.loads(reply.body)["status"] == 404, reply
    assert web.ask("GET", "/v1/stores", None, {"Authorization": "Bearer " + tokens["all"]}).json == {"stores": ["default", "a"]}


harness.main(globals())
