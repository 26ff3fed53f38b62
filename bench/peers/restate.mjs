// restate.mjs - the side of Restate: a service of ten ctx.run, called through the ingress.   restate.mjs INGRESS ADMIN PORT
import * as restate from "@restatedev/restate-sdk";
import { restateSide } from "./restate_calls.mjs";
import { STEPS, work } from "./turn.mjs";

const [ingress, admin, port] = process.argv.slice(2);

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

await restate.serve({ services: [ten], port: Number(port) });
await restateSide(ingress, admin, port);
