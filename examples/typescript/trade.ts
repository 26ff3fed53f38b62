// trade.ts - both sides accept within five minutes, then another system moves the goods.
import { Fail, Signal, external, select, signal, sleep, workflow } from "pawl-client/durable";

const input = { type: "object", properties: { buyer: { type: "integer" }, seller: { type: "integer" } }, additionalProperties: false };
const accept = new Signal<number>("accept", { type: "integer" }, { kept: false });
const decline = new Signal<number>("decline", { type: "integer" }, { kept: false });
const uses = { input, signals: [accept, decline], externals: ["transfer_goods"] };

export const trade = workflow(uses, async function trade({ buyer = 0, seller = 0 }: { buyer?: number; seller?: number }) {
    const accepted = new Set<number>();
    while (!accepted.has(buyer) || !accepted.has(seller)) {
        const [which, who] = await select({
            timeout: sleep("5m", "timeout"),
            decline: signal(decline),
            accept: signal(accept),
        });
        if (which === "timeout") throw new Fail("no reply for five minutes");
        if (which === "decline") throw new Fail(`${who} declined`);
        accepted.add(who);
    }
    return { receipt: await external<number>("transfer_goods", { from: seller, to: buyer }) };
});
