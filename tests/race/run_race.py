#!/usr/bin/env python3
"""run_race.py - several processes at one store: a server and command lines; command lines and
linked programs (racer.c) without one; a linked program beside a server; whoever comes after an
owner that died. Nothing forks: entries are numbered 1..N, and every success is one of them.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))
import rig  # noqa: E402

BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", rig.ROOT / "build"))
RACER = str(BUILD / "tests" / "racer")
TIMES = 5 if rig.LONG else 1


def cli(folder, *words):
    code, out, err = rig.run_cli(folder, *words, "--json")
    assert code == 0, "%s: exit %d, %s%s" % (words, code, out, err)
    return json.loads(out)


def new_lamp(folder):
    pathlib.Path(folder, "lamp.yaml").write_text(rig.LAMP)
    cli(folder, "define", "lamp.yaml")
    return cli(folder, "start", "lamp")["instance_id"]


class Racer:
    """A linked program that stands at the line; go() starts it."""

    def __init__(self, folder, instance, action, count, expected, mark):
        self.child = subprocess.Popen(
            [RACER, "sqlite:store.db", instance, action, str(count), str(expected), mark],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = self.child.stdout.readline().decode()

    def go(self):
        self.child.stdin.write(b"go\n")
        self.child.stdin.flush()

    def results(self):
        """[(status, number, mark)]"""
        out, err = self.child.communicate(timeout=120)
        assert b"Sanitizer" not in err and b"broken promise" not in err, err.decode()
        lines = [line.split() for line in out.decode().splitlines()]
        return [(status, int(number), mark) for status, number, mark in lines]


def type_fires(folder, instance, action, count, mark, results):
    """The same, from the command line."""
    for i in range(count):
        code, out, err = rig.run_cli(folder, "fire", instance, action, "--json", "--payload",
                                     json.dumps({"mark": "%s-%d" % (mark, i)}))
        answer = json.loads(out) if out else {}
        status = "ok" if code == 0 else answer.get("reason", "exit %d: %s" % (code, err))
        results.append((status, answer.get("sequence_number", 0), "%s-%d" % (mark, i)))


def send_fires(client, instance, action, count, mark, results):
    """The same, over HTTP."""
    for i in range(count):
        status, answer = client.call("POST", "/v1/instances/%s/fire" % instance,
                                     {"action": action, "payload": {"mark": "%s-%d" % (mark, i)}})
        results.append(("ok" if status == 200 else answer["reason"],
                        answer.get("sequence_number", 0), "%s-%d" % (mark, i)))


def race(jobs, racers=()):
    """Start all at once, wait for all; what they were told."""
    results = []
    threads = [threading.Thread(target=function, args=(*arguments, results))
               for function, *arguments in jobs]
    for one in [*threads]:
        one.start()
    for one in racers:
        one.go()
    for one in threads:
        one.join()
    for one in racers:
        results.extend(one.results())
    return results


def check_history(folder, instance, results):
    """Every success is the entry it was told to be, and there is no other."""
    entries = cli(folder, "history", instance)["entries"]
    numbers = [e["sequence_number"] for e in entries]
    assert numbers == list(range(1, len(entries) + 1)), numbers
    told = sorted((number, mark) for status, number, mark in results if status == "ok")
    there = [(e["sequence_number"], e["payload"]["mark"]) for e in entries]
    assert told == there, "told and there differ: %s" % sorted(set(told) ^ set(there))[:6]
    return len(entries)


def test_many_command_lines_and_linked_programs_at_one_machine(folder):
    lamp = new_lamp(folder)
    jobs = [(type_fires, folder, lamp, "switch", 6 * TIMES, "cli%d" % i) for i in range(3)]
    racers = [Racer(folder, lamp, "switch", 40 * TIMES, 0, "linked%d" % i) for i in range(3)]
    results = race(jobs, racers)
    refused = [r for r in results if r[0] != "ok"]
    assert not refused, refused[:3]
    assert check_history(folder, lamp, results) == (3 * 6 + 3 * 40) * TIMES


def test_of_many_that_race_for_one_transition_one_succeeds(folder):
    for turn in range(3 * TIMES):
        lamp = new_lamp(folder)
        jobs = [(type_fires, folder, lamp, "break", 1, "cli%d" % i) for i in range(3)]
        racers = [Racer(folder, lamp, "break", 1, 0, "linked%d" % i) for i in range(3)]
        results = race(jobs, racers)
        assert sorted(r[0] for r in results) == ["ok"] + ["terminal"] * 5, (turn, results)
        assert check_history(folder, lamp, results) == 1


def expect_one_winner(folder, lamp, results, losers):
    """D38: one success, the others a named rejection, one entry."""
    statuses = sorted(r[0] for r in results)
    assert statuses.count("ok") == 1 and len(statuses) == 8, statuses
    assert set(statuses) - {"ok"} <= set(losers), statuses
    assert check_history(folder, lamp, results) == 1
    assert cli(folder, "show", lamp)["next_sequence_number"] == 2


def test_of_eight_processes_that_share_a_store_without_an_owner_one_succeeds(folder):
    for _ in range(2 * TIMES):
        lamp = new_lamp(folder)
        racers = [Racer(folder, lamp, "break", 1, 0, "linked%d" % i) for i in range(8)]
        expect_one_winner(folder, lamp, race([], racers), ["terminal"])


def test_of_eight_command_lines_beside_a_server_one_succeeds(folder):
    lamps = [new_lamp(folder) for _ in range(TIMES)]
    server = rig.Server(folder)
    for lamp in lamps:
        jobs = [(type_fires, folder, lamp, "break", 1, "cli%d" % i) for i in range(8)]
        expect_one_winner(folder, lamp, race(jobs), ["terminal"])
    server.stop()
    for lamp in lamps:
        assert len(cli(folder, "history", lamp)["entries"]) == 1


def test_of_eight_that_race_on_both_sides_of_an_owners_death_one_succeeds(folder):
    """Some go through the server, some come while it is being killed, some after it."""
    lamp = new_lamp(folder)
    server = rig.Server(folder)
    early = [Racer(folder, lamp, "break", 1, 0, "linked%d" % i) for i in range(2)]  # in-use
    threads, results = [], []
    for i in range(6):
        threads.append(threading.Thread(target=type_fires, args=(folder, lamp, "break", 1, "cli%d" % i, results)))
        threads[-1].start()
        if i == 2:
            server.kill()
    for thread in threads:
        thread.join()
    late = [Racer(folder, lamp, "break", 1, 0, "late%d" % i) for i in range(2)]
    results += race([], late)
    for racer in early:
        racer.child.communicate()
    entries = cli(folder, "history", lamp)["entries"]
    assert len(entries) == 1, entries
    told = [r for r in results if r[0] == "ok"]
    # Whoever spoke to the dying server may never have heard how it went; nobody else is told ok.
    assert len(told) <= 1 and all(r[2] == entries[0]["payload"]["mark"] for r in told), (told, entries)
    assert [r[0] for r in results if r[2].startswith("late")].count("ok") + len(
        [r for r in results if r[2].startswith("late") and r[0] == "terminal"]) == 2, results


def test_of_many_that_expect_the_same_number_one_succeeds(folder):
    lamp = new_lamp(folder)
    racers = [Racer(folder, lamp, "switch", 5, 1, "linked%d" % i) for i in range(4)]
    results = race([], racers)
    assert sorted(r[0] for r in results) == ["conflict"] * 19 + ["ok"], results
    assert check_history(folder, lamp, results) == 1


def test_a_server_and_command_lines_write_one_store_at_once(folder):
    lamp = new_lamp(folder)
    server = rig.Server(folder)
    jobs = [(type_fires, folder, lamp, "switch", 6 * TIMES, "cli%d" % i) for i in range(2)]
    jobs += [(send_fires, server.client(), lamp, "switch", 60 * TIMES, "http%d" % i) for i in range(3)]
    results = race(jobs)
    refused = [r for r in results if r[0] != "ok"]
    assert not refused, refused[:3]
    assert check_history(folder, lamp, results) == (2 * 6 + 3 * 60) * TIMES
    server.stop()
    check_history(folder, lamp, results)


def test_a_linked_program_beside_a_server_is_told_that_the_store_is_in_use(folder):
    lamp = new_lamp(folder)
    before = Racer(folder, lamp, "switch", 3, 0, "before")  # opened when nobody owned it
    server = rig.Server(folder)
    after = Racer(folder, lamp, "switch", 3, 0, "after")
    if after.first.startswith("in-use"):
        assert server.address in after.first and str(server.child.pid) in after.first, after.first
        after.child.communicate()
        results = race([], [before])
    else:
        results = race([], [before, after])
    assert {r[0] for r in results} == {"in-use"}, results
    assert check_history(folder, lamp, []) == 0
    server.stop()


def test_whoever_comes_after_an_owner_that_died_goes_on(folder):
    for _ in range(2 * TIMES):
        lamp = new_lamp(folder)
        server = rig.Server(folder)
        results = []
        send_fires(server.client(), lamp, "switch", 30, "http", results)
        server.child.send_signal(signal.SIGKILL)  # rows lag behind the log now
        server.kill()
        racers = [Racer(folder, lamp, "switch", 10, 0, "linked%d" % i) for i in range(2)]
        results += race([(type_fires, folder, lamp, "switch", 2, "cli")], racers)
        assert {r[0] for r in results} == {"ok"}, results
        assert check_history(folder, lamp, results) == 52
        server = rig.Server(folder)
        send_fires(server.client(), lamp, "break", 1, "last", results)
        assert check_history(folder, lamp, results) == 53
        server.stop()


def test_two_servers_can_not_own_one_store(folder):
    new_lamp(folder)
    first = rig.Server(folder)
    second = rig.Server(folder)
    assert second.address is None
    assert second.child.wait(60) == 3
    second.close()
    assert first.address in pathlib.Path(folder, "server.err").read_text()
    first.stop()


def test_many_that_make_the_store_at_once_make_one(folder):
    pathlib.Path(folder, "lamp.yaml").write_text(rig.LAMP)
    results = []
    threads = [threading.Thread(target=lambda: results.append(
        rig.run_cli(folder, "define", "lamp.yaml"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r[0] for r in results] == [0] * 6, results
    assert cli(folder, "show", new_lamp(folder))["version"] == 1
    lamp = new_lamp(folder)
    assert check_history(folder, lamp, []) == 0
    assert not [f for f in os.listdir(folder) if "-new-" in f]


def main():
    passed = failed = 0
    chosen = sys.argv[1:]
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (chosen and not any(c in name for c in chosen)):
            continue
        words = name[5:].replace("_", " ")
        with tempfile.TemporaryDirectory(prefix="pawl-race-") as folder:
            try:
                test(folder)
                rig.verify(folder)
                passed += 1
                print("ok - " + words, flush=True)
            except Exception:
                failed += 1
                print("not ok - " + words, flush=True)
                traceback.print_exc(file=sys.stdout)
    print("# %d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
