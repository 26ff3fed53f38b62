// buff.ts - a buff that stacks and runs out; every stack restarts its time.
import { Signal, select, signal, sleep, workflow } from "pawl-client/durable";

const input = { type: "object", properties: { duration_secs: { type: "integer" } }, additionalProperties: false };
const dispel = new Signal<null>("dispel", { type: "null" }, { kept: false });
const stack = new Signal<number>("stack", { type: "integer" }, { kept: false });

export const buff = workflow({ input, signals: [dispel, stack] }, async function buff({ duration_secs = 60 }: { duration_secs?: number }) {
    let stacks = 1;
    for (;;) {
        const [which, more] = await select({ expire: sleep(duration_secs * 1000, "expire"), dispel: signal(dispel), stack: signal(stack) });
        if (which !== "stack") return { final_stacks: stacks };
        stacks += more;
    }
});
