// dialogs.js - questions before something is done, short notes after it, and the sign-in.
import { login, Refusal } from "./api.js";
import { h } from "./dom.js";

export const isDialogOpen = () => document.querySelector("dialog[open]") !== null;

/** @param {string} text @param {boolean} [isBad] */
export function toast(text, isBad = false) {
  let place = document.getElementById("toasts");
  if (!place)
    document.body.append(
      (place = h("div", { id: "toasts", role: "status", "aria-live": "polite" }))
    );
  const note = h("div.toast" + (isBad ? ".bad" : ""), null, text);
  place.append(note);
  while (place.childElementCount > 3) place.firstElementChild?.remove();
  window.setTimeout(() => note.remove(), isBad ? 9000 : 4000);
}

/**
 * @typedef {{name: string, label: string, kind?: "text" | "json" | "lines" | "check" | "choice",
 *   value?: any, required?: boolean, choices?: string[], hint?: string, own?: {node: HTMLElement,
 *   read: () => any}}} Field `own`: a control made elsewhere
 */

/** @param {Field} field */
function control(field) {
  if (field.own) return field.own.node;
  const id = "ask-" + field.name,
    props = {
      id,
      name: field.name,
      required: field.required ?? false,
      "aria-describedby": field.hint ? id + "-hint" : null
    };
  if (field.kind === "check")
    return h("label.check", null,
      h("input", { ...props, type: "checkbox", checked: field.value ?? false }), " ", field.label);
  const input =
    field.kind === "json" || field.kind === "lines"
      ? h("textarea", { ...props, rows: 4, spellcheck: "false", value: field.value ?? "" })
      : field.kind === "choice"
        ? h("select", props,
            (field.choices ?? []).map((choice) =>
              h("option", { value: choice, selected: choice === field.value }, choice)
            ))
        : h("input",
            { ...props, value: field.value ?? "", autocomplete: "off", spellcheck: "false" });
  return h("div.field", null, h("label", { for: id }, field.label), input,
    field.hint && h("p.hint", { id: id + "-hint" }, field.hint));
}

/** @param {Field} field @param {HTMLFormElement} form */
export function readField(field, form) {
  if (field.own) return field.own.read();
  const input = /** @type {HTMLInputElement} */ (form.elements.namedItem(field.name));
  if (field.kind === "check") return input.checked;
  const text = input.value.trim();
  if (text === "") return undefined;
  if (field.kind !== "json") return input.value;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(field.label + ": expected JSON. " + /** @type {Error} */ (error).message);
  }
}

/**
 * Ask, then do it. The dialog stays while it is refused, and says why.
 * @param {string} title @param {string | null} words @param {Field[]} fields @param {string} verb
 * @param {(values: Record<string, any>) => Promise<any>} act @param {boolean} [isDanger]
 */
export function ask(title, words, fields, verb, act, isDanger = false) {
  const problem = h("p.problem", { role: "alert", hidden: true });
  const form = /** @type {HTMLFormElement} */ (
    h("form", null, h("h2", { id: "ask-title" }, title), words && h("p", null, words),
      fields.map(control), problem,
      h("div.buttons", null,
        h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
        h("button.primary" + (isDanger ? ".danger" : ""), { type: "submit" }, verb)))
  );
  const dialog = /** @type {HTMLDialogElement} */ (
    h("dialog", { "aria-labelledby": "ask-title", onclose: () => dialog.remove() }, form)
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const submit = /** @type {HTMLButtonElement} */ (form.querySelector("button.primary"));
    submit.disabled = true;
    try {
      await act(
        Object.fromEntries(
          fields
            .map((field) => [field.name, readField(field, form)])
            .filter(([, value]) => value !== undefined)
        )
      );
      dialog.close();
    } catch (error) {
      problem.hidden = false;
      problem.textContent =
        (error instanceof Refusal && error.reason ? error.reason + ": " : "") +
        /** @type {Error} */ (error).message;
    }
    submit.disabled = false;
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** @param {[string, string, string][]} menu */
export function helpDialog(menu) {
  if (isDialogOpen()) return;
  const rows = [["j  k", "the next row, the row before"], ["Enter", "open it"],
    ["/", "find an instance"], ["u", "back"], ...menu.map(([, name, key]) => ["g " + key, name]),
    ["[  ]", "one entry back or forward in time (an instance)"],
    ["1 … 9", "the legal actions of an instance"],
    ["a", "approve (an instance that waits for it)"], ["Esc", "close, leave a field"],
    ["?", "this list"]];
  const dialog = /** @type {HTMLDialogElement} */ (
    h("dialog", { "aria-labelledby": "help-title", onclose: () => dialog.remove() },
      h("h2", { id: "help-title" }, "Keys"),
      h("dl.keys", null,
        rows.map(([key, words]) => [h("dt", null, h("kbd", null, key)), h("dd", null, words)])),
      h("div.buttons", null,
        h("button.primary", { onclick: () => dialog.close(), autofocus: true }, "Close")))
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {() => void} done */
export function loginPage(done) {
  const problem = h("p.problem", { role: "alert", hidden: true });
  const field = /** @type {HTMLInputElement} */ (
    h("input",
      { id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false" })
  );
  const form = h("form.login",
    {
      onsubmit: async (/** @type {Event} */ event) => {
        event.preventDefault();
        try {
          await login(field.value.trim());
          done();
        } catch (error) {
          problem.hidden = false;
          problem.textContent =
            error instanceof Refusal && error.status === 401
              ? "This token is not in force: it is mistyped, expired or revoked."
              : /** @type {Error} */ (error).message;
          field.select();
        }
      }
    },
    h("h1", null, "Sign in"),
    h("p", null,
      "This server wants a token. It is kept in a cookie that no script can read, until you sign " +
        "out or it expires."),
    h("label", { for: "token" }, "Token"), field, problem,
    h("button.primary", { type: "submit" }, "Sign in"),
    h("p.hint", null, "On the server, ",
      h("code", null, "pawl token create --scope read,write"), " makes one."));
  window.setTimeout(() => field.focus());
  return form;
}
