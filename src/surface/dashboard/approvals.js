// approvals.js - what waits for a person: for whom, since when and until when.
import { getPages } from "./api.js";
import { actor } from "./actor.js";
import { askedView, gateButtons } from "./actions.js";
import { link } from "./app.js";
import { h, show } from "./dom.js";
import { shortId, when } from "./words.js";

const SHOWN = 100,
  TURNS = 100; /* pages of 10,000 instances that are looked at by itself */

/** @param {any} gate @param {() => Promise<any>} again */
export function gateCard(gate, again) {
  return h("section.card.gate", { "data-key": gate.step_id },
    h("h2", null,
      h("a", { href: link("instances/" + gate.instance_id), "data-row": "1" }, gate.step, " · ",
        gate.subject_ref ?? gate.definition ?? shortId(gate.instance_id))),
    h("p", null, gate.definition ? gate.definition + "@" + gate.version : "inline", " ",
      h("code.muted", null, shortId(gate.instance_id))),
    h("p", null, gate.approval?.by ? "For " + gate.approval.by.join(", ") : "Anyone may decide",
      gate.approval?.count > 1 ? "; " + gate.approval.count + " approvals needed" : "",
      gate.approved_by.length ? "; approved by " + gate.approved_by.join(", ") : "", "."),
    askedView(gate.ask),
    h("p.muted", null, gate.since && ["since ", when(gate.since)],
      gate.until && [", times out ", when(gate.until)]),
    gateButtons(gate, gate.step, again));
}

/**
 * Gates that wait.
 * @param {Record<string, any>} query
 * @param {number} most @param {number} [pages]
 */
export async function readGates(query, most, pages = 20) {
  const { rows, next } = await getPages("/gates", "gates", query, most, pages);
  return { gates: rows, next };
}

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  const mine = route.query.get("all") !== "1" && !!actor().name;
  const who = { approver: mine ? actor().name : undefined };
  /** @type {any[]} */
  let gates = [];
  /** @type {string | null} */
  let next = null;
  let isLooking = false,
    turns = 0;
  async function read() {
    const answer = await readGates(who, Math.max(SHOWN, gates.length));
    gates = answer.gates;
    next = answer.next;
  }
  async function more() {
    const answer = await readGates({ ...who, after: next }, SHOWN);
    gates = [...gates, ...answer.gates];
    next = answer.next;
    if (route.isCurrent()) draw();
  }
  const again = async () => {
    await read();
    if (route.isCurrent()) draw();
  };
  /** Of a large store a part is shown at once, and the rest is looked for. */
  async function readOn() {
    while (next && gates.length < SHOWN && turns++ < TURNS && route.isCurrent()) {
      const answer = await readGates({ ...who, after: next }, SHOWN, 1);
      gates = [...gates, ...answer.gates];
      next = answer.next;
      if (route.isCurrent()) draw();
    }
    isLooking = false;
    if (route.isCurrent()) draw();
  }
  function draw() {
    show(route.root, h("h1", null, "Approvals"),
      h("p", null,
        mine
          ? ["Those that ", h("b", null, actor().name), " may decide. ",
              h("a", { href: link("approvals?all=1") }, "Show all")]
          : actor().name
            ? ["All that wait. ", h("a", { href: link("approvals") }, "Only mine")]
            : "All that wait. Say who you are at “You act as” to see yours and to decide."),
      gates.length
        ? h("div.grid", null, gates.map((gate) => gateCard(gate, again)))
        : h("div.empty", null,
            h("h2", null,
              (next ? "Nothing found yet that waits for " : "Nothing waits for ") +
                (mine ? actor().name : "an approval")),
            h("p", null, "A step of a flow with ", h("code", null, "approval:"),
              " stops here until people decide. Try it:"),
            h("pre", null, 'pawl start approval --input \'{"what": "the annual report"}\'')),
      isLooking
        ? h("p.end", { role: "status" }, "Looking for more…")
        : next && h("p.end", null, h("button", { onclick: more }, "Look for more")));
  }
  ({ gates, next } = await readGates(who, SHOWN, 1));
  isLooking = !!next && gates.length < SHOWN;
  if (route.isCurrent()) draw();
  readOn().catch(() => {});
  return { title: "Approvals", refresh: again };
}
