// Workflows for run_node.py: each shows one thing that durable code in JavaScript can do. Those of tests/vectors/turns.json are those of
// durable_python.py.
import {
    Fail, Signal, StepError, continueAs, external, gather, instanceId, log, now, patched, random, retries, select, send, signal, sleep, spawn, start, step,
    stepInfo, subscribe, uuid4, workflow,
} from "pawl-client/durable";

const paid = new Signal("paid", { type: "integer" });
const only = (properties, required = []) => ({ type: "object", properties, required, additionalProperties: false });

const price = ({ line }) => 3 * line.count;

function decline({ card }) {
    throw new Fail({ code: "declined", card }, { retry: false });
}

const flaky = retries({ maxAttempts: 3, first: "1s", longest: "2s" }, async function flaky() {
    const { attempt, idempotencyKey } = stepInfo();
    if (attempt < 3) throw new Error(`attempt ${attempt}`);
    return [idempotencyKey, String(attempt)];
});

async function later({ name }) {
    console.log("printed by a step"); // to stderr: 1 is the protocol's
    await new Promise((resolve) => setTimeout(resolve, 1));
    return "later " + name;
}

// Steps at once, an async step, an error that is caught.
export const order = workflow({ steps: { price, decline, flaky, later } }, async function order({ lines }) {
    const prices = await gather(lines.map((line) => step(price, { line })));
    let reason;
    try {
        await step(decline, { card: "4711" });
    } catch (error) {
        if (!(error instanceof StepError)) throw error;
        reason = error.error.code;
    }
    return { sum: prices.reduce((a, b) => a + b, 0), reason, late: await step(later, { name: lines[0].sku }), tries: await step(flaky) };
});

const refund = () => stepInfo().idempotencyKey;

export const keyed = workflow({ steps: { refund } }, async function keyed() {
    return [await step(refund, {}, { key: "refund" }), await step(refund, {}, { key: "refund" })];
});

const invoiceInput = only({ cents: { type: "integer", default: 100 } });

export const invoice = workflow({ input: invoiceInput, signals: [paid, "write_off"] }, async function invoice({ cents }) {
    let got = 0, reminders = 0;
    while (got < cents) {
        const [which, value] = await select({ paid: signal(paid), write_off: signal("write_off"), remind: sleep("7d", "remind") });
        if (which === "paid") got += value;
        else if (which === "write_off") break;
        else if (++reminders === 4) throw new Fail("does not pay");
    }
    return { paid: got, reminders };
});

export const chance = workflow(async function chance({ rounds = 3 }) {
    const seen = [uuid4()];
    for (let i = 0; i < rounds; i++) {
        await sleep("1s");
        log.info("round", i);
        seen.push(now(), random(), instanceId());
    }
    return seen;
});

export const ticker = workflow(async function ticker({ count = 0, most = 10 }) {
    for (let i = 0; i < 3; i++) {
        if (count >= most) return count;
        await sleep("1s", "tick");
        count++;
    }
    return continueAs({ count, most });
});

const ended = [];

async function watch(name) {
    try {
        await sleep("2s", name);
    } finally {
        ended.push(name);
    }
    return name;
}

export const helpers = workflow(async function helpers() {
    ended.length = 0;
    const [which, value] = await select({ slow: () => watch("slow"), both: gather([() => watch("a"), sleep("1s")]), long: () => watch("b") });
    await sleep("1s");
    return [which, ...[value].flat().map(String), ...[...ended].sort()];
});

export const child = workflow({ input: only({ n: { type: "integer" } }, ["n"]) }, async function child({ n }) {
    if (n === 99) throw new Fail("too many");
    await sleep((n + 1) * 1000);
    return n * n;
});

export const parent = workflow({ children: [child] }, async function parent({ count = 3 }) {
    return await gather(Array.from({ length: count }, (_, n) => spawn(child, { n })));
});

export const sender = workflow(async function sender({ to }) {
    start(child, { n: 5 });
    send(to, "paid", 60);
    await sleep("1s");
    send(to, paid, 40);
    return "sent";
});

export const human = workflow({ externals: ["transfer"] }, async function human() {
    return await external("transfer", { from: 1 });
});

export const hunter = workflow({ signals: ["killed"] }, async function hunter({ enemy = "wolf" }) {
    subscribe("killed", enemy);
    return String(await signal("killed"));
});

function die() {
    process.kill(process.pid, "SIGKILL");
}

// What goes wrong.
export const wild = workflow({ signals: ["go"], steps: [die] }, async function wild({ mode = "" }) {
    await signal("go");
    if (mode === "crash") die();
    while (mode === "loop");
    if (mode === "bug") undefined.mistake();
    if (mode === "step") await step(die);
    if (mode === "undeclared") await step(decline, { card: "1" });
    if (mode === "foreign") await new Promise((resolve) => setTimeout(resolve, 20));
    if (mode === "nothing") await new Promise(() => {});
    if (mode === "loose") await select({ it: watch("loose"), late: sleep("1s") });
    if (mode === "nan") return NaN;
    await sleep("1s");
    return mode;
});

export const changing = workflow({ signals: ["one", "two"] }, async function changing() {
    let said = "old";
    await signal("one");
    if (patched("greeting")) said = "new";
    await signal("two");
    return said;
});

// Promise.all and race are those of JavaScript: what loses goes on.
export const promises = workflow(async function promises() {
    const all = await Promise.all([watch("a"), watch("b")]);
    const first = await Promise.race([watch("c"), sleep("1s", "d").then(() => "d")]);
    const settled = await Promise.allSettled([sleep("1s", "e"), Promise.reject(new Error("own"))]);
    return [...all, first, ...settled.map((one) => one.status)];
});
