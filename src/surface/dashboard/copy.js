// copy.js - the call that the page makes, for a terminal or a program. All text is quoted, so that
// what an instance holds is never run.
import { address, storeName } from "./api.js";
import { actor } from "./actor.js";
import { toast } from "./dialogs.js";
import { h } from "./dom.js";

/** @param {string} text */
export const shellQuote = (text) =>
  /^[A-Za-z0-9_.,:=@%/+-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";

/** @param {any} value @returns {string} */
export function pythonText(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return "[" + value.map(pythonText).join(", ") + "]";
  if (typeof value === "object")
    return (
      "{" +
      Object.entries(value)
        .map(([k, v]) => pythonText(k) + ": " + pythonText(v))
        .join(", ") +
      "}"
    );
  return typeof value === "string"
    ? JSON.stringify(value).replace(
        /[\u007f-\uffff]/g,
        (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")
      )
    : String(value);
}

/**
 * @typedef {{operation: string, method: string, path: string, input?: Record<string, any>, body?:
 *   Record<string, any>, pawl: string[]}} Call
 */

/** @param {Call} call */
export function asCurl(call) {
  const parts = ["curl", "-X", call.method, shellQuote(location.origin + address(call.path))];
  if (actor().caller) parts.push("-H", '"Authorization: Bearer $PAWL_TOKEN"');
  if (call.body)
    parts.push(
      "-H",
      "'Content-Type: application/json'",
      "-d",
      shellQuote(JSON.stringify(call.body))
    );
  return parts.join(" ");
}

/** @param {Call} call */
export const asPawl = (call) =>
  ["PAWL_STORE=" + shellQuote(location.origin + (storeName() === "default" ? "" : address(""))),
    "pawl", ...call.pawl.map(shellQuote)].join(" ");

/** @param {Call} call */
export function asPython(call) {
  const input = { ...call.input, ...call.body };
  const client =
    "Pawl(" +
    pythonText(location.origin) +
    (storeName() === "default" ? "" : ", store=" + pythonText(storeName())) +
    (actor().caller ? ', token=os.environ["PAWL_TOKEN"]' : "") +
    ")";
  return (
    (actor().caller ? "import os\n" : "") +
    "from pawl_client import Pawl\nprint(" +
    client +
    "." +
    call.operation.replace(".", "_") +
    "(" +
    Object.entries(input)
      .map(([name, value]) => name + "=" + pythonText(value))
      .join(", ") +
    "))"
  );
}

/** @param {string} text @param {string} what */
export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(what + " copied");
  } catch {
    const dialog = /** @type {HTMLDialogElement} */ (
      h("dialog", { onclose: () => dialog.remove(), "aria-label": what }, h("h2", null, what),
        h("pre", null, text),
        h("div.buttons", null, h("button.primary", { onclick: () => dialog.close() }, "Close")))
    );
    document.body.append(dialog);
    dialog.showModal();
  }
}

/** @param {Call} call */
export const copyMenu = (call) =>
  h("div.copy", null, h("span.muted", null, "Copy as"),
    ["curl", "pawl", "Python"].map((name) =>
      h("button.plain",
        {
          onclick: () =>
            copyText(name === "curl"
                ? asCurl(call)
                : name === "pawl"
                  ? asPawl(call)
                  : asPython(call),
              name)
        },
        name)
    ));
