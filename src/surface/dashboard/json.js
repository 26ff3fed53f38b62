// json.js - a JSON value that can be folded. Large ones are made only where they are opened.
import { h } from "./dom.js";

const OPEN_MEMBERS = 12; /* an object up to this size is open at first */
const STEP = 100; /* members that are shown at once */
const TEXT_MAX = 2000;

/** @param {any} value */
function scalar(value) {
  if (typeof value !== "string")
    return h("span.j-" + (value === null ? "null" : typeof value), null, String(value));
  if (value.length <= TEXT_MAX) return h("span.j-string", null, JSON.stringify(value));
  return h("details.j-long", null,
    h("summary.j-string", null, JSON.stringify(value.slice(0, 120)), "… ",
      h("span.muted", null, value.length + " characters")),
    h("span.j-string", null, JSON.stringify(value)));
}

/** @param {any} value */
const summary = (value) =>
  Array.isArray(value)
    ? "[ " + value.length + " ]"
    : "{ " +
      Object.keys(value).slice(0, 4).join(", ") +
      (Object.keys(value).length > 4 ? ", …" : "") +
      " }";

/**
 * @param {HTMLElement} place
 * @param {[string, any][]} pairs
 * @param {number} depth
 * @param {boolean} isList
 */
function addMembers(place, pairs, depth, isList) {
  for (const [key, value] of pairs.slice(0, STEP))
    place.append(
      h("div.j-member", null, h("span.j-key", null, isList ? key : JSON.stringify(key)), ": ",
        jsonView(value, depth + 1))
    );
  const rest = pairs.slice(STEP);
  if (rest.length)
    place.append(
      h("button.plain",
        {
          onclick: (/** @type {any} */ e) => {
            e.target.remove();
            addMembers(place, rest, depth, isList);
          }
        },
        rest.length + " more")
    );
}

/** @param {any} value @param {number} [depth] @returns {HTMLElement} */
export function jsonView(value, depth = 0) {
  if (value === null || typeof value !== "object") return scalar(value);
  const pairs = Object.entries(value);
  if (pairs.length === 0) return h("span.j-null", null, Array.isArray(value) ? "[]" : "{}");
  const body = h("div.j-body");
  const isOpen = depth < 2 && pairs.length <= OPEN_MEMBERS;
  const fold = /** @type {HTMLDetailsElement} */ (
    h("details.json", { open: isOpen, "data-own": "1" },
      h("summary", null, h("span.muted", null, summary(value))), body)
  );
  const fillOnce = () => {
    if (!body.firstChild && fold.open) addMembers(body, pairs, depth, Array.isArray(value));
  };
  fold.addEventListener("toggle", fillOnce);
  if (isOpen) addMembers(body, pairs, depth, Array.isArray(value));
  return fold;
}

/**
 * A value under its name, or nothing where there is none.
 * @param {string} title
 * @param {any} value
 */
export const jsonBlock = (title, value) =>
  value === null || value === undefined
    ? null
    : h("div.value", { "data-key": "v-" + title + "-" + digest(value) }, h("h3", null, title),
        jsonView(value));

/** Two values with the same text are shown by the same element. @param {any} value */
export function digest(value) {
  const text = JSON.stringify(value) ?? "";
  let sum = text.length;
  for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) | 0;
  return sum.toString(36);
}
