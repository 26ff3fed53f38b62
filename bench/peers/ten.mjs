// ten.mjs - ten steps as sequential code: pawl serve --module bench/peers/ten.mjs
import { step, workflow } from "../../clients/node/durable.mjs";
import { STEPS, work } from "./turn.mjs";

const once = ({ n }) => work(n);

export const ten = workflow({ steps: { once } }, async function ten() {
    let result;
    for (let n = 1; n <= STEPS; n++) result = await step(once, { n });
    return result;
});
