// pawl_code.mjs - the sides of durable code: pawl-node.mjs and pawl-python.mjs. The server runs the module of ten steps itself, in processes
// of its own; this one starts flows, and hears of their ends by the stream of all entries.   pawl-node.mjs URL
import { Pawl } from "../../clients/node/pawl_client.mjs";
import { STEPS, side } from "./turn.mjs";

const pawl = new Pawl(process.argv[2]);
const waiting = new Map(); // instance_id -> who waits for its end
const ended = new Set(); // before its creation was answered

async function follow() {
    for await (const { action, instance_id } of pawl.events()) {
        if (action !== "finish") continue;
        const wake = waiting.get(instance_id);
        if (wake) wake();
        else ended.add(instance_id);
        waiting.delete(instance_id);
    }
}

async function flow() {
    const { instance_id } = await pawl.instanceCreate({ definition: "ten" });
    if (!ended.delete(instance_id)) await new Promise((wake) => waiting.set(instance_id, wake));
    return { n: STEPS }; // proof() asks the store
}

async function proof() {
    const { by_status } = await pawl.instanceCounts();
    const { instances } = await pawl.instanceList({ limit: 1 });
    if (instances[0].result.n !== STEPS) throw new Error(`expected the result of step ${STEPS}, found ${JSON.stringify(instances[0])}`);
    return { flows: by_status.completed };
}

follow();
side(flow, proof);
