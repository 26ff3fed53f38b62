// app.js - the frame around all pages: which address shows which page, the menu, the keyboard.
//
// An address is #/PAGE/... with its filters behind a question mark; #/~STORE/PAGE/... is the same
// in another store. So all that is shown can be sent to a colleague, reloaded and gone back to.
import { get, logout, Refusal, storeName, useStore, who } from "./api.js";
import { h, patch, show } from "./dom.js";
import { listenTo, stopListening, watchState } from "./live.js";
import { helpDialog, isDialogOpen, loginPage, toast } from "./dialogs.js";
import { count, refreshTimes } from "./words.js";
import { actor, setActor, setCaller } from "./actor.js";
import * as approvals from "./approvals.js";
import * as definition from "./definition.js";
import * as definitions from "./definitions.js";
import * as home from "./home.js";
import * as instance from "./instance.js";
import * as instances from "./instances.js";
import * as timers from "./timers.js";
import * as workers from "./workers.js";

/**
 * @typedef {{path: string[], query: URLSearchParams, root: HTMLElement, isCurrent: () => boolean,
 *   fail: (error: unknown) => void}} Route
 * @typedef {{title: string, stream?: string, refresh?: (change: import("./live.js").Change) =>
 *   any, keys?: Record<string, () => void>, leave?: () => void}} Page
 */

const MENU = /** @type {[string, string, string][]} */ ([["", "Home", "h"],
  ["instances", "Instances", "i"], ["definitions", "Definitions", "d"],
  ["approvals", "Approvals", "a"], ["timers", "Timers", "t"], ["workers", "Workers", "w"]]);

/** @type {Record<string, [(route: Route) => Promise<Page>, ((route: Route) => Promise<Page>)?]>} */
const PAGES = {
  "": [home.page],
  instances: [instances.page, instance.page],
  definitions: [definitions.page, definition.page],
  approvals: [approvals.page],
  timers: [timers.page],
  workers: [workers.page]
};

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let turn = 0,
  waiting = 0,
  state = "off",
  begun = false;
/** @type {Page | null} */
let current = null;

/** @param {string} path */
export const link = (path) =>
  "#/" + (storeName() === "default" ? "" : "~" + encodeURIComponent(storeName()) + "/") + path;

/** @returns {{path: string[], query: URLSearchParams}} */
function readAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  useStore(
    parts[0]?.startsWith("~") ? /** @type {string} */ (parts.shift()).slice(1) : "default"
  );
  return { path: parts, query: new URLSearchParams(query ?? "") };
}

// ---- The frame ----

const STATES = /** @type {Record<string, string>} */ ({
  live: "live",
  asking: "busy: asked every 2 s",
  lost: "connection lost",
  off: "not live"
});

/** @param {string} page */
function menu(page) {
  return h("nav", { "aria-label": "Pages" },
    h("ul", null,
      MENU.map(([path, name, key]) =>
        h("li", null,
          h("a",
            {
              href: link(path),
              "aria-current": path === page ? "page" : null,
              title: "g " + key
            },
            name,
            path === "approvals" &&
              waiting > 0 &&
              h("span.count", { "aria-label": count(waiting) + " waiting" }, count(waiting))))
      )));
}

/** @param {SubmitEvent} event */
async function search(event) {
  event.preventDefault();
  const field = /** @type {HTMLInputElement} */ (document.getElementById("search"));
  const text = field.value.trim();
  if (!text) return;
  field.blur();
  const prefix = text.toUpperCase();
  if (/^[0-9A-HJKMNP-TV-Z]{4,26}$/.test(prefix) && /^0/.test(prefix)) {
    try {
      location.hash = link(
        "instances/" + (await get("/instances/find", { prefix })).instance_id
      );
      return;
    } catch {
      /* then it is a subject */
    }
  }
  location.hash = link("instances?subject_ref=" + encodeURIComponent(text));
}

function whoami() {
  const { caller, fixed } = actor();
  return h("div.who", null, h("label", { for: "actor" }, "You act as"),
    h("input",
      {
        id: "actor",
        value: fixed ?? actor().name,
        placeholder: "a name",
        readonly: !!fixed,
        spellcheck: "false",
        autocomplete: "off",
        onchange: (/** @type {any} */ e) => {
          setActor(e.target.value.trim());
          open();
        }
      }),
    caller &&
      h("button.plain",
        {
          onclick: async () => {
            await logout();
            location.reload();
          }
        },
        "Sign out"));
}

/** @param {string} page */
function frame(page) {
  patch(app,
    h("div", { id: "app" },
      h("header", null,
        h("a.brand", { href: link(""), "aria-label": "pawl, home" },
          h("img", { src: "/dashboard/icon.svg", alt: "", width: 24, height: 24 }), "pawl"),
        storeName() !== "default" && h("span.store", null, "store ", h("b", null, storeName())),
        menu(page),
        h("form.search", { role: "search", onsubmit: search },
          h("input",
            {
              id: "search",
              type: "search",
              "data-keep": "1",
              "aria-label": "Find an instance by id or subject",
              placeholder: "Id or subject  /",
              autocomplete: "off",
              spellcheck: "false"
            })),
        h("div.spacer"), whoami(),
        h("div.foot", null, h("span.state." + state, { role: "status" }, STATES[state]),
          h("button.plain", { onclick: () => helpDialog(MENU), title: "?" }, "Keys ?"))),
      h("main", { id: "main", tabindex: -1, "data-own": "1" })));
}

// ---- Pages ----

/** @param {unknown} error @param {HTMLElement} root */
function showError(error, root) {
  if (error instanceof Refusal && error.status === 401) {
    stopListening();
    return show(root,
      loginPage(() => {
        begun = false;
        open();
      }));
  }
  const refusal = error instanceof Refusal ? error : null;
  if (!refusal) console.error(error);
  show(root,
    h("div.empty", { role: "alert" },
      h("h1", null,
        refusal?.reason === "not-known"
          ? "Not found"
          : refusal?.status === 403
            ? "Not allowed"
            : "This could not be shown"),
      h("p", null, error instanceof Error ? error.message : String(error)),
      h("p", null, h("button", { onclick: open }, "Try again"), " ",
        h("a", { href: link("") }, "Home"))));
}

/** @param {number} mine @param {Page} page */
function follow(mine, page) {
  listenTo(page.stream ?? "/events", async (change) => {
    if (mine !== turn) return;
    try {
      await page.refresh?.(change);
    } catch (error) {
      if (mine === turn && error instanceof Refusal && error.status === 401)
        showError(error, main);
    }
    if (
      mine === turn &&
      (change.all ||
        change.created ||
        change.entries.some((entry) => /^gate|^step|^fail|^cancel/.test(entry.action)))
    )
      countWaiting();
  });
}

async function open() {
  const mine = ++turn,
    { path, query } = readAddress(),
    [pages, name] = [PAGES[path[0]], path[0]];
  const root = document.getElementById("main") ?? main;
  current?.leave?.();
  current = null;
  try {
    if (!begun) {
      setCaller(await who());
      begun = true;
      countWaiting();
    }
    frame(name);
    const make = !pages ? null : path.length > 1 && path[1] ? pages[1] : pages[0];
    if (!make) throw new Refusal(404, "not-known", "There is no page at " + location.hash);
    const page = await make({
      path: path.slice(1),
      query,
      root,
      isCurrent: () => mine === turn,
      fail: (error) => showError(error, root)
    });
    if (mine !== turn) return page.leave?.();
    current = page;
    document.title = page.title + " · pawl";
    follow(mine, page);
  } catch (error) {
    if (mine === turn) {
      frame(name);
      showError(error, root);
    }
  }
}

let counting = false,
  countAgain = false;
/** The number beside "Approvals": those that wait for me. */
async function countWaiting() {
  if (counting) {
    countAgain = true;
    return;
  }
  counting = true;
  const begun = performance.now();
  try {
    const { gates } = await approvals.readGates({ approver: actor().name }, 100, 5);
    if (gates.length !== waiting) {
      waiting = gates.length;
      frame(readAddress().path[0]);
    }
  } catch {
    /* the page itself says what is wrong */
  }
  counting = false;
  if (!countAgain) return;
  countAgain = false; /* a store in which it takes long is asked less often */
  window.setTimeout(countWaiting, 3 * (performance.now() - begun));
}

// ---- The keyboard ----

/** @param {number} by */
function moveRow(by) {
  const rows = /** @type {HTMLElement[]} */ ([...main.querySelectorAll("[data-row]")]);
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next =
    rows[
      at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))
    ];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

let afterG = 0;
const KEYS = /** @type {Record<string, () => void>} */ ({
  j: () => moveRow(1),
  k: () => moveRow(-1),
  "?": () => helpDialog(MENU),
  "/": () => document.getElementById("search")?.focus(),
  g: () => {
    afterG = Date.now();
  },
  u: () => history.back()
});

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || isDialogOpen()) return;
  if (event.key === "Escape") return target.blur();
  if (
    /^(INPUT|TEXTAREA|SELECT)$/.test(target.nodeName) &&
    /** @type {HTMLInputElement} */ (target).type !== "range"
  )
    return;
  const goes =
    Date.now() - afterG < 1200 ? MENU.find(([, , key]) => key === event.key) : undefined;
  const act = goes
    ? () => {
        afterG = 0;
        location.hash = link(goes[0]);
      }
    : (current?.keys?.[event.key] ?? KEYS[event.key]);
  if (!act) return;
  event.preventDefault();
  act();
}

document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", () => {
  window.scrollTo(0, 0);
  open();
});
window.addEventListener("pawl:again", open);
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Refusal) {
    event.preventDefault();
    toast(event.reason.message, true);
  }
});
watchState((now) => {
  if (now !== state) {
    state = now;
    if (begun) frame(readAddress().path[0]);
  }
});
window.setInterval(refreshTimes, 1000);
open();
