// waits.js - what an instance waits for: for whom, since when, until when, and what can be done.
import { get, instancePath } from "./api.js";
import { act, askedView, gateButtons, PAYLOAD } from "./actions.js";
import { link } from "./app.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { jsonView } from "./json.js";
import { duration, isOver, plural, shortId, when } from "./words.js";

/** @typedef {Record<string, any>} Instance @typedef {() => Promise<any>} Again */

/** The name of a timer, in words. @param {string} name */
export function timerWords(name) {
  const slot = /^(.*)@(\d{4}-\d\d-\d\dT[0-9:.]+Z)$/.exec(name);
  return name === "~retry"
    ? "the next attempt"
    : name === "~turn"
      ? "an event that waits"
      : name === "~timeout"
        ? "a time limit"
        : slot
          ? [slot[1], h("span.muted", null, " slot " + slot[2])]
          : name;
}

/** @param {any} held */
const holder = (held) => [held.worker
    ? [": held by ", h("b", null, held.worker)]
    : " in the server",
  ", since ", when(held.since),
  held.lease_until && [", its lease ends ", when(held.lease_until)]];

/** @param {any} held */
const progress = (held) =>
  held?.progress === undefined
    ? null
    : h("div.progress", null, h("span.muted", null, "progress "),
        h("code", null, JSON.stringify(held.progress)), " ", when(held.progress_at));

/** @param {any} asked */
const noWorker = (asked) =>
  asked.asked_at
    ? ["; ", h("b", null, asked.asked_by ?? "a worker"), " asked for it ", when(asked.asked_at)]
    : ["; no worker has asked for this tool since ", when(asked.since),
        asked.tools?.length ? " (they ask for " + asked.tools.join(", ") + ")" : ""];

/** @param {any} limit */
const limitWords = (limit) => [" waits for a place: ",
  limit.tool
    ? ["the tool ", h("b", null, limit.tool)]
    : [h("b", null, limit.definition), limit.step && " (step " + limit.step + ")"],
  " has at most ",
  limit.limit === "rate"
    ? limit.max + " in " + duration(limit.per_ms)
    : limit.max + (limit.step || limit.tool ? " at once" : " under way"),
  limit.key !== undefined && [" for ", h("code", null, JSON.stringify(limit.key))]];

/** @param {any} wait */
const stepState = (wait) =>
  wait.status === "running"
    ? " is running"
    : wait.status !== "ready"
      ? " is waiting"
      : wait.limit
        ? limitWords(wait.limit)
        : wait.here
          ? " is about to run"
          : " waits for a worker";

/** @param {any} failed */
const failure = (failed) =>
  failed &&
  h("div.error-line", null,
    "attempt " + failed.attempt + (failed.of ? " of " + failed.of : "") + " failed: ",
    JSON.stringify(failed.error));

/** @param {any} wait @param {any} until */
const stepLine = (wait, until) => [h("p", null, h("b", null, "Step"), " ",
    h("b", null, wait.name), wait.tool && [" (", wait.tool, ")"], stepState(wait),
    wait.held && holder(wait.held), wait.workers && !wait.limit && noWorker(wait.workers), until,
    "."),
  progress(wait.held), failure(wait.failed)];

/** @param {any} wait @param {any} until */
const gateLine = (wait, until) =>
  h("p", null, h("b", null, "Approval"), " of ", h("b", null, wait.name),
    wait.since && [", since ", when(wait.since)], until, ". ",
    wait.approval?.by ? "For " + wait.approval.by.join(", ") : "Anyone may decide",
    wait.approval?.count > 1 && " (" + wait.approval.count + " needed)",
    wait.approved_by?.length ? "; approved by " + wait.approved_by.join(", ") : "", ".");

/** @param {Instance} item @param {any} wait @param {Again} again */
const sendSignal = (item, wait, again) =>
  ask("Send the signal " + wait.name, null,
    [{ ...PAYLOAD, hint: "Passed to the wait. May stay empty." }], "Send", (values) =>
      act(instancePath(item.instance_id) + "/signals", { name: wait.name, ...values }, "Sent",
        again)
    );

/** @param {Instance} item @param {any} wait @param {Again} again */
function waitLine(item, wait, again) {
  const until = wait.until && [", times out ", when(wait.until)];
  switch (wait.kind) {
    case "approval":
      return [gateLine(wait, until), askedView(wait.ask), gateButtons(wait, wait.name, again)];
    case "signal":
      return [h("p", null, h("b", null, "Signal"), " ", h("b", null, wait.name), until,
          wait.refused && h("span.error-line", null, " last one refused: " + wait.refused)),
        h("div.buttons", null,
          h("button.primary", { onclick: () => sendSignal(item, wait, again) },
            "Send " + wait.name + "…"))];
    case "timer":
      return [h("p", null, h("b", null, "Timer"), " ", timerWords(wait.name),
          wait.until && [", due ", when(wait.until)],
          wait.refused && h("span.error-line", null, " " + wait.refused)),
        failure(wait.failed)];
    case "step":
      return stepLine(wait, until);
    case "child":
      return h("p", null, h("b", null, "Child"), " of ", wait.name, " ",
        wait.instance_id &&
          h("a", { href: link("instances/" + wait.instance_id) }, shortId(wait.instance_id)),
        wait.refused && h("span.error-line", null, wait.refused));
    case "pause":
      return h("p", null, h("b", null, "Paused"), wait.actor_ref && " by " + wait.actor_ref,
        wait.paused_at && [" ", when(wait.paused_at)], wait.reason && ": " + wait.reason);
    default:
      return null;
  }
}

/** It was cancelled or has failed, and cleans up or undoes first. @param {any} why */
function ending(why) {
  const end = why?.cancelling ?? why?.undoing;
  if (!end) return null;
  return h("p.ending", null,
    why.cancelling
      ? [h("b", null, "Cancelled"), end.actor_ref && " by " + end.actor_ref]
      : h("b", null, "Failed"),
    " ", when(end.since), end.reason && ": " + end.reason,
    why.cancelling
      ? ". It cleans up and undoes what was done first."
      : ". It undoes what was done first.");
}

/** @param {Instance} item @param {any} view @param {any} why @param {Again} again */
export function waits(item, view, why, again) {
  const lines = view.waiting_for.filter((/** @type {any} */ wait) => wait.kind !== "action");
  if (isOver(item)) return ended(item);
  return h("div.waits", null, ending(why),
    lines.length
      ? lines.map((/** @type {any} */ wait) => h("div.wait", null, waitLine(item, wait, again)))
      : item.kind === "machine" && !item.actions.length
        ? h("p", null, "Nothing is legal from here.")
        : item.kind === "machine"
          ? h("p.muted", null, "It waits for one of these actions:")
          : null,
    view.waiting_more > 0 && h("p.muted", null, "and " + view.waiting_more + " more"));
}

/** @param {Instance} item */
function ended(item) {
  return h("div.waits", null,
    h("p", null, "It ended ", when(item.updated_at), " in ", h("b", null, item.current_state),
      ", ", duration(Date.parse(item.updated_at) - Date.parse(item.instantiated_at)),
      " after it began."),
    item.error && h("div.problem", null, jsonView(item.error)));
}

// ---- In a list ----

/** One wait in a few words. @param {any} wait */
function brief(wait) {
  const since = wait.since ?? wait.held?.since;
  switch (wait.kind) {
    case "approval":
      return ["waits for the approval of ", h("b", null, wait.approval?.by?.join(", ") ?? "anyone"),
        since && [", asked ", when(since)]];
    case "signal":
      return ["waits for the signal ", h("b", null, wait.name)];
    case "timer":
      return ["waits for ", timerWords(wait.name), wait.until && [", due ", when(wait.until)]];
    case "step":
      return [h("b", null, wait.name),
        wait.held
          ? [" runs", wait.held.worker && [", held by ", h("b", null, wait.held.worker)],
              since && [", since ", when(since)]]
          : stepState(wait)];
    case "child":
      return ["waits for a child of ", h("b", null, wait.name)];
    case "pause":
      return ["paused", wait.actor_ref && " by " + wait.actor_ref,
        wait.reason && ": " + wait.reason];
    default:
      return null;
  }
}

/**
 * For whom or what it waits, in one line; of a machine its actions.
 * @param {any[]} waiting as instance.why has it
 */
export function briefWaits(waiting) {
  const actions = waiting.filter((wait) => wait.kind === "action").map((wait) => wait.name),
    others = waiting.filter((wait) => wait.kind !== "action");
  const more = others.length - 1;
  return [others.length > 0 && brief(others[0]), more > 0 && " and " + plural(more, "more", "more"),
    actions.length > 0 && [others.length > 0 ? ", or for " : "waits for ", actions.join(" or ")]];
}

/**
 * What several instances wait for, in one request: instance_id to the answer of instance.why.
 * @param {Instance[]} items
 * @returns {Promise<Map<string, any>>}
 */
export async function whyOf(items) {
  const pairs = await Promise.all(
    items.map(async (item) => {
      const path = instancePath(item.instance_id) + "/why";
      return /** @type {[string, any]} */ ([item.instance_id, await get(path).catch(() => null)]);
    })
  );
  return new Map(pairs.filter(([, why]) => why));
}
