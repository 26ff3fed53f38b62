// history.js - the entries of an instance: as a table with a mark for each hash, and as a timeline.
import { h, s } from "./dom.js";
import { jsonView, digest } from "./json.js";
import { labelsOf } from "./steps.js";
import { clock, duration, exact, isOver } from "./words.js";

/** @typedef {Record<string, any>} Entry @typedef {import("./verify.js").Mark} Mark */

/** @param {Mark | undefined} mark @param {boolean} isChecking */
export function hashMark(mark, isChecking) {
  if (isChecking) return h("span.mark.muted", { title: "being verified" }, "…");
  if (!mark) return h("span.mark.muted", { title: "not verified" }, "·");
  return mark.ok
    ? h("span.mark.ok", { title: "verified in this browser: " + mark.hash }, "✓",
        h("span.sr", null, "verified"))
    : h("span.mark.bad", { title: mark.what }, "✗",
        h("span.sr", null, "does not verify: " + mark.what));
}

/** @param {Entry} entry */
function about(entry) {
  if (!entry.step)
    return entry.from_state === entry.to_state
      ? h("span", null, entry.to_state)
      : h("span", null, entry.from_state, " → ", h("b", null, entry.to_state));
  return h("span", null, h("b", null, entry.step),
    entry.tool && entry.tool !== entry.step && h("span.muted", null, " " + entry.tool),
    entry.attempt > 1 && h("span.muted", null, " attempt " + entry.attempt));
}

/**
 * @param {Entry} entry
 * @param {Entry | undefined} before
 * @param {Mark | undefined} mark
 * @param {boolean} isChecking
 * @param {number} at
 * @param {(n: number) => void} go
 */
function row(entry, before, mark, isChecking, at, go) {
  const since = before ? Date.parse(entry.recorded_at) - Date.parse(before.recorded_at) : 0;
  return h("tr" + (entry.sequence_number > at ? ".later" : ""),
    { "data-key": "h" + entry.sequence_number }, h("td", null, hashMark(mark, isChecking)),
    h("td.num", null,
      h("button.plain",
        {
          "data-row": "1",
          onclick: () => go(entry.sequence_number),
          title: "Show the instance as of this entry"
        },
        entry.sequence_number)),
    h("td", null, h("code", null, entry.action)),
    h("td", null, about(entry), entry.reason && h("div.muted", null, "“" + entry.reason + "”"),
      entry.guard_satisfied && h("div.muted", null, "guard asserted"),
      entry.payload !== undefined &&
        entry.payload !== null &&
        h("div", { "data-key": "p" + digest(entry.payload) }, jsonView(entry.payload, 2)),
      entry.erased &&
        h("div.muted", { "data-key": "erased" }, entry.erased.join(", ") + " erased")),
    h("td", null, entry.actor_ref ?? ""),
    h("td.time", { title: exact(entry.recorded_at) }, clock(entry.recorded_at)),
    h("td.time.wide", null, since > 0 ? "+" + duration(since) : ""));
}

/**
 * @param {Entry[]} entries ascending
 * @param {Map<number, Mark>} marks
 * @param {boolean} isChecking
 * @param {number} at
 * @param {(n: number) => void} go
 */
export const historyTable = (entries, marks, isChecking, at, go) =>
  h("div.scroll", null,
    h("table.history", null, h("caption.sr", null, "History, the newest entry first"),
      h("thead", null,
        h("tr", null, h("th", { scope: "col", title: "Hash" }, h("span.sr", null, "Hash"), "#"),
          h("th.num", { scope: "col" }, "No."), h("th", { scope: "col" }, "Action"),
          h("th", { scope: "col" }, "What"), h("th", { scope: "col" }, "Actor"),
          h("th.time", { scope: "col" }, "Recorded"),
          h("th.time.wide", { scope: "col" }, "After"))),
      h("tbody", null,
        entries
          .map((entry, i) =>
            row(entry, entries[i - 1], marks.get(entry.sequence_number), isChecking, at, go)
          )
          .reverse())));

// ---- The timeline ----

const LANE = 26,
  LEFT = 170;

/** @typedef {{name: string, from: number, to: number, kind: string, note: string}} Bar */

/** A machine's states as bars. @param {Entry[]} entries @param {any} item @param {number} now */
function stateBars(entries, item, now) {
  /** @type {Bar[]} */
  const bars = [];
  let from =
    entries.length && entries[0].sequence_number > 1
      ? Date.parse(entries[0].recorded_at)
      : Date.parse(item.instantiated_at);
  for (const entry of entries) {
    const to = Date.parse(entry.recorded_at);
    bars.push({
      name: entry.from_state,
      from,
      to,
      kind: "done",
      note: "left by " + entry.action
    });
    from = to;
  }
  bars.push({
    name: item.current_state,
    from,
    to: isOver(item) ? from : now,
    kind: item.terminal_kind ?? (isOver(item) ? "ended" : "present"),
    note: isOver(item) ? "ended" : "here now"
  });
  return bars;
}

/** @param {any[]} steps @param {Map<string, any>} args @param {number} now */
function stepBars(steps, args, now) {
  const labels = labelsOf(steps, args);
  return steps
    .filter((step) => step.ready_at || step.started_at || step.waiting_since)
    .map((step) => ({
      name: [step.name, labels.get(step.step_id), step.attempt > 1 && "#" + step.attempt]
        .filter(Boolean)
        .join(" "),
      from: Date.parse(step.started_at ?? step.waiting_since ?? step.ready_at),
      to: step.completed_at ? Date.parse(step.completed_at) : now,
      kind: step.status,
      note: step.status + (step.tool ? ", " + step.tool : "")
    }));
}

/** @param {number} from @param {number} to */
function ticks(from, to) {
  const count = 5;
  return Array.from({ length: count + 1 }, (_, i) => from + ((to - from) * i) / count);
}

/**
 * @param {Entry[]} entries
 * @param {any} item
 * @param {any[]} steps
 * @param {Map<string, any>} args of the steps, by step_id
 * @param {number} room in pixels
 */
export function timeline(entries, item, steps, args, room) {
  const now = Date.now(),
    ofSteps = item.kind === "machine" ? [] : stepBars(steps, args, now),
    bars = ofSteps.length ? ofSteps : stateBars(entries, item, now);
  if (!bars.length) return h("p.muted", null, "Nothing has taken time yet.");
  const WIDTH = Math.max(440, room),
    from = Math.min(...bars.map((bar) => bar.from)),
    to = Math.max(...bars.map((bar) => bar.to), from + 1);
  const x = (/** @type {number} */ time) =>
    LEFT + ((time - from) / (to - from)) * (WIDTH - LEFT - 70);
  const lanes = [...new Set(bars.map((bar) => bar.name))].slice(0, 200),
    height = lanes.length * LANE + 34;
  return h("div.graph-frame", { tabindex: 0, role: "region", "aria-label": "Timeline" },
    s("svg",
      {
        class: "timeline",
        viewBox: "0 0 " + WIDTH + " " + height,
        width: WIDTH,
        height,
        role: "img",
        "aria-label": "Timeline of " + duration(to - from)
      },
      ticks(from, to).map((time, i) => [s("line",
          { class: "tick", x1: x(time), x2: x(time), y1: 22, y2: height }),
        s("text", { class: "tick", x: x(time), y: 14 }, i ? "+" + duration(time - from) : "0")]),
      lanes.map((name, i) =>
        s("text", { class: "lane", x: LEFT - 10, y: 34 + i * LANE + 8 },
          name.length > 22 ? name.slice(0, 21) + "…" : name, s("title", null, name))
      ),
      bars
        .filter((bar) => lanes.includes(bar.name))
        .map((bar) => {
          const y = 34 + lanes.indexOf(bar.name) * LANE - 8,
            width = Math.max(3, x(bar.to) - x(bar.from));
          return s("g", { class: "bar " + bar.kind },
            s("title", null, bar.name + ": " + duration(bar.to - bar.from) + ", " + bar.note),
            s("rect", { x: x(bar.from), y, width, height: 18, rx: 4 }),
            s("text", { class: "length", x: x(bar.from) + width + 6, y: y + 13 },
              duration(bar.to - bar.from)));
        })));
}
