// durable.d.mts - the types of durable.mjs: durable code in TypeScript.

/** What JSON can hold. A Date becomes its ISO text, a Set a list, a Map an object. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json | undefined };

/** Milliseconds, or a text: "250ms", "90s", "5m", "12h", "7d", "2w". */
export type Duration = number | string;

/** zod, or what speaks Standard Schema. */
export type Parser<T> =
    | { safeParse(value: unknown): { success: true; data: T } | { success: false; error: { issues: readonly any[] } } }
    | { readonly "~standard": { validate(value: unknown): any; readonly types?: { readonly output: T } | undefined } };

/** A JSON Schema: true, or an object of its keywords. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown };

/** What a caller gives, and what the function gets of it. */
type Given<S> = S extends { readonly "~standard": { readonly types?: { readonly input: infer T } | undefined } } ? T : Parsed<S>;
type Parsed<S> = S extends { readonly "~standard": { readonly types?: { readonly output: infer T } | undefined } } ? T : S extends Parser<infer T> ? T : any;

/** The step, or the workflow, has failed with this error (any JSON). Of a step: { retry: false } ends its attempts. */
export class Fail<E = any> extends Error {
    constructor(error: E, options?: { retry?: boolean });
    readonly error: E;
    readonly retry: boolean;
}

/** A step has failed, and its attempts are over. */
export class StepError extends Fail {
    constructor(step: string, error: unknown);
    readonly step: string;
}

/** A child has failed, or was cancelled ("child-cancelled"). */
export class ChildError extends StepError {}

/** The code, replayed, did not come to where it was. Names the line and the entry. */
export class NondeterminismError extends Error {}

/** The code asks for what it may not: the instance is paused, and the words say why. */
export class Mistake extends Error {}

/** What was awaited has been cancelled, as the losers of a select() are. */
export class Cancelled extends Mistake {}

/** Something that has begun and may be awaited: a step, a timer, a signal, a child. */
export interface Future<T> extends Promise<T> {
    readonly isDone: boolean;
    /** Of a child that has ended: its id. */
    readonly childId: string | null;
    /** It is no longer wanted: a timer is disarmed, a step is withdrawn, a child is cancelled. */
    cancel(): void;
}

/** A signal with the type of its payload. */
export class Signal<T = any> {
    /** kept: false: one that comes while the code does not await it is refused, instead of kept until it does. */
    constructor(name: string, payload: Parser<T>, options?: { kept?: boolean });
    constructor(name: string, payload?: JsonSchema, options?: { kept?: boolean });
    readonly name: string;
    readonly payload: unknown;
    private readonly _type?: T;
}

/** A function that is called once, outside of the workflow, with one argument. */
export type StepFunction<A = any, T = any> = (args: A) => T | Promise<T>;

/** What workflow() makes. Calling it runs it as a helper, inside another workflow. */
export interface Workflow<I = any, T = any> {
    (input: I): Promise<T>;
    readonly flow: { readonly name: string; readonly version: number };
}

export interface Options {
    /** Else the function's name. */
    name?: string;
    version?: number;
    /** Signals it may await: new Signal(...), or names. */
    signals?: Iterable<string | Signal<any>>;
    /** Functions it may call as steps, or an object of them by name. */
    steps?: readonly StepFunction[] | { readonly [name: string]: StepFunction };
    /** Workflows it may spawn, or names of definitions. */
    children?: Iterable<string | Workflow<any, any>>;
    /** Steps that another program answers. */
    externals?: Iterable<string>;
}

/** Make a durable workflow of an async function. Its name is the function's, its input the one argument. */
export function workflow<I = {}, T = unknown>(fn: (input: I) => Promise<T>): Workflow<I, T>;
export function workflow<S extends Parser<any>, T>(options: Options & { input: S }, fn: (input: Parsed<S>) => Promise<T>): Workflow<Given<S>, T>;
export function workflow<I = {}, T = unknown>(options: Options & { input?: JsonSchema }, fn: (input: I) => Promise<T>): Workflow<I, T>;

/** How a step is tried again: maxAttempts in all, the delay doubles from `first` to `longest`; errors in `final` end it. */
export function retries<F extends StepFunction>(policy: { maxAttempts?: number; first?: Duration; longest?: Duration; final?: readonly string[] }, fn: F): F;

/** Call a plain function, once, outside of the workflow: it may do anything. Its result is recorded. { key }: an idempotency key of your own. */
export function step<T>(fn: () => T | Promise<T>, args?: undefined, options?: { key?: string }): Future<T>;
export function step<A, T>(fn: (args: A) => T | Promise<T>, args: A, options?: { key?: string }): Future<T>;

/** Wait until another program answers: step.complete, or `pawl complete`. */
export function external<T = any>(name: string, args?: unknown): Future<T>;

/** Start a child, a workflow or any definition by its name, and wait for its result. It is cancelled with its parent. */
export function spawn<I, T>(child: Workflow<I, T>, input: I): Future<T>;
export function spawn<T = any>(child: string, input?: object): Future<T>;

/** A timer of this length. It runs on while the program is dead. */
export function sleep(duration: Duration, name?: string): Future<void>;

/** Wait for a signal; its payload is the result. One that came before is kept, and taken in order. */
export function signal<T>(what: Signal<T>): Future<T>;
export function signal<T = any>(what: string): Future<T>;

/** From now on a broadcast of the signal reaches this instance with this value as its filter. */
export function subscribe(what: string | Signal<any>, value: unknown): void;

/** A function that begins an async helper: it can be cancelled, which a promise cannot. */
export type Helper<T> = () => T | Promise<T>;
type Got<A> = A extends () => infer T ? Awaited<T> : Awaited<A>;

/** All of them at once. Waits until all have ended, then throws the first error, so that nothing is left behind. */
export function gather<const A extends readonly (Promise<any> | Helper<any>)[]>(awaitables: A): Future<{ -readonly [I in keyof A]: Got<A[I]> }>;

/** The first of them: its name and its value. The others are cancelled. An error of the first is thrown. */
export function select<A extends { readonly [name: string]: Future<any> | Helper<any> }>(arms: A): Future<{ [N in keyof A]: [N, Got<A[N]>] }[keyof A]>;

/** When the event happened that woke the code, by the store's clock; the same when it is replayed. */
export function now(): Date;
/** 0 <= x < 1; the same when it is replayed. */
export function random(): number;
/** A random UUID; the same when it is replayed. */
export function uuid4(): string;

/** Code that changes under running instances: true for those that come here from now on, false where an older build already was. */
export function patched(name: string): boolean;

/** A checkpoint: the workflow begins again with this input, in the same instance. Say `return continueAs(...)`: it never comes back. */
export function continueAs(input?: object): Promise<never>;

/** The id of the instance; it has one after its first await. */
export function instanceId(): string;

/** Signal another instance, with the commit of this turn; does not wait. */
export function send<T>(instance: string, what: Signal<T>, payload: T): void;
export function send(instance: string, what: string, payload?: unknown): void;

/** Start another instance, with the commit of this turn; does not wait, and is not cancelled with this one. */
export function start<I>(definition: Workflow<I, any>, input: I): void;
export function start(definition: string, input?: object): void;

/** A function that the host has, called in the transaction of this turn. A server has none. */
export function reduce(name: string, args?: unknown): void;

/** In a step: its key is the same for all attempts. */
export function stepInfo(): { readonly idempotencyKey: string; readonly instanceId: string; readonly name: string; readonly attempt: number };

export interface Logger {
    debug(...words: unknown[]): void;
    info(...words: unknown[]): void;
    warn(...words: unknown[]): void;
    error(...words: unknown[]): void;
}

/** What a workflow logs is written once: not when it is replayed. */
export const log: Logger;
/** Another logger than stderr. */
export function setLogger(logger: Logger): void;
