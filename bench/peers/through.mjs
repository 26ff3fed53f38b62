// through.mjs - a side whose app is a program in another language: it is asked and answers in lines of JSON (turn.py).
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** @param {string} program @param {string[]} words */
export function through(program, words) {
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: child.stdout }).on("line", (line) => process.send(JSON.parse(line)));
    child.on("exit", (code) => process.exit(code ?? 1));
    process.on("message", (asked) => child.stdin.write(JSON.stringify(asked) + "\n"));
    process.on("disconnect", () => {
        child.kill();
        process.exit(0);
    });
}
