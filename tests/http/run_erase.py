"""What an instance holds leaves the store, its files and its answers, and every hash stays provable."""
import json
import os
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "code"))
from run_amend import verify_twice
from run_flows import claim, complete, server, yaml
from web import harness

ORDER = """states: [new, paid, shipped]
initial_state: new
terminal_states: [shipped]
terminal_kinds: {shipped: success}
transitions:
  - {from_state: new, action: pay, to_state: paid}
  - {from_state: paid, action: ship, to_state: shipped}
"""
MAIL = """signals: {paid: {buffer: true}}
steps:
  start: {name: greet, tool: greet, args: {to: "{{input.who}}"}, next: wait}
  wait: {wait: {signal: paid, value: "{{input.who}}"}, next: kid}
  kid: {spawn: {definition: child, input: {of: "{{input.who}}"}}, next: bye}
  bye: {tool: greet, args: {to: "{{input.who}}"}, retry: {max: 1}, done: true}
"""
CHILD = "steps: {only: {tool: greet, args: {to: '{{input.of}}'}, done: true}}"


def erase(web, instance, **members):
    return web.expect(200, "POST", "/v1/instances/%s/erase" % instance, members).json


def get(web, instance):
    return web.get("/v1/instances/" + instance).json


def files(shell):
    """The bytes of every file of the store."""
    return {path.name: path.read_bytes() for path in shell.folder.glob("pawl.db*") if path.is_file()}


def found_in(shell, *secrets):
    return [(name, secret) for name, data in files(shell).items() for secret in secrets if secret.encode() in data]


def shipped(web, secret, **members):
    instance = web.create(definition="order", actor_ref="ann", input={"card": secret + "in"}, labels={"who": secret + "label"},
                          correlation_id=secret + "corr", instance_metadata={"note": secret + "meta"}, **members)
    for action in ("pay", "ship"):
        web.expect(200, "POST", "/v1/instances/%s/fire" % instance,
                   {"action": action, "actor_ref": "bob", "reason": secret + "why", "payload": {"text": secret + action}})
    return instance


def kinds(secret):
    return [secret + word for word in ("in", "label", "corr", "meta", "why", "pay", "ship")]


def test_what_a_machine_held_is_in_no_file_of_the_store_and_every_proof_holds(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    gone, kept = shipped(web, "zzqa", subject_ref="C-7"), shipped(web, "zzqb", subject_ref="C-7")
    before = web.get("/v1/instances/%s/history" % gone).json["entries"]
    assert set(secret for _, secret in found_in(shell, *kinds("zzqa"))) == set(kinds("zzqa")), "the search finds what is there"
    root = web.post("/v1/verify").json
    got = erase(web, gone, actor_ref="dpo", reason="asked to")
    assert got == {"erased": 1, "erased_before": 0, "values": 6, "left": 0, "left_in_log": False}, got
    assert found_in(shell, "zzqa") == []
    assert set(secret for _, secret in found_in(shell, *kinds("zzqb"))) == set(kinds("zzqb")), "the other one is whole"
    verify_twice(shell, web)
    assert root["valid"] and web.expect(200, "POST", "/v1/instances/%s/verify" % gone).json["valid"]
    after = web.get("/v1/instances/%s/history" % gone).json["entries"]
    for old, new in zip(before, after):
        assert old["hash"] == new["hash"] and new["erased"] == ["reason", "payload"], new
        assert "payload" not in new and "reason" not in new and new["actor_ref"] == "bob", new
    told = get(web, gone)
    assert told["input"] is None and told["labels"] is None and told["correlation_id"] is None, told
    assert told["subject_ref"] == "C-7" and told["erased"].pop("erased_at"), told
    assert told["erased"] == {"actor_ref": "dpo", "reason": "asked to"}, told
    assert "erased" not in get(web, kept)
    assert web.get("/v1/instances?label.who=zzqalabel").json["instances"] == []
    said = shell.pawl("show", gone).out
    assert "(payload erased)" in shell.pawl("history", gone).out
    assert "erased" in said and "dpo" in said and "asked to" in said and "zzqa" not in said, said


def test_twice_is_harmless_and_one_that_has_not_ended_is_refused_by_name(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    running = web.create(definition="order", input={"card": "zzqrunning"}, subject_ref="C-1")
    reply = web.refused("conflict", "POST", "/v1/instances/%s/erase" % running, {})
    assert "has not ended" in reply.json["detail"] and running in reply.json["detail"], reply
    web.refused("not-known", "POST", "/v1/instances/%s/erase" % ("0" * 26), {})
    gone = shipped(web, "zzqa")
    key = {"Idempotency-Key": "k1"}
    first = web.expect(200, "POST", "/v1/instances/%s/erase" % gone, {"reason": "r"}, key).json
    assert web.expect(200, "POST", "/v1/instances/%s/erase" % gone, {"reason": "r"}, key).json == first
    position = web.post("/v1/verify").json["records"]
    assert erase(web, gone) == {"erased": 0, "erased_before": 1, "values": 0, "left": 0, "left_in_log": False}
    assert web.post("/v1/verify").json["records"] == position, "it records nothing"
    assert get(web, gone)["erased"]["reason"] == "r"
    assert get(web, running)["input"] == {"card": "zzqrunning"}


def ended_mail(web, who):
    """A flow that waited for a value, and spawned."""
    instance = web.create(definition="mail", input={"who": who}, subject_ref="S-" + who)
    complete(web, claim(web, "greet")[0], {"said": who + "result"})
    web.expect(202, "POST", "/v1/signals", {"name": "paid", "filter": who, "payload": {"by": who + "payload"}})
    for _ in range(2):
        complete(web, claim(web, "greet", wait="10s")[0], {"said": who + "again"})
    assert get(web, instance)["status"] == "completed", get(web, instance)
    return instance


def test_a_flow_its_waits_its_snapshot_and_its_children_are_erased(shell):
    child, web = server(shell)
    yaml(web, "child", CHILD)
    yaml(web, "mail", MAIL)
    instance, other = ended_mail(web, "zzqann"), ended_mail(web, "zzqzoe")
    assert found_in(shell, "zzqann")
    got = erase(web, instance)
    assert got["erased"] == 2 and got["left"] == 0, got
    assert [name for name, _ in found_in(shell, "zzqann")] in ([], ["pawl.db"]), "the subject's name stays"
    for path in ("", "/history", "/steps", "/view", "/why", "/graph", "/variables"):
        assert "zzqann" not in web.get("/v1/instances/%s%s" % (instance, path)).body.decode().replace("S-zzqann", ""), path
    assert "zzqannresult" not in shell.pawl("show", instance, "--evidence").out
    verify_twice(shell, web)
    shell.stop(child)  # and after a restart, by what the file has
    _, web = server(shell)
    assert get(web, instance)["erased"] and get(web, other)["input"] == {"who": "zzqzoe"}
    verify_twice(shell, web)


def test_a_subjects_instances_and_its_name_are_erased_when_none_is_left(shell):
    _, web = server(shell)
    yaml(web, "order", ORDER)
    ended = [shipped(web, "zzq%d" % i, subject_ref="zzqsubject") for i in range(3)]
    running = web.create(definition="order", input={"card": "zzqrunning"}, subject_ref="zzqsubject")
    got = web.expect(200, "POST", "/v1/erase", {"subject_ref": "zzqsubject", "actor_ref": "zzqsubject"}).json
    assert (got["erased"], got["left"], got["name_erased"]) == (3, 1, False), got
    assert get(web, running)["subject_ref"] == "zzqsubject"
    for action in ("pay", "ship"):
        web.expect(200, "POST", "/v1/instances/%s/fire" % running, {"action": action})
    got = web.expect(200, "POST", "/v1/erase", {"subject_ref": "zzqsubject", "actor_ref": "dpo"}).json
    assert (got["erased"], got["erased_before"], got["left"], got["name_erased"]) == (1, 3, 0, True), got
    assert found_in(shell, "zzq") == []
    assert get(web, ended[0])["subject_ref"] is None
    verify_twice(shell, web)
    again = web.create(definition="order", subject_ref="zzqsubject", actor_ref="zzqsubject")
    assert get(web, again)["subject_ref"] == "zzqsubject", "the name can be used again"
    verify_twice(shell, web)


def test_the_state_of_code_and_the_arguments_of_its_calls_are_erased(shell):
    import run_python
    served = run_python.Served(shell)
    web = served.web
    instance = served.create("order", lines=[{"sku": "zzqsku", "count": 2}], limit=100)
    served.until(instance)
    assert found_in(shell, "zzqsku")
    assert erase(web, instance, reason="asked to")["erased"] == 1
    assert found_in(shell, "zzqsku") == []
    for path in ("", "/history", "/steps", "/view", "/why"):
        assert "zzqsku" not in web.get("/v1/instances/%s%s" % (instance, path)).body.decode(), path
    verify_twice(shell, web)


def test_answers_that_were_kept_for_a_key_and_what_alarms_were_for_go_too(shell):
    _, web = server(shell, "--test")
    yaml(web, "order", ORDER)
    yaml(web, "one", "steps: {a: {tool: far, args: {to: '{{input.who}}'}, done: true}}")
    flow = web.create(definition="one", input={"who": "zzqflow"})
    claimed = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["far"], "worker": "w"}, {"Idempotency-Key": "k"}).json["steps"]
    complete(web, claimed[0], {"said": "zzqsaid"})
    web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.create", "input": {"definition": "order", "input": {"card": "zzqalarm"}}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    [made] = web.get("/v1/instances?definition=order").json["instances"]
    web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.fire", "input": {"instance_id": made["instance_id"], "action": "pay", "reason": "zzqfire"}})
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    web.expect(200, "POST", "/v1/instances/%s/fire" % made["instance_id"], {"action": "ship"})
    secrets = ("zzqflow", "zzqsaid", "zzqalarm", "zzqfire")
    assert {secret for _, secret in found_in(shell, *secrets)} == set(secrets)
    assert erase(web, flow)["values"] == 3, "the input, the result, and the answer that was kept"
    assert found_in(shell, "zzqflow", "zzqsaid") == []
    erase(web, made["instance_id"])
    assert found_in(shell, "zzqalarm", "zzqfire") == []
    verify_twice(shell, web)


def test_an_alarm_in_force_that_names_an_erased_instance_is_still_done(shell):
    _, web = server(shell, "--test")
    yaml(web, "order", ORDER)
    yaml(web, "one", "steps: {a: {tool: set, args: {to: '{{input.who}}'}, done: true}}")
    flow = web.create(definition="one", input={"who": "zzqflow"})
    web.expect(201, "POST", "/v1/alarms", {"after": "1h", "operation": "instance.create", "input": {"definition": "order", "input": {"of": flow}}})
    erase(web, flow)
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    [made] = web.get("/v1/instances?definition=order").json["instances"]
    assert made["input"] == {"of": flow}
    verify_twice(shell, web)


def test_a_flow_with_a_map_is_looked_at_after_its_list_was_erased_and_is_not_run_again(shell):
    _, web = server(shell)
    yaml(web, "rows", "steps: {rows: {map: {over: '{{input.items}}', max_parallel: 2, step: {tool: fail, args: {error: '{{item}}'}, retry: {max: 1}}}, done: true}}")
    flow = web.create(definition="rows", input={"items": ["zzqa", "zzqb", "zzqc", "zzqd"]})
    shell.wait_for(lambda: get(web, flow)["status"] == "failed")
    assert web.get("/v1/instances/%s/why" % flow).json["ended"]["can_redrive"]
    erase(web, flow)
    for path in ("", "/history", "/steps", "/view", "/variables", "/graph"):
        assert web.get("/v1/instances/%s%s" % (flow, path)).status == 200, path
    assert not web.get("/v1/instances/%s/why" % flow).json["ended"]["can_redrive"]
    web.refused("conflict", "POST", "/v1/instances/%s/redrive" % flow, {})
    web.refused("terminal", "POST", "/v1/instances/%s/cancel" % flow, {})
    verify_twice(shell, web)


def test_an_erased_instance_is_exported_without_what_it_held(shell):
    child, web = server(shell)
    yaml(web, "child", CHILD)
    yaml(web, "mail", MAIL)
    instance = ended_mail(web, "zzqann")
    erase(web, instance)
    (shell.folder / "one.ndjson").write_text(shell.pawl("export", instance).out)
    assert "zzqann" not in (shell.folder / "one.ndjson").read_text().replace("S-zzqann", "")
    shell.pawl("--store", "sqlite:other.db", "import", "one.ndjson")
    assert shell.pawl("--store", "sqlite:other.db", "verify").code == 0
    told = shell.json("--store", "sqlite:other.db", "show", instance)
    assert told["erased"] and told["input"] is None, told


def test_a_changed_record_is_not_excused_by_the_mark_of_an_erased_one(shell):
    child, web = server(shell)
    yaml(web, "order", ORDER)
    gone, kept = shipped(web, "zzqa"), shipped(web, "zzqb")
    erase(web, gone)
    shell.stop(child)
    clean = (shell.folder / "pawl.db").read_bytes()
    inst = "(SELECT max(inst) FROM pawl_log)"
    for change in ("UPDATE pawl_log SET flags = 2 WHERE what = 1 AND inst = " + inst,
                   "UPDATE pawl_log SET fired = 5 WHERE flags = 2 AND what = 1",
                   "DELETE FROM pawl_kept WHERE what = -8",
                   "UPDATE pawl_kept SET pos = 3 WHERE what = -8",
                   "UPDATE pawl_log SET body = CAST(replace(body, '\"bodies\"', '\"bodie\"') AS BLOB) WHERE what = -8",
                   "UPDATE pawl_value SET salt = NULL, bytes = NULL, commitment = zeroblob(32) WHERE id = (SELECT payload FROM pawl_log WHERE what = 0 AND inst = " + inst + ")"):
        db = sqlite3.connect(shell.folder / "pawl.db")
        db.execute(change)
        db.commit()
        db.close()
        assert shell.pawl("verify", expect=None).code == 1, change
        assert os.system("%s %s %s > /dev/null" % (sys.executable, harness.ROOT / "tools/verify.py", shell.folder / "pawl.db")), change
        for name in ("pawl.db-wal", "pawl.db-shm"):
            (shell.folder / name).unlink(missing_ok=True)
        (shell.folder / "pawl.db").write_bytes(clean)
    assert shell.pawl("verify").code == 0


if __name__ == "__main__":
    harness.main(globals())
