"""A store that may only be read: its file, its folder or its disk. Read by another user, for root may write everywhere."""
import os
import re
import shutil
import signal
import subprocess

from harness import EXAMPLES, PAWL, ROOT, Answer, Skip, main

NOBODY = 65534
READER = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
PYTHON = "/usr/bin/python3"  # another user may not see that of the tests


def make_store(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order", "--actor", "ann")
    shell.pawl("fire", "1", "pay")


def forbid(shell):
    """From now on nothing can be written there."""
    for file in shell.folder.iterdir():
        file.chmod(0o444)
    shell.folder.chmod(0o555)


def read(shell, *words, program=None, expect=0):
    done = subprocess.run([program or os.path.abspath(PAWL), *words], cwd=shell.folder, capture_output=True, timeout=120,
                          env=shell.environment(), **READER)
    answer = Answer(done)
    assert expect is None or answer.code == expect, (words, answer)
    assert "Sanitizer" not in answer.err, answer.err
    return answer


def test_a_read_only_store_is_listed_shown_exported_and_verified(shell):
    make_store(shell)
    forbid(shell)
    before = sorted(os.listdir(shell.folder))
    for words, found in ((["list"], "paid"), (["show", "1"], "by ann"), (["history", "1"], "pay"), (["why", "1"], "ship"),
                         (["stats"], "paid"), (["current", "1"], "paid"), (["declaration", "1"], "states"),
                         (["verify"], "valid"), (["verify", "1"], "valid"), (["export"], '"instance"'),
                         (["sql", "select count(*) from pawl_history"], "1"), (["graph", "--instance", "1"], "paid")):
        assert found in read(shell, *words).out, words
    for words in (["fire", "1", "ship"], ["define", str(EXAMPLES / "order.yaml")], ["serve", "--listen", "127.0.0.1:0"]):
        refused = read(shell, *words, expect=3).err
        assert "read-only for this user" in refused and "SQLite code" not in refused, refused
    assert sorted(os.listdir(shell.folder)) == before
    shell.folder.chmod(0o777)  # and where only the file is read-only
    assert "valid" in read(shell, "verify").out and "paid" in read(shell, "list").out


def test_a_store_without_the_right_to_read_it_gets_a_sentence_of_its_own(shell):
    make_store(shell)
    shell.folder.chmod(0o755)
    if READER:
        refused = read(shell, "list", expect=3).err
        assert "may not be read by this user" in refused and "(mode 0600)" in refused, refused
        examined = read(shell, "doctor", expect=3).out
        assert re.search(r"✘ file +\S+pawl\.db, \d+ KiB, of user root, .*; this user may not read it\n", examined), examined
        assert "chmod u+w" not in examined and "may be read" not in examined, examined
    inner = shell.folder / "inner"
    inner.mkdir(mode=0)
    refused = read(shell, "--store", "sqlite:inner/pawl.db", "list", expect=3 if READER else None).err
    assert not READER or "cannot be reached by this user" in refused, refused


def test_a_store_is_not_made_where_this_user_may_not_write(shell):
    if not READER:
        raise Skip("needs root, to call as another user")
    shell.folder.chmod(0o755)
    refused = read(shell, "--store", "sqlite:new.db", "init", expect=3).err
    assert refused == "pawl: storage-failure: cannot make a store at %s: this user may not write in its folder " \
                      "(Permission denied)\n" % (shell.folder.resolve() / "new.db"), refused


def test_the_other_verifier_reads_a_read_only_store(shell):
    if not os.access(PYTHON, os.X_OK):
        raise Skip("no " + PYTHON)
    make_store(shell)
    shutil.copy(ROOT / "tools" / "verify.py", shell.folder)
    forbid(shell)
    assert "valid" in read(shell, "verify.py", "pawl.db", program=PYTHON).out


def test_entries_in_a_log_beside_a_read_only_store_are_not_left_out(shell):
    server, _ = shell.serve()
    make_store(shell)
    shell.stop(server, signal.SIGKILL, expect=None)
    assert (shell.folder / "pawl.db-wal").stat().st_size > 0
    forbid(shell)
    assert "paid" in read(shell, "list").out and "valid" in read(shell, "verify").out
    shell.folder.chmod(0o755)
    (shell.folder / "pawl.db-shm").unlink()
    shell.folder.chmod(0o555)
    refused = read(shell, "list", expect=3).err
    assert "pawl.db-wal" in refused and "copy" in refused, refused


def test_the_other_verifier_does_not_judge_a_store_whose_log_it_cannot_read(shell):
    if not os.access(PYTHON, os.X_OK):
        raise Skip("no " + PYTHON)
    server, _ = shell.serve()
    make_store(shell)
    shell.stop(server, signal.SIGKILL, expect=None)
    (shell.folder / "pawl.db-shm").unlink()
    shutil.copy(ROOT / "tools" / "verify.py", shell.folder)
    forbid(shell)
    for words in (("pawl.db",), ("--json", "pawl.db")):
        refused = read(shell, "verify.py", *words, program=PYTHON, expect=3)
        assert refused.out == "" and "pawl.db-wal" in refused.err and "copy both files" in refused.err, refused


def test_a_writer_that_comes_while_a_read_only_store_is_read_is_noticed(shell):
    if not READER:
        raise Skip("only root can write what this user may only read")
    make_store(shell)
    forbid(shell)
    watch = subprocess.Popen([os.path.abspath(PAWL), "watch", "1"], cwd=shell.folder, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=shell.environment(), **READER)
    shell.children.append(watch)
    assert b"pay" in watch.stdout.readline()
    shell.pawl("fire", "1", "ship")
    out, err = watch.communicate(timeout=60)
    assert watch.returncode == 3 and b"opened for writing" in err, (watch.returncode, out, err)


main(globals())
