// cpu.mjs - the CPU time of a process and all its descendants, from /proc.
import { readFileSync, readdirSync } from "node:fs";

const TICK = 1 / 100; // seconds; USER_HZ of every Linux there is

/** Of each process: its parent, and the CPU seconds of it and of its children that have ended. */
function processes() {
    const all = new Map();
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
        try {
            const fields = readFileSync(`/proc/${pid}/stat`, "latin1").replace(/^.*\) /s, "").split(" ");
            all.set(Number(pid), { parent: Number(fields[1]), seconds: fields.slice(11, 15).reduce((sum, ticks) => sum + ticks * TICK, 0) });
        } catch { /* it has just ended; its parent has what it used */ }
    }
    return all;
}

/** @param {number[]} roots @returns {number} seconds */
export function cpuSeconds(roots) {
    const all = processes();
    const isOurs = (pid) => pid > 1 && (roots.includes(pid) || isOurs(all.get(pid)?.parent ?? 0));
    return [...all].reduce((sum, [pid, one]) => sum + (isOurs(pid) ? one.seconds : 0), 0);
}
