// durable.mjs - durable code in JavaScript and TypeScript: what a workflow is written with.
//
//     import { sleep, step, workflow } from "pawl-client/durable";
//
// A workflow is an async function. Its locals, loops and helpers are ordinary; the program may die at any `await` and goes on there.
// Nothing but the events that came is stored: after a death the code runs again from its last checkpoint with those events, and comes
// to the same place. So it must do the same again: time, chance and the world come through now(), random() and step().
// docs/durable-typescript.md is the page; nothing but Node 18 is needed.

import { AsyncLocalStorage } from "node:async_hooks";
import { webcrypto } from "node:crypto";
import { inspect } from "node:util";

import { Chance } from "./chance.mjs";
import { guardStdout } from "./frames.mjs";
import { check, checkSchema, encode } from "./values.mjs";

// ---- What can go wrong ----

const textOf = (error) => (typeof error === "string" ? error : JSON.stringify(error));

/** The step, or the workflow, has failed with this error (any JSON). Of a step: { retry: false } ends its attempts. */
export class Fail extends Error {
    constructor(error, { retry = true } = {}) {
        super(textOf(error));
        this.name = new.target.name;
        this.error = error;
        this.retry = retry;
    }
}

/** A step has failed, and its attempts are over. `error` is what it failed with, `step` its name. */
export class StepError extends Fail {
    constructor(step, error) {
        super(error);
        this.step = step;
        this.message = `${step} failed: ${textOf(error)}`;
    }
}

/** A child has failed, or was cancelled ("child-cancelled"). */
export class ChildError extends StepError {}

/** The code, replayed, did not come to where it was. Names the line and the entry. */
export class NondeterminismError extends Error {
    name = "NondeterminismError";
}

/** The code asks for what it may not: the instance is paused, and the words say why. */
export class Mistake extends Error {
    name = "Mistake";
}

/** What was awaited has been cancelled, as the losers of a select() are. */
export class Cancelled extends Mistake {
    name = "Cancelled";
}

const UNITS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000, w: 604800000 };

/** Milliseconds of a duration: a number is milliseconds, a text is "250ms", "90s", "5m", "12h", "7d" or "2w". */
export function milliseconds(duration) {
    if (typeof duration === "number" && Number.isFinite(duration)) return duration;
    const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(String(duration));
    if (!found) throw new TypeError(`a duration: expected milliseconds or a text like "90s", "5m", "7d", found ${textOf(duration)}`);
    return Number(found[1]) * UNITS[found[2]];
}

// ---- Where code runs: a scope is a workflow, or an arm of it that can be cancelled ----

const here = new AsyncLocalStorage();

class Scope {
    constructor(run, parent) {
        this.run = run;
        this.parent = parent;
        this.isEnded = false;
        this.parts = new Set(); // futures that are not done, and arms
    }

    get isOver() {
        return this.isEnded || (this.parent?.isOver ?? false);
    }

    cancel() {
        this.isEnded = true;
        for (const one of [...this.parts]) one.cancel();
    }
}

function scopeHere() {
    const scope = here.getStore();
    if (!scope) throw new Mistake("this is only possible inside a workflow");
    if (scope.run.isOutside) {
        scope.run.broken = "the workflow went on between its turns: it awaited what is not pawl's (a timer of Node, a request, a file); that belongs in a step";
        throw new Mistake(scope.run.broken);
    }
    if (scope.isOver) throw new Cancelled("this part of the workflow was cancelled");
    return scope;
}

const OWN = new URL(".", import.meta.url).href;

/** file:line of the author's own code that a stack went through; "" where there is none. */
export function lineOf(stack) {
    for (const line of String(stack ?? "").split("\n").slice(1)) {
        const found = /\(?((?:file:\/\/|\/|[A-Za-z]:\\)[^()]*):(\d+):\d+\)?$/.exec(line);
        if (found && !found[1].includes("node:internal") && !isOwn(found[1])) return `${decodeURI(found[1].replace(/^file:\/\//, ""))}:${found[2]}`;
    }
    return "";
}

const isOwn = (file) => /^(durable|turns|elsewhere|testing|values|chance|frames)\.mjs$/.test(file.split("/").pop()) && (file.startsWith("file:") ? file : "file://" + file).startsWith(OWN);

/** Something that has begun and may be awaited: a step, a timer, a signal, a child. It is a promise that can be cancelled. */
export class Future {
    constructor(scope, label) {
        this.scope = scope;
        this.label = label;
        this.isDone = false;
        this.childId = null;
        this.promise = new Promise((resolve, reject) => Object.assign(this, { _resolve: resolve, _reject: reject }));
        this.promise.catch(() => {}); // who awaits it hears of it
        scope.parts.add(this);
        Error.captureStackTrace((this.trace = {}), Future);
    }

    get [Symbol.toStringTag]() {
        return "Promise";
    }

    then(fulfilled, rejected) {
        return this.promise.then(fulfilled, rejected);
    }

    catch(rejected) {
        return this.promise.catch(rejected);
    }

    finally(settled) {
        return this.promise.finally(settled);
    }

    /** It is no longer wanted: a timer is disarmed, a step is withdrawn, a child is cancelled. */
    cancel() {
        if (this.isDone) return;
        this.scope.run.forget(this);
        this.fail(new Cancelled(`${this.label} was cancelled`));
    }

    settle(value) {
        if (this._isLast()) this._resolve(value);
    }

    fail(error) {
        if (this._isLast()) this._reject(error);
    }

    _isLast() {
        if (this.isDone) return false;
        this.scope.parts.delete(this);
        return (this.isDone = true);
    }

    place() {
        return lineOf(this.trace.stack);
    }
}

/** An async function that runs beside others: an arm of gather() or select(). Cancelled, it gets `Cancelled` where it waits. */
class Arm extends Future {
    constructor(scope, fn) {
        super(scope, fn.name ? `${fn.name}()` : "an arm");
        this.inner = new Scope(scope.run, scope);
        here.run(this.inner, async () => fn()).then((value) => this.settle(value), (error) => this.fail(error));
    }

    cancel() {
        if (this.isDone) return;
        super.cancel();
        this.inner.cancel();
    }
}

/** Several futures as one: what gather() and select() give. */
class Group extends Future {
    constructor(scope, label, members) {
        super(scope, label);
        this.members = members;
    }

    cancel() {
        if (this.isDone) return;
        super.cancel();
        for (const one of this.members) one.cancel();
    }
}

// ---- The types ----

/** A signal with what its payload must be: const paid = new Signal("paid", z.number()); const cents = await signal(paid). */
export class Signal {
    /** { kept: false }: one that comes while the code does not await it is refused (not-awaiting), instead of kept until it does. */
    constructor(name, payload, { kept = true } = {}) {
        checkSchema(payload, `the signal ${name}`);
        this.name = name;
        this.payload = payload;
        this.kept = kept;
    }
}

const nameOf = (what) => (typeof what === "string" ? what : (what?.flow?.name ?? what?.name));

/** What a workflow has: its name, its input, and what it may use. */
class Flow {
    constructor(fn, options) {
        const { name = fn.name, version = 1, input, signals = [], steps = [], children = [], externals = [] } = options;
        if (typeof name !== "string" || !name) throw new TypeError("workflow(): the function has no name; say workflow({ name: \"...\" }, fn)");
        checkSchema(input, `the input of ${name}`);
        Object.assign(this, { fn, name, version, input });
        this.signals = new Map([...signals].map((one) => (typeof one === "string" ? [one, undefined] : [one.name, one.payload])));
        this.kept = new Set([...signals].filter((one) => typeof one === "string" || one.kept).map(nameOf));
        this.steps = new Map((Array.isArray(steps) ? steps.map((one) => [one.name, one]) : Object.entries(steps)));
        this.children = new Set([...children].map(nameOf));
        this.externals = new Set(externals);
        for (const [step, one] of this.steps) {
            if (typeof one !== "function") throw new TypeError(`workflow ${name}: expected functions as steps, found ${typeof one}`);
            if (!step) throw new TypeError(`workflow ${name}: a step has no name; say steps: { name: fn }`);
        }
    }

    stepName(fn) {
        if (this.steps.get(fn?.name) === fn) return fn.name;
        return [...this.steps].find(([, one]) => one === fn)?.[0];
    }

    /** The input as the function gets it: { value }, or { problem }. */
    bind(given) {
        const value = given ?? {};
        if (typeof value !== "object" || Array.isArray(value)) return { problem: `expected an object, found ${textOf(value)}` };
        return check(this.input, value);
    }
}

export const WORKFLOWS = new Map();
export const RETRIES = new WeakMap();

/** Make a durable workflow of an async function: workflow(fn), or workflow({ input, signals, steps, ... }, fn). Its name is the
 *  function's, its input the one argument. Calling it runs it as a helper, inside another workflow. */
export function workflow(options, fn) {
    if (fn === undefined) [options, fn] = [{}, options];
    if (typeof fn !== "function") throw new TypeError(`workflow(): expected an async function, found ${typeof fn}`);
    const flow = new Flow(fn, options);
    const made = Object.assign((input) => fn(input), { flow });
    const line = lineOf(new Error().stack);
    const before = WORKFLOWS.get(flow.name);
    if (before && before.file !== line.replace(/:\d+$/, "")) throw new TypeError(`workflow(): ${flow.name} is there already, in ${before.file}`);
    flow.file = line.replace(/:\d+$/, "");
    WORKFLOWS.set(flow.name, flow);
    return made;
}

/** How a step is tried again: maxAttempts in all, the delay doubles from `first` to `longest`; errors in `final` end it. */
export function retries({ maxAttempts = 3, first = "1s", longest = "60s", final = [] }, fn) {
    RETRIES.set(fn, { max: maxAttempts, first: Math.round(milliseconds(first)), longest: Math.round(milliseconds(longest)), final: [...final] });
    return fn;
}

// ---- One instance ----

export const START = 1, TIMER = 2, SIGNAL = 3, CALL = 4, CALL_FAILED = 5, CHILD = 6, CHILD_FAILED = 7;
const KINDS = { 1: "start", 2: "timer", 3: "signal", 4: "call", 5: "call failed", 6: "child", 7: "child failed" };
const RESTARTS_MAX = 1000; // of one turn
const quoted = (name) => `'${name}'`;

/** Until all that can run has run: what waits for promises alone is done before the loop of Node goes on. */
const drained = () => new Promise((resolve) => setImmediate(resolve));

/** The code of one instance, and what it waits for. What a turn did is what has changed between its begin() and end(). */
export class Run {
    constructor(flow) {
        this.flow = flow;
        this.timers = new Map(); // name: { future, due }
        this.signals = new Map(); // name: futures
        this.calls = [];
        this.armed = new Map();
        this.awaited = new Set();
        this.begun = new Map();
        this.numbers = this.at = this.events = 0;
        this.id = "";
        this.isReplaying = this.isFirst = false;
        this.isOutside = true;
        this.broken = "";
        this.oldNote = {};
        this.note = {};
        this.patches = new Set();
        this.chance = null;
        this.subscriptions = new Map();
        this.sends = [];
        this.reduces = [];
        this.main = this.root = this.checkpoint = this.again = null;
    }

    // -- a turn --

    begin(at, note, isReplaying) {
        Object.assign(this, { at, oldNote: note ?? {}, note: {}, isReplaying, isTimed: false, checkpoint: null, sends: [], reduces: [] });
    }

    start(input) {
        const bound = this.flow.bind(input);
        if (bound.problem !== undefined) throw new Mistake(`the input of '${this.flow.name}': ${bound.problem}`);
        const scope = (this.root = new Scope(this, null));
        const main = (this.main = { isDone: false, value: undefined, failure: null });
        const end = (how) => {
            if (this.isOutside) this.broken = "the workflow ended between its turns: it awaited what is not pawl's, which belongs in a step";
            Object.assign(main, { isDone: true, ...how });
        };
        here.run(scope, async () => this.flow.fn(bound.value)).then((value) => end({ value }), (error) => end({ failure: { error } }));
    }

    /** An event, and everything that can run because of it. */
    async take(event) {
        if (this.broken) throw new Mistake(this.broken);
        this.isOutside = false;
        try {
            this.feed(event);
            await this.goOn();
        } finally {
            this.isOutside = true;
        }
        if (this.broken) throw new Mistake(this.broken);
    }

    async goOn() {
        await drained();
        for (let i = 0; this.again !== null; i++) {
            if (i === RESTARTS_MAX) throw new Mistake(`continueAs() was called ${RESTARTS_MAX} times in one turn, and nothing was awaited`);
            if (this.main.isDone) throw new Mistake("continueAs() was not awaited: say `return continueAs(...)`");
            this.restart();
            await drained();
        }
    }

    restart() {
        const { input } = this.again;
        this.again = null;
        this.root.isEnded = true;
        for (const one of [this.timers, this.signals, this.patches]) one.clear();
        this.calls = [];
        this.chance = null;
        this.note = {};
        this.oldNote = {};
        this.checkpoint = { args: input, at: this.at };
        this.isTimed = true;
        this.isReplaying = false;
        this.start(input);
    }

    /** From a checkpoint: as if continueAs() had just been called. */
    async resumeFrom(state) {
        this.numbers = state.calls;
        this.subscriptions = new Map(Object.entries(state.subscriptions ?? {}));
        this.begin(state.at, state.note, true);
        this.isOutside = false;
        try {
            this.start(state.args);
            await this.goOn();
        } finally {
            this.isOutside = true;
        }
        this.end();
    }

    feed(event) {
        this.events++;
        this.isFirst = event.kind === START;
        if (event.kind === START) this.start(event.payload);
        else if (event.kind === TIMER) this.fire(event);
        else if (event.kind === SIGNAL) this.receive(event);
        else this.answer(event);
    }

    fire(event) {
        const future = this.armed.get(event.name);
        if (!future) throw this.lost(event);
        this.armed.delete(event.name);
        if (this.timers.get(event.name)?.future === future) this.timers.delete(event.name);
        future.settle(undefined);
    }

    receive(event) {
        const waiting = this.signals.get(event.name);
        if (!this.awaited.has(event.name) || !waiting?.length) throw this.lost(event);
        this.awaited.delete(event.name);
        const future = waiting.shift();
        if (!waiting.length) this.signals.delete(event.name);
        const found = check(this.flow.signals.get(event.name), event.payload ?? null);
        if (found.problem !== undefined) throw new Mistake(`the payload of '${event.name}': ${found.problem}`);
        future.settle(found.value);
    }

    answer(event) {
        const call = this.begun.get(event.call);
        if (!call || call.name !== event.name) throw this.lost(event);
        this.begun.delete(event.call);
        this.calls = this.calls.filter((one) => one !== call);
        call.future.childId = event.child ?? null;
        if (event.kind === CHILD_FAILED) call.future.fail(new ChildError(call.name, event.payload ?? null));
        else if (event.kind === CALL_FAILED) call.future.fail(new StepError(call.name, event.payload ?? null));
        else call.future.settle(event.payload ?? null);
    }

    forget(future) {
        for (const [name, row] of this.timers) if (row.future === future) this.timers.delete(name);
        this.calls = this.calls.filter((call) => call.future !== future);
        for (const [name, waiting] of this.signals) {
            const left = waiting.filter((one) => one !== future);
            if (left.length) this.signals.set(name, left);
            else this.signals.delete(name);
        }
    }

    /** What the turn changed, as the answer has it. What it began gets its number here. */
    end() {
        if (this.main?.isDone) return this.finish();
        const base = this.numbers;
        const isOpen = new Set(this.calls);
        const dropped = [
            ...[...this.armed.keys()].filter((name) => !this.timers.has(name)).map((name) => ["disarm", name, 0]),
            ...[...this.awaited].sort().filter((name) => !this.signals.has(name)).map((name) => ["leave", name, 0]),
            ...[...this.begun].filter(([, call]) => !isOpen.has(call)).map(([number]) => ["end", number]),
        ];
        const timers = [...this.timers].filter(([name, row]) => this.armed.get(name) !== row.future).map(([name, row]) => ["arm", name, row.due, 0]);
        const signals = [...this.signals.keys()].filter((name) => !this.awaited.has(name)).map((name) => this.awaitEffect(name));
        const effects = { timers, signals, calls: this.beginCalls(), dropped, sends: this.sends, reduces: this.reduces };
        this.armed = new Map([...this.timers].map(([name, row]) => [name, row.future]));
        this.awaited = new Set(this.signals.keys());
        this.begun = new Map(this.calls.map((call) => [call.number, call]));
        if (!this.armed.size && !this.awaited.size && !this.begun.size) {
            throw new Mistake("the workflow waits for nothing that pawl knows: it awaits a promise of its own; what takes time or asks the world is "
                + "a sleep(), a signal() or a step()");
        }
        return { end: 0, keeps: 1, ...Object.fromEntries(Object.entries(effects).filter(([, rows]) => rows.length)), ...this.kept(base) };
    }

    beginCalls() {
        const fresh = this.calls.filter((call) => !call.number);
        for (const call of fresh) call.number = ++this.numbers;
        return fresh.map(({ name, args, key, spawn }) => ({
            name,
            ...(args === undefined || isEmpty(args) ? {} : { args }),
            ...(key ? { key } : {}),
            ...(spawn ? { spawn } : {}),
        }));
    }

    /** What is stored with the turn: subscriptions, a checkpoint, a note. */
    kept(base) {
        const out = {};
        const noted = Object.keys(this.note).length ? { note: this.note } : {};
        if (this.subscriptions.size) {
            out.subscriptions = [...this.subscriptions].flatMap(([name, found]) => found.map((one) => ["await", name, 0, one]));
        }
        if (!this.checkpoint) return { ...out, ...noted };
        const subscriptions = this.subscriptions.size ? { subscriptions: Object.fromEntries(this.subscriptions) } : {};
        return { ...out, state: { ...this.checkpoint, calls: base, ...noted, ...subscriptions } };
    }

    awaitEffect(name) {
        const found = this.subscriptions.get(name);
        return found ? ["await", name, 0, found[0]] : ["await", name, 0];
    }

    finish() {
        const { value, failure } = this.main;
        const more = { ...(this.sends.length ? { sends: this.sends } : {}), ...(this.reduces.length ? { reduces: this.reduces } : {}) };
        if (!failure) return { end: 1, value: encode(value) ?? null, ...more };
        if (failure.error instanceof Fail) return { end: 2, value: encode(failure.error.error) ?? null, ...more };
        throw failure.error;
    }

    // -- is it where it was? --

    describe() {
        const calls = [...this.begun].map(([number, call]) => `${quoted(call.name)} (call ${number})`);
        return [...[...this.armed.keys()].map((name) => `timer ${quoted(name)}`), ...[...this.awaited].sort().map((name) => `signal ${quoted(name)}`),
            ...calls].join(", ") || "nothing";
    }

    /** file:line where it waits: of what it began last. */
    place() {
        const futures = [...this.armed.values(), ...[...this.signals.values()].flat(), ...this.calls.map((call) => call.future)];
        return futures.filter((one) => !one.isDone).map((one) => one.place()).filter(Boolean).pop() ?? "its beginning";
    }

    lost(event) {
        const what = `${KINDS[event.kind] ?? "?"} ${quoted(event.name ?? "")}${event.call ? ` (call ${event.call})` : ""}`;
        return new NondeterminismError(`entry ${event.seq ?? "?"} brings ${what}, and the code does not wait for it: it waits for ${this.describe()} at `
            + `${this.place()}; what it does must follow from its input and its events alone, and a change under running instances goes behind patched()`);
    }

    /** Has the replayed code come to what is recorded as open? Events whose turn is owed have spent what they were for. */
    checkOpen(open, fresh) {
        const owed = fresh.filter((event) => event.owed);
        const timers = new Set([...open.timers, ...owed.filter((event) => event.kind === TIMER).map((event) => event.name)]);
        const signals = new Set([...open.signals, ...owed.filter((event) => event.kind === SIGNAL).map((event) => event.name)]);
        const calls = new Map([...open.calls, ...owed.filter((event) => event.call).map((event) => [event.call, event.name])]);
        const isSame = areSame(timers, this.armed) && areSame(signals, this.awaited) && areSame(calls, this.begun)
            && [...calls].every(([number, name]) => this.begun.get(number).name === name);
        if (isSame) return;
        const recorded = [...[...timers].sort().map((name) => `timer ${quoted(name)}`), ...[...signals].sort().map((name) => `signal ${quoted(name)}`),
            ...[...calls].map(([number, name]) => `${quoted(name)} (call ${number})`)];
        throw new NondeterminismError(`after ${this.events} events the code waits for ${this.describe()} at ${this.place()}, and recorded is that it waits `
            + `for ${recorded.join(", ") || "nothing"}; a change under running instances goes behind patched()`);
    }
}

const isEmpty = (args) => args !== null && typeof args === "object" && !Array.isArray(args) && Object.keys(args).length === 0;
const areSame = (wanted, found) => wanted.size === found.size && [...wanted.keys()].every((key) => found.has(key));

// ---- What a workflow calls ----

function declared(isThere, words, run, option, example) {
    if (!isThere) throw new Mistake(`${words}: the workflow ${run.flow.name} does not declare it; say workflow({ ${option}: [${example}] }, ...)`);
}

function begin(scope, label, call) {
    const future = new Future(scope, label);
    scope.run.calls.push({ ...call, future, number: 0 });
    return future;
}

/** Call a plain function, once, outside of the workflow: it may do anything. It gets the one argument; its result is recorded.
 *  { key } is an idempotency key of the author's own. */
export function step(fn, args, { key } = {}) {
    const scope = scopeHere();
    const name = scope.run.flow.stepName(fn);
    declared(name, `step(${fn?.name ?? fn})`, scope.run, "steps", fn?.name ?? "...");
    return begin(scope, `step(${name})`, { name, args: encode(args), key });
}

/** Wait until another program answers: step.complete, or `pawl complete`. */
export function external(name, args) {
    const scope = scopeHere();
    declared(scope.run.flow.externals.has(name), `external("${name}")`, scope.run, "externals", `"${name}"`);
    return begin(scope, `external("${name}")`, { name, args: encode(args) });
}

/** Start a child, a workflow or any definition by its name, and wait for its result. It is cancelled with its parent. */
export function spawn(child, input = {}) {
    const scope = scopeHere(), name = nameOf(child);
    declared(scope.run.flow.children.has(name), `spawn(${name})`, scope.run, "children", typeof child === "string" ? `"${name}"` : name);
    return begin(scope, `spawn(${name})`, { name, args: encode(input), spawn: 1 });
}

function freeTimer(run, name) {
    let found = name;
    for (let number = 2; run.timers.has(found); number++) found = `${name}_${number}`;
    return found;
}

/** A timer of this length: milliseconds, or a text like "90s" or "7d". It runs on while the program is dead. */
export function sleep(duration, name = "sleep") {
    const scope = scopeHere(), run = scope.run;
    const after = Math.max(1, Math.round(milliseconds(duration)));
    const future = new Future(scope, `sleep(${textOf(duration)})`);
    run.timers.set(freeTimer(run, name), { future, due: run.at + after });
    run.isTimed = true;
    return future;
}

/** Wait for a signal; its payload is the result. One that came before is kept, and taken in order. */
export function signal(what) {
    const scope = scopeHere(), name = nameOf(what);
    declared(scope.run.flow.signals.has(name), `signal("${name}")`, scope.run, "signals", typeof what === "string" ? `"${name}"` : name);
    const future = new Future(scope, `signal("${name}")`);
    scope.run.signals.set(name, [...(scope.run.signals.get(name) ?? []), future]);
    return future;
}

/** From now on a broadcast of the signal reaches this instance with this value as its filter. */
export function subscribe(what, value) {
    const { run } = scopeHere(), name = nameOf(what), found = run.subscriptions.get(name) ?? [];
    const made = encode(value) ?? null;
    if (!found.some((one) => JSON.stringify(one) === JSON.stringify(made))) run.subscriptions.set(name, [...found, made]);
}

/** A promise of an async helper that runs already: it can be awaited beside others, and not be cancelled. */
class Loose extends Future {
    constructor(scope, promise) {
        super(scope, "a promise");
        promise.then((value) => this.settle(value), (error) => this.fail(error));
    }
}

function futureOf(scope, one, who) {
    if (one instanceof Future) return one;
    if (typeof one === "function") return new Arm(scope, one);
    if (typeof one?.then === "function") return new Loose(scope, one);
    throw new Mistake(`${who}: expected step(), sleep(), signal(), spawn(), or a function that calls an async helper, found ${textOf(one)}`);
}

const isLoose = (future) => future instanceof Loose || (future instanceof Group && future.members.some(isLoose));

/** All of them at once. Waits until all have ended, then throws the first error, so that nothing is left behind. */
export function gather(awaitables) {
    const scope = scopeHere();
    const members = [...awaitables].map((one) => futureOf(scope, one, "gather()"));
    const all = new Group(scope, "gather()", members);
    const results = [], errors = [];
    let left = members.length;
    const ended = () => {
        if (--left > 0) return;
        const first = errors.find((one) => one !== undefined);
        if (first) all.fail(first.error);
        else all.settle(results);
    };
    if (left === 0) all.settle(results);
    members.forEach((one, i) => one.then((value) => (results[i] = value), (error) => (errors[i] = { error })).then(ended));
    return all;
}

/** The first of them: its name and its value. The others are cancelled. An error of the first is thrown. */
export function select(arms) {
    const scope = scopeHere();
    const members = Object.entries(arms).map(([name, one]) => {
        const future = futureOf(scope, one, `select(): ${name}`);
        if (isLoose(future)) throw new Mistake(`select(): the arm '${name}' is a promise, which cannot be cancelled; give the function: ${name}: () => ...`);
        return [name, future];
    });
    if (!members.length) throw new Mistake("select(): expected arms, found none");
    const won = new Group(scope, "select()", members.map(([, future]) => future));
    const endOthers = () => won.members.forEach((one) => one.cancel());
    for (const [name, one] of members) {
        one.then((value) => (endOthers(), won.settle([name, value])), (error) => (endOthers(), won.fail(error)));
    }
    return won;
}

/** When the event happened that woke the code, by the store's clock; the same when it is replayed. */
export function now() {
    const { run } = scopeHere();
    run.isTimed = true;
    if (run.isReplaying && run.oldNote.now !== undefined) return new Date(run.oldNote.now);
    run.note.now = run.at;
    return new Date(run.at);
}

function chance() {
    const { run } = scopeHere();
    if (run.chance === null) {
        const words = webcrypto.getRandomValues(new Uint32Array(2));
        const seed = (run.isReplaying ? run.oldNote.seed : undefined) ?? (words[0] % 0x100000) * 0x100000000 + words[1];
        run.note.seed = seed;
        run.chance = new Chance(seed);
    }
    return run.chance;
}

/** 0 <= x < 1; the same when it is replayed. */
export const random = () => chance().random();

/** A random UUID; the same when it is replayed. */
export const uuid4 = () => chance().uuid4();

/** Code that changes under running instances: true for those that come here from now on, false where an older build already was. */
export function patched(name) {
    const { run } = scopeHere();
    if (run.patches.has(name)) return true;
    if (run.isReplaying && !(run.oldNote.patched ?? []).includes(name)) return false;
    run.patches.add(name);
    run.note.patched = [...(run.note.patched ?? []), name];
    return true;
}

/** A checkpoint: the workflow begins again with this input, in the same instance. What was before is not replayed any more.
 *  Say `return continueAs(...)`: it never comes back. */
export function continueAs(input = {}) {
    scopeHere().run.again = { input: encode(input) };
    return new Promise(() => {});
}

/** The id of the instance; it has one after its first await. */
export function instanceId() {
    const { run } = scopeHere();
    if (run.isFirst || !run.id) throw new Mistake("the instance has no id before its first await");
    return run.id;
}

/** Signal another instance, with the commit of this turn; does not wait. */
export function send(instance, what, payload) {
    scopeHere().run.sends.push(["send", "signal.send", { instance_id: instance, name: nameOf(what), payload: encode(payload) ?? null }]);
}

/** Start another instance, with the commit of this turn; does not wait, and is not cancelled with this one. */
export function start(definition, input = {}) {
    scopeHere().run.sends.push(["send", "instance.create", { definition: nameOf(definition), input: encode(input) }]);
}

/** A function that the host has, called in the transaction of this turn. A server has none. */
export function reduce(name, args = {}) {
    scopeHere().run.reduces.push(["reduce", name, encode(args)]);
}

// ---- Logging ----

const STDERR = Object.fromEntries(["debug", "info", "warn", "error"].map((level) => [level, (...words) => process.stderr.write(
    `${new Date().toISOString()} ${level}: ${words.map((one) => (typeof one === "string" ? one : inspect(one, { breakLength: Infinity }))).join(" ")}\n`)]));
let logger = STDERR;

/** Another logger than stderr: what has debug, info, warn and error. */
export function setLogger(other) {
    logger = other;
}

const isReplayed = () => here.getStore()?.run.isReplaying ?? false;

/** What a workflow logs is written once: not when it is replayed. In a step it is written each time. */
export const log = Object.freeze(Object.fromEntries(["debug", "info", "warn", "error"].map((level) => [level, (...words) => {
    if (!isReplayed()) logger[level](...words);
}])));

// ---- Steps ----

export const steps = new AsyncLocalStorage();

/** In a step: { idempotencyKey, instanceId, name, attempt }. The key is the same for all attempts. */
export function stepInfo() {
    const info = steps.getStore();
    if (!info) throw new Mistake("stepInfo() is only possible inside a step");
    return info;
}

// ---- Begun by pawl? Then this process takes turns (turns.mjs) ----

if (process.env.PAWL_TURN_PROTOCOL) {
    delete process.env.PAWL_TURN_PROTOCOL; // what a step begins is not a module
    guardStdout();
    import("./turns.mjs").then((turns) => turns.main()); // not awaited: it awaits this file
}
