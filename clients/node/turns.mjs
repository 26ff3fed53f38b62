// turns.mjs - the turn protocol (docs/turn-protocol.md): this process takes turns and runs steps for a pawl that started it.

import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { CALL, Fail, lineOf, log, Mistake, NondeterminismError, RETRIES, Run, SIGNAL, START, steps, WORKFLOWS } from "./durable.mjs";
import { Frames } from "./frames.mjs";
import { check, encode } from "./values.mjs";

const PROTOCOL = 1;
const KEPT = 4096; // instances that stay in memory between their turns
const INVALID_REQUEST = 1, NOT_KNOWN = 5;
const WORDS_MAX = 390, MESSAGE_MAX = 64000;
const MOMENT_MS = 1;

// ---- Hello ----

/** The registration: what a definition of code is stored as. */
export function sourceOf(flow) {
    const signals = [...flow.signals.keys()].sort(), calls = [...flow.steps.keys()].sort();
    const more = { calls, externals: [...flow.externals].sort(), children: [...flow.children].sort(), buffered: [...flow.kept].sort() };
    const policies = calls.filter((name) => RETRIES.has(flow.steps.get(name))).map((name) => ({ call: name, ...RETRIES.get(flow.steps.get(name)) }));
    return {
        code: flow.name, version: flow.version, timers: [], signals, vars: [],
        ...Object.fromEntries(Object.entries(more).filter(([, found]) => found.length)),
        ...(policies.length ? { retries: policies } : {}),
        replay: true,
    };
}

const IMPORTS = /\b(?:from|import|require)\s*\(?\s*["'](\.{1,2}\/[^"']+|file:[^"']+)["']/g;

/** The file and what it imports by a relative path: every process of one load has the same. */
function filesOf(file, found = new Map()) {
    if (found.has(file) || !fs.existsSync(file) || !fs.statSync(file).isFile()) return found;
    const text = fs.readFileSync(file, "utf8");
    found.set(file, text);
    for (const [, word] of text.matchAll(IMPORTS)) {
        const next = word.startsWith("file:") ? fileURLToPath(word) : path.resolve(path.dirname(file), word);
        filesOf(next, found);
    }
    return found;
}

function buildOf(main) {
    const digest = crypto.createHash("sha256");
    for (const [name, text] of [...filesOf(main)].sort(([a], [b]) => (a < b ? -1 : 1))) digest.update(`${path.relative(path.dirname(main), name)}\0${text}\0`);
    return digest.digest("hex");
}

function stepsOf() {
    const tools = new Map();
    for (const flow of WORKFLOWS.values()) {
        for (const [name, fn] of flow.steps) {
            if (tools.has(name) && tools.get(name) !== fn) throw new TypeError(`two functions are steps called ${name}; give one of them another name`);
            tools.set(name, fn);
        }
    }
    return tools;
}

export function hello(main) {
    if (!WORKFLOWS.size) return { error: `module '${main}' has no workflow: expected workflow(async function ...)` };
    return { pawl: PROTOCOL, many: 1, build: buildOf(main), language: `node ${process.versions.node}`, types: [...WORKFLOWS.values()].map(sourceOf),
        tools: [...stepsOf().keys()].sort() };
}

// ---- Turns ----

/** The events of each turn: [at, note, events]. Owed ones wait for the turn behind them. */
function groupsOf(events) {
    const groups = [];
    let owed = [];
    for (const event of events) {
        if (event.kind !== 0 && event.owed) {
            owed.push(event);
        } else {
            groups.push([event.at, event.note, event.kind ? [...owed, event] : owed]);
            owed = [];
        }
    }
    return groups;
}

export async function takeTurn(run, at, note, events, isReplayed) {
    run.begin(at, note, isReplayed);
    for (const event of events) await run.take(event);
    return run.end();
}

export async function replay(flow, request) {
    const run = new Run(flow);
    run.id = request.id ?? "";
    if (request.state) await run.resumeFrom(request.state);
    for (const [at, note, events] of groupsOf(request.events)) await takeTurn(run, at, note, events, true);
    run.checkOpen(request.open, request.fresh);
    return run;
}

const cut = (words) => [...words].slice(0, WORDS_MAX).join("");
const refusal = (words) => ({ status: INVALID_REQUEST, message: cut(words) });

export function wordsOf(error) {
    const line = error instanceof NondeterminismError ? "" : lineOf(error?.stack);
    return cut(`${error?.name ?? typeof error}: ${error?.message ?? JSON.stringify(error)}${line ? ` (${line})` : ""}`);
}

/** What is wrong with a payload; "" if it fits. */
export function payloadProblem(flow, name, payload) {
    const found = check(flow.signals.get(name), payload ?? null);
    return found.problem === undefined ? "" : `the payload of '${name}': ${found.problem}`;
}

/** A sender gets what is wrong with what was sent. */
function refuseFresh(flow, fresh) {
    const event = fresh.length === 1 && !fresh[0].owed ? fresh[0] : { kind: 0 };
    if (event.kind === START) {
        const { problem } = flow.bind(event.payload);
        return problem === undefined ? null : refusal(`the input of '${flow.name}': ${problem}`);
    }
    const problem = event.kind === SIGNAL ? payloadProblem(flow, event.name, event.payload) : "";
    return problem ? refusal(problem) : null;
}

export class Server {
    constructor() {
        this.kept = new Map(); // the one that was kept last is last
        this.tools = stepsOf();
    }

    keep(number, run) {
        this.kept.set(number, run);
        if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }

    taken(number) {
        const run = this.kept.get(number);
        this.kept.delete(number);
        return run;
    }

    async turn(request) {
        const flow = WORKFLOWS.get(request.type);
        if (!flow) return { status: NOT_KNOWN, message: `the module has no type '${request.type}'` };
        if (request.check) {
            const problem = payloadProblem(flow, request.name, request.payload);
            return problem ? refusal(problem) : { end: 0 };
        }
        const kept = "have" in request ? this.taken(request.have) : undefined;
        if (!kept && "have" in request) return { need: 1 };
        try {
            return refuseFresh(flow, request.fresh) ?? (await this.goOn(flow, request, kept));
        } catch (error) {
            if (!(error instanceof NondeterminismError || error instanceof Mistake)) log.error(`the workflow ${flow.name} cannot go on`, error);
            return { end: 3, problem: wordsOf(error) };
        }
    }

    async goOn(flow, request, kept) {
        const run = kept ?? (await replay(flow, request));
        run.id = request.id ?? "";
        const answer = await takeTurn(run, request.at, null, request.fresh, false);
        if (answer.end === 0) this.keep(request.keep, run);
        return answer;
    }

    /** How long it took is told if it took any time: quick ones are asked for together. */
    async step(request) {
        const begun = performance.now(), answer = await runStep(this.tools.get(request.tool), request);
        const took = Math.floor(performance.now() - begun);
        return took > MOMENT_MS ? { ...answer, ms: took } : answer;
    }

    answer(request) {
        return "tool" in request ? this.step(request) : this.turn(request);
    }

    /** The turn that the result of a step leads to, where its instance is in memory; null: it will be asked for. */
    async _then({ then, instance, step }, answer) {
        const run = then && "result" in answer ? this.taken(then.have) : undefined;
        if (!run || run.flow.name !== then.type) return null;
        const fresh = [{ kind: CALL, at: then.at, name: step, payload: JSON.parse(JSON.stringify(answer.result)), call: then.call }];
        try {
            const turn = await this.goOn(run.flow, { id: instance, at: then.at, keep: then.keep, fresh }, run);
            return { turn, ...(run.isTimed ? { timed: 1 } : {}) };
        } catch {
            return null; // it is asked for, and says what is wrong then
        }
    }

    /** Steps in their order, and behind them the turns that they lead to. What was answered is sent before it is a moment old. */
    async many(requests, write) {
        const all = [];
        let answers = [], sent = performance.now();
        for (const request of requests) {
            const begun = performance.now();
            if (answers.length && begun - sent >= MOMENT_MS) {
                write({ answers });
                answers = [];
                sent = begun;
            }
            const answer = await this.step(request);
            all.push(answer);
            answers.push(answer);
        }
        write({ answers });
        const turns = [];
        for (let i = 0; i < all.length; i++) turns.push(await this._then(requests[i], all[i]));
        write({ turns });
    }
}

// ---- Steps ----

const infoOf = (request) => ({
    idempotencyKey: request.key ?? "", instanceId: request.instance ?? "", name: request.step ?? request.tool, attempt: request.attempt ?? 1,
});

export async function runStep(fn, request) {
    if (!fn) return { failed: `the module has no step '${request.tool}'`, final: 1 };
    try {
        const result = await steps.run(infoOf(request), async () => fn(request.args ?? {}));
        return { result: encode(result) ?? null };
    } catch (error) {
        if (error instanceof Fail) return { failed: encode(error.error) ?? null, ...(error.retry ? {} : { final: 1 }) };
        log.error(`step ${request.tool} (attempt ${request.attempt ?? 1}) failed`, error);
        return { failed: { type: error?.name ?? typeof error, message: String(error?.message ?? error).slice(0, MESSAGE_MAX) } };
    }
}

// ---- The process ----

/** The file that Node runs is being loaded: wait for it, and for what it awaits. */
async function loaded(main) {
    try {
        await import(pathToFileURL(main));
        return hello(main);
    } catch (error) {
        log.error(`module ${main} cannot be loaded`, error);
        return { error: `module '${main}' cannot be loaded: ${wordsOf(error)}` };
    }
}

export async function main() {
    const file = fs.realpathSync(process.argv[1]);
    const frames = new Frames();
    process.on("unhandledRejection", (error) => log.warn("a promise was rejected, and nothing awaited it", error));
    const first = await loaded(file);
    frames.write(first);
    if (first.error) process.exit(1);
    const server = new Server();
    let isStep = false;
    for (;;) {
        const body = isStep ? await frames.read() : frames.readNow();
        if (body === null) break;
        const request = JSON.parse(body);
        isStep = "tool" in request || "many" in request;
        if ("many" in request) await server.many(request.many, (answer) => frames.write(answer));
        else frames.write(await server.answer(request));
    }
    process.exit(0);
}
