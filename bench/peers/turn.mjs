// turn.mjs - what every side does in its turn: flows in a closed loop, each begun when another has ended.
//
// A side is a process of its own: the app, with the ten steps in it, that starts flows and hears of their ends. It is asked
// over IPC for a turn {flight, milliseconds} and answers {flows, seconds, took}; asked for {proof: true} it answers what its
// store says of all flows so far, and dies when the channel closes.

import { performance } from "node:perf_hooks";

export const STEPS = 10;

/** The work of a step: next to nothing, with a small JSON for its result. */
export const work = (n) => ({ n, at: "step " + n });

/** Flows, `flight` of them at once, until the time is up; those under way are waited for. */
async function turn(flow, flight, milliseconds) {
    const took = [], begin = performance.now(), until = begin + milliseconds;
    const lane = async () => {
        while (performance.now() < until) {
            const started = performance.now(), result = await flow();
            if (result?.n !== STEPS) throw new Error(`expected the result of step ${STEPS}, found ${JSON.stringify(result)}`);
            took.push(performance.now() - started);
        }
    };
    await Promise.all(Array.from({ length: flight }, lane));
    return { flows: took.length, seconds: (performance.now() - begin) / 1000, took };
}

/** @param {() => Promise<{n: number}>} flow one flow from its start to its end
 *  @param {() => Promise<{flows: number, steps?: number, durable: string}>} proof what the store says has been done */
export function side(flow, proof) {
    process.on("disconnect", () => process.exit(0));
    process.on("message", async (asked) => process.send(asked.proof ? await proof() : await turn(flow, asked.flight, asked.milliseconds)));
    process.send("ready");
}
