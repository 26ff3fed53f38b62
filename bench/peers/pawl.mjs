// pawl.mjs - the side of pawl: the worker of clients/node, and the stream of events, which tells what has ended.   pawl.mjs URL
import { Pawl, Worker } from "../../clients/node/pawl.mjs";
import { STEPS, side, work } from "./turn.mjs";

const pawl = new Pawl(process.argv[2]);
const waiting = new Map(); // instance_id -> who waits for its end
const ended = new Set(); // before its creation was answered

const step = (n) => `  s${n}: {tool: work, args: {n: ${n}}, ${n < STEPS ? "next: s" + (n + 1) : "done: true"}}\n`;
await pawl.definitionPut("ten", "steps:\n" + Array.from({ length: STEPS }, (_, i) => step(i + 1)).join(""));

const worker = new Worker(pawl, { places: 64 });
worker.tool("work", (args) => work(args.n));
worker.run();

async function follow() {
    for await (const { action, instance_id } of pawl.events()) {
        if (action !== "finish") continue;
        const wake = waiting.get(instance_id);
        if (wake) wake();
        else ended.add(instance_id);
        waiting.delete(instance_id);
    }
}
follow();

async function flow() {
    const { instance_id } = await pawl.instanceCreate({ definition: "ten" });
    if (!ended.delete(instance_id)) await new Promise((wake) => waiting.set(instance_id, wake));
    return { n: STEPS };
}

async function proof() {
    const [counts, { records }] = [await pawl.instanceCounts(), await pawl.storeInfo()];
    return { flows: counts.by_status.completed, records };
}

side(flow, proof);
