#!/usr/bin/env python3
"""Each example is killed at every commit, continued in a new process, and ends with the same history (E1, E7, E27)."""
import concurrent.futures
import functools
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "house")]
from web import harness  # noqa: E402
from sentences import BUILD, build_compiler  # noqa: E402

GAMES = {
    "buff": 'C buff {"duration_secs":60}\nU 59\nS 1 stack 4\nU 118\nS 2 stack 2\nU 300\n',
    "counter": 'C counter {"iterations":4}\nU 2\nU 60\n',
    "conditional": 'C conditional {}\nU 4\nU 5\n',
    "countdown": 'C examples/countdown {"from":3}\nU 2\nS 1 add 2\nU 9\n',
    "auction": 'C auction {"reserve_cents":5}\nS 1 bid {"bidder":"ann","cents":4}\nU 600\n'
               'S 2 bid {"bidder":"bob","cents":6}\nU 9000\n',
    "trade": 'C trade {"buyer":1,"seller":2}\nS 1 accept 1\nS 2 accept 2\nA 77\n',
    "damage": 'C damage {"health":80,"target":9}\nU 1\nU 60\n',
    "production": 'C production {"pieces":2,"secs_each":2}\nU 1\nS 1 hold null\nU 50\nS 2 continue null\nU 90\n',
    "combat": 'C combat {"target_id":9}\nU 1\nU 60\n',
    "patrol": 'C patrol {"waypoints":2}\nU 5\nS 1 threat_detected 77\nU 8\nU 99\n',
    "quest": 'C quest {"item":5,"kills":1}\nS 1 item_collected 5\nS 2 enemy_killed "wolf"\n',
}
# A tool that ran when its process died has failed with "lost", and is called once more.
LOST = re.compile(r"step\.start:(\w+) step\.fail:\1 ")
FOLDER = tempfile.TemporaryDirectory(prefix="pawl-driver-")
LONG = bool(os.environ.get("PAWL_TEST_LONG"))
POINTS = ("before-commit", "after-commit", "after-ack") if LONG else ("after-commit",)


def play(driver, folder, game, crash=None):
    environment = dict(os.environ, LD_LIBRARY_PATH=str(BUILD), ASAN_OPTIONS="detect_leaks=0")
    if crash:
        environment["PAWL_CRASH_AT"] = crash
    done = subprocess.run([driver, game.split()[1] + " conditional" + (" combat" if "patrol" in game else "")], cwd=folder, input=game.encode(), capture_output=True, timeout=120, env=environment)
    assert done.returncode in (0, -9), (game, crash, done.stdout, done.stderr)
    return done.stdout.decode() if done.returncode == 0 else None


def hits(folder):
    with sqlite3.connect(str(pathlib.Path(folder) / "play.db")) as db:
        found = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'hit'").fetchone()[0]
        return db.execute("SELECT count(*) FROM hit").fetchone()[0] if found else 0


def kill_everywhere(driver, name):
    """How many deaths this example lived through."""
    game, deaths = GAMES[name], 0
    with tempfile.TemporaryDirectory(prefix="pawl-deaths-") as folder:
        wanted, damage = play(driver, folder, game), hits(folder)
    for point in POINTS:
        step = 1 if LONG else 4  # there, each fourth commit, from another one each time
        number, died = random.randint(1, step) - step, True
        while died:
            number += step
            with tempfile.TemporaryDirectory(prefix="pawl-deaths-") as folder:
                died = play(driver, folder, game, "%s:%d" % (point, number)) is None
                found = play(driver, folder, game)
                assert LOST.sub("", found) == wanted, (name, point, number, wanted, found)
                assert hits(folder) == damage, (name, point, number, "the host's rows", damage, hits(folder))
                if died and LONG:
                    subprocess.run([os.path.abspath(harness.PAWL), "--store", "sqlite:play.db", "verify"], cwd=folder,
                                   check=True, capture_output=True)
            deaths += died
    return deaths


@functools.lru_cache(None)
def compiled():
    driver = pathlib.Path(FOLDER.name) / "driver"
    subprocess.run([*build_compiler(), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-g", "-I", harness.ROOT / "include", "-I",
                    harness.ROOT / "examples/code", HERE / "driver.c", "-o", driver, "-L", BUILD, "-lpawl", "-lsqlite3"],
                   check=True)
    return driver


def test_every_example_killed_at_every_commit_ends_the_same(shell):
    driver = compiled()
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        deaths = dict(zip(GAMES, pool.map(lambda name: kill_everywhere(driver, name), GAMES)))
    assert all(count >= (3 if LONG else 1) for count in deaths.values()), deaths


def test_a_call_that_is_killed_in_or_between_attempts_keeps_its_key(shell):
    """X8: killed between attempts, or in one, a call is the same call to its tool: one key, and another attempt."""
    driver, deaths = compiled(), 0
    for number in range(1, 12, 1 if LONG else 2):
        with tempfile.TemporaryDirectory(prefix="pawl-deaths-") as folder:
            game = 'C checkout {"cents":5}\nU 1\nU 60\n'
            deaths += play(driver, folder, game, "after-commit:%d" % number) is None
            found = play(driver, folder, game)
            calls = [line.split() for line in (pathlib.Path(folder) / "calls.txt").read_text().splitlines()]
            assert '{"sent":true,"problem":""}' in found, found
            assert len({key for _, key, _ in calls}) == 1, calls
            attempts = [int(attempt) for _, _, attempt in calls]
            assert attempts == sorted(set(attempts)) and attempts[-1] >= 3, attempts
    assert deaths >= 3, deaths


if __name__ == "__main__":
    harness.main(globals())
