// steps.js - the steps of a flow or of code: every attempt, with what went in and what came out.
import { link } from "./app.js";
import { h } from "./dom.js";
import { jsonBlock } from "./json.js";
import { badge, duration, plural, when } from "./words.js";

/** @typedef {Record<string, any>} Step */

// ---- Which attempt is of what ----

const BRIEF = 60; /* letters of the arguments that tell runs apart */

/**
 * Attempts that belong together, in order: those for one item of a map, or of one round of a loop.
 * @param {Step[]} attempts all of one name
 * @param {Map<string, any>} args by step_id; those that are not there decide nothing
 * @returns {Step[][]}
 */
function runsOf(attempts, args) {
  const textOf = (/** @type {Step} */ step) => JSON.stringify(args.get(step.step_id) ?? null);
  /** @type {Step[][]} */
  const runs = [];
  for (const step of attempts) {
    const open =
      step.attempt > 1 &&
      runs.find((run) => {
        const last = run[run.length - 1];
        return last.attempt === step.attempt - 1 && textOf(last) === textOf(step);
      });
    if (open) open.push(step);
    else runs.push([step]);
  }
  return runs;
}

/** @param {Step[]} steps @returns {Map<string, Step[]>} */
function byName(steps) {
  /** @type {Map<string, Step[]>} */
  const groups = new Map();
  for (const step of steps) groups.set(step.name, [...(groups.get(step.name) ?? []), step]);
  return groups;
}

/**
 * What tells the runs of one name apart, in the order in which they began: "no. 2", or "".
 * @param {Step[]} steps
 * @param {Map<string, any>} args
 * @returns {Map<string, string>} by step_id
 */
export function labelsOf(steps, args) {
  const labels = new Map();
  for (const attempts of byName(steps).values()) {
    const runs = runsOf(attempts, args);
    runs.forEach((run, i) => {
      for (const step of run)
        labels.set(step.step_id, runs.length > 1 ? "no. " + (i + 1) : "");
    });
  }
  return labels;
}

// ---- One attempt ----

/** @param {any} args */
function briefArgs(args) {
  const text = args === null || args === undefined ? "" : JSON.stringify(args);
  return h("code.muted", null, text.length > BRIEF ? text.slice(0, BRIEF - 1) + "…" : text);
}

/** @param {Step} step */
function took(step) {
  const begun = step.started_at ?? step.waiting_since;
  if (!begun) return "";
  return step.completed_at
    ? duration(Date.parse(step.completed_at) - Date.parse(begun))
    : h("span", null, "since ", when(begun));
}

/**
 * @param {Step} step
 * @param {any} wait
 * @param {any} child
 * @param {any} args
 * @param {boolean} isAlone
 * @param {string} label
 */
function attempt(step, wait, child, args, isAlone, label) {
  return h("details.attempt", { "data-key": step.step_id, id: "step-" + step.step_id },
    h("summary", { "data-row": "1" }, badge(step.status), " ",
      isAlone
        ? [h("b", null, step.name), " ",
            step.tool && step.tool !== step.name && h("span.muted", null, step.tool + " ")]
        : [label && [h("b", null, label), step.attempt > 1 && ","], " ",
            (!label || step.attempt > 1) && "attempt " + step.attempt, " ",
            label && briefArgs(args ?? step.args), " "],
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

/** A wait names a step, and not an attempt: the time of its beginning tells which one is held.
 * @param {any} wait @param {Step} step @param {Step} last
 */
const holds = (wait, step, last) =>
  wait && (step.started_at ? step.started_at === wait.held.since : step === last);

/**
 * @param {string} name
 * @param {Step[]} attempts
 * @param {any} view
 * @param {Map<string, any>} args
 */
function group(name, attempts, view, args) {
  const labels = labelsOf(attempts, args),
    runs = new Set(labels.values());
  const last = attempts[attempts.length - 1],
    isAlone = attempts.length === 1;
  const waiting = view.waiting_for.filter(
    (/** @type {any} */ one) => one.name === name && one.held
  );
  const child = (/** @type {Step} */ step) =>
    (view.children ?? []).find((/** @type {any} */ one) => one.step_id === step.step_id);
  return h("section.step", { "data-key": "s-" + name },
    !isAlone &&
      h("h3", null, runs.size === 1 && [badge(last.status), " "], name,
        last.tool && last.tool !== name && h("span.muted", null, " " + last.tool),
        h("span.muted", null, " · ",
          runs.size > 1 ? plural(runs.size, "run") + ", " : "",
          plural(attempts.length, "attempt"))),
    attempts.map((step) =>
      attempt(step, waiting.find((/** @type {any} */ wait) => holds(wait, step, last)),
        child(step), args.get(step.step_id), isAlone, labels.get(step.step_id) ?? "")
    ));
}

/**
 * Attempts of one step stand together.
 * @param {any} view
 * @param {Map<string, any>} args by step_id
 */
export function stepTree(view, args) {
  const groups = byName(view.steps ?? []);
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
