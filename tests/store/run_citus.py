"""A store whose tables are spread over the workers of Citus, by shard. It needs a PostgreSQL with that extension, which no package
of Debian, npm or PyPI has: PAWL_TEST_POSTGRES_BIN names the programs of one (docs/internals/cluster.md says how it was built)."""
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in ("cli", "http")]
import harness  # noqa: E402
import postgres  # noqa: E402
import run_postgres as one  # noqa: E402
from web import Web  # noqa: E402

SETTINGS = {"shared_preload_libraries": "citus", "citus.node_conninfo": "sslmode=prefer", "wal_level": "logical",
            "max_prepared_transactions": "20", "max_connections": "100"}
TRUST = "local all all trust\nhost all all 127.0.0.1/32 trust\n"


def has_citus():
    config = postgres.program("pg_config")
    if not config or not postgres.program("initdb"):
        return False
    folder = subprocess.run([config, "--sharedir"], capture_output=True, text=True, check=True).stdout.strip()
    return (pathlib.Path(folder) / "extension/citus.control").exists()


def join(coordinator, workers):
    for each in (coordinator, *workers):
        pathlib.Path(each.data, "pg_hba.conf").write_text(TRUST)
        each.sql("SELECT pg_reload_conf()")
        each.sql("CREATE EXTENSION citus")
    coordinator.sql("SELECT citus_set_coordinator_host('127.0.0.1', %d)" % coordinator.port)
    for worker in workers:
        coordinator.sql("SELECT citus_add_node('127.0.0.1', %d)" % worker.port)


def spread(coordinator, schema):
    """What docs/howto/scale.md says."""
    coordinator.sql("SELECT create_reference_table('%s.pawl_' || name) FROM unnest(ARRAY['store', 'node']) name" % schema)
    coordinator.sql("SELECT create_distributed_table('%s.pawl_shard', 'shard', shard_count => 8)" % schema)
    coordinator.sql(
        "SELECT create_distributed_table(format('%%I.%%I', table_schema, table_name), 'shard', colocate_with => '%s.pawl_shard')"
        " FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)"
        " WHERE table_schema = '%s' AND column_name = 'shard' AND table_type = 'BASE TABLE' AND table_name <> 'pawl_shard'"
        % (schema, schema))


def work(web):
    web.ask("PUT", "/v1/definitions/order", one.ORDER, headers={"Content-Type": "application/yaml"})
    web.ask("PUT", "/v1/definitions/f", one.FLOW, headers={"Content-Type": "application/yaml"})
    orders = [web.create(definition="order", subject_ref="customer/%d" % n) for n in range(12)]
    flows = [web.create(definition="f", input={"n": n}, labels={"n": str(n)}) for n in range(12)]
    for id in orders:
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"}, {"Idempotency-Key": id})
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "pay"}, {"Idempotency-Key": id})
    assert web.post("/v1/signals", {"name": "go"}, {"Idempotency-Key": "go"}).json["delivered"] == 12
    return orders + flows


def test_shards_lie_on_workers_of_citus_and_a_node_is_followed_by_another(shell):
    if not has_citus():
        raise harness.Skip("PAWL_TEST_POSTGRES_BIN names no PostgreSQL with Citus")
    with postgres.private(SETTINGS) as coordinator, postgres.private(SETTINGS) as first, postgres.private(SETTINGS) as second:
        join(coordinator, (first, second))
        store = coordinator.url + "&schema=far&lease=1500"
        child, _ = shell.serve("--store", store, "--shards", "8")
        shell.stop(child)
        spread(coordinator, "far")
        child, address = shell.serve("--store", store)
        ids = work(Web(address))
        held = coordinator.sql("SELECT count(DISTINCT nodeport) FROM citus_shards WHERE table_name = 'far.pawl_log'::regclass")
        assert held == "2", held
        other, there = shell.serve("--store", store)
        child.kill()
        child.wait()
        web = Web(there)
        shell.wait_for(lambda: web.post("/v1/instances", {"definition": "order"}).status == 201)
        shell.wait_for(lambda: web.get("/v1/instances/counts?definition=f").json["by_state"] == {"completed": 12})
        assert {row["instance_id"] for row in web.get("/v1/instances?limit=100").json["instances"]} >= set(ids)
        shell.stop(other)
        root = shell.json("--store", store, "verify")
        assert root["valid"], root
        assert shell.json("copy", store, "sqlite:back.db")["root"] == root["root"]


if __name__ == "__main__":
    harness.main(globals())
