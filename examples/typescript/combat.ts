// combat.ts - what it does to the world (reduce) is in the same transaction as its own step on.
import { Signal, reduce, select, signal, sleep, workflow } from "pawl-client/durable";

type Input = { target_id?: number; damage?: number };
const input = { type: "object", properties: { target_id: { type: "integer" }, damage: { type: "integer" } }, additionalProperties: false };
const flee = new Signal<null>("flee", { type: "null" }, { kept: false });

export const combat = workflow({ input, signals: [flee] }, async function combat({ target_id = 0, damage = 50 }: Input) {
    for (let rounds = 1; rounds <= 2; rounds++) {
        reduce("apply_damage", { target: target_id, damage });
        const [which] = await select({ delay: sleep("1s", "delay"), flee: signal(flee) });
        if (which === "flee") return { victory: false, rounds };
    }
    return { victory: true, rounds: 2 };
});
