// api.js - the operations over HTTP. A page has no other way to the server.

/** What the server refused, in its own words. */
export class Refusal extends Error {
  /** @param {number} status @param {string} reason @param {string} detail */
  constructor(status, reason, detail) {
    super(detail);
    this.status = status;
    this.reason = reason;
  }
}

let store = "default";
/** @param {string} name */
export const useStore = (name) => {
  store = name;
};
export const storeName = () => store;

/** @param {string} path below /v1 */
export const address = (path) =>
  (store === "default" ? "/v1" : "/v1/stores/" + encodeURIComponent(store)) + path;

/** @param {Record<string, any>} [query] */
export function queryText(query) {
  const pairs = Object.entries(query ?? {}).filter(
    ([, value]) => value !== undefined && value !== null && value !== ""
  );
  return pairs.length
    ? "?" + pairs.map(([k, v]) => encodeURIComponent(k) + "=" + encodeURIComponent(v)).join("&")
    : "";
}

/** @param {Response} answer */
async function refusal(answer) {
  const text = await answer.text();
  try {
    const problem = JSON.parse(text);
    return new Refusal(
      answer.status,
      problem.reason ?? "",
      problem.detail ?? problem.title ?? text
    );
  } catch {
    return new Refusal(answer.status, "", text || answer.statusText);
  }
}

/**
 * @param {string} method
 * @param {string} target
 * @param {any} [body]
 * @param {Record<string, string>} [headers]
 */
async function send(method, target, body, headers) {
  let answer;
  try {
    answer = await fetch(target, {
      method,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      headers: {
        ...(method === "GET" ? {} : { "X-Pawl-Page": "1", "Content-Type": "application/json" }),
        ...headers
      },
      body:
        body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body)
    });
  } catch {
    throw new Refusal(
      0,
      "unreachable",
      "The server does not answer. It may be stopped or restarting."
    );
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** @param {string} path @param {Record<string, any>} [query] @returns {Promise<any>} */
export const get = async (path, query) =>
  (await send("GET", address(path) + queryText(query))).json();

/**
 * Rows of several pages. A page of the server may be short, or empty, while more are behind it.
 * @param {string} path @param {string} rows the member that has them
 * @param {Record<string, any>} query
 * @param {number} most @param {number} pages
 * @returns {Promise<{rows: any[], next: string | null}>}
 */
export async function getPages(path, rows, query, most, pages) {
  /** @type {any[]} */
  const all = [];
  let next = query.after ?? null;
  do {
    const answer = await get(path, { ...query, limit: most - all.length, after: next });
    all.push(...answer[rows]);
    next = answer.next;
  } while (next && all.length < most && --pages > 0);
  return { rows: all, next };
}

/** @param {string} path @param {Record<string, any>} [query] */
export const getText = async (path, query) =>
  (await send("GET", address(path) + queryText(query))).text();

/** A write has a key, so that pressing twice or a repeat after a lost answer does it once.
 * @param {string} path
 * @param {Record<string, any>} body
 * @param {string} [key]
 * @returns {Promise<any>}
 */
export const post = async (path, body, key) =>
  (await send("POST", address(path), body, key ? { "Idempotency-Key": key } : {})).json();

/** @param {string} path @param {string} text @param {string} type @returns {Promise<any>} */
export const postText = async (path, text, type) =>
  (await send("POST", address(path), text, { "Content-Type": type })).json();

/** Paths outside of a store: the page's own. @param {string} path @returns {Promise<any>} */
export const who = async (path = "/dashboard/who") => (await send("GET", path)).json();

/** @param {string} token @returns {Promise<any>} */
export const login = async (token) => (await send("POST", "/dashboard/login", { token })).json();
export const logout = async () => (await send("POST", "/dashboard/logout", {})).json();

/** @returns {string} */
export const newKey = () =>
  "page-" +
  [...crypto.getRandomValues(new Uint8Array(12))]
    .map((b) => b.toString(16).padStart(2, "0"))
    .join("");

/** @param {string} id */
export const instancePath = (id) => "/instances/" + encodeURIComponent(id);

/** A name may have slashes, which are part of the path. @param {string} name */
export const namePath = (name) => name.split("/").map(encodeURIComponent).join("/");

/** /metrics and /healthz of the store that is shown. @param {string} path */
export const rootText = async (path) =>
  (await send("GET", "/v1/stores/" + encodeURIComponent(store) + path)).text();
