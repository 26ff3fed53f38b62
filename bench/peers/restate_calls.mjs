// restate_calls.mjs - a service `ten` of Restate is registered, called through the ingress, and counted.
import http from "node:http";
import { side } from "./turn.mjs";

const agent = new http.Agent({ keepAlive: true, maxSockets: 1024 });

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

/** The app listens at the port already. */
export async function restateSide(ingress, admin, port) {
    await ask(admin + "/deployments", "POST", { uri: "http://127.0.0.1:" + port, force: true });
    const flow = () => ask(ingress + "/ten/go", "POST", {});
    const proof = async () => {
        const { rows } = await ask(admin + "/query", "POST", { query: "select count(*) as n from sys_invocation where status = 'completed' and target_service_name = 'ten'" });
        return { flows: rows[0].n, durable: "" };
    };
    side(flow, proof);
}
