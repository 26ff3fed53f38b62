// instances.js - the list of instances. Every filter is in the address and is applied by the
// server;
// rows are read page by page and change when the events say so.
import { get, instancePath, Refusal } from "./api.js";
import { link } from "./app.js";
import { h, show } from "./dom.js";
import { badge, count, isOver, shortId, when } from "./words.js";

const PAGE = 100,
  ROWS_MAX = 10_000,
  READ_AT_ONCE = 1000;
const DRAWN_AT_ONCE = 500; /* rows that are quickly drawn again */
const LOOK_AT_EACH = 25; /* changed instances that are asked for one by one */
const STATUSES = ["", "running", "suspended", "paused", "completed", "failed", "cancelled"];

/** @typedef {Record<string, any>} Instance */

/**
 * Filters of instance.list that the address may have; label.K=V among them.
 * @param {URLSearchParams} query
 */
function filtersOf(query) {
  const known = ["definition", "kind", "state", "status", "subject_ref", "correlation_id",
    "created_after", "created_before", "active", "ended_after", "ended_before", "order"];
  return Object.fromEntries(
    [...query].filter(
      ([name, value]) => value && (known.includes(name) || name.startsWith("label."))
    )
  );
}

/** @param {URLSearchParams} query @param {Record<string, string>} changes */
export function withQuery(query, changes) {
  const next = new URLSearchParams(query);
  for (const name of ["rows", "after"]) next.delete(name);
  for (const [name, value] of Object.entries(changes))
    value ? next.set(name, value) : next.delete(name);
  return "instances" + (next.size ? "?" + next : "");
}

// ---- Rows ----

/**
 * Rows are grids, so that a browser lays out only those that are seen; the roles say that it is a
 * table.
 * @param {string} spec @param {...import("./dom.js").Child} children */
const cell = (spec, ...children) => h("td" + spec, { role: "cell" }, ...children);

/** @param {Instance} item */
function row(item) {
  const fault = item.status === "failed" && item.error ? JSON.stringify(item.error) : "";
  return h("tr", { "data-key": item.instance_id, role: "row" }, cell("", badge(item.status)),
    cell("",
      h("a", { href: link("instances/" + item.instance_id), "data-row": "1" },
        item.subject_ref ?? h("code", null, shortId(item.instance_id)))),
    cell("",
      item.definition
        ? h("a.quiet",
            {
              href: link(
                "definitions/" + encodeURIComponent(item.definition) + "?version=" + item.version
              )
            },
            item.definition, h("span.muted", null, "@" + item.version))
        : h("span.muted", null, "inline")),
    cell("", h("span.state-name", null, item.current_state),
      fault && h("div.error-line", { title: fault }, fault.slice(0, 160))),
    cell(".wide",
      item.labels &&
        Object.entries(item.labels).map(([k, v]) =>
          h("span.label", null, h("bdi", null, k), "=", h("bdi", null, v))
        )),
    cell(".wide", h("code.muted", { title: item.instance_id }, shortId(item.instance_id))),
    cell(".time", when(item.updated_at)));
}

const HEAD = ["Status", "Subject or id", "Definition", "State", "Labels", "Id", "Changed"];

/** @param {Instance[]} items @param {boolean} isNewest */
const table = (items, isNewest) =>
  h("table.list.rows",
    {
      role: "table",
      "aria-label": "Instances, the " + (isNewest ? "newest" : "oldest") + " first"
    },
    h("thead", { role: "rowgroup" },
      h("tr", { role: "row" },
        HEAD.map((name) =>
          h("th" +
              (name === "Labels" || name === "Id" ? ".wide" : name === "Changed" ? ".time" : ""),
            { role: "columnheader", scope: "col" }, name)
        ))),
    h("tbody", { role: "rowgroup" }, items.map(row)));

// ---- Filters ----

/** @param {string} id @param {string} label @param {HTMLElement} control */
const field = (id, label, control) =>
  h("div.field", null, h("label", { for: id }, label), control);

/** @param {string} time */
const localTime = (time) => {
  if (!time) return "";
  const at = new Date(time);
  return isNaN(+at)
    ? ""
    : new Date(+at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};

/** @param {import("./app.js").Route} route @param {string[]} definitions */
function filterForm(route, definitions) {
  const q = route.query;
  const go = (/** @type {Record<string, string>} */ changes) => {
    location.hash = link(withQuery(q, changes));
  };
  const text = (/** @type {string} */ name, /** @type {string} */ label) =>
    field("f-" + name, label,
      h("input",
        {
          id: "f-" + name,
          value: q.get(name) ?? "",
          autocomplete: "off",
          spellcheck: "false",
          onchange: (/** @type {any} */ e) => go({ [name]: e.target.value.trim() })
        }));
  const label = [...q].find(([name]) => name.startsWith("label."));
  const more =
    ["correlation_id", "created_after", "created_before", "order"].some((name) => q.get(name)) ||
    label;
  return h("form.filters",
    { onsubmit: (/** @type {Event} */ e) => e.preventDefault(), "aria-label": "Filters" },
    field("f-status", "Status",
      h("select",
        { id: "f-status", onchange: (/** @type {any} */ e) => go({ status: e.target.value }) },
        STATUSES.map((name) =>
          h("option", { value: name, selected: (q.get("status") ?? "") === name }, name || "any")
        ))),
    field("f-definition", "Definition",
      h("select",
        {
          id: "f-definition",
          onchange: (/** @type {any} */ e) => go({ definition: e.target.value, state: "" })
        },
        ["", ...new Set([...definitions, q.get("definition") ?? ""].filter(Boolean))].map(
          (name) =>
            h("option", { value: name, selected: (q.get("definition") ?? "") === name },
              name || "any")
        ))),
    text("state", "State"), text("subject_ref", "Subject"),
    h("details.more", { open: !!more }, h("summary", null, "More filters"),
      h("div.row", null, text("correlation_id", "Correlation"),
        field("f-label", "Label (key=value)",
          h("input",
            {
              id: "f-label",
              value: label ? label[0].slice(6) + "=" + label[1] : "",
              autocomplete: "off",
              onchange: (/** @type {any} */ e) => {
                const [k, v] = e.target.value.split(/=(.*)/s);
                go({
                  ...(label && { [label[0]]: "" }),
                  ...(k && v && { ["label." + k.trim()]: v.trim() })
                });
              }
            })),
        ...["created_after", "created_before"].map((name) =>
          field("f-" + name, name === "created_after" ? "Created from" : "Created until",
            h("input",
              {
                id: "f-" + name,
                type: "datetime-local",
                value: localTime(q.get(name) ?? ""),
                onchange: (/** @type {any} */ e) =>
                  go({ [name]: e.target.value ? new Date(e.target.value).toISOString() : "" })
              }))
        ),
        field("f-order", "Order",
          h("select",
            { id: "f-order", onchange: (/** @type {any} */ e) => go({ order: e.target.value }) },
            [["", "newest first"], ["oldest", "oldest first"]].map(([value, name]) =>
              h("option", { value, selected: (q.get("order") ?? "") === value }, name)
            ))))),
    q.size > 0 && h("a.clear", { href: link("instances") }, "Clear"));
}

// ---- The page ----

/** @param {Record<string, string>} filters */
function emptyList(filters) {
  const any = Object.keys(filters).length > 0;
  return h("div.empty", null,
    h("h2", null, any ? "No instance fits these filters" : "No instances yet"),
    any
      ? h("p", null, "The server looked at all of them. ",
          h("a", { href: link("instances") }, "Show all"))
      : h("p", null, "Start one from a ", h("a", { href: link("definitions") }, "definition"),
          ", or in a terminal:"),
    !any && h("pre", null, "pawl define examples/order.yaml\npawl start order --subject A-17"));
}

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  const filters = filtersOf(route.query),
    isNewest = route.query.get("order") !== "oldest" && !route.query.get("after");
  const wanted = Math.min(ROWS_MAX, Math.max(PAGE, Number(route.query.get("rows")) || 0));
  /** @type {Map<string, Instance>} */
  const items = new Map();
  /** @type {string | null} */
  let next = route.query.get("after");
  let problem = "";

  /** @param {number} most */
  async function read(most) {
    const answer = await get("/instances", { ...filters, limit: most, after: next });
    for (const item of answer.instances) items.set(item.instance_id, item);
    next = answer.next;
  }
  /** @param {number} rows */
  async function readUpTo(rows) {
    do await read(Math.min(READ_AT_ONCE, rows - items.size));
    while (next && items.size < rows);
  }
  async function more() {
    if (items.size >= ROWS_MAX) {
      location.hash = link(withQuery(route.query, { after: next ?? "" }));
      return;
    }
    const had = items.size,
      rows = had + PAGE,
      before = document.activeElement;
    await readUpTo(rows);
    const query = new URLSearchParams(route.query);
    query.set("rows", String(rows));
    history.replaceState(null, "", "#" + location.hash.slice(1).split("?")[0] + "?" + query);
    if (had < DRAWN_AT_ONCE) draw();
    else addRows([...items.values()].slice(had), false);
    if (before instanceof HTMLElement)
      (before.isConnected ? before : document.getElementById(before.id))?.focus();
  }
  const endLine = () =>
    h("p.end", null,
      count(items.size) +
        (items.size === 1 ? " instance" : " instances") +
        (next ? " shown. " : "."),
      next &&
        h("button", { onclick: more, id: "more" },
          items.size >= ROWS_MAX ? "Next page" : "Show more"));
  function draw() {
    show(route.root, h("h1", null, "Instances"), filterForm(route, names),
      problem
        ? h("p.problem", { role: "alert" }, problem)
        : items.size
          ? [h("div.scroll", null,
                table([...items.values()], route.query.get("order") !== "oldest")),
              endLine()]
          : emptyList(filters));
  }
  /**
   * Rows that are shown change in place: with 10,000 of them a whole list is too slow.
   * @param {Instance} item
   */
  function redrawRow(item) {
    const found = route.root.querySelector('tr[data-key="' + item.instance_id + '"]');
    items.set(item.instance_id, item);
    if (!found) return;
    const fresh = row(item),
      hadFocus = found.contains(document.activeElement);
    fresh.classList.add("fresh");
    found.replaceWith(fresh);
    if (hadFocus) /** @type {HTMLElement} */ (fresh.querySelector("[data-row]"))?.focus();
  }
  /** @param {string} id */
  function removeRow(id) {
    items.delete(id);
    route.root.querySelector('tr[data-key="' + id + '"]')?.remove();
  }
  /** With thousands of rows a whole list is too slow: new ones are put where they belong. */
  function addRows(/** @type {Instance[]} */ fresh, /** @type {boolean} */ isFirst) {
    const body = route.root.querySelector("tbody");
    if (!body) return draw();
    const rows = fresh.map(row);
    isFirst ? body.prepend(...rows) : body.append(...rows);
    const end = route.root.querySelector("p.end");
    end?.replaceWith(endLine());
  }
  async function readFirst() {
    const answer = await get("/instances", { ...filters, limit: PAGE });
    const before = new Map(items);
    const fresh = answer.instances.filter(
      (/** @type {Instance} */ item) => !before.has(item.instance_id)
    );
    const isGap = fresh.length === PAGE, /* between these and those there may be others */
      rest = isGap || before.size < PAGE ? [] : [...before];
    items.clear();
    for (const item of answer.instances) items.set(item.instance_id, item);
    for (const [id, item] of rest) if (!items.has(id)) items.set(id, item);
    if (!rest.length) next = answer.next;
    if (isGap || items.size < DRAWN_AT_ONCE) return draw();
    for (const item of answer.instances) {
      const old = before.get(item.instance_id);
      if (old && old.next_sequence_number + old.status !== item.next_sequence_number + item.status)
        redrawRow(item);
    }
    if (fresh.length) addRows(fresh, true);
  }
  /** Does it still fit the filters that a change may undo? @param {Instance} item */
  const fits = (item) =>
    (!filters.status || filters.status === item.status) &&
    (!filters.state || filters.state === item.current_state) &&
    (!filters.active || filters.active === String(!isOver(item)));
  /** @param {string[]} ids */
  async function readEach(ids) {
    for (const id of ids) {
      const item = await get(instancePath(id));
      if (!route.isCurrent()) return;
      if (fits(item)) redrawRow(item);
      else removeRow(id);
    }
    if (items.size < DRAWN_AT_ONCE) draw();
  }
  /** Rows that are shown are asked for; what else fits now may be anywhere among the newest. */
  async function refresh(/** @type {import("./live.js").Change} */ change) {
    const shown = [...change.ids].filter((id) => items.has(id)),
      isMoving = ["status", "state", "active"].some((name) => filters[name]);
    if (change.all) return reread();
    if (shown.length > LOOK_AT_EACH) return reread();
    await readEach(shown);
    if (isNewest && (change.created || isMoving)) await readFirst();
  }
  /** As many rows as there are, at once. */
  async function reread() {
    const rows = Math.min(READ_AT_ONCE, Math.max(PAGE, items.size));
    const answer = await get("/instances",
      { ...filters, limit: rows, after: route.query.get("after") });
    if (!route.isCurrent()) return;
    const read = new Set(answer.instances.map((/** @type {Instance} */ item) => item.instance_id));
    const rest = [...items].slice(rows).filter(([id]) => !read.has(id));
    items.clear();
    for (const item of answer.instances) items.set(item.instance_id, item);
    for (const [id, item] of rest) items.set(id, item);
    if (!rest.length) next = answer.next;
    draw();
  }

  const names = (await get("/definitions", { limit: 1000 })).definitions.map(
    (/** @type {any} */ d) => d.name
  );
  try {
    await readUpTo(wanted);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 400) throw error;
    problem = error.message;
  }
  if (route.isCurrent()) draw();
  return {
    title: "Instances",
    refresh,
    keys: {
      n: () => {
        if (next) more();
      }
    }
  };
}
