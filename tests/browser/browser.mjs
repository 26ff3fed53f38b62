// browser.mjs - one scenario of scenarios.mjs in a real Chromium.
//   node browser.mjs MODULES SCENARIO ADDRESS [WORDS...]
// An error in the console, a page error or a violated policy fails any scenario. Pictures go to
// $PAWL_SHOTS.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, scenario, address, ...words] = process.argv.slice(2);
const from = createRequire(modules + "/");
const { chromium } = from("playwright-core");
const PATIENCE_MS = 30_000;
const shots = process.env.PAWL_SHOTS;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
});
const wrong = [];

/** What a scenario is given. */
const stage = {
  address,
  words,
  from,
  assert(is, ...what) {
    if (!is)
      throw new Error(
        "expected otherwise: " +
          what.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" ")
      );
  },
  /** A command of the command line, at the server. */
  pawl: (...line) =>
    execFileSync(process.env.PAWL, line, {
      env: { ...process.env, PAWL_STORE: address },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"]
    }),
  json: (...line) => JSON.parse(stage.pawl(...line, "--json")),
  async page(options = {}) {
    const context = await browser.newContext({
      viewport: { width: 1360, height: 900 },
      reducedMotion: "reduce",
      ...options
    });
    if (options.actor !== undefined)
      await context.addInitScript(
        (name) => localStorage.setItem("pawl.actor", name),
        options.actor
      );
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => wrong.push("page error: " + error.stack));
    page.on("console", (message) => {
      if (
        ["error", "warning"].includes(message.type()) &&
        !options.mayRefuse?.test(message.text())
      )
        wrong.push("console: " + message.text());
    });
    return page;
  },
  /** Go to a page of the dashboard and wait until it is drawn. */
  async go(page, hash) {
    await page.goto(address + "/#/" + hash);
    await page.waitForSelector("main h1");
    return page;
  },
  async shot(page, name) {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: join(shots, name + ".png"), fullPage: true });
  },
  /** Rules of WCAG 2.2 A and AA, by axe. */
  async accessible(page, name) {
    await page.evaluate(() => document.getElementById("toasts")?.remove());
    const source = from.resolve("axe-core/axe.min.js");
    const context = page.context();
    const cdp = await context.newCDPSession(page);
    const { readFileSync } = await import("node:fs");
    // This way goes past the page's own policy.
    await cdp.send("Runtime.evaluate", { expression: readFileSync(source, "utf8") });
    const { violations } = await page.evaluate(() =>
      /** @type {any} */ (window).axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
      })
    );
    stage.assert(
      violations.length === 0,
      name,
      violations.map(
        (v) =>
          v.id +
          ": " +
          v.nodes
            .slice(0, 3)
            .map((n) => n.target + " " + n.failureSummary)
            .join(" | ")
      )
    );
  }
};

try {
  const { scenarios } = await import("./scenarios.mjs");
  await scenarios[scenario](stage);
  stage.assert(wrong.length === 0, ...wrong);
} catch (error) {
  console.error(error.stack ?? error);
  if (wrong.length) console.error(wrong.join("\n"));
  process.exitCode = 1;
} finally {
  await browser.close();
}
