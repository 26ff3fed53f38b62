// charts.js - small charts of what /metrics counts, sampled while they are looked at.
import { h, s } from "./dom.js";

const SAMPLES = 60,
  WIDTH = 220,
  HEIGHT = 44;

/** @typedef {{at: number, values: Record<string, number>}} Sample */
/** @type {Sample[]} */
let samples = [];

/**
 * The plain numbers of Prometheus' text format.
 * @param {string} text
 * @returns {Record<string, number>}
 */
export function readMetrics(text) {
  /** @type {Record<string, number>} */
  const out = {};
  for (const line of text.split("\n")) {
    const found = /^([a-z_]+) ([0-9.eE+-]+)$/.exec(line);
    if (found) out[found[1]] = Number(found[2]);
  }
  return out;
}

/** @param {string} text */
export function addSample(text) {
  samples = [...samples.slice(1 - SAMPLES), { at: Date.now(), values: readMetrics(text) }];
}

export const forgetSamples = () => {
  samples = [];
};

/** How much it grew in a second, from one sample to the next. @param {string} name */
export const rates = (name) =>
  samples
    .slice(1)
    .map((sample, i) =>
      Math.max(
        0,
        (sample.values[name] - samples[i].values[name]) /
          Math.max(0.001, (sample.at - samples[i].at) / 1000)
      )
    );

/** @param {string} name */
export const levels = (name) => samples.map((sample) => sample.values[name] ?? 0);

/**
 * The mean of what was measured between two samples, in milliseconds.
 * @param {string} name of a histogram
 */
export const means = (name) =>
  samples.slice(1).map((sample, i) => {
    const n = sample.values[name + "_count"] - samples[i].values[name + "_count"],
      sum = sample.values[name + "_sum"] - samples[i].values[name + "_sum"];
    return n > 0 ? (sum / n) * 1000 : 0;
  });

/** @param {string} title @param {number[]} values @param {(n: number) => string} words */
export function chart(title, values, words) {
  const top = Math.max(...values, 1e-9),
    last = values[values.length - 1] ?? 0,
    each = WIDTH / (SAMPLES - 1);
  const points = values.map((value, i) => [WIDTH - (values.length - 1 - i) * each,
    HEIGHT - 3 - (value / top) * (HEIGHT - 8)]);
  return h("div.chart", null,
    h("div.chart-head", null, h("span.muted", null, title), h("b", null, words(last))),
    s("svg",
      {
        viewBox: "0 0 " + WIDTH + " " + HEIGHT,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label":
          title +
          ": " +
          words(last) +
          ", at most " +
          words(values.length ? top : 0) +
          " in the last minutes"
      },
      s("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 2, y2: HEIGHT - 2 }),
      points.length > 1 &&
        s("polygon",
          {
            class: "area",
            points: [[points[0][0], HEIGHT - 2], ...points, [WIDTH, HEIGHT - 2]]
              .map((p) => p.map((n) => n.toFixed(1)).join(","))
              .join(" ")
          }),
      points.length > 1 &&
        s("polyline",
          {
            class: "line",
            points: points.map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" ")
          })));
}
