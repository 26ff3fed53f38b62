// webhook_receiver.mjs - takes what examples/webhook.yaml sends, and nothing else.   HOOK_KEY=... webhook_receiver.mjs [PORT]
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const MAX_AGE_S = 300;

/** Is this body from a holder of the secret, and not an old request sent again? */
export function isSigned(secret, header, body, now) {
    const { t = "", v1 = "" } = Object.fromEntries(header.split(",").map((part) => part.split("=", 2)));
    const wanted = createHmac("sha256", secret).update(t + ".").update(body).digest();
    const found = Buffer.from(v1, "hex");
    return found.length === wanted.length && timingSafeEqual(found, wanted) && Math.abs(now - Number(t)) <= MAX_AGE_S;
}

createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const good = isSigned(process.env.HOOK_KEY, request.headers["x-pawl-signature"] ?? "", body, Date.now() / 1000);
    // The same Idempotency-Key is the same notice: keep the key where you keep what it caused.
    if (good) console.log(request.headers["idempotency-key"], body.toString());
    response.writeHead(good ? 204 : 401).end();
}).listen(Number(process.argv[2] ?? 8080), "127.0.0.1");
