// temporal_flow.mjs - the flow of Temporal's side. Its SDK bundles this file by itself and runs it in a sandbox.
import { proxyActivities } from "@temporalio/workflow";

const STEPS = 10; // as in turn.mjs, which the sandbox does not allow: it uses a clock
const { work } = proxyActivities({ startToCloseTimeout: "1 minute" });

export async function ten() {
    let result;
    for (let n = 1; n <= STEPS; n++) result = await work(n);
    return result;
}
