// tour.mjs - what run_clients.py asks of the Node client.   tour.mjs URL WHAT [WORD]; prints JSON
import * as client from "../../clients/node/pawl_client.mjs";

const [url, what, word] = process.argv.slice(2);
if (what === "url") {
    try {
        new client.Pawl(url, { store: word });
        console.log(JSON.stringify("taken"));
    } catch (error) {
        console.log(JSON.stringify(`${error.name}: ${error.message}`));
    }
    process.exit();
}
const pawl = new client.Pawl(url);
const order = "states: [new, paid]\ninitial_state: new\nterminal_states: [paid]\nterminal_kinds: {paid: success}\n" +
    "transitions:\n  - {from_state: new, action: pay, to_state: paid}\n";

const tours = {
    names: () => Object.getOwnPropertyNames(client.Pawl.prototype).concat(Object.getOwnPropertyNames(Object.getPrototypeOf(client.Pawl.prototype))),
    reasons: () => Object.keys(client),
    async tour() {
        const put = await pawl.definitionPut("node/order", order);
        const { instance_id } = await pawl.instanceCreate({ definition: "node/order", labels: { by: "node" } });
        const wrong = await pawl.instanceFire(instance_id, "ship").catch((error) => error);
        const fired = await pawl.instanceFire(instance_id, "pay", { actor_ref: "ann", expected_sequence: 1 });
        const again = await pawl.instanceFire(instance_id, "pay").catch((error) => error);
        const listed = await pawl.instanceList({ labels: { by: "node" } });
        const [got, made] = await pawl.batch([["instance.get", { instance_id }], ["instance.create", { definition: "node/order" }]]);
        const text = (await pawl.definitionGet("node/order")).text;
        return { put, fired, wrong: [wrong.constructor.name, wrong.reason, wrong.status], again: again.constructor.name, text: text === order,
            listed: listed.instances.map((one) => one.instance_id), got: got.body.current_state, made: made.status,
            declaration: await pawl.instanceDeclaration(instance_id), metrics: (await pawl.metricsGet()).includes("# TYPE") };
    },
    /** What is called in one turn of the event loop: an answer or the class of its rejection each, and how many requests that took. */
    async together() {
        const asked = async () => ((await pawl.metricsGet()).match(/^pawl_operation_seconds_count\{operation="(?:instance|batch).*$/gm) ?? []).sort();
        const { instance_id } = await pawl.instanceCreate({ definition: "order" });
        const before = await asked();
        const calls = [pawl.instanceCreate({ definition: "order", subject_ref: "a" }), pawl.instanceCreate({ definition: "none" }),
            pawl.instanceFire(instance_id, "pay"), pawl.instanceFire(instance_id, "jump"), pawl.instanceFire(instance_id, "ship"),
            pawl.instanceCreate({ definition: "order", instance_metadata: "x".repeat(20000) }),
            pawl.instanceCreate({ definition: "order", idempotencyKey: "k" }), pawl.instanceCreate({ definition: "order", idempotencyKey: "k" })];
        const answers = await Promise.all(calls.map((call) => call.catch((error) => error.constructor.name)));
        return { before, answers, asked: await asked() };
    },
    crowd: () => Promise.all(Array.from({ length: 600 }, (_, i) => pawl.instanceCreate({ definition: "order", subject_ref: String(i) }))),
    create: () => pawl.instanceCreate({ definition: "order", subject_ref: word }),
    async follow() {
        const seen = [];
        for await (const event of pawl.instanceEvents(word, { fromStart: true })) {
            seen.push(event.sequence_number);
            console.error(event.sequence_number);
            if (event.action === "stop") break;
        }
        return seen;
    },
};

console.log(JSON.stringify(await tours[what]()));
pawl.close();
