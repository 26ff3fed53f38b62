"""Why an instance waits, and what people have to do: causes in instance.why, gate.list, worker.list."""
import os
import re
import time

from run_flows import claim, complete, server, yaml
from web import harness

GATE = """steps:
  sign: {approval: {by: [ann, bob], count: 2}, timeout: 7d, done: true}
"""
RETRY = """steps:
  go: {tool: far, retry: {max: 3, backoff: [1h]}, done: true}
"""


def why(web, instance):
    return web.expect(200, "GET", "/v1/instances/%s/why" % instance).json


def waits(web, instance):
    found = why(web, instance)["waiting_for"]
    assert found == web.expect(200, "GET", "/v1/instances/%s/view" % instance).json["waiting_for"]
    return found


def test_a_step_whose_tool_no_worker_has_asked_for_says_so_and_which_tools_are_served(shell):
    _, web = server(shell)
    yaml(web, "typo", "steps: {go: {tool: charge_crd, done: true}}")
    flow = web.create(definition="typo")
    [item] = waits(web, flow)
    begun = item["workers"]["since"]
    assert item["workers"] == {"since": begun, "asked_at": None, "asked_by": None, "tools": []}, item
    web.post("/v1/steps/claim", {"tools": ["charge_card", "mail"], "worker": "w1"})
    web.post("/v1/steps/claim", {"tools": ["mail"], "worker": "w2"})
    [item] = waits(web, flow)
    assert item["workers"] == {"since": begun, "asked_at": None, "asked_by": None, "tools": ["charge_card", "mail"]}, item
    for words in (shell.pawl("why", flow).out, shell.pawl("show", flow).out):
        assert "no worker has asked for the tool charge_crd since 20" in " ".join(words.split()), words
        assert "workers here serve charge_card and mail" in " ".join(words.split()), words
    web.expect(200, "POST", "/v1/instances/%s/pause" % flow)
    web.post("/v1/steps/claim", {"tools": ["charge_crd"], "worker": "w3"})
    item = waits(web, flow)[1]
    assert item["workers"]["asked_by"] == "w3" and item["workers"]["asked_at"] >= begun, item


def test_a_token_that_is_limited_to_a_definition_sees_no_other_workers_and_tools(shell):
    _, web = server(shell)
    yaml(web, "typo", "steps: {go: {tool: charge_crd, done: true}}")
    yaml(web, "other", "steps: {go: {tool: launder, done: true}}")
    flow = web.create(definition="typo")
    web.post("/v1/steps/claim", {"tools": ["launder"], "worker": "crook"})
    web.create(definition="other")
    make = lambda scopes: {"Authorization": "Bearer " + web.expect(201, "POST", "/v1/tokens", {"scopes": scopes}).json["token"]}  # noqa: E731
    mine, every = make("read:typo"), make("read")
    assert web.refused("forbidden", "GET", "/v1/workers", None, mine)
    for path in ("/why", "/view"):
        whole, part = (web.expect(200, "GET", "/v1/instances/%s%s" % (flow, path), None, token).json["waiting_for"][0]["workers"] for token in (every, mine))
        assert whole["tools"] == ["launder"] and part == {"since": whole["since"], "asked_at": None}, (whole, part)
    env = {"PAWL_STORE": "http://" + web.host, "PAWL_TOKEN": mine["Authorization"].split()[1]}
    words = " ".join(shell.pawl("why", flow, env=env).out.split())
    assert "no worker has asked for the tool charge_crd since 20" in words and "serve" not in words and "any tool" not in words, words
    web.expect(200, "POST", "/v1/instances/%s/pause" % flow)
    web.post("/v1/steps/claim", {"tools": ["charge_crd"], "worker": "crook"})
    for path in ("/why", "/view"):
        text = web.expect(200, "GET", "/v1/instances/%s%s" % (flow, path), None, mine).body.decode()
        assert "crook" not in text and "launder" not in text and '"asked_at":"20' in text, text


def test_a_step_that_a_worker_holds_names_it_and_its_lease(shell):
    _, web = server(shell)
    yaml(web, "far", "steps: {go: {tool: far, done: true}}")
    flow = web.create(definition="far")
    [step] = claim(web, "far", worker="w1", lease="60s")
    [item] = waits(web, flow)
    held = item["held"]
    assert held["worker"] == "w1" and held["since"] < held["lease_until"], held
    assert abs(harness_ms(held["lease_until"]) - harness_ms(step["lease_expires_at"])) < 2000, (held, step)
    later = web.expect(200, "POST", "/v1/steps/%s/heartbeat" % step["step_id"], {"lease": step["lease"], "extend": "600s"}).json["lease_expires_at"]
    assert abs(harness_ms(waits(web, flow)[0]["held"]["lease_until"]) - harness_ms(later)) < 2000
    assert "held by the worker w1 since" in shell.pawl("why", flow).out


def test_a_worker_that_holds_a_step_is_known_however_many_others_ask(shell):
    _, web = server(shell)
    yaml(web, "far", "steps: {go: {tool: far, done: true}}")
    web.create(definition="far")
    [_] = claim(web, "far", worker="busy")
    begun = web.expect(200, "GET", "/v1/workers").json["since"]
    for i in range(300):
        web.post("/v1/steps/claim", {"tools": ["t%d" % i], "worker": "w%d" % i})
    known = web.expect(200, "GET", "/v1/workers").json
    assert [w["steps_held"] for w in known["workers"] if w["worker"] == "busy"] == [1], len(known["workers"])
    assert len(known["workers"]) == 256 and known["since"] > begun, known["since"]


def harness_ms(text):
    return int(time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))) * 1000 + int(text[20:23])


def test_a_step_that_failed_names_its_error_its_attempts_and_its_next_try(shell):
    _, web = server(shell, "--test")
    yaml(web, "retry", RETRY)
    flow = web.create(definition="retry")
    [step] = claim(web, "far")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": {"why": "rain"}})
    [item] = waits(web, flow)
    assert (item["kind"], item["failed"]["attempt"], item["failed"]["of"], item["failed"]["error"]) == ("timer", 1, 3, {"why": "rain"}), item
    shown = shell.pawl("show", flow).out
    assert re.search(r'(?m)^  ○ go  far  attempt 1 of 3 failed, next try in (59 min|1 h)  \{"why": "rain"\}$', shown) and "so far" not in shown, shown
    words = " ".join(shell.pawl("why", flow).out.split())
    assert "attempt 1 of 3 failed at" in words and 'with {"why": "rain"}; next attempt at' in words, words
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    [item] = waits(web, flow)
    assert item["status"] == "ready" and item["failed"]["attempt"] == 1, item


LONG = """steps:
  start: {name: split, tool: set, args: {n: 1}, parallel: [held, failed, gate, turn]}
  held: {tool: far, idempotent: true, done: true}
  failed: {tool: near, retry: {max: 3, backoff: [1000d]}, done: true}
  gate: {approval: {by: [ann, bob], count: 2}, done: true}
  turn: {tool: set, args: {n: 1}, next: rest}
  rest: {tool: sleep, args: {for: 1s}, next: turn}
"""


def test_causes_are_said_however_many_entries_came_since(shell):
    _, web = server(shell, "--test")
    yaml(web, "long", LONG)
    flow = web.create(definition="long")
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    [held] = claim(web, "far", worker="w1", lease="1000000s")
    [step] = claim(web, "near", worker="w2")
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": {"why": "rain"}})
    gate = [w["step_id"] for w in why(web, flow)["waiting_for"] if w["kind"] == "approval"][0]
    web.expect(200, "POST", "/v1/steps/%s/approve" % gate, {"actor_ref": "bob"})
    told = lambda: {w["name"]: {k: w.get(k) for k in ("held", "failed", "since", "approved_by")} for w in waits(web, flow) if w["name"] != "rest"}  # noqa: E731
    before = told()
    assert before["held"]["held"]["worker"] == "w1" and before["failed"]["failed"]["error"] == {"why": "rain"}, before
    assert before["gate"]["approved_by"] == ["bob"] and before["gate"]["since"], before
    web.expect(200, "POST", "/v1/test/advance", {"by": "%ds" % (20000 if os.environ.get("PAWL_TEST_LONG") else 1500)})
    shell.wait_for(lambda: web.get("/v1/instances/" + flow).json["next_sequence_number"] > 4 * 1024 + 256)
    later = told()
    assert later["held"]["held"].pop("lease_until") and before["held"]["held"].pop("lease_until")
    assert later == before, (later, before)


def test_a_signal_that_was_refused_is_remembered(shell):
    _, web = server(shell, "--test")
    yaml(web, "s", "steps: {rest: {tool: sleep, args: {for: 1h}, next: go}, go: {wait: {signal: paid}, done: true}}")
    flow = web.create(definition="s")
    web.refused("not-awaiting", "POST", "/v1/instances/%s/signals" % flow, {"name": "paid"})
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    [item] = waits(web, flow)
    assert item["kind"] == "signal" and "paid" in item["refused"] and item["refused_at"], item
    assert "the last one was refused at" in shell.pawl("why", flow).out


def test_a_refused_signal_explains_nothing_once_one_was_accepted(shell):
    _, web = server(shell)
    yaml(web, "twice", "steps:\n  a: {tool: far, next: b}\n  b: {wait: {signal: paid}, next: c}\n"
                       "  c: {wait: {signal: paid}, done: true}\n")
    flow = web.create(definition="twice")
    web.refused("not-awaiting", "POST", "/v1/instances/%s/signals" % flow, {"name": "paid"})
    complete(web, claim(web, "far")[0], 1)
    assert "refused" in waits(web, flow)[0]
    web.expect(202, "POST", "/v1/instances/%s/signals" % flow, {"name": "paid"})
    assert "refused" not in waits(web, flow)[0]


def test_a_pause_says_who_and_why_and_how_to_go_on(shell):
    _, web = server(shell)
    yaml(web, "far", "steps: {go: {tool: far, done: true}}")
    flow = web.create(definition="far")
    web.expect(200, "POST", "/v1/instances/%s/pause" % flow, {"actor_ref": "op", "reason": "audit"})
    words = " ".join(shell.pawl("why", flow).out.split())
    assert "paused by op at" in words and "because: audit; go on: pawl resume %s" % flow in words, words


def test_an_end_says_its_error_and_the_command_that_runs_it_again(shell):
    _, web = server(shell)
    yaml(web, "far", "steps: {go: {tool: far, retry: {max: 1}, done: true}}")
    flow, done = web.create(definition="far"), web.create(definition="far")
    for step in claim(web, "far", max=2):
        if step["instance_id"] == flow:
            web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "rain"})
        else:
            complete(web, step, 1)
    ended = why(web, flow)["ended"]
    assert ended["status"] == "failed" and "rain" in str(ended["error"]) and ended["can_redrive"], ended
    for verb in ("why", "show"):
        assert "pawl redrive %s" % flow in shell.pawl(verb, flow).out
    again = web.expect(201, "POST", "/v1/instances/%s/redrive" % flow).json["instance_id"]
    assert why(web, flow)["retried_as"] == again and not why(web, flow)["ended"]["can_redrive"]
    assert "redrive" not in shell.pawl("show", flow).out
    assert (why(web, done)["ended"]["status"], why(web, done)["ended"]["can_redrive"]) == ("completed", False)
    assert "ended" not in why(web, again)


def test_gates_are_an_inbox_with_filters_and_pages(shell):
    _, web = server(shell)
    yaml(web, "refund", GATE)
    yaml(web, "open", "steps: {ok: {approval: {}, done: true}}")
    yaml(web, "rest", "steps: {a: {tool: sleep, args: {for: 1h}, done: true}}")
    web.create(definition="rest")
    flows = [web.create(definition="refund", subject_ref="A-%d" % i) for i in range(3)]
    anyone = web.create(definition="open")
    got = web.expect(200, "GET", "/v1/gates").json
    assert [g["instance_id"] for g in got["gates"]] == flows + [anyone] and got["next"] is None, got
    first = got["gates"][0]
    assert (first["definition"], first["step"], first["subject_ref"], first["approval"], first["approved_by"]) == ("refund", "sign", "A-0", {"by": ["ann", "bob"], "count": 2}, []), first
    assert first["since"] < first["until"] and got["gates"][3]["until"] is None
    web.expect(200, "POST", "/v1/steps/%s/approve" % first["step_id"], {"actor_ref": "bob"})
    [item] = waits(web, flows[0])
    assert item["approved_by"] == ["bob"] == web.get("/v1/gates").json["gates"][0]["approved_by"], item
    words = " ".join(shell.pawl("why", flows[0]).out.split())
    assert "waits for ann or bob; 1 of 2 approved: bob; until" in words, words
    ask = lambda query: [g["instance_id"] for g in web.expect(200, "GET", "/v1/gates?" + query).json["gates"]]  # noqa: E731
    assert ask("approver=ann") == flows + [anyone] and ask("approver=eve") == [anyone]
    assert ask("definition=refund@1") == flows and ask("definition=refund@2") == [] == ask("definition=none")
    web.expect(200, "POST", "/v1/steps/%s/approve" % first["step_id"], {"actor_ref": "ann"})
    seen, after = [], ""
    while after is not None:
        page = web.expect(200, "GET", "/v1/gates?limit=1" + ("&after=" + after if after else "")).json
        assert len(page["gates"]) <= 1
        seen, after = seen + [g["instance_id"] for g in page["gates"]], page["next"]
    assert seen == flows[1:] + [anyone], seen
    for query in ("limit=0", "after=x", "nonsense=1", "definition=@"):
        web.refused("invalid-query", "GET", "/v1/gates?" + query)
    out = shell.pawl("gates", "--approver", "ann").out
    assert "0 of 2: ann, bob" in out and "A-1" in out and "pawl approve" in out, out
    assert re.search(r"APPROVALS +SINCE +UNTIL +SUBJECT\n", out) and re.search(r"ann, bob +\S+ m?s ago +in 6 d 23 h +A-1\n", out), out


def test_workers_are_listed_with_their_tools_and_what_they_hold(shell):
    _, web = server(shell)
    yaml(web, "far", "steps: {go: {tool: far, done: true}}")
    assert web.get("/v1/workers").json["workers"] == []
    assert "no worker has asked this server for steps since" in shell.pawl("workers").out
    web.create(definition="far")
    [step] = claim(web, "far", worker="w1")
    web.post("/v1/steps/claim", {"tools": ["mail", "far"], "worker": "w2"})
    one, two = web.expect(200, "GET", "/v1/workers").json["workers"]
    assert (one["worker"], one["steps_held"], [t["tool"] for t in one["tools"]]) == ("w1", 1, ["far"]), one
    assert (two["worker"], two["steps_held"], [t["tool"] for t in two["tools"]], two["waiting"]) == ("w2", 0, ["mail", "far"], False), two
    assert "w1" in shell.pawl("workers").out
    complete(web, step, 1)


def test_no_more_workers_are_remembered_than_the_bound(shell):
    _, web = server(shell)
    for i in range(300):
        web.post("/v1/steps/claim", {"tools": ["t%d" % i], "worker": "w%d" % i})
    got = web.expect(200, "GET", "/v1/workers").json
    assert len(got["workers"]) == 256 and "w299" in [w["worker"] for w in got["workers"]], len(got["workers"])


harness.main(globals())
