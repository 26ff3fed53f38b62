// restate.mjs - the side of Restate: a service of ten ctx.run, called through the ingress.   restate.mjs INGRESS ADMIN PORT
import http from "node:http";
import * as restate from "@restatedev/restate-sdk";
import { STEPS, side, work } from "./turn.mjs";

const [ingress, admin, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1024 });

const ten = restate.service({
    name: "ten",
    handlers: {
        go: async (ctx) => {
            let result;
            for (let n = 1; n <= STEPS; n++) result = await ctx.run("s" + n, () => work(n));
            return result;
        },
    },
});

function ask(url, method, body) {
    return new Promise((resolve, reject) => {
        const request = http.request(url, { method, agent, headers: { "Content-Type": "application/json", Accept: "application/json" } }, async (response) => {
            const pieces = [];
            for await (const piece of response) pieces.push(piece);
            const text = Buffer.concat(pieces).toString();
            if (response.statusCode >= 300) reject(new Error(`${url}: ${response.statusCode} ${text}`));
            else resolve(JSON.parse(text));
        });
        request.on("error", reject);
        request.end(JSON.stringify(body));
    });
}

await restate.serve({ services: [ten], port: Number(port) });
await ask(admin + "/deployments", "POST", { uri: "http://127.0.0.1:" + port, force: true });

const flow = () => ask(ingress + "/ten/go", "POST", {});

async function proof() {
    const { rows } = await ask(admin + "/query", "POST", { query: "select count(*) as n from sys_invocation where status = 'completed' and target_service_name = 'ten'" });
    return { flows: rows[0].n, durable: "" };
}

side(flow, proof);
