// actions.js - what may be done with an instance now. A button exists for what is legal; what is
// not says why.
import { instancePath, newKey, post } from "./api.js";
import { actor, actorMember } from "./actor.js";
import { link } from "./app.js";
import { copyMenu } from "./copy.js";
import { ask, toast } from "./dialogs.js";
import { h } from "./dom.js";
import { schemaForm } from "./form.js";
import { digest, jsonView } from "./json.js";
import { isOver } from "./words.js";

/** @typedef {Record<string, any>} Instance @typedef {() => Promise<any>} Again */

export const REASON = /** @type {import("./dialogs.js").Field} */ ({
  name: "reason",
  label: "Reason"
});
export const PAYLOAD = /** @type {import("./dialogs.js").Field} */ ({
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
export async function act(path, body, done, again) {
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

/** The form that a gate asks for (`approval.ask`), if it asks for one. @param {any} gate */
const formOf = (gate) =>
  gate.ask?.requestedSchema?.properties ? schemaForm(gate.ask.requestedSchema, "gate") : null;

/**
 * A gate that asks for a form is approved with what is filled in.
 * @param {any} gate with step_id @param {Again} again
 */
export async function approve(gate, again) {
  const path = "/steps/" + gate.step_id + "/approve",
    form = formOf(gate);
  if (!form) return act(path, {}, "Approved", again);
  ask("Approve " + (gate.name ?? gate.step), askedText(gate.ask),
    [{ name: "payload", label: "", own: form }, REASON], "Approve", (values) =>
      act(path, values, "Approved", again)
    );
}

/** @param {any} asked @returns {string | null} */
const askedText = (asked) =>
  typeof asked === "string" ? asked : typeof asked?.message === "string" ? asked.message : null;

/** What people are asked at a gate. @param {any} asked */
export function askedView(asked) {
  if (asked === undefined || asked === null) return null;
  const text = askedText(asked);
  if (typeof asked !== "object") return h("p.asked", null, text ?? String(asked));
  const { message, requestedSchema, ...rest } = asked;
  const others = text === null && message !== undefined ? { message, ...rest } : rest;
  return [text && h("p.asked", null, text),
    Object.keys(others).length > 0 &&
      h("div.asked", { "data-key": "asked" + digest(others) }, jsonView(others))];
}

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
        gate.ask?.requestedSchema?.properties ? "Approve…" : "Approve"),
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

// ---- The life of an instance ----

/** @param {Instance} item @param {Again} again */
export function lifeButtons(item, again) {
  const path = instancePath(item.instance_id),
    isDone = isOver(item),
    isPaused = item.status === "paused";
  const cancelWhy = isDone
    ? "It has ended."
    : item.can_cancel
      ? ""
      : "Its definition declares no way to cancel it from " + item.current_state + ".";
  const pauseWhy = isDone ? "It has ended." : "";
  const redriveWhy =
    item.kind === "machine"
      ? "Machines are not redriven."
      : !isDone
        ? "It has not ended."
        : item.status === "completed"
          ? "It has succeeded."
          : "";
  const amendWhy =
    item.kind !== "flow" ? "Only flows can be amended." : isDone ? "It has ended." : "";
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
    [cancelWhy && !isDone && h("p.hint", null, "Cancel: " + cancelWhy)]);
}

/**
 * What an auditor or a data protection officer does: keep it, or erase what it holds.
 * @param {Instance} item
 * @param {any} hold null: it is on none, or the caller may not see it
 * @param {Again} again
 */
export function keepButtons(item, hold, again) {
  const path = instancePath(item.instance_id);
  const eraseWhy = item.erased
    ? "It was erased."
    : !isOver(item)
      ? "It has not ended."
      : hold
        ? "It is on hold."
        : "";
  const erase = () =>
    ask(
      "Erase what it holds",
      "Input, payloads, reasons and labels leave the store for ever, also of its children. Who " +
        "did what and when stays, and every hash.",
      [{ ...REASON, required: true }],
      "Erase it",
      async (values) => {
        await act(path + "/erase", values, "Erased", again);
        window.dispatchEvent(new Event("pawl:again"));
      },
      true
    );
  return h("details.keep", { "data-key": "keep" }, h("summary", null, "Hold and erase"),
    h("div.buttons", null,
      hold
        ? h("button",
            {
              onclick: () =>
                ask("Lift the hold", null, [REASON], "Lift", (values) =>
                  act(path + "/lift", values, "Lifted", again)
                )
            },
            "Lift the hold…")
        : h("button",
            {
              disabled: !!item.erased,
              title: item.erased ? "It was erased." : "",
              onclick: () =>
                ask("Put it on hold",
                  "Nothing of it is erased, by no one and by no retention, until it is lifted.",
                  [{ ...REASON, required: true }], "Hold", (values) =>
                    act(path + "/hold", values, "On hold", again)
                  )
            },
            "Hold…"),
      h("button", { disabled: !!eraseWhy, title: eraseWhy, onclick: erase }, "Erase…")),
    eraseWhy && h("p.hint", null, "Erase: " + eraseWhy));
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
