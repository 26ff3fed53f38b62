"""dbos_ten.py - the side of DBOS in Python: ten steps in this process, each checkpointed in PostgreSQL.   dbos_ten.py URL [CONNECTIONS]"""
import asyncio
import sys
from typing import Any

import psycopg
from dbos import DBOS
from turn import STEPS, side, work

url, connections = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
DBOS(config={"name": "ten", "system_database_url": url, "sys_db_pool_size": connections, "log_level": "ERROR"})


@DBOS.step()
async def once(n: int) -> dict[str, object]:
    return work(n)


@DBOS.workflow()
async def ten() -> dict[str, object]:
    result: dict[str, object] = {}
    for n in range(1, STEPS + 1):
        result = await once(n)
    return result


async def flow() -> Any:
    handle = await DBOS.start_workflow_async(ten)
    return await handle.get_result()


async def proof() -> dict[str, Any]:
    with psycopg.connect(url) as db:
        def one(text: str) -> Any:
            return db.execute(text).fetchone()[0]
        return {"flows": one("select count(*) from dbos.workflow_status where status = 'SUCCESS'"),
                "steps": one("select count(*) from dbos.operation_outputs"),
                "durable": "fsync %s, synchronous_commit %s" % (one("show fsync"), one("show synchronous_commit"))}


async def main() -> None:
    DBOS.launch()
    await side(flow, proof)


asyncio.run(main())
