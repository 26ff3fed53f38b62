// home.js - what runs, what waits and for whom, what failed, and how the store is.
import { get, getPages, post, Refusal, rootText, storeName } from "./api.js";
import { actor } from "./actor.js";
import { gateCard, readGates } from "./approvals.js";
import { link } from "./app.js";
import { addSample, chart, levels, means, rates } from "./charts.js";
import { h, show } from "./dom.js";
import { briefWaits, whyOf } from "./waits.js";
import { badge, bytes, count, duration, plural, shortId, when } from "./words.js";
import { isHidden, readExamples, welcome } from "./welcome.js";

const SAMPLE_MS = 2000,
  FIRST_MS = 300; /* what is not here by then comes later */
const STATUSES = ["running", "suspended", "paused", "failed", "completed", "cancelled"];

/** @param {any} counts */
const tiles = (counts) =>
  h("div.tiles", null,
    STATUSES.map((status) =>
      h("a.tile", { href: link("instances?status=" + status) },
        h("b.num", null, counts ? count(counts.by_status[status] ?? 0) : "…"), badge(status))
    ));

/** @param {any} item @param {any} why */
const line = (item, why) =>
  h("li", { "data-key": item.instance_id },
    h("a", { href: link("instances/" + item.instance_id), "data-row": "1" },
      item.subject_ref ?? shortId(item.instance_id)),
    " ", h("span.muted", null, item.definition ?? "inline"), " ",
    h("span.state-name", null, item.current_state), " ",
    h("span.muted", null, when(item.updated_at)),
    why && h("div.brief", null, briefWaits(why.waiting_for)),
    item.error && h("div.error-line", null, JSON.stringify(item.error).slice(0, 200)));

/**
 * @param {string} title
 * @param {any[] | undefined} items
 * @param {string} more
 * @param {string} none
 * @param {Map<string, any>} [whys]
 */
const listCard = (title, items, more, none, whys) =>
  h("section.card", null, h("h2", null, h("a.quiet", { href: link(more) }, title)),
    !items
      ? h("p.muted", null, "…")
      : items.length
        ? h("ul.plain.rows", null, items.map((item) => line(item, whys?.get(item.instance_id))))
        : h("p.muted", null, none));

/** What the server says of its health, also when nothing can be recorded. @param {any} health */
const healthLines = (health) => [h("p", null,
    health.status === "ok" ? badge("ok") : h("span.badge.bad", null, health.status), " ",
    health.status === "ok" ? "healthy" : (health.detail ?? "")),
  (health.conditions ?? []).map((/** @type {any} */ one) =>
    h("p.problem", null, h("b", null, one.condition), " ", one.what, " ",
      h("span", null, "since ", when(one.since)))
  )];

/** @param {any} health @param {any} info @param {any} proof @param {() => void} verify */
function storeCard(health, info, proof, verify) {
  const line = (/** @type {string} */ name, /** @type {any} */ value) => [h("dt", null, name),
    h("dd", null, value)];
  if (!health || !info)
    return h("section.card", null, h("h2", null, "Store"),
      health ? healthLines(health) : h("p.muted", null, "…"));
  const isBad = (/** @type {RegExp} */ names) =>
    (health.conditions ?? []).some((/** @type {any} */ one) => names.test(one.condition));
  const isSqlite = /^3\./.test(info.sqlite ?? ""); /* else "PostgreSQL 15" */
  const behind = info.clock_ahead_ms ? "ahead by " + duration(info.clock_ahead_ms) : "right";
  return h("section.card", null, h("h2", null, "Store"), healthLines(health),
    h("dl.facts", null, line("Records", count(info.records)),
      line("Instances", count(info.instances)),
      info.shards && line("Shards", count(info.shards)),
      line("Clock", behind + (info.test_clock ? " (a test clock)" : "")),
      line("Overdue timers",
        info.timers_overdue
          ? h("span.error-line", null, count(info.timers_overdue), ", the first since ",
              when(info.oldest_overdue))
          : "none"),
      line("Disk",
        isBad(/disk-full/)
          ? h("span.error-line", null, "full")
          : isBad(/commit-failed|storage-gone/)
            ? h("span.error-line", null, "writes fail")
            : "writes succeed"),
      isSqlite && line("Write-ahead log", bytes(info.wal_bytes)),
      line("Schema", info.schema_fault ?? "as it should be"),
      line("Integrity", integrity(proof, verify)), line("Last record", when(info.last_record_at)),
      line("Root", h("code", { title: info.root }, info.root.slice(0, 16) + "…")),
      line("Version", "pawl " +
          info.version +
          (info.sqlite ? (isSqlite ? ", SQLite " : ", ") + info.sqlite : ""))));
}

/** @param {any} proof @param {() => void} verify */
function integrity(proof, verify) {
  if (proof === "running") return h("span", { role: "status" }, "the server verifies…");
  const button = h("button.small", { onclick: verify }, proof ? "Verify again" : "Verify all");
  if (!proof) return button;
  if (proof.problem) return [h("span.error-line", null, proof.problem), " ", button];
  return [proof.valid
      ? h("span.verified", null, "✓ " + count(proof.records) + " records verified by the server")
      : h("span.error-line", { role: "alert" }, "✗ ", proof.what ?? "the check was stopped",
          proof.instance_id && [" ",
            h("a", { href: link("instances/" + proof.instance_id) }, shortId(proof.instance_id))]),
    " ", button];
}

/** @param {any} cluster as node.list has it */
function nodesCard(cluster) {
  if (!cluster?.nodes.length && !cluster?.shards.length) return null;
  const orphans = cluster.shards.filter((/** @type {any} */ shard) => !shard.node).length;
  return h("section.card", null, h("h2", null, "Nodes and shards"),
    orphans > 0 && h("p.problem", null, plural(orphans, "shard has", "shards have") + " no owner"),
    h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Nodes" },
      h("table.list", null, h("caption.sr", null, "Nodes"),
        h("thead", null,
          h("tr", null,
            ["Node", "State", "Shards", "Last beat"].map((name) =>
              h("th" + (name === "Shards" ? ".num" : ""), { scope: "col" }, name)
            ))),
        h("tbody", null,
          cluster.nodes.map((/** @type {any} */ node) =>
            h("tr", { "data-key": node.node },
              h("td", null, h("code", { title: node.address ?? "" }, node.node),
                node.this && h("span.muted", null, " this one")),
              h("td", null,
                h("span.badge." + (node.state === "up" ? "ok" : "bad"), null, node.state)),
              h("td.num", null, count(node.shards)),
              h("td", null, duration(node.beat_age_ms) + " ago"))
          )))),
    h("details", { "data-key": "shards" },
      h("summary", null, plural(cluster.shards.length, "shard")),
      h("ul.plain", null,
        cluster.shards.map((/** @type {any} */ shard) =>
          h("li", { "data-key": "shard" + shard.shard }, h("b", null, shard.shard), " ",
            shard.node ? h("code", null, shard.node) : h("span.error-line", null, "no owner"),
            h("span.muted", null,
              " epoch " + shard.epoch + ", " + plural(shard.position, "record")))
        ))));
}

/** @param {any} known @param {{rows: any[], next: string | null} | undefined} ready */
function workersCard(known, ready) {
  if (!known || !ready)
    return h("section.card", null, h("h2", null, "Workers"), h("p.muted", null, "…"));
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
      ready.rows.length
        ? [h("b", null, count(ready.rows.length) + (ready.next ? "+" : "")),
            " steps are ready and wait"]
        : h("span.muted", null, "No step waits for a worker.")));
}

/** @param {string[] | undefined} stores */
const storesCard = (stores) =>
  !stores || stores.length < 2
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

/** Who may not see a part sees none. @param {any} none */
const notAllowed = (none) => (/** @type {unknown} */ error) => {
  if (!(error instanceof Refusal) || error.status !== 403) throw error;
  return none;
};

/** @returns {Promise<any>} */
async function readHealth() {
  try {
    return JSON.parse(await rootText("/healthz"));
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 503) throw error;
    return { status: "storage-failure", detail: error.message };
  }
}

/** The parts of the page, each read by itself: a slow one holds no other up. */
const PARTS = /** @type {Record<string, (data: any) => Promise<any>>} */ ({
  counts: () => get("/instances/counts"),
  failed: () => get("/instances", { status: "failed", limit: 6 }).then((a) => a.instances),
  running: async (data) => {
    const { instances } = await get("/instances", { active: true, limit: 8 });
    data.whys = await whyOf(instances);
    return instances;
  },
  gates: () => readGates({ approver: actor().name }, 6).then((a) => a.gates),
  known: () => get("/workers"),
  ready: () => getPages("/steps", "steps", { status: "ready" }, 100, 5),
  health: readHealth,
  info: () => get("/info"),
  cluster: () => get("/nodes"),
  stores: () => get("/stores").then((a) => a.stores, notAllowed([])),
  examples: (data) => (isHidden() ? Promise.resolve(null) : readExamples(data.examples ?? null))
});

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  /** @type {any} */
  const data = {};
  /** @type {Map<string, string>} */
  const faults = new Map();
  /** @type {any} */
  let proof = null;
  let busy = false,
    wanted = false,
    isShown = false,
    drawing = 0;
  function drawSoon() {
    if (!drawing && isShown)
      drawing = window.setTimeout(() => {
        drawing = 0;
        if (route.isCurrent()) draw();
      });
  }
  const read = (names = Object.keys(PARTS)) =>
    Promise.all(
      names.map(async (name) => {
        try {
          data[name] = await PARTS[name](data);
          faults.delete(name);
        } catch (error) {
          if (!(error instanceof Refusal) || [0, 401].includes(error.status)) throw error;
          faults.set(name, error.message);
        }
        drawSoon();
      })
    );
  async function sample() {
    try {
      addSample(await rootText("/metrics"));
    } catch {
      /* the next one may succeed */
    }
    if (route.isCurrent()) draw();
  }
  /** One reading at a time; what comes meanwhile is one more, later where reading is slow. */
  async function again() {
    if (busy) {
      wanted = true;
      return;
    }
    busy = true;
    const begun = performance.now();
    try {
      await read();
    } finally {
      busy = false;
    }
    if (wanted) {
      wanted = false;
      window.setTimeout(() => {
        if (route.isCurrent()) again().catch(() => {});
      }, Math.max(500, 3 * (performance.now() - begun)));
    }
  }
  async function verify() {
    proof = "running";
    draw();
    try {
      proof = await post("/verify", {});
    } catch (error) {
      proof = { problem: /** @type {Error} */ (error).message };
    }
    if (route.isCurrent()) draw();
  }
  function draw() {
    show(route.root, h("h1", null, "Home"), data.examples && welcome(data.examples, draw, again),
      [...faults].map(([name, words]) =>
        h("p.problem", { "data-key": "fault-" + name }, h("b", null, name), ": ", words)
      ),
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
            !data.gates
              ? h("p.muted", null, "…")
              : data.gates.length
                ? h("div.gates", null,
                    data.gates.map((/** @type {any} */ gate) => gateCard(gate, again)))
                : h("p.muted", null, "Nothing waits.")),
          listCard("Under way", data.running, "instances?active=true",
            "Nothing is under way. Start one from a definition.", data.whys)),
        h("div", null,
          listCard("Failed last", data.failed, "instances?status=failed", "Nothing has failed."),
          workersCard(data.known, data.ready),
          storeCard(data.health, data.info, proof, verify), nodesCard(data.cluster),
          storesCard(data.stores))));
  }
  const first = again();
  await Promise.race([first, new Promise((resolve) => window.setTimeout(resolve, FIRST_MS))]);
  isShown = true;
  if (route.isCurrent()) draw();
  first.catch((error) => {
    if (route.isCurrent()) route.fail(error);
  });
  sample();
  let samples = 0;
  const timer = window.setInterval(() => {
    if (document.hidden) return;
    sample();
    /* of these no event tells */
    if (++samples % 5 === 0 && !busy) read(["health", "info", "cluster", "known"]).catch(() => {});
  }, SAMPLE_MS);
  return { title: "Home", refresh: again, leave: () => window.clearInterval(timer) };
}
