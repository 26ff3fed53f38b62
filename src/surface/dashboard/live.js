// live.js - what is recorded, as it is recorded: one stream of events for the page that is shown.
//
// A browser opens six connections to a server and no more, for all its tabs together. So a tab that
// nobody sees has no stream, and asks for everything again when it is seen.
import { address } from "./api.js";

const GATHER_MS = 120; /* events of one moment are one change of the page */
const FLOOD = 400; /* events a second, from which on asking is cheaper than listening */
const ASK_MS = 2000;

/** @typedef {{ids: Set<string>, created: boolean, all: boolean, entries: any[]}} Change */

/** @type {EventSource | null} */
let source = null;
let path = "/events";
/** @type {((change: Change) => void) | null} */
let listener = null;
/** @type {(state: "live" | "asking" | "lost" | "off") => void} */
let onState = () => {};
/** @type {Change} */
let pending = empty();
let timer = 0,
  asking = 0,
  count = 0,
  countFrom = 0;

/** @returns {Change} */
function empty() {
  return { ids: new Set(), created: false, all: false, entries: [] };
}

function deliver() {
  timer = 0;
  const change = pending;
  pending = empty();
  listener?.(change);
}

function gather() {
  if (!timer) timer = window.setTimeout(deliver, GATHER_MS);
}

/** True: too many come to be looked at one by one. */
function isFlooded() {
  const now = performance.now();
  if (now - countFrom > 1000) {
    countFrom = now;
    count = 0;
  }
  return ++count > FLOOD;
}

/** @param {MessageEvent} event */
function take(event) {
  if (isFlooded()) return askInstead();
  const data = JSON.parse(event.data);
  pending.ids.add(data.instance_id);
  if (event.type === "created") pending.created = true;
  else if (pending.entries.length < 1000) pending.entries.push(data);
  gather();
}

function refreshAll() {
  pending.all = true;
  gather();
}

function askInstead() {
  close();
  onState("asking");
  asking = window.setInterval(refreshAll, ASK_MS);
  window.setTimeout(() => {
    if (asking) open();
  }, 15 * ASK_MS);
}

function close() {
  source?.close();
  source = null;
  window.clearInterval(asking);
  asking = 0;
}

function open() {
  close();
  if (document.hidden || !listener) return;
  let wasLost = false;
  source = new EventSource(address(path));
  source.onopen = () => {
    onState("live");
    if (wasLost) refreshAll();
    wasLost = false;
  };
  source.onerror = () => {
    wasLost = true;
    onState("lost");
    if (source?.readyState === EventSource.CLOSED)
      window.setTimeout(() => {
        open();
        refreshAll();
      }, ASK_MS);
  };
  source.addEventListener("entry", take);
  source.addEventListener("created", take);
}

/** @param {typeof onState} callback */
export function watchState(callback) {
  onState = callback;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    open();
    if (listener) refreshAll();
  });
}

/**
 * Listen from now on to this stream alone.
 * @param {string} stream
 * @param {(change: Change) => void} callback
 */
export function listenTo(stream, callback) {
  listener = callback;
  pending = empty();
  window.clearTimeout(timer);
  timer = 0;
  if (source && path === stream && source.readyState !== EventSource.CLOSED) return;
  path = stream;
  open();
}

export function stopListening() {
  listener = null;
  close();
  onState("off");
}
