"""Pause and resume over HTTP and from the command line, against real servers and stores."""
from web import Web, harness

TRIP = """name: trip
steps:
  start: {name: pack, tool: log, args: {message: packed}, next: ride}
  ride: {tool: sleep, args: {for: 1h}, next: unpack}
  unpack: {tool: set, args: {got: 1}, done: true}
"""


def test_a_flow_that_is_paused_through_a_kill_goes_on_at_resume(shell):
    child, address = shell.serve("--test")
    web = Web(address)
    web.expect(201, "PUT", "/v1/definitions/trip", TRIP, {"Content-Type": "application/yaml"})
    trip = web.create(definition="trip")
    base = "/v1/instances/" + trip
    assert web.expect(200, "POST", base + "/pause", {"actor_ref": "ann", "reason": "audit"}).json == {
        "status": "paused"}
    child.kill()
    child.wait()
    web = Web(shell.serve("--test")[1])
    web.expect(200, "POST", "/v1/test/advance", {"by": "2h"})
    assert web.get(base).json["status"] == "paused"
    assert [w["kind"] for w in web.get(base + "/why").json["waiting_for"]][0] == "pause"
    assert trip in [i["instance_id"] for i in web.get("/v1/instances?status=paused").json["instances"]]
    web.refused("paused", "POST", base + "/signals", {"name": "x"})
    web.refused("invalid-request", "POST", base + "/pause", {"colour": 1})
    web.refused("not-known", "POST", "/v1/instances/%s/pause" % ("0" * 25 + "1"))
    web.expect(200, "POST", base + "/resume")
    web.expect(200, "POST", "/v1/test/advance", {"by": "0s"})
    assert web.get(base).json["status"] == "completed"
    web.refused("terminal", "POST", base + "/pause")
    assert web.expect(200, "POST", "/v1/verify").json["valid"]


def test_the_command_line_pauses_and_resumes_with_and_without_a_server(shell):
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    shell.pawl("define", shell.write("trip.yaml", TRIP.replace("1h", "1ms")))
    order = shell.json("start", "order")["instance_id"]
    trip = shell.json("start", "trip")["instance_id"]
    for words in (("pause", order, "--actor", "ann"), ("pause", trip, "--reason", "audit")):
        assert shell.json(*words) == {"status": "paused"}
    refused = shell.pawl("fire", order, "pay", expect=1)
    assert "paused" in refused.err, refused
    assert "audit" in shell.pawl("why", trip).out
    shell.pawl("resume", trip)  # to its end
    assert shell.json("show", trip)["status"] == "completed"
    shell.pawl("resume", order)
    shell.pawl("fire", order, "pay")
    child, _ = shell.serve()
    assert shell.json("pause", order) == {"status": "paused"}
    shell.pawl("resume", order)
    assert shell.json("show", order)["status"] == "suspended"
    shell.stop(child)
    assert shell.json("verify")["valid"]


if __name__ == "__main__":
    harness.main(globals())
