// restate-python.mjs - the side of Restate in Python (restate_ten.py).   restate-python.mjs PYTHON INGRESS ADMIN PORT
import { spawn } from "node:child_process";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { restateSide } from "./restate_calls.mjs";

const [python, ingress, admin, port] = process.argv.slice(2);
const app = spawn(python, ["-m", "hypercorn", "--bind", "127.0.0.1:" + port, "--log-level", "error", "restate_ten:app"],
    { stdio: ["ignore", 2, 2], cwd: fileURLToPath(new URL(".", import.meta.url)) });
process.on("exit", () => app.kill());
app.on("exit", (code) => process.exit(code ?? 1));

const answers = () => new Promise((resolve) => {
    const socket = net.connect(Number(port), "127.0.0.1", () => (socket.destroy(), resolve(true))).on("error", () => resolve(false));
});
while (!(await answers())) await sleep(100);
await restateSide(ingress, admin, port);
