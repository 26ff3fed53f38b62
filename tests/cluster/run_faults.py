#!/usr/bin/env python3
"""A cluster of three nodes under faults: kill -9 of nodes and of PostgreSQL, nodes that are stopped for longer than their lease,
cuts in one direction and in both, resets, wall clocks that jump; families on every shard. Every answer is in the account, which is
settled against the whole log. With PAWL_TEST_LONG=1 for half an hour. A synchronous standby is promoted. Then planted defects: each
is caught."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli"), str(HERE.parent / "lib")]
import harness  # noqa: E402
import postgres  # noqa: E402
import rig  # noqa: E402

LONG = bool(os.environ.get("PAWL_TEST_LONG"))
SECONDS = 1500 if LONG else 15
SEED = int(os.environ.get("PAWL_TEST_SEED") or 1)  # of the day: another order of faults tomorrow
PAUSE_S = rig.LEASE_MS / 1000
SERVER = None


def server():
    global SERVER
    if SERVER is None:
        if not postgres.program("initdb"):
            raise harness.Skip("there is no PostgreSQL here")
        SERVER = postgres.Private({"synchronous_commit": "on", "max_connections": "100"})
        harness.atexit.register(SERVER.stop)
    return SERVER


def kill(cluster, dice):
    node = dice.choice(cluster.nodes)
    node.kill()
    time.sleep(PAUSE_S * dice.random())
    node.start()


def freeze(cluster, dice):
    node = cluster.owner() or dice.choice(cluster.nodes)
    node.kill(signal.SIGSTOP)
    time.sleep(PAUSE_S * 1.6)
    node.kill(signal.SIGCONT)


def cut_database(cluster, dice):
    node = cluster.owner() or dice.choice(cluster.nodes)
    node.database.hold(*dice.choice([(rig.UP,), (rig.DOWN,), (rig.UP, rig.DOWN)]))
    time.sleep(PAUSE_S * dice.choice([0.4, 1.8]))
    node.database.hold()


def cut_node(cluster, dice):
    node = cluster.owner() or dice.choice(cluster.nodes)
    node.door.hold(*dice.choice([(rig.UP,), (rig.DOWN,), (rig.UP, rig.DOWN)]))
    time.sleep(PAUSE_S * 0.5)
    node.door.hold()


def reset(cluster, dice):
    for node in cluster.nodes:
        node.database.reset()
        node.door.reset()


def kill_database(cluster, dice):
    cluster.postgres.kill()
    time.sleep(0.3 * dice.random())
    cluster.postgres.start()


def jump(cluster, dice):
    """Wall clocks that differ by minutes, and move while calls are under way."""
    for node in cluster.nodes:
        node.set_clock(dice.choice([-600, -3, 0, 0, 3, 600]))
    time.sleep(0.3)


FAULTS = [kill, freeze, cut_database, cut_node, reset, kill_database, jump]


def run(shell, schema, seed, seconds, faults, shards=4):
    cluster = rig.Cluster(shell.folder, server(), schema, words=("--shards", str(shards)))
    try:
        cluster.define()
        families = rig.Families(cluster)
        account, dice = rig.Account(cluster), random.Random(seed)
        until, turn = time.monotonic() + seconds, 0
        with rig.Load(account, seed=seed):
            while time.monotonic() < until:
                faults[turn % len(faults)](cluster, dice)
                turn += 1
                time.sleep(0.5)
            cluster.heal()
            count = account.count
            cluster.wait_for(lambda: account.count > count + 20)
        wrong = account.settle()
        assert not wrong, "seed %d: %s\n%s" % (seed, "\n".join(wrong[:10]), cluster.logs())
        families.settle()
        cluster.stop()
        assert shell.json("--store", server().url + "&schema=" + schema, "verify")["valid"]
        print("# %d acknowledged, %d refused, %d unknown, %d faults; at most %.1f s without an answer" % (
            account.count, len(account.refused), len(account.unknown), turn, account.worst_s))
    finally:
        cluster.end()


def test_nothing_acknowledged_is_lost_or_doubled_and_nothing_refused_happened(shell):
    run(shell, "faults", SEED, SECONDS, random.Random(SEED).sample(FAULTS, len(FAULTS)))


def test_the_same_with_another_order_of_faults(shell):
    if not LONG:
        raise harness.Skip("with PAWL_TEST_LONG=1")
    run(shell, "alone", 1, 90, FAULTS, 1)
    for seed in range(SEED + 1, SEED + 5):
        faults = list(FAULTS)
        random.Random(seed).shuffle(faults)
        run(shell, "faults%d" % seed, seed, 90, faults)


# ---- A standby ----

def test_a_synchronous_standby_that_is_promoted_has_all_that_was_acknowledged(shell):
    if not postgres.program("initdb"):
        raise harness.Skip("there is no PostgreSQL here")
    with postgres.private({"synchronous_commit": "on"}) as primary, postgres.standby(primary) as other:
        cluster = rig.Cluster(shell.folder, primary, "promoted", words=("--shards", "4"))
        try:
            cluster.define()
            account = rig.Account(cluster)
            with rig.Load(account, seed=7):
                cluster.wait_for(lambda: account.count > 150)
                primary.kill()
                other.promote()
                cluster.move_to(other)
                count = account.count
                cluster.wait_for(lambda: account.count > count + 50)
            wrong = account.settle()
            assert not wrong, "\n".join(wrong[:10]) + cluster.logs()
            assert "went-backwards" not in cluster.logs()
            cluster.stop()
            assert shell.json("--store", other.url + "&schema=promoted", "verify")["valid"]
        finally:
            cluster.end()


# ---- Planted defects ----

def stopped_owner(shell, bug, schema):
    """The owner is stopped for longer than its lease; what comes while it sleeps is waiting for it when it goes on."""
    cluster = rig.Cluster(shell.folder, server(), schema, count=2, bug=bug)
    try:
        cluster.define()
        account = rig.Account(cluster, instances=2)
        owner = cluster.owner()
        other = next(node for node in cluster.nodes if node is not owner)
        for n in range(3):
            account.fire(owner, account.ids[0], "before%d" % n, False)
            account.read(owner, account.ids[0])
        owner.kill(signal.SIGSTOP)
        cluster.wait_for(lambda: account.fire(other, account.ids[0], "meanwhile%d" % account.asked[account.ids[0]], False) == "acked")
        asking = [threading.Thread(target=account.fire, args=(owner, account.ids[n % 2], "late%d" % n, False)) for n in range(4)]
        asking += [threading.Thread(target=account.read, args=(owner, account.ids[0])) for _ in range(4)]
        for thread in asking:
            thread.start()
        time.sleep(0.3)
        owner.kill(signal.SIGCONT)
        for thread in asking:
            thread.join()
        until = time.monotonic() + 2 * PAUSE_S
        while time.monotonic() < until and not account.wrong:
            account.read(owner, account.ids[0])
            time.sleep(0.02)
        return account.settle()
    finally:
        cluster.end()


def zombie(shell, bug, schema):
    """A commit is on its way while its sender's lease runs out; it arrives after another node has claimed the shard."""
    cluster = rig.Cluster(shell.folder, server(), schema, count=2, bug=bug)
    try:
        cluster.define()
        account = rig.Account(cluster, instances=1)
        owner, id = cluster.owner(), account.ids[0]
        other = next(node for node in cluster.nodes if node is not owner)
        account.fire(owner, id, "before", False)
        owner.database.hold(rig.UP)
        late = threading.Thread(target=account.fire, args=(owner, id, "late", False))
        late.start()
        cluster.wait_for(lambda: cluster.owner() is other)
        owner.database.hold()
        late.join()
        time.sleep(0.2)
        heard = [account.fire(other, id, "after%d" % n, False) for n in range(3)]
        if heard != ["acked"] * 3:
            account.wrong.append("the new owner could not go on: %s" % heard)
        if not bug:
            cluster.wait_for(owner.is_ready)
        return account.settle()
    finally:
        cluster.end()


def killed_owner(shell, bug, schema):
    cluster = rig.Cluster(shell.folder, server(), schema, count=2, bug=bug)
    try:
        cluster.define()
        account = rig.Account(cluster)
        for turn in range(3):
            with rig.Load(account, keyed=0, seed=turn):
                count = account.count
                cluster.wait_for(lambda: account.count > count + 100)
                owner = cluster.owner()
                owner.kill()
            owner.start()
            cluster.wait_for(owner.is_ready)
            if account.settle():
                break
        return account.wrong
    finally:
        cluster.end()


def test_a_sound_cluster_passes_what_catches_planted_defects(shell):
    assert stopped_owner(shell, "", "sound") == []
    assert zombie(shell, "", "sound1") == []


def is_planted():
    return b"NO_FENCE" in pathlib.Path(harness.PAWL).read_bytes()


def caught(shell, scenario, bug):
    if not is_planted():
        raise harness.Skip("a build with -Dplanted_bugs=true has them")
    wrong = []
    for n in range(3):
        wrong = wrong or scenario(shell, bug, "%s%d" % (bug.lower(), n))
    assert wrong, "%s was not noticed" % bug


def test_a_commit_without_a_fence_is_caught(shell):
    caught(shell, zombie, "NO_FENCE")


def caught_by_a_promise(bug, promise):
    """What no cut of this rig is fine enough for: the promise of a store fails with the defect, and holds without."""
    if not is_planted():
        raise harness.Skip("a build with -Dplanted_bugs=true has them")
    for name, status in (("", 0), (bug, 1)):
        done = subprocess.run([os.path.join(os.environ["PAWL_BUILD"], "tests/test_contract"), promise], capture_output=True, timeout=60,
                              check=False, cwd=harness.ROOT, env={**os.environ, "PAWL_BUG": name, "PAWL_TEST_POSTGRES": server().url})
        assert done.returncode == status, (name, done.stdout.decode()[-1500:])


def test_a_fence_that_is_looked_at_before_the_transaction_is_caught(shell):
    caught_by_a_promise("FENCE_EARLY", "a_commit_after_anothers_claim")


def test_a_look_instead_of_a_claim_is_caught(shell):
    caught_by_a_promise("LOOK_NOT_CLAIM", "after_an_unknown_outcome")


def test_a_lease_that_is_renewed_blindly_is_caught(shell):
    caught(shell, stopped_owner, "BLIND_RENEWAL")


def test_a_stale_read_is_caught(shell):
    caught(shell, stopped_owner, "STALE_READ")


def test_an_answer_before_its_commit_is_caught(shell):
    caught(shell, killed_owner, "ACK_BEFORE_COMMIT")


if __name__ == "__main__":
    harness.main(globals())
