// elsewhere.mjs - a worker on another machine: it takes the turns of its workflows and runs their steps, over HTTP
// (docs/turn-protocol.md).
//
//     import "./game.mjs";
//     import { work } from "pawl-client/elsewhere";
//
//     await work("http://pawl.example:7295", { token: process.env.PAWL_TOKEN });      // until SIGTERM

import fs from "node:fs";
import os from "node:os";
import { setTimeout as pause } from "node:timers/promises";

import { Fail as DurableFail, log, WORKFLOWS } from "./durable.mjs";
import { Fail, NotKnown, Pawl, Unreachable, Worker } from "./pawl_client.mjs";
import { hello, runStep, Server } from "./turns.mjs";

/** A step as a worker's tool: called with (args, step). */
const toolOf = (fn) => async (args, step) => {
    const request = { tool: step.tool, args, key: step.idempotency_key, instance: step.instance_id, step: step.name, attempt: step.attempt };
    const answer = await runStep(fn, request);
    if ("failed" in answer) throw new Fail(answer.failed, { retry: !answer.final });
    return answer.result;
};

/** Serves the workflows of this program to a server elsewhere: claims turns and answers them, and runs the steps. */
export class CodeWorker {
    /** lease: how long a turn may take before another worker gets it; turns: how many are claimed at once; places: steps at once, 0:
     *  other workers run the steps; main: the file whose imports are the build. A worker that is killed loses nothing: what it had
     *  claimed is given to another one when the lease is over. */
    constructor(pawl, { name = `${os.hostname()}-${process.pid}`, lease = "10s", turns = 8, places = 8, wait = "5s", main } = {}) {
        Object.assign(this, { pawl, name, lease, turns, places, wait });
        this.main = main ?? fs.realpathSync(process.argv[1]);
        this.isStopping = false;
    }

    stop() {
        this.isStopping = true;
        this.steps?.stop();
    }

    async _offer(greeting) {
        this.server = new Server(); // numbers under which instances are kept are those of a session
        return (await this.pawl.turnOffer(this.name, greeting)).session;
    }

    async _answer({ turn_id, lease, request }) {
        return { turn_id, lease, answer: await this.server.turn(request) };
    }

    /** One claim, with the answers of the one before: what is to be answered next. */
    async _claim(session, answers) {
        const wait = this.isStopping ? "0s" : this.wait;
        const found = await this.pawl.turnClaim(session, { answers, max: this.turns, lease: this.lease, wait });
        for (const one of found.results) if (one.reason) log.warn(`worker ${this.name}: an answer was refused: ${one.detail}`);
        const next = [];
        for (const turn of found.turns) next.push(await this._answer(turn));
        return next;
    }

    async _takeTurns(greeting) {
        let session = await this._offer(greeting), answers = [];
        while (!this.isStopping || answers.length > 0) {
            try {
                answers = await this._claim(session, answers);
            } catch (error) {
                if (error instanceof NotKnown) { // the server was started again, and what was claimed is claimed again
                    [session, answers] = [await this._offer(greeting), []];
                } else if (error instanceof Unreachable) {
                    log.warn(`worker ${this.name}: ${error.message}`);
                    await pause(500);
                } else {
                    throw error;
                }
            }
        }
    }

    /** Work until stop(), SIGTERM or SIGINT. Throws what the server rejects the workflows with. */
    async run() {
        const greeting = hello(this.main);
        if (greeting.error) throw new DurableFail(greeting.error);
        const runsSteps = this.places > 0 && greeting.tools.length > 0;
        this.steps = new Worker(this.pawl, { name: this.name, places: Math.max(1, this.places), log: { info() {}, warn: log.warn, error: log.error } });
        for (const flow of WORKFLOWS.values()) for (const [name, fn] of flow.steps) this.steps.tool(name, toolOf(fn));
        const stop = () => this.stop();
        process.on("SIGTERM", stop).on("SIGINT", stop);
        log.info(`worker ${this.name} serves the code ${[...WORKFLOWS.keys()].join(", ")}`);
        const stepping = runsSteps ? this.steps.run() : Promise.resolve();
        try {
            await this._takeTurns(greeting);
        } finally {
            this.stop();
            await stepping;
            process.off("SIGTERM", stop).off("SIGINT", stop);
        }
    }
}

/** Serve the workflows of this program to the server at `url`, until SIGTERM or SIGINT. */
export async function work(url = "http://127.0.0.1:7295", { token, store, ...options } = {}) {
    await new CodeWorker(new Pawl(url, { token, store }), options).run();
}
