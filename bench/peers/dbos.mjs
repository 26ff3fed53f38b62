// dbos.mjs - the side of DBOS: ten steps in this process, each checkpointed in PostgreSQL.   dbos.mjs URL [CONNECTIONS]
import { DBOS } from "@dbos-inc/dbos-sdk";
import pg from "pg";
import { STEPS, side, work } from "./turn.mjs";

const [url, connections = "20"] = process.argv.slice(2);

const ten = DBOS.registerWorkflow(async () => {
    let result;
    for (let n = 1; n <= STEPS; n++) result = await DBOS.runStep(async () => work(n), { name: "s" + n });
    return result;
}, { name: "ten" });

DBOS.setConfig({ name: "ten", systemDatabaseUrl: url, systemDatabasePoolSize: Number(connections), logLevel: "error" });
await DBOS.launch();

async function flow() {
    const handle = await DBOS.startWorkflow(ten)();
    return handle.getResult();
}

async function proof() {
    const client = new pg.Client(url);
    await client.connect();
    const one = async (text) => Object.values((await client.query(text)).rows[0])[0];
    const told = { flows: Number(await one("select count(*) from dbos.workflow_status where status = 'SUCCESS'")),
        steps: Number(await one("select count(*) from dbos.operation_outputs")),
        durable: `fsync ${await one("show fsync")}, synchronous_commit ${await one("show synchronous_commit")}` };
    await client.end();
    return told;
}

side(flow, proof);
