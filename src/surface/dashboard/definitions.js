// definitions.js - the newest version of every definition, with how many instances are where.
import { get } from "./api.js";
import { link } from "./app.js";
import { h, show } from "./dom.js";
import { badge, count } from "./words.js";

const TOGETHER = 40; /* definitions whose counts are drawn together */

/**
 * Counts by terminal kind, with the status that lists those instances. A completed instance whose
 * state declares no kind has none.
 * @param {any} counts
 * @returns {[string, string, number][]}
 */
export function endings(counts) {
  const by = counts.by_status,
    without = counts.without_kind ?? 0;
  const all = /** @type {[string, string, number][]} */ ([["success", "completed",
      (by.completed ?? 0) - without], ["failure", "failed", by.failed ?? 0],
    ["cancel", "cancelled", by.cancelled ?? 0], ["no kind", "completed", without]]);
  return all.filter(([, , n]) => n > 0);
}

/** @param {any} definition @param {any} counts */
function row(definition, counts) {
  const href = "instances?definition=" + encodeURIComponent(definition.name);
  return h("tr", { "data-key": definition.name },
    h("td", null,
      h("a",
        { href: link("definitions/" + encodeURIComponent(definition.name)), "data-row": "1" },
        definition.name)),
    h("td", null, definition.kind), h("td.num", null, definition.version),
    h("td.num", null,
      counts ? h("a", { href: link(href) }, count(counts.total)) : h("span.muted", null, "…")),
    h("td", null,
      counts &&
        ["running", "suspended", "paused"]
          .filter((status) => counts.by_status[status] > 0)
          .map((status) =>
            h("a.pill", { href: link(href + "&status=" + status) }, badge(status),
              " " + count(counts.by_status[status]))
          )),
    h("td", null,
      counts &&
        endings(counts).map(([kind, status, n]) =>
          h("a.pill", { href: link(href + "&status=" + status) }, badge(kind), " " + count(n))
        )),
    h("td.wide", null,
      counts &&
        Object.entries(counts.by_state)
          .filter(([, n]) => Number(n) > 0)
          .slice(0, 6)
          .map(([state, n]) =>
            h("a.label.quiet", { href: link(href + "&state=" + encodeURIComponent(state)) },
              state + " " + count(Number(n)))
          )));
}

/** All of them, page by page. */
async function readAll() {
  /** @type {any[]} */
  const all = [];
  let page = await get("/definitions", { limit: 1000 });
  all.push(...page.definitions);
  while (page.next) {
    page = await get("/definitions", { limit: 1000, after: page.next });
    all.push(...page.definitions);
  }
  return all;
}

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  /** @type {any[]} */
  let definitions = [];
  /** @type {Map<string, any>} */
  const counts = new Map();
  async function readCounts() {
    for (const [at, { name }] of definitions.entries()) {
      if (!route.isCurrent()) return;
      counts.set(name, await get("/instances/counts", { definition: name }));
      if ((at + 1) % TOGETHER === 0 && route.isCurrent()) draw();
    }
    if (route.isCurrent()) draw();
  }
  function draw() {
    show(route.root, h("h1", null, "Definitions"),
      definitions.length
        ? h("div.scroll", null,
            h("table.list.definitions", null, h("caption.sr", null, "Definitions by name"),
              h("thead", null,
                h("tr", null, h("th", { scope: "col" }, "Name"),
                  h("th", { scope: "col" }, "Kind"), h("th.num", { scope: "col" }, "Version"),
                  h("th.num", { scope: "col" }, "Instances"),
                  h("th", { scope: "col" }, "Under way"), h("th", { scope: "col" }, "Ended"),
                  h("th.wide", { scope: "col" }, "By state"))),
              h("tbody", null,
                definitions.map((definition) => row(definition, counts.get(definition.name))))))
        : h("div.empty", null, h("h2", null, "No definitions yet"),
            h("p", null,
              "A definition declares states and the actions between them, or the steps of a flow. " +
                "Put one in:"),
            h("pre", null, "pawl define examples/order.yaml")));
  }
  let busy = false;
  definitions = await readAll();
  if (route.isCurrent()) draw();
  readCounts().catch(() => {});
  return {
    title: "Definitions",
    refresh: async () => {
      if (busy) return;
      busy = true;
      try {
        definitions = await readAll();
        await readCounts();
      } finally {
        busy = false;
      }
    }
  };
}
