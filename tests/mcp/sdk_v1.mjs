// The official client of the older era, called by run_sdk.py: lists the tools, calls one, and one that asks a person.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
const [kind, ...words] = process.argv.slice(2);
const transport = kind === "stdio" ? new StdioClientTransport({ command: words[0], args: words.slice(1) }) : new StreamableHTTPClientTransport(new URL(words[0]));
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
let asked = 0;
client.setRequestHandler(ElicitRequestSchema, async () => { asked++; return { action: "accept", content: { decision: "approve" } }; });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const greeting = await client.callTool({ name: "greet", arguments: { name: "Ann" } });
const opened = await client.callTool({ name: "open", arguments: {} });
const history = await client.callTool({ name: "process_list", arguments: { definition: "open" } });
console.log(JSON.stringify({ asked, has: tools.includes("open"), text: greeting.content[0].text, opened: opened.structuredContent, count: history.structuredContent.instances.length, version: client.getServerVersion().name }));
await client.close();
