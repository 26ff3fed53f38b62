// worker.mjs - serves the tool knowledge_search: node examples/worker.mjs [URL]
import { Pawl, Worker } from "../clients/node/pawl_client.mjs";

const worker = new Worker(new Pawl(process.argv[2] ?? "http://127.0.0.1:7295"));
worker.tool("knowledge_search", async (args, step) => ({ query: args.query, hits: args.query.length }));
await worker.run();
