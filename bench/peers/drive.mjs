// drive.mjs - lets the sides take turns and prints what came of it.
//   drive.mjs [--turns N] [--seconds S] [--flight N] [--json FILE] -- SIDE PID WORD... [-- SIDE PID WORD...]...
// SIDE.mjs is run with its words; PID is its server, whose CPU time counts with the side's. Each side of pawl (pawl, pawl-node,
// pawl-python) is held against the best of the others in its language.

import { fork } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { cpuSeconds } from "./cpu.mjs";
import { STEPS } from "./turn.mjs";

const PATIENCE = 60000; // milliseconds that a side may be late
const PAUSE = 500; // milliseconds between turns: what the last side left to do behind its answers is done
const GATE = 3, STRETCH = 10; // DESIGN.md, section 7

// ---- Asking ----

function parse(words) {
    const [options, ...sides] = words.join("\0").split("\0--\0").map((part) => part.split("\0"));
    const { values } = parseArgs({ args: options.filter((word) => word !== "--"), options: { turns: { type: "string", default: "5" },
        seconds: { type: "string", default: "4" }, flight: { type: "string", default: "64" }, json: { type: "string" } } });
    return { turns: Number(values.turns), milliseconds: Number(values.seconds) * 1000, flight: Number(values.flight), json: values.json,
        sides: sides.map(([name, pid, ...rest]) => ({ name, server: Number(pid), words: rest, crowd: [], alone: [] })) };
}

async function ask(side, question) {
    side.child.send(question);
    return answer(side, question.milliseconds);
}

/** Its next message; an error if it ends or stalls instead. */
function answer(side, milliseconds = 0) {
    return new Promise((resolve, reject) => {
        const fail = (what) => reject(new Error(`the side of ${side.name} ${what}`));
        const late = setTimeout(() => fail("does not answer"), milliseconds + PATIENCE);
        const exit = (code) => fail("has ended with " + code);
        side.child.once("exit", exit).once("message", (told) => (clearTimeout(late), side.child.off("exit", exit), resolve(told)));
    });
}

async function start(side) {
    side.child = fork(new URL(side.name + ".mjs", import.meta.url), side.words, { stdio: ["ignore", 2, 2, "ipc"] });
    await answer(side);
}

// ---- Turns ----

const load = () => Number(readFileSync("/proc/loadavg", "latin1").split(" ")[0]);

async function turn(side, flight, milliseconds) {
    const before = cpuSeconds([side.server, side.child.pid]);
    const told = await ask(side, { flight, milliseconds });
    const cpu = cpuSeconds([side.server, side.child.pid]) - before;
    await sleep(PAUSE);
    side.flows = (side.flows ?? 0) + told.flows;
    return { ...told, flowsPerSecond: told.flows / told.seconds, cpuPerStep: cpu / told.flows / STEPS * 1e6, load: load() };
}

/** All sides, one after the other; each begins a round as often as the others. */
async function round(sides, number, { flight, milliseconds }) {
    for (let i = 0; i < sides.length; i++) {
        const side = sides[(i + number) % sides.length];
        side.crowd.push(await turn(side, flight, milliseconds));
        side.alone.push(await turn(side, 1, milliseconds / 2));
        process.stderr.write(`turn ${number + 1}, ${side.name}: ${(side.crowd.at(-1).flowsPerSecond * STEPS).toFixed(0)} steps/s, load ${load()}\n`);
    }
}

/** What the stores say; a side that answered for more than was recorded has measured nothing. */
async function prove(side) {
    side.proof = await ask(side, { proof: true });
    const { flows, steps } = side.proof;
    if (flows !== side.flows || (steps ?? flows * STEPS) !== flows * STEPS)
        throw new Error(`${side.name}: ${side.flows} flows were answered for, its store has ${flows} with ${steps ?? "?"} steps`);
}

// ---- Telling ----

function at(numbers, share) {
    const sorted = [...numbers].sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

const median = (numbers) => at(numbers, 0.5);

function summary({ name, crowd, alone }) {
    const took = crowd.flatMap((one) => one.took), single = alone.flatMap((one) => one.took);
    return { name, steps: median(crowd.map((one) => one.flowsPerSecond)) * STEPS, flows: median(crowd.map((one) => one.flowsPerSecond)),
        p50: at(took, 0.5), p99: at(took, 0.99), aloneP50: at(single, 0.5), aloneP99: at(single, 0.99),
        cpu: median(crowd.map((one) => one.cpuPerStep)) };
}

const isOurs = ({ name }) => name.startsWith("pawl");

const isPython = ({ name }) => name.endsWith("-python");

/** Each side of pawl against the best of the others in the same language; without one, of all. */
function compare(sides, summaries) {
    return summaries.filter(isOurs).flatMap((mine) => {
        const all = summaries.filter((one) => !isOurs(one)), alike = all.filter((one) => isPython(one) === isPython(mine));
        const others = alike.length ? alike : all;
        if (!others.length) return [];
        const best = others.reduce((a, b) => (b.steps > a.steps ? b : a)), theirs = sides.find((side) => side.name === best.name);
        const ratios = sides.find((side) => side.name === mine.name).crowd.map((one, i) => one.flowsPerSecond / theirs.crowd[i].flowsPerSecond);
        return [{ name: mine.name, best: best.name, ratio: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios), cpu: best.cpu / mine.cpu,
            alone: mine.aloneP50 / Math.min(...others.map((one) => one.aloneP50)) }];
    });
}

function print(summaries, compared, { flight, turns }, loads) {
    const row = (cells) => console.log(cells.map((cell, i) => (i ? String(cell).padStart(12) : cell.padEnd(15))).join(""));
    console.log(`\n${STEPS}-step flow, ${flight} at once; medians of ${turns} turns, load ${Math.min(...loads)} to ${Math.max(...loads)}\n`);
    row(["", "steps/s", "flows/s", "p50 ms", "p99 ms", "CPU us/step", "alone p50", "alone p99"]);
    for (const s of summaries)
        row([s.name, s.steps.toFixed(0), s.flows.toFixed(0), s.p50.toFixed(1), s.p99.toFixed(1), s.cpu.toFixed(0), s.aloneP50.toFixed(1), s.aloneP99.toFixed(1)]);
    for (const one of compared) {
        const verdict = one.ratio >= STRETCH ? "stretch" : one.ratio >= GATE ? "gate" : "missed";
        console.log(`\n${one.name} : ${one.best} = ${one.ratio.toFixed(1)} x steps/s (${one.least.toFixed(1)} to ${one.most.toFixed(1)});` +
            ` ${one.cpu.toFixed(1)} x in CPU; alone p50 ${one.alone.toFixed(2)} of the best; gate ${GATE} x, stretch ${STRETCH} x: ${verdict}`);
    }
}

function metrics(summaries, compared) {
    const all = {};
    for (const { name, ...numbers } of summaries) for (const [what, number] of Object.entries(numbers)) all[`peers_${name}_${what}`] = number;
    for (const { name, ratio, cpu, alone } of compared) {
        const what = name === "pawl" ? "flow" : name.replace("pawl-", "");
        Object.assign(all, { [`peers_${what}_vs_best`]: ratio, [name === "pawl" ? "peers_cpu_vs_best" : `peers_${what}_cpu_vs_best`]: cpu,
            ...(name === "pawl" ? {} : { [`peers_${what}_alone_vs_best`]: alone }) });
    }
    return all;
}

const asked = parse(process.argv.slice(2));
for (const side of asked.sides) {
    await start(side);
    await turn(side, asked.flight, asked.milliseconds); // warm
}
for (let number = 0; number < asked.turns; number++) await round(asked.sides, number, asked);
for (const side of asked.sides) await prove(side);
const summaries = asked.sides.map(summary);
const compared = compare(asked.sides, summaries);
print(summaries, compared, asked, asked.sides.flatMap((side) => side.crowd.map((one) => one.load)));
if (asked.json) writeFileSync(asked.json, JSON.stringify(metrics(summaries, compared), null, 2) + "\n");
for (const side of asked.sides) side.child.disconnect();
