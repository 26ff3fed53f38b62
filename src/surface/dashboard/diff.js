// diff.js - which lines differ between two texts (Myers, with a bound on the work).
import { h } from "./dom.js";

const WORK_MAX = 4000; /* differences that are looked for; beyond, all lines count as changed */

/** @param {string[]} a @param {string[]} b @returns {{sign: " " | "+" | "-", line: string}[]} */
export function diffLines(a, b) {
  const max = Math.min(WORK_MAX, a.length + b.length),
    trace = [];
  let v = new Map([[1, 0]]);
  for (let d = 0; d <= max; d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x =
        k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1))
          ? (v.get(k + 1) ?? 0)
          : (v.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      v.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace, d);
    }
  }
  return [...a.map((line) => ({ sign: /** @type {const} */ ("-"), line })),
    ...b.map((line) => ({ sign: /** @type {const} */ ("+"), line }))];
}

/**
 * @param {string[]} a
 * @param {string[]} b
 * @param {Map<number, number>[]} trace
 * @param {number} d
 */
function walkBack(a, b, trace, d) {
  /** @type {{sign: " " | "+" | "-", line: string}[]} */
  const out = [];
  let x = a.length,
    y = b.length;
  for (; d > 0; d--) {
    const v = trace[d],
      k = x - y;
    const isDown = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
    const before = isDown ? k + 1 : k - 1,
      fromX = v.get(before) ?? 0,
      fromY = fromX - before;
    while (x > fromX && y > fromY) {
      out.push({ sign: " ", line: a[--x] });
      y--;
    }
    if (isDown) out.push({ sign: "+", line: b[--y] });
    else out.push({ sign: "-", line: a[--x] });
  }
  while (x > 0) out.push({ sign: " ", line: a[--x] });
  return out.reverse();
}

/** @param {string} before @param {string} after */
export function diffView(before, after) {
  const lines = diffLines(before.split("\n"), after.split("\n")),
    changed = lines.filter((one) => one.sign !== " ").length;
  return h("div", null,
    h("p.muted", null, changed ? changed + " lines differ" : "The texts are the same."),
    h("pre.diff", { tabindex: 0 },
      lines.map(({ sign, line }) =>
        h("div" + (sign === "+" ? ".added" : sign === "-" ? ".removed" : ""), null,
          sign + " " + line)
      )));
}
