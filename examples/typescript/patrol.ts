// patrol.ts - walks waypoints until it sees a threat, fights (a child), walks on. Uses combat.ts.
import { Fail, Signal, select, signal, sleep, spawn, workflow } from "pawl-client/durable";
import { combat } from "./combat.ts";

const input = { type: "object", properties: { waypoints: { type: "integer" } }, additionalProperties: false };
const threatDetected = new Signal<number>("threat_detected", { type: "integer" }, { kept: false });
const standDown = new Signal<null>("stand_down", { type: "null" }, { kept: false });
const uses = { input, signals: [threatDetected, standDown], children: [combat] };

export const patrol = workflow(uses, async function patrol({ waypoints = 3 }: { waypoints?: number }) {
    let waypoint = 0;
    let fights = 0;
    await sleep("1s", "start_patrol");
    while (waypoint < waypoints) {
        const [which, enemy] = await select({
            arrival: sleep("10s", "arrival"),
            stand_down: signal(standDown),
            threat: signal(threatDetected),
        });
        if (which === "stand_down") break;
        if (which === "arrival") {
            waypoint++;
            continue;
        }
        const outcome = await spawn(combat, { target_id: enemy });
        fights++;
        if (!outcome.victory) throw new Fail(`lost against ${enemy} after ${outcome.rounds} rounds`);
    }
    return { waypoint, fights };
});
