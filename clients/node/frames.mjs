// frames.mjs - frames over 0 and 1: the length of a body, 4 bytes, least significant first, and the body in UTF-8.
//
// Turns are read and written by calls that wait: nothing else happens in a process that waits for a turn, and it is the shortest way.
// Behind a step a frame is awaited by the event loop, so that pools of connections and the like go on.

import fs from "node:fs";

const nap = new Int32Array(new SharedArrayBuffer(4));

/** 1 belongs to the protocol: what the code prints goes to stderr. */
export function guardStdout() {
    const stdout = process.stdout; // the console, or an import before this one, may hold it already
    stdout.write = (chunk, encoding, done) => process.stderr.write(chunk, encoding, done);
    Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => process.stderr });
}

const isAgain = (error) => error.code === "EAGAIN" || error.code === "EINTR";

export class Frames {
    constructor(input = 0, output = 1) {
        this.input = input;
        this.output = output;
        this.bytes = Buffer.alloc(1 << 16);
        this.start = this.end = 0;
    }

    /** The next body that has been read whole; undefined: more has to be read. */
    _taken() {
        const there = this.end - this.start;
        const size = there >= 4 ? this.bytes.readUInt32LE(this.start) + 4 : 4;
        if (there >= 4 && there >= size) {
            const body = this.bytes.toString("utf8", this.start + 4, this.start + size);
            this.start += size;
            if (this.start === this.end) this.start = this.end = 0;
            return body;
        }
        this._makeRoom(size);
        return undefined;
    }

    _makeRoom(size) {
        const old = this.bytes;
        if (this.start + size <= old.length && this.end < old.length) return;
        if (size > old.length) this.bytes = Buffer.alloc(Math.max(size, 2 * old.length));
        old.copy(this.bytes, 0, this.start, this.end);
        this.end -= this.start;
        this.start = 0;
    }

    /** The next body, or null at the end. */
    readNow() {
        for (;;) {
            const body = this._taken();
            if (body !== undefined) return body;
            try {
                const count = fs.readSync(this.input, this.bytes, this.end, this.bytes.length - this.end, null);
                if (count === 0) return null;
                this.end += count;
            } catch (error) {
                if (!isAgain(error)) return null;
                Atomics.wait(nap, 0, 0, 1);
            }
        }
    }

    async read() {
        for (;;) {
            const body = this._taken();
            if (body !== undefined) return body;
            const count = await new Promise((resolve) => fs.read(this.input, this.bytes, this.end, this.bytes.length - this.end, null,
                (error, found) => resolve(!error ? found : isAgain(error) ? -1 : 0)));
            if (count === 0) return null;
            if (count > 0) this.end += count;
            else await new Promise((resolve) => setTimeout(resolve, 1));
        }
    }

    write(answer) {
        const body = Buffer.from(JSON.stringify(answer), "utf8");
        const frame = Buffer.allocUnsafe(body.length + 4);
        frame.writeUInt32LE(body.length, 0);
        body.copy(frame, 4);
        for (let sent = 0; sent < frame.length;) {
            try {
                sent += fs.writeSync(this.output, frame, sent);
            } catch (error) {
                if (!isAgain(error)) throw error;
                Atomics.wait(nap, 0, 0, 1);
            }
        }
    }
}
