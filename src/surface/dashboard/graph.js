// graph.js - draws a definition, and what an instance did in it, from the answer of
// definition.graph or instance.graph in the format `layout`. It needs nothing but that answer and
// dom.js; the classes are styled in style.css.
import { h, s } from "./dom.js";

/**
 * @typedef {{id: number, shape: string, name: string, note: string, terminal_kind: string | null,
 *   mark: string | null, count: number, x: number, y: number, width: number, height: number}}
 *   GraphNode
 * @typedef {{from: number, to: number, label: string, note: string, taken: number, by_fault:
 *   boolean, path: string, words?: string, x?: number, y?: number}} GraphEdge
 * @typedef {{title: string, width: number, height: number, nodes: GraphNode[], edges:
 *   GraphEdge[]}} Graph
 * @typedef {{onNode?: (node: GraphNode) => void, isFresh?: (node: GraphNode) => boolean, label?:
 *   string}} Options
 */

const SIGNS = /** @type {Record<string, string>} */ ({
  passed: "passed",
  present: "here now",
  done: "done",
  ended: "ended here",
  failed: "failed",
  cancelled: "cancelled"
});

/** @param {GraphNode} node */
function outline(node) {
  const left = node.x - node.width / 2,
    top = node.y - node.height / 2;
  if (node.shape === "gate") {
    const right = left + node.width,
      bottom = top + node.height;
    return s("polygon",
      {
        class: "box",
        points: [[left - 6, node.y], [left + 6, top], [right - 6, top], [right + 6, node.y],
          [right - 6, bottom], [left + 6, bottom]]
          .map((point) => point.join(","))
          .join(" ")
      });
  }
  return s("rect",
    {
      class: "box",
      x: left,
      y: top,
      width: node.width,
      height: node.height,
      rx: node.shape === "step" ? 4 : 12
    });
}

/** A second line inside of a state where an instance ends. @param {GraphNode} node */
function inner(node) {
  if (!node.terminal_kind || node.shape !== "state") return null;
  return s("rect",
    {
      class: "box inner",
      x: node.x - node.width / 2 + 3,
      y: node.y - node.height / 2 + 3,
      width: node.width - 6,
      height: node.height - 6,
      rx: 9
    });
}

/** @param {GraphNode} node */
function dot(node) {
  return [node.shape === "end" && s("circle", { class: "ring", cx: node.x, cy: node.y, r: 7 }),
    s("circle", { class: "dot", cx: node.x, cy: node.y, r: node.shape === "end" ? 4 : 6 })];
}

/** @param {GraphNode} node */
const words = (node) =>
  [node.name, node.note, node.mark && SIGNS[node.mark],
    node.count > 1 ? node.count + " times" : ""]
    .filter(Boolean)
    .join(", ");

const LETTER = 7.3; /* about what a letter of a name takes, in pixels */

/** A name that is wider than its box is cut; its whole is in the title. @param {GraphNode} node */
function fitName(node) {
  const room = Math.max(4, Math.floor((node.width - 12) / LETTER) - (node.count > 1 ? 4 : 0));
  return node.name.length > room ? node.name.slice(0, room - 1) + "…" : node.name;
}

/** @param {GraphNode} node @param {Options} options */
function drawNode(node, options) {
  const isDot = node.shape === "start" || node.shape === "end";
  const act = options.onNode && !isDot ? () => options.onNode?.(node) : null;
  const kind = ["node", node.shape, node.mark ?? "", node.terminal_kind ?? "",
    options.isFresh?.(node) ? "fresh" : ""];
  return s("g",
    {
      class: kind.filter(Boolean).join(" "),
      "data-key": "n" + node.id,
      ...(act && {
        tabindex: 0,
        role: "button",
        "aria-description": (node.mark && SIGNS[node.mark]) || null,
        onclick: act,
        onkeydown: (/** @type {KeyboardEvent} */ e) => {
          if (e.key === "Enter") act();
        }
      })
    },
    !isDot && (!act || fitName(node) !== node.name) && s("title", null, words(node)),
    isDot
      ? dot(node)
      : [outline(node), inner(node),
          s("text", { x: node.x, y: node.y + (node.note ? -3 : 4) }, fitName(node),
            node.count > 1 ? " ×" + node.count : ""),
          node.note ? s("text", { class: "note", x: node.x, y: node.y + 13 }, node.note) : null]);
}

/** @param {GraphEdge} edge @param {number} index */
function drawEdge(edge, index) {
  return s("path",
    {
      class: "edge" + (edge.by_fault ? " fault" : "") + (edge.taken ? " taken" : ""),
      d: edge.path,
      "data-key": "e" + index,
      "marker-end": edge.taken ? "url(#way)" : "url(#head)"
    });
}

/** @param {GraphEdge} edge @param {number} index */
function drawLabel(edge, index) {
  if (!edge.words) return null;
  return s("text",
    {
      class: "label" + (edge.taken ? " taken" : ""),
      "data-key": "l" + index,
      x: edge.x,
      y: (edge.y ?? 0) + 4
    },
    edge.words, edge.taken > 1 ? " ×" + edge.taken : "");
}

/** @param {string} id @param {string} name */
const arrow = (id, name) =>
  s("marker",
    {
      id,
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerWidth: 8,
      markerHeight: 8,
      markerUnits: "userSpaceOnUse",
      orient: "auto"
    },
    s("path", { class: name, d: "M0 0L8 4L0 8z" }));

/**
 * The picture as one element.
 * @param {Graph} graph
 * @param {Options} [options]
 * @returns {SVGElement}
 */
export function drawGraph(graph, options = {}) {
  const here = graph.nodes.filter((node) => node.mark === "present").map((node) => node.name);
  const label =
    options.label ?? graph.title + (here.length ? "; now at " + here.join(", ") : "");
  return s("svg",
    {
      class: "graph",
      viewBox: "0 0 " + graph.width + " " + graph.height,
      width: graph.width,
      height: graph.height,
      role: options.onNode ? "group" : "img",
      "aria-label": label
    },
    s("defs", null, arrow("head", "head"), arrow("way", "way")), graph.edges.map(drawEdge),
    graph.nodes.map((node) => drawNode(node, options)), graph.edges.map(drawLabel));
}

/**
 * The picture in a frame of its own that can be scrolled and zoomed.
 * @param {Graph} graph
 * @param {Options} [options]
 */
export function graphFrame(graph, options = {}) {
  const svg = drawGraph(graph, options);
  return h("div.graph-frame",
    { tabindex: 0, role: "region", "aria-label": "The graph of " + graph.title }, svg);
}

const LEAST = 0.75; /* below that letters are hard to read: the frame is scrolled instead */

/** Where the instance stands is in view. @param {Element} frame */
function showPresent(frame) {
  const node = frame.querySelector(".node.present");
  if (!node) return;
  const box = node.getBoundingClientRect(),
    room = frame.getBoundingClientRect();
  frame.scrollBy(
    box.x + box.width / 2 - room.x - room.width / 2,
    box.y + box.height / 2 - room.y - room.height / 2
  );
}

/**
 * As large as it may be where it is shown, and never larger than it is.
 * @param {Element} frame
 * @param {number} [zoom]
 */
export function fitGraph(frame, zoom = 0) {
  const svg = frame.querySelector("svg.graph");
  if (!(svg instanceof SVGSVGElement)) return 1;
  const { width, height } = svg.viewBox.baseVal;
  const fit = Math.min(1, (frame.clientWidth - 2) / width, 560 / height);
  const scale = zoom || Math.max(fit, LEAST);
  svg.style.width = Math.round(width * scale) + "px";
  svg.style.height = Math.round(height * scale) + "px";
  if (!zoom && fit < LEAST && !frame.scrollTop) showPresent(frame);
  return scale;
}
