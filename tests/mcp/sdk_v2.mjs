// The official client of both eras, called by run_sdk.py: lists the tools, calls one, and one that asks a person.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
const [kind, mode, ...words] = process.argv.slice(2);
const transport = kind === "stdio" ? new StdioClientTransport({ command: words[0], args: words.slice(1) }) : new StreamableHTTPClientTransport(new URL(words[0]));
const client = new Client({ name: "test", version: "2" }, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: mode === "modern" ? { pin: "2026-07-28" } : mode } });
let asked = 0;
client.setRequestHandler("elicitation/create", async () => { asked++; return { action: "accept", content: { decision: "approve" } }; });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const greeting = await client.callTool({ name: "greet", arguments: { name: "Ann" } });
const opened = await client.callTool({ name: "open", arguments: {} });
const history = await client.callTool({ name: "process_list", arguments: { definition: "open" } });
console.log(JSON.stringify({ asked, has: tools.includes("open"), text: greeting.content[0].text, opened: opened.structuredContent, count: history.structuredContent.instances.length, version: client.getNegotiatedProtocolVersion?.() ?? null }));
await client.close();
