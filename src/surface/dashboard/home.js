// home.js - what runs, what waits and for whom, what failed, and how the store is.
import { get, rootText, storeName } from "./api.js";
import { actor } from "./actor.js";
import { gateCard } from "./approvals.js";
import { link } from "./app.js";
import { addSample, chart, levels, means, rates } from "./charts.js";
import { h, show } from "./dom.js";
import { badge, bytes, count, duration, shortId, when } from "./words.js";
import { isHidden, readExamples, welcome } from "./welcome.js";

const SAMPLE_MS = 2000;
const STATUSES = ["running", "suspended", "paused", "failed", "completed", "cancelled"];

/** @param {any} counts */
const tiles = (counts) =>
  h("div.tiles", null,
    STATUSES.map((status) =>
      h("a.tile", { href: link("instances?status=" + status) },
        h("b.num", null, count(counts.by_status[status] ?? 0)), badge(status))
    ));

/** @param {any} item */
const line = (item) =>
  h("li", { "data-key": item.instance_id },
    h("a", { href: link("instances/" + item.instance_id), "data-row": "1" },
      item.subject_ref ?? shortId(item.instance_id)),
    " ", h("span.muted", null, item.definition ?? "inline"), " ",
    h("span.state-name", null, item.current_state), " ",
    h("span.muted", null, when(item.updated_at)),
    item.error && h("div.error-line", null, JSON.stringify(item.error).slice(0, 200)));

/** @param {string} title @param {any[]} items @param {string} more @param {string} none */
const listCard = (title, items, more, none) =>
  h("section.card", null, h("h2", null, h("a.quiet", { href: link(more) }, title)),
    items.length ? h("ul.plain.rows", null, items.map(line)) : h("p.muted", null, none));

/** @param {any} health @param {any} info */
function storeCard(health, info) {
  const behind = info.clock_ahead_ms ? "ahead by " + duration(info.clock_ahead_ms) : "right";
  const line = (/** @type {string} */ name, /** @type {any} */ value) => [h("dt", null, name),
    h("dd", null, value)];
  return h("section.card", null, h("h2", null, "Store"),
    h("p", null, health.status === "ok" ? badge("ok") : h("span.badge.bad", null, health.status),
      " ", health.status === "ok" ? "healthy" : ""),
    (health.conditions ?? []).map((/** @type {any} */ one) =>
      h("p.problem", null,
        typeof one === "string" ? one : (one.detail ?? one.message ?? JSON.stringify(one)))
    ),
    h("dl.facts", null, line("Records", count(info.records)),
      line("Instances", count(info.instances)),
      info.shards && line("Shards", count(info.shards)),
      line("Clock", behind + (info.test_clock ? " (a test clock)" : "")),
      line("Overdue timers",
        info.timers_overdue ? h("span.error-line", null, count(info.timers_overdue)) : "none"),
      line("Write-ahead log", bytes(info.wal_bytes)),
      line("Schema", info.schema_fault ?? "as it should be"),
      line("Last record", when(info.last_record_at)),
      line("Root", h("code", { title: info.root }, info.root.slice(0, 16) + "…")),
      line("Version", "pawl " + info.version + (info.sqlite ? ", SQLite " + info.sqlite : ""))));
}

/** @param {any} known @param {any[]} ready */
function workersCard(known, ready) {
  const tools = [
    ...new Set(
      known.workers.flatMap((/** @type {any} */ worker) =>
        worker.tools.map((/** @type {any} */ tool) => tool.tool)
      )
    )
  ];
  return h("section.card", null,
    h("h2", null, h("a.quiet", { href: link("workers") }, "Workers")),
    known.workers.length
      ? [
          h("p", null, count(known.workers.length) + " known, serving ",
            tools.map((tool) => h("span.label", null, tool)))
        ]
      : h("p.muted", null, "No worker has asked for steps. Built-in tools run in the server."),
    h("p", null,
      ready.length
        ? [h("b", null, count(ready.length) + (ready.length === 100 ? "+" : "")),
            " steps are ready and wait"]
        : h("span.muted", null, "No step waits for a worker.")));
}

/** @param {string[]} stores */
const storesCard = (stores) =>
  stores.length < 2
    ? null
    : h("section.card", null, h("h2", null, "Stores of this server"),
        h("ul.plain", null,
          stores.slice(0, 50).map((name) =>
            h("li", null,
              h("a",
                {
                  href: name === "default" ? "#/" : "#/~" + encodeURIComponent(name) + "/",
                  "aria-current": name === storeName() ? "true" : null
                },
                name))
          )));

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  /** @type {any} */
  let data = {},
    busy = false,
    wanted = false;
  async function read() {
    const [counts, failed, running, gates, known, ready, health, info, stores] =
      await Promise.all([get("/instances/counts"),
        get("/instances", { status: "failed", limit: 6 }),
        get("/instances", { active: true, limit: 8 }),
        get("/gates", { approver: actor().name, limit: 6 }), get("/workers"),
        get("/steps", { status: "ready", limit: 100 }), rootText("/healthz").then(JSON.parse),
        get("/info"), get("/stores").catch(() => ({ stores: [] }))]);
    data = {
      counts,
      failed: failed.instances,
      running: running.instances,
      gates: gates.gates,
      known,
      ready: ready.steps,
      health,
      info,
      stores: stores.stores,
      examples: isHidden() ? null : await readExamples(data.examples ?? null)
    };
  }
  async function sample() {
    try {
      addSample(await rootText("/metrics"));
    } catch {
      /* the next one may succeed */
    }
    if (route.isCurrent()) draw();
  }
  /** One reading at a time; what comes meanwhile is one more. */
  async function again() {
    if (busy) {
      wanted = true;
      return;
    }
    busy = true;
    try {
      await read();
      if (route.isCurrent()) draw();
    } finally {
      busy = false;
    }
    if (wanted) {
      wanted = false;
      window.setTimeout(again, 500);
    }
  }
  function draw() {
    show(route.root, h("h1", null, "Home"), data.examples && welcome(data.examples, draw, again),
      tiles(data.counts),
      h("div.charts", null,
        chart("Records a second", rates("pawl_records_total"), (n) => n.toFixed(n < 10 ? 1 : 0)),
        chart("Commit latency", means("pawl_commit_seconds"), (n) =>
          n ? n.toFixed(n < 10 ? 1 : 0) + " ms" : "—"
        ),
        chart("Queue depth", levels("pawl_queue_depth"), (n) => count(n)),
        chart("Open streams", levels("pawl_http_streams"), (n) => count(n))),
      h("div.stacks", null,
        h("div", null,
          h("section.card", null,
            h("h2", null,
              h("a.quiet", { href: link("approvals") },
                actor().name ? "Approvals that wait for " + actor().name : "Approvals")),
            data.gates.length
              ? h("div.gates", null,
                  data.gates.map((/** @type {any} */ gate) => gateCard(gate, again)))
              : h("p.muted", null, "Nothing waits.")),
          listCard("Under way", data.running, "instances?active=true",
            "Nothing is under way. Start one from a definition.")),
        h("div", null,
          listCard("Failed last", data.failed, "instances?status=failed", "Nothing has failed."),
          workersCard(data.known, data.ready), storeCard(data.health, data.info),
          storesCard(data.stores))));
  }
  await read();
  if (route.isCurrent()) draw();
  sample();
  const timer = window.setInterval(() => {
    if (!document.hidden) sample();
  }, SAMPLE_MS);
  return { title: "Home", refresh: again, leave: () => window.clearInterval(timer) };
}
