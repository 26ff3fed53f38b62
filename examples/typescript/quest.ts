// quest.ts - is reached by broadcasts of what happens in the world, as far as it has asked for it.
//
// The item may be found while the quest still hunts: that signal is kept until it is awaited. A broadcast without a filter, or a
// signal to this quest alone, may bring any item: the code compares what it got, and waits on until it is the right one.
import { Signal, signal, subscribe, workflow } from "pawl-client/durable";

type Input = { enemy?: string; item?: number; kills?: number };
const input = {
    type: "object",
    properties: { enemy: { type: "string" }, item: { type: "integer" }, kills: { type: "integer" } },
    additionalProperties: false,
};
const enemyKilled = new Signal<string>("enemy_killed", { type: "string" }, { kept: false });
const itemCollected = new Signal<number>("item_collected", { type: "integer" });

export const quest = workflow({ input, signals: [enemyKilled, itemCollected] }, async function quest(given: Input) {
    const { enemy = "wolf", item = 0, kills = 2 } = given;
    subscribe(enemyKilled, enemy);
    subscribe(itemCollected, item);
    for (let killed = 0; killed < kills; killed++) await signal(enemyKilled);
    while ((await signal(itemCollected)) !== item);
    return { completed: true };
});
