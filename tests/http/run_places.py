"""A step is started when a thread takes it: what waits for a thread neither times out nor runs once it is over, and what
runs ends with its step."""
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


harness.main(globals())
