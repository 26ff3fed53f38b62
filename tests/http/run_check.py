"""definition.check over HTTP: findings with their places, and a new version against what is under way."""
import json

from web import Web, harness

ORDER = """name: order
states: [new, paid, shipped, dropped]
initial_state: new
terminal_states: [shipped, dropped]
terminal_kinds: {shipped: success, dropped: cancel}
transitions:
  - {from_state: new, action: pay, to_state: paid}
  - {from_state: paid, action: ship, to_state: shipped}
  - {from_state: '*', action: drop, to_state: dropped}
"""
YAML = {"Content-Type": "application/yaml"}


def check(web, text, query="", headers=None):
    return web.expect(200, "POST", "/v1/definitions/check" + query, text, headers).json


def orders(shell):
    web = Web(shell.serve()[1])
    web.expect(201, "PUT", "/v1/definitions/order", ORDER, YAML)
    for action in (None, "pay"):
        created = web.expect(201, "POST", "/v1/instances", {"definition": "order"}).json
        if action:
            web.expect(200, "POST", "/v1/instances/%s/fire" % created["instance_id"], {"action": action})
    return web


def test_warnings_of_check_and_put_are_the_same_in_yaml_and_json(shell):
    web = Web(shell.serve()[1])
    odd = ORDER.replace("'*'", "new").replace("[shipped, dropped]", "[shipped, dropped, shipped]")
    found = check(web, odd, headers=YAML)
    assert found["errors"] == [] and [(w["line"], w["column"]) for w in found["warnings"]] == [(4, 37), (2, 15)], found
    assert "listed twice" in found["warnings"][0]["message"], found
    assert "cancel state from 'paid'" in found["warnings"][1]["message"], found
    put = web.expect(201, "PUT", "/v1/definitions/order", odd, YAML).json
    assert put["warnings"] == found["warnings"]
    assert check(web, odd)["errors"], "what is said to be JSON must be"
    text = {"states": ["a", "lost", "z"], "initial_state": "a", "terminal_states": ["z"], "terminal_kinds": {"z": "success"},
            "transitions": [{"from_state": "a", "action": "go", "to_state": "z"}]}
    assert [(w["line"], w["column"]) for w in check(web, json.dumps(text))["warnings"]] == [(1, 18)]


def test_a_put_with_errors_keeps_nothing(shell):
    web = Web(shell.serve()[1])
    typo = ORDER.replace("action: pay", "action: pay, gaurd: funds")
    [error] = check(web, typo, headers=YAML)["errors"]
    assert (error["line"], error["column"]) == (7, 36) and "did you mean 'guard'?" in error["message"], error
    web.refused("invalid-definition", "PUT", "/v1/definitions/order", typo, YAML)
    web.refused("invalid-definition", "PUT", "/v1/definitions/order", ORDER.replace("initial_state: new", "initial_state: nwe"), YAML)
    web.refused("not-known", "GET", "/v1/definitions/order")
    assert web.expect(201, "PUT", "/v1/definitions/order", ORDER, YAML).json["version"] == 1


RESEARCH = """name: research
input: {type: object, required: [topic], additionalProperties: false, properties: {topic: {type: string, minLength: 2}}}
steps: {start: {tool: set, args: {about: "{{input.topic}}"}, done: true}}
"""


def test_an_input_is_held_against_its_schema_by_every_way_to_start(shell):
    child, address = shell.serve()
    web = Web(address)
    [error] = check(web, RESEARCH.replace("input.topic", "input.topci"), headers=YAML)["errors"]
    assert "did you mean 'topic'?" in error["message"], error
    web.expect(201, "PUT", "/v1/definitions/research", RESEARCH, YAML)
    start = lambda **body: {"definition": "research", **body}
    for body, words in ((start(), "input.topic: expected a string, found nothing"),
                        (start(input={"topic": "x"}), "input.topic: expected at least 2 characters, found 1"),
                        (start(input={"topic": "xy", "a": 1}), "input.a: expected one of the properties topic, found another")):
        assert web.refused("invalid-request", "POST", "/v1/instances", body).json["detail"] == words
    web.refused("not-known", "POST", "/v1/instances", start(definition="nothing", input=7))
    lines = "".join(json.dumps({"operation": "instance.create", "input": body}) + "\n"
                    for body in (start(input={"topic": "pawls"}), start()))
    answers = [json.loads(line) for line in web.ask("POST", "/v1/batch", lines).body.splitlines()]
    assert [a["status"] for a in answers] == [201, 400], answers
    assert answers[1]["body"]["detail"] == "input.topic: expected a string, found nothing"
    starting = ORDER.replace("action: pay", "action: pay, starts: {definition: research, input: {topic: pawls}}")
    web.expect(201, "PUT", "/v1/definitions/order", starting, YAML)
    order = web.expect(201, "POST", "/v1/instances", {"definition": "order"}).json["instance_id"]
    web.expect(200, "POST", "/v1/instances/%s/fire" % order, {"action": "pay"})
    shell.wait_for(lambda: web.get("/v1/alarms").json["alarms"] == [])
    assert "alarm.refused: input.event: expected one of the properties topic, found another" in shell.stop(child)[1]
    shell.write("research.yaml", RESEARCH)
    found = shell.pawl("--store", "memory:", "run", "research.yaml", "--input", '{"topic": 7}', expect=1)
    assert "invalid-request: input.topic: expected a string, found a number" in found.err, found


def test_a_definition_that_is_named_and_not_stored_is_told_when_it_is_put(shell):
    web = Web(shell.serve()[1])
    parent = "name: parent\ndo:\n  - {name: ask, spawn: {definition: reserch, input: {topic: pawls}}}\n"
    assert check(web, parent, headers=YAML)["warnings"] == [], "a store without definitions cannot know"
    [warning] = web.expect(201, "PUT", "/v1/definitions/parent", parent, YAML).json["warnings"]
    assert warning == {"message": "step 'ask': 'spawn' names the definition 'reserch', which is not stored; "
                                  "define it before an instance comes here", "line": 3, "column": 37}, warning
    web.expect(201, "PUT", "/v1/definitions/research", RESEARCH, YAML)
    for found in (check(web, parent, headers=YAML), web.expect(200, "PUT", "/v1/definitions/parent", parent, YAML).json):
        assert "did you mean 'research'?" in found["warnings"][0]["message"], found
    right = parent.replace("reserch", "research")
    for name in ("research", "research@1", "parent", "{{input.which}}"):
        found = check(web, right.replace("definition: research", "definition: '%s'" % name), headers=YAML)
        assert not [w for w in found["warnings"] if "not stored" in w["message"]], found
    [warning] = check(web, right.replace("definition: research", "definition: research@7"), headers=YAML)["warnings"]
    assert "'research@7', which is not stored" in warning["message"], warning
    [warning] = check(web, ORDER.replace("action: pay", "action: pay, starts: {definition: absent}"), headers=YAML)["warnings"]
    assert warning["message"].startswith("action 'pay': 'starts' names the definition 'absent', which is not stored"), warning


def test_an_inline_declaration_has_errors_but_no_warnings(shell):
    """D6 to D13 hold for it; what is odd about it is kept (D12)."""
    web = Web(shell.serve()[1])
    odd = {"states": ["a", "A", "lost"], "initial_state": "a", "gaurd": 1, "transitions": []}
    created = web.expect(201, "POST", "/v1/instances", {"declaration": odd}).json
    assert "warnings" not in created, created
    web.refused("invalid-declaration", "POST", "/v1/instances", {"declaration": dict(odd, initial_state="b")})


def test_a_new_version_is_held_against_the_instances_under_way(shell):
    web = orders(shell)
    assert "against" not in check(web, ORDER, headers=YAML)
    same = check(web, ORDER, "?against=order", YAML)["against"]
    assert same == {"name": "order", "versions": [1], "steps": [], "safe": True, "states": [
        {"state": "new", "instances": 1, "verdict": "safe", "missing": []},
        {"state": "paid", "instances": 1, "verdict": "safe", "missing": []}]}, same
    other = check(web, ORDER.replace("action: ship", "action: send"), "?against=order%401", YAML)["against"]
    assert other["safe"] is False and other["states"][1]["verdict"] == "exits missing", other
    assert other["states"][1]["missing"] == ["ship"], other
    assert web.expect(200, "GET", "/v1/definitions/order").json["version"] == 1, "a check puts nothing"


def test_against_wants_a_definition_that_is_known_and_a_text_without_errors(shell):
    web = orders(shell)
    web.refused("not-known", "POST", "/v1/definitions/check?against=ordre", ORDER, YAML)
    web.refused("not-known", "POST", "/v1/definitions/check?against=order%402", ORDER, YAML)
    web.refused("invalid-request", "POST", "/v1/definitions/check?aganist=order", ORDER, YAML)
    found = check(web, "states: [a]\n", "?against=order", YAML)
    assert found["errors"] and found["against"] is None, found


harness.main(globals())
