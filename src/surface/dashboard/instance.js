// instance.js - one instance: where it stands, how it came there, what may be done now, and proof
// that its past was not changed. A slider shows it as it was after any entry.
import {
  get,
  getPages,
  getText,
  instancePath,
  namePath,
  Refusal
} from "./api.js";
import {
  actionButtons,
  actionKeys,
  approve,
  copyCalls,
  gateRefusal,
  keepButtons,
  lifeButtons
} from "./actions.js";
import { link } from "./app.js";
import { h, show } from "./dom.js";
import { fitGraph, graphFrame } from "./graph.js";
import { historyTable, timeline } from "./history.js";
import { digest, jsonBlock, jsonView } from "./json.js";
import { stepTree } from "./steps.js";
import { asOf } from "./travel.js";
import { waits } from "./waits.js";
import {
  canVerify,
  createdFault,
  declared,
  readRecords,
  shownFault,
  verifyChain
} from "./verify.js";
import { badge, clock, count, isOver, plural, shortId, when } from "./words.js";

const ENTRIES = 300,
  STEPS = 500,
  VERIFY_MAX = 20_000;

/** @typedef {import("./verify.js").Mark} Mark */

/** @param {any} item @param {any} hold */
function facts(item, hold) {
  const line = (/** @type {string} */ name, /** @type {any} */ value) =>
    value === null || value === undefined || value === ""
      ? null
      : [h("dt", null, name), h("dd", null, value)];
  const other = (/** @type {string} */ id) =>
    h("a", { href: link("instances/" + id) }, h("code", null, shortId(id)));
  return h("dl.facts", null, line("Id", h("code", null, item.instance_id)),
    line("Definition",
      item.definition
        ? h("a",
            {
              href: link(
                "definitions/" + encodeURIComponent(item.definition) + "?version=" + item.version
              )
            },
            item.definition + "@" + item.version)
        : "inline"),
    line("Kind", item.kind),
    line("Subject",
      item.subject_ref &&
        h("a", { href: link("instances?subject_ref=" + encodeURIComponent(item.subject_ref)) },
          item.subject_ref)),
    line("Correlation",
      item.correlation_id &&
        h("a",
          { href: link("instances?correlation_id=" + encodeURIComponent(item.correlation_id)) },
          item.correlation_id)),
    line("Labels",
      item.labels &&
        Object.entries(item.labels).map(([k, v]) =>
          h("a.label",
            {
              href: link(
                "instances?" + new URLSearchParams({ ["label." + k]: /** @type {string} */ (v) })
              )
            },
            h("bdi", null, k), "=", h("bdi", null, v))
        )),
    line("Created",
      [when(item.instantiated_at), item.created_by && [" by ", h("bdi", null, item.created_by)]]),
    line("Changed", when(item.updated_at)),
    line("Parent", item.parent_id && other(item.parent_id)),
    line("Redrives", item.retry_of && other(item.retry_of)),
    line("Redriven as", item.retried_as && other(item.retried_as)),
    line("On hold",
      hold && ["since ", when(hold.held_at),
        hold.actor_ref && [" by ", h("bdi", null, hold.actor_ref)],
        hold.reason && [": ", h("bdi", null, hold.reason)]]),
    line("Erased",
      item.erased && [when(item.erased.erased_at),
        item.erased.actor_ref && [" by ", h("bdi", null, item.erased.actor_ref)],
        item.erased.reason && [": ", h("bdi", null, item.erased.reason)]]));
}

/** @param {any} view */
function children(view) {
  if (!view.children?.length) return null;
  return h("section.card", null, h("h2", null, "Children"),
    h("ul.plain", null,
      view.children.map((/** @type {any} */ child) =>
        h("li", null,
          h("a", { href: link("instances/" + child.instance_id) },
            h("code", null, shortId(child.instance_id))),
          child.step && " of " + child.step,
          child.awaited ? h("span.muted", null, " awaited") : null,
          child.outlives ? h("span.muted", null, " outlives its parent") : null)
      )),
    view.children_more > 0 && h("p.muted", null, view.children_more + " more"));
}

/**
 * @param {{marks: Map<number, Mark>, all: Mark[], state: string, words: string, hasTable:
 *   boolean}} proof
 */
function proofLine(proof) {
  if (proof.state === "none") return h("p.muted", null, proof.words);
  if (proof.state === "checking")
    return h("p.muted", { role: "status" }, "Verifying in your browser… ", proof.words);
  const bad = proof.all.find((mark) => !mark.ok);
  return bad
    ? h("p.problem", { role: "alert" }, h("b", null, "This history does not verify. "),
        (bad.isEntry ? "Entry " + bad.seq : "Its creation") + ": " + bad.what + ".")
    : h("p.verified", null, h("span.mark.ok", null, "✓ "), plural(proof.all.length, "record"),
        " verified in this browser, by SHA-256",
        proof.hasTable && "; each entry is a declared transition",
        ". Last hash ",
        h("code", null, proof.all[proof.all.length - 1]?.hash.slice(0, 16) + "…"));
}

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  const id = route.path[0],
    path = instancePath(id);
  let tab = route.query.get("tab") ?? "history",
    at = Number(route.query.get("at")) || Infinity;
  /** @type {any} */
  let view;
  /** @type {import("./graph.js").Graph | null} */
  let graph = null;
  let graphWords = "",
    zoom = 0;
  /** @type {any} */
  let past = null;
  let lastSeq = -1,
    travelTurn = 0;
  const proof = {
    marks: /** @type {Map<number, Mark>} */ (new Map()),
    all: /** @type {Mark[]} */ ([]),
    state: "none",
    words: "",
    hasTable: false,
    seq: -1
  };
  /** @type {any[]} */
  let earlier = [];
  /** @type {any} */
  let why = null;
  /** @type {any} */
  let hold = null;
  /** @type {string[]} */
  let queries = [];
  /** @type {Map<string, {value?: any, problem?: string}>} */
  const answers = new Map();
  /** @type {Map<string, any>} */
  const args = new Map();

  const total = () => view.instance.next_sequence_number - 1;
  const isPast = () => at < total();
  const entries = () => [...earlier, ...view.entries];

  function remember() {
    const query = new URLSearchParams();
    if (tab !== "history") query.set("tab", tab);
    if (isPast()) query.set("at", String(at));
    history.replaceState(null, "", link("instances/" + id) + (query.size ? "?" + query : ""));
  }

  // ---- Reading ----

  async function readGraph() {
    try {
      graph = await get(path + "/graph", {
        format: "layout",
        sequence_to: isPast() ? at : undefined
      });
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 401) throw error;
      graph = null;
      graphWords = error.message;
    }
  }
  async function read() {
    view = await get(path + "/view", { entries: ENTRIES, steps: STEPS });
    lastSeq = total();
    why =
      view.instance.kind === "machine" || isOver(view.instance)
        ? null
        : await get(path + "/why");
    await readGraph();
    if (!isPast()) past = null;
  }
  async function readEarlier() {
    const first = entries()[0]?.sequence_number ?? 1;
    const answer = await get(path + "/history", {
      sequence_from: Math.max(1, first - 1000),
      sequence_to: first - 1
    });
    earlier = [...answer.entries, ...earlier];
    draw();
  }
  /** The view has steps without their arguments, which may be large. */
  async function readArgs() {
    const missing = (view.steps ?? []).find((/** @type {any} */ one) => !args.has(one.step_id));
    if (!missing) return;
    const before = Number(missing.step_id.split(".")[1]) - 1;
    const after = before > 0 ? id + "." + before : undefined;
    const answer = await getPages(path + "/steps", "steps", { after }, 2 * STEPS, 2);
    for (const step of answer.rows) args.set(step.step_id, step.args);
    for (const step of view.steps) if (!args.has(step.step_id)) args.set(step.step_id, null);
    if (route.isCurrent()) draw();
  }
  /** Who may not see holds sees none. */
  async function readHold() {
    try {
      const { holds } = await get("/holds", { limit: 1000 });
      hold = holds.find((/** @type {any} */ one) => one.instance_id === id) ?? null;
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 401) throw error;
    }
    if (route.isCurrent()) draw();
  }
  async function readQueries() {
    const { definition, version, kind } = view.instance;
    if (kind !== "flow" || !definition) return;
    const found = await get("/definitions/" + namePath(definition), { version, expanded: true });
    queries = found.queries ?? [];
    if (route.isCurrent()) draw();
  }
  /** @param {string} name */
  async function askQuery(name) {
    try {
      answers.set(name, await get(path + "/queries/" + encodeURIComponent(name)));
    } catch (error) {
      answers.set(name, { problem: /** @type {Error} */ (error).message });
    }
    draw();
  }
  async function again() {
    await read();
    if (route.isCurrent()) draw();
    check();
    readArgs().catch(() => {});
  }

  // ---- Time travel ----

  /** @param {number} n */
  async function travel(n) {
    const mine = ++travelTurn;
    at = n >= total() ? Infinity : Math.max(0, n);
    remember();
    draw();
    await readGraph();
    if (mine !== travelTurn) return;
    past = isPast() ? await asOf(path, view, entries(), at) : null;
    if (mine === travelTurn && route.isCurrent()) draw();
  }
  const step = (/** @type {number} */ by) => travel((isPast() ? at : total()) + by);

  function slider() {
    const now = isPast() ? at : total();
    return h("div.travel", null,
      h("button",
        {
          onclick: () => step(-1),
          disabled: now <= 0,
          "aria-label": "One entry back",
          title: "["
        },
        "‹"),
      h("input",
        {
          type: "range",
          min: 0,
          max: total(),
          value: now,
          "aria-label": "Show it as of entry",
          "aria-valuetext": "entry " + now + " of " + total(),
          oninput: (/** @type {any} */ e) => travel(Number(e.target.value))
        }),
      h("button",
        {
          onclick: () => step(1),
          disabled: !isPast(),
          "aria-label": "One entry forward",
          title: "]"
        },
        "›"),
      h("span.at", null,
        isPast()
          ? h("span", null, "as of entry ", h("b", null, now), " of " + count(total()),
              past?.entry && ": " + past.entry.action + ", " + clock(past.entry.recorded_at))
          : h("span.muted", null, "now: entry " + count(now))),
      h("button.plain", { onclick: () => travel(Infinity), hidden: !isPast() }, "Back to now"));
  }

  // ---- A file ----

  /** An export file (docs/format.md): the server gives all but its first line. */
  async function download() {
    const lines = ['{"pawl":"export","format":1}\n', await getText(path + "/export")];
    const href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
    /** @type {HTMLAnchorElement} */ (h("a", { href, download: id + ".ndjson" })).click();
    window.setTimeout(() => URL.revokeObjectURL(href), 60_000);
  }

  // ---- Proof ----

  async function check() {
    if (proof.seq === lastSeq || proof.state === "checking") return;
    if (!canVerify()) {
      proof.state = "none";
      proof.words =
        "This browser offers Web Crypto only on https or localhost, so the hashes are not " +
        "verified here. pawl verify " +
        id +
        " does.";
      return draw();
    }
    if (total() > VERIFY_MAX && proof.seq < 0) {
      proof.words = "This history is long: ";
      proof.state = "none";
      proof.seq = lastSeq;
      return draw();
    }
    return verifyNow();
  }
  /** Who may not read the definition verifies the hashes alone. */
  async function readChain() {
    try {
      return readRecords(await getText(path + "/export"));
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 403) throw error;
      return readRecords(await getText(path + "/records"));
    }
  }
  async function verifyNow() {
    const seq = lastSeq;
    proof.state = "checking";
    try {
      const chain = await readChain();
      const table = await declared(chain.row, chain.definitions);
      const all = await verifyChain(
        chain,
        (done) => {
          proof.words = done + " of " + chain.records.length;
          if (route.isCurrent()) draw();
        },
        table
      );
      const bySeq = new Map(
        chain.records.filter((record) => record.what >= 0).map((record) => [record.seq, record])
      );
      const marks = new Map(all.filter((mark) => mark.isEntry).map((mark) => [mark.seq, mark]));
      for (const entry of entries()) {
        const n = entry.sequence_number,
          fault = shownFault(entry, bySeq.get(n), table);
        if (!marks.has(n)) {
          marks.set(n, { seq: n, isEntry: true, ok: true, what: "", hash: entry.hash });
          all.push(/** @type {Mark} */ (marks.get(n)));
        }
        const mark = /** @type {Mark} */ (marks.get(n));
        if (fault && mark.ok) Object.assign(mark, { ok: false, what: fault });
      }
      const fault = createdFault(view.instance, chain, table);
      if (fault && all[0]?.ok) Object.assign(all[0], { ok: false, what: fault });
      Object.assign(proof, {
        state: "done",
        all,
        marks,
        hasTable: !!table,
        seq,
        words: ""
      });
    } catch (error) {
      Object.assign(proof, {
        state: "none",
        words: "The records could not be read: " + /** @type {Error} */ (error).message,
        seq
      });
    }
    if (route.isCurrent()) draw();
  }

  // ---- Showing ----

  const shown = () => past ?? view;
  /** What its definition lets one ask. */
  const queryList = () =>
    queries.length > 0 &&
    h("div.queries", { "data-key": "queries" }, h("h3", null, "Queries"),
      queries.map((name) => {
        const answer = answers.get(name);
        return h("div.query", { "data-key": "q-" + name },
          h("button", { onclick: () => askQuery(name), "aria-label": "Ask " + name }, name), " ",
          answer?.problem && h("span.error-line", null, answer.problem),
          answer &&
            !answer.problem &&
            h("span", { "data-key": digest(answer.value) }, jsonView(answer.value ?? null)));
      }));
  const TABS = /** @type {[string, string, () => any][]} */ ([["history", "History",
      () => [proofLine(proof),
        proof.state === "none" &&
          proof.seq >= 0 &&
          total() > VERIFY_MAX &&
          h("button", { onclick: verifyNow }, "Verify " + count(total()) + " entries here"),
        historyTable(entries(), proof.marks, proof.state === "checking" && !proof.marks.size,
          isPast() ? at : Infinity, travel),
        entries()[0]?.sequence_number > 1 &&
          h("p.end", null, h("button", { onclick: readEarlier }, "Show earlier entries"), " ",
            count(entries()[0].sequence_number - 1) + " more")]],
    ["timeline", "Timeline",
      () =>
        timeline(
          entries().filter((entry) => entry.sequence_number <= at),
          {
            ...view.instance,
            ...(past && {
              current_state: past.instance.current_state,
              status: past.instance.status,
              terminal_kind: past.instance.terminal_kind
            })
          },
          shown().steps ?? [],
          args,
          (route.root.querySelector(".columns > .main")?.clientWidth ?? 700) - 40
        )],
    ["steps", "Steps", () => stepTree(shown(), args)],
    ["data", "Data",
      () =>
        h("div", null, queryList(), jsonBlock("Input", view.instance.input),
          jsonBlock("Variables" + (past ? " as of entry " + at : ""), shown().variables),
          jsonBlock("Result", shown().instance.result),
          jsonBlock("Error", shown().instance.error),
          jsonBlock("Metadata", view.instance.instance_metadata),
          [view.instance.input, shown().variables, shown().instance.result,
            view.instance.instance_metadata].every(
            (value) => value === null || value === undefined
          ) && h("p.muted", null, "This instance has no input, variables or result."))]]);
  /** @param {KeyboardEvent} event */
  function tabKey(event) {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0,
      names = tabs().map(([name]) => name);
    if (!by) return;
    tab = names[(names.indexOf(tab) + by + names.length) % names.length];
    remember();
    draw();
    document.getElementById("tab-" + tab)?.focus();
  }
  const tabs = () =>
    TABS.filter(([name]) => name !== "steps" || view.instance.kind !== "machine");

  /** @param {import("./graph.js").GraphNode} node */
  function onNode(node) {
    if (view.instance.kind === "machine") return;
    tab = "steps";
    remember();
    draw();
    const found = /** @type {HTMLElement | null} */ (
      [...route.root.querySelectorAll("section.step")].find(
        (section) => section.getAttribute("data-key") === "s-" + node.name
      )
    );
    found?.scrollIntoView({ block: "center" });
    found?.querySelectorAll("details").forEach((fold, i, all) => {
      if (i === all.length - 1) fold.open = true;
    });
  }

  function draw() {
    const item = view.instance,
      then = shown().instance;
    show(route.root,
      h("div.head", null,
        h("h1", null, h("bdi", null, item.subject_ref ?? item.definition ?? "Instance"), " ",
          h("code.muted", null, shortId(id))),
        h("p.now", { "aria-live": "polite" }, badge(then.status), " ",
          h("b.state-name", null, then.current_state),
          past &&
            h("span.muted", null, " (as of entry " + at + "; now " + item.current_state + ")"))),
      h("div.columns", null,
        h("div.main", null,
          h("section.card.graph-card", null, slider(),
            graph
              ? graphFrame(graph, { onNode: item.kind === "machine" ? undefined : onNode })
              : h("p.muted", null, graphWords || "There is no picture."),
            h("div.zoom", null,
              ["−", "+", "fit"].map((sign) =>
                h("button.plain",
                  {
                    "aria-label": sign === "−" ? "Smaller" : sign === "+" ? "Larger" : "Fit",
                    onclick: () => {
                      const frame = route.root.querySelector(".graph-frame");
                      zoom =
                        sign === "fit"
                          ? 0
                          : Math.min(
                              3,
                              Math.max(
                                0.2,
                                (zoom || fitGraph(/** @type {Element} */ (frame))) *
                                  (sign === "+" ? 1.25 : 0.8)
                              )
                            );
                      draw();
                    }
                  },
                  sign)
              ))),
          h("section.card", null,
            h("div.tabs", { role: "tablist", onkeydown: tabKey },
              tabs().map(([name, words]) =>
                h("button",
                  {
                    role: "tab",
                    id: "tab-" + name,
                    "aria-selected": String(tab === name),
                    "aria-controls": "tab-panel",
                    tabindex: tab === name ? 0 : -1,
                    onclick: () => {
                      tab = name;
                      remember();
                      draw();
                    }
                  },
                  words)
              )),
            h("div",
              {
                role: "tabpanel",
                id: "tab-panel",
                "aria-labelledby": "tab-" + tab,
                "data-key": "panel-" + tab
              },
              (tabs().find(([name]) => name === tab) ?? TABS[0])[2]()))),
        h("aside", null,
          past
            ? h("section.card.past", null, h("h2", null, "The past"),
                h("p", null,
                  "You see the instance as it was after entry " +
                    at +
                    ". What may be done is shown for now only."),
                h("button", { onclick: () => travel(Infinity) }, "Back to now"))
            : h("section.card", null,
                h("h2", null, isOver(item) ? "How it ended" : "What it waits for"),
                waits(item, view, why, again), actionButtons(item, again)),
          h("section.card", null, h("h2", null, "About"), facts(item, hold),
            lifeButtons(item, again),
            keepButtons(item, hold, readHold)),
          children(view),
          h("section.card", null, h("h2", null, "Take it along"), copyCalls(item),
            h("p", null,
              h("button", { onclick: download }, "Download all of it"),
              h("span.hint", null,
                " its definition and every record with its hash; pawl import reads it"))))));
    const frame = route.root.querySelector(".graph-card .graph-frame");
    if (frame) fitGraph(frame, zoom);
  }

  await read();
  if (isPast()) past = await asOf(path, view, entries(), at);
  if (route.isCurrent()) draw();
  check();
  readArgs().catch(() => {});
  readHold().catch(() => {});
  readQueries().catch(() => {});
  return {
    title:
      (view.instance.subject_ref ?? view.instance.definition ?? "Instance") + " " + shortId(id),
    stream: path + "/events",
    refresh: again,
    get keys() {
      const gate = view.waiting_for.find(
        (/** @type {any} */ wait) => wait.kind === "approval" && !gateRefusal(wait)
      );
      return {
        "[": () => step(-1),
        "]": () => step(1),
        ...(!past && actionKeys(view.instance, again)),
        ...(gate && { a: () => approve(gate, again) })
      };
    }
  };
}
