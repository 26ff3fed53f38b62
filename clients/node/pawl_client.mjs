// pawl_client.mjs - a client of pawl, and a worker for the tools of its flows. One file, nothing but Node 18.
//
//     import { Pawl, Worker } from "./pawl_client.mjs";
//
//     const pawl = new Pawl("http://127.0.0.1:7295");
//     const order = await pawl.instanceCreate({ definition: "order", subject_ref: "A-17" });
//     await pawl.instanceFire(order.instance_id, "pay", { actor_ref: "ann" });
//     for await (const event of pawl.events({ fromStart: true })) console.log(event.instance_id, event.action);
//
//     const worker = new Worker(pawl);
//     worker.tool("knowledge_search", async (args, step) => ({ hits: args.query.length }));
//     await worker.run();                  // until SIGTERM; what was begun is finished
//
// A call that may have been lost is repeated, with the same Idempotency-Key: it is done once. A rejection is thrown as
// the class of its reason (Terminal, NotKnown, ...), all of them PawlError.
//
// A worker logs to stderr, or to the `log` that it is given: one line at start, one when the server stops answering, one
// when it answers again, and each failure with its traceback.

import http from "node:http";
import https from "node:https";
import os from "node:os";
import { randomUUID } from "node:crypto";
import { setImmediate as tick, setTimeout as sleep } from "node:timers/promises";

// ---- What can go wrong ----

/** A rejection. `reason` is the token, `detail` says what was expected and found. */
export class PawlError extends Error {
    /** @param {string} reason @param {string} detail @param {number} [status] @param {object} [problem] */
    constructor(reason, detail, status = 0, problem = {}) {
        super(`${reason}: ${detail}`);
        this.name = new.target.name;
        this.reason = reason;
        this.detail = detail;
        this.status = status;
        this.problem = problem;
    }
}

/** There was no answer, after all repetitions. */
export class Unreachable extends PawlError {}

function errorOf(status, text) {
    let problem;
    try {
        problem = JSON.parse(text);
    } catch {
        problem = null;
    }
    if (!problem?.reason) return new PawlError("unknown", `HTTP ${status}: ${text.slice(0, 200)}`, status);
    return new (REASONS[problem.reason] ?? PawlError)(problem.reason, problem.detail ?? "", status, problem);
}

// ---- Calling ----

const AGAIN = new Set(["overloaded", "storage-failure", "outcome-unknown", "in-use"]); // may be gone in a moment

// What may share a request with others of its kind, by its path (see _together), how long such a line may be, and how many lines it may have.
const TOGETHER = { "/v1/instances": "instance.create", "/v1/instances/{instance_id}/fire": "instance.fire" };
const LINE_MAX = 16384, LINES_MAX = 256;

/** @param {string} duration like 30s @returns {number} */
function milliseconds(duration) {
    const found = /^(\d+)(ms|s|m|h|d)$/.exec(duration);
    if (!found) throw new TypeError(`expected a duration like 30s, found ${duration}`);
    return Number(found[1]) * { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 }[found[2]];
}

const labelled = (labels = {}) => Object.fromEntries(Object.entries(labels).map(([name, value]) => ["label." + name, value]));
const given = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== null));

/** The server, or a proxy before it, cannot answer now. */
const isPassing = (status) => status >= 500 || [408, 425, 429].includes(status);

/** The same request may be answered in a moment. */
const isBusy = ({ status, text }) => [502, 503, 504].includes(status) && (AGAIN.has(errorOf(status, text).reason) || errorOf(status, text).reason === "unknown");

/** A server's URL. Another text is refused here: a server would never answer at it. */
function urlOf(text) {
    try {
        const url = new URL(text);
        if (["http:", "https:"].includes(url.protocol)) return url;
    } catch {
        // refused below
    }
    throw new TypeError(`expected the URL of a server that begins with http:// or https://, like http://127.0.0.1:7295, found '${text}'`);
}

/** The store that the path of a URL names, as on the command line. Anything else behind the port is refused: it would be ignored. */
function storeOf(url, text, given) {
    const path = url.pathname.replace(/\/+$/, "");
    const found = /^\/v1\/stores\/([^/]+)$/.exec(path);
    if ((path && !found) || url.search || url.hash) {
        throw new TypeError(`expected http://host:port or http://host:port/v1/stores/NAME, found '${text}'`);
    }
    const store = found ? decodeURIComponent(found[1]) : given;
    if (given && given !== store) throw new TypeError(`the URL names the store '${store}', and store is '${given}': give one of them`);
    return store;
}

class Calls {
    /** @param {string} [url] @param {{token?: string, store?: string, timeout?: number, patience?: number}} [options]
     *  url: http://host:port, or http://host:port/v1/stores/NAME, which is the same as store: NAME; timeout: of one answer; patience: for how long a call that was lost is repeated; both in milliseconds */
    constructor(url = "http://127.0.0.1:7295", { token, store, timeout = 30000, patience = 30000 } = {}) {
        this._url = urlOf(url);
        this._web = this._url.protocol === "https:" ? https : http;
        this._agent = new this._web.Agent({ keepAlive: true, maxSockets: 64, noDelay: true });
        this._token = token;
        this._timeout = timeout;
        this._patience = patience;
        this._lines = []; // calls of this turn of the event loop that may share a request
        const named = storeOf(this._url, url, store);
        this._prefix = named ? "/v1/stores/" + encodeURIComponent(named) : "/v1";
        this._where = this._url.origin + (named ? this._prefix : ""); // for messages
    }

    _target(path, values, query) {
        let target = path.startsWith("/v1/") ? this._prefix + path.slice(3) : path;
        for (const name in values) target = target.replace(`{${name}}`, encodeURIComponent(values[name]));
        const asked = given(query);
        return Object.keys(asked).length > 0 ? target + "?" + new URLSearchParams(asked) : target;
    }

    /** One request; `heard` is called with the response, whose body is unread, or `lost` with an error. */
    _request(method, target, body, headers, timeout, heard, lost) {
        const options = { method, path: target, host: this._url.hostname, port: this._url.port, agent: this._agent, timeout,
            headers: this._token ? { ...headers, Authorization: "Bearer " + this._token } : headers };
        const request = this._web.request(options, heard);
        request.on("timeout", () => request.destroy(new Error("no answer in time")));
        request.on("error", (error) => lost(Object.assign(error, { reused: request.reusedSocket })));
        request.end(body);
    }

    _open(method, target, body, headers, timeout) {
        return new Promise((resolve, reject) => this._request(method, target, body, headers, timeout, resolve, reject));
    }

    /** With listeners: iterating over a response costs as much as the rest of a short call. */
    _once(method, target, body, headers, timeout) {
        return new Promise((resolve, reject) => this._request(method, target, body, headers, timeout, (response) => {
            const pieces = [];
            response.on("data", (piece) => pieces.push(piece));
            response.on("error", reject);
            response.on("end", () => {
                if (response.complete) resolve({ status: response.statusCode, text: Buffer.concat(pieces).toString() });
                else reject(new Error("the answer was cut off"));
            });
        }, reject));
    }

    /** One operation. keyed: it takes an Idempotency-Key, and gets one; again: it may be repeated; noticed is called after each try with
     * null or why there was no answer, and whether its connection was a new one; false ends the repetition. */
    _call(method, path, values, query, body, { key = undefined, keyed = false, ...how } = {}) {
        if (!keyed) return this._alone(method, path, values, query, body, how);
        const own = key ?? randomUUID();
        return path in TOGETHER ? this._together(path, values, body, own) : this._alone(method, path, values, query, body, { key: own, ...how });
    }

    async _alone(method, path, values, query, body,
        { media = "application/json", key = undefined, again = true, wait = 0, raw = false, noticed = () => true } = {}) {
        const headers = body === undefined ? {} : { "Content-Type": media };
        if (key !== undefined) headers["Idempotency-Key"] = key;
        const data = body === undefined || typeof body === "string" ? body : JSON.stringify(given(body));
        const answer = await this._patiently(method, this._target(path, values, query), data, headers, again, wait, noticed);
        if (answer.status >= 400) throw errorOf(answer.status, answer.text);
        return raw ? answer.text : JSON.parse(answer.text);
    }

    // Creations and fires that are called in one turn of the event loop go in one request (batch), in their order: they share its cost and their
    // commits. Each has its own key and its own answer. One that is alone is sent as it is; so is a long one, for which the others would wait.

    async _together(path, values, body, key) {
        const text = JSON.stringify({ operation: TOGETHER[path], input: { ...values, ...given(body), idempotency_key: key } });
        const answer = text.length > LINE_MAX ? null : await new Promise((resolve, reject) => {
            this._lines.push({ text, resolve, reject });
            if (this._lines.length === 1) setImmediate(() => this._sendLines(this._lines.splice(0)));
        });
        if (answer === null) return this._alone("POST", path, values, {}, body, { key });
        if (answer.status >= 400) throw errorOf(answer.status, answer.text);
        return answer.body;
    }

    _sendLines(lines) {
        if (lines.length === 1) return lines[0].resolve(null);
        while (lines.length > 0) this._sendTogether(lines.splice(0, LINES_MAX));
    }

    /** A line that may be answered in a moment is sent again, alone: it has a key. */
    async _sendTogether(lines) {
        try {
            const text = await this._alone("POST", "/v1/batch", {}, {}, lines.map((line) => line.text).join("\n"), { media: "application/x-ndjson", raw: true });
            const answers = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
            if (answers.length !== lines.length) throw new PawlError("unknown", `expected ${lines.length} answers, found ${answers.length}`);
            lines.forEach((line, i) => {
                const answer = { ...answers[i], text: answers[i].status < 400 ? "" : JSON.stringify(answers[i].body) };
                line.resolve(isBusy(answer) ? null : answer);
            });
        } catch (error) {
            for (const line of lines) line.reject(error);
        }
    }

    async _patiently(method, target, data, headers, again, wait, noticed) {
        const until = Date.now() + this._patience;
        for (let pause = 20;; pause = Math.min(pause * 2, 2000)) {
            try {
                const answer = await this._once(method, target, data, headers, this._timeout + wait);
                const wanted = noticed(isPassing(answer.status) ? errorOf(answer.status, answer.text).message : null, true);
                if (!again || !wanted || !isBusy(answer) || Date.now() > until) return answer;
            } catch (lost) {
                const wanted = noticed(lost.message || lost.code, !lost.reused);
                if (!again || !wanted || Date.now() > until) throw new Unreachable("unreachable", `${method} ${target} at ${this._url.host}: ${lost.message}`);
            }
            await sleep(pause * (0.5 + Math.random()));
        }
    }

    /** Connections are closed; a client that is not closed keeps none open for long. */
    close() {
        this._agent.destroy();
    }

    // ---- What is not one question and one answer ----

    /** Many operations in one request. Lines that write are given keys, and so the whole may be repeated.
     * @param {Array<[string, object]>} calls name and input, which has the path's parameters too
     * @returns {Promise<Array<{status: number, body: any}>>} */
    async batch(calls) {
        const lines = calls.map(([operation, input]) => JSON.stringify({ operation,
            input: UNKEYED.has(operation) || "idempotency_key" in input ? input : { ...input, idempotency_key: randomUUID() } }));
        const text = await this._call("POST", "/v1/batch", {}, {}, lines.join("\n"), { media: "application/x-ndjson", raw: true });
        return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    }

    /** Every entry of the store as it is recorded, for ever, without gap or repeat, also across restarts of the server.
     * @param {{after?: string, fromStart?: boolean}} [from] @returns {AsyncGenerator<Event & {cursor: string}>} */
    events(from = {}) {
        return this._events("/v1/events", {}, from, ["entry"]);
    }

    /** The same with the creation of each instance: `event` is "entry" or "created".
     * @param {{after?: string, fromStart?: boolean}} [from] @returns {AsyncGenerator<any>} */
    allEvents(from = {}) {
        return this._events("/v1/events", {}, from, ["entry", "created"]);
    }

    /** The entries of one instance.
     * @param {string} instance_id @param {{after?: string, fromStart?: boolean}} [from] @returns {AsyncGenerator<Event & {cursor: string}>} */
    instanceEvents(instance_id, from = {}) {
        return this._events("/v1/instances/{instance_id}/events", { instance_id }, from, ["entry"]);
    }

    async *_events(path, values, { after = undefined, fromStart = false }, kinds) {
        let cursor = after, lostAt = null, pause = 20;
        for (;;) {
            try {
                for await (const block of this._blocks(path, values, cursor, fromStart && !cursor)) {
                    cursor = block.id ?? cursor;
                    lostAt = null;
                    pause = 20;
                    if (block.data && kinds.includes(block.event)) yield { ...JSON.parse(block.data), event: block.event, cursor };
                }
                throw new Error("the stream has ended");
            } catch (lost) {
                if (lost instanceof PawlError) throw lost;
                lostAt ??= Date.now();
                if (Date.now() - lostAt > this._patience) throw new Unreachable("unreachable", `${path}: ${lost.message}`);
                await sleep(pause);
                pause = Math.min(pause * 2, 2000);
            }
        }
    }

    /** {id, data} of each block until the connection ends; a comment has no data. */
    async *_blocks(path, values, cursor, fromStart) {
        const headers = cursor ? { "Last-Event-ID": cursor } : {};
        const target = this._target(path, values, { from: fromStart ? "start" : undefined });
        const response = await this._open("GET", target, undefined, headers, 60000); // a silence is broken every 15 s
        try {
            response.setEncoding("utf8");
            if (response.statusCode === 503) throw new Error("the server is busy");
            let text = "";
            for await (const piece of response) {
                text += piece;
                if (response.statusCode !== 200) continue;
                const blocks = text.split("\n\n");
                text = blocks.pop();
                for (const block of blocks) yield Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s, 2)));
            }
            if (response.statusCode !== 200) throw errorOf(response.statusCode, text);
        } finally {
            response.destroy();
        }
    }
}

// ---- Working ----

/** Any JSON as a text for people. */
function textOf(value) {
    try {
        return typeof value === "string" ? value : String(JSON.stringify(value));
    } catch {
        return String(value);
    }
}

/** Refuses what JSON.stringify() would replace by null or leave out without a word: NaN, Infinity, functions, symbols. */
function strict(key, value) {
    if ((typeof value === "number" && !Number.isFinite(value)) || ["function", "symbol"].includes(typeof value)) {
        throw new TypeError(`expected JSON, found ${String(value)}${key ? ` as '${key}'` : ""}`);
    }
    return value;
}

/** Has it nothing that strict() would have to look at? */
function isPlain(value) {
    if (typeof value === "number") return Number.isFinite(value);
    if (typeof value !== "object") return typeof value === "string" || typeof value === "boolean" || value === undefined;
    if (value === null) return true;
    if (Array.isArray(value)) return value.every(isPlain);
    return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain);
}

/** An answer as JSON. A function that replaces makes JSON.stringify() many times slower. */
const answerText = (step, answer) =>
    `{"step_id":${JSON.stringify(step.step_id)},"lease":${JSON.stringify(step.lease)},${JSON.stringify(answer, isPlain(answer) ? undefined : strict).slice(1)}`;

/** Thrown by a tool: the step has failed with this error (any JSON); retry: false ends its attempts. */
export class Fail extends Error {
    constructor(error, { retry = true } = {}) {
        super(textOf(error));
        this.name = "Fail";
        this.error = error;
        this.retry = retry;
    }
}

const TRACEBACK_MAX = 16000; // characters of a traceback that are recorded
const MESSAGE_MAX = 64000; // characters of an error's text that are recorded: with escapes they fit the 1 MiB of an error

/** The end of a text that is too long. */
const endOf = (text, size) => (text.length > size ? `...${text.slice(3 - size)}` : text);

const stamped = (level) => (text) => process.stderr.write(`${new Date().toISOString().slice(0, 19)}Z ${level} ${text}\n`);
const STDERR = { info: stamped("INFO"), warn: stamped("WARNING"), error: stamped("ERROR") };

/** The request itself is refused: repeating it changes nothing. */
const isFinal = (error) => error instanceof PawlError && error.status >= 400 && !isPassing(error.status);

/** Whatever was thrown, with its traceback, as a text. */
function traceOf(error) {
    try {
        return String(error?.stack ?? error);
    } catch {
        return "(its text cannot be read)";
    }
}

/** What a tool threw, as its step's error. Characters that UTF-8 does not have are replaced, and of a long text the end is recorded. */
function failure(error) {
    let type = "Error", message = "(its text cannot be read)";
    try {
        [type, message] = [String(error?.name ?? typeof error), String(error?.message ?? error)];
    } catch {
        // it stays unread
    }
    const clean = (text) => Buffer.from(text).toString().replaceAll("\0", "\\0");
    const trace = traceOf(error).replace(message, () => endOf(message, TRACEBACK_MAX / 2)); // the calls are needed, too
    return { error: { type: clean(type), message: clean(endOf(message, MESSAGE_MAX)), traceback: clean(trace.slice(0, TRACEBACK_MAX)) } };
}

/** Serves tools: claims their steps, keeps their leases, answers in batches.
 *
 * At most `places` steps are under way. A tool is called with (args, step); what it returns is the step's result (any JSON). What it throws
 * is the step's error: {type, message, traceback}, or the error of a Fail as it is. A step may be given twice, after a crash or a lost
 * lease: step.idempotency_key is the same then. step.lost() tells a long tool that its lease is gone;
 * step.progress(VALUE), any small JSON, shows how far it is. `answered` is called with the step and what came of its answer: {status} if it was recorded, {reason, detail} if it was refused. `log` is a logger with info, warn and error, such
 * as console; stderr if it is not given. */
export class Worker {
    /** @param {Pawl} pawl @param {{name?: string, places?: number, lease?: string, wait?: string, answered?: (step: ClaimedStep, outcome: Answered) => any,
     *  log?: {info: (text: string) => any, warn: (text: string) => any, error: (text: string) => any}}} [options] */
    constructor(pawl, { name = `${os.hostname()}-${process.pid}`, places = 8, lease = "60s", wait = "5s", answered = () => {}, log = STDERR } = {}) {
        this.pawl = pawl;
        this.name = name;
        this.places = places;
        this.lease = lease;
        this.wait = wait;
        this.answered = answered;
        this.log = log;
        /** @type {PawlError | null} what ended the claiming */
        this.rejection = null;
        this._tools = new Map();
        this._held = new Map(); // step_id -> the claimed step
        this._answers = []; // {step, text} to be sent
        this._free = places;
        this._sending = false; // answers are on their way, with a claim for all that is free
        this._stopping = false;
        this._lostAt = null; // since when the server does not answer
        this._told = new WeakMap(); // step -> { at: when its progress was sent last, value: what was not sent yet }
        this._changed = () => {};
    }

    /** @param {string} name @param {(args: any, step: ClaimedStep & {lost: () => boolean, progress: (value: any) => void}) => any} run */
    tool(name, run) {
        this._tools.set(name, run);
        return this;
    }

    stop() {
        this._stopping = true;
        this._tell();
    }

    /** Work until stop(), SIGTERM or SIGINT. What was claimed is finished and answered first. If the server rejects the worker (its token, its
     * name, its store, its tools), the worker logs why, `rejection` is the error, and the exit status of the process is 1. */
    async run() {
        const stop = () => this.stop();
        process.on("SIGTERM", stop).on("SIGINT", stop);
        this._say("info", `worker ${this.name} serves ${[...this._tools.keys()].join(", ") || "no tool"} at ${this.pawl._where}, ${this.places} at a time`);
        const beat = setInterval(() => this._beat(), milliseconds(this.lease) / 3);
        try {
            await Promise.all([this._claiming(), this._answering()]);
        } finally {
            clearInterval(beat);
            process.off("SIGTERM", stop).off("SIGINT", stop);
        }
        if (this.rejection) process.exitCode = 1;
    }

    _change() {
        return new Promise((resolve) => {
            const before = this._changed;
            this._changed = () => (before(), resolve());
        });
    }

    _tell() {
        const changed = this._changed;
        this._changed = () => {};
        changed();
    }

    // What is logged, and who is asked.

    _say(level, text) {
        try {
            this.log[level](text);
        } catch {
            // a logger that fails must not end the work
        }
    }

    /** One line when the server stops answering, one when it answers again. */
    _noticed(why, isNews) {
        const url = this.pawl._where;
        if (why === null && this._lostAt !== null) {
            this._say("info", `worker ${this.name} is connected to ${url} again, after ${((Date.now() - this._lostAt) / 1000).toFixed(1)} s`);
            this._lostAt = null;
        } else if (why !== null && isNews && this._lostAt === null) {
            this._lostAt = Date.now();
            this._say("warn", `worker ${this.name} gets no answer from ${url}: ${why}; it keeps trying`);
        }
    }

    /** A kept connection that was closed while it was idle is no news, but for a claim, which waits at the server. A claim is not repeated
     * here: the next one does not wait (_claiming). */
    async _ask(path, values, body, { isClaim = false, wait = 0 } = {}) {
        const noticed = (why, fresh) => {
            this._noticed(why, fresh || isClaim);
            return !(isClaim && (this._stopping || why !== null));
        };
        try {
            return await this.pawl._call("POST", path, values, {}, body, { wait, noticed });
        } catch (error) {
            if (!(error instanceof SyntaxError)) throw error;
            throw new PawlError("unknown", "expected an answer of pawl, found another text: is this the URL of a pawl server?", 404);
        }
    }

    _reject(error) {
        this._stopping = true;
        if (this.rejection) return;
        this.rejection = error;
        const isToken = this.pawl._token && ["unauthenticated", "forbidden"].includes(error.reason);
        const hint = isToken || error.reason === "unauthenticated" ? "; 'pawl token create --scope work' makes a token for workers" : "";
        this._say("error", `${this.pawl._where} rejects ${isToken ? "the token of " : ""}worker ${this.name}: ${error.message}${hint}`);
    }

    // Places are reserved before they are asked for, so that no more is claimed than can be begun. A claim rides with the answers, if there
    // are any. Only when there are none a claim of its own is sent, and waits at the server.

    _claim(max, wait) {
        return { tools: [...this._tools.keys()], worker: this.name, max, lease: this.lease, wait };
    }

    _reserve() {
        const places = this._stopping ? 0 : this._free;
        this._free -= places;
        return places;
    }

    _take(steps, reserved) {
        this._free += reserved - steps.length;
        for (const step of steps) {
            this._held.set(step.step_id, step);
            step.lost = () => !this._held.has(step.step_id);
            step.progress = (value) => this._progress(step, value);
            this._work(step);
        }
        this._tell();
    }

    /** Parked at the server while there is nothing to do. */
    async _claiming() {
        let pause = 20;
        while (!this._stopping) {
            if (this._free === 0 || this._sending || this._answers.length > 0) {
                await this._change();
                continue;
            }
            const reserved = this._reserve();
            let steps = [];
            try {
                const wait = this._lostAt === null ? this.wait : "0s"; // so that it is known at once when the server is back
                ({ steps } = await this._ask("/v1/steps/claim", {}, this._claim(reserved, wait), { isClaim: true, wait: milliseconds(wait) }));
                pause = 20;
            } catch (error) {
                if (!(error instanceof PawlError)) throw error;
                if (isFinal(error)) this._reject(error);
                else await sleep(pause * (0.5 + Math.random()));
                pause = Math.min(pause * 2, 2000);
            } finally {
                this._take(steps, reserved);
            }
            if (steps.length > 0) await tick(); // their answers may be there at once, and the next claim goes with them
        }
    }

    async _work(step) {
        let answer, text;
        try {
            answer = { result: (await this._callTool(step)) ?? null };
        } catch (error) {
            this._logFailure(step, error);
            answer = error instanceof Fail ? { error: error.error, retry: error.retry } : failure(error);
        }
        try {
            text = answerText(step, answer);
        } catch (error) { // no JSON: it could not be sent
            this._logFailure(step, error);
            text = answerText(step, failure(error));
        }
        this._answers.push({ step, text });
        this._tell();
    }

    _callTool(step) {
        const tool = this._tools.get(step.tool);
        if (!tool) throw new ReferenceError(`the worker ${this.name} does not serve the tool '${step.tool}'`);
        return tool(step.args, step);
    }

    _logFailure(step, error) {
        this._say("error", `step ${step.step_id} (tool ${step.tool}, attempt ${step.attempt}) failed\n${traceOf(error)}`);
    }

    _isOver() {
        return this._stopping && this._held.size === 0 && this._answers.length === 0 && this._free === this.places;
    }

    /** All answers of a tick go in one request, which brings steps back for their places and for all others that are free. */
    async _answering() {
        while (!this._isOver()) {
            if (this._answers.length === 0) await this._change();
            await tick();
            if (this._answers.length > 0) await this._send(this._answers.splice(0, 1000));
        }
    }

    async _send(done) {
        this._free += done.length;
        const reserved = this._reserve();
        this._sending = true;
        const { steps, results } = await this._deliver(done, reserved);
        this._sending = false;
        for (const { step } of done) this._held.delete(step.step_id);
        this._take(steps, reserved);
        done.forEach(({ step }, i) => this._report(step, results[i]));
    }

    /** New steps, and what came of each answer. A request that is refused because of one answer is sent again, an answer at a time. */
    async _deliver(done, reserved, replace = true) {
        try {
            const claim = reserved ? `,"claim":${JSON.stringify(this._claim(reserved, "0s"))}` : "";
            return await this._ask("/v1/steps/complete", {}, `{"steps":[${done.map(({ text }) => text).join(",")}]${claim}}`);
        } catch (error) {
            if (!(error instanceof PawlError)) throw error;
            if (["unauthenticated", "forbidden"].includes(error.reason)) this._reject(error);
            else if (isFinal(error) && done.length > 1) return this._deliverEach(done);
            else if (isFinal(error) && replace) return this._deliver([this._refused(done[0].step, error)], 0, false);
            // Otherwise no server took them: their leases run out, and they are begun again.
            return { steps: [], results: done.map(({ step }) => ({ step_id: step.step_id, reason: error.reason, detail: error.detail })) };
        }
    }

    async _deliverEach(done) {
        const results = [];
        for (const one of done) results.push((await this._deliver([one], 0)).results[0]);
        return { steps: [], results };
    }

    /** Instead of an answer that the server does not take: its step has failed. */
    _refused(step, error) {
        this._say("error", `step ${step.step_id} (tool ${step.tool}, attempt ${step.attempt}) failed: the server refuses its answer: ${error.message}`);
        return { step, text: answerText(step, { error: { type: error.reason, message: "refused answer: " + error.detail } }) };
    }

    async _report(step, outcome) {
        if (outcome.reason)
            this._say("warn", `the answer of step ${step.step_id} (tool ${step.tool}) was not recorded: ${outcome.reason}: ${outcome.detail ?? ""}`);
        try {
            await this.answered(step, outcome);
        } catch (error) { // a callback that fails ends nothing
            this._say("error", `the callback 'answered' failed for step ${step.step_id}\n${traceOf(error)}`);
        }
    }

    /** The newest value is sent at once, or, if one was sent less than a second ago, with the next call or heartbeat. */
    _progress(step, value) {
        this._told.set(step, { ...this._told.get(step), value });
        if (Date.now() - (this._told.get(step).at ?? 0) >= 1000) this._beatOf(step);
    }

    async _beatOf(step) {
        const told = this._told.get(step);
        if (told) this._told.set(step, { at: Date.now() });
        try {
            await this._ask("/v1/steps/{step_id}/heartbeat", { step_id: step.step_id }, { lease: step.lease, progress: told?.value });
        } catch (error) { // another worker has it now, its instance has ended, or the progress is too large
            if (told?.value !== undefined && ["too-large", "invalid-request"].includes(error.reason)) this._say("warn", `the progress of step ${step.step_id} was refused: ${error.message}`);
            else if (isFinal(error)) this._held.delete(step.step_id);
        }
    }

    async _beat() {
        for (const step of [...this._held.values()]) await this._beatOf(step);
    }
}

// ---- Made from /openapi.json by tools/gen-reference; not to be edited below this line ----

export class InvalidRequest extends PawlError {}
export class InvalidQuery extends PawlError {}
export class Unauthenticated extends PawlError {}
export class Forbidden extends PawlError {}
export class NotKnown extends PawlError {}
export class NotAllowed extends PawlError {}
export class Terminal extends PawlError {}
export class InvalidTransition extends PawlError {}
export class ReasonRequired extends PawlError {}
export class GuardNotSatisfied extends PawlError {}
export class NoCancelTransition extends PawlError {}
export class NotAwaiting extends PawlError {}
export class LeaseLost extends PawlError {}
export class Conflict extends PawlError {}
export class Paused extends PawlError {}
export class TooLarge extends PawlError {}
export class InvalidDeclaration extends PawlError {}
export class InvalidDefinition extends PawlError {}
export class StorageFailure extends PawlError {}
export class OutcomeUnknown extends PawlError {}
export class Overloaded extends PawlError {}
export class InUse extends PawlError {}
export class NoMemory extends PawlError {}

const REASONS = {"invalid-request": InvalidRequest, "invalid-query": InvalidQuery, "unauthenticated": Unauthenticated, "forbidden": Forbidden, "not-known": NotKnown, "not-allowed": NotAllowed, "terminal": Terminal, "invalid-transition": InvalidTransition, "reason-required": ReasonRequired, "guard-not-satisfied": GuardNotSatisfied, "no-cancel-transition": NoCancelTransition, "not-awaiting": NotAwaiting, "lease-lost": LeaseLost, "conflict": Conflict, "paused": Paused, "too-large": TooLarge, "invalid-declaration": InvalidDeclaration, "invalid-definition": InvalidDefinition, "storage-failure": StorageFailure, "outcome-unknown": OutcomeUnknown, "overloaded": Overloaded, "in-use": InUse, "no-memory": NoMemory};
const UNKEYED = new Set(["definition.get", "definition.graph", "definition.export", "definition.list", "definition.check", "instance.list", "instance.find", "instance.counts", "instance.get", "instance.view", "instance.current", "instance.history", "instance.declaration", "instance.why", "instance.variables", "instance.query", "instance.steps", "instance.graph", "instance.export", "instance.records", "hold.list", "retention.list", "instance.verify", "instance.events", "step.list", "gate.list", "worker.list", "tool.list", "step.claim", "step.complete_many", "step.heartbeat", "turn.offer", "turn.claim", "turn.complete", "alarm.list", "timer.list", "schedule.preview", "token.create", "token.list", "batch", "events", "store.list", "store.info", "store.verify", "metrics.get", "openapi.get", "health.get", "node.list"]);

/** @typedef {{action: string, to_state: string, guard?: string, requires_reason?: boolean}} Action */
/** @typedef {{alarm_id: KeptId, at: Time, operation: string, input: Record<string, any>, firing?: boolean}} Alarm */
/** @typedef {{step_id: string, status?: StepStatus, reason?: string, detail?: string}} Answered */
/** @typedef {{by: any, count: number}} Approval */
/** @typedef {{instance_id: Id, definition: Name|null, version: number|null, subject_ref: string|null, name: string, step_id: StepId|null, due_at: Time}} ArmedTimer */
/** @typedef {{since: Time, asked_at: Time|null, asked_by?: string|null, tools?: Array<string>}} AskedTool */
/** @typedef {{instance_id: Id, step_id: StepId, step?: string, awaited: boolean, outlives?: boolean}} ChildView */
/** @typedef {{tools: Array<string>, worker: string, max?: number, wait?: Duration, lease?: Duration}} Claim */
/** @typedef {{step_id: StepId, lease: string, instance_id: Id, name: string, tool: string, args: any, attempt: number, idempotency_key: string, lease_expires_at: Time, traceparent?: string}} ClaimedStep */
/** @typedef {{turn_id: string, lease: string, lease_ms: number, request: Record<string, any>}} ClaimedTurn */
/** @typedef {{file: string, sha256: string, types: Array<string>}} CodeModule */
/** @typedef {{state?: string, step?: string, instances: number, verdict: string, missing: Array<string>}} Compared */
/** @typedef {{name: Name, versions: Array<number>, states: Array<Compared>, steps: Array<Compared>, safe: boolean}} Comparison */
/** @typedef {string} Cursor */
/** @typedef {{name: Name, version: number, kind: Kind, sha256: Hash}} Definition */
/** @typedef {string} Duration */
/** @typedef {{status: ("completed"|"failed"|"cancelled"), at: Time, error: any, can_redrive: boolean}} Ending */
/** @typedef {{transition_id: TransitionId, sequence_number: number, from_state: string, to_state: string, action: string, actor_ref?: string, fired_at: Time, recorded_at: Time, guard_satisfied?: boolean, reason?: string, payload?: any, step?: string, tool?: string, kind?: string, attempt?: number, step_id?: StepId, traceparent?: string, hash: Hash, erased?: Array<string>}} Entry */
/** @typedef {{erased_at: Time, actor_ref: string|null, reason: string|null}} Erased */
/** @typedef {{instance_id: Id, transition_id: TransitionId, sequence_number: number, from_state: string, to_state: string, action: string, actor_ref?: string, fired_at: Time, recorded_at: Time, guard_satisfied?: boolean, reason?: string, payload?: any, step?: string, tool?: string, attempt?: number, step_id?: StepId, traceparent?: string, hash: Hash, erased?: Array<string>}} Event */
/** @typedef {{attempt: number, of: number|null, at: Time, error: any}} FailedAttempt */
/** @typedef {{message: string, line: number, column: number}} Finding */
/** @typedef {{step_id: StepId, instance_id: Id, definition: Name|null, version: number|null, step: string, subject_ref: string|null, approval: Approval, ask?: any, approved_by: Array<string>, since: Time|null, until: Time|null}} Gate */
/** @typedef {string} Hash */
/** @typedef {{condition: ("commit-failed"|"disk-full"|"storage-gone"|"second-name"|"went-back"|"clock-jumped"), what: string, since: Time}} HealthCondition */
/** @typedef {{limit: ("concurrency"|"rate"), definition?: string, step?: string, tool?: string, key?: any, max: number, per_ms?: number}} HeldLimit */
/** @typedef {{worker: string|null, since: Time, lease_until: Time|null, progress?: any, progress_at?: Time}} HeldStep */
/** @typedef {{instance_id: Id, held_at: Time, actor_ref: string|null, reason: string|null}} Hold */
/** @typedef {string} Id */
/** @typedef {string} IdPrefix */
/** @typedef {{instance_id: Id, definition: Name|null, version: number|null, kind: Kind, current_state: string, status: Status, terminal_kind: TerminalKind|null, actions: Array<Action>, can_cancel: boolean, next_sequence_number: number, subject_ref: string|null, correlation_id: string|null, labels: Labels|null, parent_id: Id|null, retry_of?: Id, retried_as?: Id, pause?: Pause, created_by: string|null, instantiated_at: Time, updated_at: Time, input: any, instance_metadata: any, result: any, error: any, transitions?: Array<Transition>, erased?: Erased}} Instance */
/** @typedef {string} KeptId */
/** @typedef {("machine"|"flow"|"code")} Kind */
/** @typedef {{server: string, transport: ("http"|"stdio"), version: string|null, tools: Array<any>, error: string|null}} KnownServer */
/** @typedef {{tool: string, kind: ("built-in"|"host"|"worker"), on: boolean}} KnownTool */
/** @typedef {{worker: string, tools: Array<WorkerTool>, waiting: boolean, steps_held: number, first_seen_at: Time, last_seen_at: Time}} KnownWorker */
/** @typedef {Record<string, string>} Labels */
/** @typedef {string} Name */
/** @typedef {{paused_at: Time, actor_ref: string|null, reason: string|null}} Pause */
/** @typedef {string} Reference */
/** @typedef {{definition: Name, after_end: Duration, then: string, due: number, held: number, erased: number, oldest_due_at: Time|null, more: boolean}} Retained */
/** @typedef {{name: string, instance_id: Id}} ReusedStep */
/** @typedef {{shard: number, node: string|null, epoch: number, position: number}} ShardOwner */
/** @typedef {{shard: number, records: number, root: Hash}} ShardRoot */
/** @typedef {("running"|"suspended"|"paused"|"completed"|"failed"|"cancelled")} Status */
/** @typedef {{step_id: StepId, instance_id: Id, name: string, tool: string|null, status: StepStatus, attempt: number, args: any, result: any, error: any, ready_at: Time|null, started_at: Time|null, completed_at: Time|null, progress?: any, progress_at?: Time, waiting_since?: Time|null, waiting_until?: Time|null, approval?: Approval, ask?: any, approved_by?: Array<string>}} Step */
/** @typedef {{step_id: StepId, lease?: string, result?: any, error?: any, retry?: boolean}} StepAnswer */
/** @typedef {string} StepId */
/** @typedef {("pending"|"ready"|"running"|"done"|"failed"|"cancelled")} StepStatus */
/** @typedef {string} StoreName */
/** @typedef {{node: string, address: string|null, version: string|null, state: ("up"|"leaving"|"silent"|"dead"), this: boolean, beat_age_ms: number, lease_ms: number, shards: number}} StoreNode */
/** @typedef {("success"|"failure"|"cancel")} TerminalKind */
/** @typedef {string} Time */
/** @typedef {{token_id: KeptId, scopes: string, name: string|null, actor?: string, created_at: Time, expires_at: Time}} Token */
/** @typedef {{from_state: string, action: string, to_state: string, guard?: string, requires_reason?: boolean, by: ("caller"|"engine")}} Transition */
/** @typedef {string} TransitionId */
/** @typedef {{turn_id: string, lease: string, answer: Record<string, any>}} TurnAnswer */
/** @typedef {{turn_id: string, reason?: string, detail?: string}} TurnResult */
/** @typedef {{instance_id: Id, definition: Reference, state: ("pending"|"in-progress"|"passed"|"failed"|"cancelled"), terminal_kind: TerminalKind|null, total: number, valid: number, invalid: number, requested_by: string|null, started_at: Time, completed_at: Time|null}} Validation */
/** @typedef {{instance: Instance, waiting_for: Array<Waiting>, waiting_more: number, entries: Array<Entry>, entries_before: number, steps?: Array<Step>, steps_before?: number, reused?: Array<ReusedStep>, children?: Array<ChildView>, children_more?: number, children_awaited?: number, variables?: any, graph?: any}} View */
/** @typedef {{kind: ("action"|"timer"|"signal"|"child"|"step"|"approval"|"pause"), name: string|null, until?: Time, refused?: string, refused_at?: Time, tool?: string, status?: ("ready"|"running"), here?: boolean, step_id?: StepId, since?: Time, approval?: Approval, ask?: any, approved_by?: Array<string>, failed?: FailedAttempt, held?: HeldStep, limit?: HeldLimit, workers?: AskedTool, paused_at?: Time, actor_ref?: string|null, reason?: string|null, instance_id?: Id}} Waiting */
/** @typedef {{since: Time, actor_ref: string|null, reason: string|null}} WindingUp */
/** @typedef {{tool: string, asked_at: Time}} WorkerTool */

/** Every operation, by its name in camel case. */
export class Pawl extends Calls {
    /** Put a definition: creates a new version unless the newest one has the same text.
     * @param {string} name
     * @param {string} text
     * @param {{media?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{name: Name, version: number, kind: Kind, sha256: Hash, warnings: Array<Finding>}>} */
    definitionPut(name, text, more = {}) {
        return this._call("PUT", "/v1/definitions/{name}", {name}, {}, text, {media: more.media ?? "application/yaml", key: more.idempotencyKey, keyed: true});
    }

    /** A definition with its text as supplied.
     * @param {string} name
     * @param {{version?: number, expanded?: boolean}} [more]
     * @returns {Promise<{name: Name, version: number, kind: Kind, sha256: Hash, text: string, transitions?: Array<Transition>, input?: Record<string, any>, queries?: Array<string>}>} */
    definitionGet(name, more = {}) {
        return this._call("GET", "/v1/definitions/{name}", {name}, {version: more.version, expanded: more.expanded}, undefined, {});
    }

    /** A picture of a definition: text, Mermaid, Graphviz, SVG or JSON.
     * @param {string} name
     * @param {{version?: number, format?: ("text"|"mermaid"|"dot"|"svg"|"json"|"layout")}} [more]
     * @returns {Promise<string>} */
    definitionGraph(name, more = {}) {
        return this._call("GET", "/v1/graphs/{name}", {name}, {version: more.version, format: more.format}, undefined, {raw: true});
    }

    /** A definition as a line of an export file.
     * @param {string} name
     * @param {{version?: number}} [more]
     * @returns {Promise<string>} */
    definitionExport(name, more = {}) {
        return this._call("GET", "/v1/export/{name}", {name}, {version: more.version}, undefined, {raw: true});
    }

    /** The newest version of every definition.
     * @param {{limit?: number, after?: Cursor}} [more]
     * @returns {Promise<{definitions: Array<Definition>, next: Cursor|null}>} */
    definitionList(more = {}) {
        return this._call("GET", "/v1/definitions", {}, {limit: more.limit, after: more.after}, undefined, {});
    }

    /** Check a definition; returns errors and warnings with line and column, stores nothing.
     * @param {string} text
     * @param {{against?: Reference, media?: string}} [more]
     * @returns {Promise<{errors: Array<Finding>, warnings: Array<Finding>, against?: Comparison|null}>} */
    definitionCheck(text, more = {}) {
        return this._call("POST", "/v1/definitions/check", {}, {against: more.against}, text, {media: more.media ?? "application/yaml"});
    }

    /** Create an instance of a definition or of an inline machine.
     * @param {{definition?: Reference, declaration?: Record<string, any>, input?: any, actor_ref?: string, subject_ref?: string, correlation_id?: string, labels?: Labels, instance_metadata?: any, instantiated_at?: Time, test?: boolean, singleton?: boolean, idempotencyKey?: string}} [more]
     * @returns {Promise<{instance_id: Id, current_state: string, existing?: boolean, warnings?: Array<Finding>}>} */
    instanceCreate(more = {}) {
        return this._call("POST", "/v1/instances", {}, {}, {definition: more.definition, declaration: more.declaration, input: more.input, actor_ref: more.actor_ref, subject_ref: more.subject_ref, correlation_id: more.correlation_id, labels: more.labels, instance_metadata: more.instance_metadata, instantiated_at: more.instantiated_at, test: more.test, singleton: more.singleton}, {key: more.idempotencyKey, keyed: true});
    }

    /** Instances, filtered; label.K=V filters by a label.
     * @param {{definition?: Reference, kind?: Kind, state?: string, status?: Status, subject_ref?: string, correlation_id?: string, created_after?: Time, created_before?: Time, active?: ("true"|"false"), ended_after?: Time, ended_before?: Time, order?: ("newest"|"oldest"), limit?: number, after?: Cursor, labels?: Record<string, string>}} [more]
     * @returns {Promise<{instances: Array<Instance>, next: Cursor|null}>} */
    instanceList(more = {}) {
        return this._call("GET", "/v1/instances", {}, {definition: more.definition, kind: more.kind, state: more.state, status: more.status, subject_ref: more.subject_ref, correlation_id: more.correlation_id, created_after: more.created_after, created_before: more.created_before, active: more.active, ended_after: more.ended_after, ended_before: more.ended_before, order: more.order, limit: more.limit, after: more.after, ...labelled(more.labels)}, undefined, {});
    }

    /** Find the instance whose id begins with a unique prefix, or the newest instance.
     * @param {{prefix?: IdPrefix}} [more]
     * @returns {Promise<{instance_id: Id, store_id: string}>} */
    instanceFind(more = {}) {
        return this._call("GET", "/v1/instances/find", {}, {prefix: more.prefix}, undefined, {});
    }

    /** Count instances by state and by status.
     * @param {{definition?: Reference}} [more]
     * @returns {Promise<{by_state: Record<string, number>, by_status: Record<string, number>, total: number, without_kind?: number}>} */
    instanceCounts(more = {}) {
        return this._call("GET", "/v1/instances/counts", {}, {definition: more.definition}, undefined, {});
    }

    /** Get an instance, with the actions that are legal now.
     * @param {string} instance_id
     * @param {{expanded?: boolean}} [more]
     * @returns {Promise<Instance>} */
    instanceGet(instance_id, more = {}) {
        return this._call("GET", "/v1/instances/{instance_id}", {instance_id}, {expanded: more.expanded}, undefined, {});
    }

    /** Get all that is shown of an instance, with its steps, waits and last entries.
     * @param {string} instance_id
     * @param {{entries?: number, steps?: number, children?: number}} [more]
     * @returns {Promise<View>} */
    instanceView(instance_id, more = {}) {
        return this._call("GET", "/v1/instances/{instance_id}/view", {instance_id}, {entries: more.entries, steps: more.steps, children: more.children}, undefined, {});
    }

    /** Get the current state.
     * @param {string} instance_id
     * @returns {Promise<{current_state: string}>} */
    instanceCurrent(instance_id) {
        return this._call("GET", "/v1/instances/{instance_id}/current", {instance_id}, {}, undefined, {});
    }

    /** Fire an action of a machine.
     * @param {string} instance_id
     * @param {string} action
     * @param {{actor_ref?: string, guard_satisfied?: any, fired_at?: Time, reason?: string, payload?: any, expected_sequence?: number, idempotencyKey?: string}} [more]
     * @returns {Promise<{new_state: string, sequence_number: number, transition_id: TransitionId}>} */
    instanceFire(instance_id, action, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/fire", {instance_id}, {}, {action, actor_ref: more.actor_ref, guard_satisfied: more.guard_satisfied, fired_at: more.fired_at, reason: more.reason, payload: more.payload, expected_sequence: more.expected_sequence}, {key: more.idempotencyKey, keyed: true});
    }

    /** List the entries, oldest first.
     * @param {string} instance_id
     * @param {{transition_id?: TransitionId, from_state?: string, to_state?: string, action?: string, actor_ref?: string, sequence_from?: number, sequence_to?: number, fired_after?: Time, fired_before?: Time, sequence_number?: string, fired_at?: string, limit?: number, after?: Cursor}} [more]
     * @returns {Promise<{entries: Array<Entry>, next?: Cursor|null}>} */
    instanceHistory(instance_id, more = {}) {
        return this._call("GET", "/v1/instances/{instance_id}/history", {instance_id}, {transition_id: more.transition_id, from_state: more.from_state, to_state: more.to_state, action: more.action, actor_ref: more.actor_ref, sequence_from: more.sequence_from, sequence_to: more.sequence_to, fired_after: more.fired_after, fired_before: more.fired_before, sequence_number: more.sequence_number, fired_at: more.fired_at, limit: more.limit, after: more.after}, undefined, {});
    }

    /** Get the declaration, byte for byte as supplied.
     * @param {string} instance_id
     * @returns {Promise<string>} */
    instanceDeclaration(instance_id) {
        return this._call("GET", "/v1/instances/{instance_id}/declaration", {instance_id}, {}, undefined, {raw: true});
    }

    /** List what the instance waits for.
     * @param {string} instance_id
     * @returns {Promise<{waiting_for: Array<Waiting>, retried_as?: Id, ended?: Ending, cancelling?: WindingUp, undoing?: WindingUp}>} */
    instanceWhy(instance_id) {
        return this._call("GET", "/v1/instances/{instance_id}/why", {instance_id}, {}, undefined, {});
    }

    /** Get the variables of a code instance, or the context of a flow.
     * @param {string} instance_id
     * @param {{sequence_to?: number}} [more]
     * @returns {Promise<{variables: any}>} */
    instanceVariables(instance_id, more = {}) {
        return this._call("GET", "/v1/instances/{instance_id}/variables", {instance_id}, {sequence_to: more.sequence_to}, undefined, {});
    }

    /** Ask an instance one of the queries of its definition.
     * @param {string} instance_id
     * @param {string} name
     * @returns {Promise<{value: any}>} */
    instanceQuery(instance_id, name) {
        return this._call("GET", "/v1/instances/{instance_id}/queries/{name}", {instance_id, name}, {}, undefined, {});
    }

    /** List every attempt of every step, in the order of creation.
     * @param {string} instance_id
     * @param {{limit?: number, after?: Cursor, without_args?: ("true"|"false")}} [more]
     * @returns {Promise<{steps: Array<Step>, next?: Cursor|null, reused?: Array<ReusedStep>}>} */
    instanceSteps(instance_id, more = {}) {
        return this._call("GET", "/v1/instances/{instance_id}/steps", {instance_id}, {limit: more.limit, after: more.after, without_args: more.without_args}, undefined, {});
    }

    /** A picture of its definition, with the path that the instance took and its current state.
     * @param {string} instance_id
     * @param {{format?: ("text"|"mermaid"|"dot"|"svg"|"json"|"layout"), sequence_from?: number, sequence_to?: number}} [more]
     * @returns {Promise<string>} */
    instanceGraph(instance_id, more = {}) {
        return this._call("GET", "/v1/instances/{instance_id}/graph", {instance_id}, {format: more.format, sequence_from: more.sequence_from, sequence_to: more.sequence_to}, undefined, {raw: true});
    }

    /** Export its definition, its row and every record with values and hash, one line each.
     * @param {string} instance_id
     * @returns {Promise<string>} */
    instanceExport(instance_id) {
        return this._call("GET", "/v1/instances/{instance_id}/export", {instance_id}, {}, undefined, {raw: true});
    }

    /** Get its row and every record with values and hash, so that a caller can verify them.
     * @param {string} instance_id
     * @returns {Promise<string>} */
    instanceRecords(instance_id) {
        return this._call("GET", "/v1/instances/{instance_id}/records", {instance_id}, {}, undefined, {raw: true});
    }

    /** Cancel an instance.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{new_state: string, terminal_kind: TerminalKind|null}>} */
    instanceCancel(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/cancel", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Pause an instance: until it is resumed it accepts only a cancel.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{status: Status}>} */
    instancePause(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/pause", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Resume a paused instance; timers that fell due in the meantime fire now.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{status: Status}>} */
    instanceResume(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/resume", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Move a running flow to another definition, from its next step on.
     * @param {string} instance_id
     * @param {Reference} definition
     * @param {{actor_ref?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{definition: Name, version: number, sequence_number: number}>} */
    instanceAmend(instance_id, definition, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/amend", {instance_id}, {}, {definition, actor_ref: more.actor_ref}, {key: more.idempotencyKey, keyed: true});
    }

    /** Run a failed or cancelled flow again from where it failed (code: from its beginning), as a new instance.
     * @param {string} instance_id
     * @param {{definition?: Reference, from?: string, actor_ref?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{instance_id: Id, current_state: string}>} */
    instanceRedrive(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/redrive", {instance_id}, {}, {definition: more.definition, from: more.from, actor_ref: more.actor_ref}, {key: more.idempotencyKey, keyed: true});
    }

    /** Cancel every instance with a correlation id; instances that cannot be cancelled count as refused.
     * @param {string} correlation_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{cancelled: number, refused: number}>} */
    instanceCancelMany(correlation_id, more = {}) {
        return this._call("POST", "/v1/cancel", {}, {}, {correlation_id, actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Erase what an instance that has ended holds, and what its children hold.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{erased: number, erased_before: number, values: number, left: number, left_in_log: boolean}>} */
    instanceErase(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/erase", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Move an instance that has ended into the archive file, with all that it began.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{archived: number, records: number, left: number}>} */
    instanceArchive(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/archive", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Move instances that have ended into the archive file, the oldest first.
     * @param {{definition?: Reference, ended_before?: Time, actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{archived: number, records: number, left: number, more: boolean}>} */
    storeArchive(more = {}) {
        return this._call("POST", "/v1/archive", {}, {}, {definition: more.definition, ended_before: more.ended_before, actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Put an instance on hold, so that nothing of it is erased.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{held: boolean, changed: boolean}>} */
    instanceHold(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/hold", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Lift the hold on an instance.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{held: boolean, changed: boolean}>} */
    instanceLift(instance_id, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/lift", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** List the instances on hold.
     * @param {{limit?: number}} [more]
     * @returns {Promise<{holds: Array<Hold>, more: boolean}>} */
    holdList(more = {}) {
        return this._call("GET", "/v1/holds", {}, {limit: more.limit}, undefined, {});
    }

    /** List the definitions with a retention, and what is due by it.
     * @returns {Promise<{retention: Array<Retained>}>} */
    retentionList() {
        return this._call("GET", "/v1/retention", {}, {}, undefined, {});
    }

    /** Erase all instances of a subject that have ended, and the subject's name.
     * @param {string} subject_ref
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{erased: number, erased_before: number, values: number, left: number, name_erased: boolean, left_in_log: boolean}>} */
    subjectErase(subject_ref, more = {}) {
        return this._call("POST", "/v1/erase", {}, {}, {subject_ref, actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Verify its records, its rows and, for a flow, its decisions.
     * @param {string} instance_id
     * @returns {Promise<{valid: boolean, entries: number, first_bad?: number, what?: string}>} */
    instanceVerify(instance_id) {
        return this._call("POST", "/v1/instances/{instance_id}/verify", {instance_id}, {}, undefined, {});
    }

    /** List live steps of all instances, or every step of one instance.
     * @param {{status?: StepStatus, tool?: string, instance_id?: Id, limit?: number, after?: Cursor}} [more]
     * @returns {Promise<{steps: Array<Step>, next: Cursor|null}>} */
    stepList(more = {}) {
        return this._call("GET", "/v1/steps", {}, {status: more.status, tool: more.tool, instance_id: more.instance_id, limit: more.limit, after: more.after}, undefined, {});
    }

    /** List the gates that wait for an approval: for whom, since when and until when.
     * @param {{approver?: string, definition?: Reference, limit?: number, after?: Cursor}} [more]
     * @returns {Promise<{gates: Array<Gate>, next: Cursor|null}>} */
    gateList(more = {}) {
        return this._call("GET", "/v1/gates", {}, {approver: more.approver, definition: more.definition, limit: more.limit, after: more.after}, undefined, {});
    }

    /** List the workers that have asked for steps, with their tools and load.
     * @returns {Promise<{workers: Array<KnownWorker>, since: Time, owner: boolean, steps_held_by_unknown: number}>} */
    workerList() {
        return this._call("GET", "/v1/workers", {}, {}, undefined, {});
    }

    /** List the tools that steps can call here, and what MCP servers offer now.
     * @returns {Promise<{tools: Array<KnownTool>, servers: Array<KnownServer>}>} */
    toolList() {
        return this._call("GET", "/v1/tools", {}, {}, undefined, {});
    }

    /** Claim ready steps of some tools, with a lease for each.
     * @param {Array<string>} tools
     * @param {string} worker
     * @param {{max?: number, wait?: Duration, lease?: Duration}} [more]
     * @returns {Promise<{steps: Array<ClaimedStep>}>} */
    stepClaim(tools, worker, more = {}) {
        return this._call("POST", "/v1/steps/claim", {}, {}, {tools, worker, max: more.max, wait: more.wait, lease: more.lease}, {wait: milliseconds(more.wait ?? "0s")});
    }

    /** A worker's whole turn: answer steps and claim the next ones.
     * @param {Array<StepAnswer>} steps
     * @param {{claim?: Claim}} [more]
     * @returns {Promise<{results: Array<Answered>, steps: Array<ClaimedStep>}>} */
    stepCompleteMany(steps, more = {}) {
        return this._call("POST", "/v1/steps/complete", {}, {}, {steps, claim: more.claim}, {});
    }

    /** Complete a claimed or external step with a result.
     * @param {string} step_id
     * @param {{lease?: string, result?: any, idempotencyKey?: string}} [more]
     * @returns {Promise<{status: StepStatus}>} */
    stepComplete(step_id, more = {}) {
        return this._call("POST", "/v1/steps/{step_id}/complete", {step_id}, {}, {lease: more.lease, result: more.result}, {key: more.idempotencyKey, keyed: true});
    }

    /** Fail a claimed or external step; its retry policy applies.
     * @param {string} step_id
     * @param {{lease?: string, error?: any, retry?: boolean, idempotencyKey?: string}} [more]
     * @returns {Promise<{status: StepStatus}>} */
    stepFail(step_id, more = {}) {
        return this._call("POST", "/v1/steps/{step_id}/fail", {step_id}, {}, {lease: more.lease, error: more.error, retry: more.retry}, {key: more.idempotencyKey, keyed: true});
    }

    /** Extend the lease of a step.
     * @param {string} step_id
     * @param {{lease?: string, extend?: Duration, progress?: any}} [more]
     * @returns {Promise<{status: StepStatus, lease_expires_at: Time}>} */
    stepHeartbeat(step_id, more = {}) {
        return this._call("POST", "/v1/steps/{step_id}/heartbeat", {step_id}, {}, {lease: more.lease, extend: more.extend, progress: more.progress}, {});
    }

    /** Approve a gate.
     * @param {string} step_id
     * @param {{actor_ref?: string, reason?: string, payload?: any, idempotencyKey?: string}} [more]
     * @returns {Promise<{status: StepStatus}>} */
    stepApprove(step_id, more = {}) {
        return this._call("POST", "/v1/steps/{step_id}/approve", {step_id}, {}, {actor_ref: more.actor_ref, reason: more.reason, payload: more.payload}, {key: more.idempotencyKey, keyed: true});
    }

    /** Reject a gate: the step fails with the reason.
     * @param {string} step_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{status: StepStatus}>} */
    stepReject(step_id, more = {}) {
        return this._call("POST", "/v1/steps/{step_id}/reject", {step_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Offer code: a worker elsewhere will take the turns of these types.
     * @param {string} worker
     * @param {Record<string, any>} hello
     * @returns {Promise<{session: string}>} */
    turnOffer(worker, hello) {
        return this._call("POST", "/v1/turns/offer", {}, {}, {worker, hello}, {again: false});
    }

    /** Claim turns of code, with a lease for each; and answer those before.
     * @param {string} session
     * @param {{answers?: Array<TurnAnswer>, max?: number, wait?: Duration, lease?: Duration}} [more]
     * @returns {Promise<{results: Array<TurnResult>, turns: Array<ClaimedTurn>}>} */
    turnClaim(session, more = {}) {
        return this._call("POST", "/v1/turns/claim", {}, {}, {session, answers: more.answers, max: more.max, wait: more.wait, lease: more.lease}, {again: false, wait: milliseconds(more.wait ?? "0s")});
    }

    /** Answer a turn that was claimed.
     * @param {string} turn_id
     * @param {string} lease
     * @param {Record<string, any>} answer
     * @returns {Promise<{turn_id: string}>} */
    turnComplete(turn_id, lease, answer) {
        return this._call("POST", "/v1/turns/{turn_id}/complete", {turn_id}, {}, {lease, answer}, {});
    }

    /** Send a signal to an instance that awaits it.
     * @param {string} instance_id
     * @param {string} name
     * @param {{payload?: any, actor_ref?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{delivered: number, kept?: number}>} */
    signalSend(instance_id, name, more = {}) {
        return this._call("POST", "/v1/instances/{instance_id}/signals", {instance_id}, {}, {name, payload: more.payload, actor_ref: more.actor_ref}, {key: more.idempotencyKey, keyed: true});
    }

    /** Send a signal to the one instance about a subject, and create it first if there is none.
     * @param {string} name
     * @param {Reference} definition
     * @param {string} subject_ref
     * @param {{payload?: any, input?: any, correlation_id?: string, labels?: Labels, actor_ref?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{instance_id: Id, existing: boolean, delivered: number, kept?: number}>} */
    signalStart(name, definition, subject_ref, more = {}) {
        return this._call("POST", "/v1/signals/start", {}, {}, {name, definition, subject_ref, payload: more.payload, input: more.input, correlation_id: more.correlation_id, labels: more.labels, actor_ref: more.actor_ref}, {key: more.idempotencyKey, keyed: true});
    }

    /** Send a signal to every instance that awaits or keeps it.
     * @param {string} name
     * @param {{filter?: any, payload?: any, actor_ref?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{delivered: number, kept?: number, full?: number, refused?: number}>} */
    signalBroadcast(name, more = {}) {
        return this._call("POST", "/v1/signals", {}, {}, {name, filter: more.filter, payload: more.payload, actor_ref: more.actor_ref}, {key: more.idempotencyKey, keyed: true});
    }

    /** Advance the test clock; returns when nothing more is due.
     * @param {Duration} by
     * @param {{idempotencyKey?: string}} [more]
     * @returns {Promise<{now: Time}>} */
    testAdvance(by, more = {}) {
        return this._call("POST", "/v1/test/advance", {}, {}, {by}, {key: more.idempotencyKey, keyed: true});
    }

    /** Fire a timer of a test instance.
     * @param {string} instance_id
     * @param {string} name
     * @param {{idempotencyKey?: string}} [more]
     * @returns {Promise<{fired: number}>} */
    testFireTimer(instance_id, name, more = {}) {
        return this._call("POST", "/v1/test/instances/{instance_id}/timers/{name}/fire", {instance_id, name}, {}, undefined, {key: more.idempotencyKey, keyed: true});
    }

    /** Send a signal to a test instance.
     * @param {string} instance_id
     * @param {string} name
     * @param {{payload?: any, actor_ref?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<{delivered: number, kept?: number}>} */
    testSignal(instance_id, name, more = {}) {
        return this._call("POST", "/v1/test/instances/{instance_id}/signals", {instance_id}, {}, {name, payload: more.payload, actor_ref: more.actor_ref}, {key: more.idempotencyKey, keyed: true});
    }

    /** Run an operation later, once.
     * @param {string} operation
     * @param {Record<string, any>} input
     * @param {{at?: Time, after?: Duration, idempotencyKey?: string}} [more]
     * @returns {Promise<{alarm_id: KeptId}>} */
    alarmSet(operation, input, more = {}) {
        return this._call("POST", "/v1/alarms", {}, {}, {operation, input, at: more.at, after: more.after}, {key: more.idempotencyKey, keyed: true});
    }

    /** Alarms that have not fired, next first.
     * @returns {Promise<{alarms: Array<Alarm>}>} */
    alarmList() {
        return this._call("GET", "/v1/alarms", {}, {}, undefined, {});
    }

    /** Cancel an alarm that has not fired.
     * @param {string} alarm_id
     * @param {{idempotencyKey?: string}} [more]
     * @returns {Promise<{cancelled: boolean}>} */
    alarmCancel(alarm_id, more = {}) {
        return this._call("DELETE", "/v1/alarms/{alarm_id}", {alarm_id}, {}, undefined, {key: more.idempotencyKey, keyed: true});
    }

    /** List the timers of instances that fall due next, the next one first.
     * @param {{definition?: Reference, limit?: number}} [more]
     * @returns {Promise<{timers: Array<ArmedTimer>, more: boolean}>} */
    timerList(more = {}) {
        return this._call("GET", "/v1/timers", {}, {definition: more.definition, limit: more.limit}, undefined, {});
    }

    /** Preview a schedule, the times at which it is due next.
     * @param {{cron?: string, every?: Duration, zone?: string, after?: Time, limit?: number}} [more]
     * @returns {Promise<{slots: Array<{slot: Time, local: string}>}>} */
    schedulePreview(more = {}) {
        return this._call("GET", "/v1/schedule", {}, {cron: more.cron, every: more.every, zone: more.zone, after: more.after, limit: more.limit}, undefined, {});
    }

    /** Create a token; its secret is returned only once.
     * @param {string} scopes
     * @param {{actor?: string, expires?: Duration, name?: string}} [more]
     * @returns {Promise<{token_id: KeptId, token: string, expires_at: Time}>} */
    tokenCreate(scopes, more = {}) {
        return this._call("POST", "/v1/tokens", {}, {}, {scopes, actor: more.actor, expires: more.expires, name: more.name}, {again: false});
    }

    /** List valid tokens, without their secrets.
     * @returns {Promise<{tokens: Array<Token>}>} */
    tokenList() {
        return this._call("GET", "/v1/tokens", {}, {}, undefined, {});
    }

    /** Revoke a token, at once.
     * @param {string} token_id
     * @param {{idempotencyKey?: string}} [more]
     * @returns {Promise<{revoked: boolean}>} */
    tokenRevoke(token_id, more = {}) {
        return this._call("DELETE", "/v1/tokens/{token_id}", {token_id}, {}, undefined, {key: more.idempotencyKey, keyed: true});
    }

    /** List the stores: default, and those that were created.
     * @returns {Promise<{stores: Array<StoreName>}>} */
    storeList() {
        return this._call("GET", "/v1/stores", {}, {}, undefined, {});
    }

    /** Create a store, unless it exists; every route is also under /v1/stores/NAME.
     * @param {string} store
     * @param {{idempotencyKey?: string}} [more]
     * @returns {Promise<{store: StoreName}>} */
    storePut(store, more = {}) {
        return this._call("PUT", "/v1/stores/{store}", {store}, {}, undefined, {key: more.idempotencyKey, keyed: true});
    }

    /** Describe the store: versions, records, clock, overdue timers.
     * @returns {Promise<{version: string, sqlite: string|null, format: string|null, migrations: string|null, store_id: string, records: number, root: Hash, shards?: number, rows_behind: number, instances: number, definitions: number, wal_bytes: number, now: Time, last_record_at: Time|null, clock_ahead_ms: number, test_clock: boolean, timers_overdue: number, oldest_overdue: Time|null, schema_fault: string|null, host_objects: number, modules: Array<CodeModule>}>} */
    storeInfo() {
        return this._call("GET", "/v1/info", {}, {}, undefined, {});
    }

    /** Verify every record of the store, or every instance of a definition.
     * @param {{definition?: Reference}} [more]
     * @returns {Promise<{valid?: boolean, records: number, entries: number, instances: number, root?: Hash, shards?: Array<ShardRoot>, first_bad?: number, what?: string, instance_id?: Id, position?: number, stopped_at?: number, last?: number, resumed_at?: number, not_resumed?: string, foreign?: any}>} */
    storeVerify(more = {}) {
        return this._call("POST", "/v1/verify", {}, {}, {definition: more.definition}, {});
    }

    /** Begin to check every instance of a definition; the check is an instance itself.
     * @param {Reference} definition
     * @param {{actor_ref?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<Validation>} */
    validationStart(definition, more = {}) {
        return this._call("POST", "/v1/validations", {}, {}, {definition, actor_ref: more.actor_ref}, {key: more.idempotencyKey, keyed: true});
    }

    /** Check the next instances of a validation, and tell how far it is.
     * @param {string} instance_id
     * @param {{max?: number, idempotencyKey?: string}} [more]
     * @returns {Promise<Validation>} */
    validationRun(instance_id, more = {}) {
        return this._call("POST", "/v1/validations/{instance_id}/run", {instance_id}, {}, {max: more.max}, {key: more.idempotencyKey, keyed: true});
    }

    /** Cancel a validation.
     * @param {string} instance_id
     * @param {{actor_ref?: string, reason?: string, idempotencyKey?: string}} [more]
     * @returns {Promise<Validation>} */
    validationCancel(instance_id, more = {}) {
        return this._call("POST", "/v1/validations/{instance_id}/cancel", {instance_id}, {}, {actor_ref: more.actor_ref, reason: more.reason}, {key: more.idempotencyKey, keyed: true});
    }

    /** Metrics in the format of Prometheus.
     * @returns {Promise<string>} */
    metricsGet() {
        return this._call("GET", "/metrics", {}, {}, undefined, {raw: true});
    }

    /** Describe all operations as an OpenAPI document.
     * @returns {Promise<Record<string, any>>} */
    openapiGet() {
        return this._call("GET", "/openapi.json", {}, {}, undefined, {});
    }

    /** Report whether the store works, and what is wrong.
     * @returns {Promise<{status: ("ok"|"degraded"), conditions?: Array<HealthCondition>}>} */
    healthGet() {
        return this._call("GET", "/healthz", {}, {}, undefined, {});
    }

    /** List the nodes that serve the store, and who owns which shard.
     * @returns {Promise<{nodes: Array<StoreNode>, shards: Array<ShardOwner>, clock_difference_ms: number}>} */
    nodeList() {
        return this._call("GET", "/v1/nodes", {}, {}, undefined, {});
    }
}
