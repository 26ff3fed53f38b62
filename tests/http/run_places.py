"""A step is started when a thread takes it: what waits for a thread neither times out nor runs once it is over, and what
runs ends with its step."""
import subprocess
import sys

from run_flows import actions, server, steps, yaml
from web import harness

WORKERS = 2
CONFIG = "tools: {exec: true}\nlimits: {workers: %d}\n" % WORKERS
# Each says in a file of its own that it runs: its pid.
HOLD = "steps: {a: {tool: exec, args: {argv: [sh, -c, 'echo $$ >$0; exec sleep 1000', '{{input.file}}']}, %s done: true}}"
MARK = "steps: {a: {tool: exec, args: {argv: [touch, '{{input.file}}']}, retry: {max: 3}, %s done: true}}"


def begin(shell):
    (shell.folder / "pawl.yaml").write_text(CONFIG)
    child, web = server(shell)
    yaml(web, "hold", HOLD % "")
    yaml(web, "mark", MARK % "")
    return child, web


def create(web, shell, definition, file):
    return web.create(definition=definition, input={"file": str(shell.folder / file)})


def pid_in(shell, file):
    shell.wait_for(lambda: (shell.folder / file).exists() and (shell.folder / file).read_text().endswith("\n"))
    return int((shell.folder / file).read_text())


def hold_all(web, shell):
    """Every place is held by a program: (instances, pids)."""
    held = [create(web, shell, "hold", "held-%d" % i) for i in range(WORKERS)]
    return held, [pid_in(shell, "held-%d" % i) for i in range(WORKERS)]


def is_gone(pid):
    try:
        return open("/proc/%d/stat" % pid).read().split(") ")[1][0] == "Z"
    except OSError:
        return True


def cancel(web, id):
    web.expect(200, "POST", "/v1/instances/%s/cancel" % id, {"reason": "enough"})


def state(web, id):
    return web.get("/v1/instances/" + id).json["status"]


def test_a_step_that_waits_for_a_thread_is_not_started_and_runs_no_more_once_it_is_cancelled(shell):
    child, web = begin(shell)
    held, pids = hold_all(web, shell)
    late, next_one = (create(web, shell, "mark", name) for name in ("late", "next"))
    assert [step["status"] for step in steps(web, late)] == ["ready"] and "step.start" not in actions(web, late)
    cancel(web, late)
    for id in held:
        cancel(web, id)
    shell.wait_for(lambda: state(web, next_one) == "completed")
    assert (shell.folder / "next").exists() and not (shell.folder / "late").exists()
    shell.stop(child)


def test_a_cancel_ends_the_program_that_runs_and_frees_its_place(shell):
    child, web = begin(shell)
    held, pids = hold_all(web, shell)
    for id in held:
        cancel(web, id)
    shell.wait_for(lambda: all(is_gone(pid) for pid in pids))
    after = create(web, shell, "mark", "after")
    shell.wait_for(lambda: state(web, after) == "completed")
    assert [state(web, id) for id in held] == ["cancelled"] * WORKERS
    shell.stop(child)


def test_a_cancel_of_a_parent_ends_the_program_of_its_child(shell):
    child, web = begin(shell)
    yaml(web, "parent", "do: [{name: kid, spawn: {definition: hold, input: {file: '{{input.file}}'}}}]")
    parent = create(web, shell, "parent", "kid")
    pid = pid_in(shell, "kid")
    cancel(web, parent)
    shell.wait_for(lambda: is_gone(pid))
    shell.stop(child)


def test_a_timeout_counts_from_when_a_thread_takes_the_step_and_ends_its_program(shell):
    child, web = begin(shell)
    yaml(web, "short", HOLD % "timeout: 300ms, retry: {max: 1},")
    yaml(web, "soon", MARK % "timeout: 5s,")
    short = [create(web, shell, "short", "short-%d" % i) for i in range(WORKERS * 2)]
    soon = create(web, shell, "soon", "soon")
    pids = [pid_in(shell, "short-%d" % i) for i in range(len(short))]  # each of them ran
    shell.wait_for(lambda: [state(web, id) for id in short] == ["failed"] * len(short))
    shell.wait_for(lambda: state(web, soon) == "completed" and all(is_gone(pid) for pid in pids))
    assert actions(web, soon).count("step.start") == 1
    shell.stop(child)


def test_more_programs_side_by_side_than_threads_each_have_their_whole_time(shell):
    child, web = begin(shell)
    naps = ", ".join("{name: n%d, tool: exec, args: {argv: [sleep, '0.4']}, timeout: 1s}" % i for i in range(WORKERS * 4))
    yaml(web, "naps", "dopar: [%s]" % naps)
    id = web.create(definition="naps")
    shell.wait_for(lambda: state(web, id) in ("completed", "failed"))
    assert state(web, id) == "completed" and "step.timeout" not in actions(web, id)
    shell.stop(child)


def test_a_paused_instance_starts_nothing_when_a_thread_is_free(shell):
    child, web = begin(shell)
    held, _ = hold_all(web, shell)
    late = create(web, shell, "mark", "late")
    web.expect(200, "POST", "/v1/instances/%s/pause" % late, {"reason": "wait"})
    for id in held:
        cancel(web, id)
    done = create(web, shell, "mark", "done")
    shell.wait_for(lambda: state(web, done) == "completed")
    assert not (shell.folder / "late").exists() and "step.start" not in actions(web, late)
    web.expect(200, "POST", "/v1/instances/%s/resume" % late, {})
    shell.wait_for(lambda: state(web, late) == "completed")
    shell.stop(child)


# Holds a lock while it runs, so that a second run beside it says so; ends when it is let go.
ALONE = """steps:
  start: {name: a, tool: exec, args: {argv: [flock, -n, -E, '9', '{{input.file}}.lock', sh, -c, 'echo $PAWL_IDEMPOTENCY_KEY >>$0.keys; echo $$ >$0;
    while ! [ -e $0.go ]; do sleep 0.02; done', '{{input.file}}']}, retry: {max: 2}, %s next: b}
  b: {tool: log, args: {message: on}, done: true}
"""


def pause(web, id, how="pause"):
    web.expect(200, "POST", "/v1/instances/%s/%s" % (id, how), {})


def runs(shell, file):
    """The pid of the last run, when it has begun; each run leaves its key."""
    return len((shell.folder / (file + ".keys")).read_text().split()), pid_in(shell, file)


def test_a_pause_ends_the_program_of_a_step_that_may_be_repeated_and_resume_starts_the_same_attempt_again(shell):
    child, web = begin(shell)
    yaml(web, "alone", ALONE % "")
    yaml(web, "once", ALONE % "idempotent: false,")
    yaml(web, "late", (ALONE % "idempotent: false, timeout: 2s,").replace("max: 2", "max: 3"))
    late = create(web, shell, "late", "late")
    pid_in(shell, "late")
    pause(web, late)
    shell.wait_for(lambda: actions(web, late)[-1] == "fail")  # its time is over: it must not be run again
    held, once = create(web, shell, "alone", "held"), create(web, shell, "once", "once")
    pids = [pid_in(shell, name) for name in ("held", "once")]
    (shell.folder / "held").unlink()
    for id in (held, once):
        pause(web, id)
    after = create(web, shell, "mark", "after")  # there is a place for it again
    shell.wait_for(lambda: is_gone(pids[0]) and state(web, after) == "completed")
    shell.wait_for(lambda: steps(web, held)[0]["status"] == "ready")
    assert not is_gone(pids[1]) and steps(web, once)[0]["status"] == "running"
    last = web.get("/v1/instances/%s/history" % held).json["entries"][-1]
    assert (last["action"], last["actor_ref"], last["reason"]) == ("step.retry", "pawl/server", "paused while it ran"), last
    (shell.folder / "once.go").touch()  # what is not ended is recorded, and starts nothing
    shell.wait_for(lambda: actions(web, once)[-1] == "step.complete")
    assert [state(web, id) for id in (held, once)] == ["paused", "paused"]
    for id in (held, once):
        pause(web, id, "resume")
    shell.wait_for(lambda: state(web, once) == "completed")
    assert not is_gone(pid_in(shell, "held"))
    (shell.folder / "held.go").touch()
    shell.wait_for(lambda: state(web, held) == "completed")
    assert [(step["step_id"], step["attempt"]) for step in steps(web, held)] == [(held + ".1", 1), (held + ".2", 1)]
    assert (shell.folder / "held.keys").read_text().split() == [held + ".1"] * 2
    shell.stop(child)
    check = subprocess.run([sys.executable, str(harness.ROOT / "tools" / "verify.py"), "pawl.db"], cwd=shell.folder, capture_output=True)
    assert check.returncode == 0 and shell.json("verify")["valid"], check


def test_a_step_that_is_paused_and_resumed_at_once_never_runs_twice_at_the_same_time(shell):
    child, web = begin(shell)
    yaml(web, "alone", ALONE % "timeout: 60s,")
    id, gone = create(web, shell, "alone", "one"), create(web, shell, "alone", "two")
    pid = pid_in(shell, "two")
    for _ in range(6):
        pid_in(shell, "one")
        (shell.folder / "one").unlink()
        pause(web, id)
        pause(web, id, "resume")
    pid_in(shell, "one")
    assert state(web, id) == "running" and actions(web, id).count("step.retry") == 6, actions(web, id)
    pause(web, gone)
    cancel(web, gone)
    shell.wait_for(lambda: is_gone(pid))
    assert state(web, gone) == "cancelled"
    pid = pid_in(shell, "one")
    pause(web, id)
    child.kill()
    child.wait()
    shell.wait_for(lambda: is_gone(pid))
    (shell.folder / "one.go").touch()
    child, web = server(shell)
    assert state(web, id) == "paused"
    pause(web, id, "resume")
    shell.wait_for(lambda: state(web, id) == "completed")  # given back, or lost with the process
    shell.stop(child)
    assert shell.json("verify")["valid"]


harness.main(globals())
