// auction.ts - a bid near the end extends the auction; a bid that is too low is ignored.
import { Fail, Signal, select, signal, sleep, workflow } from "pawl-client/durable";

type Bid = { bidder: string; cents: number };
type Input = { item?: string; reserve_cents?: number; hours?: number };
const fields = {
    type: "object",
    properties: { item: { type: "string" }, reserve_cents: { type: "integer" }, hours: { type: "integer" } },
    additionalProperties: false,
};
const offer = {
    type: "object",
    properties: { bidder: { type: "string", default: "" }, cents: { type: "integer", default: 0 } },
    additionalProperties: false,
};
const bid = new Signal<Bid>("bid", offer, { kept: false });
const withdraw = new Signal<null>("withdraw", { type: "null" }, { kept: false });

export const auction = workflow({ input: fields, signals: [bid, withdraw] }, async function auction(input: Input) {
    const { item = "a lamp", reserve_cents = 1000, hours = 48 } = input;
    let best: Bid = { bidder: "", cents: 0 };
    for (let isOpen = false; ; isOpen = true) { // from the first bid on: an hour of silence ends it
        const quiet = isOpen ? sleep("1h", "going_once") : sleep(hours * 3_600_000, "close");
        const [which, offered] = await select({ quiet, withdraw: signal(withdraw), bid: signal(bid) });
        if (which === "withdraw") throw new Fail(item + " was withdrawn");
        if (which === "quiet") return { sold: isOpen && best.cents >= reserve_cents, best };
        if (offered.cents > best.cents) best = offered;
    }
});
