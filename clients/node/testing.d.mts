// testing.d.mts - the types of testing.mjs.

import type { Duration, Signal, StepFunction, Workflow } from "./durable.mjs";

/** A store in memory and a clock that only the test moves. Every turn is replayed from the last checkpoint. */
export class Kit {
    /** steps: what is called instead of a step, by its name; at: where the clock begins, Unix milliseconds. */
    constructor(options?: { steps?: { readonly [name: string]: StepFunction }; at?: number });
    /** The time, Unix milliseconds. */
    readonly at: number;
    /** The id of the new instance. */
    start<I>(what: Workflow<I, any>, input: I): Promise<string>;
    start(what: string, input?: object): Promise<string>;
    signal<T>(id: string, what: Signal<T>, payload: T): Promise<void>;
    signal(id: string, what: string, payload?: unknown): Promise<void>;
    /** Answer the external step that waits, with a result; or with { error }. */
    complete(id: string, result?: unknown, options?: { error?: unknown }): Promise<void>;
    /** Move the clock, and fire what falls due, one after the other. */
    advance(by: Duration): Promise<void>;
    result(id: string): any;
    error(id: string): any;
    status(id: string): "running" | "completed" | "failed" | "cancelled";
    /** What happened: ["start", "timer:remind", "signal:paid", "finish"]. */
    history(id: string): string[];
}
