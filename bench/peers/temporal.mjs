// temporal.mjs - the side of Temporal: a workflow of ten activities, all in this process.   temporal.mjs HOST:PORT PLACES
import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { DefaultLogger, NativeConnection, Runtime, Worker } from "@temporalio/worker";
import { STEPS, side, work } from "./turn.mjs";

const [address, places] = process.argv.slice(2);
const taskQueue = "ten", most = Number(places);

Runtime.install({ logger: new DefaultLogger("ERROR") });
const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }), taskQueue,
    workflowsPath: fileURLToPath(new URL("temporal_flow.mjs", import.meta.url)),
    activities: { work: async (n) => work(n) },
    maxConcurrentActivityTaskExecutions: most, maxConcurrentWorkflowTaskExecutions: most,
});
worker.run();
const client = new Client({ connection: await Connection.connect({ address }) });
let number = 0;

const flow = () => client.workflow.execute("ten", { taskQueue, workflowId: `ten-${process.pid}-${++number}` });

async function proof() {
    const { count } = await client.workflow.count("WorkflowType = 'ten' AND ExecutionStatus = 'Completed'");
    const { events } = await client.workflow.getHandle(`ten-${process.pid}-${number}`).fetchHistory();
    const steps = events.filter((event) => event.activityTaskCompletedEventAttributes).length;
    if (steps !== STEPS) throw new Error(`expected ${STEPS} completed activities of the last flow, found ${steps}`);
    return { flows: Number(count) };
}

side(flow, proof);
