#!/usr/bin/env python3
"""run_spin.py - the models of the drain (drain.pml), of workers' leases (lease.pml) and of a shard that
nodes own in turn (shard.pml) are searched completely by spin, and each of their buggy twins is rejected. Minutes, so: with PAWL_TEST_LONG=1
only (script/test --all)."""
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
sys.dont_write_bytecode = True
from sentences import main, need, need_long, sh  # noqa: E402

MODELS = pathlib.Path(__file__).resolve().parent
PAN = ["-w24", "-m100000"]

# What spin must say of each twin, as it prints the assertion.
ACKNOWLEDGED_IS_DURABLE = r"fate\[\w+\]!=5\)\|\|\(n==1"
NUMBERS_HAVE_NO_GAPS = r"number==\(log_count\+1\)"
DECIDED_AGAINST_WHAT_IS_TRUE = r"standing==\(number-1\)"
ONE_OWNER = r"owners==1"
ONE_WORKER = r"holders\[\w+\]==0"
A_RESULT_IS_RECORDED_ONCE = r"outcome\[attempt\]=="
ONLY_THE_HOLDER_ANSWERS = r"lease\[w\]==row_lease"
A_DEATH_ENDS_NO_LEASE_ELSEWHERE = r"has_expired\[attempt\]"
WHAT_IS_READY_WAITS = r"row!=\d+\)\|\|queued"
WHAT_RUNS_IS_WATCHED = r"watched==row_lease"
WHAT_FAILED_IS_NOT_THERE = r"call\[tx_op\[n\]\]!="
A_READ_IS_NOT_OLD = r"seen>=floor"
ACKNOWLEDGED_STANDS_ONCE = r"placed\[1\]==1"


def search(model, *defines):
    """What pan says of the model compiled so."""
    need_long("spin")
    need("spin")
    with tempfile.TemporaryDirectory(prefix="pawl-spin-") as folder:
        sh("spin", *("-D" + name for name in defines), "-a", MODELS / model, cwd=folder)
        sh("gcc", "-w", "-O2", "-DSAFETY", "-DVECTORSZ=2048", "-DCOLLAPSE", "-o", "pan", "pan.c", cwd=folder)
        return sh("./pan", *PAN, cwd=folder, timeout=1800)


def expect_sound(model, *defines):
    said = search(model, *defines)
    assert "errors: 0" in said, said
    assert not re.search(r"max search depth too small|out of memory|not completed", said), said
    print("# %s %s: %s" % (model, " ".join(defines), re.search(r"\d+ states, stored", said).group()))
    return said


def expect_whole(said):
    assert not re.search(r"\([1-9]\d* of \d+ states\)", said), "a part of the model is never reached\n" + said


def expect_rejected(twin, assertion, model="drain.pml"):
    said = search(model, "REQUESTS=2", twin)
    assert "errors: 1" in said, "spin sees nothing wrong with %s\n%s" % (twin, said)
    found = re.search(r"assertion violated (.*) \(at depth", said)
    assert found and re.search(assertion, found.group(1)), said


def test_two_callers_two_owners_two_deaths_keep_every_promise():
    expect_whole(expect_sound("drain.pml", "REQUESTS=2", "DEATHS=2"))


def test_three_callers_an_owner_and_its_death_keep_every_promise():
    for ahead in (1, 2):
        expect_sound("drain.pml", "REQUESTS=3", "OWNERS=1", "DEATHS=1", "AHEAD=%d" % ahead)


def test_an_acknowledgement_before_the_commit_is_rejected():
    expect_rejected("BUG_ACK_BEFORE_COMMIT", ACKNOWLEDGED_IS_DURABLE)


def test_a_stale_decision_that_is_committed_is_rejected():
    expect_rejected("BUG_STALE_DECISION", DECIDED_AGAINST_WHAT_IS_TRUE)


def test_a_shared_writer_that_does_not_read_the_tail_is_rejected():
    expect_rejected("BUG_NO_TAIL", NUMBERS_HAVE_NO_GAPS)


def test_a_shared_writer_beside_an_owner_is_rejected():
    expect_rejected("BUG_NO_LOCK", NUMBERS_HAVE_NO_GAPS)


def test_a_second_owner_is_rejected():
    expect_rejected("BUG_TWO_OWNERS", ONE_OWNER)


def test_a_memory_that_outlives_a_failed_commit_is_rejected():
    expect_rejected("BUG_KEEP_MEMORY", r"head==log_count|" + NUMBERS_HAVE_NO_GAPS)


def test_two_workers_two_attempts_a_death_and_two_faults_keep_every_lease():
    expect_whole(expect_sound("lease.pml", "ATTEMPTS=2", "DEATHS=1", "FAULTS=2"))


def test_two_workers_three_attempts_and_two_deaths_keep_every_lease():
    expect_sound("lease.pml", "ATTEMPTS=3", "DEATHS=2", "FAULTS=1")


def test_a_step_handed_out_before_its_start_is_durable_is_rejected():
    expect_rejected("BUG_HAND_OUT_EARLY", ONE_WORKER, "lease.pml")


def test_an_answer_that_is_not_looked_at_again_in_the_drain_is_rejected():
    expect_rejected("BUG_NO_RECHECK", A_RESULT_IS_RECORDED_ONCE, "lease.pml")


def test_an_answer_with_anybodys_lease_is_rejected():
    expect_rejected("BUG_ANY_LEASE", ONLY_THE_HOLDER_ANSWERS, "lease.pml")


def test_a_restart_that_takes_a_remote_workers_step_for_lost_is_rejected():
    expect_rejected("BUG_LOST_AT_RESTART", A_DEATH_ENDS_NO_LEASE_ELSEWHERE, "lease.pml")


def test_a_claim_that_failed_and_is_not_looked_up_is_rejected():
    expect_rejected("BUG_NO_SECOND_LOOK", WHAT_IS_READY_WAITS + "|" + WHAT_RUNS_IS_WATCHED, "lease.pml")


def test_an_expiry_that_met_a_failing_store_and_is_dropped_is_rejected():
    expect_rejected("BUG_TIMEOUT_DROPPED", WHAT_RUNS_IS_WATCHED, "lease.pml")


# ---- A shard that nodes own in turn ----


def search_shard(*defines):
    """With its claim, so that cycles are looked for as well."""
    need_long("spin")
    need("spin")
    with tempfile.TemporaryDirectory(prefix="pawl-spin-") as folder:
        sh("spin", *("-D" + name for name in defines), "-a", MODELS / "shard.pml", cwd=folder)
        sh("gcc", "-w", "-O2", "-DVECTORSZ=2048", "-DCOLLAPSE", "-o", "pan", "pan.c", cwd=folder)
        return sh("./pan", *PAN, "-a", cwd=folder, timeout=1800)


def test_a_shard_that_is_claimed_cut_and_read_keeps_what_was_acknowledged():
    said = search_shard()
    assert "errors: 0" in said and not re.search(r"max search depth too small|out of memory|not completed", said), said
    print("# shard.pml: %s" % re.search(r"\d+ states, stored", said).group())


def test_each_way_to_own_a_shard_wrongly_is_rejected():
    for twin, assertion in (("NO_FENCE", WHAT_FAILED_IS_NOT_THERE), ("NO_BUMP", WHAT_FAILED_IS_NOT_THERE),
                            ("FENCE_OUTSIDE", WHAT_FAILED_IS_NOT_THERE), ("READ_NO_LEASE", A_READ_IS_NOT_OLD),
                            ("RENEW_BLIND", A_READ_IS_NOT_OLD), ("ACK_EARLY", ACKNOWLEDGED_STANDS_ONCE)):
        said = search_shard("BUG_" + twin)
        found = re.search(r"assertion violated (.*) \(at depth", said)
        assert "errors: 1" in said and found and re.search(assertion, found.group(1)), twin + "\n" + said


main(globals())
