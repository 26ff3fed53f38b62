// words.js - times, numbers and names as people read them.
import { h } from "./dom.js";

/** @param {number} ms */
export function duration(ms) {
  const size = Math.abs(ms);
  if (size < 1000) return Math.round(ms) + " ms";
  if (size < 10_000) return (ms / 1000).toFixed(1) + " s";
  if (size < 60_000) return Math.round(ms / 1000) + " s";
  const steps = /** @type {[number, string, number, string][]} */ ([[60, "min", 1, "s"],
    [3600, "h", 60, "min"], [86_400, "d", 3600, "h"]]);
  const seconds = Math.round(size / 1000);
  const [unit, name, lower, lowerName] =
    [...steps].reverse().find(([each]) => seconds >= each) ?? steps[0];
  const whole = Math.floor(seconds / unit),
    rest = Math.floor((seconds % unit) / lower);
  return whole + " " + name + (rest && whole < 10 ? " " + rest + " " + lowerName : "");
}

/** @param {string} time @param {number} [now] */
export function ago(time, now = Date.now()) {
  const ms = now - Date.parse(time);
  if (Math.abs(ms) < 1500) return "now";
  return ms > 0 ? duration(ms) + " ago" : "in " + duration(-ms);
}

/** A time that says how long ago, and keeps saying it. @param {string | null | undefined} time */
export function when(time) {
  if (!time) return h("span.muted", null, "—");
  return h("time", { datetime: time, title: exact(time), "data-ago": "" }, ago(time));
}

/** @param {string} time */
export const exact = (time) =>
  new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** @param {string} time */
export const clock = (time) => {
  const at = new Date(time),
    two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const day =
    at.toDateString() === new Date().toDateString()
      ? ""
      : at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate()) + " ";
  return (
    day +
    two(at.getHours()) +
    ":" +
    two(at.getMinutes()) +
    ":" +
    two(at.getSeconds()) +
    "." +
    String(at.getMilliseconds()).padStart(3, "0")
  );
};

/** Times on the page grow old. */
export function refreshTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = ago(/** @type {HTMLTimeElement} */ (time).dateTime);
    if (time.textContent !== text) time.textContent = text;
  }
}

/** @param {number} n */
export const count = (n) => n.toLocaleString("en-US");

/** @param {number} n @param {string} one @param {string} [many] */
export const plural = (n, one, many = one + "s") => count(n) + " " + (n === 1 ? one : many);

/** @param {number} n */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    unit++;
  }
  return (unit && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[unit];
}

/** The end of an id tells instances of one list apart. @param {string} id */
export const shortId = (id) => id.replace(/^0+/, "").slice(0, -16) + "…" + id.slice(-4);

/** It has ended; a terminal state need not say of which kind. @param {any} item */
export const isOver = (item) => ["completed", "failed", "cancelled"].includes(item.status);

/** @param {string} status */
export const badge = (status) => h("span.badge." + status.replace(" ", "-"), null, status);
