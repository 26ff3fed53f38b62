// steps.js - the steps of a flow or of code: every attempt, with what went in and what came out.
import { link } from "./app.js";
import { h } from "./dom.js";
import { jsonBlock } from "./json.js";
import { badge, duration, when } from "./words.js";

/** @typedef {Record<string, any>} Step */

/** @param {Step} step */
function took(step) {
  if (step.started_at && step.completed_at)
    return duration(Date.parse(step.completed_at) - Date.parse(step.started_at));
  return step.started_at
    ? h("span", null, "since ", when(step.started_at))
    : step.waiting_since
      ? h("span", null, "since ", when(step.waiting_since))
      : "";
}

/**
 * @param {Step} step
 * @param {any} wait
 * @param {any} child
 * @param {any} args
 * @param {boolean} isAlone
 */
function attempt(step, wait, child, args, isAlone) {
  return h("details.attempt", { "data-key": step.step_id, id: "step-" + step.step_id },
    h("summary", { "data-row": "1" }, badge(step.status), " ",
      isAlone
        ? [h("b", null, step.name), " ",
            step.tool && step.tool !== step.name && h("span.muted", null, step.tool + " ")]
        : "attempt " + step.attempt + " ",
      h("span.muted", null, took(step))),
    h("dl.facts", null, h("dt", null, "Step id"), h("dd", null, h("code", null, step.step_id)),
      step.ready_at && [h("dt", null, "Ready"), h("dd", null, when(step.ready_at))],
      step.started_at && [h("dt", null, "Started"), h("dd", null, when(step.started_at))],
      step.completed_at && [h("dt", null, "Ended"), h("dd", null, when(step.completed_at))],
      wait?.held && [h("dt", null, "Held by"),
        h("dd", null, wait.held.worker ?? "the server",
          wait.held.lease_until && [", lease until ", when(wait.held.lease_until)])],
      step.progress !== undefined && [h("dt", null, "Progress"),
        h("dd", null, h("code", null, JSON.stringify(step.progress)), " ", when(step.progress_at))],
      child && [h("dt", null, "Child"),
        h("dd", null,
          h("a", { href: link("instances/" + child.instance_id) },
            h("code", null, child.instance_id)),
          child.awaited ? " (awaited)" : "")]),
    jsonBlock("Input", args ?? step.args), jsonBlock("Result", step.result),
    jsonBlock("Error", step.error));
}

/**
 * @param {string} name
 * @param {Step[]} attempts
 * @param {any} view
 * @param {Map<string, any>} args
 */
function group(name, attempts, view, args) {
  const last = attempts[attempts.length - 1],
    isAlone = attempts.length === 1;
  const wait = view.waiting_for.find((/** @type {any} */ one) => one.name === name && one.held);
  const child = (/** @type {Step} */ step) =>
    (view.children ?? []).find((/** @type {any} */ one) => one.step_id === step.step_id);
  return h("section.step", { "data-key": "s-" + name },
    !isAlone &&
      h("h3", null, badge(last.status), " ", name,
        last.tool && last.tool !== name && h("span.muted", null, " " + last.tool),
        h("span.muted", null, " · " + attempts.length + " attempts")),
    attempts.map((step) =>
      attempt(step, step === last ? wait : null, child(step), args.get(step.step_id), isAlone)
    ));
}

/**
 * Attempts of one step stand together.
 * @param {any} view
 * @param {Map<string, any>} args by step_id
 */
export function stepTree(view, args) {
  /** @type {Map<string, Step[]>} */
  const groups = new Map();
  for (const step of view.steps ?? [])
    groups.set(step.name, [...(groups.get(step.name) ?? []), step]);
  if (!groups.size) return h("p.muted", null, "No step has begun.");
  return h("div.steps", null,
    view.steps_before > 0 &&
      h("p.muted", null, view.steps_before + " attempts before these are not shown."),
    [...groups].map(([name, attempts]) => group(name, attempts, view, args)),
    view.reused?.length &&
      h("p.muted", null,
        "Results reused from the instance before: " +
          view.reused.map((/** @type {any} */ one) => one.name).join(", ")));
}
