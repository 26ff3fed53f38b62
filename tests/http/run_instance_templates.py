"""{{instance.*}} in the args of steps, and `instance` in conditions."""
import signal

from run_amend import verify_twice
from run_flows import claim, complete, server, state, steps, yaml
from web import harness

ALL = ("{id: '{{instance.id}}', d: '{{instance.definition}}', v: '{{instance.version}}', s: '{{instance.subject_ref}}', c: '{{instance.correlation_id}}', "
       "by: '{{instance.created_by}}', region: '{{instance.labels.region}}', text: 'no {{instance.version}}', none: '{{instance.labels.nosuch}}'}")


def test_the_args_of_any_step_may_say_what_the_instance_is(shell):
    child, web = server(shell)
    yaml(web, "who", "steps:\n  a: {tool: far, args: %s, next: b}\n  b: {tool: set, args: %s, next: c}\n"
                     "  c: {wait: {signal: 'paid-{{instance.id}}'}, next: d}\n"
                     "  d: {tool: near, branch: [{if: \"instance.created_by == 'ann' and instance.labels.region == 'eu' and instance.version == 1\", then: e}]}\n"
                     "  e: {tool: end, done: true}\n" % (ALL, ALL))
    instance = web.create(definition="who", actor_ref="ann", subject_ref="S-1", correlation_id="C-1", labels={"region": "eu"})
    expected = {"id": instance, "d": "who", "v": 1, "s": "S-1", "c": "C-1", "by": "ann", "region": "eu", "text": "no 1", "none": ""}
    [step] = claim(web, "far")
    assert step["args"] == expected, step
    complete(web, step, 1)
    shell.wait_for(lambda: len(steps(web, instance)) == 3)
    assert steps(web, instance)[1]["result"] == expected, steps(web, instance)[1]
    assert steps(web, instance)[0]["args"] == expected
    child.send_signal(signal.SIGKILL)
    child.wait()
    _, web = server(shell)
    web.expect(202, "POST", "/v1/instances/%s/signals" % instance, {"name": "paid-" + instance})
    complete(web, claim(web, "near")[0], 1)
    assert len(claim(web, "end")) == 1
    verify_twice(shell, web)


def test_a_first_step_that_runs_here_waits_until_it_has_a_name(shell):
    _, web = server(shell)
    yaml(web, "first", "do: [{action: set, payload: {id: '{{instance.id}}', by: '{{instance.created_by}}'}}]")
    instance = web.create(definition="first")
    shell.wait_for(lambda: state(web, instance)[0] == "completed")
    assert steps(web, instance)[0]["result"] == {"id": instance, "by": ""}, steps(web, instance)
    verify_twice(shell, web)


def test_a_wait_that_begins_with_the_flow_cannot_know_it(shell):
    _, web = server(shell)
    yaml(web, "early", "steps: {a: {wait: {signal: 'x-{{instance.id}}'}, done: true}}")
    instance = web.create(definition="early")
    assert state(web, instance)[0] == "failed"
    assert "not known yet" in steps(web, instance)[0]["error"]
    verify_twice(shell, web)


def test_what_an_instance_does_not_have_is_refused_when_it_is_put(shell):
    _, web = server(shell)
    text = "steps: {a: {tool: x, args: {a: '{{instance.nosuch}}'}, done: true}}"
    reply = web.refused("invalid-definition", "PUT", "/v1/definitions/bad", text, {"Content-Type": "application/yaml"})
    assert "line 1" in reply.json["detail"] and "nothing an instance has" in reply.json["detail"], reply


if __name__ == "__main__":
    harness.main(globals())
