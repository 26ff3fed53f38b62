// travel.js - an instance as it was after entry `at`: its state from the entries, its steps from
// those that name them, its variables from the server, which folds the same entries.
import { get, Refusal } from "./api.js";

/** What an entry's action makes of its step. */
const OUTCOMES = /** @type {Record<string, string>} */ ({
  "step.complete": "done",
  "step.fail": "failed",
  "step.timeout": "failed",
  "gate.approve": "pending",
  "gate.reject": "failed",
  "step.start": "running",
  "gate.wait": "pending",
  timer: "done",
  signal: "done",
  child: "done"
});

/** @param {any} step @param {any[]} entries @param {number} at */
function stepAsOf(step, entries, at) {
  const mine = entries.filter((entry) => entry.step_id === step.step_id),
    first = mine[0],
    last = mine[mine.length - 1];
  if (
    first &&
    first.sequence_number > at &&
    !mine.some((entry) => entry.sequence_number <= at)
  ) {
    const then = entries.filter((entry) => entry.sequence_number <= at).pop();
    if (!then || !step.ready_at || Date.parse(step.ready_at) > Date.parse(then.recorded_at))
      return null;
    return {
      ...step,
      status: "pending",
      result: null,
      error: null,
      started_at: null,
      completed_at: null
    };
  }
  if (!last || last.sequence_number <= at) return step;
  const seen = mine.filter((entry) => entry.sequence_number <= at).pop();
  return {
    ...step,
    status: OUTCOMES[seen?.action] ?? "pending",
    result: null,
    error: null,
    completed_at: null
  };
}

/** @param {string} path @param {any} entry */
async function variablesAsOf(path, entry) {
  try {
    return (await get(path + "/variables", { sequence_to: entry.sequence_number })).variables;
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/**
 * @param {string} path
 * @param {any} view
 * @param {any[]} entries those that are read
 * @param {number} at
 */
export async function asOf(path, view, entries, at) {
  let entry = entries.find((one) => one.sequence_number === at);
  if (!entry && at > 0)
    entry = (await get(path + "/history", { sequence_number: String(at) })).entries[0];
  const initial =
    entries[0]?.sequence_number === 1
      ? entries[0].from_state
      : (await get(path + "/history", { sequence_number: "1" })).entries[0]?.from_state;
  const steps = (view.steps ?? [])
    .map((/** @type {any} */ step) => stepAsOf(step, entries, at))
    .filter(Boolean);
  const isRunning = steps.some(
    (/** @type {any} */ step) => step.status === "running" || step.status === "ready"
  );
  return {
    ...view,
    entry,
    steps,
    variables:
      entry && view.instance.kind !== "machine" ? await variablesAsOf(path, entry) : null,
    instance: {
      ...view.instance,
      current_state: entry?.to_state ?? initial,
      status: isRunning ? "running" : "suspended",
      terminal_kind: null,
      result: null,
      error: null
    },
    waiting_for: []
  };
}
