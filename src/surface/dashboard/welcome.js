// welcome.js - four examples that live in this store: a refusal by name, a flow that outlived its
// process, an approval that waits, and a history beside a copy of it that was changed.
import { get, getText, instancePath, newKey, post, Refusal } from "./api.js";
import { actor, actorMember, setActor } from "./actor.js";
import { approve } from "./actions.js";
import { link } from "./app.js";
import { h } from "./dom.js";
import { canVerify, readRecords, verifyChain } from "./verify.js";
import { clock, isOver } from "./words.js";

/**
 * @typedef {{refused: any, killed: any, approval: any, verified: any, gate: any, since: string |
 *   null, refusal: string, proof: any}} Examples
 */

export const isHidden = () => {
  try {
    return localStorage.getItem("pawl.welcome") === "hidden";
  } catch {
    return false;
  }
};
const hide = () => {
  try {
    localStorage.setItem("pawl.welcome", "hidden");
  } catch {
    /* it comes back */
  }
  window.dispatchEvent(new Event("pawl:again"));
};

/** @param {string} which */
const find = async (which) =>
  (await get("/instances", { "label.example": which, limit: 1 })).instances[0] ?? null;

/** @param {any} item */
async function proofOf(item) {
  if (!item || !canVerify()) return null;
  const chain = readRecords(await getText(instancePath(item.instance_id) + "/records"));
  const copy = structuredClone(chain),
    changed = copy.records.find((record) => record.what >= 0 && record.actor);
  if (changed?.actor) changed.actor.text = "mallory";
  return {
    marks: await verifyChain(chain),
    copy: await verifyChain(copy),
    chain,
    changed,
    before: chain.records.find((record) => record.seq === changed?.seq && record.what >= 0)
      ?.actor?.text
  };
}

/**
 * @param {Examples | null} before
 * @returns {Promise<Examples | null>} null: this store has none of them
 */
export async function readExamples(before) {
  const [refused, killed, approval, verified] = await Promise.all(
    ["refused", "killed", "approval", "verified"].map(find)
  );
  if (!refused && !killed && !approval && !verified) return null;
  const flow =
    killed ?? (await get("/instances", { definition: "welcome", limit: 1 })).instances[0];
  const gates = approval
    ? (await get("/gates", { definition: approval.definition, limit: 100 })).gates
    : [];
  return {
    refused,
    killed: flow ?? null,
    approval,
    verified,
    gate:
      gates.find((/** @type {any} */ gate) => gate.instance_id === approval?.instance_id) ??
      null,
    since: flow ? (await get("/workers")).since : null,
    refusal: before?.refusal ?? "",
    proof: before?.proof ?? (await proofOf(verified))
  };
}

/** @param {any} item @param {string} words */
const open = (item, words) => h("a", { href: link("instances/" + item.instance_id) }, words);

/** @param {Examples} all @param {() => void} draw */
function refusedCard(all, draw) {
  if (!all.refused) return null;
  const tryIt = async () => {
    try {
      await post(
        instancePath(all.refused.instance_id) + "/fire",
        { action: "ship", ...actorMember() },
        newKey()
      );
      all.refusal = "It was paid in the meantime, so it could be shipped.";
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      all.refusal = error.reason + ": " + error.message;
    }
    draw();
  };
  return h("section.card", null, h("h3", null, "1 · What is not declared cannot happen"),
    h("p", null, "Order ", open(all.refused, all.refused.subject_ref), " is ",
      h("b", null, all.refused.current_state),
      ". Its definition has no way to ship it from there."),
    h("div.buttons", null, h("button.primary", { onclick: tryIt }, "Ship it anyway")),
    h("p.refusal", { role: "status" }, all.refusal && h("code", null, all.refusal)));
}

/** @param {Examples} all */
function killedCard(all) {
  const item = all.killed;
  if (!item) return null;
  const outlived = all.since && Date.parse(item.instantiated_at) < Date.parse(all.since);
  return h("section.card", null, h("h3", null, "2 · A killed process loses nothing"),
    h("p", null, "The flow ", open(item, item.subject_ref ?? item.definition),
      outlived
        ? [" began at " + clock(item.instantiated_at) + " in a process that ",
            item.labels?.example === "killed"
              ? ["was ended by ", h("code", null, "kill -9")]
              : "is no more",
            ". This server started at " +
              clock(all.since ?? "") +
              ", read the history, and went on."]
        : " began in this server. Kill the server with kill -9, start it again, and watch it " +
            "go on."),
    h("p", null,
      isOver(item)
        ? ["It is ", h("b", null, item.current_state), "; no step was done twice."]
        : ["It is ", h("b", null, "still under way"), ". ", open(item, "Watch it"), "."]));
}

/** @param {Examples} all @param {() => Promise<any>} again */
function approvalCard(all, again) {
  if (!all.approval) return null;
  const gate = all.gate,
    names = gate?.approval?.by ?? [],
    next = names.find((/** @type {string} */ name) => !gate.approved_by.includes(name));
  const decide = async () => {
    if (!names.includes(actor().name) || gate.approved_by.includes(actor().name)) setActor(next);
    await approve(gate, again);
  };
  return h("section.card", null, h("h3", null, "3 · An approval waits for you"),
    gate
      ? [h("p", null, open(all.approval, all.approval.subject_ref ?? "A flow"),
            " needs " +
              gate.approval.count +
              " of " +
              names.join(", ") +
              (gate.approved_by.length
                ? "; " + gate.approved_by.join(", ") + " approved it already"
                : "") +
              ". It would wait for days, also while the server is down."),
          h("div.buttons", null,
            h("button.primary",
              { onclick: decide, disabled: !!actor().fixed && !names.includes(actor().fixed) },
              "Approve as " +
                (names.includes(actor().name) && !gate.approved_by.includes(actor().name)
                  ? actor().name
                  : next)))]
      : h("p", null, open(all.approval, all.approval.subject_ref ?? "The flow"), " is ",
          h("b", null, all.approval.current_state),
          ". Who approved it, and when, is in its history."));
}

/** @param {any} marks @param {any} records @param {any} changed */
function chainView(marks, records, changed) {
  return h("ol.chain", null,
    marks.map((/** @type {any} */ mark, /** @type {number} */ i) =>
      h("li", null, h("span.mark." + (mark.ok ? "ok" : "bad"), null, mark.ok ? "✓" : "✗"),
        h("span.sr", null, mark.ok ? "verified" : "does not verify"), " ",
        mark.isEntry ? "entry " + mark.seq : "created",
        records[i].actor?.text &&
          h("span" +
              (changed && records[i].seq === changed.seq && mark.isEntry
                ? ".tampered"
                : ".muted"),
            null, " by " + records[i].actor.text),
        " ", h("code.muted", null, mark.hash.slice(0, 6)))
    ));
}

/** @param {Examples} all */
function verifiedCard(all) {
  if (!all.verified) return null;
  const proof = all.proof;
  return h("section.card", null, h("h3", null, "4 · The past cannot be changed unseen"),
    !proof
      ? h("p", null, "Your browser offers Web Crypto only on https or localhost. ",
          open(all.verified, "The history"))
      : [h("p", null, "The history of ", open(all.verified, all.verified.subject_ref),
            ", and a copy of it in which “" +
              (proof.before ?? "") +
              "” was replaced. Your browser has checked both."),
          h("div.pair", null,
            h("div", null, h("b", null, "as recorded"),
              chainView(proof.marks, proof.chain.records, null)),
            h("div", null, h("b", null, "tampered copy"),
              chainView(proof.copy,
                proof.chain.records.map((/** @type {any} */ record) =>
                  record.seq === proof.changed?.seq && record.what >= 0 ? proof.changed : record
                ),
                proof.changed)))]);
}

/** @param {Examples} all @param {() => void} draw @param {() => Promise<any>} again */
export const welcome = (all, draw, again) =>
  h("section.welcome", { "aria-labelledby": "welcome-title" },
    h("div.welcome-head", null,
      h("h2", { id: "welcome-title" }, "Welcome. Four things that are true here"),
      h("button.plain", { onclick: hide }, "Hide")),
    h("div.grid.two", null, refusedCard(all, draw), killedCard(all), approvalCard(all, again),
      verifiedCard(all)));
