"""Bulk validation is a workflow (A29-A34): an instance whose entries say what was checked and found."""
import json
import signal
import sqlite3

from web import Web, harness

ORDER = (harness.EXAMPLES / "order.yaml").read_text()


def fill(web, count):
    line = json.dumps({"operation": "instance.create", "input": {"definition": "order", "labels": {"n": "1"}}}) + "\n"
    assert web.ask("POST", "/v1/batch", line * count, {"Content-Type": "application/x-ndjson"}).status == 200


def serve(shell, count):
    shell.pawl("define", shell.write("order.yaml", ORDER))
    child, address = shell.serve()
    web = Web(address)
    fill(web, count)
    return child, web


def start(web):
    return web.expect(201, "POST", "/v1/validations", {"definition": "order", "actor_ref": "ann"}).json


def run(web, told, most):
    return web.expect(200, "POST", "/v1/validations/%s/run" % told["instance_id"], {"max": most}).json


def test_it_passes_if_all_are_valid_and_each_is_an_entry(shell):
    _, web = serve(shell, 250)
    told = start(web)
    assert told["state"] == "pending" and told["total"] == 250 and told["requested_by"] == "ann", told
    part = run(web, told, 7)
    assert part["state"] == "in-progress" and (part["valid"], part["invalid"]) == (7, 0), part
    fill(web, 3)  # what comes later is not part of it
    done = run(web, told, 1000)
    assert (done["state"], done["terminal_kind"], done["valid"]) == ("passed", "success", 250) and done["completed_at"], done
    entries = web.get("/v1/instances/%s/history?action=checked" % told["instance_id"]).json["entries"]
    assert len({entry["payload"]["checked"] for entry in entries}) == len(entries) == 250
    assert run(web, told, 1000) == done  # an end is an end
    assert web.post("/v1/validations/%s/cancel" % told["instance_id"]).reason == "terminal"


def test_it_fails_if_one_is_not_valid_and_says_which_and_why(shell):
    child, web = serve(shell, 5)
    shell.stop(child)
    with sqlite3.connect(shell.folder / "pawl.db") as db:
        db.execute("UPDATE pawl_log SET hash = zeroblob(32) WHERE inst = 3")
    db.close()
    _, address = shell.serve()
    web = Web(address)
    done = run(web, start(web), 100)
    assert (done["state"], done["terminal_kind"], done["valid"], done["invalid"]) == ("failed", "failure", 4, 1), done
    found = web.get("/v1/instances/%s/history?action=found" % done["instance_id"]).json["entries"]
    assert [entry["payload"]["checked"][:10] for entry in found] == ["0000000003"] and found[0]["payload"]["what"], found
    answer = shell.pawl("validate", "order", expect=1)
    assert answer.out.startswith("failed: 4 valid, 1 invalid, of 5"), answer


def test_it_goes_on_after_a_kill_and_can_be_cancelled(shell):
    child, web = serve(shell, 30)
    told = start(web)
    run(web, told, 10)
    child.send_signal(signal.SIGKILL)
    child.wait()
    _, address = shell.serve()
    web = Web(address)
    part = run(web, told, 5)
    assert part["valid"] == 15, part
    ended = web.expect(200, "POST", "/v1/validations/%s/cancel" % told["instance_id"], {"reason": "enough"}).json
    assert (ended["state"], ended["terminal_kind"], ended["valid"]) == ("cancelled", "cancel", 15), ended
    assert run(web, told, 5) == ended


def test_what_is_no_validation_is_not_known(shell):
    _, web = serve(shell, 1)
    order = web.get("/v1/instances").json["instances"][0]["instance_id"]
    web.refused("not-known", "POST", "/v1/validations/%s/run" % order, {})
    web.refused("not-known", "POST", "/v1/validations", {"definition": "none"})
    web.refused("invalid-request", "POST", "/v1/validations/%s/run" % order, {"max": 100001})


harness.main(globals())
