// workers.js - who does the steps: workers with their tools and load, and the steps that wait.
import { get, getPages } from "./api.js";
import { link } from "./app.js";
import { h, show } from "./dom.js";
import { badge, count, shortId, when } from "./words.js";

const PAGES = 10; /* of 10,000 instances each that are looked at */

/** @param {any} worker */
const workerRow = (worker) =>
  h("tr", { "data-key": worker.worker }, h("td", null, h("b", null, worker.worker)),
    h("td", null,
      worker.tools.map((/** @type {any} */ tool) =>
        h("span.label", { title: "asked " + tool.asked_at }, tool.tool)
      )),
    h("td", null,
      worker.waiting
        ? badge("ready")
        : worker.steps_held
          ? badge("running")
          : h("span.muted", null, "quiet")),
    h("td.num", null, count(worker.steps_held)), h("td.time", null, when(worker.last_seen_at)),
    h("td.time.wide", null, when(worker.first_seen_at)));

/** @param {any} step */
const stepRow = (step) =>
  h("tr", { "data-key": step.step_id }, h("td", null, badge(step.status)),
    h("td", null,
      h("a", { href: link("instances/" + step.instance_id + "?tab=steps"), "data-row": "1" },
        step.name)),
    h("td", null, step.tool ?? h("span.muted", null, "—")), h("td.num", null, step.attempt),
    h("td", null, h("code.muted", null, shortId(step.instance_id))),
    h("td.time", null, when(step.started_at ?? step.ready_at)));

/** @param {string[]} names */
const heads = (names) =>
  h("thead", null,
    h("tr", null,
      names.map((name) =>
        h("th" + (/seen|Since/.test(name) ? ".time" : /held|Attempt/.test(name) ? ".num" : ""),
          { scope: "col" }, name)
      )));

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  async function read() {
    const [known, ready, running] = await Promise.all([get("/workers"),
      getPages("/steps", "steps", { status: "ready" }, 200, PAGES),
      getPages("/steps", "steps", { status: "running" }, 200, PAGES)]);
    if (!route.isCurrent()) return;
    const steps = [...running.rows, ...ready.rows];
    show(route.root, h("h1", null, "Workers"),
      known.workers.length
        ? h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Workers" },
            h("table.list", null, h("caption.sr", null, "Workers"),
              heads(["Worker", "Tools", "Now", "Steps held", "Last seen", "First seen"]),
              h("tbody", null, known.workers.map(workerRow))))
        : h("div.empty", null, h("h2", null, "No worker has asked since ", when(known.since)),
            h("p", null, "Built-in tools (", h("code", null, "log, set, sleep, http, exec"),
              ") run in the server. A worker serves the others, in any language:"),
            h("pre", null, "python3 examples/worker.py --url " + location.origin)),
      known.steps_held_by_unknown > 0 &&
        h("p.muted", null,
          count(known.steps_held_by_unknown) +
            " steps are held by workers of before the server's start."),
      h("h2.later-title", null, "Steps that run or wait for a worker"),
      steps.length
        ? h("div.scroll", null,
            h("table.list", null, h("caption.sr", null, "Steps that are ready or running"),
              heads(["Status", "Step", "Tool", "Attempt", "Instance", "Since"]),
              h("tbody", null, steps.map(stepRow))))
        : h("p.muted", null, "None."),
      (ready.next || running.next) && h("p.end", null, "There are more."));
  }
  await read();
  const timer = window.setInterval(() => {
    if (!document.hidden && route.isCurrent()) read().catch(() => {});
  }, 5000);
  return { title: "Workers", refresh: read, leave: () => window.clearInterval(timer) };
}
