"""What has ended is erased when its definition says so, not before, and not while it is on hold."""
import os
import pathlib
import signal

from run_amend import verify_twice
from run_erase import ORDER, erase, found_in, get, shipped
from run_flows import server, yaml
from web import Web, harness

KEPT = ORDER + "retention: {after_end: 10d, then: erase}\n"


def advance(web, by):
    web.expect(200, "POST", "/v1/test/advance", {"by": by})


def retained(web):
    return {one.pop("definition"): one for one in web.expect(200, "GET", "/v1/retention").json["retention"]}


def hold(web, instance, verb="hold", **members):
    return web.expect(200, "POST", "/v1/instances/%s/%s" % (instance, verb), members).json


def test_what_has_ended_is_kept_for_its_time_and_erased_then_and_what_goes_on_is_not(shell):
    _, web = server(shell, "--test")
    yaml(web, "order", KEPT)
    first, running = shipped(web, "zzqa"), web.create(definition="order", input={"card": "zzqrunning"})
    advance(web, "5d")
    later = shipped(web, "zzqb")
    advance(web, "119h")
    assert "erased" not in get(web, first) and retained(web)["order"]["due"] == 0
    advance(web, "3h")  # 10 days and 2 hours
    shell.wait_for(lambda: "erased" in get(web, first))
    told = get(web, first)["erased"]
    assert told["actor_ref"] == "pawl/retention" and told["reason"] == "retention: 10d after its end", told
    assert "erased" not in get(web, later) and get(web, running)["input"] == {"card": "zzqrunning"}
    shell.wait_for(lambda: found_in(shell, "zzqa") == [])
    advance(web, "6d")
    shell.wait_for(lambda: "erased" in get(web, later))
    got = retained(web)["order"]
    assert got == {"after_end": "10d", "then": "erase", "due": 0, "held": 0, "erased": 2, "oldest_due_at": None, "more": False}, got
    verify_twice(shell, web)


def test_a_hold_keeps_an_instance_from_both_until_it_is_lifted(shell):
    child, web = server(shell, "--test")
    yaml(web, "order", KEPT)
    held = shipped(web, "zzqa")
    assert hold(web, held, actor_ref="dpo", reason="case 12") == {"held": True, "changed": True}
    assert hold(web, held) == {"held": True, "changed": False}
    reply = web.refused("conflict", "POST", "/v1/instances/%s/erase" % held, {})
    assert "on hold" in reply.json["detail"] and held in reply.json["detail"]
    web.refused("not-known", "POST", "/v1/instances/%s/hold" % ("0" * 26), {})
    advance(web, "11d")
    shell.wait_for(lambda: retained(web)["order"]["held"] == 1)
    assert "erased" not in get(web, held)
    [one] = web.expect(200, "GET", "/v1/holds").json["holds"]
    assert (one["instance_id"], one["actor_ref"], one["reason"]) == (held, "dpo", "case 12"), one
    assert "pawl_retention_held 1" in web.get("/metrics").body.decode()
    verify_twice(shell, web)
    child.send_signal(signal.SIGKILL)  # a hold outlives a death
    child.wait()
    _, address = shell.serve("--test")
    web = Web(address)
    assert len(web.expect(200, "GET", "/v1/holds").json["holds"]) == 1
    assert hold(web, held, "lift", reason="closed") == {"held": False, "changed": True}
    assert hold(web, held, "lift") == {"held": False, "changed": False}
    advance(web, "2h")
    shell.wait_for(lambda: "erased" in get(web, held))
    assert "zzqa" not in shell.pawl("show", held).out
    assert "no instance is on hold" in shell.pawl("holds").out and "order" in shell.pawl("retention").out
    verify_twice(shell, web)


def test_a_newer_version_decides_for_older_instances_and_a_restart_goes_on(shell):
    child, web = server(shell, "--test")
    yaml(web, "order", ORDER)
    old = [shipped(web, "zzq%d" % i) for i in range(3)]
    advance(web, "400d")
    assert retained(web) == {} and "erased" not in get(web, old[0])
    yaml(web, "order", KEPT)
    advance(web, "2h")
    for instance in old:
        shell.wait_for(lambda: "erased" in get(web, instance))
    shell.stop(child)
    child, web = server(shell, "--test")
    new = shipped(web, "zzqnew")
    advance(web, "11d")
    shell.wait_for(lambda: "erased" in get(web, new))
    assert erase(web, old[0])["erased_before"] == 1
    verify_twice(shell, web)


CODE = """from pawl_client import sleep, workflow

@workflow
async def game(secret):
    await sleep("1s")
    return {"done": secret}
"""


def test_settings_decide_for_code_and_before_what_a_definition_says(shell):
    shell.write("pawl.yaml", "retention:\n  game: {after_end: 10d, then: erase}\n  order: {after_end: 400d, then: archive}\n")
    shell.write("game.py", CODE)
    os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).resolve().parents[2] / "clients/python")
    _, web = server(shell, "--test", "--module", "game.py")
    yaml(web, "order", KEPT)
    order, game = shipped(web, "zzqa"), web.create(definition="game", input={"secret": "zzqgame"})
    advance(web, "2s")
    shell.wait_for(lambda: get(web, game)["status"] == "completed")
    advance(web, "9d")
    assert "erased" not in get(web, game)
    advance(web, "2d")
    shell.wait_for(lambda: "erased" in get(web, game))
    assert "erased" not in get(web, order) and found_in(shell, "zzqgame") == []
    assert {name: (row["after_end"], row["then"]) for name, row in retained(web).items()} == {"game": ("10d", "erase"), "order": ("400d", "archive")}
    verify_twice(shell, web)
    for text, words in (("retention: {game: 5}", "expected {after_end, then}"), ("retention: 5", "names of definitions"),
                        ("retention: {game: {after_end: 10d, then: burn}}", "expected erase or archive")):
        said = shell.pawl("check", shell.write("pawl.yaml", text + "\n"), expect=1)
        assert words in said.out + said.err, (text, said)


def test_a_retention_that_makes_no_sense_is_refused_with_words(shell):
    for text, words in (("retention: {after_end: 10d}", "expected `then: erase`"), ("retention: {then: erase}", "expected after_end"),
                        ("retention: {after_end: soon, then: erase}", "expected a duration"), ("retention: 10d", "expected {after_end, then}"),
                        ("retention: {after_end: 10d, then: burn}", "expected erase or archive"), ("retention: {after_end: 0s, then: erase}", "expected a duration"),
                        ("retention: {after_end: 10d, then: erase, thn: 1}", "unknown key 'retention.thn'")):
        said = shell.pawl("check", shell.write("bad.yaml", "name: order\n" + ORDER + text + "\n"), expect=1)
        assert words in said.out + said.err, (text, said)
    said = shell.pawl("check", shell.write("flow.yaml", "name: f\nretention: {after_end: 1d, then: erase}\nsteps: {a: {tool: log, args: {message: x}, done: true}}\n"))
    assert "retention" not in said.err, said


if __name__ == "__main__":
    harness.main(globals())
