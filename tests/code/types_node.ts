// types_node.ts - what tsc --strict must accept, and what it must refuse (run_node.py).
import {
    type Future, Fail, Signal, StepError, continueAs, external, gather, log, now, patched, random, retries, select, send, signal, sleep, spawn, start, step, stepInfo, workflow,
} from "pawl-client/durable";
import { Kit } from "pawl-client/testing";
import { z } from "zod";

const charge = retries({ maxAttempts: 5, first: "1s", final: ["declined"] }, async function charge(args: { cents: number }): Promise<{ receipt: string }> {
    return { receipt: stepInfo().idempotencyKey + args.cents };
});
const ping = (): number => 7;
const paid = new Signal("paid", z.number().int());
const moved = new Signal<{ x: number }>("moved", { type: "object" });

export const order = workflow({ input: z.object({ cents: z.number().default(100), note: z.string().optional() }), signals: [paid, moved, "stop"], steps: [charge, ping] },
    async function order({ cents, note }) {
        const whole: number = cents;
        const text: string | undefined = note;
        const { receipt } = await step(charge, { cents });
        const count: number = await step(ping);
        const [which, value] = await select({ paid: signal(paid), moved: signal(moved), late: sleep("7d", "late"), helper: () => helper(1) });
        if (which === "paid") {
            const more: number = value;
            return { receipt, sum: whole + more + count, text };
        }
        if (which === "moved") return { receipt, sum: value.x, text };
        if (which === "helper") return { receipt: value, sum: 0, text };
        const none: undefined | void = value;
        return { receipt: String(none), sum: random() + now().getTime(), text };
    });

async function helper(n: number): Promise<string> {
    await sleep(n);
    return String(n);
}

export const parent = workflow({ children: [order] }, async function parent({ count }: { count: number }) {
    const one: Future<{ receipt: string; sum: number; text: string | undefined }> = spawn(order, { cents: 5 });
    const [child, text, nothing] = await gather([one, () => helper(2), sleep(1)]);
    const receipt: string = child.receipt + text;
    const rest: void = nothing;
    const all: number[] = await gather([1, 2].map((n) => sleep(n).then(() => n)));
    start(order, { cents: 7 });
    start(order, {});
    send("id", paid, 5);
    log.info("said", receipt, rest, all, await external<{ ok: boolean }>("transfer"));
    if (patched("more")) throw new Fail({ code: 7 }, { retry: false });
    try {
        await one;
    } catch (error) {
        if (error instanceof StepError) log.warn(error.step, error.error);
    }
    return continueAs({ count: count + 1 });
});

export async function refused() {
    // @ts-expect-error: it takes cents
    await step(charge, { euro: 5 });
    // @ts-expect-error: it needs its argument
    await step(charge);
    // @ts-expect-error: a payload is a number
    send("id", paid, "lots");
    // @ts-expect-error: cents are a number
    spawn(order, { cents: "5" });
    // @ts-expect-error: a promise cannot be cancelled
    await select({ it: helper(1) });
    const kit = new Kit({ steps: { charge: ({ cents }: { cents: number }) => ({ receipt: String(cents) }) } });
    const id: string = await kit.start(parent, { count: 1 });
    // @ts-expect-error: its input is a count
    await kit.start(parent, { cents: 1 });
    await kit.signal(id, paid, 7);
    await kit.advance("8d");
    return [kit.result(id), kit.history(id)];
}
