// worker.mjs - a worker of the tests: notes each call in a file.   worker.mjs URL FILE [OPTIONS]
// OPTIONS is JSON: {token, answered: "raise" or "reject", log: "raise"}
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Fail, Pawl, Worker } from "../../clients/node/pawl_client.mjs";

const [url, file, words = "{}"] = process.argv.slice(2);
const options = JSON.parse(words);
const answered = (step, outcome) => {
    if (options.answered === "raise") throw new Error("the callback's own");
    if (options.answered === "reject") return Promise.reject(new Error("the callback's own"));
    appendFileSync(file + ".answered", `${step.tool} ${outcome.status ?? outcome.reason}\n`);
};
const log = options.log === "raise" ? { log: null } : {};
const worker = new Worker(new Pawl(url, { token: options.token }), { lease: "1s", wait: options.wait ?? "500ms", answered, ...log });

worker.tool("note", (args, step) => {
    appendFileSync(file, step.idempotency_key + "\n");
    return { key: step.idempotency_key };
});
worker.tool("stumble", (args, step) => {
    if (step.attempt === 1) throw new TypeError("the first time");
    throw new Fail({ why: "for good" }, { retry: false });
});
worker.tool("long", async (args, step) => {
    const until = Date.now() + 1500; // longer than a lease
    while (Date.now() < until && !step.lost()) await sleep(50);
    return step.lost() ? "lost" : "kept";
});
worker.tool("slow", async (args, step) => {
    step.progress({ done: 1, of: 2 });
    while (!existsSync(file + ".go")) await sleep(20);
    step.progress("x".repeat(3000)); // too large: said in the log, and the step goes on
    return "done";
});

worker.tool("odd", (args) => { // what JSON has no words for
    const round = {};
    round.round = round;
    if (args === 2) throw new Fail(round);
    return [1n, round, null, NaN, () => 1, { deep: [Infinity] }][args];
});
worker.tool("lone", () => "\udcff"); // what only the server refuses
worker.tool("raise", (args) => {
    throw [undefined, Object.create(null), new TypeError("odd \udcff \0 text"), new TypeError("x".repeat(2 << 20) + " the end")][args.which];
});
await worker.run();
