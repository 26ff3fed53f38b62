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
