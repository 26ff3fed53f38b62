// testing.mjs - a store in memory and a clock that only the test moves, for durable code in JavaScript and TypeScript.
//
//     const kit = new Kit();
//     const id = await kit.start(invoice, { customer: "ann" });
//     await kit.advance("8d");
//     await kit.signal(id, "paid", 500);
//     expect(kit.result(id)).toEqual({ ... });            // Vitest, Jest, node:test: nothing of them is needed
//
// At every turn the workflow is replayed from its last checkpoint: code that does not do the same again throws NondeterminismError here.

import { CALL, CALL_FAILED, CHILD, CHILD_FAILED, milliseconds, RETRIES, SIGNAL, START, TIMER, WORKFLOWS } from "./durable.mjs";
import { payloadProblem, replay, runStep, takeTurn } from "./turns.mjs";
import { encode } from "./values.mjs";

const BEGIN = 1_700_000_000_000;
const ENDS = { completed: "finish", failed: "fail", cancelled: "cancel" };
const nameOf = (what) => (typeof what === "string" ? what : (what?.flow?.name ?? what?.name));
const copy = (value) => JSON.parse(JSON.stringify(value));

class Instance {
    constructor(flow, id, parent) {
        Object.assign(this, { flow, id, parent, state: null, events: [], kept: [], history: [], numbers: 0, status: "running", value: null });
        this.timers = new Map();
        this.signals = new Set();
        this.calls = new Map();
    }

    open() {
        return { timers: [...this.timers.keys()], signals: [...this.signals], calls: [...this.calls].map(([number, call]) => [number, call.name]) };
    }
}

export class Kit {
    /** steps: what is called instead of a step, by the step's name: { charge: ({ cents }) => ({ receipt: 1 }) }. */
    constructor({ steps = {}, at = BEGIN } = {}) {
        this.at = at;
        this.stubs = steps;
        this.instances = new Map();
        this.retries = []; // [due, instance, number]
    }

    // -- what a test does --

    async start(what, input = {}) {
        return (await this._create(nameOf(what), encode(input), null)).id;
    }

    async signal(id, what, payload) {
        const one = this._instance(id), name = nameOf(what), made = encode(payload) ?? null;
        if (!one.flow.signals.has(name)) throw new Error(`${one.flow.name} has no signal '${name}'`);
        const problem = payloadProblem(one.flow, name, made);
        if (problem) throw new Error(problem);
        if (one.status !== "running") throw new Error(`${one.flow.name} has ended: it is ${one.status}`);
        one.kept.push([name, made]);
        await this._settle(one);
    }

    /** Answer the external step that waits, with a result; or with { error }. */
    async complete(id, result, { error } = {}) {
        const one = this._instance(id);
        const found = [...one.calls].find(([, call]) => one.flow.externals.has(call.name));
        if (!found) throw new Error(`${one.flow.name} waits for no external step; it waits for ${JSON.stringify(one.open())}`);
        await this._answer(one, found[0], error === undefined ? result : error, error !== undefined);
        await this._settle(one);
    }

    /** Move the clock, and fire what falls due, one after the other. */
    async advance(by) {
        const until = this.at + Math.round(milliseconds(by));
        while (await this._fireNext(until));
        this.at = until;
    }

    result(id) {
        return this._ended(id, "completed");
    }

    error(id) {
        return this._ended(id, "failed");
    }

    status(id) {
        return this._instance(id).status;
    }

    /** What happened: ["start", "timer:remind", "signal:paid", "finish"]. */
    history(id) {
        return [...this._instance(id).history];
    }

    // -- what a store does --

    _instance(id) {
        const one = this.instances.get(id);
        if (!one) throw new Error(`there is no instance '${id}' in this kit`);
        return one;
    }

    _ended(id, how) {
        const one = this._instance(id);
        if (one.status === how) return one.value;
        throw new Error(`${one.flow.name} is ${one.status}, and waits for ${JSON.stringify(one.open())}; expected ${how}`);
    }

    async _fireNext(until) {
        let next = [until + 1, null, ""];
        for (const one of this.instances.values()) for (const [name, due] of one.timers) if (due < next[0]) next = [due, one, name];
        const again = this.retries.reduce((least, row) => (least && least[0] <= row[0] ? least : row), null);
        if (again && again[0] <= Math.min(next[0], until)) {
            this.retries.splice(this.retries.indexOf(again), 1);
            this.at = Math.max(this.at, again[0]);
            await this._runStep(again[1], again[2]);
            await this._settle(again[1]);
            return true;
        }
        const [due, one, name] = next;
        if (!one) return false;
        this.at = Math.max(this.at, due);
        one.timers.delete(name);
        await this._turn(one, { kind: TIMER, name }, "timer:" + name);
        await this._settle(one);
        return true;
    }

    async _create(name, input, parent) {
        const flow = WORKFLOWS.get(name);
        if (!flow) throw new Error(`there is no workflow '${name}' in this program`);
        const { problem } = flow.bind(copy(input));
        if (problem !== undefined) throw new Error(`the input of '${name}': ${problem}`);
        const one = new Instance(flow, String(this.instances.size + 1).padStart(26, "0"), parent);
        this.instances.set(one.id, one);
        if (parent) parent.one.calls.get(parent.number).child = one.id;
        await this._turn(one, { kind: START, payload: input }, "start");
        await this._settle(one);
        return one;
    }

    async _turn(one, fields, entry) {
        const event = copy({ ...fields, at: this.at, seq: one.history.length + 1 });
        const open = one.open();
        if (event.kind === TIMER) open.timers.push(event.name);
        if (event.kind === SIGNAL) open.signals.push(event.name);
        if (event.call) open.calls.push([event.call, event.name]);
        const id = one.events.length || one.state ? one.id : "";
        const run = await replay(one.flow, copy({ id, state: one.state, events: one.events, open, fresh: [event] }));
        run.id = id;
        const answer = copy(await takeTurn(run, this.at, null, [event], false));
        one.history.push(entry);
        one.events = [...one.events, { ...event, ...("note" in answer ? { note: answer.note } : {}) }];
        await this._apply(one, answer);
    }

    async _apply(one, answer) {
        if (answer.end !== 0) {
            await this._end(one, answer.end === 1 ? "completed" : "failed", answer.value ?? null);
        } else {
            for (const [word, name] of answer.dropped ?? []) {
                if (word === "disarm") one.timers.delete(name);
                else if (word === "leave") one.signals.delete(name);
                else await this._drop(one, name);
            }
            for (const [, name, due] of answer.timers ?? []) one.timers.set(name, due);
            for (const [, name] of answer.signals ?? []) one.signals.add(name);
            if ("state" in answer) Object.assign(one, { state: answer.state, events: [] });
            for (const call of answer.calls ?? []) one.calls.set(++one.numbers, { ...call, attempt: 0, isNew: true });
        }
        for (const [, operation, input] of answer.sends ?? []) {
            if (operation === "instance.create") await this._create(input.definition, input.input, null);
            else await this.signal(input.instance_id, input.name, input.payload);
        }
    }

    async _drop(one, number) {
        const call = one.calls.get(number);
        one.calls.delete(number);
        this.retries = this.retries.filter((row) => row[1] !== one || row[2] !== number);
        if (call?.child) await this._end(this.instances.get(call.child), "cancelled", null);
    }

    async _end(one, status, value) {
        if (one.status !== "running") return;
        Object.assign(one, { status, value, timers: new Map(), signals: new Set() });
        one.history.push(ENDS[status]);
        for (const number of [...one.calls.keys()]) await this._drop(one, number);
        if (one.parent?.one.calls.has(one.parent.number) && status !== "cancelled") {
            await this._answer(one.parent.one, one.parent.number, value, status === "failed");
            await this._settle(one.parent.one);
        }
    }

    /** Signals that are kept and awaited, and calls that are new. */
    async _settle(one) {
        for (let moved = true; moved && one.status === "running";) {
            moved = false;
            for (const [number, call] of [...one.calls]) {
                if (!call.isNew) continue;
                call.isNew = false;
                await this._begin(one, number, call);
                moved = true;
            }
            const row = one.kept.find(([name]) => one.signals.has(name));
            if (!row || one.status !== "running") continue;
            one.kept.splice(one.kept.indexOf(row), 1);
            one.signals.delete(row[0]);
            await this._turn(one, { kind: SIGNAL, name: row[0], payload: row[1] }, "signal:" + row[0]);
            moved = true;
        }
    }

    async _begin(one, number, call) {
        if (call.spawn) {
            await this._create(call.name, call.args ?? {}, { one, number });
        } else if (!one.flow.externals.has(call.name)) {
            await this._runStep(one, number);
        }
    }

    async _runStep(one, number) {
        const call = one.calls.get(number);
        if (!call) return;
        call.attempt++;
        one.history.push("step.start:" + call.name);
        const fn = one.flow.steps.get(call.name), policy = RETRIES.get(fn);
        const answer = await runStep(this.stubs[call.name] ?? fn, {
            tool: call.name, args: call.args, key: call.key ? `${one.id}:${call.key}` : `${one.id}.${number}`, instance: one.id, step: call.name, attempt: call.attempt,
        });
        const hasFailed = "failed" in answer;
        if (hasFailed && policy && call.attempt < policy.max && !answer.final && !policy.final.includes(answer.failed)) {
            one.history.push("step.fail:" + call.name);
            const wait = Math.min(policy.first * 2 ** (call.attempt - 1), policy.longest || Infinity);
            this.retries.push([this.at + wait, one, number]);
            return;
        }
        await this._answer(one, number, hasFailed ? answer.failed : answer.result, hasFailed);
    }

    async _answer(one, number, value, hasFailed) {
        const call = one.calls.get(number);
        one.calls.delete(number);
        const kinds = call.spawn ? [CHILD, CHILD_FAILED] : [CALL, CALL_FAILED];
        const entry = call.spawn && !hasFailed ? "child" : hasFailed ? "step.fail" : "step.complete";
        const event = { kind: kinds[Number(hasFailed)], name: call.name, payload: encode(value) ?? null, call: number };
        await this._turn(one, { ...event, ...(call.child ? { child: call.child } : {}) }, `${entry}:${call.name}`);
    }
}
