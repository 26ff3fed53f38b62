"""The dashboard in a real Chromium (scenarios.mjs): every day five pages, an action, a live update and hostile strings;
with PAWL_TEST_LONG every page and action, races, many instances, narrow and dark screens, and the rules of WCAG AA.
Without Chromium or npm this suite fails, by name. Pictures are left in BUILD/screenshots: look at them."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "npm"), str(HERE.parent / "lib"), str(HERE.parent / "store")]
from modules import BUILD, npm_modules  # noqa: E402
from web import Web, harness  # noqa: E402
import postgres  # noqa: E402
import run_postgres  # noqa: E402

LONG = "PAWL_TEST_LONG" in os.environ
HOSTILE = "<img src=x onerror=\"window.hacked=1\">'\"></script><script>window.hacked=1</script>\u202e{{7*7}}"

PLAIN = HOSTILE.replace("{{7*7}}", "")  # where that would be a template


def browse(shell, scenario, address, *words):
    """Run one scenario; what it says is the failure."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert chromium, "there is no Chromium here: script/install-deps chromium, or set CHROMIUM"
    modules = npm_modules()
    profile = shell.folder / "tmp"  # Chromium leaves files in its temporary folder
    profile.mkdir(exist_ok=True)
    environment = shell.environment({"PAWL": os.path.abspath(harness.PAWL), "PAWL_SHOTS": str(BUILD / "screenshots"), "CHROMIUM": chromium,
                                     "TMPDIR": str(profile), "HOME": str(profile), "XDG_CONFIG_HOME": str(profile), "XDG_CACHE_HOME": str(profile)})
    done = subprocess.run(["node", str(HERE / "browser.mjs"), str(modules), scenario, address, *words], env=environment, capture_output=True,
                          timeout=1500 if LONG else 240)
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-6000:]
    return done.stdout.decode()


def test_five_pages_an_action_and_an_update_that_comes_by_itself(shell):
    _, address = shell.serve("--examples")
    browse(shell, "fivePages", address)


def hostile_store(web):
    """Instances whose every text is markup: {kind: id}."""
    machine = {"states": [HOSTILE, "other " + HOSTILE, "end " + HOSTILE], "initial_state": HOSTILE, "terminal_states": ["end " + HOSTILE],
               "terminal_kinds": {"end " + HOSTILE: "failure"},
               "transitions": [{"from_state": HOSTILE, "action": HOSTILE, "to_state": "other " + HOSTILE, "guard": HOSTILE, "requires_reason": True},
                               {"from_state": "other " + HOSTILE, "action": "go " + HOSTILE, "to_state": "end " + HOSTILE}]}
    flow = {"steps": {"start": {"name": "start", "tool": "remote", "args": {PLAIN: PLAIN}, "retry": {"max": 2, "backoff": ["1h"]}, "next": "ask"},
                      "ask": {"approval": {"by": [HOSTILE], "count": 1}, "done": True}}}
    waits = {"steps": {"start": {"name": "start", "wait": {"signal": HOSTILE}, "done": True}}}
    for name, text in (("hostile", machine), ("hostile-flow", flow), ("hostile-wait", waits)):
        web.expect(201, "PUT", "/v1/definitions/" + name, text)
    told = dict(subject_ref=HOSTILE, correlation_id=HOSTILE, labels={HOSTILE: HOSTILE, "k": HOSTILE}, input={HOSTILE: [HOSTILE]}, actor_ref=HOSTILE,
                instance_metadata={HOSTILE: HOSTILE})
    made = {"machine": web.create(definition="hostile", **told), "flow": web.create(definition="hostile-flow", **told), "wait": web.create(definition="hostile-wait", **told)}
    web.expect(200, "POST", "/v1/instances/%s/fire" % made["machine"], {"action": HOSTILE, "actor_ref": HOSTILE, "guard_satisfied": True, "reason": HOSTILE, "payload": {HOSTILE: HOSTILE}})
    step = web.post("/v1/steps/claim", {"tools": ["remote"], "worker": HOSTILE}).json["steps"][0]
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": {HOSTILE: HOSTILE}})
    web.expect(200, "POST", "/v1/instances/%s/pause" % made["wait"], {"actor_ref": HOSTILE, "reason": HOSTILE})
    web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.fire", "input": {"instance_id": made["machine"], "action": HOSTILE}})
    return made


def test_markup_in_every_field_is_shown_as_text(shell):
    _, address = shell.serve()
    browse(shell, "hostileStrings", address, json.dumps(hostile_store(Web(address))))


def work(web, tool, count=1, **claim):
    """Claim steps of a tool; [step]."""
    return web.expect(200, "POST", "/v1/steps/claim", {"tools": [tool], "worker": "w1", "max": count, **claim}).json["steps"]


def answer(web, step, how, **said):
    web.expect(200, "POST", "/v1/steps/%s/%s" % (step["step_id"], how), {"lease": step["lease"], **said})


def rich_store(web):
    """Instances that wait for all there is to wait for: {name: id}."""
    for name in ("order-items", "trip-saga"):
        web.expect(201, "PUT", "/v1/definitions/" + name, (harness.EXAMPLES / (name + ".yaml")).read_text(), {"Content-Type": "application/yaml"})
    schema = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number", "title": "Amount"}, "why": {"type": "string"}}}
    web.expect(201, "PUT", "/v1/definitions/spend", {
        "queries": {"who": "input.customer"}, "retention": {"after_end": "1h", "then": "erase"},
        "steps": {"decide": {"approval": {"by": ["ann", "bob"], "ask": {"message": "Refund {{input.amount}} to {{input.customer}}?", "order": "A-1", "requestedSchema": schema}},
                             "timeout": "7d", "done": True}}})
    web.expect(201, "PUT", "/v1/definitions/limited", {
        "concurrency": {"max": 1, "key": "{{input.customer}}"},
        "steps": {"pick": {"name": "pick", "tool": "pick", "idempotent": True, "retry": {"max": 3, "backoff": ["1h"]}, "done": True}}})
    made = {"gate": web.create(definition="spend", subject_ref="refund-7", input={"customer": "Ann", "amount": 30}),
            "held": web.create(definition="limited", input={"customer": "Ann"}), "limited": web.create(definition="limited", input={"customer": "Ann"}),
            "items": web.create(definition="order-items", input={"order": "A-17", "items": [{"sku": sku} for sku in ("tea", "pot", "cup", "jar")]}),
            "saga": web.create(definition="trip-saga", input={"to": "Turin"})}
    (held,) = work(web, "pick", 2, lease="10m")
    web.expect(200, "POST", "/v1/steps/%s/heartbeat" % held["step_id"], {"lease": held["lease"], "progress": {"done": 3, "of": 10}})
    first, second = work(web, "pack", 2)
    answer(web, first, "complete", result="box")
    answer(web, second, "fail", error={"kind": "sold-out"}, retry=False)
    for how, said in (("complete", {"result": {"ref": "F"}}), ("complete", {"result": {"ref": "H"}})):
        answer(web, work(web, "book")[0], how, **said)
    answer(web, work(web, "pay")[0], "fail", error="declined", retry=False)
    web.expect(200, "POST", "/v1/instances/%s/hold" % made["held"], {"actor_ref": "dpo", "reason": "case 12"})
    return made


def test_waits_questions_limits_progress_holds_and_queries_are_shown_as_they_are(shell):
    _, address = shell.serve()
    made = rich_store(Web(address))
    browse(shell, "newData", address, json.dumps(made), str(shell.folder / "one.ndjson"))
    shell.pawl("--store", "sqlite:other.db", "import", "one.ndjson")
    assert shell.json("--store", "sqlite:other.db", "show", made["gate"])["current_state"] == "completed"


def test_a_server_that_shows_what_was_not_recorded_is_found_out(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    _, address = shell.serve()
    web = Web(address)
    order = web.create(definition="order", subject_ref="A-1", input={"n": 1.50}, actor_ref="ann", labels={"a": "b"}, instantiated_at="2026-01-01T00:00:00Z")
    web.expect(200, "POST", "/v1/instances/%s/fire" % order, {"action": "pay", "actor_ref": "ann", "fired_at": "2026-01-02T00:00:00Z"})
    web.expect(200, "POST", "/v1/instances/%s/fire" % order, {"action": "ship", "actor_ref": "bob", "payload": {"n": 1}, "reason": "why"})
    browse(shell, "forged", address, order, ",".join(rich_store(web).values()))


# ---- With PAWL_TEST_LONG ----

DAILY = [name for name in globals() if name.startswith("test_")]


def test_every_action_of_an_instance_can_be_taken_and_refusals_are_shown(shell):
    _, address = shell.serve("--examples")
    changed = shell.write("approval.yaml", (harness.EXAMPLES / "approval.yaml").read_text().replace("timeout: 7d", "timeout: 9d"))
    browse(shell, "everyAction", address, str(shell.folder / changed))


def test_the_form_of_a_definition_follows_the_schema_of_its_input(shell):
    _, address = shell.serve()
    schema = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer", "minimum": 0, "description": "in cents"},
              "colour": {"enum": ["red", "blue"]}, "tags": {"type": "array"}}}
    Web(address).expect(201, "PUT", "/v1/definitions/form", {"input": schema, "steps": {"start": {"name": "start", "wait": {"signal": "go"}, "done": True}}})
    browse(shell, "startForm", address)


def test_the_past_is_shown_by_slider_by_key_and_by_address(shell):
    _, address = shell.serve("--examples", "--test")
    Web(address).expect(200, "POST", "/v1/test/advance", {"by": "20s"})
    browse(shell, "timeTravel", address)


def test_of_two_browsers_that_approve_at_once_one_is_recorded_and_both_agree(shell):
    _, address = shell.serve()
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/once", {"steps": {"start": {"name": "sign", "approval": {"by": ["ann", "bob"], "count": 1}, "done": True}}})
    web.create(definition="once")
    browse(shell, "race", address)


def test_keys_alone_lead_through_the_pages(shell):
    _, address = shell.serve("--examples")
    browse(shell, "keyboard", address)


def test_every_page_in_every_look_breaks_no_rule_of_wcag_aa(shell):
    _, address = shell.serve("--examples")
    browse(shell, "everyLook", address)


def test_a_hundred_thousand_instances_are_listed_and_found(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    _, address = shell.serve()
    web = Web(address)
    for begin in range(0, 100_000, 5_000):
        lines = [json.dumps({"operation": "instance.create", "input": {"definition": "order", "subject_ref": "S-%d" % (begin + i)}}) for i in range(5_000)]
        web.expect(200, "POST", "/v1/batch", "\n".join(lines))
    print(browse(shell, "manyInstances", address))


def test_a_server_that_wants_tokens_is_signed_in_to(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    order = shell.pawl("start", "order").out.strip()
    token = shell.json("token", "create", "--scope", "read,write", "--actor", "ann")["token"]
    _, address = shell.serve("--require-token")
    browse(shell, "signIn", address, token, order)


def test_the_nodes_of_a_store_are_on_home_and_so_is_that_one_died(shell):
    if not postgres.is_there():
        raise harness.Skip("there is no PostgreSQL here")
    store = run_postgres.url("browser", lease="1500")
    _, address = shell.serve("--store", store)
    other, _ = shell.serve("--store", store)
    browse(shell, "nodes", address, str(other.pid))


def test_a_graph_of_a_hundred_states_can_be_read(shell):
    _, address = shell.serve()
    names = ["state-%d" % i for i in range(100)]
    ways = [{"from_state": names[i], "action": "go-%d" % k, "to_state": names[k]} for i in range(99) for k in {min(99, i + 1 + i % 3), min(99, i + 2)}]
    Web(address).expect(201, "PUT", "/v1/definitions/large", {"states": names, "initial_state": names[0], "terminal_states": [names[99]], "terminal_kinds": {names[99]: "success"}, "transitions": ways})
    browse(shell, "largeGraph", address)


def test_every_definition_is_counted_however_many_there_are(shell):
    _, address = shell.serve()
    web = Web(address)
    for n in range(90):
        web.expect(201, "PUT", "/v1/definitions/d%02d" % n, {"steps": {"start": {"name": "start", "wait": {"signal": "go"}, "done": True}}})
    browse(shell, "manyDefinitions", address)


def test_the_first_paint_waits_for_no_script_and_no_operation(shell):
    _, address = shell.serve("--examples")
    print(browse(shell, "firstPaint", address))


def test_the_types_in_the_comments_are_right(shell):
    config = {"compilerOptions": {"allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "target": "es2023", "module": "es2022", "moduleResolution": "bundler",
                                  "lib": ["es2023", "dom", "dom.iterable"], "types": []}, "include": [str(harness.ROOT / "src/surface/dashboard/*.js")]}
    shell.write("tsconfig.json", json.dumps(config))
    done = subprocess.run([str(npm_modules() / "node_modules/.bin/tsc"), "-p", str(shell.folder)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout.decode()


if __name__ == "__main__":
    harness.main(globals() if LONG else {name: globals()[name] for name in DAILY})
