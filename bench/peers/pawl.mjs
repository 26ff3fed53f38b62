// pawl.mjs - the side of pawl: flows are created over HTTP, their steps done by the worker of clients/node.   pawl.mjs URL PLACES answers|events
import { Pawl, Worker } from "../../clients/node/pawl_client.mjs";
import { STEPS, side, work } from "./turn.mjs";

const [url, places, ends] = process.argv.slice(2);
const pawl = new Pawl(url);
const waiting = new Map(); // instance_id -> who waits for its end
const ended = new Set(); // before its creation was answered

const step = (n) => `  s${n}: {tool: work, args: {n: ${n}}, ${n < STEPS ? "next: s" + (n + 1) : "done: true"}}\n`;
await pawl.definitionPut("ten", "steps:\n" + Array.from({ length: STEPS }, (_, i) => step(i + 1)).join(""));

function end(instance_id) {
    const wake = waiting.get(instance_id);
    if (wake) wake();
    else ended.add(instance_id);
    waiting.delete(instance_id);
}

// The last step's answer is recorded in one commit with the flow's end: the process that did the step knows of it.
function answered({ args, instance_id }, { status }) {
    if (status !== "done") throw new Error(`step ${args.n} of ${instance_id}: expected done, found ${status}`);
    if (args.n === STEPS && ends === "answers") end(instance_id);
}

// Any other process hears of it by the stream of all entries.
async function follow() {
    for await (const { action, instance_id } of pawl.events()) if (action === "finish") end(instance_id);
}

const worker = new Worker(pawl, { places: Number(places), answered });
worker.tool("work", (args) => work(args.n));
worker.run();
if (ends === "events") follow();

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

side(flow, proof);
