// app_host.mjs - a minimal host of MCP Apps in a real Chromium: the page in a frame without rights, its calls passed on.
//   node app_host.mjs MODULES ADDRESS INSTANCE BUTTON TEXT
// Presses BUTTON when it is there, and waits until the page says TEXT. An error in the console fails it.
import { createRequire } from "node:module";

const [modules, address, instance, button, text] = process.argv.slice(2);
const { chromium } = createRequire(modules + "/")("playwright-core");
const META = "io.modelcontextprotocol/";
const wrong = [];
let last = 0;

async function mcp(method, params) {
  const name = params.name ?? params.uri;
  const answer = await fetch(address + "/mcp", { method: "POST",
    headers: { "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
      "Mcp-Method": method, ...(name ? { "Mcp-Name": name } : {}) },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++last, method, params: { ...params,
      _meta: { [META + "protocolVersion"]: "2026-07-28", [META + "clientCapabilities"]: {} } } }) });
  return answer.json();
}

const tools = (await mcp("tools/list", {})).result.tools;
const uri = tools.find((tool) => tool.name === "process_get")._meta.ui.resourceUri;
const { contents: [page] } = (await mcp("resources/read", { uri })).result;
if (page.mimeType !== "text/html;profile=mcp-app") throw new Error(page.mimeType);
if (/(src|href)=/.test(page.text)) throw new Error("the page needs something outside of itself");

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  const host = await browser.newPage();
  host.setDefaultTimeout(Number(process.env.PATIENCE_MS ?? 30_000));
  host.on("pageerror", (error) => wrong.push(String(error.stack)));
  host.on("console", (message) => { if (["error", "warning"].includes(message.type())) wrong.push(message.text()); });
  await host.exposeFunction("mcp", mcp);
  await host.setContent("<!doctype html><title>host</title><iframe sandbox='allow-scripts' style='width:900px;height:700px'></iframe>");
  await host.evaluate(([html, id]) => {
    const frame = document.querySelector("iframe");
    const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
    window.addEventListener("message", async ({ data }) => {
      if (data.method === "ui/initialize") send({ id: data.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "t", version: "1" }, hostCapabilities: {}, hostContext: {} } });
      else if (data.method === "ui/notifications/initialized") send({ method: "ui/notifications/tool-result", params: { content: [], structuredContent: { instance_id: id } } });
      else if (data.method === "ui/notifications/size-changed") window.size = data.params;
      else if (data.id !== undefined) {
        const { result, error } = await window.mcp(data.method, data.params);
        send({ id: data.id, ...(error ? { error } : { result }) });
      }
    });
    frame.srcdoc = html;
  }, [page.text, instance]);
  const app = host.frameLocator("iframe");
  await app.locator("svg.graph .node").first().waitFor();
  await app.getByLabel("Reason").fill("looks good");
  await app.getByRole("button", { name: button, exact: true }).click();
  await app.getByText(text).first().waitFor();
  if (!(await host.evaluate(() => window.size?.height > 0))) throw new Error("the host does not know its size");
  if (wrong.length) throw new Error(wrong.join("\n"));
} catch (error) {
  const seen = await browser.contexts()[0]?.pages()[0]?.frames()[1]?.evaluate(() => document.body.innerText).catch(String);
  throw new Error([...wrong, error.stack, "the page: " + seen].join("\n"));
} finally {
  await browser.close();
}
