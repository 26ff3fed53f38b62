// actions.js - what may be done with an instance now, and what it waits for. A button exists for
// what is legal; what is not says why.
import { instancePath, newKey, post } from "./api.js";
import { actor, actorMember } from "./actor.js";
import { link } from "./app.js";
import { copyMenu } from "./copy.js";
import { ask, toast } from "./dialogs.js";
import { h } from "./dom.js";
import { jsonView } from "./json.js";
import { duration, shortId, when } from "./words.js";

/** @typedef {Record<string, any>} Instance @typedef {() => Promise<any>} Again */

const REASON = /** @type {import("./dialogs.js").Field} */ ({ name: "reason", label: "Reason" });
const PAYLOAD = /** @type {import("./dialogs.js").Field} */ ({
  name: "payload",
  label: "Payload (JSON)",
  kind: "json",
  hint: "Stored with the entry. May stay empty."
});

/** Post, say what came of it, and show the instance as it is now.
 * @param {string} path
 * @param {Record<string, any>} body
 * @param {string} done
 * @param {Again} again
 */
async function act(path, body, done, again) {
  try {
    const answer = await post(path, { ...actorMember(), ...body }, newKey());
    toast(done + (answer.new_state ? ": now " + answer.new_state : ""));
    return answer;
  } finally {
    await again();
  }
}

// ---- Machines ----

/** @param {Instance} item @param {any} action @param {Again} again */
function fire(item, action, again) {
  const path = instancePath(item.instance_id) + "/fire";
  const send = (/** @type {any} */ more) =>
    act(
      path,
      { action: action.action, expected_sequence: item.next_sequence_number, ...more },
      action.action,
      again
    );
  return (/** @type {boolean} */ withData) => {
    if (!withData && !action.guard && !action.requires_reason) return send({});
    ask("Fire " + action.action, "From " + item.current_state + " to " + action.to_state + ".",
      [...(action.guard
          ? [
              {
                name: "guard_satisfied",
                label: "I assert the guard: " + action.guard,
                kind: /** @type {const} */ ("check")
              }
            ]
          : []),
        {
          ...REASON,
          required: !!action.requires_reason,
          label: action.requires_reason ? "Reason (required)" : "Reason"
        },
        PAYLOAD],
      "Fire " + action.action, send);
  };
}

/** @param {Instance} item @param {any} action @param {number} index @param {Again} again */
function actionButton(item, action, index, again) {
  const go = fire(item, action, again);
  return h("div.action", null,
    h("button.primary", { onclick: () => go(false), title: "key " + (index + 1) }, action.action),
    h("span.muted", null, "→ ", action.to_state, action.guard && " · guard " + action.guard,
      action.requires_reason && " · wants a reason"),
    h("button.plain", { onclick: () => go(true), "aria-label": "with data…: " + action.action },
      "with data…"));
}

/** The legal actions of a machine. @param {Instance} item @param {Again} again */
export function actionButtons(item, again) {
  const own = item.kind === "machine" ? item.actions : [];
  return own.map((/** @type {any} */ action, /** @type {number} */ i) =>
    actionButton(item, action, i, again)
  );
}

/** The same by key. @param {Instance} item @param {Again} again */
export const actionKeys = (item, again) =>
  Object.fromEntries(
    (item.kind === "machine" ? item.actions : [])
      .slice(0, 9)
      .map((/** @type {any} */ action, /** @type {number} */ i) => [String(i + 1),
        () => fire(item, action, again)(false)])
  );

// ---- Gates ----

/** @param {any} gate @returns {string} why I may not decide it; "": I may */
export function gateRefusal(gate) {
  const by = gate.approval?.by,
    me = actor().name;
  if (!me) return "Say who you are (“You act as”) to decide.";
  if (Array.isArray(by) && !by.includes(me))
    return "For " + by.join(", ") + "; you act as " + me + ".";
  if (gate.approved_by?.includes(me))
    return (
      "You have approved it; " +
      (gate.approval.count - gate.approved_by.length) +
      " more to come."
    );
  return "";
}

/** @param {any} gate with step_id @param {Again} again */
export const approve = (gate, again) =>
  act("/steps/" + gate.step_id + "/approve", {}, "Approved", again);

/** @param {any} gate @param {string} name @param {Again} again */
export function gateButtons(gate, name, again) {
  const refusal = gateRefusal(gate),
    path = "/steps/" + gate.step_id,
    id = "gate-" + gate.step_id;
  return [h("div.buttons", null,
      h("button.primary",
        {
          disabled: !!refusal,
          "aria-describedby": refusal ? id : null,
          onclick: () => approve(gate, again)
        },
        "Approve"),
      h("button",
        {
          disabled: !!refusal,
          "aria-describedby": refusal ? id : null,
          onclick: () =>
            ask(
              "Reject " + name,
              "The step fails with your reason.",
              [{ ...REASON, required: true }],
              "Reject",
              (values) => act(path + "/reject", values, "Rejected", again),
              true
            )
        },
        "Reject"),
      h("button.plain",
        {
          disabled: !!refusal,
          "aria-label": "with data…: approve " + name,
          onclick: () =>
            ask(
              "Approve " + name,
              null,
              [REASON, { ...PAYLOAD, hint: 'The step\'s result. Without it: "approved".' }],
              "Approve",
              (values) => act(path + "/approve", values, "Approved", again)
            )
        },
        "with data…")),
    refusal && h("p.hint", { id }, refusal)];
}

// ---- What it waits for ----

/** @param {any} held */
const holder = (held) => [held.worker
    ? ["held by ", h("b", null, held.worker)]
    : "runs in the server",
  " since ", when(held.since), held.lease_until && [", lease until ", when(held.lease_until)]];

/** @param {any} asked */
const noWorker = (asked) =>
  asked.asked_at
    ? ["; ", h("b", null, asked.asked_by ?? "a worker"), " asked for it ", when(asked.asked_at)]
    : ["; no worker has asked for this tool since ", when(asked.since),
        asked.tools?.length ? " (they ask for " + asked.tools.join(", ") + ")" : ""];

/** @param {Instance} item @param {any} wait @param {Again} again */
function waitLine(item, wait, again) {
  const until = wait.until && [" until ", h("span", { title: wait.until }, when(wait.until))];
  switch (wait.kind) {
    case "approval":
      return [h("p", null, h("b", null, "Approval"), " of ", h("b", null, wait.name),
          wait.since && [", since ", when(wait.since)], until, ". ",
          wait.approval?.by ? "For " + wait.approval.by.join(", ") : "Anyone may decide",
          wait.approval?.count > 1 && " (" + wait.approval.count + " needed)",
          wait.approved_by?.length ? "; approved by " + wait.approved_by.join(", ") : "", "."),
        gateButtons(wait, wait.name, again)];
    case "signal":
      return [h("p", null, h("b", null, "Signal"), " ", h("b", null, wait.name), until,
          wait.refused && h("span.error-line", null, " last one refused: " + wait.refused)),
        h("div.buttons", null,
          h("button.primary",
            {
              onclick: () =>
                ask(
                  "Send the signal " + wait.name,
                  null,
                  [{ ...PAYLOAD, hint: "Passed to the wait. May stay empty." }],
                  "Send",
                  (values) =>
                    act(
                      instancePath(item.instance_id) + "/signals",
                      { name: wait.name, ...values },
                      "Sent",
                      again
                    )
                )
            },
            "Send " + wait.name + "…"))];
    case "timer":
      return h("p", null, h("b", null, "Timer"), " ", wait.name, until,
        wait.failed &&
          h("span.muted", null, ": attempt " + wait.failed.attempt + " failed, it is tried again"),
        wait.failed && h("div.error-line", null, JSON.stringify(wait.failed.error)),
        wait.refused && h("span.error-line", null, " " + wait.refused));
    case "step":
      return [h("p", null, h("b", null, "Step"), " ", h("b", null, wait.name),
          wait.tool && [" (", wait.tool, ") "],
          wait.status === "running"
            ? " is running"
            : wait.status === "ready"
              ? wait.here
                ? " is about to run"
                : " waits for a worker"
              : " is waiting",
          wait.held && [": ", holder(wait.held)], wait.workers && noWorker(wait.workers), until,
          "."),
        wait.failed &&
          h("div.error-line", null,
            "attempt " + wait.failed.attempt + " failed: " + JSON.stringify(wait.failed.error))];
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

/** @param {Instance} item @param {any} view @param {Again} again */
export function waits(item, view, again) {
  const lines = view.waiting_for.filter((/** @type {any} */ wait) => wait.kind !== "action");
  if (item.terminal_kind) return ended(item);
  return h("div.waits", null,
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

// ---- The life of an instance ----

/** @param {Instance} item @param {Again} again */
export function lifeButtons(item, again) {
  const path = instancePath(item.instance_id),
    isOver = !!item.terminal_kind,
    isPaused = item.status === "paused";
  const cancelWhy = isOver
    ? "It has ended."
    : item.can_cancel
      ? ""
      : "Its definition declares no way to cancel it from " + item.current_state + ".";
  const pauseWhy = isOver ? "It has ended." : "";
  const redriveWhy =
    item.kind === "machine"
      ? "Machines are not redriven."
      : !isOver
        ? "It has not ended."
        : item.terminal_kind === "success"
          ? "It has succeeded."
          : "";
  const amendWhy =
    item.kind !== "flow" ? "Only flows can be amended." : isOver ? "It has ended." : "";
  const button = (
    /** @type {string} */ name,
    /** @type {string} */ why,
    /** @type {() => void} */ go
  ) => h("button", { disabled: !!why, title: why, onclick: go }, name);
  return h("div.buttons", null,
    button("Cancel…", cancelWhy, () =>
      ask(
        "Cancel this instance",
        "It ends; its running steps and children are cancelled.",
        [REASON],
        "Cancel it",
        (values) => act(path + "/cancel", values, "Cancelled", again),
        true
      )
    ),
    isPaused
      ? button("Resume", pauseWhy, () => act(path + "/resume", {}, "Resumed", again))
      : button("Pause…", pauseWhy, () =>
          ask(
            "Pause this instance",
            "Until it is resumed it accepts only a cancel.",
            [REASON],
            "Pause",
            (values) => act(path + "/pause", values, "Paused", again)
          )
        ),
    button("Redrive…", redriveWhy, () =>
      ask(
        "Run it again",
        "A new instance begins where this one failed. Steps that succeeded keep their results.",
        [{ name: "from", label: "From the step", hint: "Empty: where it ended." },
          {
            name: "definition",
            label: "With the definition",
            hint: "name or name@version; empty: the same as before."
          }],
        "Redrive",
        async (values) => {
          const answer = await act(path + "/redrive", values, "Redriven", again);
          location.hash = link("instances/" + answer.instance_id);
        }
      )
    ),
    button("Amend…", amendWhy, () =>
      ask(
        "Move it to another definition",
        "From its next step on it goes on by the other definition.",
        [
          {
            name: "definition",
            label: "Definition",
            value: item.definition,
            required: true,
            hint: "name (newest version) or name@version"
          }
        ],
        "Amend",
        (values) => act(path + "/amend", values, "Amended", again)
      )
    ),
    [cancelWhy && !isOver && h("p.hint", null, "Cancel: " + cancelWhy)]);
}

/** @param {Instance} item */
export function copyCalls(item) {
  const id = item.instance_id,
    first = item.kind === "machine" && item.actions[0];
  const look = {
    operation: "instance.view",
    method: "GET",
    path: instancePath(id) + "/view",
    input: { instance_id: id },
    pawl: ["show", id]
  };
  const go = first && {
    operation: "instance.fire",
    method: "POST",
    path: instancePath(id) + "/fire",
    input: { instance_id: id },
    body: {
      action: first.action,
      ...actorMember(),
      ...(first.guard && { guard_satisfied: true }),
      ...(first.requires_reason && { reason: "…" })
    },
    pawl: ["fire", id, first.action, ...(actor().name ? ["--actor", actor().name] : []),
      ...(first.guard ? ["--guard-satisfied"] : []),
      ...(first.requires_reason ? ["--reason", "…"] : [])]
  };
  return [h("h3", null, "This page"), copyMenu(look),
    go && [h("h3", null, "Fire " + first.action), copyMenu(go)]];
}
